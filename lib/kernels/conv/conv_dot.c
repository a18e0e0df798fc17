/* VNNI groups of convolutions of 8-bit quantized values: packing of weights, copies of the source,
 * tiles. */
#include "kernels/conv/conv_dot.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

void gb_conv_dot_init(gb_conv *conv)
{
    gb_conv_dot *dot = conv->dot;
    int vnni_factor;
    dot->form = conv->kernels->dot_form();
    vnni_factor = dot->form.vnni_factor;
    dot->is_signed = conv->src_type == GB_S8;
    dot->flip = dot->is_signed && vnni_factor == 4;
    dot->channels = conv->in_channels;
    conv->in_channels = gb_div_up(conv->in_channels, vnni_factor);
    uint32_t code = (uint32_t)(dot->zero_point + (dot->flip ? 128 : 0)), word = 0;
    for (int i = 0; i < vnni_factor; i++)
        word |= (code & (vnni_factor == 4 ? 0xFF : 0xFFFF)) << (i * 32 / vnni_factor);
    dot->fill = (int32_t)word;
}

/* Weights ------------------------------------------------------------------------------------- */

typedef struct packing {
    const gb_kernels *kernels;
    int vnni_factor;
    int64_t first, groups, group_stride, n, n_stride, channels, channel_stride;
    int64_t block, words; /* of input channels: in a block, in all */
    int64_t taps;
    int n_taps;
    int64_t tap_dims[GB_AXES], tap_strides[GB_AXES];
    int64_t zero_point; /* of the source, as its quantized values are moved */
    float scale;
    uint32_t src, dst, terms, factors;
    int64_t n_scales;
    float scales[];
} packing;

static int64_t panel_words(const packing *p)
{
    return p->words * p->taps * PANEL;
}

static int64_t tap_offset(const packing *p, int64_t tap)
{
    int64_t offset = 0;
    for (int i = p->n_taps; i-- > 0; tap /= p->tap_dims[i])
        offset += tap % p->tap_dims[i] * p->tap_strides[i];
    return offset;
}

/* Blocks of channels, in each all taps. */
static void pack_panel(const packing *p, const char *src, int64_t columns, int32_t *dst)
{
    gb_dot_pack pack = {.vnni_factor = p->vnni_factor,
            .is_signed = true,
            .n = columns,
            .k_stride = p->channel_stride,
            .n_stride = p->n_stride,
            .dst_row = PANEL,
            .panel_stride = PANEL,
            .dst = dst};
    for (int64_t word = 0; word < p->words; word += p->block) {
        int64_t first = word * p->vnni_factor, n = gb_min_i64(p->block, p->words - word);
        pack.k = gb_min_i64(n * p->vnni_factor, p->channels - first);
        for (int64_t tap = 0; tap < p->taps; tap++) {
            pack.src = src + first * p->channel_stride + tap_offset(p, tap);
            p->kernels->dot_pack(&pack);
            pack.dst += n * PANEL;
        }
    }
}

static void pack_weights(const gb_step_call *call)
{
    const packing *p = call->params;
    int64_t begin, end, panels = gb_div_up(p->n, PANEL);
    gb_split(p->groups * panels, call->thread, call->n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i / panels, n = i % panels * PANEL, columns = gb_min_i64(PANEL, p->n - n);
        const char *src = call->buffers[p->src];
        int32_t *dst = (int32_t *)call->buffers[p->dst] + i * panel_words(p);
        int32_t *terms = (int32_t *)call->buffers[p->terms] + i * PANEL;
        float *factors = (float *)call->buffers[p->factors] + i * PANEL;
        pack_panel(p, src + p->first + group * p->group_stride + n * p->n_stride, columns, dst);
        gb_dot_sums sums = {.vnni_factor = p->vnni_factor,
                .is_signed = true,
                .words = dst,
                .n = PANEL,
                .stride = 1,
                .k = p->words * p->taps,
                .step = PANEL,
                .sums = terms};
        p->kernels->dot_sums(&sums);
        for (int64_t c = 0; c < PANEL; c++) {
            terms[c] = (int32_t)((uint32_t)terms[c] * (uint32_t)-p->zero_point);
            factors[c] = p->scale * p->scales[(group * p->n + n + c) % p->n_scales];
        }
    }
}

static packing *describe_packing(gb_step *step, const gb_conv *conv, const int *order, int n_taps)
{
    const gb_conv_dot *dot = conv->dot;
    packing *p = gb_step_alloc(step, 1, sizeof *p + (size_t)dot->n_scales * sizeof *p->scales);
    if (!p)
        return NULL;
    p->kernels = conv->kernels;
    p->vnni_factor = dot->form.vnni_factor;
    p->first = conv->first_weight;
    p->groups = conv->groups;
    p->group_stride = conv->group_stride;
    p->n = conv->out_channels;
    p->n_stride = conv->out_stride;
    p->channels = dot->channels;
    p->channel_stride = conv->in_stride;
    p->block = conv->in_block;
    p->words = conv->in_channels;
    p->taps = conv->taps;
    p->n_taps = n_taps;
    for (int i = 0; i < n_taps; i++) {
        p->tap_dims[i] = conv->axes[order[i]].kernel;
        p->tap_strides[i] = conv->axes[order[i]].tap_stride;
    }
    p->zero_point = dot->zero_point + (dot->flip ? 128 : 0);
    p->scale = dot->scale;
    p->n_scales = dot->n_scales;
    memcpy(p->scales, dot->scales, (size_t)dot->n_scales * sizeof *p->scales);
    return p;
}

/* Adds a temporary that both steps use. */
static gb_status add_result(gb_program *program, gb_step *made, gb_step *read, size_t count,
        uint32_t *written_slot, uint32_t *read_slot)
{
    size_t bytes;
    uint32_t buffer;
    if (!gb_size_mul(count, sizeof(int32_t), &bytes) || bytes > INT64_MAX)
        return gb_fail(GB_OUT_OF_MEMORY, "packed weights do not fit the address space");
    GB_TRY(gb_program_temporary(program, bytes, &buffer));
    GB_TRY(gb_step_use_buffer(made, buffer, true, written_slot));
    return gb_step_use_buffer(read, buffer, false, read_slot);
}

static gb_status add_results(gb_program *program, gb_step *made, gb_step *read, gb_conv *conv)
{
    packing *p = made->params;
    size_t columns = (size_t)(conv->groups * gb_div_up(conv->out_channels, PANEL) * PANEL), count;
    if (!gb_size_mul(columns, (size_t)conv->in_channels, &count) ||
            !gb_size_mul(count, (size_t)conv->taps, &count))
        return gb_fail(GB_OUT_OF_MEMORY, "packed weights do not fit the address space");
    made->work = 4 * (double)count;
    GB_TRY(gb_step_use_buffer(made, conv->weights_buffer, false, &p->src));
    GB_TRY(add_result(program, made, read, count, &p->dst, &conv->weights));
    GB_TRY(add_result(program, made, read, columns, &p->terms, &conv->dot->terms));
    return add_result(program, made, read, columns, &p->factors, &conv->dot->factors);
}

gb_status gb_conv_dot_pack(gb_program *program, gb_step *step, gb_conv *conv)
{
    int order[GB_AXES], n = gb_conv_tap_order(conv, order);
    gb_step *made;
    GB_TRY(gb_program_begin(program, "pack", &made));
    packing *p = describe_packing(made, conv, order, n);
    if (!p)
        return GB_OUT_OF_MEMORY;
    made->run = pack_weights;
    made->params = p;
    made->params_bytes = sizeof *p + (size_t)p->n_scales * sizeof *p->scales;
    GB_TRY(add_results(program, made, step, conv));
    return gb_program_add(program, made);
}

/* Copies -------------------------------------------------------------------------------------- */

/* One line along the tile axis, all channels of the block. */
static void copy_line(const gb_conv_item *u, const gb_conv_copy_desc *box, int64_t channels,
        const char *src, int32_t *dst)
{
    const gb_conv *conv = u->conv;
    const gb_conv_dot *dot = conv->dot;
    int a = conv->tile_axis;
    if (conv->channels_last) {
        gb_dot_copy copy = {.vnni_factor = dot->form.vnni_factor,
                .is_signed = dot->is_signed,
                .flip = dot->flip,
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
    gb_dot_pack pack = {.vnni_factor = dot->form.vnni_factor,
            .is_signed = dot->is_signed,
            .flip = dot->flip,
            .src = src,
            .k = channels,
            .n = box->dims[a],
            .k_stride = conv->src_channel_stride,
            .n_stride = box->src[a],
            .dst = dst,
            .dst_row = conv->copy_channel_stride};
    conv->kernels->dot_pack(&pack);
}

void gb_conv_dot_copy(gb_conv_item *u, int64_t first, bool clear)
{
    const gb_conv *conv = u->conv;
    const gb_conv_dot *dot = conv->dot;
    gb_conv_copy_desc box;
    int64_t channel = (first - u->group * conv->in_channels) * dot->form.vnni_factor, lines = 1;
    if (clear)
        gb_conv_item_clear(u, dot->fill);
    if (!gb_conv_item_copy_desc(u, 0, 0, &box))
        return;
    int64_t channels = gb_min_i64(u->n_in * dot->form.vnni_factor, dot->channels - channel);
    const char *src = u->call->buffers[conv->src];
    src += box.from + (u->group * dot->channels + channel) * conv->src_channel_stride;
    int32_t *dst = (int32_t *)(void *)u->copy + box.to;
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
        copy_line(u, &box, channels, src + from, dst + to);
    }
}

/* Tiles --------------------------------------------------------------------------------------- */

void gb_conv_dot_multiply(const gb_conv_item *u, const gb_gemm_tile *whole, int64_t positions,
        int64_t channels, int64_t channel)
{
    const gb_conv *conv = u->conv;
    bool last = u->in_first + u->n_in == conv->in_channels;
    int64_t column = u->group * gb_div_up(conv->out_channels, PANEL) * PANEL + channel;
    const int32_t *terms = (const int32_t *)u->call->buffers[conv->dot->terms] + column;
    const float *scales = (const float *)u->call->buffers[conv->dot->factors] + column;
    gb_dot_finish finish = {0};
    gb_dot_tile tile = {.vnni_factor = conv->dot->form.vnni_factor,
            .a_row = whole->a_row,
            .a_offsets = whole->a_offsets,
            .b_offsets = whole->b_offsets,
            .k = whole->k,
            .c_in_row = whole->c_in_row,
            .finish = last ? &finish : NULL,
            .c_out_row = whole->c_out_row};
    for (int64_t r = 0; r < positions; r += conv->tile_rows)
        for (int64_t c = 0; c < channels; c += conv->tile_cols) {
            const float *in = whole->c_in ? whole->c_in + r * whole->c_in_row + c : NULL;
            tile.rows = (int)gb_min_i64(conv->tile_rows, positions - r);
            tile.cols = (int)gb_min_i64(conv->tile_cols, channels - c);
            tile.a = (const int32_t *)(const void *)(whole->a + r * whole->a_row);
            tile.b = (const int32_t *)(const void *)(whole->b + c);
            tile.c_in = (const int32_t *)(const void *)in;
            tile.c_out = whole->c_out + r * whole->c_out_row + c;
            finish.column_terms = terms + c;
            finish.column_scales = scales + c;
            conv->kernels->dot_tile(&tile);
        }
}
