/* Plans depthwise convolutions. */
#include "kernels/conv/conv_depthwise.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv/conv_views.h"
#include "kernels/cpu/step_call.h"

enum { PANEL = GB_GEMM_PANEL };

/* Depthwise when the output channels of a group would leave most of a vector empty, and weights of
 * all groups lie evenly. Panels hold whole groups. */
bool gb_conv_is_depthwise(const gb_conv_problem *problem)
{
    enum { MOST_REPEATS = 8 };
    int64_t repeats = problem->out_channels;
    bool even = repeats == 1 || problem->group_stride == repeats * problem->out_stride;
    return problem->groups > 1 && problem->in_channels == 1 && even && repeats > 0 &&
           repeats <= MOST_REPEATS && PANEL % repeats == 0;
}

bool gb_conv_depthwise_fits(const gb_conv_problem *problem)
{
    return !problem->producer && problem->n_scales == 0 && gb_conv_is_depthwise(problem);
}

/* Positions of a tile along the tile axis, where channels lie along vectors. */
static int64_t tile_rows(const gb_conv_plan *conv)
{
    const gb_conv_plan_axis *tile = &conv->axes[conv->tile_axis];
    int64_t most = GB_TILE_ELEMENTS / PANEL, up = gb_min_i64(tile->input_dilation, most);
    int64_t rows = gb_min_i64(most / up, conv->kernels->gemm_limits().rows);
    int64_t out = gb_div_up(tile->out, up);
    return gb_div_up(out, gb_div_up(out, rows));
}

gb_conv_depthwise gb_conv_depthwise_begin(const gb_conv_problem *problem, int tile_axis)
{
    gb_conv_depthwise plan = {.conv = gb_conv_begin(problem), .repeats = problem->out_channels};
    gb_conv_plan *conv = &plan.conv;
    conv->out_channels = problem->groups * plan.repeats;
    conv->groups = 1;
    conv->tile_axis = tile_axis;
    if (tile_axis < 0)
        conv->tile_axis = gb_conv_best_tile_axis(conv, conv->kernels->gemm_limits().rows, 1);
    conv->skip_axis = gb_conv_find_skip_axis(conv);
    gb_conv_plan_axis *tile = &conv->axes[conv->tile_axis];
    conv->wide = tile->input_dilation == 1 && gb_conv_result_stride(conv, conv->channel_dim) != 1;
    conv->channels_last = !conv->wide;
    if (conv->wide)
        tile->interleave = gb_max_i64(1, tile->stride_in_copy);
    int along = conv->wide ? tile->dim : conv->channel_dim;
    conv->direct =
            gb_pointwise_is_plain_store(&conv->epilogue) && gb_conv_result_stride(conv, along) == 1;
    gb_conv_choose_depth(conv, PANEL, 1);
    return plan;
}

/* Taps that neighbouring results read in the same places, one further on each: a run of
 * gb_depthwise. */
static int64_t run_of(const gb_conv_plan_axis *axis)
{
    bool shared = axis->stride_in_copy == 1 && axis->dilation_in_copy == 1 && axis->interleave == 1;
    return axis->input_dilation == 1 && shared && (axis->kernel == 3 || axis->kernel == 5)
                   ? axis->kernel
                   : 1;
}

/* Rows of wide tiles: an axis whose taps make a run, or the longest one. */
static int find_row_axis(const gb_conv_plan *conv)
{
    int64_t most = 0;
    int best = -1;
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_plan_axis *axis = &conv->axes[a];
        int64_t worth = axis->block * (run_of(axis) > 1 ? 4 : 1);
        if (a == conv->tile_axis || axis->input_dilation != 1 || worth < most)
            continue;
        best = a;
        most = worth;
    }
    return best;
}

/* Taps along the rows of tiles, when the results of neighbouring rows read the same source rows. */
static void choose_run(gb_conv_depthwise *plan)
{
    const gb_conv_plan *conv = &plan->conv;
    int order[GB_AXES], n = gb_conv_tap_order(conv, order);
    int a = conv->wide ? plan->row_axis : conv->tile_axis;
    plan->run = plan->run_step = 1;
    if (conv->residues > 1 || a < 0)
        return;
    plan->run = run_of(&conv->axes[a]);
    if (plan->run == 1)
        return;
    for (int i = n; order[--i] != a;)
        plan->run_step *= conv->axes[order[i]].kernel;
}

gb_status gb_conv_depthwise_finish(
        gb_program *program, gb_step *step, const gb_conv_problem *problem, gb_conv_depthwise *plan)
{
    gb_conv_plan *conv = &plan->conv;
    uint32_t packed;
    choose_run(plan);
    GB_TRY(gb_conv_list_offsets(step, conv, conv->in_block, &conv->offsets));
    GB_TRY(gb_conv_pack_weights(
            program, problem, conv, problem->group_stride / plan->repeats, false, 0, &packed));
    conv->copy = gb_scratch_add(step, conv->copy_bytes);
    conv->registers = gb_scratch_add(step, gb_pointwise_scratch(&conv->epilogue));
    conv->views = gb_conv_add_views(step, &conv->epilogue);
    step->work = 4 * gb_conv_terms(conv);
    return gb_step_use_buffer(step, packed, false, &conv->weights);
}

gb_status gb_conv_depthwise_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    gb_conv_depthwise *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    *plan = gb_conv_depthwise_begin(problem, -1);
    gb_conv_blocks blocks = gb_conv_depthwise_blocks(
            &plan->conv, tile_rows(&plan->conv), gb_program_threads(program));
    GB_TRY(gb_conv_set_blocks(&plan->conv, &blocks));
    plan->row_axis = find_row_axis(&plan->conv);
    GB_TRY(gb_conv_depthwise_finish(program, step, problem, plan));
    step->params = plan;
    return gb_step_use_buffer(step, problem->src_buffer, false, &plan->conv.src);
}
