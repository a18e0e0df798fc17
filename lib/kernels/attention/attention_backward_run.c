/* Runs the gradients of attention: rows pass by the keys of a slice, whose gradients add up in
 * scratch. */
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/attention/attention_backward_plan.h"
#include "kernels/attention/attention_causal.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/cpu/step_call.h"
#include "kernels/plan/space.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

typedef struct item {
    const gb_attention_backward *plan;
    const gb_step_call *call;
    int64_t position[GB_AXES];
    int64_t task, first_row, rows, first_key, keys; /* of the block of rows, and of the slice */
    gb_causal_bounds causal_bounds;
    float *q, *g, *o, *row_sums, *dq, *packed_q, *packed_g, *k_columns, *v_columns, *packed_k, *dk,
            *dv;
    float *scores[4]; /* by place among the scratch operands */
    bool hides;       /* keys from the block of rows */
    float *registers;
} item;

static int64_t panel_of(int64_t rows)
{
    return (rows + 1) * PANEL;
}

/* A matrix with `rows` rows and `cols` columns into panels of columns. */
static void attention_backward_pack(const item *u, gb_data_type type, const void *src,
        int64_t row_stride, int64_t col_stride, int64_t rows, int64_t cols, float *dst,
        int64_t panel)
{
    gb_gemm_pack p = {.type = type,
            .src = src,
            .k = rows,
            .n = cols,
            .k_stride = row_stride,
            .n_stride = col_stride,
            .dst = dst,
            .panel_stride = panel};
    u->plan->kernels->gemm_pack(&p);
}

/* K and V of the slice: as columns for S and G, K once more for dQ. */
static void pack_keys(const item *u)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    const gb_attention_operand *k = &problem->k, *v = &problem->v;
    const char *keys =
            gb_attention_element(&plan->space, k, u->call->buffers, u->position, u->first_key);
    const char *values =
            gb_attention_element(&plan->space, v, u->call->buffers, u->position, u->first_key);
    attention_backward_pack(u, k->type, keys, k->col_stride, k->row_stride, problem->features,
            u->keys, u->k_columns, panel_of(problem->features));
    attention_backward_pack(u, v->type, values, v->col_stride, v->row_stride, problem->columns,
            u->keys, u->v_columns, panel_of(problem->columns));
    attention_backward_pack(u, k->type, keys, k->row_stride, k->col_stride, u->keys,
            problem->features, u->packed_k, panel_of(plan->split_keys));
}

static void load_rows(item *u)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    gb_attention_load(plan->kernels, &plan->space, &problem->q, u->call->buffers, u->position,
            u->first_row, u->rows, problem->features, NULL, u->q, plan->feature_row);
    gb_attention_load(plan->kernels, &plan->space, &problem->g, u->call->buffers, u->position,
            u->first_row, u->rows, problem->columns, NULL, u->g, plan->column_row);
    attention_backward_pack(u, GB_F32, u->q, plan->feature_row, 1, u->rows, problem->features,
            u->packed_q, panel_of(plan->row_block));
    attention_backward_pack(u, GB_F32, u->g, plan->column_row, 1, u->rows, problem->columns,
            u->packed_g, panel_of(plan->row_block));
    if (!problem->has_outputs)
        return;
    gb_attention_load(plan->kernels, &plan->space, &problem->o, u->call->buffers, u->position,
            u->first_row, u->rows, problem->columns, NULL, u->o, plan->column_row);
    plan->kernels->attention_row_products(
            u->o, u->g, plan->column_row, u->rows, problem->columns, u->row_sums);
}

/* The scores of the work item's rows and keys `key` .. of the slice. */
static void multiply_rows(const item *u, int64_t key, int64_t keys)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    gb_gemm_tile tile = {.a = u->q,
            .a_row = plan->feature_row,
            .a_offsets = plan->unit_offsets,
            .b_offsets = plan->panels,
            .k = problem->features,
            .c_out = u->scores[GB_ATTENTION_S],
            .c_out_row = plan->score_row};
    int64_t panel = panel_of(problem->features);
    gb_attention_multiply(
            plan->kernels, tile, u->k_columns + key / PANEL * panel, panel, u->rows, keys);
    tile.a = u->g;
    tile.a_row = plan->column_row;
    tile.k = problem->columns;
    tile.c_out = u->scores[GB_ATTENTION_G];
    panel = panel_of(problem->columns);
    gb_attention_multiply(
            plan->kernels, tile, u->v_columns + key / PANEL * panel, panel, u->rows, keys);
}

static void run_post_ops(item *u, int64_t key, int64_t keys)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    gb_attention_tiling t = {.kernels = plan->kernels,
            .buffers = u->call->buffers,
            .space = &plan->space,
            .pointwise = &problem->score_ops,
            .position = u->position,
            .first_row = u->first_row,
            .rows = u->rows,
            .first_col = u->first_key + key,
            .cols = keys,
            .registers = u->registers};
    for (int i = 0; i < 4; i++) {
        t.scratch_operands[i].data = u->scores[i];
        t.scratch_operands[i].row_stride = plan->score_row;
    }
    t.scratch_operands[GB_ATTENTION_D].data = u->row_sums;
    t.scratch_operands[GB_ATTENTION_D].row_stride = 1;
    t.scratch_operands[GB_ATTENTION_D].is_column = true;
    gb_attention_run_tiles(&t);
}

/* sums += scores^T rows: for dV and dK. */
static void add_transposed(const item *u, const float *scores, const float *panels, float *sums,
        int64_t sums_row, int64_t keys, int64_t cols)
{
    const gb_attention_backward *plan = u->plan;
    gb_gemm_tile tile = {.a = scores,
            .a_row = 1,
            .a_offsets = plan->rows,
            .b_offsets = plan->panels,
            .k = u->rows,
            .c_in = sums,
            .c_in_row = sums_row,
            .c_out = sums,
            .c_out_row = sums_row};
    gb_attention_multiply(plan->kernels, tile, panels, panel_of(plan->row_block), keys, cols);
}

static void add_to_queries(const item *u, int64_t key, int64_t keys)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    gb_gemm_tile tile = {.a = u->scores[GB_ATTENTION_DS],
            .a_row = plan->score_row,
            .a_offsets = plan->unit_offsets,
            .b_offsets = plan->panels,
            .k = keys,
            .c_in = u->dq,
            .c_in_row = plan->feature_row,
            .c_out = u->dq,
            .c_out_row = plan->feature_row};
    gb_attention_multiply(plan->kernels, tile, u->packed_k + key * PANEL,
            panel_of(plan->split_keys), u->rows, problem->features);
}

/* Are the weights of hidden keys 0 in all rows of the block? */
static bool hidden_vanish(item *u)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    const float *stats = u->call->buffers[problem->stats_slot];
    for (int64_t r = 0; r < u->rows; r++) {
        gb_attention_locate(&plan->space, u->first_row + r, 1, u->position);
        float row = stats[gb_offset(problem->n_batch + 1, problem->stats_strides, u->position)];
        if (!(row - u->causal_bounds.fill > GB_ATTENTION_VANISHES))
            return false;
    }
    return true;
}

/* How many of some keys of the slice the mask lets weigh anything in the block of rows: whole
 * panels. */
static int64_t visible_keys(const item *u, int64_t key, int64_t keys)
{
    int64_t least, most;
    if (!u->hides)
        return keys;
    gb_attention_range(&u->plan->space, u->first_row, u->rows, &least, &most);
    int64_t visible = gb_attention_visible_keys(&u->causal_bounds, most) - u->first_key - key;
    return gb_min_i64(keys, gb_div_up(gb_max_i64(visible, 0), PANEL) * PANEL);
}

/* Post-ops that write scores to memory write those of hidden keys, too: they only have to be
 * finite.
 */
static void clear_hidden(const item *u, int64_t visible, int64_t keys)
{
    size_t bytes = (size_t)(keys - visible) * sizeof(float);
    for (int64_t r = 0; r < u->rows && bytes > 0; r++) {
        memset(u->scores[GB_ATTENTION_S] + r * u->plan->score_row + visible, 0, bytes);
        memset(u->scores[GB_ATTENTION_G] + r * u->plan->score_row + visible, 0, bytes);
    }
}

static void attention_backward_process(item *u, int64_t key, int64_t keys)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    int64_t all = keys;
    keys = visible_keys(u, key, all);
    if (keys > 0)
        multiply_rows(u, key, keys);
    if (problem->exposes)
        clear_hidden(u, keys, all);
    if (keys > 0 || problem->exposes)
        run_post_ops(u, key, problem->exposes ? all : keys);
    if (keys == 0)
        return;
    add_transposed(u, u->scores[GB_ATTENTION_P], u->packed_g, u->dv + key * plan->column_row,
            plan->column_row, keys, problem->columns);
    add_transposed(u, u->scores[GB_ATTENTION_DS], u->packed_q, u->dk + key * plan->feature_row,
            plan->feature_row, keys, problem->features);
    add_to_queries(u, key, keys);
}

/* Results -------------------------------------------------------------------------------------- */

static void attention_backward_store(item *u, const gb_attention_space *space,
        const gb_pointwise_program *pointwise, int64_t first_row, int64_t rows, const float *source,
        int64_t source_row, int64_t cols)
{
    int64_t position[GB_AXES];
    gb_attention_set_task(space, u->task, position);
    gb_attention_tiling t = {.kernels = u->plan->kernels,
            .buffers = u->call->buffers,
            .space = space,
            .pointwise = pointwise,
            .position = position,
            .first_row = first_row,
            .rows = rows,
            .cols = cols,
            .source = source,
            .source_row = source_row,
            .registers = u->registers};
    gb_attention_run_tiles(&t);
}

static void store_queries(item *u)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    attention_backward_store(u, &plan->space, &problem->dq, u->first_row, u->rows, u->dq,
            plan->feature_row, problem->features);
}

/* dQ of one slice in shared scratch. */
static float *attention_backward_part_of(const item *u, int64_t slice)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    int64_t rows = plan->space.tasks * plan->space.rows;
    char *base = u->call->shared + (size_t)slice * gb_attention_bytes(rows * problem->features);
    return (float *)base + (u->task * plan->space.rows + u->first_row) * problem->features;
}

static void leave_part(const item *u, int64_t slice)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    float *part = attention_backward_part_of(u, slice);
    for (int64_t r = 0; r < u->rows; r++)
        memcpy(part + r * problem->features, u->dq + r * plan->feature_row,
                (size_t)problem->features * sizeof(float));
}

/* Adds up the slices of the work item's rows, in order. */
static void join_parts(item *u)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    for (int64_t s = 0; s < plan->key_splits; s++) {
        gb_attention_blend blend = {.rows = u->rows,
                .cols = problem->features,
                .dst = u->dq,
                .dst_stride = plan->feature_row,
                .x = s == 0 ? attention_backward_part_of(u, 0) : u->dq,
                .x_stride = s == 0 ? problem->features : plan->feature_row,
                .y = s == 0 ? NULL : attention_backward_part_of(u, s),
                .y_stride = problem->features};
        plan->kernels->attention_blend(&blend);
    }
    store_queries(u);
}

/* Work items ----------------------------------------------------------------------------------- */

static void set_rows(item *u, int64_t row)
{
    u->first_row = row;
    u->rows = gb_min_i64(u->plan->row_block, u->plan->space.rows - row);
}

static void set_task(item *u, int64_t task)
{
    const gb_attention_space *space = &u->plan->space;
    u->task = task;
    gb_attention_set_task(space, task, u->position);
}

static void attention_backward_run_slice(item *u, int64_t index)
{
    const gb_attention_backward *plan = u->plan;
    const gb_attention_gradient_problem *problem = plan->problem;
    int64_t slice = index % plan->key_splits;
    set_task(u, index / plan->key_splits);
    u->first_key = slice * plan->split_keys;
    u->keys = gb_min_i64(plan->split_keys, problem->keys - u->first_key);
    pack_keys(u);
    memset(u->dk, 0, plan->dk_size * sizeof(float));
    memset(u->dv, 0, plan->dv_size * sizeof(float));
    for (int64_t row = 0; row < plan->space.rows; row += plan->row_block) {
        set_rows(u, row);
        load_rows(u);
        memset(u->dq, 0, plan->q_size * sizeof(float));
        u->hides = u->causal_bounds.is_set && hidden_vanish(u);
        for (int64_t key = 0; key < u->keys; key += plan->key_block)
            attention_backward_process(u, key, gb_min_i64(plan->key_block, u->keys - key));
        if (plan->key_splits > 1)
            leave_part(u, slice);
        else
            store_queries(u);
    }
    attention_backward_store(u, &plan->key_space, &problem->dk, u->first_key, u->keys, u->dk,
            plan->feature_row, problem->features);
    attention_backward_store(u, &plan->key_space, &problem->dv, u->first_key, u->keys, u->dv,
            plan->column_row, problem->columns);
}

static void run_join(item *u, int64_t index)
{
    int64_t blocks = gb_div_up(u->plan->space.rows, u->plan->row_block);
    set_task(u, index / blocks);
    set_rows(u, index % blocks * u->plan->row_block);
    join_parts(u);
}

static void attention_backward_place_scratch(item *u)
{
    const gb_attention_backward *plan = u->plan;
    u->q = gb_scratch_get(u->call, plan->scratch.q);
    u->dq = gb_scratch_get(u->call, plan->scratch.dq);
    u->g = gb_scratch_get(u->call, plan->scratch.g);
    u->o = gb_scratch_get(u->call, plan->scratch.o);
    u->row_sums = gb_scratch_get(u->call, plan->scratch.row_sums);
    u->packed_q = gb_scratch_get(u->call, plan->scratch.packed_q);
    u->packed_g = gb_scratch_get(u->call, plan->scratch.packed_g);
    u->k_columns = gb_scratch_get(u->call, plan->scratch.k_columns);
    u->v_columns = gb_scratch_get(u->call, plan->scratch.v_columns);
    u->packed_k = gb_scratch_get(u->call, plan->scratch.packed_k);
    u->dk = gb_scratch_get(u->call, plan->scratch.dk);
    u->dv = gb_scratch_get(u->call, plan->scratch.dv);
    for (int i = 0; i < 4; i++)
        u->scores[i] = gb_scratch_get(u->call, plan->scratch.scores[i]);
    u->registers = gb_scratch_get(u->call, plan->scratch.registers);
}

void gb_attention_backward_run(const gb_step_call *call)
{
    const gb_attention_backward *plan = call->params;
    const gb_attention_gradient_problem *problem = plan->problem;
    item u = {.plan = plan, .call = call};
    int64_t blocks = gb_div_up(plan->space.rows, plan->row_block);
    attention_backward_place_scratch(&u);
    u.causal_bounds = gb_causal_bounds_of(call, &problem->causal, problem->queries, problem->keys);
    int64_t items = plan->space.tasks * (call->phase == 0 ? plan->key_splits : blocks);
    int64_t rounds = gb_div_up(items, call->n_threads), begin, end;
    while (gb_take_items(call, rounds * call->n_threads, &begin, &end))
        for (int64_t number = begin; number < end; number++) {
            int64_t index = gb_attention_item_of(number, rounds, call->n_threads);
            if (index < items && call->phase == 0)
                attention_backward_run_slice(&u, index);
            else if (index < items)
                run_join(&u, index);
        }
}
