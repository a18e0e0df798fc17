/* Describes reductions. */
#include "kernels/plan/reduction_problem.h"

#include "base/dtype.h"
#include "base/status.h"
#include "graph/ops/op_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The number of axes, from the attribute or the second input. */
static size_t count_axes(const gb_op *op, bool *in_tensor)
{
    const int64_t *axes;
    size_t n = gb_op_attr_s64s(op, GB_ATTR_AXES, &axes);
    *in_tensor = n == 0 && op->n_inputs > 1 && gb_tensor_count(gb_op_input(op, 1)) > 0;
    return *in_tensor ? (size_t)gb_tensor_count(gb_op_input(op, 1)) : n;
}

bool gb_reduction_is_late(const gb_op *op)
{
    bool in_tensor;
    count_axes(op, &in_tensor);
    return in_tensor;
}

/* Without axes every kind of Reduce is the identity, which the sum of one element is. */
static void set_kind(const gb_op *op, gb_reduction_problem *problem)
{
    bool in_tensor;
    if (op->kind == GB_OP_BIAS_ADD_BACKWARD || count_axes(op, &in_tensor) == 0)
        return;
    const gb_dtype_info *type = gb_dtype_get(gb_op_output(op, 0)->data_type);
    problem->mean = op->kind == GB_OP_REDUCE_MEAN;
    problem->root = op->kind == GB_OP_REDUCE_L2;
    switch (op->kind) {
    case GB_OP_REDUCE_L1:
        problem->kind = GB_REDUCE_SUM_ABS;
        break;
    case GB_OP_REDUCE_L2:
        problem->kind = GB_REDUCE_SUM_SQUARE;
        break;
    case GB_OP_REDUCE_PROD:
        problem->kind = GB_REDUCE_PROD;
        problem->empty = 1;
        break;
    case GB_OP_REDUCE_MAX:
        problem->kind = GB_REDUCE_MAX;
        problem->empty = (float)type->lowest;
        break;
    case GB_OP_REDUCE_MIN:
        problem->kind = GB_REDUCE_MIN;
        problem->empty = (float)type->max;
        break;
    default:
        problem->kind = GB_REDUCE_SUM;
    }
}

/* Everything but the space. */
static gb_status describe_ends(
        gb_program *program, const gb_group *group, gb_step *step, gb_reduction_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    set_kind(op, problem);
    GB_TRY(gb_operand_use(program, step, op->inputs[0], false, &problem->src));
    return gb_pointwise_build(
            program, group, op->outputs[0], gb_op_output(op, 0), step, &problem->pointwise);
}

/* The strides of a dim that dst has get back in place; reduced dims broadcast. */
static void widen(const gb_space *src, bool keep_dims, gb_pointwise_program *pointwise)
{
    for (uint32_t i = 0; i < pointwise->n_operands; i++) {
        int64_t *strides = pointwise->operands[i].strides, wide[GB_AXES] = {0};
        for (int d = 0, output = 0; d < src->ndims; d++) {
            if (!src->roles[d])
                wide[d] = strides[keep_dims ? d : output];
            if (!src->roles[d])
                output++;
        }
        memcpy(strides, wide, sizeof wide);
    }
}

void gb_reduction_set_space(gb_reduction_problem *problem, gb_space *src, bool keep_dims)
{
    widen(src, keep_dims, &problem->pointwise);
    gb_space_add(src, problem->src.strides);
    gb_space_add_pointwise(src, &problem->pointwise);
    gb_reduced_space_init(src, &problem->space);
    gb_space_set_pointwise(src, &problem->pointwise);
}

static gb_status set_roles(const gb_op *op, int ndims, uint8_t *roles)
{
    const int64_t *axes;
    if (op->kind == GB_OP_BIAS_ADD_BACKWARD) {
        for (int d = 0; d < ndims; d++)
            roles[d] = d == gb_channel_axis(op, ndims) ? GB_KEPT : GB_REDUCED;
        return GB_SUCCESS;
    }
    size_t n = gb_op_attr_s64s(op, GB_ATTR_AXES, &axes);
    for (size_t i = 0; i < n; i++) {
        int axis = gb_normalize_axis(axes[i], ndims);
        if (axis < 0)
            return gb_fail(
                    GB_INVALID_SHAPE, "%s: attribute \"axes\" out of range", gb_op_label(op));
        roles[axis] = GB_REDUCED;
    }
    return GB_SUCCESS;
}

gb_status gb_reduction_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_reduction_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_space space = gb_space_of(gb_op_input(op, 0));
    bool keep_dims =
            op->kind != GB_OP_BIAS_ADD_BACKWARD && gb_op_attr_bool(op, GB_ATTR_KEEP_DIMS, false);
    GB_TRY(describe_ends(program, group, step, problem));
    GB_TRY(set_roles(op, space.ndims, space.roles));
    gb_reduction_set_space(problem, &space, keep_dims);
    problem->divisor = (float)problem->space.n;
    return GB_SUCCESS;
}

/* Axes in a tensor ------------------------------------------------------------------------------ */

gb_status gb_late_reduction_describe(gb_program *program, const gb_group *group, gb_step *step,
        gb_late_reduction_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *src = gb_op_input(op, 0), *dst = gb_op_output(op, 0);
    const gb_logical_tensor *axes = gb_op_input(op, 1);
    GB_TRY(describe_ends(program, group, step, &problem->reduction));
    problem->src_ndims = src->ndims;
    problem->dst_ndims = dst->ndims;
    memcpy(problem->src_dims, src->dims, sizeof src->dims);
    memcpy(problem->dst_dims, dst->dims, sizeof dst->dims);
    problem->keep_dims = gb_op_attr_bool(op, GB_ATTR_KEEP_DIMS, false);
    problem->n_axes = gb_tensor_count(axes);
    problem->axes_stride = axes->ndims ? axes->strides[0] : 0;
    return gb_program_use(program, step, op->inputs[1], false, &problem->axes_slot);
}

/* Marks the axes; false when they are not axes of src, or do not lead to dst. */
static bool read_axes(const gb_late_reduction_problem *late, const int32_t *axes, gb_space *space)
{
    for (int64_t i = 0; i < late->n_axes; i++) {
        int axis = gb_normalize_axis(axes[i * late->axes_stride], space->ndims);
        if (axis < 0 || space->roles[axis])
            return false;
        space->roles[axis] = GB_REDUCED;
    }
    int n = 0;
    for (int d = 0; d < space->ndims; d++) {
        if (space->roles[d] && !late->keep_dims)
            continue;
        if (n == late->dst_ndims || late->dst_dims[n] != (space->roles[d] ? 1 : space->dims[d]))
            return false;
        n++;
    }
    return n == late->dst_ndims;
}

/* Results over no elements, of all elements of dst. */
static void refuse(const gb_late_reduction_problem *late, gb_reduction_problem *problem)
{
    gb_space space = {.ndims = late->dst_ndims};
    memcpy(space.dims, late->dst_dims, sizeof late->dst_dims);
    memset(problem->src.strides, 0, sizeof problem->src.strides);
    gb_reduction_set_space(problem, &space, true);
    problem->space.n = 0;
    problem->empty = NAN;
}

void gb_late_reduction_resolve(const gb_late_reduction_problem *late, const int32_t *axes,
        gb_pointwise_operand *operands, gb_reduction_problem *problem)
{
    *problem = late->reduction;
    memcpy(operands, late->reduction.pointwise.operands,
            late->reduction.pointwise.n_operands * sizeof *operands);
    problem->pointwise.operands = operands;
    gb_space space = {.ndims = late->src_ndims};
    memcpy(space.dims, late->src_dims, sizeof late->src_dims);
    if (read_axes(late, axes, &space))
        gb_reduction_set_space(problem, &space, late->keep_dims);
    else
        refuse(late, problem);
    problem->divisor = (float)problem->space.n;
}

/* Text ------------------------------------------------------------------------------------------ */

static const char *kind_name(const gb_reduction_problem *problem)
{
    static const char *const names[] = {[GB_REDUCE_SUM] = "sum",
            [GB_REDUCE_SUM_ABS] = "sum of absolute values",
            [GB_REDUCE_SUM_SQUARE] = "sum of squares",
            [GB_REDUCE_PROD] = "product",
            [GB_REDUCE_MAX] = "maximum",
            [GB_REDUCE_MIN] = "minimum"};
    return problem->mean ? "mean" : problem->root ? "root of sum of squares" : names[problem->kind];
}

void gb_reduction_problem_print(const gb_printer *printer, const void *reduction_problem)
{
    const gb_reduction_problem *problem = reduction_problem;
    fprintf(printer->file, "%s over ", kind_name(problem));
    gb_reduced_space_print(printer, &problem->space);
    if (problem->mean && problem->divisor != (float)problem->space.n)
        fprintf(printer->file, ", divided by %g", (double)problem->divisor);
    if (problem->zero_points != 0)
        fprintf(printer->file, ", %g taken off", (double)problem->zero_points);
    if (problem->at_least_empty)
        fprintf(printer->file, ", at least %g", (double)problem->empty);
    fputs(":\n", printer->file);
    gb_operand_print(printer, "src", &problem->src, problem->space.ndims);
    gb_pointwise_print(printer, &problem->pointwise);
}

void gb_late_reduction_problem_print(const gb_printer *printer, const void *late_problem)
{
    const gb_late_reduction_problem *problem = late_problem;
    fprintf(printer->file, "%s over ", kind_name(&problem->reduction));
    gb_print_sizes(printer, problem->src_ndims, problem->src_dims);
    fprintf(printer->file, " along %" PRId64 " axes in ", problem->n_axes);
    gb_print_slot(printer, problem->axes_slot);
    fputs(":\n", printer->file);
    gb_operand_print(printer, "src", &problem->reduction.src, problem->src_ndims);
    gb_pointwise_print(printer, &problem->reduction.pointwise);
}
