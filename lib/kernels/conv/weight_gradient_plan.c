/* Blocks of a weight gradient for the caches. */
#include "kernels/conv/weight_gradient.h"

#include "base/dtype.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"

enum {
    PANEL = GB_GEMM_PANEL,
    LINE = GB_CACHE_LINE / sizeof(float),
    MIN_ROWS = 16,       /* channels of a work item */
    ITEMS = 32,          /* enough to keep threads busy */
    PART_POSITIONS = 512 /* fewer are not worth sums of their own */
};

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* An odd number of cache lines: neighbours at this distance spread over all cache sets. */
static int64_t odd_lines(int64_t count)
{
    return (gb_div_up(count, LINE) | 1) * LINE;
}

static void plan_axes(gb_weight_gradient *gradient)
{
    gradient->taps = 1;
    for (int s = 0; s < 2; s++)
        for (int a = 0; a < gradient->n_axes; a++) {
            gb_gradient_axis *axis = &gradient->sides[s].axes[a];
            int64_t dilation = axis->kernel > 1 ? axis->dilation : 0;
            int64_t stride = gradient->out[a] > 1 ? axis->stride : 0;
            axis->step = gb_max_i64(greatest_divisor(stride, dilation), 1);
            axis->stride_in_copy = stride / axis->step;
            axis->dilation_in_copy = dilation / axis->step;
            gradient->taps *= axis->kernel;
        }
}

static double filled(int64_t count, int64_t item)
{
    return (double)count / (double)(gb_div_up(count, item) * item);
}

/* The axis with most taps if they fill a tile's rows better than the channels. */
static int best_row_axis(const gb_gradient_side *side, int n_axes, int64_t most)
{
    int best = -1;
    int64_t rows = gb_min_i64(side->channels, most);
    for (int a = 0; a < n_axes; a++)
        if (gb_min_i64(side->axes[a].kernel, most) > rows) {
            rows = gb_min_i64(side->axes[a].kernel, most);
            best = a;
        }
    return best;
}

/* Share of the arithmetic work items in use when `vectors` goes along vectors and `rows` along
 * rows. */
static double use_of(const gb_weight_gradient *gradient, int rows, int vectors, int row_axis,
        gb_gemm_limits limits)
{
    const gb_gradient_side *side = &gradient->sides[rows];
    int64_t count = row_axis < 0 ? side->channels : side->axes[row_axis].kernel;
    double chains = (double)gb_min_i64(count, 6) / 6;
    return chains * filled(gradient->sides[vectors].channels, limits.cols / 2);
}

static void choose_sides(gb_weight_gradient *gradient)
{
    gb_gemm_limits limits = gradient->kernels->gemm_limits();
    double best = -1;
    for (int vectors = 0; vectors < (gradient->depthwise ? 1 : 2); vectors++) {
        int rows = 1 - vectors;
        int axis = -1;
        if (!gradient->depthwise)
            axis = best_row_axis(&gradient->sides[rows], gradient->n_axes, limits.rows);
        double use = use_of(gradient, rows, vectors, axis, limits);
        if (use <= best)
            continue;
        best = use;
        gradient->rows = rows;
        gradient->vectors = vectors;
        gradient->row_axis = axis;
    }
    gradient->sides[gradient->vectors].panels = true;
    gradient->sides[gradient->rows].panels = gradient->depthwise;
}

/* A panel of the vectors at all positions of a chunk, and a tile's rows, stay in L1. */
static void choose_chunks(gb_weight_gradient *gradient)
{
    int64_t most = (int64_t)(gb_machine_get()->l1_bytes * 2 / 3 / (PANEL * sizeof(float)));
    gradient->chunk_positions = gradient->chunks = 1;
    for (int a = gradient->n_axes; a-- > 0;) {
        int64_t out = gradient->out[a], room = gb_max_i64(1, most / gradient->chunk_positions);
        int64_t blocks = gb_max_i64(gb_div_up(out, room), 1);
        gradient->chunk[a] = gb_max_i64(gb_div_up(out, blocks), 1);
        gradient->chunks_along[a] = gb_div_up(out, gradient->chunk[a]);
        gradient->chunk_positions *= gradient->chunk[a];
        gradient->chunks *= gradient->chunks_along[a];
        if (gradient->chunk[a] < out)
            most = 0; /* axes outside a split one are not joined */
    }
}

/* Lays the copy of a side out for blocks of `channels` channels. Floats of the copy. */
static double lay_out(const gb_weight_gradient *gradient, gb_gradient_side *side, int64_t channels)
{
    bool last = !side->panels && side->channel_stride == 1;
    int64_t stride = side->panels ? PANEL : last ? odd_lines(channels) : 1;
    for (int a = gradient->n_axes; a-- > 0;) {
        gb_gradient_axis *axis = &side->axes[a];
        axis->extent = (gradient->chunk[a] - 1) * axis->stride_in_copy +
                       (axis->kernel - 1) * axis->dilation_in_copy + 1;
        axis->copy_stride = stride;
        if ((double)stride * (double)axis->extent > 1e12)
            return 1e15; /* refused later */
        stride *= axis->extent;
    }
    side->copy_channel_stride = last ? 1 : side->panels ? stride : odd_lines(stride);
    if (last)
        return (double)stride;
    int64_t rows = side->panels ? gb_div_up(channels, PANEL) : channels;
    return (double)rows * (double)side->copy_channel_stride;
}

/* Copies of both sides and the sums share L2. */
static void weight_gradient_choose_channels(gb_weight_gradient *gradient)
{
    double budget = (double)(gb_machine_get()->l2_bytes / sizeof(float));
    gb_gradient_side *rows = &gradient->sides[gradient->rows];
    gb_gradient_side *vectors = &gradient->sides[gradient->vectors];
    rows->block = gb_max_i64(rows->channels, 1);
    vectors->block = gb_max_i64(gb_div_up(vectors->channels, PANEL), 1) * PANEL;
    if (gradient->depthwise)
        rows->block = vectors->block = PANEL;
    while (vectors->block > PANEL && lay_out(gradient, vectors, vectors->block) > budget / 4)
        vectors->block = gb_div_up(vectors->block / 2, PANEL) * PANEL;
    while (rows->block > 1 && lay_out(gradient, rows, rows->block) > budget / 2)
        rows->block = gb_div_up(rows->block, 2);
    while (!gradient->depthwise &&
            (double)(rows->block * vectors->block) * (double)gradient->taps > budget / 2) {
        if (rows->block >= vectors->block && rows->block > MIN_ROWS)
            rows->block = gb_div_up(rows->block, 2);
        else if (vectors->block > PANEL)
            vectors->block = gb_div_up(vectors->block / 2, PANEL) * PANEL;
        else
            break;
    }
    rows->blocks = gb_div_up(rows->channels, rows->block);
    if (!gradient->depthwise)
        rows->block = gb_div_up(rows->channels, rows->blocks);
    vectors->blocks = gb_div_up(vectors->channels, vectors->block);
}

static void choose_tiles(gb_weight_gradient *gradient)
{
    gb_gemm_limits limits = gradient->kernels->gemm_limits();
    const gb_gradient_side *side = &gradient->sides[gradient->rows];
    int axis = gradient->row_axis;
    int64_t rows = axis < 0 ? side->block : side->axes[axis].kernel;
    gradient->tile_rows = gb_div_up(rows, gb_div_up(rows, limits.rows));
    gradient->tile_cols = limits.cols;
}

/* Few work items of channels: the positions are split, too. */
static void choose_parts(gb_weight_gradient *gradient)
{
    gb_gradient_side *rows = &gradient->sides[gradient->rows];
    gb_gradient_side *vectors = &gradient->sides[gradient->vectors];
    int64_t positions = 1, items = gradient->groups * rows->blocks * vectors->blocks;
    if (gradient->depthwise)
        items = vectors->blocks;
    for (int a = 0; a < gradient->n_axes; a++)
        positions *= gradient->out[a];
    int64_t parts = gb_min_i64(gb_div_up(ITEMS, gb_max_i64(items, 1)), positions / PART_POSITIONS);
    gradient->splits = gb_min_i64(gb_max_i64(parts, 1), gradient->chunks);
    gradient->items = items * gradient->splits;
    gradient->panels = gb_div_up(vectors->channels, PANEL);
}

static void choose_in_place(gb_weight_gradient *gradient)
{
    gb_gradient_side *side = &gradient->sides[gradient->rows];
    bool inside = side->type == GB_F32 && !gradient->depthwise;
    int inner = gradient->n_axes - 1;
    for (int a = 0; a < gradient->n_axes; a++) {
        const gb_gradient_axis *axis = &side->axes[a];
        int64_t last = (gradient->out[a] - 1) * axis->stride + (axis->kernel - 1) * axis->dilation -
                       axis->pad;
        inside = inside && axis->pad <= 0 && last < axis->in;
        if (side->axes[a].src_stride == 1)
            inner = a;
    }
    /* 4 KiB apart all lines fall into the same sets of the L1 cache. */
    int64_t apart = side->channel_stride == 1 ? side->axes[inner].src_stride : side->channel_stride;
    bool dense = side->channel_stride == 1 || side->axes[inner].src_stride == 1;
    side->in_place = inside && dense && apart * (int64_t)sizeof(float) % 4096 != 0;
}

static gb_status weight_gradient_add_scratch(gb_weight_gradient *gradient, gb_step *step)
{
    size_t sums = sizeof(float) * PANEL;
    for (int s = 0; gradient->chunks > 0 && s < 2; s++) {
        gb_gradient_side *side = &gradient->sides[s];
        double size = lay_out(gradient, side, side->block);
        if (size > 1e12)
            return gb_fail(
                    GB_OUT_OF_MEMORY, "a convolution's window spans %.3g source elements", size);
        side->copy_bytes = side->in_place ? 0 : gb_float_bytes((int64_t)size);
    }
    int64_t rows = gradient->depthwise ? 1 : gradient->sides[gradient->rows].channels;
    if (!gb_size_mul(sums, (size_t)gradient->panels, &sums) ||
            !gb_size_mul(sums, (size_t)rows, &sums) ||
            !gb_size_mul(sums, (size_t)gradient->taps, &sums) ||
            !gb_size_mul(sums, (size_t)gradient->groups, &sums) || sums > INT64_MAX)
        return gb_fail(GB_OUT_OF_MEMORY, "sums of a weight gradient do not fit the address space");
    gradient->split_sums = (int64_t)(sums / sizeof(float));
    if (!gb_size_mul(sums, (size_t)gradient->splits, &step->shared_scratch))
        return gb_fail(GB_OUT_OF_MEMORY, "sums of a weight gradient do not fit the address space");
    for (int s = 0; s < 2; s++) {
        gb_gradient_side *side = &gradient->sides[s];
        side->copy = gb_scratch_add(step, side->copy_bytes);
        side->offsets = gb_scratch_add(step, sizeof(int64_t) * (size_t)gradient->chunk_positions);
    }
    gradient->registers = gb_scratch_add(step, gb_pointwise_scratch(&gradient->epilogue));
    return GB_SUCCESS;
}

static gb_status weight_gradient_finish(gb_step *step, gb_weight_gradient *plan)
{
    GB_TRY(weight_gradient_add_scratch(plan, step));
    for (int s = 0; s < 2; s++)
        GB_TRY(gb_step_use_buffer(step, plan->sides[s].buffer, false, &plan->sides[s].slot));
    double terms = (double)plan->groups * (double)plan->taps * (double)plan->sides[0].channels;
    if (!plan->depthwise)
        terms *= (double)plan->sides[1].channels;
    for (int a = 0; a < plan->n_axes; a++)
        terms *= (double)plan->out[a];
    step->work = plan->depthwise ? 4 * terms : terms / 4;
    step->kernel = plan->depthwise ? "depthwise_gradient" : "weight_gradient";
    step->run = gb_weight_gradient_run;
    step->n_phases = 2;
    gb_weight_gradient *own = gb_step_alloc(step, 1, sizeof *own);
    if (!own)
        return GB_OUT_OF_MEMORY;
    *own = *plan;
    step->params = own;
    return GB_SUCCESS;
}

/* Without positions the result is zero, however long the other axes are. */
static void drop_empty(gb_weight_gradient *gradient)
{
    bool empty = false;
    for (int a = 0; a < gradient->n_axes; a++)
        empty = empty || gradient->out[a] == 0;
    for (int a = 0; empty && a < gradient->n_axes; a++)
        gradient->out[a] = 0;
}

gb_status gb_weight_gradient_add(
        gb_program *program, gb_step *step, const gb_weight_gradient *gradient)
{
    gb_weight_gradient plan = *gradient;
    plan.kernels = gb_kernels_get();
    drop_empty(&plan);
    plan_axes(&plan);
    choose_sides(&plan);
    choose_chunks(&plan);
    weight_gradient_choose_channels(&plan);
    choose_tiles(&plan);
    choose_parts(&plan);
    choose_in_place(&plan);
    GB_TRY(weight_gradient_finish(step, &plan));
    return gb_program_add(program, step);
}
