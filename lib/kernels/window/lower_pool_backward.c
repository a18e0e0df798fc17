/* Lowers AvgPoolBackward and MaxPoolBackward. A work item is a block of channels of one image over
 * a slab of its outermost spatial axis. It is brought into a buffer with the channels innermost;
 * the windows that reach into it add their gradients there, those of the slab's border for both
 * sides.
 */
#include "base/cpu.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/isa/kernels.h"

#include <string.h>

enum {
    AXES = 3, /* depth, height, width; missing ones have size 1 */
    LANES = 16,
    MOST_LANES = 64,           /* channels of a work item where they lie next to each other */
    SLAB_ELEMENTS = 24 * 1024, /* wanted in a buffer */
    MOST_ELEMENTS = 1 << 20    /* from here on fewer channels */
};

typedef struct pool_axis {
    int64_t in, out, kernel, stride, dilation, pad_begin, pad_end;
} pool_axis;

typedef struct pool_tensor {
    gb_data_type type;
    uint32_t slot;
    int64_t strides[2 + AXES]; /* batch, channel, depth, height, width */
} pool_tensor;

typedef struct pool_backward {
    bool mean, exclude_pad;
    float lowest;
    pool_tensor src, diff_dst, diff_src;
    int64_t batch, channels;
    pool_axis axes[AXES];
    int slab_axis;
    int64_t slab, slabs, lanes, blocks; /* slab: its size */
    /* Most positions of a work item's image, of a row of windows, of a row of either. */
    int64_t positions, line, longest;
} pool_backward;

/* Begin and end along the axes. */
typedef struct box {
    int64_t begin[AXES], end[AXES];
} box;

/* One work item at work. */
typedef struct pool_item {
    const pool_backward *params;
    const gb_step_call *call;
    int64_t n, channel, lanes;
    box slab, image, windows; /* written; read; windows that reach into the slab */
    float *src, *diff_src, *line, *transposed;
} pool_item;

static int64_t pool_backward_extent(const pool_axis *axis)
{
    return (axis->kernel - 1) * axis->dilation + 1;
}

/* Windows that may reach positions begin..end-1, and the positions of the image that they cover. */
static void reach(const pool_axis *axis, int64_t begin, int64_t end, int a, pool_item *item)
{
    int64_t before = begin + axis->pad_begin - pool_backward_extent(axis) + 1,
            last = end - 1 + axis->pad_begin;
    int64_t first = before > 0 ? gb_div_up(before, axis->stride) : 0;
    int64_t stop = last < 0 ? 0 : gb_min_i64(axis->out, last / axis->stride + 1);
    item->slab.begin[a] = item->image.begin[a] = begin;
    item->slab.end[a] = item->image.end[a] = end;
    item->windows.begin[a] = first;
    item->windows.end[a] = gb_max_i64(first, stop);
    if (item->windows.end[a] == first)
        return;
    int64_t low = first * axis->stride - axis->pad_begin;
    int64_t high = (stop - 1) * axis->stride - axis->pad_begin + pool_backward_extent(axis);
    item->image.begin[a] = gb_max_i64(0, gb_min_i64(low, begin));
    item->image.end[a] = gb_min_i64(axis->in, gb_max_i64(high, end));
}

static int64_t span(const box *b, int a)
{
    return b->end[a] - b->begin[a];
}

static int64_t volume(const box *b)
{
    return span(b, 0) * span(b, 1) * span(b, 2);
}

static void open_item(
        const pool_backward *params, const gb_step_call *call, int64_t index, pool_item *item)
{
    int64_t slab = index % params->slabs, block = index / params->slabs % params->blocks;
    *item = (pool_item){.params = params, .call = call};
    item->n = index / params->slabs / params->blocks;
    item->channel = block * params->lanes;
    item->lanes = gb_min_i64(params->lanes, params->channels - item->channel);
    for (int a = 0; a < AXES; a++) {
        const pool_axis *axis = &params->axes[a];
        int64_t begin = a == params->slab_axis ? slab * params->slab : 0;
        int64_t end =
                a == params->slab_axis ? gb_min_i64(begin + params->slab, axis->in) : axis->in;
        reach(axis, begin, end, a, item);
    }
    item->diff_src = (float *)(void *)call->scratch;
    item->line = item->diff_src + params->positions * params->lanes;
    item->transposed = item->line + params->line * params->lanes;
    item->src = item->transposed + params->longest * params->lanes;
}

static char *pool_backward_element(
        const pool_item *item, const pool_tensor *tensor, int64_t d, int64_t h, int64_t w)
{
    const int64_t *s = tensor->strides;
    int64_t offset = item->n * s[0] + item->channel * s[1] + d * s[2] + h * s[3] + w * s[4];
    char *data = item->call->buffers[tensor->slot];
    return data + offset * (int64_t)gb_data_type_bytes(tensor->type, 1);
}

/* Rows of single channels are turned round in the cache. */
static bool is_turned(const pool_tensor *tensor)
{
    return tensor->strides[4] == 1 && tensor->strides[1] != 1;
}

/* Loads `count` positions of a row along the width. */
static void load_row(const pool_item *item, const pool_tensor *tensor, const char *data,
        int64_t count, float *to)
{
    const int64_t *s = tensor->strides;
    const gb_kernels *kernels = gb_kernels_get();
    if (!is_turned(tensor)) {
        kernels->load_tile(tensor->type, data, s[4], s[1], count, item->lanes, to);
        return;
    }
    int64_t size = (int64_t)sizeof(float);
    kernels->load_tile(tensor->type, data, s[1], 1, item->lanes, count, item->transposed);
    kernels->transpose(sizeof(float), (const char *)item->transposed, count * size, (char *)to,
            item->lanes * size, count, item->lanes);
}

static void store_row(const pool_item *item, const pool_tensor *tensor, const float *from,
        int64_t count, char *data)
{
    const int64_t *s = tensor->strides;
    const gb_kernels *kernels = gb_kernels_get();
    if (!is_turned(tensor)) {
        kernels->store_tile(tensor->type, from, count, item->lanes, data, s[4], s[1]);
        return;
    }
    int64_t size = (int64_t)sizeof(float);
    kernels->transpose(sizeof(float), (const char *)from, item->lanes * size,
            (char *)item->transposed, count * size, item->lanes, count);
    kernels->store_tile(tensor->type, item->transposed, item->lanes, count, data, s[1], 1);
}

static void load_image(const pool_item *item)
{
    const pool_tensor *src = &item->params->src;
    const box *image = &item->image;
    float *to = item->src;
    for (int64_t d = image->begin[0]; d < image->end[0]; d++)
        for (int64_t h = image->begin[1]; h < image->end[1]; h++) {
            load_row(item, src, pool_backward_element(item, src, d, h, image->begin[2]),
                    span(image, 2), to);
            to += span(image, 2) * item->lanes;
        }
}

static void store_slab(const pool_item *item)
{
    const pool_tensor *dst = &item->params->diff_src;
    const box *image = &item->image, *slab = &item->slab;
    for (int64_t d = slab->begin[0]; d < slab->end[0]; d++)
        for (int64_t h = slab->begin[1]; h < slab->end[1]; h++) {
            int64_t at = (d - image->begin[0]) * span(image, 1) + h - image->begin[1];
            at = at * span(image, 2) + slab->begin[2] - image->begin[2];
            store_row(item, dst, item->diff_src + at * item->lanes, span(slab, 2),
                    pool_backward_element(item, dst, d, h, slab->begin[2]));
        }
}

/* Cells of window o of an axis inside the image: how many, and the first one's position in the
 * work item's buffer. */
static int64_t cells_inside(const pool_item *item, int a, int64_t o, int64_t *first)
{
    const pool_axis *axis = &item->params->axes[a];
    int64_t start = o * axis->stride - axis->pad_begin;
    int64_t begin = start < 0 ? gb_div_up(-start, axis->dilation) : 0;
    int64_t end = axis->in > start ? gb_div_up(axis->in - start, axis->dilation) : 0;
    *first = start + begin * axis->dilation - item->image.begin[a];
    return gb_max_i64(0, gb_min_i64(end, axis->kernel) - begin);
}

/* Cells of window o that a mean counts. */
static int64_t cells_counted(const pool_backward *params, int a, int64_t o)
{
    const pool_axis *axis = &params->axes[a];
    int64_t begin = o * axis->stride - axis->pad_begin, end = begin + axis->kernel;
    int64_t low = params->exclude_pad ? 0 : -axis->pad_begin;
    int64_t high = axis->in + (params->exclude_pad ? 0 : axis->pad_end);
    return gb_max_i64(0, gb_min_i64(end, high) - gb_max_i64(begin, low));
}

static void run_row(const pool_item *item, int64_t d, int64_t h)
{
    const pool_backward *params = item->params;
    const pool_axis *axes = params->axes, *width = &axes[2];
    int64_t first_depth, first_height;
    gb_pool_gradient_row row = {.channels = item->lanes,
            .diff_dst = item->line,
            .src = item->src,
            .diff_src = item->diff_src,
            .height_step = axes[1].dilation * span(&item->image, 2),
            .depth_step = axes[0].dilation * span(&item->image, 1) * span(&item->image, 2),
            .first = item->windows.begin[2],
            .count = span(&item->windows, 2),
            .in = span(&item->image, 2),
            .kernel = width->kernel,
            .stride = width->stride,
            .dilation = width->dilation,
            .pad = width->pad_begin + item->image.begin[2],
            .lowest = params->lowest};
    row.depth = cells_inside(item, 0, d, &first_depth);
    row.height = cells_inside(item, 1, h, &first_height);
    row.base = (first_depth * span(&item->image, 1) + first_height) * span(&item->image, 2);
    row.outer = (float)cells_counted(params, 0, d) * (float)cells_counted(params, 1, h);
    row.low = (params->exclude_pad ? 0 : -width->pad_begin) - item->image.begin[2];
    row.high = width->in + (params->exclude_pad ? 0 : width->pad_end) - item->image.begin[2];
    const pool_tensor *diff_dst = &params->diff_dst;
    load_row(item, diff_dst, pool_backward_element(item, diff_dst, d, h, row.first), row.count,
            item->line);
    if (params->mean)
        gb_kernels_get()->mean_pool_backward(&row);
    else
        gb_kernels_get()->max_pool_backward(&row);
}

static void pool_backward_run(const gb_step_call *call)
{
    const pool_backward *params = call->params;
    unsigned state = params->mean ? 0 : gb_cpu_keep_subnormals();
    int64_t begin, end;
    gb_split(params->batch * params->blocks * params->slabs, call->thread, call->n_threads, &begin,
            &end);
    for (int64_t index = begin; index < end; index++) {
        pool_item item;
        open_item(params, call, index, &item);
        memset(item.diff_src, 0, (size_t)(volume(&item.image) * item.lanes) * sizeof(float));
        const box *windows = &item.windows;
        if (volume(windows) > 0 && !params->mean)
            load_image(&item);
        for (int64_t d = windows->begin[0]; d < windows->end[0] && volume(windows) > 0; d++)
            for (int64_t h = windows->begin[1]; h < windows->end[1]; h++)
                run_row(&item, d, h);
        store_slab(&item);
    }
    if (!params->mean)
        gb_cpu_restore_subnormals(state);
}

/* Planning ------------------------------------------------------------------------------------- */

static gb_status use(gb_program *program, const gb_op *op, uint32_t value, bool written,
        gb_step *step, pool_tensor *tensor)
{
    const gb_logical_tensor *t = &gb_program_graph(program)->values[value].tensor;
    int order[GB_AXES], missing = 2 + AXES - t->ndims;
    gb_data_axes(op, t->ndims, order);
    tensor->type = t->data_type;
    for (int i = 0; i < t->ndims; i++)
        tensor->strides[i < 2 ? i : i + missing] = t->strides[order[i]];
    return gb_program_use(program, step, value, written, &tensor->slot);
}

static gb_status pool_backward_read_axes(const gb_op *op, const gb_logical_tensor *image,
        const gb_logical_tensor *result, pool_backward *params)
{
    int order[GB_AXES], n_spatial = image->ndims - 2;
    int64_t in[GB_AXES];
    gb_window window;
    gb_data_axes(op, image->ndims, order);
    for (int i = 0; i < n_spatial; i++)
        in[i] = image->dims[order[i + 2]];
    GB_TRY(gb_window_get(op, n_spatial, in, NULL, false, &window));
    params->batch = image->dims[order[0]];
    params->channels = image->dims[order[1]];
    params->slab_axis = AXES - n_spatial;
    for (int a = 0; a < AXES; a++) {
        int i = a - params->slab_axis;
        params->axes[a] = (pool_axis){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
        if (i >= 0)
            params->axes[a] = (pool_axis){.in = in[i],
                    .out = result->dims[order[i + 2]],
                    .kernel = window.kernel[i],
                    .stride = window.strides[i],
                    .dilation = window.dilations[i],
                    .pad_begin = window.pads_begin[i],
                    .pad_end = window.pads_end[i]};
    }
    return GB_SUCCESS;
}

/* Slabs are no thinner than the windows, as each border is computed on both sides. */
static gb_status choose_items(const gb_op *op, gb_step *step)
{
    pool_backward *params = step->params;
    const pool_axis *axis = &params->axes[params->slab_axis];
    int64_t inner = 1, around = gb_min_i64(axis->in, pool_backward_extent(axis));
    for (int a = params->slab_axis + 1; a < AXES; a++)
        inner *= params->axes[a].in;
    params->lanes = params->diff_src.strides[1] == 1 ? MOST_LANES : LANES;
    params->lanes = gb_min_i64(params->lanes, params->channels);
    int64_t wanted = gb_max_i64(SLAB_ELEMENTS / params->lanes / inner, 1);
    params->slab = gb_min_i64(gb_max_i64(wanted, around), axis->in);
    int64_t thickest = gb_min_i64(params->slab + 2 * around, axis->in);
    if (inner > INT32_MAX / thickest)
        return gb_fail(GB_UNIMPLEMENTED, "%s: image too large", gb_op_label(op));
    while (params->lanes > 1 && thickest * inner > MOST_ELEMENTS / params->lanes)
        params->lanes = (params->lanes + 1) / 2;
    params->slabs = gb_div_up(axis->in, params->slab);
    params->blocks = gb_div_up(params->channels, params->lanes);
    params->positions = thickest * inner;
    params->line = params->axes[AXES - 1].out;
    params->longest = gb_max_i64(params->line, params->axes[AXES - 1].in);
    size_t floats = (size_t)(params->positions * (params->mean ? 1 : 2) + params->line);
    floats += (size_t)params->longest;
    if (!gb_size_mul(floats, (size_t)params->lanes * sizeof(float), &step->thread_scratch))
        return gb_fail(GB_OUT_OF_MEMORY, "%s: image too large", gb_op_label(op));
    return GB_SUCCESS;
}

static gb_status pool_backward_plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    pool_backward *params = step->params;
    params->mean = op->kind == GB_OP_AVG_POOL_BACKWARD;
    params->exclude_pad = gb_op_attr_bool(op, GB_ATTR_EXCLUDE_PAD, false);
    const gb_logical_tensor *image = gb_op_output(op, 0);
    uint32_t gradient = params->mean ? 0 : 1;
    params->lowest = (float)gb_dtype_get(image->data_type)->lowest;
    GB_TRY(pool_backward_read_axes(op, image, gb_op_input(op, gradient), params));
    GB_TRY(use(program, op, op->outputs[0], true, step, &params->diff_src));
    GB_TRY(use(program, op, op->inputs[gradient], false, step, &params->diff_dst));
    if (!params->mean)
        GB_TRY(use(program, op, op->inputs[0], false, step, &params->src));
    if (gb_tensor_count(image) == 0)
        return GB_SUCCESS; /* no work items */
    GB_TRY(choose_items(op, step));
    double cells = (double)gb_tensor_count(gb_op_input(op, gradient));
    for (int a = 0; a < AXES; a++)
        cells *= (double)gb_min_i64(params->axes[a].kernel, params->axes[a].in);
    step->work = 2 * cells + 8 * (double)gb_tensor_count(image);
    return GB_SUCCESS;
}

static gb_status pool_backward_lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(program, group, "pool_backward", pool_backward_run, sizeof(pool_backward),
            pool_backward_plan);
}

/* The shape of the image may come as a tensor, which is not read: the dims are known by then. */
static bool pool_backward_supports(const gb_op *op, const char **reason)
{
    (void)op;
    (void)reason;
    return true;
}

const gb_lowering gb_lowering_pool_backward = {
        .name = "pool_backward", .supports = pool_backward_supports, .lower = pool_backward_lower};
