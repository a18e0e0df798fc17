/* Running two-pass kernels: whole work items, or segments that are joined in order. */
#include "kernels/rowwise/two_pass.h"

#include "base/parallel.h"
#include "kernels/rowwise/two_pass_item.h"

#include <string.h>

/* Sums of one segment, or with segment == segments those of the whole work item, in shared
 * memory. */
static float *shared_sum(const gb_two_pass *two_pass, const gb_step_call *call, int64_t item,
        int64_t segment, int which)
{
    int64_t index = (item * (two_pass->splits + 1) + segment) * GB_TWO_PASS_SUMS + which;
    return (float *)(void *)call->shared + index * two_pass->block;
}

static void copy_sums(const gb_two_pass_item *item, int64_t index, int64_t segment, bool to_shared)
{
    for (int i = 0; i < GB_TWO_PASS_SUMS; i++) {
        float *shared = shared_sum(item->two_pass, item->call, index, segment, i);
        size_t bytes = (size_t)item->count * sizeof *shared;
        if (to_shared)
            memcpy(shared, item->sum[i], bytes);
        else
            memcpy(item->sum[i], shared, bytes);
    }
}

static void segment_pieces(
        const gb_two_pass *two_pass, int64_t segment, int64_t *begin, int64_t *end)
{
    gb_split(two_pass->pieces, (int)segment, (int)two_pass->splits, begin, end);
}

static void two_pass_prepare(const gb_two_pass_item *item)
{
    if (item->two_pass->prepare)
        item->two_pass->prepare(item);
}

static void two_pass_finish(const gb_two_pass_item *item, bool store)
{
    if (item->two_pass->finish)
        item->two_pass->finish(item, store);
}

static void run_whole(const gb_two_pass_item *item)
{
    const gb_two_pass *two_pass = item->two_pass;
    two_pass_prepare(item);
    if (gb_two_pass_reduces(two_pass))
        gb_two_pass_reduce_pieces(item, 0, two_pass->pieces);
    two_pass_finish(item, true);
    if (gb_two_pass_applies(two_pass))
        gb_two_pass_apply_pieces(item, 0, two_pass->pieces);
}

/* Phase 0 sums the segments, phase 2 (or 0, without sums) computes results. */
static void run_segments(const gb_two_pass *two_pass, const gb_step_call *call)
{
    int64_t begin, end, first, last;
    while (gb_take_items(call, two_pass->items * two_pass->splits, &begin, &end))
        for (int64_t task = begin; task < end; task++) {
            gb_two_pass_item item;
            int64_t index = task / two_pass->splits, segment = task % two_pass->splits;
            segment_pieces(two_pass, segment, &first, &last);
            gb_two_pass_open(two_pass, call, index, &item);
            if (two_pass->splits == 1) {
                run_whole(&item);
                continue;
            }
            two_pass_prepare(&item);
            if (gb_two_pass_reduces(two_pass) && call->phase == 0) {
                gb_two_pass_reduce_pieces(&item, first, last);
                copy_sums(&item, index, segment, true);
                continue;
            }
            if (gb_two_pass_reduces(two_pass))
                copy_sums(&item, index, two_pass->splits, false);
            two_pass_finish(&item, false);
            gb_two_pass_apply_pieces(&item, first, last);
        }
}

/* Adds a segment's sums to the work item's. */
static void join_segment(const gb_two_pass_item *item, int64_t index, int64_t segment)
{
    const gb_two_pass *two_pass = item->two_pass;
    int64_t first, last;
    segment_pieces(two_pass, segment, &first, &last);
    int64_t before = gb_two_pass_elements_before(two_pass, first);
    gb_two_pass_join(item, before, gb_two_pass_elements_before(two_pass, last) - before,
            shared_sum(two_pass, item->call, index, segment, 0),
            shared_sum(two_pass, item->call, index, segment, 1));
}

static void join_items(const gb_two_pass *two_pass, const gb_step_call *call)
{
    int64_t begin, end;
    while (gb_take_items(call, two_pass->items, &begin, &end))
        for (int64_t index = begin; index < end; index++) {
            gb_two_pass_item item;
            gb_two_pass_open(two_pass, call, index, &item);
            two_pass_prepare(&item);
            gb_two_pass_clear(item.sum, item.count);
            for (int64_t segment = 0; segment < two_pass->splits; segment++)
                join_segment(&item, index, segment);
            copy_sums(&item, index, two_pass->splits, true);
            two_pass_finish(&item, true);
        }
}

float *gb_two_pass_cross(
        const gb_two_pass *two_pass, const gb_step_call *call, int64_t group, int which)
{
    return (float *)(void *)call->shared +
           (group * GB_TWO_PASS_SUMS + which) * two_pass->problem->space.n;
}

static void run_groups(const gb_two_pass *two_pass, const gb_step_call *call)
{
    int64_t begin, end, first, last;
    while (gb_take_items(call, two_pass->groups, &begin, &end))
        for (int64_t group = begin; group < end; group++) {
            float *cross[GB_TWO_PASS_SUMS];
            for (int i = 0; i < GB_TWO_PASS_SUMS; i++)
                cross[i] = gb_two_pass_cross(two_pass, call, group, i);
            gb_two_pass_clear(cross, two_pass->problem->space.n);
            gb_split(two_pass->items, (int)group, (int)two_pass->groups, &first, &last);
            for (int64_t index = first; index < last; index++) {
                gb_two_pass_item item;
                gb_two_pass_open(two_pass, call, index, &item);
                memcpy(item.cross, cross, sizeof cross);
                run_whole(&item);
            }
        }
}

void gb_two_pass_run(const gb_two_pass *two_pass, const gb_step_call *call)
{
    if (two_pass->problem->cross)
        run_groups(two_pass, call);
    else if (call->phase == 1)
        join_items(two_pass, call);
    else
        run_segments(two_pass, call);
}
