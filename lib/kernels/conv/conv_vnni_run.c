/* Runs convolutions of VNNI groups: copies of the source, tiles. */
#include "kernels/conv/conv_vnni.h"

#include "base/memory.h"
#include "kernels/cpu/step_call.h"
#include "kernels/isa/tile_rows.h"

enum { PANEL = GB_GEMM_PANEL };

/* Copies -------------------------------------------------------------------------------------- */

/* One line along the tile axis, all channels of the block. */
static void copy_line(const gb_conv_product_item *u, const gb_conv_copy_desc *box, int64_t channels,
        const char *src, int32_t *dst)
{
    const gb_conv_plan *conv = u->item.conv;
    const gb_conv_vnni *vnni = u->plan->vnni;
    int a = conv->tile_axis;
    if (conv->channels_last) {
        gb_dot_copy copy = {.vnni_factor = vnni->form.vnni_factor,
                .floats = vnni->floats,
                .is_signed = vnni->is_signed,
                .flip = vnni->flip,
                .src = src,
                .rows = box->dims[a],
                .k = channels,
                .row_stride = box->src[a],
                .k_stride = conv->src_channel_stride,
                .dst = dst,
                .dst_row = box->dst[a]};
        conv->kernels->dot_copy(&copy);
        return;
    }
    gb_dot_pack pack = {.vnni_factor = vnni->form.vnni_factor,
            .floats = vnni->floats,
            .is_signed = vnni->is_signed,
            .flip = vnni->flip,
            .src = src,
            .k = channels,
            .n = box->dims[a],
            .k_stride = conv->src_channel_stride,
            .n_stride = box->src[a],
            .dst = dst,
            .dst_row = conv->copy_channel_stride};
    conv->kernels->dot_pack(&pack);
}

static void copy_groups(gb_conv_product_item *u, int64_t first, bool clear)
{
    const gb_conv_plan *conv = u->item.conv;
    const gb_conv_vnni *vnni = u->plan->vnni;
    const int64_t size = vnni->floats ? 2 : 1;
    gb_conv_copy_desc box;
    int64_t channel = (first - u->item.group * conv->in_channels) * vnni->form.vnni_factor,
            lines = 1;
    if (clear)
        gb_conv_item_clear(&u->item, vnni->fill);
    if (!gb_conv_item_copy_desc(&u->item, 0, 0, &box))
        return;
    int64_t channels = gb_min_i64(u->item.n_in * vnni->form.vnni_factor, vnni->channels - channel);
    const char *src = u->item.call->buffers[conv->src];
    int64_t begin =
            box.from + (u->item.group * vnni->channels + channel) * conv->src_channel_stride;
    src += begin * size;
    int32_t *dst = (int32_t *)(void *)u->item.copy + box.to;
    for (int a = 0; a < conv->n_axes; a++)
        lines *= a == conv->tile_axis ? 1 : box.dims[a];
    for (int64_t i = 0; i < lines; i++) {
        int64_t from = 0, to = 0, rest = i;
        for (int a = conv->n_axes; a-- > 0;) {
            if (a == conv->tile_axis)
                continue;
            from += rest % box.dims[a] * box.src[a];
            to += rest % box.dims[a] * box.dst[a];
            rest /= box.dims[a];
        }
        copy_line(u, &box, channels, src + from * size, dst + to);
    }
}

/* Tiles ---------------------------------------------------------------------------------------- */

void gb_conv_vnni_multiply(const gb_conv_product_item *u, const gb_gemm_tile *whole,
        int64_t positions, int64_t channels, const gb_dot_finish *finish)
{
    const gb_conv_plan *conv = u->item.conv;
    gb_dot_finish columns = {0};
    gb_dot_tile tile = {.vnni_factor = u->plan->vnni->form.vnni_factor,
            .floats = u->plan->vnni->floats,
            .a_row = whole->a_row,
            .a_offsets = whole->a_offsets,
            .b_offsets = whole->b_offsets,
            .k = whole->k,
            .run = whole->run,
            .next = whole->next,
            .next_step = whole->next_step,
            .c_in_row = whole->c_in_row,
            .finish = finish ? &columns : NULL,
            .c_out_row = whole->c_out_row,
            .post_ops = whole->post_ops};
    if (u->paired) {
        const gb_conv_plan_axis *axis = &conv->axes[u->plan->paired_axis];
        tile.upper = (int)(positions / 2);
        tile.a_lower = axis->stride_in_copy * axis->copy_stride;
    }
    for (int64_t r = 0; r < positions; r += tile.rows) {
        tile.rows = (int)gb_tile_rows_in(positions - r, u->plan->tile_rows, u->plan->row_step);
        for (int64_t c = 0; c < channels; c += u->plan->tile_cols) {
            const float *in = whole->c_in ? whole->c_in + r * whole->c_in_row + c : NULL;
            tile.cols = (int)gb_min_i64(u->plan->tile_cols, channels - c);
            tile.a = (const int32_t *)(const void *)(whole->a + r * whole->a_row);
            tile.b = (const int32_t *)(const void *)(whole->b + c);
            tile.c_in = in;
            tile.c_out = whole->c_out + r * whole->c_out_row + c;
            tile.row = whole->row + r;
            tile.col = whole->col + c;
            if (finish) {
                columns.column_terms = finish->column_terms + c;
                columns.column_scales = finish->column_scales + c;
            }
            conv->kernels->dot_tile(&tile);
            if (tile.next)
                tile.next += tile.k * tile.next_step;
        }
    }
}

gb_dot_finish gb_conv_vnni_finish(const gb_conv_product_item *u, int64_t channel)
{
    const gb_conv_vnni *vnni = u->plan->vnni;
    void *const *buffers = u->item.call->buffers;
    const int64_t panels = gb_div_up(u->item.conv->out_channels, PANEL);
    const int64_t column = u->item.group * panels * PANEL + channel;
    return (gb_dot_finish){.column_terms = (const int32_t *)buffers[vnni->terms] + column,
            .column_scales = (const float *)buffers[vnni->factors] + column};
}

/* After the last block of channels the results of quantized values are finished. */
static void multiply_vnni(const gb_conv_product_item *u, gb_gemm_tile *whole, int64_t positions,
        int64_t channels, int64_t channel)
{
    const bool finished =
            !u->plan->vnni->floats && u->in_first + u->item.n_in == u->item.conv->in_channels;
    const gb_dot_finish finish = finished ? gb_conv_vnni_finish(u, channel) : (gb_dot_finish){NULL};
    gb_conv_vnni_multiply(u, whole, positions, channels, finished ? &finish : NULL);
}

const gb_conv_arithmetic gb_conv_vnni_arithmetic = {copy_groups, multiply_vnni, false};
