/* Runs a convolution plan: units are blocks of positions x output channels. */
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/conv_unit.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

/* Tiles ---------------------------------------------------------------------------------------- */

/* All tiles of `rows` x `cols` results; A moves by a_row per row, B by one element per column. */
static void multiply(const gb_conv *conv, const gb_gemm_tile *whole, int64_t rows, int64_t cols)
{
    gb_gemm_tile tile = *whole;
    for (int64_t r = 0; r < rows; r += conv->tile_rows)
        for (int64_t c = 0; c < cols; c += conv->tile_cols) {
            tile.rows = (int)gb_min_i64(conv->tile_rows, rows - r);
            tile.cols = (int)gb_min_i64(conv->tile_cols, cols - c);
            tile.a = whole->a + r * tile.a_row;
            tile.b = whole->b + c;
            tile.c_in = whole->c_in ? whole->c_in + r * tile.c_in_row + c : NULL;
            tile.c_out = whole->c_out + r * tile.c_out_row + c;
            conv->kernels->gemm_tile(&tile);
        }
}

/* The product of positions `first` .. of the line and the channels of a panel. */
static gb_gemm_tile product(const gb_conv_unit *u, int64_t first, int64_t panel)
{
    const gb_conv *conv = u->conv;
    const gb_conv_axis *axis = &conv->axes[conv->tile_axis];
    int64_t position = axis->stride_in_copy / axis->phases * axis->copy_stride;
    const int64_t *offsets = u->n_in == conv->in_block ? conv->offsets : conv->last_offsets;
    const float *src = u->src + first * position;
    const float *weights = u->panels + panel * conv->in_channels * conv->taps * PANEL;
    weights += u->k_first * PANEL;
    if (conv->wide)
        return (gb_gemm_tile){.a = weights,
                .a_row = 1,
                .a_offsets = conv->panel_offsets,
                .b = src,
                .b_offsets = offsets + u->k_first,
                .k = u->k};
    return (gb_gemm_tile){.a = src,
            .a_row = position,
            .a_offsets = offsets + u->k_first,
            .b = weights,
            .b_offsets = conv->panel_offsets,
            .k = u->k};
}

static void move_views(const gb_conv_unit *u, int64_t position, int64_t channel,
        bool positions_are_rows, gb_tile_view *views)
{
    for (uint32_t i = 0; i < u->conv->tile.n_operands; i++) {
        const gb_tile_view *view = &u->views[i];
        int64_t row = positions_are_rows ? position : channel;
        int64_t col = positions_are_rows ? channel : position;
        int64_t offset = row * view->row_stride + col * view->col_stride;
        views[i] = *view;
        views[i].data += offset * u->conv->operand_bytes[i];
    }
}

static bool positions_are_rows(const gb_conv *conv)
{
    return !conv->wide && !conv->transposed;
}

/* The last block of K: results go through the tile program. rows x cols as the tiles see them. */
static void finish(gb_conv_unit *u, gb_gemm_tile *tile, int64_t rows, int64_t cols,
        int64_t position, int64_t channel)
{
    const gb_conv *conv = u->conv;
    gb_tile_view views[GB_TILE_OPERANDS];
    move_views(u, position, channel, positions_are_rows(conv), views);
    float *target = conv->direct ? (float *)views[0].data : u->registers;
    int64_t target_row = conv->direct ? views[0].row_stride : conv->transposed ? rows : cols;
    tile->c_out = conv->transposed ? u->turned : target;
    tile->c_out_row = conv->transposed ? PANEL : target_row;
    multiply(conv, tile, rows, cols);
    if (conv->transposed) {
        int64_t row_bytes = target_row * (int64_t)sizeof(float);
        conv->kernels->transpose(sizeof(float), (const char *)u->turned, PANEL * sizeof(float),
                (char *)target, row_bytes, cols, rows);
        int64_t kept = rows;
        rows = cols, cols = kept;
    }
    if (!conv->direct)
        conv->kernels->tile_run(&conv->tile, views, rows, cols, u->registers);
}

static void multiply_group(gb_conv_unit *u, int64_t first, int64_t positions, float *sums)
{
    const gb_conv *conv = u->conv;
    bool last = u->in_first + u->n_in == conv->in_channels;
    int64_t lanes = conv->tile_cols / 2;
    for (int64_t channel = 0; channel < u->n_out; channel += PANEL) {
        int64_t channels = gb_min_i64(PANEL, u->n_out - channel);
        gb_gemm_tile tile = product(u, first, (u->out_first + channel) / PANEL);
        int64_t rows = conv->wide ? channels : positions, cols = conv->wide ? positions : channels;
        tile.c_in = u->in_first ? sums : NULL;
        tile.c_in_row = PANEL;
        if (last) {
            finish(u, &tile, rows, cols, first, channel);
        } else {
            tile.c_out = sums;
            tile.c_out_row = PANEL;
            multiply(conv, &tile, rows, (int64_t)gb_align_up((size_t)cols, (size_t)lanes));
        }
        sums += GB_TILE_ELEMENTS;
    }
}

/* Taps of the skip axis that read inside the source, as a range of K. */
static void choose_taps(gb_conv_unit *u)
{
    const gb_conv *conv = u->conv;
    int64_t first = 0, end = 1;
    if (conv->skip_axis >= 0) {
        const gb_conv_axis *axis = &conv->axes[conv->skip_axis];
        int64_t o = u->first[conv->skip_axis] + u->line[conv->skip_axis];
        int64_t begin = axis->pad - o * axis->stride;
        first = gb_min_i64(gb_max_i64(ceil_div(begin, axis->dilation), 0), axis->kernel);
        end = gb_min_i64(ceil_div(axis->in + begin, axis->dilation), axis->kernel);
        end = gb_max_i64(first, end);
    }
    u->k_first = first * conv->skip_taps * u->n_in;
    u->k = (end - first) * conv->skip_taps * u->n_in;
}

static void locate_line(gb_conv_unit *u)
{
    const gb_conv *conv = u->conv;
    int64_t position[GB_MAX_NDIMS], offset = 0;
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_axis *axis = &conv->axes[a];
        position[axis->dim] = u->first[a] + u->line[a];
        offset += u->line[a] * axis->stride_in_copy * axis->copy_stride;
    }
    position[conv->channel_dim] = u->group * conv->out_channels + u->out_first;
    u->src = u->copy + offset;
    int tile_dim = conv->axes[conv->tile_axis].dim;
    bool rows = positions_are_rows(conv);
    if (u->in_first + u->n_in == conv->in_channels)
        gb_tile_views(&conv->tile, u->call->buffers, position, rows ? tile_dim : conv->channel_dim,
                rows ? conv->channel_dim : tile_dim, u->views);
}

static void multiply_block(gb_conv_unit *u)
{
    const gb_conv *conv = u->conv;
    int64_t positions = u->count[conv->tile_axis], panels = gb_div_up(u->n_out, PANEL);
    float *sums = u->sums;
    memset(u->line, 0, sizeof u->line);
    do {
        locate_line(u);
        choose_taps(u);
        for (int64_t first = 0; first < positions; first += conv->group_positions) {
            multiply_group(u, first, gb_min_i64(conv->group_positions, positions - first), sums);
            sums += panels * GB_TILE_ELEMENTS;
        }
    } while (gb_conv_unit_next_line(u, -1));
}

static void run_unit(gb_conv_unit *u, int64_t index)
{
    const gb_conv *conv = u->conv;
    gb_conv_unit_start(u, index);
    const float *weights = u->call->buffers[conv->weights];
    int64_t group = gb_div_up(conv->out_channels, PANEL) * conv->in_channels * conv->taps * PANEL;
    u->in_first = 0;
    do {
        u->n_in = gb_min_i64(conv->in_block, conv->in_channels - u->in_first);
        u->panels = weights + u->group * group + u->in_first * conv->taps * PANEL;
        if (conv->in_block < conv->in_channels || u->copied != index / conv->out_blocks)
            gb_conv_unit_copy(u, u->group * conv->in_channels + u->in_first, u->in_first == 0);
        u->copied = index / conv->out_blocks;
        multiply_block(u);
        u->in_first += u->n_in;
    } while (u->in_first < conv->in_channels);
}

void gb_conv_run(const gb_step_call *call)
{
    const gb_conv *conv = call->params;
    char *scratch = call->scratch;
    gb_conv_unit u = {.conv = conv, .call = call, .copied = -1};
    u.copy = (float *)scratch;
    u.sums = (float *)(scratch += conv->copy_bytes);
    u.turned = (float *)(scratch += conv->sum_bytes);
    u.registers = (float *)(scratch + conv->transpose_bytes);
    int64_t begin, end;
    gb_split(conv->units, call->thread, call->n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        run_unit(&u, i);
}
