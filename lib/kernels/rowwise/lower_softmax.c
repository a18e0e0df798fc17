/* Lowers SoftMax (with statistics) and LogSoftmax to blocks of rows or columns. */
#include "base/memory.h"
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/rowwise/rows.h"

#include <stdlib.h>
#include <string.h>

typedef struct softmax_params {
    gb_row_plan rows;
    bool log, inf_as_zero, has_stats;
    uint32_t stats_slot;
    int64_t stats_strides[GB_AXES]; /* over the dims of the plan */
} softmax_params;

static void store_stats(const softmax_params *params, const gb_step_call *call,
        const gb_row_block *block, const float *stats)
{
    const gb_row_plan *plan = &params->rows;
    float *dst = (float *)call->buffers[params->stats_slot] +
                 gb_offset(plan->epilogue.ndims, params->stats_strides, block->position);
    int64_t step = plan->n_kept ? params->stats_strides[plan->kept[plan->n_kept - 1]] : 0;
    for (int64_t i = 0; i < block->count; i++)
        dst[i * step] = stats[i];
}

static void softmax_compute(
        const gb_row_plan *plan, const gb_step_call *call, const gb_row_block *block)
{
    const softmax_params *params = call->params;
    float *stats = params->has_stats ? (float *)(void *)block->scratch : NULL;
    gb_softmax_block softmax = {.x = block->x,
            .y = block->y,
            .x_stride = block->x_stride,
            .y_stride = block->y_stride,
            .count = block->count,
            .n = plan->n,
            .log = params->log,
            .inf_as_zero = params->inf_as_zero,
            .stats = stats};
    const gb_kernels *kernels = gb_kernels_get();
    (plan->columns ? kernels->softmax_columns : kernels->softmax_rows)(&softmax);
    if (stats)
        store_stats(params, call, block, stats);
}

static void softmax_run(const gb_step_call *call)
{
    const softmax_params *params = call->params;
    gb_row_run(&params->rows, call, softmax_compute);
}

static gb_status plan_softmax(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *src = gb_op_input(op, 0);
    softmax_params *params = step->params;
    bool log = op->kind == GB_OP_LOG_SOFTMAX;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, log ? -1 : 1), src->ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    params->log = log;
    params->inf_as_zero = gb_op_attr_is(op, GB_ATTR_MODE, "inf_as_zero", false);
    params->has_stats = op->n_outputs > 1;

    gb_row_plan *rows = &params->rows;
    rows->src_type = src->data_type;
    memcpy(rows->src_strides, src->strides, sizeof src->strides);
    GB_TRY(gb_program_use_elementwise(program, step, op->inputs[0], false, &rows->src_slot));
    GB_TRY(gb_pointwise_build(
            program, group, op->outputs[0], gb_op_output(op, 0), step, &rows->epilogue));
    gb_space space = {.ndims = src->ndims};
    memcpy(space.dims, src->dims, sizeof src->dims);
    space.roles[axis] = GB_ROW_REDUCED;
    gb_space_add(&space, rows->src_strides);
    gb_space_add_pointwise(&space, &rows->epilogue);
    if (params->has_stats) {
        GB_TRY(gb_program_use(program, step, op->outputs[1], true, &params->stats_slot));
        memcpy(params->stats_strides, gb_op_output(op, 1)->strides, sizeof src->strides);
        params->stats_strides[axis] = 0;
        gb_space_add(&space, params->stats_strides);
    }
    gb_row_plan_init(rows, &space);
    step->thread_scratch = rows->scratch + GB_TILE_ELEMENTS * sizeof(float);
    step->work = 16 * gb_row_elements(rows);
    return GB_SUCCESS;
}

static gb_status softmax_lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(
            program, group, "softmax", softmax_run, sizeof(softmax_params), plan_softmax);
}

const gb_lowering gb_lowering_softmax = {.name = "softmax",
        .supports = gb_all_types_float,
        .takes_epilogue = true,
        .lower = softmax_lower};
