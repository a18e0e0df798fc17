/* Lowers LayerNormBackward: one two-pass kernel per row gives diff_src, and groups of rows add up
 * diff_gamma and diff_beta on the way. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/movement/per_axis.h"
#include "kernels/rowwise/two_pass.h"

#include <math.h>
#include <string.h>

typedef struct layer_norm_backward {
    gb_two_pass two_pass;
    float epsilon;
    gb_two_pass_view mean, variance;
    /* Position of a reduced element in row-major order of the trailing axes, as strides. */
    int64_t order[GB_AXES];
    gb_logical_tensor gradients[GB_TWO_PASS_SUMS]; /* diff_gamma, diff_beta */
    uint32_t slots[GB_TWO_PASS_SUMS];
    int n_gradients;
} layer_norm_backward;

static void layer_norm_backward_prepare(const gb_two_pass_item *item)
{
    const layer_norm_backward *params = item->call->params;
    gb_two_pass_load(item, &params->mean, item->params[0]);
    gb_two_pass_load(item, &params->variance, item->params[1]);
    for (int64_t i = 0; i < item->count; i++)
        item->params[1][i] = 1 / sqrtf(item->params[1][i] + params->epsilon);
}

static void layer_norm_backward_finish(const gb_two_pass_item *item, bool store)
{
    (void)store;
    float n = (float)item->two_pass->n;
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < item->count; k++)
            item->params[2 + i][k] = item->sum[i][k] / n;
}

/* Joins the groups' sums of this thread's share of the reduced elements. */
static void layer_norm_backward_join_groups(
        const layer_norm_backward *params, const gb_step_call *call)
{
    const gb_two_pass *two_pass = &params->two_pass;
    int64_t begin, end, position[GB_AXES] = {0};
    gb_split(two_pass->n, call->thread, call->n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        gb_position_set(two_pass->n_reduced, two_pass->reduced, two_pass->dims, i, position);
        int64_t index = gb_offset(two_pass->ndims, params->order, position);
        for (int s = 0; s < params->n_gradients; s++) {
            float sum = 0;
            for (int64_t group = 0; group < two_pass->groups; group++)
                sum += gb_two_pass_cross(two_pass, call, group, s)[i];
            const gb_logical_tensor *tensor = &params->gradients[s];
            gb_element_set(tensor->data_type, call->buffers[params->slots[s]],
                    gb_per_axis_offset(tensor, index), (double)sum);
        }
    }
}

static void layer_norm_backward_run(const gb_step_call *call)
{
    const layer_norm_backward *params = call->params;
    if (call->phase == 0)
        gb_two_pass_run(&params->two_pass, call);
    else
        layer_norm_backward_join_groups(params, call);
}

static gb_status check_count(const gb_op *op, const gb_logical_tensor *tensor, int64_t count)
{
    if (gb_tensor_count(tensor) == count)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: tensor %zu is %s, expected %lld elements",
            gb_op_label(op), tensor->id, gb_tensor_label(tensor), (long long)count);
}

/* A tensor with as many elements as axes first..end-1 of src, seen from there. */
static gb_status use_part(gb_program *program, const gb_op *op, uint32_t value, int first, int end,
        gb_step *step, gb_two_pass_view *view)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    const gb_logical_tensor *tensor = &gb_program_graph(program)->values[value].tensor;
    int64_t strides[GB_AXES] = {0}, count = 1;
    uint32_t buffer;
    for (int d = first; d < end; d++)
        count *= src->dims[d];
    GB_TRY(check_count(op, tensor, count));
    view->type = tensor->data_type;
    if (gb_per_axis_strides(src, first, end, tensor, strides)) {
        GB_TRY(gb_program_use(program, step, value, false, &view->slot));
    } else {
        gb_dense_strides(end - first, src->dims + first, strides + first);
        GB_TRY(gb_per_axis_pack(program, value, &buffer));
        GB_TRY(gb_step_use_buffer(step, buffer, false, &view->slot));
    }
    memcpy(view->strides, strides, sizeof strides);
    return GB_SUCCESS;
}

static gb_status use_tensors(
        gb_program *program, const gb_op *op, int axis, gb_step *step, gb_space *space)
{
    layer_norm_backward *params = step->params;
    gb_two_pass *two_pass = &params->two_pass;
    int ndims = space->ndims;
    for (uint32_t i = 0; i < 2; i++) {
        GB_TRY(gb_two_pass_use_whole(program, step, op->inputs[i], false, &two_pass->in[i]));
        gb_space_add(space, two_pass->in[i].strides);
    }
    GB_TRY(gb_two_pass_use_whole(program, step, op->outputs[0], true, &two_pass->out));
    gb_space_add(space, two_pass->out.strides);
    GB_TRY(use_part(program, op, op->inputs[2], 0, axis, step, &params->mean));
    GB_TRY(use_part(program, op, op->inputs[3], 0, axis, step, &params->variance));
    gb_space_add(space, params->mean.strides);
    gb_space_add(space, params->variance.strides);
    if (op->n_inputs > 4 && gb_op_attr_bool(op, GB_ATTR_USE_AFFINE, true)) {
        GB_TRY(use_part(program, op, op->inputs[4], axis, ndims, step, &two_pass->in[2]));
        gb_space_add(space, two_pass->in[2].strides);
    }
    gb_dense_strides(ndims - axis, space->dims + axis, params->order + axis);
    gb_space_add(space, params->order);
    return GB_SUCCESS;
}

static gb_status use_gradients(gb_program *program, const gb_op *op, int64_t n, gb_step *step)
{
    layer_norm_backward *params = step->params;
    for (uint32_t i = 1; i < op->n_outputs && i <= GB_TWO_PASS_SUMS; i++) {
        params->gradients[i - 1] = *gb_op_output(op, i);
        GB_TRY(check_count(op, gb_op_output(op, i), n));
        GB_TRY(gb_program_use(program, step, op->outputs[i], true, &params->slots[i - 1]));
        params->n_gradients++;
    }
    params->two_pass.cross = params->n_gradients > 0;
    return GB_SUCCESS;
}

static gb_status layer_norm_backward_plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    const gb_logical_tensor *src = gb_op_input(op, 0);
    layer_norm_backward *params = step->params;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_BEGIN_NORM_AXIS, -1), src->ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"begin_norm_axis\" out of range",
                gb_op_label(op));
    params->epsilon = gb_op_attr_f32(op, GB_ATTR_EPSILON, 1e-5F);
    params->two_pass.kind = GB_TWO_PASS_LAYER_NORM_BACKWARD;
    params->two_pass.prepare = layer_norm_backward_prepare;
    params->two_pass.finish = layer_norm_backward_finish;
    gb_space space = {.ndims = src->ndims};
    memcpy(space.dims, src->dims, sizeof src->dims);
    int64_t n = 1;
    for (int d = axis; d < src->ndims; d++) {
        space.roles[d] = GB_TWO_PASS_REDUCED;
        n *= src->dims[d];
    }
    GB_TRY(use_tensors(program, op, axis, step, &space));
    GB_TRY(use_gradients(program, op, n, step));
    gb_two_pass_init(&params->two_pass, &space, step);
    double count = (double)gb_tensor_count(src);
    step->work = 16 * count;
    return GB_SUCCESS;
}

static gb_status layer_norm_backward_lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(program, group, "layer_norm_backward", layer_norm_backward_run,
            sizeof(layer_norm_backward), layer_norm_backward_plan);
}

const gb_lowering gb_lowering_layer_norm_backward = {.name = "layer_norm_backward",
        .supports = gb_all_types_float,
        .lower = layer_norm_backward_lower};
