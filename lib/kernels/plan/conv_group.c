/* Reads convolution problems from the groups of a program: pointwise programs, buffers, quantized
 * values. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/anchor.h"
#include "kernels/plan/conv_problem.h"
#include "kernels/plan/dequantization.h"

enum { SRC, WEIGHTS, BIAS };

bool gb_conv_takes_prologue(const gb_op *anchor, uint32_t input, const gb_op *op)
{
    gb_conv_problem conv = {0};
    gb_per_tensor_quantization codes;
    if (input > WEIGHTS || !gb_dequantization_takes(op) ||
            gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false) ||
            gb_conv_describe_op(anchor, &conv) != GB_SUCCESS)
        return false;
    return gb_conv_is_pointwise(&conv) ||
           (input == SRC &&
                   (op->kind == GB_OP_TYPE_CAST || gb_per_tensor_quantization_read(op, &codes)));
}

/* Input of the op that is its bias; GB_NONE where it cannot have one: input 2 of a gradient is a
 * shape. */
static uint32_t bias_input(const gb_op *op)
{
    return op->kind == GB_OP_CONVOLUTION_BACKWARD_DATA ? GB_NONE : BIAS;
}

/* The pointwise program of the ops behind `op`, its bias in front of them. */
static gb_status read_epilogue(gb_program *program, const gb_group *group, const gb_op *op,
        gb_step *step, gb_conv_problem *conv)
{
    uint32_t bias = bias_input(op);
    int64_t strides[GB_AXES] = {0};
    if (bias < op->n_inputs)
        strides[conv->channel_dim] = gb_op_input(op, bias)->strides[0];
    return gb_anchor_epilogue(program, group, bias, strides, NULL, step, &conv->pointwise);
}

/* The same of a chain of post-ops in a region. */
static gb_status read_chain(gb_program *program, const gb_group *group, const gb_op *op,
        const gb_region_chain *chain, gb_step *step, gb_conv_problem *conv)
{
    gb_region_chain post_ops = *chain;
    gb_group own = {.anchor = op->index,
            .ops = post_ops.ops,
            .n_ops = post_ops.n,
            .outputs = group->outputs,
            .n_outputs = group->n_outputs};
    return read_epilogue(program, &own, op, step, conv);
}

/* Convolutions --------------------------------------------------------------------------------- */

/* The source; where it is quantized values, their scale follows the sums. */
static gb_status read_source(gb_program *program, const gb_op *op, const gb_dequantization *src,
        gb_step *step, gb_conv_problem *conv)
{
    gb_per_tensor_quantization codes;
    if (src->op && gb_per_tensor_quantization_read(src->op, &codes)) {
        conv->zero_point = codes.zero_point;
        GB_TRY(gb_pointwise_scale_first(op, 0, codes.scale, step, &conv->pointwise));
    }
    return gb_program_value(program, src->codes, &conv->src_buffer);
}

gb_status gb_conv_read_group(
        gb_program *program, const gb_group *group, gb_step *step, gb_conv_problem *conv)
{
    const gb_graph *graph = gb_program_graph(program);
    const gb_op *op = graph->ops[group->anchor];
    gb_dequantization src;
    gb_dequantization_read(graph, group, op->inputs[SRC], &src);
    GB_TRY(gb_conv_describe(op, &graph->values[src.codes].tensor, gb_op_input(op, WEIGHTS), conv));
    GB_TRY(read_epilogue(program, group, op, step, conv));
    if (gb_conv_is_pointwise(conv))
        return GB_SUCCESS;
    GB_TRY(read_source(program, op, &src, step, conv));
    return gb_program_value(program, op->inputs[WEIGHTS], &conv->weights_buffer);
}

gb_status gb_conv_read_int8(
        gb_program *program, const gb_group *group, gb_step *step, gb_conv_problem *conv)
{
    const gb_conv_int8_parts *p = group->parts;
    GB_TRY(gb_conv_describe_int8(p, conv));
    GB_TRY(read_chain(program, group, p->conv, &p->post_ops, step, conv));
    GB_TRY(gb_program_value(program, p->src.dequantize->inputs[0], &conv->src_buffer));
    return gb_program_value(program, p->weights.dequantize->inputs[0], &conv->weights_buffer);
}

/* Pairs ---------------------------------------------------------------------------------------- */

/* The ops between the two read and write the image as scratch. */
static gb_status read_between(gb_program *program, const gb_conv_pair_parts *parts, gb_step *step,
        gb_conv_problem *producer)
{
    const gb_op *op = parts->pointwise;
    gb_region_chain between = parts->between;
    uint32_t out = parts->depthwise->inputs[SRC];
    gb_group group = {.anchor = GB_NONE,
            .ops = between.ops,
            .n_ops = between.n,
            .outputs = &out,
            .n_outputs = 1};
    gb_scratch_operands scratch_operands = {.n = 2, .values = {op->outputs[0], out}};
    if (between.n == 0)
        return GB_SUCCESS;
    return gb_pointwise_build_with_scratch(program, &group, GB_NONE, &scratch_operands,
            gb_op_output(op, 0), step, &producer->pointwise);
}

static gb_status read_producer(gb_program *program, const gb_conv_pair_parts *parts, gb_step *step,
        gb_conv_problem *producer)
{
    const gb_op *op = parts->pointwise;
    if (op->n_inputs > BIAS) {
        const gb_logical_tensor *bias = gb_op_input(op, BIAS);
        producer->bias = (gb_conv_bias){.type = bias->data_type, .stride = bias->strides[0]};
        GB_TRY(gb_program_value(program, op->inputs[BIAS], &producer->bias.buffer));
    }
    GB_TRY(read_between(program, parts, step, producer));
    GB_TRY(gb_program_value(program, op->inputs[SRC], &producer->src_buffer));
    return gb_program_value(program, op->inputs[WEIGHTS], &producer->weights_buffer);
}

gb_status gb_conv_read_pair(gb_program *program, const gb_group *group, gb_step *step,
        gb_conv_problem *producer, gb_conv_problem *conv)
{
    const gb_conv_pair_parts *parts = group->parts;
    GB_TRY(gb_conv_describe_pair(parts, producer, conv));
    GB_TRY(read_chain(program, group, parts->depthwise, &parts->after, step, conv));
    GB_TRY(read_producer(program, parts, step, producer));
    return gb_program_value(program, parts->depthwise->inputs[WEIGHTS], &conv->weights_buffer);
}

/* Products ------------------------------------------------------------------------------------- */

/* Parameters over the dims of the result; `k` is the dim of input channels. */
static void describe_parameter(const gb_dequantization_parameter *from, const int *dims, int n,
        int k, gb_gemm_parameter *parameter)
{
    parameter->type = from->type;
    parameter->slot = from->slot;
    parameter->k_stride = from->strides[k];
    for (int i = 0; i < n; i++)
        parameter->strides[dims[2 * i + 1]] = from->strides[dims[2 * i]];
}

/* The operand whose dim dims[2 i] lies along dim dims[2 i + 1] of the result. */
static gb_status read_operand(gb_program *program, const gb_group *group, uint32_t value,
        gb_step *step, const int *dims, int n, int k, gb_gemm_operand *operand)
{
    const gb_graph *graph = gb_program_graph(program);
    gb_dequantization dequantization;
    gb_dequantization_read(graph, group, value, &dequantization);
    GB_TRY(gb_dequantization_use_parameters(program, step, &dequantization));
    const gb_logical_tensor *codes = &graph->values[dequantization.codes].tensor;
    *operand = (gb_gemm_operand){.type = codes->data_type,
            .constant = gb_program_is_constant(program, dequantization.codes),
            .k_stride = codes->strides[k],
            .reach = dequantization.reach};
    for (int i = 0; i < n; i++)
        operand->strides[dims[2 * i + 1]] = codes->strides[dims[2 * i]];
    describe_parameter(&dequantization.scales, dims, n, k, &operand->scales);
    describe_parameter(&dequantization.zps, dims, n, k, &operand->zps);
    return gb_program_value(program, dequantization.codes, &operand->buffer);
}

gb_status gb_conv_read_product(gb_program *program, const gb_group *group, gb_step *step,
        const gb_conv_problem *conv, gb_gemm_problem *gemm)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    bool backward = gb_conv_is_backward(op);
    int filter[GB_AXES], positions[2 * GB_AXES], channels[2];
    uint8_t roles[GB_AXES];
    gb_weights_axes(op, gb_op_input(op, WEIGHTS)->ndims, filter);
    for (int a = 0; a < conv->n_axes; a++) {
        positions[2 * a] = positions[2 * a + 1] = conv->axes[a].dim;
        roles[conv->axes[a].dim] = GB_GEMM_ROWS;
    }
    roles[conv->channel_dim] = GB_GEMM_COLUMNS;
    channels[0] = filter[backward ? 1 : 0];
    channels[1] = conv->channel_dim;
    gemm->pointwise = conv->pointwise;
    gemm->k = conv->in_channels;
    GB_TRY(read_operand(program, group, op->inputs[SRC], step, positions, conv->n_axes,
            conv->channel_dim, &gemm->a));
    GB_TRY(read_operand(program, group, op->inputs[WEIGHTS], step, channels, 1,
            filter[backward ? 0 : 1], &gemm->b));
    gb_gemm_orient(gemm, roles);
    return GB_SUCCESS;
}
