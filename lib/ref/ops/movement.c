/* Ops that only place elements: Concat, StaticReshape, StaticTranspose and GenIndex. */
#include "ref/bounds/walk.h"
#include "ref/ops/ref_functions.h"

#include "base/status.h"
#include <string.h>

typedef struct copy_job {
    gb_ref_tensor *dst;
    const gb_ref_tensor *src;
} copy_job;

/* Operands of the walk: src, dst. */
static void copy_row(void *context, const gb_ref_row *row)
{
    const copy_job *job = context;
    const double *value = job->src->value + row->offset[0], *bound = job->src->bound;
    double *to = job->dst->value + row->offset[1], *to_bound = job->dst->bound + row->offset[1];
    for (int64_t i = 0; i < row->count; i++)
        to[i * row->step[1]] = value[i * row->step[0]];
    if (!bound)
        return;
    bound += row->offset[0];
    for (int64_t i = 0; i < row->count; i++)
        to_bound[i * row->step[1]] = bound[i * row->step[0]];
}

/* Copies an input into the part of dst that starts `skip` elements along `axis`. */
static void copy_part(const gb_ref_tensor *src, int axis, int64_t skip, gb_ref_tensor *dst)
{
    const gb_logical_tensor *part = &src->tensor;
    int64_t strides[GB_MAX_NDIMS], to[GB_MAX_NDIMS];
    gb_dense_strides(part->ndims, part->dims, strides);
    gb_dense_strides(dst->tensor.ndims, dst->tensor.dims, to);
    gb_ref_tensor window = *dst; /* the same memory, from the first element on */
    window.value += skip * to[axis];
    window.bound += skip * to[axis];
    copy_job job = {&window, src};
    gb_ref_walk walk;
    gb_ref_walk_init(&walk, part->ndims, part->dims);
    gb_ref_walk_strided(&walk, strides);
    gb_ref_walk_strided(&walk, to);
    gb_ref_walk_run(&walk, copy_row, &job);
}

/* Is `part` the shape of `whole` except along `axis`, where it needs to fit from `at` on? */
static bool movement_fits(
        const gb_logical_tensor *part, const gb_logical_tensor *whole, int axis, int64_t at)
{
    if (part->ndims != whole->ndims)
        return false;
    for (int d = 0; d < part->ndims; d++) {
        if (d == axis ? part->dims[d] > whole->dims[d] - at : part->dims[d] != whole->dims[d])
            return false;
    }
    return true;
}

gb_status gb_ref_concat(const gb_ref_call *call)
{
    gb_ref_tensor *dst = &call->outputs[0];
    int axis = gb_normalize_axis(gb_op_attr_s64(call->op, GB_ATTR_AXIS, 0), dst->tensor.ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: axis out of range", gb_op_label(call->op));
    int64_t at = 0;
    for (uint32_t i = 0; i < call->n_inputs; i++) {
        const gb_ref_tensor *src = call->inputs[i];
        if (!movement_fits(&src->tensor, &dst->tensor, axis, at))
            return gb_fail(GB_INVALID_SHAPE, "%s: input %u, %s, does not fit into %s",
                    gb_op_label(call->op), i, gb_tensor_label(&src->tensor),
                    gb_tensor_label(&dst->tensor));
        if (src->count > 0)
            copy_part(src, axis, at, dst);
        at += src->tensor.dims[axis];
    }
    return GB_SUCCESS;
}

gb_status gb_ref_reshape(const gb_ref_call *call)
{
    const gb_ref_tensor *src = call->inputs[0];
    gb_ref_tensor *dst = &call->outputs[0];
    if (src->count != dst->count)
        return gb_fail(GB_INVALID_SHAPE, "%s: %s does not hold as many elements as %s",
                gb_op_label(call->op), gb_tensor_label(&dst->tensor),
                gb_tensor_label(&src->tensor));
    memcpy(dst->value, src->value, (size_t)src->count * sizeof(double));
    if (src->bound)
        memcpy(dst->bound, src->bound, (size_t)src->count * sizeof(double));
    return GB_SUCCESS;
}

/* dst axis i is src axis axes[i]; an empty order reverses the axes. */
static gb_status read_order(const gb_op *op, int ndims, int axes[GB_MAX_NDIMS])
{
    const int64_t *order;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_ORDER, &order);
    unsigned seen = 0;
    for (int i = 0; i < ndims; i++) {
        axes[i] = count == 0 ? ndims - 1 - i : -1;
        if (count == (size_t)ndims)
            axes[i] = gb_normalize_axis(order[i], ndims);
        if (axes[i] >= 0)
            seen |= 1u << axes[i];
    }
    if (seen == (1u << ndims) - 1 && (count == 0 || count == (size_t)ndims))
        return GB_SUCCESS;
    return gb_fail(
            GB_INVALID_SHAPE, "%s: order is no permutation of the %d axes", gb_op_label(op), ndims);
}

gb_status gb_ref_transpose(const gb_ref_call *call)
{
    const gb_ref_tensor *src = call->inputs[0];
    gb_ref_tensor *dst = &call->outputs[0];
    int ndims = src->tensor.ndims, axes[GB_MAX_NDIMS];
    int64_t from[GB_MAX_NDIMS], strides[GB_MAX_NDIMS], to[GB_MAX_NDIMS];
    GB_TRY(read_order(call->op, ndims, axes));
    gb_dense_strides(ndims, src->tensor.dims, from);
    gb_dense_strides(dst->tensor.ndims, dst->tensor.dims, to);
    bool matches = dst->tensor.ndims == ndims;
    for (int i = 0; matches && i < ndims; i++) {
        strides[i] = from[axes[i]];
        matches = dst->tensor.dims[i] == src->tensor.dims[axes[i]];
    }
    if (!matches)
        return gb_fail(GB_INVALID_SHAPE, "%s: %s is no transpose of %s", gb_op_label(call->op),
                gb_tensor_label(&dst->tensor), gb_tensor_label(&src->tensor));
    copy_job job = {dst, src};
    gb_ref_walk walk;
    gb_ref_walk_init(&walk, ndims, dst->tensor.dims);
    gb_ref_walk_strided(&walk, strides);
    gb_ref_walk_strided(&walk, to);
    if (dst->count > 0)
        gb_ref_walk_run(&walk, copy_row, &job);
    return GB_SUCCESS;
}

typedef struct index_job {
    gb_ref_tensor *dst;
    int64_t below, size; /* elements below the axis, size of the axis */
} index_job;

static void index_row(void *context, const gb_ref_row *row)
{
    const index_job *job = context;
    for (int64_t i = row->first; i < row->first + row->count; i++)
        job->dst->value[i] = (double)(i / job->below % job->size);
}

gb_status gb_ref_gen_index(const gb_ref_call *call)
{
    gb_ref_tensor *dst = &call->outputs[0];
    int ndims = dst->tensor.ndims;
    int axis = gb_normalize_axis(gb_op_attr_s64(call->op, GB_ATTR_AXIS, 0), ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: axis out of range", gb_op_label(call->op));
    int64_t strides[GB_MAX_NDIMS];
    gb_dense_strides(ndims, dst->tensor.dims, strides);
    index_job job = {dst, strides[axis], dst->tensor.dims[axis]};
    if (dst->count > 0)
        gb_ref_walk_flat(dst->count, index_row, &job);
    return GB_SUCCESS;
}
