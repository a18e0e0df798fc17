/* Lowers PReLUBackward to a two-pass kernel over the axes along which the slope is broadcast. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/cpu/step_call.h"
#include "kernels/plan/space.h"
#include "kernels/rowwise/two_pass.h"

#include <string.h>

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

/* A slope for each element ---------------------------------------------------------------------- */

enum { TOGETHER = 4096 /* elements, whose operands stay in L2 */ };

/* Is nothing summed, and do all operands lie one behind the other, as f32? */
static bool is_line(const gb_prelu_backward_problem *problem)
{
    const gb_two_pass_problem *two_pass = &problem->two_pass;
    const gb_reduced_space *space = &two_pass->space;
    const gb_operand *const operands[] = {&two_pass->in[0], &two_pass->in[1], &two_pass->out,
            &problem->slope, &problem->diff_slope};
    bool line = space->n == 1 && space->n_kept == 1;
    for (size_t i = 0; line && i < sizeof operands / sizeof *operands; i++)
        line = operands[i]->type == GB_F32 && operands[i]->strides[space->kept[0]] == 1;
    return line;
}

static float *line_at(const gb_step_call *call, const gb_operand *operand, int64_t first)
{
    return (float *)(void *)call->buffers[operand->slot] + first;
}

/* Sums of one term each, which are added to zeros. */
static void run_line(const gb_step_call *call)
{
    const prelu_backward *plan = call->params;
    const gb_prelu_backward_problem *problem = &plan->problem;
    const gb_two_pass_problem *two_pass = &problem->two_pass;
    const int64_t all = two_pass->space.dims[two_pass->space.kept[0]];
    int64_t begin, end;
    while (gb_take_items(call, gb_div_up(all, TOGETHER), &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            const int64_t first = i * TOGETHER, cols = gb_min_i64(TOGETHER, all - first);
            gb_two_pass_block block = {.rows = 1,
                    .cols = cols,
                    .columns = true,
                    .in = {line_at(call, &two_pass->in[0], first),
                            line_at(call, &two_pass->in[1], first)},
                    .out = line_at(call, &two_pass->out, first),
                    .params = {line_at(call, &problem->slope, first)},
                    .sum = {line_at(call, &problem->diff_slope, first)}};
            memset(block.sum[0], 0, (size_t)cols * sizeof(float));
            gb_kernels_get()->two_pass_reduce(GB_TWO_PASS_PRELU_BACKWARD, &block);
        }
}

static gb_status prelu_backward_plan(gb_step *step, const gb_prelu_backward_problem *problem)
{
    prelu_backward *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    step->params = plan;
    if (is_line(problem)) {
        step->n_phases = 1;
        step->run = run_line;
        return GB_SUCCESS;
    }
    plan->two_pass = gb_two_pass_make(step, &plan->problem.two_pass);
    plan->two_pass.prepare = prelu_backward_prepare;
    plan->two_pass.finish = prelu_backward_finish;
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
