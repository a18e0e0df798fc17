/* A pointwise convolution and a depthwise one as one kernel, which large images are for: sizes that no
 * block divides, layouts, post-ops after either, and no image in between. */
#include "kernel_case.h"

typedef enum post_op_kind { NO_POST_OPS, RELU, SCALE_AND_ADD, CHAIN, LONGEST } post_op_kind;

/* Each of two ops: as many as a group may have. */
enum { SWISHES = 16 };

typedef struct form {
    gb_data_type type;
    int64_t batch, in_channels, channels, in[2], kernel[2], stride[2], dilation[2], pad_begin[2],
            pad_end[2];
    bool channels_last, bias, depthwise_bias;
    post_op_kind between, after;
    const char *kernels; /* expected; NULL: one pair */
} form;

static size_t data(kernel_case *c, const form *f, int64_t channels)
{
    if (f->channels_last)
        return kernel_case_tensor(c, f->type, SHAPE(f->batch, f->in[0], f->in[1], channels));
    return kernel_case_tensor(c, f->type, SHAPE(f->batch, channels, f->in[0], f->in[1]));
}

static void set_window(const form *f, gb_op *op, bool pointwise)
{
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
    kernel_case_ints(op, GB_ATTR_STRIDES, 2, pointwise ? ones : f->stride);
    kernel_case_ints(op, GB_ATTR_DILATIONS, 2, pointwise ? ones : f->dilation);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, pointwise ? zeros : f->pad_begin);
    kernel_case_ints(op, GB_ATTR_PADS_END, 2, pointwise ? zeros : f->pad_end);
    kernel_case_int(op, GB_ATTR_GROUPS, pointwise ? 1 : f->channels);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, f->channels_last ? "NXC" : "NCX");
    kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT, "OIX");
}

static size_t convolve(kernel_case *c, const form *f, size_t src, bool pointwise)
{
    gb_op *op = kernel_case_op(c, GB_OP_CONVOLUTION);
    set_window(f, op, pointwise);
    kernel_case_in(c, op, src);
    kernel_case_in(c, op,
            kernel_case_tensor(c, f->type,
                    SHAPE(f->channels, pointwise ? f->in_channels : 1, pointwise ? 1 : f->kernel[0],
                            pointwise ? 1 : f->kernel[1])));
    if (pointwise ? f->bias : f->depthwise_bias)
        kernel_case_in(c, op, kernel_case_tensor(c, f->type, SHAPE(f->channels)));
    return kernel_case_out(c, op, f->type);
}

static size_t binary(kernel_case *c, const form *f, gb_op_kind kind, size_t a, size_t b)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_in(c, op, a);
    kernel_case_in(c, op, b);
    return kernel_case_out(c, op, f->type);
}

static size_t relu(kernel_case *c, const form *f, size_t src)
{
    gb_op *op = kernel_case_op(c, GB_OP_RELU);
    kernel_case_in(c, op, src);
    return kernel_case_out(c, op, f->type);
}

static size_t swish(kernel_case *c, const form *f, size_t src)
{
    gb_op *op = kernel_case_op(c, GB_OP_SIGMOID);
    kernel_case_in(c, op, src);
    return binary(c, f, GB_OP_MULTIPLY, src, kernel_case_out(c, op, f->type));
}

static size_t per_channel(kernel_case *c, const form *f)
{
    if (f->channels_last)
        return kernel_case_tensor(c, f->type, SHAPE(1, 1, 1, f->channels));
    return kernel_case_tensor(c, f->type, SHAPE(1, f->channels, 1, 1));
}

/* `whole`: a tensor of all elements of the values that the post-ops work on. */
static size_t add_post_ops(
        kernel_case *c, const form *f, post_op_kind kind, size_t src, size_t whole)
{
    if (kind == RELU)
        return relu(c, f, src);
    if (kind == NO_POST_OPS)
        return src;
    for (int i = 0; kind == LONGEST && i < SWISHES; i++)
        src = swish(c, f, src);
    if (kind == LONGEST)
        return src;
    src = binary(c, f, GB_OP_MULTIPLY, src, per_channel(c, f));
    src = binary(c, f, GB_OP_ADD, src, whole);
    return kind == CHAIN ? relu(c, f, src) : src;
}

static int64_t out_size(const form *f, int d)
{
    int64_t room = f->in[d] + f->pad_begin[d] + f->pad_end[d];
    return (room - (f->kernel[d] - 1) * f->dilation[d] - 1) / f->stride[d] + 1;
}

static void run(const form *f, const char *name)
{
    kernel_case c = {.scale = 1};
    setenv("GB_CACHES", "::4", 1); /* any image is large; has not been asked for */
    size_t whole[2] = {SIZE_MAX, SIZE_MAX}, value = data(&c, f, f->in_channels);
    form result = *f;
    for (int d = 0; d < 2; d++)
        result.in[d] = out_size(f, d);
    if (f->between > RELU && f->between < LONGEST)
        whole[0] = data(&c, f, f->channels);
    if (f->after > RELU && f->after < LONGEST)
        whole[1] = data(&c, &result, f->channels);
    value = add_post_ops(&c, f, f->between, convolve(&c, f, value, true), whole[0]);
    add_post_ops(&c, &result, f->after, convolve(&c, f, value, false), whole[1]);
    /* The last layout run is not dense: its positions are not evenly spaced. */
    c.dense_only = true;
    kernel_case_run_layout(&c, LAYOUT_DENSE, name);
    cr_assert(strstr(c.kernels, f->kernels ? f->kernels : "conv pair"), "%s: %s", name, c.kernels);
    cr_assert(
            f->kernels || c.intermediates == 0, "%s: %zu bytes in between", name, c.intermediates);
    kernel_case_run_layout(&c, LAYOUT_GAPS, name);
    kernel_case_run_layout(&c, LAYOUT_REVERSED, name);
    kernel_case_run_layout(&c, LAYOUT_MIXED, name);
    for (size_t i = 0; i < c.n_ops; i++)
        gb_op_destroy(c.ops[i]);
}

KERNEL_TEST(conv_pair, geometry)
{
    static const form forms[] = {
            {.batch = 2,
                    .in_channels = 70,
                    .channels = 45,
                    .in = {14, 14},
                    .pad_begin = {1, 1},
                    .pad_end = {1, 1}},
            {.batch = 1,
                    .in_channels = 5,
                    .channels = 33,
                    .in = {9, 31},
                    .pad_begin = {1, 0},
                    .pad_end = {0, 2},
                    .stride = {2, 1}},
            {.batch = 3,
                    .in_channels = 17,
                    .channels = 7,
                    .in = {7, 5},
                    .pad_begin = {2, 2},
                    .pad_end = {1, 2},
                    .dilation = {2, 2}},
            {.batch = 1,
                    .in_channels = 40,
                    .channels = 64,
                    .in = {57, 30},
                    .pad_begin = {1, 1},
                    .stride = {2, 2}},
            {.batch = 1,
                    .in_channels = 1,
                    .channels = 2,
                    .in = {1, 4},
                    .pad_begin = {1, 1},
                    .pad_end = {1, 1}},
            {.batch = 2,
                    .in_channels = 3,
                    .channels = 4,
                    .in = {3, 40},
                    .pad_begin = {4, 4},
                    .pad_end = {4, 4},
                    .stride = {3, 3}},
    };
    static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};
    for (size_t i = 0; i < sizeof forms / sizeof *forms * 8; i++) {
        form f = forms[i / 8];
        char name[40];
        snprintf(name, sizeof name, "pair %d", (int)i);
        f.type = types[i % 5 ? 0 : i / 5 % 3];
        f.channels_last = i & 1;
        f.bias = i & 2;
        f.depthwise_bias = i & 4;
        f.between = (post_op_kind)(i / 2 % 4);
        f.after = (post_op_kind)(i / 3 % 4);
        for (int d = 0; d < 2; d++) {
            f.kernel[d] = 3;
            f.stride[d] += !f.stride[d];
            f.dilation[d] += !f.dilation[d];
        }
        run(&f, name);
    }
}

/* Channels that take several blocks of rows, and units that share them. The rows between are kept
 * from block to block, whatever strides and dilations are. */
KERNEL_TEST(conv_pair, blocks)
{
    for (int i = 0; i < 5; i++) {
        form f = {.type = GB_F32,
                .batch = 1 + i / 4,
                .in_channels = 600,
                .channels = 100,
                .in = {40, 37},
                .kernel = {3, 3},
                .stride = {1 + (i == 2) + 2 * (i == 3), 1},
                .dilation = {1 + (i == 4), 1},
                .pad_begin = {1, 1},
                .pad_end = {1, 1},
                .channels_last = i % 2,
                .between = RELU,
                .after = CHAIN};
        run(&f, "blocks");
    }
}

/* The most post-ops that a group may have, both between the two and behind them. */
KERNEL_TEST(conv_pair, longest_chains)
{
    form f = {.type = GB_F32,
            .batch = 1,
            .in_channels = 9,
            .channels = 6,
            .in = {7, 9},
            .kernel = {3, 3},
            .stride = {1, 1},
            .dilation = {1, 1},
            .pad_begin = {1, 1},
            .pad_end = {1, 1},
            .between = LONGEST,
            .after = LONGEST};
    run(&f, "longest chains");
}

/* Nothing to compute, or nothing to sum over. */
KERNEL_TEST(conv_pair, empty)
{
    for (int i = 0; i < 2; i++) {
        form f = {.type = GB_F32,
                .batch = i ? 0 : 2,
                .in_channels = i ? 3 : 0,
                .channels = 4,
                .in = {5, 5},
                .kernel = {3, 3},
                .stride = {1, 1},
                .dilation = {1, 1},
                .pad_begin = {1, 1},
                .bias = true,
                .kernels = ""};
        run(&f, "empty");
    }
}
