/* Lowers a convolution of 8-bit quantized values: the Dequantize of source and weights, the
 * convolution in integers, and the post-ops behind it. */
#include "base/dtype.h"
#include "base/status.h"
#include "fusion/regions/convolution.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"
#include "kernels/conv/conv_dot.h"
#include "kernels/cpu/lower.h"
#include "kernels/plan/anchor.h"

enum { SRC, WEIGHTS, BIAS };
enum { MOST_TERMS = 1 << 16 };

static gb_status conv_dot_describe(const gb_conv_int8_parts *parts, gb_conv *conv)
{
    return gb_conv_describe_codes(parts->conv, gb_op_input(parts->src.dequantize, 0),
            gb_op_input(parts->weights.dequantize, 0), conv);
}

static bool conv_dot_accepts(const gb_graph *graph, const void *parts)
{
    gb_conv conv = {0};
    (void)graph;
    if (conv_dot_describe(parts, &conv) != GB_SUCCESS)
        return false;
    double terms = (double)conv.in_channels;
    for (int a = 0; a < conv.n_axes; a++) {
        if (conv.axes[a].input_dilation != 1)
            return false;
        terms *= (double)conv.axes[a].kernel;
    }
    /* Pointwise ones are products of matrices, which take quantized values themselves. */
    if (gb_conv_is_pointwise(&conv))
        return false;
    return !conv.depthwise && terms > 0 && terms <= MOST_TERMS;
}

static gb_status conv_dot_build(
        gb_program *program, const gb_group *group, gb_step *step, gb_conv *conv)
{
    const gb_conv_int8_parts *p = group->parts;
    gb_region_chain post_ops = p->post_ops;
    int64_t strides[GB_AXES] = {0};
    if (p->conv->n_inputs > BIAS)
        strides[conv->channel_dim] = gb_op_input(p->conv, BIAS)->strides[0];
    gb_group own = {.anchor = p->conv->index,
            .ops = post_ops.ops,
            .n_ops = post_ops.n,
            .outputs = group->outputs,
            .n_outputs = group->n_outputs};
    GB_TRY(gb_anchor_epilogue(program, &own, BIAS, strides, NULL, step, &conv->epilogue));
    GB_TRY(gb_program_value(program, p->src.dequantize->inputs[0], &conv->src_buffer));
    return gb_program_value(program, p->weights.dequantize->inputs[0], &conv->weights_buffer);
}

static gb_status conv_dot_lower(gb_program *program, const gb_group *group)
{
    const gb_conv_int8_parts *parts = group->parts;
    gb_conv_dot dot = {.scale = parts->scale,
            .zero_point = parts->zero_point,
            .n_scales = parts->n_scales,
            .scales = parts->scales};
    gb_conv conv = {0};
    GB_TRY(conv_dot_describe(parts, &conv));
    gb_step *step;
    GB_TRY(gb_program_begin(program, "conv int8", &step));
    GB_TRY(conv_dot_build(program, group, step, &conv));
    conv.dot = &dot;
    return gb_conv_add(program, step, &conv);
}

static uint32_t conv_dot_writes_formats(const gb_graph *graph, const gb_group *group,
        uint32_t value, gb_format_candidate *candidates)
{
    const gb_conv_int8_parts *parts = group->parts;
    if (parts->conv->kind != GB_OP_CONVOLUTION)
        return 0;
    return gb_conv_writes_formats(graph, group, parts->conv, value, candidates);
}

const gb_region_lowering gb_lowering_conv_int8 = {.region = &gb_region_conv_int8,
        .accepts = conv_dot_accepts,
        .lower = conv_dot_lower,
        .writes_formats = conv_dot_writes_formats};
const gb_region_lowering gb_lowering_conv_transpose_int8 = {
        .region = &gb_region_conv_transpose_int8,
        .accepts = conv_dot_accepts,
        .lower = conv_dot_lower};
