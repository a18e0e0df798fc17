/* Quantisation ops and quantised graphs against the reference and known values, at every
 * instruction set. */
#include "kernel_case.h"

static const gb_data_type quantized[] = {GB_S8, GB_U8, GB_F8_E5M2, GB_F8_E4M3};
static const gb_data_type floats[] = {GB_F32, GB_BF16, GB_F16};

static bool is_integer(gb_data_type type)
{
    return type == GB_S8 || type == GB_U8;
}

/* Attributes of static ops: one scale (and zero point), or `count` along `axis`. */
static void set_static(gb_op *op, int64_t axis, size_t count, bool zps)
{
    float scales[64];
    int64_t zero_points[64];
    for (size_t i = 0; i < count; i++) {
        scales[i] = count == 1 ? 0.37F : 0.11F + 0.07F * (float)i;
        zero_points[i] = count == 1 ? 5 : (int64_t)(i * 5 % 17) - 8;
    }
    kernel_case_text(op, GB_ATTR_QTYPE, axis < 0 ? "per_tensor" : "per_channel");
    if (axis >= 0)
        kernel_case_int(op, GB_ATTR_AXIS, axis);
    kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, count, scales));
    if (zps)
        kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_ZPS, count, zero_points));
}

static gb_op *add_op(kernel_case *c, gb_op_kind kind, size_t src)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_in(c, op, src);
    return op;
}

static size_t quantize(kernel_case *c, size_t src, gb_data_type type, bool zps)
{
    gb_op *op = add_op(c, GB_OP_QUANTIZE, src);
    set_static(op, -1, 1, zps && is_integer(type));
    return kernel_case_out(c, op, type);
}

static size_t dequantize(kernel_case *c, size_t src, bool zps)
{
    gb_op *op = add_op(c, GB_OP_DEQUANTIZE, src);
    set_static(op, -1, 1, zps && is_integer(c->tensors[src].data_type));
    return kernel_case_out(c, op, GB_F32);
}

static size_t unary(kernel_case *c, gb_op_kind kind, size_t src, gb_data_type type)
{
    return kernel_case_out(c, add_op(c, kind, src), type);
}

static size_t binary(kernel_case *c, gb_op_kind kind, size_t a, size_t b, gb_data_type type)
{
    gb_op *op = add_op(c, kind, a);
    kernel_case_in(c, op, b);
    return kernel_case_out(c, op, type);
}

/* --------------------------------------------------------------------------------- single ops */

static void run_static(gb_op_kind kind, gb_data_type type, int64_t axis, bool zps, bool special)
{
    static const int64_t dims[] = {3, 5, 37};
    kernel_case c = {.scale = 60, .special = special};
    bool forward = kind == GB_OP_QUANTIZE;
    gb_op *op = add_op(&c, kind, kernel_case_tensor(&c, forward ? GB_F32 : type, 3, dims));
    set_static(op, axis, axis < 0 ? 1 : (size_t)dims[axis], zps && is_integer(type));
    kernel_case_out(&c, op, forward ? type : GB_F32);
    char name[96];
    snprintf(name, sizeof name, "%s %s axis %d", gb_op_kind_name(kind), gb_data_type_name(type),
            (int)axis);
    kernel_case_run(&c, name);
}

KERNEL_TEST(quantize, static_parameters)
{
    for (size_t t = 0; t < 4; t++)
        for (int64_t axis = -1; axis < 3; axis++)
            for (int zps = 0; zps < 2; zps++) {
                run_static(GB_OP_QUANTIZE, quantized[t], axis, zps, false);
                run_static(GB_OP_DEQUANTIZE, quantized[t], axis, zps, false);
            }
}

KERNEL_TEST(quantize, special_values)
{
    for (size_t t = 2; t < 4; t++) {
        run_static(GB_OP_QUANTIZE, quantized[t], -1, false, true);
        run_static(GB_OP_DEQUANTIZE, quantized[t], -1, false, true);
    }
}

typedef struct dynamic_case {
    gb_op_kind kind;
    gb_data_type src, scales, zps; /* zps GB_UNDEF: none */
    const char *qtype;
    int64_t group[3]; /* per_group */
} dynamic_case;

static void run_dynamic(const dynamic_case *d)
{
    static const int64_t dims[] = {3, 12, 34};
    kernel_case c = {.scale = 9};
    int64_t parameters[3] = {1};
    bool per_group = strcmp(d->qtype, "per_group") == 0;
    for (int i = 0; per_group && i < 3; i++)
        parameters[i] = dims[i] / d->group[i];
    if (strcmp(d->qtype, "per_channel") == 0)
        parameters[0] = dims[1];
    int ndims = per_group ? 3 : 1;
    bool forward = d->kind == GB_OP_DYNAMIC_QUANTIZE;
    gb_op *op = add_op(&c, d->kind, kernel_case_tensor(&c, forward ? GB_F32 : d->src, 3, dims));
    kernel_case_in(&c, op, kernel_case_tensor(&c, d->scales, ndims, parameters));
    if (d->zps != GB_UNDEF)
        kernel_case_in(&c, op, kernel_case_tensor(&c, d->zps, ndims, parameters));
    kernel_case_text(op, GB_ATTR_QTYPE, d->qtype);
    if (per_group)
        kernel_case_ints(op, GB_ATTR_GROUP_SHAPE, 3, d->group);
    kernel_case_out(&c, op, forward ? d->src : d->scales);
    char name[96];
    snprintf(name, sizeof name, "%s %s, %s, zps %s", gb_op_kind_name(d->kind), d->qtype,
            gb_data_type_name(d->src), gb_data_type_name(d->zps));
    kernel_case_run(&c, name);
}

KERNEL_TEST(quantize, dynamic_quantize)
{
    static const gb_data_type zps[] = {GB_UNDEF, GB_U8, GB_S8, GB_S32};
    static const char *const qtypes[] = {"per_tensor", "per_channel"};
    for (int i = 0; i < 16; i++) {
        dynamic_case d = {GB_OP_DYNAMIC_QUANTIZE, quantized[i % 2], GB_F32, zps[i / 2 % 4],
                qtypes[i / 8], {0}};
        run_dynamic(&d);
    }
}

KERNEL_TEST(quantize, dynamic_dequantize)
{
    static const gb_data_type types[] = {GB_S8, GB_U8, GB_S4, GB_U4};
    static const gb_data_type zps[] = {GB_UNDEF, GB_U4, GB_S4, GB_U8, GB_S8, GB_S32};
    static const char *const qtypes[] = {"per_tensor", "per_channel"};
    for (int i = 0; i < 48; i++) {
        dynamic_case d = {GB_OP_DYNAMIC_DEQUANTIZE, types[i % 4], floats[i % 3], zps[i / 4 % 6],
                qtypes[i / 24], {0}};
        run_dynamic(&d);
    }
}

KERNEL_TEST(quantize, groups)
{
    static const gb_data_type types[] = {GB_S8, GB_U8, GB_S4, GB_U4};
    static const gb_data_type zps[] = {GB_UNDEF, GB_U4, GB_S4, GB_U8, GB_S8, GB_S32};
    static const int64_t groups[][3] = {{1, 1, 17}, {1, 4, 1}, {1, 3, 2}, {1, 12, 34}, {1, 1, 1}};
    for (int i = 0; i < 60; i++) {
        const int64_t *group = groups[i % 5];
        dynamic_case d = {GB_OP_DYNAMIC_DEQUANTIZE, types[i % 4], floats[i % 3], zps[i / 10],
                "per_group", {group[0], group[1], group[2]}};
        run_dynamic(&d);
    }
}

/* ------------------------------------------------------------------------------- known values */

/* The one element that the op makes of `src`. */
static double one_value(double src, gb_data_type type, float scale, int64_t zp)
{
    kernel_case c = {0};
    size_t in = kernel_case_tensor(&c, GB_F32, SHAPE(1));
    c.is_fixed[in] = true;
    c.fixed[in] = src;
    gb_op *op = add_op(&c, GB_OP_QUANTIZE, in);
    kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 1, &scale));
    if (zp)
        kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_ZPS, 1, &zp));
    size_t out = kernel_case_out(&c, op, type);
    gb_engine *engine;
    gb_stream *stream;
    kernel_case_graph(&c, LAYOUT_DENSE);
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    kernel_ok(gb_stream_create(&stream, engine));
    kernel_memory memory[KERNEL_CASE_TENSORS] = {{0}};
    for (size_t id = 0; id < c.n_tensors; id++)
        memory[id] = kernel_case_alloc(&c, &c.tensors[id]);
    kernel_case_execute(&c, memory, engine, stream);
    double value = gb_element_get(type, memory[out].data, 0);
    for (size_t id = 0; id < c.n_tensors; id++)
        kernel_case_free(&memory[id]);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
    gb_graph_destroy(c.graph);
    gb_op_destroy(op);
    return value;
}

KERNEL_TEST(quantize, known_values)
{
    static const struct {
        double src;
        gb_data_type type;
        float scale;
        int64_t zp;
        double dst;
    } known[] = {
            {0.5, GB_S8, 1, 0, 0}, {1.5, GB_S8, 1, 0, 2}, {2.5, GB_S8, 1, 0, 2},
            {-0.5, GB_S8, 1, 0, 0}, {-2.5, GB_S8, 1, 0, -2}, {130, GB_S8, 1, 0, 127},
            {-129, GB_S8, 1, 0, -128},
            {0.5, GB_S8, 1, 1, 2}, /* the zero point is added before rounding */
            {-0.75, GB_S8, 0.5F, 3, 2}, {-2.5, GB_U8, 1, 0, 0}, {130, GB_U8, 1, 0, 130},
            {300, GB_U8, 1, 0, 255},
            {1.54999995F, GB_S8, 0.1F, 0, 15}, /* a product with 1 / scale lies on the tie */
            {464, GB_F8_E4M3, 1, 0, 448},
            {61423, GB_F8_E5M2, 1, 0, 57344}, /* 61424 becomes 61440 in f16, then inf */
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double dst = one_value(known[i].src, known[i].type, known[i].scale, known[i].zp);
        cr_assert_eq(dst, known[i].dst, "vector %zu: got %g, expected %g", i, dst, known[i].dst);
    }
    cr_assert(isnan(one_value(465, GB_F8_E4M3, 1, 0)));
    cr_assert(isinf(one_value(61440, GB_F8_E5M2, 1, 0)));
}

/* ----------------------------------------------------------------------------- quantised graphs */

static size_t operand(kernel_case *c, gb_data_type type, int ndims, const int64_t *dims, bool mixed)
{
    size_t value = dequantize(c, kernel_case_tensor(c, type, ndims, dims), true);
    return mixed ? unary(c, GB_OP_TYPE_CAST, value, GB_BF16) : value;
}

/* Product, sum with a quantised tensor, chain, quantisation; with a cast in mixed precision. */
KERNEL_TEST(quantize, matmul)
{
    for (int i = 0; i < 8; i++) {
        bool mixed = i / 4;
        gb_data_type type = quantized[i % 4], inner = mixed ? GB_BF16 : GB_F32;
        kernel_case c = {.scale = 4};
        size_t src = operand(&c, type, SHAPE(13, 21), mixed);
        size_t weights = operand(&c, type == GB_U8 ? GB_S8 : type, SHAPE(21, 17), mixed);
        size_t value = binary(&c, GB_OP_MATMUL, src, weights, inner);
        value = binary(&c, GB_OP_ADD, value, operand(&c, type, SHAPE(13, 17), mixed), inner);
        value = unary(&c, GB_OP_RELU, value, inner);
        if (mixed)
            value = unary(&c, GB_OP_TYPE_CAST, value, GB_F32);
        quantize(&c, value, type, true);
        kernel_case_run(&c, mixed ? "mixed matmul" : "matmul");
    }
}

/* Weights that are quantised inside keep the loss of precision. */
KERNEL_TEST(quantize, pair_keeps_its_loss)
{
    for (size_t t = 0; t < 4; t++) {
        kernel_case c = {.scale = 3};
        size_t src = operand(&c, GB_S8, SHAPE(6, 19), false);
        size_t raw = kernel_case_tensor(&c, GB_F32, SHAPE(19, 23));
        size_t weights = dequantize(&c, quantize(&c, raw, quantized[t], true), true);
        binary(&c, GB_OP_MATMUL, src, weights, GB_F32);
        kernel_case_run(&c, "weights quantised inside");
    }
}

KERNEL_TEST(quantize, behind_anchors)
{
    static const gb_op_kind kinds[] = {GB_OP_SOFTMAX, GB_OP_LAYER_NORM, GB_OP_AVG_POOL};
    for (int i = 0; i < 12; i++) {
        gb_op_kind kind = kinds[i / 4];
        kernel_case c = {.scale = 5};
        gb_data_type type = quantized[i % 4];
        size_t src = operand(&c, type, SHAPE(2, 3, 9, 10), false);
        gb_op *op = add_op(&c, kind, src);
        if (kind == GB_OP_LAYER_NORM)
            kernel_case_flag(op, GB_ATTR_KEEP_STATS, false);
        if (kind == GB_OP_LAYER_NORM)
            kernel_case_flag(op, GB_ATTR_USE_AFFINE, false);
        if (kind == GB_OP_AVG_POOL) {
            kernel_case_ints(op, GB_ATTR_KERNEL, 2, (int64_t[]){2, 3});
            kernel_case_ints(op, GB_ATTR_STRIDES, 2, (int64_t[]){2, 1});
            kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, (int64_t[]){0, 1});
            kernel_case_ints(op, GB_ATTR_PADS_END, 2, (int64_t[]){0, 1});
            kernel_case_flag(op, GB_ATTR_EXCLUDE_PAD, true);
            kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
        }
        size_t value = unary(&c, GB_OP_TANH, kernel_case_out(&c, op, GB_F32), GB_F32);
        quantize(&c, value, type, true);
        kernel_case_run(&c, gb_op_kind_name(kind));
    }
}

KERNEL_TEST(quantize, concat)
{
    for (size_t t = 0; t < 4; t++) {
        kernel_case c = {.scale = 20};
        gb_op *op = NULL;
        size_t inputs[5];
        for (int i = 0; i < 5; i++)
            inputs[i] = operand(&c, quantized[t], SHAPE(3, 2 + i, 7), false);
        op = kernel_case_op(&c, GB_OP_CONCAT);
        for (int i = 0; i < 5; i++)
            kernel_case_in(&c, op, inputs[i]);
        kernel_case_int(op, GB_ATTR_AXIS, 1);
        quantize(&c, kernel_case_out(&c, op, GB_F32), quantized[t], true);
        kernel_case_run(&c, "concat");
    }
}

KERNEL_TEST(quantize, attention)
{
    for (size_t t = 0; t < 4; t++) {
        kernel_case c = {.scale = 4};
        size_t query = operand(&c, quantized[t], SHAPE(2, 3, 11, 8), false);
        size_t key = operand(&c, quantized[t], SHAPE(2, 3, 8, 13), false);
        size_t scores = binary(&c, GB_OP_MATMUL, query, key, GB_F32);
        size_t softmax = unary(&c, GB_OP_SOFTMAX, scores, GB_F32);
        size_t stored = dequantize(&c, quantize(&c, softmax, quantized[t], true), true);
        size_t values = operand(&c, quantized[t], SHAPE(2, 3, 13, 8), false);
        quantize(&c, binary(&c, GB_OP_MATMUL, stored, values, GB_F32), quantized[t], true);
        kernel_case_run(&c, "attention");
    }
}

/* Grouped 4-bit weights in front of a product: two partitions. */
KERNEL_TEST(quantize, weights_of_4_bits)
{
    for (int i = 0; i < 2; i++) {
        kernel_case c = {.scale = 3};
        gb_data_type type = i ? GB_U4 : GB_S4;
        gb_op *op =
                add_op(&c, GB_OP_DYNAMIC_DEQUANTIZE, kernel_case_tensor(&c, type, SHAPE(32, 19)));
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(4, 19)));
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_U8, SHAPE(4, 19)));
        kernel_case_text(op, GB_ATTR_QTYPE, "per_group");
        kernel_case_ints(op, GB_ATTR_GROUP_SHAPE, 2, (int64_t[]){8, 1});
        size_t weights = kernel_case_out(&c, op, GB_F32);
        size_t src = kernel_case_tensor(&c, GB_F32, SHAPE(5, 32));
        binary(&c, GB_OP_MATMUL, src, weights, GB_F32);
        kernel_case_run(&c, "weights of 4 bits");
    }
}

/* Parameters count the channels of all groups, the axis those of one. */
KERNEL_TEST(quantize, weights_of_grouped_conv_transpose)
{
    static const char *const formats[] = {"IOX", "XOI"};
    static const int64_t shapes[][4] = {{8, 3, 2, 3}, {2, 3, 3, 8}};
    for (int i = 0; i < 2; i++) {
        kernel_case c = {.scale = 5};
        size_t src = operand(&c, GB_U8, SHAPE(2, 8, 5, 6), false);
        gb_op *scaled = add_op(&c, GB_OP_DEQUANTIZE, kernel_case_tensor(&c, GB_S8, 4, shapes[i]));
        set_static(scaled, i ? 2 : 1, 12, true);
        gb_op *op = add_op(&c, GB_OP_CONV_TRANSPOSE, src);
        kernel_case_in(&c, op, kernel_case_out(&c, scaled, GB_F32));
        kernel_case_ints(op, GB_ATTR_STRIDES, 2, (int64_t[]){2, 1});
        kernel_case_ints(op, GB_ATTR_DILATIONS, 2, (int64_t[]){1, 1});
        kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, (int64_t[]){0, 1});
        kernel_case_ints(op, GB_ATTR_PADS_END, 2, (int64_t[]){0, 1});
        kernel_case_int(op, GB_ATTR_GROUPS, 4);
        kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
        kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT, formats[i]);
        quantize(&c, kernel_case_out(&c, op, GB_F32), GB_S8, true);
        kernel_case_run(&c, formats[i]);
    }
}

/* No element, and parameters in order nevertheless. */
KERNEL_TEST(quantize, empty)
{
    kernel_case c = {0};
    gb_op *op = add_op(&c, GB_OP_QUANTIZE, kernel_case_tensor(&c, GB_F32, SHAPE(0, 5, 3)));
    set_static(op, 1, 5, true);
    kernel_case_out(&c, op, GB_S8);
    kernel_case_run(&c, "empty");
}
