/* Lowers AvgPoolBackward and MaxPoolBackward. A work item is a block of channels of one image over
 * a slab of its outermost spatial axis. It is brought into a buffer with the channels innermost;
 * the windows that reach into it add their gradients there, those of the slab's border for both
 * sides.
 */
#include "base/cpu.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/pool_problem.h"

#include <string.h>

enum {
    AXES = GB_POOL_AXES,
    DEPTH_DIM = GB_POOL_SPATIAL_DIM,
    WIDTH_DIM = DEPTH_DIM + GB_POOL_WIDTH,
    LANES = 16,
    MOST_LANES = 64,        /* channels of a work item where they lie next to each other */
    MOST_ELEMENTS = 1 << 20 /* of a buffer; from here on fewer channels */
};

typedef struct pool_backward {
    gb_pool_backward_problem problem;
    int64_t slab, slabs, lanes, blocks; /* slab: its size along the first axis */
    /* Most positions of a work item's image, of a row of windows, of a row of either. */
    int64_t positions, line, longest;
    bool streamed;                           /* gradients go past the caches */
    bool direct;                             /* the maximum reads the tensor itself */
    gb_scratch diff_src, lines, turned, src; /* of a work item; src: for the maximum */
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
    float *diff_src, *line, *transposed;
    const float *src; /* the image's first position, and elements from one to the next */
    int64_t src_steps[AXES];
} pool_item;

/* Windows that may reach positions begin..end-1, and the positions of the image that they cover. */
static void reach(const gb_pool_axis *axis, int64_t begin, int64_t end, int a, pool_item *item)
{
    int64_t before = begin + axis->pad_begin - gb_pool_extent(axis) + 1,
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
    int64_t high = (stop - 1) * axis->stride - axis->pad_begin + gb_pool_extent(axis);
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
    item->lanes = gb_min_i64(params->lanes, params->problem.channels - item->channel);
    for (int a = 0; a < AXES; a++) {
        const gb_pool_axis *axis = &params->problem.axes[a];
        int64_t begin = a == params->problem.first_axis ? slab * params->slab : 0;
        int64_t end = a == params->problem.first_axis ? gb_min_i64(begin + params->slab, axis->in)
                                                      : axis->in;
        reach(axis, begin, end, a, item);
    }
    item->diff_src = gb_scratch_get(call, params->diff_src);
    item->line = gb_scratch_get(call, params->lines);
    item->transposed = gb_scratch_get(call, params->turned);
}

static char *pool_backward_element(
        const pool_item *item, const gb_operand *tensor, int64_t d, int64_t h, int64_t w)
{
    const int64_t *s = tensor->strides;
    int64_t offset = item->n * s[GB_POOL_BATCH_DIM] + item->channel * s[GB_POOL_CHANNEL_DIM] +
                     d * s[DEPTH_DIM] + h * s[DEPTH_DIM + 1] + w * s[WIDTH_DIM];
    char *data = item->call->buffers[tensor->slot];
    return data + offset * (int64_t)gb_data_type_bytes(tensor->type, 1);
}

/* Rows of single channels are turned round in the cache. */
static bool is_turned(const gb_operand *tensor)
{
    return tensor->strides[WIDTH_DIM] == 1 && tensor->strides[GB_POOL_CHANNEL_DIM] != 1;
}

/* Loads `count` positions of a row along the width. */
static void load_row(
        const pool_item *item, const gb_operand *tensor, const char *data, int64_t count, float *to)
{
    const int64_t *s = tensor->strides;
    const gb_kernels *kernels = gb_kernels_get();
    if (!is_turned(tensor)) {
        kernels->load_tile(
                tensor->type, data, s[WIDTH_DIM], s[GB_POOL_CHANNEL_DIM], count, item->lanes, to);
        return;
    }
    int64_t size = (int64_t)sizeof(float);
    kernels->load_tile(
            tensor->type, data, s[GB_POOL_CHANNEL_DIM], 1, item->lanes, count, item->transposed);
    kernels->transpose(sizeof(float), (const char *)item->transposed, count * size, (char *)to,
            item->lanes * size, count, item->lanes);
}

/* rows x cols gradients, dense at `from`, to where they lie row_stride and col_stride elements apart. */
static void store_gradients(const pool_item *item, const float *from, int64_t rows, int64_t cols,
        char *data, int64_t row_stride, int64_t col_stride)
{
    const gb_kernels *kernels = gb_kernels_get();
    const gb_data_type type = item->params->problem.diff_src.type;
    const int64_t size = (int64_t)sizeof(float), step = row_stride * size;
    if (!item->params->streamed || type != GB_F32 || col_stride != 1) {
        kernels->store_tile(type, from, rows, cols, data, row_stride, col_stride);
        return;
    }
    if (row_stride == cols) {
        cols *= rows;
        rows = 1;
    }
    bool lines =
            ((uintptr_t)data | (uintptr_t)step | (uintptr_t)(cols * size)) % GB_CACHE_LINE == 0;
    if (!lines && cols * size < GB_STREAM_RUN) {
        kernels->store_tile(type, from, rows, cols, data, row_stride, 1);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        kernels->stream(from + r * cols, data + r * step, (size_t)(cols * size));
}

static void store_row(const pool_item *item, const gb_operand *tensor, const float *from,
        int64_t count, char *data)
{
    const int64_t *s = tensor->strides;
    const gb_kernels *kernels = gb_kernels_get();
    if (!is_turned(tensor)) {
        store_gradients(item, from, count, item->lanes, data, s[WIDTH_DIM], s[GB_POOL_CHANNEL_DIM]);
        return;
    }
    int64_t size = (int64_t)sizeof(float);
    kernels->transpose(sizeof(float), (const char *)from, item->lanes * size,
            (char *)item->transposed, count * size, item->lanes, count);
    store_gradients(item, item->transposed, item->lanes, count, data, s[GB_POOL_CHANNEL_DIM], 1);
}

static void load_image(pool_item *item)
{
    const gb_operand *src = &item->params->problem.src;
    const box *image = &item->image;
    float *to = gb_scratch_get(item->call, item->params->src);
    item->src = to;
    int64_t step = item->lanes;
    for (int a = AXES; a-- > 0; step *= span(image, a))
        item->src_steps[a] = step;
    for (int64_t d = image->begin[0]; d < image->end[0]; d++)
        for (int64_t h = image->begin[1]; h < image->end[1]; h++) {
            load_row(item, src, pool_backward_element(item, src, d, h, image->begin[2]),
                    span(image, 2), to);
            to += span(image, 2) * item->lanes;
        }
}

static void find_image(pool_item *item)
{
    const gb_operand *src = &item->params->problem.src;
    const int64_t *begin = item->image.begin;
    const char *first = pool_backward_element(item, src, begin[0], begin[1], begin[2]);
    item->src = (const float *)(const void *)first;
    memcpy(item->src_steps, src->strides + DEPTH_DIM, sizeof item->src_steps);
}

static void store_slab(const pool_item *item)
{
    const gb_operand *dst = &item->params->problem.diff_src;
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
    const gb_pool_axis *axis = &item->params->problem.axes[a];
    int64_t start = o * axis->stride - axis->pad_begin;
    int64_t begin = start < 0 ? gb_div_up(-start, axis->dilation) : 0;
    int64_t end = axis->in > start ? gb_div_up(axis->in - start, axis->dilation) : 0;
    *first = start + begin * axis->dilation - item->image.begin[a];
    return gb_max_i64(0, gb_min_i64(end, axis->kernel) - begin);
}

static void run_row(const pool_item *item, int64_t d, int64_t h)
{
    const gb_pool_backward_problem *problem = &item->params->problem;
    const gb_pool_axis *axes = problem->axes, *width = &axes[GB_POOL_WIDTH];
    int64_t first_depth, first_height;
    gb_pool_gradient_row row = {.channels = item->lanes,
            .diff_dst = item->line,
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
            .lowest = problem->lowest};
    row.depth = cells_inside(item, 0, d, &first_depth);
    row.height = cells_inside(item, 1, h, &first_height);
    row.base = (first_depth * span(&item->image, 1) + first_height) * span(&item->image, 2);
    if (!problem->mean) {
        row.src = item->src + first_depth * item->src_steps[0] + first_height * item->src_steps[1];
        row.src_depth_step = axes[0].dilation * item->src_steps[0];
        row.src_height_step = axes[1].dilation * item->src_steps[1];
        row.src_step = item->src_steps[2];
    }
    row.outer = (float)gb_pool_cells(&axes[0], d, problem->exclude_pad) *
                (float)gb_pool_cells(&axes[1], h, problem->exclude_pad);
    row.low = (problem->exclude_pad ? 0 : -width->pad_begin) - item->image.begin[2];
    row.high = width->in + (problem->exclude_pad ? 0 : width->pad_end) - item->image.begin[2];
    const gb_operand *diff_dst = &problem->diff_dst;
    load_row(item, diff_dst, pool_backward_element(item, diff_dst, d, h, row.first), row.count,
            item->line);
    if (problem->mean)
        gb_kernels_get()->mean_pool_backward(&row);
    else
        gb_kernels_get()->max_pool_backward(&row);
}

static void pool_backward_run(const gb_step_call *call)
{
    const pool_backward *params = call->params;
    bool mean = params->problem.mean;
    unsigned state = mean ? 0 : gb_cpu_keep_subnormals();
    int64_t begin, end;
    while (gb_take_items(
            call, params->problem.batch * params->blocks * params->slabs, &begin, &end))
        for (int64_t index = begin; index < end; index++) {
            pool_item item;
            open_item(params, call, index, &item);
            memset(item.diff_src, 0, (size_t)(volume(&item.image) * item.lanes) * sizeof(float));
            const box *windows = &item.windows;
            if (volume(windows) > 0 && !mean)
                (params->direct ? find_image : load_image)(&item);
            for (int64_t d = windows->begin[0]; d < windows->end[0] && volume(windows) > 0; d++)
                for (int64_t h = windows->begin[1]; h < windows->end[1]; h++)
                    run_row(&item, d, h);
            store_slab(&item);
        }
    if (!mean)
        gb_cpu_restore_subnormals(state);
}

/* Planning ------------------------------------------------------------------------------------- */

static gb_status add_scratch(gb_step *step, pool_backward *plan)
{
    size_t position = (size_t)plan->lanes * sizeof(float), bytes;
    struct {
        gb_scratch *part;
        int64_t positions;
    } parts[] = {{&plan->diff_src, plan->positions}, {&plan->lines, plan->line},
            {&plan->turned, plan->longest},
            {&plan->src, plan->problem.mean || plan->direct ? 0 : plan->positions}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!gb_size_mul((size_t)parts[i].positions, position, &bytes))
            return gb_fail(GB_OUT_OF_MEMORY, "image too large");
        *parts[i].part = gb_scratch_add(step, bytes);
    }
    return GB_SUCCESS;
}

/* Slabs are no thinner than the windows, as each border is computed on both sides. */
static gb_status choose_items(pool_backward *plan)
{
    const gb_pool_backward_problem *problem = &plan->problem;
    const gb_pool_axis *axes = problem->axes, *axis = &axes[problem->first_axis];
    int64_t inner = 1, around = gb_min_i64(axis->in, gb_pool_extent(axis));
    for (int a = problem->first_axis + 1; a < AXES; a++)
        inner *= axes[a].in;
    plan->lanes = problem->diff_src.strides[GB_POOL_CHANNEL_DIM] == 1 ? MOST_LANES : LANES;
    plan->lanes = gb_min_i64(plan->lanes, problem->channels);
    /* A few buffers of a slab stay in L2. */
    int64_t near = (int64_t)(gb_machine_get()->l2_bytes * 3 / 16 / sizeof(float));
    int64_t wanted = gb_max_i64(near / plan->lanes / inner, 1);
    plan->slab = gb_min_i64(gb_max_i64(wanted, around), axis->in);
    int64_t thickest = gb_min_i64(plan->slab + 2 * around, axis->in);
    if (inner > INT32_MAX / thickest)
        return gb_fail(GB_UNIMPLEMENTED, "image too large");
    while (plan->lanes > 1 && thickest * inner > MOST_ELEMENTS / plan->lanes)
        plan->lanes = (plan->lanes + 1) / 2;
    plan->slabs = gb_div_up(axis->in, plan->slab);
    plan->blocks = gb_div_up(problem->channels, plan->lanes);
    plan->positions = thickest * inner;
    plan->line = axes[GB_POOL_WIDTH].out;
    plan->longest = gb_max_i64(plan->line, axes[GB_POOL_WIDTH].in);
    return GB_SUCCESS;
}

static int64_t image_elements(const gb_pool_backward_problem *problem)
{
    int64_t count = problem->batch * problem->channels;
    for (int a = 0; a < AXES; a++)
        count *= problem->axes[a].in;
    return count;
}

static gb_status pool_backward_plan(
        gb_program *program, gb_step *step, const gb_pool_backward_problem *problem)
{
    pool_backward *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    step->params = plan;
    step->run = pool_backward_run;
    if (image_elements(problem) == 0)
        return GB_SUCCESS; /* no work items */
    plan->direct = problem->src.type == GB_F32 && problem->src.strides[GB_POOL_CHANNEL_DIM] == 1;
    GB_TRY(choose_items(plan));
    GB_TRY(add_scratch(step, plan));
    plan->streamed = gb_streams((double)image_elements(problem) * sizeof(float),
            gb_program_is_temporary(program, step->uses[problem->diff_src.slot].buffer));
    double cells = (double)problem->batch * (double)problem->channels;
    for (int a = 0; a < AXES; a++) {
        const gb_pool_axis *axis = &problem->axes[a];
        cells *= (double)axis->out * (double)gb_min_i64(axis->kernel, axis->in);
    }
    step->work = 2 * cells + 8 * (double)image_elements(problem);
    return GB_SUCCESS;
}

static gb_status pool_backward_lower(gb_program *program, const gb_group *group)
{
    gb_pool_backward_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "pool_backward", &step));
    GB_TRY(gb_pool_backward_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_pool_backward_problem_print, &problem));
    gb_status status = pool_backward_plan(program, step, &problem);
    if (status != GB_SUCCESS)
        return gb_fail_prefix(
                status, "%s", gb_op_label(gb_program_graph(program)->ops[group->anchor]));
    return gb_program_add(program, step);
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
