/* Planning sweeps: units, segments and pieces. */
#include "kernels/rowwise/sweep_unit.h"

#include "base/memory.h"
#include "base/parallel.h"

#include <string.h>

enum {
    LEAST_COLUMNS = 32,         /* two lines of memory */
    UNIT_ROWS = 24 * 1024,      /* elements of a unit of rows: a few of them stay in L2 */
    UNIT_COLUMNS = 64 * 1024,   /* elements of a unit of columns */
    TASKS = 32,                 /* that many suffice for any number of threads */
    SEGMENT_ELEMENTS = 1 << 14, /* a segment is no smaller */
    MOST_CROSS = 1 << 22        /* elements of the groups' sums across */
};

static int64_t choose_block(const gb_sweep *sweep)
{
    int64_t n = gb_max_i64(sweep->n, 1), all = gb_sweep_size_of(sweep, gb_sweep_last_kept(sweep)),
            block;
    int64_t total = gb_product(sweep->n_kept, sweep->kept, sweep->dims);
    if (sweep->columns) {
        block = UNIT_COLUMNS / n / LEAST_COLUMNS * LEAST_COLUMNS;
        if (block < LEAST_COLUMNS) /* too long for the cache anyway */
            block = GB_SWEEP_MOST_KEPT;
    } else {
        block = gb_min_i64(UNIT_ROWS / n, gb_div_up(total, TASKS));
    }
    return gb_max_i64(1, gb_min_i64(gb_min_i64(block, GB_SWEEP_MOST_KEPT), all));
}

static void choose_segments(gb_sweep *sweep)
{
    sweep->segments = sweep->groups = 1;
    if (sweep->cross) {
        int64_t room = MOST_CROSS / gb_max_i64(sweep->n, 1);
        sweep->groups = gb_max_i64(1, gb_min_i64(gb_min_i64(sweep->units, TASKS), room));
    } else if (sweep->units > 0 && sweep->units < TASKS) {
        int64_t worth = sweep->n / gb_div_up(SEGMENT_ELEMENTS, sweep->block);
        int64_t wanted = gb_min_i64(gb_div_up(TASKS, sweep->units), worth);
        sweep->segments = gb_max_i64(1, gb_min_i64(wanted, sweep->pieces));
    }
}

static void list_dims(gb_sweep *sweep, const gb_space *space)
{
    sweep->ndims = space->ndims;
    memcpy(sweep->dims, space->dims, sizeof sweep->dims);
    for (int d = 0; d < space->ndims; d++) {
        if (space->roles[d] == GB_SWEEP_REDUCED)
            sweep->reduced[sweep->n_reduced++] = (uint8_t)d;
        else
            sweep->kept[sweep->n_kept++] = (uint8_t)d;
    }
    sweep->columns = space->ndims && space->roles[space->ndims - 1] == GB_SWEEP_KEPT;
}

static size_t shared_elements(const gb_sweep *sweep)
{
    if (sweep->cross)
        return (size_t)(sweep->groups * sweep->n) * GB_SWEEP_SUMS;
    if (sweep->segments == 1)
        return 0;
    return (size_t)(sweep->units * (sweep->segments + 1) * sweep->block) * GB_SWEEP_SUMS;
}

void gb_sweep_init(gb_sweep *sweep, gb_space *space, gb_step *step)
{
    gb_space_normalize(space);
    list_dims(sweep, space);
    sweep->n = gb_product(sweep->n_reduced, sweep->reduced, sweep->dims);
    sweep->block = choose_block(sweep);
    int64_t all = gb_sweep_size_of(sweep, gb_sweep_last_kept(sweep)),
            inner = gb_sweep_size_of(sweep, gb_sweep_last_reduced(sweep));
    sweep->units = gb_product(sweep->n_kept, sweep->kept, sweep->dims);
    if (sweep->units)
        sweep->units = sweep->units / all * gb_div_up(all, sweep->block);
    sweep->step = sweep->columns ? GB_SWEEP_PIECE / sweep->block : GB_SWEEP_PIECE;
    sweep->step = gb_max_i64(1, gb_min_i64(sweep->step, inner));
    sweep->pieces = sweep->n ? sweep->n / inner * gb_div_up(inner, sweep->step) : 0;
    choose_segments(sweep);
    step->thread_scratch = ((GB_SWEEP_VALUES + 2 * GB_SWEEP_SUMS) * GB_SWEEP_MOST_KEPT +
                                   (GB_SWEEP_INPUTS + 1) * GB_SWEEP_PIECE) *
                           sizeof(float);
    step->shared_scratch = shared_elements(sweep) * sizeof(float);
    step->n_phases = 1;
    if (sweep->cross)
        step->n_phases = 2;
    else if (sweep->segments > 1 && gb_sweep_folds(sweep))
        step->n_phases = gb_sweep_applies(sweep) ? 3 : 2;
}

static void set_view(const gb_logical_tensor *tensor, gb_sweep_view *view)
{
    view->type = tensor->data_type;
    memset(view->strides, 0, sizeof view->strides);
    memcpy(view->strides, tensor->strides, (size_t)tensor->ndims * sizeof *view->strides);
}

gb_status gb_sweep_use(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_sweep_view *view)
{
    set_view(&gb_program_graph(program)->values[value].tensor, view);
    return gb_program_use(program, step, value, written, &view->slot);
}

gb_status gb_sweep_use_whole(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_sweep_view *view)
{
    set_view(&gb_program_graph(program)->values[value].tensor, view);
    return gb_program_use_by_element(program, step, value, written, &view->slot);
}
