/* Attention whose product with the values sums over rows: plan and run. */
#include "kernels/attention/attention_by_rows.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/attention/attention_item.h"
#include "kernels/cpu/step_call.h"
#include "kernels/plan/space.h"

#include <float.h>
#include <string.h>

enum {
    PANEL = GB_GEMM_PANEL,
    SCORE_BLOCK = 1 << 16, /* scores of a block of rows, a quarter of L2 */
    MOST_ROWS = 112,       /* of a block */
    SLICE_ROWS = 256,      /* at least, of a slice */
    WANTED_ITEMS = 64      /* rows are sliced when there are fewer tasks */
};

typedef struct by_rows {
    gb_attention attention;
    bool keys_last;
    gb_attention_space results; /* rows of the results, by task */
    int64_t result_rows, result_cols;
    int64_t slices, slice_rows, sums_row;
    gb_scratch sums; /* of a task, unless slices leave them in shared scratch */
    int64_t *score_offsets, *value_offsets; /* of rows in scratch */
    int64_t offsets[];
} by_rows;

typedef struct item {
    const by_rows *plan;
    gb_attention_item rows; /* the current block; `values` are rows of V */
    float *sums;            /* results of the task so far */
} item;

/* sums += V^T P, or P^T V, of a block of rows: both operands lie as rows. */
static void add_rows(const item *u, bool first)
{
    const by_rows *plan = u->plan;
    const gb_attention *attention = &plan->attention;
    bool swapped = plan->keys_last;
    gb_gemm_tile tile = {.a = swapped ? u->rows.acc : u->rows.scores,
            .a_row = 1,
            .a_offsets = swapped ? plan->value_offsets : plan->score_offsets,
            .b_offsets = swapped ? plan->score_offsets : plan->value_offsets,
            .k = u->rows.rows,
            .c_in = first ? NULL : u->sums,
            .c_in_row = plan->sums_row,
            .c_out = u->sums,
            .c_out_row = plan->sums_row};
    gb_attention_multiply(attention->kernels, tile, swapped ? u->rows.scores : u->rows.acc, PANEL,
            plan->result_rows, plan->result_cols);
}

/* Scores to weights, whose factors the rows of V take. */
static void weigh_rows(gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention *plan = u->plan;
    gb_attention_rows rows = {.scores = u->scores,
            .row_stride = plan->score_row,
            .rows = u->rows,
            .cols = plan->keys,
            .max = u->max,
            .sum = u->sum};
    for (int64_t r = 0; r < u->rows; r++)
        u->max[r] = -FLT_MAX;
    plan->kernels->attention_softmax(&rows);
    gb_attention_set_factors(u, 0, u->rows);
    if (plan->has_stats)
        gb_attention_store_stats(u);
    gb_attention_scale_rows(u, 0, u->rows, u->acc, plan->acc_row, plan->columns);
    gb_attention_run_score_ops(u, b, &plan->between, 0, plan->keys);
}

static void attention_by_rows_process(item *u, int64_t first, int64_t rows, bool is_first)
{
    gb_attention_item *block = &u->rows;
    const gb_attention *plan = block->plan;
    gb_attention_block b = {.rows = rows, .keys = plan->keys, .first = true};
    block->first_row = first;
    block->rows = rows;
    gb_attention_load_queries(block);
    gb_attention_load(plan->kernels, &plan->space, &plan->v, block->call->buffers, block->position,
            first, rows, plan->columns, block->acc, plan->acc_row);
    gb_attention_multiply_queries(block, &b);
    gb_attention_run_score_ops(block, &b, &plan->before, 0, plan->keys);
    weigh_rows(block, &b);
    add_rows(u, is_first);
}

static void attention_by_rows_store(item *u)
{
    const by_rows *plan = u->plan;
    gb_attention_tiling t = gb_attention_tiling_of(&u->rows, &plan->attention.after.pointwise);
    t.space = &plan->results;
    t.rows = plan->result_rows;
    t.cols = plan->result_cols;
    t.source = u->sums;
    t.source_row = plan->sums_row;
    gb_attention_run_tiles(&t);
}

static float *sums_of(const item *u, int64_t slice)
{
    const by_rows *plan = u->plan;
    int64_t part = u->rows.task * plan->slices + slice;
    return (float *)u->rows.call->shared + part * plan->result_rows * plan->sums_row;
}

static void attention_by_rows_run_slice(item *u)
{
    const by_rows *plan = u->plan;
    const gb_attention *attention = &plan->attention;
    int64_t begin = u->rows.split * plan->slice_rows;
    int64_t end = gb_min_i64(begin + plan->slice_rows, attention->queries);
    if (plan->slices > 1)
        u->sums = sums_of(u, u->rows.split);
    gb_attention_pack(&u->rows, 0, attention->keys, false);
    for (int64_t row = begin; row < end; row += attention->group_rows)
        attention_by_rows_process(
                u, row, gb_min_i64(attention->group_rows, end - row), row == begin);
    if (plan->slices == 1)
        attention_by_rows_store(u);
}

/* Adds up the slices of a task, in order. */
static void join_slices(item *u)
{
    const by_rows *plan = u->plan;
    for (int64_t s = 1; s < plan->slices; s++) {
        gb_attention_blend blend = {.rows = plan->result_rows,
                .cols = plan->result_cols,
                .dst = sums_of(u, 0),
                .dst_stride = plan->sums_row,
                .x = sums_of(u, 0),
                .x_stride = plan->sums_row,
                .y = sums_of(u, s),
                .y_stride = plan->sums_row};
        plan->attention.kernels->attention_blend(&blend);
    }
    u->sums = sums_of(u, 0);
    attention_by_rows_store(u);
}

static void attention_by_rows_start_unit(item *u, int64_t task, int64_t slice)
{
    const gb_attention_space *space = &u->plan->attention.space;
    u->rows.task = task;
    u->rows.split = slice;
    memset(u->rows.position, 0, sizeof u->rows.position);
    gb_position_set(space->n_task_dims, space->task_dims, space->dims, task, u->rows.position);
}

static void attention_by_rows_place_scratch(item *u)
{
    const gb_attention *plan = &u->plan->attention;
    gb_attention_item *rows = &u->rows;
    rows->q = gb_scratch_get(rows->call, plan->scratch.q);
    rows->acc = gb_scratch_get(rows->call, plan->scratch.values);
    rows->max = gb_scratch_get(rows->call, plan->scratch.state);
    rows->sum = rows->max + plan->group_rows;
    rows->factor = rows->sum + plan->group_rows;
    rows->k = gb_scratch_get(rows->call, plan->scratch.k);
    rows->scores = gb_scratch_get(rows->call, plan->scratch.scores);
    u->sums = gb_scratch_get(rows->call, u->plan->sums);
    rows->registers = gb_scratch_get(rows->call, plan->scratch.registers);
}

static void attention_by_rows_run(const gb_step_call *call)
{
    const by_rows *plan = call->params;
    int64_t slices = call->phase == 0 ? plan->slices : 1, begin, end;
    gb_split(plan->attention.space.tasks * slices, call->thread, call->n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        item u = {.plan = plan, .rows = {.plan = &plan->attention, .call = call}};
        attention_by_rows_place_scratch(&u);
        attention_by_rows_start_unit(&u, i / slices, i % slices);
        if (call->phase == 0)
            attention_by_rows_run_slice(&u);
        else
            join_slices(&u);
    }
}

/* Blocks depend on the sizes alone. */
static void attention_by_rows_choose_blocks(by_rows *plan)
{
    gb_attention *a = &plan->attention;
    const bool none[GB_AXES] = {false};
    int64_t high = a->kernels->gemm_limits().rows;
    gb_attention_space_init(&a->space, a->n_batch, a->batch_dims, none, a->queries);
    plan->result_rows = plan->keys_last ? a->columns : a->keys;
    plan->result_cols = plan->keys_last ? a->keys : a->columns;
    gb_attention_space_init(&plan->results, a->n_batch, a->batch_dims, none, plan->result_rows);
    a->key_block = gb_div_up(a->keys, PANEL) * PANEL;
    int64_t most = gb_max_i64(high, gb_min_i64(MOST_ROWS, SCORE_BLOCK / a->key_block));
    a->group_rows = gb_min_i64(most / high * high, gb_div_up(a->queries, high) * high);
    plan->slices = gb_min_i64(
            gb_div_up(WANTED_ITEMS, a->space.tasks), gb_max_i64(1, a->queries / SLICE_ROWS));
    plan->slice_rows =
            gb_div_up(gb_div_up(a->queries, plan->slices), a->group_rows) * a->group_rows;
    plan->slices = gb_div_up(a->queries, plan->slice_rows);
}

static size_t registers_bytes(const gb_attention *plan)
{
    size_t before = gb_pointwise_scratch(&plan->before.pointwise),
           after = gb_pointwise_scratch(&plan->after.pointwise);
    size_t between = gb_pointwise_scratch(&plan->between.pointwise);
    size_t most = before > after ? before : after;
    return most > between ? most : between;
}

static void attention_by_rows_add_scratch(by_rows *plan, gb_step *step)
{
    gb_attention *a = &plan->attention;
    a->q_row = gb_attention_row(a->features);
    a->acc_row = gb_attention_row(a->columns);
    a->score_row = gb_attention_row(a->key_block);
    plan->sums_row = gb_attention_row(plan->result_cols);
    int64_t k = a->key_block / PANEL * (a->features + 1) * PANEL;
    a->scratch.q = gb_scratch_add(step, gb_attention_bytes(a->group_rows * a->q_row));
    a->scratch.values = gb_scratch_add(step, gb_attention_bytes(a->group_rows * a->acc_row));
    a->scratch.state = gb_scratch_add(step, gb_attention_bytes(a->group_rows * 3));
    a->scratch.k = gb_scratch_add(step, gb_attention_bytes(k));
    a->scratch.scores = gb_scratch_add(step, gb_attention_bytes(a->group_rows * a->score_row));
    if (plan->slices == 1)
        plan->sums = gb_scratch_add(step, gb_attention_bytes(plan->result_rows * plan->sums_row));
    a->scratch.registers = gb_scratch_add(step, registers_bytes(a));
    if (plan->slices == 1)
        return;
    step->shared_scratch =
            gb_attention_bytes(a->space.tasks * plan->slices * plan->result_rows * plan->sums_row);
    step->n_phases = 2;
}

static void attention_by_rows_fill_offsets(by_rows *plan)
{
    gb_attention *a = &plan->attention;
    a->unit_offsets = plan->offsets;
    a->panels = a->unit_offsets + a->features;
    plan->score_offsets = a->panels + a->features;
    plan->value_offsets = plan->score_offsets + a->group_rows;
    for (int64_t i = 0; i < a->features; i++) {
        a->unit_offsets[i] = i;
        a->panels[i] = i * PANEL;
    }
    for (int64_t r = 0; r < a->group_rows; r++) {
        plan->score_offsets[r] = r * a->score_row;
        plan->value_offsets[r] = r * a->acc_row;
    }
}

gb_status gb_attention_by_rows_add(
        gb_program *program, gb_step *step, const gb_attention *plan, bool keys_last)
{
    by_rows chosen = {.attention = *plan, .keys_last = keys_last};
    chosen.attention.kernels = gb_kernels_get();
    attention_by_rows_choose_blocks(&chosen);
    attention_by_rows_add_scratch(&chosen, step);
    const gb_attention *a = &chosen.attention;
    size_t offsets = 2 * (size_t)(a->features + a->group_rows);
    by_rows *own = gb_step_alloc(step, 1, sizeof *own + offsets * sizeof(int64_t));
    if (!own)
        return GB_OUT_OF_MEMORY;
    *own = chosen;
    attention_by_rows_fill_offsets(own);
    double scores = (double)a->space.tasks * (double)a->queries * (double)a->keys;
    step->work = scores * ((double)(a->features + a->columns) / 4 + 8);
    step->run = attention_by_rows_run;
    step->params = own;
    return gb_program_add(program, step);
}
