/* Runs a GEMM plan: work items of m_block x n_block results, K in blocks inside. */
#include "kernels/gemm/gemm_run.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/cpu/step_call.h"
#include "kernels/isa/prefetch.h"
#include "kernels/isa/tile_rows.h"
#include "kernels/plan/space.h"

enum { PANEL = GB_GEMM_PANEL };

static const int32_t *words(const float *data)
{
    return (const int32_t *)(const void *)data;
}

/* The tiles of a panel with VNNI groups; integers of the last block of K are finished: rows from m, columns
 * from n on. */
static void multiply_words(const gb_gemm_item *u, const gb_gemm_tile *all, int64_t m, int64_t rows,
        int64_t n, int64_t cols, bool last)
{
    const gb_gemm *gemm = u->gemm;
    const gb_gemm_integers *integers = &u->integers;
    gb_dot_finish finish = {NULL, NULL, NULL, NULL, NULL};
    gb_dot_tile tile = {.vnni_factor = gemm->vnni_factor,
            .floats = gemm->floats,
            .a_row = all->a_row,
            .a_offsets = all->a_offsets,
            .b_offsets = all->b_offsets,
            .k = all->k,
            .run = all->run,
            .next = all->next,
            .next_step = all->next_step,
            .c_in_row = all->c_in_row,
            .finish = last && !gemm->floats ? &finish : NULL,
            .c_out_row = all->c_out_row,
            .post_ops = all->post_ops};
    for (int64_t r = 0; r < rows; r += tile.rows) {
        tile.rows = (int)gb_tile_rows_in(rows - r, gemm->tile_rows, gemm->row_step);
        for (int64_t c = 0; c < cols; c += gemm->tile_cols) {
            tile.cols = (int)gb_min_i64(gemm->tile_cols, cols - c);
            tile.a = words(all->a) + r * all->a_row;
            tile.b = words(all->b) + c;
            tile.c_in = all->c_in ? all->c_in + r * all->c_in_row + c : NULL;
            tile.c_out = all->c_out + r * all->c_out_row + c;
            tile.row = all->row + r;
            tile.col = all->col + c;
            if (tile.finish) {
                finish.column_terms = integers->column_terms + n + c;
                finish.column_scales = integers->column_scales + n + c;
                if (gemm->row_scales)
                    finish.row_scales = integers->row_scales + m + r;
                if (gemm->row_sums) {
                    finish.row_terms = integers->row_sums + m + r;
                    finish.column_factors = integers->column_factors + n + c;
                }
            }
            gemm->kernels->dot_tile(&tile);
            if (tile.next)
                tile.next += tile.k * tile.next_step;
        }
    }
}

/* All tiles of rows of one panel: `whole` has its first row and column, and C, and is used up. */
static void multiply_group(const gb_gemm_item *u, gb_gemm_tile *whole, int64_t m, int64_t rows,
        int64_t n, int64_t cols, bool last)
{
    const gb_gemm *gemm = u->gemm;
    const gb_gemm_limits most = {.rows = (int)gemm->tile_rows, .cols = (int)gemm->tile_cols};
    if (gemm->vnni_factor)
        multiply_words(u, whole, m, rows, n, cols, last);
    else
        gb_multiply_tiles(gemm->kernels->gemm_tile, &most, whole, rows, cols);
}

/* The views of the work item moved to row m and column n. */
static void move_views(const gb_gemm_item *u, int64_t m, int64_t n, gb_pointwise_view *views)
{
    for (uint32_t i = 0; i < u->gemm->epilogue.n_operands; i++) {
        views[i] = gb_pointwise_view_at(&u->views[i], m, n, u->gemm->epilogue.operands[i].bytes);
        if (u->gemm->epilogue.operands[i].in_panels)
            views[i].col_stride = 1;
    }
}

/* The last block of K: results go to the tensors, through the pointwise program if there is one. */
static void finish_group(const gb_gemm_item *u, gb_gemm_tile *whole, int64_t m, int64_t rows,
        int64_t n, int64_t cols)
{
    const gb_gemm *gemm = u->gemm;
    if (u->in_tiles) {
        whole->post_ops = &u->post_ops;
        whole->row = m;
        whole->col = n;
        whole->c_out = u->registers; /* not written */
        multiply_group(u, whole, m, rows, n, cols, true);
        return;
    }
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    move_views(u, m, n, views);
    if (u->gate_result)
        gb_gemm_set_gate_view(gemm, u->gate_result, cols, views);
    whole->c_out = gemm->direct ? (float *)views[0].data : u->registers;
    whole->c_out_row = gemm->direct ? views[0].row_stride : cols;
    if (!gemm->direct) /* tiles ask for what they store themselves */
        gb_prefetch_operands(&gemm->epilogue, views, rows, cols, whole->k);
    multiply_group(u, whole, m, rows, n, cols, true);
    if (!gemm->direct)
        gemm->kernels->pointwise_run(&gemm->epilogue, views, rows, cols, u->registers);
}

/* Do these rows read B for the first time, and it has not been asked for? */
static bool reads_anew(const gb_gemm_item *u, int64_t m)
{
    return m == 0 && !u->follows;
}

/* What comes into the caches while rows are multiplied by a panel. Where B is read for the first time,
 * or only once, the panel beside it; where other rows meet the block of B again, the same one of the
 * next block. NULL: it is there, or another thread's. Panels that were copied just now are there. */
static const char *next_panel(
        const gb_gemm_item *u, int64_t m, int64_t rows, int64_t n, int64_t bytes)
{
    const gb_gemm *gemm = u->gemm;
    const char *panel = (const char *)u->b + n / PANEL * u->panel_stride * bytes;
    if (gemm->b_access != GB_GEMM_HALVES && gemm->b_access != GB_GEMM_PACKED)
        return NULL;
    if ((rows == u->m || reads_anew(u, m)) && n + PANEL < u->n)
        return panel + u->panel_stride * bytes;
    if (rows == u->m)
        panel = (const char *)u->b;
    else if (reads_anew(u, m))
        return NULL;
    if (u->k_first + u->k < gemm->k)
        return panel + u->k * PANEL * bytes;
    panel -= u->k_first * PANEL * bytes;
    if (!u->leads)
        return NULL;
    if (u->m_first + u->m < gemm->m)
        return u->k_first ? panel : NULL;
    return u->n_first + u->n < gemm->n ? panel + u->n / PANEL * u->panel_stride * bytes : NULL;
}

/* Has the tiles of rows m .. m + rows ask for their part of it, all the time and not in a burst. */
static void share_next(
        const gb_gemm_item *u, int64_t m, int64_t rows, int64_t n, gb_gemm_tile *whole)
{
    const gb_gemm *gemm = u->gemm;
    const int64_t bytes = gemm->b_access == GB_GEMM_HALVES ? 2 : 4;
    const int64_t tiles = gb_div_up(rows, gemm->tile_rows) *
                          gb_div_up(gb_min_i64(PANEL, u->n - n), gemm->tile_cols);
    whole->next = whole->k ? next_panel(u, m, rows, n, bytes) : NULL;
    if (!whole->next)
        return;
    /* The rows that share it: the first ones may ask for all of a panel, or for none of the next block. */
    const int64_t begin = m > 0 && !u->follows ? u->first_rows : 0;
    const int64_t end = reads_anew(u, m) ? rows : u->m;
    const double part = (double)(u->k * PANEL * bytes) / (double)(end - begin);
    whole->next += (int64_t)(part * (double)(m - begin));
    whole->next_step = (int64_t)(part * (double)rows) / (tiles * whole->k) + 1;
}

/* Rows m .. m + rows of the block times the panel at column n. */
static void multiply_panel(const gb_gemm_item *u, int64_t m, int64_t rows, int64_t n)
{
    const gb_gemm *gemm = u->gemm;
    int64_t cols = gb_min_i64(PANEL, u->n - n);
    bool partial = gemm->b_access == GB_GEMM_IN_PLACE && cols < PANEL;
    int64_t panel = n / PANEL * u->panel_stride;
    float *sums = u->sums + n * gemm->blocks.m_block + m * PANEL;
    gb_gemm_tile whole = {.a = u->a + m * u->a_row,
            .a_row = u->a_row,
            .a_offsets = gemm->a_offsets,
            .b = partial ? u->b_copy : (const float *)u->b + panel,
            .b_offsets = partial ? gemm->panel_offsets : u->b_offsets,
            .k = u->k,
            .run = gemm->a.in_panels ? PANEL : u->k,
            .c_in = u->k_first ? sums : NULL,
            .c_in_row = PANEL,
            .c_out = sums,
            .c_out_row = PANEL};
    share_next(u, m, rows, n, &whole);
    if (gemm->b_access == GB_GEMM_HALVES) {
        whole.b = NULL;
        whole.halves = (const uint16_t *)u->b + panel;
        whole.halves_type = gemm->b.type;
    }
    if (u->k_first + u->k == gemm->k) {
        finish_group(u, &whole, m, rows, n, cols);
        return;
    }
    /* Sums are kept in whole vectors. */
    int64_t kept = (int64_t)gb_align_up((size_t)cols, (size_t)gemm->tile_cols / 2);
    multiply_group(u, &whole, m, rows, n, kept, false);
}

/* A share of the rows m .. m + rows on the way into the cache while others are at work. */
static void fetch_rows(
        const gb_gemm_item *u, int64_t m, int64_t rows, int64_t share, int64_t shares)
{
    for (int64_t r = m + rows * share / shares; r < m + rows * (share + 1) / shares; r++)
        for (int64_t k = 0; k < u->k; k += GB_CACHE_LINE / (int64_t)sizeof(float))
            gb_prefetch(u->a + r * u->a_row + u->gemm->a_offsets[k]);
}

/* Rows of the next group when `rest` are left: the last two groups share them, so that none has only
 * few. */
static int64_t rows_of_group(const gb_gemm_item *u, int64_t rest)
{
    const gb_gemm *gemm = u->gemm;
    int64_t most = u->in_tiles || gemm->direct ? gemm->l1_rows : gemm->group_rows;
    if (rest <= most || rest >= 2 * most)
        return gb_min_i64(rest, most);
    return gb_div_up(gb_div_up(rest, 2), gemm->tile_rows) * gemm->tile_rows;
}

/* The panels of B pass by once, each with all rows of A, which are in L2. */
static void multiply_by_panels(gb_gemm_item *u, gb_gemm_item *gate)
{
    for (int64_t n = 0; n < u->n; n += PANEL)
        for (int64_t m = 0, rows; m < u->m; m += rows) {
            rows = rows_of_group(u, u->m - m);
            if (gate)
                multiply_panel(gate, m, rows, n);
            multiply_panel(u, m, rows, n);
        }
}

/* Few rows of A stay in L1 while the block of B passes by from L2. */
static void multiply_by_rows(gb_gemm_item *u, gb_gemm_item *gate)
{
    for (int64_t m = 0, rows; m < u->m; m += rows) {
        rows = rows_of_group(u, u->m - m);
        int64_t next = rows_of_group(u, u->m - m - rows);
        for (int64_t n = 0; n < u->n; n += PANEL) {
            if (u->a != u->a_copy)
                fetch_rows(u, m + rows, next, n / PANEL, gb_div_up(u->n, PANEL));
            if (gate)
                multiply_panel(gate, m, rows, n);
            multiply_panel(u, m, rows, n);
        }
    }
}

static void multiply_block(gb_gemm_item *u, gb_gemm_item *gate)
{
    const gb_gemm *gemm = u->gemm;
    if (gemm->vnni_factor)
        gb_gemm_prepare_groups(u, gate);
    else
        gb_gemm_prepare_block(u, gate);
    u->first_rows = rows_of_group(u, u->m);
    if (gate)
        gate->first_rows = u->first_rows;
    if (gemm->by_panels)
        multiply_by_panels(u, gate);
    else
        multiply_by_rows(u, gate);
}

static void gemm_start_unit(gb_gemm_item *u, int64_t index)
{
    const gb_gemm *gemm = u->gemm;
    u->m_first = index % gemm->blocks.m_blocks * gemm->blocks.m_block;
    index /= gemm->blocks.m_blocks;
    u->n_first = index % gemm->blocks.n_blocks * gemm->blocks.n_block;
    index /= gemm->blocks.n_blocks;
    u->m = gb_min_i64(gemm->blocks.m_block, gemm->m - u->m_first);
    u->n = gb_min_i64(gemm->blocks.n_block, gemm->n - u->n_first);
    gb_position_set(gemm->n_batch_dims, gemm->batch_dims, gemm->epilogue.dims, index, u->position);
    if (gemm->row_dim >= 0)
        u->position[gemm->row_dim] = u->m_first;
    if (gemm->col_dim >= 0)
        u->position[gemm->col_dim] = u->n_first;
    gb_pointwise_views(
            &gemm->epilogue, u->call->buffers, u->position, gemm->row_dim, gemm->col_dim, u->views);
    u->in_tiles =
            gemm->column_floats && gemm->kernels->tile_post_ops(&gemm->epilogue, u->views, u->m,
                                           u->n, u->columns, gemm->column_floats, &u->post_ops);
    /* Tiles follow each other along the rows. */
    if (u->in_tiles && gemm->l1_rows > gemm->group_rows) {
        u->post_ops.next_row = gemm->tile_rows;
        u->post_ops.next_col = 0;
    }
}

static void start_k_block(gb_gemm_item *u, int64_t block)
{
    const gb_gemm *gemm = u->gemm;
    u->follows = u->follows || block > 0;
    u->k_first = block * gemm->blocks.k_block;
    u->k = gb_min_i64(gemm->blocks.k_block, gemm->k - u->k_first);
}

static void gemm_run_unit(gb_gemm_item *u, gb_gemm_item *gate, int64_t index)
{
    gemm_start_unit(u, index);
    if (gate)
        gemm_start_unit(gate, index);
    for (int64_t block = 0; block < u->gemm->blocks.k_blocks; block++) {
        start_k_block(u, block);
        if (gate)
            start_k_block(gate, block);
        multiply_block(u, gate);
    }
}

static gb_gemm_item item_of(const gb_step_call *call, const gb_gemm *gemm)
{
    return (gb_gemm_item){.gemm = gemm,
            .call = call,
            .a_copy = gb_scratch_get(call, gemm->a_copy),
            .b_copy = gb_scratch_get(call, gemm->b_copy),
            .sums = gb_scratch_get(call, gemm->sums),
            .parameters = gb_scratch_get(call, gemm->parameters),
            .registers = gb_scratch_get(call, gemm->registers),
            .columns = gb_scratch_get(call, gemm->columns)};
}

void gb_gemm_run(const gb_step_call *call)
{
    const gb_gemm *gemm = call->params;
    if (gemm->a_access == GB_GEMM_SHARED && call->phase == 0) {
        gb_gemm_share_a(call);
        return;
    }
    gb_gemm_item u = item_of(call, gemm), gate;
    if (gemm->gate) {
        gate = item_of(call, gemm->gate);
        u.gate_result = gate.gate_result = gb_scratch_get(call, gemm->gate_result);
        gate.registers = u.registers;
    }
    if (gemm->vnni_factor && !gemm->floats)
        gb_gemm_integer_start(&u, gb_scratch_get(call, gemm->integers));
    int64_t begin, end, own_begin, own_end, before = -2; /* none */
    int64_t items = gemm->batches * gemm->blocks.m_blocks * gemm->blocks.n_blocks;
    gb_split(items, call->thread, call->n_threads, &own_begin, &own_end);
    gemm->kernels->dot_begin();
    while (gb_take_items(call, items, &begin, &end))
        for (int64_t i = begin; i < end; before = i++) {
            u.follows = gate.follows = i == before + 1;
            u.leads = gate.leads = i >= own_begin && i + 1 < own_end;
            gemm_run_unit(&u, gemm->gate ? &gate : NULL, i);
        }
    gemm->kernels->dot_end();
}
