/* Convolution on the CPU: every instruction set, random geometry, layouts, types and thread counts.
 */
#include "linear_case.h"
#include <stdio.h>

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};

/* Spatial lists have n_spatial entries. */
typedef struct geometry {
    int n_spatial;
    int64_t batch, groups, in_channels, out_channels; /* channels of one group */
    int64_t in[3], kernel[3], stride[3], dilation[3], pad_begin[3], pad_end[3], out[3];
    bool channels_last, weights_last, has_bias, constant, strided;
    gb_data_type type;
} geometry;

static gb_logical_tensor tensor_of(size_t id, gb_data_type type, int ndims, const int64_t *dims)
{
    gb_logical_tensor tensor;
    check_status(gb_logical_tensor_init_with_dims(
            &tensor, id, type, ndims, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    return tensor;
}

static gb_logical_tensor data_tensor(
        const geometry *g, size_t id, int64_t channels, const int64_t *spatial)
{
    int64_t dims[5];
    int n = 0;
    dims[n++] = g->batch;
    if (!g->channels_last)
        dims[n++] = channels;
    for (int i = 0; i < g->n_spatial; i++)
        dims[n++] = spatial[i];
    if (g->channels_last)
        dims[n++] = channels;
    return tensor_of(id, g->type, n, dims);
}

static gb_logical_tensor weights_tensor(const geometry *g)
{
    int64_t dims[5], out = g->out_channels * g->groups;
    int n = 0;
    if (!g->weights_last)
        dims[n++] = out, dims[n++] = g->in_channels;
    for (int i = 0; i < g->n_spatial; i++)
        dims[n++] = g->kernel[i];
    if (g->weights_last)
        dims[n++] = g->in_channels, dims[n++] = out;
    return tensor_of(1, g->type, n, dims);
}

static linear_case make_case(const geometry *g, uint64_t *state)
{
    linear_case c = {.n_inputs = g->has_bias ? 3 : 2};
    int64_t out = g->out_channels * g->groups;
    c.inputs[0] = data_tensor(g, 0, g->in_channels * g->groups, g->in);
    c.inputs[1] = weights_tensor(g);
    c.inputs[2] = tensor_of(2, g->type, 1, &out);
    c.output = data_tensor(g, 100, out, g->out);
    if (g->constant)
        c.inputs[1].property = c.inputs[2].property = GB_PROPERTY_CONSTANT;
    size_t n = (size_t)g->n_spatial;
    check_status(gb_op_create(&c.op, 1, GB_OP_CONVOLUTION, "convolution"));
    check_status(gb_op_set_attr_s64(c.op, GB_ATTR_STRIDES, n, g->stride));
    check_status(gb_op_set_attr_s64(c.op, GB_ATTR_DILATIONS, n, g->dilation));
    check_status(gb_op_set_attr_s64(c.op, GB_ATTR_PADS_BEGIN, n, g->pad_begin));
    check_status(gb_op_set_attr_s64(c.op, GB_ATTR_PADS_END, n, g->pad_end));
    check_status(gb_op_set_attr_s64(c.op, GB_ATTR_GROUPS, 1, &g->groups));
    check_status(
            gb_op_set_attr_str(c.op, GB_ATTR_DATA_FORMAT, g->channels_last ? "NXC" : "NCX", 3));
    check_status(
            gb_op_set_attr_str(c.op, GB_ATTR_WEIGHTS_FORMAT, g->weights_last ? "XIO" : "OIX", 3));
    for (int i = 0; i < c.n_inputs; i++) {
        if (g->strided)
            random_strides(state, &c.inputs[i]);
        c.data[i] = random_data(state, &c.inputs[i]);
        check_status(gb_op_add_input(c.op, &c.inputs[i]));
    }
    if (g->strided)
        random_strides(state, &c.output);
    check_status(gb_op_add_output(c.op, &c.output));
    return c;
}

/* Adds the products of one output element at one tap. `at` is the position in the result. */
static void add_tap(const geometry *g, const linear_case *c, const int64_t *at, const int64_t *tap,
        int64_t group, int64_t out, expected *e)
{
    int64_t src[5], weights[5];
    int channel = g->channels_last ? g->n_spatial + 1 : 1, spatial = g->channels_last ? 1 : 2;
    src[0] = at[0];
    for (int i = 0; i < g->n_spatial; i++) {
        int64_t x = at[spatial + i] * g->stride[i] + tap[i] * g->dilation[i] - g->pad_begin[i];
        if (x < 0 || x >= g->in[i])
            return;
        src[spatial + i] = x;
        weights[(g->weights_last ? 0 : 2) + i] = tap[i];
    }
    weights[g->weights_last ? g->n_spatial + 1 : 0] = group * g->out_channels + out;
    for (int64_t ic = 0; ic < g->in_channels; ic++) {
        src[channel] = group * g->in_channels + ic;
        weights[g->weights_last ? g->n_spatial : 1] = ic;
        double product = element_at(&c->inputs[0], c->data[0], src) *
                         element_at(&c->inputs[1], c->data[1], weights);
        e->value += product;
        e->magnitude += fabs(product);
        e->terms++;
    }
}

static expected expected_at(const geometry *g, const linear_case *c, const int64_t *at)
{
    int64_t channel = at[g->channels_last ? g->n_spatial + 1 : 1], taps = 1;
    expected e = {.terms = 1};
    for (int i = 0; i < g->n_spatial; i++)
        taps *= g->kernel[i];
    for (int64_t t = 0; t < taps; t++) {
        int64_t tap[3], rest = t;
        for (int i = g->n_spatial; i-- > 0; rest /= g->kernel[i])
            tap[i] = rest % g->kernel[i];
        add_tap(g, c, at, tap, channel / g->out_channels, channel % g->out_channels, &e);
    }
    if (g->has_bias) {
        double bias = element_at(&c->inputs[2], c->data[2], &channel);
        e.value += bias;
        e.magnitude += fabs(bias);
    }
    return e;
}

static void describe(const geometry *g, gb_isa isa, char *text, size_t bytes)
{
    int n = snprintf(text, bytes, "%s %s %s n %d g %d ic %d oc %d%s%s%s", gb_isa_name(isa),
            gb_data_type_name(g->type), g->channels_last ? "NXC" : "NCX", (int)g->batch,
            (int)g->groups, (int)g->in_channels, (int)g->out_channels, g->has_bias ? " bias" : "",
            g->constant ? " constant" : "", g->strided ? " strided" : "");
    for (int i = 0; i < g->n_spatial; i++)
        n += snprintf(text + n, bytes - (size_t)n, " [in %d k %d s %d d %d p %d %d]", (int)g->in[i],
                (int)g->kernel[i], (int)g->stride[i], (int)g->dilation[i], (int)g->pad_begin[i],
                (int)g->pad_end[i]);
}

/* Right values on one thread, the same bits on two, nothing written into the gaps. Of large results
 * only every step-th element is compared. */
static void check_geometry(const geometry *g, gb_isa isa, uint64_t *state, int64_t step)
{
    linear_case c = make_case(g, state);
    char text[300], *one = run_case(&c, 1, 0x55), *two = run_case(&c, 2, 0x55);
    size_t bytes = tensor_bytes(&c.output), size = gb_data_type_bytes(g->type, 1);
    describe(g, isa, text, sizeof text);
    cr_assert_eq(memcmp(one, two, bytes), 0, "%s: one and two threads differ", text);
    char *written = calloc(bytes + 1, 1);
    for (int64_t i = 0; i < gb_tensor_count(&c.output); i++) {
        int64_t position[GB_MAX_NDIMS] = {0};
        position_of(&c.output, i, position);
        memset(written + (size_t)offset_at(&c.output, position) * size, 1, size);
        if (i % step)
            continue;
        expected e = expected_at(g, &c, position);
        double got = element_at(&c.output, one, position);
        cr_assert(within_bound(g->type, got, e), "%s: element %d: %.9g, expected %.9g", text,
                (int)i, got, e.value);
    }
    for (size_t i = 0; i < bytes; i++)
        cr_assert(written[i] || one[i] == 0x55, "%s: gap byte %d written", text, (int)i);
    free(written);
    free(one);
    free(two);
    free_case(&c);
}

/* Sizes of the result; false when there is none. */
static bool infer(geometry *g)
{
    for (int i = 0; i < g->n_spatial; i++) {
        int64_t room = g->in[i] + g->pad_begin[i] + g->pad_end[i];
        room -= (g->kernel[i] - 1) * g->dilation[i] + 1;
        if (room < 0)
            return false;
        g->out[i] = room / g->stride[i] + 1;
    }
    return true;
}

static int64_t one_of(uint64_t *state, int count, const int64_t *values)
{
    return values[random_below(state, count)];
}

static geometry random_geometry(uint64_t *state)
{
    static const int64_t channels[] = {1, 1, 2, 3, 4, 5, 8, 16, 17, 33};
    static const int64_t sizes[] = {1, 2, 3, 5, 7, 8, 14, 15, 20, 29};
    static const int64_t groups[] = {1, 1, 1, 2, 3, 5};
    geometry g = {.n_spatial = 1 + (int)random_below(state, 3),
            .batch = 1 + random_below(state, 3),
            .groups = one_of(state, 6, groups),
            .in_channels = one_of(state, 10, channels),
            .out_channels = one_of(state, 10, channels),
            .channels_last = random_below(state, 2),
            .weights_last = random_below(state, 2),
            .has_bias = random_below(state, 2),
            .constant = random_below(state, 2),
            .strided = random_below(state, 3) == 0,
            .type = types[random_below(state, 5) < 3 ? 0 : random_below(state, 3)]};
    bool pointwise = random_below(state, 6) == 0;
    for (int i = 0; i < g.n_spatial; i++) {
        g.in[i] = g.n_spatial == 3 ? 1 + random_below(state, 6) : one_of(state, 10, sizes);
        g.kernel[i] = pointwise ? 1 : 1 + random_below(state, 4);
        g.stride[i] = pointwise && random_below(state, 2) ? 1 : 1 + random_below(state, 3);
        g.dilation[i] = 1 + (random_below(state, 3) == 0 ? random_below(state, 3) : 0);
        g.pad_begin[i] = pointwise ? 0 : random_below(state, 4);
        g.pad_end[i] = pointwise ? 0 : random_below(state, 4);
    }
    return g;
}

ISA_TEST(convolution, random)
{
    uint64_t state = 11;
    for (int done = 0; done < 2500;) {
        geometry g = random_geometry(&state);
        if (!infer(&g))
            continue;
        check_geometry(&g, isa, &state, 1);
        done++;
    }
}

ISA_TEST(convolution, several_blocks)
{
    static const geometry cases[] = {{.n_spatial = 2,
                                             .batch = 3,
                                             .groups = 1,
                                             .in_channels = 150,
                                             .out_channels = 70,
                                             .in = {14, 14},
                                             .kernel = {3, 3},
                                             .pad_begin = {1, 1},
                                             .pad_end = {1, 1}},
            {.n_spatial = 2,
                    .batch = 2,
                    .groups = 1,
                    .in_channels = 100,
                    .out_channels = 600,
                    .in = {7, 7},
                    .kernel = {3, 3},
                    .pad_begin = {1, 1},
                    .pad_end = {1, 1}},
            {.n_spatial = 2,
                    .batch = 1,
                    .groups = 2,
                    .in_channels = 90,
                    .out_channels = 4,
                    .in = {30, 70},
                    .kernel = {5, 3},
                    .pad_begin = {2, 1},
                    .pad_end = {2, 1}},
            {.n_spatial = 1,
                    .batch = 1,
                    .groups = 1,
                    .in_channels = 3,
                    .out_channels = 40,
                    .in = {20000},
                    .kernel = {9}},
            {.n_spatial = 1,
                    .batch = 2,
                    .groups = 1,
                    .in_channels = 2,
                    .out_channels = 2,
                    .in = {900},
                    .kernel = {500},
                    .pad_begin = {10}},
            {.n_spatial = 3,
                    .batch = 1,
                    .groups = 1,
                    .in_channels = 40,
                    .out_channels = 33,
                    .in = {6, 9, 15},
                    .kernel = {3, 3, 3},
                    .pad_begin = {1, 1, 1},
                    .pad_end = {1, 1, 1}},
            {.n_spatial = 2,
                    .batch = 60,
                    .groups = 1,
                    .in_channels = 30,
                    .out_channels = 20,
                    .in = {3, 3},
                    .kernel = {3, 3}},
            {.n_spatial = 2,
                    .batch = 2,
                    .groups = 64,
                    .in_channels = 1,
                    .out_channels = 1,
                    .in = {56, 56},
                    .kernel = {3, 3},
                    .pad_begin = {1, 1},
                    .pad_end = {1, 1}},
            {.n_spatial = 2,
                    .batch = 1,
                    .groups = 40,
                    .in_channels = 1,
                    .out_channels = 2,
                    .in = {19, 33},
                    .kernel = {5, 5},
                    .pad_begin = {2, 2},
                    .pad_end = {2, 2}}};
    uint64_t state = 12;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int variant = 0; variant < 4; variant++) {
            geometry g = cases[i];
            g.type = GB_F32;
            g.channels_last = variant & 1;
            g.has_bias = variant & 2;
            for (int d = 0; d < g.n_spatial; d++)
                g.stride[d] = 1 + (variant == 3), g.dilation[d] = 1;
            cr_assert(infer(&g));
            check_geometry(&g, isa, &state, 37);
        }
}

/* Weights of 16 bits that do not stay in L2 are kept as they are, and widened by the tiles where
 * that pays: blocks of channels, panels that end early, groups, taps that lie outside. */
ISA_TEST(convolution, weights_of_16_bits)
{
    uint64_t state = 14;
    setenv("GB_CACHES", "32768:4096:0", 1); /* has not been asked for */
    for (int i = 0; i < 24; i++) {
        geometry g = {.n_spatial = 2,
                .batch = 1 + i % 2,
                .groups = 1 + i % 3 / 2,
                .in_channels = 20 + 50 * (i % 4),
                .out_channels = 33 + 40 * (i % 3),
                .in = {7, 9},
                .kernel = {1 + i / 2 % 3, 1 + i / 3 % 3},
                .stride = {1 + i % 2, 1 + i / 4 % 2},
                .dilation = {1, 1},
                .pad_begin = {1, 1},
                .pad_end = {1, 1},
                .channels_last = i / 3 % 2,
                .weights_last = i / 6 % 2,
                .has_bias = i % 5 == 0,
                .constant = i % 4 != 3,
                .type = i % 2 ? GB_BF16 : GB_F16};
        cr_assert(infer(&g));
        check_geometry(&g, isa, &state, 7);
    }
}

/* No taps: lines of the copy and of the result follow one another. */
ISA_TEST(convolution, pointwise_strided)
{
    static const struct {
        int64_t channels, in[2], stride[2];
    } sizes[] = {{300, {29, 29}, {2, 2}}, {70, {8, 57}, {1, 2}}, {33, {23, 7}, {3, 3}},
            {600, {2, 30}, {2, 1}}};
    uint64_t state = 14;
    for (int i = 0; i < 4 * 3 * 4; i++) {
        geometry g = {.n_spatial = 2,
                .batch = 2,
                .groups = i / 12 == 2 ? 2 : 1,
                .in_channels = sizes[i / 12].channels,
                .out_channels = 45,
                .kernel = {1, 1},
                .dilation = {1, 1},
                .pad_begin = {i / 12 == 1, 0},
                .channels_last = i & 1,
                .strided = (i & 3) == 2,
                .has_bias = i & 2,
                .type = types[i / 4 % 3]};
        memcpy(g.in, sizes[i / 12].in, sizeof sizes->in);
        memcpy(g.stride, sizes[i / 12].stride, sizeof sizes->stride);
        cr_assert(infer(&g));
        check_geometry(&g, isa, &state, 7);
    }
}

/* Kernels of 3 and 5 taps share source rows between results where strides and dilations are 1. Up
 * to 8 output channels may read one input channel. */
ISA_TEST(convolution, depthwise_runs)
{
    static const int64_t repeats[] = {1, 2, 3, 8, 4};
    static const int64_t kernels[][3] = {{3, 3, 1}, {5, 5, 1}, {3, 5, 1}, {5, 2, 1}, {3, 1, 3}};
    static const int64_t sizes[][3] = {{14, 14, 1}, {9, 70, 1}, {35, 3, 1}, {5, 6, 7}};
    uint64_t state = 15;
    for (int i = 0; i < 5 * 4 * 2 * 4; i++) {
        geometry g = {.n_spatial = i % 5 == 4 ? 3 : 2,
                .batch = 1 + i % 3,
                .groups = i % 7 ? 37 : 64,
                .in_channels = 1,
                .out_channels = repeats[i / 8 % 5],
                .weights_last = i & 2,
                .channels_last = i / 20 & 1,
                .has_bias = i & 1,
                .type = types[i % 9 ? 0 : i / 9 % 3]};
        for (int d = 0; d < 3; d++) {
            g.kernel[d] = kernels[i % 5][d];
            g.in[d] = sizes[i / 5 % 4][d] + (i % 5 == 4) * 2;
            g.stride[d] = 1 + (i / 40 == 1 + d);
            g.dilation[d] = 1 + (i / 40 == 3 - d);
            g.pad_begin[d] = kernels[i % 5][d] / 2;
            g.pad_end[d] = i % 2;
        }
        if (!infer(&g))
            continue;
        check_geometry(&g, isa, &state, 3);
    }
}

/* Positions along vectors, where the source lies: rows of part of a vector, one, two and more; steps along rows of one
 * and two; kernels that reach beyond the source on either side, or beyond all of it; several blocks of rows. */
ISA_TEST(convolution, depthwise_planes)
{
    static const int64_t widths[] = {1, 5, 7, 8, 9, 15, 16, 17, 23, 32, 33, 41, 64, 71};
    static const int64_t heights[] = {1, 2, 3, 4, 5, 6, 7, 9, 66};
    static const int64_t kernels[][2] = {
            {3, 3}, {5, 5}, {3, 2}, {5, 1}, {1, 3}, {2, 4}, {7, 7}, {3, 33}};
    uint64_t state = 17;
    for (int i = 0; i < 14 * 9 * 2; i++) {
        geometry g = {.n_spatial = i % 11 ? 2 : 1,
                .batch = 1 + i % 2,
                .groups = 2 + i % 3,
                .in_channels = 1,
                .out_channels = 1 + (i % 7 == 3),
                .in = {heights[i % 9], widths[i % 14]},
                .has_bias = i % 3 == 1,
                .constant = i & 1,
                .strided = i % 5 == 4,
                .type = types[i % 4 ? 0 : i / 4 % 3]};
        for (int d = 0; d < 2; d++) {
            g.kernel[d] = kernels[i / 3 % 8][d];
            g.stride[d] = 1 + i / (2 + d) % 2 + (d == 0 && i % 13 == 5);
            g.dilation[d] = 1 + (i % 6 == d + 2);
            g.pad_begin[d] = random_below(&state, g.kernel[d] + 2);
            g.pad_end[d] = random_below(&state, g.kernel[d] + 2);
        }
        if (g.n_spatial == 1)
            g.in[0] = g.in[1];
        if (!infer(&g))
            continue;
        check_geometry(&g, isa, &state, 3);
    }
}

ISA_TEST(convolution, empty)
{
    uint64_t state = 13;
    for (int i = 0; i < 8; i++) {
        geometry g = {.n_spatial = 1,
                .batch = i & 1 ? 0 : 2,
                .groups = 1,
                .in_channels = i & 2 ? 0 : 3,
                .out_channels = i & 4 ? 0 : 5,
                .in = {9},
                .kernel = {3},
                .stride = {1},
                .dilation = {1},
                .has_bias = i & 2,
                .type = GB_F32};
        cr_assert(infer(&g));
        check_geometry(&g, isa, &state, 1);
    }
}

/* Blocks are chosen among a few, however many channels or rows there are: sizes that no memory has
 * are planned as soon as others. Nothing is executed. */
static void compile_only(const char *lines)
{
    gb_graph *graph;
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_engine *engine;
    gb_logical_tensor ports[2][8];
    const gb_logical_tensor *lists[2][8];
    size_t count[2];
    check_status(gb_graph_parse_text(&graph, lines, strlen(lines), "large"));
    check_status(gb_graph_finalize(graph));
    check_status(gb_graph_filter(graph, GB_POLICY_FUSION));
    check_status(gb_graph_get_partitions(graph, 1, &partition, NULL));
    check_status(gb_partition_get_input_ports(partition, 0, NULL, &count[0]));
    check_status(gb_partition_get_input_ports(partition, count[0], ports[0], NULL));
    check_status(gb_partition_get_output_ports(partition, 0, NULL, &count[1]));
    check_status(gb_partition_get_output_ports(partition, count[1], ports[1], NULL));
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < count[side]; i++)
            lists[side][i] = &ports[side][i];
    check_status(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    gb_status status = gb_partition_compile(
            partition, &compiled, count[0], lists[0], count[1], lists[1], engine);
    cr_expect(status == GB_SUCCESS || status == GB_OUT_OF_MEMORY, "%s: %s: %s", lines,
            gb_status_name(status), gb_last_error());
    if (status == GB_SUCCESS)
        gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    gb_graph_destroy(graph);
    gb_engine_destroy(engine);
}

#define WINDOW                                                                                     \
    " strides=[1, 1] pads_begin=[1, 1] pads_end=[1, 1] dilations=[1, 1] data_format=\"NXC\" "

Test(convolution, plans_of_any_size)
{
    compile_only("graph engine=cpu\n0: %2:f32:... = Convolution(%0:f32:1x2x5x4294967297, "
                 "%1:f32:2x1x3x3) strides=[1, 1] pads_begin=[1, 1] pads_end=[1, 1] "
                 "dilations=[1, 1] data_format=\"NCX\" weights_format=\"OIX\" groups=2");
    compile_only("graph engine=cpu\n0: %2:f32:... = Convolution(%0:f32:1x5x5x3, "
                 "%1:f32:3x3x3x4294967297)" WINDOW "weights_format=\"XIO\" groups=1");
    compile_only("graph engine=cpu\n0: %2:f32:... = Convolution(%0:f32:1x8x8x4294967297, "
                 "%1:f32:3x3x4294967297x40)" WINDOW "weights_format=\"XIO\" groups=1");
    compile_only("graph engine=cpu\n0: %2:f32:... = Convolution(%0:f32:1x5x5x4294967297, "
                 "%1:f32:3x3x1x4294967297)" WINDOW "weights_format=\"XIO\" groups=4294967297");
    compile_only("graph engine=cpu\n0: %2:f32:... = Convolution(%0:f32:1x4294967297x5x3, "
                 "%1:f32:3x3x3x8)" WINDOW "weights_format=\"XIO\" groups=1");
    compile_only("graph engine=cpu\n0: %2:f32:... = ConvTranspose(%0:f32:1x5x5x3, "
                 "%1:f32:3x3x4294967297x3)" WINDOW "weights_format=\"XOI\" groups=1");
    compile_only("graph engine=cpu\n0: %2:f32:... = ConvolutionBackwardWeights("
                 "%0:f32:1x5x5x3, %1:f32:1x5x5x4294967297)" WINDOW
                 "weights_format=\"XIO\" groups=1 weights_shape=[3, 3, 3, 4294967297]");
    compile_only("graph engine=cpu\n0: %2:f32:... = MatMul(%0:f32:5x3, %1:f32:3x4294967297)");
    compile_only("graph engine=cpu\n0: %2:f32:... = MatMul(%0:f32:1x3, %1:f32:3x4294967297)");
    compile_only("graph engine=cpu\n0: %2:f32:... = MatMul(%0:f32:4294967297x3, %1:f32:3x4)");
    compile_only("graph engine=cpu\n0: %2:f32:... = MatMul(%0:f32:5x4294967297, "
                 "%1:f32:4294967297x4)");
    compile_only("graph engine=cpu\n0: %2:f32:... = MaxPool(%0:f32:1x5x5x4294967297)"
                 " strides=[1, 1] pads_begin=[1, 1] pads_end=[1, 1] kernel=[3, 3]");
    compile_only("graph engine=cpu\n0: %2:f32:... = SoftMax(%0:f32:5x4294967297) axis=1");
    compile_only("graph engine=cpu\n0: %2:f32:... = ReduceSum(%0:f32:5x4294967297) axes=[1]");
    compile_only("graph engine=cpu\n0: %2:f32:... = LayerNorm(%0:f32:5x4294967297) "
                 "keep_stats=false use_affine=false");
    compile_only("graph engine=cpu\n0: %2:f32:... = StaticTranspose(%0:f32:5x4294967297) "
                 "order=[1, 0]");
    compile_only("graph engine=cpu\n"
                 "0: %3:f32:1x4294967297x5x8 = Convolution(%0:f32:1x4294967297x5x3, "
                 "%1:f32:1x1x3x8) strides=[1, 1] pads_begin=[0, 0] pads_end=[0, 0] "
                 "dilations=[1, 1] weights_format=\"XIO\" groups=1\n"
                 "1: %4:f32:... = Convolution(%3, %2:f32:3x3x1x8)" WINDOW
                 "weights_format=\"XIO\" groups=8");
}
