/* Convolutions and pools: op set 2.4, 3.4, 3.5. An image has windows; each has a position in the
 * result, which lies at position * stride + cell * dilation - pad of the image. */
#include "ref/naive/naive_op.h"

#include <math.h>

enum { SPATIAL = 3 };

/* A tensor of two plain axes and up to three spatial ones; those that miss have the size 1. Data:
 * n, c = batch, channels. Weights: n = channels of the positions, c = channels of the image in one
 * group. */
typedef struct volume {
    int64_t n, c, size[SPATIAL];
    int64_t n_stride, c_stride, stride[SPATIAL];
} volume;

typedef struct window {
    int64_t groups;
    int64_t kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], begin[SPATIAL], end[SPATIAL];
    int64_t output_padding[SPATIAL];
} window;

static volume view(const gb_naive_tensor *tensor, int n_axis, int c_axis)
{
    volume v = {.size = {1, 1, 1}};
    int at = SPATIAL - (tensor->ndims - 2);
    for (int d = 0; d < tensor->ndims; d++) {
        int64_t stride = gb_naive_stride(tensor, d);
        if (d == n_axis) {
            v.n = tensor->dims[d];
            v.n_stride = stride;
        } else if (d == c_axis) {
            v.c = tensor->dims[d];
            v.c_stride = stride;
        } else {
            v.size[at] = tensor->dims[d];
            v.stride[at++] = stride;
        }
    }
    return v;
}

static volume data_view(const gb_op *op, const gb_naive_tensor *tensor)
{
    return view(tensor, 0, gb_naive_channel_axis(op, tensor->ndims));
}

/* XIO, XOI (defaults): the two channels come last, the image's before the positions'. OIX, IOX:
 * positions', image's, spatial. */
static volume weights_view(const gb_op *op, const gb_naive_tensor *tensor)
{
    bool first = gb_naive_says(op, GB_ATTR_WEIGHTS_FORMAT, "last", "OIX") ||
                 gb_naive_says(op, GB_ATTR_WEIGHTS_FORMAT, "last", "IOX");
    return first ? view(tensor, 0, 1) : view(tensor, tensor->ndims - 1, tensor->ndims - 2);
}

static int64_t offset(const volume *v, int64_t n, int64_t c, const int64_t *at)
{
    int64_t place = n * v->n_stride + c * v->c_stride;
    for (int d = 0; d < SPATIAL; d++)
        place += at[d] * v->stride[d];
    return place;
}

/* The last indices first; false behind the end. Start from zeros, with no size being 0. */
static bool next(const int64_t *size, int64_t *at)
{
    for (int d = SPATIAL - 1; d >= 0; d--) {
        if (++at[d] < size[d])
            return true;
        at[d] = 0;
    }
    return false;
}

static bool window_is_empty(const volume *v)
{
    return v->size[0] == 0 || v->size[1] == 0 || v->size[2] == 0;
}

/* A list of one value per spatial axis. An absent or empty one: all `otherwise`. So does one of
 * twelve values, as the defaults of some lists are given. */
static bool window_read_list(const gb_op *op, gb_op_attr name, int n_spatial, bool optional,
        int64_t otherwise, int64_t *list)
{
    const int64_t *values;
    size_t count = gb_naive_ints(op, name, &values);
    for (int d = 0; d < SPATIAL; d++)
        list[d] = otherwise;
    if (optional && (count == 0 || count == GB_MAX_NDIMS))
        return true;
    for (int d = 0; d < n_spatial && count == (size_t)n_spatial; d++)
        list[SPATIAL - n_spatial + d] = values[d];
    return count == (size_t)n_spatial;
}

static int64_t window_extent(const window *w, int d)
{
    return (w->kernel[d] - 1) * w->dilation[d] + 1;
}

/* 2.4: SAME_* pad so that `in` / stride positions fit, the odd one behind (UPPER) or in front. */
static void resolve_pads(const gb_op *op, const int64_t *in, bool transposed, window *w)
{
    for (int d = 0; d < SPATIAL && !gb_naive_says(op, GB_ATTR_AUTO_PAD, "None", "None"); d++) {
        int64_t s = w->stride[d], total = 0;
        if (!gb_naive_says(op, GB_ATTR_AUTO_PAD, "None", "VALID"))
            total = transposed || in[d] % s == 0 ? window_extent(w, d) - s
                                                 : window_extent(w, d) - in[d] % s;
        if (total < 0)
            total = 0;
        w->begin[d] = w->end[d] = total / 2;
        if (gb_naive_says(op, GB_ATTR_AUTO_PAD, "None", "SAME_LOWER"))
            w->begin[d] = total - total / 2;
        else
            w->end[d] = total - total / 2;
    }
}

/* `in`: sizes that auto_pad refers to. `kernel` NULL: the attribute. */
static bool read_window(const gb_op *op, int n_spatial, const int64_t *in, const int64_t *kernel,
        bool transposed, window *w)
{
    bool has_list = gb_naive_attr(op, GB_ATTR_AUTO_PAD) == NULL ||
                    gb_naive_says(op, GB_ATTR_AUTO_PAD, "None", "None");
    bool is_pool = kernel == NULL;
    w->groups = gb_naive_int(op, GB_ATTR_GROUPS, 1);
    bool legal = w->groups >= 1 &&
                 window_read_list(op, GB_ATTR_STRIDES, n_spatial, false, 1, w->stride) &&
                 window_read_list(op, GB_ATTR_DILATIONS, n_spatial, is_pool, 1, w->dilation);
    if (!window_read_list(op, GB_ATTR_PADS_BEGIN, n_spatial, true, 0, w->begin) ||
            !window_read_list(op, GB_ATTR_PADS_END, n_spatial, true, 0, w->end))
        legal = legal && !has_list;
    if (is_pool)
        legal = legal && window_read_list(op, GB_ATTR_KERNEL, n_spatial, false, 1, w->kernel);
    const int64_t *padding;
    size_t n_padding = gb_naive_ints(op, GB_ATTR_OUTPUT_PADDING, &padding);
    for (int d = 0; d < SPATIAL; d++) {
        int own = d - (SPATIAL - n_spatial);
        if (!is_pool)
            w->kernel[d] = kernel[d];
        w->output_padding[d] = own >= 0 && (size_t)own < n_padding ? padding[own] : 0;
        legal = legal && w->kernel[d] >= 1 && w->stride[d] >= 1 && w->dilation[d] >= 1;
    }
    if (legal)
        resolve_pads(op, in, transposed, w);
    return legal;
}

/* Positions on every axis; false where a window does not fit. Of nothing come none. */
static bool count_positions(
        const window *w, const int64_t *image, bool round_up, int64_t positions[SPATIAL])
{
    for (int d = 0; d < SPATIAL; d++) {
        int64_t room = image[d] + w->begin[d] + w->end[d] - window_extent(w, d), s = w->stride[d];
        if (room < 0 && image[d] > 0)
            return false;
        positions[d] = room < 0 ? 0 : (round_up ? (room + s - 1) / s : room / s) + 1;
    }
    return true;
}

static gb_status make_data(
        const gb_naive_call *call, int ndims, int64_t n, int64_t c, const int64_t size[SPATIAL])
{
    int64_t dims[GB_MAX_NDIMS];
    int channel = gb_naive_channel_axis(call->op, ndims), at = SPATIAL - (ndims - 2);
    dims[0] = n;
    for (int d = 1; d < ndims; d++)
        dims[d] = d == channel ? c : size[at++];
    return gb_naive_make(call, 0, ndims, dims);
}

/* The dims of an output that the inputs do not tell: as given, or an attribute. */
static gb_status make_given(const gb_naive_call *call, gb_op_attr name, int ndims)
{
    const gb_logical_tensor *given = gb_op_output(call->op, 0);
    const int64_t *dims = given->dims;
    bool known = given->ndims >= 0;
    for (int d = 0; d < given->ndims; d++)
        known = known && given->dims[d] >= 0;
    if (known ? given->ndims != ndims : gb_naive_ints(call->op, name, &dims) != (size_t)ndims)
        return GB_NAIVE_REFUSE(call, "the output's dims are not known");
    return gb_naive_make(call, 0, ndims, dims);
}

static bool ranks_fit(const gb_naive_call *call)
{
    int ndims = call->in[0].ndims;
    return ndims >= 3 && ndims <= 5 && call->in[1].ndims == ndims;
}

/* 3.4 The three tensors of a convolution. A transposed one has its src at the positions and its dst
 * as the image. */
typedef struct convolution {
    window w;
    volume image, positions, weights;
} convolution;

static bool channels_fit(const convolution *c)
{
    return c->weights.n == c->positions.c && c->weights.c * c->w.groups == c->image.c &&
           c->weights.n % c->w.groups == 0 && c->image.n == c->positions.n;
}

/* Reads the window; do the three tensors belong together? */
static bool window_bind(const gb_naive_call *call, convolution *c)
{
    int64_t expected[SPATIAL];
    if (!read_window(
                call->op, call->in[0].ndims - 2, c->image.size, c->weights.size, false, &c->w) ||
            !channels_fit(c) || !count_positions(&c->w, c->image.size, false, expected))
        return false;
    for (int d = 0; d < SPATIAL; d++)
        if (expected[d] != c->positions.size[d])
            return false;
    return true;
}

typedef enum role { IMAGE, POSITIONS, WEIGHTS } role;

/* Over all products that meet: result += the product of the other two. */
static void add_products(
        const convolution *c, role result, double *image, double *positions, double *weights)
{
    const window *w = &c->w;
    if (window_is_empty(&c->positions) || window_is_empty(&c->image))
        return;
    for (int64_t n = 0; n < c->image.n; n++)
        for (int64_t p = 0; p < c->positions.c; p++)
            for (int64_t j = 0; j < c->weights.c; j++) {
                int64_t group = p / (c->positions.c / w->groups);
                int64_t i = group * c->weights.c + j; /* channel of the image */
                int64_t o[SPATIAL] = {0};
                do {
                    int64_t k[SPATIAL] = {0};
                    do {
                        int64_t at[SPATIAL];
                        bool inside = true;
                        for (int d = 0; d < SPATIAL; d++) {
                            at[d] = o[d] * w->stride[d] + k[d] * w->dilation[d] - w->begin[d];
                            inside = inside && at[d] >= 0 && at[d] < c->image.size[d];
                        }
                        if (!inside)
                            continue;
                        double *x = &image[offset(&c->image, n, i, at)];
                        double *y = &positions[offset(&c->positions, n, p, o)];
                        double *z = &weights[offset(&c->weights, p, j, k)];
                        if (result == IMAGE)
                            *x += *y * *z;
                        else if (result == POSITIONS)
                            *y += *x * *z;
                        else
                            *z += *x * *y;
                    } while (next(c->weights.size, k));
                } while (next(c->positions.size, o));
            }
}

static void add_bias(const gb_naive_call *call)
{
    int axis = gb_naive_channel_axis(call->op, call->out->ndims);
    for (int64_t p = 0; call->op->n_inputs > 2 && p < call->out->count; p++)
        call->out->value[p] += call->in[2].value[gb_naive_along(call->out, axis, p)];
}

gb_status gb_naive_convolution(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0], *weights = &call->in[1];
    convolution c = {.w = {0}};
    int64_t size[SPATIAL];
    if (!ranks_fit(call))
        return GB_NAIVE_REFUSE(call, "ranks differ or are not 3 to 5");
    c.image = data_view(call->op, src);
    c.weights = weights_view(call->op, weights);
    if (!read_window(call->op, src->ndims - 2, c.image.size, c.weights.size, false, &c.w) ||
            !count_positions(&c.w, c.image.size, false, size))
        return GB_NAIVE_REFUSE(call, "the window is not legal or does not fit");
    GB_TRY(make_data(call, src->ndims, c.image.n, c.weights.n, size));
    c.positions = data_view(call->op, call->out);
    if (!channels_fit(&c) || !gb_naive_is_vector(call, 2, c.weights.n))
        return GB_NAIVE_REFUSE(call, "channels do not fit");
    add_products(&c, POSITIONS, src->value, call->out->value, weights->value);
    add_bias(call);
    return GB_SUCCESS;
}

gb_status gb_naive_convolution_backward_data(const gb_naive_call *call)
{
    const gb_naive_tensor *diff_dst = &call->in[0], *weights = &call->in[1];
    convolution c = {.w = {0}};
    if (!ranks_fit(call))
        return GB_NAIVE_REFUSE(call, "ranks differ or are not 3 to 5");
    GB_TRY(make_given(call, GB_ATTR_DST_SHAPE, diff_dst->ndims));
    c.image = data_view(call->op, call->out);
    c.positions = data_view(call->op, diff_dst);
    c.weights = weights_view(call->op, weights);
    if (!window_bind(call, &c))
        return GB_NAIVE_REFUSE(call, "diff_src, weights and diff_dst do not fit each other");
    add_products(&c, IMAGE, call->out->value, diff_dst->value, weights->value);
    return GB_SUCCESS;
}

gb_status gb_naive_convolution_backward_weights(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0], *diff_dst = &call->in[1];
    convolution c = {.w = {0}};
    if (!ranks_fit(call))
        return GB_NAIVE_REFUSE(call, "ranks differ or are not 3 to 5");
    GB_TRY(make_given(call, GB_ATTR_WEIGHTS_SHAPE, src->ndims));
    c.image = data_view(call->op, src);
    c.positions = data_view(call->op, diff_dst);
    c.weights = weights_view(call->op, call->out);
    if (!window_bind(call, &c))
        return GB_NAIVE_REFUSE(call, "src, diff_weights and diff_dst do not fit each other");
    add_products(&c, WEIGHTS, src->value, diff_dst->value, call->out->value);
    return GB_SUCCESS;
}

gb_status gb_naive_conv_transpose(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0], *weights = &call->in[1];
    convolution c = {.w = {0}};
    int64_t size[SPATIAL];
    if (!ranks_fit(call))
        return GB_NAIVE_REFUSE(call, "ranks differ or are not 3 to 5");
    c.positions = data_view(call->op, src);
    c.weights = weights_view(call->op, weights);
    if (!read_window(call->op, src->ndims - 2, c.positions.size, c.weights.size, true, &c.w))
        return GB_NAIVE_REFUSE(call, "the window is not legal");
    for (int d = 0; d < SPATIAL; d++) {
        size[d] = c.w.stride[d] * (c.positions.size[d] - 1) + window_extent(&c.w, d) -
                  c.w.begin[d] - c.w.end[d] + c.w.output_padding[d];
        if (size[d] < 0 && c.positions.size[d] == 0)
            size[d] = 0;
    }
    GB_TRY(make_data(call, src->ndims, c.positions.n, c.weights.c * c.w.groups, size));
    c.image = data_view(call->op, call->out);
    if (!channels_fit(&c) || !gb_naive_is_vector(call, 2, c.image.c))
        return GB_NAIVE_REFUSE(call, "channels do not fit");
    add_products(&c, IMAGE, call->out->value, src->value, weights->value);
    add_bias(call);
    return GB_SUCCESS;
}

gb_status gb_naive_conv_transpose_backward_data(const gb_naive_call *call)
{
    const gb_naive_tensor *diff_dst = &call->in[0], *weights = &call->in[1];
    convolution c = {.w = {0}};
    int64_t size[SPATIAL];
    if (!ranks_fit(call))
        return GB_NAIVE_REFUSE(call, "ranks differ or are not 3 to 5");
    c.image = data_view(call->op, diff_dst);
    c.weights = weights_view(call->op, weights);
    if (!read_window(call->op, diff_dst->ndims - 2, c.image.size, c.weights.size, false, &c.w) ||
            !count_positions(&c.w, c.image.size, false, size))
        return GB_NAIVE_REFUSE(call, "the window is not legal or does not fit");
    GB_TRY(make_data(call, diff_dst->ndims, c.image.n, c.weights.n, size));
    c.positions = data_view(call->op, call->out);
    if (!channels_fit(&c))
        return GB_NAIVE_REFUSE(call, "channels do not fit");
    add_products(&c, POSITIONS, diff_dst->value, call->out->value, weights->value);
    return GB_SUCCESS;
}

gb_status gb_naive_conv_transpose_backward_weights(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0], *diff_dst = &call->in[1];
    convolution c = {.w = {0}};
    if (!ranks_fit(call))
        return GB_NAIVE_REFUSE(call, "ranks differ or are not 3 to 5");
    GB_TRY(make_given(call, GB_ATTR_WEIGHTS_SHAPE, src->ndims));
    c.image = data_view(call->op, diff_dst);
    c.positions = data_view(call->op, src);
    c.weights = weights_view(call->op, call->out);
    if (!window_bind(call, &c))
        return GB_NAIVE_REFUSE(call, "src, diff_weights and diff_dst do not fit each other");
    add_products(&c, WEIGHTS, diff_dst->value, src->value, call->out->value);
    return GB_SUCCESS;
}

/* 3.5 Pools: image and positions have the same channels. */

typedef struct pool {
    window w;
    volume image, positions;
} pool;

/* What a window of an average is divided by: its cells inside the image, or, without exclude_pad,
 * inside the image and its declared padding. */
static double cells_of(const pool *p, const int64_t *o, bool exclude_pad)
{
    double count = 0;
    int64_t k[SPATIAL] = {0};
    do {
        bool counts = true;
        for (int d = 0; d < SPATIAL; d++) {
            int64_t at = o[d] * p->w.stride[d] + k[d] - p->w.begin[d];
            int64_t first = exclude_pad ? 0 : -p->w.begin[d];
            int64_t end = p->image.size[d] + (exclude_pad ? 0 : p->w.end[d]);
            counts = counts && at >= first && at < end;
        }
        count += counts;
    } while (next(p->w.kernel, k));
    return count;
}

/* Offset of cell k of the window at o in the image; -1 outside. */
static int64_t cell(const pool *p, int64_t n, int64_t c, const int64_t *o, const int64_t *k)
{
    int64_t at[SPATIAL];
    for (int d = 0; d < SPATIAL; d++) {
        at[d] = o[d] * p->w.stride[d] + k[d] * p->w.dilation[d] - p->w.begin[d];
        if (at[d] < 0 || at[d] >= p->image.size[d])
            return -1;
    }
    return offset(&p->image, n, c, at);
}

static double average_of(const pool *p, int64_t n, int64_t c, const int64_t *o, bool exclude_pad,
        const double *image)
{
    double sum = 0;
    int64_t k[SPATIAL] = {0};
    do {
        int64_t at = cell(p, n, c, o, k);
        sum += at >= 0 ? image[at] : 0;
    } while (next(p->w.kernel, k));
    return sum / cells_of(p, o, exclude_pad);
}

/* Where the first maximum of a window lies; -1 when nothing is above the lowest finite value. */
static int64_t first_maximum(
        const pool *p, int64_t n, int64_t c, const int64_t *o, double lowest, const double *image)
{
    int64_t best = -1, k[SPATIAL] = {0};
    do {
        int64_t at = cell(p, n, c, o, k);
        if (at >= 0 && image[at] > (best < 0 ? lowest : image[best]))
            best = at;
    } while (next(p->w.kernel, k));
    return best;
}

static gb_status pool_forward(const gb_naive_call *call, bool maximum)
{
    const gb_naive_tensor *src = &call->in[0];
    bool round_up = gb_naive_says(call->op, GB_ATTR_ROUNDING_TYPE, "floor", "ceil");
    bool exclude_pad = gb_naive_flag(call->op, GB_ATTR_EXCLUDE_PAD, false);
    double lowest = gb_naive_lowest(src->type);
    int64_t size[SPATIAL];
    pool p = {.image = {0}};
    if (src->ndims < 3 || src->ndims > 5)
        return GB_NAIVE_REFUSE(call, "src has no rank from 3 to 5");
    p.image = data_view(call->op, src);
    if (!read_window(call->op, src->ndims - 2, p.image.size, NULL, false, &p.w) ||
            !count_positions(&p.w, p.image.size, round_up, size))
        return GB_NAIVE_REFUSE(call, "the window is not legal or does not fit");
    GB_TRY(make_data(call, src->ndims, p.image.n, p.image.c, size));
    p.positions = data_view(call->op, call->out);
    for (int64_t n = 0; n < p.image.n && call->out->count > 0; n++)
        for (int64_t c = 0; c < p.image.c; c++) {
            int64_t o[SPATIAL] = {0};
            do {
                double *y = &call->out->value[offset(&p.positions, n, c, o)];
                if (maximum) {
                    int64_t best = first_maximum(&p, n, c, o, lowest, src->value);
                    *y = best < 0 ? lowest : src->value[best];
                } else {
                    *y = average_of(&p, n, c, o, exclude_pad, src->value);
                }
            } while (next(p.positions.size, o));
        }
    return GB_SUCCESS;
}

gb_status gb_naive_avg_pool(const gb_naive_call *call)
{
    return pool_forward(call, false);
}

gb_status gb_naive_max_pool(const gb_naive_call *call)
{
    return pool_forward(call, true);
}

static gb_status bind_pool(const gb_naive_call *call, const gb_naive_tensor *diff_dst, pool *p)
{
    if (diff_dst->ndims != call->out->ndims)
        return GB_NAIVE_REFUSE(call, "ranks differ");
    p->image = data_view(call->op, call->out);
    p->positions = data_view(call->op, diff_dst);
    if (p->image.n != p->positions.n || p->image.c != p->positions.c ||
            !read_window(call->op, diff_dst->ndims - 2, p->image.size, NULL, false, &p->w))
        return GB_NAIVE_REFUSE(call, "diff_dst does not fit diff_src, or the window is not legal");
    return GB_SUCCESS;
}

gb_status gb_naive_avg_pool_backward(const gb_naive_call *call)
{
    const gb_naive_tensor *diff_dst = &call->in[0];
    bool exclude_pad = gb_naive_flag(call->op, GB_ATTR_EXCLUDE_PAD, false);
    pool p = {.image = {0}};
    if (diff_dst->ndims < 3 || diff_dst->ndims > 5)
        return GB_NAIVE_REFUSE(call, "diff_dst has no rank from 3 to 5");
    GB_TRY(make_given(call, GB_ATTR_SRC_SHAPE, diff_dst->ndims));
    GB_TRY(bind_pool(call, diff_dst, &p));
    for (int64_t n = 0; n < p.image.n && diff_dst->count > 0; n++)
        for (int64_t c = 0; c < p.image.c; c++) {
            int64_t o[SPATIAL] = {0};
            do {
                int64_t k[SPATIAL] = {0};
                double g = diff_dst->value[offset(&p.positions, n, c, o)];
                do {
                    int64_t at = cell(&p, n, c, o, k);
                    if (at >= 0)
                        call->out->value[at] += g / cells_of(&p, o, exclude_pad);
                } while (next(p.w.kernel, k));
            } while (next(p.positions.size, o));
        }
    return GB_SUCCESS;
}

gb_status gb_naive_max_pool_backward(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0], *diff_dst = &call->in[1];
    pool p = {.image = {0}};
    if (src->ndims < 3 || src->ndims > 5)
        return GB_NAIVE_REFUSE(call, "src has no rank from 3 to 5");
    GB_TRY(gb_naive_make_like(call, 0, src));
    GB_TRY(bind_pool(call, diff_dst, &p));
    for (int64_t n = 0; n < p.image.n && diff_dst->count > 0; n++)
        for (int64_t c = 0; c < p.image.c; c++) {
            int64_t o[SPATIAL] = {0};
            do {
                int64_t at = first_maximum(&p, n, c, o, gb_naive_lowest(src->type), src->value);
                if (at >= 0)
                    call->out->value[at] += diff_dst->value[offset(&p.positions, n, c, o)];
            } while (next(p.positions.size, o));
        }
    return GB_SUCCESS;
}
