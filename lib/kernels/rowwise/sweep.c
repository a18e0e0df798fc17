/* Running sweeps: whole units, or segments that are joined in order. */
#include "kernels/rowwise/sweep.h"

#include "base/parallel.h"
#include "kernels/cpu/step_call.h"
#include "kernels/rowwise/sweep_unit.h"

#include <string.h>

/* Sums of one segment, or with segment == segments those of the whole unit, in shared memory. */
static float *shared_sum(
        const gb_sweep *sweep, const gb_step_call *call, int64_t unit, int64_t segment, int which)
{
    int64_t index = (unit * (sweep->segments + 1) + segment) * GB_SWEEP_SUMS + which;
    return (float *)(void *)call->shared + index * sweep->block;
}

static void copy_sums(const gb_sweep_unit *unit, int64_t index, int64_t segment, bool to_shared)
{
    for (int i = 0; i < GB_SWEEP_SUMS; i++) {
        float *shared = shared_sum(unit->sweep, unit->call, index, segment, i);
        size_t bytes = (size_t)unit->count * sizeof *shared;
        if (to_shared)
            memcpy(shared, unit->sum[i], bytes);
        else
            memcpy(unit->sum[i], shared, bytes);
    }
}

static void segment_pieces(const gb_sweep *sweep, int64_t segment, int64_t *begin, int64_t *end)
{
    gb_split(sweep->pieces, (int)segment, (int)sweep->segments, begin, end);
}

static void prepare(const gb_sweep_unit *unit)
{
    if (unit->sweep->prepare)
        unit->sweep->prepare(unit);
}

static void finish(const gb_sweep_unit *unit, bool store)
{
    if (unit->sweep->finish)
        unit->sweep->finish(unit, store);
}

static void run_whole(const gb_sweep_unit *unit)
{
    const gb_sweep *sweep = unit->sweep;
    prepare(unit);
    if (gb_sweep_folds(sweep))
        gb_sweep_fold_pieces(unit, 0, sweep->pieces);
    finish(unit, true);
    if (gb_sweep_applies(sweep))
        gb_sweep_apply_pieces(unit, 0, sweep->pieces);
}

/* Phase 0 sums the segments, phase 2 (or 0, without sums) computes results. */
static void run_segments(const gb_sweep *sweep, const gb_step_call *call)
{
    int64_t begin, end, first, last;
    gb_split(sweep->units * sweep->segments, call->thread, call->n_threads, &begin, &end);
    for (int64_t task = begin; task < end; task++) {
        gb_sweep_unit unit;
        int64_t index = task / sweep->segments, segment = task % sweep->segments;
        segment_pieces(sweep, segment, &first, &last);
        gb_sweep_open(sweep, call, index, &unit);
        if (sweep->segments == 1) {
            run_whole(&unit);
            continue;
        }
        prepare(&unit);
        if (gb_sweep_folds(sweep) && call->phase == 0) {
            gb_sweep_fold_pieces(&unit, first, last);
            copy_sums(&unit, index, segment, true);
            continue;
        }
        if (gb_sweep_folds(sweep))
            copy_sums(&unit, index, sweep->segments, false);
        finish(&unit, false);
        gb_sweep_apply_pieces(&unit, first, last);
    }
}

/* Adds a segment's sums to the unit's; sums of squared differences as the kernels do. */
static void join_segment(const gb_sweep_unit *unit, int64_t index, int64_t segment)
{
    const gb_sweep *sweep = unit->sweep;
    int64_t first, last;
    segment_pieces(sweep, segment, &first, &last);
    double before = (double)gb_sweep_elements_before(sweep, first);
    double n = (double)gb_sweep_elements_before(sweep, last) - before;
    bool moments = gb_sweep_has_moments(sweep) && before > 0;
    float weight = (float)(before * (n / (before + n)));
    const float *a = shared_sum(sweep, unit->call, index, segment, 0);
    const float *b = shared_sum(sweep, unit->call, index, segment, 1);
    for (int64_t k = 0; k < unit->count; k++) {
        float delta = moments ? a[k] / (float)n - unit->sum[0][k] / (float)before : 0;
        unit->sum[0][k] += a[k];
        unit->sum[1][k] += b[k] + delta * delta * weight;
    }
}

static void join_units(const gb_sweep *sweep, const gb_step_call *call)
{
    int64_t begin, end;
    gb_split(sweep->units, call->thread, call->n_threads, &begin, &end);
    for (int64_t index = begin; index < end; index++) {
        gb_sweep_unit unit;
        gb_sweep_open(sweep, call, index, &unit);
        prepare(&unit);
        gb_sweep_clear(unit.sum, unit.count);
        for (int64_t segment = 0; segment < sweep->segments; segment++)
            join_segment(&unit, index, segment);
        copy_sums(&unit, index, sweep->segments, true);
        finish(&unit, true);
    }
}

float *gb_sweep_cross(const gb_sweep *sweep, const gb_step_call *call, int64_t group, int which)
{
    return (float *)(void *)call->shared + (group * GB_SWEEP_SUMS + which) * sweep->n;
}

static void run_groups(const gb_sweep *sweep, const gb_step_call *call)
{
    int64_t begin, end, first, last;
    gb_split(sweep->groups, call->thread, call->n_threads, &begin, &end);
    for (int64_t group = begin; group < end; group++) {
        float *cross[GB_SWEEP_SUMS];
        for (int i = 0; i < GB_SWEEP_SUMS; i++)
            cross[i] = gb_sweep_cross(sweep, call, group, i);
        gb_sweep_clear(cross, sweep->n);
        gb_split(sweep->units, (int)group, (int)sweep->groups, &first, &last);
        for (int64_t index = first; index < last; index++) {
            gb_sweep_unit unit;
            gb_sweep_open(sweep, call, index, &unit);
            memcpy(unit.cross, cross, sizeof cross);
            run_whole(&unit);
        }
    }
}

void gb_sweep_run(const gb_sweep *sweep, const gb_step_call *call)
{
    if (sweep->cross)
        run_groups(sweep, call);
    else if (call->phase == 1)
        join_units(sweep, call);
    else
        run_segments(sweep, call);
}
