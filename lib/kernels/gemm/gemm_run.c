/* Runs a GEMM plan: units of m_block x n_block results, K in blocks inside. */
#include "kernels/gemm/gemm_run.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"
#include "kernels/plan/space.h"

enum { PANEL = GB_GEMM_PANEL };

/* The rows m .. m + rows of one panel: all its tiles. */
static void multiply_floats(gb_gemm_unit *u, int64_t m, int64_t rows, int64_t cols)
{
    const gb_gemm *gemm = u->gemm;
    gb_gemm_tile tile = u->tile;
    for (int64_t r = 0; r < rows; r += gemm->tile_rows)
        for (int64_t c = 0; c < cols; c += gemm->tile_cols) {
            tile.rows = (int)gb_min_i64(gemm->tile_rows, rows - r);
            tile.cols = (int)gb_min_i64(gemm->tile_cols, cols - c);
            tile.a = u->tile.a + (m + r) * tile.a_row;
            tile.b = u->tile.b + c;
            tile.c_in = u->tile.c_in ? u->tile.c_in + r * tile.c_in_row + c : NULL;
            tile.c_out = u->tile.c_out + r * tile.c_out_row + c;
            gemm->kernels->gemm_tile(&tile);
        }
}

static const int32_t *words(const float *data)
{
    return (const int32_t *)(const void *)data;
}

/* The same with words; those of the last block of K are finished: columns from n on. */
static void multiply_words(
        gb_gemm_unit *u, int64_t m, int64_t rows, int64_t n, int64_t cols, bool last)
{
    const gb_gemm *gemm = u->gemm;
    const gb_gemm_integers *integers = &u->integers;
    const gb_gemm_tile *all = &u->tile;
    gb_dot_finish finish = {NULL, NULL, NULL, NULL, NULL};
    gb_dot_tile tile = {.depth = gemm->depth,
            .a_row = all->a_row,
            .a_offsets = all->a_offsets,
            .b_offsets = all->b_offsets,
            .k = all->k,
            .c_in_row = all->c_in_row,
            .finish = last ? &finish : NULL,
            .c_out_row = all->c_out_row};
    for (int64_t r = 0; r < rows; r += gemm->tile_rows)
        for (int64_t c = 0; c < cols; c += gemm->tile_cols) {
            tile.rows = (int)gb_min_i64(gemm->tile_rows, rows - r);
            tile.cols = (int)gb_min_i64(gemm->tile_cols, cols - c);
            tile.a = words(all->a) + (m + r) * all->a_row;
            tile.b = words(all->b) + c;
            tile.c_in = all->c_in ? words(all->c_in) + r * all->c_in_row + c : NULL;
            tile.c_out = all->c_out + r * all->c_out_row + c;
            finish.column_terms = integers->column_terms + n + c;
            finish.column_scales = integers->column_scales + n + c;
            if (gemm->row_scales)
                finish.row_scales = integers->row_scales + m + r;
            if (gemm->row_sums) {
                finish.row_terms = integers->row_sums + m + r;
                finish.column_factors = integers->column_factors + n + c;
            }
            gemm->kernels->dot_tile(&tile);
        }
}

static void multiply_group(
        gb_gemm_unit *u, int64_t m, int64_t rows, int64_t n, int64_t cols, bool last)
{
    if (u->gemm->depth)
        multiply_words(u, m, rows, n, cols, last);
    else
        multiply_floats(u, m, rows, cols);
}

/* The views of the unit moved to row m and column n. */
static void move_views(const gb_gemm_unit *u, int64_t m, int64_t n, gb_tile_view *views)
{
    for (uint32_t i = 0; i < u->gemm->tile.n_operands; i++) {
        views[i] = gb_tile_view_at(&u->views[i], m, n, u->gemm->tile.operands[i].bytes);
        if (u->gemm->tile.operands[i].in_panels)
            views[i].col_stride = 1;
    }
}

static void finish_group(gb_gemm_unit *u, int64_t m, int64_t rows, int64_t n, int64_t cols)
{
    const gb_gemm *gemm = u->gemm;
    gb_tile_view views[GB_TILE_OPERANDS];
    move_views(u, m, n, views);
    if (u->local)
        gb_gemm_set_local(gemm, u->local, cols, views);
    if (gemm->direct) {
        u->tile.c_out = (float *)views[0].data;
        u->tile.c_out_row = views[0].row_stride;
        multiply_group(u, m, rows, n, cols, true);
        return;
    }
    u->tile.c_out = u->registers;
    u->tile.c_out_row = cols;
    multiply_group(u, m, rows, n, cols, true);
    gemm->kernels->tile_run(&gemm->tile, views, rows, cols, u->registers);
}

/* Rows m .. m + rows of the block times the panel at column n. */
static void multiply_panel(gb_gemm_unit *u, int64_t m, int64_t rows, int64_t n)
{
    const gb_gemm *gemm = u->gemm;
    int64_t cols = gb_min_i64(PANEL, u->n - n);
    float *sums = u->sums + n * gemm->m_block + m * PANEL;
    u->tile.b = u->b + n / PANEL * u->panel_stride;
    u->tile.b_offsets = u->b_offsets;
    if (gemm->b.access == GB_GEMM_IN_PLACE && cols < PANEL) {
        u->tile.b = u->b_copy;
        u->tile.b_offsets = gemm->panel_offsets;
    }
    u->tile.c_in = u->k_first ? sums : NULL;
    u->tile.c_in_row = PANEL;
    if (u->k_first + u->k == gemm->k) {
        finish_group(u, m, rows, n, cols);
        return;
    }
    u->tile.c_out = sums;
    u->tile.c_out_row = PANEL;
    multiply_group(
            u, m, rows, n, (int64_t)gb_align_up((size_t)cols, (size_t)gemm->tile_cols / 2), false);
}

/* A share of the rows m .. m + rows on the way into the cache while others are at work. */
static void fetch_rows(
        const gb_gemm_unit *u, int64_t m, int64_t rows, int64_t share, int64_t shares)
{
    for (int64_t r = m + rows * share / shares; r < m + rows * (share + 1) / shares; r++)
        for (int64_t k = 0; k < u->k; k += GB_CACHE_LINE / (int64_t)sizeof(float))
            gb_prefetch(u->tile.a + r * u->tile.a_row + u->tile.a_offsets[k]);
}

/* Few rows of A stay in L1 while the block of B passes by from L2. */
static void multiply_block(gb_gemm_unit *u, gb_gemm_unit *gate)
{
    const gb_gemm *gemm = u->gemm;
    if (gemm->depth)
        gb_gemm_prepare_words(u);
    else
        gb_gemm_prepare_block(u, gate);
    for (int64_t m = 0; m < u->m; m += gemm->group_rows) {
        int64_t rows = gb_min_i64(gemm->group_rows, u->m - m);
        int64_t next = gb_min_i64(gemm->group_rows, u->m - m - rows);
        for (int64_t n = 0; n < u->n; n += PANEL) {
            if (gemm->a.access == GB_GEMM_IN_PLACE)
                fetch_rows(u, m + rows, next, n / PANEL, gb_div_up(u->n, PANEL));
            if (gate)
                multiply_panel(gate, m, rows, n);
            multiply_panel(u, m, rows, n);
        }
    }
}

static void start_unit(gb_gemm_unit *u, int64_t index)
{
    const gb_gemm *gemm = u->gemm;
    u->m_first = index % gemm->m_blocks * gemm->m_block;
    index /= gemm->m_blocks;
    u->n_first = index % gemm->n_blocks * gemm->n_block;
    index /= gemm->n_blocks;
    u->m = gb_min_i64(gemm->m_block, gemm->m - u->m_first);
    u->n = gb_min_i64(gemm->n_block, gemm->n - u->n_first);
    gb_position_set(gemm->n_batch_dims, gemm->batch_dims, gemm->tile.dims, index, u->position);
    if (gemm->row_dim >= 0)
        u->position[gemm->row_dim] = u->m_first;
    if (gemm->col_dim >= 0)
        u->position[gemm->col_dim] = u->n_first;
    gb_tile_views(
            &gemm->tile, u->call->buffers, u->position, gemm->row_dim, gemm->col_dim, u->views);
}

static void start_k_block(gb_gemm_unit *u, int64_t block)
{
    const gb_gemm *gemm = u->gemm;
    u->k_first = block * gemm->k_block;
    u->k = u->tile.k = gb_min_i64(gemm->k_block, gemm->k - u->k_first);
}

static void run_unit(gb_gemm_unit *u, gb_gemm_unit *gate, int64_t index)
{
    start_unit(u, index);
    if (gate)
        start_unit(gate, index);
    for (int64_t block = 0; block < u->gemm->k_blocks; block++) {
        start_k_block(u, block);
        if (gate)
            start_k_block(gate, block);
        multiply_block(u, gate);
    }
}

/* The parts of the scratch that a product has for itself; returns what is left. */
static char *take_scratch(gb_gemm_unit *u, char *scratch)
{
    const gb_gemm *gemm = u->gemm;
    u->a_copy = (float *)scratch;
    u->b_copy = (float *)(scratch += gemm->a_bytes);
    u->sums = (float *)(scratch += gemm->b_bytes);
    u->parameters = (float *)(scratch += gemm->sum_bytes);
    u->tile.a_offsets = gemm->a_offsets;
    return scratch + gemm->parameter_bytes;
}

void gb_gemm_run(const gb_step_call *call)
{
    const gb_gemm *gemm = call->params;
    gb_gemm_unit u = {.gemm = gemm, .call = call}, gate = {.gemm = gemm->gate, .call = call};
    char *scratch = take_scratch(&u, call->scratch);
    if (gemm->gate) {
        scratch = take_scratch(&gate, scratch);
        u.local = gate.local = (float *)scratch;
        scratch += GB_TILE_ELEMENTS * sizeof(float);
    }
    u.registers = gate.registers = (float *)scratch;
    if (gemm->depth)
        gb_gemm_integer_start(&u, scratch + gb_tile_scratch(&gemm->tile));
    int64_t begin, end;
    gb_split(gemm->batches * gemm->m_blocks * gemm->n_blocks, call->thread, call->n_threads, &begin,
            &end);
    for (int64_t i = begin; i < end; i++)
        run_unit(&u, gemm->gate ? &gate : NULL, i);
}
