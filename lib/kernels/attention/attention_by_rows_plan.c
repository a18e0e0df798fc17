/* Blocks of attention whose product with the values sums over the queries. */
#include "kernels/attention/attention_by_rows.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/attention/attention_tiles.h"

enum {
    PANEL = GB_GEMM_PANEL,
    MOST_ROWS = 112,  /* of a block */
    SLICE_ROWS = 256, /* at least, of a slice */
    WANTED_ITEMS = 64 /* rows are sliced when there are fewer tasks */
};

bool gb_attention_by_rows_fits(const gb_attention_problem *problem)
{
    return problem->over_queries;
}

/* Blocks depend on the sizes and the caches alone. K and the sums of a task pass by each block of
 * rows: the more rows, the less often. The scores of a block are written and read several times and
 * take half of L2; beside them K and the sums pass through. */
static void attention_by_rows_choose_blocks(gb_attention_by_rows *plan)
{
    gb_attention_plan *rows = &plan->rows;
    const gb_attention_problem *problem = rows->problem;
    int64_t high = rows->kernels->gemm_limits().rows;
    plan->result_rows = problem->keys_last ? problem->columns : problem->keys;
    plan->result_cols = problem->keys_last ? problem->keys : problem->columns;
    gb_attention_space_init(
            &plan->results, problem->n_batch, problem->batch_dims, NULL, plan->result_rows);
    rows->key_block = gb_div_up(problem->keys, PANEL) * PANEL;
    int64_t scores = (int64_t)(gb_machine_get()->l2_bytes / 2 / sizeof(float));
    int64_t most = gb_max_i64(high, gb_min_i64(MOST_ROWS, scores / rows->key_block));
    rows->group_rows = gb_min_i64(most / high * high, gb_div_up(problem->queries, high) * high);
    rows->item_rows = rows->group_rows;
    plan->slices = gb_min_i64(gb_div_up(WANTED_ITEMS, rows->space.tasks),
            gb_max_i64(1, problem->queries / SLICE_ROWS));
    plan->slice_rows = gb_div_up(gb_div_up(problem->queries, plan->slices), rows->group_rows) *
                       rows->group_rows;
    plan->slices = gb_div_up(problem->queries, plan->slice_rows);
}

static void attention_by_rows_add_scratch(gb_step *step, gb_attention_by_rows *plan)
{
    plan->sums_row = gb_attention_row(plan->result_cols);
    gb_attention_add_rows(step, &plan->rows);
    int64_t sums = plan->result_rows * plan->sums_row;
    if (plan->slices == 1) {
        plan->sums = gb_scratch_add(step, gb_attention_bytes(sums));
        return;
    }
    step->shared_scratch = gb_attention_bytes(plan->rows.space.tasks * plan->slices * sums);
    step->n_phases = 2;
}

static gb_status attention_by_rows_fill_offsets(gb_step *step, gb_attention_by_rows *plan)
{
    int64_t features = plan->rows.problem->features, rows = plan->rows.group_rows;
    int64_t *offsets = gb_step_alloc(step, 2 * (size_t)(features + rows), sizeof *offsets);
    if (!offsets)
        return GB_OUT_OF_MEMORY;
    plan->rows.unit_offsets = offsets;
    plan->rows.panels = offsets + features;
    plan->score_offsets = offsets + 2 * features;
    plan->value_offsets = offsets + 2 * features + rows;
    for (int64_t i = 0; i < features; i++) {
        offsets[i] = i;
        offsets[features + i] = i * PANEL;
    }
    for (int64_t r = 0; r < rows; r++) {
        offsets[2 * features + r] = r * plan->rows.score_row;
        offsets[2 * features + rows + r] = r * plan->rows.acc_row;
    }
    return GB_SUCCESS;
}

gb_status gb_attention_by_rows_add(
        gb_program *program, gb_step *step, const gb_attention_problem *problem)
{
    gb_attention_by_rows *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    plan->rows = gb_attention_plan_begin(problem);
    attention_by_rows_choose_blocks(plan);
    attention_by_rows_add_scratch(step, plan);
    GB_TRY(attention_by_rows_fill_offsets(step, plan));
    double scores =
            (double)plan->rows.space.tasks * (double)problem->queries * (double)problem->keys;
    step->work = scores * ((double)(problem->features + problem->columns) / 4 + 8);
    step->run = gb_attention_by_rows_run;
    step->params = plan;
    return gb_program_add(program, step);
}
