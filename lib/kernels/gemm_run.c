/* Runs a GEMM plan: units of m_block x n_block results, K in blocks inside. */
#include "kernels/gemm_run.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/space.h"

enum { PANEL = GB_GEMM_PANEL };

typedef struct unit {
    const gb_gemm *gemm;
    const gb_step_call *call;
    float *a_copy, *b_copy, *sums, *registers;
    const float *copied_b; /* what b_copy holds: the source's address and columns */
    int64_t copied_n;
    int64_t position[GB_MAX_NDIMS];
    gb_tile_view views[GB_TILE_OPERANDS];
    int64_t m_first, m, n_first, n, k_first, k;
    gb_gemm_tile tile; /* A of the current block */
    const float *b;    /* first panel of the current block */
    int64_t panel_stride;
} unit;

static const char *element(const gb_gemm_operand *operand, const unit *u)
{
    int64_t offset = gb_offset(u->gemm->tile.ndims, operand->strides, u->position) +
                     u->k_first * operand->k_stride;
    size_t size = operand->type == GB_F32 || operand->access == GB_GEMM_PACKED ? 4 : 2;
    return (const char *)u->call->buffers[operand->slot] + offset * (int64_t)size;
}

static int64_t stride_along(const gb_gemm_operand *operand, int dim)
{
    return dim < 0 ? 0 : operand->strides[dim];
}

static void prepare_a(unit *u)
{
    const gb_gemm *gemm = u->gemm;
    int64_t row_stride = stride_along(&gemm->a, gemm->row_dim);
    gb_gemm_copy copy = {.type = gemm->a.type, .src = element(&gemm->a, u), .dst = u->a_copy};
    copy.dst_row = gemm->a_copy_row;
    u->tile.a = u->a_copy;
    u->tile.a_row = gemm->a_along_m ? 1 : gemm->a_copy_row;
    if (gemm->a.access == GB_GEMM_IN_PLACE) {
        u->tile.a = copy.src;
        u->tile.a_row = row_stride;
        return;
    }
    if (gemm->a_along_m) {
        copy.rows = u->k, copy.row_stride = gemm->a.k_stride;
        copy.cols = u->m, copy.col_stride = row_stride;
    } else {
        copy.rows = u->m, copy.row_stride = row_stride;
        copy.cols = u->k, copy.col_stride = gemm->a.k_stride;
    }
    gemm->kernels->gemm_copy(&copy);
}

/* One row more than there are keeps the panels out of each other's cache sets. */
static int64_t copied_panel(const unit *u)
{
    return (u->k + 1) * PANEL;
}

static void pack_b(unit *u, int64_t first, int64_t n)
{
    const gb_gemm *gemm = u->gemm;
    int64_t n_stride = stride_along(&gemm->b, gemm->col_dim);
    size_t size = gemm->b.type == GB_F32 ? 4 : 2;
    gb_gemm_pack pack = {.type = gemm->b.type,
            .src = element(&gemm->b, u) + (first * n_stride) * (int64_t)size,
            .k = u->k,
            .n = n,
            .k_stride = gemm->b.k_stride,
            .n_stride = n_stride,
            .dst = u->b_copy,
            .panel_stride = copied_panel(u)};
    gemm->kernels->gemm_pack(&pack);
}

static void prepare_b(unit *u)
{
    const gb_gemm *gemm = u->gemm;
    const float *src = (const float *)element(&gemm->b, u);
    u->tile.b_offsets = gemm->panel_offsets;
    switch (gemm->b.access) {
    case GB_GEMM_PACKED:
        u->b = src;
        u->panel_stride = gemm->k * PANEL;
        break;
    case GB_GEMM_COPY:
        u->b = u->b_copy;
        u->panel_stride = copied_panel(u);
        if (u->copied_b != src || u->copied_n != u->n || gemm->k_blocks > 1)
            pack_b(u, 0, u->n);
        u->copied_b = src;
        u->copied_n = u->n;
        break;
    case GB_GEMM_IN_PLACE:
        u->b = src;
        u->panel_stride = PANEL;
        if (u->n % PANEL)
            pack_b(u, u->n - u->n % PANEL, u->n % PANEL);
        u->tile.b_offsets = gemm->b_offsets;
        break;
    }
}

/* The rows m .. m + rows of one panel: all its tiles. */
static void multiply_group(unit *u, int64_t m, int64_t rows, int64_t cols)
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

/* The views of the unit moved to row m and column n. */
static void move_views(const unit *u, int64_t m, int64_t n, gb_tile_view *views)
{
    for (uint32_t i = 0; i < u->gemm->tile.n_operands; i++) {
        views[i] = gb_tile_view_at(&u->views[i], m, n, u->gemm->operand_bytes[i]);
    }
}

static void finish_group(unit *u, int64_t m, int64_t rows, int64_t n, int64_t cols)
{
    const gb_gemm *gemm = u->gemm;
    gb_tile_view views[GB_TILE_OPERANDS];
    move_views(u, m, n, views);
    if (gemm->direct) {
        u->tile.c_out = (float *)views[0].data;
        u->tile.c_out_row = views[0].row_stride;
        multiply_group(u, m, rows, cols);
        return;
    }
    u->tile.c_out = u->registers;
    u->tile.c_out_row = cols;
    multiply_group(u, m, rows, cols);
    gemm->kernels->tile_run(&gemm->tile, views, rows, cols, u->registers);
}

/* Rows m .. m + rows of the block times the panel at column n. */
static void multiply_panel(unit *u, int64_t m, int64_t rows, int64_t n)
{
    const gb_gemm *gemm = u->gemm;
    int64_t cols = gb_min_i64(PANEL, u->n - n);
    float *sums = u->sums + n * gemm->m_block + m * PANEL;
    u->tile.b = u->b + n / PANEL * u->panel_stride;
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
    multiply_group(u, m, rows, (int64_t)gb_align_up((size_t)cols, (size_t)gemm->tile_cols / 2));
}

/* A share of the rows m .. m + rows on the way into the cache while others are at work. */
static void fetch_rows(const unit *u, int64_t m, int64_t rows, int64_t share, int64_t shares)
{
    for (int64_t r = m + rows * share / shares; r < m + rows * (share + 1) / shares; r++)
        for (int64_t k = 0; k < u->k; k += GB_CACHE_LINE / (int64_t)sizeof(float))
            gb_prefetch(u->tile.a + r * u->tile.a_row + k);
}

/* Few rows of A stay in L1 while the block of B passes by from L2. */
static void multiply_block(unit *u)
{
    const gb_gemm *gemm = u->gemm;
    prepare_a(u);
    prepare_b(u);
    u->tile.k = u->k;
    const int64_t *b_offsets = u->tile.b_offsets;
    for (int64_t m = 0; m < u->m; m += gemm->group_rows) {
        int64_t rows = gb_min_i64(gemm->group_rows, u->m - m);
        int64_t next = gb_min_i64(gemm->group_rows, u->m - m - rows);
        for (int64_t n = 0; n < u->n; n += PANEL) {
            u->tile.b_offsets = b_offsets;
            if (gemm->a.access == GB_GEMM_IN_PLACE)
                fetch_rows(u, m + rows, next, n / PANEL, gb_div_up(u->n, PANEL));
            multiply_panel(u, m, rows, n);
        }
    }
}

static void start_unit(unit *u, int64_t index)
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

void gb_gemm_run(const gb_step_call *call)
{
    const gb_gemm *gemm = call->params;
    char *scratch = call->scratch;
    unit u = {.gemm = gemm, .call = call};
    u.a_copy = (float *)scratch;
    u.b_copy = (float *)(scratch += gemm->a_bytes);
    u.sums = (float *)(scratch += gemm->b_bytes);
    u.registers = (float *)(scratch + gemm->sum_bytes);
    u.tile.a_offsets = gemm->a_offsets;
    int64_t begin, end;
    gb_split(gemm->batches * gemm->m_blocks * gemm->n_blocks, call->thread, call->n_threads, &begin,
            &end);
    for (int64_t i = begin; i < end; i++) {
        start_unit(&u, i);
        for (int64_t block = 0; block < gemm->k_blocks; block++) {
            u.k_first = block * gemm->k_block;
            u.k = gb_min_i64(gemm->k_block, gemm->k - u.k_first);
            multiply_block(&u);
        }
    }
}
