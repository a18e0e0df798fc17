/* Plans a pointwise and a depthwise convolution that run as one kernel: blocks of rows. */
#include "kernels/conv/conv_pair.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv/conv_numbers.h"
#include "kernels/conv/conv_views.h"
#include "kernels/cpu/step_call.h"
#include "kernels/gemm/packing.h"

enum { PANEL = GB_GEMM_PANEL, BATCH = 0, Y = 1, X = 2 };

/* Positions of the producer's source are evenly spaced over both axes of the image. */
static bool is_even(const gb_conv_problem *producer)
{
    const gb_conv_axis *y = &producer->axes[Y], *x = &producer->axes[X];
    return y->in <= 1 || y->src_stride == x->in * x->src_stride;
}

bool gb_conv_pair_fits(const gb_conv_problem *problem)
{
    const gb_conv_problem *producer = problem->producer;
    return producer && gb_conv_is_pointwise(producer) && gb_conv_is_depthwise(problem) &&
           problem->out_channels == 1 && is_even(producer) && producer->in_channels > 0;
}

/* What sizes alone decide; rows of the image run inside tiles. */
static gb_conv_pair pair_begin(const gb_conv_problem *problem)
{
    const gb_conv_problem *producer = problem->producer;
    const gb_conv_axis *axes = producer->axes;
    return (gb_conv_pair){.depthwise = gb_conv_depthwise_begin(problem, X),
            .src_type = producer->src_type,
            .k = producer->in_channels,
            .batch_stride = axes[BATCH].src_stride,
            .k_stride = producer->src_channel_stride,
            .position_stride = axes[axes[X].in > 1 ? X : Y].src_stride,
            .height = axes[Y].out,
            .width = axes[X].out,
            .bias = producer->bias,
            .post_ops = producer->pointwise};
}

/* Blocks --------------------------------------------------------------------------------------- */

/* Rows of the image that a block of result rows reads. */
static int64_t rows_of_block(const gb_conv_pair *pair, int64_t block)
{
    const gb_conv_plan_axis *y = &pair->depthwise.conv.axes[Y];
    return gb_min_i64(pair->height, (gb_conv_extent(y, block) - 1) * y->step + 1);
}

/* The longest rows x width whose packed source stays in the second level next to what it makes. */
static int64_t choose_rows(const gb_conv_pair *pair)
{
    enum { TRIES = 64 }; /* one after another; then every so many, however many rows there are */
    double budget = (double)(gb_machine_get()->l2_bytes / sizeof(float)) / 2;
    int64_t out = pair->depthwise.conv.axes[Y].out, block = out;
    for (int64_t j = 1; j <= out; j += 1 + j / TRIES) {
        block = gb_div_up(out, j);
        double positions = (double)rows_of_block(pair, block) * (double)pair->width;
        if (positions * (double)(pair->k + 2 * PANEL) <= budget)
            break;
    }
    return block;
}

/* The block is what the depthwise convolution copies from: panel by panel of its channels. */
static void use_block_as_source(gb_conv_pair *pair)
{
    gb_conv_plan *conv = &pair->depthwise.conv;
    int64_t positions = pair->rows * pair->width;
    pair->row_stride = conv->wide ? gb_odd_lines(positions) : PANEL;
    conv->src_channel_stride = conv->wide ? pair->row_stride : 1;
    conv->axes[BATCH].src_stride = 0;
    conv->axes[X].src_stride = conv->wide ? 1 : PANEL;
    conv->axes[Y].src_stride = pair->width * conv->axes[X].src_stride;
}

/* One image, some of its rows, and channels of a panel whose copy stays in half of L1: a power of
 * two of them. */
static gb_conv_blocks choose_blocks(const gb_conv_pair *pair)
{
    const gb_conv_plan *conv = &pair->depthwise.conv;
    double most = (double)(gb_machine_get()->l1_bytes / sizeof(float)) / 2;
    gb_conv_blocks blocks = {.channels = PANEL, .copied = PANEL, .cost = -1};
    blocks.positions[BATCH] = 1;
    blocks.positions[Y] = choose_rows(pair);
    blocks.positions[X] = conv->axes[X].out;
    while (conv->wide && blocks.channels > 1 && gb_conv_lay_out(conv, &blocks).floats > most)
        blocks.copied = blocks.channels /= 2;
    return blocks;
}

/* Rows that a block and the next one read: those of one part of the channels are kept. */
static int64_t count_shared_rows(const gb_conv_pair *pair)
{
    const gb_conv_plan_axis *y = &pair->depthwise.conv.axes[Y];
    int64_t shared = (gb_conv_extent(y, y->block) - 1) * y->step + 1 - y->block * y->stride;
    bool any = pair->parts == 1 && y->blocks > 1 && y->input_dilation == 1 && shared > 0;
    return any ? gb_min_i64(shared, pair->rows) : 0;
}

/* Terms of K that the panels of source and weights share L1 with. */
static int64_t choose_k_block(const gb_conv_pair *pair)
{
    int64_t most = (int64_t)(gb_machine_get()->l1_bytes / (2 * PANEL * sizeof(float)));
    return gb_div_up(pair->k, gb_div_up(pair->k, gb_max_i64(most, 1)));
}

/* Work items: blocks, or where these do not serve all threads alike, parts of their channels. */
static void choose_parts(gb_conv_pair *pair, int threads)
{
    const gb_conv_plan *conv = &pair->depthwise.conv;
    int64_t blocks = conv->axes[BATCH].out * conv->axes[Y].blocks;
    bool even = blocks % threads == 0 || blocks >= 8 * threads;
    pair->parts = even ? 1 : gb_min_i64(threads, gb_div_up(conv->out_channels, PANEL));
    pair->items = blocks * pair->parts;
    pair->shared_rows = count_shared_rows(pair);
}

/* Step ----------------------------------------------------------------------------------------- */

static void add_scratch(gb_step *step, gb_conv_pair *pair)
{
    const gb_conv_plan *conv = &pair->depthwise.conv;
    int64_t positions = pair->rows * pair->width;
    int64_t image = (conv->wide ? PANEL : positions) * pair->row_stride + PANEL;
    int64_t kept = pair->shared_rows * pair->width * gb_div_up(conv->out_channels, PANEL) * PANEL;
    pair->packed =
            gb_scratch_add(step, gb_float_bytes(gb_div_up(positions, PANEL) * PANEL * pair->k));
    pair->block = gb_scratch_add(step, gb_float_bytes(image));
    pair->kept = gb_scratch_add(step, gb_float_bytes(kept));
    pair->bias_block = gb_scratch_add(step, gb_float_bytes(PANEL * PANEL));
    if (pair->post_ops.n_instructions == 0)
        return;
    pair->registers = gb_scratch_add(step, gb_pointwise_scratch(&pair->post_ops));
    pair->views = gb_conv_add_views(step, &pair->post_ops);
}

/* The depthwise convolution reads the planes of the block. */
static gb_status use_planes(
        gb_program *program, gb_step *step, const gb_conv_problem *problem, gb_conv_pair *pair)
{
    const int64_t rows = pair->depthwise.conv.axes[Y].block;
    GB_TRY(gb_conv_planes_make(program, step, problem, rows, &pair->planes));
    pair->planes.plane.src_row = pair->width;
    return GB_SUCCESS;
}

static double producer_work(const gb_conv_pair *pair)
{
    const gb_conv_plan *conv = &pair->depthwise.conv;
    return (double)conv->axes[BATCH].out * (double)conv->axes[Y].blocks *
           (double)gb_max_i64(1, pair->rows - pair->shared_rows) * (double)pair->width *
           (double)pair->k * (double)conv->out_channels;
}

/* Weights in panels of k x channels, bias and source of the producer. */
static gb_status use_producer(
        gb_program *program, gb_step *step, const gb_conv_problem *producer, gb_conv_pair *pair)
{
    gb_packing packing = {.type = producer->weights_type,
            .n = producer->out_channels,
            .n_stride = producer->out_stride,
            .inner = producer->in_channels,
            .inner_block = producer->in_channels,
            .inner_stride = producer->in_stride};
    uint32_t packed;
    GB_TRY(gb_packing_add(program, &packing, producer->weights_buffer, &packed));
    GB_TRY(gb_step_use_buffer(step, packed, false, &pair->packed_weights));
    if (pair->bias.type != GB_UNDEF)
        GB_TRY(gb_step_use_buffer(step, pair->bias.buffer, false, &pair->bias_slot));
    return gb_step_use_buffer(step, producer->src_buffer, false, &pair->src);
}

gb_status gb_conv_pair_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem)
{
    gb_conv_pair *pair = gb_step_alloc(step, 1, sizeof *pair);
    if (!pair)
        return GB_OUT_OF_MEMORY;
    *pair = pair_begin(problem);
    gb_conv_blocks blocks = choose_blocks(pair);
    GB_TRY(gb_conv_set_blocks(&pair->depthwise.conv, &blocks));
    pair->depthwise.row_axis = Y;
    pair->rows = rows_of_block(pair, blocks.positions[Y]);
    pair->k_block = choose_k_block(pair);
    use_block_as_source(pair);
    choose_parts(pair, gb_program_threads(program));
    pair->in_planes = pair->depthwise.conv.wide && gb_conv_planes_can_read(problem);
    if (pair->in_planes)
        GB_TRY(use_planes(program, step, problem, pair));
    else
        GB_TRY(gb_conv_depthwise_finish(program, step, problem, &pair->depthwise));

    pair->offsets = gb_step_alloc(step, (size_t)pair->k, sizeof *pair->offsets);
    if (!pair->offsets)
        return GB_OUT_OF_MEMORY;
    for (int64_t i = 0; i < pair->k; i++)
        pair->offsets[i] = i * PANEL;
    add_scratch(step, pair);
    step->work += producer_work(pair) / 4;
    step->params = pair;
    return use_producer(program, step, problem->producer, pair);
}
