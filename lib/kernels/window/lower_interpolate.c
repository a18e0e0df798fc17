/* Lowers Interpolate and InterpolateBackward. Both gather: an element is the weighted sum of a few
 * elements of the source, by a table of taps per axis. Vectors lie across the channels, or along
 * the width: then the rows that a row needs are joined first, and the line that they make is
 * resampled. So are rows across channels that lie side by side, where a line of them fits a cache.
 * Nearest elements with their channels side by side are copied. Small planes are lines, too: height and
 * width have one table of taps. Where results have more rows than the source, its rows are resampled along
 * the width first.
 */
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/plan/resample_problem.h"
#include "kernels/rowwise/epilogue.h"

#include <string.h>

enum {
    DEPTH = GB_RESAMPLE_DEPTH,
    HEIGHT = GB_RESAMPLE_HEIGHT,
    WIDTH = GB_RESAMPLE_WIDTH,
    AXES = GB_RESAMPLE_AXES,
    JOINED_CHANNELS = 512,  /* at most */
    LONGEST_LINE = 1 << 15, /* elements of a line with all channels */
    NARROW_PLANE = 28,      /* elements of a row at most, where a plane is a line */
    PLANE_TAPS = 1 << 13,   /* of all its positions */
    HELD_ROWS = 2           /* and taps of the height, where rows are widened */
};

/* Elements begin .. end - 1 of a line. */
typedef struct line_range {
    int64_t begin, end;
} line_range;

typedef enum interpolation_way {
    /* vectors across the channels */
    COPIED,   /* channels of the nearest position as they are */
    JOINED,   /* of lines whose positions have all channels; rows are joined first */
    CHANNELS, /* each position is a sum of its own */
    /* along the width */
    PLANAR,  /* a work item is a plane of height and width */
    WIDENED, /* rows are resampled along the width first, then added up */
    ROWS     /* rows are added up first */
} interpolation_way;

typedef struct interpolation {
    gb_resample_problem problem;
    interpolation_way way;
    bool streams;         /* joined lines whose positions are whole lines of the caches */
    int row_dim, col_dim; /* a work item is rows x cols of these; row_dim may be -1 */
    int64_t rows, cols, items;
    gb_epilogue epilogue;
    gb_scratch results;     /* of a work item; register 0 where more is done with them */
    gb_scratch line;        /* along the width, or joined */
    gb_scratch widened;     /* HELD_ROWS rows of the source at the width of a work item */
    line_range *ranges;     /* that the taps of a work item read, for each step along the width */
    gb_resample_taps plane; /* of a position in a plane of the source */
} interpolation;

static int64_t interpolate_stride_of(const interpolation *params, int axis)
{
    return gb_operand_stride(&params->problem.src, params->problem.axes[axis].dim);
}

static int64_t position_of(const interpolation *params, int axis, const int64_t *position)
{
    int dim = params->problem.axes[axis].dim;
    return dim < 0 ? 0 : position[dim];
}

/* The taps of `count` positions from `first` on. */
static gb_resample_taps slice(const gb_resample_taps *taps, int64_t first, int64_t count)
{
    gb_resample_taps part = *taps;
    part.index += first;
    part.weight += first;
    part.count = count;
    return part;
}

/* Source element of a position along batch and channels. */
static const char *source(
        const interpolation *params, const gb_step_call *call, const int64_t *position)
{
    const gb_resample_axis *axes = params->problem.axes;
    const gb_operand *src = &params->problem.src;
    int64_t offset = 0;
    for (int d = 0; d < params->problem.pointwise.ndims; d++)
        if (d != axes[DEPTH].dim && d != axes[HEIGHT].dim && d != axes[WIDTH].dim)
            offset += position[d] * src->strides[d];
    const char *data = call->buffers[src->slot];
    return data + offset * (int64_t)gb_data_type_bytes(src->type, 1);
}

typedef void rows_fn(const interpolation *params, const gb_resample_rows *rows, void *context);

/* Source rows of position `at` along the height, each from element `first` on. */
typedef struct row_list {
    const gb_resample_taps *height;
    int64_t at, first;
} row_list;

/* The list of row h itself; that of row 0 is a plane where no row ends before the next begins. */
static row_list row_itself(const interpolation *params, int64_t h, int64_t first)
{
    static const int32_t none = 0;
    static const float one = 1;
    static const gb_resample_taps itself = {.taps = 1, .count = 1, .index = &none, .weight = &one};
    int64_t along = params->problem.src.strides[params->col_dim];
    return (row_list){
            .height = &itself, .first = first * along + h * interpolate_stride_of(params, HEIGHT)};
}

static row_list rows_of(const interpolation *params, const int64_t *position, int64_t first)
{
    return (row_list){.height = &params->problem.axes[HEIGHT].taps,
            .at = position_of(params, HEIGHT, position),
            .first = first * params->problem.src.strides[params->col_dim]};
}

/* Lists the source rows, times those of the position's depth, and visits them in portions; an empty portion at
 * least. */
static void for_rows(const interpolation *params, const gb_step_call *call, const int64_t *position,
        row_list list, rows_fn *visit, void *context)
{
    const gb_resample_taps *depth = &params->problem.axes[DEPTH].taps, *height = list.height;
    int64_t d = position_of(params, DEPTH, position);
    int64_t size = (int64_t)gb_data_type_bytes(params->problem.src.type, 1);
    gb_resample_rows rows; /* of which as much is written as is read */
    rows.type = params->problem.src.type;
    rows.stride = params->problem.src.strides[params->col_dim];
    rows.add = false;
    rows.n = 0;
    const char *base = source(params, call, position) + list.first * size;
    for (int64_t i = 0; i < depth->taps; i++)
        for (int64_t j = 0; j < height->taps; j++) {
            int64_t a = i * depth->pitch + d, b = j * height->pitch + list.at;
            float weight = depth->weight[a] * height->weight[b];
            if (depth->weight[a] == 0 || height->weight[b] == 0)
                continue;
            if (rows.n == GB_RESAMPLE_ROWS) {
                visit(params, &rows, context);
                rows.add = true;
                rows.n = 0;
            }
            int64_t offset = depth->index[a] * interpolate_stride_of(params, DEPTH) +
                             height->index[b] * interpolate_stride_of(params, HEIGHT);
            rows.src[rows.n] = base + offset * size;
            rows.weight[rows.n++] = weight;
        }
    if (rows.n || !rows.add)
        visit(params, &rows, context);
}

typedef struct channel_block {
    gb_resample_taps taps;
    int64_t cols;
    float *dst;
} channel_block;

static void visit_channels(const interpolation *params, const gb_resample_rows *rows, void *context)
{
    const channel_block *block = context;
    gb_kernels_get()->resample_positions(
            rows, &block->taps, interpolate_stride_of(params, WIDTH), block->cols, block->dst);
}

typedef struct line_block {
    line_range range; /* that is needed of the line */
    float *line;
    const float *direct; /* the source itself, where it is the line */
} line_block;

static void visit_line(const interpolation *params, const gb_resample_rows *rows, void *context)
{
    line_block *block = context;
    const int64_t begin = block->range.begin, length = block->range.end - begin;
    bool plain = rows->n == 1 && rows->weight[0] == 1 && !rows->add && params->way != JOINED;
    if (plain && rows->stride == 1 && params->problem.src.type == GB_F32)
        block->direct = (const float *)(const void *)rows->src[0] - begin;
    else
        gb_kernels_get()->resample_rows(rows, length, block->line + begin);
}

/* rows x cols results of positions with all channels. */
static void run_joined(const interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols, float *dst, bool streamed)
{
    int64_t first = position_of(params, WIDTH, position);
    gb_resample_taps taps = slice(&params->problem.axes[WIDTH].taps, first, rows);
    line_block block = {.range = params->ranges[first / params->rows],
            .line = gb_scratch_get(call, params->line)};
    block.range.begin *= cols;
    block.range.end *= cols;
    for_rows(params, call, position, rows_of(params, position, block.range.begin), visit_line,
            &block);
    gb_kernels_get()->resample_joined(&taps, block.line, cols, dst, streamed);
}

/* rows x cols nearest elements at `position`, to the tensor. */
static void run_copied(const interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols)
{
    const gb_pointwise_program *pointwise = &params->problem.pointwise;
    const gb_resample_axis *axes = params->problem.axes;
    gb_pointwise_view *view = gb_scratch_get(call, params->epilogue.views);
    gb_pointwise_views(pointwise, call->buffers, position, params->row_dim, params->col_dim, view);
    view += pointwise->instructions[0].operand;
    const int64_t size = (int64_t)gb_data_type_bytes(params->problem.src.type, 1);
    int64_t depth = axes[DEPTH].taps.index[position_of(params, DEPTH, position)];
    int64_t height = axes[HEIGHT].taps.index[position_of(params, HEIGHT, position)];
    int64_t offset = depth * interpolate_stride_of(params, DEPTH) +
                     height * interpolate_stride_of(params, HEIGHT);
    gb_kernels_get()->resample_copies(axes[WIDTH].taps.index + position_of(params, WIDTH, position),
            rows, source(params, call, position) + offset * size,
            interpolate_stride_of(params, WIDTH) * size, view->data, view->row_stride * size,
            cols * size, view->streamed);
}

/* A plane of results at `position`, of lines that are planes of the source. */
static void run_plane(
        const interpolation *params, const gb_step_call *call, const int64_t *position, float *dst)
{
    const gb_resample_axis *axes = params->problem.axes;
    line_block block = {.range = {0, axes[HEIGHT].size * axes[WIDTH].size},
            .line = gb_scratch_get(call, params->line)};
    for_rows(params, call, position, row_itself(params, 0, 0), visit_line, &block);
    gb_kernels_get()->resample_line(&params->plane, block.direct ? block.direct : block.line, dst);
}

/* A row of the source at the width of the results. */
typedef struct wide_row {
    int64_t row; /* -1: none */
    const float *data;
} wide_row;

/* Row h of the source; what is not held is made, at `place`. */
static const float *widen(const interpolation *params, const gb_step_call *call,
        const int64_t *position, const gb_resample_taps *taps, line_block *block, int64_t h,
        wide_row *held, float *place)
{
    wide_row *row = &held[h % HELD_ROWS];
    if (row->row == h)
        return row->data;
    *row = (wide_row){h, place};
    block->direct = NULL;
    for_rows(params, call, position, row_itself(params, h, block->range.begin), visit_line, block);
    gb_kernels_get()->resample_line(taps, block->direct ? block->direct : block->line, place);
    return place;
}

/* Is position `at` one of the source? */
static bool is_copy(const gb_resample_taps *taps, int64_t at)
{
    int64_t n = 0, ones = 0;
    for (int64_t t = 0; t < taps->taps; t++) {
        n += taps->weight[t * taps->pitch + at] != 0;
        ones += taps->weight[t * taps->pitch + at] == 1;
    }
    return n == 1 && ones == 1;
}

/* rows x cols results at `position`: along the width first, which results of the same source rows have in common. */
static void run_widened(const interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols, float *dst)
{
    const gb_resample_taps *height = &params->problem.axes[HEIGHT].taps;
    int64_t first = position_of(params, WIDTH, position);
    gb_resample_taps taps = slice(&params->problem.axes[WIDTH].taps, first, cols);
    line_block block = {.range = params->ranges[first / params->cols],
            .line = gb_scratch_get(call, params->line)};
    float *room = gb_scratch_get(call, params->widened);
    wide_row held[HELD_ROWS];
    for (int i = 0; i < HELD_ROWS; i++)
        held[i].row = -1;
    for (int64_t r = 0; r < rows; r++, dst += cols) {
        const int64_t at = position_of(params, HEIGHT, position) + r;
        const bool copies = is_copy(height, at);
        gb_resample_rows sum = {.type = GB_F32, .stride = 1};
        for (int64_t t = 0; t < height->taps; t++) {
            int64_t h = height->index[t * height->pitch + at];
            float weight = height->weight[t * height->pitch + at];
            if (weight == 0)
                continue;
            /* a result that is a row of its own holds it for those that follow */
            float *place = copies ? dst : room + h % HELD_ROWS * cols;
            sum.weight[sum.n] = weight;
            sum.src[sum.n++] =
                    (const char *)widen(params, call, position, &taps, &block, h, held, place);
        }
        if (!copies)
            gb_kernels_get()->resample_rows(&sum, cols, dst);
        else if (sum.src[0] != (const char *)dst)
            memcpy(dst, sum.src[0], (size_t)cols * sizeof *dst);
    }
}

/* rows x cols results of positions with channels. */
static void run_channels(const interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols, float *dst)
{
    int64_t first = position_of(params, WIDTH, position);
    channel_block block = {slice(&params->problem.axes[WIDTH].taps, first, rows), cols, dst};
    for_rows(params, call, position, rows_of(params, position, 0), visit_channels, &block);
}

/* rows x cols results at `position`, each row from a sum of rows. */
static void run_rows(const interpolation *params, const gb_step_call *call, const int64_t *position,
        int64_t rows, int64_t cols, float *dst)
{
    int64_t first = position_of(params, WIDTH, position), at[GB_AXES];
    memcpy(at, position, sizeof at);
    gb_resample_taps taps = slice(&params->problem.axes[WIDTH].taps, first, cols);
    line_block block = {.range = params->ranges[first / params->cols],
            .line = gb_scratch_get(call, params->line)};
    for (int64_t r = 0; r < rows; r++, dst += cols) {
        block.direct = NULL;
        for_rows(params, call, at, rows_of(params, at, block.range.begin), visit_line, &block);
        gb_kernels_get()->resample_line(&taps, block.direct ? block.direct : block.line, dst);
        if (params->row_dim >= 0)
            at[params->row_dim]++;
    }
}

/* Begin and length of a work item along a dim. */
static int64_t unit_step(const interpolation *params, int dim)
{
    return dim == params->col_dim ? params->cols : dim == params->row_dim ? params->rows : 1;
}

static void interpolate_run(const gb_step_call *call)
{
    const interpolation *params = call->params;
    const gb_pointwise_program *pointwise = &params->problem.pointwise;
    int64_t begin, end;
    while (gb_take_items(call, params->items, &begin, &end))
        for (int64_t item = begin; item < end; item++) {
            int64_t position[GB_AXES] = {0}, count[GB_AXES], rest = item;
            for (int d = pointwise->ndims; d-- > 0;) {
                int64_t step = unit_step(params, d), steps = gb_div_up(pointwise->dims[d], step);
                position[d] = rest % steps * step;
                count[d] = gb_min_i64(step, pointwise->dims[d] - position[d]);
                rest /= steps;
            }
            int64_t rows = params->row_dim < 0 ? 1 : count[params->row_dim];
            int64_t cols = count[params->col_dim];
            if (params->way == COPIED) {
                run_copied(params, call, position, rows, cols);
                continue;
            }
            float *results = gb_scratch_get(call, params->results);
            bool streamed = false;
            float *dst = gb_epilogue_place(&params->epilogue, pointwise, call, position,
                    params->row_dim, params->col_dim, rows, cols, results,
                    params->streams ? &streamed : NULL);
            if (params->way == JOINED)
                run_joined(params, call, position, rows, cols, dst, streamed);
            else if (params->way == CHANNELS)
                run_channels(params, call, position, rows, cols, dst);
            else if (params->way == PLANAR)
                run_plane(params, call, position, dst);
            else if (params->way == WIDENED)
                run_widened(params, call, position, rows, cols, dst);
            else
                run_rows(params, call, position, rows, cols, dst);
            if (dst == results)
                gb_epilogue_run(&params->epilogue, pointwise, call, position, params->row_dim,
                        params->col_dim, rows, cols, results);
        }
}

/* Planning ------------------------------------------------------------------------------------- */

/* Are positions copied as they are, with their channels side by side on both sides? */
static bool copies(const interpolation *plan)
{
    const gb_resample_problem *problem = &plan->problem;
    const int channel = problem->channel_dim;
    const gb_pointwise_program *pointwise = &problem->pointwise;
    const gb_pointwise_instruction *first = &pointwise->instructions[0];
    return problem->nearest && !problem->gradient && problem->src.strides[channel] == 1 &&
           gb_epilogue_stores(pointwise, channel) && first->opcode == GB_POINTWISE_STORE &&
           pointwise->operands[first->operand].type == problem->src.type;
}

/* Do positions lie one behind the other with all their channels, in lines that fit a cache? */
static bool joins(const interpolation *plan)
{
    const gb_resample_problem *problem = &plan->problem;
    const int64_t *strides = problem->src.strides;
    int64_t channels = problem->pointwise.dims[problem->channel_dim];
    return strides[problem->channel_dim] == 1 && strides[problem->axes[WIDTH].dim] == channels &&
           channels <= JOINED_CHANNELS && channels * problem->axes[WIDTH].size <= LONGEST_LINE;
}

/* Are planes small, and the source's without gaps, so that one table of taps makes a plane of another? */
static bool is_planar(const interpolation *plan)
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
static bool widening_pays(const interpolation *plan)
{
    const gb_resample_axis *height = &plan->problem.axes[HEIGHT];
    const gb_resample_taps *taps = &height->taps;
    if (height->dim < 0 || taps->taps > HELD_ROWS ||
            plan->rows * height->size >= (plan->rows - 1) * taps->count)
        return false;
    for (int64_t i = 0; i < taps->count && taps->taps == 2; i++) {
        int64_t apart = taps->index[taps->pitch + i] - taps->index[i];
        if (taps->weight[i] != 0 && taps->weight[taps->pitch + i] != 0 && (apart < -1 || apart > 1))
            return false;
    }
    return true;
}

static void choose_items(interpolation *plan)
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
        plan->way = copies(plan) ? COPIED : joins(plan) ? JOINED : CHANNELS;
    else
        plan->way = is_planar(plan) ? PLANAR : widening_pays(plan) ? WIDENED : ROWS;
    plan->streams =
            plan->way == JOINED && (size_t)dims[channel] * sizeof(float) % GB_CACHE_LINE == 0;
    plan->items = 1;
    for (int d = 0; d < problem->pointwise.ndims; d++)
        plan->items *= gb_div_up(dims[d], unit_step(plan, d));
}

/* The taps of positions in a plane: each of the height with each of the width. */
static gb_status join_taps(gb_step *step, interpolation *plan)
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
static line_range range_of(const gb_resample_taps *taps, int64_t size)
{
    line_range range = {size, 0};
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
static gb_status find_ranges(gb_step *step, interpolation *plan, int64_t along)
{
    const gb_resample_axis *width = &plan->problem.axes[WIDTH];
    int64_t count = width->taps.count;
    plan->ranges = gb_step_alloc(step, (size_t)gb_div_up(count, along), sizeof *plan->ranges);
    if (!plan->ranges)
        return GB_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count; i += along) {
        gb_resample_taps taps = slice(&width->taps, i, gb_min_i64(along, count - i));
        plan->ranges[i / along] = range_of(&taps, width->size);
    }
    return GB_SUCCESS;
}

static gb_status interpolate_plan(gb_step *step, const gb_resample_problem *problem)
{
    interpolation *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    step->params = plan;
    step->run = interpolate_run;
    if (problem->axes[WIDTH].taps.count == 0)
        return GB_SUCCESS; /* no work items */
    choose_items(plan);
    plan->epilogue = gb_epilogue_add(step, &problem->pointwise);
    plan->results = gb_epilogue_room(step, &plan->epilogue, plan->rows * plan->cols);
    const int64_t width = problem->axes[WIDTH].size, height = problem->axes[HEIGHT].size;
    int64_t elements = 0; /* of the line */
    if (plan->way == PLANAR) {
        GB_TRY(join_taps(step, plan));
        elements = height * width;
    } else if (plan->way == JOINED) {
        GB_TRY(find_ranges(step, plan, plan->rows));
        elements = width * plan->cols + GB_RESAMPLE_SLACK;
    } else if (plan->way == WIDENED || plan->way == ROWS) {
        GB_TRY(find_ranges(step, plan, plan->cols));
        elements = width;
    }
    plan->line = gb_scratch_add(step, gb_float_bytes(elements));
    if (plan->way == WIDENED)
        plan->widened = gb_scratch_add(step, HELD_ROWS * gb_float_bytes(plan->cols));
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
