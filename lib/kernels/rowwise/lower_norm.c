/* LayerNorm, RMSNorm and GroupNorm in blocks of rows or columns. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/plan/per_axis.h"
#include "kernels/rowwise/rows.h"

#include <math.h>
#include <string.h>

enum { WIDEST_GROUP = 128 }; /* channels taken as columns */

/* gamma or beta as kernels read it: in place, or from a table of each thread. */
typedef struct norm_affine {
    bool in_place;
    gb_scratch table;
} norm_affine;

typedef struct norm {
    gb_norm_problem problem;
    gb_row_plan rows;
    norm_affine gamma, beta;
    gb_scratch mean, variance, scale; /* of a block */
} norm;

/* Running -------------------------------------------------------------------------------------- */

static void store_stats(const norm *plan, const gb_norm_statistic *stats, const gb_step_call *call,
        const gb_row_block *block, const float *values)
{
    const gb_reduced_space *space = &plan->problem.rows.space;
    const gb_operand *operand = &stats->operand;
    int64_t offset = gb_offset(space->ndims, operand->strides, block->position);
    int64_t step = gb_operand_stride(operand, gb_last_kept(space)), group = plan->problem.group;
    char *data = call->buffers[operand->slot];
    if (!stats->numbered && group == 1) {
        gb_kernels_get()->store_tile(operand->type, values, 1, block->count,
                data + offset * (int64_t)gb_data_type_bytes(operand->type, 1), 0, step);
        return;
    }
    for (int64_t i = 0; i < block->count; i += group) {
        int64_t at = (offset + i * step) / group;
        if (stats->numbered)
            at = gb_per_axis_offset(&stats->tensor, at);
        gb_element_set(operand->type, data, at, (double)values[i]);
    }
}

static const float *affine_values(
        const gb_norm_affine *affine, const norm_affine *own, const gb_step_call *call)
{
    if (!affine->present)
        return NULL;
    return own->in_place ? call->buffers[affine->slot] : gb_scratch_get(call, own->table);
}

/* Applies gamma and beta: two reduced dims in the kernel, those further out here. */
static void apply(const norm *plan, const gb_step_call *call, const gb_row_block *block,
        gb_norm_block *kernel_block)
{
    const gb_reduced_space *space = &plan->problem.rows.space;
    const int64_t *dims = space->dims, *strides = plan->problem.affine_strides;
    bool columns = plan->rows.columns;
    int n = space->n_reduced, inner = gb_last_reduced(space), kept = gb_last_kept(space);
    int second = n > 1 ? space->reduced[n - 2] : -1, outer_dims = n > 2 ? n - 2 : 0;
    kernel_block->run = gb_reduced_space_size(space, inner);
    kernel_block->runs = gb_reduced_space_size(space, second);
    kernel_block->affine_step = inner < 0 ? 0 : strides[inner];
    kernel_block->affine_run = second < 0 ? 0 : strides[second];
    kernel_block->affine_count = kept < 0 ? 0 : strides[kept];
    const float *gamma = affine_values(&plan->problem.gamma, &plan->gamma, call);
    const float *beta = affine_values(&plan->problem.beta, &plan->beta, call);
    int64_t planes = gb_product(outer_dims, space->reduced, dims);
    int64_t plane = kernel_block->runs * kernel_block->run;
    int64_t position[GB_AXES];
    memcpy(position, block->position, sizeof position);
    for (int64_t i = 0; i < planes; i++) {
        gb_position_set(outer_dims, space->reduced, dims, i, position);
        int64_t offset = gb_offset(space->ndims, strides, position);
        kernel_block->gamma = gamma ? gamma + offset : NULL;
        kernel_block->beta = beta ? beta + offset : NULL;
        kernel_block->x = block->x + i * plane * (columns ? block->x_stride : 1);
        kernel_block->y = block->y + i * plane * (columns ? block->y_stride : 1);
        (columns ? gb_kernels_get()->norm_apply_columns : gb_kernels_get()->norm_apply_rows)(
                kernel_block);
    }
}

/* The same for a tile of a block of columns. */
static void apply_tile(const gb_row_plan *rows, const gb_step_call *call, const gb_row_block *tile)
{
    const norm *plan = call->params;
    const gb_reduced_space *space = &rows->problem->space;
    const int64_t *strides = plan->problem.affine_strides;
    const int inner = gb_last_reduced(space), kept = gb_last_kept(space);
    const int64_t offset = gb_offset(space->ndims, strides, tile->position);
    const float *gamma = affine_values(&plan->problem.gamma, &plan->gamma, call);
    const float *beta = affine_values(&plan->problem.beta, &plan->beta, call);
    const gb_norm_block kernel_block = {.x = tile->x,
            .y = tile->y,
            .x_stride = tile->x_stride,
            .y_stride = tile->y_stride,
            .count = tile->count,
            .mean = gb_scratch_get(call, plan->mean),
            .scale = gb_scratch_get(call, plan->scale),
            .gamma = gamma ? gamma + offset : NULL,
            .beta = beta ? beta + offset : NULL,
            .runs = 1,
            .run = tile->rows,
            .affine_step = inner < 0 ? 0 : strides[inner],
            .affine_count = strides[kept]};
    gb_kernels_get()->norm_apply_columns(&kernel_block);
}

static void norm_compute(
        const gb_row_plan *rows, const gb_step_call *call, const gb_row_block *block)
{
    const norm *plan = call->params;
    const gb_norm_problem *problem = &plan->problem;
    float *mean = gb_scratch_get(call, plan->mean);
    float *variance = gb_scratch_get(call, plan->variance);
    float *scale = gb_scratch_get(call, plan->scale);
    gb_norm_block kernel_block = {.x = block->x,
            .x_stride = block->x_stride,
            .y_stride = block->y_stride,
            .count = block->count,
            .n = problem->rows.space.n,
            .mean = mean,
            .variance = variance,
            .scale = scale,
            .group = problem->group,
            .root_mean_square = problem->root_mean_square};
    (rows->columns ? gb_kernels_get()->norm_statistics_columns
                   : gb_kernels_get()->norm_statistics_rows)(&kernel_block);
    if (problem->has_stats) {
        store_stats(plan, &problem->mean, call, block, mean);
        store_stats(plan, &problem->variance, call, block, variance);
    }
    for (int64_t i = 0; i < block->count; i++)
        scale[i] = 1 / sqrtf(variance[i] + problem->epsilon);
    if (kernel_block.n && block->y)
        apply(plan, call, block, &kernel_block);
}

static void load_table(
        const gb_norm_affine *affine, const norm_affine *own, const gb_step_call *call)
{
    if (!affine->present || own->in_place)
        return;
    const gb_logical_tensor *tensor = &affine->tensor;
    int last = tensor->ndims - 1;
    uint8_t outer[GB_AXES];
    for (int d = 0; d < last; d++)
        outer[d] = (uint8_t)d;
    int64_t cols = last < 0 ? 1 : tensor->dims[last], stride = last < 0 ? 1 : tensor->strides[last];
    int64_t rows = last < 0 ? 1 : gb_product(last, outer, tensor->dims), position[GB_AXES] = {0};
    int64_t bytes = (int64_t)gb_data_type_bytes(tensor->data_type, 1);
    float *table = gb_scratch_get(call, own->table);
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
    const norm *plan = call->params;
    load_table(&plan->problem.gamma, &plan->gamma, call);
    load_table(&plan->problem.beta, &plan->beta, call);
    gb_row_run(&plan->rows, call, norm_compute);
}

/* Planning ------------------------------------------------------------------------------------- */

static norm_affine plan_affine(gb_step *step, const gb_norm_affine *affine, int64_t count)
{
    norm_affine own = {0};
    own.in_place = affine->tensor.data_type == GB_F32 && gb_is_dense(&affine->tensor);
    if (affine->present && !own.in_place)
        own.table = gb_scratch_add(step, gb_float_bytes(count));
    return own;
}

static gb_status norm_plan(gb_step *step, const gb_norm_problem *problem, int threads)
{
    norm *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->problem = *problem;
    plan->rows = gb_row_plan_make(
            step, &plan->problem.rows, threads, problem->group, problem->has_stats, apply_tile);
    gb_scratch *values[] = {&plan->mean, &plan->variance, &plan->scale};
    for (int i = 0; i < 3; i++)
        *values[i] = gb_scratch_add(step, gb_float_bytes(GB_TILE_ELEMENTS));
    plan->gamma = plan_affine(step, &problem->gamma, problem->affine_count);
    plan->beta = plan_affine(step, &problem->beta, problem->affine_count);
    step->params = plan;
    step->run = norm_run;
    step->work = 8 * gb_row_elements(&problem->rows);
    return GB_SUCCESS;
}

static gb_status norm_lower(gb_program *program, const gb_group *group)
{
    gb_norm_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "norm", &step));
    GB_TRY(gb_norm_describe(program, group, WIDEST_GROUP, step, &problem));
    GB_TRY(gb_step_describe(program, step, gb_norm_problem_print, &problem));
    GB_TRY(norm_plan(step, &problem, gb_program_threads(program)));
    return gb_program_add(program, step);
}

const gb_lowering gb_lowering_norm = {.name = "norm",
        .supports = gb_all_types_float,
        .takes_epilogue = true,
        .lower = norm_lower};
