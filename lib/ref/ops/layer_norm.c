/* LayerNorm with its gradient, GroupNorm and RMSNorm: statistics per row or group. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "ref/ops/norm.h"
#include "ref/ops/ref_functions.h"

#include <stdlib.h>

static gb_status find_rows(const gb_ref_call *call, gb_ref_subsets *rows)
{
    const gb_logical_tensor *src = &call->inputs[0]->tensor;
    int64_t attribute = gb_op_attr_s64(call->op, GB_ATTR_BEGIN_NORM_AXIS, -1);
    int axis = gb_normalize_axis(attribute, src->ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: begin_norm_axis %lld is outside src %s",
                gb_op_label(call->op), (long long)attribute, gb_tensor_label(src));
    gb_ref_subsets_rows(rows, src, axis);
    return gb_ref_check_count(call, &call->outputs[0], call->inputs[0]->count);
}

/* Gamma and beta stand at inputs `first` and `first` + 1 when the op uses them. */
static gb_status get_affine(
        const gb_ref_call *call, uint32_t first, int64_t length, gb_ref_affine *affine)
{
    *affine = (gb_ref_affine){NULL, NULL};
    if (!gb_op_attr_bool(call->op, GB_ATTR_USE_AFFINE, true))
        return GB_SUCCESS;
    if (call->n_inputs > first)
        affine->gamma = call->inputs[first];
    if (call->n_inputs > first + 1)
        affine->beta = call->inputs[first + 1];
    if (affine->gamma)
        GB_TRY(gb_ref_check_count(call, affine->gamma, length));
    if (affine->beta)
        GB_TRY(gb_ref_check_count(call, affine->beta, length));
    return GB_SUCCESS;
}

static gb_status check_statistics(const gb_ref_call *call, int64_t count)
{
    for (uint32_t i = 1; i < call->n_outputs; i++)
        GB_TRY(gb_ref_check_count(call, &call->outputs[i], count));
    return GB_SUCCESS;
}

static void put_moments(const gb_ref_call *call, int64_t s, gb_ref_moments moments)
{
    if (call->n_outputs > 1)
        gb_ref_put(&call->outputs[1], s, moments.mean);
    if (call->n_outputs > 2)
        gb_ref_put(&call->outputs[2], s, moments.variance);
}

gb_status gb_ref_layer_norm(const gb_ref_call *call)
{
    gb_ref_subsets rows;
    gb_ref_affine affine;
    GB_TRY(find_rows(call, &rows));
    GB_TRY(get_affine(call, 1, rows.inner, &affine));
    GB_TRY(check_statistics(call, rows.count));
    int statistical = 0;
#pragma omp parallel for reduction(| : statistical)
    for (int64_t r = 0; r < rows.count; r++) {
        gb_ref_moments moments = gb_ref_moments_of(call->inputs[0], &rows, r, &statistical);
        gb_ref_pair rstd = gb_ref_rsqrt(moments.variance, gb_ref_epsilon(call->op));
        put_moments(call, r, moments);
        for (int64_t i = 0; i < rows.inner; i++) {
            gb_ref_pair x = gb_ref_get(call->inputs[0], r * rows.inner + i);
            gb_ref_put(&call->outputs[0], r * rows.inner + i,
                    gb_ref_normalized_affine(x, moments.mean, rstd, affine, i));
        }
    }
    gb_ref_mark_statistical(call, statistical);
    return GB_SUCCESS;
}

gb_status gb_ref_group_norm(const gb_ref_call *call)
{
    const gb_op *op = call->op;
    const gb_logical_tensor *src = &call->inputs[0]->tensor;
    int axis = src->ndims > 1 ? gb_channel_axis(op, src->ndims) : -1;
    int64_t count = gb_op_attr_s64(op, GB_ATTR_GROUPS, 0);
    if (axis < 1 || count < 1 || src->dims[axis] % count != 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: %lld groups do not divide the channels of %s",
                gb_op_label(op), (long long)count, gb_tensor_label(src));
    gb_ref_subsets groups;
    gb_ref_affine affine;
    int64_t channels = src->dims[axis];
    gb_ref_subsets_groups(&groups, src, axis, count);
    GB_TRY(get_affine(call, 1, channels, &affine));
    GB_TRY(check_statistics(call, groups.count));
    GB_TRY(gb_ref_check_count(call, &call->outputs[0], call->inputs[0]->count));
    int64_t spacing =
            channels > 0 ? groups.inner / (channels / count) : 1; /* elements between channels */
    int statistical = 0;
#pragma omp parallel for reduction(| : statistical)
    for (int64_t g = 0; g < groups.count; g++) {
        gb_ref_moments moments = gb_ref_moments_of(call->inputs[0], &groups, g, &statistical);
        gb_ref_pair rstd = gb_ref_rsqrt(moments.variance, gb_ref_epsilon(op));
        put_moments(call, g, moments);
        for (gb_ref_cursor k = gb_ref_subset_begin(&groups, g); k.left > 0;
                gb_ref_subset_next(&k)) {
            gb_ref_pair x = gb_ref_get(call->inputs[0], k.at);
            int64_t channel = k.at / spacing % channels;
            gb_ref_put(&call->outputs[0], k.at,
                    gb_ref_normalized_affine(x, moments.mean, rstd, affine, channel));
        }
    }
    gb_ref_mark_statistical(call, statistical);
    return GB_SUCCESS;
}

/* Mean of squares of a row. Errors of the elements may all point the same way: many may be equal. */
static gb_ref_pair mean_square(
        const gb_ref_tensor *src, int64_t begin, int64_t length, int *statistical)
{
    gb_ref_sum sum = {0};
    for (int64_t i = begin; i < begin + length; i++) {
        gb_ref_pair x = gb_ref_get(src, i);
        gb_ref_sum_add(&sum, gb_ref_mul(x, x));
    }
    gb_ref_pair total = gb_ref_sum_get(&sum, statistical);
    total.e += sum.bound;
    return gb_ref_average(total, length);
}

gb_status gb_ref_rms_norm(const gb_ref_call *call)
{
    gb_ref_subsets rows;
    GB_TRY(find_rows(call, &rows));
    const gb_ref_tensor *src = call->inputs[0],
                        *gamma = call->n_inputs > 1 ? call->inputs[1] : NULL;
    if (gamma)
        GB_TRY(gb_ref_check_count(call, gamma, rows.inner));
    if (rows.inner == 0)
        return GB_SUCCESS;
    int statistical = 0;
#pragma omp parallel for reduction(| : statistical)
    for (int64_t r = 0; r < rows.count; r++) {
        int64_t begin = r * rows.inner;
        gb_ref_pair square = mean_square(src, begin, rows.inner, &statistical);
        gb_ref_pair rstd = gb_ref_rsqrt(square, gb_ref_epsilon(call->op));
        for (int64_t i = 0; i < rows.inner; i++) {
            gb_ref_pair y = gb_ref_mul(gb_ref_get(src, begin + i), rstd);
            if (gamma)
                y = gb_ref_mul(gb_ref_round(y), gb_ref_get(gamma, i));
            gb_ref_put(&call->outputs[0], begin + i, y);
        }
    }
    gb_ref_mark_statistical(call, statistical);
    return GB_SUCCESS;
}

typedef struct layer_gradient {
    const gb_ref_tensor *src, *diff_dst, *mean, *gamma;
    gb_ref_pair *rstd; /* per row */
    gb_ref_subsets rows;
} layer_gradient;

static gb_ref_pair normalized_at(const layer_gradient *g, int64_t row, int64_t at)
{
    gb_ref_pair x = gb_ref_get(g->src, at), mean = gb_ref_get(g->mean, row);
    return gb_ref_round(gb_ref_normalized(x, mean, g->rstd[row]));
}

/* diff_dst gamma */
static gb_ref_pair scaled_gradient(const layer_gradient *g, int64_t at, int64_t i)
{
    gb_ref_pair d = gb_ref_get(g->diff_dst, at);
    return g->gamma ? gb_ref_round(gb_ref_mul(d, gb_ref_get(g->gamma, i))) : d;
}

/* rstd (h - avg(h) - x^ avg(h x^)), h = diff_dst gamma */
static void differentiate_row(
        const layer_gradient *g, int64_t row, gb_ref_tensor *diff_src, int *statistical)
{
    int64_t length = g->rows.inner, begin = row * length;
    gb_ref_sum plain = {0}, weighted = {0};
    for (int64_t i = 0; i < length; i++) {
        gb_ref_pair h = scaled_gradient(g, begin + i, i);
        gb_ref_sum_add(&plain, h);
        gb_ref_sum_add(&weighted, gb_ref_mul(h, normalized_at(g, row, begin + i)));
    }
    gb_ref_pair average = gb_ref_average(gb_ref_sum_get(&plain, statistical), length);
    gb_ref_pair projection = gb_ref_average(gb_ref_sum_get(&weighted, statistical), length);
    for (int64_t i = 0; i < length; i++) {
        gb_ref_pair along = gb_ref_round(gb_ref_mul(normalized_at(g, row, begin + i), projection));
        gb_ref_pair h = scaled_gradient(g, begin + i, i);
        gb_ref_pair rest = gb_ref_sub(gb_ref_round(gb_ref_sub(h, average)), along);
        gb_ref_put(diff_src, begin + i, gb_ref_mul(gb_ref_round(rest), g->rstd[row]));
    }
}

/* diff_gamma and diff_beta of one position. */
static void differentiate_affine(
        const layer_gradient *g, int64_t i, const gb_ref_call *call, int *statistical)
{
    gb_ref_sum by_gamma = {0}, by_beta = {0};
    for (int64_t row = 0; row < g->rows.count; row++) {
        int64_t at = row * g->rows.inner + i;
        gb_ref_pair d = gb_ref_get(g->diff_dst, at);
        gb_ref_sum_add(&by_gamma, gb_ref_mul(d, normalized_at(g, row, at)));
        gb_ref_sum_add_element(&by_beta, g->diff_dst, at);
    }
    gb_ref_put(&call->outputs[1], i, gb_ref_sum_get(&by_gamma, statistical));
    if (call->n_outputs > 2)
        gb_ref_put(&call->outputs[2], i, gb_ref_sum_get(&by_beta, statistical));
}

static void differentiate(const layer_gradient *g, const gb_ref_call *call)
{
    int statistical = 0;
#pragma omp parallel for reduction(| : statistical)
    for (int64_t row = 0; row < g->rows.count; row++)
        differentiate_row(g, row, &call->outputs[0], &statistical);
    if (call->n_outputs > 1) {
#pragma omp parallel for reduction(| : statistical)
        for (int64_t i = 0; i < g->rows.inner; i++)
            differentiate_affine(g, i, call, &statistical);
    }
    gb_ref_mark_statistical(call, statistical);
}

gb_status gb_ref_layer_norm_backward(const gb_ref_call *call)
{
    layer_gradient g = {
            .src = call->inputs[0], .diff_dst = call->inputs[1], .mean = call->inputs[2]};
    const gb_ref_tensor *variance = call->inputs[3];
    gb_ref_affine affine;
    GB_TRY(find_rows(call, &g.rows));
    GB_TRY(get_affine(call, 4, g.rows.inner, &affine));
    GB_TRY(gb_ref_check_count(call, g.diff_dst, g.src->count));
    GB_TRY(gb_ref_check_count(call, g.mean, g.rows.count));
    GB_TRY(gb_ref_check_count(call, variance, g.rows.count));
    GB_TRY(check_statistics(call, g.rows.inner));
    if (g.src->count == 0)
        return GB_SUCCESS;
    g.gamma = affine.gamma;
    g.rstd = gb_calloc((size_t)g.rows.count, sizeof *g.rstd);
    if (!g.rstd)
        return GB_OUT_OF_MEMORY;
    for (int64_t row = 0; row < g.rows.count; row++)
        g.rstd[row] = gb_ref_rsqrt(gb_ref_get(variance, row), gb_ref_epsilon(call->op));
    differentiate(&g, call);
    free(g.rstd);
    return GB_SUCCESS;
}
