/* Products whose operands are codes: integer products and dequantized blocks, on every instruction
 * set, with all layouts, against the reference. */
#include "kernel_case.h"

/* An operand: codes behind Dequantize or DynamicDequantize, perhaps cast. */
typedef struct operand {
    gb_data_type type, zp_type; /* zp_type GB_UNDEF: no zero points */
    bool dynamic, cast, constant;
    int channel;             /* axis with parameters of its own, -1: per tensor */
    const int64_t *group;    /* group_shape of as many axes; NULL: none */
    gb_data_type scale_type; /* of dynamic parameters */
} operand;

static void static_parameters(gb_op *op, const operand *o, int64_t channels)
{
    float scales[256];
    int64_t zps[256], count = o->channel < 0 ? 1 : channels;
    for (int64_t i = 0; i < count; i++) {
        scales[i] = 0.01F + 0.002F * (float)(i % 7);
        zps[i] = (i * 5) % 11 - 4;
    }
    kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, (size_t)count, scales));
    if (o->zp_type != GB_UNDEF)
        kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_ZPS, (size_t)count, zps));
}

static void dynamic_parameters(
        kernel_case *c, gb_op *op, const operand *o, int ndims, const int64_t *dims)
{
    int64_t shape[4] = {1, 1, 1, 1};
    int n = 1;
    if (o->channel >= 0)
        shape[0] = dims[o->channel];
    if (o->group) {
        n = ndims;
        for (int d = 0; d < ndims; d++)
            shape[d] = dims[d] / o->group[d];
        kernel_case_ints(op, GB_ATTR_GROUP_SHAPE, ndims, o->group);
    }
    kernel_case_in(c, op, kernel_case_tensor(c, o->scale_type, n, shape));
    if (o->zp_type != GB_UNDEF)
        kernel_case_in(c, op, kernel_case_tensor(c, o->zp_type, n, shape));
}

static size_t add_operand(kernel_case *c, const operand *o, int ndims, const int64_t *dims)
{
    size_t codes = kernel_case_tensor(c, o->type, ndims, dims);
    if (o->constant)
        c->tensors[codes].property = GB_PROPERTY_CONSTANT;
    if (gb_dtype_is_f(o->type))
        return codes;
    gb_op *op = kernel_case_op(c, o->dynamic ? GB_OP_DYNAMIC_DEQUANTIZE : GB_OP_DEQUANTIZE);
    kernel_case_in(c, op, codes);
    kernel_case_text(op, GB_ATTR_QTYPE,
            o->group         ? "per_group"
            : o->channel < 0 ? "per_tensor"
                             : "per_channel");
    if (o->channel >= 0)
        kernel_case_int(op, GB_ATTR_AXIS, o->channel);
    if (o->dynamic)
        dynamic_parameters(c, op, o, ndims, dims);
    else
        static_parameters(op, o, o->channel < 0 ? 1 : dims[o->channel]);
    size_t out = kernel_case_out(c, op, o->dynamic ? o->scale_type : GB_F32);
    if (!o->cast)
        return out;
    gb_op *cast = kernel_case_op(c, GB_OP_TYPE_CAST);
    kernel_case_in(c, cast, out);
    return kernel_case_out(c, cast, GB_BF16);
}

typedef struct product {
    int64_t m, n, k, batch; /* batch 0: matrices */
    bool transpose_a, transpose_b, bias, quantize;
    operand a, b;
} product;

static size_t add_matmul(kernel_case *c, const product *p)
{
    int batch = p->batch > 0, ndims = 2 + batch;
    int64_t a[3] = {p->batch, p->m, p->k}, b[3] = {p->batch, p->k, p->n};
    if (p->transpose_a)
        a[1] = p->k, a[2] = p->m;
    if (p->transpose_b)
        b[1] = p->n, b[2] = p->k;
    size_t src = add_operand(c, &p->a, ndims, a + 1 - batch);
    size_t weights = add_operand(c, &p->b, ndims, b + 1 - batch);
    gb_data_type type = c->tensors[src].data_type;
    gb_op *op = kernel_case_op(c, GB_OP_MATMUL);
    kernel_case_in(c, op, src);
    kernel_case_in(c, op, weights);
    if (p->bias)
        kernel_case_in(c, op, kernel_case_tensor(c, type, 1, &p->n));
    kernel_case_flag(op, GB_ATTR_TRANSPOSE_A, p->transpose_a);
    kernel_case_flag(op, GB_ATTR_TRANSPOSE_B, p->transpose_b);
    return kernel_case_out(c, op, type);
}

static void run(const product *p, const char *name)
{
    kernel_case c = {.scale = 9};
    size_t result = add_matmul(&c, p);
    if (p->quantize) {
        gb_op *relu = kernel_case_op(&c, GB_OP_RELU), *op;
        kernel_case_in(&c, relu, result);
        result = kernel_case_out(&c, relu, c.tensors[result].data_type);
        if (c.tensors[result].data_type != GB_F32) {
            gb_op *cast = kernel_case_op(&c, GB_OP_TYPE_CAST);
            kernel_case_in(&c, cast, result);
            result = kernel_case_out(&c, cast, GB_F32);
        }
        op = kernel_case_op(&c, GB_OP_QUANTIZE);
        kernel_case_in(&c, op, result);
        kernel_case_float(op, GB_ATTR_SCALES, 0.25F);
        kernel_case_int(op, GB_ATTR_ZPS, 3);
        kernel_case_out(&c, op, GB_U8);
    }
    /* 4-bit elements lie next to each other. */
    c.dense_only = p->a.type == GB_U4 || p->b.type == GB_U4 || p->a.type == GB_S4 ||
                   p->b.type == GB_S4 || p->b.zp_type == GB_U4 || p->b.zp_type == GB_S4;
    kernel_case_run(&c, name);
    cr_assert_eq(c.intermediates, 0, "%s: %zu bytes in between", name, c.intermediates);
}

static const operand signed_tensor = {.type = GB_S8, .zp_type = GB_UNDEF, .channel = -1};
static const operand unsigned_tensor = {.type = GB_U8, .zp_type = GB_S64, .channel = -1};

KERNEL_TEST(compressed_matmul, integers)
{
    static const gb_data_type bytes[] = {GB_S8, GB_U8};
    for (int i = 0; i < 16; i++) {
        product p = {.m = 5 + 13 * (i % 4), .n = 1 + 19 * (i % 5), .k = 3 + 29 * (i % 6)};
        p.transpose_a = i & 1, p.transpose_b = i & 2;
        p.bias = i & 4, p.quantize = i & 8;
        p.a = (operand){.type = bytes[i & 1], .zp_type = i % 3 ? GB_S64 : GB_UNDEF, .channel = -1};
        p.b = (operand){.type = bytes[i / 2 & 1], .zp_type = i % 5 > 2 ? GB_S64 : GB_UNDEF};
        p.b.channel = i % 4 == 0 ? -1 : p.transpose_b ? 0 : 1;
        p.a.cast = p.b.cast = i % 7 == 3;
        p.b.constant = i % 3 == 1;
        run(&p, "integers");
    }
}

KERNEL_TEST(compressed_matmul, integers_of_many_blocks)
{
    product p = {.m = 45, .n = 70, .k = 4000, .a = unsigned_tensor, .b = signed_tensor};
    p.b.channel = 1;
    p.b.constant = true;
    run(&p, "long K");
    p.b = unsigned_tensor;
    p.transpose_b = true;
    run(&p, "long K, zero points on both sides");
    p = (product){.m = 20, .n = 40, .k = 60, .batch = 3, .a = unsigned_tensor, .b = signed_tensor};
    p.b.channel = 0;
    run(&p, "parameters per batch");
}

KERNEL_TEST(compressed_matmul, integers_with_dynamic_parameters)
{
    product p = {.m = 33, .n = 41, .k = 77};
    p.a = (operand){GB_U8, GB_U8, .dynamic = true, .channel = -1, .scale_type = GB_F32};
    p.b = (operand){GB_S8, GB_S8, .dynamic = true, .channel = 1, .scale_type = GB_F32};
    run(&p, "dynamic");
    p.b.zp_type = GB_S32; /* of any size: not as integers */
    run(&p, "dynamic, wide zero points");
    p.a.channel = 0; /* parameters per row */
    run(&p, "dynamic, rows");
    p.a.channel = 1; /* along K */
    p.b.channel = 0;
    run(&p, "dynamic, along K");
}

KERNEL_TEST(compressed_matmul, weights_in_groups)
{
    static const int64_t groups[][2] = {{32, 1}, {1, 16}, {16, 8}, {96, 1}, {1, 64}, {8, 32}};
    static const gb_data_type types[] = {GB_U4, GB_S4, GB_U8, GB_S8};
    static const int64_t rows[] = {1, 3, 20, 40};
    for (int i = 0; i < 24; i++) {
        int64_t turned[2] = {groups[i % 6][1], groups[i % 6][0]};
        product p = {.m = rows[i % 4], .n = 64 * (1 + i % 2), .k = 96, .transpose_b = i & 4};
        p.a = (operand){.type = i % 5 == 4 ? GB_BF16 : GB_F32};
        p.b = (operand){types[i / 6], i % 3 ? types[i / 6] : GB_UNDEF, .dynamic = true,
                .channel = -1, .group = p.transpose_b ? turned : groups[i % 6]};
        p.b.scale_type = p.a.type;
        p.bias = i & 1;
        run(&p, "groups");
    }
}

KERNEL_TEST(compressed_matmul, codes_of_8_bits)
{
    static const gb_data_type types[] = {GB_F8_E4M3, GB_F8_E5M2, GB_S8, GB_U8};
    for (int i = 0; i < 8; i++) {
        product p = {.m = i & 4 ? 1 : 37, .n = 50, .k = 65, .transpose_a = i == 5};
        p.a = i % 3 == 0 ? (operand){.type = GB_F32}
                         : (operand){.type = types[(i + 1) % 4], .channel = i % 3 - 2};
        p.b = (operand){.type = types[i % 4], .channel = i & 1};
        p.quantize = i & 2;
        run(&p, "8 bits");
    }
}

/* Two readers expand one value, each for itself; a third one that does not stops both. */
KERNEL_TEST(compressed_matmul, shared_operand)
{
    for (int outside = 0; outside < 2; outside++) {
        kernel_case c = {.scale = 9};
        int64_t dims[2] = {24, 24};
        size_t shared = add_operand(&c, &signed_tensor, 2, dims);
        for (int i = 0; i < 2; i++) {
            size_t other = add_operand(&c, &unsigned_tensor, 2, dims);
            gb_op *op = kernel_case_op(&c, GB_OP_MATMUL);
            kernel_case_in(&c, op, i ? shared : other);
            kernel_case_in(&c, op, i ? other : shared);
            kernel_case_out(&c, op, GB_F32);
        }
        if (outside) {
            gb_op *op = kernel_case_op(&c, GB_OP_RELU);
            kernel_case_in(&c, op, shared);
            kernel_case_out(&c, op, GB_F32);
        }
        kernel_case_run(&c, "shared");
    }
}

/* Pointwise convolutions, either order of the channels. */
KERNEL_TEST(compressed_matmul, pointwise_convolutions)
{
    static const gb_data_type types[] = {GB_U8, GB_S8};
    for (int i = 0; i < 8; i++) {
        kernel_case c = {.scale = 9};
        bool last = i & 1;
        int64_t src[4] = {2, 20, 5, 7}, last_src[4] = {2, 5, 7, 20}, weights[4] = {24, 20, 1, 1};
        const int64_t ones[] = {1, 1}, zeros[] = {0, 0};
        operand a = {.type = types[i / 2 & 1], .zp_type = i & 4 ? GB_S64 : GB_UNDEF, .channel = -1};
        operand b = {.type = GB_S8, .channel = i == 5 ? -1 : 0, .constant = i & 2};
        size_t x = add_operand(&c, &a, 4, last ? last_src : src);
        size_t w = add_operand(&c, &b, 4, weights);
        gb_op *op = kernel_case_op(&c, GB_OP_CONVOLUTION);
        kernel_case_in(&c, op, x);
        kernel_case_in(&c, op, w);
        kernel_case_ints(op, GB_ATTR_STRIDES, 2, ones);
        kernel_case_ints(op, GB_ATTR_DILATIONS, 2, ones);
        kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, zeros);
        kernel_case_ints(op, GB_ATTR_PADS_END, 2, zeros);
        kernel_case_text(op, GB_ATTR_DATA_FORMAT, last ? "NXC" : "NCX");
        kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT, "OIX");
        size_t y = kernel_case_out(&c, op, GB_F32);
        op = kernel_case_op(&c, GB_OP_QUANTIZE);
        kernel_case_in(&c, op, y);
        kernel_case_float(op, GB_ATTR_SCALES, 0.25F);
        kernel_case_int(op, GB_ATTR_ZPS, 3);
        kernel_case_out(&c, op, GB_U8);
        kernel_case_run(&c, "pointwise");
        cr_assert_eq(c.intermediates, 0, "%zu bytes in between", c.intermediates);
    }
}
