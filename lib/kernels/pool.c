/* Pools, a unit of up to GB_TILE_ELEMENTS outputs at a time.
 *
 * Across channels: each output sums its cells vector by vector. Along the width: the rows of the
 * window are joined first into a line as wide as the unit's windows (padding included), then the
 * cells of the line; several lines lie behind each other so that both steps run over long vectors.
 */
#include "kernels/pool.h"

#include "base/memory.h"
#include "base/parallel.h"

enum {
    LINES = 4096,       /* elements of a buffer of lines */
    WIDEST = 2048,      /* wider windows are taken one output at a time */
    CELLS_TOGETHER = 4, /* of a line that are gathered at once */
    FEW_CHANNELS = 8    /* fewer are not worth vectors across them */
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t extent(const gb_pool_axis *axis)
{
    return (axis->kernel - 1) * axis->dilation + 1;
}

/* Cells of the window at `position` that lie in the image: *begin..*end-1. */
static void cells_inside(
        const gb_pool_axis *axis, int64_t first, int64_t last, int64_t *begin, int64_t *end)
{
    int64_t before = axis->pad_begin - last * axis->stride;
    *begin = before > 0 ? gb_div_up(before, axis->dilation) : 0;
    int64_t room = axis->in - 1 + axis->pad_begin - first * axis->stride;
    *end = gb_min_i64(axis->kernel, floor_div(room, axis->dilation) + 1);
    *end = gb_max_i64(*end, *begin);
}

int64_t gb_pool_cells(const gb_pool_axis *axis, int64_t position, bool exclude_pad)
{
    int64_t begin = position * axis->stride - axis->pad_begin, end = begin + axis->kernel;
    int64_t low = exclude_pad ? 0 : -axis->pad_begin;
    int64_t high = axis->in + (exclude_pad ? 0 : axis->pad_end);
    return gb_max_i64(0, gb_min_i64(end, high) - gb_max_i64(begin, low));
}

/* Planning
 * ----------------------------------------------------------------------------------------------------------
 */

static void choose_channels(gb_pool *plan)
{
    const gb_pool_axis *width = &plan->axes[GB_POOL_WIDTH];
    plan->col_dim = plan->channel_dim;
    plan->row_dim = width->dim;
    plan->cols = gb_min_i64(plan->tile.dims[plan->col_dim], GB_TILE_ELEMENTS);
    plan->rows = gb_min_i64(width->out, GB_TILE_ELEMENTS / gb_max_i64(plan->cols, 1));
    plan->capacity = gb_max_i64(LINES, plan->cols);
}

static void choose_width(gb_pool *plan)
{
    const gb_pool_axis *width = &plan->axes[GB_POOL_WIDTH], *height = &plan->axes[GB_POOL_HEIGHT];
    bool wide = extent(width) > WIDEST;
    plan->col_dim = width->dim;
    plan->capacity = wide ? gb_max_i64(width->in, LINES) : LINES;
    plan->cols = wide ? 1 : (LINES - extent(width)) / width->stride + 1;
    plan->cols = gb_min_i64(gb_min_i64(plan->cols, GB_TILE_ELEMENTS), width->out);
    plan->row_dim = height->out >= 16 ? height->dim : plan->channel_dim;
    plan->rows = 1;
    if (wide || plan->cols < width->out || plan->cols == 0)
        return;
    int64_t line = (plan->cols - 1) * width->stride + extent(width);
    plan->pitch = gb_div_up(line, width->stride) * width->stride;
    int64_t rows = gb_min_i64(GB_TILE_ELEMENTS / plan->cols, LINES / plan->pitch);
    plan->rows = gb_max_i64(1, gb_min_i64(plan->tile.dims[plan->row_dim], rows));
}

void gb_pool_init(gb_pool *plan)
{
    int64_t stride = plan->src_strides[plan->channel_dim];
    plan->channels = stride == 1 && plan->tile.dims[plan->channel_dim] >= FEW_CHANNELS;
    (plan->channels ? choose_channels : choose_width)(plan);
    plan->units = 1;
    for (int d = 0; d < plan->tile.ndims; d++) {
        int64_t step = d == plan->col_dim ? plan->cols : d == plan->row_dim ? plan->rows : 1;
        plan->units *= step ? gb_div_up(plan->tile.dims[d], step) : 0;
    }
}

size_t gb_pool_thread_scratch(const gb_pool *plan)
{
    size_t lines = (size_t)plan->capacity * (2 + CELLS_TOGETHER);
    return gb_align_up(gb_tile_scratch(&plan->tile), GB_CACHE_LINE) + lines * sizeof(float);
}

/* Running
 * -----------------------------------------------------------------------------------------------------------
 */

typedef struct unit {
    const gb_pool *plan;
    const char *src;
    int64_t position[GB_MAX_NDIMS], rows, cols;
    float *result;                /* register 0 */
    float *lines, *sums, *buffer; /* capacity elements, the buffer CELLS_TOGETHER times that */
} unit;

static void fill(float *dst, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = value;
}

static int64_t axis_position(const gb_pool_axis *axis, const int64_t *position)
{
    return axis->dim < 0 ? 0 : position[axis->dim];
}

/* Folds `n` rows of `count` elements, which begin at an offset of the source, into `sums`. */
static void fold(const unit *u, int64_t offset, int64_t row_stride, int64_t col_stride,
        int64_t count, int64_t n, float *sums)
{
    const gb_kernels *kernels = gb_kernels_get();
    const gb_pool *plan = u->plan;
    if (plan->src_type == GB_F32 && col_stride == 1) {
        const float *x = (const float *)(const void *)u->src + offset;
        kernels->reduce_columns(plan->kind, x, row_stride, count, n, sums);
        return;
    }
    int64_t bytes = (int64_t)gb_data_type_bytes(plan->src_type, 1);
    for (int64_t i = 0; i < n; i += CELLS_TOGETHER) {
        int64_t rows = gb_min_i64(CELLS_TOGETHER, n - i);
        kernels->load_tile(plan->src_type, u->src + (offset + i * row_stride) * bytes, row_stride,
                col_stride, rows, count, u->buffer);
        kernels->reduce_columns(plan->kind, u->buffer, count, count, rows, sums);
    }
}

/* Offset of the source element that a position's first cell in the padded image would have, along
 * all dims but one. */
static int64_t source_offset(const gb_pool *plan, const int64_t *position, int without)
{
    int64_t offset = 0;
    for (int d = 0; d < plan->tile.ndims; d++) {
        bool spatial = false;
        for (int a = 0; a < GB_POOL_AXES; a++)
            spatial = spatial || plan->axes[a].dim == d;
        if (!spatial)
            offset += position[d] * plan->src_strides[d];
    }
    for (int a = 0; a < GB_POOL_AXES; a++) {
        const gb_pool_axis *axis = &plan->axes[a];
        if (a == without)
            continue;
        int64_t start = axis_position(axis, position) * axis->stride - axis->pad_begin;
        offset += start * axis->src_stride;
    }
    return offset;
}

/* Across channels: one output position. */
static void sum_cells(const unit *u, const int64_t *position, float *sums)
{
    const gb_pool *plan = u->plan;
    int64_t begin[GB_POOL_AXES], end[GB_POOL_AXES];
    for (int a = 0; a < GB_POOL_AXES; a++) {
        int64_t at = axis_position(&plan->axes[a], position);
        cells_inside(&plan->axes[a], at, at, &begin[a], &end[a]);
    }
    const gb_pool_axis *depth = &plan->axes[GB_POOL_DEPTH], *height = &plan->axes[GB_POOL_HEIGHT];
    const gb_pool_axis *width = &plan->axes[GB_POOL_WIDTH];
    int64_t step = width->dilation * width->src_stride;
    int64_t base = source_offset(plan, position, -1) + begin[GB_POOL_WIDTH] * step;
    int64_t n = end[GB_POOL_WIDTH] - begin[GB_POOL_WIDTH];
    fill(sums, u->cols, plan->start);
    for (int64_t d = begin[GB_POOL_DEPTH]; d < end[GB_POOL_DEPTH]; d++)
        for (int64_t h = begin[GB_POOL_HEIGHT]; h < end[GB_POOL_HEIGHT]; h++)
            fold(u,
                    base + d * depth->dilation * depth->src_stride +
                            h * height->dilation * height->src_stride,
                    step, 1, u->cols, n, sums);
}

static void sum_channels(unit *u)
{
    int64_t position[GB_MAX_NDIMS];
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        position[d] = u->position[d];
    for (int64_t r = 0; r < u->rows; r++) {
        position[u->plan->row_dim] = u->position[u->plan->row_dim] + r;
        sum_cells(u, position, u->result + r * u->cols);
    }
}

/* Along the width: one line, elements first..first+length-1 of the padded row. */
static void sum_rows(
        const unit *u, const int64_t *position, int64_t first, int64_t length, float *line)
{
    const gb_pool *plan = u->plan;
    const gb_pool_axis *depth = &plan->axes[GB_POOL_DEPTH], *height = &plan->axes[GB_POOL_HEIGHT];
    const gb_pool_axis *width = &plan->axes[GB_POOL_WIDTH];
    int64_t begin = gb_max_i64(first, 0), end = gb_min_i64(first + length, width->in);
    int64_t d_begin, d_end, h_begin, h_end;
    int64_t d_at = axis_position(depth, position), h_at = axis_position(height, position);
    cells_inside(depth, d_at, d_at, &d_begin, &d_end);
    cells_inside(height, h_at, h_at, &h_begin, &h_end);
    fill(line, length, plan->start);
    if (begin >= end)
        return;
    int64_t step = height->dilation * height->src_stride;
    int64_t base = source_offset(plan, position, GB_POOL_WIDTH) + begin * width->src_stride +
                   h_begin * step;
    for (int64_t d = d_begin; d < d_end; d++)
        fold(u, base + d * depth->dilation * depth->src_stride, step, width->src_stride,
                end - begin, h_end - h_begin, line + (begin - first));
}

/* Joins n cells, `dilation` apart, of count windows, `stride` apart, of the lines. */
static void join_cells(const unit *u, int64_t count, int64_t n)
{
    const gb_kernels *kernels = gb_kernels_get();
    const gb_pool_axis *width = &u->plan->axes[GB_POOL_WIDTH];
    fill(u->sums, count, u->plan->start);
    if (width->stride == 1 || count == 1) {
        kernels->reduce_columns(u->plan->kind, u->lines, width->dilation, count, n, u->sums);
        return;
    }
    for (int64_t i = 0; i < n; i += CELLS_TOGETHER) {
        int64_t cells = gb_min_i64(CELLS_TOGETHER, n - i);
        kernels->load_tile(GB_F32, u->lines + i * width->dilation, width->dilation, width->stride,
                cells, count, u->buffer);
        kernels->reduce_columns(u->plan->kind, u->buffer, count, count, cells, u->sums);
    }
}

static void sum_width(unit *u)
{
    const gb_pool *plan = u->plan;
    const gb_pool_axis *width = &plan->axes[GB_POOL_WIDTH];
    int64_t position[GB_MAX_NDIMS], begin, end, from = u->position[plan->col_dim];
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        position[d] = u->position[d];
    if (extent(width) > WIDEST) {
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
    for (int64_t r = 0; r < u->rows; r++) {
        position[plan->row_dim] = u->position[plan->row_dim] + r;
        sum_rows(u, position, first, length, u->lines + r * pitch);
    }
    int64_t row = u->rows > 1 ? pitch / width->stride : u->cols;
    join_cells(u, (u->rows - 1) * row + u->cols, end - begin);
    for (int64_t r = 0; r < u->rows; r++)
        for (int64_t c = 0; c < u->cols; c++)
            u->result[r * u->cols + c] = u->sums[r * row + c];
}

/* Cells that output (row, column) of a unit counts, as a product: of the column along the width, of
 * the row along the rest. */
static void divide(const unit *u)
{
    const gb_pool *plan = u->plan;
    float by_row[GB_TILE_ELEMENTS], by_col[GB_TILE_ELEMENTS];
    for (int64_t r = 0; r < u->rows; r++) {
        double cells = 1;
        for (int a = 0; a < GB_POOL_AXES; a++) {
            const gb_pool_axis *axis = &plan->axes[a];
            int64_t at = axis_position(axis, u->position);
            if (axis->dim >= 0 && axis->dim == plan->col_dim)
                continue;
            if (axis->dim == plan->row_dim)
                at += r;
            cells *= (double)gb_pool_cells(axis, at, plan->exclude_pad);
        }
        by_row[r] = (float)cells;
    }
    for (int64_t c = 0; c < u->cols && !plan->channels; c++)
        by_col[c] = (float)gb_pool_cells(
                &plan->axes[GB_POOL_WIDTH], u->position[plan->col_dim] + c, plan->exclude_pad);
    gb_kernels_get()->divide_rows(
            u->result, u->rows, u->cols, by_row, plan->channels ? NULL : by_col);
}

static void locate(unit *u, int64_t index)
{
    const gb_pool *plan = u->plan;
    u->rows = u->cols = 1;
    for (int d = plan->tile.ndims; d-- > 0;) {
        int64_t step = d == plan->col_dim ? plan->cols : d == plan->row_dim ? plan->rows : 1;
        int64_t count = gb_div_up(plan->tile.dims[d], step);
        u->position[d] = index % count * step;
        index /= count;
        int64_t rest = gb_min_i64(step, plan->tile.dims[d] - u->position[d]);
        if (d == plan->col_dim)
            u->cols = rest;
        if (d == plan->row_dim)
            u->rows = rest;
    }
}

void gb_pool_run(const gb_pool *plan, const gb_step_call *call)
{
    size_t registers = gb_align_up(gb_tile_scratch(&plan->tile), GB_CACHE_LINE);
    gb_tile_view views[GB_TILE_OPERANDS];
    int64_t begin, end;
    unit u = {.plan = plan, .src = call->buffers[plan->src_slot]};
    u.result = (float *)(void *)call->scratch;
    u.lines = (float *)(void *)(call->scratch + registers);
    u.sums = u.lines + plan->capacity;
    u.buffer = u.sums + plan->capacity;
    gb_split(plan->units, call->thread, call->n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        locate(&u, i);
        (plan->channels ? sum_channels : sum_width)(&u);
        if (plan->mean)
            divide(&u);
        gb_tile_views(&plan->tile, call->buffers, u.position, plan->row_dim, plan->col_dim, views);
        gb_kernels_get()->tile_run(&plan->tile, views, u.rows, u.cols, u.result);
    }
}
