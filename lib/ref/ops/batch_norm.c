/* BatchNormInference, BatchNormForwardTraining and BatchNormTrainingBackward: statistics per
 * channel. */
#include "base/status.h"
#include "ref/ops/norm.h"
#include "ref/ops/ref_functions.h"

static gb_status batch_norm_find_channels(const gb_ref_call *call, gb_ref_subsets *channels)
{
    const gb_op *op = call->op;
    const gb_logical_tensor *src = &call->inputs[0]->tensor;
    int axis = src->ndims > 0 ? gb_channel_axis(op, src->ndims) : -1;
    if (axis < 0 || axis >= src->ndims)
        return gb_fail(GB_INVALID_SHAPE, "%s: src %s has no channels", gb_op_label(op),
                gb_tensor_label(src));
    gb_ref_subsets_channels(channels, src, axis);
    return GB_SUCCESS;
}

/* Inputs first .. last - 1 and outputs 1 .. must have a value per channel, output 0 the size of
 * src. */
static gb_status check_sizes(
        const gb_ref_call *call, const gb_ref_subsets *channels, uint32_t first)
{
    for (uint32_t i = first; i < call->n_inputs; i++)
        GB_TRY(gb_ref_check_count(call, call->inputs[i], channels->count));
    for (uint32_t i = 1; i < call->n_outputs; i++)
        GB_TRY(gb_ref_check_count(call, &call->outputs[i], channels->count));
    return gb_ref_check_count(call, &call->outputs[0], call->inputs[0]->count);
}

static void normalize_channel(const gb_ref_call *call, const gb_ref_subsets *channels, int64_t c,
        gb_ref_moments moments, gb_ref_affine affine)
{
    gb_ref_pair rstd = gb_ref_rsqrt(moments.variance, gb_ref_epsilon(call->op));
    for (gb_ref_cursor k = gb_ref_subset_begin(channels, c); k.left > 0; gb_ref_subset_next(&k)) {
        gb_ref_pair x = gb_ref_get(call->inputs[0], k.at);
        gb_ref_put(&call->outputs[0], k.at,
                gb_ref_normalized_affine(x, moments.mean, rstd, affine, c));
    }
}

gb_status gb_ref_batch_norm_inference(const gb_ref_call *call)
{
    gb_ref_subsets channels;
    GB_TRY(batch_norm_find_channels(call, &channels));
    GB_TRY(check_sizes(call, &channels, 1));
    gb_ref_affine affine = {call->inputs[1], call->inputs[2]};
#pragma omp parallel for
    for (int64_t c = 0; c < channels.count; c++) {
        gb_ref_moments moments = {gb_ref_get(call->inputs[3], c), gb_ref_get(call->inputs[4], c)};
        normalize_channel(call, &channels, c, moments, affine);
    }
    return GB_SUCCESS;
}

/* momentum old + (1 - momentum) batch */
static gb_ref_pair running(double momentum, gb_ref_pair old, gb_ref_pair batch)
{
    gb_ref_pair rest = gb_ref_round(gb_ref_exact(1 - momentum));
    gb_ref_pair kept = gb_ref_round(gb_ref_mul(gb_ref_exact(momentum), old));
    return gb_ref_add(kept, gb_ref_round(gb_ref_mul(rest, batch)));
}

gb_status gb_ref_batch_norm_training(const gb_ref_call *call)
{
    gb_ref_subsets channels;
    GB_TRY(batch_norm_find_channels(call, &channels));
    GB_TRY(check_sizes(call, &channels, 1));
    double momentum = (double)gb_op_attr_f32(call->op, GB_ATTR_MOMENTUM, 0.5F);
    gb_ref_affine affine = {call->n_inputs > 3 ? call->inputs[3] : NULL,
            call->n_inputs > 4 ? call->inputs[4] : NULL};
    int statistical = 0;
#pragma omp parallel for reduction(| : statistical)
    for (int64_t c = 0; c < channels.count; c++) {
        gb_ref_moments moments = gb_ref_moments_of(call->inputs[0], &channels, c, &statistical);
        gb_ref_pair mean = gb_ref_get(call->inputs[1], c),
                    variance = gb_ref_get(call->inputs[2], c);
        normalize_channel(call, &channels, c, moments, affine);
        gb_ref_put(&call->outputs[1], c, running(momentum, mean, moments.mean));
        gb_ref_put(&call->outputs[2], c, running(momentum, variance, moments.variance));
        gb_ref_put(&call->outputs[3], c, moments.mean);
        gb_ref_put(&call->outputs[4], c, moments.variance);
    }
    gb_ref_mark_statistical(call, statistical);
    return GB_SUCCESS;
}

typedef struct channel_gradient {
    gb_ref_pair mean, rstd, scale; /* scale = gamma rstd */
    gb_ref_pair diff_gamma, diff_beta;
} channel_gradient;

static channel_gradient sum_channel(
        const gb_ref_call *call, const gb_ref_subsets *channels, int64_t c, int *statistical)
{
    channel_gradient g = {.mean = gb_ref_get(call->inputs[2], c)};
    gb_ref_sum by_beta = {0}, by_gamma = {0};
    g.rstd = gb_ref_rsqrt(gb_ref_get(call->inputs[3], c), gb_ref_epsilon(call->op));
    g.scale = g.rstd;
    if (call->n_inputs > 4)
        g.scale = gb_ref_round(gb_ref_mul(g.rstd, gb_ref_get(call->inputs[4], c)));
    for (gb_ref_cursor k = gb_ref_subset_begin(channels, c); k.left > 0; gb_ref_subset_next(&k)) {
        gb_ref_pair x = gb_ref_get(call->inputs[0], k.at),
                    diff_dst = gb_ref_get(call->inputs[1], k.at);
        gb_ref_sum_add_element(&by_beta, call->inputs[1], k.at);
        gb_ref_sum_add(&by_gamma,
                gb_ref_mul(diff_dst, gb_ref_round(gb_ref_normalized(x, g.mean, g.rstd))));
    }
    g.diff_beta = gb_ref_sum_get(&by_beta, statistical);
    g.diff_gamma = gb_ref_sum_get(&by_gamma, statistical);
    return g;
}

/* gamma rstd (g - (diff_beta + x^ diff_gamma) / M) */
static void differentiate_channel(const gb_ref_call *call, const gb_ref_subsets *channels,
        int64_t c, const channel_gradient *g)
{
    int64_t size = gb_ref_subset_size(channels);
    for (gb_ref_cursor k = gb_ref_subset_begin(channels, c); k.left > 0; gb_ref_subset_next(&k)) {
        gb_ref_pair x = gb_ref_round(
                gb_ref_normalized(gb_ref_get(call->inputs[0], k.at), g->mean, g->rstd));
        gb_ref_pair shift =
                gb_ref_add(gb_ref_round(g->diff_beta), gb_ref_round(gb_ref_mul(x, g->diff_gamma)));
        gb_ref_pair centred = gb_ref_sub(
                gb_ref_get(call->inputs[1], k.at), gb_ref_average(gb_ref_round(shift), size));
        gb_ref_put(&call->outputs[0], k.at, gb_ref_mul(g->scale, gb_ref_round(centred)));
    }
}

/* With one output the statistics are constants, and gamma plays no part: diff_src = g rstd. */
static void scale_channel(const gb_ref_call *call, const gb_ref_subsets *channels, int64_t c)
{
    gb_ref_pair rstd = gb_ref_rsqrt(gb_ref_get(call->inputs[3], c), gb_ref_epsilon(call->op));
    for (gb_ref_cursor k = gb_ref_subset_begin(channels, c); k.left > 0; gb_ref_subset_next(&k))
        gb_ref_put(&call->outputs[0], k.at, gb_ref_mul(gb_ref_get(call->inputs[1], k.at), rstd));
}

gb_status gb_ref_batch_norm_backward(const gb_ref_call *call)
{
    gb_ref_subsets channels;
    GB_TRY(batch_norm_find_channels(call, &channels));
    GB_TRY(check_sizes(call, &channels, 2));
    GB_TRY(gb_ref_check_count(call, call->inputs[1], call->inputs[0]->count));
    int statistical = 0;
#pragma omp parallel for reduction(| : statistical)
    for (int64_t c = 0; c < channels.count; c++) {
        if (call->n_outputs == 1) {
            scale_channel(call, &channels, c);
            continue;
        }
        channel_gradient g = sum_channel(call, &channels, c, &statistical);
        differentiate_channel(call, &channels, c, &g);
        gb_ref_put(&call->outputs[1], c, g.diff_gamma);
        if (call->n_outputs > 2)
            gb_ref_put(&call->outputs[2], c, g.diff_beta);
    }
    gb_ref_mark_statistical(call, statistical);
    return GB_SUCCESS;
}
