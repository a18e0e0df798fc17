/* Runs attention: work items of rows and slices of keys, on-line softmax inside. */
#include "kernels/attention/attention_item.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"
#include "kernels/plan/space.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

/* Do hidden scores weigh nothing in any of the rows? */
static bool hidden_vanish(const gb_attention_item *u, int64_t row, int64_t rows)
{
    bool vanish = true;
    for (int64_t r = row; r < row + rows; r++)
        vanish = vanish && u->max[r] - u->causal_bounds.fill > GB_ATTENTION_VANISHES;
    return vanish;
}

static void score(gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_problem *problem = plan->problem;
    int64_t least, most, visible = 0;
    if (gb_attention_multiply_queries(u, b))
        return;
    if (u->causal_bounds.is_set) {
        gb_attention_range(&plan->space, u->first_row + b->row, b->rows, &least, &most);
        visible = gb_attention_visible_keys(&u->causal_bounds, least) - b->key;
        visible = gb_max_i64(0, gb_min_i64(visible, b->keys));
        visible = visible == b->keys ? visible : visible / PANEL * PANEL;
    }
    gb_attention_run_score_ops(u, b, &problem->before_unmasked, 0, visible);
    gb_attention_run_score_ops(u, b, &problem->before, visible, b->keys);
}

static gb_attention_rows attention_rows_of(const gb_attention_item *u, const gb_attention_block *b)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_problem *problem = plan->problem;
    return (gb_attention_rows){.scores = u->scores,
            .row_stride = plan->score_row,
            .rows = b->rows,
            .cols = b->keys,
            .max = u->max + b->row,
            .sum = u->sum + b->row,
            .acc = b->first ? NULL : u->acc + b->row * plan->acc_row,
            .acc_stride = plan->acc_row,
            .acc_cols = problem->columns};
}

/* Scores to weights, relative to the rows' maxima so far. */
static void weigh(gb_attention_item *u, const gb_attention_block *b)
{
    gb_attention_rows rows = attention_rows_of(u, b);
    score(u, b);
    u->plan->kernels->attention_softmax(&rows);
}

/* Products of bytes round weights themselves. */
static void run_weight_ops(gb_attention_item *u, const gb_attention_block *b)
{
    if (u->plan->products != GB_ATTENTION_BYTES)
        gb_attention_run_score_ops(u, b, &u->plan->problem->between, 0, b->keys);
}

/* Scores to weights to sums of values. */
static void attention_process(gb_attention_item *u, const gb_attention_block *b)
{
    weigh(u, b);
    run_weight_ops(u, b);
    gb_attention_multiply_weights(u, b);
}

/* Rows whose sums are complete, and factors set. */
static void finish_rows(gb_attention_item *u, int64_t row, int64_t rows)
{
    const gb_attention_plan *plan = u->plan;
    gb_attention_tiling t = gb_attention_tiling_of(u, &plan->problem->after.pointwise);
    t.first_row = u->first_row + row;
    t.rows = rows;
    t.cols = plan->problem->columns;
    t.source = u->acc + row * plan->acc_row;
    t.source_row = plan->acc_row;
    t.factor = plan->softmax == GB_ATTENTION_ONLINE ? u->factor + row : NULL;
    gb_attention_run_tiles(&t);
}

/* The product with V, of rows whose keys are all in the block, and what follows: in the tiles of the product if that
 * can be. */
static void multiply_and_finish(gb_attention_item *u, gb_attention_block b)
{
    const bool divides = u->plan->softmax == GB_ATTENTION_ONLINE;
    gb_tile_post_ops results;
    if (divides)
        gb_attention_set_factors(u, b.row, b.rows);
    if (gb_attention_read_result_ops(u, &b, divides ? u->factor + b.row : NULL, &results))
        b.results = &results;
    gb_attention_multiply_weights(u, &b);
    if (!b.results)
        finish_rows(u, b.row, b.rows);
}

/* How many keys of the block the mask does not hide from all rows, in whole panels. */
static int64_t keys_in_sight(const gb_attention_item *u, const gb_attention_block *b)
{
    int64_t least, most;
    gb_attention_range(&u->plan->space, u->first_row + b->row, b->rows, &least, &most);
    int64_t visible = gb_attention_visible_keys(&u->causal_bounds, most) - b->key;
    return gb_min_i64(b->keys, gb_div_up(gb_max_i64(visible, 0), PANEL) * PANEL);
}

/* Keys that the mask hides from all rows are left out where they would weigh nothing. */
static void process_visible(gb_attention_item *u, gb_attention_block b)
{
    int64_t end = b.key + b.keys;
    if (gb_attention_finishes_groups(u->plan)) {
        weigh(u, &b);
        run_weight_ops(u, &b);
        multiply_and_finish(u, b);
        return;
    }
    if (!u->causal_bounds.is_set) {
        attention_process(u, &b);
        return;
    }
    int64_t visible = keys_in_sight(u, &b);
    if (visible > 0) {
        b.keys = visible;
        attention_process(u, &b);
        b.first = false;
    }
    if (b.key + visible == end || (!b.first && hidden_vanish(u, b.row, b.rows)))
        return;
    b.key += visible;
    b.keys = end - b.key;
    attention_process(u, &b);
}

/* Work items ----------------------------------------------------------------------------------- */

static void attention_measure(gb_attention_item *u, gb_attention_block b)
{
    gb_attention_rows rows = attention_rows_of(u, &b);
    rows.acc_cols = 0;
    score(u, &b);
    u->plan->kernels->attention_softmax(&rows);
}

/* Does the product with V divide weights by their sum as it rounds them? */
static bool divides_weights(const gb_attention_plan *plan)
{
    return plan->products == GB_ATTENTION_BYTES ||
           (plan->products == GB_ATTENTION_BF16 && plan->problem->between.is_empty);
}

/* Weights that sum to 1, of rows whose keys are all in the block. Hidden keys are left out as in
 * process_visible(), unless `between` may make something of weights of 0. */
static void process_whole(gb_attention_item *u, gb_attention_block b)
{
    const gb_attention_plan *plan = u->plan;
    int64_t all = b.keys;
    if (u->causal_bounds.is_set && !plan->problem->exact)
        b.keys = keys_in_sight(u, &b);
    if (b.keys > 0)
        weigh(u, &b);
    if (b.keys < all && (b.keys == 0 || !hidden_vanish(u, b.row, b.rows))) {
        b.keys = all;
        weigh(u, &b);
    }
    gb_attention_set_factors(u, b.row, b.rows);
    if (divides_weights(plan))
        b.factor = u->factor + b.row;
    else
        gb_attention_scale_rows(u, b.row, b.rows, u->scores, plan->score_row, b.keys);
    run_weight_ops(u, &b);
    multiply_and_finish(u, b);
}

/* Weights of rows whose maximum and sum are known. */
static void process_exactly(gb_attention_item *u, gb_attention_block b)
{
    gb_attention_rows rows = attention_rows_of(u, &b);
    score(u, &b);
    u->plan->kernels->attention_weights(&rows, u->factor + b.row);
    run_weight_ops(u, &b);
    gb_attention_multiply_weights(u, &b);
}

typedef void run_block(gb_attention_item *u, gb_attention_block b);

/* A time that keys pass by the rows of a work item. */
typedef struct key_pass {
    run_block *run; /* NULL: there is none */
    bool values;    /* it needs V */
} key_pass;

/* Between two passes the factors are set. */
static const key_pass passes[][2] = {
        [GB_ATTENTION_ONLINE] = {{process_visible, true}},
        [GB_ATTENTION_AT_ONCE] = {{process_whole, true}},
        [GB_ATTENTION_TWICE] = {{attention_measure, false}, {process_exactly, true}},
};

static void for_groups(gb_attention_item *u, int64_t key, int64_t keys, bool first, run_block *run)
{
    const gb_attention_plan *plan = u->plan;
    for (int64_t row = 0; row < u->rows; row += plan->group_rows) {
        gb_attention_block b = {.row = row,
                .rows = gb_min_i64(plan->group_rows, u->rows - row),
                .key = key,
                .keys = keys,
                .packed_key = key,
                .first = first};
        run(u, b);
    }
}

static void run_keys(gb_attention_item *u, int64_t begin, int64_t end, const key_pass *pass)
{
    const gb_attention_plan *plan = u->plan;
    for (int64_t key = begin; key < end; key += plan->key_block) {
        int64_t keys = gb_min_i64(plan->key_block, end - key);
        gb_attention_pack(u, key, keys, pass->values);
        for_groups(u, key, keys, key == begin, pass->run);
    }
}

static void attention_finish(gb_attention_item *u)
{
    if (u->plan->problem->has_stats)
        gb_attention_store_stats(u);
    if (gb_attention_finishes_groups(u->plan))
        return;
    gb_attention_set_factors(u, 0, u->rows);
    finish_rows(u, 0, u->rows);
}

/* Slices leave their sums and state in shared scratch. */
static float *slice_values(const gb_attention_item *u, int64_t slice)
{
    const gb_attention_plan *plan = u->plan;
    char *base = u->call->shared + (size_t)slice * plan->slice.bytes;
    return (float *)base + (u->task * plan->space.rows + u->first_row) * plan->problem->columns;
}

static float *slice_state(const gb_attention_item *u, int64_t slice)
{
    const gb_attention_plan *plan = u->plan;
    char *base = u->call->shared + (size_t)slice * plan->slice.bytes + plan->slice.state;
    return (float *)base + (u->task * plan->space.rows + u->first_row) * 2;
}

static void leave_slice(gb_attention_item *u)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_problem *problem = plan->problem;
    float *values = slice_values(u, u->split), *state = slice_state(u, u->split);
    for (int64_t r = 0; r < u->rows; r++) {
        memcpy(values + r * problem->columns, u->acc + r * plan->acc_row,
                (size_t)problem->columns * sizeof(float));
        state[2 * r] = u->max[r];
        state[2 * r + 1] = u->sum[r];
    }
}

static void attention_run_slice(gb_attention_item *u)
{
    const gb_attention_plan *plan = u->plan;
    const key_pass *pass = passes[plan->softmax];
    int64_t begin, end;
    gb_split(plan->key_blocks, (int)u->split, (int)plan->key_splits, &begin, &end);
    begin *= plan->key_block;
    end = gb_min_i64(end * plan->key_block, plan->problem->keys);
    gb_attention_load_queries(u);
    for (int64_t r = 0; r < u->rows; r++)
        u->max[r] = -FLT_MAX, u->sum[r] = 0;
    run_keys(u, begin, end, &pass[0]);
    if (pass[1].run) {
        gb_attention_set_factors(u, 0, u->rows);
        run_keys(u, begin, end, &pass[1]);
    }
    if (plan->key_splits > 1)
        leave_slice(u);
    else
        attention_finish(u);
}

/* Joins the slices of the work item's rows, in order. */
static void join_slices(gb_attention_item *u)
{
    const gb_attention_plan *plan = u->plan;
    const gb_attention_problem *problem = plan->problem;
    for (int64_t r = 0; r < u->rows; r++) {
        float *sums = u->acc + r * plan->acc_row;
        u->max[r] = -FLT_MAX;
        for (int64_t s = 0; s < plan->key_splits; s++)
            u->max[r] = fmaxf(u->max[r], slice_state(u, s)[2 * r]);
        u->sum[r] = 0;
        memset(sums, 0, (size_t)problem->columns * sizeof(float));
        for (int64_t s = 0; s < plan->key_splits; s++) {
            const float *state = slice_state(u, s) + 2 * r;
            float weight = expf(state[0] - u->max[r]);
            gb_attention_blend blend = {.rows = 1,
                    .cols = problem->columns,
                    .dst = sums,
                    .x = sums,
                    .y = slice_values(u, s) + r * problem->columns,
                    .b = &weight};
            plan->kernels->attention_blend(&blend);
            u->sum[r] += state[1] * weight;
        }
    }
    attention_finish(u);
}

static void attention_start_unit(gb_attention_item *u, int64_t index)
{
    const gb_attention_plan *plan = u->plan;
    u->first_row = index % plan->row_items * plan->item_rows;
    index /= plan->row_items;
    u->rows = gb_min_i64(plan->item_rows, plan->space.rows - u->first_row);
    if (u->call->phase == 0) {
        u->split = index % plan->key_splits;
        index /= plan->key_splits;
    }
    u->task = index;
    gb_attention_set_task(&plan->space, index, u->position);
}

void gb_attention_run(const gb_step_call *call)
{
    const gb_attention_plan *plan = call->params;
    const gb_attention_problem *problem = plan->problem;
    gb_attention_item u = {.plan = plan, .call = call};
    gb_attention_place_scratch(&u);
    u.causal_bounds = gb_causal_bounds_of(call, &problem->causal, problem->queries, problem->keys);
    plan->kernels->dot_begin();
    int64_t items = plan->space.tasks * plan->row_items * (call->phase == 0 ? plan->key_splits : 1);
    int64_t rounds = gb_div_up(items, call->n_threads), begin, end;
    while (gb_take_items(call, rounds * call->n_threads, &begin, &end))
        for (int64_t number = begin; number < end; number++) {
            int64_t index = gb_attention_item_of(number, rounds, call->n_threads);
            if (index >= items)
                continue;
            attention_start_unit(&u, index);
            if (call->phase == 0)
                attention_run_slice(&u);
            else
                join_slices(&u);
        }
    plan->kernels->dot_end();
}
