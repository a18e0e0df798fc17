/* Transposed convolutions and the gradients of both directions against the reference, at every
 * instruction set. */
#include "kernel_case.h"

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};

/* A window of `kernel` moves over an image of `in` and stops at `out` positions. A convolution goes
 * from the image to the positions, a transposed one the other way. */
typedef struct geometry {
    gb_op_kind kind;
    gb_data_type type;
    int n_spatial;
    int64_t batch, groups, image_channels, channels; /* of one group; channels: at the positions */
    int64_t in[3], kernel[3], stride[3], dilation[3], pad_begin[3], pad_end[3], out[3];
    int64_t output_padding[3];
    bool channels_last, weights_last, has_bias, has_tail;
    const char *auto_pad;
} geometry;

static uint64_t state;

/* 0 .. n - 1 */
static int64_t below(int64_t n)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

static bool is_transposed(gb_op_kind kind)
{
    return kind == GB_OP_CONV_TRANSPOSE || kind == GB_OP_CONV_TRANSPOSE_BACKWARD_DATA ||
           kind == GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS;
}

static int data_dims(const geometry *g, bool image, int64_t *dims)
{
    int64_t channels = g->groups * (image ? g->image_channels : g->channels);
    int n = 0;
    dims[n++] = g->batch;
    if (!g->channels_last)
        dims[n++] = channels;
    for (int i = 0; i < g->n_spatial; i++)
        dims[n++] = image ? g->in[i] : g->out[i];
    if (g->channels_last)
        dims[n++] = channels;
    return n;
}

/* First the channels at the positions, then those of the image; the other way when last. */
static int weights_dims(const geometry *g, int64_t *dims)
{
    int n = 0;
    if (!g->weights_last)
        dims[n++] = g->channels * g->groups, dims[n++] = g->image_channels;
    for (int i = 0; i < g->n_spatial; i++)
        dims[n++] = g->kernel[i];
    if (g->weights_last)
        dims[n++] = g->image_channels, dims[n++] = g->channels * g->groups;
    return n;
}

static size_t data(kernel_case *c, const geometry *g, bool image)
{
    int64_t dims[5];
    int n = data_dims(g, image, dims);
    return kernel_case_tensor(c, g->type, n, dims);
}

static void set_attributes(gb_op *op, const geometry *g)
{
    int n = g->n_spatial;
    const char *formats[2][2] = {{"OIX", "XIO"}, {"IOX", "XOI"}};
    kernel_case_ints(op, GB_ATTR_STRIDES, n, g->stride);
    kernel_case_ints(op, GB_ATTR_DILATIONS, n, g->dilation);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, n, g->pad_begin);
    kernel_case_ints(op, GB_ATTR_PADS_END, n, g->pad_end);
    kernel_case_int(op, GB_ATTR_GROUPS, g->groups);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, g->channels_last ? "NXC" : "NCX");
    kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT, formats[is_transposed(g->kind)][g->weights_last]);
    if (g->auto_pad)
        kernel_case_text(op, GB_ATTR_AUTO_PAD, g->auto_pad);
    int64_t dims[5];
    if (g->kind == GB_OP_CONVOLUTION)
        return;
    if (g->kind == GB_OP_CONV_TRANSPOSE)
        kernel_case_ints(op, GB_ATTR_OUTPUT_PADDING, n, g->output_padding);
    else if (g->kind == GB_OP_CONVOLUTION_BACKWARD_DATA)
        kernel_case_ints(op, GB_ATTR_DST_SHAPE, data_dims(g, true, dims), dims);
    else if (g->kind != GB_OP_CONV_TRANSPOSE_BACKWARD_DATA)
        kernel_case_ints(op, GB_ATTR_WEIGHTS_SHAPE, weights_dims(g, dims), dims);
}

static void add_inputs(kernel_case *c, gb_op *op, const geometry *g)
{
    int64_t dims[5], bias = g->image_channels * g->groups;
    int n;
    switch (g->kind) {
    case GB_OP_CONV_TRANSPOSE:
    case GB_OP_CONVOLUTION_BACKWARD_DATA:
    case GB_OP_CONV_TRANSPOSE_BACKWARD_DATA:
        kernel_case_in(c, op, data(c, g, g->kind == GB_OP_CONV_TRANSPOSE_BACKWARD_DATA));
        n = weights_dims(g, dims);
        kernel_case_in(c, op, kernel_case_tensor(c, g->type, n, dims));
        if (g->has_bias && g->kind == GB_OP_CONV_TRANSPOSE)
            kernel_case_in(c, op, kernel_case_tensor(c, g->type, 1, &bias));
        break;
    default:
        kernel_case_in(c, op, data(c, g, g->kind == GB_OP_CONVOLUTION_BACKWARD_WEIGHTS));
        kernel_case_in(c, op, data(c, g, g->kind != GB_OP_CONVOLUTION_BACKWARD_WEIGHTS));
        break;
    }
}

static void run(const geometry *g)
{
    kernel_case c = {.scale = 1};
    char name[300];
    int n = snprintf(name, sizeof name, "%s %s %s %s n %d g %d image %d channels %d%s%s",
            gb_op_kind_name(g->kind), gb_data_type_name(g->type), g->channels_last ? "NXC" : "NCX",
            g->weights_last ? "last" : "first", (int)g->batch, (int)g->groups,
            (int)g->image_channels, (int)g->channels, g->has_bias ? " bias" : "",
            g->auto_pad ? g->auto_pad : "");
    for (int i = 0; i < g->n_spatial; i++)
        n += snprintf(name + n, sizeof name - (size_t)n, " [in %d k %d s %d d %d p %d %d]",
                (int)g->in[i], (int)g->kernel[i], (int)g->stride[i], (int)g->dilation[i],
                (int)g->pad_begin[i], (int)g->pad_end[i]);
    gb_op *op = kernel_case_op(&c, g->kind);
    set_attributes(op, g);
    add_inputs(&c, op, g);
    size_t result = kernel_case_out(&c, op, g->type);
    if (g->has_tail) {
        gb_op *tail = kernel_case_op(&c, GB_OP_RELU);
        kernel_case_in(&c, tail, result);
        kernel_case_out(&c, tail, g->type);
    }
    kernel_case_run(&c, name);
}

/* Sizes at the positions, and, for a transposed convolution, the image that its rule gives; false
 * when there is none. */
static bool infer(geometry *g)
{
    for (int i = 0; i < g->n_spatial; i++) {
        int64_t extent = (g->kernel[i] - 1) * g->dilation[i] + 1, pads = 0, s = g->stride[i];
        bool same = g->auto_pad && strncmp(g->auto_pad, "SAME", 4) == 0;
        if (!g->auto_pad)
            pads = g->pad_begin[i] + g->pad_end[i];
        if (same && g->kind == GB_OP_CONV_TRANSPOSE)
            pads = extent > s ? extent - s : 0;
        else if (same) {
            int64_t rest = g->in[i] % s;
            pads = extent - (rest ? rest : s);
            pads = pads > 0 ? pads : 0;
        }
        int64_t room = g->in[i] + pads - extent;
        if (room < 0)
            return false;
        g->out[i] = room / s + 1;
        if (g->kind == GB_OP_CONV_TRANSPOSE) {
            g->output_padding[i] = below(3) == 0 ? below(s) : 0;
            g->in[i] = (g->out[i] - 1) * s + extent - pads + g->output_padding[i];
            if (g->in[i] < 1)
                return false;
        }
    }
    return true;
}

static geometry random_geometry(gb_op_kind kind)
{
    static const int64_t channels[] = {1, 1, 2, 3, 4, 5, 8, 16, 17, 33};
    static const int64_t sizes[] = {1, 2, 3, 5, 7, 8, 14, 15, 20, 29};
    static const int64_t groups[] = {1, 1, 1, 2, 3, 5};
    static const char *const pads[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    geometry g = {.kind = kind,
            .type = types[below(5) < 3 ? 0 : below(3)],
            .n_spatial = 1 + (int)below(3),
            .batch = 1 + below(3),
            .groups = groups[below(6)],
            .image_channels = channels[below(10)],
            .channels = channels[below(10)],
            .channels_last = below(2),
            .weights_last = below(2),
            .has_bias = below(2),
            .has_tail = below(3) == 0,
            .auto_pad = below(6) == 0 ? pads[below(3)] : NULL};
    bool pointwise = below(6) == 0;
    for (int i = 0; i < g.n_spatial; i++) {
        g.in[i] = g.n_spatial == 3 ? 1 + below(6) : sizes[below(10)];
        g.kernel[i] = pointwise ? 1 : 1 + below(4);
        g.stride[i] = pointwise && below(2) ? 1 : 1 + below(3);
        g.dilation[i] = 1 + (below(3) == 0 ? below(3) : 0);
        g.pad_begin[i] = pointwise || g.auto_pad ? 0 : below(4);
        g.pad_end[i] = pointwise || g.auto_pad ? 0 : below(4);
    }
    return g;
}

static void random_cases(gb_op_kind kind, uint64_t seed)
{
    state = seed;
    for (int done = 0; done < 150;) {
        geometry g = random_geometry(kind);
        if (!infer(&g))
            continue;
        run(&g);
        done++;
    }
}

KERNEL_TEST(conv_family, convolution_backward_data)
{
    random_cases(GB_OP_CONVOLUTION_BACKWARD_DATA, 1);
}

KERNEL_TEST(conv_family, convolution_backward_weights)
{
    random_cases(GB_OP_CONVOLUTION_BACKWARD_WEIGHTS, 2);
}

KERNEL_TEST(conv_family, conv_transpose)
{
    random_cases(GB_OP_CONV_TRANSPOSE, 3);
}

KERNEL_TEST(conv_family, conv_transpose_backward_data)
{
    random_cases(GB_OP_CONV_TRANSPOSE_BACKWARD_DATA, 4);
}

KERNEL_TEST(conv_family, conv_transpose_backward_weights)
{
    random_cases(GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS, 5);
}

static const gb_op_kind kinds[] = {GB_OP_CONVOLUTION_BACKWARD_DATA,
        GB_OP_CONVOLUTION_BACKWARD_WEIGHTS, GB_OP_CONV_TRANSPOSE,
        GB_OP_CONV_TRANSPOSE_BACKWARD_DATA, GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS};
enum { KINDS = 5 };

/* Sizes that take several blocks of every kind. */
KERNEL_TEST(conv_family, several_blocks)
{
    static const geometry cases[] = {{.n_spatial = 2,
                                             .batch = 2,
                                             .groups = 1,
                                             .image_channels = 150,
                                             .channels = 70,
                                             .in = {14, 14},
                                             .kernel = {3, 3},
                                             .pad_begin = {1, 1},
                                             .pad_end = {1, 1}},
            {.n_spatial = 2,
                    .batch = 1,
                    .groups = 1,
                    .image_channels = 600,
                    .channels = 300,
                    .in = {5, 5},
                    .kernel = {1, 1}},
            {.n_spatial = 2,
                    .batch = 5,
                    .groups = 1,
                    .image_channels = 3,
                    .channels = 40,
                    .in = {40, 41},
                    .kernel = {7, 5},
                    .pad_begin = {3, 2},
                    .pad_end = {3, 2}},
            {.n_spatial = 2,
                    .batch = 2,
                    .groups = 50,
                    .image_channels = 1,
                    .channels = 1,
                    .in = {33, 28},
                    .kernel = {3, 5},
                    .pad_begin = {1, 2},
                    .pad_end = {1, 2}},
            {.n_spatial = 1,
                    .batch = 2,
                    .groups = 1,
                    .image_channels = 2,
                    .channels = 2,
                    .in = {900},
                    .kernel = {500},
                    .pad_begin = {10}},
            {.n_spatial = 1,
                    .batch = 1,
                    .groups = 2,
                    .image_channels = 20,
                    .channels = 5,
                    .in = {7000},
                    .kernel = {9}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < KINDS; k++) {
            geometry g = cases[i];
            g.kind = kinds[k];
            g.type = GB_F32;
            g.channels_last = (i + (size_t)k) % 2;
            for (int d = 0; d < g.n_spatial; d++)
                g.stride[d] = 1 + (int)i % 2, g.dilation[d] = 1;
            if (g.n_spatial == 1)
                g.stride[0] = 3;
            state = i;
            cr_assert(infer(&g));
            run(&g);
        }
}

/* Strides beyond the window leave positions without any tap; strides and dilations share factors.
 */
KERNEL_TEST(conv_family, sparse)
{
    static const int64_t steps[][3] = {{5, 2, 1}, {4, 3, 2}, {6, 4, 4}, {40, 3, 1}, {9, 5, 3}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (int k = 0; k < KINDS; k++)
            for (int last = 0; last < 2; last++) {
                geometry g = {.kind = kinds[k],
                        .type = GB_F32,
                        .n_spatial = 2,
                        .batch = 2,
                        .groups = 1,
                        .image_channels = last ? 3 : 20,
                        .channels = last ? 18 : 4,
                        .in = {50, 61},
                        .channels_last = last};
                for (int d = 0; d < 2; d++) {
                    g.stride[d] = steps[i][0];
                    g.kernel[d] = steps[i][1] + d;
                    g.dilation[d] = steps[i][2];
                    g.pad_begin[d] = d;
                }
                state = i;
                cr_assert(infer(&g));
                run(&g);
            }
}

/* One channel per group, with strides that differ between the axes. */
KERNEL_TEST(conv_family, depthwise)
{
    state = 6;
    for (int done = 0; done < 60;) {
        geometry g = random_geometry(kinds[done % KINDS]);
        g.image_channels = g.channels = 1;
        g.groups = 2 + below(70);
        g.type = types[done % 7 < 5 ? 0 : done % 7 - 4];
        if (!infer(&g))
            continue;
        run(&g);
        done++;
    }
}

KERNEL_TEST(conv_family, empty)
{
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < KINDS; k++) {
            geometry g = {.kind = kinds[k],
                    .type = GB_F32,
                    .n_spatial = 1,
                    .batch = i & 1 ? 0 : 2,
                    .groups = 1,
                    .image_channels = i & 2 ? 0 : 3,
                    .channels = i & 4 ? 0 : 5,
                    .in = {9},
                    .kernel = {3},
                    .stride = {2},
                    .dilation = {1}};
            cr_assert(infer(&g));
            run(&g);
        }
}

static double dot(const kernel_case *c, const kernel_memory *memory, size_t a, size_t b)
{
    double sum = 0;
    for (int64_t i = 0, n = kernel_case_count(&c->tensors[a]); i < n; i++)
        sum += gb_element_get(GB_F32, memory[a].data, kernel_case_offset(&c->tensors[a], i)) *
               gb_element_get(GB_F32, memory[b].data, kernel_case_offset(&c->tensors[b], i));
    return sum;
}

/* <conv(x, w), y> = <x, backward_data(y, w)> = <w, backward_weights(x, y)>, and the same for the
 * transposed kinds with x and y in each other's place. */
static void check_adjoints(geometry g, const gb_op_kind *forward)
{
    kernel_case c = {.scale = 1};
    int64_t dims[5];
    bool transposed = is_transposed(forward[0]);
    size_t x = data(&c, &g, !transposed), y = data(&c, &g, transposed), results[3];
    int n = weights_dims(&g, dims);
    size_t w = kernel_case_tensor(&c, g.type, n, dims);
    const size_t inputs[3][2] = {{x, w}, {y, w}, {x, y}};
    for (int i = 0; i < 3; i++) {
        g.kind = forward[i];
        gb_op *op = kernel_case_op(&c, g.kind);
        set_attributes(op, &g);
        kernel_case_in(&c, op, inputs[i][0]);
        kernel_case_in(&c, op, inputs[i][1]);
        results[i] = kernel_case_out(&c, op, g.type);
    }
    gb_engine *engine;
    gb_stream *stream;
    kernel_memory memory[6];
    kernel_case_graph(&c, LAYOUT_DENSE);
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    kernel_ok(gb_stream_create(&stream, engine));
    for (size_t id = 0; id < c.n_tensors; id++)
        memory[id] = kernel_case_alloc(&c, &c.tensors[id]);
    kernel_case_execute(&c, memory, engine, stream);
    double value = dot(&c, memory, results[0], y);
    cr_assert_float_eq(dot(&c, memory, results[1], x), value, 1e-4 * fabs(value) + 1e-3);
    cr_assert_float_eq(dot(&c, memory, results[2], w), value, 1e-4 * fabs(value) + 1e-3);
    for (size_t id = 0; id < c.n_tensors; id++)
        kernel_case_free(&memory[id]);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
    gb_graph_destroy(c.graph);
    for (size_t i = 0; i < c.n_ops; i++)
        gb_op_destroy(c.ops[i]);
}

KERNEL_TEST(conv_family, adjoints)
{
    static const gb_op_kind forward[2][3] = {{GB_OP_CONVOLUTION, GB_OP_CONVOLUTION_BACKWARD_DATA,
                                                     GB_OP_CONVOLUTION_BACKWARD_WEIGHTS},
            {GB_OP_CONV_TRANSPOSE, GB_OP_CONV_TRANSPOSE_BACKWARD_DATA,
                    GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS}};
    state = 7;
    for (int done = 0; done < 20;) {
        geometry g = random_geometry(forward[done % 2][0]);
        g.type = GB_F32;
        g.auto_pad = NULL;
        if (!infer(&g))
            continue;
        check_adjoints(g, forward[done % 2]);
        done++;
    }
}
