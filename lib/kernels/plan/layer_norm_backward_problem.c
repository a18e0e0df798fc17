/* Describes LayerNormBackward. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/per_axis.h"
#include "kernels/plan/two_pass_problem.h"

static gb_status check_count(const gb_op *op, const gb_logical_tensor *tensor, int64_t count)
{
    if (gb_tensor_count(tensor) == count)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: tensor %zu is %s, expected %lld elements",
            gb_op_label(op), tensor->id, gb_tensor_label(tensor), (long long)count);
}

/* A tensor with as many elements as axes first..end-1 of src, seen from there; or a dense copy of
 * it. */
static gb_status use_part(gb_program *program, const gb_op *op, uint32_t value, int first, int end,
        gb_step *step, gb_space *space, gb_operand *operand, uint32_t *copied)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    const gb_logical_tensor *tensor = &gb_program_graph(program)->values[value].tensor;
    int64_t count = 1;
    for (int d = first; d < end; d++)
        count *= src->dims[d];
    GB_TRY(check_count(op, tensor, count));
    operand->type = tensor->data_type;
    if (gb_per_axis_strides(src, first, end, tensor, operand->strides)) {
        GB_TRY(gb_program_use(program, step, value, false, &operand->slot));
    } else {
        gb_dense_strides(end - first, src->dims + first, operand->strides + first);
        *copied = value;
    }
    gb_space_add(space, operand->strides);
    return GB_SUCCESS;
}

static gb_status use_tensors(gb_program *program, const gb_op *op, int axis, gb_step *step,
        gb_space *space, gb_layer_norm_backward_problem *problem)
{
    gb_two_pass_problem *two_pass = &problem->two_pass;
    uint32_t *copied = problem->copied;
    int ndims = space->ndims;
    for (uint32_t i = 0; i < 2; i++)
        GB_TRY(gb_two_pass_use(program, step, op->inputs[i], false, space, &two_pass->in[i]));
    GB_TRY(gb_two_pass_use(program, step, op->outputs[0], true, space, &two_pass->out));
    for (int i = 0; i < GB_LAYER_NORM_VECTORS; i++)
        copied[i] = GB_NONE;
    GB_TRY(use_part(program, op, op->inputs[2], 0, axis, step, space, &problem->mean,
            &copied[GB_LAYER_NORM_MEAN]));
    GB_TRY(use_part(program, op, op->inputs[3], 0, axis, step, space, &problem->variance,
            &copied[GB_LAYER_NORM_VARIANCE]));
    if (op->n_inputs > 4 && gb_op_attr_bool(op, GB_ATTR_USE_AFFINE, true))
        GB_TRY(use_part(program, op, op->inputs[4], axis, ndims, step, space, &two_pass->in[2],
                &copied[GB_LAYER_NORM_GAMMA]));
    gb_dense_strides(ndims - axis, space->dims + axis, problem->order + axis);
    gb_space_add(space, problem->order);
    return GB_SUCCESS;
}

static gb_status use_gradients(gb_program *program, const gb_op *op, int64_t n, gb_step *step,
        gb_layer_norm_backward_problem *problem)
{
    for (uint32_t i = 1; i < op->n_outputs && i <= GB_TWO_PASS_SUMS; i++) {
        problem->gradients[i - 1] = *gb_op_output(op, i);
        GB_TRY(check_count(op, gb_op_output(op, i), n));
        GB_TRY(gb_program_use(program, step, op->outputs[i], true, &problem->slots[i - 1]));
        problem->n_gradients++;
    }
    problem->two_pass.cross = problem->n_gradients > 0;
    return GB_SUCCESS;
}

gb_status gb_layer_norm_backward_describe(gb_program *program, const gb_group *group, gb_step *step,
        gb_layer_norm_backward_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_space space = gb_space_of(gb_op_input(op, 0));
    int64_t n = 1;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_BEGIN_NORM_AXIS, -1), space.ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"begin_norm_axis\" out of range",
                gb_op_label(op));
    problem->epsilon = gb_op_attr_f32(op, GB_ATTR_EPSILON, 1e-5F);
    problem->two_pass.kind = GB_TWO_PASS_LAYER_NORM_BACKWARD;
    for (int d = axis; d < space.ndims; d++) {
        space.roles[d] = GB_REDUCED;
        n *= space.dims[d];
    }
    GB_TRY(use_tensors(program, op, axis, step, &space, problem));
    GB_TRY(use_gradients(program, op, n, step, problem));
    gb_reduced_space_init(&space, &problem->two_pass.space);
    return GB_SUCCESS;
}

gb_status gb_layer_norm_backward_copy(gb_program *program, gb_step *step, gb_add_copy_fn *add_copy,
        gb_layer_norm_backward_problem *problem)
{
    gb_operand *operands[GB_LAYER_NORM_VECTORS] = {[GB_LAYER_NORM_MEAN] = &problem->mean,
            [GB_LAYER_NORM_VARIANCE] = &problem->variance,
            [GB_LAYER_NORM_GAMMA] = &problem->two_pass.in[2]};
    for (int i = 0; i < GB_LAYER_NORM_VECTORS; i++) {
        uint32_t buffer;
        if (problem->copied[i] == GB_NONE)
            continue;
        GB_TRY(add_copy(program, problem->copied[i], &buffer));
        GB_TRY(gb_step_use_buffer(step, buffer, false, &operands[i]->slot));
    }
    return GB_SUCCESS;
}
