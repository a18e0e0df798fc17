/* AvgPool and MaxPool. */
#include "ref/ops/pool.h"
#include "ref/ops/ref_functions.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include <stdlib.h>

gb_status gb_ref_pool_bind(const gb_op *op, const gb_logical_tensor *image,
        const gb_logical_tensor *result, gb_ref_pool_geometry *pool)
{
    if (image->ndims < 3 || image->ndims != result->ndims)
        return gb_fail(GB_INVALID_SHAPE, "%s: ranks differ or are below 3", gb_op_label(op));
    pool->image = gb_ref_view_of(op, image);
    pool->result = gb_ref_view_of(op, result);
    if (pool->image.batch != pool->result.batch || pool->image.channels != pool->result.channels)
        return gb_fail(GB_INVALID_SHAPE, "%s: batch or channels differ", gb_op_label(op));
    return gb_window_get(op, image->ndims - 2, pool->image.spatial, NULL, false, &pool->window);
}

/* Cells of window `i` of one axis that count: those inside the image, or inside its declared
 * padding. */
static double axis_cells(const gb_ref_pool_geometry *pool, int axis, int64_t i, bool exclude_pad)
{
    const gb_window *w = &pool->window;
    int64_t before = exclude_pad ? 0 : w->pads_begin[axis];
    int64_t after = exclude_pad ? 0 : w->pads_end[axis];
    int64_t start = i * w->strides[axis] - w->pads_begin[axis];
    int64_t end = gb_min_i64(start + w->kernel[axis], pool->image.spatial[axis] + after);
    return (double)gb_max_i64(0, end - gb_max_i64(start, -before));
}

double *gb_ref_pool_denominators(const gb_op *op, const gb_ref_pool_geometry *pool)
{
    bool exclude_pad = gb_op_attr_bool(op, GB_ATTR_EXCLUDE_PAD, false);
    double *denominators = gb_calloc((size_t)pool->result.positions, sizeof(double));
    for (int64_t p = 0; denominators && p < pool->result.positions; p++) {
        int64_t rest = p;
        denominators[p] = 1;
        for (int axis = pool->result.n_spatial - 1; axis >= 0; axis--) {
            int64_t i = rest % pool->result.spatial[axis];
            denominators[p] *= axis_cells(pool, axis, i, exclude_pad);
            rest /= pool->result.spatial[axis];
        }
    }
    return denominators;
}

/* Columns of a unit of work. */
enum { COLUMNS = 256 };

/* A pass over all columns, block of channels by block of channels. */
typedef struct pass {
    const gb_ref_window_cells *cells;
    const double *value, *bound, *denominators;
    gb_ref_tensor *dst;
    bool exact, bounded; /* of sums */
    double lowest;       /* of maxima */
    void (*column)(const struct pass *pass, const int64_t *offsets, int64_t count, int64_t target,
            int64_t channel, double denominator);
    gb_status status[1];
} pass;

/* Is an infinite sum of these terms certain? */
static bool is_certain(const pass *p, const int64_t *offsets, int64_t count, int64_t from)
{
    double finite = 0;
    for (int64_t i = 0; i < count; i++) {
        double magnitude = fabs(p->value[from + offsets[i]]);
        finite += isfinite(magnitude) ? magnitude : 0;
    }
    return p->bounded && gb_ref_infinity_is_certain(finite);
}

static void sum_column(const pass *p, const int64_t *offsets, int64_t count, int64_t target,
        int64_t channel, double denominator)
{
    double sum = 0, magnitude = 0, error = 0;
    int64_t from = channel * p->cells->source.channel_stride;
    int64_t at = target + channel * p->cells->target.channel_stride;
    for (int64_t i = 0; i < count; i++) {
        double value = p->value[from + offsets[i]];
        sum += value;
        magnitude += fabs(value);
        if (p->bound)
            error += p->bound[from + offsets[i]];
    }
    p->dst->value[at] = sum;
    p->dst->bound[at] = 0;
    const gb_ref_terms terms = {count, sum, magnitude, magnitude, error, 0};
    bool certain = isfinite(sum) || is_certain(p, offsets, count, from);
    if (!p->exact)
        p->dst->bound[at] = gb_ref_sum_bound(
                &gb_ref_f32_sums, gb_ref_sum_factor(count, GB_REF_U, NULL), &terms, certain);
    if (!p->denominators)
        return;
    p->dst->value[at] = sum / denominator;
    p->dst->bound[at] = gb_ref_mean_bound(sum, p->dst->bound[at], magnitude, denominator, certain);
}

static void max_column(const pass *p, const int64_t *offsets, int64_t count, int64_t target,
        int64_t channel, double denominator)
{
    (void)denominator;
    double best = p->lowest, low = p->lowest, high = p->lowest;
    bool zeros[2] = {false, false};
    int64_t from = channel * p->cells->source.channel_stride;
    int64_t at = target + channel * p->cells->target.channel_stride;
    for (int64_t i = 0; i < count; i++) {
        double value = p->value[from + offsets[i]];
        double error = p->bound ? p->bound[from + offsets[i]] : 0;
        if (fabs(value) < GB_REF_ETA)
            zeros[signbit(value) != 0] = true;
        if (value > best)
            best = value;
        if (value - error > low)
            low = value - error;
        if (value + error > high)
            high = value + error;
        if (isnan(value) && error > 0) /* may be any number */
            high = INFINITY;
    }
    p->dst->value[at] = best;
    p->dst->bound[at] = high == best && low == best ? 0 : fmax(high - best, best - low);
    /* Of two zeros it may be either, which shows in a quotient; subnormal numbers may be read as one. */
    if (fabs(best) < GB_REF_ETA && zeros[0] && zeros[1])
        p->dst->bound[at] = fmax(p->dst->bound[at], GB_REF_ETA);
}

static void pass_unit(const pass *p, int64_t unit, int64_t *offsets)
{

    const gb_ref_view *view = &p->cells->target;
    int64_t blocks = gb_div_up(view->channels, GB_REF_POOL_CHANNELS);
    int64_t channel = unit % blocks * GB_REF_POOL_CHANNELS;
    int64_t channel_end = gb_min_i64(channel + GB_REF_POOL_CHANNELS, view->channels);
    int64_t column = unit / blocks * COLUMNS;
    int64_t column_end = gb_min_i64(column + COLUMNS, p->cells->columns);
    for (; column < column_end; column++) {
        int64_t target, count = gb_ref_window_cells_list(p->cells, column, offsets, &target);
        double denominator = p->denominators ? p->denominators[column % view->positions] : 1;
        for (int64_t c = channel; c < channel_end; c++)
            p->column(p, offsets, count, target, c, denominator);
    }
}

static int64_t pass_units(const pass *p)
{
    return gb_div_up(p->cells->columns, COLUMNS) *
           gb_div_up(p->cells->target.channels, GB_REF_POOL_CHANNELS);
}

static void pass_part(void *context, int thread, int n_threads)
{
    pass *p = context;
    int64_t begin, end;
    gb_split(pass_units(p), thread, n_threads, &begin, &end);
    int64_t *offsets = gb_calloc((size_t)gb_max_i64(p->cells->most, 1), sizeof(int64_t));
    if (!offsets)
        __atomic_store_n(p->status, GB_OUT_OF_MEMORY, __ATOMIC_RELAXED);
    for (int64_t unit = begin; offsets && unit < end; unit++)
        pass_unit(p, unit, offsets);
    free(offsets);
}

static gb_status run_pass(pass *p)
{
    double work = (double)p->dst->count * (double)(p->cells->most + 1);
    if (p->dst->count > 0)
        gb_parallel(gb_threads_for(work), pass_part, p);
    return p->status[0];
}

gb_status gb_ref_pool_sum(const gb_ref_window_cells *cells, const double *value,
        const double *bound, const double *denominators, gb_ref_tensor *dst)
{
    const gb_ref_view *source = &cells->source;
    gb_ref_survey survey;
    GB_TRY(gb_ref_survey_values(
            value, bound, source->batch * source->channels * source->positions, &survey));
    pass p = {.cells = cells,
            .value = value,
            .bound = bound,
            .denominators = denominators,
            .dst = dst,
            .column = sum_column,
            .bounded = survey.bounded,
            .status = {GB_SUCCESS}};
    p.exact =
            survey.exact && survey.finite &&
            gb_ref_sums_are_exact(&gb_ref_f32_sums, survey.max * (double)cells->most, survey.grid);
    if (!p.exact)
        gb_ref_sum_factor(cells->most, GB_REF_U, &dst->statistical);
    return run_pass(&p);
}

static gb_status average(
        const gb_ref_call *call, const gb_ref_pool_geometry *pool, const gb_ref_window_cells *cells)
{
    double *denominators = gb_ref_pool_denominators(call->op, pool);
    if (!denominators)
        return GB_OUT_OF_MEMORY;
    const gb_ref_tensor *src = call->inputs[0];
    gb_status status =
            gb_ref_pool_sum(cells, src->value, src->bound, denominators, &call->outputs[0]);
    free(denominators);
    return status;
}

/* Padding and NaN never win; a window of nothing else gives the type's lowest finite value. */
static gb_status maximum(const gb_ref_call *call, const gb_ref_window_cells *cells)
{
    const gb_ref_tensor *src = call->inputs[0];
    const gb_dtype_info *type = gb_dtype_get(src->tensor.data_type);
    pass p = {.cells = cells,
            .value = src->value,
            .bound = src->bound,
            .dst = &call->outputs[0],
            .column = max_column,
            .lowest = type ? type->lowest : 0,
            .status = {GB_SUCCESS}};
    return run_pass(&p);
}

gb_status gb_ref_pool(const gb_ref_call *call)
{
    gb_ref_pool_geometry pool;
    gb_ref_window_cells cells;
    GB_TRY(gb_ref_pool_bind(call->op, &call->inputs[0]->tensor, &call->outputs[0].tensor, &pool));
    if (call->outputs[0].count == 0)
        return GB_SUCCESS;
    GB_TRY(gb_ref_window_cells_create(&cells, &pool.image, &pool.result, &pool.window, false));
    gb_status status =
            call->op->kind == GB_OP_MAX_POOL ? maximum(call, &cells) : average(call, &pool, &cells);
    gb_ref_window_cells_destroy(&cells);
    return status;
}
