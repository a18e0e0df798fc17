/* Attention whose queries of several heads are columns of one product with the keys that they share
 * becomes batched: keys come last in the scores, and the heads are a dim that keys and values do
 * not have.
 *
 *   K Q [.., T, H x S] > reshape > transpose [.., H, S, T] > .. SoftMax .. > transpose > reshape >
 *   V P [.., D, H x S]
 *
 * becomes Q' K^T [.., H, S, T] > .. SoftMax .. > P V^T [.., H, S, D] > transpose > reshape.
 *
 * Where only the heads are moved, in front of the rows, [.., H, T, S], the products stay as they
 * are: K Q' > .. SoftMax .. > V P [.., H, D, S] > transpose > reshape. */
#include "base/status.h"
#include "fusion/passes/passes.h"

typedef struct queries {
    gb_op *scores, *split, *to_rows;  /* K Q, its columns split, keys moved to the end */
    gb_op *values, *joined, *to_cols; /* and back */
    int n_batch;                      /* dims before the keys in the split scores */
    int ndims;                        /* of the split scores */
    bool keeps_rows;                  /* only heads are moved */
    int64_t rows_order[GB_MAX_NDIMS], cols_order[GB_MAX_NDIMS];
} queries;

/* The op of that kind which makes the value for one reader, inside of the partition. */
static gb_op *producer_of(
        const gb_graph *graph, const gb_pass_context *context, uint32_t value, gb_op_kind kind)
{
    const gb_value *v = &graph->values[value];
    if (v->producer == GB_NONE || v->n_uses != 1 || gb_leaves_partition(context, v))
        return NULL;
    gb_op *op = graph->ops[v->producer];
    return op->kind == kind ? op : NULL;
}

/* The op of that kind which alone reads the value, inside of the partition. */
static gb_op *reader(const gb_graph *graph, const gb_pass_context *context, uint32_t value,
        gb_op_kind kind, uint32_t input)
{
    const gb_value *v = &graph->values[value];
    if (v->n_uses != 1 || v->uses[0].input != input || gb_leaves_partition(context, v))
        return NULL;
    gb_op *op = graph->ops[v->uses[0].op];
    return op->kind == kind ? op : NULL;
}

/* From SoftMax up, past the mask that may be added. */
static bool find_scores(
        const gb_graph *graph, const gb_pass_context *context, const gb_op *softmax, queries *q)
{
    uint32_t value = softmax->inputs[0];
    const gb_op *mask = producer_of(graph, context, value, GB_OP_ADD);
    q->to_rows = producer_of(graph, context, value, GB_OP_STATIC_TRANSPOSE);
    for (uint32_t i = 0; mask && i < 2 && !q->to_rows; i++)
        q->to_rows = producer_of(graph, context, mask->inputs[i], GB_OP_STATIC_TRANSPOSE);
    if (!q->to_rows || !gb_dims_equal(gb_op_output(q->to_rows, 0), &graph->values[value].tensor))
        return false;
    q->split = producer_of(graph, context, q->to_rows->inputs[0], GB_OP_STATIC_RESHAPE);
    if (q->split)
        q->scores = producer_of(graph, context, q->split->inputs[0], GB_OP_MATMUL);
    return q->scores;
}

static bool batch_shared_kv_find_values(
        const gb_graph *graph, const gb_pass_context *context, const gb_op *softmax, queries *q)
{
    q->to_cols = reader(graph, context, softmax->outputs[0], GB_OP_STATIC_TRANSPOSE, 0);
    if (q->to_cols)
        q->joined = reader(graph, context, q->to_cols->outputs[0], GB_OP_STATIC_RESHAPE, 0);
    if (q->joined)
        q->values = reader(graph, context, q->joined->outputs[0], GB_OP_MATMUL, 1);
    return q->values;
}

static bool batch_shared_kv_is_product(const gb_op *op)
{
    return op->n_inputs == 2 && gb_op_input(op, 0)->ndims >= 2 && gb_op_input(op, 1)->ndims >= 2;
}

static bool same_leading(const gb_logical_tensor *a, const gb_logical_tensor *b, int n)
{
    bool same = a->ndims >= n && b->ndims >= n;
    for (int d = 0; d < n && same; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

/* Are batch dims first on both sides, and the keys, the dim behind them, moved to the end and back,
 * or the heads in front of them? */
static bool moves_keys(queries *q)
{
    int last = q->ndims - 1;
    q->keeps_rows = q->rows_order[last] == last && q->rows_order[last - 1] == q->n_batch;
    for (int d = 0; d < q->n_batch; d++)
        if (q->rows_order[d] != d || q->cols_order[d] != d)
            return false;
    for (int d = 0; d < q->ndims; d++)
        if (q->rows_order[q->cols_order[d]] != d)
            return false;
    return q->keeps_rows || q->rows_order[last] == q->n_batch;
}

static bool batch_shared_kv_fits(queries *q)
{
    const gb_logical_tensor *flat = gb_op_output(q->scores, 0);
    const gb_logical_tensor *split = gb_op_output(q->split, 0);
    q->ndims = split->ndims;
    q->n_batch = flat->ndims - 2;
    return batch_shared_kv_is_product(q->scores) && batch_shared_kv_is_product(q->values) &&
           flat->ndims >= 2 && split->ndims > flat->ndims &&
           same_leading(flat, split, flat->ndims - 1) &&
           gb_dims_equal(gb_op_output(q->joined, 0), flat) &&
           !gb_op_attr_bool(q->values, GB_ATTR_TRANSPOSE_B, false) &&
           gb_op_output(q->values, 0)->ndims == flat->ndims &&
           same_leading(gb_op_output(q->values, 0), flat, q->n_batch) &&
           gb_transpose_order(q->to_rows, q->rows_order) &&
           gb_transpose_order(q->to_cols, q->cols_order) && moves_keys(q);
}

/* K or V^T with dims of 1 for the heads. */
static gb_status spread(gb_graph *graph, const queries *q, uint32_t value, uint32_t *moved)
{
    const gb_logical_tensor *from = &graph->values[value].tensor;
    gb_logical_tensor dims = {0};
    for (int d = 0; d < from->ndims - 2; d++)
        dims.dims[dims.ndims++] = from->dims[d];
    for (int d = q->n_batch + 2; d < q->ndims; d++)
        dims.dims[dims.ndims++] = 1;
    dims.dims[dims.ndims++] = from->dims[from->ndims - 2];
    dims.dims[dims.ndims++] = from->dims[from->ndims - 1];
    return gb_add_reshape(graph, value, &dims, moved);
}

/* Q with its columns split and in front of the features. */
static gb_status turn_queries(gb_graph *graph, const queries *q, uint32_t *moved)
{
    const gb_logical_tensor *split = gb_op_output(q->split, 0);
    uint32_t value = q->scores->inputs[1];
    const gb_logical_tensor *from = &graph->values[value].tensor;
    bool by_columns = gb_op_attr_bool(q->scores, GB_ATTR_TRANSPOSE_B, false);
    int n_batch = from->ndims - 2, n_cols = q->ndims - q->n_batch - 1;
    gb_logical_tensor dims = {.ndims = n_batch + n_cols + 1};
    int64_t order[GB_MAX_NDIMS];
    int features = by_columns ? dims.ndims - 1 : n_batch,
        first = by_columns ? n_batch : n_batch + 1;
    for (int d = 0; d < n_batch; d++)
        dims.dims[d] = from->dims[order[d] = d];
    dims.dims[features] = from->dims[by_columns ? from->ndims - 1 : n_batch];
    for (int d = 0; d < n_cols; d++) {
        int moved_dim = q->keeps_rows && d == n_cols - 1 ? q->ndims - 1
                                                         : (int)q->rows_order[q->n_batch + d];
        dims.dims[first + d] = split->dims[q->n_batch + 1 + d];
        order[n_batch + d] = moved_dim - q->n_batch - 1 + first;
    }
    order[dims.ndims - 1] = features;
    if (q->keeps_rows && !by_columns) { /* behind the heads, the last part of the columns stays */
        order[dims.ndims - 2] = features;
        order[dims.ndims - 1] = dims.ndims - 1;
    }
    GB_TRY(gb_add_reshape(graph, value, &dims, moved));
    return gb_add_transpose(graph, *moved, order, moved);
}

/* The product's new operands; its second one is transposed where the first one was not. */
static gb_status set_operands(gb_op *product, uint32_t first, uint32_t second)
{
    const uint8_t straight = 0, transposed = !gb_op_attr_bool(product, GB_ATTR_TRANSPOSE_A, false);
    product->inputs[0] = first;
    product->inputs[1] = second;
    GB_TRY(gb_op_set_attr_bool(product, GB_ATTR_TRANSPOSE_A, 1, &straight));
    return gb_op_set_attr_bool(product, GB_ATTR_TRANSPOSE_B, 1, &transposed);
}

static gb_status turn_scores(gb_graph *graph, const queries *q)
{
    uint32_t rows, keys;
    GB_TRY(turn_queries(graph, q, &rows));
    GB_TRY(spread(graph, q, q->scores->inputs[0], &keys));
    q->scores->outputs[0] = q->to_rows->outputs[0];
    if (!q->keeps_rows)
        return set_operands(q->scores, rows, keys);
    q->scores->inputs[0] = keys;
    q->scores->inputs[1] = rows;
    return GB_SUCCESS;
}

/* The movements behind the weights come behind the product. */
static gb_status turn_values(gb_graph *graph, const queries *q)
{
    uint32_t made = q->joined->outputs[0], transposed = q->to_cols->outputs[0];
    uint32_t out = q->values->outputs[0], spread_values;
    gb_logical_tensor dims = *gb_op_input(q->to_cols, 0);
    const gb_logical_tensor result = graph->values[out].tensor;
    GB_TRY(spread(graph, q, q->values->inputs[0], &spread_values));
    if (q->keeps_rows) {
        q->values->inputs[0] = spread_values;
        q->values->inputs[1] = q->to_cols->inputs[0];
    } else {
        GB_TRY(set_operands(q->values, q->to_cols->inputs[0], spread_values));
    }
    q->values->outputs[0] = q->to_cols->inputs[0] = made;
    q->joined->outputs[0] = out;
    dims.dims[q->ndims - (q->keeps_rows ? 2 : 1)] = result.dims[q->n_batch];
    gb_set_dense_dims(&graph->values[made].tensor, &dims);
    dims = *gb_op_output(q->split, 0);
    dims.dims[q->n_batch] = result.dims[q->n_batch];
    gb_set_dense_dims(&graph->values[transposed].tensor, &dims);
    graph->values[made].tensor.data_type = graph->values[transposed].tensor.data_type =
            result.data_type;
    return gb_op_set_attr_s64(q->joined, GB_ATTR_SHAPE, (size_t)result.ndims, result.dims);
}

static gb_status rewrite(gb_graph *graph, const queries *q)
{
    GB_TRY(turn_scores(graph, q));
    GB_TRY(turn_values(graph, q));
    GB_TRY(gb_graph_drop_op(graph, q->to_rows->index));
    GB_TRY(gb_graph_drop_op(graph, q->split->index));
    return gb_graph_connect(graph);
}

gb_status gb_pass_batch_shared_kv(gb_graph *graph, gb_pass_context *context)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < graph->n_ops && !changed; i++) {
            const gb_op *softmax = graph->ops[i];
            queries q = {0};
            if (softmax->kind != GB_OP_SOFTMAX || softmax->n_outputs != 1 ||
                    !find_scores(graph, context, softmax, &q) ||
                    !batch_shared_kv_find_values(graph, context, softmax, &q) ||
                    !batch_shared_kv_fits(&q))
                continue;
            GB_TRY(rewrite(graph, &q)); /* once: no movement is left between product and SoftMax */
            changed = true;
        }
    }
    return GB_SUCCESS;
}
