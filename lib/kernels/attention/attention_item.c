/* Rows of a work item of attention: Q as f32, factors, statistics, and post-ops over them. */
#include "kernels/attention/attention_bytes.h"

#include "base/memory.h"
#include "kernels/cpu/step_call.h"
#include "kernels/plan/space.h"

#include <math.h>
#include <string.h>

static int64_t next_run(gb_attention_item *u, int64_t row, int64_t rows)
{
    return gb_attention_locate(&u->plan->space, u->first_row + row, rows, u->position);
}

/* Q of the work item from quantized values: rows along the queries at once, others one by one. */
static void dequantize_queries(gb_attention_item *u)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_problem *problem = plan->problem;
    int dim = gb_attention_run_dim(&plan->space), along = problem->n_batch;
    gb_attention_dequantization dequantization = {.source = problem->q.source,
            .buffers = u->call->buffers,
            .position = u->position,
            .n_batch = problem->n_batch,
            .dst_row = plan->q_row,
            .registers = u->registers};
    for (int64_t row = 0; row < u->rows; row += dequantization.keys) {
        int64_t n = next_run(u, row, u->rows - row);
        dequantization.key = dim == along ? u->position[along] : 0;
        dequantization.keys = dim == along ? n : 1;
        dequantization.dst = u->q + row * plan->q_row;
        gb_attention_dequantize(plan->kernels, &dequantization);
    }
}

void gb_attention_scale_rows(const gb_attention_item *u, int64_t row, int64_t rows, float *data,
        int64_t row_stride, int64_t cols)
{
    gb_attention_blend blend = {.rows = rows,
            .cols = cols,
            .dst = data,
            .x = data,
            .dst_stride = row_stride,
            .x_stride = row_stride,
            .a = u->factor + row};
    u->plan->kernels->attention_blend(&blend);
}

float gb_attention_scale(const gb_attention_item *u)
{
    const gb_attention_problem *problem = u->plan->problem;
    if (!problem->scale.is_set)
        return 1;
    float scale = gb_attention_read(u->call, &problem->scale);
    return problem->divide_by_scale ? 1 / scale : scale;
}

void gb_attention_copy_queries(
        gb_attention_item *u, const gb_attention_operand *q, gb_dot_copy copy)
{
    const gb_attention_plan *plan = u->plan;
    int dim = gb_attention_run_dim(&plan->space), along = plan->problem->n_batch;
    for (int64_t row = 0, n; row < u->rows; row += n) {
        n = next_run(u, row, u->rows - row);
        copy.src = gb_attention_element(
                &plan->space, q, u->call->buffers, u->position, u->position[along]);
        copy.rows = n;
        copy.k = plan->problem->features;
        copy.row_stride = dim == along ? q->row_stride : q->strides[dim];
        copy.k_stride = q->col_stride;
        copy.dst = (int32_t *)(void *)(u->q + row * plan->q_row);
        copy.dst_row = plan->q_row;
        plan->kernels->dot_copy(&copy);
    }
}

void gb_attention_load_queries(gb_attention_item *u)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_problem *problem = plan->problem;
    if (plan->products == GB_ATTENTION_BF16) {
        gb_attention_copy_queries(u, &problem->q, (gb_dot_copy){.vnni_factor = 2, .floats = true});
        return;
    }
    if (plan->products == GB_ATTENTION_BYTES) {
        gb_attention_bytes_load_queries(u);
        return;
    }
    if (plan->q_in_place)
        return;
    if (problem->q.source) { /* its scale is one of the ops behind the product */
        dequantize_queries(u);
        return;
    }
    const float *factor = problem->scale.is_set ? u->factor : NULL;
    float scale = factor ? gb_attention_scale(u) : 1;
    for (int64_t r = 0; r < u->rows; r++)
        u->factor[r] = scale;
    gb_attention_load(plan->kernels, &plan->space, &problem->q, u->call->buffers, u->position,
            u->first_row, u->rows, problem->features, factor, u->q, plan->q_row);
}

void gb_attention_set_factors(gb_attention_item *u, int64_t row, int64_t rows)
{
    float empty = u->plan->problem->inf_as_zero ? 0 : NAN;
    for (int64_t r = row; r < row + rows; r++)
        u->factor[r] = u->sum[r] == 0 ? empty : 1 / u->sum[r];
}

void gb_attention_store_stats(gb_attention_item *u)
{
    const gb_attention_problem *problem = u->plan->problem;
    float *stats = u->call->buffers[problem->stats_slot];
    for (int64_t r = 0; r < u->rows; r++) {
        next_run(u, r, 1);
        float value = u->max[r] + logf(u->sum[r]);
        if (u->sum[r] == 0)
            value = problem->inf_as_zero ? 0 : NAN;
        stats[gb_offset(problem->n_batch + 1, problem->stats_strides, u->position)] = value;
    }
}

gb_attention_tiling gb_attention_tiling_of(
        gb_attention_item *u, const gb_pointwise_program *pointwise)
{
    const gb_attention_plan *plan = u->plan;
    return (gb_attention_tiling){.kernels = plan->kernels,
            .buffers = u->call->buffers,
            .space = &plan->space,
            .pointwise = pointwise,
            .position = u->position,
            .registers = u->registers};
}

/* A program as post-ops of the tiles of a block's rows, and of `cols` columns from `first_col` on, with room for a step
 * in front; `floats`: what there is of u->tiles. */
static bool read_tile_ops(gb_attention_item *u, const gb_attention_block *b,
        const gb_pointwise_program *program, int64_t floats, int64_t first_col, int64_t cols,
        gb_tile_post_ops *post_ops)
{
    const gb_attention_plan *plan = u->plan;
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    if (floats == 0 || next_run(u, b->row, b->rows) < b->rows)
        return false;
    u->position[plan->space.n_batch + 1] = first_col;
    gb_pointwise_views(program, u->call->buffers, u->position, gb_attention_run_dim(&plan->space),
            plan->space.n_batch + 1, views);
    for (uint32_t i = 0; i < program->n_operands; i++)
        if (!program->operands[i].is_index && program->operands[i].slot >= GB_SCRATCH_OPERAND)
            views[i] = (gb_pointwise_view){
                    .data = (char *)u->scores, .row_stride = plan->score_row, .col_stride = 1};
    gb_tile_post_ops read = {.n_steps = 0};
    if (!plan->kernels->tile_post_ops(program, views, b->rows, cols, u->tiles, floats, &read) ||
            read.n_steps == GB_TILE_STEPS)
        return false;
    *post_ops = read;
    return true;
}

bool gb_attention_read_score_ops(
        gb_attention_item *u, const gb_attention_block *b, gb_tile_post_ops *post_ops)
{
    const gb_attention_plan *plan = u->plan;
    *post_ops = (gb_tile_post_ops){.type = GB_F32,
            .bytes = sizeof(float),
            .dst = (char *)u->scores,
            .dst_row = plan->score_row};
    return read_tile_ops(
            u, b, &plan->problem->before_in_tiles, plan->tile_floats, b->key, b->keys, post_ops);
}

void gb_attention_put_in_front(gb_tile_post_ops *post_ops, const float *factor, int64_t row)
{
    memmove(post_ops->steps + 1, post_ops->steps,
            (size_t)post_ops->n_steps * sizeof *post_ops->steps);
    post_ops->n_steps++;
    post_ops->plain = false;
    post_ops->steps[0] = (gb_tile_step){.opcode = GB_POINTWISE_MUL,
            .other = (const char *)factor,
            .other_row = row,
            .type = GB_F32,
            .bytes = sizeof *factor};
}

bool gb_attention_read_result_ops(gb_attention_item *u, const gb_attention_block *b,
        const float *factor, gb_tile_post_ops *post_ops)
{
    const gb_attention_plan *plan = u->plan;
    if (!read_tile_ops(u, b, &plan->problem->after.pointwise, plan->result_floats, 0,
                plan->problem->columns, post_ops))
        return false;
    if (factor)
        gb_attention_put_in_front(post_ops, factor, 1);
    post_ops->apart = false; /* asked for in a burst, lines keep those of V waiting */
    return true;
}

void gb_attention_run_score_ops(gb_attention_item *u, const gb_attention_block *b,
        const gb_attention_program *program, int64_t first, int64_t end)
{
    if (program->is_empty || first >= end)
        return;
    gb_attention_tiling t = gb_attention_tiling_of(u, &program->pointwise);
    t.first_row = u->first_row + b->row;
    t.rows = b->rows;
    t.first_col = b->key + first;
    t.cols = end - first;
    for (int i = 0; i < 2; i++) {
        t.scratch_operands[i].data = u->scores + first;
        t.scratch_operands[i].row_stride = u->plan->score_row;
    }
    gb_attention_run_tiles(&t);
}

void gb_attention_place_scratch(gb_attention_item *u)
{
    const gb_attention_plan *plan = u->plan;
    u->q = gb_scratch_get(u->call, plan->scratch.q);
    u->acc = gb_scratch_get(u->call, plan->scratch.values);
    u->max = gb_scratch_get(u->call, plan->scratch.max);
    u->sum = gb_scratch_get(u->call, plan->scratch.sum);
    u->factor = gb_scratch_get(u->call, plan->scratch.factor);
    u->k = gb_scratch_get(u->call, plan->scratch.k);
    u->v = gb_scratch_get(u->call, plan->scratch.v);
    u->scores = gb_scratch_get(u->call, plan->scratch.scores);
    u->weights = gb_scratch_get(u->call, plan->scratch.weights);
    u->integers = gb_scratch_get(u->call, plan->scratch.integers);
    u->product = gb_scratch_get(u->call, plan->scratch.product);
    u->registers = gb_scratch_get(u->call, plan->scratch.registers);
    u->tiles = gb_scratch_get(u->call, plan->scratch.tiles);
}
