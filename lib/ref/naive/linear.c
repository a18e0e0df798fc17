/* Matrix products, reductions, resampling: op set 3.8, 3.9, 3.10. */
#include "ref/naive/naive_op.h"

#include <math.h>

/* dst[batch, m, n] = sum over k of src[batch, m, k] weights[batch, k, n] + bias. The last two axes
 * of an operand are swapped where the attribute says so; [K] is one row of src, one column of
 * weights, and that axis is not in dst. */
gb_status gb_naive_matmul(const gb_naive_call *call)
{
    const gb_naive_tensor *a = &call->in[0], *b = &call->in[1], *dst = call->out;
    bool swap_a = a->ndims > 1 && gb_naive_flag(call->op, GB_ATTR_TRANSPOSE_A, false);
    bool swap_b = b->ndims > 1 && gb_naive_flag(call->op, GB_ATTR_TRANSPOSE_B, false);
    if (a->ndims < 1 || b->ndims < 1)
        return GB_NAIVE_REFUSE(call, "an operand is a scalar");
    int a_k = swap_a ? a->ndims - 2 : a->ndims - 1, a_m = swap_a ? a->ndims - 1 : a->ndims - 2;
    int b_k = swap_b || b->ndims == 1 ? b->ndims - 1 : b->ndims - 2;
    int b_n = swap_b ? b->ndims - 2 : b->ndims - 1, ndims;
    int64_t depth = a->dims[a_k], dims[GB_MAX_NDIMS];
    int a_batch = a->ndims > 2 ? a->ndims - 2 : 0, b_batch = b->ndims > 2 ? b->ndims - 2 : 0;
    if (b->dims[b_k] != depth ||
            !gb_naive_broadcast_dims(a_batch, a->dims, b_batch, b->dims, &ndims, dims))
        return GB_NAIVE_REFUSE(call, "K or the batches do not fit");
    int n_batch = ndims;
    if (a->ndims > 1)
        dims[ndims++] = a->dims[a_m];
    if (b->ndims > 1)
        dims[ndims++] = b->dims[b_n];
    GB_TRY(gb_naive_make(call, 0, ndims, dims));
    const gb_naive_tensor *bias = call->op->n_inputs > 2 ? &call->in[2] : NULL;
    if (bias && !gb_naive_broadcasts(bias, dst) && !(dst->ndims == 0 && bias->count == 1))
        return GB_NAIVE_REFUSE(call, "bias does not broadcast onto dst");
    for (int64_t p = 0; p < dst->count; p++) {
        int64_t index[GB_MAX_NDIMS], at_a[GB_MAX_NDIMS], at_b[GB_MAX_NDIMS];
        gb_naive_index(dst, p, index);
        for (int d = 0; d < a_batch; d++)
            at_a[d] = a->dims[d] == 1 ? 0 : index[n_batch - a_batch + d];
        for (int d = 0; d < b_batch; d++)
            at_b[d] = b->dims[d] == 1 ? 0 : index[n_batch - b_batch + d];
        if (a->ndims > 1)
            at_a[a_m] = index[n_batch];
        if (b->ndims > 1)
            at_b[b_n] = index[ndims - 1];
        for (int64_t k = 0; k < depth; k++) {
            at_a[a_k] = at_b[b_k] = k;
            dst->value[p] += a->value[gb_naive_at(a, at_a)] * b->value[gb_naive_at(b, at_b)];
        }
        if (bias)
            dst->value[p] +=
                    bias->value[bias->count == 1 ? 0 : gb_naive_broadcast_at(bias, dst, p)];
    }
    return GB_SUCCESS;
}

/* 3.9 What a reduction starts from, one more element, and what becomes of the result. */
static double reduce_start(gb_op_kind kind)
{
    switch (kind) {
    case GB_OP_REDUCE_PROD:
        return 1;
    case GB_OP_REDUCE_MAX:
        return -(double)INFINITY;
    case GB_OP_REDUCE_MIN:
        return (double)INFINITY;
    default:
        return 0;
    }
}

static double reduce_step(gb_op_kind kind, double sum, double x)
{
    switch (kind) {
    case GB_OP_REDUCE_L1:
        return sum + fabs(x);
    case GB_OP_REDUCE_L2:
        return sum + x * x;
    case GB_OP_REDUCE_MAX:
        return x > sum ? x : sum;
    case GB_OP_REDUCE_MIN:
        return x < sum ? x : sum;
    case GB_OP_REDUCE_PROD:
        return sum * x;
    default:
        return sum + x;
    }
}

/* Over no elements, maxima are the lowest value of the type, minima the highest. */
static double reduce_end(gb_op_kind kind, gb_data_type type, double sum, double count)
{
    switch (kind) {
    case GB_OP_REDUCE_MEAN:
        return sum / count;
    case GB_OP_REDUCE_L2:
        return sqrt(sum);
    case GB_OP_REDUCE_MAX:
        return count == 0 ? gb_naive_lowest(type) : sum;
    case GB_OP_REDUCE_MIN:
        return count == 0 ? gb_naive_highest(type) : sum;
    default:
        return sum;
    }
}

/* Axes of the attribute, or, when it is empty, of input 1; without any the op is the identity. */
gb_status gb_naive_reduce(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0], *dst = call->out;
    const gb_op_kind kind = call->op->kind;
    const int64_t *axes;
    size_t n_axes = gb_naive_ints(call->op, GB_ATTR_AXES, &axes);
    bool keep_dims = gb_naive_flag(call->op, GB_ATTR_KEEP_DIMS, false);
    bool reduced[GB_MAX_NDIMS] = {false}, of_input = n_axes == 0 && call->op->n_inputs > 1;
    int64_t dims[GB_MAX_NDIMS], count = 1;
    if (of_input)
        n_axes = (size_t)call->in[1].count;
    for (size_t i = 0; i < n_axes; i++) {
        int axis = gb_naive_axis(of_input ? (int64_t)call->in[1].value[i] : axes[i], src->ndims);
        if (axis < 0 || reduced[axis])
            return GB_NAIVE_REFUSE(call, "an axis is listed twice or does not exist");
        reduced[axis] = true;
    }
    int ndims = 0;
    for (int d = 0; d < src->ndims; d++) {
        count *= reduced[d] ? src->dims[d] : 1;
        if (!reduced[d] || keep_dims)
            dims[ndims++] = reduced[d] ? 1 : src->dims[d];
    }
    GB_TRY(gb_naive_make(call, 0, ndims, dims));
    for (int64_t r = 0; r < dst->count; r++)
        dst->value[r] = reduce_start(kind);
    for (int64_t p = 0; p < src->count; p++) {
        int64_t index[GB_MAX_NDIMS], r = 0;
        gb_naive_index(src, p, index);
        for (int d = 0; d < src->ndims; d++)
            r = reduced[d] ? r : r * src->dims[d] + index[d];
        dst->value[r] =
                n_axes == 0 ? src->value[p] : reduce_step(kind, dst->value[r], src->value[p]);
    }
    for (int64_t r = 0; r < dst->count && n_axes > 0; r++)
        dst->value[r] = reduce_end(kind, dst->type, dst->value[r], (double)count);
    return GB_SUCCESS;
}

/* 3.10 Where an index of the result lies in the source, in f32 in this order. */
static float linear_coordinate(const gb_op *op, int64_t o, int64_t in, int64_t out)
{
    if (gb_naive_says(op, GB_ATTR_COORDINATE_TRANSFORMATION_MODE, "half_pixel", "align_corners"))
        return out == 1 ? 0.0F : (float)o * (float)(in - 1) / (float)(out - 1);
    return ((float)o + 0.5F) * (float)in / (float)out - 0.5F;
}

static int64_t clip(double index, int64_t in)
{
    return index < 0 ? 0 : index > (double)(in - 1) ? in - 1 : (int64_t)index;
}

/* For every result element: the source elements around it with their weights, the corner bits
 * choosing left or right on each spatial axis. */
static void resample(const gb_op *op, const gb_naive_tensor *source, const gb_naive_tensor *result,
        bool gradient)
{
    bool nearest = gb_naive_says(op, GB_ATTR_MODE, "", "nearest");
    int channel = gb_naive_channel_axis(op, source->ndims);
    for (int64_t p = 0; p < result->count; p++)
        for (unsigned corner = 0; corner < 1U << source->ndims; corner++) {
            int64_t index[GB_MAX_NDIMS];
            double weight = 1;
            gb_naive_index(result, p, index);
            for (int d = 0; d < source->ndims; d++) {
                bool spatial = d != 0 && d != channel, right = corner >> d & 1;
                if (!spatial || nearest)
                    weight *= right ? 0 : 1;
                if (!spatial)
                    continue;
                float s = linear_coordinate(op, index[d], source->dims[d], result->dims[d]);
                int64_t left = clip(floor((double)s), source->dims[d]);
                double w = fabs((double)s - (double)left);
                if (nearest) {
                    index[d] = clip((double)roundf(s), source->dims[d]);
                    continue;
                }
                weight *= right ? w : 1 - w;
                index[d] = right ? clip(ceil((double)s), source->dims[d]) : left;
            }
            int64_t at = gb_naive_at(source, index);
            if (weight != 0 && gradient)
                source->value[at] += weight * result->value[p];
            else if (weight != 0)
                result->value[p] += weight * source->value[at];
        }
}

gb_status gb_naive_interpolate(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    const gb_attr *scales = gb_naive_attr(call->op, GB_ATTR_SCALES);
    const int64_t *sizes;
    size_t n_sizes = gb_naive_ints(call->op, GB_ATTR_SIZES, &sizes);
    size_t n_scales = scales ? scales->count : 0;
    int64_t dims[GB_MAX_NDIMS];
    int channel = gb_naive_channel_axis(call->op, src->ndims), at = 0;
    if (src->ndims < 3 || src->ndims > 5 ||
            (n_sizes ? n_sizes : n_scales) != (size_t)(src->ndims - 2))
        return GB_NAIVE_REFUSE(call, "sizes or scales do not fit src");
    for (int d = 0; d < src->ndims; d++) {
        dims[d] = src->dims[d];
        if (d == 0 || d == channel)
            continue;
        dims[d] = n_sizes ? sizes[at] : (int64_t)((float)dims[d] * scales->value.f32s[at]);
        at++;
        if (src->dims[d] == 0 && dims[d] > 0)
            return GB_NAIVE_REFUSE(call, "nothing to interpolate");
    }
    GB_TRY(gb_naive_make(call, 0, src->ndims, dims));
    resample(call->op, src, call->out, false);
    return GB_SUCCESS;
}

/* Inputs: src, whose values play no part, and diff_dst. */
gb_status gb_naive_interpolate_backward(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0], *diff_dst = &call->in[1];
    int channel = gb_naive_channel_axis(call->op, src->ndims);
    bool fits = src->ndims >= 3 && src->ndims <= 5 && src->ndims == diff_dst->ndims;
    for (int d = 0; fits && d < src->ndims; d++)
        fits = d == 0 || d == channel ? src->dims[d] == diff_dst->dims[d]
                                      : src->dims[d] > 0 || diff_dst->dims[d] == 0;
    if (!fits)
        return GB_NAIVE_REFUSE(call, "diff_dst does not fit src");
    GB_TRY(gb_naive_make_like(call, 0, src));
    resample(call->op, call->out, diff_dst, true);
    return GB_SUCCESS;
}
