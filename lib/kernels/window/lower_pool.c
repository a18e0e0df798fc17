/* Lowers AvgPool and MaxPool; a window that covers the whole image is a reduction. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/plan/anchor.h"
#include "kernels/plan/dequantization.h"
#include "kernels/rowwise/reduction.h"
#include "kernels/window/pool.h"

#include <string.h>

static void pool_run(const gb_step_call *call)
{
    gb_pool_run(call->params, call);
}

static void run_global(const gb_step_call *call)
{
    gb_reduction_run(call->params, call);
}

/* Windows of quantized values: a mean, or a maximum whose order the scale keeps. */
static bool pool_takes_prologue(const gb_op *anchor, uint32_t input, const gb_op *op)
{
    gb_per_tensor_quantization codes;
    return input == 0 && gb_per_tensor_quantization_read(op, &codes) &&
           (anchor->kind == GB_OP_AVG_POOL || codes.scale > 0);
}

/* Everything but the source's slot and the pointwise program. */
static gb_status pool_describe(const gb_op *op, const gb_logical_tensor *src, gb_pool *plan)
{
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    int order[GB_AXES], n_spatial = src->ndims - 2;
    int64_t in[GB_AXES];
    gb_window window;
    gb_data_axes(op, src->ndims, order);
    for (int i = 0; i < n_spatial; i++)
        in[i] = src->dims[order[i + 2]];
    GB_TRY(gb_window_get(op, n_spatial, in, NULL, false, &window));
    plan->mean = op->kind == GB_OP_AVG_POOL;
    plan->exclude_pad = gb_op_attr_bool(op, GB_ATTR_EXCLUDE_PAD, false);
    plan->start = plan->mean ? 0 : (float)gb_dtype_get(gb_op_input(op, 0)->data_type)->lowest;
    plan->src_type = src->data_type;
    memcpy(plan->src_strides, src->strides, sizeof src->strides);
    plan->channel_dim = order[1];
    for (int a = 0; a < GB_POOL_AXES; a++) {
        int i = a - (GB_POOL_AXES - n_spatial);
        plan->axes[a] = (gb_pool_axis){
                .dim = -1, .in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
        if (i < 0)
            continue;
        plan->axes[a] = (gb_pool_axis){.dim = order[i + 2],
                .in = in[i],
                .out = dst->dims[order[i + 2]],
                .kernel = window.kernel[i],
                .stride = window.strides[i],
                .dilation = window.dilations[i],
                .pad_begin = window.pads_begin[i],
                .pad_end = window.pads_end[i],
                .src_stride = src->strides[order[i + 2]]};
    }
    return GB_SUCCESS;
}

static bool is_global(const gb_pool *plan)
{
    for (int a = 0; a < GB_POOL_AXES; a++) {
        const gb_pool_axis *axis = &plan->axes[a];
        if (axis->out != 1 || axis->dilation != 1 || axis->in == 0)
            return false;
        if (axis->kernel - axis->pad_begin < axis->in)
            return false;
    }
    return true;
}

/* The post-ops work on what the quantized values stand for. */
static gb_status scale_codes(const gb_op *op, const gb_op *dequantize, gb_step *step, gb_pool *pool)
{
    gb_per_tensor_quantization codes;
    if (!dequantize || !gb_per_tensor_quantization_read(dequantize, &codes))
        return GB_SUCCESS;
    float shift = codes.zero_point;
    if (pool->mean && is_global(pool)) {
        double inside = 1, counted = 1;
        for (int a = 0; a < GB_POOL_AXES; a++) {
            inside *= (double)gb_pool_cells(&pool->axes[a], 0, true);
            counted *= (double)gb_pool_cells(&pool->axes[a], 0, pool->exclude_pad);
        }
        shift = (float)((double)shift * inside / counted);
    } else if (pool->mean) {
        pool->zero_point = shift;
        shift = 0;
    }
    return gb_pointwise_scale_first(op, shift, codes.scale, step, &pool->epilogue);
}

static gb_status lower_global(
        gb_program *program, const gb_pool *pool, const gb_logical_tensor *src, gb_step *step)
{
    gb_reduction *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    step->params = plan;
    step->run = run_global;
    plan->kind = pool->mean ? GB_REDUCE_SUM : GB_REDUCE_MAX;
    plan->mean = pool->mean;
    plan->empty = pool->start;
    plan->at_least_empty = !pool->mean;
    plan->divisor = 1;
    plan->epilogue = pool->epilogue;
    plan->src_type = pool->src_type;
    plan->src_slot = pool->src_slot;
    memcpy(plan->src_strides, pool->src_strides, sizeof pool->src_strides);
    gb_space space = {.ndims = src->ndims};
    memcpy(space.dims, src->dims, sizeof src->dims);
    for (int a = 0; a < GB_POOL_AXES; a++) {
        const gb_pool_axis *axis = &pool->axes[a];
        if (axis->dim < 0)
            continue;
        space.roles[axis->dim] = 1;
        plan->divisor *= (float)gb_pool_cells(axis, 0, pool->exclude_pad);
    }
    gb_reduction_widen(&space, true, &plan->epilogue);
    gb_space_add(&space, plan->src_strides);
    gb_space_add_pointwise(&space, &plan->epilogue);
    gb_reduction_init(plan, &space);
    step->thread_scratch = gb_reduction_thread_scratch(plan);
    step->shared_scratch = gb_reduction_shared_scratch(plan);
    step->n_phases = plan->splits > 1 ? 2 : 1;
    return gb_program_add(program, step);
}

static gb_status pool_lower(gb_program *program, const gb_group *group)
{
    gb_step *step;
    GB_TRY(gb_program_begin(program, "pool", &step));
    gb_pool *pool = gb_step_alloc(step, 1, sizeof *pool);
    if (!pool)
        return GB_OUT_OF_MEMORY;
    const gb_graph *graph = gb_program_graph(program);
    const gb_op *op = graph->ops[group->anchor];
    gb_dequantization dequantization;
    gb_dequantization_read(graph, group, op->inputs[0], &dequantization);
    const gb_logical_tensor *src = &graph->values[dequantization.codes].tensor,
                            *dst = gb_op_output(op, 0);
    GB_TRY(pool_describe(op, src, pool));
    GB_TRY(gb_program_use(program, step, dequantization.codes, false, &pool->src_slot));
    GB_TRY(gb_pointwise_build(program, group, op->outputs[0], dst, step, &pool->epilogue));
    GB_TRY(scale_codes(op, dequantization.op, step, pool));
    double cells = (double)gb_tensor_count(dst);
    for (int a = 0; a < GB_POOL_AXES; a++)
        cells *= (double)gb_min_i64(pool->axes[a].kernel, gb_max_i64(1, pool->axes[a].in));
    step->work = cells + 4 * (double)gb_tensor_count(src) + 4 * (double)gb_tensor_count(dst);
    if (is_global(pool))
        return lower_global(program, pool, src, step);
    gb_pool_init(pool);
    step->thread_scratch = gb_pool_thread_scratch(pool);
    step->run = pool_run;
    step->params = pool;
    return gb_program_add(program, step);
}

static bool pool_supports(const gb_op *op, const char **reason)
{
    int ndims = gb_op_input(op, 0)->ndims;
    if (ndims > GB_POOL_AXES + 2) {
        *reason = "rank above 5";
        return false;
    }
    return gb_all_types_float(op, reason);
}

const gb_lowering gb_lowering_pool = {.name = "pool",
        .supports = pool_supports,
        .takes_epilogue = true,
        .fuses_producer = pool_takes_prologue,
        .lower = pool_lower};
