/* Runs attention whose product with the values sums over the queries. */
#include "kernels/attention/attention_by_rows.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/attention/attention_item.h"
#include "kernels/cpu/step_call.h"
#include "kernels/plan/space.h"

#include <float.h>

enum { PANEL = GB_GEMM_PANEL };

typedef struct item {
    const gb_attention_by_rows *plan;
    gb_attention_item rows; /* the current block; `values` are rows of V */
    float *sums;            /* results of the task so far */
} item;

/* sums += V^T P, or P^T V, of a block of rows: both operands lie as rows. */
static void add_rows(const item *u, bool first)
{
    const gb_attention_by_rows *plan = u->plan;
    const gb_attention_plan *rows = &plan->rows;
    bool swapped = rows->problem->keys_last;
    gb_gemm_tile tile = {.a = swapped ? u->rows.acc : u->rows.scores,
            .a_row = 1,
            .a_offsets = swapped ? plan->value_offsets : plan->score_offsets,
            .b_offsets = swapped ? plan->score_offsets : plan->value_offsets,
            .k = u->rows.rows,
            .c_in = first ? NULL : u->sums,
            .c_in_row = plan->sums_row,
            .c_out = u->sums,
            .c_out_row = plan->sums_row};
    gb_attention_multiply(rows->kernels, tile, swapped ? u->rows.scores : u->rows.acc, PANEL,
            plan->result_rows, plan->result_cols);
}

/* Scores to weights, whose factors the rows of V take. */
static void weigh_rows(gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_problem *problem = plan->problem;
    gb_attention_rows rows = {.scores = u->scores,
            .row_stride = plan->score_row,
            .rows = u->rows,
            .cols = problem->keys,
            .max = u->max,
            .sum = u->sum};
    for (int64_t r = 0; r < u->rows; r++)
        u->max[r] = -FLT_MAX;
    plan->kernels->attention_softmax(&rows);
    gb_attention_set_factors(u, 0, u->rows);
    if (problem->has_stats)
        gb_attention_store_stats(u);
    gb_attention_scale_rows(u, 0, u->rows, u->acc, plan->acc_row, problem->columns);
    gb_attention_run_score_ops(u, b, &problem->between, 0, problem->keys);
}

static void attention_by_rows_process(item *u, int64_t first, int64_t rows, bool is_first)
{
    gb_attention_item *block = &u->rows;
    const gb_attention_plan *plan = block->plan;
    const gb_attention_problem *problem = plan->problem;
    gb_attention_block b = {.rows = rows, .keys = problem->keys, .first = true};
    block->first_row = first;
    block->rows = rows;
    gb_attention_load_queries(block);
    gb_attention_load(plan->kernels, &plan->space, &problem->v, block->call->buffers,
            block->position, first, rows, problem->columns, NULL, block->acc, plan->acc_row);
    if (!gb_attention_multiply_queries(block, &b))
        gb_attention_run_score_ops(block, &b, &problem->before, 0, problem->keys);
    weigh_rows(block, &b);
    add_rows(u, is_first);
}

static void attention_by_rows_store(item *u)
{
    const gb_attention_by_rows *plan = u->plan;
    gb_attention_tiling t = gb_attention_tiling_of(&u->rows, &plan->rows.problem->after.pointwise);
    t.space = &plan->results;
    t.rows = plan->result_rows;
    t.cols = plan->result_cols;
    t.source = u->sums;
    t.source_row = plan->sums_row;
    gb_attention_run_tiles(&t);
}

static float *sums_of(const item *u, int64_t slice)
{
    const gb_attention_by_rows *plan = u->plan;
    int64_t part = u->rows.task * plan->slices + slice;
    return (float *)u->rows.call->shared + part * plan->result_rows * plan->sums_row;
}

static void attention_by_rows_run_slice(item *u)
{
    const gb_attention_by_rows *plan = u->plan;
    const gb_attention_plan *rows = &plan->rows;
    int64_t begin = u->rows.split * plan->slice_rows;
    int64_t end = gb_min_i64(begin + plan->slice_rows, rows->problem->queries);
    if (plan->slices > 1)
        u->sums = sums_of(u, u->rows.split);
    gb_attention_pack(&u->rows, 0, rows->problem->keys, false);
    for (int64_t row = begin; row < end; row += rows->group_rows)
        attention_by_rows_process(u, row, gb_min_i64(rows->group_rows, end - row), row == begin);
    if (plan->slices == 1)
        attention_by_rows_store(u);
}

/* Adds up the slices of a task, in order. */
static void join_slices(item *u)
{
    const gb_attention_by_rows *plan = u->plan;
    for (int64_t s = 1; s < plan->slices; s++) {
        gb_attention_blend blend = {.rows = plan->result_rows,
                .cols = plan->result_cols,
                .dst = sums_of(u, 0),
                .dst_stride = plan->sums_row,
                .x = sums_of(u, 0),
                .x_stride = plan->sums_row,
                .y = sums_of(u, s),
                .y_stride = plan->sums_row};
        plan->rows.kernels->attention_blend(&blend);
    }
    u->sums = sums_of(u, 0);
    attention_by_rows_store(u);
}

static void attention_by_rows_start_unit(item *u, int64_t task, int64_t slice)
{
    u->rows.task = task;
    u->rows.split = slice;
    gb_attention_set_task(&u->plan->rows.space, task, u->rows.position);
}

void gb_attention_by_rows_run(const gb_step_call *call)
{
    const gb_attention_by_rows *plan = call->params;
    int64_t slices = call->phase == 0 ? plan->slices : 1, begin, end;
    item u = {.plan = plan, .rows = {.plan = &plan->rows, .call = call}};
    gb_attention_place_scratch(&u.rows);
    while (gb_take_items(call, plan->rows.space.tasks * slices, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            u.sums = gb_scratch_get(call, plan->sums);
            attention_by_rows_start_unit(&u, i / slices, i % slices);
            if (call->phase == 0)
                attention_by_rows_run_slice(&u);
            else
                join_slices(&u);
        }
}
