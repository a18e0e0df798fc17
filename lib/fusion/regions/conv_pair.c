/* Finds a convolution, post-ops, and a second convolution that alone reads what they make, with the
 * post-ops behind it. */
#include "base/dtype.h"
#include "base/status.h"
#include "fusion/regions/convolution.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"

#include <string.h>

enum { SRC, WEIGHTS, BIAS };

/* Is the value read so often, and inside of the partition only? */
static bool is_inner(
        const gb_graph *graph, const gb_pass_context *context, uint32_t value, uint32_t n_uses)
{
    const gb_value *v = &graph->values[value];
    return v->n_uses == n_uses && !gb_leaves_partition(context, v);
}

/* The unary post-op that makes an input of `op` of the other input, as in a swish, or NULL. */
static const gb_op *find_half(
        const gb_graph *graph, const gb_pass_context *context, const gb_op *op)
{
    for (uint32_t i = 0; op->n_inputs == 2 && i < 2; i++) {
        uint32_t producer = graph->values[op->inputs[i]].producer;
        const gb_op *half = producer == GB_NONE ? NULL : graph->ops[producer];
        if (half && gb_region_is_post_op(context, half) && half->n_inputs == 1 &&
                half->inputs[0] == op->inputs[1 - i])
            return half;
    }
    return NULL;
}

static void prepend(gb_region_chain *between, const gb_op *op)
{
    memmove(between->ops + 1, between->ops, between->n++ * sizeof *between->ops);
    between->ops[0] = op->index;
}

/* Up from the source of the depthwise op, through post-ops of the image's dims. */
static const gb_op *find_pointwise(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *depthwise, gb_region_chain *between)
{
    const gb_logical_tensor *image = gb_op_input(depthwise, SRC);
    uint32_t value = depthwise->inputs[SRC], n_uses = 1;
    between->n = 0;
    for (;;) {
        uint32_t producer = graph->values[value].producer;
        const gb_op *op = producer == GB_NONE ? NULL : graph->ops[producer];
        if (!op || !is_inner(graph, context, value, n_uses))
            return NULL;
        if (op->kind == GB_OP_CONVOLUTION)
            return op;
        if (!gb_region_is_post_op(context, op) || between->n + 2 > GB_GROUP_OPS ||
                op->n_inputs == 0)
            return NULL;
        prepend(between, op);
        const gb_op *half = find_half(graph, context, op);
        if (half && !is_inner(graph, context, half->outputs[0], 1))
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

static bool has_floats(const gb_op *op)
{
    const char *reason;
    return gb_convolution_types_float(op, &reason) &&
           (op->n_inputs <= BIAS || gb_dtype_is_f(gb_op_input(op, BIAS)->data_type));
}

static gb_status conv_pair_match(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *root, gb_op_list *ops, void *found)
{
    gb_conv_pair_parts *parts = found;
    if (!has_floats(root) || gb_op_input(root, SRC)->ndims != 4 ||
            gb_tensor_count(gb_op_output(root, 0)) == 0 ||
            gb_tensor_count(gb_op_input(root, SRC)) == 0)
        return GB_SUCCESS;
    parts->depthwise = root;
    parts->pointwise = find_pointwise(graph, context, root, &parts->between);
    if (!parts->pointwise || !has_floats(parts->pointwise))
        return GB_SUCCESS;
    gb_region_find_post_ops(graph, context, root, &parts->after);
    GB_TRY(gb_op_list_add(ops, parts->pointwise->index));
    GB_TRY(gb_op_list_add(ops, root->index));
    GB_TRY(gb_op_list_add_all(ops, parts->between.n, parts->between.ops));
    return gb_op_list_add_all(ops, parts->after.n, parts->after.ops);
}

const gb_region gb_region_conv_pair = {.name = "conv pair",
        .root = GB_OP_CONVOLUTION,
        .parts_bytes = sizeof(gb_conv_pair_parts),
        .match = conv_pair_match};
