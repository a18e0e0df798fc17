/* Everything at its largest, and one more: post-ops of a group, operands, results, ranks, inputs of
 * a Concat, lists of attributes. Each case is right against the reference, or refused with the
 * status that the header names. */
#include "fusion/fusion.h"
#include "kernel_case.h"

static size_t unary(kernel_case *c, gb_op_kind kind, size_t x, gb_data_type type)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_in(c, op, x);
    return kernel_case_out(c, op, type);
}

static size_t binary(kernel_case *c, gb_op_kind kind, size_t x, size_t y, gb_data_type type)
{
    gb_op *op = kernel_case_op(c, kind);
    kernel_case_in(c, op, x);
    kernel_case_in(c, op, y);
    return kernel_case_out(c, op, type);
}

/* Post-ops that keep values near 1 in size, each with an operand of its own where it has one;
 * operands repeat along every axis in turn. */
static size_t chain(kernel_case *c, size_t x, int n, bool operands, int ndims, const int64_t *dims)
{
    static const gb_op_kind with[] = {
            GB_OP_ADD, GB_OP_MAXIMUM, GB_OP_MULTIPLY, GB_OP_SUBTRACT, GB_OP_MINIMUM};
    static const gb_op_kind without[] = {GB_OP_TANH, GB_OP_ABS, GB_OP_SIGMOID, GB_OP_RELU};
    for (int i = 0; i < n; i++) {
        int64_t own[GB_MAX_NDIMS];
        for (int d = 0; d < ndims; d++)
            own[d] = (i >> d % 5) & 1 ? 1 : dims[d];
        x = operands ? binary(c, with[i % 5], x, kernel_case_tensor(c, GB_F32, ndims, own), GB_F32)
                     : unary(c, without[i % 4], x, GB_F32);
    }
    return x;
}

static const int lengths[] = {
        GB_GROUP_OPS - 1, GB_GROUP_OPS, GB_GROUP_OPS + 1, 2 * GB_GROUP_OPS + 1};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static size_t matmul(kernel_case *c)
{
    return binary(c, GB_OP_MATMUL, kernel_case_tensor(c, GB_F32, SHAPE(2, 5, 7)),
            kernel_case_tensor(c, GB_F32, SHAPE(7, 9)), GB_F32);
}

static size_t convolution(kernel_case *c)
{
    gb_op *op = kernel_case_op(c, GB_OP_CONVOLUTION);
    const int64_t ones[] = {1}, zeros[] = {0};
    kernel_case_ints(op, GB_ATTR_STRIDES, 1, ones);
    kernel_case_ints(op, GB_ATTR_DILATIONS, 1, ones);
    kernel_case_ints(op, GB_ATTR_PADS_BEGIN, 1, zeros);
    kernel_case_ints(op, GB_ATTR_PADS_END, 1, zeros);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    kernel_case_text(op, GB_ATTR_WEIGHTS_FORMAT, "OIX");
    kernel_case_in(c, op, kernel_case_tensor(c, GB_F32, SHAPE(2, 4, 11)));
    kernel_case_in(c, op, kernel_case_tensor(c, GB_F32, SHAPE(5, 4, 3)));
    return kernel_case_out(c, op, GB_F32);
}

static size_t softmax(kernel_case *c)
{
    return unary(c, GB_OP_SOFTMAX, kernel_case_tensor(c, GB_F32, SHAPE(2, 5, 9)), GB_F32);
}

static size_t layer_norm(kernel_case *c)
{
    gb_op *op = kernel_case_op(c, GB_OP_LAYER_NORM);
    kernel_case_flag(op, GB_ATTR_USE_AFFINE, false);
    kernel_case_flag(op, GB_ATTR_KEEP_STATS, false);
    kernel_case_in(c, op, kernel_case_tensor(c, GB_F32, SHAPE(2, 5, 9)));
    return kernel_case_out(c, op, GB_F32);
}

static size_t input(kernel_case *c)
{
    return kernel_case_tensor(c, GB_F32, SHAPE(2, 5, 9));
}

static void run_chains(size_t (*start)(kernel_case *), const char *name)
{
    for (int i = 0; i < LENGTHS; i++)
        for (int operands = 0; operands < 2; operands++) {
            kernel_case c = {.scale = 0.5, .offset = 0.25};
            chain(&c, start(&c), lengths[i], operands, SHAPE(2, 5, 9));
            kernel_case_run(&c, name);
        }
}

KERNEL_TEST(limits, post_ops_alone)
{
    run_chains(input, "links alone");
}

KERNEL_TEST(limits, post_ops_behind_a_product)
{
    run_chains(matmul, "links behind MatMul");
}

KERNEL_TEST(limits, post_ops_behind_a_convolution)
{
    run_chains(convolution, "links behind Convolution");
}

KERNEL_TEST(limits, post_ops_behind_rows)
{
    run_chains(softmax, "links behind SoftMax");
    run_chains(layer_norm, "links behind LayerNorm");
}

/* Every post-op's result leaves its group. */
KERNEL_TEST(limits, results)
{
    for (int i = 0; i < LENGTHS; i++) {
        kernel_case c = {.scale = 0.5, .offset = 0.25};
        size_t x = matmul(&c);
        for (int k = 0; k < lengths[i] / 2; k++) {
            x = unary(&c, k % 2 ? GB_OP_TANH : GB_OP_ABS, x, GB_F32);
            gb_op *end = kernel_case_op(&c, GB_OP_END);
            kernel_ok(gb_op_add_input(end, &c.tensors[x]));
        }
        kernel_case_run(&c, "results");
    }
}

/* A tree: each post-op reads the results of two. */
KERNEL_TEST(limits, branches)
{
    for (int i = 0; i < LENGTHS; i++) {
        size_t values[2 * GB_GROUP_OPS + 2];
        int n = lengths[i] + 1;
        kernel_case c = {.scale = 0.5};
        values[0] = matmul(&c);
        for (int k = 1; k < n; k++)
            values[k] = kernel_case_tensor(&c, GB_F32, SHAPE(2, 5, 9));
        for (; n > 1; n = (n + 1) / 2)
            for (int k = 0; k < n / 2; k++)
                values[k] = binary(&c, k % 2 ? GB_OP_MAXIMUM : GB_OP_ADD, values[k],
                        values[n - 1 - k], GB_F32);
        kernel_case_run(&c, "branches");
    }
}

/* Ranks ---------------------------------------------------------------------------------------- */

static const int64_t twos[GB_MAX_NDIMS] = {2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2};

/* Every second axis is of size 1, the even ones or the odd ones: no two axes can be seen as one. */
static size_t sparse(kernel_case *c, int odd)
{
    int64_t dims[GB_MAX_NDIMS];
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        dims[d] = d % 2 == odd ? 1 : twos[d];
    return kernel_case_tensor(c, GB_F32, GB_MAX_NDIMS, dims);
}

static size_t full(kernel_case *c)
{
    return kernel_case_tensor(c, GB_F32, GB_MAX_NDIMS, twos);
}

KERNEL_TEST(limits, ranks_of_post_ops)
{
    kernel_case c = {.scale = 0.5};
    size_t x = binary(&c, GB_OP_ADD, sparse(&c, 0), sparse(&c, 1), GB_F32);
    chain(&c, x, GB_GROUP_OPS + 1, true, GB_MAX_NDIMS, twos);
    kernel_case_run(&c, "links of rank 12");
    kernel_case s = {0};
    gb_op *op = kernel_case_op(&s, GB_OP_SELECT);
    size_t condition = binary(&s, GB_OP_GREATER_EQUAL, sparse(&s, 0), sparse(&s, 1), GB_BOOLEAN);
    kernel_case_in(&s, op, condition);
    kernel_case_in(&s, op, sparse(&s, 1));
    kernel_case_in(&s, op, sparse(&s, 0));
    kernel_case_out(&s, op, GB_F32);
    kernel_case_run(&s, "Select of rank 12");
}

KERNEL_TEST(limits, ranks_of_movement)
{
    int64_t order[GB_MAX_NDIMS];
    kernel_case c = {0};
    gb_op *op = kernel_case_op(&c, GB_OP_STATIC_TRANSPOSE);
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        order[d] = d % 2 ? d - 1 : GB_MAX_NDIMS - 1 - d;
    kernel_case_ints(op, GB_ATTR_ORDER, GB_MAX_NDIMS, order);
    kernel_case_in(&c, op, full(&c));
    chain(&c, kernel_case_out(&c, op, GB_F32), 2, false, GB_MAX_NDIMS, twos);
    kernel_case_run(&c, "StaticTranspose of rank 12");
    for (int axis = 0; axis < GB_MAX_NDIMS; axis++) {
        kernel_case j = {0};
        op = kernel_case_op(&j, GB_OP_CONCAT);
        kernel_case_int(op, GB_ATTR_AXIS, axis);
        for (int i = 0; i < 64; i++)
            kernel_case_in(&j, op, sparse(&j, axis % 2));
        kernel_case_out(&j, op, GB_F32);
        kernel_case_run(&j, "Concat of 64 inputs of rank 12");
    }
}

KERNEL_TEST(limits, ranks_of_rows)
{
    static const gb_op_kind kinds[] = {GB_OP_SOFTMAX, GB_OP_LOG_SOFTMAX};
    for (int i = 0; i < 2; i++)
        for (int axis = 0; axis < GB_MAX_NDIMS; axis += 3) {
            kernel_case c = {0};
            gb_op *op = kernel_case_op(&c, kinds[i]);
            kernel_case_int(op, GB_ATTR_AXIS, axis);
            kernel_case_in(&c, op, full(&c));
            chain(&c, kernel_case_out(&c, op, GB_F32), 3, true, GB_MAX_NDIMS, twos);
            kernel_case_run(&c, "SoftMax of rank 12");
        }
}

/* Every second axis, and all. */
KERNEL_TEST(limits, ranks_of_reductions)
{
    for (int step = 1; step <= 2; step++)
        for (int keep = 0; keep < 2; keep++) {
            int64_t axes[GB_MAX_NDIMS];
            int n = 0;
            for (int d = 0; d < GB_MAX_NDIMS; d += step)
                axes[n++] = d % 4 ? d : d - GB_MAX_NDIMS;
            kernel_case c = {0};
            gb_op *op = kernel_case_op(&c, GB_OP_REDUCE_MEAN);
            kernel_case_ints(op, GB_ATTR_AXES, n, axes);
            kernel_case_flag(op, GB_ATTR_KEEP_DIMS, keep);
            kernel_case_in(&c, op, full(&c));
            unary(&c, GB_OP_TANH, kernel_case_out(&c, op, GB_F32), GB_F32);
            kernel_case_run(&c, "ReduceMean of rank 12");
        }
}

/* Batch axes that repeat in turn on both sides. */
KERNEL_TEST(limits, ranks_of_products)
{
    int64_t a[GB_MAX_NDIMS], b[GB_MAX_NDIMS], results[GB_MAX_NDIMS];
    for (int d = 0; d < GB_MAX_NDIMS; d++) {
        a[d] = d % 2 ? 1 : 2;
        b[d] = d % 2 ? 2 : 1;
        results[d] = 2;
    }
    a[GB_MAX_NDIMS - 2] = 3, a[GB_MAX_NDIMS - 1] = 4;
    b[GB_MAX_NDIMS - 2] = 4, b[GB_MAX_NDIMS - 1] = 5;
    results[GB_MAX_NDIMS - 2] = 3, results[GB_MAX_NDIMS - 1] = 5;
    kernel_case c = {.scale = 0.5};
    size_t x = binary(&c, GB_OP_MATMUL, kernel_case_tensor(&c, GB_F32, GB_MAX_NDIMS, a),
            kernel_case_tensor(&c, GB_F32, GB_MAX_NDIMS, b), GB_F32);
    chain(&c, x, GB_GROUP_OPS, true, GB_MAX_NDIMS, results);
    kernel_case_run(&c, "MatMul of rank 12");
}

/* Lists ---------------------------------------------------------------------------------------- */

/* A scale and a zero point for each of many channels. */
KERNEL_TEST(limits, parameters_of_channels)
{
    enum { CHANNELS = 70000 };
    float *scales = malloc(CHANNELS * sizeof *scales);
    int64_t *zps = malloc(CHANNELS * sizeof *zps);
    for (int i = 0; i < CHANNELS; i++) {
        scales[i] = ldexpf(1, i % 7 - 5);
        zps[i] = i % 11 - 5;
    }
    for (int axis = 0; axis < 2; axis++) {
        kernel_case c = {.scale = 2};
        gb_op *op = kernel_case_op(&c, GB_OP_QUANTIZE);
        kernel_case_text(op, GB_ATTR_QTYPE, "per_channel");
        kernel_case_int(op, GB_ATTR_AXIS, axis);
        kernel_ok(gb_op_set_attr_f32(op, GB_ATTR_SCALES, CHANNELS, scales));
        kernel_ok(gb_op_set_attr_s64(op, GB_ATTR_ZPS, CHANNELS, zps));
        size_t x = axis ? kernel_case_tensor(&c, GB_F32, SHAPE(2, CHANNELS))
                        : kernel_case_tensor(&c, GB_F32, SHAPE(CHANNELS, 2));
        kernel_case_in(&c, op, x);
        kernel_case_out(&c, op, GB_S8);
        kernel_case_run(&c, "Quantize of 70000 channels");
    }
    free(scales);
    free(zps);
}

/* One more than there may be ------------------------------------------------------------------- */

static gb_status add_to_graph(kernel_case *c, gb_op *op)
{
    gb_graph *graph;
    kernel_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    gb_status status = gb_graph_add_op(graph, op);
    if (status == GB_SUCCESS)
        status = gb_graph_infer_shapes(graph);
    gb_graph_destroy(graph);
    for (size_t i = 0; i < c->n_ops; i++)
        gb_op_destroy(c->ops[i]);
    return status;
}

Test(limits, a_concat_of_65_inputs)
{
    kernel_case c = {0};
    gb_op *op = kernel_case_op(&c, GB_OP_CONCAT);
    kernel_case_int(op, GB_ATTR_AXIS, 0);
    for (int i = 0; i < 65; i++)
        kernel_case_in(&c, op, kernel_case_tensor(&c, GB_F32, SHAPE(2)));
    kernel_case_out(&c, op, GB_F32);
    cr_assert_eq(add_to_graph(&c, op), GB_INVALID_GRAPH_OP, "%s", gb_last_error());
}

Test(limits, rank_13)
{
    int64_t dims[GB_MAX_NDIMS + 1] = {0};
    gb_logical_tensor t;
    cr_assert_eq(gb_logical_tensor_init_with_dims(&t, 0, GB_F32, GB_MAX_NDIMS + 1, dims,
                         GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE),
            GB_INVALID_ARGUMENTS);
}

/* Lists for more axes than there are. */
Test(limits, lists_of_13)
{
    int64_t list[GB_MAX_NDIMS + 1];
    for (int d = 0; d <= GB_MAX_NDIMS; d++)
        list[d] = d;
    kernel_case t = {0}, r = {0};
    gb_op *op = kernel_case_op(&t, GB_OP_STATIC_TRANSPOSE);
    kernel_case_ints(op, GB_ATTR_ORDER, GB_MAX_NDIMS + 1, list);
    kernel_case_in(&t, op, full(&t));
    kernel_case_out(&t, op, GB_F32);
    cr_assert_neq(add_to_graph(&t, op), GB_SUCCESS);
    op = kernel_case_op(&r, GB_OP_STATIC_RESHAPE);
    for (int d = 0; d <= GB_MAX_NDIMS; d++)
        list[d] = 1;
    kernel_case_ints(op, GB_ATTR_SHAPE, GB_MAX_NDIMS + 1, list);
    kernel_case_flag(op, GB_ATTR_SPECIAL_ZERO, false);
    kernel_case_in(&r, op, kernel_case_tensor(&r, GB_F32, SHAPE(1)));
    kernel_case_out(&r, op, GB_F32);
    cr_assert_neq(add_to_graph(&r, op), GB_SUCCESS);
}
