/* Lowers PReLUBackward to a two-pass kernel over the axes along which the slope is broadcast. */
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/rowwise/two_pass.h"

#include <string.h>

typedef struct prelu_backward {
    gb_two_pass two_pass;
    gb_two_pass_view slope, diff_slope;
} prelu_backward;

static void prelu_backward_prepare(const gb_two_pass_item *item)
{
    const prelu_backward *params = item->call->params;
    gb_two_pass_load(item, &params->slope, item->params[0]);
}

static void prelu_backward_finish(const gb_two_pass_item *item, bool store)
{
    const prelu_backward *params = item->call->params;
    if (store)
        gb_two_pass_store(item, &params->diff_slope, item->sum[0]);
}

static void prelu_backward_run(const gb_step_call *call)
{
    const prelu_backward *params = call->params;
    gb_two_pass_run(&params->two_pass, call);
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
static void widen(const gb_logical_tensor *tensor, int lead, gb_two_pass_view *view)
{
    memset(view->strides, 0, sizeof view->strides);
    for (int d = 0; d < tensor->ndims; d++)
        if (tensor->dims[d] != 1)
            view->strides[lead + d] = tensor->strides[d];
}

static gb_status prelu_backward_plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    const gb_logical_tensor *src = gb_op_input(op, 0), *slope = gb_op_input(op, 1);
    prelu_backward *params = step->params;
    gb_two_pass *two_pass = &params->two_pass;
    int lead;
    GB_TRY(find_lead(op, src, slope, &lead));
    two_pass->kind = GB_TWO_PASS_PRELU_BACKWARD;
    two_pass->prepare = prelu_backward_prepare;
    two_pass->finish = prelu_backward_finish;
    gb_space space = {.ndims = src->ndims};
    memcpy(space.dims, src->dims, sizeof src->dims);
    for (int d = 0; d < src->ndims; d++) {
        bool kept = d >= lead && d - lead < slope->ndims && slope->dims[d - lead] != 1;
        space.roles[d] = kept ? GB_TWO_PASS_KEPT : GB_TWO_PASS_REDUCED;
    }
    GB_TRY(gb_two_pass_use_whole(program, step, op->inputs[0], false, &two_pass->in[0]));
    GB_TRY(gb_two_pass_use_whole(program, step, op->inputs[2], false, &two_pass->in[1]));
    GB_TRY(gb_two_pass_use_whole(program, step, op->outputs[0], true, &two_pass->out));
    GB_TRY(gb_two_pass_use(program, step, op->inputs[1], false, &params->slope));
    GB_TRY(gb_two_pass_use(program, step, op->outputs[1], true, &params->diff_slope));
    widen(slope, lead, &params->slope);
    widen(gb_op_output(op, 1), lead, &params->diff_slope);
    gb_two_pass_view *views[] = {&two_pass->in[0], &two_pass->in[1], &two_pass->out, &params->slope,
            &params->diff_slope};
    for (int i = 0; i < 5; i++)
        gb_space_add(&space, views[i]->strides);
    gb_two_pass_init(two_pass, &space, step);
    double count = (double)gb_tensor_count(src);
    step->work = 12 * count;
    return GB_SUCCESS;
}

static gb_status prelu_backward_lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(program, group, "prelu_backward", prelu_backward_run,
            sizeof(prelu_backward), prelu_backward_plan);
}

const gb_lowering gb_lowering_prelu_backward = {
        .name = "prelu_backward", .supports = gb_all_types_float, .lower = prelu_backward_lower};
