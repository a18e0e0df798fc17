/* Runs convolutions by minimal filtering. */
#include "kernels/conv/conv_winograd.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/conv/conv_vnni.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL, BATCH = 0 };

/* Where the source of a tile or the weights of a panel are beyond it, or infinite, sums of transformed
 * numbers may overflow or be NaN where sums of products are not: those results are summed tap by
 * tap. Which ones these are does not depend on the blocks of a work item. */
static const float limit = 0x1p40F;

static int other_axis(const gb_conv_plan *conv)
{
    return conv->n_axes - conv->tile_axis; /* of 1 and 2 */
}

/* Tiles along an axis, for the results of the work item. */
static int64_t tiles_along(const gb_conv_product_item *u, int axis)
{
    return gb_div_up(u->item.count[axis], 2);
}

/* Transforms ----------------------------------------------------------------------------------- */

/* All rows of tiles, for the channels that the copy holds. */
static void transform_rows(const gb_conv_product_item *u, int64_t first_channel)
{
    const gb_conv_plan *conv = u->item.conv;
    const gb_conv_winograd *plan = u->plan->winograd;
    const gb_conv_plan_axis *axes = conv->axes;
    const int x = conv->tile_axis, y = other_axis(conv);
    gb_winograd_source source = {.pairs = u->plan->vnni,
            .line = axes[y].copy_stride,
            .position = axes[x].copy_stride,
            .tiles = tiles_along(u, x),
            .channels = u->item.n_in,
            .dst = u->winograd->source + first_channel,
            .matrix = plan->matrix,
            .row = plan->row,
            .most = u->winograd->most};
    for (int64_t n = 0; n < u->item.count[BATCH]; n++)
        for (int64_t line = 0; line < u->item.count[y]; line += 2) {
            source.src = u->item.copy + n * axes[BATCH].copy_stride + line * axes[y].copy_stride;
            conv->kernels->winograd_source(&source);
            source.dst += source.tiles * plan->row;
            if (source.most)
                source.most += source.tiles;
        }
}

static int64_t count_tiles(const gb_conv_product_item *u)
{
    return u->item.count[BATCH] * tiles_along(u, 1) * tiles_along(u, 2);
}

/* The source is copied for whole tiles: the last one of an odd number of results reads one position
 * more than these do. */
static void transform_source(gb_conv_product_item *u)
{
    const gb_conv_plan *conv = u->item.conv;
    const int64_t step = u->plan->winograd->copied_channels, tiles = count_tiles(u);
    int64_t counts[GB_AXES];
    memcpy(counts, u->item.count, sizeof counts);
    const int64_t first = u->item.group * conv->in_channels;
    const gb_conv_arithmetic *usual =
            u->plan->vnni ? &gb_conv_vnni_arithmetic : &gb_conv_floats; /* of the copy */
    if (u->winograd->most)
        memset(u->winograd->most, 0, (size_t)tiles * sizeof *u->winograd->most);
    u->item.count[1] = 2 * tiles_along(u, 1);
    u->item.count[2] = 2 * tiles_along(u, 2);
    for (int64_t c = 0; c < conv->in_channels; c += step) {
        u->item.n_in = gb_min_i64(step, conv->in_channels - c);
        usual->copy(u, first + c, c == 0);
        transform_rows(u, c);
    }
    memcpy(u->item.count, counts, sizeof counts);
    u->item.n_in = conv->in_channels;
    u->winograd->any_beyond = false;
    for (int64_t t = 0; u->winograd->most && t < tiles; t++)
        u->winograd->any_beyond |= u->winograd->most[t] > limit;
}

/* Sums ----------------------------------------------------------------------------------------- */

/* One of the 16 products, of all channels of the work item. */
static void multiply_matrix(const gb_conv_product_item *u, int i, int64_t tiles)
{
    const gb_conv_plan *conv = u->item.conv;
    const gb_conv_winograd *plan = u->plan->winograd;
    const float *weights = u->item.call->buffers[conv->weights];
    const int64_t terms = conv->in_channels;
    const int64_t panel =
            u->plan->vnni ? GB_WINOGRAD_PRODUCTS * terms * PANEL : gb_conv_winograd_panel(terms);
    weights += u->item.group * gb_div_up(conv->out_channels, PANEL) * panel;
    gb_gemm_tile tile = {.a_row = plan->row,
            .a_offsets = conv->offsets.source,
            .b_offsets = conv->offsets.panel,
            .c_in_row = plan->sum_row,
            .c_out_row = plan->sum_row};
    for (int64_t k = 0; k < terms; k += plan->depth)
        for (int64_t c = 0; c < u->item.n_out; c += PANEL) {
            float *sums = u->winograd->sums + i * plan->sum_matrix + c;
            tile.a = u->winograd->source + i * plan->matrix + k;
            tile.b = weights + (u->item.out_first + c) / PANEL * panel + (i * terms + k) * PANEL;
            tile.k = tile.run = gb_min_i64(plan->depth, terms - k);
            tile.c_in = k ? sums : NULL;
            tile.c_out = sums;
            const int64_t channels = gb_min_i64(PANEL, u->item.n_out - c);
            if (u->plan->vnni)
                gb_conv_vnni_multiply(u, &tile, tiles, channels, NULL);
            else
                gb_conv_product_multiply(u, &tile, tiles, channels);
        }
}

static float element(gb_data_type type, const void *data, int64_t index)
{
    return type == GB_F32 ? ((const float *)data)[index] : (float)gb_element_get(type, data, index);
}

/* The sum of one result, tap by tap. */
static float sum_taps(const gb_conv_product_item *u, const int64_t *position, int64_t channel)
{
    const gb_conv_plan *conv = u->item.conv;
    const gb_conv_winograd *plan = u->plan->winograd;
    const gb_conv_plan_axis *axes = conv->axes;
    const int x = conv->tile_axis, y = other_axis(conv);
    const void *src = u->item.call->buffers[conv->src],
               *weights = u->item.call->buffers[plan->taps];
    const int64_t image = position[BATCH] * axes[BATCH].src_stride;
    const int64_t filter = plan->first_weight + channel * plan->out_stride;
    float sum = 0;
    for (int64_t i = 0; i < 3; i++)
        for (int64_t j = 0; j < 3; j++) {
            const int64_t sy = gb_conv_source(&axes[y], position[y], i);
            const int64_t sx = gb_conv_source(&axes[x], position[x], j);
            if (sy < 0 || sy >= axes[y].in || sx < 0 || sx >= axes[x].in)
                continue;
            const int64_t s = image + sy * axes[y].src_stride + sx * axes[x].src_stride;
            const int64_t w = filter + i * plan->tap_strides[y] + j * plan->tap_strides[x];
            for (int64_t c = 0; c < conv->in_channels; c++)
                sum += element(conv->src_type, src, s + c * conv->src_channel_stride) *
                       element(conv->src_type, weights, w + c * plan->in_stride);
        }
    return sum;
}

/* Sums tap by tap of the line's positions from `first` on, and what `whole` does with them. */
static void finish_taps(const gb_conv_product_item *u, const gb_gemm_tile *whole, int64_t first,
        int64_t positions, int64_t channels, int64_t channel)
{
    gb_gemm_tile tile = *whole;
    float *sums = u->winograd->tap_sums;
    for (int64_t p = 0; p < positions; p++) {
        int64_t position[GB_AXES];
        for (int a = 0; a < u->item.conv->n_axes; a++)
            position[a] = u->item.first[a] + u->item.line[a];
        position[u->item.conv->tile_axis] += first + p;
        for (int64_t c = 0; c < channels; c++)
            sums[p * PANEL + c] = sum_taps(u, position, channel + c);
    }
    tile.a = tile.b = tile.c_in = sums;
    tile.c_in_row = PANEL;
    gb_conv_product_multiply(u, &tile, positions, channels);
}

/* A run of positions of the line that begins with tile `row`, out of the sums; `finish`: as in
 * gb_winograd_result. */
static void finish_tiles(const gb_conv_product_item *u, const gb_gemm_tile *whole, int64_t row,
        int64_t positions, int64_t channels, int64_t channel, const gb_dot_finish *finish)
{
    const gb_conv_winograd *plan = u->plan->winograd;
    const gb_winograd_result result = {
            .sums = u->winograd->sums + row * plan->sum_row + channel - u->item.out_first,
            .matrix = plan->sum_matrix,
            .row = plan->sum_row,
            .finish = finish,
            .line = (int)(u->item.line[other_axis(u->item.conv)] % 2),
            .positions = positions,
            .cols = channels,
            .dst = whole->c_out,
            .dst_row = whole->c_out_row,
            .post_ops = whole->post_ops,
            .first_position = whole->row,
            .first_col = whole->col};
    u->item.conv->kernels->winograd_result(&result);
}

/* The largest magnitude among the taps of the channel's panel. */
static float largest_weight(const gb_conv_product_item *u, int64_t channel)
{
    const gb_conv_plan *conv = u->item.conv;
    const float *weights = u->item.call->buffers[conv->weights];
    return weights[(channel / PANEL + 1) * gb_conv_winograd_panel(conv->in_channels) - PANEL];
}

/* Positions of the line from tile `first` on that are all beyond the limit, or all not. */
static int64_t positions_alike(const float *most, int64_t positions, bool *beyond)
{
    int64_t p = 2;
    *beyond = most[0] > limit;
    while (p < positions && (most[p / 2] > limit) == *beyond)
        p += 2;
    return gb_min_i64(p, positions);
}

/* The first tile of the group. */
static int64_t first_tile(const gb_conv_product_item *u)
{
    const int x = u->item.conv->tile_axis, y = other_axis(u->item.conv);
    return (u->item.line[BATCH] * tiles_along(u, y) + u->item.line[y] / 2) * tiles_along(u, x) +
           u->group_first / 2;
}

/* A group of the line's results. */
static void finish_group(const gb_conv_product_item *u, gb_gemm_tile *whole, int64_t positions,
        int64_t channels, int64_t channel)
{
    int64_t row = first_tile(u);
    const bool all_beyond = largest_weight(u, channel) > limit;
    gb_gemm_tile part = *whole;
    for (int64_t done = 0, n; done < positions; done += n, row += n / 2) {
        bool beyond = all_beyond;
        n = positions - done;
        if (!all_beyond && u->winograd->any_beyond)
            n = positions_alike(u->winograd->most + row, n, &beyond);
        part.row = whole->row + done;
        part.c_out = whole->c_out + done * whole->c_out_row;
        if (beyond)
            finish_taps(u, &part, u->group_first + done, n, channels, channel);
        else
            finish_tiles(u, &part, row, n, channels, channel, NULL);
    }
}

static void finish_integers(const gb_conv_product_item *u, gb_gemm_tile *whole, int64_t positions,
        int64_t channels, int64_t channel)
{
    const gb_dot_finish finish = gb_conv_vnni_finish(u, channel);
    finish_tiles(u, whole, first_tile(u), positions, channels, channel, &finish);
}

const gb_conv_arithmetic gb_conv_winograd_arithmetic = {
        .multiply = finish_group, .sums_made = true};
const gb_conv_arithmetic gb_conv_winograd_int8_arithmetic = {
        .multiply = finish_integers, .sums_made = true};

static void run_item(gb_conv_product_item *u, int64_t index)
{
    const gb_conv_plan *conv = u->item.conv;
    gb_conv_item_start(&u->item, index);
    if (u->copied != index / conv->out_blocks)
        transform_source(u);
    u->copied = index / conv->out_blocks;
    for (int i = 0; i < GB_WINOGRAD_PRODUCTS; i++)
        multiply_matrix(u, i, count_tiles(u));
    gb_conv_product_block(u);
}

void gb_conv_winograd_run(const gb_step_call *call)
{
    const gb_conv_product *plan = call->params;
    gb_conv_winograd_item item = {.source = gb_scratch_get(call, plan->winograd->source),
            .sums = gb_scratch_get(call, plan->winograd->sums)};
    if (!plan->vnni) {
        item.most = gb_scratch_get(call, plan->winograd->most);
        item.tap_sums = gb_scratch_get(call, plan->winograd->tap_sums);
    }
    gb_conv_product_item u = gb_conv_product_start(call);
    u.winograd = &item;
    int64_t begin, end;
    while (gb_take_items(call, plan->conv.items, &begin, &end))
        for (int64_t i = begin; i < end; i++)
            run_item(&u, i);
}
