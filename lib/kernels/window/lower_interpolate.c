/* Lowers Interpolate and InterpolateBackward. Both gather: an element is the weighted sum of a few
 * elements of the source, by a table of taps per axis. Vectors lie across the channels, or along
 * the width: then the rows that a row needs are joined first, and the line that they make is
 * resampled. So are rows across channels that lie side by side, where a line of them fits a cache.
 * Nearest elements that are stored as they are are copied, or picked along the width. Small planes are lines, too: height and
 * width have one table of taps. Where results have more rows than the source, its rows are resampled along
 * the width first.
 */
#include "base/memory.h"
#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/window/interpolate.h"

enum {
    HEIGHT = GB_RESAMPLE_HEIGHT,
    WIDTH = GB_RESAMPLE_WIDTH,
    AXES = GB_RESAMPLE_AXES,
    JOINED_CHANNELS = 512,  /* at most */
    LONGEST_LINE = 1 << 15, /* elements of a line with all channels */
    NARROW_PLANE = 28,      /* elements of a row at most, where a plane is a line */
    PLANE_TAPS = 1 << 13    /* of all its positions */
};

/* Are nearest elements stored as they are, side by side along the dim on both sides? */
static bool copies(const gb_interpolation *plan, int dim)
{
    const gb_resample_problem *problem = &plan->problem;
    return problem->nearest && !problem->gradient && problem->src.strides[dim] == 1 &&
           gb_epilogue_copies(&problem->pointwise, dim, problem->src.type);
}

/* Is each picked element stored twice, in work items as well, which begin at even positions? */
static bool is_doubled(const gb_resample_taps *taps)
{
    if (taps->taps != 1 || taps->count % 2)
        return false;
    for (int64_t i = 0; i < taps->count; i++)
        if (taps->index[i] != i / 2)
            return false;
    return true;
}

/* Do positions lie one behind the other with all their channels, in lines that fit a cache? */
static bool joins(const gb_interpolation *plan)
{
    const gb_resample_problem *problem = &plan->problem;
    const int64_t *strides = problem->src.strides;
    int64_t channels = problem->pointwise.dims[problem->channel_dim];
    return strides[problem->channel_dim] == 1 && strides[problem->axes[WIDTH].dim] == channels &&
           channels <= JOINED_CHANNELS && channels * problem->axes[WIDTH].size <= LONGEST_LINE;
}

/* Are planes small, and the source's without gaps, so that one table of taps makes a plane of another? */
static bool is_planar(const gb_interpolation *plan)
{
    const gb_resample_problem *problem = &plan->problem;
    const gb_resample_axis *height = &problem->axes[HEIGHT], *width = &problem->axes[WIDTH];
    const int64_t *strides = problem->src.strides;
    return height->dim >= 0 && plan->row_dim == height->dim && plan->rows == height->taps.count &&
           plan->cols == width->taps.count && plan->cols <= NARROW_PLANE &&
           strides[width->dim] == 1 && strides[height->dim] == width->size &&
           height->size * width->size <= PLANE_TAPS &&
           height->taps.taps * width->taps.taps * plan->rows * plan->cols <= PLANE_TAPS;
}

/* Along the width elements are looked up, which takes longest: of the source rows of a work item, or of each of its
 * rows. Rows that are needed together must be neighbours. */
static bool widening_pays(const gb_interpolation *plan)
{
    const gb_resample_axis *height = &plan->problem.axes[HEIGHT];
    const gb_resample_taps *taps = &height->taps;
    if (height->dim < 0 || taps->taps > GB_INTERPOLATE_HELD_ROWS ||
            plan->rows * height->size >= (plan->rows - 1) * taps->count)
        return false;
    for (int64_t i = 0; i < taps->count && taps->taps == 2; i++) {
        int64_t apart = taps->index[taps->pitch + i] - taps->index[i];
        if (taps->weight[i] != 0 && taps->weight[taps->pitch + i] != 0 && (apart < -1 || apart > 1))
            return false;
    }
    return true;
}

static void choose_items(gb_interpolation *plan)
{
    const gb_resample_problem *problem = &plan->problem;
    const int64_t *dims = problem->pointwise.dims, *strides = problem->src.strides;
    int channel = problem->channel_dim;
    int height = problem->axes[HEIGHT].dim, width = problem->axes[WIDTH].dim;
    int64_t across = strides[channel], along = strides[width];
    const bool channels = dims[channel] > 1 && across > 0 && (across < along || along == 0);
    plan->col_dim = channels ? channel : width;
    plan->row_dim = channels ? width : height >= 0 ? height : channel;
    const bool stored = gb_epilogue_stores(&problem->pointwise, plan->col_dim);
    const int64_t most = stored ? GB_STORED_ELEMENTS : GB_TILE_ELEMENTS;
    plan->cols = gb_min_i64(dims[plan->col_dim], most);
    plan->rows = 1;
    if (plan->cols == dims[plan->col_dim])
        plan->rows = gb_min_i64(dims[plan->row_dim], most / plan->cols);
    if (channels)
        plan->way = copies(plan, channel) ? GB_INTERPOLATE_COPIED
                    : joins(plan)         ? GB_INTERPOLATE_JOINED
                                          : GB_INTERPOLATE_CHANNELS;
    else
        plan->way = copies(plan, width)   ? GB_INTERPOLATE_PICKED
                    : is_planar(plan)     ? GB_INTERPOLATE_PLANAR
                    : widening_pays(plan) ? GB_INTERPOLATE_WIDENED
                                          : GB_INTERPOLATE_ROWS;
    plan->doubled = is_doubled(&problem->axes[WIDTH].taps);
    plan->streams = plan->way == GB_INTERPOLATE_JOINED &&
                    (size_t)dims[channel] * sizeof(float) % GB_CACHE_LINE == 0;
    plan->items = 1;
    for (int d = 0; d < problem->pointwise.ndims; d++)
        plan->items *= gb_div_up(dims[d], gb_interpolation_step(plan, d));
}

/* The taps of positions in a plane: each of the height with each of the width. */
static gb_status join_taps(gb_step *step, gb_interpolation *plan)
{
    const gb_resample_taps *height = &plan->problem.axes[HEIGHT].taps;
    const gb_resample_taps *width = &plan->problem.axes[WIDTH].taps;
    const int64_t count = height->count * width->count, taps = height->taps * width->taps;
    int32_t *index = gb_step_alloc(step, (size_t)(count * taps), sizeof *index);
    float *weight = gb_step_alloc(step, (size_t)(count * taps), sizeof *weight);
    if (!index || !weight)
        return GB_OUT_OF_MEMORY;
    plan->plane = (gb_resample_taps){taps, count, count, index, weight};
    for (int64_t i = 0; i < height->taps; i++)
        for (int64_t j = 0; j < width->taps; j++)
            for (int64_t y = 0; y < height->count; y++)
                for (int64_t x = 0; x < width->count; x++) {
                    int64_t row = i * height->pitch + y, col = j * width->pitch + x;
                    *weight++ = height->weight[row] * width->weight[col];
                    *index++ = (int32_t)(height->index[row] * plan->problem.axes[WIDTH].size) +
                               width->index[col];
                }
    return GB_SUCCESS;
}

/* The elements of the line that taps read. */
static gb_line_range range_of(const gb_resample_taps *taps, int64_t size)
{
    gb_line_range range = {size, 0};
    for (int64_t t = 0; t < taps->taps; t++)
        for (int64_t i = 0; i < taps->count; i++) {
            int64_t index = taps->index[t * taps->pitch + i];
            if (taps->weight[t * taps->pitch + i] == 0)
                continue;
            range.begin = gb_min_i64(range.begin, index);
            range.end = gb_max_i64(range.end, index + 1);
        }
    range.begin = gb_min_i64(range.begin, range.end);
    return range;
}

/* `along` positions of the width are those of a work item. */
static gb_status find_ranges(gb_step *step, gb_interpolation *plan, int64_t along)
{
    const gb_resample_axis *width = &plan->problem.axes[WIDTH];
    int64_t count = width->taps.count;
    plan->ranges = gb_step_alloc(step, (size_t)gb_div_up(count, along), sizeof *plan->ranges);
    if (!plan->ranges)
        return GB_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count; i += along) {
        gb_resample_taps taps = gb_taps_part(&width->taps, i, gb_min_i64(along, count - i));
        plan->ranges[i / along] = range_of(&taps, width->size);
    }
    return GB_SUCCESS;
}

static gb_status interpolate_plan(gb_step *step, const gb_resample_problem *problem)
{
    gb_interpolation *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    step->params = plan;
    step->run = gb_interpolate_run;
    if (problem->axes[WIDTH].taps.count == 0)
        return GB_SUCCESS; /* no work items */
    choose_items(plan);
    plan->epilogue = gb_epilogue_add(step, &problem->pointwise);
    plan->results = gb_epilogue_room(step, &plan->epilogue, plan->rows * plan->cols);
    const int64_t width = problem->axes[WIDTH].size, height = problem->axes[HEIGHT].size;
    int64_t elements = 0; /* of the line */
    if (plan->way == GB_INTERPOLATE_PLANAR) {
        GB_TRY(join_taps(step, plan));
        elements = height * width;
    } else if (plan->way == GB_INTERPOLATE_JOINED) {
        GB_TRY(find_ranges(step, plan, plan->rows));
        elements = width * plan->cols + GB_RESAMPLE_SLACK;
    } else if (plan->way == GB_INTERPOLATE_WIDENED || plan->way == GB_INTERPOLATE_ROWS) {
        GB_TRY(find_ranges(step, plan, plan->cols));
        elements = width;
    }
    plan->line = gb_scratch_add(step, gb_float_bytes(elements));
    if (plan->way == GB_INTERPOLATE_WIDENED)
        plan->widened = gb_scratch_add(step, GB_INTERPOLATE_HELD_ROWS * gb_float_bytes(plan->cols));
    return GB_SUCCESS;
}

static double interpolate_work(const gb_op *op, const gb_resample_problem *problem)
{
    int64_t from = gb_tensor_count(gb_op_input(op, problem->gradient ? 1 : 0));
    int64_t to = gb_tensor_count(gb_op_output(op, 0));
    double taps = 1;
    for (int a = 0; a < AXES && !problem->nearest; a++)
        taps *= problem->axes[a].dim < 0 ? 1 : 2;
    return to == 0 ? 0 : 4 * taps * (double)gb_max_i64(from, to);
}

static gb_status interpolate_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_resample_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "interpolate", &step));
    GB_TRY(gb_resample_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_resample_problem_print, &problem));
    GB_TRY(interpolate_plan(step, &problem));
    step->work = interpolate_work(op, &problem);
    return gb_program_add(program, step);
}

/* Sizes may come as a tensor besides the attribute, which is what counts. */
static bool interpolate_supports(const gb_op *op, const char **reason)
{
    (void)op;
    (void)reason;
    return true;
}

const gb_lowering gb_lowering_interpolate = {.name = "interpolate",
        .supports = interpolate_supports,
        .takes_epilogue = true,
        .lower = interpolate_lower};
