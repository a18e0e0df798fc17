/* Blocks of the gradients of attention for the caches. */
#include "kernels/attention/attention_backward_plan.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/attention/attention_tiles.h"

enum {
    PANEL = GB_GEMM_PANEL,
    KEY_BLOCK = 256,  /* at most */
    ROW_BLOCK = 112,  /* about: a multiple of the rows of a tile. The scores of a block are 112 KiB:
                         two of them, or four, stay in L2 */
    WANTED_ITEMS = 32 /* keys are sliced when there are fewer tasks */
};

static int64_t round_up(int64_t n, int64_t item)
{
    return gb_div_up(n, item) * item;
}

static void attention_backward_choose_blocks(gb_attention_backward *plan)
{
    const gb_attention_gradient_problem *problem = plan->problem;
    int64_t tile_rows = plan->kernels->gemm_limits().rows, keys[GB_AXES];
    gb_attention_space_init(
            &plan->space, problem->n_batch, problem->batch_dims, problem->is_row, problem->queries);
    for (int d = 0; d < problem->n_batch; d++)
        keys[d] = problem->is_row[d] ? 1 : problem->batch_dims[d];
    gb_attention_space_init(&plan->key_space, problem->n_batch, keys, NULL, problem->keys);
    plan->row_block = gb_min_i64(round_up(ROW_BLOCK, tile_rows), plan->space.rows);
    int64_t blocks = gb_div_up(problem->keys, KEY_BLOCK);
    plan->key_block = round_up(gb_div_up(problem->keys, blocks), PANEL);
    int64_t slices = gb_min_i64(gb_div_up(WANTED_ITEMS, plan->space.tasks), blocks);
    plan->split_keys = round_up(gb_div_up(problem->keys, slices), plan->key_block);
    plan->key_splits = gb_div_up(problem->keys, plan->split_keys);
}

static gb_scratch add_floats(gb_step *step, size_t count)
{
    return gb_scratch_add(step, count * sizeof(float));
}

static gb_scratch add_panels(gb_step *step, int64_t rows, int64_t cols)
{
    return gb_scratch_add(step, gb_attention_bytes(gb_div_up(cols, PANEL) * (rows + 1) * PANEL));
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void attention_backward_add_scratch(gb_attention_backward *plan, gb_step *step)
{
    const gb_attention_gradient_problem *problem = plan->problem;
    size_t rows = (size_t)plan->row_block, keys = (size_t)plan->split_keys;
    plan->feature_row = gb_attention_row(problem->features);
    plan->column_row = gb_attention_row(problem->columns);
    plan->score_row = gb_attention_row(plan->key_block);
    plan->n_scores = problem->score_ops.loads_first ? 2 : 4;
    plan->q_size = rows * (size_t)plan->feature_row;
    plan->dk_size = keys * (size_t)plan->feature_row;
    plan->dv_size = keys * (size_t)plan->column_row;
    size_t g_size = rows * (size_t)plan->column_row;
    plan->scratch.q = add_floats(step, plan->q_size);
    plan->scratch.dq = add_floats(step, plan->q_size);
    plan->scratch.g = add_floats(step, g_size);
    if (problem->has_outputs) {
        plan->scratch.o = add_floats(step, g_size);
        plan->scratch.row_sums = gb_scratch_add(step, gb_attention_bytes(plan->row_block));
    }
    plan->scratch.packed_q = add_panels(step, plan->row_block, problem->features);
    plan->scratch.packed_g = add_panels(step, plan->row_block, problem->columns);
    plan->scratch.k_columns = add_panels(step, problem->features, plan->split_keys);
    plan->scratch.v_columns = add_panels(step, problem->columns, plan->split_keys);
    plan->scratch.packed_k = add_panels(step, plan->split_keys, problem->features);
    plan->scratch.dk = add_floats(step, plan->dk_size);
    plan->scratch.dv = add_floats(step, plan->dv_size);
    for (int i = 0; i < 4; i++)
        plan->scratch.scores[i] = i < plan->n_scores
                                          ? add_floats(step, rows * (size_t)plan->score_row)
                                          : plan->scratch.scores[i - 2];
    plan->scratch.registers = gb_scratch_add(step,
            most(most(gb_pointwise_scratch(&problem->score_ops),
                         gb_pointwise_scratch(&problem->dq)),
                    most(gb_pointwise_scratch(&problem->dk), gb_pointwise_scratch(&problem->dv))));
    if (plan->key_splits == 1)
        return;
    step->shared_scratch =
            (size_t)plan->key_splits *
            gb_attention_bytes(plan->space.tasks * plan->space.rows * problem->features);
    step->n_phases = 2;
}

static void attention_backward_fill_offsets(
        gb_attention_backward *plan, int64_t *offsets, int64_t count)
{
    plan->unit_offsets = offsets;
    plan->panels = offsets + count;
    plan->rows = offsets + 2 * count;
    for (int64_t i = 0; i < count; i++) {
        offsets[i] = i;
        offsets[count + i] = i * PANEL;
        offsets[2 * count + i] = i * plan->score_row;
    }
}

gb_status gb_attention_backward_add(
        gb_program *program, gb_step *step, const gb_attention_gradient_problem *problem)
{
    gb_attention_backward chosen = {.problem = problem, .kernels = gb_kernels_get()};
    attention_backward_choose_blocks(&chosen);
    attention_backward_add_scratch(&chosen, step);
    int64_t longest = gb_max_i64(problem->features, problem->columns);
    int64_t count = gb_max_i64(longest, gb_max_i64(chosen.key_block, chosen.row_block));
    gb_attention_backward *plan =
            gb_step_alloc(step, 1, sizeof *plan + 3 * sizeof(int64_t) * (size_t)count);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    *plan = chosen;
    attention_backward_fill_offsets(plan, (int64_t *)(plan + 1), count);
    double scores = (double)plan->space.tasks * (double)plan->space.rows * (double)problem->keys;
    step->work = scores * (double)(problem->features + problem->columns);
    step->run = gb_attention_backward_run;
    step->params = plan;
    return gb_program_add(program, step);
}
