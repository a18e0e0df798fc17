/* Runs a convolution plan: work items are blocks of positions x output channels. */
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/conv/conv_dot.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

/* Results of one run of the pointwise program: a run of positions of the line, from `first` of the
 * work item on, and channels of the work item. */
typedef struct tile_group {
    int64_t first, positions, channel;
} tile_group;

/* Tiles ---------------------------------------------------------------------------------------- */

/* All tiles of `rows` x `cols` results; A moves by a_row per row, B by one element per column.
 * Changes `tile`. */
static void conv_multiply(const gb_conv_item *u, gb_gemm_tile *tile, int64_t rows, int64_t cols)
{
    const gb_conv *conv = u->conv;
    const float *a = tile->a, *b = tile->b, *c_in = tile->c_in;
    float *c_out = tile->c_out;
    for (int64_t r = 0; r < rows; r += conv->tile_rows)
        for (int64_t c = 0; c < cols; c += conv->tile_cols) {
            tile->rows = (int)gb_min_i64(conv->tile_rows, rows - r);
            tile->cols = (int)gb_min_i64(conv->tile_cols, cols - c);
            tile->a = a + r * tile->a_row;
            tile->b = b + c;
            tile->c_in = c_in ? c_in + r * tile->c_in_row + c : NULL;
            tile->c_out = c_out + r * tile->c_out_row + c;
            conv->kernels->gemm_tile(tile);
        }
}

/* The product of positions `first`, first + up, .. of the line and the channels of a panel. */
static gb_gemm_tile product(const gb_conv_item *u, int64_t first, int64_t panel)
{
    const gb_conv *conv = u->conv;
    const gb_conv_axis *axis = &conv->axes[conv->tile_axis];
    const gb_conv_offsets *offsets =
            u->n_in == conv->in_block ? &conv->offsets : &conv->last_offsets;
    int64_t class = u->residue;
    const float *src = u->src + gb_conv_item_find(u, conv->tile_axis,
                                        u->first[conv->tile_axis] + first, &class);
    if (class < 0)
        return (gb_gemm_tile){.k = 0};
    const float *weights = u->panels + panel * conv->in_channels * conv->taps * PANEL;
    int64_t taps = (conv->residue_taps[class + 1] - conv->residue_taps[class]) / u->skip_taps;
    int64_t term = (conv->residue_taps[class] + u->skip_first * taps) * u->n_in;
    gb_gemm_tile tile = {.a = src,
            .a_row = axis->stride_in_copy / axis->interleave * axis->copy_stride,
            .a_offsets = offsets->source + term,
            .b = weights,
            .b_offsets = offsets->panel + term,
            .k = (u->skip_end - u->skip_first) * taps * u->n_in};
    if (conv->wide) {
        tile.a = weights, tile.a_row = 1, tile.a_offsets = offsets->panel + term;
        tile.b = src, tile.b_offsets = offsets->source + term;
    }
    return tile;
}

/* The group's results for a panel, `row` elements from row to row: positions x channels, or the
 * other way when wide. Adds to c_in, if there is one. */
static void multiply_panel(const gb_conv_item *u, const tile_group *g, int64_t channels,
        const float *c_in, float *c_out, int64_t row)
{
    const gb_conv *conv = u->conv;
    int64_t up = conv->axes[conv->tile_axis].input_dilation;
    for (int64_t p = 0; p < up && p < g->positions; p++) {
        gb_gemm_tile tile = product(u, g->first + p, (u->out_first + g->channel) / PANEL);
        int64_t positions = gb_div_up(g->positions - p, up);
        tile.c_in = c_in ? c_in + p * PANEL : NULL;
        tile.c_in_row = up * PANEL;
        tile.c_out = c_out + p * row;
        tile.c_out_row = up * row;
        if (conv->dot)
            gb_conv_dot_multiply(u, &tile, positions, channels, u->out_first + g->channel);
        else if (conv->wide)
            conv_multiply(u, &tile, channels, positions);
        else
            conv_multiply(u, &tile, positions, channels);
    }
}

static void move_views(const gb_conv_item *u, int64_t position, int64_t channel,
        bool positions_are_rows, gb_pointwise_view *views)
{
    for (uint32_t i = 0; i < u->conv->epilogue.n_operands; i++) {
        int64_t row = positions_are_rows ? position : channel;
        int64_t col = positions_are_rows ? channel : position;
        views[i] =
                gb_pointwise_view_at(&u->views[i], row, col, u->conv->epilogue.operands[i].bytes);
    }
}

static bool positions_are_rows(const gb_conv *conv)
{
    return !conv->wide && !conv->transposed;
}

/* The last block of K: results go through the pointwise program. */
static void conv_run_finish(
        gb_conv_item *u, const tile_group *g, int64_t channels, const float *sums)
{
    const gb_conv *conv = u->conv;
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    bool along_channels = positions_are_rows(conv);
    int64_t rows = along_channels ? g->positions : channels;
    int64_t cols = along_channels ? channels : g->positions;
    move_views(u, g->first, g->channel, along_channels, views);
    float *target = conv->direct ? (float *)views[0].data : u->registers;
    int64_t target_row = conv->direct ? views[0].row_stride : cols;
    if (conv->transposed) {
        multiply_panel(u, g, channels, sums, u->transposed, PANEL);
        conv->kernels->transpose(sizeof(float), (const char *)u->transposed, PANEL * sizeof(float),
                (char *)target, target_row * (int64_t)sizeof(float), rows, cols);
    } else {
        multiply_panel(u, g, channels, sums, target, target_row);
    }
    if (!conv->direct)
        conv->kernels->pointwise_run(&conv->epilogue, views, rows, cols, u->registers);
}

static void multiply_group(gb_conv_item *u, int64_t first, int64_t positions, float *sums)
{
    const gb_conv *conv = u->conv;
    bool last = u->in_first + u->n_in == conv->in_channels;
    int64_t lanes = conv->tile_cols / 2;
    for (int64_t channel = 0; channel < u->n_out; channel += PANEL, sums += GB_TILE_ELEMENTS) {
        int64_t channels = gb_min_i64(PANEL, u->n_out - channel);
        tile_group g = {.first = first, .positions = positions, .channel = channel};
        const float *earlier = u->in_first ? sums : NULL;
        if (last) {
            conv_run_finish(u, &g, channels, earlier);
            continue;
        }
        /* Whole vectors, so that they can be read back. */
        if (conv->wide)
            g.positions = (int64_t)gb_align_up((size_t)positions, (size_t)lanes);
        else
            channels = (int64_t)gb_align_up((size_t)channels, (size_t)lanes);
        multiply_panel(u, &g, channels, earlier, sums, PANEL);
    }
}

/* Taps of the skip axis that read inside the source. */
static void choose_taps(gb_conv_item *u)
{
    const gb_conv *conv = u->conv;
    u->skip_first = 0;
    u->skip_end = u->skip_taps = 1;
    if (conv->skip_axis < 0 || u->residue < 0)
        return;
    const gb_conv_axis *axis = &conv->axes[conv->skip_axis];
    int64_t o = u->first[conv->skip_axis] + u->line[conv->skip_axis];
    int64_t tap = gb_conv_first_tap(axis, o), begin = gb_conv_source(axis, o, tap);
    int64_t apart = axis->dilation_in_copy * axis->step;
    u->skip_taps = gb_conv_class_taps(axis, tap);
    u->skip_first = gb_min_i64(gb_max_i64(gb_ceil_div(-begin, apart), 0), u->skip_taps);
    u->skip_end = gb_min_i64(gb_ceil_div(axis->in - begin, apart), u->skip_taps);
    u->skip_end = gb_max_i64(u->skip_first, u->skip_end);
}

static void locate_line(gb_conv_item *u)
{
    const gb_conv *conv = u->conv;
    int64_t position[GB_AXES], offset = 0;
    u->residue = 0;
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_axis *axis = &conv->axes[a];
        position[axis->dim] = u->first[a] + u->line[a];
        if (a != conv->tile_axis)
            offset += gb_conv_item_find(u, a, position[axis->dim], &u->residue);
    }
    position[conv->channel_dim] = u->group * conv->out_channels + u->out_first;
    u->src = u->copy + offset;
    int tile_dim = conv->axes[conv->tile_axis].dim;
    bool rows = positions_are_rows(conv);
    if (u->in_first + u->n_in == conv->in_channels)
        gb_pointwise_views(&conv->epilogue, u->call->buffers, position,
                rows ? tile_dim : conv->channel_dim, rows ? conv->channel_dim : tile_dim, u->views);
}

static void multiply_block(gb_conv_item *u)
{
    const gb_conv *conv = u->conv;
    int64_t positions = gb_conv_line(conv, u->count), panels = gb_div_up(u->n_out, PANEL);
    float *sums = u->sums;
    memset(u->line, 0, sizeof u->line);
    do {
        locate_line(u);
        choose_taps(u);
        for (int64_t first = 0; first < positions; first += conv->group_positions) {
            multiply_group(u, first, gb_min_i64(conv->group_positions, positions - first), sums);
            sums += panels * GB_TILE_ELEMENTS;
        }
    } while (gb_conv_item_next_line(u, conv->joined_axis));
}

static void conv_run_unit(gb_conv_item *u, int64_t index)
{
    const gb_conv *conv = u->conv;
    gb_conv_item_start(u, index);
    const float *weights = u->call->buffers[conv->weights];
    int64_t group = gb_div_up(conv->out_channels, PANEL) * conv->in_channels * conv->taps * PANEL;
    u->in_first = 0;
    do {
        u->n_in = gb_min_i64(conv->in_block, conv->in_channels - u->in_first);
        u->panels = weights + u->group * group + u->in_first * conv->taps * PANEL;
        if (conv->in_block < conv->in_channels || u->copied != index / conv->out_blocks) {
            (conv->dot ? gb_conv_dot_copy : gb_conv_item_copy)(
                    u, u->group * conv->in_channels + u->in_first, u->in_first == 0);
        }
        u->copied = index / conv->out_blocks;
        multiply_block(u);
        u->in_first += u->n_in;
    } while (u->in_first < conv->in_channels);
}

void gb_conv_run(const gb_step_call *call)
{
    const gb_conv *conv = call->params;
    gb_conv_item u = {.conv = conv,
            .call = call,
            .copied = -1,
            .copy = gb_scratch_get(call, conv->copy),
            .sums = gb_scratch_get(call, conv->sums),
            .transposed = gb_scratch_get(call, conv->transpose_buffer),
            .registers = gb_scratch_get(call, conv->registers)};
    int64_t begin, end;
    gb_split(conv->items, call->thread, call->n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        conv_run_unit(&u, i);
}
