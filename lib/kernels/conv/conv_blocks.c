/* Searches the blocks of convolutions for the caches and threads at hand. */
#include "kernels/conv/conv_blocks.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/conv/conv_numbers.h"
#include "kernels/isa/costs.h"

#include <math.h>

enum { PANEL = GB_GEMM_PANEL, TRIES = 64 };

/* Axes as they lie in the copy, innermost first. */
static void order_axes(const gb_conv_plan *plan, int order[GB_AXES])
{
    int n = 0;
    order[n++] = plan->tile_axis;
    for (int a = plan->n_axes; a-- > 0;)
        if (a != plan->tile_axis)
            order[n++] = a;
}

/* From position to position of a copy whose channels lie last: a few of these follow each other without a gap, so that
 * terms of neighbouring taps make long runs. */
static int64_t position_floats(int64_t channels)
{
    return channels < GB_CACHE_LINE / (int64_t)sizeof(float) ? channels : gb_odd_lines(channels);
}

gb_conv_layout gb_conv_lay_out(const gb_conv_plan *plan, const gb_conv_blocks *blocks)
{
    gb_conv_layout layout = {.channel_stride = 1, .floats = 1};
    int64_t stride = plan->channels_last ? position_floats(blocks->copied) : 1;
    int order[GB_AXES];
    order_axes(plan, order);
    for (int i = 0; i < plan->n_axes; i++) {
        int a = order[i];
        layout.extent[a] = gb_conv_extent(&plan->axes[a], blocks->positions[a]);
        layout.stride[a] = stride;
        layout.floats *= (double)layout.extent[a];
        if (layout.floats > 1e15)
            return layout;
        stride *= layout.extent[a];
    }
    if (plan->channels_last) {
        layout.floats = (double)stride;
        return layout;
    }
    layout.channel_stride = gb_odd_lines(stride);
    layout.floats = (double)layout.channel_stride * (double)blocks->copied;
    return layout;
}

/* Search --------------------------------------------------------------------------------------- */

/* Cycles of a work item per input channel: `positions` results of each channel, `copied` source
 * positions. */
typedef double item_cost(
        const gb_conv_plan *plan, double positions, double channels, double copied);

typedef struct block_search {
    const gb_conv_plan *plan;
    int threads;
    int64_t tile_positions;      /* along the tile axis blocks are a multiple of it */
    double most_copy, most_sums; /* floats that fit the caches */
    item_cost *cost;
    gb_conv_blocks best;
} block_search;

static double product_cost(
        const gb_conv_plan *plan, double positions, double channels, double copied)
{
    const gb_costs *costs = gb_costs_get();
    return positions * channels * (double)plan->residue_most_taps * plan->term_cost +
           costs->conv_copy * copied + costs->conv_item;
}

static double depthwise_cost(
        const gb_conv_plan *plan, double positions, double channels, double copied)
{
    const gb_costs *costs = gb_costs_get();
    return channels * (positions * (double)plan->taps * costs->depthwise_multiply_add +
                              costs->conv_copy * copied + costs->depthwise_unit);
}

/* Takes the candidate if it is the first one, or fits and costs less than the best. */
static void consider(block_search *search, gb_conv_blocks *tried)
{
    const gb_conv_plan *plan = search->plan;
    gb_conv_layout layout = gb_conv_lay_out(plan, tried);
    double sums = (double)gb_max_i64(tried->channels, PANEL), positions = 1, copied = 1;
    int64_t items = plan->groups * gb_div_up(plan->out_channels, tried->channels);
    for (int a = 0; a < plan->n_axes; a++) {
        sums *= (double)tried->positions[a];
        positions *= (double)tried->positions[a];
        copied *= (double)layout.extent[a];
        items *= gb_div_up(plan->axes[a].out, tried->positions[a]);
    }
    bool fits = layout.floats <= search->most_copy && sums <= search->most_sums;
    if (search->best.cost >= 0 && !fits)
        return;
    double channels = (double)gb_min_i64(tried->channels, plan->out_channels);
    tried->cost = (double)gb_div_up(items, search->threads) *
                  search->cost(plan, positions, channels, copied);
    if (search->best.cost < 0 || tried->cost < search->best.cost)
        search->best = *tried;
}

/* All positions of such channels: axes from the inside out, and an axis is split only when all
 * inside it are whole. */
static void try_splits(block_search *search, int64_t channels, int64_t copied)
{
    const gb_conv_plan *plan = search->plan;
    gb_conv_blocks tried = {.channels = channels, .copied = copied};
    for (int a = 0; a < plan->n_axes; a++)
        tried.positions[a] = gb_min_i64(plan->axes[a].input_dilation, plan->axes[a].out);
    int order[GB_AXES];
    order_axes(plan, order);
    for (int i = 0; i < plan->n_axes; i++) {
        int a = order[i];
        const gb_conv_plan_axis *axis = &plan->axes[a];
        int64_t item = (i == 0 ? search->tile_positions : 1) * axis->input_dilation;
        for (int64_t j = gb_min_i64(gb_div_up(axis->out, item), TRIES); j > 0; j--) {
            int64_t block = gb_div_up(gb_div_up(axis->out, j), item) * item;
            tried.positions[a] = gb_min_i64(block, axis->out);
            consider(search, &tried);
        }
        tried.positions[a] = axis->out;
    }
}

static double l2_floats(void)
{
    return (double)(gb_machine_get()->l2_bytes / sizeof(float));
}

/* A quarter of L2 for the copy; where sums wait for the next block of channels, 3/8 for them and
 * 3/8 for weights. */
gb_conv_blocks gb_conv_product_blocks(const gb_conv_plan *plan, int64_t tile_rows, int threads)
{
    bool sums_wait = plan->in_block < plan->in_channels;
    block_search search = {.plan = plan,
            .threads = threads,
            .tile_positions = plan->wide ? PANEL : tile_rows,
            .most_copy = l2_floats() / 4,
            .most_sums = sums_wait ? l2_floats() * 3 / 8 : (double)INFINITY,
            .cost = product_cost,
            .best.cost = -1};
    int64_t k = plan->in_block * plan->taps;
    int64_t most = (int64_t)(gb_machine_get()->l2_bytes * 3 / 8 / sizeof(float)) /
                   gb_max_i64(k, 1) / PANEL;
    int64_t panels = gb_div_up(plan->out_channels, PANEL);
    int64_t least = gb_div_up(panels, gb_max_i64(most, 1));
    /* All small numbers of blocks, of large ones every so many: their number must not grow with
     * that of the channels. */
    for (int64_t j = least; j <= panels && j / 8 <= least; j += 1 + j / TRIES)
        try_splits(&search, gb_div_up(panels, j) * PANEL, plan->in_block);
    return search.best;
}

/* Planes of wide tiles are read right after they were copied: half of L1. Where channels lie last, a
 * line of the cache holds one position of several planes, which are copied together: a quarter of
 * L2. Channels come in powers of two, so that none of their blocks crosses a panel. */
gb_conv_blocks gb_conv_depthwise_blocks(const gb_conv_plan *plan, int64_t tile_rows, int threads)
{
    double l1_floats = (double)(gb_machine_get()->l1_bytes / sizeof(float));
    bool turns = plan->wide && plan->src_channel_stride == 1;
    int64_t least = turns ? GB_CACHE_LINE / (int64_t)sizeof(float) : 1;
    block_search search = {.plan = plan,
            .threads = threads,
            .tile_positions = plan->wide ? PANEL : tile_rows,
            .most_copy = plan->wide && !turns ? l1_floats / 2 : l2_floats() / 4,
            .most_sums = (double)INFINITY,
            .cost = depthwise_cost,
            .best.cost = -1};
    for (int64_t channels = PANEL; channels >= least; channels /= plan->wide ? 2 : PANEL + 1)
        try_splits(&search, channels, channels);
    return search.best;
}

gb_status gb_conv_set_blocks(gb_conv_plan *plan, const gb_conv_blocks *blocks)
{
    gb_conv_layout layout = gb_conv_lay_out(plan, blocks);
    if (layout.floats > 1e12)
        return gb_fail(GB_OUT_OF_MEMORY, "a convolution's window spans %.3g source elements",
                layout.floats);
    plan->out_block = blocks->channels;
    plan->out_blocks = gb_div_up(plan->out_channels, plan->out_block);
    plan->items = plan->groups * plan->out_blocks;
    for (int a = 0; a < plan->n_axes; a++) {
        gb_conv_plan_axis *axis = &plan->axes[a];
        axis->block = blocks->positions[a];
        axis->blocks = gb_div_up(axis->out, axis->block);
        axis->extent = layout.extent[a];
        axis->copy_stride = layout.stride[a];
        plan->items *= axis->blocks;
    }
    plan->copy_channel_stride = layout.channel_stride;
    /* Wide tiles read whole vectors, up to a panel beyond the last position. */
    plan->copy_bytes = gb_float_bytes((int64_t)layout.floats + PANEL);
    return GB_SUCCESS;
}
