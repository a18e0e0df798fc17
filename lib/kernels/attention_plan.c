/* Blocks of attention for the caches and threads at hand. */
#include "kernels/attention.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/space.h"

#include <stdlib.h>

enum {
    PANEL = GB_GEMM_PANEL,
    MOST_KEYS = 512,         /* of a block */
    MOST_ROWS = 512,         /* of a unit */
    FEW_ROWS = 4,            /* K and V are not packed for them */
    SLICE_KEYS = 256,        /* at least, of a slice */
    WANTED_UNITS = 64,       /* keys are sliced when there are fewer units */
    K_BLOCK_BYTES = 1 << 18, /* a block of K, and one of V, share L2 with Q and the sums */
    Q_BLOCK_BYTES = 1 << 20
};

static int64_t round_up(int64_t n, int64_t unit)
{
    return gb_div_up(n, unit) * unit;
}

/* Heads that share keys and values are rows. */
static void split_dims(gb_attention *plan)
{
    int n = plan->n_batch;
    for (int d = 0; d < n; d++) {
        plan->dims[d] = plan->batch_dims[d];
        bool moves = plan->k.strides[d] != 0 || plan->v.strides[d] != 0;
        if (plan->dims[d] == 1)
            continue;
        if (moves)
            plan->task_dims[plan->n_task_dims++] = (uint8_t)d;
        else
            plan->row_dims[plan->n_row_dims++] = (uint8_t)d;
    }
    plan->dims[n] = plan->queries;
    if (plan->queries > 1 || plan->n_row_dims == 0)
        plan->row_dims[plan->n_row_dims++] = (uint8_t)n;
    plan->tasks = gb_product(plan->n_task_dims, plan->task_dims, plan->dims);
    plan->rows = gb_product(plan->n_row_dims, plan->row_dims, plan->dims);
    plan->run = plan->dims[plan->row_dims[plan->n_row_dims - 1]];
}

static bool readable(const gb_attention_operand *operand)
{
    return operand->row_stride == 1 || operand->col_stride == 1;
}

/* Blocks depend on the sizes alone. */
static void choose_blocks(gb_attention *plan)
{
    gb_gemm_limits limits = plan->kernels->gemm_limits();
    int64_t widest = gb_max_i64(plan->features, plan->columns);
    int64_t most = K_BLOCK_BYTES / (int64_t)sizeof(float) / widest / PANEL * PANEL;
    most = gb_min_i64(gb_max_i64(most, 2 * PANEL), MOST_KEYS);
    plan->tile_rows = limits.rows;
    plan->tile_cols = limits.cols;
    plan->by_vectors = plan->rows <= FEW_ROWS && readable(&plan->k) && readable(&plan->v);
    int64_t blocks = gb_div_up(plan->keys, most);
    plan->key_block = round_up(gb_div_up(plan->keys, blocks), PANEL);
    plan->group_rows = plan->tile_rows * gb_max_i64(1, 14 / plan->tile_rows);
    int64_t groups = plan->tasks * gb_div_up(plan->rows, 4 * plan->group_rows);
    int64_t slices = gb_min_i64(gb_div_up(WANTED_UNITS, groups), plan->keys / SLICE_KEYS);
    bool sliced = slices > 1 && !plan->exact && !plan->causal.is_set;
    plan->slice_keys = sliced ? round_up(gb_div_up(plan->keys, slices), plan->key_block)
                              : blocks * plan->key_block;
    plan->slices = gb_div_up(plan->keys, plan->slice_keys);
}

/* Rows of a unit: all threads busy, and blocks of keys packed for as many rows as possible. */
static void choose_unit(gb_attention *plan, int threads)
{
    int64_t widest = plan->features + plan->columns;
    int64_t most = Q_BLOCK_BYTES / (int64_t)sizeof(float) / widest / plan->group_rows;
    most = gb_max_i64(1, gb_min_i64(most, MOST_ROWS / plan->group_rows));
    int64_t groups = gb_div_up(plan->rows, plan->group_rows);
    int64_t least = gb_div_up(groups, most);
    double best = -1;
    for (int64_t units = least; units <= gb_min_i64(groups, least + threads); units++) {
        int64_t rows = gb_div_up(groups, units) * plan->group_rows;
        /* A multiply-add is 1/32 of the cost of packing an element. */
        double unit = (double)rows / 32 + 0.5;
        int64_t all = plan->tasks * plan->slices * gb_div_up(plan->rows, rows);
        double cost = (double)gb_div_up(all, threads) * unit;
        if (best >= 0 && cost >= best)
            continue;
        best = cost;
        plan->unit_rows = rows;
    }
    plan->row_units = gb_div_up(plan->rows, plan->unit_rows);
}

/* Rows whose distance is a multiple of 4 KiB evict one another from L1. */
static int64_t apart(int64_t row)
{
    int64_t rounded = round_up(row, 16);
    return rounded * (int64_t)sizeof(float) % 4096 == 0 ? rounded + 16 : rounded;
}

static size_t floats(int64_t n)
{
    return gb_align_up((size_t)n * sizeof(float), GB_CACHE_LINE);
}

static size_t registers_bytes(const gb_attention *plan)
{
    const gb_attention_program *programs[] = {
            &plan->before, &plan->before_visible, &plan->between, &plan->after};
    size_t most = 0;
    for (int i = 0; i < 4; i++) {
        size_t bytes = gb_tile_scratch(&programs[i]->tile);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void choose_scratch(gb_attention *plan, gb_step *step)
{
    int64_t rows = gb_min_i64(plan->unit_rows, round_up(plan->rows, plan->group_rows));
    plan->q_row = apart(plan->features);
    plan->value_row = apart(plan->columns);
    plan->score_row = apart(plan->key_block);
    plan->q_bytes = floats(rows * plan->q_row);
    plan->values_bytes = floats(rows * plan->value_row + 16);
    plan->state_bytes = floats(rows * 3);
    plan->score_bytes = floats(plan->group_rows * plan->score_row + plan->columns);
    if (!plan->by_vectors) {
        plan->k_bytes = floats(plan->key_block / PANEL * (plan->features + 1) * PANEL);
        plan->v_bytes = floats(gb_div_up(plan->columns, PANEL) * (plan->key_block + 1) * PANEL);
    }
    step->thread_scratch = plan->q_bytes + plan->values_bytes + plan->state_bytes + plan->k_bytes +
                           plan->v_bytes + plan->score_bytes + registers_bytes(plan);
    if (plan->slices == 1)
        return;
    int64_t all = plan->tasks * plan->rows;
    plan->slice_bytes = floats(all * plan->columns) + 2 * floats(all);
    step->shared_scratch = (size_t)plan->slices * plan->slice_bytes;
    step->n_phases = 2;
}

static void fill_offsets(gb_attention *plan, int64_t count)
{
    plan->ones = (int64_t *)(plan + 1);
    plan->panels = plan->ones + count;
    for (int64_t i = 0; i < count; i++) {
        plan->ones[i] = i;
        plan->panels[i] = i * PANEL;
    }
}

static void estimate(const gb_attention *plan, gb_step *step)
{
    double scores = (double)plan->tasks * (double)plan->rows * (double)plan->keys;
    double widths = (double)plan->features + (double)plan->columns;
    step->flops = scores * (2 * widths + 5);
    step->work = scores * (widths / 4 + 8) +
                 4 * (double)plan->tasks * ((double)plan->keys + (double)plan->rows) * widths;
}

gb_status gb_attention_add(gb_program *program, gb_step *step, const gb_attention *plan)
{
    gb_attention chosen = *plan;
    chosen.kernels = gb_kernels_get();
    split_dims(&chosen);
    choose_blocks(&chosen);
    choose_unit(&chosen, gb_program_threads(program));
    choose_scratch(&chosen, step);
    estimate(&chosen, step);
    int64_t offsets = gb_max_i64(chosen.features, chosen.key_block);
    gb_attention *own = gb_calloc(1, sizeof *own + 2 * sizeof(int64_t) * (size_t)offsets);
    if (!own) {
        gb_step_clear(step);
        return GB_OUT_OF_MEMORY;
    }
    *own = chosen;
    fill_offsets(own, offsets);
    step->kernel = "attention";
    step->run = gb_attention_run;
    step->params = own;
    return gb_program_add(program, step);
}
