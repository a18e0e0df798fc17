/* Lowers LayerNorm, RMSNorm and GroupNorm to blocks of rows or columns. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/movement/per_axis.h"
#include "kernels/rowwise/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 0, WIDEST_GROUP = 128 }; /* the dim of samples; channels taken as columns */

/* mean or variance as output */
typedef struct norm_stats {
    gb_data_type type;
    uint32_t slot;
    int64_t strides[GB_AXES]; /* over the dims of the plan, in parts 1 / group of an element */
    bool numbered; /* strides count elements in row-major order of `tensor`, not memory */
    gb_logical_tensor tensor;
} norm_stats;

/* gamma or beta */
typedef struct norm_affine {
    bool present, dense; /* dense: f32 that kernels read in place; otherwise copied to the thread's
                            table */
    uint32_t slot;
    gb_logical_tensor tensor;
    size_t table; /* offset in the thread's scratch */
} norm_affine;

typedef struct norm_params {
    gb_row_plan rows;
    bool root_mean_square, has_stats;
    float epsilon;
    int64_t group; /* columns that share statistics, next to each other */
    norm_stats mean, variance;
    norm_affine gamma, beta;
    int64_t affine_strides[GB_AXES]; /* of gamma and beta in row-major order, over the dims of
                                             the plan */
} norm_params;

static int last_kept(const gb_row_plan *plan)
{
    return plan->n_kept ? plan->kept[plan->n_kept - 1] : -1;
}

/* Running -------------------------------------------------------------------------------------- */

static void store_stats(const norm_params *params, const norm_stats *stats,
        const gb_step_call *call, const gb_row_block *block, const float *values)
{
    const gb_row_plan *plan = &params->rows;
    int64_t offset = gb_offset(plan->epilogue.ndims, stats->strides, block->position);
    int64_t step = last_kept(plan) < 0 ? 0 : stats->strides[last_kept(plan)];
    for (int64_t i = 0; i < block->count; i += params->group) {
        int64_t at = (offset + i * step) / params->group;
        if (stats->numbered)
            at = gb_per_axis_offset(&stats->tensor, at);
        gb_element_set(stats->type, call->buffers[stats->slot], at, (double)values[i]);
    }
}

static const float *affine_values(const norm_affine *affine, const gb_step_call *call)
{
    if (!affine->present)
        return NULL;
    const void *values =
            affine->dense ? call->buffers[affine->slot] : call->scratch + affine->table;
    return values;
}

/* Applies gamma and beta: two reduced dims in the kernel, those further out here. */
static void apply(const norm_params *params, const gb_step_call *call, const gb_row_block *block,
        gb_norm_block *norm)
{
    const gb_row_plan *plan = &params->rows;
    const int64_t *dims = plan->epilogue.dims, *strides = params->affine_strides;
    int n = plan->n_reduced, inner = n > 0 ? plan->reduced[n - 1] : -1;
    int second = n > 1 ? plan->reduced[n - 2] : -1, outer_dims = n > 2 ? n - 2 : 0;
    norm->run = inner < 0 ? 1 : dims[inner];
    norm->runs = second < 0 ? 1 : dims[second];
    norm->affine_step = inner < 0 ? 0 : strides[inner];
    norm->affine_run = second < 0 ? 0 : strides[second];
    norm->affine_count = last_kept(plan) < 0 ? 0 : strides[last_kept(plan)];
    const float *gamma = affine_values(&params->gamma, call);
    const float *beta = affine_values(&params->beta, call);
    int64_t planes = gb_product(outer_dims, plan->reduced, dims), plane = norm->runs * norm->run;
    int64_t position[GB_AXES];
    memcpy(position, block->position, sizeof position);
    for (int64_t i = 0; i < planes; i++) {
        gb_position_set(outer_dims, plan->reduced, dims, i, position);
        int64_t offset = gb_offset(plan->epilogue.ndims, strides, position);
        norm->gamma = gamma ? gamma + offset : NULL;
        norm->beta = beta ? beta + offset : NULL;
        norm->x = block->x + i * plane * (plan->columns ? block->x_stride : 1);
        norm->y = block->y + i * plane * (plan->columns ? block->y_stride : 1);
        (plan->columns ? gb_kernels_get()->norm_apply_columns : gb_kernels_get()->norm_apply_rows)(
                norm);
    }
}

static void norm_compute(
        const gb_row_plan *plan, const gb_step_call *call, const gb_row_block *block)
{
    const norm_params *params = call->params;
    float *mean = (float *)(void *)block->scratch, *variance = mean + GB_TILE_ELEMENTS;
    float *scale = variance + GB_TILE_ELEMENTS;
    gb_norm_block norm = {.x = block->x,
            .x_stride = block->x_stride,
            .y_stride = block->y_stride,
            .count = block->count,
            .n = plan->n,
            .mean = mean,
            .variance = variance,
            .scale = scale,
            .group = params->group,
            .root_mean_square = params->root_mean_square};
    (plan->columns ? gb_kernels_get()->norm_statistics_columns
                   : gb_kernels_get()->norm_statistics_rows)(&norm);
    if (params->has_stats) {
        store_stats(params, &params->mean, call, block, mean);
        store_stats(params, &params->variance, call, block, variance);
    }
    for (int64_t i = 0; i < block->count; i++)
        scale[i] = 1 / sqrtf(variance[i] + params->epsilon);
    if (plan->n)
        apply(params, call, block, &norm);
}

static void load_table(const norm_affine *affine, const gb_step_call *call)
{
    if (!affine->present || affine->dense)
        return;
    const gb_logical_tensor *tensor = &affine->tensor;
    int last = tensor->ndims - 1;
    uint8_t outer[GB_AXES];
    for (int d = 0; d < last; d++)
        outer[d] = (uint8_t)d;
    int64_t cols = last < 0 ? 1 : tensor->dims[last], stride = last < 0 ? 1 : tensor->strides[last];
    int64_t rows = last < 0 ? 1 : gb_product(last, outer, tensor->dims), position[GB_AXES] = {0};
    int64_t bytes = (int64_t)gb_data_type_bytes(tensor->data_type, 1);
    float *table = (float *)(void *)(call->scratch + affine->table);
    for (int64_t r = 0; r < rows; r++) {
        if (last > 0)
            gb_position_set(last, outer, tensor->dims, r, position);
        const char *src = call->buffers[affine->slot];
        src += gb_offset(gb_max_i64(last, 0) > 0 ? last : 0, tensor->strides, position) * bytes;
        gb_kernels_get()->load_tile(tensor->data_type, src, 0, stride, 1, cols, table + r * cols);
    }
}

static void norm_run(const gb_step_call *call)
{
    const norm_params *params = call->params;
    load_table(&params->gamma, call);
    load_table(&params->beta, call);
    gb_row_run(&params->rows, call, norm_compute);
}

/* Planning ------------------------------------------------------------------------------------- */

static gb_status use_stats(
        gb_program *program, const gb_op *op, uint32_t output, gb_step *step, norm_stats *stats)
{
    const gb_logical_tensor *tensor = gb_op_output(op, output);
    stats->type = tensor->data_type;
    stats->tensor = *tensor;
    return gb_program_use(program, step, op->outputs[output], true, &stats->slot);
}

static gb_status use_affine(gb_program *program, const gb_op *op, uint32_t input, int64_t count,
        gb_step *step, norm_affine *affine)
{
    const gb_logical_tensor *tensor = gb_op_input(op, input);
    if (gb_tensor_count(tensor) != count)
        return gb_fail(GB_INVALID_SHAPE, "%s: input %u is %s, expected %lld elements",
                gb_op_label(op), input, gb_tensor_label(tensor), (long long)count);
    affine->present = true;
    affine->tensor = *tensor;
    affine->dense = tensor->data_type == GB_F32 && gb_is_dense(tensor);
    return gb_program_use(program, step, op->inputs[input], false, &affine->slot);
}

static gb_status use_affines(gb_program *program, const gb_op *op, int64_t count, gb_step *step)
{
    norm_params *params = step->params;
    if (op->n_inputs < 2 || !gb_op_attr_bool(op, GB_ATTR_USE_AFFINE, true))
        return GB_SUCCESS;
    GB_TRY(use_affine(program, op, 1, count, step, &params->gamma));
    if (op->n_inputs < 3)
        return GB_SUCCESS;
    return use_affine(program, op, 2, count, step, &params->beta);
}

static void plan_tables(norm_params *params, int64_t count, gb_step *step)
{
    norm_affine *affines[] = {&params->gamma, &params->beta};
    step->thread_scratch = params->rows.scratch + 3 * GB_TILE_ELEMENTS * sizeof(float);
    for (int i = 0; i < 2; i++) {
        if (!affines[i]->present || affines[i]->dense)
            continue;
        affines[i]->table = step->thread_scratch;
        step->thread_scratch += gb_align_up((size_t)count * sizeof(float), GB_CACHE_LINE);
    }
}

/* Statistics over the axes of src before `end`; they may be given under other dims. */
static gb_status use_layer_stats(gb_program *program, const gb_op *op, uint32_t output, int end,
        gb_step *step, norm_stats *stats)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    GB_TRY(use_stats(program, op, output, step, stats));
    stats->numbered = !gb_per_axis_strides(src, 0, end, &stats->tensor, stats->strides);
    if (stats->numbered)
        gb_dense_strides(end, src->dims, stats->strides);
    return GB_SUCCESS;
}

/* Trailing axes are reduced; gamma and beta run over them, the statistics over the others. */
static gb_status shape_layer(
        gb_program *program, const gb_op *op, gb_step *step, gb_space *space, int64_t *count)
{
    norm_params *params = step->params;
    int begin = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_BEGIN_NORM_AXIS, -1), space->ndims);
    if (begin < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"begin_norm_axis\" out of range",
                gb_op_label(op));
    for (int d = begin; d < space->ndims; d++)
        space->roles[d] = GB_ROW_REDUCED;
    gb_dense_strides(space->ndims - begin, space->dims + begin, params->affine_strides + begin);
    *count = 1;
    for (int d = begin; d < space->ndims; d++)
        *count *= space->dims[d];
    params->root_mean_square = op->kind == GB_OP_RMS_NORM;
    params->has_stats = !params->root_mean_square && op->n_outputs > 2;
    if (!params->has_stats)
        return GB_SUCCESS;
    GB_TRY(use_layer_stats(program, op, 1, begin, step, &params->mean));
    return use_layer_stats(program, op, 2, begin, step, &params->variance);
}

static void split_strides(int64_t *strides, int ndims, int axis, int64_t inner)
{
    memmove(strides + axis + 1, strides + axis, (size_t)(ndims - axis) * sizeof *strides);
    strides[axis] *= inner;
}

/* Can groups of a few channels, which lie next to each other, be columns of one block? */
static bool groups_as_columns(const gb_logical_tensor *src, int axis, int64_t inner)
{
    if (inner == 1 || inner > WIDEST_GROUP || src->strides[axis] != 1)
        return false;
    for (int d = 0; d < src->ndims; d++)
        if (d != axis && src->dims[d] != 1 && src->strides[d] == 1)
            return false;
    return true;
}

/* The channels become groups x channels of a group in all views. */
static void split_channels(gb_space *space, int axis, int64_t groups, int64_t inner)
{
    int ndims = space->ndims++;
    for (int v = 0; v < space->n_views; v++)
        split_strides(space->strides[v], ndims, axis, inner);
    memmove(space->dims + axis + 1, space->dims + axis,
            (size_t)(ndims - axis) * sizeof *space->dims);
    space->dims[axis] = groups;
    space->dims[axis + 1] = inner;
}

static gb_status use_group_stats(
        gb_program *program, const gb_op *op, int axis, gb_step *step, norm_params *params)
{
    params->has_stats = op->n_outputs > 2;
    if (!params->has_stats)
        return GB_SUCCESS;
    GB_TRY(use_stats(program, op, 1, step, &params->mean));
    GB_TRY(use_stats(program, op, 2, step, &params->variance));
    norm_stats *stats[] = {&params->mean, &params->variance};
    for (int i = 0; i < 2; i++) {
        int64_t sample = stats[i]->tensor.strides[0], group = stats[i]->tensor.strides[1];
        stats[i]->strides[BATCH] = sample * params->group;
        stats[i]->strides[axis] = group;
    }
    return GB_SUCCESS;
}

/* All but the batch and the groups is reduced. */
static gb_status shape_group(
        gb_program *program, const gb_op *op, gb_step *step, gb_space *space, int64_t *count)
{
    norm_params *params = step->params;
    int axis = gb_channel_axis(op, space->ndims);
    int64_t groups = gb_op_attr_s64(op, GB_ATTR_GROUPS, 1), channels = space->dims[axis];
    if (groups < 1 || channels % groups)
        return gb_fail(GB_INVALID_SHAPE, "%s: %lld channels in %lld groups", gb_op_label(op),
                (long long)channels, (long long)groups);
    int64_t inner = channels / groups;
    *count = channels;
    if (groups_as_columns(gb_op_input(op, 0), axis, inner)) {
        params->group = params->rows.granule = inner;
        params->affine_strides[axis] = 1;
    } else {
        split_channels(space, axis, groups, inner);
        params->affine_strides[axis] = inner;
        params->affine_strides[axis + 1] = 1;
    }
    for (int d = 0; d < space->ndims; d++)
        space->roles[d] = d == BATCH || d == axis ? GB_ROW_KEPT : GB_ROW_REDUCED;
    return use_group_stats(program, op, axis, step, params);
}

static gb_status plan_norm(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *src = gb_op_input(op, 0);
    norm_params *params = step->params;
    gb_row_plan *rows = &params->rows;
    params->group = 1;
    params->epsilon = gb_op_attr_f32(op, GB_ATTR_EPSILON, 1e-5F);
    rows->src_type = src->data_type;
    memcpy(rows->src_strides, src->strides, sizeof src->strides);
    GB_TRY(gb_program_use_elementwise(program, step, op->inputs[0], false, &rows->src_slot));
    GB_TRY(gb_pointwise_build(
            program, group, op->outputs[0], gb_op_output(op, 0), step, &rows->epilogue));
    gb_space space = {.ndims = src->ndims};
    memcpy(space.dims, src->dims, sizeof src->dims);
    gb_space_add(&space, rows->src_strides);
    gb_space_add_pointwise(&space, &rows->epilogue);
    int64_t count;
    bool grouped = op->kind == GB_OP_GROUP_NORM;
    GB_TRY((grouped ? shape_group : shape_layer)(program, op, step, &space, &count));
    GB_TRY(use_affines(program, op, count, step));
    if (params->gamma.present)
        gb_space_add(&space, params->affine_strides);
    if (params->has_stats) {
        gb_space_add(&space, params->mean.strides);
        gb_space_add(&space, params->variance.strides);
    }
    gb_row_plan_init(rows, &space);
    plan_tables(params, count, step);
    step->work = 8 * gb_row_elements(rows);
    return GB_SUCCESS;
}

static gb_status norm_lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(program, group, "norm", norm_run, sizeof(norm_params), plan_norm);
}

const gb_lowering gb_lowering_norm = {.name = "norm",
        .supports = gb_all_types_float,
        .takes_epilogue = true,
        .lower = norm_lower};
