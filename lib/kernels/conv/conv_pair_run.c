/* Runs a pointwise and a depthwise convolution on blocks of rows. */
#include "kernels/conv/conv_pair.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"
#include "kernels/isa/tile_rows.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL, BATCH = 0, Y = 1 };

typedef struct pair_item {
    gb_conv_depthwise_item depthwise;
    gb_conv_planes_item planes;
    const gb_conv_pair *pair;
    float *packed, *block, *kept, *registers;
    float *bias;                    /* NULL: none */
    gb_pointwise_view *views;       /* of the post-ops */
    int64_t batch, first_row, rows; /* of the image */
    int64_t latest;                 /* the work item before, -1: none */
    int64_t rows_before, rows_kept; /* first rows that the work item before kept, last ones to
                                       keep */
} pair_item;

/* The source of the new rows of a block in panels of positions. */
static void pack_source(const pair_item *u)
{
    const gb_conv_pair *pair = u->pair;
    int64_t row = u->first_row + u->rows_before;
    int64_t first = u->batch * pair->batch_stride + row * pair->width * pair->position_stride;
    const char *src = u->depthwise.item.call->buffers[pair->src];
    gb_gemm_pack pack = {.type = pair->src_type,
            .src = src + first * (pair->src_type == GB_F32 ? 4 : 2),
            .k = pair->k,
            .n = (u->rows - u->rows_before) * pair->width,
            .k_stride = pair->k_stride,
            .n_stride = pair->position_stride,
            .dst = u->packed,
            .panel_stride = pair->k * PANEL};
    pair->depthwise.conv.kernels->gemm_pack(&pack);
}

/* The bias of `n` channels along columns, and when positions go there in all of them. */
static void spread_bias(const pair_item *u, int64_t channel, int64_t n)
{
    const gb_conv_pair *pair = u->pair;
    if (!u->bias)
        return;
    memset(u->bias, 0, PANEL * PANEL * sizeof(float));
    const char *src = u->depthwise.item.call->buffers[pair->bias_slot];
    gb_gemm_copy copy = {.type = pair->bias.type,
            .src = src + channel * pair->bias.stride * (pair->bias.type == GB_F32 ? 4 : 2),
            .rows = 1,
            .cols = n,
            .col_stride = pair->bias.stride,
            .dst = u->bias,
            .dst_row = n};
    pair->depthwise.conv.kernels->gemm_copy(&copy);
    for (int64_t r = PANEL; pair->depthwise.conv.wide && r-- > 0;)
        for (int64_t c = 0; c < PANEL; c++)
            u->bias[r * PANEL + PANEL - 1 - c] = u->bias[r];
}

/* Copies `rows` rows of a panel's block, from `first` on, to what is kept, or back. */
static void keep_rows(
        const pair_item *u, int64_t channel, int64_t first, int64_t rows, bool restore)
{
    const gb_conv_pair *pair = u->pair;
    bool wide = pair->depthwise.conv.wide;
    int64_t runs = wide ? PANEL : 1, count = rows * pair->width * (wide ? 1 : PANEL);
    float *kept = u->kept + channel * pair->shared_rows * pair->width;
    float *block = u->block + first * pair->width * (wide ? 1 : PANEL);
    for (int64_t i = 0; i < runs && count > 0; i++, kept += count, block += pair->row_stride)
        memcpy(restore ? block : kept, restore ? kept : block, (size_t)count * sizeof(float));
}

/* A block of K, from k on, of the product of one panel of new positions and the panel of `n`
 * channels. */
static void conv_pair_multiply(const pair_item *u, int64_t position, int64_t positions,
        int64_t channel, int64_t n, int64_t k)
{
    const gb_conv_pair *pair = u->pair;
    const gb_conv_plan *conv = &pair->depthwise.conv;
    const float *weights = (const float *)u->depthwise.item.call->buffers[pair->packed_weights];
    const float *source = u->packed + position * pair->k + k * PANEL;
    const float *panel = weights + channel * pair->k + k * PANEL;
    const float *a = conv->wide ? panel : source, *b = conv->wide ? source : panel;
    int64_t rows = conv->wide ? n : positions, cols = conv->wide ? positions : n;
    float *dst = u->block +
                 (u->rows_before * pair->width + position) * (conv->wide ? 1 : pair->row_stride);
    gb_gemm_limits limits = conv->kernels->gemm_limits();
    int64_t across = limits.cols;
    gb_gemm_tile tile = {.a_row = 1,
            .a_offsets = pair->offsets,
            .b_offsets = pair->offsets,
            .k = gb_min_i64(pair->k_block, pair->k - k),
            .run = pair->k_block,
            .c_in_row = k > 0        ? pair->row_stride
                        : conv->wide ? PANEL
                                     : 0,
            .c_out_row = pair->row_stride};
    const float *earlier = k > 0 ? dst : u->bias;
    for (int64_t r = 0; r < rows; r += tile.rows) {
        tile.rows = (int)gb_tile_rows(rows - r, limits.rows);
        for (int64_t c = 0; c < cols; c += across) {
            tile.cols = (int)gb_min_i64(across, cols - c);
            tile.a = a + r;
            tile.b = b + c;
            tile.c_in = earlier ? earlier + r * tile.c_in_row + c : NULL;
            tile.c_out = dst + r * tile.c_out_row + c;
            conv->kernels->gemm_tile(&tile);
        }
    }
}

/* The post-ops of one line of the image, on as many channels and positions as a tile takes: rows
 * from `first` on, columns from `col` on, of which there are more than a tile takes only where they
 * are positions. */
static void pointwise(const pair_item *u, int64_t y, int64_t channel, int64_t first, int64_t rows,
        int64_t col, int64_t cols)
{
    const gb_conv_pair *pair = u->pair;
    const gb_conv_plan *conv = &pair->depthwise.conv;
    int64_t position[GB_AXES] = {0}, x = conv->wide ? col : first;
    int64_t at = (y - u->first_row) * pair->width;
    int x_dim = conv->axes[2].dim;
    gb_pointwise_view *views = u->views;
    position[conv->axes[BATCH].dim] = u->batch;
    position[conv->axes[Y].dim] = y;
    position[x_dim] = x;
    position[conv->channel_dim] = channel + (conv->wide ? first : 0);
    gb_pointwise_views(&pair->post_ops, u->depthwise.item.call->buffers, position,
            conv->wide ? conv->channel_dim : x_dim, conv->wide ? x_dim : conv->channel_dim, views);
    float *data =
            u->block + first * pair->row_stride + at * (conv->wide ? 1 : pair->row_stride) + col;
    for (uint32_t i = 0; i < pair->post_ops.n_operands; i++)
        if (pair->post_ops.operands[i].slot >= GB_SCRATCH_OPERAND)
            views[i] = (gb_pointwise_view){
                    .data = (char *)data, .row_stride = pair->row_stride, .col_stride = 1};
    conv->kernels->pointwise_run(&pair->post_ops, views, rows, cols, u->registers);
}

static void run_post_ops(const pair_item *u, int64_t channel, int64_t n)
{
    bool wide = u->pair->depthwise.conv.wide;
    int64_t width = u->pair->width, rows = wide ? n : width, cols = wide ? width : n;
    int64_t across = gb_min_i64(cols, GB_TILE_ELEMENTS), high = GB_TILE_ELEMENTS / across;
    for (int64_t y = u->first_row + u->rows_before; y < u->first_row + u->rows; y++)
        for (int64_t first = 0; first < rows; first += high)
            for (int64_t col = 0; col < cols; col += across)
                pointwise(u, y, channel, first, gb_min_i64(high, rows - first), col,
                        gb_min_i64(across, cols - col));
}

/* The results that the block of `n` channels serves. */
static void run_planes(pair_item *u, int64_t channel, int64_t n)
{
    const gb_conv_pair *pair = u->pair;
    const gb_conv_item *item = &u->depthwise.item;
    const float *src = u->block - u->first_row * pair->width;
    for (int64_t c = 0; c < n; c++)
        gb_conv_planes_run_item(&u->planes, src + c * pair->row_stride, u->batch, channel + c,
                item->first[Y], item->count[Y]);
}

/* A panel of channels: the block of the image, then the results that it serves. */
static void run_panel(pair_item *u, int64_t block, int64_t channel)
{
    const gb_conv_pair *pair = u->pair;
    const gb_conv_plan *conv = &pair->depthwise.conv;
    int64_t positions = (u->rows - u->rows_before) * pair->width;
    int64_t n = gb_min_i64(PANEL, conv->out_channels - channel);
    spread_bias(u, channel, n);
    keep_rows(u, channel, 0, u->rows_before, true);
    for (int64_t k = 0; k < pair->k; k += pair->k_block)
        for (int64_t p = 0; p < positions; p += PANEL)
            conv_pair_multiply(u, p, gb_min_i64(PANEL, positions - p), channel, n, k);
    if (pair->post_ops.n_instructions)
        run_post_ops(u, channel, n);
    keep_rows(u, channel, u->rows - u->rows_kept, u->rows_kept, false);
    if (pair->in_planes) {
        run_planes(u, channel, n);
        return;
    }
    u->depthwise.item.source = u->block;
    u->depthwise.item.source_first =
            channel * conv->src_channel_stride + u->first_row * conv->axes[Y].src_stride;
    for (int64_t c = channel; c < channel + n; c += conv->out_block) {
        gb_conv_item_start(&u->depthwise.item, block * conv->out_blocks + c / conv->out_block);
        gb_conv_depthwise_run_item(&u->depthwise);
    }
}

/* Rows at the end that the next work item reads, too. */
static int64_t count_kept(const pair_item *u, int64_t index)
{
    const gb_conv_plan_axis *y = &u->pair->depthwise.conv.axes[Y];
    if (u->pair->shared_rows == 0 || (index + 1) % y->blocks == 0)
        return 0;
    int64_t next = gb_max_i64(
            gb_conv_first_source(y, u->depthwise.item.first[Y] + y->block), u->first_row);
    int64_t rows = u->first_row + u->rows - next;
    return gb_max_i64(0, rows);
}

static void run_item(pair_item *u, int64_t index)
{
    const gb_conv_plan *conv = &u->pair->depthwise.conv;
    const gb_conv_plan_axis *y = &conv->axes[Y];
    int64_t part = index % u->pair->parts, block = index / u->pair->parts, begin, end;
    gb_conv_item_start(&u->depthwise.item, block * conv->out_blocks);
    int64_t first = u->depthwise.item.begin[Y];
    int64_t last = first + (gb_conv_extent(y, u->depthwise.item.count[Y]) - 1) * y->step;
    u->batch = u->depthwise.item.first[BATCH];
    u->first_row = gb_min_i64(gb_max_i64(first, 0), u->pair->height);
    u->rows = gb_max_i64(gb_min_i64(last + 1, u->pair->height) - u->first_row, 0);
    u->rows_before = u->latest == index - 1 ? u->rows_kept : 0;
    u->rows_kept = count_kept(u, index);
    u->latest = index;
    pack_source(u);
    gb_split(gb_div_up(conv->out_channels, PANEL), (int)part, (int)u->pair->parts, &begin, &end);
    for (int64_t panel = begin; panel < end; panel++)
        run_panel(u, block, panel * PANEL);
}

void gb_conv_pair_run(const gb_step_call *call)
{
    const gb_conv_pair *pair = call->params;
    pair_item u = {.depthwise = gb_conv_depthwise_start(call, &pair->depthwise),
            .planes = gb_conv_planes_start(call, &pair->planes),
            .pair = pair,
            .latest = -1,
            .packed = gb_scratch_get(call, pair->packed),
            .block = gb_scratch_get(call, pair->block),
            .kept = gb_scratch_get(call, pair->kept),
            .bias = pair->bias.type == GB_UNDEF ? NULL : gb_scratch_get(call, pair->bias_block),
            .registers = gb_scratch_get(call, pair->registers),
            .views = gb_scratch_get(call, pair->views)};
    int64_t begin, end;
    while (gb_take_items(call, pair->items, &begin, &end))
        for (int64_t i = begin; i < end; i++)
            run_item(&u, i);
}
