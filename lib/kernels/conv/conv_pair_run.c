/* Runs a pointwise and a depthwise convolution on blocks of rows. */
#include "kernels/conv/conv_pair.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL, BATCH = 0, Y = 1 };

typedef struct pair_unit {
    gb_conv_unit depthwise;
    const gb_conv_maker *maker;
    float *packed, *block, *kept, *bias, *registers;
    int64_t batch, first_row, rows; /* of the image */
    int64_t latest;                 /* the unit before, -1: none */
    int64_t rows_before, rows_kept; /* first rows that the unit before kept, last ones to keep */
} pair_unit;

/* The source of the new rows of a block in panels of positions. */
static void pack_source(const pair_unit *u)
{
    const gb_conv_maker *maker = u->maker;
    int64_t row = u->first_row + u->rows_before;
    int64_t first = u->batch * maker->batch_stride + row * maker->width * maker->position_stride;
    const char *src = u->depthwise.call->buffers[maker->src];
    gb_gemm_pack pack = {.type = maker->src_type,
            .src = src + first * (maker->src_type == GB_F32 ? 4 : 2),
            .k = maker->k,
            .n = (u->rows - u->rows_before) * maker->width,
            .k_stride = maker->k_stride,
            .n_stride = maker->position_stride,
            .dst = u->packed,
            .panel_stride = maker->k * PANEL};
    u->depthwise.conv->kernels->gemm_pack(&pack);
}

/* The bias of `n` channels along columns, and when positions go there in all of them. */
static void spread_bias(const pair_unit *u, int64_t channel, int64_t n)
{
    const gb_conv_maker *maker = u->maker;
    memset(u->bias, 0, PANEL * PANEL * sizeof(float));
    if (!maker->has_bias)
        return;
    const char *src = u->depthwise.call->buffers[maker->bias];
    gb_gemm_copy copy = {.type = maker->bias_type,
            .src = src + channel * maker->bias_stride * (maker->bias_type == GB_F32 ? 4 : 2),
            .rows = 1,
            .cols = n,
            .col_stride = maker->bias_stride,
            .dst = u->bias,
            .dst_row = n};
    u->depthwise.conv->kernels->gemm_copy(&copy);
    for (int64_t r = PANEL; u->depthwise.conv->wide && r-- > 0;)
        for (int64_t c = 0; c < PANEL; c++)
            u->bias[r * PANEL + PANEL - 1 - c] = u->bias[r];
}

/* Copies `rows` rows of a panel's block, from `first` on, to what is kept, or back. */
static void keep_rows(
        const pair_unit *u, int64_t channel, int64_t first, int64_t rows, bool restore)
{
    const gb_conv_maker *maker = u->maker;
    bool wide = u->depthwise.conv->wide;
    int64_t runs = wide ? PANEL : 1, count = rows * maker->width * (wide ? 1 : PANEL);
    float *kept = u->kept + channel * maker->shared_rows * maker->width;
    float *block = u->block + first * maker->width * (wide ? 1 : PANEL);
    for (int64_t i = 0; i < runs && count > 0; i++, kept += count, block += maker->row_stride)
        memcpy(restore ? block : kept, restore ? kept : block, (size_t)count * sizeof(float));
}

/* One panel of new positions times the panel of `n` channels. */
static void multiply(
        const pair_unit *u, int64_t position, int64_t positions, int64_t channel, int64_t n)
{
    const gb_conv *conv = u->depthwise.conv;
    const gb_conv_maker *maker = u->maker;
    const float *weights = (const float *)u->depthwise.call->buffers[maker->packed_weights];
    const float *source = u->packed + position * maker->k, *panel = weights + channel * maker->k;
    const float *a = conv->wide ? panel : source, *b = conv->wide ? source : panel;
    int64_t rows = conv->wide ? n : positions, cols = conv->wide ? positions : n;
    float *dst = u->block +
                 (u->rows_before * maker->width + position) * (conv->wide ? 1 : maker->row_stride);
    int64_t tiles = gb_div_up(rows, conv->kernels->gemm_limits().rows);
    int64_t high = gb_div_up(rows, tiles), across = conv->tile_cols;
    gb_gemm_tile tile = {.a_row = 1,
            .a_offsets = maker->offsets,
            .b_offsets = maker->offsets,
            .k = maker->k,
            .c_in_row = conv->wide ? PANEL : 0,
            .c_out_row = maker->row_stride};
    for (int64_t r = 0; r < rows; r += high)
        for (int64_t c = 0; c < cols; c += across) {
            tile.rows = (int)gb_min_i64(high, rows - r);
            tile.cols = (int)gb_min_i64(across, cols - c);
            tile.a = a + r;
            tile.b = b + c;
            tile.c_in = u->bias + r * tile.c_in_row + c;
            tile.c_out = dst + r * tile.c_out_row + c;
            conv->kernels->gemm_tile(&tile);
        }
}

/* The links of one row of the image, on as many channels or positions as a tile takes. */
static void link_tile(
        const pair_unit *u, int64_t y, int64_t channel, int64_t first, int64_t rows, int64_t cols)
{
    const gb_conv *conv = u->depthwise.conv;
    const gb_conv_maker *maker = u->maker;
    int64_t position[GB_AXES] = {0}, x = conv->wide ? 0 : first;
    int64_t at = (y - u->first_row) * maker->width;
    int x_dim = conv->axes[2].dim;
    gb_tile_view views[GB_TILE_OPERANDS];
    position[conv->axes[BATCH].dim] = u->batch;
    position[conv->axes[Y].dim] = y;
    position[x_dim] = x;
    position[conv->channel_dim] = channel + (conv->wide ? first : 0);
    gb_tile_views(&maker->links, u->depthwise.call->buffers, position,
            conv->wide ? conv->channel_dim : x_dim, conv->wide ? x_dim : conv->channel_dim, views);
    float *data = u->block + first * maker->row_stride + at * (conv->wide ? 1 : maker->row_stride);
    for (uint32_t i = 0; i < maker->links.n_operands; i++)
        if (maker->links.operands[i].slot >= GB_TILE_LOCAL)
            views[i] = (gb_tile_view){
                    .data = (char *)data, .row_stride = maker->row_stride, .col_stride = 1};
    conv->kernels->tile_run(&maker->links, views, rows, cols, u->registers);
}

static void run_links(const pair_unit *u, int64_t channel, int64_t n)
{
    bool wide = u->depthwise.conv->wide;
    int64_t width = u->maker->width, rows = wide ? n : width, cols = wide ? width : n;
    int64_t high = GB_TILE_ELEMENTS / gb_min_i64(cols, GB_TILE_ELEMENTS);
    for (int64_t y = u->first_row + u->rows_before; y < u->first_row + u->rows; y++)
        for (int64_t first = 0; first < rows; first += high)
            link_tile(u, y, channel, first, gb_min_i64(high, rows - first), cols);
}

/* A panel of channels: the block of the image, then the results that it serves. */
static void run_panel(pair_unit *u, int64_t block, int64_t channel)
{
    const gb_conv *conv = u->depthwise.conv;
    const gb_conv_maker *maker = u->maker;
    int64_t positions = (u->rows - u->rows_before) * maker->width;
    int64_t n = gb_min_i64(PANEL, conv->out_channels - channel);
    spread_bias(u, channel, n);
    keep_rows(u, channel, 0, u->rows_before, true);
    for (int64_t p = 0; p < positions; p += PANEL)
        multiply(u, p, gb_min_i64(PANEL, positions - p), channel, n);
    if (maker->has_links)
        run_links(u, channel, n);
    keep_rows(u, channel, u->rows - u->rows_kept, u->rows_kept, false);
    u->depthwise.source = u->block;
    u->depthwise.source_first =
            channel * conv->src_channel_stride + u->first_row * conv->axes[Y].src_stride;
    for (int64_t c = channel; c < channel + n; c += conv->out_block) {
        gb_conv_unit_start(&u->depthwise, block * conv->out_blocks + c / conv->out_block);
        gb_depthwise_unit(&u->depthwise);
    }
}

/* Rows at the end that the next unit reads, too. */
static int64_t count_kept(const pair_unit *u, int64_t index)
{
    const gb_conv_axis *y = &u->depthwise.conv->axes[Y];
    if (u->maker->shared_rows == 0 || (index + 1) % y->blocks == 0)
        return 0;
    int64_t next = gb_max_i64(gb_conv_begin(y, u->depthwise.first[Y] + y->block), u->first_row);
    int64_t rows = u->first_row + u->rows - next;
    return gb_max_i64(0, rows);
}

static void run_unit(pair_unit *u, int64_t index)
{
    const gb_conv *conv = u->depthwise.conv;
    const gb_conv_axis *y = &conv->axes[Y];
    int64_t part = index % u->maker->parts, block = index / u->maker->parts, begin, end;
    gb_conv_unit_start(&u->depthwise, block * conv->out_blocks);
    int64_t first = u->depthwise.begin[Y];
    int64_t last = first + (gb_conv_extent(y, u->depthwise.count[Y]) - 1) * y->step;
    u->batch = u->depthwise.first[BATCH];
    u->first_row = gb_min_i64(gb_max_i64(first, 0), u->maker->height);
    u->rows = gb_max_i64(gb_min_i64(last + 1, u->maker->height) - u->first_row, 0);
    u->rows_before = u->latest == index - 1 ? u->rows_kept : 0;
    u->rows_kept = count_kept(u, index);
    u->latest = index;
    pack_source(u);
    gb_split(gb_div_up(conv->out_channels, PANEL), (int)part, (int)u->maker->parts, &begin, &end);
    for (int64_t panel = begin; panel < end; panel++)
        run_panel(u, block, panel * PANEL);
}

void gb_conv_pair_run(const gb_step_call *call)
{
    const gb_conv *conv = call->params;
    const gb_conv_maker *maker = conv->maker;
    pair_unit u = {.depthwise = {.conv = conv,
                           .call = call,
                           .copy = gb_scratch_get(call, conv->copy),
                           .registers = gb_scratch_get(call, conv->registers)},
            .maker = maker,
            .latest = -1,
            .packed = gb_scratch_get(call, maker->packed),
            .block = gb_scratch_get(call, maker->block),
            .kept = gb_scratch_get(call, maker->kept),
            .bias = gb_scratch_get(call, maker->bias_block),
            .registers = gb_scratch_get(call, maker->registers)};
    int64_t begin, end;
    gb_split(conv->units, call->thread, call->n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        run_unit(&u, i);
}
