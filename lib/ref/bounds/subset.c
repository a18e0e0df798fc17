/* The strides of channels, lines, rows and groups. */
#include "ref/bounds/subset.h"

/* Elements in axes begin .. end - 1. */
static int64_t product(const gb_logical_tensor *tensor, int begin, int end)
{
    int64_t count = 1;
    for (int d = begin; d < end; d++)
        count *= tensor->dims[d];
    return count;
}

void gb_ref_subsets_channels(gb_ref_subsets *subsets, const gb_logical_tensor *tensor, int axis)
{
    int64_t channels = tensor->dims[axis], after = product(tensor, axis + 1, tensor->ndims);
    *subsets = (gb_ref_subsets){
            .count = channels,
            .per_block = channels,
            .step = after,
            .outer = product(tensor, 0, axis),
            .outer_stride = channels * after,
            .inner = after,
            .inner_stride = 1,
    };
}

void gb_ref_subsets_lines(gb_ref_subsets *subsets, const gb_logical_tensor *tensor, int axis)
{
    int64_t length = tensor->dims[axis], after = product(tensor, axis + 1, tensor->ndims);
    *subsets = (gb_ref_subsets){
            .count = product(tensor, 0, axis) * after,
            .per_block = after,
            .block_stride = length * after,
            .step = 1,
            .outer = 1,
            .inner = length,
            .inner_stride = after,
    };
}

void gb_ref_subsets_rows(gb_ref_subsets *subsets, const gb_logical_tensor *tensor, int axis)
{
    int64_t length = product(tensor, axis, tensor->ndims);
    *subsets = (gb_ref_subsets){
            .count = product(tensor, 0, axis),
            .per_block = 1,
            .block_stride = length,
            .outer = 1,
            .inner = length,
            .inner_stride = 1,
    };
}

void gb_ref_subsets_groups(
        gb_ref_subsets *subsets, const gb_logical_tensor *tensor, int channel_axis, int64_t groups)
{
    int64_t channels = tensor->dims[channel_axis];
    int64_t before = product(tensor, 1, channel_axis),
            after = product(tensor, channel_axis + 1, tensor->ndims);
    int64_t block = channels / groups;
    *subsets = (gb_ref_subsets){
            .count = tensor->dims[0] * groups,
            .per_block = groups,
            .block_stride = before * channels * after,
            .step = block * after,
            .outer = before,
            .outer_stride = channels * after,
            .inner = block * after,
            .inner_stride = 1,
    };
}
