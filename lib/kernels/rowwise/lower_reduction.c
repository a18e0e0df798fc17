/* Lowers the seven Reduce ops, and BiasAddBackward: a sum over all axes but the channels. */
#include "base/dtype.h"
#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/rowwise/reduction.h"

static gb_status plan_late(gb_program *program, const gb_group *group, gb_step *step)
{
    gb_late_reduction_problem problem = {0};
    GB_TRY(gb_late_reduction_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_late_reduction_problem_print, &problem));
    return gb_late_reduction_plan(step, &problem);
}

static gb_status plan_reduction(gb_program *program, const gb_group *group, gb_step *step)
{
    gb_reduction_problem problem = {0};
    GB_TRY(gb_reduction_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_reduction_problem_print, &problem));
    return gb_reduction_plan(step, &problem);
}

static gb_status reduction_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    bool late = op->kind != GB_OP_BIAS_ADD_BACKWARD && gb_reduction_is_late(op);
    gb_step *step;
    GB_TRY(gb_program_begin(program, "reduction", &step));
    GB_TRY((late ? plan_late : plan_reduction)(program, group, step));
    step->work = 4 * (double)gb_tensor_count(gb_op_input(op, 0));
    return gb_program_add(program, step);
}

static bool reduction_supports(const gb_op *op, const char **reason)
{
    if (gb_dtype_is_f(gb_op_input(op, 0)->data_type) &&
            gb_dtype_is_f(gb_op_output(op, 0)->data_type))
        return true;
    *reason = "data type";
    return false;
}

const gb_lowering gb_lowering_reduction = {.name = "reduction",
        .supports = reduction_supports,
        .takes_epilogue = true,
        .lower = reduction_lower};

const gb_lowering gb_lowering_bias_backward = {.name = "reduction",
        .supports = gb_all_types_float,
        .takes_epilogue = true,
        .lower = reduction_lower};
