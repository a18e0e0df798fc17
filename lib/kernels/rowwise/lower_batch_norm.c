/* Lowers BatchNormForwardTraining, with ReLU behind it, and BatchNormTrainingBackward, with
 * ReLUBackward in front of it, to two-pass kernels over all axes but the channels. */
#include "base/status.h"
#include "fusion/regions/batch_norm.h"
#include "fusion/regions/regions.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/rowwise/two_pass.h"

#include <math.h>
#include <string.h>

enum { SRC, DIFF_DST, MOST_VECTORS = 4 };

typedef struct batch_norm {
    gb_two_pass two_pass;
    float epsilon, momentum;
    gb_two_pass_view mean, variance, gamma, beta; /* inputs per channel */
    /* running mean and variance, batch mean and variance; or gradients of gamma and beta */
    gb_two_pass_view outputs[MOST_VECTORS];
} batch_norm;

static const batch_norm *params_of(const gb_two_pass_item *item)
{
    return item->call->params;
}

static void batch_norm_fill(float *values, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = value;
}

static void load_or(
        const gb_two_pass_item *item, const gb_two_pass_view *view, float otherwise, float *values)
{
    if (view->type == GB_UNDEF)
        batch_norm_fill(values, item->count, otherwise);
    else
        gb_two_pass_load(item, view, values);
}

/* values = 1 / sqrt(values + epsilon) */
static void invert(const gb_two_pass_item *item, float *values)
{
    float epsilon = params_of(item)->epsilon;
    for (int64_t i = 0; i < item->count; i++)
        values[i] = 1 / sqrtf(values[i] + epsilon);
}

/* Forward -------------------------------------------------------------------------------------- */

/* momentum old + (1 - momentum) batch; `room` takes the old values. */
static void store_running(const gb_two_pass_item *item, const gb_two_pass_view *old,
        const float *batch, float *room, const gb_two_pass_view *output)
{
    float momentum = params_of(item)->momentum;
    gb_two_pass_load(item, old, room);
    for (int64_t i = 0; i < item->count; i++)
        room[i] = momentum * room[i] + (1 - momentum) * batch[i];
    gb_two_pass_store(item, output, room);
}

static void finish_forward(const gb_two_pass_item *item, bool store)
{
    const batch_norm *norm = params_of(item);
    float *mean = item->params[0], *scale = item->params[1], *beta = item->params[2];
    float *variance = item->params[3], *room = item->params[4];
    float n = (float)item->two_pass->n;
    for (int64_t i = 0; i < item->count; i++) {
        mean[i] = item->two_pass->n ? item->sum[0][i] / n : 0;
        variance[i] = item->two_pass->n ? item->sum[1][i] / n : 0;
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
    gb_two_pass_load(item, &params_of(item)->mean, item->params[0]);
    gb_two_pass_load(item, &params_of(item)->variance, item->params[1]);
    invert(item, item->params[1]);
}

static void finish_backward(const gb_two_pass_item *item, bool store)
{
    const batch_norm *norm = params_of(item);
    const float *diff_beta = item->sum[0], *diff_gamma = item->sum[1];
    float n = (float)item->two_pass->n;
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
    gb_two_pass_load(item, &params_of(item)->variance, item->params[0]);
    invert(item, item->params[0]);
}

/* Planning ------------------------------------------------------------------------------------- */

static void batch_norm_run(const gb_step_call *call)
{
    const batch_norm *norm = call->params;
    gb_two_pass_run(&norm->two_pass, call);
}

/* A vector along the channels, if the op has it. */
static gb_status use_vector(gb_program *program, const gb_op *op, uint32_t i, bool output, int axis,
        gb_step *step, gb_space *space, gb_two_pass_view *view)
{
    if (i >= (output ? op->n_outputs : op->n_inputs))
        return GB_SUCCESS;
    GB_TRY(gb_two_pass_use(program, step, output ? op->outputs[i] : op->inputs[i], output, view));
    int64_t stride = view->strides[0];
    view->strides[0] = 0;
    view->strides[axis] = stride;
    gb_space_add(space, view->strides);
    return GB_SUCCESS;
}

static gb_status use_vectors(
        gb_program *program, const gb_op *op, int axis, gb_step *step, gb_space *space)
{
    batch_norm *norm = step->params;
    bool backward = op->kind == GB_OP_BATCH_NORM_BACKWARD;
    gb_two_pass_view *inputs[] = {&norm->mean, &norm->variance, &norm->gamma, &norm->beta};
    uint32_t first = backward ? 2 : 1;
    for (uint32_t i = 0; i < (backward ? 3 : MOST_VECTORS); i++)
        GB_TRY(use_vector(program, op, first + i, false, axis, step, space, inputs[i]));
    for (uint32_t i = 0; i < (backward ? 2 : MOST_VECTORS); i++)
        GB_TRY(use_vector(program, op, 1 + i, true, axis, step, space, &norm->outputs[i]));
    return GB_SUCCESS;
}

static void set_kind(const gb_op *op, const gb_op *relu, gb_two_pass *two_pass)
{
    if (op->kind == GB_OP_BATCH_NORM_FORWARD_TRAINING) {
        two_pass->kind = relu ? GB_TWO_PASS_BATCH_NORM_RELU : GB_TWO_PASS_BATCH_NORM;
        two_pass->finish = finish_forward;
    } else if (op->n_outputs > 1) {
        two_pass->kind = GB_TWO_PASS_BATCH_NORM_BACKWARD;
        two_pass->prepare = prepare_backward;
        two_pass->finish = finish_backward;
    } else {
        two_pass->kind = GB_TWO_PASS_SCALE;
        two_pass->prepare = prepare_constant;
    }
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
        gb_space *space, gb_two_pass *two_pass)
{
    uint32_t inputs[GB_TWO_PASS_INPUTS], count = list_inputs(op, relu, two_pass->kind, inputs);
    const gb_op *last = two_pass->kind == GB_TWO_PASS_BATCH_NORM_RELU ? relu : op;
    for (uint32_t i = 0; i < count; i++) {
        GB_TRY(gb_two_pass_use_whole(program, step, inputs[i], false, &two_pass->in[i]));
        gb_space_add(space, two_pass->in[i].strides);
    }
    GB_TRY(gb_two_pass_use_whole(program, step, last->outputs[0], true, &two_pass->out));
    gb_space_add(space, two_pass->out.strides);
    return GB_SUCCESS;
}

static gb_status batch_norm_plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    const gb_batch_norm_parts *parts = group->parts;
    const gb_op *relu = parts ? parts->relu : NULL;
    const gb_logical_tensor *src = gb_op_input(op, 0);
    batch_norm *norm = step->params;
    int axis = gb_channel_axis(op, src->ndims);
    norm->epsilon = gb_op_attr_f32(op, GB_ATTR_EPSILON, 1e-5F);
    norm->momentum = gb_op_attr_f32(op, GB_ATTR_MOMENTUM, 0.5F);
    set_kind(op, relu, &norm->two_pass);
    gb_space space = {.ndims = src->ndims};
    memcpy(space.dims, src->dims, sizeof src->dims);
    for (int d = 0; d < src->ndims; d++)
        space.roles[d] = d == axis ? GB_TWO_PASS_KEPT : GB_TWO_PASS_REDUCED;
    GB_TRY(use_data(program, op, relu, step, &space, &norm->two_pass));
    GB_TRY(use_vectors(program, op, axis, step, &space));
    gb_two_pass_init(&norm->two_pass, &space, step);
    double count = (double)gb_tensor_count(src);
    step->work = 12 * count;
    return GB_SUCCESS;
}

static gb_status batch_norm_lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(
            program, group, "batch_norm", batch_norm_run, sizeof(batch_norm), batch_norm_plan);
}

const gb_lowering gb_lowering_batch_norm = {
        .name = "batch_norm", .supports = gb_all_types_float, .lower = batch_norm_lower};

/* Regions -------------------------------------------------------------------------------------- */

static gb_status lower_region(gb_program *program, const gb_group *group)
{
    const gb_batch_norm_parts *parts = group->parts;
    gb_group own = *group;
    own.anchor = parts->norm->index;
    return batch_norm_lower(program, &own);
}

const gb_region_lowering gb_lowering_batch_norm_relu = {
        .region = &gb_region_batch_norm_relu, .lower = lower_region};
const gb_region_lowering gb_lowering_relu_batch_norm_backward = {
        .region = &gb_region_relu_batch_norm_backward, .lower = lower_region};
