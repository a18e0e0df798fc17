/* Copies of a box of positions for a weight gradient. */
#include "kernels/conv/weight_gradient.h"

#include "base/memory.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

typedef struct box_dim {
    int64_t size, src, dst;
} box_dim;

typedef struct box {
    int ndims;
    box_dim dims[GB_AXES + 1];
} box;

static void add_dim(box *b, int64_t size, int64_t src, int64_t dst)
{
    if (size != 1)
        b->dims[b->ndims++] = (box_dim){size, src, dst};
}

/* Innermost of the copy first, neighbours merged where both sides allow. */
static void normalize(box *b)
{
    for (int i = 1; i < b->ndims; i++)
        for (int d = i; d > 0 && b->dims[d].dst < b->dims[d - 1].dst; d--) {
            box_dim kept = b->dims[d];
            b->dims[d] = b->dims[d - 1];
            b->dims[d - 1] = kept;
        }
    int last = 0;
    for (int d = 1; d < b->ndims; d++) {
        box_dim *inner = &b->dims[last];
        if (b->dims[d].src == inner->src * inner->size &&
                b->dims[d].dst == inner->dst * inner->size)
            inner->size *= b->dims[d].size;
        else
            b->dims[++last] = b->dims[d];
    }
    if (b->ndims)
        b->ndims = last + 1;
}

/* Takes dim `d` out of the box; a single element when there is no such dim. */
static box_dim take(box *b, int d)
{
    if (d >= b->ndims)
        return (box_dim){.size = 1};
    box_dim taken = b->dims[d];
    b->ndims--;
    memmove(b->dims + d, b->dims + d + 1, sizeof(box_dim) * (size_t)(b->ndims - d));
    return taken;
}

/* Offsets of the next of the box's elements; false after the last. */
static bool next(const box *b, int64_t *index, int64_t *src, int64_t *dst)
{
    for (int d = 0; d < b->ndims; d++) {
        const box_dim *dim = &b->dims[d];
        *src += dim->src, *dst += dim->dst;
        if (++index[d] < dim->size)
            return true;
        *src -= dim->size * dim->src, *dst -= dim->size * dim->dst;
        index[d] = 0;
    }
    return false;
}

static void copy_rows(
        const gb_kernels *kernels, gb_data_type type, box *b, const char *src, float *dst)
{
    int64_t size = type == GB_F32 ? 4 : 2, index[GB_AXES + 1] = {0}, from = 0, to = 0;
    box_dim cols = take(b, b->ndims && b->dims[0].dst == 1 ? 0 : b->ndims);
    int largest = 0;
    for (int d = 1; d < b->ndims; d++)
        if (b->dims[d].size > b->dims[largest].size)
            largest = d;
    box_dim rows = take(b, largest);
    gb_gemm_copy copy = {.type = type,
            .rows = rows.size,
            .cols = cols.size,
            .row_stride = rows.src,
            .col_stride = cols.src,
            .dst_row = rows.dst};
    do {
        copy.src = src + from * size;
        copy.dst = dst + to;
        kernels->gemm_copy(&copy);
    } while (next(b, index, &from, &to));
}

static void copy_panels(const gb_weight_gradient *gradient, const gb_gradient_plan_side *side,
        box *b, int64_t channels, const char *src, float *dst)
{
    int64_t size = side->type == GB_F32 ? 4 : 2, index[GB_AXES + 1] = {0}, from = 0, to = 0;
    box_dim run = take(b, b->ndims && b->dims[0].dst == PANEL ? 0 : b->ndims);
    gb_gemm_pack pack = {.type = side->type,
            .k = run.size,
            .n = channels,
            .k_stride = run.src,
            .n_stride = side->channel_stride,
            .panel_stride = side->copy_channel_stride};
    do {
        pack.src = src + from * size;
        pack.dst = dst + to;
        gradient->kernels->gemm_pack(&pack);
    } while (next(b, index, &from, &to));
}

void gb_gradient_copy(const gb_weight_gradient *gradient, const gb_gradient_plan_side *side,
        const int64_t *box_first, const int64_t *box_count, int64_t channel, int64_t channels,
        const void *src, float *copy)
{
    bool padded = false, empty = false;
    int64_t from = channel * side->channel_stride, to = 0;
    box b = {0};
    for (int a = 0; a < gradient->n_axes; a++) {
        const gb_gradient_plan_axis *axis = &side->axes[a];
        int64_t begin = box_first[a] * axis->stride - axis->pad;
        int64_t extent = (box_count[a] - 1) * axis->stride_in_copy +
                         (axis->kernel - 1) * axis->dilation_in_copy + 1;
        int64_t low = gb_min_i64(gb_max_i64(gb_ceil_div(-begin, axis->step), 0), extent);
        int64_t high = gb_min_i64(gb_ceil_div(axis->in - begin, axis->step), extent);
        padded = padded || low > 0 || high < extent;
        empty = empty || high <= low;
        from += (begin + low * axis->step) * axis->src_stride;
        to += low * axis->copy_stride;
        add_dim(&b, high - low, axis->step * axis->src_stride, axis->copy_stride);
    }
    if (padded)
        memset(copy, 0, side->copy_bytes);
    if (empty)
        return;
    if (!side->panels)
        add_dim(&b, channels, side->channel_stride, side->copy_channel_stride);
    normalize(&b);
    const char *first = (const char *)src + from * (side->type == GB_F32 ? 4 : 2);
    if (side->panels)
        copy_panels(gradient, side, &b, channels, first, copy + to);
    else
        copy_rows(gradient->kernels, side->type, &b, first, copy + to);
}
