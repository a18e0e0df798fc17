/* Lowers BatchNormForwardTraining, with ReLU behind it, and BatchNormTrainingBackward, with
 * ReLUBackward in front of it, to two-pass kernels over all axes but the channels. */
#include "base/status.h"
#include "fusion/regions/batch_norm.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/rowwise/two_pass.h"

#include <math.h>

typedef struct batch_norm {
    gb_batch_norm_problem problem;
    gb_two_pass two_pass;
} batch_norm;

static const gb_batch_norm_problem *problem_of(const gb_two_pass_item *item)
{
    const batch_norm *plan = item->call->params;
    return &plan->problem;
}

static void batch_norm_fill(float *values, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = value;
}

static void load_or(
        const gb_two_pass_item *item, const gb_operand *view, float otherwise, float *values)
{
    if (view->type == GB_UNDEF)
        batch_norm_fill(values, item->count, otherwise);
    else
        gb_two_pass_load(item, view, values);
}

/* values = 1 / sqrt(values + epsilon) */
static void invert(const gb_two_pass_item *item, float *values)
{
    float epsilon = problem_of(item)->epsilon;
    for (int64_t i = 0; i < item->count; i++)
        values[i] = 1 / sqrtf(values[i] + epsilon);
}

/* Forward -------------------------------------------------------------------------------------- */

/* momentum old + (1 - momentum) batch; `room` takes the old values. */
static void store_running(const gb_two_pass_item *item, const gb_operand *old, const float *batch,
        float *room, const gb_operand *output)
{
    float momentum = problem_of(item)->momentum;
    gb_two_pass_load(item, old, room);
    for (int64_t i = 0; i < item->count; i++)
        room[i] = momentum * room[i] + (1 - momentum) * batch[i];
    gb_two_pass_store(item, output, room);
}

static void finish_forward(const gb_two_pass_item *item, bool store)
{
    const gb_batch_norm_problem *norm = problem_of(item);
    float *mean = item->params[0], *scale = item->params[1], *beta = item->params[2];
    float *variance = item->params[3], *room = item->params[4];
    float n = (float)norm->two_pass.space.n;
    for (int64_t i = 0; i < item->count; i++) {
        mean[i] = norm->two_pass.space.n ? item->sum[0][i] / n : 0;
        variance[i] = norm->two_pass.space.n ? item->sum[1][i] / n : 0;
    }
    if (store) {
        store_running(item, &norm->mean, mean, room, &norm->outputs[0]);
        store_running(item, &norm->variance, variance, room, &norm->outputs[1]);
        gb_two_pass_store(item, &norm->outputs[2], mean);
        gb_two_pass_store(item, &norm->outputs[3], variance);
    }
    load_or(item, &norm->gamma, 1, scale);
    load_or(item, &norm->beta, 0, beta);
    invert(item, variance);
    for (int64_t i = 0; i < item->count; i++)
        scale[i] *= variance[i];
}

/* Backward ------------------------------------------------------------------------------------- */

static void prepare_backward(const gb_two_pass_item *item)
{
    gb_two_pass_load(item, &problem_of(item)->mean, item->params[0]);
    gb_two_pass_load(item, &problem_of(item)->variance, item->params[1]);
    invert(item, item->params[1]);
}

static void finish_backward(const gb_two_pass_item *item, bool store)
{
    const gb_batch_norm_problem *norm = problem_of(item);
    const float *diff_beta = item->sum[0], *diff_gamma = item->sum[1];
    float n = (float)norm->two_pass.space.n;
    if (store) {
        gb_two_pass_store(item, &norm->outputs[0], diff_gamma);
        if (norm->outputs[1].type != GB_UNDEF)
            gb_two_pass_store(item, &norm->outputs[1], diff_beta);
    }
    load_or(item, &norm->gamma, 1, item->params[2]);
    for (int64_t i = 0; i < item->count; i++) {
        item->params[2][i] *= item->params[1][i];
        item->params[3][i] = diff_beta[i] / n;
        item->params[4][i] = diff_gamma[i] / n;
    }
}

/* With diff_src alone the statistics count as constants. */
static void prepare_constant(const gb_two_pass_item *item)
{
    gb_two_pass_load(item, &problem_of(item)->variance, item->params[0]);
    invert(item, item->params[0]);
}

/* Planning ------------------------------------------------------------------------------------- */

static void batch_norm_run(const gb_step_call *call)
{
    const batch_norm *plan = call->params;
    gb_two_pass_run(&plan->two_pass, call);
}

static void set_functions(gb_two_pass *two_pass)
{
    switch (two_pass->problem->kind) {
    case GB_TWO_PASS_BATCH_NORM_BACKWARD:
        two_pass->prepare = prepare_backward;
        two_pass->finish = finish_backward;
        break;
    case GB_TWO_PASS_SCALE:
        two_pass->prepare = prepare_constant;
        break;
    default:
        two_pass->finish = finish_forward;
    }
}

static gb_status batch_norm_plan(gb_step *step, const gb_batch_norm_problem *problem)
{
    batch_norm *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    plan->two_pass = gb_two_pass_make(step, &plan->problem.two_pass);
    set_functions(&plan->two_pass);
    step->params = plan;
    step->run = batch_norm_run;
    return GB_SUCCESS;
}

static gb_status batch_norm_lower(gb_program *program, const gb_group *group)
{
    const gb_batch_norm_parts *parts = group->parts;
    const gb_op *op = parts ? parts->norm : gb_program_graph(program)->ops[group->anchor];
    gb_batch_norm_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "batch_norm", &step));
    GB_TRY(gb_batch_norm_describe(program, group, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_batch_norm_problem_print, &problem));
    GB_TRY(batch_norm_plan(step, &problem));
    step->work = 12 * (double)gb_tensor_count(gb_op_input(op, 0));
    return gb_program_add(program, step);
}

const gb_lowering gb_lowering_batch_norm = {
        .name = "batch_norm", .supports = gb_all_types_float, .lower = batch_norm_lower};
const gb_region_lowering gb_lowering_batch_norm_relu = {
        .region = &gb_region_batch_norm_relu, .lower = batch_norm_lower};
const gb_region_lowering gb_lowering_relu_batch_norm_backward = {
        .region = &gb_region_relu_batch_norm_backward, .lower = batch_norm_lower};
