/* Lowers the seven Reduce ops, and BiasAddBackward: a sum over all axes but the channels. */
#include "base/dtype.h"
#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/plan/channels_last.h"
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

/* All positions of an image are summed as quickly in either order; what is left is a row. */
static uint32_t reduction_reads_formats(
        const gb_op *op, uint32_t input, gb_format_candidate *candidates)
{
    const int64_t *axes;
    size_t n = gb_op_attr_s64s(op, GB_ATTR_AXES, &axes);
    int ndims = gb_op_input(op, 0)->ndims;
    bool over[GB_MAX_NDIMS] = {false};
    for (size_t i = 0; i < n; i++) {
        int axis = gb_normalize_axis(axes[i], ndims);
        if (axis >= 0)
            over[axis] = true;
    }
    bool positions = input == 0 && ndims > 2 && !over[0] && !over[1];
    for (int d = 2; d < ndims; d++)
        positions = positions && over[d];
    if (!positions)
        return 0;
    candidates[0] = (gb_format_candidate){.format = gb_channels_last(ndims), .gain = 0};
    return candidates[0].format != NULL;
}

const gb_lowering gb_lowering_reduction = {.name = "reduction",
        .supports = reduction_supports,
        .takes_epilogue = true,
        .reads_formats = reduction_reads_formats,
        .lower = reduction_lower};

const gb_lowering gb_lowering_bias_backward = {.name = "reduction",
        .supports = gb_all_types_float,
        .takes_epilogue = true,
        .lower = reduction_lower};
