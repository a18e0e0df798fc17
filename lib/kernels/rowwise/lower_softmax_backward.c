/* Lowers SoftMaxBackward and LogSoftmaxBackward to sweeps along the axis. */
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/rowwise/sweep.h"

#include <string.h>

static void finish(const gb_sweep_unit *unit, bool store)
{
    (void)store;
    memcpy(unit->kept[0], unit->sum[0], (size_t)unit->count * sizeof(float));
}

static void run(const gb_step_call *call)
{
    gb_sweep_run(call->params, call);
}

static gb_status plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    gb_sweep *sweep = step->params;
    const gb_logical_tensor *diff_dst = gb_op_input(op, 0);
    bool log = op->kind == GB_OP_LOG_SOFTMAX_BACKWARD;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, log ? -1 : 1), diff_dst->ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    sweep->kind = log ? GB_SWEEP_LOG_SOFTMAX : GB_SWEEP_SOFTMAX;
    sweep->finish = finish;
    gb_space space = {.ndims = diff_dst->ndims};
    memcpy(space.dims, diff_dst->dims, sizeof diff_dst->dims);
    space.roles[axis] = GB_SWEEP_REDUCED;
    for (uint32_t i = 0; i < 2; i++) {
        GB_TRY(gb_sweep_use_whole(program, step, op->inputs[i], false, &sweep->in[i]));
        gb_space_add(&space, sweep->in[i].strides);
    }
    GB_TRY(gb_sweep_use_whole(program, step, op->outputs[0], true, &sweep->out));
    gb_space_add(&space, sweep->out.strides);
    gb_sweep_init(sweep, &space, step);
    double count = (double)gb_tensor_count(diff_dst);
    if (count == 0) /* however many lines of no elements */
        sweep->units = 0;
    step->work = (log ? 16 : 8) * count;
    return GB_SUCCESS;
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(program, group, "softmax_backward", run, sizeof(gb_sweep), plan);
}

const gb_lowering gb_lowering_softmax_backward = {
        .name = "softmax_backward", .supports = gb_all_types_float, .lower = lower};
