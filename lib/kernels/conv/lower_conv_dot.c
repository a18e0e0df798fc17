/* The region of a convolution of 8-bit codes: the Dequantize of source and weights, the convolution
 * in integers, and the links behind it. */
#include "base/dtype.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/conv/conv_dot.h"
#include "kernels/cpu/lower.h"
#include "kernels/cpu/region_links.h"
#include "kernels/plan/anchor.h"

#include <string.h>

enum { SRC, WEIGHTS, BIAS };
enum { MOST_TERMS = 1 << 16 };

typedef struct codes {
    const gb_op *dequantize;
    uint32_t n_casts, casts[2]; /* TypeCast between the op and the convolution */
} codes;

typedef struct parts {
    const gb_op *conv;
    codes src, weights;
    uint32_t n_links, links[GB_GROUP_LINKS];
    gb_conv plan;
    gb_conv_dot dot;
} parts;

/* Is the value read once, and inside of the partition only? A region matched before says so. */
static bool is_inner(const gb_graph *graph, const gb_pass_context *context, uint32_t value)
{
    const gb_value *v = &graph->values[value];
    return v->n_uses == 1 && !(context && gb_leaves_partition(context, v));
}

/* Up from an input of the convolution. */
static bool find_codes(
        const gb_graph *graph, const gb_pass_context *context, uint32_t value, codes *found)
{
    for (found->n_casts = 0; is_inner(graph, context, value);) {
        uint32_t producer = graph->values[value].producer;
        const gb_op *op = producer == GB_NONE ? NULL : graph->ops[producer];
        if (op && op->kind == GB_OP_DEQUANTIZE) {
            found->dequantize = op;
            gb_data_type type = gb_op_input(op, 0)->data_type;
            return type == GB_S8 || type == GB_U8;
        }
        if (!op || op->kind != GB_OP_TYPE_CAST || found->n_casts == 2)
            return false;
        found->casts[found->n_casts++] = op->index;
        value = op->inputs[0];
    }
    return false;
}

static bool read_source(const gb_op *op, gb_conv_dot *dot)
{
    const float *scales = NULL;
    const int64_t *zps = NULL;
    bool is_signed = gb_op_input(op, 0)->data_type == GB_S8;
    size_t n_zps = gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    if (gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales) != 1 || n_zps > 1 ||
            !gb_op_attr_is(op, GB_ATTR_QTYPE, "per_tensor", true))
        return false;
    dot->scale = scales[0];
    dot->zero_point = n_zps ? zps[0] : 0;
    return dot->zero_point >= (is_signed ? -128 : 0) && dot->zero_point <= (is_signed ? 127 : 255);
}

/* Symmetric codes with one scale, or one for each output channel. */
static bool read_weights(const gb_op *op, const gb_op *conv, gb_conv_dot *dot)
{
    const gb_logical_tensor *filter = gb_op_input(op, 0);
    const int64_t *zps = NULL;
    size_t n_scales = gb_op_attr_f32s(op, GB_ATTR_SCALES, &dot->scales);
    size_t n_zps = gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    int axes[GB_AXES], out = conv->kind == GB_OP_CONV_TRANSPOSE ? 1 : 0;
    for (size_t i = 0; i < n_zps; i++)
        if (zps[i] != 0)
            return false;
    if (filter->data_type != GB_S8 || n_scales == 0 ||
            gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false))
        return false;
    dot->n_scales = (int64_t)n_scales;
    if (n_scales == 1)
        return true;
    gb_weights_axes(conv, filter->ndims, axes);
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 1), filter->ndims);
    return axis == axes[out] && filter->dims[axis] == dot->n_scales;
}

static bool describe(parts *p)
{
    gb_conv *conv = &p->plan;
    memset(conv, 0, sizeof *conv);
    if (gb_conv_describe_codes(p->conv, gb_op_input(p->src.dequantize, 0),
                gb_op_input(p->weights.dequantize, 0), conv) != GB_SUCCESS)
        return false;
    double terms = (double)conv->in_channels;
    for (int a = 0; a < conv->n_axes; a++) {
        if (conv->axes[a].up != 1)
            return false;
        terms *= (double)conv->axes[a].kernel;
    }
    /* Pointwise ones are products of matrices, which take codes themselves. */
    if (gb_conv_is_pointwise(conv))
        return false;
    return !conv->depthwise && terms > 0 && terms <= MOST_TERMS;
}

static bool find(const gb_graph *graph, const gb_pass_context *context, const gb_op *conv, parts *p)
{
    const char *reason;
    p->conv = conv;
    memset(&p->dot, 0, sizeof p->dot);
    if (!gb_convolution_types_float(conv, &reason) ||
            !find_codes(graph, context, conv->inputs[SRC], &p->src) ||
            !find_codes(graph, context, conv->inputs[WEIGHTS], &p->weights))
        return false;
    return read_source(p->src.dequantize, &p->dot) &&
           read_weights(p->weights.dequantize, conv, &p->dot) && describe(p) &&
           gb_tensor_count(gb_op_output(conv, 0)) > 0;
}

static gb_status match(
        const gb_graph *graph, const gb_pass_context *context, const gb_op *root, gb_op_list *ops)
{
    parts p;
    if (!find(graph, context, root, &p))
        return GB_SUCCESS;
    p.n_links = gb_region_links(graph, context, root, GB_GROUP_LINKS, p.links);
    GB_TRY(gb_op_list_add(ops, root->index));
    GB_TRY(gb_op_list_add(ops, p.src.dequantize->index));
    GB_TRY(gb_op_list_add(ops, p.weights.dequantize->index));
    GB_TRY(gb_op_list_add_all(ops, p.src.n_casts, p.src.casts));
    GB_TRY(gb_op_list_add_all(ops, p.weights.n_casts, p.weights.casts));
    return gb_op_list_add_all(ops, p.n_links, p.links);
}

/* Members that come behind the convolution. */
static void take_links(const gb_group *group, parts *p)
{
    p->n_links = 0;
    for (uint32_t i = 0; i < group->n_links; i++) {
        uint32_t op = group->links[i];
        bool front = op == p->conv->index || op == p->src.dequantize->index ||
                     op == p->weights.dequantize->index;
        for (uint32_t k = 0; k < p->src.n_casts; k++)
            front = front || op == p->src.casts[k];
        for (uint32_t k = 0; k < p->weights.n_casts; k++)
            front = front || op == p->weights.casts[k];
        if (!front)
            p->links[p->n_links++] = op;
    }
}

static gb_status build(gb_program *program, const gb_group *group, gb_step *step, parts *p)
{
    gb_conv *conv = &p->plan;
    int64_t strides[GB_AXES] = {0};
    if (p->conv->n_inputs > BIAS)
        strides[conv->channel_dim] = gb_op_input(p->conv, BIAS)->strides[0];
    gb_group own = {.anchor = p->conv->index,
            .links = p->links,
            .n_links = p->n_links,
            .outputs = group->outputs,
            .n_outputs = group->n_outputs};
    GB_TRY(gb_anchor_tile(program, &own, BIAS, strides, NULL, step, &conv->tile));
    GB_TRY(gb_program_value(program, p->src.dequantize->inputs[0], &conv->src_buffer));
    return gb_program_value(program, p->weights.dequantize->inputs[0], &conv->weights_buffer);
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    const gb_graph *graph = gb_program_graph(program);
    parts p;
    bool found = false;
    for (uint32_t i = 0; i < group->n_links && !found; i++) {
        const gb_op *op = graph->ops[group->links[i]];
        found = (op->kind == GB_OP_CONVOLUTION || op->kind == GB_OP_CONV_TRANSPOSE) &&
                find(graph, NULL, op, &p);
    }
    if (!found)
        return gb_fail(GB_INVALID_GRAPH, "a convolution of codes has lost its parts");
    take_links(group, &p);
    gb_step *step;
    GB_TRY(gb_program_begin(program, "conv int8", &step));
    GB_TRY(build(program, group, step, &p));
    p.plan.dot = &p.dot;
    return gb_conv_add(program, step, &p.plan);
}

static uint32_t writes_formats(
        const gb_graph *graph, const gb_group *group, uint32_t value, gb_format_offer *offers)
{
    for (uint32_t i = 0; i < group->n_links; i++)
        if (graph->ops[group->links[i]]->kind == GB_OP_CONVOLUTION)
            return gb_conv_writes_formats(graph, group, graph->ops[group->links[i]], value, offers);
    return 0;
}

const gb_region_lowering gb_region_conv_dot = {
        .region = {.name = "conv int8", .root = GB_OP_CONVOLUTION, .match = match},
        .lower = lower,
        .writes_formats = writes_formats};
const gb_region_lowering gb_region_conv_transpose_dot = {
        .region = {.name = "conv int8", .root = GB_OP_CONV_TRANSPOSE, .match = match},
        .lower = lower};
