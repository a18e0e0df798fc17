/* Convolutions of 8-bit quantized values in integers: geometry, padding and zero points, scales,
 * post-ops. */
#include "kernel_case.h"
#include "kernels/isa/kernels.h"

enum { MOST_SCALES = 200 };

typedef struct form {
    gb_op_kind kind;
    gb_data_type codes, type, result; /* of the source, of the convolution, of the result */
    int64_t batch, groups, in_channels, out_channels; /* of one group */
    int64_t in[2], kernel[2], stride[2], dilation[2], pad_begin[2], pad_end[2];
    int64_t zero_point, weights_zero_point;
    bool channels_last, weights_last, bias, per_channel, fork;
    bool any_kernel; /* where tensors are not dense */
} form;

static size_t dequantize(kernel_case *c, const form *f, size_t src, const float *scales, size_t n,
        int64_t axis, int64_t zero_point)
{
    int64_t zps[MOST_SCALES];
    gb_op *op = kernel_case_op(c, GB_OP_DEQUANTIZE);
    for (size_t i = 0; i < n; i++)
        zps[i] = zero_point;
    kernel_case_text(op, GB_ATTR_QTYPE, n > 1 ? "per_channel" : "per_tensor");
    kernel_case_int(op, GB_ATTR_AXIS, axis);
    kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, n, scales));
    kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_ZPS, n, zps));
    kernel_case_in(c, op, src);
    size_t value = kernel_case_out(c, op, GB_F32);
    if (f->type == GB_F32)
        return value;
    op = kernel_case_op(c, GB_OP_TYPE_CAST);
    kernel_case_in(c, op, value);
    return kernel_case_out(c, op, f->type);
}

static size_t source(kernel_case *c, const form *f)
{
    int64_t channels = f->in_channels * f->groups;
    if (f->channels_last)
        return kernel_case_tensor(c, f->codes, SHAPE(f->batch, f->in[0], f->in[1], channels));
    return kernel_case_tensor(c, f->codes, SHAPE(f->batch, channels, f->in[0], f->in[1]));
}

/* Transposed: input channels first, those of the result by group. */
static size_t weights(kernel_case *c, const form *f)
{
    bool transposed = f->kind == GB_OP_CONV_TRANSPOSE;
    int64_t first = transposed ? f->in_channels * f->groups : f->out_channels * f->groups;
    int64_t second = transposed ? f->out_channels : f->in_channels;
    if (f->weights_last)
        return kernel_case_tensor(c, GB_S8, SHAPE(f->kernel[0], f->kernel[1], second, first));
    return kernel_case_tensor(c, GB_S8, SHAPE(first, second, f->kernel[0], f->kernel[1]));
}

static size_t convolve(kernel_case *c, const form *f)
{
    bool transposed = f->kind == GB_OP_CONV_TRANSPOSE;
    int64_t out = transposed ? f->out_channels : f->out_channels * f->groups;
    float scales[MOST_SCALES], scale = 0.02F;
    for (int i = 0; i < MOST_SCALES; i++)
        scales[i] = 0.01F + 0.001F * (float)(i % 7);
    int64_t axis = transposed ? (f->weights_last ? 2 : 1) : f->weights_last ? 3 : 0;
    size_t src = dequantize(c, f, source(c, f), &scale, 1, 1, f->zero_point);
    size_t filter = dequantize(c, f, weights(c, f), scales, f->per_channel ? (size_t)out : 1, axis,
            f->weights_zero_point);
    gb_op *op = kernel_case_op(c, f->kind);
    kernel_case_ints(op, GB_ATTR_STRIDES, 2, f->stride);
    kernel_case_ints(op, GB_ATTR_DILATIONS, 2, f->dilation);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, f->pad_begin);
    kernel_case_ints(op, GB_ATTR_PADS_END, 2, f->pad_end);
    kernel_case_int(op, GB_ATTR_GROUPS, f->groups);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, f->channels_last ? "NXC" : "NCX");
    kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT,
            transposed        ? (f->weights_last ? "XOI" : "IOX")
            : f->weights_last ? "XIO"
                              : "OIX");
    kernel_case_in(c, op, src);
    kernel_case_in(c, op, filter);
    if (f->bias)
        kernel_case_in(c, op, kernel_case_tensor(c, f->type, SHAPE(f->out_channels * f->groups)));
    return kernel_case_out(c, op, f->type);
}

static size_t unary(kernel_case *c, gb_op_kind kind, gb_data_type type, size_t src)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_in(c, op, src);
    return kernel_case_out(c, op, type);
}

/* kernel: where tensors are dense. */
static void run(const form *f, const char *name, const char *kernel)
{
    kernel_case c = {.scale = 100};
    size_t value = convolve(&c, f);
    if (f->fork) {
        size_t gate = unary(&c, GB_OP_SIGMOID, f->type, value);
        gb_op *op = kernel_case_op(&c, GB_OP_MULTIPLY);
        kernel_case_in(&c, op, value);
        kernel_case_in(&c, op, gate);
        value = kernel_case_out(&c, op, f->type);
    }
    if (f->type == GB_F32 && f->result != GB_F32) {
        float scale = 0.7F;
        int64_t zp = f->result == GB_U8 ? 7 : -3;
        gb_op *op = kernel_case_op(&c, GB_OP_QUANTIZE);
        kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 1, &scale));
        kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_ZPS, 1, &zp));
        kernel_case_in(&c, op, value);
        kernel_case_out(&c, op, f->result);
    }
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        kernel_case_run_layout(&c, (kernel_layout)layout, name);
        const char *expected = layout > 0 && f->any_kernel ? "" : kernel;
        cr_assert(strstr(c.kernels, expected), "%s: %s", name, c.kernels);
    }
    for (size_t i = 0; i < c.n_ops; i++)
        gb_op_destroy(c.ops[i]);
}

/* Types, zero points, scales and what follows, of case i; the channels are known. */
static void vary(form *f, size_t i)
{
    f->codes = i & 1 ? GB_S8 : GB_U8;
    f->zero_point = i % 3 == 0 ? 0 : i & 1 ? -9 : 131;
    f->type = i % 4 == 3 ? GB_BF16 : GB_F32;
    f->result = i % 3 == 0 ? GB_F32 : i % 3 == 1 ? GB_U8 : GB_S8;
    f->weights_last = i / 3 & 1;
    f->bias = i % 5 < 2;
    f->per_channel = i % 2 && f->out_channels * f->groups <= MOST_SCALES;
    f->fork = i % 7 == 2;
}

KERNEL_TEST(conv_dot, geometry)
{
    static const form forms[] = {
            {.batch = 2,
                    .groups = 1,
                    .in_channels = 19,
                    .out_channels = 37,
                    .in = {9, 15},
                    .kernel = {3, 3},
                    .pad_begin = {1, 1},
                    .pad_end = {1, 0}},
            {.batch = 1,
                    .groups = 3,
                    .in_channels = 5,
                    .out_channels = 6,
                    .in = {7, 7},
                    .kernel = {3, 2},
                    .pad_begin = {2, 0},
                    .pad_end = {0, 3},
                    .stride = {2, 1}},
            {.batch = 1,
                    .groups = 1,
                    .in_channels = 8,
                    .out_channels = 64,
                    .in = {6, 30},
                    .kernel = {1, 1}},
            {.batch = 3,
                    .groups = 1,
                    .in_channels = 3,
                    .out_channels = 4,
                    .in = {11, 12},
                    .kernel = {5, 3},
                    .pad_begin = {3, 1},
                    .pad_end = {1, 3},
                    .stride = {3, 2},
                    .dilation = {2, 1}},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms * 6; i++) {
        form f = forms[i / 6];
        char name[40];
        snprintf(name, sizeof name, "codes %d", (int)i);
        f.kind = i % 5 == 4 ? GB_OP_CONV_TRANSPOSE : GB_OP_CONVOLUTION;
        f.channels_last = i / 2 & 1;
        vary(&f, i);
        for (int d = 0; d < 2; d++) {
            f.stride[d] += !f.stride[d];
            f.dilation[d] += !f.dilation[d];
            if (f.kind == GB_OP_CONV_TRANSPOSE)
                f.stride[d] = 1;
        }
        run(&f, name, f.kernel[0] * f.kernel[1] > 1 ? "conv int8" : "");
    }
}

/* Every channel by itself, those of a position in one line: few and many of them, windows that reach
 * beyond the source on every side, and that miss it. */
KERNEL_TEST(conv_dot, depthwise)
{
    static const form forms[] = {
            {.batch = 2,
                    .groups = 48,
                    .in = {7, 9},
                    .kernel = {3, 3},
                    .pad_begin = {1, 1},
                    .pad_end = {1, 1}},
            {.batch = 1,
                    .groups = 33,
                    .in = {11, 4},
                    .kernel = {5, 2},
                    .pad_begin = {2, 0},
                    .pad_end = {1, 3},
                    .stride = {2, 1},
                    .dilation = {1, 2}},
            {.batch = 1,
                    .groups = 17,
                    .in = {2, 2},
                    .kernel = {3, 3},
                    .pad_begin = {5, 4},
                    .pad_end = {3, 6}},
            {.batch = 1,
                    .groups = 1090,
                    .in = {2, 3},
                    .kernel = {2, 2},
                    .pad_begin = {0, 1},
                    .pad_end = {1, 0}},
            {.batch = 1,
                    .groups = 60,
                    .in = {3, 14},
                    .kernel = {1, 3},
                    .pad_begin = {0, 1},
                    .pad_end = {0, 1},
                    .stride = {1, 3}},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms * 5; i++) {
        form f = forms[i / 5];
        char name[40];
        snprintf(name, sizeof name, "depthwise %d", (int)i);
        f.kind = GB_OP_CONVOLUTION;
        f.in_channels = f.out_channels = 1;
        f.channels_last = f.any_kernel = true;
        vary(&f, i);
        for (int d = 0; d < 2; d++) {
            f.stride[d] += !f.stride[d];
            f.dilation[d] += !f.dilation[d];
        }
        run(&f, name, "depthwise int8");
    }
}

/* Sums over several blocks of channels, and of many terms. */
KERNEL_TEST(conv_dot, blocks)
{
    for (int i = 0; i < 2; i++) {
        form f = {.kind = GB_OP_CONVOLUTION,
                .codes = i ? GB_S8 : GB_U8,
                .type = GB_F32,
                .result = GB_S8,
                .batch = 1,
                .groups = 1,
                .in_channels = 410,
                .out_channels = 70,
                .in = {8, 17},
                .kernel = {3, 3},
                .stride = {1, 1},
                .dilation = {1, 2}, /* not by minimal filtering */
                .pad_begin = {1, 1},
                .pad_end = {1, 1},
                .zero_point = 3,
                .per_channel = true,
                .channels_last = i};
        run(&f, "blocks", "conv int8");
    }
}

/* Minimal filtering, where pairs of s16 are multiplied: sizes that no tile divides, odd channels,
 * groups, long lines, several blocks of everything. */
static void check_filtered(void)
{
    static const form forms[] = {
            {.batch = 1, .groups = 1, .in_channels = 91, .out_channels = 60, .in = {9, 11}},
            {.batch = 2, .groups = 1, .in_channels = 70, .out_channels = 33, .in = {12, 7}},
            {.batch = 1, .groups = 3, .in_channels = 47, .out_channels = 66, .in = {10, 13}},
            {.batch = 1, .groups = 1, .in_channels = 45, .out_channels = 96, .in = {2, 80}},
            {.batch = 1, .groups = 1, .in_channels = 130, .out_channels = 64, .in = {17, 24}},
    };
    const bool pairs = gb_kernels_get()->dot_form(false).vnni_factor == 2;
    for (size_t i = 0; i < sizeof forms / sizeof *forms * 6; i++) {
        form f = forms[i / 6];
        char name[40];
        snprintf(name, sizeof name, "filtered %d", (int)i);
        f.kind = i % 5 == 4 ? GB_OP_CONV_TRANSPOSE : GB_OP_CONVOLUTION;
        f.channels_last = i / 2 & 1;
        vary(&f, i);
        for (int d = 0; d < 2; d++) {
            f.kernel[d] = 3;
            f.stride[d] = f.dilation[d] = 1;
            f.pad_begin[d] = d ? (int64_t)i % 3 : 1;
            f.pad_end[d] = 1;
        }
        run(&f, name, pairs ? "winograd int8" : "conv int8");
    }
}

KERNEL_TEST(conv_dot, filtered)
{
    check_filtered();
}

KERNEL_TEST(conv_dot, filtered_in_small_caches)
{
    setenv("GB_CACHES", "4096:65536:67108864", 1); /* has not been asked for */
    check_filtered();
}

/* What integers do not carry runs in f32. */
KERNEL_TEST(conv_dot, others)
{
    form f = {.kind = GB_OP_CONVOLUTION,
            .codes = GB_U8,
            .type = GB_F32,
            .result = GB_F32,
            .batch = 1,
            .groups = 1,
            .in_channels = 6,
            .out_channels = 5,
            .in = {5, 6},
            .kernel = {3, 3},
            .stride = {1, 1},
            .dilation = {1, 1},
            .weights_zero_point = 2};
    run(&f, "weights with a zero point", "conv");
    f.weights_zero_point = 0;
    f.zero_point = 300;
    run(&f, "a zero point beyond the codes", "conv");
    f.zero_point = 1;
    f.kind = GB_OP_CONV_TRANSPOSE;
    f.stride[0] = 2;
    run(&f, "strides of a transposed convolution", "conv");
}
