/* Pools, a work item at a time.
 *
 * Across channels: each output sums its cells vector by vector. Along the width: the rows of the
 * window are joined first into a line as wide as the work item's windows (padding included), then
 * the cells of the line; several lines lie behind each other so that both steps run over long
 * vectors.
 */
#include "kernels/window/pool.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"

#include <string.h>

enum {
    LINES = 4096,       /* elements of a buffer of lines */
    WIDEST = 2048,      /* wider windows are taken one output at a time */
    CELLS_TOGETHER = 4, /* of a line that are gathered at once */
    FEW_CHANNELS = 8    /* fewer are not worth vectors across them */
};

/* Cells *begin..*end-1 of the windows at positions first..last that may lie in the image; of one
 * window, those that do. */
static void cells_inside(
        const gb_pool_axis *axis, int64_t first, int64_t last, int64_t *begin, int64_t *end)
{
    int64_t before = axis->pad_begin - last * axis->stride;
    int64_t room = axis->in + axis->pad_begin - first * axis->stride;
    before = gb_max_i64(before, 0);
    room = gb_max_i64(room, 0);
    if (axis->dilation > 1) {
        before = gb_div_up(before, axis->dilation);
        room = gb_div_up(room, axis->dilation);
    }
    *begin = before;
    *end = gb_max_i64(before, gb_min_i64(axis->kernel, room));
}

static int64_t cell_stride(const gb_pool *plan, const gb_pool_axis *axis)
{
    return gb_operand_stride(&plan->problem.src, axis->dim);
}

/* Planning ------------------------------------------------------------------------------------- */

static void pool_choose_channels(gb_pool *plan)
{
    const gb_pool_axis *width = &plan->problem.axes[GB_POOL_WIDTH];
    plan->col_dim = plan->problem.channel_dim;
    plan->row_dim = width->dim;
    const gb_pointwise_program *pointwise = &plan->problem.pointwise;
    bool stored = gb_epilogue_stores(pointwise, plan->col_dim);
    int64_t most = stored ? GB_STORED_ELEMENTS : GB_TILE_ELEMENTS;
    plan->cols = gb_min_i64(pointwise->dims[plan->col_dim], most);
    plan->rows = gb_min_i64(width->out, most / gb_max_i64(plan->cols, 1));
    plan->capacity = gb_max_i64(LINES, plan->cols);
}

static void choose_width(gb_pool *plan)
{
    const gb_pool_axis *width = &plan->problem.axes[GB_POOL_WIDTH],
                       *height = &plan->problem.axes[GB_POOL_HEIGHT];
    bool wide = gb_pool_extent(width) > WIDEST;
    plan->col_dim = width->dim;
    plan->capacity = wide ? gb_max_i64(width->in, LINES) : LINES;
    plan->cols = wide ? 1 : (LINES - gb_pool_extent(width)) / width->stride + 1;
    plan->cols = gb_min_i64(gb_min_i64(plan->cols, GB_TILE_ELEMENTS), width->out);
    plan->row_dim = height->out >= 16 ? height->dim : plan->problem.channel_dim;
    plan->rows = 1;
    if (wide || plan->cols < width->out || plan->cols == 0)
        return;
    int64_t line = (plan->cols - 1) * width->stride + gb_pool_extent(width);
    plan->pitch = gb_div_up(line, width->stride) * width->stride;
    int64_t rows = gb_min_i64(GB_TILE_ELEMENTS / plan->cols, LINES / plan->pitch);
    plan->rows = gb_max_i64(1, gb_min_i64(plan->problem.pointwise.dims[plan->row_dim], rows));
}

/* Along the width the lines bring their own offset. */
static void set_offsets(gb_pool *plan)
{
    for (int d = 0; d < plan->problem.pointwise.ndims; d++)
        plan->steps[d] = plan->problem.src.strides[d];
    for (int a = 0; a < GB_POOL_AXES; a++) {
        const gb_pool_axis *axis = &plan->problem.axes[a];
        if (axis->dim < 0)
            continue;
        bool line = a == GB_POOL_WIDTH && !plan->channels;
        plan->steps[axis->dim] = line ? 0 : axis->stride * cell_stride(plan, axis);
        plan->base -= line ? 0 : axis->pad_begin * cell_stride(plan, axis);
    }
}

/* Are the maxima of codes only stored, with their channels side by side? */
static bool stores_codes(const gb_pool *plan)
{
    const gb_data_type type = plan->problem.src.type;
    return plan->channels && !plan->problem.mean && (type == GB_S8 || type == GB_U8) &&
           gb_epilogue_copies(&plan->problem.pointwise, plan->col_dim, type);
}

static void choose_items(gb_pool *plan)
{
    int64_t stride = plan->problem.src.strides[plan->problem.channel_dim];
    plan->channels =
            stride == 1 && plan->problem.pointwise.dims[plan->problem.channel_dim] >= FEW_CHANNELS;
    (plan->channels ? pool_choose_channels : choose_width)(plan);
    plan->codes = stores_codes(plan);
    set_offsets(plan);
    plan->items = 1;
    for (int d = 0; d < plan->problem.pointwise.ndims; d++) {
        int64_t step = d == plan->col_dim ? plan->cols : d == plan->row_dim ? plan->rows : 1;
        plan->items *= step ? gb_div_up(plan->problem.pointwise.dims[d], step) : 0;
    }
}

static void add_scratch(gb_step *step, gb_pool *plan)
{
    size_t line = gb_float_bytes(plan->capacity), tile = gb_float_bytes(GB_TILE_ELEMENTS);
    plan->epilogue = gb_epilogue_add(step, &plan->problem.pointwise);
    plan->results = gb_epilogue_room(step, &plan->epilogue, plan->rows * plan->cols);
    plan->lines = gb_scratch_add(step, line);
    plan->sums = gb_scratch_add(step, line);
    plan->buffer = gb_scratch_add(step, line * (CELLS_TOGETHER + 1));
    if (!plan->problem.mean)
        return;
    plan->by_row = gb_scratch_add(step, gb_float_bytes(gb_max_i64(plan->rows, GB_TILE_ELEMENTS)));
    plan->by_col = gb_scratch_add(step, tile);
    plan->inside_col = gb_scratch_add(step, tile);
}

/* Running -------------------------------------------------------------------------------------- */

typedef struct item {
    const gb_pool *plan;
    const char *src;
    int64_t position[GB_AXES], rows, cols;
    float *result;  /* the plan's, or where they are stored */
    uint8_t *codes; /* in place of result */
    int64_t codes_row;
    int64_t sums_row;              /* elements from row to row of the sums */
    float *lines, *sums, *buffer;  /* capacity elements; the buffer CELLS_TOGETHER + 1 times that */
    int64_t counted, counted_from; /* columns that by_col is for */
    float *by_row, *by_col, *inside_col;
} item;

static void pool_fill(float *dst, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = value;
}

static int64_t axis_position(const gb_pool_axis *axis, const int64_t *position)
{
    return axis->dim < 0 ? 0 : position[axis->dim];
}

/* The window without its columns' strides: the kernel takes columns that lie next to each other in
 * a supported type. Others are loaded a few at a time. */
static void join_window(const item *u, gb_pool_window *window, int64_t offset, int64_t col_stride)
{
    const gb_kernels *kernels = gb_kernels_get();
    int64_t bytes = (int64_t)gb_data_type_bytes(window->type, 1);
    const char *src = u->src + offset * bytes;
    window->x = src;
    if (col_stride == 1) {
        kernels->pool_window(window);
        return;
    }
    const gb_reduce_kind kind = window->max ? GB_REDUCE_MAX : GB_REDUCE_SUM;
    float *part = u->buffer + u->plan->capacity;
    for (int64_t r = 0; r < window->rows; r++, src += window->x_row * bytes) {
        float *dst = window->dst + r * window->dst_row;
        int64_t cells = 0;
        pool_fill(dst, window->columns, window->start);
        pool_fill(part, window->columns, window->start);
        for (int64_t d = 0; d < window->counts[0]; d++)
            for (int64_t h = 0; h < window->counts[1]; h++)
                for (int64_t w = 0; w < window->counts[2]; w++) {
                    int64_t at = d * window->strides[0] + h * window->strides[1] +
                                 w * window->strides[2];
                    kernels->load_tile(window->type, src + at * bytes, 0, col_stride, 1,
                            window->columns, u->buffer);
                    kernels->reduce_columns(kind, u->buffer, 0, window->columns, 1, part);
                    if (++cells % GB_POOL_PORTION != 0)
                        continue;
                    kernels->reduce_columns(kind, part, 0, window->columns, 1, dst);
                    pool_fill(part, window->columns, window->start);
                }
        kernels->reduce_columns(kind, part, 0, window->columns, 1, dst);
    }
}

/* Sets counts and strides of an axis to the cells inside the image; gives the offset of the first
 * of them. */
static int64_t set_axis(const item *u, int a, gb_pool_window *window)
{
    const gb_pool_axis *axis = &u->plan->problem.axes[a];
    int64_t at = axis_position(axis, u->position), begin, end;
    cells_inside(axis, at, at, &begin, &end);
    window->counts[a] = end - begin;
    window->strides[a] = axis->dilation * cell_stride(u->plan, axis);
    return begin * window->strides[a];
}

/* Across channels: n output positions from row `first` of the item on, whose windows have the same cells. */
static void sum_cells(const item *u, int64_t n, int64_t first)
{
    const gb_pool *plan = u->plan;
    gb_pool_window window = {.type = plan->problem.src.type,
            .max = !plan->problem.mean,
            .rows = n,
            .columns = u->cols,
            .x_row = plan->steps[plan->row_dim],
            .dst_row = plan->codes ? u->codes_row : u->cols,
            .start = plan->problem.start,
            .dst = plan->codes ? NULL : u->result + first * u->cols,
            .codes = plan->codes ? u->codes + first * u->codes_row : NULL};
    int64_t offset =
            plan->base + gb_offset(plan->problem.pointwise.ndims, plan->steps, u->position);
    for (int a = 0; a < GB_POOL_AXES; a++)
        offset += set_axis(u, a, &window);
    join_window(u, &window, offset, 1);
}

/* Rows of outputs from the item's position on, `most` at most, whose windows have the same cells. */
static int64_t rows_alike(const item *u, int64_t most)
{
    const gb_pool_axis *axis = u->plan->problem.axes;
    while (axis < u->plan->problem.axes + GB_POOL_AXES && axis->dim != u->plan->row_dim)
        axis++;
    if (axis == u->plan->problem.axes + GB_POOL_AXES)
        return most;
    int64_t at = u->position[axis->dim], begin, end;
    cells_inside(axis, at, at, &begin, &end);
    if (end - begin < axis->kernel)
        return 1;
    int64_t last = (axis->in + axis->pad_begin - gb_pool_extent(axis)) / axis->stride;
    return gb_min_i64(most, last - at + 1);
}

static void sum_channels(item *u)
{
    int64_t *at = &u->position[u->plan->row_dim], left = *at;
    for (int64_t r = 0, n; r < u->rows; r += n, *at += n) {
        n = rows_alike(u, u->rows - r);
        sum_cells(u, n, r);
    }
    *at = left;
}

/* Along the width: n lines, `pitch` apart, elements first..first+length-1 of the padded rows. */
static void pool_sum_rows(
        const item *u, int64_t n, int64_t first, int64_t length, int64_t pitch, float *line)
{
    const gb_pool *plan = u->plan;
    const gb_pool_axis *width = &plan->problem.axes[GB_POOL_WIDTH];
    int64_t begin = gb_min_i64(gb_max_i64(-first, 0), length);
    int64_t end = gb_max_i64(begin, gb_min_i64(length, width->in - first));
    gb_pool_window window = {.type = plan->problem.src.type,
            .max = !plan->problem.mean,
            .counts = {1, 1, 1},
            .rows = n,
            .columns = end - begin,
            .x_row = plan->steps[plan->row_dim],
            .dst_row = pitch,
            .start = plan->problem.start,
            .dst = line + begin};
    int64_t offset =
            plan->base + gb_offset(plan->problem.pointwise.ndims, plan->steps, u->position);
    offset += (first + begin) * cell_stride(plan, width);
    offset += set_axis(u, GB_POOL_DEPTH, &window);
    offset += set_axis(u, GB_POOL_HEIGHT, &window);
    if (begin < end)
        join_window(u, &window, offset, cell_stride(plan, width));
    for (int64_t r = 0; r < n; r++, line += pitch) {
        pool_fill(line, begin, plan->problem.start);
        pool_fill(line + end, length - end, plan->problem.start);
    }
}

/* Joins n cells, `dilation` apart, of count windows, `stride` apart, of the lines. */
static void join_lines(const item *u, int64_t count, int64_t n)
{
    const gb_kernels *kernels = gb_kernels_get();
    const gb_pool_axis *width = &u->plan->problem.axes[GB_POOL_WIDTH];
    gb_pool_window window = {.type = GB_F32,
            .max = !u->plan->problem.mean,
            .x = u->lines,
            .counts = {1, 1, n},
            .strides = {0, 0, width->dilation},
            .rows = 1,
            .columns = count,
            .start = u->plan->problem.start,
            .dst = u->sums};
    if (width->stride == 1 || count == 1) {
        kernels->pool_window(&window);
        return;
    }
    window.x = u->buffer;
    window.strides[2] = count;
    for (int64_t i = 0; i < n; i += CELLS_TOGETHER) {
        window.counts[2] = gb_min_i64(CELLS_TOGETHER, n - i);
        kernels->load_tile(GB_F32, u->lines + i * width->dilation, width->dilation, width->stride,
                window.counts[2], count, u->buffer);
        window.dst = i ? u->buffer + CELLS_TOGETHER * u->plan->capacity : u->sums;
        kernels->pool_window(&window);
        if (i)
            kernels->reduce_columns(
                    window.max ? GB_REDUCE_MAX : GB_REDUCE_SUM, window.dst, 0, count, 1, u->sums);
    }
}

static void sum_width(item *u)
{
    const gb_pool *plan = u->plan;
    const gb_pool_axis *width = &plan->problem.axes[GB_POOL_WIDTH];
    const int64_t top = u->position[plan->row_dim], from = u->position[plan->col_dim];
    int64_t begin, end;
    if (gb_pool_extent(width) > WIDEST) {
        cells_inside(width, from, from + u->cols - 1, &begin, &end);
    } else {
        begin = 0;
        end = width->kernel;
    }
    int64_t first = from * width->stride - width->pad_begin + begin * width->dilation;
    int64_t length =
            end > begin ? (u->cols - 1) * width->stride + (end - begin - 1) * width->dilation + 1
                        : 0;
    int64_t pitch = u->rows > 1 ? plan->pitch : length;
    for (int64_t r = 0, n; r < u->rows; r += n) {
        u->position[plan->row_dim] = top + r;
        n = rows_alike(u, u->rows - r);
        pool_sum_rows(u, n, first, length, pitch, u->lines + r * pitch);
    }
    u->position[plan->row_dim] = top;
    u->sums_row = u->rows > 1 ? pitch / width->stride : u->cols;
    join_lines(u, (u->rows - 1) * u->sums_row + u->cols, end - begin);
}

static void copy_sums(item *u)
{
    for (int64_t r = 0; r < u->rows; r++)
        memcpy(u->result + r * u->cols, u->sums + r * u->sums_row,
                (size_t)u->cols * sizeof *u->sums);
}

/* Most work items begin at the same column as the one before. */
static void count_columns(item *u)
{
    const gb_pool *plan = u->plan;
    int64_t first = u->position[plan->col_dim];
    if (u->counted == u->cols && u->counted_from == first)
        return;
    const gb_pool_axis *width = &plan->problem.axes[GB_POOL_WIDTH];
    for (int64_t c = 0; c < u->cols; c++) {
        u->by_col[c] = (float)gb_pool_cells(width, first + c, plan->problem.exclude_pad);
        if (plan->problem.zero_point != 0)
            u->inside_col[c] = (float)gb_pool_cells(width, first + c, true);
    }
    u->counted = u->cols;
    u->counted_from = first;
}

/* Cells of the windows of each row of a work item, along all axes but that of the columns. Are they as many in
 * all rows? */
static bool count_rows(const item *u, bool exclude_pad, float *by_row)
{
    const gb_pool *plan = u->plan;
    const gb_pool_axis *along = NULL;
    double cells = 1;
    for (int a = 0; a < GB_POOL_AXES; a++) {
        const gb_pool_axis *axis = &plan->problem.axes[a];
        if (axis->dim >= 0 && axis->dim == plan->row_dim)
            along = axis;
        else if (axis->dim < 0 || axis->dim != plan->col_dim)
            cells *= (double)gb_pool_cells(axis, axis_position(axis, u->position), exclude_pad);
    }
    bool alike = true;
    for (int64_t r = 0; r < u->rows; r++) {
        int64_t more = along ? gb_pool_cells(along, u->position[along->dim] + r, exclude_pad) : 1;
        by_row[r] = (float)(cells * (double)more);
        alike = alike && by_row[r] == by_row[0];
    }
    return alike;
}

/* Padding stands for 0, not for the zero point. */
static void subtract_zero_points(item *u, const float *inside_row)
{
    for (int64_t r = 0; r < u->rows; r++) {
        float *sums = u->result + r * u->cols, row = u->plan->problem.zero_point * inside_row[r];
        for (int64_t c = 0; c < u->cols; c++)
            sums[c] -= u->plan->channels ? row : row * u->inside_col[c];
    }
}

/* Cells that output (row, column) of a work item counts, as a product: of the column along the
 * width, of the row along the rest. */
static void divide(item *u)
{
    const gb_pool *plan = u->plan;
    const float *sums = u->sums, *by_col = u->by_col;
    int64_t sums_row = u->sums_row;
    if (!plan->channels)
        count_columns(u);
    if (plan->problem.zero_point != 0) {
        if (!plan->channels)
            copy_sums(u);
        count_rows(u, true, u->by_row);
        subtract_zero_points(u, u->by_row);
    }
    if (plan->channels)
        by_col = NULL;
    if (plan->channels || plan->problem.zero_point != 0) {
        sums = u->result;
        sums_row = u->cols;
    }
    int64_t rows = u->rows, cols = u->cols;
    if (count_rows(u, plan->problem.exclude_pad, u->by_row) && !by_col && sums_row == cols) {
        cols *= rows; /* as one row */
        rows = 1;
    }
    gb_kernels_get()->divide_rows(sums, sums_row, rows, cols, u->by_row, by_col, u->result);
}

static void pool_locate(item *u, int64_t index)
{
    const gb_pool *plan = u->plan;
    u->rows = u->cols = 1;
    for (int d = plan->problem.pointwise.ndims; d-- > 0;) {
        int64_t step = d == plan->col_dim ? plan->cols : d == plan->row_dim ? plan->rows : 1;
        int64_t count = gb_div_up(plan->problem.pointwise.dims[d], step);
        u->position[d] = index % count * step;
        index /= count;
        int64_t rest = gb_min_i64(step, plan->problem.pointwise.dims[d] - u->position[d]);
        if (d == plan->col_dim)
            u->cols = rest;
        if (d == plan->row_dim)
            u->rows = rest;
    }
}

/* Maxima of codes, to the tensor. */
static void run_codes(item *u, const gb_step_call *call)
{
    const gb_pool *plan = u->plan;
    const gb_pointwise_view *view = gb_epilogue_target(&plan->epilogue, &plan->problem.pointwise,
            call, u->position, plan->row_dim, plan->col_dim);
    u->codes = (uint8_t *)view->data;
    u->codes_row = view->row_stride;
    sum_channels(u);
}

static void pool_run(const gb_step_call *call)
{
    const gb_pool *plan = call->params;
    int64_t begin, end;
    item u = {.plan = plan,
            .src = call->buffers[plan->problem.src.slot],
            .lines = gb_scratch_get(call, plan->lines),
            .sums = gb_scratch_get(call, plan->sums),
            .buffer = gb_scratch_get(call, plan->buffer),
            .by_row = gb_scratch_get(call, plan->by_row),
            .by_col = gb_scratch_get(call, plan->by_col),
            .inside_col = gb_scratch_get(call, plan->inside_col)};
    while (gb_take_items(call, plan->items, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            const gb_pointwise_program *pointwise = &plan->problem.pointwise;
            float *results = gb_scratch_get(call, plan->results);
            pool_locate(&u, i);
            if (plan->codes) {
                run_codes(&u, call);
                continue;
            }
            u.result = gb_epilogue_place(&plan->epilogue, pointwise, call, u.position,
                    plan->row_dim, plan->col_dim, u.rows, u.cols, results, NULL);
            (plan->channels ? sum_channels : sum_width)(&u);
            if (plan->problem.mean)
                divide(&u);
            else if (!plan->channels)
                copy_sums(&u);
            if (u.result == results)
                gb_epilogue_run(&plan->epilogue, pointwise, call, u.position, plan->row_dim,
                        plan->col_dim, u.rows, u.cols, results);
        }
}

gb_status gb_pool_plan(gb_step *step, const gb_pool_problem *problem)
{
    gb_pool *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    choose_items(plan);
    add_scratch(step, plan);
    step->params = plan;
    step->run = pool_run;
    return GB_SUCCESS;
}
