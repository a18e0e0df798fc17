/* Resamples the work items of Interpolate and InterpolateBackward. */
#include "kernels/window/interpolate.h"

#include "base/parallel.h"

#include <string.h>

enum { DEPTH = GB_RESAMPLE_DEPTH, HEIGHT = GB_RESAMPLE_HEIGHT, WIDTH = GB_RESAMPLE_WIDTH };

static int64_t interpolate_stride_of(const gb_interpolation *params, int axis)
{
    return gb_operand_stride(&params->problem.src, params->problem.axes[axis].dim);
}

static int64_t position_of(const gb_interpolation *params, int axis, const int64_t *position)
{
    int dim = params->problem.axes[axis].dim;
    return dim < 0 ? 0 : position[dim];
}

/* Source element of a position along batch and channels. */
static const char *source(
        const gb_interpolation *params, const gb_step_call *call, const int64_t *position)
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

typedef void rows_fn(const gb_interpolation *params, const gb_resample_rows *rows, void *context);

/* Source rows of position `at` along the height, each from element `first` on. */
typedef struct row_list {
    const gb_resample_taps *height;
    int64_t at, first;
} row_list;

/* The list of row h itself; that of row 0 is a plane where no row ends before the next begins. */
static row_list row_itself(const gb_interpolation *params, int64_t h, int64_t first)
{
    static const int32_t none = 0;
    static const float one = 1;
    static const gb_resample_taps itself = {.taps = 1, .count = 1, .index = &none, .weight = &one};
    int64_t along = params->problem.src.strides[params->col_dim];
    return (row_list){
            .height = &itself, .first = first * along + h * interpolate_stride_of(params, HEIGHT)};
}

static row_list rows_of(const gb_interpolation *params, const int64_t *position, int64_t first)
{
    return (row_list){.height = &params->problem.axes[HEIGHT].taps,
            .at = position_of(params, HEIGHT, position),
            .first = first * params->problem.src.strides[params->col_dim]};
}

/* Lists the source rows, times those of the position's depth, and visits them in portions; an empty portion at
 * least. */
static void for_rows(const gb_interpolation *params, const gb_step_call *call,
        const int64_t *position, row_list list, rows_fn *visit, void *context)
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

static void visit_channels(
        const gb_interpolation *params, const gb_resample_rows *rows, void *context)
{
    const channel_block *block = context;
    gb_kernels_get()->resample_positions(
            rows, &block->taps, interpolate_stride_of(params, WIDTH), block->cols, block->dst);
}

typedef struct line_block {
    gb_line_range range; /* that is needed of the line */
    float *line;
    const float *direct; /* the source itself, where it is the line */
} line_block;

static void visit_line(const gb_interpolation *params, const gb_resample_rows *rows, void *context)
{
    line_block *block = context;
    const int64_t begin = block->range.begin, length = block->range.end - begin;
    bool plain = rows->n == 1 && rows->weight[0] == 1 && !rows->add &&
                 params->way != GB_INTERPOLATE_JOINED;
    if (plain && rows->stride == 1 && params->problem.src.type == GB_F32)
        block->direct = (const float *)(const void *)rows->src[0] - begin;
    else
        gb_kernels_get()->resample_rows(rows, length, block->line + begin);
}

/* rows x cols results of positions with all channels. */
static void run_joined(const gb_interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols, float *dst, bool streamed)
{
    int64_t first = position_of(params, WIDTH, position);
    gb_resample_taps taps = gb_taps_part(&params->problem.axes[WIDTH].taps, first, rows);
    line_block block = {.range = params->ranges[first / params->rows],
            .line = gb_scratch_get(call, params->line)};
    block.range.begin *= cols;
    block.range.end *= cols;
    for_rows(params, call, position, rows_of(params, position, block.range.begin), visit_line,
            &block);
    gb_kernels_get()->resample_joined(&taps, block.line, cols, dst, streamed);
}

/* Where a work item at `position` stores what it copies. */
static const gb_pointwise_view *copies_to(
        const gb_interpolation *params, const gb_step_call *call, const int64_t *position)
{
    return gb_epilogue_target(&params->epilogue, &params->problem.pointwise, call, position,
            params->row_dim, params->col_dim);
}

/* Offset of the source's row that is nearest to the height of `position`, `rows` of the work item further on. */
static int64_t nearest_row(const gb_interpolation *params, const int64_t *position, int64_t rows)
{
    const gb_resample_axis *height = &params->problem.axes[HEIGHT];
    const bool along_height = params->row_dim >= 0 && params->row_dim == height->dim;
    const int64_t at = position_of(params, HEIGHT, position) + (along_height ? rows : 0);
    const int64_t step =
            along_height || params->row_dim < 0 ? 0 : params->problem.src.strides[params->row_dim];
    return height->taps.index[at] * interpolate_stride_of(params, HEIGHT) + rows * step;
}

/* The plane of the source that is nearest to the depth of `position`. */
static const char *nearest_plane(const gb_interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t size)
{
    int64_t depth = params->problem.axes[DEPTH].taps.index[position_of(params, DEPTH, position)];
    return source(params, call, position) + depth * interpolate_stride_of(params, DEPTH) * size;
}

/* rows x cols nearest elements at `position`, to the tensor. */
static void run_copied(const gb_interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols)
{
    const gb_pointwise_view *view = copies_to(params, call, position);
    const int64_t size = (int64_t)gb_data_type_bytes(params->problem.src.type, 1);
    const int32_t *index = params->problem.axes[WIDTH].taps.index;
    gb_kernels_get()->resample_copies(index + position_of(params, WIDTH, position), rows,
            nearest_plane(params, call, position, size) + nearest_row(params, position, 0) * size,
            interpolate_stride_of(params, WIDTH) * size, view->data, view->row_stride * size,
            cols * size, view->streamed);
}

/* The same along the width. A row that is nearest to several is picked from once. */
static void run_picked(const gb_interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols)
{
    const gb_pointwise_view *view = copies_to(params, call, position);
    const int64_t size = (int64_t)gb_data_type_bytes(params->problem.src.type, 1);
    const int64_t first = position_of(params, WIDTH, position), dst_row = view->row_stride * size;
    const int32_t *index = params->problem.axes[WIDTH].taps.index + first;
    const char *plane = nearest_plane(params, call, position, size);
    gb_resample_picks_fn *pick = gb_kernels_get()->resample_picks;
    char *dst = view->data;
    int64_t picked = -1;
    for (int64_t r = 0; r < rows; r++, dst += dst_row) {
        const int64_t row = nearest_row(params, position, r);
        if (row == picked)
            memcpy(dst, dst - dst_row, (size_t)(cols * size));
        else
            pick(index, cols, params->doubled, plane + row * size, dst, (int)size);
        picked = row;
    }
}

/* A plane of results at `position`, of lines that are planes of the source. */
static void run_plane(const gb_interpolation *params, const gb_step_call *call,
        const int64_t *position, float *dst)
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
static const float *widen(const gb_interpolation *params, const gb_step_call *call,
        const int64_t *position, const gb_resample_taps *taps, line_block *block, int64_t h,
        wide_row *held, float *place)
{
    wide_row *row = &held[h % GB_INTERPOLATE_HELD_ROWS];
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
static void run_widened(const gb_interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols, float *dst)
{
    const gb_resample_taps *height = &params->problem.axes[HEIGHT].taps;
    int64_t first = position_of(params, WIDTH, position);
    gb_resample_taps taps = gb_taps_part(&params->problem.axes[WIDTH].taps, first, cols);
    line_block block = {.range = params->ranges[first / params->cols],
            .line = gb_scratch_get(call, params->line)};
    float *room = gb_scratch_get(call, params->widened);
    wide_row held[GB_INTERPOLATE_HELD_ROWS];
    for (int i = 0; i < GB_INTERPOLATE_HELD_ROWS; i++)
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
            float *place = copies ? dst : room + h % GB_INTERPOLATE_HELD_ROWS * cols;
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
static void run_channels(const gb_interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols, float *dst)
{
    int64_t first = position_of(params, WIDTH, position);
    channel_block block = {gb_taps_part(&params->problem.axes[WIDTH].taps, first, rows), cols, dst};
    for_rows(params, call, position, rows_of(params, position, 0), visit_channels, &block);
}

/* rows x cols results at `position`, each row from a sum of rows. */
static void run_rows(const gb_interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols, float *dst)
{
    int64_t first = position_of(params, WIDTH, position), at[GB_AXES];
    memcpy(at, position, sizeof at);
    gb_resample_taps taps = gb_taps_part(&params->problem.axes[WIDTH].taps, first, cols);
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

void gb_interpolate_run(const gb_step_call *call)
{
    const gb_interpolation *params = call->params;
    const gb_pointwise_program *pointwise = &params->problem.pointwise;
    int64_t begin, end;
    while (gb_take_items(call, params->items, &begin, &end))
        for (int64_t item = begin; item < end; item++) {
            int64_t position[GB_AXES] = {0}, count[GB_AXES], rest = item;
            for (int d = pointwise->ndims; d-- > 0;) {
                int64_t step = gb_interpolation_step(params, d),
                        steps = gb_div_up(pointwise->dims[d], step);
                position[d] = rest % steps * step;
                count[d] = gb_min_i64(step, pointwise->dims[d] - position[d]);
                rest /= steps;
            }
            int64_t rows = params->row_dim < 0 ? 1 : count[params->row_dim];
            int64_t cols = count[params->col_dim];
            if (params->way == GB_INTERPOLATE_COPIED) {
                run_copied(params, call, position, rows, cols);
                continue;
            }
            if (params->way == GB_INTERPOLATE_PICKED) {
                run_picked(params, call, position, rows, cols);
                continue;
            }
            float *results = gb_scratch_get(call, params->results);
            bool streamed = false;
            float *dst = gb_epilogue_place(&params->epilogue, pointwise, call, position,
                    params->row_dim, params->col_dim, rows, cols, results,
                    params->streams ? &streamed : NULL);
            if (params->way == GB_INTERPOLATE_JOINED)
                run_joined(params, call, position, rows, cols, dst, streamed);
            else if (params->way == GB_INTERPOLATE_CHANNELS)
                run_channels(params, call, position, rows, cols, dst);
            else if (params->way == GB_INTERPOLATE_PLANAR)
                run_plane(params, call, position, dst);
            else if (params->way == GB_INTERPOLATE_WIDENED)
                run_widened(params, call, position, rows, cols, dst);
            else
                run_rows(params, call, position, rows, cols, dst);
            if (dst == results)
                gb_epilogue_run(&params->epilogue, pointwise, call, position, params->row_dim,
                        params->col_dim, rows, cols, results);
        }
}
