/* Lowers the seven Reduce ops. */
#include "base/dtype.h"
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/rowwise/reduction.h"

#include <math.h>
#include <string.h>

static void reduction_run(const gb_step_call *call)
{
    gb_reduction_run(call->params, call);
}

/* The number of axes, from the attribute or the second input. */
static size_t count_axes(const gb_op *op, bool *in_tensor)
{
    const int64_t *axes;
    size_t n = gb_op_attr_s64s(op, GB_ATTR_AXES, &axes);
    *in_tensor = n == 0 && op->n_inputs > 1 && gb_tensor_count(gb_op_input(op, 1)) > 0;
    return *in_tensor ? (size_t)gb_tensor_count(gb_op_input(op, 1)) : n;
}

/* Without axes every kind is the identity, which the sum of one element is. */
static void set_kind(const gb_op *op, gb_reduction *plan)
{
    bool in_tensor;
    if (count_axes(op, &in_tensor) == 0)
        return;
    const gb_dtype_info *type = gb_dtype_get(gb_op_output(op, 0)->data_type);
    plan->mean = op->kind == GB_OP_REDUCE_MEAN;
    plan->root = op->kind == GB_OP_REDUCE_L2;
    switch (op->kind) {
    case GB_OP_REDUCE_L1:
        plan->kind = GB_REDUCE_SUM_ABS;
        break;
    case GB_OP_REDUCE_L2:
        plan->kind = GB_REDUCE_SUM_SQUARE;
        break;
    case GB_OP_REDUCE_PROD:
        plan->kind = GB_REDUCE_PROD;
        plan->empty = 1;
        break;
    case GB_OP_REDUCE_MAX:
        plan->kind = GB_REDUCE_MAX;
        plan->empty = (float)type->lowest;
        break;
    case GB_OP_REDUCE_MIN:
        plan->kind = GB_REDUCE_MIN;
        plan->empty = (float)type->max;
        break;
    default:
        plan->kind = GB_REDUCE_SUM;
    }
}

/* Plans over src, the roles of whose dims are set. */
static void set_space(gb_reduction *plan, gb_space *space, bool keep_dims)
{
    gb_reduction_widen(space, keep_dims, &plan->epilogue);
    gb_space_add(space, plan->src_strides);
    gb_space_add_pointwise(space, &plan->epilogue);
    gb_reduction_init(plan, space);
    plan->divisor = (float)plan->count;
}

/* Axes in a tensor: they are known when the kernel runs, so the rest of the plan is made then. */
typedef struct late_reduction {
    gb_reduction plan; /* its pointwise program over the dims of dst */
    gb_space src, dst; /* dims only */
    bool keep_dims;
    uint32_t axes_slot;
    int64_t n_axes, axes_stride;
} late_reduction;

/* Marks the axes; false when they are not axes of src, or do not lead to dst. */
static bool reduction_read_axes(const late_reduction *late, const int32_t *axes, gb_space *space)
{
    for (int64_t i = 0; i < late->n_axes; i++) {
        int axis = gb_normalize_axis(axes[i * late->axes_stride], space->ndims);
        if (axis < 0 || space->roles[axis])
            return false;
        space->roles[axis] = 1;
    }
    int n = 0;
    for (int d = 0; d < space->ndims; d++) {
        if (space->roles[d] && !late->keep_dims)
            continue;
        if (n == late->dst.ndims || late->dst.dims[n] != (space->roles[d] ? 1 : space->dims[d]))
            return false;
        n++;
    }
    return n == late->dst.ndims;
}

/* Axes that cannot be give NaN. */
static void set_refused(const late_reduction *late, gb_reduction *plan)
{
    gb_space space = late->dst;
    memset(plan->src_strides, 0, sizeof plan->src_strides);
    set_space(plan, &space, true);
    plan->count = plan->pieces = 0;
    plan->splits = 1;
    plan->empty = NAN;
}

static void run_late(const gb_step_call *call)
{
    const late_reduction *late = call->params;
    gb_reduction plan = late->plan;
    gb_space space = late->src;
    if (reduction_read_axes(late, call->buffers[late->axes_slot], &space))
        set_space(&plan, &space, late->keep_dims);
    else
        set_refused(late, &plan);
    if (call->phase == 0 || plan.splits > 1)
        gb_reduction_run(&plan, call);
}

static gb_status plan_common(
        gb_program *program, const gb_group *group, gb_step *step, gb_reduction *plan)
{
    const gb_op *op = gb_group_op(program, group);
    const gb_logical_tensor *src = gb_op_input(op, 0);
    set_kind(op, plan);
    plan->src_type = src->data_type;
    memcpy(plan->src_strides, src->strides, sizeof src->strides);
    step->work = 4 * (double)gb_tensor_count(src);
    GB_TRY(gb_program_use(program, step, op->inputs[0], false, &plan->src_slot));
    return gb_pointwise_build(
            program, group, op->outputs[0], gb_op_output(op, 0), step, &plan->epilogue);
}

static gb_space space_of(const gb_logical_tensor *tensor)
{
    gb_space space = {.ndims = tensor->ndims};
    memcpy(space.dims, tensor->dims, sizeof tensor->dims);
    return space;
}

static gb_status plan_late(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    const gb_logical_tensor *axes = gb_op_input(op, 1);
    late_reduction *late = step->params;
    GB_TRY(plan_common(program, group, step, &late->plan));
    late->src = space_of(gb_op_input(op, 0));
    late->dst = space_of(gb_op_output(op, 0));
    late->keep_dims = gb_op_attr_bool(op, GB_ATTR_KEEP_DIMS, false);
    late->n_axes = gb_tensor_count(axes);
    late->axes_stride = axes->ndims ? axes->strides[0] : 0;
    step->thread_scratch = gb_reduction_thread_scratch(&late->plan);
    step->shared_scratch = gb_reduction_shared_scratch_limit();
    step->n_phases = 2;
    return gb_program_use(program, step, op->inputs[1], false, &late->axes_slot);
}

static gb_status set_axes(const gb_op *op, int ndims, uint8_t *roles)
{
    const int64_t *axes;
    size_t n = gb_op_attr_s64s(op, GB_ATTR_AXES, &axes);
    for (size_t i = 0; i < n; i++) {
        int axis = gb_normalize_axis(axes[i], ndims);
        if (axis < 0)
            return gb_fail(
                    GB_INVALID_SHAPE, "%s: attribute \"axes\" out of range", gb_op_label(op));
        roles[axis] = 1;
    }
    return GB_SUCCESS;
}

static gb_status plan_reduction(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    gb_reduction *plan = step->params;
    gb_space space = space_of(gb_op_input(op, 0));
    GB_TRY(plan_common(program, group, step, plan));
    GB_TRY(set_axes(op, space.ndims, space.roles));
    set_space(plan, &space, gb_op_attr_bool(op, GB_ATTR_KEEP_DIMS, false));
    step->thread_scratch = gb_reduction_thread_scratch(plan);
    step->shared_scratch = gb_reduction_shared_scratch(plan);
    step->n_phases = plan->splits > 1 ? 2 : 1;
    return GB_SUCCESS;
}

static gb_status reduction_lower(gb_program *program, const gb_group *group)
{
    bool in_tensor;
    count_axes(gb_group_op(program, group), &in_tensor);
    return in_tensor ? gb_lower_step(program, group, "reduction", run_late, sizeof(late_reduction),
                               plan_late)
                     : gb_lower_step(program, group, "reduction", reduction_run,
                               sizeof(gb_reduction), plan_reduction);
}

static bool reduction_supports(const gb_op *op, const char **reason)
{
    if (gb_dtype_is_f(gb_op_input(op, 0)->data_type) &&
            gb_dtype_is_f(gb_op_output(op, 0)->data_type))
        return true;
    *reason = "data type";
    return false;
}

const gb_lowering gb_lowering_reduction = {.name = "reduction",
        .supports = reduction_supports,
        .takes_epilogue = true,
        .lower = reduction_lower};
