/* The blocks of result positions and channels that a convolution works on at once. */
#include "base/machine.h"
#include "base/memory.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/isa/costs.h"

enum { PANEL = GB_GEMM_PANEL, LINE = GB_CACHE_LINE / sizeof(float), TRIES = 64 };

/* An odd number of cache lines: neighbours at this distance spread over all cache sets. */
static int64_t odd_lines(int64_t count)
{
    return (gb_div_up(count, LINE) | 1) * LINE;
}

/* Channels in the copy. */
static int64_t channels_in_copy(const gb_conv *conv)
{
    return conv->depthwise ? conv->out_block : conv->in_block;
}

double gb_conv_lay_out(gb_conv *conv)
{
    double positions = 1;
    int64_t stride = 1;
    if (conv->channels_last)
        stride = odd_lines(channels_in_copy(conv));
    conv->copy_channel_stride = 1;
    for (int i = -1; i < conv->n_axes; i++) {
        int a = i < 0 ? conv->tile_axis : conv->n_axes - 1 - i;
        if (i >= 0 && a == conv->tile_axis)
            continue;
        gb_conv_axis *axis = &conv->axes[a];
        axis->blocks = gb_div_up(axis->out, axis->block);
        axis->extent = gb_conv_extent(axis, axis->block);
        axis->copy_stride = stride;
        positions *= (double)axis->extent;
        if (positions > 1e15)
            return positions; /* refused later */
        stride *= axis->extent;
    }
    if (conv->channels_last)
        return (double)stride;
    conv->copy_channel_stride = odd_lines(stride);
    return (double)conv->copy_channel_stride * (double)channels_in_copy(conv);
}

typedef struct block_search {
    int threads;
    double best;
    int64_t blocks[GB_AXES], out_block;
} block_search;

/* Cycles of the busiest thread per input channel. */
static double cost_of(gb_conv *conv, int threads)
{
    double positions = 1, copied = 1;
    int64_t items = conv->groups * gb_div_up(conv->out_channels, conv->out_block);
    for (int a = 0; a < conv->n_axes; a++) {
        positions *= (double)conv->axes[a].block;
        copied *= (double)conv->axes[a].extent;
        items *= conv->axes[a].blocks;
    }
    double channels = (double)gb_min_i64(conv->out_block, conv->out_channels);
    const gb_costs *costs = gb_costs_get();
    double item = positions * channels * (double)conv->residue_most_taps * costs->multiply_add +
                  costs->conv_copy * copied + costs->conv_item;
    if (conv->depthwise)
        item = channels * (positions * (double)conv->taps * costs->depthwise_multiply_add +
                                  costs->conv_copy * copied + costs->depthwise_unit);
    return (double)gb_div_up(items, threads) * item;
}

static void try_blocks(gb_conv *conv, block_search *search)
{
    double floats = gb_conv_lay_out(conv), sums = (double)gb_max_i64(conv->out_block, PANEL);
    for (int a = 0; a < conv->n_axes; a++)
        sums *= (double)conv->axes[a].block;
    double budget = (double)(gb_machine_get()->l2_bytes / sizeof(float));
    /* Planes are read right after they were copied. */
    double most = conv->depthwise && conv->wide
                          ? (double)(gb_machine_get()->l1_bytes / sizeof(float)) / 2
                          : budget / 4;
    bool fits = floats <= most && (conv->in_block == conv->in_channels || sums <= budget * 3 / 8);
    double cost = search->best < 0 || fits ? cost_of(conv, search->threads) : 0;
    if (search->best >= 0 && (!fits || cost >= search->best))
        return;
    search->best = cost;
    search->out_block = conv->out_block;
    for (int a = 0; a < conv->n_axes; a++)
        search->blocks[a] = conv->axes[a].block;
}

/* Axes from the inside out: an axis is split only when all inside it are whole. */
static void try_splits(gb_conv *conv, block_search *search)
{
    for (int a = 0; a < conv->n_axes; a++)
        conv->axes[a].block = gb_min_i64(conv->axes[a].input_dilation, conv->axes[a].out);
    for (int i = -1; i < conv->n_axes; i++) {
        int a = i < 0 ? conv->tile_axis : conv->n_axes - 1 - i;
        if (i >= 0 && a == conv->tile_axis)
            continue;
        gb_conv_axis *axis = &conv->axes[a];
        int64_t item = i < 0 && !conv->wide ? conv->tile_rows : i < 0 ? PANEL : 1;
        item *= axis->input_dilation;
        for (int64_t j = gb_min_i64(gb_div_up(axis->out, item), TRIES); j > 0; j--) {
            int64_t block = gb_div_up(gb_div_up(axis->out, j), item) * item;
            axis->block = gb_min_i64(block, axis->out);
            try_blocks(conv, search);
        }
        axis->block = axis->out;
    }
}

static void use_blocks(gb_conv *conv, const block_search *search)
{
    conv->out_block = search->out_block;
    for (int a = 0; a < conv->n_axes; a++)
        conv->axes[a].block = search->blocks[a];
    gb_conv_lay_out(conv);
    conv->out_blocks = gb_div_up(conv->out_channels, conv->out_block);
    conv->items = conv->groups * conv->out_blocks;
    for (int a = 0; a < conv->n_axes; a++)
        conv->items *= conv->axes[a].blocks;
}

static void choose_product_blocks(gb_conv *conv, int threads)
{
    block_search search = {.threads = threads, .best = -1};
    int64_t k = conv->in_block * conv->taps;
    int64_t most = (int64_t)(gb_machine_get()->l2_bytes * 3 / 8 / sizeof(float)) /
                   gb_max_i64(k, 1) / PANEL;
    int64_t panels = gb_div_up(conv->out_channels, PANEL);
    int64_t least = gb_div_up(panels, gb_max_i64(most, 1));
    /* All small numbers of blocks, of large ones every so many: their number must not grow with
     * that of the channels. */
    for (int64_t j = least; j <= panels && j / 8 <= least; j += 1 + j / TRIES) {
        conv->out_block = gb_div_up(panels, j) * PANEL;
        try_splits(conv, &search);
    }
    use_blocks(conv, &search);
}

/* Rows of wide tiles: an axis whose taps make a run, or the longest one. */
static void choose_row_axis(gb_conv *conv)
{
    int64_t most = 0;
    conv->row_axis = -1;
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_axis *axis = &conv->axes[a];
        int64_t worth = axis->block * (gb_conv_axis_run(axis) > 1 ? 4 : 1);
        if (a == conv->tile_axis || axis->input_dilation != 1 || worth < most)
            continue;
        conv->row_axis = a;
        most = worth;
    }
}

/* Channels come in powers of two, so that none of their blocks crosses a panel. */
static void choose_depthwise_blocks(gb_conv *conv, int threads)
{
    block_search search = {.threads = threads, .best = -1};
    for (conv->out_block = PANEL; conv->out_block > 0;
            conv->out_block /= conv->wide ? 2 : PANEL + 1)
        try_splits(conv, &search);
    use_blocks(conv, &search);
    choose_row_axis(conv);
}

void gb_conv_choose_blocks(gb_conv *conv, int threads)
{
    if (conv->depthwise)
        choose_depthwise_blocks(conv, threads);
    else
        choose_product_blocks(conv, threads);
}
