/* Interpolate and its gradient: every position of the result is a weighted sum of a few source
 * positions per axis. */
#include "ref/bounds/sum.h"
#include "ref/ops/ref_functions.h"
#include "ref/ops/window_map.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include <stdlib.h>

/* Left and right neighbour, and one beyond each where the coordinate's error crosses an integer. */
enum { MAX_TAPS = 4, PLANES = 16, POSITIONS = 4096 };

typedef struct tap {
    int64_t offset;
    double weight, error;
} tap;

typedef struct axis_taps {
    int count;
    tap taps[MAX_TAPS];
} axis_taps;

typedef struct resampling {
    gb_ref_view source, result;
    axis_taps *axes[GB_MAX_NDIMS]; /* owned, per position of the result */
    int most;                      /* taps of a position */
    int grid;                      /* all products of weights are multiples of 2^grid */
    bool exact_weights;
    const gb_ref_tensor *from;
    gb_ref_tensor *to;
    bool exact, bounded, finite; /* finite: every source element of the sums is */
    double factor;               /* of one result */
    double *factors;             /* owned, backward: per source position */
    int64_t *terms;              /* owned, backward: per source position */
    gb_status status[1];
} resampling;

static bool is_nearest(const gb_op *op)
{
    return gb_op_attr_is(op, GB_ATTR_MODE, "nearest", false);
}

/* The source coordinate in f32, evaluated in the order that defines it. */
static float interpolate_coordinate(bool align_corners, int64_t o, int64_t in, int64_t out)
{
    if (align_corners)
        return out == 1 ? 0.0f : (float)o * (float)(in - 1) / (float)(out - 1);
    return ((float)o + 0.5f) * (float)in / (float)out - 0.5f;
}

static bool is_power_of_two(int64_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

/* Error of the coordinate however its steps are rounded; 0 when none of them rounds. */
static double coordinate_error(bool align_corners, float s, int64_t in, int64_t out)
{
    if (align_corners && (out == 1 || in == out))
        return 0;
    int64_t divisor = align_corners ? out - 1 : out;
    double largest = 2.0 * (double)gb_max_i64(in, 1) * (double)gb_max_i64(out, 1);
    if (is_power_of_two(divisor) && largest < 0x1p22)
        return 0;
    return 4 * GB_REF_U * (fabs((double)s) + 1);
}

static void add_tap(axis_taps *taps, int64_t index, double weight, double error)
{
    taps->taps[taps->count++] = (tap){index, weight, error};
}

static axis_taps nearest_taps(float s, int64_t in)
{
    axis_taps taps = {0};
    int64_t index = gb_max_i64(0, gb_min_i64((int64_t)roundf(s), in - 1));
    add_tap(&taps, index, 1, 0);
    return taps;
}

static axis_taps linear_taps(float s, int64_t in, double error)
{
    axis_taps taps = {0};
    double at = (double)s;
    int64_t left = gb_max_i64(0, gb_min_i64((int64_t)floor(at), in - 1));
    int64_t right = at < 0 ? 0 : gb_min_i64((int64_t)ceil(at), in - 1);
    bool outside = at + error <= 0 || at - error >= (double)(in - 1);
    double weight = fabs(at - (double)left), own_error = outside ? 0 : error;
    if (weight == 0) {
        add_tap(&taps, left, 1, own_error);
    } else { /* outside, both are the same element, and still a rounded sum */
        add_tap(&taps, left, 1 - weight, own_error);
        add_tap(&taps, right, weight, own_error);
    }
    if (error == 0)
        return taps;
    if (at - error < (double)left && left > 0)
        add_tap(&taps, left - 1, 0, error);
    if (at + error > (double)right && right + 1 < in)
        add_tap(&taps, right + 1, 0, error);
    return taps;
}

static gb_status interpolate_create_axis(const gb_op *op, resampling *r, int axis, int64_t stride)
{
    bool align = gb_op_attr_is(op, GB_ATTR_COORDINATE_TRANSFORMATION_MODE, "align_corners", false);
    int64_t in = r->source.spatial[axis], out = r->result.spatial[axis];
    axis_taps *axes = gb_calloc((size_t)out, sizeof(*axes));
    int most = 0, grid = 0;
    r->axes[axis] = axes;
    if (!axes)
        return GB_OUT_OF_MEMORY;
    for (int64_t o = 0; o < out; o++) {
        float s = interpolate_coordinate(align, o, in, out);
        double error = coordinate_error(align, s, in, out);
        axes[o] = is_nearest(op) ? nearest_taps(s, in) : linear_taps(s, in, error);
        if (axes[o].count > most)
            most = axes[o].count;
        for (int i = 0; i < axes[o].count; i++) {
            tap *t = &axes[o].taps[i];
            t->offset *= stride;
            r->exact_weights &= t->error == 0;
            if (gb_ref_grid(t->weight) < grid)
                grid = gb_ref_grid(t->weight);
        }
    }
    r->most *= most;
    r->grid += grid;
    return GB_SUCCESS;
}

static gb_status create_axes(const gb_op *op, resampling *r)
{
    int64_t stride = r->source.position_stride;
    r->most = 1;
    r->exact_weights = true;
    for (int axis = r->source.n_spatial - 1; axis >= 0; axis--) {
        if (r->source.spatial[axis] == 0)
            return gb_fail(GB_INVALID_SHAPE, "%s: an axis of size 0 has nothing to interpolate",
                    gb_op_label(op));
        GB_TRY(interpolate_create_axis(op, r, axis, stride));
        stride *= r->source.spatial[axis];
    }
    return GB_SUCCESS;
}

/* The source elements of one position of the result: offsets within a plane, weights and their
 * errors. `taps` has room for r->most. */
static int list_taps(const resampling *r, int64_t position, tap *taps)
{
    int count = 1;
    taps[0] = (tap){0, 1, 0};
    for (int axis = r->result.n_spatial - 1; axis >= 0; axis--) {
        const axis_taps *more = &r->axes[axis][position % r->result.spatial[axis]];
        position /= r->result.spatial[axis];
        for (int i = more->count - 1; i >= 0; i--) {
            const tap *b = &more->taps[i];
            for (int j = 0; j < count; j++) {
                tap a = taps[j];
                taps[i * count + j] = (tap){a.offset + b->offset, a.weight * b->weight,
                        a.weight * b->error + a.error * b->weight + a.error * b->error};
            }
        }
        count *= more->count;
    }
    return count;
}

/* Plane number `plane` of N x C. */
static int64_t plane_offset(const gb_ref_view *view, int64_t plane)
{
    return plane / view->channels * view->batch_stride +
           plane % view->channels * view->channel_stride;
}

/* An element beside those that count, which counts in an implementation whose coordinate is rounded
 * in another way: nothing is known if it is not finite. */
static bool may_be_lost(double weight, double value)
{
    return weight == 0 && !isfinite(value);
}

static void interpolate_element(
        const resampling *r, const tap *taps, int count, int64_t from, int64_t at)
{
    double sum = 0, magnitude = 0, wide = 0;
    bool lost = false;
    for (int i = 0; i < count; i++) {
        double value = r->from->value[from + taps[i].offset];
        double weight = taps[i].weight;
        lost |= may_be_lost(weight, value);
        if (weight != 0)
            sum += weight * value;
        magnitude += weight * fabs(value);
        wide += (weight + taps[i].error) *
                (fabs(value) + gb_ref_bound(r->from, from + taps[i].offset));
    }
    r->to->value[at] = sum;
    const gb_ref_terms terms = {
            count == 1 ? 0 : count, sum, magnitude, magnitude, fmax(wide - magnitude, 0), 0};
    r->to->bound[at] = r->exact ? 0
                                : gb_ref_sum_bound(&gb_ref_f32_sums, count == 1 ? 0 : r->factor,
                                          &terms, r->bounded);
    if (lost)
        r->to->bound[at] = INFINITY;
}

static void interpolate_unit(const resampling *r, int64_t unit, tap *taps)
{
    int64_t blocks = gb_div_up(r->result.positions, POSITIONS);
    int64_t planes = r->result.batch * r->result.channels, plane = unit / blocks * PLANES;
    int64_t plane_end = gb_min_i64(plane + PLANES, planes);
    int64_t position = unit % blocks * POSITIONS;
    int64_t end = gb_min_i64(position + POSITIONS, r->result.positions);
    for (; position < end; position++) {
        int count = list_taps(r, position, taps);
        for (int64_t p = plane; p < plane_end; p++)
            interpolate_element(r, taps, count, plane_offset(&r->source, p),
                    plane_offset(&r->result, p) + position * r->result.position_stride);
    }
}

static void scatter_element(
        const resampling *r, const tap *taps, int count, int64_t from, int64_t to)
{
    double value = r->from->value[from], error = gb_ref_bound(r->from, from);
    for (int i = 0; i < count; i++) {
        double weight = taps[i].weight;
        int64_t at = to + taps[i].offset;
        if (weight != 0)
            r->to->value[at] += weight * value;
        if (r->exact)
            continue;
        int64_t position = taps[i].offset / r->source.position_stride;
        double spread = weight * error + taps[i].error * (fabs(value) + error);
        r->to->bound[at] += spread + r->factors[position] * (weight * fabs(value) + spread);
    }
}

static void settle_plane(const resampling *r, int64_t to)
{
    for (int64_t p = 0; p < r->source.positions; p++) {
        int64_t at = to + p * r->source.position_stride;
        double *bound = &r->to->bound[at];
        *bound += (double)r->terms[p] * GB_REF_ETA;
        if (!isfinite(r->to->value[at]) || isnan(*bound))
            *bound = r->bounded ? 0 : (double)INFINITY;
    }
}

static void lose_elements(const resampling *r, const tap *taps, int count, int64_t from, int64_t to)
{
    for (int i = 0; i < count; i++)
        if (may_be_lost(taps[i].weight, r->from->value[from]))
            r->to->bound[to + taps[i].offset] = INFINITY;
}

static void scatter_unit(const resampling *r, int64_t unit, tap *taps)
{
    int64_t planes = r->result.batch * r->result.channels, plane = unit * PLANES;
    int64_t plane_end = gb_min_i64(plane + PLANES, planes);
    for (int64_t position = 0; position < r->result.positions; position++) {
        int count = list_taps(r, position, taps);
        for (int64_t p = plane; p < plane_end; p++)
            scatter_element(r, taps, count,
                    plane_offset(&r->result, p) + position * r->result.position_stride,
                    plane_offset(&r->source, p));
    }
    for (int64_t p = plane; !r->exact && p < plane_end; p++)
        settle_plane(r, plane_offset(&r->source, p));
    for (int64_t position = 0; !r->finite && position < r->result.positions; position++) {
        int count = list_taps(r, position, taps);
        for (int64_t p = plane; p < plane_end; p++)
            lose_elements(r, taps, count,
                    plane_offset(&r->result, p) + position * r->result.position_stride,
                    plane_offset(&r->source, p));
    }
}

static void resample_part(void *context, int thread, int n_threads)
{
    resampling *r = context;
    int64_t units = gb_div_up(r->result.batch * r->result.channels, PLANES);
    if (!r->terms)
        units *= gb_div_up(r->result.positions, POSITIONS);
    int64_t begin, end;
    gb_split(units, thread, n_threads, &begin, &end);
    tap *taps = gb_calloc((size_t)r->most, sizeof(*taps));
    if (!taps)
        __atomic_store_n(r->status, GB_OUT_OF_MEMORY, __ATOMIC_RELAXED);
    for (int64_t unit = begin; taps && unit < end; unit++) {
        if (r->terms)
            scatter_unit(r, unit, taps);
        else
            interpolate_unit(r, unit, taps);
    }
    free(taps);
}

/* `terms` products go into a result at most; each has a weight of n_spatial factors, made in up to
 * three steps. */
static double sum_factor(const resampling *r, int64_t terms, int *statistical)
{
    int steps = r->most == 1 ? 0 : 3 * r->source.n_spatial;
    return gb_ref_sum_factor(terms, GB_REF_U, statistical) + steps * GB_REF_U;
}

static gb_status find_exactness(resampling *r, int64_t terms)
{
    gb_ref_survey survey;
    GB_TRY(gb_ref_survey_values(r->from->value, r->from->bound, r->from->count, &survey));
    const double total = survey.max * (double)terms;
    r->bounded = survey.bounded && gb_ref_infinity_is_certain(total);
    r->finite = survey.finite;
    r->exact = r->exact_weights && survey.exact && survey.finite &&
               gb_ref_sums_are_exact(&gb_ref_f32_sums, total, survey.grid + r->grid);
    return GB_SUCCESS;
}

/* How many products each source position receives. */
static gb_status count_terms(resampling *r, int64_t *most)
{
    r->terms = gb_calloc((size_t)r->source.positions, sizeof(int64_t));
    r->factors = gb_calloc((size_t)r->source.positions, sizeof(double));
    tap *taps = gb_calloc((size_t)r->most, sizeof(*taps));
    bool complete = r->terms && r->factors && taps;
    *most = 0;
    for (int64_t position = 0; complete && position < r->result.positions; position++) {
        int count = list_taps(r, position, taps);
        for (int i = 0; i < count; i++) {
            int64_t *terms = &r->terms[taps[i].offset / r->source.position_stride];
            *most = gb_max_i64(*most, ++*terms);
        }
    }
    free(taps);
    return complete ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

static gb_status forward(const gb_op *op, resampling *r)
{
    GB_TRY(create_axes(op, r));
    GB_TRY(find_exactness(r, r->most));
    r->factor = sum_factor(r, r->most, NULL);
    double work = (double)r->to->count * r->most;
    gb_parallel(gb_threads_for(work), resample_part, r);
    return r->status[0];
}

static gb_status backward(const gb_op *op, resampling *r)
{
    int64_t most;
    GB_TRY(create_axes(op, r));
    GB_TRY(count_terms(r, &most));
    GB_TRY(find_exactness(r, most));
    for (int64_t p = 0; !r->exact && p < r->source.positions; p++)
        r->factors[p] = sum_factor(r, r->terms[p], &r->to->statistical);
    double work = (double)r->from->count * r->most;
    gb_parallel(gb_threads_for(work), resample_part, r);
    return r->status[0];
}

static gb_status interpolate_check(
        const gb_op *op, const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    if (a->ndims >= 3 && a->ndims == b->ndims)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: ranks differ or are below 3", gb_op_label(op));
}

static gb_status resample(const gb_ref_call *call, bool gradient)
{
    gb_ref_tensor *to = &call->outputs[0];
    const gb_ref_tensor *from = call->inputs[gradient ? 1 : 0];
    if (to->count == 0)
        return GB_SUCCESS;
    GB_TRY(interpolate_check(call->op, &from->tensor, &to->tensor));
    gb_ref_view own = gb_ref_view_of(call->op, &from->tensor);
    gb_ref_view other = gb_ref_view_of(call->op, &to->tensor);
    resampling r = {.source = gradient ? other : own,
            .result = gradient ? own : other,
            .from = from,
            .to = to,
            .status = {GB_SUCCESS}};
    gb_status status = gradient ? backward(call->op, &r) : forward(call->op, &r);
    for (int axis = 0; axis < GB_MAX_NDIMS; axis++)
        free(r.axes[axis]);
    free(r.factors);
    free(r.terms);
    return status;
}

gb_status gb_ref_interpolate(const gb_ref_call *call)
{
    return resample(call, false);
}

gb_status gb_ref_interpolate_backward(const gb_ref_call *call)
{
    return resample(call, true);
}
