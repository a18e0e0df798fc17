/* Shape rules of Concat, StaticReshape and StaticTranspose. */
#include "base/memory.h"
#include "graph/ops/op_rules.h"
#include <string.h>

/* Adds input `i` to the dst so far. */
static gb_status shape_movement_join(const gb_op *op, uint32_t i, int axis, gb_logical_tensor *dst)
{
    const gb_logical_tensor *src = gb_op_input(op, i);
    bool fits = src->ndims == dst->ndims;
    for (int d = 0; fits && d < dst->ndims; d++)
        fits = d == axis || src->dims[d] == dst->dims[d];
    if (!fits)
        return gb_fail(GB_INVALID_SHAPE,
                "%s: input %u is %s, input 0 is %s; only axis %d may differ", gb_op_label(op), i,
                gb_tensor_label(src), gb_tensor_label(gb_op_input(op, 0)), axis);
    if (__builtin_add_overflow(dst->dims[axis], src->dims[axis], &dst->dims[axis]))
        return gb_fail(GB_INVALID_SHAPE, "%s: axis %d of dst is too large", gb_op_label(op), axis);
    return GB_SUCCESS;
}

gb_status gb_infer_concat(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *first = gb_op_input(op, 0);
    int axis;
    GB_TRY(gb_axis_attr(op, GB_ATTR_AXIS, first->ndims, &axis));
    gb_dims_set(&outputs[0], first->ndims, first->dims);
    for (uint32_t i = 1; i < op->n_inputs; i++)
        GB_TRY(shape_movement_join(op, i, axis, &outputs[0]));
    return GB_SUCCESS;
}

/* One entry of the shape attribute; *open is the axis of the -1. */
static gb_status reshape_dim(const gb_op *op, int i, int64_t value, int *open, int64_t *dim)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    *dim = value;
    if (value == -1 && *open < 0) {
        *open = i;
        *dim = 1;
        return GB_SUCCESS;
    }
    if (value < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"shape\" holds %s%lld", gb_op_label(op),
                value == -1 ? "a second " : "", (long long)value);
    if (value != 0 || !gb_op_attr_bool(op, GB_ATTR_SPECIAL_ZERO, false))
        return GB_SUCCESS;
    if (i >= src->ndims)
        return gb_fail(GB_INVALID_SHAPE,
                "%s: attribute \"shape\" copies dim %d of src, which is %s", gb_op_label(op), i,
                gb_tensor_label(src));
    *dim = src->dims[i];
    return GB_SUCCESS;
}

gb_status gb_infer_reshape(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    gb_logical_tensor *dst = &outputs[0];
    const int64_t *shape;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_SHAPE, &shape);
    int open = -1;
    if (count > GB_MAX_NDIMS)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"shape\" has %zu values, at most %d fit",
                gb_op_label(op), count, GB_MAX_NDIMS);
    dst->ndims = (int)count;
    for (int i = 0; i < dst->ndims; i++)
        GB_TRY(reshape_dim(op, i, shape[i], &open, &dst->dims[i]));
    int64_t elements = gb_tensor_count(src), others;
    if (!gb_dims_count(dst->ndims, dst->dims, &others))
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"shape\" is too large", gb_op_label(op));
    if (open >= 0) {
        if (others == 0 || elements % others != 0)
            return gb_fail(GB_INVALID_SHAPE,
                    "%s: %lld elements of src do not divide by the %lld that the shape fixes",
                    gb_op_label(op), (long long)elements, (long long)others);
        dst->dims[open] = elements / others;
    } else if (others != elements) {
        return gb_fail(GB_INVALID_SHAPE, "%s: src has %lld elements, the shape %lld",
                gb_op_label(op), (long long)elements, (long long)others);
    }
    return GB_SUCCESS;
}

gb_status gb_infer_transpose(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    gb_logical_tensor *dst = &outputs[0];
    const int64_t *order;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_ORDER, &order);
    bool taken[GB_MAX_NDIMS] = {false};
    if (count != 0 && count != (size_t)src->ndims)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"order\" has %zu values, src has %d axes",
                gb_op_label(op), count, src->ndims);
    dst->ndims = src->ndims;
    for (int i = 0; i < src->ndims; i++) { /* an empty order reverses the axes */
        int axis = count ? gb_normalize_axis(order[i], src->ndims) : src->ndims - 1 - i;
        if (axis < 0 || taken[axis])
            return gb_fail(GB_INVALID_SHAPE,
                    "%s: attribute \"order\" is not a permutation of %d axes (value %lld)",
                    gb_op_label(op), src->ndims, (long long)order[i]);
        taken[axis] = true;
        dst->dims[i] = src->dims[axis];
    }
    return GB_SUCCESS;
}
