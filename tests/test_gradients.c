/* Gradients of softmax, norms, PReLU and BiasAdd, and batch normalisation in training, against the
 * reference at every instruction set. */
#include "kernel_case.h"

static const gb_data_type types[] = {GB_F32, GB_BF16, GB_F16};

static const char *label(gb_op_kind kind, gb_data_type type, int ndims, const int64_t *dims)
{
    static char text[120];
    int length =
            snprintf(text, sizeof text, "%s %s", gb_op_kind_name(kind), gb_data_type_name(type));
    for (int d = 0; d < ndims; d++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%c%lld", d ? 'x' : ' ',
                (long long)dims[d]);
    return text;
}

/* Softmax -------------------------------------------------------------------------------------- */

static void softmax(gb_op_kind kind, gb_data_type type, gb_data_type result, int ndims,
        const int64_t *dims, int64_t axis)
{
    kernel_case c = {.scale = 2, .repeated = true};
    gb_op *op = kernel_case_op(&c, kind);
    kernel_case_int(op, GB_ATTR_AXIS, axis);
    for (int i = 0; i < 2; i++)
        kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    kernel_case_out(&c, op, result);
    kernel_case_run(&c, label(kind, type, ndims, dims));
}

static void both_softmax(gb_data_type type, int ndims, const int64_t *dims, int64_t axis)
{
    softmax(GB_OP_SOFTMAX_BACKWARD, type, type, ndims, dims, axis);
    softmax(GB_OP_LOG_SOFTMAX_BACKWARD, type, type, ndims, dims, axis);
}

KERNEL_TEST(gradients, softmax_lengths)
{
    for (int64_t n = 1; n <= 35; n++) {
        both_softmax(types[n % 3], SHAPE(3, 5, n), 2);
        both_softmax(types[n % 3], SHAPE(2, n, 5), 1);
        both_softmax(types[n % 3], SHAPE(n, 37), 0);
    }
}

KERNEL_TEST(gradients, softmax_sizes)
{
    for (int t = 0; t < 3; t++) {
        both_softmax(types[t], SHAPE(9000), 0);
        both_softmax(types[t], SHAPE(40, 1500), -1);
        both_softmax(types[t], SHAPE(1100, 40), 0);
        both_softmax(types[t], SHAPE(2, 3, 4, 2, 3, 4), 3);
    }
    both_softmax(GB_F32, SHAPE(3, 0, 4), 1);
    both_softmax(GB_F32, SHAPE(3, 4, 0), 1);
    softmax(GB_OP_SOFTMAX_BACKWARD, GB_BF16, GB_F32, SHAPE(7, 37), 1);
    softmax(GB_OP_SOFTMAX_BACKWARD, GB_F32, GB_F32, SHAPE(200000), 0);
}

/* Batch normalisation -------------------------------------------------------------------------- */

static size_t vector(kernel_case *c, gb_op *op, gb_data_type type, int64_t channels)
{
    size_t id = kernel_case_tensor(c, type, 1, &channels);
    kernel_case_in(c, op, id);
    return id;
}

static void batch_norm(gb_data_type type, gb_data_type stats, int ndims, const int64_t *dims,
        const char *format, int n_inputs, double offset)
{
    kernel_case c = {.scale = 1, .offset = offset, .repeated = true};
    gb_op *op = kernel_case_op(&c, GB_OP_BATCH_NORM_FORWARD_TRAINING);
    kernel_case_float(op, GB_ATTR_EPSILON, 1e-3F);
    if (n_inputs == 5)
        kernel_case_float(op, GB_ATTR_MOMENTUM, 0.9F);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, format);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    int64_t channels = dims[strcmp(format, "NCX") == 0 ? 1 : ndims - 1];
    for (int i = 1; i < n_inputs; i++)
        vector(&c, op, stats, channels);
    kernel_case_out(&c, op, type);
    for (int i = 0; i < 4; i++)
        kernel_case_out(&c, op, stats);
    kernel_case_run(&c, label(GB_OP_BATCH_NORM_FORWARD_TRAINING, type, ndims, dims));
}

static void batch_norm_backward(gb_data_type type, gb_data_type stats, int ndims,
        const int64_t *dims, const char *format, int n_outputs)
{
    kernel_case c = {.scale = 1, .offset = 1.25, .repeated = true};
    gb_op *op = kernel_case_op(&c, GB_OP_BATCH_NORM_BACKWARD);
    kernel_case_float(op, GB_ATTR_EPSILON, 1e-3F);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, format);
    for (int i = 0; i < 2; i++)
        kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    int64_t channels = dims[strcmp(format, "NCX") == 0 ? 1 : ndims - 1];
    for (int i = 0; i < (n_outputs > 1 ? 3 : 2); i++)
        vector(&c, op, stats, channels);
    kernel_case_out(&c, op, type);
    for (int i = 1; i < n_outputs; i++)
        kernel_case_out(&c, op, stats);
    kernel_case_run(&c, label(GB_OP_BATCH_NORM_BACKWARD, type, ndims, dims));
}

static void both_batch_norms(
        gb_data_type type, gb_data_type stats, int ndims, const int64_t *dims, const char *format)
{
    batch_norm(type, stats, ndims, dims, format, 5, 1.25);
    batch_norm_backward(type, stats, ndims, dims, format, 3);
    batch_norm_backward(type, stats, ndims, dims, format, 1);
}

KERNEL_TEST(gradients, batch_norm)
{
    for (int t = 0; t < 3; t++) {
        gb_data_type stats = types[t] == GB_BF16 ? GB_BF16 : GB_F32;
        both_batch_norms(types[t], stats, SHAPE(3, 5, 7, 9), "NCX");
        both_batch_norms(types[t], GB_F32, SHAPE(3, 7, 9, 5), "NXC");
        both_batch_norms(types[t], GB_F32, SHAPE(4, 37, 33), "NXC");
        both_batch_norms(types[t], GB_F32, SHAPE(2, 3, 2, 5, 3), "NCX");
        both_batch_norms(types[t], stats, SHAPE(65, 300), "NXC");
    }
    batch_norm(GB_F32, GB_F32, SHAPE(3, 5, 7, 9), "NCX", 3, 1.25);
    batch_norm(GB_F32, GB_F32, SHAPE(1, 6, 1, 1), "NCX", 5, 1.25);
    batch_norm(GB_F32, GB_F32, SHAPE(0, 6, 4, 4), "NCX", 5, 1.25);
    batch_norm_backward(GB_F32, GB_F32, SHAPE(0, 6, 4, 4), "NCX", 3);
}

/* Few channels, so that sums fall into segments; far from zero, so that E[x^2] - E[x]^2 fails. */
KERNEL_TEST(gradients, batch_norm_segments)
{
    both_batch_norms(GB_F32, GB_F32, SHAPE(2, 3, 120, 130), "NCX");
    both_batch_norms(GB_BF16, GB_F32, SHAPE(2, 120, 130, 3), "NXC");
    batch_norm(GB_F32, GB_F32, SHAPE(2, 3, 120, 130), "NCX", 5, 4096);
    batch_norm(GB_F32, GB_F32, SHAPE(2, 50, 60, 40), "NXC", 5, 4096);
    both_batch_norms(GB_F32, GB_F32, SHAPE(3000, 70), "NXC");
}

/* Layer normalisation -------------------------------------------------------------------------- */

static void layer_norm(gb_data_type type, gb_data_type stats, int ndims, const int64_t *dims,
        int begin, int n_inputs)
{
    kernel_case c = {.scale = 1, .offset = 1.25, .repeated = n_inputs > 4};
    gb_op *op = kernel_case_op(&c, GB_OP_LAYER_NORM_BACKWARD);
    kernel_case_int(op, GB_ATTR_BEGIN_NORM_AXIS, begin);
    kernel_case_float(op, GB_ATTR_EPSILON, 1e-3F);
    kernel_case_flag(op, GB_ATTR_USE_AFFINE, n_inputs > 4);
    for (int i = 0; i < 2; i++)
        kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    for (int i = 2; i < n_inputs; i++)
        kernel_case_in(&c, op,
                i < 4 ? kernel_case_tensor(&c, stats, begin, dims)
                      : kernel_case_tensor(&c, stats, ndims - begin, dims + begin));
    kernel_case_out(&c, op, type);
    for (int i = 0; n_inputs > 4 && i < 2; i++)
        kernel_case_out(&c, op, stats);
    kernel_case_run(&c, label(GB_OP_LAYER_NORM_BACKWARD, type, ndims, dims));
}

KERNEL_TEST(gradients, layer_norm)
{
    for (int64_t n = 1; n <= 35; n++) {
        layer_norm(GB_F32, GB_F32, SHAPE(3, 5, n), 2, n % 2 ? 6 : 5);
        layer_norm(GB_BF16, n % 3 ? GB_F32 : GB_BF16, SHAPE(3, 5, n), 2, 6);
        layer_norm(GB_F16, GB_F32, SHAPE(3, 5, n), 2, 4);
    }
    for (int begin = 0; begin < 4; begin++)
        for (int t = 0; t < 3; t++) {
            layer_norm(types[t], GB_F32, SHAPE(3, 4, 5, 7), begin, 6);
            layer_norm(types[t], GB_F32, SHAPE(3, 4, 5, 7), begin, 4);
        }
}

KERNEL_TEST(gradients, layer_norm_sizes)
{
    layer_norm(GB_F32, GB_F32, SHAPE(50, 3000), 1, 6);
    layer_norm(GB_BF16, GB_F32, SHAPE(9, 9000), 1, 6);
    layer_norm(GB_F32, GB_F32, SHAPE(900, 60), 1, 6);
    layer_norm(GB_F32, GB_F32, SHAPE(900, 60), 1, 4);
    layer_norm(GB_F32, GB_F32, SHAPE(7000), 0, 6);
    layer_norm(GB_F32, GB_F32, SHAPE(6, 0), 1, 6);
    layer_norm(GB_F32, GB_F32, SHAPE(0, 6), 1, 6);
}

/* PReLU and bias ------------------------------------------------------------------------------- */

static void prelu(gb_data_type type, int ndims, const int64_t *dims, int slope_ndims,
        const int64_t *slope_dims, const char *format)
{
    kernel_case c = {.scale = 1, .repeated = true};
    gb_op *op = kernel_case_op(&c, GB_OP_PRELU_BACKWARD);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, format);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, slope_ndims, slope_dims));
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    for (int i = 0; i < 2; i++)
        kernel_case_out(&c, op, type);
    kernel_case_run(&c, label(GB_OP_PRELU_BACKWARD, type, ndims, dims));
}

KERNEL_TEST(gradients, prelu)
{
    for (int t = 0; t < 3; t++) {
        prelu(types[t], SHAPE(3, 5, 7, 9), SHAPE(5), "NCX");
        prelu(types[t], SHAPE(3, 7, 9, 5), SHAPE(5), "NXC");
        prelu(types[t], SHAPE(3, 7, 9, 5), SHAPE(1), "NXC");
        prelu(types[t], SHAPE(3, 5, 7, 9), SHAPE(5, 1, 9), "NCX");
        prelu(types[t], SHAPE(3, 5, 7, 9), SHAPE(3, 5, 7, 9), "NCX");
        prelu(types[t], SHAPE(3, 5, 7, 9), SHAPE(3, 1, 7, 1), "NCX");
        prelu(types[t], SHAPE(400, 300), SHAPE(1), "NCX");
        prelu(types[t], SHAPE(2, 3, 150, 150), SHAPE(3, 1, 1), "NCX");
        prelu(types[t], SHAPE(13), SHAPE(13), "NXC");
    }
    prelu(GB_F32, SHAPE(0, 5, 7, 9), SHAPE(5), "NCX");
    prelu(GB_F32, SHAPE(0, 5), SHAPE(0, 5), "NCX");
    prelu(GB_F32, SHAPE(5, 37, 101), SHAPE(5, 37, 101), "NXC");
}

static void bias(gb_data_type type, int ndims, const int64_t *dims, const char *format)
{
    kernel_case c = {.scale = 1, .repeated = true};
    gb_op *op = kernel_case_op(&c, GB_OP_BIAS_ADD_BACKWARD);
    kernel_case_text(op, GB_ATTR_DATA_FORMAT, format);
    kernel_case_in(&c, op, kernel_case_tensor(&c, type, ndims, dims));
    kernel_case_out(&c, op, type);
    kernel_case_run(&c, label(GB_OP_BIAS_ADD_BACKWARD, type, ndims, dims));
}

KERNEL_TEST(gradients, bias)
{
    for (int t = 0; t < 3; t++) {
        bias(types[t], SHAPE(3, 5, 7, 9), "NCX");
        bias(types[t], SHAPE(3, 7, 9, 5), "NXC");
        bias(types[t], SHAPE(4, 1, 900, 70), "NXC");
        bias(types[t], SHAPE(4, 3, 120, 130), "NCX");
    }
    bias(GB_F32, SHAPE(0, 5, 7, 9), "NCX");
}
