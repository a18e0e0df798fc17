/* Blocks of a GEMM for the caches and threads at hand. */
#include "kernels/gemm/gemm_plan.h"

#include "base/machine.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/cpu/step_call.h"
#include "kernels/gemm/gemm_run.h"
#include "kernels/gemm/packing.h"
#include "kernels/isa/costs.h"

#include <string.h>

enum { PANEL = GB_GEMM_PANEL };

size_t gb_gemm_registers(const gb_gemm *gemm)
{
    size_t bytes = gb_tile_scratch(&gemm->tile);
    if (!gemm->gate)
        return bytes;
    size_t of_gate = gb_tile_scratch(&gemm->gate->tile);
    return (of_gate > bytes ? of_gate : bytes) + GB_TILE_ELEMENTS * sizeof(float);
}

void gb_gemm_set_local(const gb_gemm *gemm, float *local, int64_t row, gb_tile_view *views)
{
    for (uint32_t i = 0; i < gemm->tile.n_operands; i++)
        if (!gemm->tile.operands[i].is_index && gemm->tile.operands[i].slot >= GB_TILE_LOCAL)
            views[i] = (gb_tile_view){.data = (char *)local, .row_stride = row, .col_stride = 1};
}

static void split_dims(gb_gemm *gemm)
{
    const gb_tile_program *tile = &gemm->tile;
    gemm->kernels = gb_kernels_get();
    gemm->terms = gemm->k;
    gemm->m = gemm->row_dim < 0 ? 1 : tile->dims[gemm->row_dim];
    gemm->n = gemm->col_dim < 0 ? 1 : tile->dims[gemm->col_dim];
    gemm->batches = 1;
    gemm->n_batch_dims = 0;
    for (int d = 0; d < tile->ndims; d++) {
        if (d == gemm->row_dim || d == gemm->col_dim)
            continue;
        gemm->batch_dims[gemm->n_batch_dims++] = (uint8_t)d;
        gemm->batches *= tile->dims[d];
    }
}

/* Rows 4 KiB apart fall into the same sets of the L1 cache: a tile's rows would evict one another.
 */
static bool rows_collide(int64_t row_stride)
{
    return row_stride % GB_PAGE_FLOATS == 0;
}

static bool is_plain(const gb_gemm_operand *operand)
{
    return operand->type == GB_F32 && !gb_gemm_is_compressed(operand);
}

static void choose_access(gb_gemm *gemm)
{
    int64_t a_row = gb_gemm_stride(&gemm->a, gemm->row_dim);
    int64_t b_col = gb_gemm_stride(&gemm->b, gemm->col_dim);
    bool a_readable = is_plain(&gemm->a) && gemm->a.k_stride == 1;
    gemm->a.access =
            a_readable && (gemm->m == 1 || !rows_collide(a_row)) ? GB_GEMM_IN_PLACE : GB_GEMM_COPY;
    gemm->a_along_m = gemm->a.k_stride != 1 && a_row == 1;
    bool b_readable = is_plain(&gemm->b) && b_col == 1;
    /* Rows of B on pages of their own are better read once, in long runs. */
    bool near = gemm->b.k_stride < GB_PAGE_FLOATS;
    int64_t tiles = near ? GB_COPY_B_TILES_NEAR : GB_COPY_B_TILES_FAR;
    bool reused = gemm->m > tiles * gemm->tile_rows;
    gemm->b.access = b_readable && !reused ? GB_GEMM_IN_PLACE : GB_GEMM_COPY;
    if (gemm->a.in_panels)
        gemm->a.access = GB_GEMM_IN_PLACE;
    if (gemm->b.in_panels)
        gemm->b.access = GB_GEMM_PACKED;
}

/* Cycles per element and unit of K that reading an operand takes. */
static double read_cost(const gb_costs *costs, const gb_gemm_operand *operand)
{
    return operand->access == GB_GEMM_COPY ? costs->gemm_copy : costs->gemm_read;
}

/* Time of the busiest thread when the result is split into m_block x n_block units. */
static double split_cost(const gb_gemm *gemm, int64_t m_block, int64_t n_block, int threads)
{
    int64_t units = gemm->batches * gb_div_up(gemm->m, m_block) * gb_div_up(gemm->n, n_block);
    const gb_costs *costs = gb_costs_get();
    double unit = read_cost(costs, &gemm->a) * (double)m_block;
    for (const gb_gemm *product = gemm; product; product = product->gate)
        unit += (double)m_block * (double)n_block * costs->multiply_add +
                read_cost(costs, &product->b) * (double)n_block;
    return (double)gb_div_up(units, threads) * unit;
}

/* Tries blocks of about m_most x n_most and a little smaller: the threads shall have the same work.
 */
static void try_blocks(gb_gemm *gemm, int64_t m_most, int64_t n_most, int threads, double *best)
{
    int64_t m_least = gb_div_up(gemm->m, m_most), n_least = gb_div_up(gemm->n, n_most);
    int tries = threads < 16 ? threads : 16;
    for (int64_t j = n_least; j <= n_least + tries; j++)
        for (int64_t i = m_least; i <= m_least + tries; i++) {
            int64_t m_block = gb_div_up(gb_div_up(gemm->m, i), gemm->tile_rows) * gemm->tile_rows;
            int64_t n_block = gb_div_up(gb_div_up(gemm->n, j), PANEL) * PANEL;
            double cost = split_cost(gemm, m_block, n_block, threads);
            if (*best >= 0 && cost >= *best)
                continue;
            *best = cost;
            gemm->m_block = m_block;
            gemm->n_block = n_block;
        }
}

/* A tile's rows of A stay in L1; blocks of B, copied rows of A and unfinished sums share L2. */
static void choose_blocks(gb_gemm *gemm, int threads)
{
    int64_t k_most = (int64_t)(gb_machine_get()->l1_bytes / (PANEL * sizeof(float)));
    gemm->k_blocks = gb_max_i64(1, gb_div_up(gemm->k, k_most));
    gemm->k_block = gb_div_up(gemm->k, gemm->k_blocks);
    if (gemm->a.in_panels && gemm->k_blocks > 1) {
        gemm->k_block = (int64_t)gb_align_up((size_t)gemm->k_block, PANEL);
        gemm->k_blocks = gb_div_up(gemm->k, gemm->k_block);
    }
    int64_t budget = (int64_t)(gb_machine_get()->l2_bytes * 3 / 4 / sizeof(float));
    int64_t k = gb_max_i64(gemm->k_block, 1), products = gemm->gate ? 2 : 1;
    double best = -1;
    for (int64_t n = 4 * PANEL; n <= 64 * PANEL; n *= 2) {
        int64_t per_row =
                (gemm->a.access == GB_GEMM_COPY ? k : 0) + (gemm->k_blocks > 1 ? products * n : 0);
        int64_t rest = budget - products * k * n, m = per_row ? rest / per_row : gemm->m;
        if (rest < budget / 4 && best >= 0)
            break;
        m = gb_max_i64(gb_min_i64(m, gemm->m), gb_min_i64(gemm->m, 4 * gemm->tile_rows));
        try_blocks(gemm, m, n, threads, &best);
    }
    gemm->m_blocks = gb_div_up(gemm->m, gemm->m_block);
    gemm->n_blocks = gb_div_up(gemm->n, gemm->n_block);
    /* One more line keeps copied rows out of each other's cache sets. */
    gemm->a_copy_row =
            (int64_t)gb_align_up((size_t)(gemm->a_along_m ? gemm->m_block : gemm->k_block), 16) +
            16;
}

static void copy_blocks(const gb_gemm *from, gb_gemm *to)
{
    to->m_block = from->m_block, to->m_blocks = from->m_blocks;
    to->n_block = from->n_block, to->n_blocks = from->n_blocks;
    to->k_block = from->k_block, to->k_blocks = from->k_blocks;
    to->a_copy_row = from->a_copy_row;
}

static void choose_tiles(gb_gemm *gemm)
{
    gb_gemm_limits limits = gemm->kernels->gemm_limits();
    const gb_tile_program *tile = &gemm->tile;
    if (gemm->integer) {
        gb_dot_form form = gemm->kernels->dot_form();
        limits = (gb_gemm_limits){form.rows, form.cols};
        gemm->depth = form.depth;
        gemm->k = gb_div_up(gemm->terms, form.depth);
        gemm->row_scales = gemm->row_dim >= 0 && gemm->a.scales.strides[gemm->row_dim] != 0;
        gemm->row_sums = gemm->b.zps.type != GB_UNDEF || (form.depth == 4 && gemm->b.type == GB_U8);
    }
    gemm->tile_rows = gb_div_up(gemm->m, gb_div_up(gemm->m, limits.rows));
    gemm->tile_cols = limits.cols;
    gemm->group_rows = GB_TILE_ELEMENTS / PANEL / gemm->tile_rows * gemm->tile_rows;
    gemm->direct = gb_tile_is_plain_store(tile) &&
                   (gemm->col_dim < 0 || tile->operands[0].strides[gemm->col_dim] == 1 ||
                           tile->operands[0].in_panels);
}

/* Room for the parameters of a block of A or B. */
static size_t parameter_bytes(const gb_gemm *gemm, int64_t columns)
{
    if (!gb_gemm_is_compressed(&gemm->a) && !gb_gemm_is_compressed(&gemm->b))
        return 0;
    int64_t most = gb_max_i64(gb_max_i64(gemm->m_block, columns), gemm->k_block);
    return gb_float_bytes(gb_compressed_scratch(most, most));
}

/* What a product needs of its own. */
static size_t choose_bytes(gb_gemm *gemm)
{
    int64_t columns = gb_div_up(gemm->n_block, PANEL) * PANEL;
    if (gemm->b.access != GB_GEMM_PACKED)
        gemm->b_bytes = gb_float_bytes(
                (gemm->k_block + 1) * (gemm->b.access == GB_GEMM_COPY ? columns : PANEL));
    if (gemm->k_blocks > 1)
        gemm->sum_bytes = gb_float_bytes(gemm->m_block * columns);
    gemm->parameter_bytes = parameter_bytes(gemm, columns);
    return gemm->b_bytes + gemm->sum_bytes + gemm->parameter_bytes;
}

static void choose_scratch(gb_gemm *gemm, gb_step *step)
{
    if (gemm->a.access == GB_GEMM_COPY)
        gemm->a_bytes = gb_float_bytes(
                (gemm->a_along_m ? gemm->k_block : gemm->m_block) * gemm->a_copy_row);
    step->thread_scratch = gemm->a_bytes + gb_gemm_registers(gemm);
    for (gb_gemm *product = gemm; product; product = product->gate)
        step->thread_scratch += choose_bytes(product);
    if (gemm->depth)
        step->thread_scratch += gb_gemm_integer_scratch(gemm);
}

static gb_status pack_constant_b(gb_program *program, gb_gemm *gemm)
{
    gb_gemm_operand *b = &gemm->b;
    gb_packing packing = {.type = b->type,
            .depth = gemm->depth,
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
        packing.batch_dims[0] = gemm->tile.dims[d];
        packing.batch_strides[0] = b->strides[d];
        packing.n_batch++;
        b->strides[d] = stride;
        stride *= gemm->tile.dims[d];
    }
    b->access = GB_GEMM_PACKED;
    b->k_stride = PANEL;
    if (gemm->col_dim >= 0)
        b->strides[gemm->col_dim] = gemm->k + (gemm->depth > 0);
    return gb_packing_add(program, &packing, b->buffer, &b->buffer);
}

static void fill_offsets(gb_gemm *gemm)
{
    int64_t *offsets = (int64_t *)(gemm + 1);
    bool in_place = gemm->a.access == GB_GEMM_IN_PLACE;
    int64_t a_step = in_place ? gemm->a.k_stride : gemm->a_along_m ? gemm->a_copy_row : 1;
    gemm->a_offsets = offsets;
    gemm->b_offsets = offsets + gemm->k_block;
    gemm->panel_offsets = offsets + 2 * gemm->k_block;
    for (int64_t k = 0; k < gemm->k_block; k++) {
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
    gb_gemm *gemm =
            gb_step_alloc(step, 1, sizeof *gemm + 3 * sizeof(int64_t) * (size_t)plan->k_block);
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

static gb_status finish(gb_step *step, const gb_gemm *plan)
{
    gb_gemm *gemm = keep(step, plan);
    if (!gemm)
        return GB_OUT_OF_MEMORY;
    step->kernel = gemm->gate ? "gated gemm" : "gemm";
    step->run = gb_gemm_run;
    step->params = gemm;
    choose_scratch(gemm, step);
    for (gb_gemm *product = gemm; product; product = product->gate) {
        fill_offsets(product);
        step->work += work(product);
    }
    return gb_gemm_use_operands(step, gemm);
}

static gb_status pack_constants(gb_program *program, gb_gemm *gemm)
{
    for (gb_gemm *product = gemm; product; product = product->gate)
        if (product->b.constant && !product->b.in_panels &&
                (product->depth || !gb_gemm_is_compressed(&product->b)))
            GB_TRY(pack_constant_b(program, product));
    return GB_SUCCESS;
}

gb_status gb_gemm_add(gb_program *program, gb_step *step, const gb_gemm *gemm)
{
    gb_gemm plan = *gemm, gate;
    if (plan.gate) {
        gate = *plan.gate;
        plan.gate = &gate;
    }
    for (gb_gemm *product = &plan; product; product = product->gate)
        split_dims(product);
    if (gb_gemv_fits(&plan))
        return gb_gemv_add(program, step, &plan);
    for (gb_gemm *product = &plan; product; product = product->gate) {
        choose_tiles(product);
        choose_access(product);
    }
    GB_TRY(pack_constants(program, &plan));
    choose_blocks(&plan, gb_program_threads(program));
    if (plan.gate)
        copy_blocks(&plan, plan.gate);
    GB_TRY(finish(step, &plan));
    return gb_program_add(program, step);
}
