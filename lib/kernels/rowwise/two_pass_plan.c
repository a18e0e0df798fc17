/* Planning two-pass kernels: work items, segments and pieces. */
#include "kernels/rowwise/two_pass_item.h"

#include "base/memory.h"
#include "base/parallel.h"

#include <string.h>

enum {
    LEAST_COLUMNS = 32,         /* two lines of memory */
    ITEM_ROWS = 24 * 1024,      /* elements of a work item of rows: a few of them stay in L2 */
    ITEM_COLUMNS = 64 * 1024,   /* elements of a work item of columns */
    TASKS = 32,                 /* that many suffice for any number of threads */
    SEGMENT_ELEMENTS = 1 << 14, /* a segment is no smaller */
    MOST_CROSS = 1 << 22        /* elements of the groups' sums across */
};

static int64_t choose_block(const gb_two_pass *two_pass)
{
    int64_t n = gb_max_i64(two_pass->n, 1),
            all = gb_two_pass_size_of(two_pass, gb_two_pass_last_kept(two_pass)), block;
    int64_t total = gb_product(two_pass->n_kept, two_pass->kept, two_pass->dims);
    if (two_pass->columns) {
        block = ITEM_COLUMNS / n / LEAST_COLUMNS * LEAST_COLUMNS;
        if (block < LEAST_COLUMNS) /* too long for the cache anyway */
            block = GB_TWO_PASS_MOST_KEPT;
    } else {
        block = gb_min_i64(ITEM_ROWS / n, gb_div_up(total, TASKS));
    }
    return gb_max_i64(1, gb_min_i64(gb_min_i64(block, GB_TWO_PASS_MOST_KEPT), all));
}

static void choose_segments(gb_two_pass *two_pass)
{
    two_pass->splits = two_pass->groups = 1;
    if (two_pass->cross) {
        int64_t room = MOST_CROSS / gb_max_i64(two_pass->n, 1);
        two_pass->groups = gb_max_i64(1, gb_min_i64(gb_min_i64(two_pass->items, TASKS), room));
    } else if (two_pass->items > 0 && two_pass->items < TASKS) {
        int64_t worth = two_pass->n / gb_div_up(SEGMENT_ELEMENTS, two_pass->block);
        int64_t wanted = gb_min_i64(gb_div_up(TASKS, two_pass->items), worth);
        two_pass->splits = gb_max_i64(1, gb_min_i64(wanted, two_pass->pieces));
    }
}

static void list_dims(gb_two_pass *two_pass, const gb_space *space)
{
    two_pass->ndims = space->ndims;
    memcpy(two_pass->dims, space->dims, sizeof two_pass->dims);
    for (int d = 0; d < space->ndims; d++) {
        if (space->roles[d] == GB_TWO_PASS_REDUCED)
            two_pass->reduced[two_pass->n_reduced++] = (uint8_t)d;
        else
            two_pass->kept[two_pass->n_kept++] = (uint8_t)d;
    }
    two_pass->columns = space->ndims && space->roles[space->ndims - 1] == GB_TWO_PASS_KEPT;
}

static size_t shared_elements(const gb_two_pass *two_pass)
{
    if (two_pass->cross)
        return (size_t)(two_pass->groups * two_pass->n) * GB_TWO_PASS_SUMS;
    if (two_pass->splits == 1)
        return 0;
    return (size_t)(two_pass->items * (two_pass->splits + 1) * two_pass->block) * GB_TWO_PASS_SUMS;
}

void gb_two_pass_init(gb_two_pass *two_pass, gb_space *space, gb_step *step)
{
    gb_space_normalize(space);
    list_dims(two_pass, space);
    two_pass->n = gb_product(two_pass->n_reduced, two_pass->reduced, two_pass->dims);
    two_pass->block = choose_block(two_pass);
    int64_t all = gb_two_pass_size_of(two_pass, gb_two_pass_last_kept(two_pass)),
            inner = gb_two_pass_size_of(two_pass, gb_two_pass_last_reduced(two_pass));
    two_pass->items = gb_product(two_pass->n_kept, two_pass->kept, two_pass->dims);
    if (two_pass->items)
        two_pass->items = two_pass->items / all * gb_div_up(all, two_pass->block);
    two_pass->step = two_pass->columns ? GB_TWO_PASS_PIECE / two_pass->block : GB_TWO_PASS_PIECE;
    two_pass->step = gb_max_i64(1, gb_min_i64(two_pass->step, inner));
    two_pass->pieces = two_pass->n ? two_pass->n / inner * gb_div_up(inner, two_pass->step) : 0;
    choose_segments(two_pass);
    step->thread_scratch = ((GB_TWO_PASS_VALUES + 2 * GB_TWO_PASS_SUMS) * GB_TWO_PASS_MOST_KEPT +
                                   (GB_TWO_PASS_INPUTS + 1) * GB_TWO_PASS_PIECE) *
                           sizeof(float);
    step->shared_scratch = shared_elements(two_pass) * sizeof(float);
    step->n_phases = 1;
    if (two_pass->cross)
        step->n_phases = 2;
    else if (two_pass->splits > 1 && gb_two_pass_reduces(two_pass))
        step->n_phases = gb_two_pass_applies(two_pass) ? 3 : 2;
}

static void set_view(const gb_logical_tensor *tensor, gb_two_pass_view *view)
{
    view->type = tensor->data_type;
    memset(view->strides, 0, sizeof view->strides);
    memcpy(view->strides, tensor->strides, (size_t)tensor->ndims * sizeof *view->strides);
}

gb_status gb_two_pass_use(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_two_pass_view *view)
{
    set_view(&gb_program_graph(program)->values[value].tensor, view);
    return gb_program_use(program, step, value, written, &view->slot);
}

gb_status gb_two_pass_use_whole(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_two_pass_view *view)
{
    set_view(&gb_program_graph(program)->values[value].tensor, view);
    return gb_program_use_elementwise(program, step, value, written, &view->slot);
}
