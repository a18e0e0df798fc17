/* Tensors that belong to some axes of another one. */
#include "kernels/plan/per_axis.h"

#include "graph/ir/graph.h"
#include "graph/ops/op_table.h"

/* Distance of neighbours when the tensor's elements are evenly spaced in row-major order, else 0.
 */
static int64_t even_spacing(const gb_logical_tensor *tensor)
{
    int64_t spacing = 0, next = 0;
    for (int d = tensor->ndims - 1; d >= 0; d--) {
        if (tensor->dims[d] == 1)
            continue;
        if (!spacing)
            spacing = next = tensor->strides[d];
        if (tensor->strides[d] != next)
            return 0;
        next *= tensor->dims[d];
    }
    return spacing;
}

/* Matches axes of src with those of the tensor, but for dims of 1; false when they differ. */
static bool match_dims(const gb_logical_tensor *src, int first, int end,
        const gb_logical_tensor *tensor, int64_t *strides)
{
    int own = tensor->ndims - 1;
    for (int d = end - 1; d >= first; d--) {
        strides[d] = 0;
        if (src->dims[d] == 1)
            continue;
        while (own >= 0 && tensor->dims[own] == 1)
            own--;
        if (own < 0 || tensor->dims[own] != src->dims[d])
            return false;
        strides[d] = tensor->strides[own--];
    }
    return true;
}

bool gb_per_axis_strides(const gb_logical_tensor *src, int first, int end,
        const gb_logical_tensor *tensor, int64_t *strides)
{
    if (match_dims(src, first, end, tensor, strides))
        return true;
    int64_t spacing = even_spacing(tensor);
    gb_dense_strides(end - first, src->dims + first, strides + first);
    for (int d = first; d < end; d++)
        strides[d] *= spacing;
    return spacing != 0;
}

int64_t gb_per_axis_offset(const gb_logical_tensor *tensor, int64_t index)
{
    int64_t offset = 0;
    for (int d = tensor->ndims - 1; d >= 0; d--) {
        offset += index % tensor->dims[d] * tensor->strides[d];
        index /= tensor->dims[d];
    }
    return offset;
}
