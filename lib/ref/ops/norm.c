/* Mean and variance with their error, and normalising an element with them. */
#include "ref/ops/norm.h"

#include "base/status.h"

double gb_ref_epsilon(const gb_op *op)
{
    return (double)gb_op_attr_f32(op, GB_ATTR_EPSILON, 1e-5F);
}

gb_status gb_ref_check_count(const gb_ref_call *call, const gb_ref_tensor *tensor, int64_t count)
{
    if (tensor->count == count)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: tensor %zu (%s) has %lld elements, expected %lld",
            gb_op_label(call->op), tensor->tensor.id, gb_tensor_label(&tensor->tensor),
            (long long)tensor->count, (long long)count);
}

void gb_ref_mark_statistical(const gb_ref_call *call, int statistical)
{
    for (uint32_t i = 0; i < call->n_outputs; i++)
        call->outputs[i].statistical |= statistical;
}

gb_ref_pair gb_ref_average(gb_ref_pair sum, int64_t count)
{
    return gb_ref_round(gb_ref_div(sum, gb_ref_exact((double)count)));
}

/* Errors of the data move the variance by 2 |x - mean| e (moving the mean has no first-order
 * effect); the error of the computed mean adds its square; the sum of squares is accumulated, by
 * Welford's method also relative to |mean|. */
static gb_ref_pair variance_of(const gb_ref_tensor *tensor, const gb_ref_subsets *subsets,
        int64_t s, double mean, double mean_error, int *statistical)
{
    int64_t size = gb_ref_subset_size(subsets);
    double squares = 0, moved = 0, n = (double)size;
    bool bounded = true;
    for (gb_ref_cursor c = gb_ref_subset_begin(subsets, s); c.left > 0; gb_ref_subset_next(&c)) {
        gb_ref_pair x = gb_ref_get(tensor, c.at);
        double d = x.v - mean;
        squares += d * d;
        moved += (2 * fabs(d) + x.e) * x.e;
        bounded = bounded && isfinite(x.e);
    }
    double v = squares / n;
    if (!bounded || (isfinite(v) && !(squares + moved < gb_ref_f32_sums.limit)))
        return (gb_ref_pair){v, INFINITY}; /* partial sums may overflow */
    double factor = gb_ref_sum_factor(size, GB_REF_U, statistical) + 4 * GB_REF_U;
    gb_ref_pair variance = {v, moved / n};
    return gb_ref_widen(variance, mean_error * mean_error + factor * (v + fabs(mean) * sqrt(v)));
}

gb_ref_moments gb_ref_moments_of(
        const gb_ref_tensor *tensor, const gb_ref_subsets *subsets, int64_t s, int *statistical)
{
    int64_t size = gb_ref_subset_size(subsets);
    gb_ref_moments moments = {{0, 0}, {0, 0}};
    if (size == 0)
        return moments;
    gb_ref_sum sum = {0};
    for (gb_ref_cursor c = gb_ref_subset_begin(subsets, s); c.left > 0; gb_ref_subset_next(&c))
        gb_ref_sum_add_element(&sum, tensor, c.at);
    moments.mean = gb_ref_average(gb_ref_sum_get(&sum, statistical), size);
    double rounding = gb_ref_sum_rounding(&sum, NULL) / (double)size +
                      2 * GB_REF_U * fabs(moments.mean.v) + GB_REF_ETA;
    moments.variance = variance_of(tensor, subsets, s, moments.mean.v, rounding, statistical);
    return moments;
}

gb_ref_pair gb_ref_normalized(gb_ref_pair x, gb_ref_pair mean, gb_ref_pair rstd)
{
    return gb_ref_mul(gb_ref_round(gb_ref_sub(x, mean)), rstd);
}

gb_ref_pair gb_ref_normalized_affine(
        gb_ref_pair x, gb_ref_pair mean, gb_ref_pair rstd, gb_ref_affine affine, int64_t i)
{
    gb_ref_pair y = gb_ref_normalized(x, mean, rstd);
    double scale = fabs(rstd.v);
    if (affine.gamma) {
        gb_ref_pair gamma = gb_ref_get(affine.gamma, i);
        y = gb_ref_mul(gb_ref_round(y), gamma);
        scale *= fabs(gamma.v);
    }
    if (affine.beta)
        y = gb_ref_add(gb_ref_round(y), gb_ref_get(affine.beta, i));
    double folded = 2 * GB_REF_U * scale * (fabs(x.v) + fabs(mean.v));
    return gb_ref_widen(y, folded);
}
