/* Plans implicit products: which side of tiles the positions are on, and what a work item is. */
#include "kernels/conv/conv_product.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv/conv_blocks.h"
#include "kernels/conv/conv_numbers.h"
#include "kernels/conv/conv_views.h"
#include "kernels/conv/conv_vnni.h"
#include "kernels/cpu/step_call.h"
#include "kernels/gemm/packing.h"
#include "kernels/isa/costs.h"
#include "kernels/isa/tile_rows.h"

enum { PANEL = GB_GEMM_PANEL };

/* Lines that fill half of the rows of a tile at most go two at a time. */
static int find_paired_axis(const gb_conv_product *plan, int next)
{
    const gb_conv_plan *conv = &plan->conv;
    const gb_conv_plan_axis *tile = &conv->axes[conv->tile_axis];
    return plan->row_step > 1 && plan->joined_axis < 0 && next >= 0 &&
                           tile->out <= plan->row_step && tile->interleave == 1
                   ? next
                   : -1;
}

/* Positions of a line along all of the axes that it runs over. */
static int64_t whole_line(const gb_conv_product *plan)
{
    const gb_conv_plan_axis *axes = plan->conv.axes;
    return axes[plan->conv.tile_axis].out *
           (plan->joined_axis < 0 ? 1 : axes[plan->joined_axis].out);
}

static double terms_of(const gb_conv_plan *conv)
{
    double terms = (double)conv->in_channels;
    for (int a = 0; a < conv->n_axes; a++)
        terms *= (double)conv->axes[a].kernel;
    return terms;
}

/* Few output channels leave vectors of channels empty, and few terms make it felt that results are
 * transposed: then positions go along the vectors. VNNI groups always have channels there. */
static bool is_wide(const gb_conv_product *plan, int64_t lanes)
{
    const gb_conv_plan *conv = &plan->conv;
    const gb_conv_plan_axis *tile = &conv->axes[conv->tile_axis];
    const gb_costs *costs = gb_costs_get();
    double narrow = gb_filled(conv->out_channels, lanes);
    double wide =
            gb_filled(whole_line(plan), lanes) * (double)gb_min_i64(conv->out_channels, 4) / 4;
    bool transposes = gb_conv_result_stride(conv, tile->dim) == 1;
    double terms = terms_of(conv);
    if (transposes && plan->joined_axis >= 0) {
        narrow *= terms / (terms + costs->joined_terms);
    } else if (transposes && tile->src_stride == 1) {
        narrow *= terms / (terms + costs->transposed_terms);
        wide *= costs->unaligned;
    }
    return !plan->vnni && tile->input_dilation == 1 && wide > narrow &&
           (plan->joined_axis < 0 || tile->stride_in_copy <= 1) &&
           gb_conv_result_stride(conv, conv->channel_dim) != 1;
}

static void choose_wide_tiles(gb_conv_product *plan, gb_gemm_limits limits)
{
    int64_t rows = gb_min_i64(plan->conv.out_channels, PANEL);
    plan->tile_rows = gb_div_up(rows, gb_div_up(rows, limits.rows));
    plan->most_positions = plan->group_positions = plan->group_step = PANEL;
}

/* Rows of the tiles of a line: equal ones, where these take no more steps, for one configuration of
 * the registers. */
static int64_t rows_of_tiles(int64_t out, int64_t most, int64_t step)
{
    int64_t even = gb_even_rows(out, most, 1);
    bool equal = out % even == 0 && gb_div_up(even, step) * (out / even) == gb_div_up(out, step);
    return equal ? even : gb_even_rows(out, most, step);
}

static void choose_narrow_tiles(gb_conv_product *plan, gb_gemm_limits limits)
{
    const gb_conv_plan_axis *tile = &plan->conv.axes[plan->conv.tile_axis];
    int64_t most = GB_TILE_ELEMENTS / PANEL, up = gb_min_i64(tile->input_dilation, most);
    int64_t rows = gb_min_i64(most / up, limits.rows), out = gb_div_up(whole_line(plan), up);
    plan->tile_rows = rows_of_tiles(out, rows, plan->row_step);
    plan->group_step = plan->tile_rows * up;
    plan->group_positions = most / plan->group_step * plan->group_step;
    plan->most_positions = most / up * up;
    if (plan->paired_axis >= 0)
        plan->tile_rows = plan->most_positions = plan->group_positions = plan->group_step = 2 * out;
    if (plan->transposed && plan->joined_axis >= 0 && out > most) { /* whole cache lines */
        plan->tile_rows = gb_even_rows(most, rows, plan->row_step);
        plan->group_positions = plan->group_step = most;
    }
}

/* Where results go: channels are their columns, or they are transposed. */
static void choose_store(gb_conv_product *plan)
{
    gb_conv_plan *conv = &plan->conv;
    int tile_dim = conv->axes[conv->tile_axis].dim;
    plan->transposed = !conv->wide && gb_conv_result_stride(conv, conv->channel_dim) != 1 &&
                       gb_conv_result_stride(conv, tile_dim) == 1;
    int along = conv->wide || plan->transposed ? tile_dim : conv->channel_dim;
    conv->direct =
            gb_pointwise_is_plain_store(&conv->epilogue) && gb_conv_result_stride(conv, along) == 1;
}

static void set_tiles(gb_conv_product *plan, gb_gemm_limits limits)
{
    plan->tile_cols = limits.cols;
    plan->few_rows = limits.few_rows;
    plan->few_rows_cols = limits.few_rows_cols;
}

static gb_gemm_limits dot_limits(const gb_conv_vnni *vnni)
{
    return (gb_gemm_limits){.rows = vnni->form.rows, .cols = vnni->form.cols};
}

void gb_conv_product_take_lines(gb_conv_product *plan)
{
    gb_gemm_limits limits = plan->conv.kernels->gemm_limits();
    if (plan->vnni)
        limits = dot_limits(plan->vnni);
    plan->joined_axis = plan->paired_axis = -1;
    plan->row_step = 1;
    plan->tile_rows = limits.rows;
    plan->most_positions = plan->group_positions = GB_TILE_ELEMENTS / PANEL;
    plan->group_step = 2;
    set_tiles(plan, limits);
    choose_store(plan);
}

static void choose_sides(gb_conv_product *plan, gb_gemm_limits limits)
{
    gb_conv_plan *conv = &plan->conv;
    conv->tile_axis = gb_conv_best_tile_axis(conv, limits.rows, plan->row_step);
    /* Padding of integers that is not 0 has to be multiplied like other quantized values. */
    conv->skip_axis = plan->vnni && plan->vnni->fill ? -1 : gb_conv_find_skip_axis(conv);
    int next = gb_conv_next_axis(conv, conv->tile_axis);
    plan->joined_axis = gb_conv_joined_axis(conv, conv->tile_axis);
    plan->paired_axis = find_paired_axis(plan, next);
    if (plan->paired_axis >= 0 && conv->skip_axis == plan->paired_axis)
        conv->skip_axis = -1; /* two lines have other taps inside the source */
    conv->wide = is_wide(plan, gb_machine_get()->lanes);
    if (conv->wide)
        conv->axes[conv->tile_axis].interleave =
                gb_max_i64(1, conv->axes[conv->tile_axis].stride_in_copy);
    conv->channels_last = !conv->wide && (conv->src_channel_stride == 1 ||
                                                 (plan->vnni && plan->vnni->form.along_k));
    choose_store(plan);
    set_tiles(plan, limits);
    if (conv->wide)
        choose_wide_tiles(plan, limits);
    else
        choose_narrow_tiles(plan, limits);
    plan->arithmetic = plan->vnni   ? &gb_conv_vnni_arithmetic
                       : conv->wide ? &gb_conv_floats_wide
                                    : &gb_conv_floats;
}

/* Sums of a work item that wait for its next block of input channels, in groups. */
static int64_t waiting_sums(const gb_conv_product *plan)
{
    const gb_conv_plan *conv = &plan->conv;
    int64_t blocks[GB_AXES], lines = 1;
    if (conv->in_block >= conv->in_channels)
        return 0;
    for (int a = 0; a < conv->n_axes; a++) {
        blocks[a] = conv->axes[a].block;
        lines *= a == conv->tile_axis || a == plan->joined_axis ? 1 : blocks[a];
    }
    int64_t groups = gb_div_up(gb_conv_line(plan, blocks), plan->group_positions);
    return lines * groups * conv->out_block / PANEL * GB_TILE_ELEMENTS;
}

/* May tiles take the post-ops themselves? Their rows, or columns, are positions that follow each
 * other. */
static bool takes_post_ops(const gb_conv_product *plan)
{
    const gb_conv_plan *conv = &plan->conv;
    return !conv->direct && conv->axes[conv->tile_axis].input_dilation == 1;
}

void gb_conv_product_add_scratch(gb_step *step, gb_conv_product *plan)
{
    int64_t sums = waiting_sums(plan);
    plan->conv.copy = gb_scratch_add(step, plan->conv.copy_bytes);
    if (sums > 0)
        plan->sums = gb_scratch_add(step, gb_float_bytes(sums));
    if (plan->transposed)
        plan->transpose_buffer = gb_scratch_add(step, gb_float_bytes(GB_TILE_ELEMENTS));
    plan->conv.registers = gb_scratch_add(step, gb_pointwise_scratch(&plan->conv.epilogue));
    plan->conv.views = gb_conv_add_views(step, &plan->conv.epilogue);
    plan->line_views = gb_conv_add_views(step, &plan->conv.epilogue);
    if (takes_post_ops(plan))
        plan->column_floats = gb_tile_post_ops_floats(&plan->conv.epilogue, plan->conv.out_block);
    plan->columns = gb_scratch_add(step, gb_float_bytes(plan->column_floats));
}

/* Copies of all blocks of input channels, where L2 has room for them, are made once for all output
 * channels. Zen 3, 1x1 of every second of 14x14 positions, 1024 to 2048 channels: 0.72 to 0.83 of
 * the time. */
static void keep_copies(gb_conv_plan *conv)
{
    const int64_t blocks = gb_div_up(conv->in_channels, gb_max_i64(conv->in_block, 1));
    if (conv->out_blocks == 1 || blocks == 1 ||
            (double)conv->copy_bytes * (double)blocks > (double)gb_machine_get()->l2_bytes)
        return;
    conv->copy_apart = (int64_t)(conv->copy_bytes / sizeof(float));
    conv->copy_bytes *= (size_t)blocks;
}

/* Where all channels are one block and lie in the copy position by position, those of neighbouring taps follow each
 * other, too: a few channels make long runs. */
static int64_t count_run_taps(const gb_conv_plan *conv)
{
    const int64_t taps = conv->axes[conv->tile_axis].kernel, run = conv->in_block * taps;
    const int64_t terms = conv->in_block * conv->taps;
    const gb_conv_offsets *offsets = &conv->offsets;
    if (conv->residues > 1 || conv->in_block != conv->in_channels || run < 2)
        return 1;
    const int64_t source = offsets->source[1] - offsets->source[0];
    const int64_t panel = offsets->panel[1] - offsets->panel[0];
    for (int64_t k = 1; k < terms; k++)
        if (k % run != 0 && (offsets->source[k] - offsets->source[k - 1] != source ||
                                    offsets->panel[k] - offsets->panel[k - 1] != panel))
            return 1;
    return taps;
}

gb_status gb_conv_product_choose(gb_step *step, const gb_conv_problem *problem, gb_conv_vnni *vnni,
        int threads, gb_conv_product **made)
{
    gb_conv_product *plan = *made = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    gb_conv_plan *conv = &plan->conv;
    *conv = gb_conv_begin(problem);
    gb_gemm_limits limits = conv->kernels->gemm_limits();
    int64_t k_step = 1;
    plan->row_step = 1;
    conv->term_cost = gb_multiply_add_cost();
    if (vnni) {
        plan->vnni = vnni;
        plan->row_step = vnni->form.row_step;
        k_step = vnni->form.group_step;
        limits = dot_limits(vnni);
        conv->in_channels = gb_div_up(problem->in_channels, vnni->form.vnni_factor);
        conv->term_cost = gb_group_cost(vnni->floats);
    }
    choose_sides(plan, limits);
    gb_conv_choose_depth(conv, vnni ? PANEL : limits.cols, k_step);
    gb_conv_blocks blocks = gb_conv_product_blocks(conv, plan->tile_rows, threads);
    GB_TRY(gb_conv_set_blocks(conv, &blocks));
    keep_copies(conv);

    int64_t last = conv->in_channels % conv->in_block;
    GB_TRY(gb_conv_list_offsets(step, conv, conv->in_block, &conv->offsets));
    plan->last_offsets = conv->offsets;
    if (last)
        GB_TRY(gb_conv_list_offsets(step, conv, last, &plan->last_offsets));
    plan->run_taps = count_run_taps(conv);
    gb_conv_product_add_scratch(step, plan);
    step->work = gb_conv_terms(conv) / 4;
    step->params = plan;
    return GB_SUCCESS;
}

bool gb_conv_product_fits(const gb_conv_problem *problem)
{
    return !problem->producer && problem->n_scales == 0;
}

/* Tiles read weights as the right operand; wide ones as the left. */
static bool keeps_halves(const gb_conv_plan *conv, gb_data_type type)
{
    double weights = (double)conv->groups * (double)conv->out_channels * (double)conv->in_channels *
                     (double)conv->taps;
    double positions = gb_conv_terms(conv) / weights;
    return !conv->wide && gb_packing_keeps_halves(type, weights, positions);
}

gb_status gb_conv_product_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    gb_conv_product *plan;
    uint32_t packed;
    GB_TRY(gb_conv_product_choose(step, problem, NULL, gb_program_threads(program), &plan));
    bool halves = keeps_halves(&plan->conv, problem->weights_type);
    plan->halves = halves ? problem->weights_type : GB_UNDEF;
    GB_TRY(gb_conv_pack_weights(
            program, problem, &plan->conv, problem->out_stride, halves, 0, &packed));
    GB_TRY(gb_step_use_buffer(step, packed, false, &plan->conv.weights));
    return gb_step_use_buffer(step, problem->src_buffer, false, &plan->conv.src);
}
