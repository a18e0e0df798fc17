/* Depthwise convolutions of floats whose channels lie last, and those whose groups are a few channels wide, of which a
 * product would leave most lanes empty: channels along vectors, and the source is read where it lies; taps beyond it
 * are left out. */
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_lines.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/conv/conv_views.h"
#include "kernels/cpu/step_call.h"

/* Channels of a work item, at most. A pointwise program behind the tiles takes GB_TILE_ELEMENTS at a time: with MOST
 * channels the kernel still has 8 positions at once. */
enum { PANEL = GB_GEMM_PANEL, MOST = 4 * PANEL, MOST_DIRECT = 32 * PANEL };

/* A work item is a line of positions along the tile axis, of a block of channels. */
typedef struct depthwise_lines {
    gb_pointwise_program epilogue; /* over the dims of the result */
    int channel_dim;
    const gb_kernels *kernels;
    gb_data_type src_type;
    uint32_t src, weights; /* slots; weights are packed panels */
    gb_conv_lines lines;
    int64_t channels, block, blocks; /* block: of channels */
    int64_t width;                   /* channels of a group */
    int64_t run;        /* taps along the tile axis that make a run of gb_depthwise, or 1 */
    bool direct;        /* the pointwise program only stores, along the channels */
    gb_scratch offsets; /* of the taps that count, and where their weights lie */
    gb_scratch views, registers;
    gb_scratch columns;    /* what post-ops in tiles need of each channel */
    int64_t column_floats; /* 0: post-ops run behind the tiles */
} depthwise_lines;

/* Plan ----------------------------------------------------------------------------------------- */

/* 16-bit elements are converted for each tap: with many of them a copy is better. 5x5 of bf16, 672 channels of 14x14,
 * Zen 3: 1.1 to 1.3 of the time of copies; 3x3 0.4 to 1. */
static bool reads_in_place(const gb_conv_problem *problem, int64_t taps)
{
    enum { FEW_TAPS = 9 };
    const gb_data_type type = problem->src_type;
    return type == GB_F32 || ((type == GB_BF16 || type == GB_F16) && taps <= FEW_TAPS);
}

/* As many channels on either side of a group, fewer than a vector has lanes (of f32 as many), and weights that lie
 * evenly. */
static bool is_narrow(const gb_conv_problem *problem)
{
    const int64_t width = problem->in_channels, lanes = gb_kernels_get()->gemm_limits().lanes;
    return !problem->producer && problem->n_scales == 0 && problem->groups > 1 && width > 1 &&
           (width < lanes || (width == lanes && problem->src_type == GB_F32)) &&
           PANEL % width == 0 && problem->out_channels == width &&
           problem->group_stride == width * problem->out_stride;
}

bool gb_conv_depthwise_lines_fits(const gb_conv_problem *problem)
{
    int64_t spread = 1, taps = 1;
    for (int a = 0; a < problem->n_axes; a++) {
        spread = gb_max_i64(spread, problem->axes[a].input_dilation);
        taps *= problem->axes[a].kernel;
    }
    const bool is_depthwise = gb_conv_depthwise_fits(problem) && problem->out_channels == 1;
    return (is_depthwise || is_narrow(problem)) && spread == 1 &&
           problem->src_channel_stride == 1 && reads_in_place(problem, taps) &&
           gb_conv_result(&problem->pointwise)->strides[problem->channel_dim] == 1;
}

/* Even blocks of channels, enough for the threads. */
static void choose_blocks(depthwise_lines *plan, int threads)
{
    enum { ITEMS = 8 };
    int64_t panels = gb_div_up(plan->channels, PANEL);
    int64_t wanted = gb_div_up(ITEMS * threads, gb_max_i64(plan->lines.n_lines, 1));
    int64_t least = gb_div_up(plan->channels, plan->direct ? MOST_DIRECT : MOST);
    int64_t blocks = gb_min_i64(gb_max_i64(wanted, least), panels);
    plan->block = gb_div_up(panels, blocks) * PANEL;
    plan->blocks = gb_div_up(plan->channels, plan->block);
}

/* Neighbouring results read the same places, one further on. */
static int64_t run_of(const gb_conv_axis *axis)
{
    bool shared = axis->stride == 1 && axis->dilation == 1;
    return shared && (axis->kernel == 3 || axis->kernel == 5) ? axis->kernel : 1;
}

gb_status gb_conv_depthwise_lines_plan(
        gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    depthwise_lines *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    *plan = (depthwise_lines){.epilogue = problem->pointwise,
            .channel_dim = problem->channel_dim,
            .kernels = gb_kernels_get(),
            .src_type = problem->src_type,
            .lines = gb_conv_lines_make(problem),
            .channels = problem->groups * problem->out_channels,
            .width = problem->out_channels,
            .direct = gb_pointwise_is_plain_store(&problem->pointwise)};
    plan->run = run_of(gb_conv_lines_axis(&plan->lines));
    choose_blocks(plan, gb_program_threads(program));
    plan->offsets = gb_scratch_add(step, 2 * (size_t)plan->lines.taps * sizeof(int64_t));
    plan->views = gb_conv_add_views(step, &plan->epilogue);
    plan->registers = gb_scratch_add(step, gb_pointwise_scratch(&plan->epilogue));
    if (!plan->direct)
        plan->column_floats = gb_tile_post_ops_floats(&plan->epilogue, plan->block);
    plan->columns = gb_scratch_add(step, gb_float_bytes(plan->column_floats));
    uint32_t packed;
    GB_TRY(gb_conv_pack_depthwise(program, problem, &packed));
    GB_TRY(gb_step_use_buffer(step, packed, false, &plan->weights));
    step->work = 4 * gb_conv_lines_terms(&plan->lines) * (double)(plan->channels * plan->width);
    step->params = plan;
    return gb_step_use_buffer(step, problem->src_buffer, false, &plan->src);
}

/* Run ------------------------------------------------------------------------------------------ */

/* A work item at work. */
typedef struct item {
    const depthwise_lines *plan;
    const gb_step_call *call;
    int64_t position[GB_AXES], first, channels; /* by dim of the result; first: channel */
    int64_t *offsets, *weight_offsets;
    float *registers, *columns;
    gb_pointwise_view *views;
    bool in_tiles; /* post_ops hold what the pointwise program does with the line */
    gb_tile_post_ops post_ops;
} item;

/* Positions of the line from the item's on, at which the same taps count. */
static void run_alike(const item *u, int64_t positions, float *dst, int64_t dst_row)
{
    const depthwise_lines *plan = u->plan;
    const gb_conv_axis *axis = gb_conv_lines_axis(&plan->lines);
    const gb_conv_line_taps taps =
            gb_conv_lines_taps(&plan->lines, u->position, u->offsets, u->weight_offsets);
    const char *src = u->call->buffers[plan->src];
    const float *weights = u->call->buffers[plan->weights];
    const bool runs = positions > 1 && taps.n > 0;
    for (int64_t i = 0; i < taps.n; i++)
        u->weight_offsets[i] *= plan->width * PANEL;
    const gb_depthwise tile = {
            .src = src + (taps.source + u->first) * (int64_t)gb_data_type_bytes(plan->src_type, 1),
            .type = plan->src_type,
            .weights = weights + u->first * plan->lines.taps * plan->width,
            .row = axis->stride * axis->src_stride,
            .panel = plan->lines.taps * plan->width * PANEL,
            .width = plan->width,
            .offsets = u->offsets,
            .weight_offsets = u->weight_offsets,
            .taps = taps.n,
            .run = runs ? plan->run : 1,
            .run_step = runs ? taps.inside : 1,
            .rows = positions,
            .cols = u->channels,
            .dst = dst,
            .dst_row = dst_row,
            .post_ops = u->in_tiles ? &u->post_ops : NULL,
            .post_row = u->position[axis->dim]};
    plan->kernels->depthwise_channels(&tile);
}

/* `count` positions of the line from `first` on. */
static void run_tile(item *u, int64_t first, int64_t count)
{
    const depthwise_lines *plan = u->plan;
    const int dim = gb_conv_lines_axis(&plan->lines)->dim;
    int64_t *at = &u->position[dim];
    *at = first;
    if (!u->in_tiles)
        gb_pointwise_views(
                &plan->epilogue, u->call->buffers, u->position, dim, plan->channel_dim, u->views);
    float *dst = plan->direct ? (float *)u->views[0].data : u->registers;
    int64_t row = plan->direct ? u->views[0].row_stride : u->channels;
    for (int64_t end = first + count, alike; *at < end; *at += alike) {
        alike = gb_conv_lines_alike(&plan->lines, *at, end);
        run_alike(u, alike, dst + (*at - first) * row, row);
    }
    if (!plan->direct && !u->in_tiles)
        plan->kernels->pointwise_run(&plan->epilogue, u->views, count, u->channels, u->registers);
}

/* May tiles take the post-ops of the line? */
static bool takes_post_ops(item *u, int64_t positions)
{
    const depthwise_lines *plan = u->plan;
    gb_pointwise_views(&plan->epilogue, u->call->buffers, u->position,
            gb_conv_lines_axis(&plan->lines)->dim, plan->channel_dim, u->views);
    return plan->kernels->tile_post_ops(&plan->epilogue, u->views, positions, u->channels,
            u->columns, plan->column_floats, &u->post_ops);
}

static void run_item(item *u, int64_t index)
{
    const depthwise_lines *plan = u->plan;
    const gb_conv_axis *axis = gb_conv_lines_axis(&plan->lines);
    u->first = index % plan->blocks * plan->block;
    u->channels = gb_min_i64(plan->block, plan->channels - u->first);
    u->position[plan->channel_dim] = u->first;
    gb_conv_lines_find(&plan->lines, index / plan->blocks, u->position);
    u->position[axis->dim] = 0;
    u->in_tiles = plan->column_floats && takes_post_ops(u, axis->out);
    const int64_t most = plan->direct || u->in_tiles ? axis->out : GB_TILE_ELEMENTS / u->channels;
    for (int64_t o = 0; o < axis->out; o += most)
        run_tile(u, o, gb_min_i64(most, axis->out - o));
}

void gb_conv_depthwise_lines_run(const gb_step_call *call)
{
    const depthwise_lines *plan = call->params;
    item u = {.plan = plan,
            .call = call,
            .offsets = gb_scratch_get(call, plan->offsets),
            .registers = gb_scratch_get(call, plan->registers),
            .columns = gb_scratch_get(call, plan->columns),
            .views = gb_scratch_get(call, plan->views)};
    int64_t begin, end;
    u.weight_offsets = u.offsets + plan->lines.taps;
    while (gb_take_items(call, plan->lines.n_lines * plan->blocks, &begin, &end))
        for (int64_t i = begin; i < end; i++)
            run_item(&u, i);
}
