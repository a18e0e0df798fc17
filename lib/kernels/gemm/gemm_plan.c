/* Blocks of a GEMM for the caches and threads at hand. */
#include "kernels/gemm/gemm_plan.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/cpu/step_call.h"
#include "kernels/gemm/gemm_run.h"
#include "kernels/gemm/packing.h"
#include "kernels/isa/costs.h"
#include "kernels/isa/tile_rows.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL, MOST_SHARED = 1 << 26 /* bytes of a copy of A */ };

void gb_gemm_add_registers(gb_step *step, gb_gemm *gemm)
{
    size_t bytes = gb_pointwise_scratch(&gemm->epilogue);
    if (gemm->gate) {
        size_t of_gate = gb_pointwise_scratch(&gemm->gate->epilogue);
        bytes = of_gate > bytes ? of_gate : bytes;
        gemm->gate_result = gb_scratch_add(step, GB_TILE_ELEMENTS * sizeof(float));
    }
    gemm->registers = gb_scratch_add(step, bytes);
}

void gb_gemm_set_gate_view(const gb_gemm *gemm, float *local, int64_t row, gb_pointwise_view *views)
{
    for (uint32_t i = 0; i < gemm->epilogue.n_operands; i++)
        if (!gemm->epilogue.operands[i].is_index &&
                gemm->epilogue.operands[i].slot >= GB_SCRATCH_OPERAND)
            views[i] =
                    (gb_pointwise_view){.data = (char *)local, .row_stride = row, .col_stride = 1};
}

gb_gemm gb_gemm_begin(const gb_gemm_problem *problem)
{
    gb_gemm gemm = {.epilogue = problem->pointwise,
            .row_dim = problem->row_dim,
            .col_dim = problem->col_dim,
            .a = problem->a,
            .b = problem->b,
            .kernels = gb_kernels_get(),
            .batches = 1,
            .m = problem->row_dim < 0 ? 1 : problem->pointwise.dims[problem->row_dim],
            .n = problem->col_dim < 0 ? 1 : problem->pointwise.dims[problem->col_dim],
            .k = problem->k,
            .terms = problem->k};
    for (int d = 0; d < gemm.epilogue.ndims; d++) {
        if (d == gemm.row_dim || d == gemm.col_dim)
            continue;
        gemm.batch_dims[gemm.n_batch_dims++] = (uint8_t)d;
        gemm.batches *= gemm.epilogue.dims[d];
    }
    return gemm;
}

/* Rows 4 KiB apart fall into the same sets of the L1 cache: a tile's rows would evict one another.
 */
static bool rows_collide(int64_t row_stride)
{
    return row_stride % GB_PAGE_FLOATS == 0;
}

static bool is_plain(const gb_gemm_operand *operand)
{
    return operand->type == GB_F32 && !gb_gemm_is_quantized(operand);
}

/* Products of bf16 are multiplied as such where the machine is not slower at it. */
static bool is_bf16(const gb_gemm_problem *problem)
{
    const gb_gemm_operand *a = &problem->a, *b = &problem->b;
    return gb_machine_get()->bf16_groups > 0 && a->type == GB_BF16 && b->type == GB_BF16 &&
           !gb_gemm_is_quantized(a) && !gb_gemm_is_quantized(b);
}

/* A and its sums as VNNI groups of integers or of bf16. */
static gb_gemm_limits plan_groups(gb_gemm *gemm, bool floats)
{
    gb_dot_form form = gemm->kernels->dot_form(floats);
    gemm->floats = floats;
    gemm->vnni_factor = form.vnni_factor;
    gemm->row_step = form.row_step;
    gemm->k_step = form.group_step;
    gemm->k = gb_div_up(gemm->terms, form.vnni_factor);
    if (!floats) {
        gemm->row_scales = gemm->row_dim >= 0 && gemm->a.scales.strides[gemm->row_dim] != 0;
        gemm->row_sums =
                gemm->b.zps.type != GB_UNDEF || (form.vnni_factor == 4 && gemm->b.type == GB_U8);
        gemm->column_sums =
                gemm->a.zps.type != GB_UNDEF || (form.vnni_factor == 4 && gemm->a.type == GB_S8);
    }
    gemm->a_along_m =
            !form.along_k && gemm->a.k_stride != 1 && gb_gemm_stride(&gemm->a, gemm->row_dim) == 1;
    return (gb_gemm_limits){.rows = form.rows, .cols = form.cols};
}

/* All of the plan but blocks and what follows from them; `groups`: products are those of VNNI
 * groups. */
static gb_gemm plan_product(const gb_gemm_problem *problem, bool groups)
{
    gb_gemm gemm = gb_gemm_begin(problem);
    gb_gemm_limits limits = gemm.kernels->gemm_limits();
    int64_t a_row = gb_gemm_stride(&gemm.a, gemm.row_dim);
    gemm.row_step = gemm.k_step = 1;
    if (groups)
        limits = plan_groups(&gemm, !problem->integer);
    else
        gemm.a_along_m = gemm.a.k_stride != 1 && a_row == 1;

    gemm.tile_rows = gb_even_rows(gemm.m, limits.rows, gemm.row_step);
    gemm.tile_cols = limits.cols;
    gemm.group_rows = GB_TILE_ELEMENTS / PANEL / gemm.tile_rows * gemm.tile_rows;
    const gb_pointwise_operand *result = gemm.epilogue.operands;
    gemm.direct = gb_pointwise_is_plain_store(&gemm.epilogue) &&
                  (gemm.col_dim < 0 || result->strides[gemm.col_dim] == 1 || result->in_panels);

    bool a_readable = is_plain(&gemm.a) && gemm.a.k_stride == 1;
    a_readable = a_readable && (gemm.m == 1 || !rows_collide(a_row));
    gemm.a_access = a_readable || gemm.a.in_panels ? GB_GEMM_IN_PLACE : GB_GEMM_COPY;

    /* Rows of B on pages of their own are better read once, in long runs. */
    bool near = gemm.b.k_stride < GB_PAGE_FLOATS;
    int64_t tiles = near ? GB_COPY_B_TILES_NEAR : GB_COPY_B_TILES_FAR;
    bool reused = gemm.m > tiles * gemm.tile_rows;
    bool b_readable = is_plain(&gemm.b) && gb_gemm_stride(&gemm.b, gemm.col_dim) == 1;
    gemm.b_access = b_readable && !reused ? GB_GEMM_IN_PLACE : GB_GEMM_COPY;
    if (gemm.b.in_panels)
        gemm.b_access = GB_GEMM_PACKED;
    return gemm;
}

/* Cycles per element and work item of K that reading an operand takes. */
static double read_cost(const gb_costs *costs, gb_gemm_access access)
{
    return access == GB_GEMM_COPY ? costs->gemm_copy : costs->gemm_read;
}

/* Time of the busiest thread when the result is split into m_block x n_block work items. */
static double split_cost(const gb_gemm *gemm, const gb_gemm_blocks *blocks, int threads)
{
    const gb_costs *costs = gb_costs_get();
    double m = (double)blocks->m_block, n = (double)blocks->n_block;
    int64_t items = gemm->batches * gb_div_up(gemm->m, blocks->m_block) *
                    gb_div_up(gemm->n, blocks->n_block);
    double term = gemm->vnni_factor ? gb_group_cost(gemm->floats) : gb_multiply_add_cost();
    double item = read_cost(costs, gemm->a_access) * m;
    for (const gb_gemm *product = gemm; product; product = product->gate)
        item += m * n * term + read_cost(costs, product->b_access) * n;
    return (double)gb_div_up(items, threads) * item;
}

/* VNNI groups of K that tiles read in one go while few rows of A meet many panels of B: the rows, and a panel, are a
 * 32nd part of L2. Unfinished sums take as long as the products of a hundred groups: 1024 x 1024 x 1024 in bf16 takes
 * 0.92 ms in one block of K, 1.3 in two, 1.15 in four, 0.97 by panels; 1024 x 1024 x 384 0.28, and 0.45 in two (two
 * threads of a Xeon with AMX). */
static int64_t most_groups(void)
{
    return (int64_t)(gb_machine_get()->l2_bytes / 32 / sizeof(float)) / PANEL;
}

/* The best of splits into at least so many blocks of M and N: the threads shall have the same work. `tried` has
 * the block of K. */
static void try_splits(const gb_gemm *gemm, int threads, int64_t m_least, int64_t n_least,
        gb_gemm_blocks *tried, gb_gemm_blocks *best, double *least)
{
    const int64_t tries = threads < 16 ? threads : 16;
    for (int64_t j = n_least; j <= n_least + tries; j++)
        for (int64_t i = m_least; i <= m_least + tries; i++) {
            tried->m_block = gb_div_up(gb_div_up(gemm->m, i), gemm->tile_rows) * gemm->tile_rows;
            tried->n_block = gb_div_up(gb_div_up(gemm->n, j), PANEL) * PANEL;
            double cost = split_cost(gemm, tried, threads);
            if (*least >= 0 && cost >= *least)
                continue;
            *least = cost;
            *best = *tried;
        }
}

/* At most k_most of K at a time, in steps that leave nothing over but at the end. */
static gb_gemm_blocks split_k(const gb_gemm *gemm, int64_t k_most)
{
    const int64_t k_step = gemm->a.in_panels ? PANEL : gemm->k_step;
    gb_gemm_blocks blocks = {.k_blocks = gb_max_i64(1, gb_div_up(gemm->k, gb_max_i64(k_most, 1)))};
    blocks.k_block = gb_div_up(gemm->k, blocks.k_blocks);
    if (blocks.k_blocks > 1) {
        blocks.k_block = gb_div_up(blocks.k_block, k_step) * k_step;
        blocks.k_blocks = gb_div_up(gemm->k, blocks.k_block);
    }
    return blocks;
}

/* By panels: all rows of A of a block and a panel of B share L2. Tiles that read many VNNI groups at a time wait
 * for unfinished sums, so that K is not split but for rows that are too few to be worth a pass over B. */
static gb_gemm_blocks blocks_by_panels(const gb_gemm *gemm, int threads)
{
    enum { WORTH_A_PASS = 128 };
    const int64_t budget = (int64_t)(gb_machine_get()->l2_bytes * 3 / 4 / sizeof(float));
    const int64_t columns = gemm->gate ? 2 * PANEL : PANEL;
    gb_gemm_blocks best = {0},
                   tried = split_k(gemm, budget / (gb_min_i64(gemm->m, WORTH_A_PASS) + columns));
    double least = -1;
    int64_t m = gb_max_i64(budget / gb_max_i64(tried.k_block, 1) - columns, gemm->tile_rows);
    try_splits(gemm, threads, gb_div_up(gemm->m, m), 1, &tried, &best, &least);
    return best;
}

/* A block of K are the terms of B that L1 holds of a tile's columns, or most_groups(); blocks of B, copied rows of A
 * and unfinished sums share L2. Around each size that fits, a little smaller ones are tried: the threads
 * shall have the same work. */
static gb_gemm_blocks blocks_by_rows(const gb_gemm *gemm, int threads)
{
    int64_t columns = gb_max_i64(gemm->tile_cols, PANEL / 2);
    int64_t k_most = (int64_t)(gb_machine_get()->l1_bytes / sizeof(float)) / columns;
    if (gemm->k_step > 1)
        k_most = most_groups();
    gb_gemm_blocks best = {0}, tried = split_k(gemm, k_most);

    int64_t budget = (int64_t)(gb_machine_get()->l2_bytes * 3 / 4 / sizeof(float));
    int64_t k = gb_max_i64(tried.k_block, 1), products = gemm->gate ? 2 : 1;
    double least = -1;
    /* Each block of rows dequantizes B anew: few columns leave room for more rows. */
    int64_t few = gb_gemm_is_quantized(&gemm->b) ? 2 * PANEL : 4 * PANEL;
    /* While rows meet a block of a packed B, tiles ask for the next one. */
    bool ahead = !gemm->vnni_factor && gemm->b_access != GB_GEMM_COPY &&
                 gemm->b_access != GB_GEMM_IN_PLACE;
    for (int64_t n = few; n <= 64 * PANEL; n *= 2) {
        int64_t per_row =
                (gemm->a_access == GB_GEMM_COPY ? k : 0) + (tried.k_blocks > 1 ? products * n : 0);
        int64_t held = (ahead && n > few ? 2 : 1) * products * k * n;
        int64_t rest = budget - held, m = per_row ? rest / per_row : gemm->m;
        if (rest < budget / 4 && least >= 0)
            break;
        m = gb_max_i64(gb_min_i64(m, gemm->m), gb_min_i64(gemm->m, 4 * gemm->tile_rows));
        try_splits(
                gemm, threads, gb_div_up(gemm->m, m), gb_div_up(gemm->n, n), &tried, &best, &least);
    }
    return best;
}

static gb_gemm_blocks gemm_choose_blocks(const gb_gemm *gemm, int threads)
{
    gb_gemm_blocks best =
            gemm->by_panels ? blocks_by_panels(gemm, threads) : blocks_by_rows(gemm, threads);
    best.m_blocks = gb_div_up(gemm->m, best.m_block);
    best.n_blocks = gb_div_up(gemm->n, best.n_block);
    return best;
}

/* Room for the parameters of a block of A or B. */
static size_t parameter_bytes(const gb_gemm *gemm, int64_t columns)
{
    if (!gb_gemm_is_quantized(&gemm->a) && !gb_gemm_is_quantized(&gemm->b))
        return 0;
    int64_t most = gb_max_i64(gb_max_i64(gemm->blocks.m_block, columns), gemm->blocks.k_block);
    return gb_float_bytes(gb_quantized_matrix_scratch(most, most));
}

static void gemm_add_scratch(gb_step *step, gb_gemm *gemm)
{
    const gb_gemm_blocks *blocks = &gemm->blocks;
    int64_t columns = gb_div_up(blocks->n_block, PANEL) * PANEL;
    if (gemm->a_access == GB_GEMM_COPY)
        gemm->a_copy = gb_scratch_add(step,
                gb_float_bytes(
                        (gemm->a_along_m ? blocks->k_block : blocks->m_block) * gemm->a_copy_row));
    for (gb_gemm *product = gemm; product; product = product->gate) {
        if (product->b_access != GB_GEMM_PACKED && product->b_access != GB_GEMM_HALVES) {
            int64_t copied = product->b_access == GB_GEMM_COPY ? columns : PANEL;
            product->b_copy = gb_scratch_add(step, gb_float_bytes((blocks->k_block + 1) * copied));
        }
        if (blocks->k_blocks > 1)
            product->sums = gb_scratch_add(step, gb_float_bytes(blocks->m_block * columns));
        product->parameters = gb_scratch_add(step, parameter_bytes(product, columns));
    }
    gb_gemm_add_registers(step, gemm);
    if (!gemm->direct && !gemm->gate)
        gemm->column_floats = gb_tile_post_ops_floats(
                &gemm->epilogue, gb_max_i64(blocks->m_block, blocks->n_block));
    gemm->columns = gb_scratch_add(step, gb_float_bytes(gemm->column_floats));
    if (gemm->vnni_factor && !gemm->floats)
        gemm->integers = gb_scratch_add(step, gb_gemm_integer_scratch(gemm));
}

static bool keeps_halves(const gb_gemm *gemm)
{
    const gb_gemm_operand *b = &gemm->b;
    double elements = (double)gemm->n * (double)gemm->k;
    for (int i = 0; i < gemm->n_batch_dims; i++)
        if (b->strides[gemm->batch_dims[i]] != 0)
            elements *= (double)gemm->epilogue.dims[gemm->batch_dims[i]];
    return !gemm->vnni_factor && gb_packing_keeps_halves(b->type, elements, (double)gemm->m);
}

static gb_status pack_constant_b(gb_program *program, gb_gemm *gemm)
{
    gb_gemm_operand *b = &gemm->b;
    gemm->b_access = keeps_halves(gemm) ? GB_GEMM_HALVES : GB_GEMM_PACKED;
    gb_packing packing = {.type = b->type,
            .halves = gemm->b_access == GB_GEMM_HALVES,
            .vnni_factor = gemm->vnni_factor,
            .n = gemm->n,
            .n_stride = gb_gemm_stride(b, gemm->col_dim),
            .inner = gemm->terms,
            .inner_block = gemm->terms,
            .inner_stride = b->k_stride};
    int64_t stride = gb_packing_batch(&packing);
    for (int i = gemm->n_batch_dims; i-- > 0;) {
        int d = gemm->batch_dims[i];
        if (b->strides[d] == 0)
            continue;
        memmove(packing.batch_dims + 1, packing.batch_dims,
                sizeof(int64_t) * (size_t)packing.n_batch);
        memmove(packing.batch_strides + 1, packing.batch_strides,
                sizeof(int64_t) * (size_t)packing.n_batch);
        packing.batch_dims[0] = gemm->epilogue.dims[d];
        packing.batch_strides[0] = b->strides[d];
        packing.n_batch++;
        b->strides[d] = stride;
        stride *= gemm->epilogue.dims[d];
    }
    b->k_stride = PANEL;
    if (gemm->col_dim >= 0)
        b->strides[gemm->col_dim] = gb_packing_panel(&packing) / PANEL;
    return gb_packing_add(program, &packing, b->buffer, &b->buffer);
}

static void gemm_fill_offsets(gb_gemm *gemm)
{
    int64_t *offsets = (int64_t *)(gemm + 1);
    bool in_place = gemm->a_access == GB_GEMM_IN_PLACE;
    int64_t a_step = in_place ? gemm->a.k_stride : gemm->a_along_m ? gemm->a_copy_row : 1;
    gemm->a_offsets = offsets;
    gemm->b_offsets = offsets + gemm->blocks.k_block;
    gemm->panel_offsets = offsets + 2 * gemm->blocks.k_block;
    for (int64_t k = 0; k < gemm->blocks.k_block; k++) {
        gemm->a_offsets[k] =
                gemm->a.in_panels ? k / PANEL * PANEL * a_step + k % PANEL : k * a_step;
        gemm->b_offsets[k] = k * gemm->b.k_stride;
        gemm->panel_offsets[k] = k * PANEL;
    }
}

static double work(const gb_gemm *gemm)
{
    double m = (double)gemm->m, n = (double)gemm->n, k = (double)gemm->terms;
    return (double)gemm->batches * (m * n * k / 4 + 4 * (m * n + m * k + k * n));
}

/* A copy with room for offsets, and such a copy of the gate. */
static gb_gemm *keep(gb_step *step, const gb_gemm *plan)
{
    gb_gemm *gemm = gb_step_alloc(
            step, 1, sizeof *gemm + 3 * sizeof(int64_t) * (size_t)plan->blocks.k_block);
    if (!gemm)
        return NULL;
    *gemm = *plan;
    if (plan->gate && !(gemm->gate = keep(step, plan->gate)))
        return NULL;
    return gemm;
}

gb_status gb_gemm_use_operands(gb_step *step, gb_gemm *gemm)
{
    for (gb_gemm *product = gemm; product; product = product->gate) {
        GB_TRY(gb_step_use_buffer(step, product->a.buffer, false, &product->a.slot));
        GB_TRY(gb_step_use_buffer(step, product->b.buffer, false, &product->b.slot));
    }
    return GB_SUCCESS;
}

static gb_status gemm_finish(gb_step *step, const gb_gemm *plan)
{
    gb_gemm *gemm = keep(step, plan);
    if (!gemm)
        return GB_OUT_OF_MEMORY;
    step->kernel = gemm->gate ? "gated gemm" : "gemm";
    step->run = gb_gemm_run;
    step->params = gemm;
    if (gemm->a_access == GB_GEMM_SHARED) {
        step->n_phases = 2;
        step->shared_scratch = gb_float_bytes(gemm->m * gemm->a_copy_row);
    }
    gemm_add_scratch(step, gemm);
    for (gb_gemm *product = gemm; product; product = product->gate) {
        gemm_fill_offsets(product);
        step->work += work(product);
    }
    return gb_gemm_use_operands(step, gemm);
}

static gb_status pack_constants(gb_program *program, gb_gemm *gemm)
{
    for (gb_gemm *product = gemm; product; product = product->gate)
        if (product->b.constant && !product->b.in_panels &&
                (product->vnni_factor || !gb_gemm_is_quantized(&product->b)))
            GB_TRY(pack_constant_b(program, product));
    return GB_SUCCESS;
}

/* Long K, where no operand has to be copied for a block of columns, which then may be of any size. */
static bool goes_by_panels(const gb_gemm *gemm)
{
    return gemm->k_step > 1 && gemm->k > most_groups() && gemm->b_access == GB_GEMM_PACKED &&
           (!gemm->gate || gemm->gate->b_access == GB_GEMM_PACKED);
}

/* One more line keeps copied rows out of each other's cache sets. */
static int64_t copied_row(int64_t elements)
{
    return (int64_t)gb_align_up((size_t)elements, 16) + 16;
}

/* Each thread copies the rows of one matrix several times, for several blocks of columns. */
static bool copies_again(const gb_gemm *gemm, int threads)
{
    const double bytes = (double)gemm->m * (double)copied_row(gemm->k) * (double)sizeof(float);
    return gemm->a_access == GB_GEMM_COPY && !gemm->a_along_m && gemm->a.k_stride == 1 &&
           !gb_gemm_is_quantized(&gemm->a) && !gemm->vnni_factor && gemm->batches == 1 &&
           gemm->blocks.n_blocks > threads && bytes < MOST_SHARED;
}

static void choose_blocks(gb_gemm *gemm, int threads)
{
    gemm->blocks = gemm_choose_blocks(gemm, threads);
    if (!copies_again(gemm, threads))
        return;
    gemm->a_access = GB_GEMM_SHARED;
    gemm->blocks = gemm_choose_blocks(gemm, threads);
}

/* Rows of A that stay in half of L1 while they meet one panel of B after the other, and in 3/4 of it together with what
 * they write of a panel. */
static int64_t rows_in_l1(const gb_gemm *gemm)
{
    const int64_t l1 = (int64_t)gb_machine_get()->l1_bytes;
    const int64_t row = gb_max_i64(gemm->blocks.k_block, 1) * (int64_t)sizeof(float);
    const int64_t written = PANEL * gemm->epilogue.operands[0].bytes;
    const int64_t most = gb_min_i64(l1 / 2 / row, l1 * 3 / 4 / (row + written));
    return gb_max_i64(most / gemm->tile_rows * gemm->tile_rows, gemm->group_rows);
}

static gb_status add_blocked(gb_program *program, gb_step *step, const gb_gemm_problem *problem)
{
    bool bf16 = is_bf16(problem) && (!problem->gate || is_bf16(problem->gate));
    gb_gemm plan = plan_product(problem, problem->integer || bf16), gate;
    if (problem->gate) {
        gate = plan_product(problem->gate, bf16);
        plan.gate = &gate;
    }
    GB_TRY(pack_constants(program, &plan));
    plan.by_panels = goes_by_panels(&plan);
    choose_blocks(&plan, gb_program_threads(program));
    const gb_gemm_blocks blocks = plan.blocks;
    const bool shared = plan.a_access == GB_GEMM_SHARED;
    for (gb_gemm *product = &plan; product; product = product->gate) {
        product->blocks = blocks;
        product->a_access = plan.a_access;
        product->l1_rows = product->gate ? product->group_rows : rows_in_l1(product);
        int64_t row = plan.a_along_m ? blocks.m_block : shared ? plan.k : blocks.k_block;
        product->a_copy_row = copied_row(row);
    }
    GB_TRY(gemm_finish(step, &plan));
    return gb_program_add(program, step);
}

static bool fits_always(const gb_gemm_problem *problem)
{
    (void)problem;
    return true;
}

/* Ways to run a product, the first that can is taken. */
static const struct {
    bool (*fits)(const gb_gemm_problem *problem);
    gb_status (*add)(gb_program *program, gb_step *step, const gb_gemm_problem *problem);
} variants[] = {{gb_gemv_fits, gb_gemv_add}, {fits_always, add_blocked}};

gb_status gb_gemm_add(gb_program *program, gb_step *step, const gb_gemm_problem *problem)
{
    GB_TRY(gb_step_describe(program, step, gb_gemm_problem_print, problem));
    size_t i = 0;
    while (!variants[i].fits(problem))
        i++;
    return variants[i].add(program, step, problem);
}
