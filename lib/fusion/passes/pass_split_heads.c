/* Products whose columns are split and moved (heads of attention) become batched products that
 * write every head where it goes. */
#include "base/status.h"
#include "fusion/passes/passes.h"

#include <string.h>

/* MatMul > uniform post-ops > StaticReshape > StaticTranspose: [rows, H x D] is read as [.., S, H,
 * D].
 */
typedef struct heads {
    gb_op *matmul, *reshape, *transpose;
    int ndims; /* of the reshaped result */
    int64_t terms, n_heads, columns;
} heads;

/* The op that alone reads the value, inside of the partition; NULL otherwise. */
static gb_op *split_heads_only_reader(
        const gb_graph *graph, const gb_pass_context *context, uint32_t value)
{
    const gb_value *v = &graph->values[value];
    bool inside = v->n_uses == 1 && !gb_leaves_partition(context, v);
    return inside ? graph->ops[v->uses[0].op] : NULL;
}

static bool is_plain_product(const gb_op *op)
{
    return op->kind == GB_OP_MATMUL && op->n_inputs == 2 && gb_op_input(op, 0)->ndims >= 2 &&
           gb_op_input(op, 1)->ndims == 2 && !gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_A, false) &&
           gb_graph_producer_through_views(op->graph, op->inputs[0]) == GB_NONE &&
           gb_graph_producer_through_views(op->graph, op->inputs[1]) == GB_NONE;
}

/* Dims of src with a dim of 1 where the heads will be. */
static void source_dims(const heads *h, const int64_t *split, int64_t *dims)
{
    int n = h->ndims;
    memcpy(dims, split, (size_t)(n - 3) * sizeof *dims);
    dims[n - 3] = 1;
    dims[n - 2] = split[n - 3];
    dims[n - 1] = h->terms;
}

static bool split_heads_fits(const heads *h, const gb_cost_model *cost)
{
    const gb_logical_tensor *src = gb_op_input(h->matmul, 0);
    const gb_logical_tensor *split = gb_op_output(h->reshape, 0);
    const gb_logical_tensor *flat = gb_op_output(h->matmul, 0);
    gb_logical_tensor view = {.ndims = h->ndims};
    if (split->ndims < 3 || flat->dims[flat->ndims - 1] != h->n_heads * h->columns)
        return false;
    source_dims(h, split->dims, view.dims);
    return h->n_heads > 1 && h->columns >= cost->head_columns && h->terms > 0 &&
           h->terms <= cost->head_terms && gb_tensor_count(flat) > 0 && gb_reshape_view(src, &view);
}

static bool find_heads(gb_graph *graph, const gb_pass_context *context, gb_op *op, heads *h)
{
    if (!is_plain_product(op))
        return false;
    gb_op *next = split_heads_only_reader(graph, context, op->outputs[0]);
    while (next && gb_is_uniform(context, next))
        next = split_heads_only_reader(graph, context, next->outputs[0]);
    if (!next || next->kind != GB_OP_STATIC_RESHAPE)
        return false;
    const gb_logical_tensor *src = gb_op_input(op, 0), *split = gb_op_output(next, 0);
    *h = (heads){.matmul = op, .reshape = next, .ndims = split->ndims};
    h->transpose = split_heads_only_reader(graph, context, next->outputs[0]);
    if (!h->transpose || h->transpose->kind != GB_OP_STATIC_TRANSPOSE || split->ndims < 3)
        return false;
    h->terms = src->dims[src->ndims - 1];
    h->n_heads = split->dims[h->ndims - 2];
    h->columns = split->dims[h->ndims - 1];
    return split_heads_fits(h, &context->capability->cost);
}

static gb_status split_source(gb_graph *graph, const heads *h, uint32_t *moved)
{
    gb_logical_tensor split = {.ndims = h->ndims};
    source_dims(h, gb_op_output(h->reshape, 0)->dims, split.dims);
    return gb_add_reshape(graph, h->matmul->inputs[0], &split, moved);
}

/* The heads' columns become a batch. */
static gb_status split_weights(gb_graph *graph, const heads *h, uint32_t *moved)
{
    uint32_t weights = h->matmul->inputs[1];
    if (gb_op_attr_bool(h->matmul, GB_ATTR_TRANSPOSE_B, false)) {
        const gb_logical_tensor dims = {.ndims = 3, .dims = {h->n_heads, h->columns, h->terms}};
        return gb_add_reshape(graph, weights, &dims, moved);
    }
    const gb_logical_tensor dims = {.ndims = 3, .dims = {h->terms, h->n_heads, h->columns}};
    GB_TRY(gb_add_reshape(graph, weights, &dims, moved));
    return gb_add_transpose(graph, *moved, (const int64_t[]){1, 0, 2}, moved);
}

/* The product and the post-ops behind it work on [.., H, S, D]. */
static void set_result_dims(gb_graph *graph, const heads *h)
{
    gb_logical_tensor split = *gb_op_output(h->reshape, 0);
    int64_t rows = split.dims[h->ndims - 3];
    split.dims[h->ndims - 3] = h->n_heads;
    split.dims[h->ndims - 2] = rows;
    for (const gb_op *op = h->matmul; op != h->reshape;) {
        const gb_value *value = &graph->values[op->outputs[0]];
        gb_set_dense_dims(&graph->values[op->outputs[0]].tensor, &split);
        op = graph->ops[value->uses[0].op];
    }
}

/* The transpose reads [.., H, S, D] in place of [.., S, H, D]. */
static gb_status turn_order(const heads *h)
{
    int64_t order[GB_MAX_NDIMS];
    gb_transpose_order(h->transpose, order);
    for (int d = 0; d < h->ndims; d++)
        order[d] += order[d] == h->ndims - 3 ? 1 : order[d] == h->ndims - 2 ? -1 : 0;
    return gb_op_set_attr_s64(h->transpose, GB_ATTR_ORDER, (size_t)h->ndims, order);
}

static gb_status rewrite(gb_graph *graph, const heads *h)
{
    uint32_t source, weights;
    GB_TRY(split_source(graph, h, &source));
    GB_TRY(split_weights(graph, h, &weights));
    GB_TRY(turn_order(h));
    set_result_dims(graph, h);
    h->matmul->inputs[0] = source;
    h->matmul->inputs[1] = weights;
    h->transpose->inputs[0] = h->reshape->inputs[0];
    GB_TRY(gb_graph_drop_op(graph, h->reshape->index));
    return gb_graph_connect(graph);
}

gb_status gb_pass_split_heads(gb_graph *graph, gb_pass_context *context)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < graph->n_ops && !changed; i++) {
            heads h;
            if (!find_heads(graph, context, graph->ops[i], &h))
                continue;
            GB_TRY(rewrite(graph, &h)); /* once: its operands are made inside then */
            changed = true;
        }
    }
    return GB_SUCCESS;
}
