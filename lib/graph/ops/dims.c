/* Arithmetic on dims: strides, counts, broadcasting, and which axis means what. */
#include "base/memory.h"
#include "graph/ops/op_rules.h"
#include <string.h>

/* Products wrap for sizes that gb_op_infer_shapes() would refuse; they are never undefined. */
static int64_t dims_multiply(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

void gb_dense_strides(int ndims, const int64_t *dims, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = ndims - 1; i >= 0; i--) {
        strides[i] = stride;
        stride = dims_multiply(stride, gb_max_i64(dims[i], 1));
    }
}

bool gb_is_dense(const gb_logical_tensor *tensor)
{
    if (tensor->layout_type != GB_LAYOUT_STRIDED || !gb_dims_known(tensor))
        return false;
    int64_t strides[GB_MAX_NDIMS];
    gb_dense_strides(tensor->ndims, tensor->dims, strides);
    bool dense = true;
    for (int i = 0; i < tensor->ndims; i++) {
        if (tensor->dims[i] == 0)
            return true;
        dense = dense && (tensor->dims[i] == 1 || tensor->strides[i] == strides[i]);
    }
    return dense;
}

int64_t gb_tensor_count(const gb_logical_tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->ndims; i++)
        count = dims_multiply(count, tensor->dims[i]);
    return count;
}

int gb_normalize_axis(int64_t axis, int ndims)
{
    if (axis < -ndims || axis >= ndims)
        return -1;
    return (int)(axis < 0 ? axis + ndims : axis);
}

/* Dim of a shape seen with `ndims` axes: right-aligned, 1 where it has none. */
static int64_t aligned_dim(int own_ndims, const int64_t *dims, int ndims, int axis)
{
    int own = axis - (ndims - own_ndims);
    return own < 0 ? 1 : dims[own];
}

bool gb_broadcast_dims(
        int a_ndims, const int64_t *a, int b_ndims, const int64_t *b, int *ndims, int64_t *dims)
{
    int n = a_ndims > b_ndims ? a_ndims : b_ndims;
    int64_t result[GB_MAX_NDIMS];
    for (int i = 0; i < n; i++) {
        int64_t a_dim = aligned_dim(a_ndims, a, n, i), b_dim = aligned_dim(b_ndims, b, n, i);
        if (a_dim != b_dim && a_dim != 1 && b_dim != 1)
            return false;
        result[i] = a_dim == 1 ? b_dim : a_dim;
    }
    *ndims = n;
    memcpy(dims, result, (size_t)n * sizeof(*dims));
    return true;
}

bool gb_broadcasts_onto(int a_ndims, const int64_t *a, int b_ndims, const int64_t *b)
{
    if (a_ndims > b_ndims)
        return false;
    for (int i = 0; i < b_ndims; i++) {
        int64_t a_dim = aligned_dim(a_ndims, a, b_ndims, i);
        if (a_dim != b[i] && a_dim != 1)
            return false;
    }
    return true;
}

int gb_channel_axis(const gb_op *op, int ndims)
{
    return ndims > 1 && gb_op_attr_is(op, GB_ATTR_DATA_FORMAT, "NCX", false) ? 1 : ndims - 1;
}

void gb_data_axes(const gb_op *op, int ndims, int axes[GB_MAX_NDIMS])
{
    bool channels_first = gb_op_attr_is(op, GB_ATTR_DATA_FORMAT, "NCX", false);
    axes[0] = 0;
    axes[1] = channels_first ? 1 : ndims - 1;
    for (int i = 2; i < ndims; i++)
        axes[i] = channels_first ? i : i - 1;
}

void gb_weights_axes(const gb_op *op, int ndims, int axes[GB_MAX_NDIMS])
{
    /* OIX and IOX: already in order. XIO and XOI: the other way round, spatial axes first. */
    bool spatial_last = gb_op_attr_is(op, GB_ATTR_WEIGHTS_FORMAT, "OIX", false) ||
                        gb_op_attr_is(op, GB_ATTR_WEIGHTS_FORMAT, "IOX", false);
    axes[0] = spatial_last ? 0 : ndims - 1;
    axes[1] = spatial_last ? 1 : ndims - 2;
    for (int i = 2; i < ndims; i++)
        axes[i] = spatial_last ? i : i - 2;
}

bool gb_dims_known(const gb_logical_tensor *tensor)
{
    if (tensor->ndims < 0)
        return false;
    for (int i = 0; i < tensor->ndims; i++)
        if (tensor->dims[i] < 0)
            return false;
    return true;
}

void gb_dims_set(gb_logical_tensor *tensor, int ndims, const int64_t *dims)
{
    tensor->ndims = ndims;
    memmove(tensor->dims, dims, (size_t)ndims * sizeof(*dims));
}

bool gb_dims_equal(const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    return a->ndims == b->ndims &&
           (a->ndims <= 0 || !memcmp(a->dims, b->dims, (size_t)a->ndims * sizeof(*a->dims)));
}
