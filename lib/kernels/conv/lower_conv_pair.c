/* The region of a pointwise convolution and a depthwise one behind it, with the links that follow
 * either of them. */
#include "base/dtype.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/conv/conv_pair.h"
#include "kernels/cpu/lower.h"
#include "kernels/cpu/region_links.h"
#include "kernels/plan/anchor.h"

#include <string.h>

enum { SRC, WEIGHTS, BIAS };
enum { BATCH_AXIS = 0, Y_AXIS = 1, X_AXIS = 2 };

typedef struct chain {
    uint32_t n, links[GB_GROUP_LINKS];
} chain;

typedef struct pair {
    const gb_op *pointwise, *depthwise;
    chain between, after;
    gb_conv first, second; /* descriptions */
} pair;

/* Finding -------------------------------------------------------------------------------------- */

/* Is the value read so often, and inside of the partition only? Members of a region are. */
static bool is_inner(
        const gb_graph *graph, const gb_pass_context *context, uint32_t value, uint32_t n_uses)
{
    const gb_value *v = &graph->values[value];
    return v->n_uses == n_uses && !(context && gb_leaves_partition(context, v));
}

static bool is_link(const gb_op *op)
{
    const char *reason;
    return !gb_lowering_get(op->kind) && gb_tile_supports(op, &reason) && op->n_outputs == 1 &&
           !gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false);
}

/* The unary link that makes an input of `op` of the other input, as in a swish, or NULL. */
static const gb_op *find_half(const gb_graph *graph, const gb_op *op)
{
    for (uint32_t i = 0; op->n_inputs == 2 && i < 2; i++) {
        uint32_t producer = graph->values[op->inputs[i]].producer;
        const gb_op *half = producer == GB_NONE ? NULL : graph->ops[producer];
        if (half && is_link(half) && half->n_inputs == 1 && half->inputs[0] == op->inputs[1 - i])
            return half;
    }
    return NULL;
}

static void prepend(chain *between, const gb_op *op)
{
    memmove(between->links + 1, between->links, between->n++ * sizeof *between->links);
    between->links[0] = op->index;
}

/* Up from the source of the depthwise op, through links of the image's dims. */
static const gb_op *find_pointwise(const gb_graph *graph, const gb_pass_context *context,
        const gb_group *members, const gb_op *depthwise, chain *between)
{
    const gb_logical_tensor *image = gb_op_input(depthwise, SRC);
    uint32_t value = depthwise->inputs[SRC], n_uses = 1;
    between->n = 0;
    for (;;) {
        uint32_t producer = graph->values[value].producer;
        const gb_op *op = producer == GB_NONE ? NULL : graph->ops[producer];
        if (!op || !is_inner(graph, context, value, n_uses) || !gb_is_member(members, op))
            return NULL;
        if (op->kind == GB_OP_CONVOLUTION)
            return op;
        if (!is_link(op) || between->n + 2 > GB_GROUP_LINKS || op->n_inputs == 0)
            return NULL;
        prepend(between, op);
        const gb_op *half = find_half(graph, op);
        if (half &&
                (!is_inner(graph, context, half->outputs[0], 1) || !gb_is_member(members, half)))
            return NULL;
        if (half)
            prepend(between, half);
        n_uses = half ? 2 : 1;
        value = half ? half->inputs[0] : op->inputs[0];
        for (uint32_t i = 1;
                i < op->n_inputs && !gb_dims_equal(&graph->values[value].tensor, image); i++)
            value = op->inputs[i];
        if (!gb_dims_equal(&graph->values[value].tensor, image) ||
                !gb_dims_equal(gb_op_output(op, 0), image))
            return NULL;
    }
}

/* Members that are neither a convolution nor between the two. */
static void take_after(const gb_group *members, pair *p)
{
    p->after.n = 0;
    for (uint32_t i = 0; i < members->n_links; i++) {
        uint32_t op = members->links[i];
        bool before = op == p->pointwise->index || op == p->depthwise->index ||
                      gb_lists_op(p->between.n, p->between.links, op);
        if (!before)
            p->after.links[p->after.n++] = op;
    }
}

/* Positions of the pointwise source are evenly spaced over both axes of the image. */
static bool is_even(const gb_conv *conv)
{
    const gb_conv_axis *y = &conv->axes[Y_AXIS], *x = &conv->axes[X_AXIS];
    return y->in <= 1 || y->src_stride == x->in * x->src_stride;
}

static bool has_floats(const gb_op *op)
{
    const char *reason;
    return gb_convolution_types_float(op, &reason) &&
           (op->n_inputs <= BIAS || gb_dtype_is_f(gb_op_input(op, BIAS)->data_type));
}

static bool find(const gb_graph *graph, const gb_pass_context *context, const gb_group *members,
        const gb_op *depthwise, pair *p)
{
    if (!has_floats(depthwise) || gb_op_input(depthwise, SRC)->ndims != 4)
        return false;
    p->depthwise = depthwise;
    p->pointwise = find_pointwise(graph, context, members, depthwise, &p->between);
    if (!p->pointwise || !has_floats(p->pointwise))
        return false;
    memset(&p->first, 0, sizeof p->first);
    memset(&p->second, 0, sizeof p->second);
    if (gb_conv_describe(p->pointwise, &p->first) != GB_SUCCESS ||
            gb_conv_describe(depthwise, &p->second) != GB_SUCCESS)
        return false;
    if (!gb_conv_is_pointwise(&p->first) || !p->second.depthwise || p->second.repeats > 1 ||
            !is_even(&p->first))
        return false;
    return gb_tensor_count(gb_op_output(depthwise, 0)) > 0 &&
           gb_tensor_count(gb_op_input(depthwise, SRC)) > 0 && p->first.in_channels > 0;
}

static gb_status match(
        const gb_graph *graph, const gb_pass_context *context, const gb_op *root, gb_op_list *ops)
{
    pair p;
    if (!find(graph, context, NULL, root, &p))
        return GB_SUCCESS;
    p.after.n = gb_region_links(graph, context, root, GB_GROUP_LINKS, p.after.links);
    GB_TRY(gb_op_list_add(ops, p.pointwise->index));
    GB_TRY(gb_op_list_add(ops, p.depthwise->index));
    GB_TRY(gb_op_list_add_all(ops, p.between.n, p.between.links));
    return gb_op_list_add_all(ops, p.after.n, p.after.links);
}

/* Lowering ------------------------------------------------------------------------------------- */

static gb_status describe_maker(
        gb_program *program, const pair *p, gb_step *step, gb_conv_maker *maker)
{
    const gb_op *op = p->pointwise;
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
    maker->has_links = p->between.n > 0;
    if (maker->has_links) {
        chain between = p->between;
        uint32_t out = p->depthwise->inputs[SRC];
        gb_group group = {.anchor = GB_NONE,
                .links = between.links,
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
    if (p->depthwise->n_inputs > BIAS)
        strides[conv->channel_dim] = gb_op_input(p->depthwise, BIAS)->strides[0];
    gb_group after = {.anchor = p->depthwise->index,
            .links = p->after.links,
            .n_links = p->after.n,
            .outputs = group->outputs,
            .n_outputs = group->n_outputs};
    GB_TRY(gb_anchor_tile(program, &after, BIAS, strides, NULL, step, &conv->tile));
    GB_TRY(describe_maker(program, p, step, maker));
    conv->src_type = GB_F32;
    conv->maker = maker;
    return gb_program_value(program, p->depthwise->inputs[WEIGHTS], &conv->weights_buffer);
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    const gb_graph *graph = gb_program_graph(program);
    pair p;
    bool found = false;
    for (uint32_t i = 0; i < group->n_links && !found; i++) {
        const gb_op *op = graph->ops[group->links[i]];
        found = op->kind == GB_OP_CONVOLUTION && find(graph, NULL, group, op, &p);
    }
    if (!found)
        return gb_fail(GB_INVALID_GRAPH, "a pair of convolutions has lost its parts");
    gb_conv_maker maker = {0};
    gb_step *step;
    take_after(group, &p);
    GB_TRY(gb_program_begin(program, "conv pair", &step));
    GB_TRY(build(program, group, &p, step, &maker));
    return gb_conv_add(program, step, &p.second);
}

const gb_region_lowering gb_region_conv_pair = {
        .region = {.name = "conv pair", .root = GB_OP_CONVOLUTION, .match = match}, .lower = lower};
