/* Describes Interpolate and InterpolateBackward. */
#include "kernels/plan/resample_problem.h"

#include "base/status.h"
#include "graph/ops/op_table.h"

#include <inttypes.h>

static gb_status describe_axes(const gb_op *op, const gb_logical_tensor *from,
        const gb_logical_tensor *to, gb_step *step, gb_resample_problem *problem)
{
    int order[GB_AXES], missing = GB_RESAMPLE_AXES - (from->ndims - 2);
    gb_data_axes(op, from->ndims, order);
    for (int a = 0; a < GB_RESAMPLE_AXES; a++) {
        gb_resample_axis *axis = &problem->axes[a];
        int dim = a < missing ? -1 : order[a - missing + 2];
        int64_t in = dim < 0 ? 1 : from->dims[dim], out = dim < 0 ? 1 : to->dims[dim];
        axis->dim = dim;
        axis->size = in;
        GB_TRY(gb_resample_taps_make(step, problem, problem->gradient ? out : in,
                problem->gradient ? in : out, &axis->taps));
    }
    return GB_SUCCESS;
}

gb_status gb_resample_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_resample_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    problem->gradient = op->kind == GB_OP_INTERPOLATE_BACKWARD;
    problem->nearest = gb_op_attr_is(op, GB_ATTR_MODE, "nearest", false);
    problem->align_corners =
            gb_op_attr_is(op, GB_ATTR_COORDINATE_TRANSFORMATION_MODE, "align_corners", false);
    uint32_t input = problem->gradient ? 1 : 0;
    const gb_logical_tensor *from = gb_op_input(op, input), *to = gb_op_output(op, 0);
    problem->channel_dim = gb_channel_axis(op, to->ndims);
    GB_TRY(gb_operand_use(program, step, op->inputs[input], false, &problem->src));
    GB_TRY(gb_pointwise_build(program, group, op->outputs[0], to, step, &problem->pointwise));
    if (gb_tensor_count(to) == 0)
        return GB_SUCCESS;
    return describe_axes(op, from, to, step, problem);
}

void gb_resample_problem_print(const gb_printer *printer, const void *resample_problem)
{
    static const char *const names[] = {"depth", "height", "width"};
    const gb_resample_problem *problem = resample_problem;
    const gb_pointwise_program *pointwise = &problem->pointwise;
    fprintf(printer->file, "%s%s interpolation over ", problem->gradient ? "gradient of " : "",
            problem->nearest ? "nearest" : "linear");
    gb_print_sizes(printer, pointwise->ndims, pointwise->dims);
    fprintf(printer->file, ", channels along dim %d%s:\n", problem->channel_dim,
            problem->align_corners ? ", corners aligned" : "");
    gb_operand_print(printer, "src", &problem->src, pointwise->ndims);
    for (int a = 0; a < GB_RESAMPLE_AXES; a++) {
        const gb_resample_axis *axis = &problem->axes[a];
        if (axis->taps.count && axis->dim >= 0)
            fprintf(printer->file, "  %s %" PRId64 " -> %" PRId64 ": up to %" PRId64 " taps\n",
                    names[a], axis->size, axis->taps.count, axis->taps.taps);
    }
    gb_pointwise_print(printer, pointwise);
}
