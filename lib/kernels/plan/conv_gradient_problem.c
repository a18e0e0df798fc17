/* Describes ConvolutionBackwardWeights and ConvTransposeBackwardWeights. */
#include "kernels/plan/conv_gradient_problem.h"

#include "base/status.h"
#include "graph/ops/op_table.h"

/* Positions are those of the plain tensor; windows move over the other one. */
static uint32_t plain_input(const gb_op *op)
{
    return op->kind == GB_OP_CONVOLUTION_BACKWARD_WEIGHTS ? 1 : 0;
}

static gb_status weight_gradient_window_of(
        const gb_op *op, const int *data, const int *weights, gb_window *window)
{
    const gb_logical_tensor *image = gb_op_input(op, 1 - plain_input(op));
    const gb_logical_tensor *result = gb_op_output(op, 0);
    int64_t in[GB_AXES], kernel[GB_AXES];
    for (int i = 2; i < image->ndims; i++) {
        in[i - 2] = image->dims[data[i]];
        kernel[i - 2] = result->dims[weights[i]];
    }
    return gb_window_get(op, image->ndims - 2, in, kernel, false, window);
}

static void describe_side(
        const gb_logical_tensor *tensor, const int *data, int64_t groups, gb_gradient_side *side)
{
    side->type = tensor->data_type;
    side->channels = tensor->dims[data[1]] / groups;
    side->channel_stride = tensor->strides[data[1]];
    for (int a = 0; a < tensor->ndims - 1; a++) {
        int d = data[a ? a + 1 : 0];
        side->axes[a] = (gb_gradient_axis){.in = tensor->dims[d],
                .src_stride = tensor->strides[d],
                .kernel = 1,
                .stride = 1,
                .dilation = 1};
    }
}

static gb_status gradient_describe(const gb_op *op, gb_gradient_problem *gradient)
{
    const gb_logical_tensor *plain = gb_op_input(op, plain_input(op));
    const gb_logical_tensor *image = gb_op_input(op, 1 - plain_input(op));
    int data[GB_AXES], weights[GB_AXES];
    gb_gradient_side *sides = gradient->sides;
    gb_window window;
    gb_data_axes(op, plain->ndims, data);
    gb_weights_axes(op, plain->ndims, weights);
    GB_TRY(weight_gradient_window_of(op, data, weights, &window));
    describe_side(plain, data, window.groups, &sides[GB_GRADIENT_PLAIN]);
    describe_side(image, data, window.groups, &sides[GB_GRADIENT_WINDOW]);
    sides[GB_GRADIENT_PLAIN].dim = weights[0];
    sides[GB_GRADIENT_PLAIN].grouped = true;
    sides[GB_GRADIENT_WINDOW].dim = weights[1];
    gradient->groups = window.groups;
    gradient->n_axes = plain->ndims - 1;
    gradient->tap_dims[0] = -1;
    for (int a = 0; a < gradient->n_axes; a++) {
        gradient->out[a] = sides[GB_GRADIENT_PLAIN].axes[a].in;
        if (a == 0)
            continue;
        gb_gradient_axis *axis = &sides[GB_GRADIENT_WINDOW].axes[a];
        axis->kernel = window.kernel[a - 1];
        axis->stride = window.strides[a - 1];
        axis->dilation = window.dilations[a - 1];
        axis->pad = window.pads_begin[a - 1];
        gradient->tap_dims[a] = weights[a + 1];
    }
    return GB_SUCCESS;
}

gb_status gb_gradient_read_group(
        gb_program *program, const gb_group *group, gb_step *step, gb_gradient_problem *gradient)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    uint32_t plain = plain_input(op);
    gb_gradient_side *sides = gradient->sides;
    GB_TRY(gradient_describe(op, gradient));
    GB_TRY(gb_pointwise_build(
            program, group, op->outputs[0], gb_op_output(op, 0), step, &gradient->pointwise));
    GB_TRY(gb_program_value(program, op->inputs[plain], &sides[GB_GRADIENT_PLAIN].buffer));
    return gb_program_value(program, op->inputs[1 - plain], &sides[GB_GRADIENT_WINDOW].buffer);
}
