/* Dropout and GenIndex: bit for bit, against the reference and against known draws. */
#include "kernel_case.h"
#include "ref/naive.h"

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};

static size_t scalar(kernel_case *c, gb_op *op, gb_data_type type, double value)
{
    size_t id = kernel_case_tensor(c, type, SHAPE(1));
    c->is_fixed[id] = true;
    c->fixed[id] = value;
    kernel_case_in(c, op, id);
    return id;
}

static void dropout(gb_data_type type, int ndims, const int64_t *dims, double seed, double offset,
        double p, bool mask)
{
    kernel_case c = {.scale = 2, .repeated = true};
    gb_op *op = kernel_case_op(&c, GB_OP_DROPOUT);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    scalar(&c, op, GB_S64, seed);
    scalar(&c, op, GB_S64, offset);
    scalar(&c, op, GB_F32, p);
    kernel_case_out(&c, op, type);
    if (mask)
        kernel_case_out(&c, op, GB_U8);
    char name[120];
    snprintf(name, sizeof name, "%s seed %g offset %g p %g", gb_data_type_name(type), seed, offset,
            p);
    kernel_case_run(&c, name);
}

KERNEL_TEST(dropout, sizes)
{
    for (int64_t n = 1; n <= 70; n += 3)
        for (int offset = 0; offset < 2; offset++)
            dropout(types[n % 3], SHAPE(3, n), 123456, offset, 0.5, n % 2);
    for (int t = 0; t < 3; t++) {
        dropout(types[t], SHAPE(9, 5, 1030), 77, 5, 0.25, true);
        dropout(types[t], SHAPE(3, 30, 1030), 77, 0, 0.25, true);
    }
    dropout(GB_F32, SHAPE(3, 0), 1, 1, 0.5, true);
}

KERNEL_TEST(dropout, parameters)
{
    const double probabilities[] = {0, 1, -1, 2, 0.1, 0.999};
    for (int i = 0; i < 6; i++) {
        dropout(GB_F32, SHAPE(5, 41), 123456, 1, probabilities[i], true);
        dropout(GB_F32, SHAPE(5, 41), 123456, 0, probabilities[i], true);
    }
    dropout(GB_F32, SHAPE(5, 41), -0x1p62, 0x1p40 + 3, 0.5, true);
    dropout(GB_F32, SHAPE(5, 41), 0x1p33 + 0x1p20, 0, 0.5, true);
}

/* Runs Dropout on ones with host scalars; the mask goes to `mask`. */
static void dropout_mask(int64_t seed, int64_t offset, float p, int64_t n, uint8_t *mask)
{
    gb_logical_tensor t[6];
    const gb_logical_tensor *inputs[] = {&t[0], &t[1], &t[2], &t[3]}, *outputs[] = {&t[4], &t[5]};
    const void *scalars[] = {&seed, &offset, &p};
    float *src = malloc((size_t)n * sizeof *src), *dst = malloc((size_t)n * sizeof *dst);
    void *memory[] = {src, NULL, NULL, NULL, dst, mask};
    gb_tensor *tensors[6];
    gb_engine *engine;
    gb_stream *stream;
    gb_op *op;
    gb_partition *partition;
    gb_compiled_partition *compiled;
    kernel_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    kernel_ok(gb_stream_create(&stream, engine));
    kernel_ok(gb_op_create(&op, 1, GB_OP_DROPOUT, "dropout"));
    for (size_t i = 0; i < 6; i++) {
        gb_data_type type = i == 5 ? GB_U8 : i == 1 || i == 2 ? GB_S64 : GB_F32;
        if (i > 0 && i < 4) {
            kernel_ok(gb_logical_tensor_init(
                    &t[i], i, type, 0, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR));
            kernel_ok(gb_tensor_create_scalar(&tensors[i], &t[i], scalars[i - 1]));
        } else {
            kernel_ok(gb_logical_tensor_init_with_dims(
                    &t[i], i, type, 1, &n, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
            kernel_ok(gb_tensor_create(&tensors[i], &t[i], engine, memory[i]));
        }
        kernel_ok(i < 4 ? gb_op_add_input(op, &t[i]) : gb_op_add_output(op, &t[i]));
    }
    for (int64_t i = 0; i < n; i++)
        src[i] = 1;
    kernel_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    kernel_ok(gb_partition_compile(partition, &compiled, 4, inputs, 2, outputs, engine));
    kernel_ok(gb_compiled_partition_execute(
            compiled, stream, 4, (const gb_tensor *const *)tensors, 2, (tensors + 4), NULL));
    for (int64_t i = 0; i < n; i++)
        cr_expect_eq(dst[i], mask[i] ? 1 / (1 - p) : 0.0F);
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    gb_op_destroy(op);
    for (int i = 0; i < 6; i++)
        gb_tensor_destroy(tensors[i]);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
    free(src);
    free(dst);
}

/* The draw of element i stays when it is above 4294967295 p. */
static void expect_draw(int64_t seed, int64_t offset, int64_t i, uint32_t draw)
{
    enum { COUNT = 9 };
    uint8_t mask[COUNT];
    float p = (float)((double)draw / 4294967295.0);
    float below = nextafterf(p, 0), above = nextafterf(p, 1);
    dropout_mask(seed, offset, below, COUNT, mask);
    cr_expect_eq(mask[i], 1, "element %lld below", (long long)i);
    dropout_mask(seed, offset, above, COUNT, mask);
    cr_expect_eq(mask[i], 0, "element %lld above", (long long)i);
}

KERNEL_TEST(dropout, known_draws)
{
    const uint32_t draws[] = {0x7a912bbe, 0x0c123e77, 0x805f2ad1, 0xed0e542c, 0xd22ec85f,
            0x46881f82, 0xe6f34113, 0xe5c2209f};
    for (int i = 0; i < 8; i++)
        expect_draw(123456, 1, i, draws[i]);
    for (int i = 0; i < 9; i++)
        expect_draw(123456, 0, i, i < 4 ? 1332900479 : i < 8 ? 1149553868 : 106969201);
    const uint8_t expected[] = {0, 0, 1, 1, 1, 0, 1, 1};
    uint8_t mask[8];
    dropout_mask(123456, 1, 0.5F, 8, mask);
    cr_expect_arr_eq(mask, expected, sizeof mask);
}

/* Seeds and offsets that f64 cannot hold: the draws are those of the naive reference. */
KERNEL_TEST(dropout, all_bits_of_seed_and_offset)
{
    enum { COUNT = 64 };
    const int64_t seeds[] = {INT64_C(0x123456789ABCDEF1), -3, INT64_MAX, INT64_MIN + 1};
    const int64_t offsets[] = {INT64_C(0x7000000000000001), INT64_MIN + 5, 0, -1};
    for (int i = 0; i < 4; i++) {
        uint8_t mask[COUNT];
        double ones[COUNT], half = 0.5, seed = (double)seeds[i], offset = (double)offsets[i];
        gb_naive_tensor out[2] = {{.ndims = 0}}, in[] = {{GB_F32, 1, {COUNT}, COUNT, ones, 0},
                                                         {GB_S64, 0, {0}, 1, &seed, seeds[i]},
                                                         {GB_S64, 0, {0}, 1, &offset, offsets[i]},
                                                         {GB_F32, 0, {0}, 1, &half, 0}};
        gb_logical_tensor tensor;
        gb_op *op;
        int64_t count = COUNT;
        for (int p = 0; p < COUNT; p++)
            ones[p] = 1;
        kernel_ok(gb_op_create(&op, 1, GB_OP_DROPOUT, "dropout"));
        for (size_t t = 0; t < 6; t++) {
            kernel_ok(gb_logical_tensor_init_with_dims(&tensor, t,
                    t == 5             ? GB_U8
                    : t == 1 || t == 2 ? GB_S64
                                       : GB_F32,
                    t == 0 || t > 3, &count, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
            kernel_ok(t < 4 ? gb_op_add_input(op, &tensor) : gb_op_add_output(op, &tensor));
        }
        kernel_ok(gb_naive_run(op, in, out));
        dropout_mask(seeds[i], offsets[i], 0.5F, COUNT, mask);
        for (int p = 0; p < COUNT; p++)
            cr_expect_eq(mask[p], out[1].value[p], "seed %lld offset %lld: element %d",
                    (long long)seeds[i], (long long)offsets[i], p);
        gb_naive_free(&out[0]);
        gb_naive_free(&out[1]);
        gb_op_destroy(op);
    }
}

/* Dropout of the result of an anchor, whose kernel goes over it in parts. */
static void epilogue(gb_data_type type, gb_op_kind kind, int ndims, const int64_t *src,
        const int64_t *weights, bool mask)
{
    kernel_case c = {.scale = 2};
    gb_op *anchor = kernel_case_op(&c, kind);
    kernel_case_in(&c, anchor, kernel_case_tensor(&c, type, ndims, src));
    if (weights)
        kernel_case_in(&c, anchor, kernel_case_tensor(&c, type, ndims, weights));
    if (kind == GB_OP_CONVOLUTION) {
        kernel_case_ints(anchor, GB_ATTR_STRIDES, 2, (const int64_t[]){1, 1});
        kernel_case_ints(anchor, GB_ATTR_DILATIONS, 2, (const int64_t[]){1, 1});
        kernel_case_ints(anchor, GB_ATTR_PADS_BEGIN, 2, (const int64_t[]){1, 1});
        kernel_case_ints(anchor, GB_ATTR_PADS_END, 2, (const int64_t[]){1, 1});
        kernel_case_text(anchor, GB_ATTR_DATA_FORMAT, "NCX");
        kernel_case_text(anchor, GB_ATTR_WEIGHTS_FORMAT, "OIX");
    }
    size_t value = kernel_case_out(&c, anchor, type);
    gb_op *op = kernel_case_op(&c, GB_OP_DROPOUT);
    kernel_case_in(&c, op, value);
    scalar(&c, op, GB_S64, 99);
    scalar(&c, op, GB_S64, 3);
    scalar(&c, op, GB_F32, 0.4);
    kernel_case_out(&c, op, type);
    if (mask)
        kernel_case_out(&c, op, GB_U8);
    char name[80];
    snprintf(name, sizeof name, "%s > Dropout", gb_op_kind_name(kind));
    kernel_case_run(&c, name);
}

KERNEL_TEST(dropout, epilogues)
{
    const int64_t a[] = {2, 130, 20}, b[] = {2, 20, 150}, row[] = {2, 1, 20};
    const int64_t image[] = {2, 5, 9, 40}, filter[] = {37, 5, 3, 3};
    for (int mask = 0; mask < 2; mask++) {
        epilogue(GB_F32, GB_OP_MATMUL, 3, a, b, mask);
        epilogue(GB_BF16, GB_OP_MATMUL, 3, a, b, mask);
        epilogue(GB_F32, GB_OP_MATMUL, 3, row, b, mask);
        epilogue(GB_F32, GB_OP_CONVOLUTION, 4, image, filter, mask);
        epilogue(GB_F32, GB_OP_SOFTMAX, 4, image, NULL, mask);
        epilogue(GB_F16, GB_OP_GELU, 4, image, NULL, mask);
    }
}

static void gen_index(gb_data_type type, int ndims, const int64_t *dims, int64_t axis)
{
    kernel_case c = {.scale = 2, .repeated = true};
    gb_op *op = kernel_case_op(&c, GB_OP_GEN_INDEX);
    kernel_case_int(op, GB_ATTR_AXIS, axis);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    kernel_case_out(&c, op, GB_S32);
    kernel_case_run(&c, "GenIndex");
}

KERNEL_TEST(gen_index, axes)
{
    for (int64_t axis = -4; axis < 4; axis++) {
        gen_index(GB_F32, SHAPE(3, 5, 7, 9), axis);
        gen_index(GB_BF16, SHAPE(1, 2, 200, 300), axis);
    }
    gen_index(GB_F16, SHAPE(9000), 0);
    gen_index(GB_F16, SHAPE(3, 0, 5), 0);
    gen_index(GB_F16, SHAPE(1), 0);
}
