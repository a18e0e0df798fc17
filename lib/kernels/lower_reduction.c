/* Lowers the seven Reduce ops. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/lower.h"
#include "kernels/reduction.h"

#include <string.h>

static void run(const gb_step_call *call)
{
    gb_reduction_run(call->params, call);
}

/* Without axes every kind is the identity, which the sum of one element is. */
static void set_kind(const gb_op *op, gb_reduction *plan)
{
    const int64_t *axes;
    if (gb_op_attr_s64s(op, GB_ATTR_AXES, &axes) == 0)
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
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *src = gb_op_input(op, 0);
    gb_reduction *plan = step->params;
    set_kind(op, plan);
    plan->src_type = src->data_type;
    memcpy(plan->src_strides, src->strides, sizeof src->strides);
    GB_TRY(gb_program_use(program, step, op->inputs[0], false, &plan->src_slot));
    GB_TRY(gb_tile_build(program, group, op->outputs[0], gb_op_output(op, 0), step, &plan->tile));
    gb_space space = {.ndims = src->ndims};
    memcpy(space.dims, src->dims, sizeof src->dims);
    GB_TRY(set_axes(op, src->ndims, space.roles));
    gb_reduction_widen(&space, gb_op_attr_bool(op, GB_ATTR_KEEP_DIMS, false), &plan->tile);
    gb_space_add(&space, plan->src_strides);
    gb_space_add_tile(&space, &plan->tile);
    gb_reduction_init(plan, &space);
    plan->divisor = (float)plan->count;
    step->thread_scratch = gb_reduction_thread_scratch(plan);
    step->shared_scratch = gb_reduction_shared_scratch(plan);
    step->n_phases = plan->segments > 1 ? 2 : 1;
    step->flops = (double)gb_tensor_count(src);
    step->work = 4 * (double)gb_tensor_count(src);
    return GB_SUCCESS;
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    gb_step step = {.kernel = "reduction", .run = run};
    step.params = gb_calloc(1, sizeof(gb_reduction));
    if (!step.params)
        return GB_OUT_OF_MEMORY;
    gb_status status = plan_reduction(program, group, &step);
    if (status == GB_SUCCESS)
        return gb_program_add(program, &step);
    gb_step_clear(&step);
    return status;
}

/* Axes given as a tensor are not known when the kernel is chosen. */
static bool supports(const gb_op *op, const char **reason)
{
    if (op->n_inputs > 1) {
        *reason = "axes as a tensor";
        return false;
    }
    return gb_all_types_float(op, reason);
}

const gb_lowering gb_lowering_reduction = {
        .name = "reduction", .supports = supports, .takes_epilogue = true, .lower = lower};
