/* Shape rules of pools, their gradients, and resampling: ops that keep N and C and change the
 * spatial axes. */
#include "graph/ops/op_rules.h"
#include <math.h>

enum { MIN_RANK = 3, MAX_RANK = 5 };

/* Reads the window of a pool over `image` and stores its pads. */
static gb_status get_window(gb_op *op, const gb_logical_tensor *image, gb_window *window)
{
    int axes[GB_MAX_NDIMS], n_spatial = image->ndims - 2;
    int64_t in[GB_MAX_NDIMS];
    gb_data_axes(op, image->ndims, axes);
    for (int i = 0; i < n_spatial; i++)
        in[i] = image->dims[axes[2 + i]];
    GB_TRY(gb_window_get(op, n_spatial, in, NULL, false, window));
    return gb_window_store_pads(op, window);
}

gb_status gb_infer_pool(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    bool round_up = gb_op_attr_is(op, GB_ATTR_ROUNDING_TYPE, "ceil", false);
    int axes[GB_MAX_NDIMS];
    gb_window window;
    GB_TRY(gb_rank_between(op, 0, MIN_RANK, MAX_RANK));
    GB_TRY(get_window(op, src, &window));
    gb_data_axes(op, src->ndims, axes);
    gb_dims_set(&outputs[0], src->ndims, src->dims);
    for (int i = 0; i < window.n_spatial; i++)
        GB_TRY(gb_window_positions(
                op, &window, i, src->dims[axes[2 + i]], round_up, &outputs[0].dims[axes[2 + i]]));
    return GB_SUCCESS;
}

/* diff_dst has the batch and channels of the image; its spatial sizes are taken as given (there is
 * no rounding_type here). */
static gb_status check_gradient(
        const gb_op *op, const gb_logical_tensor *image, const gb_logical_tensor *diff_dst)
{
    int channel = gb_channel_axis(op, image->ndims);
    if (diff_dst->ndims == image->ndims && diff_dst->dims[0] == image->dims[0] &&
            diff_dst->dims[channel] == image->dims[channel])
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: diff_dst is %s, which does not fit diff_src %s",
            gb_op_label(op), gb_tensor_label(diff_dst), gb_tensor_label(image));
}

gb_status gb_infer_avg_pool_backward(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *diff_dst = gb_op_input(op, 0);
    gb_window window;
    GB_TRY(gb_rank_between(op, 0, MIN_RANK, MAX_RANK));
    GB_TRY(gb_target_dims(op, GB_ATTR_SRC_SHAPE, diff_dst->ndims, &outputs[0]));
    GB_TRY(check_gradient(op, &outputs[0], diff_dst));
    return get_window(op, &outputs[0], &window);
}

gb_status gb_infer_max_pool_backward(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    gb_window window;
    GB_TRY(gb_rank_between(op, 0, MIN_RANK, MAX_RANK));
    GB_TRY(check_gradient(op, src, gb_op_input(op, 1)));
    GB_TRY(get_window(op, src, &window));
    return gb_infer_identity(op, outputs);
}

/* Size of an axis after resampling: the attribute's, or trunc(size * scale) in f32. */
static gb_status resampled(const gb_op *op, int axis, int64_t in, int64_t *out)
{
    const int64_t *sizes;
    const float *scales;
    if (gb_op_attr_s64s(op, GB_ATTR_SIZES, &sizes) > 0) {
        *out = sizes[axis];
    } else {
        gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales);
        float size = (float)in * scales[axis];
        if (!(size >= 0.0f && size < 0x1p62f))
            return gb_fail(GB_INVALID_SHAPE, "%s: scale %g of spatial axis %d of %lld",
                    gb_op_label(op), (double)scales[axis], axis, (long long)in);
        *out = (int64_t)truncf(size);
    }
    if (*out < 0 || (in == 0 && *out > 0))
        return gb_fail(GB_INVALID_SHAPE, "%s: spatial axis %d of %lld cannot become %lld",
                gb_op_label(op), axis, (long long)in, (long long)*out);
    return GB_SUCCESS;
}

static gb_status resample_dims(
        const gb_op *op, const gb_logical_tensor *src, gb_logical_tensor *dst)
{
    const int64_t *sizes;
    const float *scales;
    int axes[GB_MAX_NDIMS], n_spatial = src->ndims - 2;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_SIZES, &sizes);
    const char *name = count ? "sizes" : "scales";
    if (!count)
        count = gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales);
    if (count != (size_t)n_spatial)
        return gb_fail(GB_INVALID_SHAPE,
                "%s: attribute \"%s\" has %zu values, src has %d spatial axes", gb_op_label(op),
                name, count, n_spatial);
    gb_data_axes(op, src->ndims, axes);
    gb_dims_set(dst, src->ndims, src->dims);
    for (int i = 0; i < n_spatial; i++)
        GB_TRY(resampled(op, i, src->dims[axes[2 + i]], &dst->dims[axes[2 + i]]));
    return GB_SUCCESS;
}

gb_status gb_infer_interpolate(gb_op *op, gb_logical_tensor *outputs)
{
    GB_TRY(gb_rank_between(op, 0, MIN_RANK, MAX_RANK));
    return resample_dims(op, gb_op_input(op, 0), &outputs[0]);
}

/* Coordinates follow from the real sizes of src and diff_dst, so sizes and scales (which graphs
 * round freely) are not compared with them. */
gb_status gb_infer_interpolate_backward(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0), *diff_dst = gb_op_input(op, 1);
    GB_TRY(gb_rank_between(op, 0, MIN_RANK, MAX_RANK));
    GB_TRY(check_gradient(op, src, diff_dst));
    for (int i = 0; i < src->ndims; i++)
        if (src->dims[i] == 0 && diff_dst->dims[i] != 0)
            return gb_fail(GB_INVALID_SHAPE, "%s: src is %s, which cannot give diff_dst %s",
                    gb_op_label(op), gb_tensor_label(src), gb_tensor_label(diff_dst));
    return gb_infer_identity(op, outputs);
}
