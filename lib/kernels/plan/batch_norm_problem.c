/* Describes BatchNormForwardTraining and BatchNormTrainingBackward. */
#include "base/status.h"
#include "fusion/regions/batch_norm.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/two_pass_problem.h"

enum { SRC, DIFF_DST };

/* A vector along the channels, if the op has it. */
static gb_status use_vector(gb_program *program, const gb_op *op, uint32_t i, bool output, int axis,
        gb_step *step, gb_space *space, gb_operand *vector)
{
    if (i >= (output ? op->n_outputs : op->n_inputs))
        return GB_SUCCESS;
    GB_TRY(gb_operand_use(program, step, output ? op->outputs[i] : op->inputs[i], output, vector));
    int64_t stride = vector->strides[0];
    vector->strides[0] = 0;
    vector->strides[axis] = stride;
    gb_space_add(space, vector->strides);
    return GB_SUCCESS;
}

static gb_status use_vectors(gb_program *program, const gb_op *op, int axis, gb_step *step,
        gb_space *space, gb_batch_norm_problem *problem)
{
    bool backward = op->kind == GB_OP_BATCH_NORM_BACKWARD;
    gb_operand *inputs[] = {&problem->mean, &problem->variance, &problem->gamma, &problem->beta};
    uint32_t first = backward ? 2 : 1;
    for (uint32_t i = 0; i < (backward ? 3 : GB_BATCH_NORM_VECTORS); i++)
        GB_TRY(use_vector(program, op, first + i, false, axis, step, space, inputs[i]));
    for (uint32_t i = 0; i < (backward ? 2 : GB_BATCH_NORM_VECTORS); i++)
        GB_TRY(use_vector(program, op, 1 + i, true, axis, step, space, &problem->outputs[i]));
    return GB_SUCCESS;
}

/* With diff_src alone the statistics count as constants. */
static gb_two_pass_kind kind_of(const gb_op *op, const gb_op *relu)
{
    if (op->kind == GB_OP_BATCH_NORM_FORWARD_TRAINING)
        return relu ? GB_TWO_PASS_BATCH_NORM_RELU : GB_TWO_PASS_BATCH_NORM;
    return op->n_outputs > 1 ? GB_TWO_PASS_BATCH_NORM_BACKWARD : GB_TWO_PASS_SCALE;
}

/* src and diff_dst, or one of them alone. Behind a ReLUBackward of the group what that reads, its
 * signs last. */
static uint32_t list_inputs(
        const gb_op *op, const gb_op *relu, gb_two_pass_kind kind, uint32_t *inputs)
{
    bool backward = op->kind == GB_OP_BATCH_NORM_BACKWARD;
    uint32_t n = 0;
    if (kind != GB_TWO_PASS_SCALE)
        inputs[n++] = op->inputs[SRC];
    if (backward)
        inputs[n++] = relu ? relu->inputs[1] : op->inputs[DIFF_DST];
    if (backward && relu)
        inputs[n++] = relu->inputs[0];
    return n;
}

static gb_status use_data(gb_program *program, const gb_op *op, const gb_op *relu, gb_step *step,
        gb_space *space, gb_two_pass_problem *two_pass)
{
    uint32_t inputs[GB_TWO_PASS_INPUTS], count = list_inputs(op, relu, two_pass->kind, inputs);
    const gb_op *last = two_pass->kind == GB_TWO_PASS_BATCH_NORM_RELU ? relu : op;
    for (uint32_t i = 0; i < count; i++)
        GB_TRY(gb_two_pass_use(program, step, inputs[i], false, space, &two_pass->in[i]));
    return gb_two_pass_use(program, step, last->outputs[0], true, space, &two_pass->out);
}

gb_status gb_batch_norm_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_batch_norm_problem *problem)
{
    const gb_batch_norm_parts *parts = group->parts;
    const gb_op *op = parts ? parts->norm : gb_program_graph(program)->ops[group->anchor];
    const gb_op *relu = parts ? parts->relu : NULL;
    gb_two_pass_problem *two_pass = &problem->two_pass;
    gb_space space = gb_space_of(gb_op_input(op, 0));
    int axis = gb_channel_axis(op, space.ndims);
    problem->epsilon = gb_op_attr_f32(op, GB_ATTR_EPSILON, 1e-5F);
    problem->momentum = gb_op_attr_f32(op, GB_ATTR_MOMENTUM, 0.5F);
    two_pass->kind = kind_of(op, relu);
    for (int d = 0; d < space.ndims; d++)
        space.roles[d] = d == axis ? GB_KEPT : GB_REDUCED;
    GB_TRY(use_data(program, op, relu, step, &space, two_pass));
    GB_TRY(use_vectors(program, op, axis, step, &space, problem));
    gb_reduced_space_init(&space, &two_pass->space);
    return GB_SUCCESS;
}
