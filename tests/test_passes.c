/* What the passes make of partitions: right results in every layout, few kernels, nothing written
 * in between. */
#include "kernel_case.h"

static kernel_case c;

static size_t input(gb_data_type type, int ndims, const int64_t *dims)
{
    return kernel_case_tensor(&c, type, ndims, dims);
}

static size_t op_with(gb_op_kind kind, gb_data_type type, size_t n, const size_t *inputs,
        gb_op_attr attr, int count, const int64_t *values)
{
    gb_op *op = kernel_case_op(&c, kind);
    for (size_t i = 0; i < n; i++)
        kernel_case_in(&c, op, inputs[i]);
    if (count)
        kernel_case_ints(op, attr, count, values);
    if (kind == GB_OP_STATIC_RESHAPE)
        kernel_case_flag(op, GB_ATTR_SPECIAL_ZERO, false);
    return kernel_case_out(&c, op, type);
}

static size_t unary(gb_op_kind kind, gb_data_type type, size_t in)
{
    return op_with(kind, type, 1, &in, 0, 0, NULL);
}

static size_t binary(gb_op_kind kind, gb_data_type type, size_t a, size_t b)
{
    return op_with(kind, type, 2, (const size_t[]){a, b}, 0, 0, NULL);
}

static size_t transpose(gb_data_type type, size_t in, int n, const int64_t *order)
{
    return op_with(GB_OP_STATIC_TRANSPOSE, type, 1, &in, GB_ATTR_ORDER, n, order);
}

static size_t reshape(gb_data_type type, size_t in, int n, const int64_t *shape)
{
    return op_with(GB_OP_STATIC_RESHAPE, type, 1, &in, GB_ATTR_SHAPE, n, shape);
}

static size_t quantize(gb_op_kind kind, gb_data_type type, size_t in, float scale, int64_t zp)
{
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_in(&c, op, in);
    kernel_case_float(op, GB_ATTR_SCALES, scale);
    kernel_case_ints(op, GB_ATTR_ZPS, 1, &zp);
    return kernel_case_out(&c, op, type);
}

/* Runs the graph in one layout: one partition, its kernels, and bytes written in between. */
static void expect(kernel_layout layout, const char *kernels, size_t intermediates)
{
    char found[KERNEL_CASE_TEXT];
    kernel_case_run_layout(&c, layout, kernels);
    snprintf(found, sizeof found, "%s", c.kernels);
    found[strcspn(found, ":")] = '\0';
    cr_expect_eq(c.n_partitions, 1, "%zu partitions", c.n_partitions);
    cr_expect_str_eq(found, kernels, "got %s, expected %s", found, kernels);
    cr_expect_eq(
            c.intermediates, intermediates, "%s: %zu bytes in between", kernels, c.intermediates);
}

/* The same in all layouts, which need not keep strides apart that the kernels merge. */
static void expect_everywhere(const char *kernels)
{
    for (int layout = 0; layout < LAYOUT_COUNT; layout++)
        expect((kernel_layout)layout, kernels, 0);
}

static void check_passes(void)
{
    setenv("GB_PASSES", "check", 1);
    c = (kernel_case){0};
}

static void free_ops(void)
{
    for (size_t i = 0; i < c.n_ops; i++)
        gb_op_destroy(c.ops[i]);
}

TestSuite(passes, .init = check_passes, .fini = free_ops);

Test(passes, a_channel_shuffle_is_one_copy)
{
    size_t x = input(GB_F32, SHAPE(2, 12, 5, 3));
    size_t split = reshape(GB_F32, x, SHAPE(2, 3, 4, 5, 3));
    reshape(GB_F32, transpose(GB_F32, split, SHAPE(0, 2, 1, 3, 4)), SHAPE(2, 12, 5, 3));
    expect(LAYOUT_DENSE, "copy", 0);
    kernel_case_run_layout(&c, LAYOUT_GAPS, "shuffle with gaps");
    kernel_case_run_layout(&c, LAYOUT_REVERSED, "shuffle reversed");
}

Test(passes, a_shuffle_of_a_dim_is_one_copy)
{
    size_t x = input(GB_BF16, SHAPE(2, 3, 24, 11));
    size_t split = reshape(GB_BF16, x, SHAPE(2, 3, 3, 8, 11));
    reshape(GB_BF16, transpose(GB_BF16, split, SHAPE(0, 1, 2, 4, 3)), SHAPE(2, 3, 24, 11));
    expect(LAYOUT_DENSE, "copy", 0);
}

/* The product is written where the transposed output lies. */
Test(passes, a_product_writes_through_a_transpose)
{
    size_t a = input(GB_F32, SHAPE(2, 3, 7, 5)), b = input(GB_F32, SHAPE(2, 3, 5, 6));
    size_t product = binary(GB_OP_MATMUL, GB_F32, a, b);
    size_t moved = transpose(GB_F32, product, SHAPE(0, 2, 1, 3));
    unary(GB_OP_REORDER, GB_F32, moved);
    kernel_case_run_layout(&c, LAYOUT_DENSE, "product");
    cr_expect_eq(c.n_partitions, 1);
    cr_expect_eq(c.intermediates, 0);
    for (int layout = 0; layout < LAYOUT_COUNT; layout++)
        kernel_case_run_layout(&c, (kernel_layout)layout, "product");
}

Test(passes, a_product_writes_through_a_reshape)
{
    size_t a = input(GB_F32, SHAPE(2, 3, 7, 5)), b = input(GB_F32, SHAPE(2, 3, 5, 6));
    size_t product = binary(GB_OP_MATMUL, GB_F32, a, b);
    reshape(GB_F32, transpose(GB_F32, product, SHAPE(0, 2, 1, 3)), SHAPE(2, 7, 18));
    kernel_case_run_layout(&c, LAYOUT_DENSE, "product");
    cr_expect_eq(c.n_partitions, 1);
    cr_expect_eq(c.intermediates, 0);
    for (int layout = 0; layout < LAYOUT_COUNT; layout++)
        kernel_case_run_layout(&c, (kernel_layout)layout, "product");
}

/* Rows and columns change places in the output. */
Test(passes, a_product_may_be_turned)
{
    size_t a = input(GB_F32, SHAPE(70, 40)), b = input(GB_F32, SHAPE(40, 33));
    size_t product = binary(GB_OP_MATMUL, GB_F32, a, b);
    unary(GB_OP_REORDER, GB_F32, transpose(GB_F32, product, SHAPE(1, 0)));
    kernel_case_run_layout(&c, LAYOUT_DENSE, "turned product");
    cr_expect_eq(c.intermediates, 0);
    for (int layout = 0; layout < LAYOUT_COUNT; layout++)
        kernel_case_run_layout(&c, (kernel_layout)layout, "turned product");
}

/* Columns split into heads; the transpose brings the heads in front, or the rows last. */
static void heads(bool transposed, bool cast, const int64_t *order)
{
    c = (kernel_case){0};
    size_t a = input(GB_F32, SHAPE(2, 7, 40));
    size_t b = transposed ? input(GB_F32, SHAPE(48, 40)) : input(GB_F32, SHAPE(40, 48));
    size_t y = binary(GB_OP_MATMUL, GB_F32, a, b);
    kernel_case_flag(c.ops[0], GB_ATTR_TRANSPOSE_B, transposed);
    gb_data_type type = cast ? GB_BF16 : GB_F32;
    if (cast)
        y = unary(GB_OP_TYPE_CAST, type, y);
    transpose(type, reshape(type, y, SHAPE(2, 7, 3, 16)), 4, order);
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        kernel_case_run_layout(&c, (kernel_layout)layout, "heads");
        cr_expect_eq(c.n_partitions, 1);
        cr_expect_eq(c.intermediates, 0, "%zu bytes", c.intermediates);
    }
    free_ops();
    c.n_ops = 0;
}

Test(passes, heads_are_written_where_they_go)
{
    const int64_t orders[2][4] = {{0, 2, 1, 3}, {0, 2, 3, 1}};
    for (int i = 0; i < 8; i++)
        heads(i & 1, i & 2, orders[i / 4]);
}

/* The quantisation comes in front of the transpose, into the product. */
Test(passes, a_quantisation_behind_a_transpose_joins_the_product)
{
    size_t a = quantize(GB_OP_DEQUANTIZE, GB_F32, input(GB_U8, SHAPE(2, 3, 7, 5)), 0.5F, 3);
    size_t b = quantize(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, SHAPE(2, 3, 5, 6)), 0.25F, 0);
    size_t product = binary(GB_OP_MATMUL, GB_F32, a, b);
    size_t moved = transpose(GB_F32, product, SHAPE(0, 2, 1, 3));
    size_t flat = reshape(GB_F32, moved, SHAPE(2, 7, 18));
    quantize(GB_OP_QUANTIZE, GB_U8, flat, 2, 7);
    c.scale = 100;
    for (int layout = 0; layout < LAYOUT_COUNT; layout++)
        kernel_case_run_layout(&c, (kernel_layout)layout, "quantised product");
    cr_expect_eq(c.n_partitions, 1);
}

static void concat(float first, float second, float result, const char *kernels)
{
    c = (kernel_case){.scale = 100};
    size_t a = quantize(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, SHAPE(2, 5, 3, 4)), first, 2);
    size_t b = quantize(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, SHAPE(2, 3, 3, 4)), second, 2);
    size_t both = op_with(GB_OP_CONCAT, GB_F32, 2, (const size_t[]){a, b}, 0, 0, NULL);
    kernel_case_int(c.ops[2], GB_ATTR_AXIS, 1);
    quantize(GB_OP_QUANTIZE, GB_S8, both, result, 2);
    if (kernels)
        expect_everywhere(kernels);
    else
        kernel_case_run_layout(&c, LAYOUT_DENSE, "concat");
    free_ops();
    c.n_ops = 0;
}

Test(passes, a_concat_of_equal_quantisation_copies_integers)
{
    concat(0.3F, 0.3F, 0.3F, "concat");
    concat(0.3F, 0.2F, 0.3F, NULL);
    cr_expect_gt(c.intermediates, 0);
    concat(0.3F, 0.3F, 0.4F, NULL);
    cr_expect_gt(c.intermediates, 0);
}

Test(passes, a_reorder_of_equal_quantisation_copies_integers)
{
    size_t x = quantize(GB_OP_DEQUANTIZE, GB_F32, input(GB_S8, SHAPE(4, 6, 3)), 0.3F, -5);
    c.scale = 120;
    quantize(GB_OP_QUANTIZE, GB_S8, unary(GB_OP_REORDER, GB_F32, x), 0.3F, -5);
    expect_everywhere("copy");
}

Test(passes, a_single_movement_still_copies)
{
    reshape(GB_F32, input(GB_F32, SHAPE(4, 6)), SHAPE(2, 12));
    kernel_case_run_layout(&c, LAYOUT_DENSE, "reshape");
    cr_expect_eq(strncmp(c.kernels, "copy:", 5), 0);
}

/* Families whose chains run behind their anchor: nothing is written in between. */
Test(passes, fused_families_write_nothing_in_between)
{
    size_t a = input(GB_F32, SHAPE(9, 17)), b = input(GB_F32, SHAPE(17, 21));
    size_t y = binary(
            GB_OP_ADD, GB_F32, binary(GB_OP_MATMUL, GB_F32, a, b), input(GB_F32, SHAPE(9, 21)));
    y = unary(GB_OP_RELU, GB_F32, y);
    binary(GB_OP_MULTIPLY, GB_F32, y, unary(GB_OP_SIGMOID, GB_F32, y));
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        kernel_case_run_layout(&c, (kernel_layout)layout, "matmul");
        cr_expect_eq(c.n_partitions, 1);
        cr_expect_eq(c.intermediates, 0);
    }
}

static void convolution_chain(gb_op_kind kind, const int64_t *weights)
{
    const int64_t ones[] = {1, 1}, zeros[] = {0, 0};
    c = (kernel_case){0};
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_in(&c, op, input(GB_F32, SHAPE(2, 8, 9, 7)));
    kernel_case_in(&c, op, input(GB_F32, 4, weights));
    kernel_case_ints(op, GB_ATTR_STRIDES, 2, ones);
    kernel_case_ints(op, GB_ATTR_DILATIONS, 2, ones);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, zeros);
    kernel_case_ints(op, GB_ATTR_PADS_END, 2, zeros);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT, kind == GB_OP_CONVOLUTION ? "OIX" : "IOX");
    size_t y = kernel_case_out(&c, op, GB_F32);
    gb_op *bias = kernel_case_op(&c, GB_OP_BIAS_ADD);
    kernel_case_in(&c, bias, y);
    kernel_case_in(&c, bias, input(GB_F32, SHAPE(6)));
    kernel_case_text(bias, GB_ATTR_DATA_FORMAT, "NCX");
    y = unary(GB_OP_RELU, GB_F32, kernel_case_out(&c, bias, GB_F32));
    unary(GB_OP_SQUARE, GB_F32, y);
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        kernel_case_run_layout(&c, (kernel_layout)layout, "convolution");
        cr_expect_eq(c.n_partitions, 1);
        cr_expect_eq(c.intermediates, 0);
    }
    free_ops();
    c.n_ops = 0;
}

Test(passes, convolution_chains_write_nothing_in_between)
{
    convolution_chain(GB_OP_CONVOLUTION, (const int64_t[]){6, 8, 3, 2});
    convolution_chain(GB_OP_CONV_TRANSPOSE, (const int64_t[]){8, 6, 3, 2});
}

/* Folded into the epilogue of the convolution, with parameters that change or do not. */
static void convolution_batch_norm(gb_property property)
{
    const int64_t ones[] = {1, 1}, zeros[] = {0, 0};
    c = (kernel_case){.scale = 0.4, .offset = 0.6};
    gb_op *op = kernel_case_op(&c, GB_OP_CONVOLUTION);
    kernel_case_in(&c, op, input(GB_F32, SHAPE(2, 8, 9, 7)));
    kernel_case_in(&c, op, input(GB_F32, SHAPE(6, 8, 3, 2)));
    kernel_case_ints(op, GB_ATTR_STRIDES, 2, ones);
    kernel_case_ints(op, GB_ATTR_DILATIONS, 2, ones);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 2, zeros);
    kernel_case_ints(op, GB_ATTR_PADS_END, 2, zeros);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT, "OIX");
    size_t y = kernel_case_out(&c, op, GB_F32);
    gb_op *norm = kernel_case_op(&c, GB_OP_BATCH_NORM_INFERENCE);
    kernel_case_in(&c, norm, y);
    for (int i = 0; i < 4; i++) {
        size_t parameter = input(GB_F32, SHAPE(6));
        c.tensors[parameter].property = property;
        kernel_case_in(&c, norm, parameter);
    }
    kernel_case_float(norm, GB_ATTR_EPSILON, 1e-5F);
    kernel_case_text(norm, GB_ATTR_DATA_FORMAT, "NCX");
    unary(GB_OP_RELU, GB_F32, kernel_case_out(&c, norm, GB_F32));
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        kernel_case_run_layout(&c, (kernel_layout)layout, "convolution and batch norm");
        cr_expect_eq(c.n_partitions, 1);
        cr_expect_eq(c.intermediates, 0);
    }
    free_ops();
    c.n_ops = 0;
}

Test(passes, a_batch_norm_runs_in_the_epilogue_of_its_convolution)
{
    convolution_batch_norm(GB_PROPERTY_VARIABLE);
    convolution_batch_norm(GB_PROPERTY_CONSTANT);
}

static void row_chain(gb_op_kind kind)
{
    c = (kernel_case){0};
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_in(&c, op, input(GB_F32, SHAPE(4, 6, 35)));
    if (kind == GB_OP_SOFTMAX)
        kernel_case_int(op, GB_ATTR_AXIS, 2);
    if (kind == GB_OP_LAYER_NORM || kind == GB_OP_GROUP_NORM)
        kernel_case_flag(op, GB_ATTR_USE_AFFINE, false);
    if (kind == GB_OP_LAYER_NORM || kind == GB_OP_GROUP_NORM)
        kernel_case_flag(op, GB_ATTR_KEEP_STATS, false);
    if (kind == GB_OP_GROUP_NORM)
        kernel_case_int(op, GB_ATTR_GROUPS, 5);
    size_t y = kernel_case_out(&c, op, GB_F32);
    y = binary(GB_OP_MULTIPLY, GB_F32, y, input(GB_F32, SHAPE(1, 6, 35)));
    unary(GB_OP_TYPE_CAST, GB_BF16, unary(GB_OP_ABS, GB_F32, y));
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        kernel_case_run_layout(&c, (kernel_layout)layout, gb_op_kind_name(kind));
        cr_expect_eq(c.intermediates, 0, "%s", gb_op_kind_name(kind));
    }
    free_ops();
    c.n_ops = 0;
}

Test(passes, norms_and_softmax_with_a_tail_write_nothing_in_between)
{
    row_chain(GB_OP_SOFTMAX);
    row_chain(GB_OP_LAYER_NORM);
    row_chain(GB_OP_GROUP_NORM);
}
