/* Lowers a pointwise convolution and a depthwise one behind it, with the links that follow either. */
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

static bool describe(pair *p)
{
    return gb_conv_describe(p->parts->pointwise, &p->first) == GB_SUCCESS &&
           gb_conv_describe(p->parts->depthwise, &p->second) == GB_SUCCESS;
}

static bool accepts(const gb_graph *graph, const void *parts)
{
    pair p = {.parts = parts};
    (void)graph;
    return describe(&p) && gb_conv_is_pointwise(&p.first) && p.second.depthwise &&
           p.second.repeats <= 1 && is_even(&p.first) && p.first.in_channels > 0;
}

static gb_status describe_maker(
        gb_program *program, const pair *p, gb_step *step, gb_conv_maker *maker)
{
    const gb_op *op = p->parts->pointwise;
    const gb_conv *conv = &p->first;
    maker->src_type = conv->src_type;
    maker->k = conv->in_channels;
    maker->batch_stride = conv->axes[BATCH_AXIS].src_stride;
    maker->k_stride = conv->src_channel_stride;
    maker->position_stride = conv->axes[conv->axes[X_AXIS].in > 1 ? X_AXIS : Y_AXIS].src_stride;
    maker->height = conv->axes[Y_AXIS].out;
    maker->width = conv->axes[X_AXIS].out;
    maker->weights = (gb_packing){.type = conv->weights_type,
            .n = conv->out_channels,
            .n_stride = conv->out_stride,
            .inner = conv->in_channels,
            .inner_block = conv->in_channels,
            .inner_stride = conv->in_stride};
    maker->has_bias = op->n_inputs > BIAS;
    if (maker->has_bias) {
        maker->bias_type = gb_op_input(op, BIAS)->data_type;
        maker->bias_stride = gb_op_input(op, BIAS)->strides[0];
        GB_TRY(gb_program_value(program, op->inputs[BIAS], &maker->bias_buffer));
    }
    maker->has_links = p->parts->between.n > 0;
    if (maker->has_links) {
        gb_region_chain between = p->parts->between;
        uint32_t out = p->parts->depthwise->inputs[SRC];
        gb_group group = {.anchor = GB_NONE,
                .links = between.ops,
                .n_links = between.n,
                .outputs = &out,
                .n_outputs = 1};
        gb_tile_locals locals = {.n = 2, .values = {op->outputs[0], out}};
        GB_TRY(gb_tile_build_local(
                program, &group, GB_NONE, &locals, gb_op_output(op, 0), step, &maker->links));
    }
    GB_TRY(gb_program_value(program, op->inputs[SRC], &maker->src_buffer));
    return gb_program_value(program, op->inputs[WEIGHTS], &maker->weights_buffer);
}

static gb_status build(
        gb_program *program, const gb_group *group, pair *p, gb_step *step, gb_conv_maker *maker)
{
    gb_conv *conv = &p->second;
    int64_t strides[GB_AXES] = {0};
    if (p->parts->depthwise->n_inputs > BIAS)
        strides[conv->channel_dim] = gb_op_input(p->parts->depthwise, BIAS)->strides[0];
    gb_region_chain links = p->parts->after;
    gb_group after = {.anchor = p->parts->depthwise->index,
            .links = links.ops,
            .n_links = links.n,
            .outputs = group->outputs,
            .n_outputs = group->n_outputs};
    GB_TRY(gb_anchor_tile(program, &after, BIAS, strides, NULL, step, &conv->tile));
    GB_TRY(describe_maker(program, p, step, maker));
    conv->src_type = GB_F32;
    conv->maker = maker;
    return gb_program_value(program, p->parts->depthwise->inputs[WEIGHTS], &conv->weights_buffer);
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    pair p = {.parts = group->parts};
    if (!describe(&p))
        return gb_fail(GB_INVALID_GRAPH, "a pair of convolutions cannot be described");
    gb_conv_maker maker = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "conv pair", &step));
    GB_TRY(build(program, group, &p, step, &maker));
    return gb_conv_add(program, step, &p.second);
}

const gb_region_lowering gb_lowering_conv_pair = {
        .region = &gb_region_conv_pair, .accepts = accepts, .lower = lower};
