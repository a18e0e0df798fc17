/* Lowers Interpolate and InterpolateBackward. Both gather: an element is the weighted sum of a few
 * elements of the source, by a table of taps per axis. Vectors lie across the channels, or along
 * the width: then the rows that a row needs are joined first, and the line that they make is
 * resampled.
 */
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/space.h"
#include "kernels/window/resample.h"

#include <string.h>

enum { DEPTH, HEIGHT, WIDTH, AXES };

typedef struct interpolation {
    gb_pointwise_program pointwise; /* over the dims of the result */
    gb_data_type type;
    uint32_t slot;
    int64_t strides[GB_AXES]; /* of the source */
    int dims[AXES];           /* spatial axes in the tensors; -1: missing */
    int64_t sizes[AXES];      /* of the source */
    gb_resample_taps axes[AXES];
    bool channels;        /* vectors across the channels */
    int row_dim, col_dim; /* a work item is rows x cols of these; row_dim may be -1 */
    int64_t rows, cols, items;
    size_t line; /* of the line in the thread's scratch */
} interpolation;

static int64_t interpolate_stride_of(const interpolation *params, int axis)
{
    return params->dims[axis] < 0 ? 0 : params->strides[params->dims[axis]];
}

static int64_t position_of(const interpolation *params, int axis, const int64_t *position)
{
    return params->dims[axis] < 0 ? 0 : position[params->dims[axis]];
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
    int64_t offset = 0;
    for (int d = 0; d < params->pointwise.ndims; d++)
        if (d != params->dims[0] && d != params->dims[1] && d != params->dims[2])
            offset += position[d] * params->strides[d];
    const char *data = call->buffers[params->slot];
    return data + offset * (int64_t)gb_data_type_bytes(params->type, 1);
}

typedef void rows_fn(const interpolation *params, const gb_resample_rows *rows, void *context);

/* Lists the source rows of a position's depth and height, and visits them in portions; an empty
 * portion at least. */
static void for_rows(const interpolation *params, const gb_step_call *call, const int64_t *position,
        rows_fn *visit, void *context)
{
    const gb_resample_taps *depth = &params->axes[DEPTH], *height = &params->axes[HEIGHT];
    int64_t d = position_of(params, DEPTH, position), h = position_of(params, HEIGHT, position);
    int64_t size = (int64_t)gb_data_type_bytes(params->type, 1);
    const char *base = source(params, call, position);
    gb_resample_rows rows = {.type = params->type};
    rows.stride = params->strides[params->col_dim];
    for (int64_t i = 0; i < depth->taps; i++)
        for (int64_t j = 0; j < height->taps; j++) {
            int64_t a = i * depth->pitch + d, b = j * height->pitch + h;
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
    int64_t begin, end; /* of the line, what is needed of it */
    float *line;
    const float *direct; /* the source itself, where it is the line */
} line_block;

static void visit_line(const interpolation *params, const gb_resample_rows *rows, void *context)
{
    line_block *block = context;
    bool plain = rows->n == 1 && rows->weight[0] == 1 && !rows->add;
    if (plain && rows->stride == 1 && params->type == GB_F32) {
        block->direct = (const float *)(const void *)rows->src[0];
        return;
    }
    gb_resample_rows part = *rows;
    int64_t skipped = block->begin * rows->stride;
    for (int i = 0; i < part.n; i++)
        part.src[i] += skipped * (int64_t)gb_data_type_bytes(params->type, 1);
    gb_kernels_get()->resample_rows(&part, block->end - block->begin, block->line + block->begin);
}

/* The elements of the line that the taps read. */
static void find_range(const interpolation *params, const gb_resample_taps *taps, line_block *block)
{
    block->begin = 0;
    block->end = params->sizes[WIDTH];
    if (taps->count == taps->pitch)
        return;
    int64_t begin = block->end, end = 0;
    for (int64_t t = 0; t < taps->taps; t++)
        for (int64_t i = 0; i < taps->count; i++) {
            int64_t index = taps->index[t * taps->pitch + i];
            bool used = taps->weight[t * taps->pitch + i] != 0;
            begin = used && index < begin ? index : begin;
            end = used && index >= end ? index + 1 : end;
        }
    block->begin = gb_min_i64(begin, end);
    block->end = end;
}

/* rows x cols results at `position` into register 0. */
static void run_block(const interpolation *params, const gb_step_call *call,
        const int64_t *position, int64_t rows, int64_t cols)
{
    float *dst = (float *)(void *)call->scratch;
    if (params->channels) {
        int64_t first = position_of(params, WIDTH, position);
        channel_block block = {slice(&params->axes[WIDTH], first, rows), cols, dst};
        for_rows(params, call, position, visit_channels, &block);
        return;
    }
    int64_t at[GB_AXES];
    memcpy(at, position, sizeof at);
    gb_resample_taps taps = slice(&params->axes[WIDTH], position_of(params, WIDTH, position), cols);
    line_block block = {.line = (float *)(void *)(call->scratch + params->line)};
    find_range(params, &taps, &block);
    for (int64_t r = 0; r < rows; r++) {
        block.direct = NULL;
        for_rows(params, call, at, visit_line, &block);
        gb_kernels_get()->resample_line(
                &taps, block.direct ? block.direct : block.line, dst + r * cols);
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
    const gb_pointwise_program *pointwise = &params->pointwise;
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    int64_t begin, end;
    gb_split(params->items, call->thread, call->n_threads, &begin, &end);
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
        run_block(params, call, position, rows, cols);
        gb_pointwise_views(
                pointwise, call->buffers, position, params->row_dim, params->col_dim, views);
        gb_kernels_get()->pointwise_run(
                pointwise, views, rows, cols, (float *)(void *)call->scratch);
    }
}

/* Planning ------------------------------------------------------------------------------------- */

static gb_status fill_axes(gb_step *step, const gb_op *op, const gb_logical_tensor *from,
        const gb_logical_tensor *to, interpolation *params)
{
    int order[GB_AXES], missing = AXES - (from->ndims - 2);
    gb_data_axes(op, from->ndims, order);
    gb_resample_mode mode = gb_op_attr_is(op, GB_ATTR_MODE, "nearest", false) ? GB_RESAMPLE_NEAREST
                                                                              : GB_RESAMPLE_LINEAR;
    bool align = gb_op_attr_is(op, GB_ATTR_COORDINATE_TRANSFORMATION_MODE, "align_corners", false);
    bool gradient = op->kind == GB_OP_INTERPOLATE_BACKWARD;
    for (int a = 0; a < AXES; a++) {
        int dim = a < missing ? -1 : order[a - missing + 2];
        int64_t in = dim < 0 ? 1 : from->dims[dim], out = dim < 0 ? 1 : to->dims[dim];
        params->dims[a] = dim;
        params->sizes[a] = in;
        GB_TRY(gb_resample_axis(step, mode, align, gradient, gradient ? out : in,
                gradient ? in : out, &params->axes[a]));
    }
    return GB_SUCCESS;
}

static void choose_items(const gb_op *op, interpolation *params)
{
    const int64_t *dims = params->pointwise.dims;
    int channel = gb_channel_axis(op, params->pointwise.ndims);
    int height = params->dims[HEIGHT], width = params->dims[WIDTH];
    int64_t across = params->strides[channel], along = params->strides[width];
    params->channels = dims[channel] > 1 && across > 0 && (across < along || along == 0);
    params->col_dim = params->channels ? channel : width;
    params->row_dim = params->channels ? width : height >= 0 ? height : channel;
    params->cols = gb_min_i64(dims[params->col_dim], GB_TILE_ELEMENTS);
    params->rows = 1;
    if (params->cols == dims[params->col_dim])
        params->rows = gb_min_i64(dims[params->row_dim], GB_TILE_ELEMENTS / params->cols);
    params->items = 1;
    for (int d = 0; d < params->pointwise.ndims; d++)
        params->items *= gb_div_up(dims[d], unit_step(params, d));
}

static gb_status interpolate_plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    interpolation *params = step->params;
    bool gradient = op->kind == GB_OP_INTERPOLATE_BACKWARD;
    const gb_logical_tensor *from = gb_op_input(op, gradient ? 1 : 0), *to = gb_op_output(op, 0);
    params->type = from->data_type;
    memcpy(params->strides, from->strides, sizeof from->strides);
    GB_TRY(gb_program_use(program, step, op->inputs[gradient ? 1 : 0], false, &params->slot));
    GB_TRY(gb_pointwise_build(program, group, op->outputs[0], to, step, &params->pointwise));
    if (gb_tensor_count(to) == 0)
        return GB_SUCCESS; /* no work items */
    GB_TRY(fill_axes(step, op, from, to, params));
    choose_items(op, params);
    params->line = gb_align_up(gb_pointwise_scratch(&params->pointwise), GB_CACHE_LINE);
    step->thread_scratch = params->line;
    if (!params->channels)
        step->thread_scratch += (size_t)params->sizes[WIDTH] * sizeof(float);
    double taps = 1, most = (double)gb_max_i64(gb_tensor_count(to), gb_tensor_count(from));
    for (int a = 0; a < AXES && !gb_op_attr_is(op, GB_ATTR_MODE, "nearest", false); a++)
        taps *= params->dims[a] < 0 ? 1 : 2;
    step->work = 4 * taps * most;
    return GB_SUCCESS;
}

static gb_status interpolate_lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(program, group, "interpolate", interpolate_run, sizeof(interpolation),
            interpolate_plan);
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
