/* Convolutions in both directions: Convolution and ConvTransposeBackwardData run from an image to
 * the positions of windows, ConvTranspose and ConvolutionBackwardData back. Pointwise ones are
 * plain products, all others implicit ones. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/cpu/lower.h"
#include "kernels/gemm/gemm_plan.h"
#include "kernels/plan/anchor.h"
#include "kernels/plan/dequantization.h"

#include <string.h>

enum { SRC, WEIGHTS, BIAS };

/* From the positions of windows to the image that they move over. */
static bool is_backward(const gb_op *op)
{
    return op->kind == GB_OP_CONV_TRANSPOSE || op->kind == GB_OP_CONVOLUTION_BACKWARD_DATA;
}

static gb_status conv_window_of(
        const gb_op *op, const int *data, const int *weights, gb_window *window)
{
    const gb_logical_tensor *filter = gb_op_input(op, WEIGHTS), *image = gb_op_input(op, SRC);
    int64_t in[GB_AXES], kernel[GB_AXES];
    if (op->kind == GB_OP_CONVOLUTION_BACKWARD_DATA)
        image = gb_op_output(op, 0);
    for (int i = 2; i < image->ndims; i++) {
        in[i - 2] = image->dims[data[i]];
        kernel[i - 2] = filter->dims[weights[i]];
    }
    return gb_window_get(
            op, image->ndims - 2, in, kernel, op->kind == GB_OP_CONV_TRANSPOSE, window);
}

/* Groups split the channels at the positions of windows. */
static void describe_channels(const gb_op *op, const gb_logical_tensor *src,
        const gb_logical_tensor *filter, const int *data, const int *weights, int64_t groups,
        gb_conv *conv)
{
    int in = weights[is_backward(op) ? 0 : 1], out = weights[is_backward(op) ? 1 : 0];
    conv->src_type = src->data_type;
    conv->weights_type = filter->data_type;
    conv->channel_dim = data[1];
    conv->src_channel_stride = src->strides[data[1]];
    conv->out_stride = filter->strides[out];
    conv->in_stride = filter->strides[in];
    conv->groups = groups;
    conv->in_channels = filter->dims[in] / (is_backward(op) ? groups : 1);
    conv->out_channels = filter->dims[out] / (is_backward(op) ? 1 : groups);
    conv->group_stride = is_backward(op) ? conv->in_channels * conv->in_stride
                                         : conv->out_channels * conv->out_stride;
}

/* Backward, a window's first tap meets last: taps are counted from the other end. */
static void turn_axis(gb_conv *conv, gb_conv_axis *axis)
{
    axis->input_dilation = axis->stride;
    axis->stride = 1;
    axis->pad = (axis->kernel - 1) * axis->dilation - axis->pad;
    conv->first_weight += (axis->kernel - 1) * axis->tap_stride;
    axis->tap_stride = -axis->tap_stride;
}

/* Depthwise when the output channels of a group would leave most of a vector empty, and weights of
 * all groups lie evenly. Panels hold whole groups. */
static void conv_join_groups(gb_conv *conv)
{
    enum { MOST_REPEATS = 8 };
    int64_t repeats = conv->out_channels;
    bool even = repeats == 1 || conv->group_stride == repeats * conv->out_stride;
    conv->depthwise = conv->groups > 1 && conv->in_channels == 1 && even && repeats > 0 &&
                      repeats <= MOST_REPEATS && GB_GEMM_PANEL % repeats == 0;
    if (!conv->depthwise)
        return;
    conv->out_stride = conv->group_stride / repeats;
    conv->out_channels = conv->groups * repeats;
    conv->repeats = repeats;
    conv->groups = 1;
}

gb_status gb_conv_describe_codes(const gb_op *op, const gb_logical_tensor *src,
        const gb_logical_tensor *filter, gb_conv *conv)
{
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    int data[GB_AXES], weights[GB_AXES];
    gb_window window;
    gb_data_axes(op, src->ndims, data);
    gb_weights_axes(op, filter->ndims, weights);
    GB_TRY(conv_window_of(op, data, weights, &window));
    describe_channels(op, src, filter, data, weights, window.groups, conv);
    conv->n_axes = src->ndims - 1;
    conv->axes[0] = (gb_conv_axis){.kernel = 1, .stride = 1, .dilation = 1, .input_dilation = 1};
    for (int i = 2; i < src->ndims; i++) {
        conv->axes[i - 1] = (gb_conv_axis){.kernel = window.kernel[i - 2],
                .stride = window.strides[i - 2],
                .dilation = window.dilations[i - 2],
                .pad = window.pads_begin[i - 2],
                .input_dilation = 1,
                .tap_stride = filter->strides[weights[i]]};
        if (is_backward(op))
            turn_axis(conv, &conv->axes[i - 1]);
    }
    for (int a = 0; a < conv->n_axes; a++) {
        gb_conv_axis *axis = &conv->axes[a];
        axis->dim = data[a ? a + 1 : 0];
        axis->in = src->dims[axis->dim];
        axis->out = dst->dims[axis->dim];
        axis->src_stride = src->strides[axis->dim];
    }
    conv_join_groups(conv);
    return GB_SUCCESS;
}

gb_status gb_conv_describe(const gb_op *op, gb_conv *conv)
{
    return gb_conv_describe_codes(op, gb_op_input(op, SRC), gb_op_input(op, WEIGHTS), conv);
}

bool gb_conv_is_pointwise(const gb_conv *conv)
{
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_axis *axis = &conv->axes[a];
        if (axis->kernel != 1 || axis->stride != 1 || axis->input_dilation != 1 || axis->pad != 0 ||
                axis->in != axis->out)
            return false;
    }
    return conv->groups == 1 && !conv->depthwise;
}

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
static gb_status describe_operand(gb_program *program, const gb_group *group, uint32_t value,
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

static gb_status describe_pointwise(gb_program *program, const gb_group *group, const gb_op *op,
        gb_step *step, const gb_conv *conv, gb_gemm_problem *gemm)
{
    int filter[GB_AXES], positions[2 * GB_AXES], channels[2];
    gb_weights_axes(op, gb_op_input(op, WEIGHTS)->ndims, filter);
    for (int a = 0; a < conv->n_axes; a++)
        positions[2 * a] = positions[2 * a + 1] = conv->axes[a].dim;
    channels[0] = filter[is_backward(op) ? 1 : 0];
    channels[1] = conv->channel_dim;
    GB_TRY(describe_operand(program, group, op->inputs[SRC], step, positions, conv->n_axes,
            conv->channel_dim, &gemm->a));
    return describe_operand(program, group, op->inputs[WEIGHTS], step, channels, 1,
            filter[is_backward(op) ? 0 : 1], &gemm->b);
}

static gb_status add_pointwise(gb_program *program, const gb_group *group, const gb_op *op,
        gb_step *step, const gb_conv *conv)
{
    gb_gemm_problem gemm = {.pointwise = conv->epilogue, .k = conv->in_channels};
    uint8_t roles[GB_AXES];
    GB_TRY(describe_pointwise(program, group, op, step, conv, &gemm));
    for (int a = 0; a < conv->n_axes; a++)
        roles[conv->axes[a].dim] = GB_GEMM_ROWS;
    roles[conv->channel_dim] = GB_GEMM_COLUMNS;
    gb_gemm_orient(&gemm, roles);
    return gb_gemm_add(program, step, &gemm);
}

/* Pointwise convolutions expand quantized values as products do, others in the copies of their
 * source. */
static bool conv_takes_prologue(const gb_op *anchor, uint32_t input, const gb_op *op)
{
    gb_conv conv = {0};
    gb_per_tensor_quantization codes;
    if (input > WEIGHTS || !gb_dequantization_takes(op) ||
            gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false) ||
            gb_conv_describe(anchor, &conv) != GB_SUCCESS)
        return false;
    return gb_conv_is_pointwise(&conv) ||
           (input == SRC &&
                   (op->kind == GB_OP_TYPE_CAST || gb_per_tensor_quantization_read(op, &codes)));
}

/* The source; where it is quantized values, their scale follows the sums. */
static gb_status use_source(gb_program *program, const gb_op *op, const gb_dequantization *src,
        gb_step *step, gb_conv *conv)
{
    gb_per_tensor_quantization codes;
    if (src->op && gb_per_tensor_quantization_read(src->op, &codes)) {
        conv->zero_point = codes.zero_point;
        GB_TRY(gb_pointwise_scale_first(op, 0, codes.scale, step, &conv->epilogue));
    }
    return gb_program_value(program, src->codes, &conv->src_buffer);
}

static gb_status conv_build(
        gb_program *program, const gb_group *group, gb_step *step, gb_conv *conv)
{
    const gb_graph *graph = gb_program_graph(program);
    const gb_op *op = graph->ops[group->anchor];
    int64_t strides[GB_AXES] = {0};
    gb_dequantization src;
    /* Input 2 of a gradient is a shape. */
    uint32_t bias = op->kind == GB_OP_CONVOLUTION_BACKWARD_DATA ? GB_NONE : BIAS;
    gb_dequantization_read(graph, group, op->inputs[SRC], &src);
    GB_TRY(gb_conv_describe_codes(
            op, &graph->values[src.codes].tensor, gb_op_input(op, WEIGHTS), conv));
    if (bias < op->n_inputs)
        strides[conv->channel_dim] = gb_op_input(op, bias)->strides[0];
    GB_TRY(gb_anchor_epilogue(program, group, bias, strides, NULL, step, &conv->epilogue));
    if (gb_conv_is_pointwise(conv))
        return GB_SUCCESS;
    GB_TRY(use_source(program, op, &src, step, conv));
    return gb_program_value(program, op->inputs[WEIGHTS], &conv->weights_buffer);
}

static gb_status conv_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    gb_conv conv = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "conv", &step));
    GB_TRY(conv_build(program, group, step, &conv));
    if (gb_conv_is_pointwise(&conv))
        return add_pointwise(program, group, op, step, &conv);
    return gb_conv_add(program, step, &conv);
}

/* Formats -------------------------------------------------------------------------------------- */

/* Channels last, where the op has them first: acdb, ...; NULL otherwise. */
static const gb_format *channels_last(const gb_op *op, int ndims)
{
    const gb_format *format;
    char text[GB_FORMAT_TEXT], *end = text;
    if (ndims < 3 || !gb_op_attr_is(op, GB_ATTR_DATA_FORMAT, "NCX", false))
        return NULL;
    *end++ = 'a';
    for (int d = 2; d < ndims; d++)
        *end++ = (char)('a' + d);
    strcpy(end, "b");
    return gb_format_parse(text, &format) == GB_SUCCESS ? format : NULL;
}

/* Channels of a position lie in one line. */
static uint32_t conv_reads_formats(const gb_op *op, uint32_t input, gb_format_candidate *candidates)
{
    if (input != SRC || gb_op_attr_s64(op, GB_ATTR_GROUPS, 1) != 1)
        return 0;
    const gb_logical_tensor *src = gb_op_input(op, SRC);
    candidates[0] = (gb_format_candidate){channels_last(op, src->ndims), GB_CACHE_LINE};
    return candidates[0].format != NULL;
}

/* Is the op between an input of the convolution and what it was made of? */
static bool is_in_front(const gb_graph *graph, const gb_op *conv, const gb_op *op)
{
    for (uint32_t i = SRC; i <= WEIGHTS; i++)
        for (uint32_t producer = graph->values[conv->inputs[i]].producer; producer != GB_NONE;
                producer = graph->values[graph->ops[producer]->inputs[0]].producer)
            if (producer == op->index)
                return true;
    return false;
}

/* Do post-ops read tensors of the result's size, which are hardly laid out with channels last? */
static bool has_side_images(const gb_graph *graph, const gb_group *group, const gb_op *conv)
{
    bool sides = false;
    for (uint32_t i = 0; i < group->n_ops; i++) {
        const gb_op *op = graph->ops[group->ops[i]];
        if (op == conv || is_in_front(graph, conv, op))
            continue;
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = graph->values[op->inputs[k]].producer;
            bool inside =
                    producer != GB_NONE &&
                    (producer == conv->index || gb_lists_op(group->n_ops, group->ops, producer));
            sides = sides || (!inside && gb_dims_equal(gb_op_input(op, k), gb_op_output(conv, 0)));
        }
    }
    return sides;
}

/* Part of the vectors that rows of positions of one image leave empty, as products have them with
 * channels first. */
static double wasted(const gb_logical_tensor *dst)
{
    int64_t positions = 1;
    for (int d = 2; d < dst->ndims; d++)
        positions *= dst->dims[d];
    int64_t panels = gb_div_up(positions, GB_GEMM_PANEL) * GB_GEMM_PANEL;
    return panels ? 1 - (double)positions / (double)panels : 0;
}

/* Tiles have output channels along vectors, and need not be transposed. Pointwise ones of floats
 * have positions there, if the result does. */
uint32_t gb_conv_writes_formats(const gb_graph *graph, const gb_group *group, const gb_op *op,
        uint32_t value, gb_format_candidate *candidates)
{
    enum { FEW_CHANNELS = 32 };
    const gb_logical_tensor *tensor = &graph->values[value].tensor;
    gb_conv conv = {0};
    if (op->kind != GB_OP_CONVOLUTION || gb_conv_describe(op, &conv) != GB_SUCCESS ||
            conv.depthwise || conv.groups != 1 || conv.out_channels < FEW_CHANNELS ||
            !gb_dims_equal(tensor, gb_op_output(op, 0)) || group->n_outputs > 1 ||
            has_side_images(graph, group, op))
        return 0;
    size_t bytes = gb_data_type_bytes(tensor->data_type, 1);
    double saved = gb_conv_is_pointwise(&conv) && bytes > 1 ? wasted(tensor) : 1;
    if (saved < 0.05)
        return 0;
    for (int d = 0; d < tensor->ndims; d++)
        saved *= (double)tensor->dims[d];
    candidates[0] = (gb_format_candidate){channels_last(op, tensor->ndims), saved * (double)bytes};
    return candidates[0].format != NULL;
}

static uint32_t conv_writes_formats(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_format_candidate *candidates)
{
    return gb_conv_writes_formats(graph, group, graph->ops[group->anchor], value, candidates);
}

const gb_lowering gb_lowering_convolution = {.name = "convolution",
        .supports = gb_convolution_types_float,
        .takes_epilogue = true,
        .fuses_producer = conv_takes_prologue,
        .reads_formats = conv_reads_formats,
        .writes_formats = conv_writes_formats,
        .lower = conv_lower};

/* Weights with input channels where a convolution has output channels: nothing else differs. */
const gb_lowering gb_lowering_conv_transpose_backward_data = {
        .name = "convolution", .supports = gb_all_types_float, .lower = conv_lower};
