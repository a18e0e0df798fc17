/* Lowers PReLUBackward to a two-pass kernel over the axes along which the slope is broadcast. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/rowwise/two_pass.h"

typedef struct prelu_backward {
    gb_prelu_backward_problem problem;
    gb_two_pass two_pass;
} prelu_backward;

static void prelu_backward_prepare(const gb_two_pass_item *item)
{
    const prelu_backward *plan = item->call->params;
    gb_two_pass_load(item, &plan->problem.slope, item->params[0]);
}

static void prelu_backward_finish(const gb_two_pass_item *item, bool store)
{
    const prelu_backward *plan = item->call->params;
    if (store)
        gb_two_pass_store(item, &plan->problem.diff_slope, item->sum[0]);
}

static void prelu_backward_run(const gb_step_call *call)
{
    const prelu_backward *plan = call->params;
    gb_two_pass_run(&plan->two_pass, call);
}

static gb_status prelu_backward_plan(gb_step *step, const gb_prelu_backward_problem *problem)
{
    prelu_backward *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    plan->two_pass = gb_two_pass_make(step, &plan->problem.two_pass);
    plan->two_pass.prepare = prelu_backward_prepare;
    plan->two_pass.finish = prelu_backward_finish;
    step->params = plan;
    step->run = prelu_backward_run;
    return GB_SUCCESS;
}

static gb_status prelu_backward_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_prelu_backward_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "prelu_backward", &step));
    GB_TRY(gb_prelu_backward_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_prelu_backward_problem_print, &problem));
    GB_TRY(prelu_backward_plan(step, &problem));
    step->work = 12 * (double)gb_tensor_count(gb_op_input(op, 0));
    return gb_program_add(program, step);
}

const gb_lowering gb_lowering_prelu_backward = {
        .name = "prelu_backward", .supports = gb_all_types_float, .lower = prelu_backward_lower};
