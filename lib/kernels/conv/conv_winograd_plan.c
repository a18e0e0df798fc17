/* Plans convolutions by minimal filtering: when they gain, and what a work item is. */
#include "kernels/conv/conv_winograd.h"

#include "base/dtype.h"
#include "base/environment.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/conv/conv_blocks.h"
#include "kernels/conv/conv_numbers.h"
#include "kernels/conv/conv_vnni.h"
#include "kernels/cpu/step_call.h"
#include "kernels/gemm/packing.h"
#include "kernels/isa/costs.h"

#include <math.h>
#include <string.h>

enum { PANEL = GB_GEMM_PANEL, BATCH = 0, Y = 1, X = 2, PRODUCTS = GB_WINOGRAD_PRODUCTS, TAPS = 9 };

/* Does it gain? -------------------------------------------------------------------------------- */

static bool is_plain_axis(const gb_conv_axis *axis, int64_t taps)
{
    return axis->kernel == taps && axis->stride == 1 && axis->dilation == 1 &&
           axis->input_dilation == 1;
}

/* Cycles until a block of tiles has read the weights of one of its `parts`: from caches, or from
 * memory where not all of them stay in a third of L3. */
static double weight_cycles(double in_channels, double out_channels, double parts)
{
    const gb_machine *machine = gb_machine_get();
    const double floats = PRODUCTS * in_channels * out_channels;
    const double kept = fmax((double)machine->l3_bytes / 3, (double)machine->l2_bytes / 2);
    const bool stay = floats * sizeof(float) <= kept;
    return floats / parts * (stay ? 4 : 20) * gb_costs_get()->gemm_read;
}

/* Of an element of the copy, which is transposed where channels do not lie last. */
static double copy_cycles(int64_t src_channel_stride)
{
    return (src_channel_stride == 1 ? 1 : 4) * gb_costs_get()->conv_copy;
}

/* Tiles of so many images of lines x columns. */
static int64_t count_tiles(int64_t images, int64_t lines, int64_t columns)
{
    return images * gb_div_up(lines, 2) * gb_div_up(columns, 2);
}

/* Work items of about so many tiles, and elements that they copy for each position. */
enum { USUAL_TILES = 64 };
static const double usual_halo = 1.4;

/* Input channels, or VNNI groups of them, of which a term takes so many cycles. */
static bool gains(const gb_conv_problem *problem, int64_t in_channels, double term_cost)
{
    const gb_costs *costs = gb_costs_get();
    const gb_conv_axis *axes = problem->axes;
    const double in = (double)in_channels, out = (double)problem->out_channels;
    const double positions = (double)axes[BATCH].out * (double)axes[Y].out * (double)axes[X].out;
    const double tiles = (double)count_tiles(axes[BATCH].out, axes[Y].out, axes[X].out);
    const double copy = positions * in * copy_cycles(problem->src_channel_stride);
    const double direct = positions * TAPS * in * out * term_cost + copy;
    const double filtered = tiles * PRODUCTS * in * out * term_cost +
                            tiles * (in * costs->winograd_source + out * costs->winograd_result) +
                            fmax(tiles / USUAL_TILES, 1) * weight_cycles(in, out, 1) +
                            copy * usual_halo;
    return filtered < 0.9 * direct;
}

/* GB_WINOGRAD=off: sums are made of products alone, whatever they take. */
static bool is_off(void)
{
    static const gb_named_flags table[] = {{"off", 1}, {NULL, 0}};
    static atomic_int flags = -1;
    return gb_environment_flags_once(&flags, "GB_WINOGRAD", table) != 0;
}

static bool has_filter(const gb_conv_problem *problem)
{
    return !problem->producer && problem->n_axes == 3 && is_plain_axis(&problem->axes[BATCH], 1) &&
           is_plain_axis(&problem->axes[Y], 3) && is_plain_axis(&problem->axes[X], 3);
}

bool gb_conv_winograd_fits(const gb_conv_problem *problem)
{
    return !is_off() && has_filter(problem) && problem->n_scales == 0 && problem->zero_point == 0 &&
           gb_dtype_is_f(problem->src_type) && problem->weights_type == problem->src_type &&
           problem->groups == 1 && problem->in_channels >= GB_WINOGRAD_CHANNELS &&
           gains(problem, problem->in_channels, gb_multiply_add_cost());
}

/* Four times a sum of products of codes has to fit 32 bits; padding is a code, too. */
bool gb_conv_winograd_int8_fits(const gb_conv_problem *problem)
{
    enum { FACTOR = 2, MOST_CHANNELS = (1 << 29) / (TAPS * 255 * 128) };
    return !is_off() && has_filter(problem) && gb_conv_int8_fits(problem) &&
           gb_kernels_get()->dot_form(false).vnni_factor == FACTOR &&
           problem->in_channels <= MOST_CHANNELS &&
           gains(problem, gb_div_up(problem->in_channels, FACTOR), gb_group_cost(false));
}

/* Blocks --------------------------------------------------------------------------------------- */

typedef struct block_search {
    const gb_conv_plan *conv;
    int64_t rows; /* of a tile of registers */
    int threads;
    gb_conv_blocks best;
} block_search;

/* Floats of a transformed tile and of its sums, of so many tiles. */
static double transformed_floats(const gb_conv_plan *conv, int64_t tiles, int64_t channels)
{
    return (double)PRODUCTS * (double)tiles * ((double)conv->in_channels + (double)channels);
}

/* Cycles of the busiest thread. */
static double blocks_cost(const block_search *search, const gb_conv_blocks *blocks)
{
    const gb_conv_plan *conv = search->conv;
    const gb_costs *costs = gb_costs_get();
    const int64_t *block = blocks->positions;
    const int64_t tiles = count_tiles(block[BATCH], block[Y], block[X]);
    int64_t positions = 1, copied = 1;
    for (int a = 0; a < conv->n_axes; a++) {
        positions *= gb_div_up(conv->axes[a].out, block[a]);
        copied *= gb_conv_extent(&conv->axes[a], block[a]);
    }
    const int64_t out_blocks = gb_div_up(conv->out_channels, blocks->channels);
    const int64_t items = gb_div_up(conv->groups * positions * out_blocks, search->threads);
    const double in = (double)conv->in_channels, out = (double)blocks->channels;
    const double l2 = (double)(gb_machine_get()->l2_bytes / sizeof(float));
    const double floats = transformed_floats(conv, tiles, blocks->channels);
    const double far = floats <= l2 * 3 / 4 ? 1 : floats <= l2 * 3 ? 2 : 3; /* from L3 */
    const double rows = (double)(gb_div_up(tiles, search->rows) * search->rows);
    const double item = PRODUCTS * rows * in * out * conv->term_cost +
                        weight_cycles(in, (double)conv->out_channels, (double)out_blocks) +
                        (double)tiles * out * costs->winograd_result * far;
    const double source = (double)tiles * in * costs->winograd_source * far +
                          (double)copied * in * copy_cycles(conv->src_channel_stride);
    return (double)items * item + (double)gb_div_up(items, out_blocks) * source;
}

/* The sums and transformed tiles of a product share L2 with weights; the first candidate, which is
 * the smallest, is always taken. */
static void consider(block_search *search, gb_conv_blocks *tried)
{
    enum { MOST_SCRATCH = 4 << 20 }; /* floats, of a thread */
    const int64_t tiles =
            count_tiles(tried->positions[BATCH], tried->positions[Y], tried->positions[X]);
    const double l2 = (double)(gb_machine_get()->l2_bytes / sizeof(float));
    const bool fits = transformed_floats(search->conv, tiles, tried->channels) <= MOST_SCRATCH &&
                      (double)tiles * (double)search->conv->in_channels <= l2 / 2;
    if (search->best.cost >= 0 && !fits)
        return;
    tried->cost = blocks_cost(search, tried);
    if (search->best.cost < 0 || tried->cost < search->best.cost)
        search->best = *tried;
}

/* Parts of `count`: the greatest power of two that is no more. */
static int64_t most_parts(int64_t count)
{
    int64_t parts = 1;
    while (parts <= count / 2)
        parts *= 2;
    return parts;
}

/* Blocks of tiles: rectangles of one image, or several whole images. */
static void try_positions(block_search *search, int64_t channels)
{
    const gb_conv_plan_axis *axes = search->conv->axes;
    const int64_t lines = gb_div_up(axes[Y].out, 2), columns = gb_div_up(axes[X].out, 2);
    gb_conv_blocks tried = {.positions[BATCH] = 1, .channels = channels};
    for (int64_t j = most_parts(columns); j > 0; j /= 2)
        for (int64_t i = most_parts(lines); i > 0; i /= 2) {
            tried.positions[X] = 2 * gb_div_up(columns, j);
            tried.positions[Y] = 2 * gb_div_up(lines, i);
            consider(search, &tried);
        }
    for (int64_t i = most_parts(axes[BATCH].out); i > 0; i /= 2) {
        tried.positions[BATCH] = gb_div_up(axes[BATCH].out, i);
        consider(search, &tried);
    }
}

/* The channels that are copied at a time: the copy shares L2 with what becomes of it. */
static int64_t copied_channels(const gb_conv_plan *conv, const gb_conv_blocks *blocks)
{
    const double most = (double)(gb_machine_get()->l2_bytes / sizeof(float)) / 4;
    gb_conv_blocks tried = *blocks;
    for (tried.copied = conv->in_channels; tried.copied > PANEL;
            tried.copied = gb_div_up(tried.copied / 2, PANEL) * PANEL)
        if (gb_conv_lay_out(conv, &tried).floats <= most)
            break;
    return tried.copied;
}

static gb_conv_blocks choose_blocks(const gb_conv_product *plan, int threads)
{
    const gb_conv_plan *conv = &plan->conv;
    block_search search = {
            .conv = conv, .rows = plan->tile_rows, .threads = threads, .best.cost = -1};
    const int64_t panels = gb_div_up(conv->out_channels, PANEL);
    for (int64_t j = most_parts(panels); j > 0; j /= 2)
        try_positions(&search, gb_div_up(panels, j) * PANEL);
    search.best.copied = copied_channels(conv, &search.best);
    return search.best;
}

/* Weights -------------------------------------------------------------------------------------- */

typedef struct transform {
    gb_packing packing; /* of the taps of a panel, into scratch */
    gb_scratch taps;
} transform;

static void transform_weights(const gb_step_call *call)
{
    const transform *t = call->params;
    const int64_t terms = t->packing.inner, panel = gb_conv_winograd_panel(terms);
    float *taps = gb_scratch_get(call, t->taps);
    int64_t begin, end;
    while (gb_take_items(call, t->packing.panels, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            float *dst = (float *)call->buffers[t->packing.dst] + i * panel;
            float *behind = dst + panel - PANEL;
            const gb_winograd_weights weights = {.taps = taps, .terms = terms, .dst = dst};
            gb_packing_run_panel(&t->packing, call->buffers[t->packing.src], i, taps);
            memset(behind, 0, PANEL * sizeof *behind);
            *behind = t->packing.kernels->winograd_weights(&weights);
        }
}

static void describe_taps(gb_packing *packing, const gb_conv_problem *problem, int tile_axis)
{
    const int axes[] = {problem->n_axes - tile_axis, tile_axis}; /* lines of taps, taps of a line */
    packing->type = problem->weights_type;
    packing->first = problem->first_weight;
    packing->n = problem->out_channels;
    packing->n_stride = problem->out_stride;
    packing->inner = packing->inner_block = problem->in_channels;
    packing->inner_stride = problem->in_stride;
    packing->n_taps = 2;
    for (int i = 0; i < 2; i++) {
        packing->tap_dims[i] = 3;
        packing->tap_strides[i] = problem->axes[axes[i]].tap_stride;
    }
    gb_packing_complete(packing);
}

static void print_transform(const gb_printer *printer, const void *params)
{
    const transform *t = params;
    fprintf(printer->file, "taps of %s ", gb_data_type_name(t->packing.type));
    gb_print_slot(printer, t->packing.src);
    fputs(", transformed for F(2x2, 3x3)\n", printer->file);
}

/* Adds the step that transforms the weights. */
static gb_status add_weights(
        gb_program *program, const gb_conv_problem *problem, int tile_axis, uint32_t *transformed)
{
    size_t bytes = (size_t)gb_conv_winograd_panel(problem->in_channels) * sizeof(float);
    gb_step *step;
    GB_TRY(gb_program_begin(program, "transform", &step));
    transform *t = gb_step_alloc(step, 1, sizeof *t);
    if (!t)
        return GB_OUT_OF_MEMORY;
    describe_taps(&t->packing, problem, tile_axis);
    t->taps = gb_scratch_add(step, gb_float_bytes(TAPS * problem->in_channels * PANEL));
    if (!gb_size_mul(bytes, (size_t)t->packing.panels, &bytes) || bytes > INT64_MAX)
        return gb_fail(GB_OUT_OF_MEMORY, "transformed weights do not fit the address space");
    GB_TRY(gb_program_temporary(program, bytes, transformed));
    GB_TRY(gb_step_use_buffer(step, problem->weights_buffer, false, &t->packing.src));
    GB_TRY(gb_step_use_buffer(step, *transformed, true, &t->packing.dst));
    step->run = transform_weights;
    step->params = t;
    step->params_bytes = sizeof *t;
    step->work = (double)bytes;
    GB_TRY(gb_step_describe(program, step, print_transform, t));
    return gb_program_add(program, step);
}

/* Step ----------------------------------------------------------------------------------------- */

/* Operations of the sums of products less those of tiles and their transforms, which take 32 for
 * the source and 24 for the results. */
static double spared_operations(const gb_conv_problem *problem)
{
    const gb_conv_axis *axes = problem->axes;
    const double in = (double)problem->in_channels, out = (double)problem->out_channels;
    const double positions = (double)axes[BATCH].out * (double)axes[Y].out * (double)axes[X].out;
    const double tiles = (double)count_tiles(axes[BATCH].out, axes[Y].out, axes[X].out);
    return (double)problem->groups *
           (2 * TAPS * positions * in * out -
                   tiles * (2 * PRODUCTS * in * out + 32 * in + 24 * out));
}

/* Lists the terms of a block of K, and what lies where in scratch. */
static gb_status lay_out(gb_step *step, gb_conv_product *plan)
{
    gb_conv_plan *conv = &plan->conv;
    gb_conv_winograd *winograd = plan->winograd;
    const gb_conv_plan_axis *axes = conv->axes;
    const int64_t depth = winograd->depth;
    const int64_t tiles = count_tiles(axes[BATCH].block, axes[Y].block, axes[X].block);
    conv->offsets.source = gb_step_alloc(step, (size_t)depth, 2 * sizeof *conv->offsets.source);
    if (!conv->offsets.source)
        return GB_OUT_OF_MEMORY;
    conv->offsets.panel = conv->offsets.source + depth;
    for (int64_t k = 0; k < depth; k++) {
        conv->offsets.source[k] = k;
        conv->offsets.panel[k] = k * PANEL;
    }
    winograd->row = gb_odd_lines(conv->in_channels);
    winograd->matrix = gb_odd_lines(tiles * winograd->row);
    winograd->sum_row = gb_odd_lines(conv->out_block);
    winograd->sum_matrix = gb_odd_lines(tiles * winograd->sum_row);
    winograd->source = gb_scratch_add(step, gb_float_bytes(PRODUCTS * winograd->matrix));
    winograd->sums = gb_scratch_add(step, gb_float_bytes(PRODUCTS * winograd->sum_matrix));
    if (plan->vnni)
        return GB_SUCCESS;
    winograd->most = gb_scratch_add(step, gb_float_bytes(tiles));
    winograd->tap_sums = gb_scratch_add(step, gb_float_bytes(GB_TILE_ELEMENTS));
    return GB_SUCCESS;
}

/* Terms of K in equal blocks, whose weights of a register tile take 3/4 of L1 at most. */
static int64_t choose_depth(int64_t terms, int64_t columns)
{
    const int64_t l1_floats = (int64_t)(gb_machine_get()->l1_bytes / sizeof(float));
    const int64_t most = gb_max_i64(l1_floats * 3 / 4 / columns, 1);
    return gb_div_up(terms, gb_div_up(terms, most));
}

/* Sides, blocks and scratch; of VNNI groups unless vnni is NULL. */
static gb_status choose(gb_program *program, gb_step *step, const gb_conv_problem *problem,
        gb_conv_vnni *vnni, gb_conv_product **made)
{
    gb_conv_product *plan = *made = gb_step_alloc(step, 1, sizeof *plan);
    gb_conv_winograd *winograd = gb_step_alloc(step, 1, sizeof *winograd);
    if (!plan || !winograd)
        return GB_OUT_OF_MEMORY;
    gb_conv_plan *conv = &plan->conv;
    *conv = gb_conv_begin(problem);
    conv->term_cost = gb_multiply_add_cost();
    if (vnni) {
        conv->in_channels = gb_div_up(problem->in_channels, vnni->form.vnni_factor);
        conv->term_cost = gb_group_cost(false);
    }
    plan->vnni = vnni;
    plan->winograd = winograd;
    plan->arithmetic = vnni ? &gb_conv_winograd_int8_arithmetic : &gb_conv_winograd_arithmetic;
    const bool turned = gb_conv_result_stride(conv, conv->axes[Y].dim) <
                        gb_conv_result_stride(conv, conv->axes[X].dim);
    conv->tile_axis = turned ? Y : X;
    conv->channels_last = true;
    conv->taps = TAPS;
    conv->in_block = conv->in_channels;
    gb_conv_product_take_lines(plan);
    const gb_conv_blocks blocks = choose_blocks(plan, gb_program_threads(program));
    GB_TRY(gb_conv_set_blocks(conv, &blocks));
    *winograd = (gb_conv_winograd){.first_weight = problem->first_weight,
            .in_stride = problem->in_stride,
            .out_stride = problem->out_stride,
            .tap_strides = {0, problem->axes[Y].tap_stride, problem->axes[X].tap_stride},
            .depth = choose_depth(conv->in_channels, plan->tile_cols),
            .copied_channels = blocks.copied};
    GB_TRY(lay_out(step, plan));
    gb_conv_product_add_scratch(step, plan);
    step->work = gb_conv_terms(conv) / 8;
    step->spared = spared_operations(problem);
    step->params = plan;
    return GB_SUCCESS;
}

gb_status gb_conv_winograd_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    gb_conv_product *plan;
    uint32_t transformed;
    GB_TRY(choose(program, step, problem, NULL, &plan));
    GB_TRY(add_weights(program, problem, plan->conv.tile_axis, &transformed));
    GB_TRY(gb_step_use_buffer(step, transformed, false, &plan->conv.weights));
    GB_TRY(gb_step_use_buffer(step, problem->weights_buffer, false, &plan->winograd->taps));
    return gb_step_use_buffer(step, problem->src_buffer, false, &plan->conv.src);
}

gb_status gb_conv_winograd_int8_plan(
        gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    gb_conv_vnni *vnni = gb_step_alloc(step, 1, sizeof *vnni);
    gb_conv_product *plan;
    if (!vnni)
        return GB_OUT_OF_MEMORY;
    *vnni = gb_conv_int8_begin(problem);
    GB_TRY(choose(program, step, problem, vnni, &plan));
    GB_TRY(gb_conv_int8_add_weights(program, step, problem, plan));
    return gb_step_use_buffer(step, problem->src_buffer, false, &plan->conv.src);
}
