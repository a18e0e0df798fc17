/* Tables of taps: which source elements with which weights make a position. */
#include "kernels/plan/resample_problem.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

/* What one element behind Interpolate is made of. */
typedef struct pair {
    int n;
    int64_t index[2];
    float weight[2];
} pair;

/* In f32 and in the order that defines it. */
static float resample_coordinate(bool align_corners, int64_t o, int64_t in, int64_t out)
{
    if (align_corners)
        return out == 1 ? 0 : (float)o * (float)(in - 1) / (float)(out - 1);
    return ((float)o + 0.5F) * (float)in / (float)out - 0.5F;
}

static int64_t limit(float value, int64_t in)
{
    return gb_max_i64(0, gb_min_i64((int64_t)value, in - 1));
}

static pair pair_of(const gb_resample_problem *problem, int64_t o, int64_t in, int64_t out)
{
    float s = resample_coordinate(problem->align_corners, o, in, out);
    if (problem->nearest)
        return (pair){1, {limit(roundf(s), in)}, {1}};
    int64_t left = limit(floorf(s), in), right = s < 0 ? 0 : limit(ceilf(s), in);
    float weight = fabsf(s - (float)left);
    if (left == right || weight == 0)
        return (pair){1, {left}, {1}};
    return (pair){2, {left, right}, {1 - weight, weight}};
}

static gb_status allocate(gb_step *step, gb_resample_taps *taps)
{
    size_t cells;
    if (taps->pitch && !gb_size_mul((size_t)taps->taps, (size_t)taps->pitch, &cells))
        return gb_fail(GB_OUT_OF_MEMORY, "resampling: %lld taps at %lld positions",
                (long long)taps->taps, (long long)taps->pitch);
    int32_t *index = gb_step_alloc(step, (size_t)(taps->taps * taps->pitch), sizeof *index);
    float *weight = gb_step_alloc(step, (size_t)(taps->taps * taps->pitch), sizeof *weight);
    taps->index = index;
    taps->weight = weight;
    return index && weight ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

/* The table's own memory, while it is being filled. */
static void set_tap(const gb_resample_taps *taps, int64_t t, int64_t i, int64_t index, float weight)
{
    ((int32_t *)(uintptr_t)taps->index)[t * taps->pitch + i] = (int32_t)index;
    ((float *)(uintptr_t)taps->weight)[t * taps->pitch + i] = weight;
}

static gb_status fill_forward(gb_step *step, const gb_resample_problem *problem, int64_t in,
        int64_t out, gb_resample_taps *taps)
{
    taps->pitch = taps->count = out;
    taps->taps = problem->nearest ? 1 : 2;
    GB_TRY(allocate(step, taps));
    for (int64_t o = 0; o < out; o++) {
        pair p = pair_of(problem, o, in, out);
        for (int t = 0; t < p.n; t++)
            set_tap(taps, t, o, p.index[t], p.weight[t]);
    }
    return GB_SUCCESS;
}

/* Counts the taps of every position; with `fill` also writes them. */
static int64_t gather_taps(const gb_resample_problem *problem, int64_t in, int64_t out,
        int64_t *counts, const gb_resample_taps *fill)
{
    int64_t most = 0;
    for (int64_t i = 0; i < in; i++)
        counts[i] = 0;
    for (int64_t o = 0; o < out; o++) {
        pair p = pair_of(problem, o, in, out);
        for (int t = 0; t < p.n; t++) {
            int64_t tap = counts[p.index[t]]++;
            most = gb_max_i64(most, tap + 1);
            if (fill)
                set_tap(fill, tap, p.index[t], o, p.weight[t]);
        }
    }
    return most;
}

static gb_status fill_gradient(gb_step *step, const gb_resample_problem *problem, int64_t in,
        int64_t out, gb_resample_taps *taps)
{
    int64_t *counts = gb_calloc((size_t)in, sizeof *counts);
    if (!counts)
        return GB_OUT_OF_MEMORY;
    taps->pitch = taps->count = in;
    taps->taps = gather_taps(problem, in, out, counts, NULL);
    gb_status status = allocate(step, taps);
    if (status == GB_SUCCESS)
        gather_taps(problem, in, out, counts, taps);
    free(counts);
    return status;
}

gb_status gb_resample_taps_make(gb_step *step, const gb_resample_problem *problem, int64_t in,
        int64_t out, gb_resample_taps *taps)
{
    if (in > INT32_MAX || out > INT32_MAX)
        return gb_fail(GB_UNIMPLEMENTED, "resampling %lld elements of an axis to %lld",
                (long long)in, (long long)out);
    return (problem->gradient ? fill_gradient : fill_forward)(step, problem, in, out, taps);
}
