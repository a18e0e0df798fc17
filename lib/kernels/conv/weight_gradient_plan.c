/* Plans weight gradients: sides, chunks of positions, and blocks of channels for the caches. */
#include "kernels/conv/weight_gradient.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv/conv_numbers.h"
#include "kernels/conv/conv_views.h"
#include "kernels/isa/costs.h"

enum { PANEL = GB_GEMM_PANEL };

static double l2_floats(void)
{
    return (double)(gb_machine_get()->l2_bytes / sizeof(float));
}

/* Begin ---------------------------------------------------------------------------------------- */

static gb_gradient_plan_axis plan_axis(const gb_gradient_axis *axis, int64_t out)
{
    int64_t dilation = axis->kernel > 1 ? axis->dilation : 0;
    int64_t stride = out > 1 ? axis->stride : 0;
    int64_t step = gb_max_i64(gb_greatest_divisor(stride, dilation), 1);
    return (gb_gradient_plan_axis){.in = axis->in,
            .src_stride = axis->src_stride,
            .kernel = axis->kernel,
            .stride = axis->stride,
            .dilation = axis->dilation,
            .pad = axis->pad,
            .step = step,
            .stride_in_copy = stride / step,
            .dilation_in_copy = dilation / step};
}

/* What sizes alone decide. Without positions the result is zero, however long the other axes
 * are. */
static gb_weight_gradient gradient_begin(const gb_gradient_problem *problem)
{
    gb_weight_gradient plan = {.epilogue = problem->pointwise,
            .kernels = gb_kernels_get(),
            .groups = problem->groups,
            .n_axes = problem->n_axes,
            .row_axis = -1,
            .taps = 1};
    bool empty = false;
    for (int a = 0; a < plan.n_axes; a++)
        empty = empty || problem->out[a] == 0;
    for (int a = 0; a < plan.n_axes; a++) {
        plan.out[a] = empty ? 0 : problem->out[a];
        plan.tap_dims[a] = problem->tap_dims[a];
    }
    for (int s = 0; s < 2; s++) {
        const gb_gradient_side *side = &problem->sides[s];
        gb_gradient_plan_side *planned = &plan.sides[s];
        planned->type = side->type;
        planned->dim = side->dim;
        planned->grouped = side->grouped;
        planned->channels = side->channels;
        planned->channel_stride = side->channel_stride;
        for (int a = 0; a < plan.n_axes; a++) {
            planned->axes[a] = plan_axis(&side->axes[a], plan.out[a]);
            plan.taps *= side->axes[a].kernel;
        }
    }
    return plan;
}

/* Sides ---------------------------------------------------------------------------------------- */

/* One of the sides along vectors, the other one along rows. */
typedef struct sides {
    int rows, vectors, row_axis;
    double use; /* share of the arithmetic units at work */
} sides;

/* The axis with most taps if they fill a tile's rows better than the channels. */
static int best_row_axis(const gb_gradient_plan_side *side, int n_axes, int64_t most)
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

static sides sides_with(const gb_weight_gradient *plan, int vectors, gb_gemm_limits limits)
{
    int rows = 1 - vectors;
    const gb_gradient_plan_side *side = &plan->sides[rows];
    int axis = best_row_axis(side, plan->n_axes, limits.rows);
    int64_t count = axis < 0 ? side->channels : side->axes[axis].kernel;
    double chains = (double)gb_min_i64(count, GB_TILE_CHAINS) / GB_TILE_CHAINS;
    return (sides){.rows = rows,
            .vectors = vectors,
            .row_axis = axis,
            .use = chains * gb_filled(plan->sides[vectors].channels, gb_machine_get()->lanes)};
}

/* Do channels of a side lie next to each other in the result? */
static bool is_stored_along(const gb_weight_gradient *plan, int side)
{
    const int dim = plan->sides[side].dim;
    for (uint32_t i = 0; i < plan->epilogue.n_operands; i++)
        if (plan->epilogue.operands[i].written && plan->epilogue.operands[i].strides[dim] == 1)
            return plan->sides[side].channels > 1;
    return false;
}

/* The better one to lie along vectors: where both fill them alike, the one that results are stored along. */
static sides choose_sides(const gb_weight_gradient *plan, gb_gemm_limits limits)
{
    const sides plain = sides_with(plan, GB_GRADIENT_PLAIN, limits);
    const sides window = sides_with(plan, GB_GRADIENT_WINDOW, limits);
    const bool alike = window.use == plain.use && is_stored_along(plan, GB_GRADIENT_WINDOW);
    return window.use > plain.use || alike ? window : plain;
}

static void use_sides(gb_weight_gradient *plan, const sides *chosen)
{
    plan->rows = chosen->rows;
    plan->vectors = chosen->vectors;
    plan->row_axis = chosen->row_axis;
    plan->rows_are = chosen->row_axis < 0 ? GB_GRADIENT_CHANNELS : GB_GRADIENT_TAPS;
    plan->sides[plan->vectors].panels = true;
    plan->sum_rows = plan->sides[plan->rows].channels;
}

/* Chunks --------------------------------------------------------------------------------------- */

/* A panel of the vectors at all positions of a chunk, and a tile's rows, stay in L1. */
static void choose_chunks(gb_weight_gradient *plan)
{
    int64_t most = (int64_t)(gb_machine_get()->l1_bytes * 2 / 3 / (PANEL * sizeof(float)));
    plan->chunk_positions = plan->chunks = 1;
    for (int a = plan->n_axes; a-- > 0;) {
        int64_t out = plan->out[a], room = gb_max_i64(1, most / plan->chunk_positions);
        int64_t blocks = gb_max_i64(gb_div_up(out, room), 1);
        plan->chunk[a] = gb_max_i64(gb_div_up(out, blocks), 1);
        plan->chunks_along[a] = gb_div_up(out, plan->chunk[a]);
        plan->chunk_positions *= plan->chunk[a];
        plan->chunks *= plan->chunks_along[a];
        if (plan->chunk[a] < out)
            most = 0; /* axes outside a split one are not joined */
    }
}

/* Few work items of channels: the positions are split, too. */
static void choose_splits(gb_weight_gradient *plan, int64_t items)
{
    int64_t positions = 1;
    for (int a = 0; a < plan->n_axes; a++)
        positions *= plan->out[a];
    int64_t parts = gb_min_i64(
            gb_div_up(GB_SPLIT_ITEMS, gb_max_i64(items, 1)), positions / GB_SPLIT_POSITIONS);
    plan->splits = gb_min_i64(gb_max_i64(parts, 1), plan->chunks);
    plan->items = items * plan->splits;
    plan->panels = gb_div_up(plan->sides[plan->vectors].channels, PANEL);
}

/* Channels ------------------------------------------------------------------------------------- */

/* The copy of a side at the positions of a chunk. */
typedef struct layout {
    int64_t extent[GB_AXES], stride[GB_AXES], channel_stride;
    double floats; /* more than 1e12 where it is to be refused; then the rest says nothing */
} layout;

static layout lay_out(
        const gb_weight_gradient *plan, const gb_gradient_plan_side *side, int64_t channels)
{
    bool last = !side->panels && side->channel_stride == 1;
    int64_t stride = side->panels ? PANEL : last ? gb_odd_lines(channels) : 1;
    layout made = {.floats = 1e15};
    for (int a = plan->n_axes; a-- > 0;) {
        const gb_gradient_plan_axis *axis = &side->axes[a];
        made.extent[a] = (plan->chunk[a] - 1) * axis->stride_in_copy +
                         (axis->kernel - 1) * axis->dilation_in_copy + 1;
        made.stride[a] = stride;
        if ((double)stride * (double)made.extent[a] > 1e12)
            return made;
        stride *= made.extent[a];
    }
    made.channel_stride = last ? 1 : side->panels ? stride : gb_odd_lines(stride);
    int64_t rows = last ? 1 : side->panels ? gb_div_up(channels, PANEL) : channels;
    made.floats = (double)rows * (double)(last ? stride : made.channel_stride);
    return made;
}

static gb_status use_layout(gb_weight_gradient *plan, gb_gradient_plan_side *side)
{
    layout made = lay_out(plan, side, side->block);
    if (made.floats > 1e12)
        return gb_fail(
                GB_OUT_OF_MEMORY, "a convolution's window spans %.3g source elements", made.floats);
    for (int a = 0; a < plan->n_axes; a++) {
        side->axes[a].extent = made.extent[a];
        side->axes[a].copy_stride = made.stride[a];
    }
    side->copy_channel_stride = made.channel_stride;
    side->copy_bytes = side->in_place ? 0 : gb_float_bytes((int64_t)made.floats);
    return GB_SUCCESS;
}

static int64_t half_the_panels(int64_t channels)
{
    return gb_div_up(channels / 2, PANEL) * PANEL;
}

/* Copies of both sides and the sums share L2. */
static void choose_channels(gb_weight_gradient *plan)
{
    gb_gradient_plan_side *rows = &plan->sides[plan->rows];
    gb_gradient_plan_side *vectors = &plan->sides[plan->vectors];
    int64_t high = gb_max_i64(rows->channels, 1);
    int64_t wide = gb_max_i64(gb_div_up(vectors->channels, PANEL), 1) * PANEL;
    while (wide > PANEL && lay_out(plan, vectors, wide).floats > l2_floats() / 4)
        wide = half_the_panels(wide);
    while (high > 1 && lay_out(plan, rows, high).floats > l2_floats() / 2)
        high = gb_div_up(high, 2);
    while ((double)(high * wide) * (double)plan->taps > l2_floats() / 2) {
        if (high >= wide && high > GB_GRADIENT_MIN_ROWS)
            high = gb_div_up(high, 2);
        else if (wide > PANEL)
            wide = half_the_panels(wide);
        else
            break;
    }
    rows->blocks = gb_div_up(rows->channels, high);
    rows->block = gb_div_up(rows->channels, rows->blocks);
    vectors->blocks = gb_div_up(vectors->channels, wide);
    vectors->block = wide;
}

/* Half of a block, in steps. */
static int64_t half_of(int64_t block, int64_t step)
{
    return gb_div_up(gb_div_up(block, 2), step) * step;
}

/* Enough work items of channels for all threads. What they sum does not depend on it. */
static void share_channels(gb_weight_gradient *plan, int64_t tile_rows, int threads)
{
    gb_gradient_plan_side *rows = &plan->sides[plan->rows];
    gb_gradient_plan_side *vectors = &plan->sides[plan->vectors];
    while (plan->items > 0 && plan->items < threads) {
        gb_gradient_plan_side *side = rows->block >= vectors->block ? rows : vectors;
        const int64_t block = half_of(side->block, side == rows ? tile_rows : PANEL);
        if (block >= side->block)
            break;
        plan->items /= side->blocks;
        side->block = block;
        side->blocks = gb_div_up(side->channels, block);
        plan->items *= side->blocks;
    }
}

static void choose_tiles(gb_weight_gradient *plan, gb_gemm_limits limits)
{
    const gb_gradient_plan_side *side = &plan->sides[plan->rows];
    int axis = plan->row_axis;
    int64_t rows = axis < 0 ? side->block : side->axes[axis].kernel;
    plan->tile_rows = gb_div_up(rows, gb_div_up(rows, limits.rows));
    plan->tile_cols = limits.cols;
}

/* Can tiles read the rows' side as it lies: f32 without padding, along lines, in other sets of the
 * L1 cache from row to row? */
static bool is_read_in_place(const gb_weight_gradient *plan)
{
    const gb_gradient_plan_side *side = &plan->sides[plan->rows];
    bool inside = side->type == GB_F32;
    int inner = plan->n_axes - 1;
    for (int a = 0; a < plan->n_axes; a++) {
        const gb_gradient_plan_axis *axis = &side->axes[a];
        int64_t last =
                (plan->out[a] - 1) * axis->stride + (axis->kernel - 1) * axis->dilation - axis->pad;
        inside = inside && axis->pad <= 0 && last < axis->in;
        if (axis->src_stride == 1)
            inner = a;
    }
    int64_t apart = side->channel_stride == 1 ? side->axes[inner].src_stride : side->channel_stride;
    bool dense = side->channel_stride == 1 || side->axes[inner].src_stride == 1;
    return inside && dense && apart % GB_PAGE_FLOATS != 0;
}

/* Variants ------------------------------------------------------------------------------------- */

static bool is_depthwise(const gb_gradient_problem *problem)
{
    return problem->groups > 1 && problem->sides[0].channels == 1 &&
           problem->sides[1].channels == 1;
}

/* The groups are the channels, a panel of them at a time. */
static void plan_depthwise(gb_weight_gradient *plan, int threads)
{
    (void)threads;
    for (int s = 0; s < 2; s++) {
        gb_gradient_plan_side *side = &plan->sides[s];
        side->channels = plan->groups;
        side->panels = true;
        side->block = PANEL;
        side->blocks = gb_div_up(side->channels, PANEL);
    }
    plan->groups = 1;
    plan->rows_are = GB_GRADIENT_NONE;
    plan->rows = GB_GRADIENT_WINDOW;
    plan->vectors = GB_GRADIENT_PLAIN;
    plan->sum_rows = 1;
    plan->tile_cols = plan->kernels->gemm_limits().cols;
    choose_chunks(plan);
    choose_splits(plan, plan->sides[plan->vectors].blocks);
}

static bool is_any(const gb_gradient_problem *problem)
{
    (void)problem;
    return true;
}

static void plan_products(gb_weight_gradient *plan, int threads)
{
    gb_gemm_limits limits = plan->kernels->gemm_limits();
    const sides chosen = choose_sides(plan, limits);
    use_sides(plan, &chosen);
    choose_chunks(plan);
    choose_channels(plan);
    choose_splits(plan, plan->groups * plan->sides[0].blocks * plan->sides[1].blocks);
    share_channels(plan, limits.rows, threads);
    choose_tiles(plan, limits);
    plan->sides[plan->rows].in_place = is_read_in_place(plan);
}

/* Ways to run a weight gradient, the first that fits is taken. */
static const struct {
    const char *name;
    bool (*fits)(const gb_gradient_problem *problem);
    void (*plan)(gb_weight_gradient *plan, int threads);
    double work; /* of the step, for each product of two elements */
} variants[] = {
        {"depthwise_gradient", is_depthwise, plan_depthwise, 4},
        {"weight_gradient", is_any, plan_products, 0.25},
};

/* Step ----------------------------------------------------------------------------------------- */

static gb_status count_sums(gb_weight_gradient *plan, gb_step *step)
{
    size_t sums = sizeof(float) * PANEL;
    if (!gb_size_mul(sums, (size_t)plan->panels, &sums) ||
            !gb_size_mul(sums, (size_t)plan->sum_rows, &sums) ||
            !gb_size_mul(sums, (size_t)plan->taps, &sums) ||
            !gb_size_mul(sums, (size_t)plan->groups, &sums) || sums > INT64_MAX)
        return gb_fail(GB_OUT_OF_MEMORY, "sums of a weight gradient do not fit the address space");
    plan->split_sums = (int64_t)(sums / sizeof(float));
    if (!gb_size_mul(sums, (size_t)plan->splits, &step->shared_scratch))
        return gb_fail(GB_OUT_OF_MEMORY, "sums of a weight gradient do not fit the address space");
    return GB_SUCCESS;
}

static void add_scratch(gb_weight_gradient *plan, gb_step *step)
{
    for (int s = 0; s < 2; s++) {
        gb_gradient_plan_side *side = &plan->sides[s];
        side->copy = gb_scratch_add(step, side->copy_bytes);
        side->offsets = gb_scratch_add(step, sizeof(int64_t) * (size_t)plan->chunk_positions);
    }
    plan->registers = gb_scratch_add(step, gb_pointwise_scratch(&plan->epilogue));
    plan->views = gb_conv_add_views(step, &plan->epilogue);
}

/* Products of elements, each of so much work, and the elements that are copied and summed. */
static double gradient_work(
        const gb_gradient_problem *problem, const gb_weight_gradient *plan, double of_product)
{
    const double rows = (double)problem->groups * (double)problem->sides[0].channels;
    const double products = rows * (double)problem->sides[1].channels * (double)plan->taps;
    const double copied = rows + (double)problem->groups * (double)problem->sides[1].channels;
    double positions = 1;
    for (int a = 0; a < plan->n_axes; a++)
        positions *= (double)plan->out[a];
    return products * positions * of_product + 4 * (copied * positions + products);
}

gb_status gb_weight_gradient_add(
        gb_program *program, gb_step *step, const gb_gradient_problem *problem)
{
    gb_weight_gradient *plan = gb_step_alloc(step, 1, sizeof *plan);
    size_t variant = 0;
    if (!plan)
        return GB_OUT_OF_MEMORY;
    GB_TRY(gb_step_describe(program, step, gb_gradient_problem_print, problem));
    while (!variants[variant].fits(problem))
        variant++;
    *plan = gradient_begin(problem);
    variants[variant].plan(plan, gb_program_threads(program));
    for (int s = 0; plan->chunks > 0 && s < 2; s++)
        GB_TRY(use_layout(plan, &plan->sides[s]));
    GB_TRY(count_sums(plan, step));
    add_scratch(plan, step);
    for (int s = 0; s < 2; s++)
        GB_TRY(gb_step_use_buffer(step, problem->sides[s].buffer, false, &plan->sides[s].slot));
    step->kernel = variants[variant].name;
    step->run = gb_weight_gradient_run;
    step->work = gradient_work(problem, plan, variants[variant].work);
    step->n_phases = 2;
    step->params = plan;
    return gb_program_add(program, step);
}
