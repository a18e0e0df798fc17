/* Lowers SoftMaxBackward and LogSoftmaxBackward to two-pass kernels along the axis. */
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/rowwise/two_pass.h"

#include <string.h>

static void softmax_backward_finish(const gb_two_pass_item *item, bool store)
{
    (void)store;
    memcpy(item->params[0], item->sum[0], (size_t)item->count * sizeof(float));
}

static void softmax_backward_run(const gb_step_call *call)
{
    gb_two_pass_run(call->params, call);
}

static gb_status softmax_backward_plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    gb_two_pass *two_pass = step->params;
    const gb_logical_tensor *diff_dst = gb_op_input(op, 0);
    bool log = op->kind == GB_OP_LOG_SOFTMAX_BACKWARD;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, log ? -1 : 1), diff_dst->ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    two_pass->kind = log ? GB_TWO_PASS_LOG_SOFTMAX : GB_TWO_PASS_SOFTMAX;
    two_pass->finish = softmax_backward_finish;
    gb_space space = {.ndims = diff_dst->ndims};
    memcpy(space.dims, diff_dst->dims, sizeof diff_dst->dims);
    space.roles[axis] = GB_TWO_PASS_REDUCED;
    for (uint32_t i = 0; i < 2; i++) {
        GB_TRY(gb_two_pass_use_whole(program, step, op->inputs[i], false, &two_pass->in[i]));
        gb_space_add(&space, two_pass->in[i].strides);
    }
    GB_TRY(gb_two_pass_use_whole(program, step, op->outputs[0], true, &two_pass->out));
    gb_space_add(&space, two_pass->out.strides);
    gb_two_pass_init(two_pass, &space, step);
    double count = (double)gb_tensor_count(diff_dst);
    if (count == 0) /* however many lines of no elements */
        two_pass->items = 0;
    step->work = (log ? 16 : 8) * count;
    return GB_SUCCESS;
}

static gb_status softmax_backward_lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(program, group, "softmax_backward", softmax_backward_run,
            sizeof(gb_two_pass), softmax_backward_plan);
}

const gb_lowering gb_lowering_softmax_backward = {.name = "softmax_backward",
        .supports = gb_all_types_float,
        .lower = softmax_backward_lower};
