/* The reference and shape inference against their twin (lib/ref/naive), which shares nothing with
 * them: random small shapes, attributes, data types, layouts and values of every op. */
#include "graph/ops/op_table.h"
#include "ref/naive.h"
#include "ref/ref.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PORTS = 8, CASES = 400 };

/* What a kind must have met among its cases; see the table of kinds. */
typedef enum property {
    SPECIAL = 1 << 0, /* NaN, infinities, zeros of both signs, subnormals */
    EMPTY = 1 << 1,   /* a dim of 0 */
    STRIDED = 1 << 2, /* memory that is not dense row-major */
    NXC = 1 << 3,
    NCX = 1 << 4,
    UPPER = 1 << 5, /* SAME_UPPER and SAME_LOWER where they differ: an odd total */
    LOWER = 1 << 6,
    VALID = 1 << 7,
    CEIL = 1 << 8, /* where it makes a difference */
    GROUPS = 1 << 9,
    DILATED = 1 << 10,
    NEGATIVE_AXIS = 1 << 11,
    DEFAULTS = 1 << 12, /* an optional attribute is left out */
    PER_CHANNEL = 1 << 13,
    PER_GROUP = 1 << 14,
    BROADCAST = 1 << 15,
    CHANNELS_FIRST = 1 << 16, /* OIX or IOX */
    KEEP_DIMS = 1 << 17,
    VECTORS = 1 << 18, /* MatMul of rank 1 */
    TRANSPOSED = 1 << 19,
    FLAG_ON = 1 << 20, /* use_dst, exclude_pad, special_zero, use_affine, ... */
    FLAG_OFF = 1 << 21,
    F32 = 1 << 22,
    NARROW = 1 << 23, /* bf16, f16, f8, integers of 8 and 4 bits */
    REFUSED = 1 << 24 /* shapes or attributes that do not fit */
} property;

static const char *const property_names[] = {"special values", "a dim of 0", "strides", "NXC",
        "NCX", "SAME_UPPER", "SAME_LOWER", "VALID", "ceil", "groups", "dilations", "negative axis",
        "defaults", "per_channel", "per_group", "broadcast", "OIX/IOX", "keep_dims", "vectors",
        "transposed", "flag on", "flag off", "f32", "narrow types", "refused shapes"};

/* What the elements of an input are. */
typedef enum fill { ANY, POSITIVE, BITS, PROBABILITY, AXES } fill;

typedef struct random_case {
    gb_op_kind kind;
    gb_op *op; /* as the user gives it: no defaults */
    uint64_t state;
    uint32_t n_inputs, n_outputs, seen;
    gb_logical_tensor inputs[MOST_PORTS], outputs[MOST_PORTS];
    fill fills[MOST_PORTS];
    int64_t axes[GB_MAX_NDIMS]; /* of fill AXES */
    void *memory[MOST_PORTS];
    char name[96];
} random_case;

/* Random numbers ------------------------------------------------------------------------------ */

static int64_t below(random_case *c, int64_t n)
{
    c->state = c->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((c->state >> 33) % (uint64_t)n);
}

static bool one_in(random_case *c, int64_t n)
{
    return below(c, n) == 0;
}

static int64_t between(random_case *c, int64_t low, int64_t high)
{
    return low + below(c, high - low + 1);
}

static double uniform(random_case *c)
{
    return (double)below(c, 4001) / 1000 - 2;
}

static int64_t any_dim(random_case *c)
{
    return one_in(c, 25) ? 0 : between(c, 1, 5);
}

static gb_data_type any_float(random_case *c)
{
    const gb_data_type types[] = {GB_F32, GB_F32, GB_BF16, GB_F16};
    return types[below(c, 4)];
}

/* Building the op ------------------------------------------------------------------------------ */

static void ok(gb_status status)
{
    cr_assert_eq(status, GB_SUCCESS, "%s", gb_last_error());
}

static void set_real(random_case *c, gb_op_attr name, double value)
{
    ok(gb_op_set_attr_f32(c->op, name, 1, &(float){(float)value}));
}

static void set_int(random_case *c, gb_op_attr name, int64_t value)
{
    ok(gb_op_set_attr_s64(c->op, name, 1, &value));
}

static void set_ints(random_case *c, gb_op_attr name, int count, const int64_t *values)
{
    ok(gb_op_set_attr_s64(c->op, name, (size_t)count, count ? values : &(int64_t){0}));
}

static void set_text(random_case *c, gb_op_attr name, const char *text)
{
    ok(gb_op_set_attr_str(c->op, name, text, strlen(text)));
}

/* An optional attribute: not set, when its value is the default, half of the time. */
static bool leaves_out(random_case *c, bool is_default)
{
    bool out = is_default && one_in(c, 2);
    c->seen |= out ? DEFAULTS : 0;
    return out;
}

static bool any_flag(random_case *c, gb_op_attr name, int otherwise /* -1: required */)
{
    bool value = one_in(c, 2);
    c->seen |= value ? FLAG_ON : FLAG_OFF;
    if (!leaves_out(c, value == otherwise))
        ok(gb_op_set_attr_bool(c->op, name, 1, &(uint8_t){value}));
    return value;
}

static void maybe_text(random_case *c, gb_op_attr name, const char *text, const char *otherwise)
{
    if (!leaves_out(c, strcmp(text, otherwise) == 0))
        set_text(c, name, text);
}

/* data_format; returns the axis of the channels. */
static int any_format(random_case *c, int ndims)
{
    bool first = one_in(c, 2);
    c->seen |= first ? NCX : NXC;
    maybe_text(c, GB_ATTR_DATA_FORMAT, first ? "NCX" : "NXC", "NXC");
    return first ? 1 : ndims - 1;
}

/* An attribute that names one of `ndims` axes; returns the axis. */
static int any_axis(random_case *c, gb_op_attr name, int ndims, int64_t otherwise /* 99: none */)
{
    int64_t axis = between(c, -ndims, ndims - 1);
    if (otherwise >= -ndims && otherwise < ndims && one_in(c, 4))
        axis = otherwise;
    if (!leaves_out(c, axis == otherwise)) {
        set_int(c, name, axis);
        c->seen |= axis < 0 ? NEGATIVE_AXIS : 0;
    }
    return (int)(axis < 0 ? axis + ndims : axis);
}

static void any_dims(random_case *c, int ndims, int64_t *dims)
{
    for (int d = 0; d < ndims; d++)
        dims[d] = any_dim(c);
}

/* Strides of a tensor: dense, with gaps, with axes in another order, all elements of an axis in one
 * place (inputs only). */
static void any_strides(random_case *c, gb_logical_tensor *tensor, bool overlap)
{
    int order[GB_MAX_NDIMS], n = tensor->ndims;
    int64_t stride = 1;
    bool shuffle = one_in(c, 2), gaps = one_in(c, 2);
    if (n == 0 || one_in(c, 3))
        return;
    for (int d = 0; d < n; d++)
        order[d] = d;
    for (int d = n - 1; shuffle && d > 0; d--) {
        int other = (int)below(c, d + 1), kept = order[d];
        order[d] = order[other], order[other] = kept;
    }
    for (int i = n; i-- > 0;) {
        stride += gaps ? below(c, 3) : 0;
        tensor->strides[order[i]] = stride;
        stride *= tensor->dims[order[i]] > 0 ? tensor->dims[order[i]] : 1;
    }
    if (overlap && one_in(c, 6))
        tensor->strides[below(c, n)] = 0;
    c->seen |= STRIDED;
}

static void add_input(
        random_case *c, gb_data_type type, int ndims, const int64_t *dims, fill elements)
{
    gb_logical_tensor *tensor = &c->inputs[c->n_inputs];
    ok(gb_logical_tensor_init_with_dims(
            tensor, c->n_inputs, type, ndims, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    any_strides(c, tensor, true);
    c->fills[c->n_inputs++] = elements;
    for (int d = 0; d < ndims; d++)
        c->seen |= dims[d] == 0 ? EMPTY : 0;
    c->seen |= type == GB_F32 ? F32 : 0;
    c->seen |=
            type != GB_F32 && type != GB_S32 && type != GB_S64 && type != GB_BOOLEAN ? NARROW : 0;
    ok(gb_op_add_input(c->op, tensor));
}

static void add_vector(random_case *c, gb_data_type type, int64_t length, fill elements)
{
    add_input(c, type, 1, &length, elements);
}

/* The dims of an output follow; or they are given. */
static void add_output(random_case *c, gb_data_type type)
{
    gb_logical_tensor *tensor = &c->outputs[c->n_outputs];
    ok(gb_logical_tensor_init(tensor, 100 + c->n_outputs++, type, GB_UNKNOWN_NDIMS,
            GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    c->seen |= type == GB_F32 ? F32 : 0;
    c->seen |= type != GB_F32 && type != GB_S32 && type != GB_BOOLEAN ? NARROW : 0;
    ok(gb_op_add_output(c->op, tensor));
}

static void add_known_output(random_case *c, gb_data_type type, int ndims, const int64_t *dims)
{
    gb_logical_tensor *tensor = &c->outputs[c->n_outputs];
    ok(gb_logical_tensor_init_with_dims(tensor, 100 + c->n_outputs++, type, ndims, dims,
            GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    any_strides(c, tensor, false);
    ok(gb_op_add_output(c->op, tensor));
}

/* Generators ----------------------------------------------------------------------------------- */

static void make_unary(random_case *c)
{
    gb_data_type type = any_float(c);
    int64_t dims[GB_MAX_NDIMS];
    int ndims = (int)below(c, 6);
    bool roots = c->kind == GB_OP_LOG || c->kind == GB_OP_SQRT || c->kind == GB_OP_SQRT_BACKWARD ||
                 c->kind == GB_OP_POW;
    bool backward = gb_op_schema_get(c->kind)->op_class == GB_CLASS_UNARY_BACKWARD;
    any_dims(c, ndims, dims);
    switch (c->kind) {
    case GB_OP_CLAMP:
    case GB_OP_CLAMP_BACKWARD:
        set_real(c, GB_ATTR_MIN, -0.5 - (double)below(c, 3) / 4);
        set_real(c, GB_ATTR_MAX, (double)below(c, 8) / 4 - 0.25);
        break;
    case GB_OP_ELU:
    case GB_OP_ELU_BACKWARD:
        set_real(c, GB_ATTR_ALPHA, (double)below(c, 8) / 4);
        break;
    case GB_OP_LEAKY_RELU:
        set_real(c, GB_ATTR_ALPHA, uniform(c));
        break;
    case GB_OP_HARD_SIGMOID:
    case GB_OP_HARD_SIGMOID_BACKWARD:
        set_real(c, GB_ATTR_ALPHA, uniform(c));
        set_real(c, GB_ATTR_BETA, uniform(c));
        break;
    case GB_OP_POW:
        set_real(c, GB_ATTR_BETA, one_in(c, 2) ? uniform(c) : (double)between(c, -3, 3));
        break;
    case GB_OP_SOFTPLUS:
    case GB_OP_SOFTPLUS_BACKWARD: {
        const double betas[] = {1, 1, 2, -0.5, 8};
        double beta = betas[below(c, 5)];
        if (!leaves_out(c, beta == 1))
            set_real(c, GB_ATTR_BETA, beta);
        break;
    }
    case GB_OP_GELU:
    case GB_OP_GELU_BACKWARD:
        maybe_text(c, GB_ATTR_MODE, one_in(c, 2) ? "gelu_tanh" : "gelu_erf", "gelu_erf");
        break;
    default:
        break;
    }
    const gb_op_kind choosing[] = {GB_OP_CLAMP_BACKWARD, GB_OP_ELU_BACKWARD, GB_OP_RELU_BACKWARD,
            GB_OP_SIGMOID_BACKWARD, GB_OP_SQRT_BACKWARD, GB_OP_TANH_BACKWARD};
    for (size_t i = 0; i < sizeof choosing / sizeof *choosing; i++)
        if (c->kind == choosing[i])
            any_flag(c, GB_ATTR_USE_DST, 1);
    add_input(c, type, ndims, dims, roots && !one_in(c, 4) ? POSITIVE : ANY);
    if (backward && ndims > 0 && one_in(c, 40)) {
        dims[0] += 1;
        c->seen |= REFUSED;
    }
    if (backward)
        add_input(c, type, ndims, dims, ANY);
    add_output(c, type);
}

/* Dims that broadcast onto `dims`: leading ones left out, others 1. */
static int reduced_dims(random_case *c, int ndims, const int64_t *dims, int64_t *reduced)
{
    int missing = ndims > 0 && one_in(c, 2) ? (int)below(c, ndims + 1) : 0;
    for (int d = missing; d < ndims; d++)
        reduced[d - missing] = one_in(c, 4) ? 1 : dims[d];
    c->seen |= missing ? BROADCAST : 0;
    return ndims - missing;
}

static void make_binary(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS] = {0}, a[GB_MAX_NDIMS], b[GB_MAX_NDIMS];
    int ndims = (int)below(c, 5), n_a = ndims, n_b = ndims;
    gb_data_type types[] = {any_float(c), GB_F32, GB_F32};
    bool mixed = c->kind == GB_OP_ADD || c->kind == GB_OP_SUBTRACT || c->kind == GB_OP_MULTIPLY ||
                 c->kind == GB_OP_DIVIDE;
    bool integers =
            c->kind == GB_OP_ADD || c->kind == GB_OP_SUBTRACT || c->kind == GB_OP_GREATER_EQUAL;
    types[1] = types[2] = types[0];
    if (mixed && one_in(c, 3))
        types[below(c, 2)] = types[2] = GB_F32;
    if (integers && one_in(c, 4))
        types[0] = types[1] = types[2] = GB_S32;
    any_dims(c, ndims, dims);
    memcpy(a, dims, sizeof a);
    memcpy(b, dims, sizeof b);
    bool none = one_in(c, 4);
    if (!none) {
        n_a = reduced_dims(c, ndims, dims, a);
        n_b = reduced_dims(c, ndims, dims, b);
    }
    if (ndims > 0 && one_in(c, 20)) { /* mostly no broadcast */
        b[0] += 1;
        n_b = ndims;
        c->seen |= REFUSED;
    }
    maybe_text(c, GB_ATTR_AUTO_BROADCAST, none ? "none" : "numpy", "numpy");
    add_input(c, types[0], n_a, a, ANY);
    add_input(c, types[1], n_b, b, ANY);
    add_output(c, c->kind == GB_OP_GREATER_EQUAL ? GB_BOOLEAN : types[2]);
}

static void make_select(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS] = {0}, a[GB_MAX_NDIMS], b[GB_MAX_NDIMS], cond[GB_MAX_NDIMS];
    int ndims = (int)below(c, 5), n_a = ndims, n_b = ndims, n_cond = ndims;
    gb_data_type type = any_float(c);
    any_dims(c, ndims, dims);
    memcpy(a, dims, sizeof a);
    memcpy(b, dims, sizeof b);
    memcpy(cond, dims, sizeof cond);
    bool none = one_in(c, 4);
    if (!none) { /* sometimes cond would enlarge the result */
        n_a = reduced_dims(c, ndims, dims, a);
        n_b = one_in(c, 4) ? reduced_dims(c, ndims, dims, b) : ndims;
        n_cond = reduced_dims(c, ndims, dims, cond);
    }
    c->seen |= REFUSED;
    maybe_text(c, GB_ATTR_AUTO_BROADCAST, none ? "none" : "numpy", "numpy");
    add_input(c, GB_BOOLEAN, n_cond, cond, BITS);
    add_input(c, type, n_a, a, ANY);
    add_input(c, type, n_b, b, ANY);
    add_output(c, type);
}

static void make_bias(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS];
    int ndims = (int)between(c, 2, 5), channel = any_format(c, ndims);
    gb_data_type type = any_float(c);
    any_dims(c, ndims, dims);
    add_input(c, type, ndims, dims, ANY);
    c->seen |= REFUSED;
    if (c->kind == GB_OP_BIAS_ADD)
        add_vector(c, type, dims[channel] + one_in(c, 20), ANY);
    add_output(c, type);
}

static void make_prelu(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS], slope[GB_MAX_NDIMS];
    int ndims = (int)between(c, 1, 4), channel = any_format(c, ndims), n_slope = 1;
    gb_data_type type = any_float(c);
    any_dims(c, ndims, dims);
    if (ndims == 1)
        channel = 0;
    bool per_channel =
            c->kind == GB_OP_PRELU ? any_flag(c, GB_ATTR_PER_CHANNEL_BROADCAST, 1) : true;
    if (one_in(c, 2)) {
        n_slope = reduced_dims(c, ndims, dims, slope);
    } else {
        slope[0] = one_in(c, 3) ? 1 : dims[per_channel ? channel : ndims - 1];
        c->seen |= per_channel ? PER_CHANNEL : 0;
    }
    c->seen |= REFUSED;
    add_input(c, type, ndims, dims, ANY);
    add_input(c, type, n_slope, slope, ANY);
    if (c->kind == GB_OP_PRELU_BACKWARD)
        add_input(c, type, ndims, dims, ANY);
    add_output(c, type);
    if (c->kind == GB_OP_PRELU_BACKWARD)
        add_output(c, type);
}

/* Windows: the sizes of image and positions, that a gradient's generator needs, come from what is
 * known of each padding: SAME_* give a position for every stride of the image. */
typedef struct window {
    int n;
    int64_t image[3], positions[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
    const char *auto_pad;
} window;

static window any_window(random_case *c, bool dilations)
{
    const char *const pads[] = {"None", "None", "SAME_UPPER", "SAME_LOWER", "VALID"};
    window w = {.n = (int)between(c, 1, 3), .auto_pad = pads[below(c, 5)]};
    for (int d = 0; d < w.n; d++) {
        w.kernel[d] = between(c, 1, 3);
        w.stride[d] = between(c, 1, 3);
        w.dilation[d] = dilations && one_in(c, 3) ? 2 : 1;
        w.begin[d] = one_in(c, 2) ? below(c, 3) : 0;
        w.end[d] = one_in(c, 2) ? below(c, 3) : 0;
        w.image[d] = one_in(c, 40) ? 0 : between(c, w.n == 3 ? 1 : 2, w.n == 1 ? 9 : 6);
        int64_t extent = (w.kernel[d] - 1) * w.dilation[d] + 1, room = w.image[d] - extent;
        if (w.auto_pad[0] == 'S') {
            w.positions[d] = (w.image[d] + w.stride[d] - 1) / w.stride[d];
        } else {
            room += w.auto_pad[0] == 'V' ? 0 : w.begin[d] + w.end[d];
            w.positions[d] = room < 0 ? 0 : room / w.stride[d] + 1;
        }
        c->seen |= w.dilation[d] > 1 && w.kernel[d] > 1 ? DILATED : 0;
        c->seen |= room < 0 ? REFUSED : 0;
        int64_t rest = w.image[d] % w.stride[d];
        bool odd = (extent - (rest ? rest : w.stride[d])) % 2 == 1 && w.image[d] > 0;
        c->seen |= odd && !strcmp(w.auto_pad, "SAME_UPPER") ? UPPER : 0;
        c->seen |= odd && !strcmp(w.auto_pad, "SAME_LOWER") ? LOWER : 0;
    }
    c->seen |= !strcmp(w.auto_pad, "VALID") ? VALID : 0;
    return w;
}

static void set_window(random_case *c, const window *w)
{
    set_ints(c, GB_ATTR_STRIDES, w->n, w->stride);
    set_ints(c, GB_ATTR_PADS_BEGIN, w->n, w->begin);
    set_ints(c, GB_ATTR_PADS_END, w->n, w->end);
    maybe_text(c, GB_ATTR_AUTO_PAD, w->auto_pad, "None");
}

static void data_dims(
        int channel, int64_t n, int64_t channels, const int64_t *size, int n_spatial, int64_t *dims)
{
    dims[0] = n;
    for (int d = 1, at = 0; d < n_spatial + 2; d++)
        dims[d] = d == channel ? channels : size[at++];
}

static void make_convolution(random_case *c)
{
    const gb_op_kind kind = c->kind;
    bool transposed = kind == GB_OP_CONV_TRANSPOSE || kind == GB_OP_CONV_TRANSPOSE_BACKWARD_DATA ||
                      kind == GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS;
    bool by_weights = kind == GB_OP_CONVOLUTION_BACKWARD_WEIGHTS ||
                      kind == GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS;
    window w = any_window(c, true);
    int ndims = w.n + 2, channel = any_format(c, ndims);
    gb_data_type type = any_float(c);
    int64_t groups = one_in(c, 2) ? between(c, 2, 3) : 1, batch = between(c, 1, 2);
    int64_t inner = between(c, 1, 2), outer = groups * between(c, 1, 2);
    int64_t image[5], positions[5], weights[5];
    bool first = one_in(c, 2);
    set_window(c, &w);
    set_ints(c, GB_ATTR_DILATIONS, w.n, w.dilation);
    if (!leaves_out(c, groups == 1))
        set_int(c, GB_ATTR_GROUPS, groups);
    const char *plain = transposed ? "XOI" : "XIO";
    maybe_text(c, GB_ATTR_WEIGHTS_FORMAT, first ? transposed ? "IOX" : "OIX" : plain, plain);
    c->seen |= (first ? CHANNELS_FIRST : 0) | (groups > 1 ? GROUPS : 0);
    if (kind == GB_OP_CONV_TRANSPOSE) { /* any size of src; the image follows */
        const int64_t padding[] = {below(c, 2), below(c, 2), 0};
        for (int d = 0; d < w.n; d++)
            w.positions[d] = between(c, 1, 4);
        if (!leaves_out(c, false) && one_in(c, 2))
            set_ints(c, GB_ATTR_OUTPUT_PADDING, w.n, padding);
        else
            c->seen |= DEFAULTS;
        c->seen |= REFUSED | UPPER | LOWER;
    }
    int64_t extra = one_in(c, 20) ? 1 : 0; /* channels that do not fit */
    c->seen |= extra ? REFUSED : 0;
    data_dims(channel, batch, groups * inner, w.image, w.n, image);
    data_dims(channel, batch, outer + extra, w.positions, w.n, positions);
    for (int d = 0; d < w.n; d++)
        weights[first ? d + 2 : d] = w.kernel[d];
    weights[first ? 0 : ndims - 1] = outer;
    weights[first ? 1 : ndims - 2] = inner;
    bool of_image = kind == GB_OP_CONVOLUTION || kind == GB_OP_CONVOLUTION_BACKWARD_WEIGHTS ||
                    kind == GB_OP_CONV_TRANSPOSE_BACKWARD_DATA;
    add_input(c, type, ndims, of_image ? image : positions, ANY);
    if (by_weights)
        add_input(c, type, ndims, transposed ? image : positions, ANY);
    else
        add_input(c, type, ndims, weights, ANY);
    bool bias = (kind == GB_OP_CONVOLUTION || kind == GB_OP_CONV_TRANSPOSE) && one_in(c, 2);
    if (bias)
        add_vector(c, type, transposed ? groups * inner : outer, ANY);
    const int64_t *target = by_weights ? weights : image;
    bool targeted = by_weights || kind == GB_OP_CONVOLUTION_BACKWARD_DATA;
    if (targeted && one_in(c, 2))
        set_ints(c, by_weights ? GB_ATTR_WEIGHTS_SHAPE : GB_ATTR_DST_SHAPE, ndims, target);
    else if (targeted) {
        add_known_output(c, type, ndims, target);
        return;
    }
    add_output(c, type);
}

static void make_pool(random_case *c)
{
    bool maximum = c->kind == GB_OP_MAX_POOL || c->kind == GB_OP_MAX_POOL_BACKWARD;
    bool backward = c->kind == GB_OP_AVG_POOL_BACKWARD || c->kind == GB_OP_MAX_POOL_BACKWARD;
    window w = any_window(c, maximum);
    int ndims = w.n + 2, channel = any_format(c, ndims);
    gb_data_type type = any_float(c);
    int64_t image[5], positions[5], batch = between(c, 1, 2), channels = between(c, 1, 3);
    set_window(c, &w);
    set_ints(c, GB_ATTR_KERNEL, w.n, w.kernel);
    if (!maximum)
        any_flag(c, GB_ATTR_EXCLUDE_PAD, -1);
    bool plain = true;
    for (int d = 0; d < w.n; d++)
        plain = plain && w.dilation[d] == 1;
    if (maximum && !leaves_out(c, plain))
        set_ints(c, GB_ATTR_DILATIONS, w.n, w.dilation);
    if (!backward) {
        bool up = one_in(c, 2);
        for (int d = 0; up && d < w.n; d++) {
            int64_t extent = (w.kernel[d] - 1) * w.dilation[d] + 1;
            bool explicit = !strcmp(w.auto_pad, "None");
            int64_t room = w.image[d] - extent + (explicit ? w.begin[d] + w.end[d] : 0);
            c->seen |= w.auto_pad[0] != 'S' && room > 0 && room % w.stride[d] ? CEIL : 0;
        }
        maybe_text(c, GB_ATTR_ROUNDING_TYPE, up ? "ceil" : "floor", "floor");
    } else { /* diff_dst of a pool that rounded up has one position more */
        for (int d = 0; d < w.n; d++)
            w.positions[d] += one_in(c, 6);
    }
    data_dims(channel, batch, channels, w.image, w.n, image);
    data_dims(channel, batch, channels + (backward && one_in(c, 20)), w.positions, w.n, positions);
    c->seen |= REFUSED;
    if (c->kind != GB_OP_AVG_POOL_BACKWARD)
        add_input(c, type, ndims, image, ANY);
    if (backward)
        add_input(c, type, ndims, positions, ANY);
    if (c->kind == GB_OP_AVG_POOL_BACKWARD && one_in(c, 2)) {
        add_known_output(c, type, ndims, image);
        return;
    }
    if (c->kind == GB_OP_AVG_POOL_BACKWARD)
        set_ints(c, GB_ATTR_SRC_SHAPE, ndims, image);
    add_output(c, type);
}

static gb_data_type stats_type(random_case *c, gb_data_type type)
{
    return type == GB_BF16 && one_in(c, 2) ? GB_BF16 : GB_F32;
}

static void any_epsilon(random_case *c, bool required)
{
    bool plain = !required && one_in(c, 2);
    if (plain)
        c->seen |= DEFAULTS;
    else
        set_real(c, GB_ATTR_EPSILON, one_in(c, 2) ? 0.125 : 1e-3);
}

static void make_batch_norm(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS];
    int ndims = (int)between(c, 2, 5), channel = any_format(c, ndims);
    gb_data_type type = any_float(c), stats = stats_type(c, type);
    any_dims(c, ndims, dims);
    any_epsilon(c, true);
    int64_t channels = dims[channel];
    add_input(c, type, ndims, dims, ANY);
    if (c->kind == GB_OP_BATCH_NORM_INFERENCE) {
        for (int i = 0; i < 4; i++)
            add_vector(c, stats, channels + (i == 3 && one_in(c, 20)), i == 3 ? POSITIVE : ANY);
        c->seen |= REFUSED;
        add_output(c, type);
        return;
    }
    if (c->kind == GB_OP_BATCH_NORM_BACKWARD)
        add_input(c, type, ndims, dims, ANY);
    add_vector(c, stats, channels, ANY);
    add_vector(c, stats, channels, POSITIVE);
    if (c->kind == GB_OP_BATCH_NORM_BACKWARD) {
        if (one_in(c, 2))
            add_vector(c, stats, channels, ANY);
        for (int64_t i = between(c, 1, 3), n = i; i > 0; i--)
            add_output(c, i == n ? type : stats);
        return;
    }
    if (one_in(c, 2))
        set_real(c, GB_ATTR_MOMENTUM, 0.875);
    else
        c->seen |= DEFAULTS;
    for (int64_t i = below(c, 3); i > 0; i--)
        add_vector(c, stats, channels, ANY);
    for (int i = 0; i < 5; i++)
        add_output(c, i ? stats : type);
}

static void make_layer_norm(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS];
    int ndims = (int)between(c, 1, 5);
    gb_data_type type = any_float(c), stats = stats_type(c, type);
    any_dims(c, ndims, dims);
    any_epsilon(c, false);
    int axis = any_axis(c, GB_ATTR_BEGIN_NORM_AXIS, ndims, -1);
    bool backward = c->kind == GB_OP_LAYER_NORM_BACKWARD;
    add_input(c, type, ndims, dims, ANY);
    if (backward) {
        add_input(c, type, ndims, dims, ANY);
        add_input(c, stats, axis, dims, ANY);
        add_input(c, stats, axis, dims, POSITIVE);
    }
    bool keep = !backward && any_flag(c, GB_ATTR_KEEP_STATS, 1);
    bool affine = any_flag(c, GB_ATTR_USE_AFFINE, 1);
    bool given = affine || one_in(c, 4); /* given and not used */
    for (int64_t i = given ? backward ? between(c, 1, 2) : 2 : 0; i > 0; i--)
        add_input(c, stats, ndims - axis, &dims[axis], ANY);
    bool three = backward ? affine || one_in(c, 2) : keep || one_in(c, 4);
    add_output(c, type);
    for (int i = 0; three && i < 2; i++)
        add_output(c, stats);
}

static void make_group_norm(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS], groups = between(c, 1, 3);
    int ndims = (int)between(c, 2, 5), channel = any_format(c, ndims);
    gb_data_type type = any_float(c), stats = stats_type(c, type);
    any_dims(c, ndims, dims);
    any_epsilon(c, false);
    if (!one_in(c, 20))
        dims[channel] = groups * between(c, 1, 3);
    c->seen |= REFUSED | (groups > 1 ? GROUPS : 0);
    set_int(c, GB_ATTR_GROUPS, groups);
    add_input(c, type, ndims, dims, ANY);
    bool keep = any_flag(c, GB_ATTR_KEEP_STATS, 1);
    bool affine = any_flag(c, GB_ATTR_USE_AFFINE, 1);
    for (int i = 0; affine && i < 2; i++)
        add_vector(c, stats, dims[channel], ANY);
    add_output(c, type);
    for (int i = 0; keep && i < 2; i++)
        add_output(c, stats);
}

static void make_rms_norm(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS];
    int ndims = (int)between(c, 1, 4);
    gb_data_type type = any_float(c);
    any_dims(c, ndims, dims);
    any_epsilon(c, false);
    int axis = any_axis(c, GB_ATTR_BEGIN_NORM_AXIS, ndims, -1);
    add_input(c, type, ndims, dims, ANY);
    if (one_in(c, 2))
        add_input(c, one_in(c, 2) ? type : GB_F32, ndims - axis, &dims[axis], ANY);
    add_output(c, type);
}

static void make_softmax(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS];
    int ndims = (int)between(c, 1, 4);
    gb_data_type type = any_float(c), result = type;
    bool logarithm = c->kind == GB_OP_LOG_SOFTMAX || c->kind == GB_OP_LOG_SOFTMAX_BACKWARD;
    bool backward = c->kind == GB_OP_SOFTMAX_BACKWARD || c->kind == GB_OP_LOG_SOFTMAX_BACKWARD;
    any_dims(c, ndims, dims);
    any_axis(c, GB_ATTR_AXIS, ndims, logarithm ? -1 : 1);
    if (!logarithm && one_in(c, 3))
        result = GB_F32;
    if (c->kind == GB_OP_SOFTMAX && type == GB_F32)
        result = any_float(c);
    if (c->kind == GB_OP_SOFTMAX)
        maybe_text(c, GB_ATTR_MODE, one_in(c, 2) ? "inf_as_zero" : "none", "none");
    add_input(c, type, ndims, dims, ANY);
    if (backward)
        add_input(c, type, ndims, dims, logarithm ? ANY : PROBABILITY);
    add_output(c, result);
    if (c->kind == GB_OP_SOFTMAX && one_in(c, 2))
        add_output(c, GB_F32);
}

static void make_matmul(random_case *c)
{
    int64_t batch[GB_MAX_NDIMS] = {0}, a[GB_MAX_NDIMS], b[GB_MAX_NDIMS], dst[GB_MAX_NDIMS];
    int64_t m = any_dim(c), n = any_dim(c), k = any_dim(c);
    int n_batch = (int)below(c, 4), n_a, n_b, n_dst = n_batch;
    gb_data_type type = any_float(c);
    any_dims(c, n_batch, batch);
    memcpy(dst, batch, sizeof dst);
    n_a = reduced_dims(c, n_batch, batch, a);
    n_b = one_in(c, 2) ? reduced_dims(c, n_batch, batch, b) : n_batch;
    if (n_b == n_batch)
        memcpy(b, batch, sizeof b);
    bool row = one_in(c, 6), column = one_in(c, 6);
    bool swap_a = one_in(c, 2), swap_b = one_in(c, 2);
    if (!leaves_out(c, !swap_a))
        ok(gb_op_set_attr_bool(c->op, GB_ATTR_TRANSPOSE_A, 1, &(uint8_t){swap_a}));
    if (!leaves_out(c, !swap_b))
        ok(gb_op_set_attr_bool(c->op, GB_ATTR_TRANSPOSE_B, 1, &(uint8_t){swap_b}));
    if (row) {
        a[0] = k;
        n_a = 1;
    } else {
        a[n_a++] = swap_a ? k : m;
        a[n_a++] = swap_a ? m : k;
        dst[n_dst++] = m;
    }
    int64_t depth = one_in(c, 30) ? k + 1 : k;
    if (column) {
        b[0] = depth;
        n_b = 1;
    } else {
        b[n_b++] = swap_b ? n : depth;
        b[n_b++] = swap_b ? depth : n;
        dst[n_dst++] = n;
    }
    c->seen |= REFUSED | (row || column ? VECTORS : 0) | (swap_a || swap_b ? TRANSPOSED : 0);
    add_input(c, type, n_a, a, ANY);
    add_input(c, type, n_b, b, ANY);
    if (one_in(c, 2)) { /* may have a batch that a and b have not, which is refused */
        int64_t bias[GB_MAX_NDIMS];
        int n_bias = one_in(c, 2) ? 1 : reduced_dims(c, n_dst, dst, bias);
        if (n_bias == 1)
            bias[0] = n_dst > 0 ? dst[n_dst - 1] : 1;
        add_input(c, type, n_bias, bias, ANY);
    }
    add_output(c, one_in(c, 3) ? GB_F32 : type);
}

static void make_reduce(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS], kept[GB_MAX_NDIMS];
    int ndims = (int)between(c, 0, 5), n_axes = 0, n_kept = 0;
    gb_data_type type = any_float(c);
    any_dims(c, ndims, dims);
    bool keep = any_flag(c, GB_ATTR_KEEP_DIMS, 0);
    c->seen |= keep ? KEEP_DIMS : 0;
    bool in_tensor = one_in(c, 4);
    for (int d = 0; d < ndims; d++) {
        bool reduced = one_in(c, 2);
        if (reduced) {
            bool negative = one_in(c, 3);
            c->axes[n_axes++] = negative ? d - ndims : d;
            c->seen |= negative ? NEGATIVE_AXIS : 0;
        }
        if (!reduced || keep)
            kept[n_kept++] = reduced ? 1 : dims[d];
    }
    if (n_axes > 0 && one_in(c, 30)) {
        c->axes[n_axes - 1] = one_in(c, 2) && n_axes > 1 ? c->axes[0] : ndims;
        in_tensor = false;
    }
    c->seen |= REFUSED;
    in_tensor = in_tensor && n_axes > 0;
    if (!in_tensor && !leaves_out(c, n_axes == 0))
        set_ints(c, GB_ATTR_AXES, n_axes, c->axes);
    add_input(c, type, ndims, dims, ANY);
    if (in_tensor) {
        add_vector(c, GB_S32, n_axes, AXES);
        c->inputs[1].strides[0] = 1;
        add_known_output(c, type, n_kept, kept);
        return;
    }
    add_output(c, type);
}

static void make_interpolate(random_case *c)
{
    const char *const modes[] = {"nearest", "linear", "bilinear", "trilinear"};
    int64_t dims[GB_MAX_NDIMS], sizes[3], result[GB_MAX_NDIMS];
    float scales[3];
    int ndims = (int)between(c, 3, 5), channel = any_format(c, ndims), at = 0;
    gb_data_type type = any_float(c);
    set_text(c, GB_ATTR_MODE, modes[below(c, 4)]);
    maybe_text(c, GB_ATTR_COORDINATE_TRANSFORMATION_MODE,
            one_in(c, 3) ? "align_corners" : "half_pixel", "half_pixel");
    for (int d = 0; d < ndims; d++) {
        result[d] = dims[d] = any_dim(c);
        if (d == 0 || d == channel)
            continue;
        const float factors[] = {0.5F, 1, 1.5F, 2, 3, 0.75F};
        scales[at] = factors[below(c, 6)];
        sizes[at] = dims[d] ? between(c, 0, 7) : 0;
        result[d] = sizes[at++];
    }
    bool by_size = c->kind == GB_OP_INTERPOLATE_BACKWARD || one_in(c, 2);
    if (by_size)
        set_ints(c, GB_ATTR_SIZES, at, sizes);
    else
        ok(gb_op_set_attr_f32(c->op, GB_ATTR_SCALES, (size_t)at, scales));
    add_input(c, type, ndims, dims, ANY);
    if (c->kind == GB_OP_INTERPOLATE_BACKWARD)
        add_input(c, type, ndims, result, ANY);
    add_output(c, type);
}

static void make_concat(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS] = {0};
    int ndims = (int)between(c, 1, 5);
    gb_data_type type = any_float(c);
    any_dims(c, ndims, dims);
    int axis = any_axis(c, GB_ATTR_AXIS, ndims, 99);
    for (int64_t i = between(c, 1, 4); i > 0; i--) {
        int64_t own[GB_MAX_NDIMS];
        memcpy(own, dims, sizeof own);
        own[axis] = any_dim(c);
        own[below(c, ndims)] += one_in(c, 60);
        add_input(c, type, ndims, own, ANY);
    }
    c->seen |= REFUSED;
    add_output(c, type);
}

static void make_reshape(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS], shape[GB_MAX_NDIMS];
    int ndims = (int)between(c, 0, 4), n = 0;
    gb_data_type type = any_float(c);
    any_dims(c, ndims, dims);
    bool special = any_flag(c, GB_ATTR_SPECIAL_ZERO, -1);
    /* src's dims, some joined with the next, one of 1 put in, one copied, one left open */
    for (int d = 0; d < ndims; d++) {
        bool join = d + 1 < ndims && one_in(c, 3);
        if (one_in(c, 6))
            shape[n++] = 1;
        shape[n++] = join ? dims[d] * dims[d + 1] : dims[d];
        d += join;
    }
    if (special && n > 0 && n <= ndims && one_in(c, 2) && shape[n - 1] == dims[n - 1])
        shape[n - 1] = 0;
    if (n > 0 && one_in(c, 2))
        shape[below(c, n)] = -1;
    c->seen |= REFUSED;
    set_ints(c, GB_ATTR_SHAPE, n, shape);
    add_input(c, type, ndims, dims, ANY);
    add_output(c, type);
}

static void make_transpose(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS], order[GB_MAX_NDIMS];
    int ndims = (int)between(c, 0, 5);
    gb_data_type type = any_float(c);
    any_dims(c, ndims, dims);
    for (int d = 0; d < ndims; d++)
        order[d] = d;
    for (int d = ndims - 1; d > 0; d--) {
        int other = (int)below(c, d + 1);
        int64_t kept = order[d];
        order[d] = order[other], order[other] = kept;
    }
    for (int d = 0; d < ndims; d++)
        if (one_in(c, 4)) {
            order[d] -= ndims;
            c->seen |= NEGATIVE_AXIS;
        }
    if (ndims > 0 && one_in(c, 30))
        order[0] = order[ndims - 1];
    c->seen |= REFUSED;
    set_ints(c, GB_ATTR_ORDER, one_in(c, 6) ? 0 : ndims, order);
    add_input(c, type, ndims, dims, ANY);
    add_output(c, type);
}

static void make_copy(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS];
    int ndims = (int)between(c, 0, 5);
    gb_data_type type = any_float(c), result = type;
    any_dims(c, ndims, dims);
    if (c->kind == GB_OP_TYPE_CAST)
        result = type != GB_F32 ? GB_F32 : one_in(c, 2) ? GB_BF16 : GB_F16;
    add_input(c, type, ndims, dims, ANY);
    add_output(c, result);
}

static void make_gen_index(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS];
    int ndims = (int)between(c, 1, 5);
    any_dims(c, ndims, dims);
    any_axis(c, GB_ATTR_AXIS, ndims, 99);
    add_input(c, any_float(c), ndims, dims, ANY);
    add_output(c, GB_S32);
}

/* Number of scales: 1, or the dim along the axis. */
static int64_t any_qtype(random_case *c, int ndims, const int64_t *dims)
{
    bool per_channel = ndims > 0 && one_in(c, 2);
    maybe_text(c, GB_ATTR_QTYPE, per_channel ? "per_channel" : "per_tensor", "per_tensor");
    if (!per_channel)
        return 1;
    c->seen |= PER_CHANNEL;
    return dims[any_axis(c, GB_ATTR_AXIS, ndims, 1)];
}

static void make_quantize(random_case *c)
{
    const gb_data_type types[] = {GB_S8, GB_U8, GB_F8_E5M2, GB_F8_E4M3};
    gb_data_type narrow = types[below(c, 4)];
    bool integer = narrow == GB_S8 || narrow == GB_U8;
    int64_t dims[GB_MAX_NDIMS], zps[8];
    int ndims = (int)between(c, 0, 4);
    for (int d = 0; d < ndims; d++)
        dims[d] = one_in(c, 30) && ndims == 1 ? 1 : between(c, 1, 5);
    if (ndims > 1 && one_in(c, 20))
        dims[0] = 0; /* of which a list of scales may not be empty */
    int64_t count = any_qtype(c, ndims, dims);
    if (count == 0) { /* the axis of 0 was chosen */
        dims[0] = count = 2;
    }
    float scales[8];
    for (int64_t i = 0; i < count; i++) {
        scales[i] = (float)(one_in(c, 2) ? ldexp(1, (int)between(c, -3, 0))
                                         : (double)between(c, 1, 40) / 64);
        zps[i] = narrow == GB_U8 ? below(c, 200) : between(c, -20, 20);
    }
    ok(gb_op_set_attr_f32(c->op, GB_ATTR_SCALES, (size_t)count, scales));
    if (integer && one_in(c, 2))
        set_ints(c, GB_ATTR_ZPS, (int)count, zps);
    bool forward = c->kind == GB_OP_QUANTIZE;
    add_input(c, forward ? GB_F32 : narrow, ndims, dims, forward ? ANY : BITS);
    add_output(c, forward ? narrow : GB_F32);
}

static void make_dynamic_quantize(random_case *c)
{
    bool forward = c->kind == GB_OP_DYNAMIC_QUANTIZE;
    const gb_data_type narrow[] = {GB_S8, GB_U8, GB_S4, GB_U4};
    const gb_data_type zp_types[] = {GB_S8, GB_U8, GB_S32, GB_S4, GB_U4};
    gb_data_type type = narrow[below(c, forward ? 2 : 4)];
    gb_data_type real = forward ? GB_F32 : any_float(c);
    gb_data_type zp_type = zp_types[below(c, forward ? 3 : 5)];
    int64_t dims[GB_MAX_NDIMS], group[GB_MAX_NDIMS], parameters[GB_MAX_NDIMS];
    bool per_group = !forward && one_in(c, 2), zps = one_in(c, 2);
    int ndims = (int)between(c, per_group ? 2 : 0, 4);
    any_dims(c, ndims, dims);
    if (per_group) {
        c->seen |= PER_GROUP;
        for (int d = 0; d < ndims; d++) {
            group[d] = d >= ndims - 2 ? between(c, 1, 3) : 1;
            parameters[d] = dims[d];
            dims[d] *= group[d];
        }
        set_text(c, GB_ATTR_QTYPE, "per_group");
        set_ints(c, GB_ATTR_GROUP_SHAPE, ndims, group);
        add_input(c, type, ndims, dims, BITS);
        add_input(c, real, ndims, parameters, POSITIVE);
        if (zps)
            add_input(c, zp_type, ndims, parameters, BITS);
    } else {
        int64_t count = any_qtype(c, ndims, dims);
        add_input(c, forward ? GB_F32 : type, ndims, dims, forward ? ANY : BITS);
        add_vector(c, real, count, POSITIVE);
        if (zps)
            add_vector(c, zp_type, one_in(c, 3) ? 1 : count, BITS);
    }
    add_output(c, forward ? type : real);
}

static void make_dropout(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS], one = 1;
    int ndims = (int)between(c, 0, 4), n = (int)below(c, 2);
    gb_data_type type = any_float(c);
    any_dims(c, ndims, dims);
    add_input(c, type, ndims, dims, ANY);
    add_input(c, GB_S64, n, &one, BITS);
    add_input(c, GB_S64, n, &one, BITS);
    add_input(c, GB_F32, n, &one, PROBABILITY);
    add_known_output(c, type, ndims, dims);
    if (one_in(c, 2))
        add_known_output(c, GB_U8, ndims, dims);
}

static void make_end(random_case *c)
{
    int64_t dims[GB_MAX_NDIMS];
    int ndims = (int)between(c, 0, 4);
    any_dims(c, ndims, dims);
    add_input(c, any_float(c), ndims, dims, ANY);
}

/* The table of kinds: how a case is made, and what must have been met. */
enum {
    ALL = STRIDED | EMPTY,
    DATA = ALL | SPECIAL | F32 | NARROW,
    FORMATS = NXC | NCX | DEFAULTS,
    WINDOWS = DATA | FORMATS | UPPER | LOWER | VALID | REFUSED,
    CONVOLUTIONS = WINDOWS | GROUPS | DILATED | CHANNELS_FIRST,
    FLAGS = FLAG_ON | FLAG_OFF
};

typedef struct generator {
    void (*make)(random_case *c); /* NULL: nothing to compare */
    uint32_t wanted;
} generator;

/* Unary ops without a row have no more to meet than what all of them have. */
static const generator kinds[GB_OP_LAST] = {
        [GB_OP_ABS_BACKWARD] = {make_unary, DATA | REFUSED},
        [GB_OP_ADD] = {make_binary, DATA | BROADCAST | DEFAULTS | REFUSED},
        [GB_OP_AVG_POOL] = {make_pool, WINDOWS | CEIL | FLAGS},
        [GB_OP_AVG_POOL_BACKWARD] = {make_pool, WINDOWS | FLAGS},
        [GB_OP_BATCH_NORM_BACKWARD] = {make_batch_norm, DATA | FORMATS},
        [GB_OP_BATCH_NORM_FORWARD_TRAINING] = {make_batch_norm, DATA | FORMATS},
        [GB_OP_BATCH_NORM_INFERENCE] = {make_batch_norm, DATA | FORMATS | REFUSED},
        [GB_OP_BIAS_ADD] = {make_bias, DATA | FORMATS | REFUSED},
        [GB_OP_BIAS_ADD_BACKWARD] = {make_bias, DATA | FORMATS},
        [GB_OP_CLAMP_BACKWARD] = {make_unary, DATA | FLAGS | DEFAULTS | REFUSED},
        [GB_OP_CONCAT] = {make_concat, DATA | NEGATIVE_AXIS | REFUSED},
        [GB_OP_CONVOLUTION] = {make_convolution, CONVOLUTIONS},
        [GB_OP_CONVOLUTION_BACKWARD_DATA] = {make_convolution, CONVOLUTIONS},
        [GB_OP_CONVOLUTION_BACKWARD_WEIGHTS] = {make_convolution, CONVOLUTIONS},
        [GB_OP_CONV_TRANSPOSE] = {make_convolution, CONVOLUTIONS & ~EMPTY},
        [GB_OP_CONV_TRANSPOSE_BACKWARD_DATA] = {make_convolution, CONVOLUTIONS},
        [GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS] = {make_convolution, CONVOLUTIONS},
        [GB_OP_DEQUANTIZE] = {make_quantize, ALL | NARROW | PER_CHANNEL | NEGATIVE_AXIS | DEFAULTS},
        [GB_OP_DIVIDE] = {make_binary, DATA | BROADCAST | DEFAULTS | REFUSED},
        [GB_OP_DROPOUT] = {make_dropout, DATA},
        [GB_OP_DYNAMIC_DEQUANTIZE] = {make_dynamic_quantize,
                ALL | NARROW | PER_CHANNEL | PER_GROUP | NEGATIVE_AXIS | DEFAULTS},
        [GB_OP_DYNAMIC_QUANTIZE] = {make_dynamic_quantize,
                ALL | SPECIAL | NARROW | PER_CHANNEL | NEGATIVE_AXIS | DEFAULTS},
        [GB_OP_ELU_BACKWARD] = {make_unary, DATA | FLAGS | DEFAULTS | REFUSED},
        [GB_OP_END] = {make_end, ALL},
        [GB_OP_GELU] = {make_unary, DATA | DEFAULTS},
        [GB_OP_GELU_BACKWARD] = {make_unary, DATA | DEFAULTS | REFUSED},
        [GB_OP_GEN_INDEX] = {make_gen_index, ALL | NEGATIVE_AXIS},
        [GB_OP_GREATER_EQUAL] = {make_binary, DATA | BROADCAST | DEFAULTS | REFUSED},
        [GB_OP_GROUP_NORM] = {make_group_norm, DATA | FORMATS | FLAGS | GROUPS | REFUSED},
        [GB_OP_HARD_SIGMOID_BACKWARD] = {make_unary, DATA | REFUSED},
        [GB_OP_HARD_SWISH_BACKWARD] = {make_unary, DATA | REFUSED},
        [GB_OP_INTERPOLATE] = {make_interpolate, DATA | FORMATS},
        [GB_OP_INTERPOLATE_BACKWARD] = {make_interpolate, DATA | FORMATS},
        [GB_OP_LAYER_NORM] = {make_layer_norm, DATA | FLAGS | DEFAULTS | NEGATIVE_AXIS},
        [GB_OP_LAYER_NORM_BACKWARD] = {make_layer_norm, DATA | FLAGS | DEFAULTS | NEGATIVE_AXIS},
        [GB_OP_LOG_SOFTMAX] = {make_softmax, DATA | DEFAULTS | NEGATIVE_AXIS},
        [GB_OP_LOG_SOFTMAX_BACKWARD] = {make_softmax, DATA | DEFAULTS | NEGATIVE_AXIS},
        [GB_OP_MATMUL] = {make_matmul,
                DATA | DEFAULTS | VECTORS | TRANSPOSED | BROADCAST | REFUSED},
        [GB_OP_MAXIMUM] = {make_binary, DATA | BROADCAST | DEFAULTS | REFUSED},
        [GB_OP_MAX_POOL] = {make_pool, WINDOWS | CEIL | DILATED},
        [GB_OP_MAX_POOL_BACKWARD] = {make_pool, WINDOWS | DILATED},
        [GB_OP_MINIMUM] = {make_binary, DATA | BROADCAST | DEFAULTS | REFUSED},
        [GB_OP_MISH_BACKWARD] = {make_unary, DATA | REFUSED},
        [GB_OP_MULTIPLY] = {make_binary, DATA | BROADCAST | DEFAULTS | REFUSED},
        [GB_OP_PRELU] = {make_prelu, DATA | FORMATS | FLAGS | PER_CHANNEL | REFUSED},
        [GB_OP_PRELU_BACKWARD] = {make_prelu, DATA | FORMATS | PER_CHANNEL | REFUSED},
        [GB_OP_QUANTIZE] = {make_quantize,
                ALL | SPECIAL | NARROW | PER_CHANNEL | NEGATIVE_AXIS | DEFAULTS},
        [GB_OP_REDUCE_L1] = {make_reduce, DATA | DEFAULTS | KEEP_DIMS | NEGATIVE_AXIS | REFUSED},
        [GB_OP_REDUCE_L2] = {make_reduce, DATA | DEFAULTS | KEEP_DIMS | NEGATIVE_AXIS | REFUSED},
        [GB_OP_REDUCE_MAX] = {make_reduce, DATA | DEFAULTS | KEEP_DIMS | NEGATIVE_AXIS | REFUSED},
        [GB_OP_REDUCE_MEAN] = {make_reduce, DATA | DEFAULTS | KEEP_DIMS | NEGATIVE_AXIS | REFUSED},
        [GB_OP_REDUCE_MIN] = {make_reduce, DATA | DEFAULTS | KEEP_DIMS | NEGATIVE_AXIS | REFUSED},
        [GB_OP_REDUCE_PROD] = {make_reduce, DATA | DEFAULTS | KEEP_DIMS | NEGATIVE_AXIS | REFUSED},
        [GB_OP_REDUCE_SUM] = {make_reduce, DATA | DEFAULTS | KEEP_DIMS | NEGATIVE_AXIS | REFUSED},
        [GB_OP_RELU_BACKWARD] = {make_unary, DATA | FLAGS | DEFAULTS | REFUSED},
        [GB_OP_REORDER] = {make_copy, DATA},
        [GB_OP_RMS_NORM] = {make_rms_norm, DATA | DEFAULTS | NEGATIVE_AXIS},
        [GB_OP_SELECT] = {make_select, DATA | BROADCAST | DEFAULTS | REFUSED},
        [GB_OP_SIGMOID_BACKWARD] = {make_unary, DATA | FLAGS | DEFAULTS | REFUSED},
        [GB_OP_SOFTMAX] = {make_softmax, DATA | DEFAULTS | NEGATIVE_AXIS},
        [GB_OP_SOFTMAX_BACKWARD] = {make_softmax, DATA | DEFAULTS | NEGATIVE_AXIS},
        [GB_OP_SOFTPLUS] = {make_unary, DATA | DEFAULTS},
        [GB_OP_SOFTPLUS_BACKWARD] = {make_unary, DATA | DEFAULTS | REFUSED},
        [GB_OP_SQRT_BACKWARD] = {make_unary, DATA | FLAGS | DEFAULTS | REFUSED},
        [GB_OP_SQUARED_DIFFERENCE] = {make_binary, DATA | BROADCAST | DEFAULTS | REFUSED},
        [GB_OP_STATIC_RESHAPE] = {make_reshape, DATA | FLAGS | REFUSED},
        [GB_OP_STATIC_TRANSPOSE] = {make_transpose, DATA | NEGATIVE_AXIS | REFUSED},
        [GB_OP_SUBTRACT] = {make_binary, DATA | BROADCAST | DEFAULTS | REFUSED},
        [GB_OP_TANH_BACKWARD] = {make_unary, DATA | FLAGS | DEFAULTS | REFUSED},
        [GB_OP_TYPE_CAST] = {make_copy, DATA},
};

static generator generator_of(gb_op_kind kind)
{
    bool plain = !kinds[kind].make && gb_op_schema_get(kind)->op_class == GB_CLASS_UNARY;
    return plain ? (generator){make_unary, DATA} : kinds[kind];
}

/* Values --------------------------------------------------------------------------------------- */

/* Elements from the first place to the last. */
static size_t extent_of(const gb_logical_tensor *tensor)
{
    size_t last = 0;
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] == 0)
            return 0;
        last += (size_t)((tensor->dims[d] - 1) * tensor->strides[d]);
    }
    return last + 1;
}

static void put_float(gb_data_type type, unsigned char *memory, size_t i, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == GB_F32)
        memcpy(memory + 4 * i, &bits, 4);
    else if (type == GB_BF16)
        memcpy(memory + 2 * i, &(uint16_t){(uint16_t)(bits >> 16)}, 2);
    else { /* f16 of a normal number: fraction cut off, exponent moved */
        int exponent = (int)(bits >> 23 & 255) - 112;
        uint32_t half = exponent <= 0   ? 0
                        : exponent > 30 ? 0x7C00 | (isnan(value) ? 1 : 0)
                                        : (uint32_t)exponent << 10 | (bits >> 13 & 0x3FF);
        memcpy(memory + 2 * i, &(uint16_t){(uint16_t)(half | (bits >> 16 & 0x8000))}, 2);
    }
}

static float any_value(random_case *c, fill elements, int manner)
{
    const float specials[] = {NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 1e-40F, -1e-40F, 6e4F};
    if (elements == PROBABILITY)
        return (float)below(c, 65) / 64;
    if (elements == POSITIVE)
        return (float)(one_in(c, 2) ? ldexp(1, (int)between(c, -3, 0))
                                    : (double)between(c, 1, 128) / 64);
    if (manner == 0 && one_in(c, 4))
        return specials[below(c, 8)];
    if (manner == 1) /* sums are exact, quotients by powers of two ties */
        return (float)between(c, -32, 32) / 8;
    if (manner == 2)
        return (float)ldexp(uniform(c), (int)between(c, -12, 12));
    if (manner == 3)
        return (float)uniform(c) * 50;
    return (float)uniform(c);
}

static void fill_input(random_case *c, uint32_t i)
{
    const gb_logical_tensor *tensor = &c->inputs[i];
    size_t count = extent_of(tensor), bytes = gb_data_type_bytes(tensor->data_type, count);
    unsigned char *memory = calloc(bytes + 8, 1);
    bool is_float = tensor->data_type == GB_F32 || tensor->data_type == GB_BF16 ||
                    tensor->data_type == GB_F16;
    int manner = (int)below(c, 6);
    for (size_t b = 0; b < bytes; b++)
        memory[b] = (unsigned char)below(c, 256);
    for (size_t e = 0; is_float && e < count; e++)
        put_float(tensor->data_type, memory, e, any_value(c, c->fills[i], manner));
    for (size_t e = 0; c->fills[i] == AXES && e < count; e++)
        memcpy(memory + 4 * e, &(int32_t){(int32_t)c->axes[e]}, 4);
    for (size_t e = 0; tensor->data_type == GB_BOOLEAN && e < count; e++)
        memory[e] &= 1;
    if (tensor->data_type == GB_S64 && one_in(c, 4))
        memset(memory, 0, bytes); /* offset 0 stands for another generator */
    c->seen |= is_float && c->fills[i] == ANY && manner == 0 && count > 0 ? SPECIAL : 0;
    c->memory[i] = memory;
}

/* Comparison ----------------------------------------------------------------------------------- */

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static double highest_of(gb_data_type type)
{
    return type == GB_F32       ? 0x1.FFFFFEp127
           : type == GB_BF16    ? 0x1.FEp127
           : type == GB_F16     ? 65504
           : type == GB_F8_E5M2 ? 57344
           : type == GB_F8_E4M3 ? 448
                                : (double)INFINITY;
}

/* Every element of both readings of an input. */
static void compare_input(
        const random_case *c, uint32_t i, const gb_naive_tensor *naive, const gb_ref_tensor *fast)
{
    cr_assert_eq(naive->count, fast->count, "%s: input %u", c->name, i);
    for (int64_t p = 0; p < naive->count; p++)
        cr_assert(same(naive->value[p], fast->value[p]), "%s: input %u, element %lld: %.17g, %.17g",
                c->name, i, (long long)p, naive->value[p], fast->value[p]);
}

/* The two evaluate the same formula in f64, so they agree far better than within the bound. */
static void compare_values(
        const random_case *c, uint32_t i, const gb_naive_tensor *naive, const gb_ref_tensor *fast)
{
    double scale = 1;
    for (int64_t p = 0; p < fast->count; p++)
        if (isfinite(fast->value[p]))
            scale = fmax(scale, fabs(fast->value[p]));
    for (int64_t p = 0; p < fast->count; p++) {
        double bound = fast->bound ? fast->bound[p] : 0, v = fast->value[p];
        double rounding = fmax(1e-12 * fabs(v), fmin(bound, 1e-9 * scale)), twin = naive->value[p];
        if (bound == 0 && naive->type != GB_S64) /* the number that was stored */
            twin = gb_naive_stored(naive->type, twin);
        bool right = isinf(bound) || same(twin, v) || fabs(twin - v) <= rounding;
        cr_assert(right, "%s: output %u, element %lld: naive %.17g, reference %.17g +- %g", c->name,
                i, (long long)p, twin, v, bound);
    }
}

/* May `stored` be the stored form of a value within v +- bound? */
static bool may_store(gb_data_type type, double stored, double v, double bound)
{
    if (isinf(bound) || same(stored, v))
        return true;
    if (isinf(v))
        return type == GB_F8_E4M3 && isnan(stored);
    if (isfinite(stored))
        return fabs(stored - v) <= bound;
    return fabs(v) + bound >= highest_of(type);
}

/* The twin's value, rounded once to the type, is a correct result; both write the same bytes. */
static void compare_stored(
        random_case *c, uint32_t i, const gb_naive_tensor *naive, const gb_ref_tensor *fast)
{
    gb_logical_tensor layout;
    gb_ref_tensor own = {.count = naive->count, .value = naive->value}, stored;
    gb_naive_tensor read;
    ok(gb_logical_tensor_init_with_dims(&layout, 0, naive->type, naive->ndims, naive->dims,
            GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    any_strides(c, &layout, false);
    size_t bytes = gb_data_type_bytes(layout.data_type, extent_of(&layout));
    unsigned char *a = malloc(bytes + 8), *b = malloc(bytes + 8);
    memset(a, 0xA5, bytes + 8);
    memset(b, 0xA5, bytes + 8);
    gb_naive_write(naive, &layout, a);
    own.tensor = layout;
    gb_ref_tensor_write(&own, &layout, b);
    ok(gb_ref_tensor_read(&stored, &layout, a));
    ok(gb_naive_read(&read, &layout, b));
    for (int64_t p = 0; p < fast->count; p++) {
        double bound = fast->bound ? fast->bound[p] : 0;
        cr_assert(may_store(naive->type, stored.value[p], fast->value[p], bound),
                "%s: output %u, element %lld: naive stores %.17g, reference %.17g +- %g", c->name,
                i, (long long)p, stored.value[p], fast->value[p], bound);
        cr_assert(same(stored.value[p], read.value[p]),
                "%s: output %u, element %lld: naive stores %.17g, reference %.17g (%.17g)", c->name,
                i, (long long)p, stored.value[p], read.value[p], naive->value[p]);
    }
    for (size_t at = bytes; at < bytes + 8; at++)
        cr_assert(a[at] == 0xA5 && b[at] == 0xA5, "%s: written behind the end", c->name);
    gb_ref_tensor_free(&stored);
    gb_naive_free(&read);
    free(a);
    free(b);
}

static void compare_dims(const random_case *c, uint32_t i, const gb_naive_tensor *naive,
        const gb_logical_tensor *inferred)
{
    bool equal = naive->ndims == inferred->ndims;
    for (int d = 0; equal && d < naive->ndims; d++)
        equal = naive->dims[d] == inferred->dims[d];
    char text[128] = "";
    for (int d = 0; d < naive->ndims; d++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", d ? "x" : "",
                (long long)naive->dims[d]);
    cr_assert(equal, "%s: output %u: naive %s, inferred %s", c->name, i, text,
            gb_tensor_label(inferred));
}

/* Runs ------------------------------------------------------------------------------------------
 */

static void describe(random_case *c, uint64_t seed)
{
    snprintf(c->name, sizeof c->name, "%s case %llu", gb_op_kind_name(c->kind),
            (unsigned long long)seed);
    for (uint32_t i = 0; i < c->n_inputs; i++)
        snprintf(c->name + strlen(c->name), sizeof c->name - strlen(c->name), " %s",
                gb_tensor_label(&c->inputs[i]));
}

/* The graph of the op, with defaults filled in; does it infer? */
static gb_status make_graph(random_case *c, gb_graph **graph)
{
    ok(gb_graph_create(graph, GB_ENGINE_CPU));
    gb_status status = gb_graph_add_op(*graph, c->op);
    cr_assert_eq(status, GB_SUCCESS, "%s: %s", c->name, gb_last_error());
    ok(gb_graph_finalize(*graph));
    return gb_graph_infer(*graph);
}

static void compare_case(
        random_case *c, const gb_graph *graph, gb_naive_tensor *inputs, gb_naive_tensor *outputs)
{
    gb_ref_store *store;
    size_t id = 1;
    ok(gb_ref_store_create(&store));
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        gb_ref_tensor tensor;
        ok(gb_ref_tensor_read(&tensor, &c->inputs[i], c->memory[i]));
        compare_input(c, i, &inputs[i], &tensor);
        ok(gb_ref_store_put(store, &tensor));
    }
    const gb_op *op = graph->ops[0];
    for (uint32_t i = 0; i < c->n_outputs; i++)
        compare_dims(c, i, &outputs[i], gb_op_output(op, i));
    cr_assert_eq(
            gb_ref_execute(graph, 1, &id, store), GB_SUCCESS, "%s: %s", c->name, gb_last_error());
    for (uint32_t i = 0; i < c->n_outputs; i++) {
        const gb_ref_tensor *fast = gb_ref_store_get(store, 100 + i);
        cr_assert_not_null(fast);
        compare_values(c, i, &outputs[i], fast);
        compare_stored(c, i, &outputs[i], fast);
    }
    gb_ref_store_destroy(store);
}

/* What the case has met; 0 when both refuse it, of which only that is kept. */
static uint32_t run_case(gb_op_kind kind, uint64_t seed)
{
    random_case c = {.kind = kind, .state = ((uint64_t)kind * 100003 + seed) * 0x9E3779B97F4A7C15};
    gb_naive_tensor inputs[MOST_PORTS] = {0}, outputs[MOST_PORTS] = {0};
    gb_graph *graph;
    ok(gb_op_create(&c.op, 1, kind, "op"));
    generator_of(kind).make(&c);
    describe(&c, seed);
    for (uint32_t i = 0; i < c.n_inputs; i++) {
        fill_input(&c, i);
        ok(gb_naive_read(&inputs[i], &c.inputs[i], c.memory[i]));
    }
    gb_status inferred = make_graph(&c, &graph);
    gb_status naive = gb_naive_run(c.op, inputs, outputs);
    cr_assert_eq(inferred == GB_SUCCESS, naive == GB_SUCCESS, "%s: inference says %s, naive %s: %s",
            c.name, gb_status_name(inferred), gb_status_name(naive), gb_last_error());
    if (naive == GB_SUCCESS)
        compare_case(&c, graph, inputs, outputs);
    uint32_t seen = naive == GB_SUCCESS ? c.seen & ~(uint32_t)REFUSED : c.seen & REFUSED;
    for (uint32_t i = 0; i < c.n_inputs; i++) {
        gb_naive_free(&inputs[i]);
        free(c.memory[i]);
    }
    for (uint32_t i = 0; i < c.n_outputs; i++)
        gb_naive_free(&outputs[i]);
    gb_graph_destroy(graph);
    gb_op_destroy(c.op);
    return seen;
}

static void count_properties(uint32_t seen, int counts[32])
{
    for (int bit = 0; bit < 32; bit++)
        counts[bit] += seen >> bit & 1;
}

ParameterizedTestParameters(naive, agrees)
{
    static int all[GB_OP_LAST];
    for (int kind = 0; kind < GB_OP_LAST; kind++)
        all[kind] = kind;
    return cr_make_param_array(int, all, GB_OP_LAST);
}

/* An op of the table that has no function in the twin, or no generator here, is an error. */
ParameterizedTest(int *parameter, naive, agrees)
{
    gb_op_kind kind = (gb_op_kind)*parameter;
    int counts[32] = {0}, accepted = 0;
    if (kind == GB_OP_WILDCARD)
        return; /* stands for ops that nobody knows */
    cr_assert(gb_naive_supports(kind), "%s has no naive function", gb_op_kind_name(kind));
    cr_assert_not_null(generator_of(kind).make, "%s has no generator", gb_op_kind_name(kind));
    omp_set_num_threads(1);
    for (uint64_t seed = 0; seed < CASES; seed++) {
        uint32_t seen = run_case(kind, seed);
        accepted += (seen & REFUSED) == 0;
        count_properties(seen, counts);
    }
    cr_expect_geq(accepted, CASES / 2, "%s: %d of %d cases are legal", gb_op_kind_name(kind),
            accepted, CASES);
    for (size_t bit = 0; bit < sizeof property_names / sizeof *property_names; bit++) {
        bool wanted = generator_of(kind).wanted >> bit & 1;
        cr_expect(!wanted || counts[bit] >= 3, "%s: only %d cases with %s", gb_op_kind_name(kind),
                counts[bit], property_names[bit]);
    }
}

static const gb_data_type all_types[] = {GB_F32, GB_BF16, GB_F16, GB_F8_E5M2, GB_F8_E4M3, GB_S64,
        GB_S32, GB_S8, GB_U8, GB_S4, GB_U4, GB_BOOLEAN};
enum { N_TYPES = sizeof all_types / sizeof *all_types };

/* Every code of the narrow types, and random ones of the others, is read as the same number. */
Test(naive, reads_every_code)
{
    random_case c = {.state = 1};
    for (int t = 0; t < N_TYPES; t++) {
        enum { BYTES = 1 << 17 };
        static uint64_t memory[BYTES / 8];
        unsigned char *bytes = (unsigned char *)memory;
        int64_t count = BYTES / (int64_t)gb_data_type_bytes(all_types[t], 1);
        for (int i = 0; i < BYTES; i++)
            bytes[i] = (unsigned char)(i % 4 < 2 ? i / 2 >> 8 * (i % 2) : below(&c, 256));
        for (int i = 0; i < BYTES && gb_data_type_bytes(all_types[t], 1) == 2; i++)
            bytes[i] = (unsigned char)(i / 2 >> 8 * (i % 2));
        for (int i = 0; i < BYTES && all_types[t] == GB_BOOLEAN; i++)
            bytes[i] &= 1;
        gb_logical_tensor layout;
        gb_naive_tensor naive;
        gb_ref_tensor fast;
        ok(gb_logical_tensor_init_with_dims(
                &layout, 0, all_types[t], 1, &count, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
        ok(gb_naive_read(&naive, &layout, memory));
        ok(gb_ref_tensor_read(&fast, &layout, memory));
        c.kind = GB_OP_REORDER;
        compare_input(&c, (uint32_t)t, &naive, &fast);
        gb_naive_free(&naive);
        gb_ref_tensor_free(&fast);
    }
}

/* Numbers of every magnitude, ties and the edges of ranges are stored as the same code. */
Test(naive, stores_the_same_codes)
{
    enum { COUNT = 40000 };
    static double values[COUNT];
    static uint64_t a[COUNT], b[COUNT];
    random_case c = {.state = 2};
    const double edges[] = {0, -0.0, INFINITY, -INFINITY, 65504, 65519, 65520, 65536, 57344, 61439,
            61440, 448, 464, 464.5, 480, 3.4e38, 3.5e38, 3.3895e38, 3.397e38, 1e-40, 0x1p-126,
            0x1p-127, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-9, 0x1p-10, 0x1.8p-10, 0x1p-16, 0x1p-17,
            0.5, 1.5, 2.5, 127.5, 128, -128.5, -129, 255.5, 256, 7.5, 15.5, 2147483647.5, 1e19};
    int64_t count = COUNT;
    for (int i = 0; i < COUNT; i++) {
        int edge = (int)below(&c, 4 * (int64_t)(sizeof edges / sizeof *edges));
        values[i] = ldexp(uniform(&c) + uniform(&c) / 4096, (int)between(&c, -30, 30));
        if (edge < (int)(sizeof edges / sizeof *edges))
            values[i] = one_in(&c, 2) ? edges[edge] : -edges[edge];
        else if (edge % 4 == 0)
            values[i] = ldexp((double)between(&c, -64, 64), (int)between(&c, -28, 12)); /* ties */
    }
    for (int t = 0; t < N_TYPES; t++) {
        gb_logical_tensor layout;
        ok(gb_logical_tensor_init_with_dims(
                &layout, 0, all_types[t], 1, &count, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
        gb_naive_tensor naive = {.count = COUNT, .value = values};
        gb_ref_tensor fast = {.count = COUNT, .value = values, .tensor = layout};
        gb_naive_write(&naive, &layout, a);
        gb_ref_tensor_write(&fast, &layout, b);
        gb_naive_tensor stored, other;
        ok(gb_naive_read(&stored, &layout, a));
        ok(gb_naive_read(&other, &layout, b));
        for (int i = 0; i < COUNT; i++)
            cr_assert(same(stored.value[i], other.value[i]) &&
                              (isnan(other.value[i]) ||
                                      signbit(stored.value[i]) == signbit(other.value[i])),
                    "%.17g in %s: naive %.17g, library %.17g", values[i],
                    gb_data_type_name(all_types[t]), stored.value[i], other.value[i]);
        gb_naive_free(&stored);
        gb_naive_free(&other);
    }
}
