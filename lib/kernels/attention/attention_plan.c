/* Blocks of attention for the caches and threads at hand. */
#include "kernels/attention/attention_plan.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/attention/attention_by_rows.h"
#include "kernels/attention/attention_bytes.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/cpu/step_call.h"
#include "kernels/isa/costs.h"

enum {
    PANEL = GB_GEMM_PANEL,
    MOST_KEYS = 512,         /* of a block: scores of a group of rows, 28 KiB, stay in L1; ... */
    MOST_KEYS_OF_MANY = 256, /* ... 32 KiB of groups of up to 32 rows */
    /* Where weights are rounded once they have been divided by their sum: all keys in one block save
     * the second product with V, or all powers a second time; scores lie in L2. */
    MOST_KEYS_AT_ONCE = 2048,
    MOST_ROWS = 1024,  /* of a work item, in whole groups */
    FEW_ROWS = 2,      /* K and V are not packed for them */
    SLICE_KEYS = 256,  /* at least, of a slice */
    WANTED_ITEMS = 64, /* keys are sliced when there are fewer work items */
    /* Of K, and of V, at most, or panels of f32 in a quarter of L2: f32 with features or columns up to 128 in blocks
     * of MOST_KEYS; all rows of the work item pass by them in L2. */
    K_BLOCK_BYTES = 1 << 18,
    /* Q and sums of a work item, or 5/4 of L2: they are read once per block of keys, in order, and what is not in L2
     * comes in time. */
    Q_BLOCK_BYTES = 1 << 20
};

static int64_t round_up(int64_t n, int64_t item)
{
    return gb_div_up(n, item) * item;
}

static gb_attention_matrix in_memory(const gb_attention_operand *operand)
{
    return (gb_attention_matrix){.operand = operand,
            .type = operand->type,
            .row_stride = operand->row_stride,
            .col_stride = operand->col_stride};
}

gb_attention_plan gb_attention_plan_begin(const gb_attention_problem *problem)
{
    gb_attention_plan plan = {.problem = problem,
            .kernels = gb_kernels_get(),
            .k = in_memory(&problem->k),
            .v = in_memory(&problem->v),
            .q_row = gb_attention_row(problem->features),
            .acc_row = gb_attention_row(problem->columns)};
    gb_attention_space_init(
            &plan.space, problem->n_batch, problem->batch_dims, problem->is_row, problem->queries);
    return plan;
}

/* Are the products those of VNNI groups? */
static bool has_groups(const gb_attention_plan *plan)
{
    return plan->products == GB_ATTENTION_BF16 || plan->products == GB_ATTENTION_BYTES;
}

/* Bytes of K or V in a block. */
static int64_t most_block_bytes(const gb_attention_plan *plan)
{
    const int64_t l2 = (int64_t)gb_machine_get()->l2_bytes;
    return has_groups(plan) ? K_BLOCK_BYTES : gb_max_i64(K_BLOCK_BYTES, l2 / 4);
}

/* Blocks depend on the sizes and the machine, not on the threads. */
static void attention_choose_blocks(gb_attention_plan *plan)
{
    const gb_attention_problem *problem = plan->problem;
    bool bf16 = plan->products == GB_ATTENTION_BF16;
    int64_t limit = has_groups(plan) ? plan->form.rows : plan->kernels->gemm_limits().rows;
    int64_t widest = gb_max_i64(problem->features, problem->columns);
    int64_t element = bf16 ? 2 : has_groups(plan) ? 1 : (int64_t)sizeof(float);
    int64_t most = most_block_bytes(plan) / element / widest / PANEL * PANEL;
    int64_t fit = has_groups(plan) || problem->exact ? MOST_KEYS_AT_ONCE
                  : limit > 14                       ? MOST_KEYS_OF_MANY
                                                     : MOST_KEYS;
    most = gb_min_i64(gb_max_i64(most, 2 * PANEL), fit);
    int64_t blocks = gb_div_up(problem->keys, most);
    plan->key_block = round_up(gb_div_up(problem->keys, blocks), PANEL);
    plan->key_blocks = gb_div_up(problem->keys, plan->key_block);
    plan->group_rows = limit * gb_max_i64(1, 14 / limit);
    bool rounded = bf16 && plan->key_blocks == 1;
    if (problem->exact || rounded)
        plan->softmax = plan->key_blocks > 1 ? GB_ATTENTION_TWICE : GB_ATTENTION_AT_ONCE;
    int64_t groups = plan->space.tasks * gb_div_up(plan->space.rows, 4 * plan->group_rows);
    int64_t slices = gb_min_i64(gb_div_up(WANTED_ITEMS, groups), problem->keys / SLICE_KEYS);
    bool sliced = slices > 1 && plan->softmax == GB_ATTENTION_ONLINE && !problem->causal.is_set;
    plan->key_splits = sliced ? gb_min_i64(slices, plan->key_blocks) : 1;
}

/* Rows of a work item: all threads busy, and blocks of keys packed for as many rows as possible. */
static void choose_item(gb_attention_plan *plan, int threads)
{
    int64_t widest = plan->problem->features + plan->problem->columns;
    int64_t bytes = gb_max_i64(Q_BLOCK_BYTES, (int64_t)(gb_machine_get()->l2_bytes / 4 * 5));
    int64_t most = bytes / (int64_t)sizeof(float) / widest / plan->group_rows;
    most = gb_max_i64(1, gb_min_i64(most, gb_div_up(MOST_ROWS, plan->group_rows)));
    int64_t groups = gb_div_up(plan->space.rows, plan->group_rows);
    int64_t least = gb_div_up(groups, most);
    const gb_costs *costs = gb_costs_get();
    double best = -1;
    for (int64_t items = least; items <= gb_min_i64(groups, least + threads); items++) {
        int64_t rows = gb_div_up(groups, items) * plan->group_rows;
        double item = (double)rows * gb_multiply_add_cost() + costs->attention_pack;
        int64_t all = plan->space.tasks * plan->key_splits * gb_div_up(plan->space.rows, rows);
        double cost = (double)gb_div_up(all, threads) * item;
        if (best >= 0 && cost >= best)
            continue;
        best = cost;
        plan->item_rows = rows;
    }
    plan->row_items = gb_div_up(plan->space.rows, plan->item_rows);
}

static size_t registers_bytes(const gb_attention_problem *problem)
{
    const gb_pointwise_program *programs[] = {&problem->before.pointwise,
            &problem->before_unmasked.pointwise, &problem->between.pointwise,
            &problem->after.pointwise};
    const gb_attention_operand *operands[] = {&problem->q, &problem->k, &problem->v};
    size_t most = 0;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        size_t bytes = gb_pointwise_scratch(programs[i]);
        most = bytes > most ? bytes : most;
    }
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        const gb_attention_source *source = operands[i]->source;
        size_t bytes = source ? gb_pointwise_scratch(&source->pointwise) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

void gb_attention_add_rows(gb_step *step, gb_attention_plan *plan)
{
    int64_t rows = gb_min_i64(plan->item_rows, round_up(plan->space.rows, plan->group_rows));
    plan->score_row = gb_attention_row(plan->key_block);
    plan->scratch.q = gb_scratch_add(step, gb_attention_bytes(rows * plan->q_row));
    plan->scratch.values = gb_scratch_add(step, gb_attention_bytes(rows * plan->acc_row + 16));
    plan->scratch.max = gb_scratch_add(step, gb_attention_bytes(rows));
    plan->scratch.sum = gb_scratch_add(step, gb_attention_bytes(rows));
    plan->scratch.factor = gb_scratch_add(step, gb_attention_bytes(rows));
    plan->scratch.scores =
            gb_scratch_add(step, gb_attention_bytes(plan->group_rows * plan->score_row));
    plan->scratch.registers = gb_scratch_add(step, registers_bytes(plan->problem));
    if (has_groups(plan)) {
        plan->weight_row = 2 * gb_attention_row(plan->key_block / 2 + 1);
        plan->scratch.weights =
                gb_scratch_add(step, gb_attention_bytes(plan->group_rows * plan->weight_row));
    }
    if (plan->products != GB_ATTENTION_VECTORS) {
        int64_t panels = plan->key_block / PANEL;
        plan->scratch.k = gb_scratch_add(
                step, gb_attention_bytes(panels * (plan->problem->features + 1) * PANEL));
    }
}

/* The dense block of `cols` columns that a source makes of a block of keys. */
static void add_dense(
        gb_step *step, const gb_attention_plan *plan, int64_t cols, gb_attention_matrix *matrix)
{
    const gb_attention_source *source = matrix->operand->source;
    if (!source || plan->products == GB_ATTENTION_BYTES)
        return;
    int64_t rows = source->along_rows ? cols : plan->key_block;
    int64_t row = gb_attention_row(source->along_rows ? plan->key_block : cols);
    matrix->type = GB_F32;
    matrix->row_stride = source->along_rows ? 1 : row;
    matrix->col_stride = source->along_rows ? row : 1;
    matrix->dense = gb_scratch_add(step, gb_attention_bytes(rows * row));
}

bool gb_attention_finishes_groups(const gb_attention_plan *plan)
{
    const bool whole = plan->key_blocks == 1 && !plan->problem->causal.is_set;
    return plan->softmax == GB_ATTENTION_AT_ONCE || (plan->softmax == GB_ATTENTION_ONLINE && whole);
}

/* Of other types than f32 they would go through memory all the same. */
static bool leaves_results_to_tiles(const gb_attention_plan *plan)
{
    const gb_pointwise_program *after = &plan->problem->after.pointwise;
    bool plain = true;
    for (uint32_t i = 0; i < after->n_operands; i++)
        plain = plain && (!after->operands[i].written || after->operands[i].type == GB_F32);
    return plain && plan->products == GB_ATTENTION_PANELS && gb_attention_finishes_groups(plan);
}

/* Q of f32 along lines, in other sets of L1 from row to row. Keys are scaled in its place, where there are not more of
 * them than rows. */
static bool reads_queries_in_place(const gb_attention_plan *plan)
{
    const gb_attention_operand *q = &plan->problem->q;
    return plan->products == GB_ATTENTION_PANELS && q->type == GB_F32 && !q->source &&
           q->col_stride == 1 && q->row_stride % GB_PAGE_FLOATS != 0 &&
           plan->space.run == plan->space.rows && plan->problem->keys <= plan->space.rows &&
           gb_attention_run_dim(&plan->space) == plan->problem->n_batch;
}

static void attention_add_scratch(gb_step *step, gb_attention_plan *plan)
{
    int64_t columns = plan->problem->columns;
    gb_attention_add_rows(step, plan);
    if (plan->products == GB_ATTENTION_BYTES)
        plan->scratch.integers = gb_attention_bytes_add_scratch(step, plan);
    if (has_groups(plan))
        plan->tile_floats = gb_tile_post_ops_floats(
                &plan->problem->before_in_tiles, gb_max_i64(plan->group_rows, plan->key_block));
    if (leaves_results_to_tiles(plan))
        plan->result_floats = gb_tile_post_ops_floats(
                &plan->problem->after.pointwise, gb_max_i64(plan->group_rows, columns));
    plan->scratch.tiles = gb_scratch_add(
            step, gb_attention_bytes(gb_max_i64(plan->tile_floats, plan->result_floats)));
    if (plan->products != GB_ATTENTION_VECTORS) {
        int64_t panels = gb_div_up(columns, PANEL);
        plan->scratch.v =
                gb_scratch_add(step, gb_attention_bytes(panels * (plan->key_block + 1) * PANEL));
    } else {
        plan->scratch.product = gb_scratch_add(step, gb_attention_bytes(columns));
    }
    add_dense(step, plan, plan->problem->features, &plan->k);
    add_dense(step, plan, columns, &plan->v);
    if (plan->key_splits == 1)
        return;
    int64_t all = plan->space.tasks * plan->space.rows;
    plan->slice.state = gb_attention_bytes(all * columns);
    plan->slice.bytes = plan->slice.state + gb_attention_bytes(2 * all);
    step->shared_scratch = (size_t)plan->key_splits * plan->slice.bytes;
    step->n_phases = 2;
}

static gb_status fill_offsets(gb_step *step, gb_attention_plan *plan)
{
    int64_t count = gb_max_i64(plan->problem->features, plan->key_block);
    int64_t *offsets = gb_step_alloc(step, 2 * (size_t)count, sizeof *offsets);
    if (!offsets)
        return GB_OUT_OF_MEMORY;
    plan->unit_offsets = offsets;
    plan->panels = offsets + count;
    for (int64_t i = 0; i < count; i++) {
        offsets[i] = i;
        offsets[count + i] = i * PANEL;
    }
    return GB_SUCCESS;
}

static double work(const gb_attention_plan *plan)
{
    double tasks = (double)plan->space.tasks, rows = (double)plan->space.rows;
    double keys = (double)plan->problem->keys;
    double widths = (double)plan->problem->features + (double)plan->problem->columns;
    return tasks * rows * keys * (widths / 4 + 8) + 4 * tasks * (keys + rows) * widths;
}

static gb_status add_by_keys(gb_program *program, gb_step *step,
        const gb_attention_problem *problem, gb_attention_products products)
{
    gb_attention_plan *plan = gb_step_alloc(step, 1, sizeof *plan);
    if (!plan)
        return GB_OUT_OF_MEMORY;
    *plan = gb_attention_plan_begin(problem);
    plan->products = products;
    plan->form = plan->kernels->dot_form(products == GB_ATTENTION_BF16);
    attention_choose_blocks(plan);
    choose_item(plan, gb_program_threads(program));
    plan->q_in_place = reads_queries_in_place(plan);
    attention_add_scratch(step, plan);
    GB_TRY(fill_offsets(step, plan));
    step->work = work(plan);
    step->run = gb_attention_run;
    step->params = plan;
    return gb_program_add(program, step);
}

/* Blocks of a source are dense. */
static bool readable(const gb_attention_operand *operand)
{
    return operand->source || operand->row_stride == 1 || operand->col_stride == 1;
}

static bool fits_vectors(const gb_attention_problem *problem)
{
    gb_attention_space space;
    gb_attention_space_init(
            &space, problem->n_batch, problem->batch_dims, problem->is_row, problem->queries);
    return space.rows <= FEW_ROWS && readable(&problem->k) && readable(&problem->v);
}

static gb_status add_vectors(
        gb_program *program, gb_step *step, const gb_attention_problem *problem)
{
    return add_by_keys(program, step, problem, GB_ATTENTION_VECTORS);
}

static bool is_bf16(const gb_attention_operand *operand)
{
    return operand->type == GB_BF16 && !operand->source;
}

static bool fits_bf16(const gb_attention_problem *problem)
{
    return gb_machine_get()->bf16_groups > 0 && problem->weights_type == GB_BF16 &&
           is_bf16(&problem->q) && is_bf16(&problem->k) && is_bf16(&problem->v);
}

static gb_status add_bf16(gb_program *program, gb_step *step, const gb_attention_problem *problem)
{
    return add_by_keys(program, step, problem, GB_ATTENTION_BF16);
}

static gb_status add_bytes(gb_program *program, gb_step *step, const gb_attention_problem *problem)
{
    return add_by_keys(program, step, problem, GB_ATTENTION_BYTES);
}

static bool fits_always(const gb_attention_problem *problem)
{
    (void)problem;
    return true;
}

static gb_status add_panels(gb_program *program, gb_step *step, const gb_attention_problem *problem)
{
    return add_by_keys(program, step, problem, GB_ATTENTION_PANELS);
}

/* Ways to run attention, the first that can is taken. */
static const struct {
    bool (*fits)(const gb_attention_problem *problem);
    gb_status (*add)(gb_program *program, gb_step *step, const gb_attention_problem *problem);
} variants[] = {
        {gb_attention_by_rows_fits, gb_attention_by_rows_add},
        {gb_attention_bytes_fits, add_bytes},
        {fits_vectors, add_vectors},
        {fits_bf16, add_bf16},
        {fits_always, add_panels},
};

gb_status gb_attention_add(gb_program *program, gb_step *step, const gb_attention_problem *problem)
{
    size_t i = 0;
    while (!variants[i].fits(problem))
        i++;
    return variants[i].add(program, step, problem);
}
