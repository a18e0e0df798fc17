/* Planning two-pass kernels: work items, segments and pieces. */
#include "kernels/rowwise/two_pass_item.h"

#include "base/machine.h"
#include "base/memory.h"
#include "kernels/rowwise/kept_blocks.h"

enum {
    LEAST_COLUMNS = 32,         /* two lines of memory */
    TASKS = 32,                 /* that many suffice for any number of threads */
    SEGMENT_ELEMENTS = 1 << 14, /* a segment is no smaller */
    CONVERTED = 2048,           /* elements of rows that are converted once for both passes */
    MOST_CROSS = 1 << 22        /* elements of the groups' sums across */
};

/* Are inputs converted, which takes a buffer? */
static bool converts(const gb_two_pass_problem *problem)
{
    for (int i = 0; i < GB_TWO_PASS_INPUTS; i++)
        if (problem->in[i].type != GB_UNDEF && problem->in[i].type != GB_F32)
            return true;
    return false;
}

/* Work items of rows stay in L2, a few of them at a time; columns one by one. Rows that are converted stay in the
 * buffers for that, if they fit. */
static int64_t choose_block(const gb_two_pass *two_pass)
{
    const gb_reduced_space *space = &two_pass->problem->space;
    int64_t l2 = (int64_t)(gb_machine_get()->l2_bytes / sizeof(float));
    int64_t n = gb_max_i64(space->n, 1), block;
    if (two_pass->columns) {
        block = l2 / 2 / n / LEAST_COLUMNS * LEAST_COLUMNS;
        if (block < LEAST_COLUMNS) /* too long for the cache anyway */
            block = GB_TWO_PASS_MOST_KEPT;
    } else {
        int64_t total = gb_product(space->n_kept, space->kept, space->dims);
        block = gb_min_i64(l2 * 3 / 16 / n, gb_div_up(total, TASKS));
        if (converts(two_pass->problem) && n <= CONVERTED)
            block = gb_min_i64(block, CONVERTED / n);
    }
    int64_t all = gb_reduced_space_size(space, gb_last_kept(space));
    return gb_max_i64(1, gb_min_i64(gb_min_i64(block, GB_TWO_PASS_MOST_KEPT), all));
}

static void choose_segments(gb_two_pass *two_pass)
{
    two_pass->splits = two_pass->groups = 1;
    if (two_pass->problem->cross) {
        int64_t room = MOST_CROSS / gb_max_i64(two_pass->problem->space.n, 1);
        two_pass->groups = gb_max_i64(1, gb_min_i64(gb_min_i64(two_pass->items, TASKS), room));
    } else if (two_pass->items > 0 && two_pass->items < TASKS) {
        int64_t worth = two_pass->problem->space.n / gb_div_up(SEGMENT_ELEMENTS, two_pass->block);
        int64_t wanted = gb_min_i64(gb_div_up(TASKS, two_pass->items), worth);
        two_pass->splits = gb_max_i64(1, gb_min_i64(wanted, two_pass->pieces));
    }
}

static size_t shared_elements(const gb_two_pass *two_pass)
{
    if (two_pass->problem->cross)
        return (size_t)(two_pass->groups * two_pass->problem->space.n) * GB_TWO_PASS_SUMS;
    if (two_pass->splits == 1)
        return 0;
    return (size_t)(two_pass->items * (two_pass->splits + 1) * two_pass->block) * GB_TWO_PASS_SUMS;
}

static void add_scratch(gb_step *step, gb_two_pass *two_pass)
{
    size_t row = gb_float_bytes(GB_TWO_PASS_MOST_KEPT);
    two_pass->params = gb_scratch_add(step, GB_TWO_PASS_VALUES * row);
    two_pass->sums = gb_scratch_add(step, GB_TWO_PASS_SUMS * row);
    two_pass->parts = gb_scratch_add(step, GB_TWO_PASS_SUMS * row);
    two_pass->buffers =
            gb_scratch_add(step, (GB_TWO_PASS_INPUTS + 1) * gb_float_bytes(GB_TWO_PASS_PIECE));
    step->shared_scratch = shared_elements(two_pass) * sizeof(float);
}

gb_two_pass gb_two_pass_make(gb_step *step, const gb_two_pass_problem *problem)
{
    const gb_reduced_space *space = &problem->space;
    gb_two_pass made = {.problem = problem, .columns = gb_reduces_columns(space)};
    gb_two_pass *two_pass = &made;
    two_pass->block = choose_block(two_pass);
    double elements = (double)space->n;
    for (int i = 0; i < space->n_kept; i++)
        elements *= (double)space->dims[space->kept[i]];
    two_pass->far = problem->in[0].type == GB_F32 && gb_is_far(elements * sizeof(float));
    int64_t inner = gb_reduced_space_size(space, gb_last_reduced(space));
    two_pass->items = gb_kept_blocks(space, two_pass->block);
    two_pass->step = two_pass->columns ? GB_TWO_PASS_PIECE / two_pass->block : GB_TWO_PASS_PIECE;
    two_pass->step = gb_max_i64(1, gb_min_i64(two_pass->step, inner));
    two_pass->pieces = space->n ? space->n / inner * gb_div_up(inner, two_pass->step) : 0;
    choose_segments(two_pass);
    int64_t across = two_pass->columns ? inner : two_pass->block;
    int64_t tile = across * (two_pass->columns ? two_pass->block : inner);
    two_pass->one_tile =
            two_pass->pieces == 1 && two_pass->splits == 1 && tile <= GB_TWO_PASS_PIECE;
    add_scratch(step, two_pass);
    step->n_phases = 1;
    if (problem->cross)
        step->n_phases = 2;
    else if (two_pass->splits > 1 && gb_two_pass_reduces(two_pass))
        step->n_phases = gb_two_pass_applies(two_pass) ? 3 : 2;
    return made;
}
