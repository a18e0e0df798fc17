/* Work items of a convolution: where they lie, and copying what they read. */
#include "kernels/conv/conv_item.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "kernels/cpu/step_call.h"

#include <string.h>

static const int64_t unpadded = INT64_MAX;

/* The part of the copy that lies inside the source: copy positions low .. high - 1 of an axis. */
typedef struct axis_span {
    int64_t low, high, offset; /* of position low in the source, elements */
} axis_span;

/* Of one phase of an axis: the copy positions phase, phase + phases, ... */
static axis_span span_of(const gb_conv_plan_axis *axis, int64_t begin, int64_t count, int64_t phase)
{
    begin += phase * axis->step;
    int64_t step = axis->step * axis->interleave;
    int64_t extent = gb_conv_extent(axis, count) / axis->interleave;
    int64_t low = gb_min_i64(gb_max_i64(gb_ceil_div(-begin, step), 0), extent);
    int64_t high = gb_min_i64(gb_ceil_div(axis->in - begin, step), extent);
    return (axis_span){low, gb_max_i64(low, high), (begin + low * step) * axis->src_stride};
}

/* Copying: all axes and the channels as dims, two of them left to the kernel ------------------- */

static void take_dim(gb_conv_copy_desc *box, int d, int64_t *dim, int64_t *src, int64_t *dst)
{
    *dim = box->dims[d], *src = box->src[d], *dst = box->dst[d];
    box->ndims--;
    box->dims[d] = box->dims[box->ndims];
    box->src[d] = box->src[box->ndims];
    box->dst[d] = box->dst[box->ndims];
}

static int64_t source_bytes(const gb_conv_plan *conv)
{
    return gb_dtype_get(conv->src_type)->bits / 8;
}

void gb_conv_subtract(float zero_point, const gb_gemm_copy *copied)
{
    for (int64_t r = 0; r < copied->rows; r++) {
        float *dst = copied->dst + r * copied->dst_row;
        for (int64_t c = 0; c < copied->cols; c++)
            dst[c] -= zero_point;
    }
}

/* Where copy i of the dims that are left reads and writes. */
static void find_copy(const gb_conv_copy_desc *box, int64_t i, int64_t *from, int64_t *to)
{
    *from = *to = 0;
    for (int d = 0; d < box->ndims; i /= box->dims[d++]) {
        *from += i % box->dims[d] * box->src[d];
        *to += i % box->dims[d] * box->dst[d];
    }
}

static void copy_box(const gb_conv_plan *conv, gb_conv_copy_desc *box, const char *src, float *dst)
{
    gb_gemm_copy copy = {.type = conv->src_type};
    int64_t size = source_bytes(conv), ignored, count = 1;
    int inner = 0, rows = 0;
    for (int d = 1; d < box->ndims; d++)
        if (box->dst[d] < box->dst[inner])
            inner = d;
    take_dim(box, inner, &copy.cols, &copy.col_stride, &ignored);
    for (int d = 1; d < box->ndims; d++) /* near ones first: they share pages */
        if (box->dims[rows] == 1 || (box->dims[d] > 1 && box->src[d] < box->src[rows]))
            rows = d;
    take_dim(box, rows, &copy.rows, &copy.row_stride, &copy.dst_row);
    for (int d = 0; d < box->ndims; d++)
        count *= box->dims[d];
    int64_t from = 0, to = 0, next, next_to;
    for (int64_t i = 0; i < count; i++, from = next, to = next_to) {
        find_copy(box, i + 1, &next, &next_to);
        copy.src = src + from * size;
        copy.next = i + 1 < count ? src + next * size : NULL;
        copy.dst = dst + to;
        conv->kernels->gemm_copy(&copy);
        if (conv->zero_point != 0) /* of quantized values */
            gb_conv_subtract(conv->zero_point, &copy);
    }
}

/* Where copies begin on axes on which they reach beyond the source, unpadded on others. Copies that
 * agree leave the same elements alone. */
static bool find_padding(const gb_conv_item *u, int64_t *padding)
{
    bool padded = false;
    for (int a = 0; a < u->conv->n_axes; a++) {
        const gb_conv_plan_axis *axis = &u->conv->axes[a];
        int64_t begin = u->begin[a];
        int64_t end = begin + (gb_conv_extent(axis, axis->block) - 1) * axis->step;
        bool beyond = begin < 0 || end >= axis->in;
        padding[a] = beyond ? begin : unpadded;
        padded = padded || beyond;
    }
    return padded;
}

void gb_conv_item_clear(gb_conv_item *u, int32_t word)
{
    int64_t padding[GB_AXES] = {0};
    size_t bytes = sizeof *padding * (size_t)u->conv->n_axes;
    bool padded = find_padding(u, padding);
    bool kept = u->cleared && memcmp(padding, u->padding, bytes) == 0;
    if (padded && !kept && word == 0)
        memset(u->copy, 0, u->conv->copy_bytes);
    int32_t *words = (int32_t *)(void *)u->copy;
    for (size_t i = 0; padded && !kept && word != 0 && i < u->conv->copy_bytes / sizeof word; i++)
        words[i] = word;
    memcpy(u->padding, padding, bytes);
    u->cleared = padded;
}

bool gb_conv_item_copy_desc(
        const gb_conv_item *u, int64_t first_channel, int64_t phase, gb_conv_copy_desc *box)
{
    const gb_conv_plan *conv = u->conv;
    bool empty = u->n_in == 0;
    *box = (gb_conv_copy_desc){
            .ndims = conv->n_axes + 1, .from = first_channel * conv->src_channel_stride};
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_plan_axis *axis = &conv->axes[a];
        axis_span span = span_of(axis, u->begin[a], u->count[a], axis->interleave > 1 ? phase : 0);
        empty = empty || span.low == span.high;
        box->from += span.offset;
        box->to += span.low * axis->copy_stride;
        if (axis->interleave > 1)
            box->to += phase * (axis->extent / axis->interleave);
        box->dims[a] = span.high - span.low;
        box->src[a] = axis->step * axis->interleave * axis->src_stride;
        box->dst[a] = axis->copy_stride;
    }
    box->dims[conv->n_axes] = u->n_in;
    box->src[conv->n_axes] = conv->src_channel_stride;
    box->dst[conv->n_axes] = conv->copy_channel_stride;
    return !empty;
}

void gb_conv_item_copy(gb_conv_item *u, int64_t first_channel, bool clear)
{
    const gb_conv_plan *conv = u->conv;
    const char *src = u->source ? u->source : u->call->buffers[conv->src];
    int64_t size = source_bytes(conv), source = u->source ? u->source_first : 0;
    gb_conv_copy_desc box;
    if (clear)
        gb_conv_item_clear(u, 0);
    for (int64_t phase = 0; phase < conv->axes[conv->tile_axis].interleave; phase++)
        if (gb_conv_item_copy_desc(u, first_channel, phase, &box))
            copy_box(conv, &box, src + (box.from - source) * size, u->copy + box.to);
}

void gb_conv_item_start(gb_conv_item *u, int64_t index)
{
    const gb_conv_plan *conv = u->conv;
    u->out_first = index % conv->out_blocks * conv->out_block;
    u->n_out = gb_min_i64(conv->out_block, conv->out_channels - u->out_first);
    index /= conv->out_blocks;
    u->group = index % conv->groups;
    index /= conv->groups;
    for (int a = conv->n_axes; a-- > 0;) {
        const gb_conv_plan_axis *axis = &conv->axes[a];
        u->first[a] = index % axis->blocks * axis->block;
        u->count[a] = gb_min_i64(axis->block, axis->out - u->first[a]);
        u->begin[a] = gb_conv_first_source(axis, u->first[a]);
        index /= axis->blocks;
    }
}

bool gb_conv_item_next_line(gb_conv_item *u, int fixed_axis)
{
    for (int a = u->conv->n_axes; a-- > 0;) {
        if (a == u->conv->tile_axis || a == fixed_axis)
            continue;
        if (++u->line[a] < u->count[a])
            return true;
        u->line[a] = 0;
    }
    return false;
}

int64_t gb_conv_item_find(const gb_conv_item *u, int a, int64_t o, int64_t *class)
{
    const gb_conv_plan_axis *axis = &u->conv->axes[a];
    if (axis->input_dilation * axis->step * axis->interleave == 1) /* nearly always */
        return (o * axis->stride - axis->pad - u->begin[a]) * axis->copy_stride;
    int64_t tap = gb_conv_first_tap(axis, o);
    if (tap < 0 || *class < 0) {
        *class = -1;
        return 0;
    }
    *class += tap * axis->residue_stride;
    int64_t position = (gb_conv_source(axis, o, tap) - u->begin[a]) / axis->step;
    return position / axis->interleave * axis->copy_stride;
}
