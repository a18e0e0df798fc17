/* Lowers a pointwise convolution and a depthwise one behind it, with the post-ops that follow
 * either. */
#include "base/dtype.h"
#include "base/status.h"
#include "fusion/regions/convolution.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"
#include "kernels/conv/conv_pair.h"
#include "kernels/cpu/lower.h"
#include "kernels/plan/anchor.h"

#include <string.h>

enum { SRC, WEIGHTS, BIAS };
enum { BATCH_AXIS = 0, Y_AXIS = 1, X_AXIS = 2 };

/* The parts, and what they are as convolutions. */
typedef struct pair {
    const gb_conv_pair_parts *parts;
    gb_conv first, second;
} pair;

/* Positions of the pointwise source are evenly spaced over both axes of the image. */
static bool is_even(const gb_conv *conv)
{
    const gb_conv_axis *y = &conv->axes[Y_AXIS], *x = &conv->axes[X_AXIS];
    return y->in <= 1 || y->src_stride == x->in * x->src_stride;
}

static bool conv_pair_describe(pair *p)
{
    return gb_conv_describe(p->parts->pointwise, &p->first) == GB_SUCCESS &&
           gb_conv_describe(p->parts->depthwise, &p->second) == GB_SUCCESS;
}

static bool conv_pair_accepts(const gb_graph *graph, const void *parts)
{
    pair p = {.parts = parts};
    (void)graph;
    return conv_pair_describe(&p) && gb_conv_is_pointwise(&p.first) && p.second.depthwise &&
           p.second.repeats <= 1 && is_even(&p.first) && p.first.in_channels > 0;
}

static gb_status describe_producer(
        gb_program *program, const pair *p, gb_step *step, gb_conv_producer *producer)
{
    const gb_op *op = p->parts->pointwise;
    const gb_conv *conv = &p->first;
    producer->src_type = conv->src_type;
    producer->k = conv->in_channels;
    producer->batch_stride = conv->axes[BATCH_AXIS].src_stride;
    producer->k_stride = conv->src_channel_stride;
    producer->position_stride = conv->axes[conv->axes[X_AXIS].in > 1 ? X_AXIS : Y_AXIS].src_stride;
    producer->height = conv->axes[Y_AXIS].out;
    producer->width = conv->axes[X_AXIS].out;
    producer->weights = (gb_packing){.type = conv->weights_type,
            .n = conv->out_channels,
            .n_stride = conv->out_stride,
            .inner = conv->in_channels,
            .inner_block = conv->in_channels,
            .inner_stride = conv->in_stride};
    producer->has_bias = op->n_inputs > BIAS;
    if (producer->has_bias) {
        producer->bias_type = gb_op_input(op, BIAS)->data_type;
        producer->bias_stride = gb_op_input(op, BIAS)->strides[0];
        GB_TRY(gb_program_value(program, op->inputs[BIAS], &producer->bias_buffer));
    }
    producer->has_post_ops = p->parts->between.n > 0;
    if (producer->has_post_ops) {
        gb_region_chain between = p->parts->between;
        uint32_t out = p->parts->depthwise->inputs[SRC];
        gb_group group = {.anchor = GB_NONE,
                .ops = between.ops,
                .n_ops = between.n,
                .outputs = &out,
                .n_outputs = 1};
        gb_scratch_operands scratch_operands = {.n = 2, .values = {op->outputs[0], out}};
        GB_TRY(gb_pointwise_build_with_scratch(program, &group, GB_NONE, &scratch_operands,
                gb_op_output(op, 0), step, &producer->post_ops));
    }
    GB_TRY(gb_program_value(program, op->inputs[SRC], &producer->src_buffer));
    return gb_program_value(program, op->inputs[WEIGHTS], &producer->weights_buffer);
}

static gb_status conv_pair_build(gb_program *program, const gb_group *group, pair *p, gb_step *step,
        gb_conv_producer *producer)
{
    gb_conv *conv = &p->second;
    int64_t strides[GB_AXES] = {0};
    if (p->parts->depthwise->n_inputs > BIAS)
        strides[conv->channel_dim] = gb_op_input(p->parts->depthwise, BIAS)->strides[0];
    gb_region_chain post_ops = p->parts->after;
    gb_group after = {.anchor = p->parts->depthwise->index,
            .ops = post_ops.ops,
            .n_ops = post_ops.n,
            .outputs = group->outputs,
            .n_outputs = group->n_outputs};
    GB_TRY(gb_anchor_epilogue(program, &after, BIAS, strides, NULL, step, &conv->epilogue));
    GB_TRY(describe_producer(program, p, step, producer));
    conv->src_type = GB_F32;
    conv->producer = producer;
    return gb_program_value(program, p->parts->depthwise->inputs[WEIGHTS], &conv->weights_buffer);
}

static gb_status conv_pair_lower(gb_program *program, const gb_group *group)
{
    pair p = {.parts = group->parts};
    if (!conv_pair_describe(&p))
        return gb_fail(GB_INVALID_GRAPH, "a pair of convolutions cannot be described");
    gb_conv_producer producer = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "conv pair", &step));
    GB_TRY(conv_pair_build(program, group, &p, step, &producer));
    return gb_conv_add(program, step, &p.second);
}

const gb_region_lowering gb_lowering_conv_pair = {
        .region = &gb_region_conv_pair, .accepts = conv_pair_accepts, .lower = conv_pair_lower};
