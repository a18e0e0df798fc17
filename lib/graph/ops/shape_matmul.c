/* Shape rules of MatMul and of reductions. */
#include "graph/ops/op_rules.h"
#include <string.h>

/* An operand as a stack of matrices: [K] is 1 x K as src, K x 1 as weights. */
typedef struct matrix {
    int64_t rows, columns;
    int n_batch;
    const int64_t *batch;
} matrix;

static matrix as_matrix(const gb_logical_tensor *tensor, bool transposed, bool is_weights)
{
    if (tensor->ndims == 1)
        return is_weights ? (matrix){tensor->dims[0], 1, 0, tensor->dims}
                          : (matrix){1, tensor->dims[0], 0, tensor->dims};
    const int64_t *last = &tensor->dims[tensor->ndims - 2];
    return (matrix){last[transposed], last[!transposed], tensor->ndims - 2, tensor->dims};
}

static gb_status check_matmul_bias(const gb_op *op, const gb_logical_tensor *dst)
{
    if (op->n_inputs < 3)
        return GB_SUCCESS;
    const gb_logical_tensor *bias = gb_op_input(op, 2);
    if (gb_broadcasts_onto(bias->ndims, bias->dims, dst->ndims, dst->dims) ||
            (dst->ndims == 0 && gb_tensor_count(bias) == 1))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: bias is %s, which does not broadcast onto dst %s",
            gb_op_label(op), gb_tensor_label(bias), gb_tensor_label(dst));
}

gb_status gb_infer_matmul(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0), *weights = gb_op_input(op, 1);
    gb_logical_tensor *dst = &outputs[0];
    GB_TRY(gb_rank_between(op, 0, 1, GB_MAX_NDIMS));
    GB_TRY(gb_rank_between(op, 1, 1, GB_MAX_NDIMS));
    matrix a = as_matrix(src, gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_A, false), false);
    matrix b = as_matrix(weights, gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_B, false), true);
    if (a.columns != b.rows)
        return gb_fail(GB_INVALID_SHAPE, "%s: K is %lld in src, %lld in weights (%s, %s)",
                gb_op_label(op), (long long)a.columns, (long long)b.rows, gb_tensor_label(src),
                gb_tensor_label(weights));
    if (!gb_broadcast_dims(a.n_batch, a.batch, b.n_batch, b.batch, &dst->ndims, dst->dims))
        return gb_fail(GB_INVALID_SHAPE,
                "%s: the batches of src %s and weights %s do not broadcast", gb_op_label(op),
                gb_tensor_label(src), gb_tensor_label(weights));
    if (src->ndims > 1)
        dst->dims[dst->ndims++] = a.rows;
    if (weights->ndims > 1)
        dst->dims[dst->ndims++] = b.columns;
    return check_matmul_bias(op, dst);
}

/* Marks the axes that the attribute lists. */
static gb_status reduced_axes(const gb_op *op, int ndims, bool reduced[GB_MAX_NDIMS])
{
    const int64_t *axes;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_AXES, &axes);
    memset(reduced, 0, GB_MAX_NDIMS * sizeof(*reduced));
    for (size_t i = 0; i < count; i++) {
        int axis = gb_normalize_axis(axes[i], ndims);
        if (axis < 0)
            return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axes\" holds %lld, src has %d axes",
                    gb_op_label(op), (long long)axes[i], ndims);
        if (reduced[axis])
            return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axes\" lists axis %d twice",
                    gb_op_label(op), axis);
        reduced[axis] = true;
    }
    return GB_SUCCESS;
}

/* Whether reducing some axes of src can give dst: dst is src with dims turned into 1 or left out.
 */
static bool reduces_to(const gb_logical_tensor *src, const gb_logical_tensor *dst, bool keep_dims)
{
    int next = 0;
    for (int i = 0; i < src->ndims; i++) {
        bool same = next < dst->ndims && dst->dims[next] == src->dims[i];
        if (keep_dims && !same && (next >= dst->ndims || dst->dims[next] != 1))
            return false;
        next += keep_dims || same;
    }
    return next == dst->ndims;
}

/* The axes stand in a tensor, whose values are not known here: dst must be given. */
static gb_status reduce_by_tensor(const gb_op *op, bool keep_dims, const gb_logical_tensor *dst)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    GB_TRY(gb_rank_between(op, 1, 1, 1));
    if (!gb_dims_known(dst))
        return gb_fail(GB_INVALID_SHAPE, "%s: axes are in a tensor, and dims of dst are not known",
                gb_op_label(op));
    if (!reduces_to(src, dst, keep_dims))
        return gb_fail(GB_INVALID_SHAPE, "%s: no axes reduce src %s to dst %s", gb_op_label(op),
                gb_tensor_label(src), gb_tensor_label(dst));
    return GB_SUCCESS;
}

gb_status gb_infer_reduce(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    const int64_t *axes;
    bool keep_dims = gb_op_attr_bool(op, GB_ATTR_KEEP_DIMS, false), reduced[GB_MAX_NDIMS];
    if (op->n_inputs > 1 && gb_op_attr_s64s(op, GB_ATTR_AXES, &axes) == 0)
        return reduce_by_tensor(op, keep_dims, &outputs[0]);
    GB_TRY(reduced_axes(op, src->ndims, reduced));
    outputs[0].ndims = 0;
    for (int i = 0; i < src->ndims; i++)
        if (!reduced[i] || keep_dims)
            outputs[0].dims[outputs[0].ndims++] = reduced[i] ? 1 : src->dims[i];
    return GB_SUCCESS;
}
