/* What two-pass problems share, and the gradients of softmax and PReLU. */
#include "kernels/plan/two_pass_problem.h"

#include "base/status.h"
#include "graph/ops/op_table.h"

#include <string.h>

gb_status gb_two_pass_use(gb_program *program, gb_step *step, uint32_t value, bool written,
        gb_space *space, gb_operand *operand)
{
    GB_TRY(gb_operand_use_elementwise(program, step, value, written, operand));
    gb_space_add(space, operand->strides);
    return GB_SUCCESS;
}

/* SoftMaxBackward, LogSoftmaxBackward ----------------------------------------------------------- */

gb_status gb_softmax_backward_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_two_pass_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_space space = gb_space_of(gb_op_input(op, 0));
    bool log = op->kind == GB_OP_LOG_SOFTMAX_BACKWARD;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, log ? -1 : 1), space.ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    problem->kind = log ? GB_TWO_PASS_LOG_SOFTMAX : GB_TWO_PASS_SOFTMAX;
    space.roles[axis] = GB_REDUCED;
    for (uint32_t i = 0; i < 2; i++)
        GB_TRY(gb_two_pass_use(program, step, op->inputs[i], false, &space, &problem->in[i]));
    GB_TRY(gb_two_pass_use(program, step, op->outputs[0], true, &space, &problem->out));
    gb_reduced_space_init(&space, &problem->space);
    return GB_SUCCESS;
}

/* PReLUBackward --------------------------------------------------------------------------------- */

/* The slope lies on axes lead, lead + 1, ... of src, a vector of several elements on the channels.
 */
static gb_status find_lead(
        const gb_op *op, const gb_logical_tensor *src, const gb_logical_tensor *slope, int *lead)
{
    *lead = src->ndims - slope->ndims;
    bool fits = *lead >= 0;
    if (fits && slope->ndims == 1 && slope->dims[0] != 1 && src->ndims > 1)
        *lead = gb_channel_axis(op, src->ndims);
    for (int d = 0; fits && d < slope->ndims; d++)
        fits = slope->dims[d] == 1 || slope->dims[d] == src->dims[*lead + d];
    if (fits)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: slope %s does not broadcast onto %s", gb_op_label(op),
            gb_tensor_label(slope), gb_tensor_label(src));
}

/* A tensor of the slope's dims seen from the dims of src. */
static gb_status use_slope(gb_program *program, gb_step *step, uint32_t value, bool written,
        int lead, gb_space *space, gb_operand *operand)
{
    const gb_logical_tensor *tensor = &gb_program_graph(program)->values[value].tensor;
    GB_TRY(gb_operand_use(program, step, value, written, operand));
    memset(operand->strides, 0, sizeof operand->strides);
    for (int d = 0; d < tensor->ndims; d++)
        if (tensor->dims[d] != 1)
            operand->strides[lead + d] = tensor->strides[d];
    gb_space_add(space, operand->strides);
    return GB_SUCCESS;
}

gb_status gb_prelu_backward_describe(gb_program *program, const gb_group *group, gb_step *step,
        gb_prelu_backward_problem *problem)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *src = gb_op_input(op, 0), *slope = gb_op_input(op, 1);
    gb_two_pass_problem *two_pass = &problem->two_pass;
    gb_space space = gb_space_of(src);
    int lead;
    GB_TRY(find_lead(op, src, slope, &lead));
    two_pass->kind = GB_TWO_PASS_PRELU_BACKWARD;
    for (int d = 0; d < src->ndims; d++) {
        bool kept = d >= lead && d - lead < slope->ndims && slope->dims[d - lead] != 1;
        space.roles[d] = kept ? GB_KEPT : GB_REDUCED;
    }
    GB_TRY(gb_two_pass_use(program, step, op->inputs[0], false, &space, &two_pass->in[0]));
    GB_TRY(gb_two_pass_use(program, step, op->inputs[2], false, &space, &two_pass->in[1]));
    GB_TRY(gb_two_pass_use(program, step, op->outputs[0], true, &space, &two_pass->out));
    GB_TRY(use_slope(program, step, op->inputs[1], false, lead, &space, &problem->slope));
    GB_TRY(use_slope(program, step, op->outputs[1], true, lead, &space, &problem->diff_slope));
    gb_reduced_space_init(&space, &two_pass->space);
    return GB_SUCCESS;
}

/* Text ------------------------------------------------------------------------------------------ */

void gb_two_pass_problem_print(const gb_printer *printer, const void *two_pass_problem)
{
    static const char *const names[] = {[GB_TWO_PASS_SOFTMAX] = "gradient of softmax",
            [GB_TWO_PASS_LOG_SOFTMAX] = "gradient of log softmax",
            [GB_TWO_PASS_BATCH_NORM] = "batch norm",
            [GB_TWO_PASS_BATCH_NORM_RELU] = "batch norm and ReLU",
            [GB_TWO_PASS_BATCH_NORM_BACKWARD] = "gradient of batch norm",
            [GB_TWO_PASS_LAYER_NORM_BACKWARD] = "gradient of layer norm",
            [GB_TWO_PASS_PRELU_BACKWARD] = "gradient of PReLU",
            [GB_TWO_PASS_SCALE] = "gradient of batch norm with constant statistics"};
    static const char *const inputs[] = {"in0", "in1", "in2"};
    const gb_two_pass_problem *problem = two_pass_problem;
    fprintf(printer->file, "%s over ", names[problem->kind]);
    gb_reduced_space_print(printer, &problem->space);
    fputs(":\n", printer->file);
    for (int i = 0; i < GB_TWO_PASS_INPUTS; i++)
        gb_operand_print(printer, inputs[i], &problem->in[i], problem->space.ndims);
    gb_operand_print(printer, "out", &problem->out, problem->space.ndims);
}

void gb_batch_norm_problem_print(const gb_printer *printer, const void *batch_norm_problem)
{
    static const char *const forward[] = {
            "running mean", "running variance", "batch mean", "batch variance"};
    static const char *const backward[] = {"diff_gamma", "diff_beta"};
    const gb_batch_norm_problem *problem = batch_norm_problem;
    const gb_two_pass_kind kind = problem->two_pass.kind;
    bool trains = kind == GB_TWO_PASS_BATCH_NORM || kind == GB_TWO_PASS_BATCH_NORM_RELU;
    int ndims = problem->two_pass.space.ndims;
    gb_two_pass_problem_print(printer, &problem->two_pass);
    gb_operand_print(printer, "mean", &problem->mean, ndims);
    gb_operand_print(printer, "variance", &problem->variance, ndims);
    gb_operand_print(printer, "gamma", &problem->gamma, ndims);
    gb_operand_print(printer, "beta", &problem->beta, ndims);
    for (int i = 0; i < (trains ? GB_BATCH_NORM_VECTORS : 2); i++)
        gb_operand_print(printer, (trains ? forward : backward)[i], &problem->outputs[i], ndims);
    fprintf(printer->file, "  epsilon %g", (double)problem->epsilon);
    if (trains)
        fprintf(printer->file, ", momentum %g", (double)problem->momentum);
    fputs("\n", printer->file);
}

void gb_layer_norm_backward_problem_print(const gb_printer *printer, const void *norm_problem)
{
    static const char *const gradients[] = {"diff_gamma", "diff_beta"};
    const gb_layer_norm_backward_problem *problem = norm_problem;
    int ndims = problem->two_pass.space.ndims;
    gb_two_pass_problem_print(printer, &problem->two_pass);
    gb_operand_print(printer, "mean", &problem->mean, ndims);
    gb_operand_print(printer, "variance", &problem->variance, ndims);
    for (int i = 0; i < problem->n_gradients; i++) {
        fprintf(printer->file, "  %s: %s ", gradients[i],
                gb_data_type_name(problem->gradients[i].data_type));
        gb_print_slot(printer, problem->slots[i]);
        fputs("\n", printer->file);
    }
    fprintf(printer->file, "  epsilon %g\n", (double)problem->epsilon);
}

void gb_prelu_backward_problem_print(const gb_printer *printer, const void *prelu_problem)
{
    const gb_prelu_backward_problem *problem = prelu_problem;
    int ndims = problem->two_pass.space.ndims;
    gb_two_pass_problem_print(printer, &problem->two_pass);
    gb_operand_print(printer, "slope", &problem->slope, ndims);
    gb_operand_print(printer, "diff_slope", &problem->diff_slope, ndims);
}
