/* Convolutions by minimal filtering: sizes that no tile divides, several blocks of everything,
 * layouts, types, post-ops, both directions, and values for which it is not allowed. */
#include "kernel_case.h"

typedef enum post_op_kind { NO_POST_OPS, SUM_AND_RELU, GELU, POST_OP_KINDS } post_op_kind;

typedef struct form {
    int64_t batch, in_channels, channels, in[2], pad_begin[2], pad_end[2];
    bool channels_last, bias, backward;
    post_op_kind after;
    double (*value)(const kernel_case *c, size_t id, int64_t index, double uniform);
    bool special;
    gb_data_type type; /* GB_UNDEF: f32 */
} form;

static gb_data_type type_of(const form *f)
{
    return f->type == GB_UNDEF ? GB_F32 : f->type;
}

/* One value of its own in the source or in the weights, among others of size 1. */
static double lonely;
static size_t lonely_tensor;

static double mostly_uniform(const kernel_case *c, size_t id, int64_t index, double uniform)
{
    (void)c;
    return id == lonely_tensor && index == 777 ? lonely : uniform;
}

static size_t image(kernel_case *c, const form *f, int64_t channels, const int64_t *size)
{
    if (f->channels_last)
        return kernel_case_tensor(c, type_of(f), SHAPE(f->batch, size[0], size[1], channels));
    return kernel_case_tensor(c, type_of(f), SHAPE(f->batch, channels, size[0], size[1]));
}

/* Positions of the result. */
static void result_size(const form *f, int64_t *out)
{
    for (int d = 0; d < 2; d++)
        out[d] = f->backward ? f->in[d] + 2 - f->pad_begin[d] - f->pad_end[d]
                             : f->in[d] - 2 + f->pad_begin[d] + f->pad_end[d];
}

static void set_result_shape(const form *f, gb_op *op)
{
    int64_t out[2];
    result_size(f, out);
    const int64_t last[] = {f->batch, out[0], out[1], f->channels};
    const int64_t first[] = {f->batch, f->channels, out[0], out[1]};
    kernel_case_ints(op, GB_ATTR_DST_SHAPE, 4, f->channels_last ? last : first);
}

static size_t convolve(kernel_case *c, const form *f)
{
    static const int64_t ones[] = {1, 1};
    gb_op *op =
            kernel_case_op(c, f->backward ? GB_OP_CONVOLUTION_BACKWARD_DATA : GB_OP_CONVOLUTION);
    kernel_case_ints(op, GB_ATTR_STRIDES, 2, ones);
    kernel_case_ints(op, GB_ATTR_DILATIONS, 2, ones);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, f->pad_begin);
    kernel_case_ints(op, GB_ATTR_PADS_END, 2, f->pad_end);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, f->channels_last ? "NXC" : "NCX");
    kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT, "OIX");
    if (f->backward)
        set_result_shape(f, op);
    kernel_case_in(c, op, image(c, f, f->in_channels, f->in));
    int64_t results = f->backward ? f->in_channels : f->channels;
    int64_t images = f->backward ? f->channels : f->in_channels;
    kernel_case_in(c, op, kernel_case_tensor(c, type_of(f), SHAPE(results, images, 3, 3)));
    if (f->bias)
        kernel_case_in(c, op, kernel_case_tensor(c, type_of(f), SHAPE(f->channels)));
    return kernel_case_out(c, op, type_of(f));
}

static size_t unary(kernel_case *c, const form *f, gb_op_kind kind, size_t src)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_in(c, op, src);
    return kernel_case_out(c, op, type_of(f));
}

static void check(const form *f)
{
    kernel_case c = {.value = f->value, .special = f->special};
    char what[128];
    int64_t out[2];
    snprintf(what, sizeof what, "%lldx%lldx%lldx%lld to %lld%s%s, post-ops %d", (long long)f->batch,
            (long long)f->in_channels, (long long)f->in[0], (long long)f->in[1],
            (long long)f->channels, f->channels_last ? ", channels last" : "",
            f->backward ? ", backward" : "", (int)f->after);
    if (f->special || (f->value == mostly_uniform && !(fabs(lonely) < 0x1p100)))
        c.unbounded = "infinite weights meet padding, sums overflow or have both infinities";
    size_t y = convolve(&c, f);
    result_size(f, out);
    if (f->after == SUM_AND_RELU) {
        gb_op *add = kernel_case_op(&c, GB_OP_ADD);
        kernel_case_in(&c, add, y);
        kernel_case_in(&c, add, image(&c, f, f->channels, out));
        unary(&c, f, GB_OP_RELU, kernel_case_out(&c, add, type_of(f)));
    } else if (f->after == GELU) {
        unary(&c, f, GB_OP_GELU, y);
    }
    kernel_case_run(&c, what);
    /* Where the machine multiplies bf16 as such, that is faster. */
    const bool dots = f->type == GB_BF16 && strstr(c.kernels, "conv bf16");
    cr_assert(dots || strstr(c.kernels, "winograd"), "%s: %s", what, c.kernels);
}

static const struct {
    int64_t batch, in_channels, channels, in[2];
} sizes[] = {
        {1, 32, 40, {9, 11}}, {2, 70, 33, {12, 7}}, {3, 45, 96, {6, 6}}, {1, 130, 64, {17, 24}}};

enum { SIZES = sizeof sizes / sizeof *sizes };

static form form_of(int i)
{
    form f = {.batch = sizes[i % SIZES].batch,
            .in_channels = sizes[i % SIZES].in_channels,
            .channels = sizes[i % SIZES].channels,
            .in = {sizes[i % SIZES].in[0], sizes[i % SIZES].in[1]},
            .pad_begin = {1, 1},
            .pad_end = {1, 1}};
    return f;
}

/* Every size with every kind of post-ops, in both orders of axes. */
static void check_all(void)
{
    for (int i = 0; i < SIZES * POST_OP_KINDS * 2; i++) {
        form f = form_of(i);
        f.after = (post_op_kind)(i / SIZES % POST_OP_KINDS);
        f.channels_last = i / SIZES / POST_OP_KINDS;
        f.bias = f.after == SUM_AND_RELU;
        check(&f);
    }
}

KERNEL_TEST(winograd, sizes_and_post_ops)
{
    check_all();
}

/* Second blocks of positions, channels and terms of K, and of the channels that are copied. */
KERNEL_TEST(winograd, small_caches)
{
    setenv("GB_CACHES", "4096:65536:67108864", 1); /* has not been asked for */
    check_all();
}

KERNEL_TEST(winograd, pads)
{
    static const int64_t pads[][2][2] = {
            {{0, 0}, {0, 0}}, {{2, 1}, {0, 2}}, {{0, 1}, {1, 0}}, {{3, 0}, {4, 0}}};
    for (int i = 0; i < 4 * 2; i++) {
        form f = form_of(i % 4);
        memcpy(f.pad_begin, pads[i % 4][0], sizeof f.pad_begin);
        memcpy(f.pad_end, pads[i % 4][1], sizeof f.pad_end);
        f.in[0] += 9, f.in[1] += 4;
        f.channels_last = i / 4;
        check(&f);
    }
}

KERNEL_TEST(winograd, backward)
{
    for (int i = 0; i < SIZES * 2; i++) {
        form f = form_of(i);
        f.backward = true;
        f.channels_last = i / SIZES;
        f.channels += 8; /* as many as are worth it where they are the images */
        check(&f);
    }
}

/* Lines of more positions than a group of tiles has, so that there are second groups; a value of its
 * own lies beyond the first one. */
KERNEL_TEST(winograd, long_lines)
{
    for (int i = 0; i < POST_OP_KINDS * 2 * 2; i++) {
        form f = form_of(0);
        f.channels = 32;
        f.in[0] = 2, f.in[1] = 80;
        f.after = (post_op_kind)(i % POST_OP_KINDS);
        f.bias = f.after == SUM_AND_RELU;
        f.channels_last = i / POST_OP_KINDS % 2;
        f.value = i / POST_OP_KINDS / 2 ? mostly_uniform : NULL;
        lonely = INFINITY;
        lonely_tensor = 0;
        check(&f);
    }
}

/* Types of 16 bits, which the copy of the source and the transform of the weights widen. */
KERNEL_TEST(winograd, halves)
{
    static const gb_data_type types[] = {GB_BF16, GB_F16};
    for (int i = 0; i < SIZES * POST_OP_KINDS * 2 * 2; i++) {
        form f = form_of(i);
        f.type = types[i / SIZES / POST_OP_KINDS / 2];
        f.after = (post_op_kind)(i / SIZES % POST_OP_KINDS);
        f.channels_last = i / SIZES / POST_OP_KINDS % 2;
        f.bias = f.after == SUM_AND_RELU;
        check(&f);
    }
}

/* A convolution that nothing follows, compiled. */
typedef struct alone {
    kernel_case c;
    gb_engine *engine;
    gb_stream *stream;
    gb_partition *partition;
    gb_compiled_partition *compiled;
} alone;

static alone alone_begin(const form *f)
{
    alone a = {0};
    convolve(&a.c, f);
    kernel_case_graph(&a.c, LAYOUT_DENSE);
    const gb_logical_tensor *inputs[] = {&a.c.tensors[0], &a.c.tensors[1]},
                            *outputs[] = {&a.c.tensors[2]};
    kernel_ok(gb_engine_create(&a.engine, GB_ENGINE_CPU, 0));
    kernel_ok(gb_stream_create(&a.stream, a.engine));
    kernel_ok(gb_graph_filter(a.c.graph, GB_POLICY_FUSION));
    kernel_ok(gb_graph_get_partitions(a.c.graph, 1, &a.partition, NULL));
    kernel_ok(gb_partition_compile(a.partition, &a.compiled, 2, inputs, 1, outputs, a.engine));
    cr_assert(strstr(gb_compiled_partition_get_kernels(a.compiled), "winograd"));
    return a;
}

static void alone_end(alone *a)
{
    gb_compiled_partition_destroy(a->compiled);
    gb_partition_destroy(a->partition);
    gb_graph_destroy(a->c.graph);
    gb_op_destroy(a->c.ops[0]);
    gb_stream_destroy(a->stream);
    gb_engine_destroy(a->engine);
}

/* 16 products of tiles in place of 36, and the transforms. */
Test(winograd, counts_what_it_executes)
{
    form f = {.batch = 1,
            .in_channels = 64,
            .channels = 32,
            .in = {16, 16},
            .pad_begin = {1, 1},
            .pad_end = {1, 1}};
    alone a = alone_begin(&f);
    double flops, executed, bytes;
    kernel_ok(gb_compiled_partition_get_work(a.compiled, &flops, &bytes));
    kernel_ok(gb_compiled_partition_get_executed_flops(a.compiled, &executed));
    cr_expect_eq(flops, 2.0 * 256 * 9 * 64 * 32);
    cr_expect_eq(executed, 64 * (2.0 * 16 * 64 * 32 + 32 * 64 + 24 * 32));
    alone_end(&a);
}

/* The last tile of an odd number of results reads a position that none of them needs: here the
 * source goes on behind it, since the padding crops. Whatever memory held there, the bits are the
 * same. */
Test(winograd, does_not_depend_on_the_scratchpad)
{
    enum { IN = 12 * 66 * 32, WEIGHTS = 32 * 32 * 9, OUT = 7 * 63 * 32 };
    form f = {.batch = 1,
            .in_channels = 32,
            .channels = 32,
            .in = {10, 66},
            .pad_begin = {2, 2},
            .pad_end = {3, 3},
            .channels_last = true,
            .backward = true};
    alone a = alone_begin(&f);
    static float src[IN], weights[WEIGHTS], dst[2][OUT];
    for (int i = 0; i < IN; i++)
        src[i] = (float)((i * 7 + 3) % 101) / 64 - 0.8f;
    for (int i = 0; i < WEIGHTS; i++)
        weights[i] = (float)((i * 5 + 1) % 89) / 64 - 0.7f;
    gb_logical_tensor pad;
    kernel_ok(gb_compiled_partition_get_scratchpad(a.compiled, &pad));
    size_t floats = (size_t)pad.dims[0] / sizeof(float) + 1;
    float *scratch = malloc(floats * sizeof *scratch);
    for (int run = 0; run < 2; run++) {
        for (size_t i = 0; i < floats; i++)
            scratch[i] = run ? 0x1p60f : 0;
        gb_tensor *t[4];
        void *const memory[] = {src, weights, dst[run], scratch};
        for (int i = 0; i < 4; i++)
            kernel_ok(gb_tensor_create(&t[i], i < 3 ? &a.c.tensors[i] : &pad, a.engine, memory[i]));
        const gb_tensor *inputs[] = {t[0], t[1]};
        kernel_ok(gb_compiled_partition_execute(a.compiled, a.stream, 2, inputs, 1, &t[2], t[3]));
        kernel_ok(gb_stream_wait(a.stream));
        for (int i = 0; i < 4; i++)
            gb_tensor_destroy(t[i]);
    }
    cr_expect_arr_eq(dst[0], dst[1], sizeof dst[0]);
    free(scratch);
    alone_end(&a);
}

/* Values -------------------------------------------------------------------------------------- */

/* Where the transforms would make NaN of an infinity, or lose results beside a large value, or
 * overflow: the other results stay what they are. */
KERNEL_TEST(winograd, lonely_values)
{
    static const double values[] = {
            INFINITY, -INFINITY, NAN, 0x1p90, -0x1p127, 0x1p41, 0x1p38, 1e-40};
    for (int i = 0; i < 8 * 2 * 2; i++) {
        form f = form_of(i % 2);
        f.value = mostly_uniform;
        f.after = i / 16 ? SUM_AND_RELU : NO_POST_OPS;
        f.channels_last = i % 2;
        lonely = values[i / 2 % 8];
        lonely_tensor = (size_t)(i % 2);
        check(&f);
    }
}

/* The same for 16 bits: those sums are read from the tensors as they are. */
KERNEL_TEST(winograd, lonely_halves)
{
    static const struct {
        gb_data_type type;
        double value;
    } rows[] = {{GB_BF16, INFINITY}, {GB_BF16, NAN}, {GB_BF16, 0x1p90}, {GB_F16, -INFINITY}};
    for (int i = 0; i < 4 * 2; i++) {
        form f = form_of(i);
        f.type = rows[i / 2].type;
        f.value = mostly_uniform;
        f.channels_last = i % 2;
        lonely = rows[i / 2].value;
        lonely_tensor = (size_t)(i % 2);
        check(&f);
    }
}

KERNEL_TEST(winograd, special)
{
    for (int i = 0; i < SIZES * 2; i++) {
        form f = form_of(i);
        f.type = i / SIZES ? GB_F16 : GB_F32;
        f.special = true;
        check(&f);
    }
}

/* Whole numbers, of which sums of products and of transformed values are exact. */
static double whole(const kernel_case *c, size_t id, int64_t index, double uniform)
{
    (void)c, (void)id, (void)index;
    return round(uniform * 4);
}

KERNEL_TEST(winograd, exact)
{
    for (int i = 0; i < SIZES; i++) {
        form f = form_of(i);
        f.value = whole;
        check(&f);
    }
}
