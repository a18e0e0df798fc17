/* Lowers SoftMaxBackward and LogSoftmaxBackward to two-pass kernels along the axis. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/rowwise/two_pass.h"

#include <string.h>

typedef struct softmax_backward {
    gb_two_pass_problem problem;
    gb_two_pass two_pass;
} softmax_backward;

static void softmax_backward_finish(const gb_two_pass_item *item, bool store)
{
    (void)store;
    memcpy(item->params[0], item->sum[0], (size_t)item->count * sizeof(float));
}

static void softmax_backward_run(const gb_step_call *call)
{
    const softmax_backward *plan = call->params;
    gb_two_pass_run(&plan->two_pass, call);
}

static gb_status softmax_backward_plan(gb_step *step, const gb_two_pass_problem *problem)
{
    softmax_backward *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    plan->two_pass = gb_two_pass_make(step, &plan->problem);
    plan->two_pass.finish = softmax_backward_finish;
    if (problem->space.n == 0) /* however many lines of no elements */
        plan->two_pass.items = 0;
    step->params = plan;
    step->run = softmax_backward_run;
    return GB_SUCCESS;
}

static gb_status softmax_backward_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_two_pass_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "softmax_backward", &step));
    GB_TRY(gb_softmax_backward_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_two_pass_problem_print, &problem));
    GB_TRY(softmax_backward_plan(step, &problem));
    step->work = (problem.kind == GB_TWO_PASS_LOG_SOFTMAX ? 16 : 8) *
                 (double)gb_tensor_count(gb_op_input(op, 0));
    return gb_program_add(program, step);
}

const gb_lowering gb_lowering_softmax_backward = {.name = "softmax_backward",
        .supports = gb_all_types_float,
        .lower = softmax_backward_lower};
