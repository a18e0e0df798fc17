/* Describes SoftMax and LogSoftmax. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/row_problem.h"

static gb_status use_stats(gb_program *program, const gb_op *op, int axis, gb_step *step,
        gb_space *space, gb_operand *stats)
{
    GB_TRY(gb_operand_use(program, step, op->outputs[1], true, stats));
    stats->strides[axis] = 0;
    gb_space_add(space, stats->strides);
    return GB_SUCCESS;
}

gb_status gb_softmax_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_softmax_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_row_problem *rows = &problem->rows;
    gb_space space = gb_space_of(gb_op_input(op, 0));
    bool log = op->kind == GB_OP_LOG_SOFTMAX;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, log ? -1 : 1), space.ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    problem->log = log;
    problem->inf_as_zero = gb_op_attr_is(op, GB_ATTR_MODE, "inf_as_zero", false);
    space.roles[axis] = GB_REDUCED;
    GB_TRY(gb_operand_use_elementwise(program, step, op->inputs[0], false, &rows->src));
    GB_TRY(gb_pointwise_build(
            program, group, op->outputs[0], gb_op_output(op, 0), step, &rows->pointwise));
    gb_space_add(&space, rows->src.strides);
    gb_space_add_pointwise(&space, &rows->pointwise);
    if (op->n_outputs > 1)
        GB_TRY(use_stats(program, op, axis, step, &space, &problem->stats));
    gb_reduced_space_init(&space, &rows->space);
    gb_space_set_pointwise(&space, &rows->pointwise);
    rows->pointwise.over_source = true;
    rows->pointwise.source = rows->src.slot;
    return GB_SUCCESS;
}

void gb_softmax_problem_print(const gb_printer *printer, const void *softmax_problem)
{
    const gb_softmax_problem *problem = softmax_problem;
    const gb_reduced_space *space = &problem->rows.space;
    fputs(problem->log ? "log softmax over " : "softmax over ", printer->file);
    gb_reduced_space_print(printer, space);
    fputs(problem->inf_as_zero ? ", rows of -inf give 0:\n" : ":\n", printer->file);
    gb_operand_print(printer, "src", &problem->rows.src, space->ndims);
    gb_operand_print(printer, "stats", &problem->stats, space->ndims);
    gb_pointwise_print(printer, &problem->rows.pointwise);
}
