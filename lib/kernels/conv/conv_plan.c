/* Planning of convolutions: the variants, and what their plans share. */
#include "kernels/conv/conv_plan.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_depthwise_int8.h"
#include "kernels/conv/conv_pair.h"
#include "kernels/conv/conv_planes.h"
#include "kernels/conv/conv_product.h"
#include "kernels/conv/conv_vnni.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/cpu/step_call.h"
#include "kernels/gemm/packing.h"

enum { PANEL = GB_GEMM_PANEL };

/* Ways to run a convolution; the first that can serve a problem is taken. */
static const struct {
    const char *name;
    bool (*fits)(const gb_conv_problem *problem);
    /* Sets parameters, scratch, uses and work of the step; adds the packing of the weights. */
    gb_status (*plan)(gb_program *program, gb_step *step, const gb_conv_problem *problem);
    void (*run)(const gb_step_call *call);
} variants[] = {
        {"conv pair", gb_conv_pair_fits, gb_conv_pair_plan, gb_conv_pair_run},
        {"winograd int8", gb_conv_winograd_int8_fits, gb_conv_winograd_int8_plan,
                gb_conv_winograd_run},
        {"conv int8", gb_conv_int8_fits, gb_conv_int8_plan, gb_conv_product_run},
        {"depthwise int8", gb_conv_depthwise_int8_fits, gb_conv_depthwise_int8_plan,
                gb_conv_depthwise_int8_run},
        {"depthwise lines", gb_conv_depthwise_lines_fits, gb_conv_depthwise_lines_plan,
                gb_conv_depthwise_lines_run},
        {"depthwise planes", gb_conv_planes_fits, gb_conv_planes_plan, gb_conv_planes_run},
        {"depthwise", gb_conv_depthwise_fits, gb_conv_depthwise_plan, gb_conv_depthwise_run},
        {"conv bf16", gb_conv_bf16_fits, gb_conv_bf16_plan, gb_conv_product_run},
        {"winograd", gb_conv_winograd_fits, gb_conv_winograd_plan, gb_conv_winograd_run},
        {"conv", gb_conv_product_fits, gb_conv_product_plan, gb_conv_product_run},
};

gb_status gb_conv_add(gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    GB_TRY(gb_step_describe(program, step, gb_conv_problem_print, problem));
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        if (!variants[i].fits(problem))
            continue;
        step->kernel = variants[i].name;
        step->run = variants[i].run;
        GB_TRY(variants[i].plan(program, step, problem));
        return gb_program_add(program, step);
    }
    return gb_fail(GB_UNIMPLEMENTED, "no kernel runs this convolution");
}

gb_conv_plan gb_conv_begin(const gb_conv_problem *problem)
{
    gb_conv_plan plan = {.epilogue = problem->pointwise,
            .channel_dim = problem->channel_dim,
            .kernels = gb_kernels_get(),
            .src_type = problem->src_type,
            .zero_point = problem->zero_point,
            .src_channel_stride = problem->src_channel_stride,
            .groups = problem->groups,
            .in_channels = problem->in_channels,
            .out_channels = problem->out_channels,
            .n_axes = problem->n_axes,
            .skip_axis = -1};
    for (int a = 0; a < plan.n_axes; a++)
        plan.axes[a] = gb_conv_axis_plan(&problem->axes[a]);
    return plan;
}

/* Sides ---------------------------------------------------------------------------------------- */

int64_t gb_conv_result_stride(const gb_conv_plan *plan, int dim)
{
    return gb_conv_result(&plan->epilogue)->strides[dim];
}

/* Where tiles take as long for any number of rows up to row_step: the share of rows that count,
 * in tiles of one step less than in tiles of several, and less where results lie far apart. */
static double tile_share(int64_t positions, int64_t row_step, bool closest)
{
    double share = (double)positions / (double)(gb_div_up(positions, row_step) * row_step);
    return share * (positions > row_step ? 1 : 0.85) * (closest ? 1 : 0.8);
}

int gb_conv_next_axis(const gb_conv_plan *plan, int tile_axis)
{
    int a = tile_axis == plan->n_axes - 1 ? plan->n_axes - 2 : plan->n_axes - 1;
    const gb_conv_plan_axis *tile = &plan->axes[tile_axis], *axis = &plan->axes[a];
    bool follow = tile->input_dilation * axis->input_dilation == 1;
    for (uint32_t i = 0; i < plan->epilogue.n_operands; i++) {
        const int64_t *strides = plan->epilogue.operands[i].strides;
        follow = follow && strides[axis->dim] == strides[tile->dim] * tile->out;
    }
    return follow ? a : -1;
}

int gb_conv_joined_axis(const gb_conv_plan *plan, int tile_axis)
{
    int next = gb_conv_next_axis(plan, tile_axis);
    return next >= 0 && plan->axes[tile_axis].kernel * plan->axes[next].kernel == 1 ? next : -1;
}

/* Windows so far apart that L2 has no room for a line of what a tile reads along the axis, most of which is padding. */
static bool lie_far_apart(const gb_conv_plan_axis *axis, int64_t rows)
{
    const int64_t positions = gb_max_i64(gb_min_i64(axis->out, rows), 2);
    return gb_conv_extent(axis, positions) > (int64_t)(gb_machine_get()->l2_bytes / sizeof(float));
}

int gb_conv_best_tile_axis(const gb_conv_plan *plan, int64_t rows, int64_t row_step)
{
    int best = 0, closest = 0;
    double most = -1;
    for (int a = 1; a < plan->n_axes; a++)
        if (gb_conv_result_stride(plan, plan->axes[a].dim) <=
                gb_conv_result_stride(plan, plan->axes[closest].dim))
            closest = a;
    for (int a = 0; a < plan->n_axes; a++) {
        const gb_conv_plan_axis *axis = &plan->axes[a];
        int64_t positions = gb_div_up(axis->out, axis->input_dilation);
        int joined = gb_conv_joined_axis(plan, a);
        if (joined >= 0)
            positions *= plan->axes[joined].out;
        double filled = row_step > 1 ? tile_share(positions, row_step, a == closest)
                                     : (double)gb_min_i64(positions, rows);
        if (lie_far_apart(axis, rows))
            filled = 0;
        bool closer = gb_conv_result_stride(plan, axis->dim) <=
                      gb_conv_result_stride(plan, plan->axes[best].dim);
        if (filled > most || (filled == most && closer)) {
            best = a;
            most = filled;
        }
    }
    return best;
}

int gb_conv_find_skip_axis(const gb_conv_plan *plan)
{
    for (int a = 1; a < plan->n_axes; a++)
        if (a != plan->tile_axis && plan->axes[a].kernel > 1)
            return a;
    return -1;
}

/* Depth ---------------------------------------------------------------------------------------- */

void gb_conv_choose_depth(gb_conv_plan *plan, int64_t columns, int64_t step)
{
    plan->taps = plan->residues = plan->residue_most_taps = 1;
    for (int a = plan->n_axes; a-- > 0;) {
        gb_conv_plan_axis *axis = &plan->axes[a];
        axis->residue_stride = plan->residues;
        plan->taps *= axis->kernel;
        plan->residues *= axis->residues;
        plan->residue_most_taps *= gb_conv_class_taps(axis, 0);
    }
    const int64_t l1_floats = (int64_t)(gb_machine_get()->l1_bytes / sizeof(float));
    /* Sums of VNNI tiles take long to put away and to fetch: weights pass by L1. */
    const int64_t k_most = step > 1 ? 8 * l1_floats / PANEL : l1_floats * 3 / 4 / columns;
    int64_t most = gb_max_i64(1, k_most / plan->residue_most_taps);
    int64_t blocks = gb_max_i64(1, gb_div_up(plan->in_channels, most));
    plan->in_block = gb_max_i64(1, gb_div_up(plan->in_channels, blocks));
    if (blocks > 1)
        plan->in_block = gb_div_up(plan->in_block, step) * step;
}

int gb_conv_tap_order(const gb_conv_plan *plan, int order[GB_AXES])
{
    int n = 0;
    if (plan->skip_axis >= 0)
        order[n++] = plan->skip_axis;
    for (int a = 0; a < plan->n_axes; a++)
        if (a != plan->skip_axis)
            order[n++] = a;
    return n;
}

/* One tap of a class: where it starts in the copy, and its place in panels. `index` counts the taps
 * of the class. */
static void place_tap(const gb_conv_plan *plan, const int64_t *first_taps, int64_t index,
        int64_t *source, int64_t *place)
{
    int order[GB_AXES], n = gb_conv_tap_order(plan, order);
    int64_t taps = 1;
    *source = *place = 0;
    for (int i = n; i-- > 0;) {
        const gb_conv_plan_axis *axis = &plan->axes[order[i]];
        int64_t first = first_taps[order[i]], count = gb_conv_class_taps(axis, first);
        int64_t position = index % count * axis->dilation_in_copy;
        *source += position / axis->interleave * axis->copy_stride +
                   position % axis->interleave * (axis->extent / axis->interleave);
        *place += (first + index % count * axis->residues) * taps;
        taps *= axis->kernel;
        index /= count;
    }
}

static void fill_offsets(gb_conv_plan *plan, int64_t channels, gb_conv_offsets offsets)
{
    for (int64_t class = 0, term = 0; class < plan->residues; class ++) {
        int64_t first_taps[GB_AXES], count = 1, source, place;
        for (int a = 0; a < plan->n_axes; a++) {
            first_taps[a] = class / plan->axes[a].residue_stride % plan->axes[a].residues;
            count *= gb_conv_class_taps(&plan->axes[a], first_taps[a]);
        }
        plan->residue_taps[class + 1] = plan->residue_taps[class] + count;
        for (int64_t tap = 0; tap < count; tap++) {
            place_tap(plan, first_taps, tap, &source, &place);
            for (int64_t c = 0; c < channels; c++, term++) {
                offsets.source[term] = source + c * plan->copy_channel_stride;
                offsets.panel[term] = (place * channels + c) * PANEL;
            }
        }
    }
}

gb_status gb_conv_list_offsets(
        gb_step *step, gb_conv_plan *plan, int64_t channels, gb_conv_offsets *offsets)
{
    size_t terms = (size_t)(channels * plan->taps);
    offsets->source = gb_step_alloc(step, terms, 2 * sizeof *offsets->source);
    if (!plan->residue_taps)
        plan->residue_taps =
                gb_step_alloc(step, (size_t)plan->residues + 1, sizeof *plan->residue_taps);
    if (!offsets->source || !plan->residue_taps)
        return GB_OUT_OF_MEMORY;
    offsets->panel = offsets->source + terms;
    fill_offsets(plan, channels, *offsets);
    return GB_SUCCESS;
}

gb_status gb_conv_pack_weights(gb_program *program, const gb_conv_problem *problem,
        const gb_conv_plan *plan, int64_t out_stride, bool halves, int vnni_factor,
        uint32_t *packed)
{
    int order[GB_AXES];
    gb_packing packing = {.type = problem->weights_type,
            .halves = halves,
            .vnni_factor = vnni_factor,
            .first = problem->first_weight,
            .n = plan->out_channels,
            .n_stride = out_stride,
            .inner = vnni_factor ? problem->in_channels : plan->in_channels,
            .inner_block = plan->in_block * (vnni_factor ? vnni_factor : 1),
            .inner_stride = problem->in_stride,
            .n_taps = gb_conv_tap_order(plan, order),
            .n_batch = 1,
            .batch_dims = {plan->groups},
            .batch_strides = {problem->group_stride}};
    for (int i = 0; i < packing.n_taps; i++) {
        packing.tap_dims[i] = problem->axes[order[i]].kernel;
        packing.tap_strides[i] = problem->axes[order[i]].tap_stride;
    }
    return gb_packing_add(program, &packing, problem->weights_buffer, packed);
}

gb_status gb_conv_pack_depthwise(
        gb_program *program, const gb_conv_problem *problem, uint32_t *packed)
{
    gb_packing packing = {.type = problem->weights_type,
            .first = problem->first_weight,
            .n = problem->groups * problem->out_channels,
            .n_stride = problem->group_stride / problem->out_channels,
            .inner = problem->in_channels,
            .inner_block = problem->in_channels,
            .inner_stride = problem->in_stride,
            .n_taps = problem->n_axes,
            .n_batch = 1,
            .batch_dims = {1}};
    for (int a = 0; a < packing.n_taps; a++) {
        packing.tap_dims[a] = problem->axes[a].kernel;
        packing.tap_strides[a] = problem->axes[a].tap_stride;
    }
    return gb_packing_add(program, &packing, problem->weights_buffer, packed);
}

double gb_conv_terms(const gb_conv_plan *plan)
{
    double terms = (double)plan->groups * (double)plan->out_channels * (double)plan->in_channels *
                   (double)plan->taps;
    for (int a = 0; a < plan->n_axes; a++)
        terms *= (double)plan->axes[a].out / (double)plan->axes[a].input_dilation;
    return terms;
}
