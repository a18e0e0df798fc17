/* Families that one kernel runs: right results, and nothing written in between. */
#include "kernel_case.h"

static kernel_case c;

static size_t input(gb_data_type type, int ndims, const int64_t *dims)
{
    return kernel_case_tensor(&c, type, ndims, dims);
}

static size_t unary(gb_op_kind kind, gb_data_type type, size_t in)
{
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_in(&c, op, in);
    return kernel_case_out(&c, op, type);
}

static size_t binary(gb_op_kind kind, gb_data_type type, size_t a, size_t b)
{
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_in(&c, op, a);
    kernel_case_in(&c, op, b);
    return kernel_case_out(&c, op, type);
}

static size_t convert(gb_op_kind kind, gb_data_type type, size_t in, float scale, int64_t zp)
{
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_in(&c, op, in);
    kernel_case_float(op, GB_ATTR_SCALES, scale);
    if (zp)
        kernel_case_ints(op, GB_ATTR_ZPS, 1, &zp);
    return kernel_case_out(&c, op, type);
}

/* One partition, which writes nothing but its results, in every layout. */
static void expect_nothing_between(const char *name)
{
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        kernel_case_run_layout(&c, (kernel_layout)layout, name);
        cr_expect_eq(c.n_partitions, 1, "%s: %zu partitions", name, c.n_partitions);
        cr_expect_eq(c.intermediates, 0, "%s, layout %d: %zu bytes in between by %s", name, layout,
                c.intermediates, c.kernels);
    }
    for (size_t i = 0; i < c.n_ops; i++)
        gb_op_destroy(c.ops[i]);
    c = (kernel_case){0};
}

/* Convolutions ------------------------------------------------------------------------------- */

static size_t convolve(
        gb_op_kind kind, size_t src, size_t weights, int64_t size, int64_t stride, int64_t groups)
{
    gb_op *op = kernel_case_op(&c, kind);
    int64_t pad = size / 2;
    kernel_case_in(&c, op, src);
    kernel_case_in(&c, op, weights);
    kernel_case_ints(op, GB_ATTR_STRIDES, 2, (const int64_t[]){stride, stride});
    kernel_case_ints(op, GB_ATTR_DILATIONS, 2, (const int64_t[]){1, 1});
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, (const int64_t[]){pad, pad});
    kernel_case_ints(op, GB_ATTR_PADS_END, 2, (const int64_t[]){pad, pad});
    kernel_case_int(op, GB_ATTR_GROUPS, groups);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT, kind == GB_OP_CONVOLUTION ? "OIX" : "IOX");
    return kernel_case_out(&c, op, GB_F32);
}

static size_t constant(gb_data_type type, int ndims, const int64_t *dims)
{
    size_t id = input(type, ndims, dims);
    c.tensors[id].property = GB_PROPERTY_CONSTANT;
    return id;
}

/* Those that integers do not serve copy codes as numbers. */
KERNEL_TEST(intermediates, convolutions_read_codes)
{
    static const struct {
        gb_op_kind kind;
        gb_data_type codes;
        int64_t zero_point, stride, weights[4], groups;
    } forms[] = {
            {GB_OP_CONVOLUTION, GB_U8, 100, 1, {24, 1, 3, 3}, 24},
            {GB_OP_CONVOLUTION, GB_S8, -3, 2, {24, 1, 5, 5}, 24},
            {GB_OP_CONVOLUTION, GB_U8, 90, 1, {48, 1, 3, 3}, 24}, /* two of each channel */
            {GB_OP_CONVOLUTION, GB_F8_E5M2, 0, 1, {16, 6, 3, 3}, 4},
            {GB_OP_CONVOLUTION, GB_F8_E4M3, 0, 2, {20, 24, 3, 3}, 1},
            {GB_OP_CONV_TRANSPOSE, GB_S8, 5, 2, {24, 9, 3, 3}, 1},
            {GB_OP_CONV_TRANSPOSE, GB_U8, 90, 2, {24, 1, 3, 3}, 24},
            {GB_OP_CONV_TRANSPOSE, GB_S8, -4, 2, {24, 4, 3, 3}, 24},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        bool integer = forms[i].codes == GB_S8 || forms[i].codes == GB_U8;
        gb_data_type weights = integer ? GB_S8 : forms[i].codes;
        c = (kernel_case){.scale = integer ? 100 : 1, .offset = forms[i].codes == GB_U8 ? 100 : 0};
        size_t x = input(forms[i].codes, SHAPE(2, 24, 9, 11));
        x = convert(GB_OP_DEQUANTIZE, GB_F32, x, 0.1F, forms[i].zero_point);
        size_t w = constant(weights, 4, forms[i].weights);
        w = convert(GB_OP_DEQUANTIZE, GB_F32, w, 0.02F, 0);
        size_t y = convolve(
                forms[i].kind, x, w, forms[i].weights[2], forms[i].stride, forms[i].groups);
        convert(GB_OP_QUANTIZE, forms[i].codes, unary(GB_OP_RELU, GB_F32, y), 0.5F, 0);
        expect_nothing_between("convolution of codes");
    }
}

static size_t by_channel(gb_op_kind kind, gb_data_type type, size_t in)
{
    float scales[24];
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_in(&c, op, in);
    for (int i = 0; i < 24; i++)
        scales[i] = 0.01F * (float)(i + 1);
    kernel_case_text(op, GB_ATTR_QTYPE, "per_channel");
    kernel_case_int(op, GB_ATTR_AXIS, 0);
    kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 24, scales));
    return kernel_case_out(&c, op, type);
}

/* Constant weights are prepared once, also with a scale for each channel. */
KERNEL_TEST(intermediates, weights_with_scales_by_channel_are_constants)
{
    for (int quantized = 0; quantized < 2; quantized++) {
        c = (kernel_case){.scale = quantized ? 1 : 100};
        size_t x = input(GB_S8, SHAPE(2, 24, 9, 11));
        x = convert(GB_OP_DEQUANTIZE, GB_F32, x, 0.1F, 3);
        size_t w = constant(quantized ? GB_F32 : GB_S8, SHAPE(24, 1, 3, 3));
        if (quantized)
            w = by_channel(GB_OP_QUANTIZE, GB_S8, w);
        w = by_channel(GB_OP_DEQUANTIZE, GB_F32, w);
        convolve(GB_OP_CONVOLUTION, x, w, 3, 1, 24);
        expect_nothing_between("scales by channel");
    }
}

/* What reads the result of either convolution twice runs behind it as well. */
KERNEL_TEST(intermediates, a_pair_of_convolutions_takes_a_swish)
{
    setenv("GB_CACHES", "::4", 1); /* any image is large; has not been asked for */
    c = (kernel_case){.scale = 1};
    size_t y = convolve(GB_OP_CONVOLUTION, input(GB_F32, SHAPE(2, 8, 12, 10)),
            input(GB_F32, SHAPE(24, 8, 1, 1)), 1, 1, 1);
    y = unary(GB_OP_RELU, GB_F32, y);
    y = binary(GB_OP_MULTIPLY, GB_F32, unary(GB_OP_HARD_SWISH, GB_F32, y), y);
    y = convolve(GB_OP_CONVOLUTION, y, input(GB_F32, SHAPE(24, 1, 3, 3)), 3, 2, 24);
    y = binary(GB_OP_MULTIPLY, GB_F32, unary(GB_OP_SIGMOID, GB_F32, y), y);
    binary(GB_OP_ADD, GB_F32, y, input(GB_F32, SHAPE(2, 24, 6, 5)));
    c.dense_only = true;
    kernel_case_run_layout(&c, LAYOUT_DENSE, "pair");
    cr_expect_eq(c.n_partitions, 1);
    cr_expect_eq(c.intermediates, 0, "%zu bytes in between by %s", c.intermediates, c.kernels);
    kernel_case_run(&c, "pair");
}

/* Pooling of codes ----------------------------------------------------------------------------- */

typedef struct pool_form {
    gb_op_kind kind;
    gb_data_type codes;
    float scale;
    int64_t zero_point, size, kernel, stride, pad_begin, pad_end;
    bool exclude_pad, channels_last;
} pool_form;

static size_t pool(const pool_form *f, size_t src)
{
    gb_op *op = kernel_case_op(&c, f->kind);
    kernel_case_in(&c, op, src);
    kernel_case_ints(op, GB_ATTR_KERNEL, 2, (const int64_t[]){f->kernel, f->kernel});
    kernel_case_ints(op, GB_ATTR_STRIDES, 2, (const int64_t[]){f->stride, f->stride});
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, (const int64_t[]){f->pad_begin, f->pad_begin});
    kernel_case_ints(op, GB_ATTR_PADS_END, 2, (const int64_t[]){f->pad_end, f->pad_end});
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, f->channels_last ? "NXC" : "NCX");
    if (f->kind == GB_OP_AVG_POOL)
        kernel_case_flag(op, GB_ATTR_EXCLUDE_PAD, f->exclude_pad);
    return kernel_case_out(&c, op, GB_F32);
}

static void pool_of_codes(const pool_form *f)
{
    bool integer = f->codes == GB_S8 || f->codes == GB_U8;
    c = (kernel_case){.scale = integer ? 120 : 3, .offset = f->codes == GB_U8 ? 120 : 0};
    size_t src = f->channels_last ? input(f->codes, SHAPE(2, f->size, f->size, 19))
                                  : input(f->codes, SHAPE(2, 19, f->size, f->size));
    size_t y = pool(f, convert(GB_OP_DEQUANTIZE, GB_F32, src, f->scale, f->zero_point));
    y = unary(GB_OP_ABS, GB_F32, y);
    convert(GB_OP_QUANTIZE, f->codes, y, 2 * f->scale, f->zero_point);
    expect_nothing_between(gb_op_kind_name(f->kind));
}

KERNEL_TEST(intermediates, pools_read_codes)
{
    static const pool_form forms[] = {
            {GB_OP_MAX_POOL, GB_S8, 0.1F, -7, 9, 3, 2, 1, 1, false, false},
            {GB_OP_MAX_POOL, GB_U8, 0.3F, 130, 8, 2, 2, 0, 0, false, true},
            {GB_OP_MAX_POOL, GB_S8, 0.1F, 5, 6, 6, 1, 0, 0, false, false},
            {GB_OP_MAX_POOL, GB_F8_E4M3, 0.5F, 0, 7, 3, 1, 1, 1, false, false},
            {GB_OP_AVG_POOL, GB_S8, 0.1F, 0, 9, 3, 2, 1, 1, true, false},
            {GB_OP_AVG_POOL, GB_S8, 0.1F, -7, 9, 3, 2, 1, 1, true, false},
            {GB_OP_AVG_POOL, GB_S8, 0.1F, -7, 9, 3, 2, 1, 1, false, false},
            {GB_OP_AVG_POOL, GB_U8, 0.3F, 130, 8, 4, 3, 2, 1, false, true},
            {GB_OP_AVG_POOL, GB_U8, 0.3F, 130, 7, 7, 1, 0, 0, true, false},
            {GB_OP_AVG_POOL, GB_S8, 0.1F, 9, 5, 7, 1, 1, 1, false, false},
            {GB_OP_AVG_POOL, GB_S8, -0.1F, 9, 5, 2, 1, 0, 1, false, false},
            {GB_OP_AVG_POOL, GB_F8_E5M2, 0.25F, 0, 8, 3, 2, 1, 0, true, false},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        pool_of_codes(&forms[i]);
}

/* Batch norms in training ---------------------------------------------------------------------- */

typedef struct norm_form {
    int ndims;
    int64_t dims[4];
    bool channels_last;
    int n_inputs; /* 3: without gamma and beta */
    bool special; /* some channels have NaN and infinity */
} norm_form;

static void norm_in_training(const norm_form *f, gb_data_type type, gb_data_type vectors)
{
    c = (kernel_case){.scale = 1, .offset = 0.5, .special = f->special};
    if (f->special)
        c.unbounded = "a channel with an infinity or NaN has no statistics";
    size_t x = input(type, f->ndims, f->dims);
    gb_op *op = kernel_case_op(&c, GB_OP_BATCH_NORM_FORWARD_TRAINING);
    kernel_case_in(&c, op, x);
    for (int i = 1; i < f->n_inputs; i++)
        kernel_case_in(&c, op, input(vectors, 1, &f->dims[f->channels_last ? f->ndims - 1 : 1]));
    kernel_case_float(op, GB_ATTR_EPSILON, 1e-3F);
    kernel_case_float(op, GB_ATTR_MOMENTUM, 0.9F);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, f->channels_last ? "NXC" : "NCX");
    size_t y = kernel_case_out(&c, op, type);
    for (int i = 0; i < 4; i++) /* running and batch statistics */
        kernel_case_out(&c, op, vectors);
    unary(GB_OP_RELU, type, y);
    expect_nothing_between("batch norm in training");
}

/* The ReLU runs where the norm's result is in registers: whole units, tails, segments. */
KERNEL_TEST(intermediates, a_batch_norm_in_training_takes_a_relu)
{
    static const norm_form forms[] = {
            {3, {3, 9, 7}, false, 5, false},
            {4, {2, 33, 5, 19}, false, 3, false},
            {3, {2, 40, 3}, false, 5, true},
            {4, {2, 3, 120, 130}, false, 5, false},
            {3, {4, 37, 33}, true, 5, false},
            {4, {3, 7, 9, 5}, true, 3, false},
            {3, {2, 3, 40}, true, 5, true},
            {2, {3000, 70}, true, 5, false},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        norm_in_training(&forms[i], GB_F32, GB_F32);
        norm_in_training(&forms[i], GB_BF16, i % 2 ? GB_BF16 : GB_F32);
        norm_in_training(&forms[i], GB_F16, GB_F32);
    }
}

/* Gradients ------------------------------------------------------------------------------------ */

/* The gradient of a batch norm takes that of the ReLU in front of it. */
KERNEL_TEST(intermediates, a_batch_norm_gradient_masks_its_input)
{
    const gb_data_type types[] = {GB_F32, GB_BF16};
    const int64_t sizes[] = {7, 300};
    for (int k = 0; k < 4; k++) {
        int i = k % 2;
        c = (kernel_case){.scale = 1, .offset = 0.2};
        size_t signs = input(types[i], SHAPE(3, 9, sizes[i])), ones = input(GB_F32, SHAPE(9));
        size_t gradient = input(types[i], SHAPE(3, 9, sizes[i]));
        gradient = binary(GB_OP_RELU_BACKWARD, types[i], signs, gradient);
        gb_op *op = kernel_case_op(&c, GB_OP_BATCH_NORM_BACKWARD);
        kernel_case_in(&c, op, input(types[i], SHAPE(3, 9, sizes[i])));
        kernel_case_in(&c, op, gradient);
        kernel_case_in(&c, op, input(GB_F32, SHAPE(9)));
        kernel_case_in(&c, op, ones);
        kernel_case_in(&c, op, input(GB_F32, SHAPE(9)));
        c.is_fixed[ones] = true;
        c.fixed[ones] = 1.5;
        kernel_case_float(op, GB_ATTR_EPSILON, 1e-3F);
        kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
        kernel_case_out(&c, op, types[i]);
        for (int vectors = 0; vectors < (k < 2 ? 2 : 0); vectors++) /* or src alone */
            kernel_case_out(&c, op, GB_F32);
        expect_nothing_between("batch norm gradient");
    }
}

/* Side operands -------------------------------------------------------------------------------- */

static size_t codes_times_codes(void)
{
    size_t a = convert(GB_OP_DEQUANTIZE, GB_F32, input(GB_U8, SHAPE(3, 9, 17)), 0.1F, 8);
    size_t b = convert(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, SHAPE(3, 17, 21)), 0.02F, 0);
    return binary(GB_OP_MATMUL, GB_F32, a, b);
}

static size_t codes_over_codes(int64_t stride)
{
    size_t a = convert(GB_OP_DEQUANTIZE, GB_F32, input(GB_U8, SHAPE(2, 5, 7, 8)), 0.1F, 8);
    size_t b = convert(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, SHAPE(6, 5, 3, 3)), 0.02F, 0);
    return convolve(GB_OP_CONVOLUTION, a, b, 3, stride, 1);
}

/* Adds what codes of these dims stand for, and quantises. */
static void add_codes(size_t product, int ndims, const int64_t *dims)
{
    size_t side = convert(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, ndims, dims), 0.3F, 4);
    size_t y = unary(GB_OP_RELU, GB_F32, binary(GB_OP_ADD, GB_F32, product, side));
    convert(GB_OP_QUANTIZE, GB_U8, y, 0.3F, 2);
    expect_nothing_between("sum of codes");
}

/* Operands are made where they are added, repeated or not. */
KERNEL_TEST(intermediates, sums_take_codes)
{
    const kernel_case codes = {.scale = 60, .offset = 60};
    c = codes;
    add_codes(codes_times_codes(), SHAPE(3, 9, 21));
    c = codes;
    add_codes(codes_times_codes(), SHAPE(9, 1));
    c = codes;
    add_codes(codes_times_codes(), SHAPE(1, 1, 1));
    c = codes;
    add_codes(codes_over_codes(1), SHAPE(2, 6, 7, 8));
    c = codes;
    add_codes(codes_over_codes(1), SHAPE(6, 1, 1));
    c = codes;
    add_codes(codes_over_codes(2), SHAPE(1, 1, 1, 1));
}

/* The chain begins with what is repeated. */
KERNEL_TEST(intermediates, chains_begin_with_repeated_operands)
{
    c = (kernel_case){.scale = 2, .offset = 4};
    size_t factor = unary(GB_OP_RECIPROCAL, GB_F32, input(GB_F32, SHAPE(7, 1)));
    binary(GB_OP_MULTIPLY, GB_F32, factor, input(GB_F32, SHAPE(5, 7, 40)));
    expect_nothing_between("reciprocal");
    c = (kernel_case){.scale = 60};
    size_t row = convert(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, SHAPE(33)), 0.1F, 3);
    size_t all = convert(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, SHAPE(4, 6, 33)), 0.2F, 0);
    size_t y = binary(GB_OP_MULTIPLY, GB_F32, row, unary(GB_OP_SIGMOID, GB_F32, all));
    convert(GB_OP_QUANTIZE, GB_S8, y, 0.05F, -2);
    expect_nothing_between("quantised chain");
}

/* Parameters of the axis of a repeated operand lie along the same axis of the space. */
KERNEL_TEST(intermediates, repeated_operands_keep_their_axis)
{
    const float scales[] = {0.1F, 0.2F, 0.3F, 0.4F, 0.5F};
    const int64_t zps[] = {1, -2, 3, -4, 5};
    c = (kernel_case){.scale = 60};
    gb_op *op = kernel_case_op(&c, GB_OP_DEQUANTIZE);
    kernel_case_in(&c, op, input(GB_S8, SHAPE(5, 1)));
    kernel_case_text(op, GB_ATTR_QTYPE, "per_channel");
    kernel_case_int(op, GB_ATTR_AXIS, 0);
    kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, 5, scales));
    kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_ZPS, 5, zps));
    size_t side = kernel_case_out(&c, op, GB_F32);
    size_t all = convert(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, SHAPE(3, 5, 18)), 0.2F, 0);
    convert(GB_OP_QUANTIZE, GB_S8, binary(GB_OP_ADD, GB_F32, all, side), 0.4F, 0);
    expect_nothing_between("per channel");
}

static size_t codes_as_numbers(void)
{
    return convert(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, SHAPE(3, 9, 21)), 0.3F, 4);
}

/* The longest chain of the catalogue, all of binary ops, between a sum and a factor. */
KERNEL_TEST(intermediates, a_whole_chain_runs_behind_its_anchor)
{
    c = (kernel_case){.scale = 3, .offset = 2};
    size_t y = binary(GB_OP_BIAS_ADD, GB_F32, codes_times_codes(), input(GB_F32, SHAPE(21)));
    y = binary(GB_OP_ADD, GB_F32, y, codes_as_numbers());
    for (int i = 0; i < 19; i++)
        y = binary(i % 2 ? GB_OP_MAXIMUM : GB_OP_ADD, GB_F32, y,
                i < 3 ? codes_as_numbers() : input(GB_F32, SHAPE(9, 21)));
    y = binary(GB_OP_MULTIPLY, GB_F32, y, input(GB_F32, SHAPE(21)));
    convert(GB_OP_QUANTIZE, GB_U8, y, 0.3F, 2);
    expect_nothing_between("a whole chain");
}

/* All convolutions of a residual stage read and write codes, which wait for the sums. */
Test(intermediates, residual_stages_keep_codes)
{
    static const char path[] = "/../inputs/graph/complex_fusion/int8_residual_stage_basic.json";
    char file[1024], kernels[KERNEL_CASE_TEXT];
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_engine *engine;
    size_t n_in, n_out;
    snprintf(file, sizeof file, "%s%s", GB_TEST_DATA, path);
    kernel_ok(gb_graph_load(&c.graph, file, NULL, NULL));
    kernel_ok(gb_graph_finalize(c.graph));
    kernel_ok(gb_graph_filter(c.graph, GB_POLICY_FUSION));
    kernel_ok(gb_graph_get_partitions(c.graph, 1, &partition, NULL));
    kernel_ok(gb_partition_get_input_ports(partition, 0, NULL, &n_in));
    kernel_ok(gb_partition_get_output_ports(partition, 0, NULL, &n_out));
    cr_assert(n_in <= KERNEL_CASE_TENSORS && n_out == 1);
    kernel_ok(gb_partition_get_input_ports(partition, n_in, c.tensors, NULL));
    kernel_ok(gb_partition_get_output_ports(partition, n_out, c.tensors + n_in, NULL));
    const gb_logical_tensor *in[KERNEL_CASE_TENSORS], *out = &c.tensors[n_in];
    for (size_t i = 0; i < n_in; i++)
        in[i] = &c.tensors[i];
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    kernel_ok(gb_partition_compile(partition, &compiled, n_in, in, n_out, &out, engine));
    kernel_case_note(&c, compiled);
    snprintf(kernels, sizeof kernels, "%s", c.kernels);
    cr_expect(!strstr(kernels, "+conv+") && !strstr(kernels, "tile"), "%s", kernels);
    gb_compiled_partition_destroy(compiled);
    gb_engine_destroy(engine);
    gb_partition_destroy(partition);
    gb_graph_destroy(c.graph);
}
