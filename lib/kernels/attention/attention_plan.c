/* Blocks of attention for the caches and threads at hand. */
#include "kernels/attention/attention.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/cpu/step_call.h"

#include "kernels/isa/costs.h"

enum {
    PANEL = GB_GEMM_PANEL,
    MOST_KEYS = 512,         /* of a block */
    MOST_ROWS = 512,         /* of a work item */
    FEW_ROWS = 2,            /* K and V are not packed for them */
    SLICE_KEYS = 256,        /* at least, of a slice */
    WANTED_ITEMS = 64,       /* keys are sliced when there are fewer work items */
    K_BLOCK_BYTES = 1 << 18, /* a block of K, and one of V, share L2 with Q and the sums */
    Q_BLOCK_BYTES = 1 << 20
};

static int64_t round_up(int64_t n, int64_t item)
{
    return gb_div_up(n, item) * item;
}

/* Heads that share keys and values are rows. */
static void split_dims(gb_attention *plan)
{
    bool is_row[GB_AXES];
    for (int d = 0; d < plan->n_batch; d++)
        is_row[d] = plan->k.strides[d] == 0 && plan->v.strides[d] == 0;
    gb_attention_space_init(&plan->space, plan->n_batch, plan->batch_dims, is_row, plan->queries);
}

/* Blocks of a source are dense. */
static bool readable(const gb_attention_operand *operand, const gb_attention_source *source)
{
    return source->is_set || operand->row_stride == 1 || operand->col_stride == 1;
}

/* Blocks depend on the sizes alone. */
static void attention_choose_blocks(gb_attention *plan)
{
    gb_gemm_limits limits = plan->kernels->gemm_limits();
    int64_t widest = gb_max_i64(plan->features, plan->columns);
    int64_t most = K_BLOCK_BYTES / (int64_t)sizeof(float) / widest / PANEL * PANEL;
    most = gb_min_i64(gb_max_i64(most, 2 * PANEL), MOST_KEYS);
    plan->by_vectors = plan->space.rows <= FEW_ROWS && readable(&plan->k, &plan->key_source) &&
                       readable(&plan->v, &plan->value_source);
    int64_t blocks = gb_div_up(plan->keys, most);
    plan->key_block = round_up(gb_div_up(plan->keys, blocks), PANEL);
    plan->group_rows = limits.rows * gb_max_i64(1, 14 / limits.rows);
    int64_t groups = plan->space.tasks * gb_div_up(plan->space.rows, 4 * plan->group_rows);
    int64_t slices = gb_min_i64(gb_div_up(WANTED_ITEMS, groups), plan->keys / SLICE_KEYS);
    bool sliced = slices > 1 && !plan->exact && !plan->causal.is_set;
    plan->key_blocks = gb_div_up(plan->keys, plan->key_block);
    plan->key_splits = sliced ? gb_min_i64(slices, plan->key_blocks) : 1;
}

/* Rows of a work item: all threads busy, and blocks of keys packed for as many rows as possible. */
static void choose_item(gb_attention *plan, int threads)
{
    int64_t widest = plan->features + plan->columns;
    int64_t most = Q_BLOCK_BYTES / (int64_t)sizeof(float) / widest / plan->group_rows;
    most = gb_max_i64(1, gb_min_i64(most, MOST_ROWS / plan->group_rows));
    int64_t groups = gb_div_up(plan->space.rows, plan->group_rows);
    int64_t least = gb_div_up(groups, most);
    const gb_costs *costs = gb_costs_get();
    double best = -1;
    for (int64_t items = least; items <= gb_min_i64(groups, least + threads); items++) {
        int64_t rows = gb_div_up(groups, items) * plan->group_rows;
        double item = (double)rows * costs->multiply_add + costs->attention_pack;
        int64_t all = plan->space.tasks * plan->key_splits * gb_div_up(plan->space.rows, rows);
        double cost = (double)gb_div_up(all, threads) * item;
        if (best >= 0 && cost >= best)
            continue;
        best = cost;
        plan->item_rows = rows;
    }
    plan->row_items = gb_div_up(plan->space.rows, plan->item_rows);
}

static size_t registers_bytes(const gb_attention *plan)
{
    const gb_pointwise_program *programs[] = {&plan->before.pointwise,
            &plan->before_unmasked.pointwise, &plan->between.pointwise, &plan->after.pointwise,
            &plan->query_source.pointwise, &plan->key_source.pointwise,
            &plan->value_source.pointwise};
    size_t most = 0;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        size_t bytes = gb_pointwise_scratch(programs[i]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* A dense block of keys, and its strides. */
static gb_scratch add_dense(gb_step *step, const gb_attention *plan,
        const gb_attention_source *source, int64_t cols, gb_attention_operand *operand)
{
    if (!source->is_set)
        return (gb_scratch){0};
    int64_t rows = source->along_rows ? cols : plan->key_block;
    int64_t row = gb_attention_row(source->along_rows ? plan->key_block : cols);
    operand->type = GB_F32;
    operand->row_stride = source->along_rows ? 1 : row;
    operand->col_stride = source->along_rows ? row : 1;
    return gb_scratch_add(step, gb_attention_bytes(rows * row));
}

static void attention_add_scratch(gb_attention *plan, gb_step *step)
{
    int64_t rows = gb_min_i64(plan->item_rows, round_up(plan->space.rows, plan->group_rows));
    plan->q_row = gb_attention_row(plan->features);
    plan->acc_row = gb_attention_row(plan->columns);
    plan->score_row = gb_attention_row(plan->key_block);
    plan->state_rows = (int64_t)(gb_attention_bytes(rows * 3) / sizeof(float)) / 3;
    plan->scratch.q = gb_scratch_add(step, gb_attention_bytes(rows * plan->q_row));
    plan->scratch.values = gb_scratch_add(step, gb_attention_bytes(rows * plan->acc_row + 16));
    plan->scratch.state = gb_scratch_add(step, gb_attention_bytes(rows * 3));
    if (!plan->by_vectors) {
        int64_t k = plan->key_block / PANEL * (plan->features + 1) * PANEL;
        int64_t v = gb_div_up(plan->columns, PANEL) * (plan->key_block + 1) * PANEL;
        plan->scratch.k = gb_scratch_add(step, gb_attention_bytes(k));
        plan->scratch.v = gb_scratch_add(step, gb_attention_bytes(v));
    }
    plan->scratch.dense_k = add_dense(step, plan, &plan->key_source, plan->features, &plan->k);
    plan->scratch.dense_v = add_dense(step, plan, &plan->value_source, plan->columns, &plan->v);
    plan->scratch.scores = gb_scratch_add(
            step, gb_attention_bytes(plan->group_rows * plan->score_row + plan->columns));
    plan->scratch.registers = gb_scratch_add(step, registers_bytes(plan));
    if (plan->key_splits == 1)
        return;
    int64_t all = plan->space.tasks * plan->space.rows;
    plan->split_bytes = gb_attention_bytes(all * plan->columns) + 2 * gb_attention_bytes(all);
    step->shared_scratch = (size_t)plan->key_splits * plan->split_bytes;
    step->n_phases = 2;
}

static void attention_fill_offsets(gb_attention *plan, int64_t count)
{
    plan->unit_offsets = (int64_t *)(plan + 1);
    plan->panels = plan->unit_offsets + count;
    for (int64_t i = 0; i < count; i++) {
        plan->unit_offsets[i] = i;
        plan->panels[i] = i * PANEL;
    }
}

static void estimate(const gb_attention *plan, gb_step *step)
{
    double scores = (double)plan->space.tasks * (double)plan->space.rows * (double)plan->keys;
    double widths = (double)plan->features + (double)plan->columns;
    step->work = scores * (widths / 4 + 8) +
                 4 * (double)plan->space.tasks * ((double)plan->keys + (double)plan->space.rows) *
                         widths;
}

gb_status gb_attention_add(gb_program *program, gb_step *step, const gb_attention *plan)
{
    gb_attention chosen = *plan;
    chosen.kernels = gb_kernels_get();
    split_dims(&chosen);
    attention_choose_blocks(&chosen);
    choose_item(&chosen, gb_program_threads(program));
    attention_add_scratch(&chosen, step);
    estimate(&chosen, step);
    int64_t offsets = gb_max_i64(chosen.features, chosen.key_block);
    gb_attention *own = gb_step_alloc(step, 1, sizeof *own + 2 * sizeof(int64_t) * (size_t)offsets);
    if (!own)
        return GB_OUT_OF_MEMORY;
    *own = chosen;
    attention_fill_offsets(own, offsets);
    step->run = gb_attention_run;
    step->params = own;
    return gb_program_add(program, step);
}
