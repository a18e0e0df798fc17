/* Shape rules of every family but windows: values worked out by hand, edge cases, and hostile
 * sizes. */
#include "shape_case.h"

/* What all rules share ------------------------------------------------------------------------- */

Test(shape, unknown_inputs_are_named)
{
    FAILS(OP(RELU, 1, UNKNOWN), "src (tensor 0");
    FAILS(OP(ADD, 1, D(2), D(GB_UNKNOWN_DIM, 3)), "src_1 (tensor 1");
}

Test(shape, known_output_dims_must_agree)
{
    gb_op *op = OP(RELU, 0, D(2, 3));
    output(op, D(GB_UNKNOWN_DIM, 3));
    GIVES(op, D(2, 3));
    op = OP(RELU, 0, D(2, 3));
    output(op, D(2, 4));
    FAILS(op, "f32:2x4");
    op = OP(RELU, 0, D(2, 3));
    output(op, D(6));
    FAILS(op, "output 0 (tensor 100)");
}

Test(shape, unknown_strides_become_dense)
{
    gb_op *op = OP(RELU, 1, D(2, 0, 3));
    EXPECT(op, 0, D(2, 0, 3));
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    cr_assert_eq(dst->strides[0], 3);
    cr_assert_eq(dst->strides[1], 3);
    cr_assert_eq(dst->strides[2], 1);
    gb_op_destroy(op);
}

Test(shape, given_strides_stay)
{
    gb_op *op = OP(RELU, 0, D(2, 3));
    gb_logical_tensor dst = tensor_of(5, D(2, GB_UNKNOWN_DIM));
    dst.strides[0] = 1;
    dst.strides[1] = 2;
    cr_assert_eq(gb_op_add_output(op, &dst), GB_SUCCESS);
    EXPECT(op, 0, D(2, 3));
    cr_assert_eq(gb_op_output(op, 0)->strides[0], 1);
    cr_assert_eq(gb_op_output(op, 0)->strides[1], 2);
    gb_op_destroy(op);
}

Test(shape, layout_any_gets_dims_only)
{
    gb_op *op = OP(RELU, 0, D(2, 3));
    gb_logical_tensor dst = tensor_of(5, UNKNOWN);
    dst.layout_type = GB_LAYOUT_ANY;
    cr_assert_eq(gb_op_add_output(op, &dst), GB_SUCCESS);
    EXPECT(op, 0, D(2, 3));
    cr_assert_eq(gb_op_output(op, 0)->strides[0], GB_UNKNOWN_DIM);
    gb_op_destroy(op);
}

Test(shape, hostile_sizes_are_refused)
{
    const int64_t big = INT64_C(1) << 40;
    FAILS(OP(RELU, 1, D(big, big)), "too large");
    FAILS(OP(RELU, 1, D(big, big, 0)), "too large"); /* its strides would not fit */
    FAILS(OP(ADD, 1, D(big, 1), D(1, big)), "too large");
    FAILS(OP(RELU, 1, D(INT64_MAX)), "too large");
    gb_op *op = OP(CONCAT, 1, D(INT64_C(1) << 61), D(INT64_C(1) << 61), D(1));
    INTS(op, AXIS, 0);
    FAILS(op, "too large");
}

Test(shape, wrong_counts_do_not_reach_the_rules)
{
    gb_op *op = OP(ADD, 1, D(2));
    cr_assert_eq(infer(op), GB_INVALID_GRAPH_OP);
    gb_op_destroy(op);
    op = OP(SOFTMAX, 0, D(2));
    cr_assert_eq(infer(op), GB_INVALID_GRAPH_OP);
    gb_op_destroy(op);
}

Test(shape, ranks_from_0_to_12)
{
    GIVES(OP(EXP, 1, SCALAR), SCALAR);
    GIVES(OP(EXP, 1, D(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2)), D(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2));
}

/* Helpers -------------------------------------------------------------------------------------- */

Test(dims, broadcast)
{
    int ndims;
    int64_t result[GB_MAX_NDIMS];
    const int64_t a[] = {2, 1, 4}, b[] = {3, 1}, empty[] = {0}, one[] = {1}, five[] = {5};
    cr_assert(gb_broadcast_dims(3, a, 2, b, &ndims, result));
    cr_assert_eq(ndims, 3);
    cr_assert(result[0] == 2 && result[1] == 3 && result[2] == 4);
    cr_assert(gb_broadcast_dims(1, empty, 1, one, &ndims, result));
    cr_assert_eq(result[0], 0);
    cr_assert_not(gb_broadcast_dims(1, empty, 1, five, &ndims, result));
    cr_assert(gb_broadcast_dims(0, empty, 1, five, &ndims, result));
    cr_assert_eq(result[0], 5);
    cr_assert(gb_broadcasts_onto(2, b, 3, (int64_t[]){2, 3, 4}));
    cr_assert_not(gb_broadcasts_onto(3, a, 2, b));
    cr_assert_not(gb_broadcasts_onto(1, five, 1, one));
}

Test(dims, axes)
{
    cr_assert_eq(gb_normalize_axis(-1, 4), 3);
    cr_assert_eq(gb_normalize_axis(-4, 4), 0);
    cr_assert_eq(gb_normalize_axis(4, 4), -1);
    cr_assert_eq(gb_normalize_axis(-5, 4), -1);
    cr_assert_eq(gb_normalize_axis(0, 0), -1);
    cr_assert_eq(gb_normalize_axis(INT64_MIN, 4), -1);
}

Test(dims, axes_of_formats)
{
    int axes[GB_MAX_NDIMS];
    gb_op *op = OP(CONVOLUTION, 1, D(1), D(1));
    cr_assert_eq(gb_channel_axis(op, 4), 3); /* NXC is the default */
    gb_data_axes(op, 4, axes);
    cr_assert(axes[0] == 0 && axes[1] == 3 && axes[2] == 1 && axes[3] == 2);
    gb_weights_axes(op, 4, axes); /* XIO: h, w, i, o */
    cr_assert(axes[0] == 3 && axes[1] == 2 && axes[2] == 0 && axes[3] == 1);
    TEXT(op, DATA_FORMAT, "NCX");
    TEXT(op, WEIGHTS_FORMAT, "OIX");
    cr_assert_eq(gb_channel_axis(op, 4), 1);
    cr_assert_eq(gb_channel_axis(op, 1), 0);
    gb_data_axes(op, 4, axes);
    cr_assert(axes[0] == 0 && axes[1] == 1 && axes[2] == 2 && axes[3] == 3);
    gb_weights_axes(op, 4, axes);
    cr_assert(axes[0] == 0 && axes[1] == 1 && axes[2] == 2 && axes[3] == 3);
    gb_op_destroy(op);
}

Test(dims, density)
{
    gb_logical_tensor tensor = tensor_of(1, D(2, 1, 3));
    gb_dense_strides(tensor.ndims, tensor.dims, tensor.strides);
    cr_assert(gb_is_dense(&tensor));
    cr_assert_eq(gb_tensor_count(&tensor), 6);
    tensor.strides[1] = 1000; /* of an axis of 1: never used */
    cr_assert(gb_is_dense(&tensor));
    tensor.strides[0] = 4;
    cr_assert_not(gb_is_dense(&tensor));
    tensor.dims[2] = 0;
    cr_assert(gb_is_dense(&tensor));
    tensor.layout_type = GB_LAYOUT_ANY;
    cr_assert_not(gb_is_dense(&tensor));
}

/* Element-wise --------------------------------------------------------------------------------- */

Test(shape_elementwise, gradients_need_equal_dims)
{
    GIVES(OP(RELU_BACKWARD, 1, D(2, 3), D(2, 3)), D(2, 3));
    FAILS(OP(RELU_BACKWARD, 1, D(2, 3), D(3, 2)), "diff_dst");
}

Test(shape_elementwise, binary)
{
    GIVES(OP(ADD, 1, D(4, 1, 3), D(2, 1)), D(4, 2, 3));
    GIVES(OP(MULTIPLY, 1, SCALAR, D(2, 1)), D(2, 1));
    GIVES(OP(DIVIDE, 1, D(0, 3), D(1, 3)), D(0, 3));
    GIVES(OP(GREATER_EQUAL, 1, D(5), D(4, 1)), D(4, 5));
    FAILS(OP(ADD, 1, D(0), D(5)), "broadcast");
    gb_op *op = OP(ADD, 1, D(2, 3), D(1, 3));
    TEXT(op, AUTO_BROADCAST, "none");
    FAILS(op, "same dims");
    op = OP(ADD, 1, D(2, 3), D(2, 3));
    TEXT(op, AUTO_BROADCAST, "none");
    GIVES(op, D(2, 3));
}

Test(shape_elementwise, select)
{
    GIVES(OP(SELECT, 1, D(3, 1, 5), D(2, 3, 4, 5), D(1)), D(2, 3, 4, 5));
    FAILS(OP(SELECT, 1, D(3, 5), D(2, 3, 4, 5), D(1)), "cond");
    FAILS(OP(SELECT, 1, D(2, 5), D(5), D(5)), "cond"); /* may not enlarge */
    gb_op *op = OP(SELECT, 1, D(1), D(5), D(5));
    TEXT(op, AUTO_BROADCAST, "none");
    FAILS(op, "cond");
}

Test(shape_elementwise, bias)
{
    gb_op *op = OP(BIAS_ADD, 1, D(2, 3, 4), D(4));
    GIVES(op, D(2, 3, 4));
    op = OP(BIAS_ADD, 1, D(2, 3, 4), D(4));
    TEXT(op, DATA_FORMAT, "NCX");
    FAILS(op, "bias");
    FAILS(OP(BIAS_ADD, 1, D(4), D(4)), "rank");
    FAILS(OP(BIAS_ADD, 1, D(2, 4), D(1, 4)), "bias");
    op = OP(BIAS_ADD_BACKWARD, 1, D(2, 3, 4, 5));
    TEXT(op, DATA_FORMAT, "NCX");
    GIVES(op, D(3));
    GIVES(OP(BIAS_ADD_BACKWARD, 1, D(2, 3, 4, 5)), D(5));
}

Test(shape_elementwise, prelu)
{
    GIVES(OP(PRELU, 1, D(2, 3, 4), D(4)), D(2, 3, 4));
    FAILS(OP(PRELU, 1, D(2, 3, 4), D(3)), "slope");
    FAILS(OP(PRELU, 1, D(2, 3, 4), D(1)), "slope"); /* per channel asks for every channel */
    gb_op *op = OP(PRELU, 1, D(2, 3, 4), D(3));
    TEXT(op, DATA_FORMAT, "NCX");
    GIVES(op, D(2, 3, 4));
    op = OP(PRELU, 1, D(2, 3, 4), D(1));
    FLAG(op, PER_CHANNEL_BROADCAST, 0);
    GIVES(op, D(2, 3, 4));
    GIVES(OP(PRELU, 1, D(2, 3, 4), D(3, 1)), D(2, 3, 4));
    FAILS(OP(PRELU, 1, D(2, 3), D(1, 2, 3)), "slope");
    op = OP(PRELU_BACKWARD, 2, D(2, 3, 4), D(1), D(2, 3, 4));
    EXPECT(op, 1, D(1));
    gb_op_destroy(op);
}

Test(shape_elementwise, dropout_and_gen_index)
{
    gb_op *op = OP(DROPOUT, 2, D(2, 3), SCALAR, D(1), SCALAR);
    EXPECT(op, 1, D(2, 3));
    gb_op_destroy(op);
    FAILS(OP(DROPOUT, 1, D(2, 3), D(2), D(1), D(1)), "seed");
    op = OP(GEN_INDEX, 1, D(2, 3));
    INTS(op, AXIS, -2);
    GIVES(op, D(2, 3));
    op = OP(GEN_INDEX, 1, D(2, 3));
    INTS(op, AXIS, 2);
    FAILS(op, "axis");
}

Test(shape_elementwise, wildcard_and_end)
{
    FAILS(OP(WILDCARD, 2, D(2, 3)), "not known");
    gb_op *op = OP(WILDCARD, 0, D(2, 3));
    output(op, D(9));
    GIVES(op, D(9));
    op = OP(END, 0, D(2, 3));
    cr_assert_eq(infer(op), GB_SUCCESS);
    gb_op_destroy(op);
}

static gb_status infer_text(const char *text, size_t id, gb_logical_tensor *tensor)
{
    gb_graph *graph;
    cr_assert_eq(gb_graph_parse_text(&graph, text, strlen(text), "text"), GB_SUCCESS, "%s",
            gb_last_error());
    gb_status status = gb_graph_infer_shapes(graph);
    cr_assert_eq(gb_graph_find_tensor(graph, id, tensor), GB_SUCCESS);
    gb_graph_destroy(graph);
    return status;
}

/* What stands beside or before a Wildcard is inferred, and what its known results reach. */
Test(shape_graph, wildcards_leave_open_only_what_needs_them)
{
#define BEHIND_WILDCARD(shape)                                                                     \
    "graph engine=cpu fpmath=strict\n0: %2:f32:" shape " = Wildcard(%1:f32:...)\n"                 \
    "1: %3:f32:... = Exp(%2)\n2: %4:f32:... = MatMul(%3, %5:f32:16x9)\n"                           \
    "3: %1:f32:... = Abs(%0:f32:4x8)\n4: %6:f32:... = StaticTranspose(%1) order=[1, 0]\n"
    gb_logical_tensor tensor;
    for (int known = 0; known < 2; known++) {
        const char *text = known ? BEHIND_WILDCARD("7x16") : BEHIND_WILDCARD("...");
        cr_expect_eq(infer_text(text, 6, &tensor), GB_SUCCESS, "%s", gb_last_error());
        cr_expect(tensor.ndims == 2 && tensor.dims[0] == 8 && tensor.dims[1] == 4);
        infer_text(text, 4, &tensor);
        cr_expect_eq(tensor.ndims, known ? 2 : GB_UNKNOWN_NDIMS);
        cr_expect(!known || (tensor.dims[0] == 7 && tensor.dims[1] == 9 && tensor.strides[0] == 9));
        infer_text(text, 2, &tensor);
        cr_expect(!known || tensor.strides[0] == 16);
    }
    const char *open = "graph engine=cpu fpmath=strict\n0: %2:f32:... = Wildcard(%1:f32:4)\n"
                       "1: %3:f32:... = Exp(%4:f32:...)\n";
    cr_expect_eq(infer_text(open, 3, &tensor), GB_INVALID_SHAPE, "an input has no excuse");
    cr_expect_eq(infer_text(BEHIND_WILDCARD("7x15"), 4, &tensor), GB_INVALID_SHAPE);
}

/* MatMul --------------------------------------------------------------------------------------- */

static gb_op *transposed(gb_op *op, uint8_t a, uint8_t b)
{
    FLAG(op, TRANSPOSE_A, a);
    FLAG(op, TRANSPOSE_B, b);
    return op;
}

Test(shape_matmul, vectors)
{
    GIVES(OP(MATMUL, 1, D(4), D(4)), SCALAR);
    GIVES(OP(MATMUL, 1, D(4), D(2, 3, 4, 5)), D(2, 3, 5));
    GIVES(OP(MATMUL, 1, D(2, 3, 4), D(4)), D(2, 3));
    GIVES(transposed(OP(MATMUL, 1, D(4), D(4)), 1, 1), SCALAR); /* no effect on vectors */
    GIVES(transposed(OP(MATMUL, 1, D(4), D(5, 4)), 1, 1), D(5));
    FAILS(OP(MATMUL, 1, SCALAR, D(4)), "rank");
}

Test(shape_matmul, matrices_and_batches)
{
    GIVES(OP(MATMUL, 1, D(2, 3), D(3, 4)), D(2, 4));
    GIVES(transposed(OP(MATMUL, 1, D(3, 2), D(4, 3)), 1, 1), D(2, 4));
    GIVES(OP(MATMUL, 1, D(7, 1, 2, 3), D(5, 3, 4)), D(7, 5, 2, 4));
    GIVES(OP(MATMUL, 1, D(2, 0), D(0, 4)), D(2, 4));
    FAILS(OP(MATMUL, 1, D(2, 384), D(385, 4)), "K is 384 in src, 385 in weights");
    FAILS(OP(MATMUL, 1, D(2, 2, 3), D(5, 3, 4)), "batches");
}

Test(shape_matmul, bias)
{
    GIVES(OP(MATMUL, 1, D(2, 3), D(3, 4), D(4)), D(2, 4));
    GIVES(OP(MATMUL, 1, D(2, 3), D(3, 4), D(2, 1)), D(2, 4));
    GIVES(OP(MATMUL, 1, D(4), D(4), D(1)), SCALAR);
    FAILS(OP(MATMUL, 1, D(2, 3), D(3, 4), D(2)), "bias");
    FAILS(OP(MATMUL, 1, D(2, 3), D(3, 4), D(1, 2, 4)), "bias");
}

/* Reductions ----------------------------------------------------------------------------------- */

Test(shape_reduce, axes)
{
    gb_op *op = OP(REDUCE_SUM, 1, D(2, 3, 4));
    INTS(op, AXES, -1, 0);
    GIVES(op, D(3));
    op = OP(REDUCE_SUM, 1, D(2, 3, 4));
    INTS(op, AXES, 0, 2);
    FLAG(op, KEEP_DIMS, 1);
    GIVES(op, D(1, 3, 1));
    op = OP(REDUCE_MAX, 1, D(2, 0, 4)); /* a dim of 0 that is not reduced stays */
    INTS(op, AXES, 2);
    GIVES(op, D(2, 0));
    op = OP(REDUCE_MEAN, 1, D(2, 3));
    INTS(op, AXES, 0, 1);
    GIVES(op, SCALAR);
    GIVES(OP(REDUCE_L2, 1, D(2, 3)), D(2, 3)); /* no axes: nothing to reduce */
}

Test(shape_reduce, bad_axes)
{
    gb_op *op = OP(REDUCE_SUM, 1, D(2, 3));
    INTS(op, AXES, 2);
    FAILS(op, "axes");
    op = OP(REDUCE_SUM, 1, D(2, 3));
    INTS(op, AXES, 1, -1);
    FAILS(op, "twice");
}

Test(shape_reduce, axes_in_a_tensor)
{
    FAILS(OP(REDUCE_SUM, 1, D(2, 3), D(1)), "not known");
    gb_op *op = OP(REDUCE_SUM, 0, D(2, 3, 4), D(1));
    output(op, D(2, 4));
    GIVES(op, D(2, 4));
    op = OP(REDUCE_SUM, 0, D(2, 3, 4), D(1));
    output(op, D(2, 5));
    FAILS(op, "no axes");
    op = OP(REDUCE_SUM, 0, D(2, 3, 4), D(1));
    FLAG(op, KEEP_DIMS, 1);
    output(op, D(2, 1, 4));
    GIVES(op, D(2, 1, 4));
    op = OP(REDUCE_SUM, 1, D(2, 3, 4), D(1));
    INTS(op, AXES, 1);
    GIVES(op, D(2, 4));
}

/* Normalisation and softmax -------------------------------------------------------------------- */

Test(shape_norm, batch_norm)
{
    gb_op *op = OP(BATCH_NORM_FORWARD_TRAINING, 5, D(2, 3, 4, 5), D(5), D(5));
    for (uint32_t i = 1; i < 5; i++)
        EXPECT(op, i, D(5));
    gb_op_destroy(op);
    op = OP(BATCH_NORM_INFERENCE, 1, D(2, 3, 4), D(3), D(3), D(3), D(3));
    TEXT(op, DATA_FORMAT, "NCX");
    GIVES(op, D(2, 3, 4));
    FAILS(OP(BATCH_NORM_INFERENCE, 1, D(2, 3, 4), D(4), D(4), D(3), D(4)), "mean");
    op = OP(BATCH_NORM_BACKWARD, 3, D(2, 3, 4, 5), D(2, 3, 4, 5), D(5), D(5), D(5));
    EXPECT(op, 2, D(5));
    gb_op_destroy(op);
    FAILS(OP(BATCH_NORM_BACKWARD, 1, D(2, 5), D(2, 4), D(5), D(5)), "diff_dst");
}

Test(shape_norm, layer_norm)
{
    gb_op *op = OP(LAYER_NORM, 3, D(2, 3, 4), D(4), D(4));
    EXPECT(op, 1, D(2, 3));
    gb_op_destroy(op);
    op = OP(LAYER_NORM, 3, D(2, 3, 4), D(3, 4), D(12));
    INTS(op, BEGIN_NORM_AXIS, 1);
    EXPECT(op, 2, D(2));
    gb_op_destroy(op);
    op = OP(LAYER_NORM, 1, D(2, 3, 4));
    INTS(op, BEGIN_NORM_AXIS, 3);
    FAILS(op, "begin_norm_axis");
    FAILS(OP(LAYER_NORM, 1, D(2, 3, 4), D(3), D(4)), "gamma");
    op = OP(LAYER_NORM, 1, D(2, 3), D(3), D(3));
    output(op, D(2, 1)); /* statistics as some graphs have them */
    output(op, D(2, 1));
    EXPECT(op, 1, D(2, 1));
    gb_op_destroy(op);
    GIVES(OP(RMS_NORM, 1, D(2, 3), D(3)), D(2, 3));
    FAILS(OP(RMS_NORM, 1, D(2, 3), D(2)), "gamma");
}

Test(shape_norm, layer_norm_backward)
{
    gb_op *op = OP(LAYER_NORM_BACKWARD, 3, D(2, 3, 4), D(2, 3, 4), D(2, 3), D(2, 3), D(4), D(4));
    EXPECT(op, 1, D(4));
    EXPECT(op, 0, D(2, 3, 4));
    gb_op_destroy(op);
    FAILS(OP(LAYER_NORM_BACKWARD, 1, D(2, 3, 4), D(2, 3, 4), D(2), D(2, 3)), "mean");
}

Test(shape_norm, group_norm)
{
    gb_op *op = OP(GROUP_NORM, 3, D(2, 6, 4), D(6), D(6));
    TEXT(op, DATA_FORMAT, "NCX");
    INTS(op, GROUPS, 3);
    EXPECT(op, 1, D(2, 3));
    gb_op_destroy(op);
    op = OP(GROUP_NORM, 1, D(2, 6, 4));
    INTS(op, GROUPS, 3);
    FAILS(op, "groups");
    op = OP(GROUP_NORM, 1, D(2, 6, 4));
    INTS(op, GROUPS, 0);
    FAILS(op, "groups");
}

Test(shape_norm, softmax)
{
    gb_op *op = OP(SOFTMAX, 2, D(2, 3, 4));
    EXPECT(op, 1, D(2, 1, 4)); /* axis 1 by default */
    gb_op_destroy(op);
    op = OP(SOFTMAX, 2, D(2, 3, 4));
    INTS(op, AXIS, -1);
    EXPECT(op, 1, D(2, 3, 1));
    gb_op_destroy(op);
    FAILS(OP(SOFTMAX, 1, D(2)), "axis");
    GIVES(OP(LOG_SOFTMAX, 1, D(2)), D(2));
    FAILS(OP(SOFTMAX_BACKWARD, 1, D(2, 3), D(2, 4)), "dst");
}

/* Movement ------------------------------------------------------------------------------------- */

Test(shape_movement, concat)
{
    gb_op *op = OP(CONCAT, 1, D(2, 3), D(2, 0), D(2, 5));
    INTS(op, AXIS, -1);
    GIVES(op, D(2, 8));
    op = OP(CONCAT, 1, D(2, 3), D(3, 3));
    INTS(op, AXIS, 1);
    FAILS(op, "axis 1");
    op = OP(CONCAT, 1, D(2, 3), D(2));
    INTS(op, AXIS, 0);
    FAILS(op, "input 1");
    op = OP(CONCAT, 1, D(2, 3));
    INTS(op, AXIS, 2);
    FAILS(op, "axis");
}

static gb_op *reshape(dims src, dims shape, uint8_t special_zero)
{
    gb_op *op = OP(STATIC_RESHAPE, 1, src);
    cr_assert_eq(gb_op_set_attr_s64(op, GB_ATTR_SHAPE, (size_t)shape.n, shape.d), GB_SUCCESS);
    FLAG(op, SPECIAL_ZERO, special_zero);
    return op;
}

Test(shape_movement, reshape)
{
    GIVES(reshape(D(2, 3, 4), D(6, -1), 0), D(6, 4));
    GIVES(reshape(D(2, 3, 4), D(0, -1), 1), D(2, 12));
    GIVES(reshape(D(2, 3, 4), D(-1), 0), D(24));
    GIVES(reshape(D(1), SCALAR, 0), SCALAR);
    GIVES(reshape(SCALAR, D(1, 1), 0), D(1, 1));
    GIVES(reshape(D(2, 0), D(0, 7), 0), D(0, 7));
    GIVES(reshape(D(2, 0), D(-1, 5), 1), D(0, 5));
    FAILS(reshape(D(2, 3), D(4), 0), "6 elements");
    FAILS(reshape(D(2, 3), D(-1, 4), 0), "divide");
    FAILS(reshape(D(2, 0), D(-1, 0), 0), "divide");
    FAILS(reshape(D(2, 3), D(-1, -1), 0), "second -1");
    FAILS(reshape(D(2, 3), D(-2, 3), 0), "-2");
    FAILS(reshape(D(2, 3), D(2, 3, 0), 1), "dim 2");
    FAILS(reshape(D(2, 3), D(INT64_MAX, INT64_MAX), 0), "large");
    FAILS(reshape(D(1), D(GB_UNKNOWN_DIM), 0), "shape");
}

Test(shape_movement, reshape_has_at_most_12_axes)
{
    gb_op *op = OP(STATIC_RESHAPE, 1, D(1));
    INTS(op, SHAPE, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    FAILS(op, "13 values");
}

Test(shape_movement, transpose)
{
    gb_op *op = OP(STATIC_TRANSPOSE, 1, D(2, 3, 4));
    INTS(op, ORDER, -1, 0, 1);
    GIVES(op, D(4, 2, 3));
    op = OP(STATIC_TRANSPOSE, 1, D(2, 3, 4));
    NO_INTS(op, ORDER);
    GIVES(op, D(4, 3, 2));
    op = OP(STATIC_TRANSPOSE, 1, D(2, 3, 4));
    INTS(op, ORDER, 0, 1);
    FAILS(op, "2 values");
    op = OP(STATIC_TRANSPOSE, 1, D(2, 3));
    INTS(op, ORDER, 1, -1);
    FAILS(op, "permutation");
    op = OP(STATIC_TRANSPOSE, 1, D(2, 3));
    INTS(op, ORDER, 0, 2);
    FAILS(op, "permutation");
}

/* Limits --------------------------------------------------------------------------------------- */

static gb_status limits(gb_op *op)
{
    cr_assert_eq(infer(op), GB_SUCCESS, "%s", gb_last_error());
    gb_status status = gb_op_check_limits(op);
    gb_op_destroy(op);
    return status;
}

Test(limits, clamp)
{
    gb_op *op = OP(CLAMP, 1, D(2));
    FLOATS(op, MIN, 1);
    FLOATS(op, MAX, 1);
    cr_assert_eq(limits(op), GB_SUCCESS);
    op = OP(CLAMP_BACKWARD, 1, D(2), D(2));
    FLOATS(op, MIN, 1);
    FLOATS(op, MAX, 0);
    cr_assert_eq(limits(op), GB_INVALID_ARGUMENTS);
}

Test(limits, quantize)
{
    gb_op *op = OP(QUANTIZE, 1, D(2, 3));
    FLOATS(op, SCALES, 0);
    cr_assert_eq(limits(op), GB_INVALID_ARGUMENTS);
    op = OP(DEQUANTIZE, 1, D(2, 3));
    FLOATS(op, SCALES, 0);
    cr_assert_eq(limits(op), GB_SUCCESS);
    op = OP(QUANTIZE, 1, D(2, 3));
    FLOATS(op, SCALES, 1, 2, 3);
    TEXT(op, QTYPE, "per_channel");
    cr_assert_eq(limits(op), GB_SUCCESS);
    op = OP(QUANTIZE, 1, D(2, 3));
    FLOATS(op, SCALES, 1, 2);
    TEXT(op, QTYPE, "per_channel");
    cr_assert_eq(limits(op), GB_INVALID_ARGUMENTS);
    op = OP(QUANTIZE, 1, D(2, 3));
    FLOATS(op, SCALES, 1, 2);
    TEXT(op, QTYPE, "per_channel");
    INTS(op, AXIS, 2);
    cr_assert_eq(limits(op), GB_INVALID_ARGUMENTS);
}

static gb_op *grouped(dims src, dims scales, dims group)
{
    gb_op *op = OP(DYNAMIC_DEQUANTIZE, 1, src, scales);
    TEXT(op, QTYPE, "per_group");
    cr_assert_eq(gb_op_set_attr_s64(op, GB_ATTR_GROUP_SHAPE, (size_t)group.n, group.d), GB_SUCCESS);
    return op;
}

Test(limits, dynamic_quantize)
{
    cr_assert_eq(limits(grouped(D(14336, 4096), D(14336, 32), D(1, 128))), GB_SUCCESS);
    cr_assert_eq(limits(grouped(D(8, 6), D(8, 2), D(1, 4))), GB_INVALID_ARGUMENTS);
    cr_assert_eq(limits(grouped(D(8, 6), D(8, 2), D(3))), GB_INVALID_ARGUMENTS);
    cr_assert_eq(limits(grouped(D(8, 6), D(16), D(1, 3))), GB_INVALID_ARGUMENTS);
    cr_assert_eq(limits(grouped(D(8, 4, 6), D(4, 4, 6), D(2, 1, 1))), GB_INVALID_ARGUMENTS);
    cr_assert_eq(limits(grouped(D(8, 6), D(8, 6), D(1, 0))), GB_INVALID_ARGUMENTS);
    gb_op *op = OP(DYNAMIC_QUANTIZE, 1, D(2, 3), D(3), D(1));
    TEXT(op, QTYPE, "per_channel");
    cr_assert_eq(limits(op), GB_SUCCESS);
    op = OP(DYNAMIC_QUANTIZE, 1, D(2, 3), D(2));
    TEXT(op, QTYPE, "per_channel");
    cr_assert_eq(limits(op), GB_INVALID_ARGUMENTS);
    cr_assert_eq(limits(OP(DYNAMIC_QUANTIZE, 1, D(2, 3), SCALAR)), GB_SUCCESS);
}
