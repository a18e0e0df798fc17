/* Describes convolutions of both directions: Convolution and ConvTransposeBackwardData run from an
 * image to the positions of windows, ConvTranspose and ConvolutionBackwardData back. */
#include "kernels/plan/conv_problem.h"

#include "base/status.h"
#include "graph/ops/op_table.h"

enum { SRC, WEIGHTS };

bool gb_conv_is_backward(const gb_op *op)
{
    return op->kind == GB_OP_CONV_TRANSPOSE || op->kind == GB_OP_CONVOLUTION_BACKWARD_DATA;
}

static gb_status conv_window_of(
        const gb_op *op, const int *data, const int *weights, gb_window *window)
{
    const gb_logical_tensor *filter = gb_op_input(op, WEIGHTS), *image = gb_op_input(op, SRC);
    int64_t in[GB_AXES], kernel[GB_AXES];
    if (op->kind == GB_OP_CONVOLUTION_BACKWARD_DATA)
        image = gb_op_output(op, 0);
    for (int i = 2; i < image->ndims; i++) {
        in[i - 2] = image->dims[data[i]];
        kernel[i - 2] = filter->dims[weights[i]];
    }
    return gb_window_get(
            op, image->ndims - 2, in, kernel, op->kind == GB_OP_CONV_TRANSPOSE, window);
}

/* Groups split the channels at the positions of windows. */
static void describe_channels(const gb_op *op, const gb_logical_tensor *src,
        const gb_logical_tensor *filter, const int *data, const int *weights, int64_t groups,
        gb_conv_problem *conv)
{
    int in = weights[gb_conv_is_backward(op) ? 0 : 1],
        out = weights[gb_conv_is_backward(op) ? 1 : 0];
    conv->src_type = src->data_type;
    conv->weights_type = filter->data_type;
    conv->channel_dim = data[1];
    conv->src_channel_stride = src->strides[data[1]];
    conv->out_stride = filter->strides[out];
    conv->in_stride = filter->strides[in];
    conv->groups = groups;
    conv->in_channels = filter->dims[in] / (gb_conv_is_backward(op) ? groups : 1);
    conv->out_channels = filter->dims[out] / (gb_conv_is_backward(op) ? 1 : groups);
    conv->group_stride = gb_conv_is_backward(op) ? conv->in_channels * conv->in_stride
                                                 : conv->out_channels * conv->out_stride;
}

/* Backward, a window's first tap meets last: taps are counted from the other end. */
static void turn_axis(gb_conv_problem *conv, gb_conv_axis *axis)
{
    axis->input_dilation = axis->stride;
    axis->stride = 1;
    axis->pad = (axis->kernel - 1) * axis->dilation - axis->pad;
    conv->first_weight += (axis->kernel - 1) * axis->tap_stride;
    axis->tap_stride = -axis->tap_stride;
}

gb_status gb_conv_describe(const gb_op *op, const gb_logical_tensor *src,
        const gb_logical_tensor *filter, gb_conv_problem *conv)
{
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    int data[GB_AXES], weights[GB_AXES];
    gb_window window;
    gb_data_axes(op, src->ndims, data);
    gb_weights_axes(op, filter->ndims, weights);
    GB_TRY(conv_window_of(op, data, weights, &window));
    describe_channels(op, src, filter, data, weights, window.groups, conv);
    conv->n_axes = src->ndims - 1;
    conv->axes[0] = (gb_conv_axis){.kernel = 1, .stride = 1, .dilation = 1, .input_dilation = 1};
    for (int i = 2; i < src->ndims; i++) {
        conv->axes[i - 1] = (gb_conv_axis){.kernel = window.kernel[i - 2],
                .stride = window.strides[i - 2],
                .dilation = window.dilations[i - 2],
                .pad = window.pads_begin[i - 2],
                .input_dilation = 1,
                .tap_stride = filter->strides[weights[i]]};
        if (gb_conv_is_backward(op))
            turn_axis(conv, &conv->axes[i - 1]);
    }
    for (int a = 0; a < conv->n_axes; a++) {
        gb_conv_axis *axis = &conv->axes[a];
        axis->dim = data[a ? a + 1 : 0];
        axis->in = src->dims[axis->dim];
        axis->out = dst->dims[axis->dim];
        axis->src_stride = src->strides[axis->dim];
    }
    return GB_SUCCESS;
}

gb_status gb_conv_describe_op(const gb_op *op, gb_conv_problem *conv)
{
    return gb_conv_describe(op, gb_op_input(op, SRC), gb_op_input(op, WEIGHTS), conv);
}

gb_status gb_conv_describe_int8(const gb_conv_int8_parts *parts, gb_conv_problem *conv)
{
    conv->zero_point = (float)parts->zero_point;
    conv->scale = parts->scale;
    conv->n_scales = parts->n_scales;
    conv->scales = parts->scales;
    return gb_conv_describe(parts->conv, gb_op_input(parts->src.dequantize, 0),
            gb_op_input(parts->weights.dequantize, 0), conv);
}

gb_status gb_conv_describe_pair(
        const gb_conv_pair_parts *parts, gb_conv_problem *producer, gb_conv_problem *conv)
{
    GB_TRY(gb_conv_describe_op(parts->pointwise, producer));
    GB_TRY(gb_conv_describe_op(parts->depthwise, conv));
    conv->src_type = GB_F32;
    conv->producer = producer;
    return GB_SUCCESS;
}

bool gb_conv_is_pointwise(const gb_conv_problem *conv)
{
    for (int a = 0; a < conv->n_axes; a++) {
        const gb_conv_axis *axis = &conv->axes[a];
        if (axis->kernel != 1 || axis->stride != 1 || axis->input_dilation != 1 || axis->pad != 0 ||
                axis->in != axis->out)
            return false;
    }
    return conv->groups == 1;
}

const gb_pointwise_operand *gb_conv_result(const gb_pointwise_program *pointwise)
{
    for (uint32_t i = 0; i < pointwise->n_operands; i++)
        if (pointwise->operands[i].written && pointwise->operands[i].slot < GB_SCRATCH_OPERAND)
            return &pointwise->operands[i];
    return NULL;
}
