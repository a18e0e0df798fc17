/* Attributes and indices of the twin. */
#include "base/memory.h"
#include "ref/naive/naive_op.h"

#include <math.h>
#include <string.h>

const gb_attr *gb_naive_attr(const gb_op *op, gb_op_attr name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].name == name && !op->attrs[i].left_out)
            return &op->attrs[i];
    return NULL;
}

double gb_naive_real(const gb_op *op, gb_op_attr name, double otherwise)
{
    const gb_attr *attr = gb_naive_attr(op, name);
    if (!attr)
        return otherwise;
    double value = (double)attr->value.f32;
    return fabs(value) < 0x1p-126 ? copysign(0, value) : value; /* subnormals count as 0 */
}

int64_t gb_naive_int(const gb_op *op, gb_op_attr name, int64_t otherwise)
{
    const gb_attr *attr = gb_naive_attr(op, name);
    return attr ? attr->value.s64 : otherwise;
}

bool gb_naive_flag(const gb_op *op, gb_op_attr name, bool otherwise)
{
    const gb_attr *attr = gb_naive_attr(op, name);
    return attr ? attr->value.boolean != 0 : otherwise;
}

bool gb_naive_says(const gb_op *op, gb_op_attr name, const char *otherwise, const char *text)
{
    const gb_attr *attr = gb_naive_attr(op, name);
    return strcmp(attr ? attr->value.string : otherwise, text) == 0;
}

size_t gb_naive_ints(const gb_op *op, gb_op_attr name, const int64_t **values)
{
    const gb_attr *attr = gb_naive_attr(op, name);
    *values = attr ? attr->value.s64s : NULL;
    return attr ? attr->count : 0;
}

gb_status gb_naive_make(const gb_naive_call *call, uint32_t i, int ndims, const int64_t *dims)
{
    gb_naive_tensor *out = &call->out[i];
    out->ndims = ndims;
    out->count = 1;
    for (int d = 0; d < ndims; d++) {
        out->dims[d] = dims[d];
        if (dims[d] < 0 || __builtin_mul_overflow(out->count, dims[d], &out->count))
            return GB_NAIVE_REFUSE(call, "an output has impossible dims");
    }
    out->value = gb_calloc((size_t)out->count, sizeof(double));
    return out->value ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

gb_status gb_naive_make_like(const gb_naive_call *call, uint32_t i, const gb_naive_tensor *other)
{
    return gb_naive_make(call, i, other->ndims, other->dims);
}

bool gb_naive_same_dims(const gb_naive_tensor *a, const gb_naive_tensor *b)
{
    bool same = a->ndims == b->ndims;
    for (int d = 0; same && d < a->ndims; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

int gb_naive_axis(int64_t axis, int ndims)
{
    if (axis < -ndims || axis >= ndims)
        return -1;
    return (int)(axis < 0 ? axis + ndims : axis);
}

int gb_naive_channel_axis(const gb_op *op, int ndims)
{
    return gb_naive_says(op, GB_ATTR_DATA_FORMAT, "NXC", "NCX") ? 1 : ndims - 1;
}

bool gb_naive_is_vector(const gb_naive_call *call, uint32_t i, int64_t length)
{
    return i >= call->op->n_inputs || (call->in[i].ndims == 1 && call->in[i].count == length);
}

int64_t gb_naive_stride(const gb_naive_tensor *tensor, int axis)
{
    int64_t stride = 1;
    for (int d = axis + 1; d < tensor->ndims; d++)
        stride *= tensor->dims[d];
    return stride;
}

int64_t gb_naive_along(const gb_naive_tensor *tensor, int axis, int64_t p)
{
    return p / gb_naive_stride(tensor, axis) % tensor->dims[axis];
}

void gb_naive_index(const gb_naive_tensor *tensor, int64_t p, int64_t index[GB_MAX_NDIMS])
{
    for (int d = 0; d < tensor->ndims; d++)
        index[d] = gb_naive_along(tensor, d, p);
}

int64_t gb_naive_at(const gb_naive_tensor *tensor, const int64_t *index)
{
    int64_t p = 0;
    for (int d = 0; d < tensor->ndims; d++)
        p = p * tensor->dims[d] + index[d];
    return p;
}

int64_t gb_naive_broadcast_at(const gb_naive_tensor *tensor, const gb_naive_tensor *onto, int64_t p)
{
    int64_t index[GB_MAX_NDIMS], own[GB_MAX_NDIMS];
    int missing = onto->ndims - tensor->ndims;
    gb_naive_index(onto, p, index);
    for (int d = 0; d < tensor->ndims; d++)
        own[d] = tensor->dims[d] == 1 ? 0 : index[missing + d];
    return gb_naive_at(tensor, own);
}

bool gb_naive_broadcasts(const gb_naive_tensor *tensor, const gb_naive_tensor *onto)
{
    int missing = onto->ndims - tensor->ndims;
    bool fits = missing >= 0;
    for (int d = 0; fits && d < tensor->ndims; d++)
        fits = tensor->dims[d] == 1 || tensor->dims[d] == onto->dims[missing + d];
    return fits;
}

bool gb_naive_broadcast_dims(int n_a, const int64_t *a, int n_b, const int64_t *b, int *ndims,
        int64_t dims[GB_MAX_NDIMS])
{
    *ndims = n_a > n_b ? n_a : n_b;
    for (int d = 0; d < *ndims; d++) {
        int at_a = d - (*ndims - n_a), at_b = d - (*ndims - n_b);
        int64_t size_a = at_a < 0 ? 1 : a[at_a], size_b = at_b < 0 ? 1 : b[at_b];
        if (size_a != size_b && size_a != 1 && size_b != 1)
            return false;
        dims[d] = size_a == 1 ? size_b : size_a;
    }
    return true;
}
