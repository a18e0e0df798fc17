/* Lowers LayerNormBackward: one two-pass kernel per row gives diff_src, and groups of rows add up
 * diff_gamma and diff_beta on the way. */
#include "base/dtype.h"
#include "base/parallel.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/movement/dense_copy.h"
#include "kernels/plan/per_axis.h"
#include "kernels/rowwise/two_pass.h"

#include <math.h>

typedef struct layer_norm_backward {
    gb_layer_norm_backward_problem problem;
    gb_two_pass two_pass;
} layer_norm_backward;

static void layer_norm_backward_prepare(const gb_two_pass_item *item)
{
    const layer_norm_backward *plan = item->call->params;
    const gb_layer_norm_backward_problem *problem = &plan->problem;
    gb_two_pass_load(item, &problem->mean, item->params[0]);
    gb_two_pass_load(item, &problem->variance, item->params[1]);
    for (int64_t i = 0; i < item->count; i++)
        item->params[1][i] = 1 / sqrtf(item->params[1][i] + problem->epsilon);
}

static void layer_norm_backward_finish(const gb_two_pass_item *item, bool store)
{
    (void)store;
    float n = (float)item->two_pass->problem->space.n;
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < item->count; k++)
            item->params[2 + i][k] = item->sum[i][k] / n;
}

/* Joins the groups' sums of this thread's share of the reduced elements. */
static void layer_norm_backward_join_groups(
        const layer_norm_backward *plan, const gb_step_call *call)
{
    const gb_layer_norm_backward_problem *problem = &plan->problem;
    const gb_reduced_space *space = &problem->two_pass.space;
    const float *first[GB_TWO_PASS_SUMS];
    int64_t begin, end, position[GB_AXES] = {0}, group_step = GB_TWO_PASS_SUMS * space->n;
    for (int s = 0; s < GB_TWO_PASS_SUMS; s++)
        first[s] = gb_two_pass_cross(&plan->two_pass, call, 0, s);
    gb_split(space->n, call->thread, call->n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        gb_position_set(space->n_reduced, space->reduced, space->dims, i, position);
        int64_t index = gb_offset(space->ndims, problem->order, position);
        for (int s = 0; s < problem->n_gradients; s++) {
            float sum = 0;
            for (int64_t group = 0; group < plan->two_pass.groups; group++)
                sum += first[s][group * group_step + i];
            const gb_logical_tensor *tensor = &problem->gradients[s];
            gb_element_set(tensor->data_type, call->buffers[problem->slots[s]],
                    gb_per_axis_offset(tensor, index), (double)sum);
        }
    }
}

static void layer_norm_backward_run(const gb_step_call *call)
{
    const layer_norm_backward *plan = call->params;
    if (call->phase == 1 && plan->two_pass.problem->cross)
        layer_norm_backward_join_groups(plan, call);
    else
        gb_two_pass_run(&plan->two_pass, call);
}

static gb_status layer_norm_backward_plan(
        gb_program *program, gb_step *step, const gb_layer_norm_backward_problem *problem)
{
    layer_norm_backward *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    GB_TRY(gb_layer_norm_backward_copy(program, step, gb_dense_copy_add, &plan->problem));
    GB_TRY(gb_step_describe(program, step, gb_layer_norm_backward_problem_print, &plan->problem));
    plan->two_pass = gb_two_pass_make(step, &plan->problem.two_pass);
    plan->two_pass.prepare = layer_norm_backward_prepare;
    plan->two_pass.finish = layer_norm_backward_finish;
    step->params = plan;
    step->run = layer_norm_backward_run;
    return GB_SUCCESS;
}

static gb_status layer_norm_backward_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_layer_norm_backward_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "layer_norm_backward", &step));
    GB_TRY(gb_layer_norm_backward_describe(program, group, step, &problem));
    GB_TRY(layer_norm_backward_plan(program, step, &problem));
    step->work = 16 * (double)gb_tensor_count(gb_op_input(op, 0));
    return gb_program_add(program, step);
}

const gb_lowering gb_lowering_layer_norm_backward = {.name = "layer_norm_backward",
        .supports = gb_all_types_float,
        .lower = layer_norm_backward_lower};
