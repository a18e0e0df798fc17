/* Convolutions, pools and resizing. Images have their channels second: NCX. */
#include "map.h"

#include <math.h>
#include <string.h>

typedef struct window {
    int axes; /* spatial */
    int64_t kernel[GB_MAX_NDIMS], strides[GB_MAX_NDIMS], begin[GB_MAX_NDIMS], end[GB_MAX_NDIMS],
            dilations[GB_MAX_NDIMS];
} window;

static void set_window(br_builder *b, br_op *op, const window *w)
{
    size_t n = (size_t)w->axes;
    br_set_s64(b, op, GB_ATTR_STRIDES, n, w->strides);
    br_set_s64(b, op, GB_ATTR_PADS_BEGIN, n, w->begin);
    br_set_s64(b, op, GB_ATTR_PADS_END, n, w->end);
    br_set_text(op, GB_ATTR_DATA_FORMAT, "NCX");
}

static bool is_image(const br_builder *b, uint32_t wire, int axes)
{
    return br_wire_of(b, wire)->ndims == axes + 2;
}

/* Padding as numbers, or "same" and "valid". */
static bool read_pads(br_builder *b, const br_node *node, window *w)
{
    const br_arg *arg = br_find_arg(node, "padding");
    if (!arg || arg->kind != BR_ARG_STRING) {
        if (!br_arg_window(b, node, "padding", w->axes, 0, w->begin))
            return false;
        memcpy(w->end, w->begin, sizeof w->end);
        return true;
    }
    bool is_same = strcmp(arg->text, "same") == 0;
    if (!is_same && strcmp(arg->text, "valid") != 0)
        return br_refuse(b, "padding that is neither same nor valid");
    for (int d = 0; d < w->axes; d++) {
        int64_t total = is_same ? (w->kernel[d] - 1) * w->dilations[d] : 0;
        w->begin[d] = total / 2;
        w->end[d] = total - total / 2;
    }
    return true;
}

static bool read_conv(
        br_builder *b, const br_node *node, const br_value *weight, window *w, int64_t *groups)
{
    if (!weight || weight->ndims < 3 || weight->ndims > 5)
        return br_refuse(b, "not 1 to 3 spatial axes");
    w->axes = weight->ndims - 2;
    for (int d = 0; d < w->axes; d++)
        w->kernel[d] = br_size_value(b, &weight->dims[d + 2]);
    return br_arg_window(b, node, "stride", w->axes, 1, w->strides) &&
           br_arg_window(b, node, "dilation", w->axes, 1, w->dilations) &&
           br_arg_int(b, node, "groups", 1, groups) && read_pads(b, node, w);
}

static void set_conv(br_builder *b, br_op *op, const window *w, int64_t groups, const char *weights)
{
    set_window(b, op, w);
    br_set_s64(b, op, GB_ATTR_DILATIONS, (size_t)w->axes, w->dilations);
    br_set_s64(b, op, GB_ATTR_GROUPS, 1, &groups);
    br_set_text(op, GB_ATTR_WEIGHTS_FORMAT, weights);
}

bool br_map_conv(br_builder *b, const br_node *node, const br_row *row)
{
    window w;
    int64_t groups, output_padding[GB_MAX_NDIMS];
    bool transposed;
    uint32_t inputs[3], out;
    if (!read_conv(b, node, br_arg_value(b, node, "weight"), &w, &groups) ||
            !br_arg_bool(b, node, "transposed", row->value != 0, &transposed) ||
            !br_arg_window(b, node, "output_padding", w.axes, 0, output_padding) ||
            !br_arg_wire(b, node, "input", &inputs[0]) ||
            !br_arg_wire(b, node, "weight", &inputs[1]) ||
            !br_arg_optional_wire(b, node, "bias", &inputs[2]))
        return false;
    if (!is_image(b, inputs[0], w.axes))
        return br_refuse(b, "an image without a batch");
    out = br_output_wire(b, node, 0);
    br_op *op = br_emit(b, transposed ? GB_OP_CONV_TRANSPOSE : GB_OP_CONVOLUTION,
            inputs[2] == BR_NONE ? 2 : 3, inputs, 1, &out);
    set_conv(b, op, &w, groups, transposed ? "IOX" : "OIX");
    if (transposed)
        br_set_s64(b, op, GB_ATTR_OUTPUT_PADDING, (size_t)w.axes, output_padding);
    return true;
}

/* Outputs: gradients of the input, the weight and the bias; those that the mask leaves out are not
 * there. */
bool br_map_conv_backward(br_builder *b, const br_node *node, const br_row *row)
{
    window w;
    int64_t groups;
    bool transposed;
    uint32_t gradient, input, weight;
    (void)row;
    const br_value *filter = br_arg_value(b, node, "weight");
    if (!read_conv(b, node, filter, &w, &groups) ||
            !br_arg_bool(b, node, "transposed", false, &transposed) ||
            !br_arg_wire(b, node, "grad_output", &gradient) ||
            !br_arg_wire(b, node, "input", &input) || !br_arg_wire(b, node, "weight", &weight))
        return false;
    if (transposed || !is_image(b, input, w.axes))
        return br_refuse(b, "the gradient of a transposed convolution, or no batch");
    br_wire src = *br_wire_of(b, input), filters = *br_wire_of(b, weight);
    br_wire dst = *br_wire_of(b, gradient);
    bool is_any = false;
    if (br_output_is_read(b, node, 0)) {
        const uint32_t inputs[] = {gradient, weight};
        uint32_t out = br_output_wire(b, node, 0);
        br_op *op = br_emit(b, GB_OP_CONVOLUTION_BACKWARD_DATA, 2, inputs, 1, &out);
        set_conv(b, op, &w, groups, "OIX");
        br_set_s64(b, op, GB_ATTR_DST_SHAPE, (size_t)src.ndims, src.dims);
        is_any = true;
    }
    if (br_output_is_read(b, node, 1)) {
        const uint32_t inputs[] = {input, gradient};
        uint32_t out = br_output_wire(b, node, 1);
        br_op *op = br_emit(b, GB_OP_CONVOLUTION_BACKWARD_WEIGHTS, 2, inputs, 1, &out);
        set_conv(b, op, &w, groups, "OIX");
        br_set_s64(b, op, GB_ATTR_WEIGHTS_SHAPE, (size_t)filters.ndims, filters.dims);
        is_any = true;
    }
    if (br_output_is_read(b, node, 2)) {
        uint32_t out = br_output_wire(b, node, 2);
        br_op *op = br_emit(b, GB_OP_REDUCE_SUM, 1, &gradient, 1, &out);
        int64_t axes[GB_MAX_NDIMS], n = 0;
        for (int d = 0; d < dst.ndims; d++)
            if (d != 1)
                axes[n++] = d;
        br_set_s64(b, op, GB_ATTR_AXES, (size_t)n, axes);
        br_set_bool(b, op, GB_ATTR_KEEP_DIMS, false);
        is_any = true;
    }
    return is_any || br_refuse(b, "nobody reads a gradient");
}

/* `row->value` spatial axes. */
static bool read_pool(br_builder *b, const br_node *node, const br_row *row, window *w, bool *ceil)
{
    int count;
    int64_t given[GB_MAX_NDIMS];
    w->axes = (int)row->value;
    if (!br_arg_window(b, node, "kernel_size", w->axes, 1, w->kernel) ||
            !br_arg_ints(b, node, "stride", &count, given) ||
            !br_arg_window(b, node, "dilation", w->axes, 1, w->dilations) ||
            !br_arg_bool(b, node, "ceil_mode", false, ceil) || !read_pads(b, node, w))
        return false;
    if (count == 0) {
        memcpy(w->strides, w->kernel, sizeof w->strides);
        return true;
    }
    return br_arg_window(b, node, "stride", w->axes, 1, w->strides);
}

static void set_pool(br_builder *b, br_op *op, const window *w)
{
    set_window(b, op, w);
    br_set_s64(b, op, GB_ATTR_KERNEL, (size_t)w->axes, w->kernel);
}

bool br_map_max_pool(br_builder *b, const br_node *node, const br_row *row)
{
    window w;
    bool ceil;
    uint32_t in;
    if (br_output_is_read(b, node, 1))
        return br_refuse(b, "places of the maxima are read");
    if (!br_output_is_read(b, node, 0)) {
        b->is_view_node[b->node] = true; /* nobody needs what it computes */
        return true;
    }
    if (!read_pool(b, node, row, &w, &ceil) || !br_arg_wire(b, node, "self", &in))
        return false;
    if (!is_image(b, in, w.axes))
        return br_refuse(b, "an image without a batch");
    br_unary(b, GB_OP_MAX_POOL, in, br_output_wire(b, node, 0));
    br_op *op = &b->ops[b->n_ops - 1];
    set_pool(b, op, &w);
    br_set_s64(b, op, GB_ATTR_DILATIONS, (size_t)w.axes, w.dilations);
    br_set_text(op, GB_ATTR_ROUNDING_TYPE, ceil ? "ceil" : "floor");
    return true;
}

static bool same_arg(const br_node *a, const br_node *c, const char *name)
{
    const br_arg *x = br_find_arg(a, name), *y = br_find_arg(c, name);
    if (!x || !y)
        return x == y;
    bool same = x->kind == y->kind && x->count == y->count;
    for (uint32_t i = 0; same && i < x->count; i++)
        same = x->sizes ? x->sizes[i].value == y->sizes[i].value
                        : x->values && x->values[i] == y->values[i];
    return same;
}

bool br_reads_places_again(const br_builder *b, const br_node *node, uint32_t arg)
{
    static const char *const args[] = {
            "self", "kernel_size", "stride", "padding", "dilation", "ceil_mode"};
    const br_arg *places = &node->args[arg];
    bool is_gradient = strcmp(node->op, "aten.max_pool2d_with_indices_backward.default") == 0 ||
                       strcmp(node->op, "aten.max_pool3d_with_indices_backward.default") == 0;
    if (!is_gradient || b->has_writes || places->kind != BR_ARG_TENSOR ||
            strcmp(places->name, "indices") != 0)
        return false;
    uint32_t maker = b->graph->values[places->values[0]].producer;
    if (maker == BR_NONE)
        return false;
    const br_node *pool = &b->graph->nodes[maker];
    bool same = pool->n_outputs == 2 && pool->outputs[1] == places->values[0] &&
                strncmp(pool->op, node->op, strlen("aten.max_poolNd_with_indices")) == 0;
    for (size_t i = 0; same && i < BR_COUNT(args); i++)
        same = same_arg(pool, node, args[i]);
    return same;
}

/* Maxima are found again: the first of equal ones gets the gradient, as in the framework. */
bool br_map_max_pool_backward(br_builder *b, const br_node *node, const br_row *row)
{
    window w;
    bool ceil, is_found = false;
    uint32_t inputs[2], out;
    for (uint32_t i = 0; i < node->n_args; i++)
        is_found = is_found || br_reads_places_again(b, node, i);
    if (!is_found)
        return br_refuse(b, "places of maxima that come from elsewhere");
    if (!read_pool(b, node, row, &w, &ceil) || !br_arg_wire(b, node, "self", &inputs[0]) ||
            !br_arg_wire(b, node, "grad_output", &inputs[1]))
        return false;
    if (!is_image(b, inputs[0], w.axes))
        return br_refuse(b, "an image without a batch");
    out = br_output_wire(b, node, 0);
    br_op *op = br_emit(b, GB_OP_MAX_POOL_BACKWARD, 2, inputs, 1, &out);
    set_pool(b, op, &w);
    br_set_s64(b, op, GB_ATTR_DILATIONS, (size_t)w.axes, w.dilations);
    return true;
}

static bool read_avg_pool(br_builder *b, const br_node *node, const br_row *row, window *w,
        bool *ceil, bool *exclude_pad)
{
    bool include;
    bool is_padded = false;
    if (br_has_arg(node, "divisor_override"))
        return br_refuse(b, "a divisor of its own");
    if (!read_pool(b, node, row, w, ceil) ||
            !br_arg_bool(b, node, "count_include_pad", true, &include))
        return false;
    for (int d = 0; d < w->axes; d++)
        is_padded = is_padded || w->begin[d] != 0;
    if (*ceil && include && is_padded)
        return br_refuse(b, "counts padding in windows that are cut off");
    /* Without padding both count the same cells, and windows that are cut off only theirs. */
    *exclude_pad = !include || !is_padded;
    return true;
}

bool br_map_avg_pool(br_builder *b, const br_node *node, const br_row *row)
{
    window w;
    bool ceil, exclude_pad = false;
    uint32_t in;
    if (!read_avg_pool(b, node, row, &w, &ceil, &exclude_pad) || !br_arg_wire(b, node, "self", &in))
        return false;
    if (!is_image(b, in, w.axes))
        return br_refuse(b, "an image without a batch");
    br_unary(b, GB_OP_AVG_POOL, in, br_output_wire(b, node, 0));
    br_op *op = &b->ops[b->n_ops - 1];
    set_pool(b, op, &w);
    br_set_bool(b, op, GB_ATTR_EXCLUDE_PAD, exclude_pad);
    br_set_text(op, GB_ATTR_ROUNDING_TYPE, ceil ? "ceil" : "floor");
    return true;
}

bool br_map_avg_pool_backward(br_builder *b, const br_node *node, const br_row *row)
{
    window w;
    bool ceil, exclude_pad = false;
    uint32_t gradient;
    const br_value *self = br_arg_value(b, node, "self");
    if (!read_avg_pool(b, node, row, &w, &ceil, &exclude_pad) ||
            !br_arg_wire(b, node, "grad_output", &gradient))
        return false;
    if (!self || self->ndims != w.axes + 2)
        return br_refuse(b, "an image without a batch");
    br_unary(b, GB_OP_AVG_POOL_BACKWARD, gradient, br_output_wire(b, node, 0));
    br_op *op = &b->ops[b->n_ops - 1];
    set_pool(b, op, &w);
    br_set_bool(b, op, GB_ATTR_EXCLUDE_PAD, exclude_pad);
    int64_t dims[GB_MAX_NDIMS];
    for (int d = 0; d < self->ndims; d++)
        dims[d] = br_size_value(b, &self->dims[d]);
    br_set_s64(b, op, GB_ATTR_SRC_SHAPE, (size_t)self->ndims, dims);
    return true;
}

bool br_map_adaptive_avg_pool(br_builder *b, const br_node *node, const br_row *row)
{
    window w = {.axes = (int)row->value};
    uint32_t in;
    int64_t sizes[GB_MAX_NDIMS];
    if (!br_arg_window(b, node, "output_size", w.axes, 1, sizes) ||
            !br_arg_wire(b, node, "self", &in))
        return false;
    if (!is_image(b, in, w.axes))
        return br_refuse(b, "an image without a batch");
    for (int d = 0; d < w.axes; d++) {
        int64_t size = br_wire_of(b, in)->dims[d + 2];
        if (sizes[d] < 1 || size % sizes[d] != 0)
            return br_refuse(b, "windows of several sizes");
        w.kernel[d] = w.strides[d] = size / sizes[d];
    }
    br_unary(b, GB_OP_AVG_POOL, in, br_output_wire(b, node, 0));
    br_op *op = &b->ops[b->n_ops - 1];
    set_pool(b, op, &w);
    br_set_bool(b, op, GB_ATTR_EXCLUDE_PAD, true);
    return true;
}

/* ---- resizing ---- */

/* How often an axis was enlarged; 0: only its sizes say. */
static bool read_scale(br_builder *b, const br_node *node, int axes, int axis, double *scale)
{
    static const char *const names[] = {"scales_d", "scales_h", "scales_w"};
    const br_arg *list = br_find_arg(node, "scale_factors");
    if (!list)
        return br_arg_float(b, node, axes == 1 ? "scales" : names[3 - axes + axis], 0, scale);
    if (list->kind != BR_ARG_FLOATS || list->count != (uint32_t)axes)
        return br_refuse(b, "scales that are not one number for each axis");
    *scale = list->floats[axis];
    return true;
}

/* Does the library read the elements that the framework reads? It goes by sizes, the framework by the
 * inverse of the scale where one was given; both in f32. */
static bool places_agree(int64_t in, int64_t out, double scale, bool is_linear)
{
    enum { MOST = 1 << 20 };
    float ratio = scale > 0 ? (float)(1 / scale) : (float)in / (float)out;
    if (is_linear)
        return ratio == (float)in / (float)out;
    if (out > MOST)
        return false;
    for (int64_t o = 0; o < out; o++) {
        float theirs = fminf(floorf((float)o * ratio), (float)(in - 1));
        float ours = roundf(((float)o + 0.5f) * (float)in / (float)out - 0.5f);
        if (fmaxf(0, fminf(ours, (float)(in - 1))) != theirs)
            return false;
    }
    return true;
}

static void set_resizing(
        br_builder *b, br_op *op, int axes, const char *mode, bool align, const int64_t *sizes)
{
    br_set_text(op, GB_ATTR_MODE, mode);
    br_set_text(op, GB_ATTR_COORDINATE_TRANSFORMATION_MODE, align ? "align_corners" : "half_pixel");
    br_set_s64(b, op, GB_ATTR_SIZES, (size_t)axes, sizes);
    br_set_text(op, GB_ATTR_DATA_FORMAT, "NCX");
}

static const char *const linear[] = {"linear", "bilinear", "trilinear"};

/* `row->value`: linear, else nearest. */
bool br_map_upsample(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t in;
    bool align, is_linear = row->value != 0;
    if (!br_arg_wire(b, node, br_has_arg(node, "input") ? "input" : "self", &in) ||
            !br_arg_bool(b, node, "align_corners", false, &align))
        return false;
    br_wire from = *br_wire_of(b, in);
    uint32_t out = br_output_wire(b, node, 0);
    br_wire to = *br_wire_of(b, out);
    int axes = from.ndims - 2;
    if (axes < 1 || axes > 3 || to.ndims != from.ndims)
        return br_refuse(b, "not 1 to 3 spatial axes");
    for (int d = 0; d < axes; d++) {
        double scale;
        if (!read_scale(b, node, axes, d, &scale))
            return false;
        if (!align && !places_agree(from.dims[d + 2], to.dims[d + 2], scale, is_linear))
            return br_refuse(b, "reads other elements than sizes would say");
    }
    br_unary(b, GB_OP_INTERPOLATE, in, out);
    set_resizing(b, &b->ops[b->n_ops - 1], axes, is_linear ? linear[axes - 1] : "nearest", align,
            to.dims + 2);
    return true;
}

/* The library's op names the image that was resized, of which it reads the dims alone: zeros take its
 * place, in memory that nobody touches. */
bool br_map_linear_backward(br_builder *b, const br_node *node, const br_row *row)
{
    enum { MOST = 1 << 26 };
    uint32_t inputs[2];
    int axes = (int)row->value;
    bool align;
    if (!br_arg_wire(b, node, "grad_output", &inputs[1]) ||
            !br_arg_bool(b, node, "align_corners", false, &align))
        return false;
    uint32_t out = br_output_wire(b, node, 0);
    br_wire from = *br_wire_of(b, inputs[1]), to = *br_wire_of(b, out);
    if (from.ndims != axes + 2 || to.ndims != from.ndims || from.type != to.type)
        return br_refuse(b, "an image without a batch, or of two types");
    int64_t count = 1;
    for (int d = 0; d < to.ndims; d++) {
        if (to.dims[d] < 1 || to.dims[d] > MOST / count)
            return br_refuse(b, "a large image");
        count *= to.dims[d];
    }
    for (int d = 0; d < axes; d++) {
        double scale;
        if (!read_scale(b, node, axes, d, &scale))
            return false;
        if (!align && !places_agree(to.dims[d + 2], from.dims[d + 2], scale, true))
            return br_refuse(b, "reads other elements than sizes would say");
    }
    inputs[0] = br_wire_new(b, to.type, to.ndims, to.dims);
    size_t bytes = (size_t)count * (to.type == GB_F32 ? 4 : 2);
    void *zeros = br_alloc(b->arena, bytes, 1);
    if (!zeros)
        return false;
    b->wires[inputs[0]].data = zeros;
    b->wires[inputs[0]].bytes = bytes;
    br_op *op = br_emit(b, row->kind, 2, inputs, 1, &out);
    set_resizing(b, op, axes, linear[axes - 1], align, from.dims + 2);
    return true;
}

/* The gradient of a repetition of each element is the sum of what was made of it: a pool without the
 * division. */
bool br_map_nearest_backward(br_builder *b, const br_node *node, const br_row *row)
{
    window w = {.axes = (int)row->value};
    uint32_t gradient;
    double cells = 1;
    if (!br_arg_wire(b, node, "grad_output", &gradient))
        return false;
    uint32_t out = br_output_wire(b, node, 0);
    br_wire from = *br_wire_of(b, gradient), to = *br_wire_of(b, out);
    if (from.ndims != w.axes + 2 || to.ndims != from.ndims)
        return br_refuse(b, "an image without a batch");
    for (int d = 0; d < w.axes; d++) {
        double scale;
        int64_t large = from.dims[d + 2], small = to.dims[d + 2];
        if (!read_scale(b, node, w.axes, d, &scale))
            return false;
        if (large % small != 0 || !places_agree(small, large, scale, false))
            return br_refuse(b, "elements that are not all repeated as often");
        w.kernel[d] = w.strides[d] = large / small;
        cells *= (double)w.kernel[d];
    }
    uint32_t mean = br_unary(b, GB_OP_AVG_POOL, gradient, br_wire_like(b, out, from.type));
    br_op *op = &b->ops[b->n_ops - 1];
    set_pool(b, op, &w);
    br_set_bool(b, op, GB_ATTR_EXCLUDE_PAD, true);
    br_binary(b, GB_OP_MULTIPLY, mean, br_scalar(b, cells), out);
    return true;
}
