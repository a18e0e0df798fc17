/* Lowers BiasAddBackward to a sum over all axes but the channels. */
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/rowwise/reduction.h"

#include <string.h>

static void bias_backward_run(const gb_step_call *call)
{
    gb_reduction_run(call->params, call);
}

static gb_status bias_backward_plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    const gb_logical_tensor *diff_dst = gb_op_input(op, 0);
    gb_reduction *sum = step->params;
    int axis = gb_channel_axis(op, diff_dst->ndims);
    sum->kind = GB_REDUCE_SUM;
    sum->src_type = diff_dst->data_type;
    memcpy(sum->src_strides, diff_dst->strides, sizeof diff_dst->strides);
    GB_TRY(gb_program_use(program, step, op->inputs[0], false, &sum->src_slot));
    GB_TRY(gb_pointwise_build(
            program, group, op->outputs[0], gb_op_output(op, 0), step, &sum->epilogue));
    gb_space space = {.ndims = diff_dst->ndims};
    memcpy(space.dims, diff_dst->dims, sizeof diff_dst->dims);
    for (int d = 0; d < diff_dst->ndims; d++)
        space.roles[d] = d != axis;
    gb_reduction_widen(&space, false, &sum->epilogue);
    gb_space_add(&space, sum->src_strides);
    gb_space_add_pointwise(&space, &sum->epilogue);
    gb_reduction_init(sum, &space);
    step->thread_scratch = gb_reduction_thread_scratch(sum);
    step->shared_scratch = gb_reduction_shared_scratch(sum);
    step->n_phases = sum->splits > 1 ? 2 : 1;
    step->work = 4 * (double)gb_tensor_count(diff_dst);
    return GB_SUCCESS;
}

static gb_status bias_backward_lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(program, group, "reduction", bias_backward_run, sizeof(gb_reduction),
            bias_backward_plan);
}

const gb_lowering gb_lowering_bias_backward = {.name = "reduction",
        .supports = gb_all_types_float,
        .takes_epilogue = true,
        .lower = bias_backward_lower};
