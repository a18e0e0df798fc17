/* Lowers PReLUBackward to a sweep over the axes along which the slope is broadcast. */
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/rowwise/sweep.h"

#include <string.h>

typedef struct prelu_backward {
    gb_sweep sweep;
    gb_sweep_view slope, diff_slope;
} prelu_backward;

static void prepare(const gb_sweep_unit *unit)
{
    const prelu_backward *params = unit->call->params;
    gb_sweep_load(unit, &params->slope, unit->kept[0]);
}

static void finish(const gb_sweep_unit *unit, bool store)
{
    const prelu_backward *params = unit->call->params;
    if (store)
        gb_sweep_store(unit, &params->diff_slope, unit->sum[0]);
}

static void run(const gb_step_call *call)
{
    const prelu_backward *params = call->params;
    gb_sweep_run(&params->sweep, call);
}

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

/* The view of a tensor of the slope's dims from the dims of src. */
static void widen(const gb_logical_tensor *tensor, int lead, gb_sweep_view *view)
{
    memset(view->strides, 0, sizeof view->strides);
    for (int d = 0; d < tensor->ndims; d++)
        if (tensor->dims[d] != 1)
            view->strides[lead + d] = tensor->strides[d];
}

static gb_status plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    const gb_logical_tensor *src = gb_op_input(op, 0), *slope = gb_op_input(op, 1);
    prelu_backward *params = step->params;
    gb_sweep *sweep = &params->sweep;
    int lead;
    GB_TRY(find_lead(op, src, slope, &lead));
    sweep->kind = GB_SWEEP_PRELU_BACKWARD;
    sweep->prepare = prepare;
    sweep->finish = finish;
    gb_space space = {.ndims = src->ndims};
    memcpy(space.dims, src->dims, sizeof src->dims);
    for (int d = 0; d < src->ndims; d++) {
        bool kept = d >= lead && d - lead < slope->ndims && slope->dims[d - lead] != 1;
        space.roles[d] = kept ? GB_SWEEP_KEPT : GB_SWEEP_REDUCED;
    }
    GB_TRY(gb_sweep_use_whole(program, step, op->inputs[0], false, &sweep->in[0]));
    GB_TRY(gb_sweep_use_whole(program, step, op->inputs[2], false, &sweep->in[1]));
    GB_TRY(gb_sweep_use_whole(program, step, op->outputs[0], true, &sweep->out));
    GB_TRY(gb_sweep_use(program, step, op->inputs[1], false, &params->slope));
    GB_TRY(gb_sweep_use(program, step, op->outputs[1], true, &params->diff_slope));
    widen(slope, lead, &params->slope);
    widen(gb_op_output(op, 1), lead, &params->diff_slope);
    gb_sweep_view *views[] = {
            &sweep->in[0], &sweep->in[1], &sweep->out, &params->slope, &params->diff_slope};
    for (int i = 0; i < 5; i++)
        gb_space_add(&space, views[i]->strides);
    gb_sweep_init(sweep, &space, step);
    double count = (double)gb_tensor_count(src);
    step->work = 12 * count;
    return GB_SUCCESS;
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(program, group, "prelu_backward", run, sizeof(prelu_backward), plan);
}

const gb_lowering gb_lowering_prelu_backward = {
        .name = "prelu_backward", .supports = gb_all_types_float, .lower = lower};
