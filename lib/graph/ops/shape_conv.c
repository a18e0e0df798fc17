/* Shape rules of convolutions, transposed convolutions and their gradients. */
#include "graph/ops/op_rules.h"

/* The three tensors of one convolution seen as image (the padded side), kernel and positions (one
 * per window). A transposed convolution has the same three, its src being the positions and its dst
 * the image. Dims are N, C, spatial...; weights: channels of the positions, channels of the image
 * per group, spatial... */
typedef struct convolution {
    const gb_op *op;
    int ndims, n_spatial;
    int data_axes[GB_MAX_NDIMS], weights_axes[GB_MAX_NDIMS];
    bool transposed;
    gb_window window;
} convolution;

static gb_status check_rank(const gb_op *op)
{
    GB_TRY(gb_rank_between(op, 0, 3, 5));
    int ndims = gb_op_input(op, 0)->ndims;
    return gb_rank_between(op, 1, ndims, ndims);
}

static gb_status start(const gb_op *op, bool transposed, convolution *conv)
{
    GB_TRY(check_rank(op));
    conv->op = op;
    conv->transposed = transposed;
    conv->ndims = gb_op_input(op, 0)->ndims;
    conv->n_spatial = conv->ndims - 2;
    gb_data_axes(op, conv->ndims, conv->data_axes);
    gb_weights_axes(op, conv->ndims, conv->weights_axes);
    return GB_SUCCESS;
}

/* Dims in the order of the axes. */
static void permute(const convolution *conv, const gb_logical_tensor *tensor, const int *axes,
        int64_t dims[GB_MAX_NDIMS])
{
    for (int i = 0; i < conv->ndims; i++)
        dims[i] = tensor->dims[axes[i]];
}

static void shape_conv_store(
        const convolution *conv, const int64_t *dims, gb_logical_tensor *tensor)
{
    tensor->ndims = conv->ndims;
    for (int i = 0; i < conv->ndims; i++)
        tensor->dims[conv->data_axes[i]] = dims[i];
}

/* Channels against weights. Plain: weights O = all channels of the positions, I = those of the
 * image per group. Transposed: weights I = all channels of the positions, O = those of the image
 * per group. The first axis is the former in both. */
static gb_status check_channels(
        const convolution *conv, int64_t positions, int64_t image, const int64_t *weights)
{
    const char *first = conv->transposed ? "I" : "O", *second = conv->transposed ? "O" : "I";
    int64_t groups = conv->window.groups, expected;
    if (weights[0] != positions)
        return gb_fail(GB_INVALID_SHAPE, "%s: weights have %s = %lld, the tensor has %lld channels",
                gb_op_label(conv->op), first, (long long)weights[0], (long long)positions);
    if (positions % groups != 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: %lld channels do not divide into %lld groups",
                gb_op_label(conv->op), (long long)positions, (long long)groups);
    if (__builtin_mul_overflow(weights[1], groups, &expected) || expected != image)
        return gb_fail(GB_INVALID_SHAPE,
                "%s: weights have %s = %lld in each of %lld groups, the tensor has %lld channels",
                gb_op_label(conv->op), second, (long long)weights[1], (long long)groups,
                (long long)image);
    return GB_SUCCESS;
}

static gb_status check_batch(const convolution *conv, int64_t a, int64_t b)
{
    if (a == b)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: batches of %lld and %lld", gb_op_label(conv->op),
            (long long)a, (long long)b);
}

/* positions[i] of the image for every spatial axis. */
static gb_status positions_of(const convolution *conv, const int64_t *image, int64_t *positions)
{
    for (int i = 0; i < conv->n_spatial; i++)
        GB_TRY(gb_window_positions(
                conv->op, &conv->window, i, image[2 + i], false, &positions[2 + i]));
    return GB_SUCCESS;
}

/* Of a gradient, whose tensors are all known: they must belong to one convolution. */
static gb_status check_positions(
        const convolution *conv, const int64_t *image, const int64_t *positions)
{
    int64_t expected[GB_MAX_NDIMS];
    GB_TRY(positions_of(conv, image, expected));
    for (int i = 2; i < conv->ndims; i++)
        if (expected[i] != positions[i])
            return gb_fail(GB_INVALID_SHAPE,
                    "%s: spatial axis %d of %lld gives %lld window positions, the tensor has %lld",
                    gb_op_label(conv->op), i - 2, (long long)image[i], (long long)expected[i],
                    (long long)positions[i]);
    return GB_SUCCESS;
}

/* Checks the three against one another; auto_pad refers to the image. */
static gb_status shape_conv_check_all(gb_op *op, convolution *conv, const int64_t *image,
        const int64_t *positions, const int64_t *weights)
{
    GB_TRY(gb_window_get(op, conv->n_spatial, image + 2, weights + 2, false, &conv->window));
    GB_TRY(check_batch(conv, image[0], positions[0]));
    GB_TRY(check_channels(conv, positions[1], image[1], weights));
    GB_TRY(check_positions(conv, image, positions));
    return gb_window_store_pads(op, &conv->window);
}

/* src (image) and weights give dst (positions); also diff_dst (image) and weights of a transposed
 * convolution, diff_src. */
static gb_status infer_positions(gb_op *op, bool transposed, gb_logical_tensor *output)
{
    convolution conv;
    int64_t image[GB_MAX_NDIMS], weights[GB_MAX_NDIMS], positions[GB_MAX_NDIMS];
    GB_TRY(start(op, transposed, &conv));
    permute(&conv, gb_op_input(op, 0), conv.data_axes, image);
    permute(&conv, gb_op_input(op, 1), conv.weights_axes, weights);
    GB_TRY(gb_window_get(op, conv.n_spatial, image + 2, weights + 2, false, &conv.window));
    GB_TRY(check_channels(&conv, weights[0], image[1], weights));
    positions[0] = image[0];
    positions[1] = weights[0];
    GB_TRY(positions_of(&conv, image, positions));
    shape_conv_store(&conv, positions, output);
    return gb_window_store_pads(op, &conv.window);
}

/* The gradient by weights: image and positions are the two inputs, the weights' dims are given or
 * an attribute. */
static gb_status infer_weights(gb_op *op, bool transposed, gb_logical_tensor *output)
{
    convolution conv;
    int64_t src[GB_MAX_NDIMS], diff_dst[GB_MAX_NDIMS], weights[GB_MAX_NDIMS];
    GB_TRY(start(op, transposed, &conv));
    GB_TRY(gb_target_dims(op, GB_ATTR_WEIGHTS_SHAPE, conv.ndims, output));
    permute(&conv, gb_op_input(op, 0), conv.data_axes, src);
    permute(&conv, gb_op_input(op, 1), conv.data_axes, diff_dst);
    permute(&conv, output, conv.weights_axes, weights);
    return transposed ? shape_conv_check_all(op, &conv, diff_dst, src, weights)
                      : shape_conv_check_all(op, &conv, src, diff_dst, weights);
}

gb_status gb_infer_convolution(gb_op *op, gb_logical_tensor *outputs)
{
    GB_TRY(infer_positions(op, false, &outputs[0]));
    return gb_vector_input(op, 2, outputs[0].dims[gb_channel_axis(op, outputs[0].ndims)]);
}

gb_status gb_infer_convolution_backward_data(gb_op *op, gb_logical_tensor *outputs)
{
    convolution conv;
    int64_t image[GB_MAX_NDIMS], weights[GB_MAX_NDIMS], positions[GB_MAX_NDIMS];
    GB_TRY(start(op, false, &conv));
    GB_TRY(gb_target_dims(op, GB_ATTR_DST_SHAPE, conv.ndims, &outputs[0]));
    permute(&conv, &outputs[0], conv.data_axes, image);
    permute(&conv, gb_op_input(op, 0), conv.data_axes, positions);
    permute(&conv, gb_op_input(op, 1), conv.weights_axes, weights);
    return shape_conv_check_all(op, &conv, image, positions, weights);
}

gb_status gb_infer_convolution_backward_weights(gb_op *op, gb_logical_tensor *outputs)
{
    return infer_weights(op, false, &outputs[0]);
}

gb_status gb_infer_conv_transpose(gb_op *op, gb_logical_tensor *outputs)
{
    convolution conv;
    int64_t positions[GB_MAX_NDIMS], weights[GB_MAX_NDIMS], image[GB_MAX_NDIMS];
    GB_TRY(start(op, true, &conv));
    permute(&conv, gb_op_input(op, 0), conv.data_axes, positions);
    permute(&conv, gb_op_input(op, 1), conv.weights_axes, weights);
    GB_TRY(gb_window_get(op, conv.n_spatial, positions + 2, weights + 2, true, &conv.window));
    image[0] = positions[0];
    if (__builtin_mul_overflow(weights[1], conv.window.groups, &image[1]))
        return gb_fail(GB_INVALID_SHAPE, "%s: %lld groups of %lld channels are too many",
                gb_op_label(op), (long long)conv.window.groups, (long long)weights[1]);
    GB_TRY(check_channels(&conv, positions[1], image[1], weights));
    for (int i = 0; i < conv.n_spatial; i++)
        GB_TRY(gb_window_transposed_size(op, &conv.window, i, positions[2 + i], &image[2 + i]));
    shape_conv_store(&conv, image, &outputs[0]);
    GB_TRY(gb_vector_input(op, 2, image[1]));
    return gb_window_store_pads(op, &conv.window);
}

gb_status gb_infer_conv_transpose_backward_data(gb_op *op, gb_logical_tensor *outputs)
{
    return infer_positions(op, true, &outputs[0]);
}

gb_status gb_infer_conv_transpose_backward_weights(gb_op *op, gb_logical_tensor *outputs)
{
    return infer_weights(op, true, &outputs[0]);
}
