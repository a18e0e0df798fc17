/* Shape rules of convolutions, pools and resampling, and auto_pad. */
#include "shape_case.h"

/* One spatial axis, NCX, kernel k, stride s, pads. */
static gb_op *window(gb_op *op, int64_t s, int64_t begin, int64_t end, int64_t dilation)
{
    INTS(op, STRIDES, s);
    INTS(op, PADS_BEGIN, begin);
    INTS(op, PADS_END, end);
    INTS(op, DILATIONS, dilation);
    TEXT(op, DATA_FORMAT, "NCX");
    return op;
}

static gb_op *conv_1d(
        int64_t in, int64_t k, int64_t s, int64_t begin, int64_t end, int64_t dilation)
{
    gb_op *op = window(OP(CONVOLUTION, 1, D(2, 3, in), D(4, 3, k)), s, begin, end, dilation);
    TEXT(op, WEIGHTS_FORMAT, "OIX");
    return op;
}

static void expect_pads(
        const char *auto_pad, int64_t in, int64_t k, int64_t s, int64_t begin, int64_t end)
{
    const int64_t *values;
    gb_op *op = conv_1d(in, k, s, 9, 9, 1);
    TEXT(op, AUTO_PAD, auto_pad);
    EXPECT(op, 0, D(2, 4, auto_pad[0] == 'S' ? (in + s - 1) / s : (in - k) / s + 1));
    cr_assert_eq(gb_op_attr_s64s(op, GB_ATTR_PADS_BEGIN, &values), 1);
    cr_assert_eq(values[0], begin, "%s in %ld", auto_pad, (long)in);
    cr_assert_eq(gb_op_attr_s64s(op, GB_ATTR_PADS_END, &values), 1);
    cr_assert_eq(values[0], end, "%s in %ld", auto_pad, (long)in);
    cr_assert(gb_op_attr_is(op, GB_ATTR_AUTO_PAD, auto_pad, false));
    gb_op_destroy(op);
}

Test(window, auto_pad)
{
    expect_pads("SAME_UPPER", 5, 3, 2, 1, 1);
    expect_pads("SAME_LOWER", 5, 3, 2, 1, 1);
    expect_pads("SAME_UPPER", 6, 3, 2, 0, 1);
    expect_pads("SAME_LOWER", 6, 3, 2, 1, 0);
    expect_pads("SAME_UPPER", 7, 4, 1, 1, 2);
    expect_pads("SAME_LOWER", 7, 4, 1, 2, 1);
    expect_pads("SAME_UPPER", 6, 2, 3, 0, 0);
    expect_pads("VALID", 7, 4, 1, 0, 0);
}

Test(window, auto_pad_follows_new_sizes)
{
    gb_op *op = conv_1d(5, 3, 2, 0, 0, 1);
    TEXT(op, AUTO_PAD, "SAME_UPPER");
    EXPECT(op, 0, D(2, 4, 3));
    op->own[0].dims[2] = 8;
    op->own[2] = tensor_of(100, UNKNOWN);
    GIVES(op, D(2, 4, 4));
}

Test(window, empty_pads_are_zero)
{
    gb_op *op = conv_1d(5, 3, 1, 0, 0, 1);
    NO_INTS(op, PADS_BEGIN);
    NO_INTS(op, PADS_END);
    GIVES(op, D(2, 4, 3));
    op = conv_1d(5, 3, 1, 0, 0, 1);
    NO_INTS(op, PADS_BEGIN);
    TEXT(op, AUTO_PAD, "SAME_LOWER");
    GIVES(op, D(2, 4, 5));
}

Test(window, list_lengths_are_checked)
{
    gb_op *op = conv_1d(5, 3, 1, 0, 0, 1);
    INTS(op, STRIDES, 1, 1);
    FAILS(op, "strides");
    op = conv_1d(5, 3, 1, 0, 0, 1);
    INTS(op, PADS_END, 1, 1);
    FAILS(op, "pads_end");
    op = conv_1d(5, 3, 1, 0, 0, 1);
    INTS(op, DILATIONS, 2, 1);
    FAILS(op, "dilations");
    FAILS(conv_1d(5, 3, 0, 0, 0, 1), "strides");
    FAILS(conv_1d(5, 3, 1, 0, 0, 0), "dilations");
    FAILS(conv_1d(5, 3, 1, INT64_MAX, 0, 1), "pads_begin");
}

/* Convolution ---------------------------------------------------------------------------------- */

Test(shape_conv, forward)
{
    GIVES(conv_1d(7, 3, 2, 1, 1, 1), D(2, 4, 4));
    GIVES(conv_1d(7, 3, 1, 0, 0, 2), D(2, 4, 3));
    GIVES(conv_1d(0, 3, 1, 1, 1, 1), D(2, 4, 0));
    FAILS(conv_1d(4, 5, 1, 0, 0, 1), "does not fit");
    FAILS(conv_1d(4, 0, 1, 0, 0, 1), "kernel");
    gb_op *op = conv_1d(7, 3, 1, 0, 0, 1);
    INTS(op, GROUPS, 0);
    FAILS(op, "groups");
}

/* N h w C data, h w I O weights: the defaults. */
Test(shape_conv, channels_last_and_groups)
{
    gb_op *op = OP(CONVOLUTION, 1, D(2, 8, 9, 6), D(3, 2, 2, 12), D(12));
    INTS(op, STRIDES, 1, 2);
    INTS(op, PADS_BEGIN, 1, 0);
    INTS(op, PADS_END, 1, 1);
    INTS(op, DILATIONS, 1, 1);
    INTS(op, GROUPS, 3);
    GIVES(op, D(2, 8, 5, 12));
}

Test(shape_conv, channels_must_fit)
{
    gb_op *op = window(OP(CONVOLUTION, 1, D(2, 6, 5), D(4, 2, 3)), 1, 0, 0, 1);
    TEXT(op, WEIGHTS_FORMAT, "OIX");
    INTS(op, GROUPS, 3);
    FAILS(op, "4 channels do not divide into 3 groups");
    op = window(OP(CONVOLUTION, 1, D(2, 6, 5), D(4, 2, 3)), 1, 0, 0, 1);
    TEXT(op, WEIGHTS_FORMAT, "OIX");
    FAILS(op, "I = 2");
    op = window(OP(CONVOLUTION, 1, D(2, 3, 5), D(4, 3, 3), D(3)), 1, 0, 0, 1);
    TEXT(op, WEIGHTS_FORMAT, "OIX");
    FAILS(op, "bias");
    FAILS(window(OP(CONVOLUTION, 1, D(2, 3), D(4, 3)), 1, 0, 0, 1), "rank");
    FAILS(window(OP(CONVOLUTION, 1, D(2, 3, 4), D(4, 3, 3, 3)), 1, 0, 0, 1), "weights");
}

static gb_op *conv_backward_data(int64_t out)
{
    gb_op *op = window(OP(CONVOLUTION_BACKWARD_DATA, 1, D(2, 4, out), D(4, 3, 3)), 2, 1, 1, 1);
    TEXT(op, WEIGHTS_FORMAT, "OIX");
    return op;
}

Test(shape_conv, backward_data)
{
    FAILS(conv_backward_data(4), "dst_shape"); /* the default tells nothing */
    gb_op *op = conv_backward_data(4);
    INTS(op, DST_SHAPE, 2, 3, 7);
    GIVES(op, D(2, 3, 7));
    op = conv_backward_data(4);
    INTS(op, DST_SHAPE, 2, 3, 8); /* the stride leaves two sizes for 4 positions */
    GIVES(op, D(2, 3, 8));
    op = conv_backward_data(4);
    INTS(op, DST_SHAPE, 2, 3, 9);
    FAILS(op, "5 window positions");
    op = conv_backward_data(4);
    INTS(op, DST_SHAPE, 3, 3, 7);
    FAILS(op, "batches");
    op = conv_backward_data(4);
    INTS(op, DST_SHAPE, 2, 5, 7);
    FAILS(op, "channels");
}

Test(shape_conv, backward_weights)
{
    gb_op *op = window(OP(CONVOLUTION_BACKWARD_WEIGHTS, 1, D(2, 6, 7), D(2, 4, 5)), 1, 0, 0, 1);
    TEXT(op, WEIGHTS_FORMAT, "OIX");
    INTS(op, GROUPS, 2);
    INTS(op, WEIGHTS_SHAPE, 4, 3, 3);
    GIVES(op, D(4, 3, 3));
    op = window(OP(CONVOLUTION_BACKWARD_WEIGHTS, 1, D(2, 6, 7), D(2, 4, 5)), 1, 0, 0, 1);
    INTS(op, WEIGHTS_SHAPE, 3, 6, 4); /* XIO */
    GIVES(op, D(3, 6, 4));
    op = window(OP(CONVOLUTION_BACKWARD_WEIGHTS, 1, D(2, 6, 7), D(2, 4, 5)), 1, 0, 0, 1);
    INTS(op, WEIGHTS_SHAPE, 3, 4, 6);
    FAILS(op, "O = 6");
    FAILS(window(OP(CONVOLUTION_BACKWARD_WEIGHTS, 1, D(2, 6, 7), D(2, 4, 5)), 1, 0, 0, 1),
            "weights_shape");
}

static gb_op *conv_transpose(int64_t in, int64_t groups)
{
    gb_op *op = window(OP(CONV_TRANSPOSE, 1, D(2, 4, in), D(4, 3, 3)), 2, 1, 1, 1);
    TEXT(op, WEIGHTS_FORMAT, "IOX");
    INTS(op, GROUPS, groups);
    return op;
}

Test(shape_conv, transposed)
{
    GIVES(conv_transpose(3, 1), D(2, 3, 5));
    GIVES(conv_transpose(3, 2), D(2, 6, 5));
    gb_op *op = conv_transpose(3, 1);
    INTS(op, OUTPUT_PADDING, 1);
    GIVES(op, D(2, 3, 6));
    op = conv_transpose(3, 1);
    TEXT(op, AUTO_PAD, "SAME_UPPER");
    GIVES(op, D(2, 3, 6));
    FAILS(conv_transpose(3, 3), "groups");
    GIVES(conv_transpose(0, 1), D(2, 3, 0));
    op = conv_transpose(1, 1);
    INTS(op, PADS_END, 9);
    FAILS(op, "pads");
    op = conv_transpose(INT64_C(1) << 58, 1);
    INTS(op, STRIDES, INT32_MAX);
    FAILS(op, "too large");
}

Test(shape_conv, transposed_gradients)
{
    gb_op *op = window(OP(CONV_TRANSPOSE_BACKWARD_DATA, 1, D(2, 6, 5), D(4, 3, 3)), 2, 1, 1, 1);
    TEXT(op, WEIGHTS_FORMAT, "IOX");
    INTS(op, GROUPS, 2);
    GIVES(op, D(2, 4, 3));
    op = window(OP(CONV_TRANSPOSE_BACKWARD_DATA, 1, D(2, 5, 5), D(3, 5, 4)), 2, 1, 1, 1);
    GIVES(op, D(2, 4, 3)); /* XOI */
    op = window(OP(CONV_TRANSPOSE_BACKWARD_WEIGHTS, 1, D(2, 4, 3), D(2, 3, 5)), 2, 1, 1, 1);
    TEXT(op, WEIGHTS_FORMAT, "IOX");
    INTS(op, WEIGHTS_SHAPE, 4, 3, 3);
    GIVES(op, D(4, 3, 3));
    op = window(OP(CONV_TRANSPOSE_BACKWARD_WEIGHTS, 1, D(2, 4, 3), D(2, 3, 5)), 2, 1, 1, 1);
    TEXT(op, WEIGHTS_FORMAT, "IOX");
    INTS(op, WEIGHTS_SHAPE, 3, 4, 3);
    FAILS(op, "I = 3");
}

/* Pools ---------------------------------------------------------------------------------------- */

static gb_op *pool_1d(gb_op *op, int64_t k, int64_t s, int64_t begin, int64_t end)
{
    INTS(op, KERNEL, k);
    INTS(op, STRIDES, s);
    INTS(op, PADS_BEGIN, begin);
    INTS(op, PADS_END, end);
    FLAG(op, EXCLUDE_PAD, 1);
    return op;
}

Test(shape_pool, forward)
{
    GIVES(pool_1d(OP(AVG_POOL, 1, D(2, 5, 3)), 3, 2, 1, 1), D(2, 3, 3));
    GIVES(pool_1d(OP(AVG_POOL, 1, D(2, 6, 3)), 3, 2, 0, 0), D(2, 2, 3));
    gb_op *op = pool_1d(OP(AVG_POOL, 1, D(2, 6, 3)), 3, 2, 0, 0);
    TEXT(op, ROUNDING_TYPE, "ceil");
    GIVES(op, D(2, 3, 3));
    op = pool_1d(OP(MAX_POOL, 1, D(2, 3, 7)), 3, 1, 0, 0);
    TEXT(op, DATA_FORMAT, "NCX");
    INTS(op, DILATIONS, 3);
    GIVES(op, D(2, 3, 1));
    op = pool_1d(OP(MAX_POOL, 1, D(2, 22, 3)), 2, 2, 1, -1); /* negative pads crop */
    GIVES(op, D(2, 11, 3));
    op = pool_1d(OP(MAX_POOL, 1, D(2, 5, 3)), 3, 2, 0, 0);
    TEXT(op, AUTO_PAD, "SAME_UPPER");
    GIVES(op, D(2, 3, 3));
    FAILS(pool_1d(OP(MAX_POOL, 1, D(2, 5, 3)), 0, 2, 0, 0), "kernel");
    FAILS(pool_1d(OP(MAX_POOL, 1, D(5, 3)), 2, 2, 0, 0), "rank");
}

Test(shape_pool, backward)
{
    gb_op *op = pool_1d(OP(AVG_POOL_BACKWARD, 1, D(2, 3, 4)), 3, 2, 1, 1);
    INTS(op, SRC_SHAPE, 2, 5, 4);
    GIVES(op, D(2, 5, 4));
    FAILS(pool_1d(OP(AVG_POOL_BACKWARD, 1, D(2, 3, 4)), 3, 2, 1, 1), "src_shape");
    op = pool_1d(OP(AVG_POOL_BACKWARD, 1, D(2, 3, 4)), 3, 2, 1, 1);
    INTS(op, SRC_SHAPE, 2, 5, 3);
    FAILS(op, "diff_dst");
    op = pool_1d(OP(AVG_POOL_BACKWARD, 0, D(2, 3, 4)), 3, 2, 1, 1);
    output(op, D(2, 6, 4));
    GIVES(op, D(2, 6, 4));
    GIVES(pool_1d(OP(MAX_POOL_BACKWARD, 1, D(2, 5, 4), D(2, 3, 4)), 3, 2, 1, 1), D(2, 5, 4));
    FAILS(pool_1d(OP(MAX_POOL_BACKWARD, 1, D(2, 5, 4), D(1, 3, 4)), 3, 2, 1, 1), "diff_dst");
}

/* Resampling ----------------------------------------------------------------------------------- */

Test(shape_resampling, forward)
{
    gb_op *op = OP(INTERPOLATE, 1, D(2, 4, 5, 3));
    INTS(op, SIZES, 7, 2);
    GIVES(op, D(2, 7, 2, 3));
    op = OP(INTERPOLATE, 1, D(2, 3, 17));
    TEXT(op, DATA_FORMAT, "NCX");
    FLOATS(op, SCALES, 1.235294f);
    GIVES(op, D(2, 3, 20)); /* 20.999998 is cut */
    op = OP(INTERPOLATE, 1, D(2, 4, 5, 3));
    INTS(op, SIZES, 7);
    FAILS(op, "1 values");
    op = OP(INTERPOLATE, 1, D(2, 4, 3));
    FLOATS(op, SCALES, -1);
    FAILS(op, "scale");
    op = OP(INTERPOLATE, 1, D(2, 4, 3));
    FLOATS(op, SCALES, 1e30f);
    FAILS(op, "scale");
    op = OP(INTERPOLATE, 1, D(2, 0, 3));
    INTS(op, SIZES, 4);
    FAILS(op, "cannot become");
    op = OP(INTERPOLATE, 1, D(2, 4, 3));
    INTS(op, SIZES, 0);
    GIVES(op, D(2, 0, 3));
}

Test(shape_resampling, backward_follows_src)
{
    gb_op *op = OP(INTERPOLATE_BACKWARD, 1, D(2, 17, 3), D(2, 21, 3));
    FLOATS(op, SCALES, 1.235294f);
    GIVES(op, D(2, 17, 3));
    op = OP(INTERPOLATE_BACKWARD, 1, D(2, 17, 3), D(2, 21, 4));
    FLOATS(op, SCALES, 1.235294f);
    FAILS(op, "diff_dst");
}
