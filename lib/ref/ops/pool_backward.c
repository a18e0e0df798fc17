/* Gradients of AvgPool and MaxPool. */
#include "ref/bounds/bound.h"
#include "ref/ops/pool.h"
#include "ref/ops/ref_functions.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include <stdlib.h>

/* diff_dst divided by the denominator of its window, which each of the window's cells receives. */
static void divide_gradient(const gb_ref_tensor *diff_dst, const gb_ref_view *view,
        const double *denominators, double *value, double *bound)
{
    for (int64_t i = 0; i < diff_dst->count; i++) {
        double denominator = denominators[i / view->position_stride % view->positions];
        int exponent;
        bool exact = frexp(denominator, &exponent) == 0.5;
        value[i] = diff_dst->value[i] / denominator;
        bound[i] = gb_ref_bound(diff_dst, i) / denominator;
        if (!exact && isfinite(value[i]))
            bound[i] += 2 * GB_REF_U * (fabs(value[i]) + bound[i]) + GB_REF_ETA;
        if (denominator == 0)
            value[i] = bound[i] = 0; /* reaches no cell */
    }
}

static gb_status average_backward(const gb_ref_call *call, const gb_ref_pool_geometry *pool)
{
    const gb_ref_tensor *diff_dst = call->inputs[0];
    gb_ref_window_cells cells;
    GB_TRY(gb_ref_window_cells_create(&cells, &pool->result, &pool->image, &pool->window, true));
    double *denominators = gb_ref_pool_denominators(call->op, pool);
    double *value = gb_calloc((size_t)diff_dst->count, sizeof(double));
    double *bound = gb_calloc((size_t)diff_dst->count, sizeof(double));
    gb_status status = GB_OUT_OF_MEMORY;
    if (denominators && value && bound) {
        divide_gradient(diff_dst, &pool->result, denominators, value, bound);
        status = gb_ref_pool_sum(&cells, value, bound, NULL, &call->outputs[0]);
    }
    free(denominators);
    free(value);
    free(bound);
    gb_ref_window_cells_destroy(&cells);
    return status;
}

typedef struct max_gradient {
    const gb_ref_tensor *src, *diff_dst;
    gb_ref_tensor *diff_src;
    gb_ref_window_cells cells; /* of the forward pool */
    double lowest, factor;
    int64_t terms;  /* most windows that a cell of the image is in */
    bool uncertain; /* src has bounds, or subnormals that may be read as zero */
    bool bounded;   /* an infinite sum is certain */
    gb_status status[1];
} max_gradient;

/* The first maximum in row-major order, or -1 when nothing is above the lowest finite value. */
static int64_t find_winner(
        const max_gradient *m, const int64_t *offsets, int64_t count, int64_t from)
{
    double best = m->lowest;
    int64_t winner = -1;
    for (int64_t i = 0; i < count; i++) {
        if (!(m->src->value[from + offsets[i]] > best))
            continue;
        best = m->src->value[from + offsets[i]];
        winner = i;
    }
    return winner;
}

/* May another implementation, within the bounds of src, choose cell `i` instead of the winner? */
static bool may_win(const max_gradient *m, int64_t i, int64_t winner)
{
    gb_ref_pair own = gb_ref_get(m->src, i), best = gb_ref_get(m->src, winner);
    return isinf(own.e) || isinf(best.e) ||
           (own.e + best.e > 0 && own.v + own.e >= best.v - best.e);
}

/* Adds one window's gradient. diff_src->bound gathers the error of terms plus that of their sum, as
 * it grows. */
static void scatter_window(
        const max_gradient *m, const int64_t *offsets, int64_t count, int64_t from, int64_t result)
{
    double gradient = m->diff_dst->value[result], error = gb_ref_bound(m->diff_dst, result);
    double whole = fabs(gradient) + error;
    int64_t winner = find_winner(m, offsets, count, from);
    if (winner >= 0) {
        int64_t at = from + offsets[winner];
        m->diff_src->value[at] += gradient;
        m->diff_src->bound[at] += error + (isfinite(whole) ? m->factor * whole : 0);
    }
    bool ambiguous = winner < 0;
    for (int64_t i = 0; i < count && (m->uncertain || winner < 0); i++) {
        bool other = i != winner &&
                     (winner < 0 || may_win(m, from + offsets[i], from + offsets[winner]));
        if (other)
            m->diff_src->bound[from + offsets[i]] += whole * (1 + m->factor);
        ambiguous |= other;
    }
    if (ambiguous && winner >= 0)
        m->diff_src->bound[from + offsets[winner]] += whole;
}

static void settle_plane(const max_gradient *m, int64_t from)
{
    const gb_ref_view *image = &m->cells.source;
    for (int64_t p = 0; p < image->positions; p++) {
        int64_t at = from + p * image->position_stride;
        double *bound = &m->diff_src->bound[at];
        if (*bound > 0)
            *bound += (double)m->terms * GB_REF_ETA;
        if (!isfinite(m->diff_src->value[at]) && isfinite(*bound))
            *bound = m->bounded ? 0 : (double)INFINITY;
        if (isnan(*bound))
            *bound = INFINITY;
    }
}

/* Units are blocks of channels of one image: no two of them write to the same cell. */
static void scatter_unit(const max_gradient *m, int64_t unit, int64_t *offsets)
{
    const gb_ref_view *image = &m->cells.source, *result = &m->cells.target;
    int64_t blocks = gb_div_up(image->channels, GB_REF_POOL_CHANNELS);
    int64_t batch = unit / blocks, begin = unit % blocks * GB_REF_POOL_CHANNELS;
    int64_t end = gb_min_i64(begin + GB_REF_POOL_CHANNELS, image->channels);
    for (int64_t position = 0; position < result->positions; position++) {
        int64_t target, count = gb_ref_window_cells_list(
                                &m->cells, batch * result->positions + position, offsets, &target);
        for (int64_t c = begin; c < end; c++)
            scatter_window(m, offsets, count, c * image->channel_stride,
                    target + c * result->channel_stride);
    }
    for (int64_t c = begin; c < end; c++)
        settle_plane(m, batch * image->batch_stride + c * image->channel_stride);
}

static void scatter_part(void *context, int thread, int n_threads)
{
    max_gradient *m = context;
    const gb_ref_view *image = &m->cells.source;
    int64_t begin, end;
    gb_split(image->batch * gb_div_up(image->channels, GB_REF_POOL_CHANNELS), thread, n_threads,
            &begin, &end);
    int64_t *offsets = gb_calloc((size_t)gb_max_i64(m->cells.most, 1), sizeof(int64_t));
    if (!offsets)
        __atomic_store_n(m->status, GB_OUT_OF_MEMORY, __ATOMIC_RELAXED);
    for (int64_t unit = begin; offsets && unit < end; unit++)
        scatter_unit(m, unit, offsets);
    free(offsets);
}

static gb_status find_uncertainty(max_gradient *m)
{
    gb_ref_survey survey;
    GB_TRY(gb_ref_survey_values(m->src->value, m->src->bound, m->src->count, &survey));
    m->uncertain = !survey.exact || survey.grid < -126;
    return GB_SUCCESS;
}

/* The error of a sum of gradients; none for a single one or when all sums are exact. */
static gb_status set_factor(max_gradient *m)
{
    const gb_ref_tensor *g = m->diff_dst;
    gb_ref_survey survey;
    GB_TRY(gb_ref_survey_values(g->value, g->bound, g->count, &survey));
    const double total = survey.max * (double)m->terms;
    m->bounded = survey.bounded && gb_ref_infinity_is_certain(total);
    bool exact = survey.exact && survey.finite && !m->src->bound &&
                 gb_ref_sums_are_exact(&gb_ref_f32_sums, total, survey.grid);
    if (!exact && m->terms > 1)
        m->factor = gb_ref_sum_factor(m->terms, GB_REF_U, &m->diff_src->statistical);
    return GB_SUCCESS;
}

static gb_status max_backward(const gb_ref_call *call, const gb_ref_pool_geometry *pool)
{
    max_gradient m = {.src = call->inputs[0],
            .diff_dst = call->inputs[1],
            .diff_src = &call->outputs[0],
            .status = {GB_SUCCESS}};
    const gb_dtype_info *type = gb_dtype_get(m.src->tensor.data_type);
    gb_ref_window_cells windows;
    GB_TRY(gb_ref_window_cells_create(&windows, &pool->result, &pool->image, &pool->window, true));
    m.terms = windows.most;
    gb_ref_window_cells_destroy(&windows);
    m.lowest = type ? type->lowest : 0;
    GB_TRY(set_factor(&m));
    GB_TRY(find_uncertainty(&m));
    GB_TRY(gb_ref_window_cells_create(&m.cells, &pool->image, &pool->result, &pool->window, false));
    double work = (double)m.diff_dst->count * (double)(m.cells.most + 1);
    gb_parallel(gb_threads_for(work), scatter_part, &m);
    gb_ref_window_cells_destroy(&m.cells);
    return m.status[0];
}

gb_status gb_ref_pool_backward(const gb_ref_call *call)
{
    gb_ref_pool_geometry pool;
    bool max = call->op->kind == GB_OP_MAX_POOL_BACKWARD;
    const gb_logical_tensor *diff_dst = &call->inputs[max ? 1 : 0]->tensor;
    GB_TRY(gb_ref_pool_bind(call->op, &call->outputs[0].tensor, diff_dst, &pool));
    if (call->outputs[0].count == 0)
        return GB_SUCCESS;
    return max ? max_backward(call, &pool) : average_backward(call, &pool);
}
