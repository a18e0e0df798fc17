/* The GEMM micro-kernel: a tile of C stays in registers while K runs by. */
#include "kernels/gemm/register_sums.h"
#include "kernels/gemm/register_tile.h"
#include "kernels/isa/vec_float.h"

/* Two vectors of few rows are too few sums to hide the latency of multiply-adds: where the registers
 * hold them, few rows take up to four. */
enum { FEW_ROWS = VREGS == 16 ? 3 : 0 };

/* Earlier sums come last: they arrive while K runs by. */
GB_INLINE void add_earlier(const float *c_in, const gb_gemm_tile *tile, const int rows,
        const int vectors, vf sums[][MOST_VECTORS])
{
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sums[m][v] = vf_add(vf_load(c_in + m * tile->c_in_row + v * VLEN), sums[m][v]);
}

/* What is written, on its way while K runs by. */
GB_INLINE void fetch_results(
        const float *c_out, const gb_gemm_tile *tile, const int rows, const int vectors)
{
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            gb_prefetch_to_write(c_out + m * tile->c_out_row + v * VLEN);
}

/* One term of K of few rows: all factors stay in registers, one vector of B after the other. f32. */
GB_INLINE void add_wide_term(const int rows, const int vectors, const float *a, const int64_t row,
        const char *b, vf sums[][MOST_VECTORS])
{
    vf factors[FEW_ROWS + 1];
#pragma GCC unroll 4
    for (int m = 0; m < rows; m++)
        factors[m] = vf_set1(a[m * row]);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        vf b_row = vf_load((const float *)(const void *)b + v * VLEN);
#pragma GCC unroll 4
        for (int m = 0; m < rows; m++)
            sums[m][v] = vf_fma(factors[m], b_row, sums[m][v]);
    }
}

/* One term of K. */
GB_INLINE void add_term(const int rows, const int vectors, const gb_data_type type, const float *a,
        const int64_t row, const char *b, vf sums[][MOST_VECTORS])
{
    vf b_row[MOST_VECTORS];
    if (rows <= FEW_ROWS && vectors > VECTORS) {
        add_wide_term(rows, vectors, a, row, b, sums);
        return;
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        b_row[v] = vf_load_float(type, b + (size_t)(v * VLEN) * gb_float_size(type), VLEN);
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++) {
        /* Three rows per base register keep the addresses of all rows in registers. */
        vf factor = vf_set1(a[m % 3 * row]);
        if (m % 3 == 2)
            a += 3 * row;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sums[m][v] = vf_fma(factor, b_row[v], sums[m][v]);
    }
}

/* Operands of the next term, and how far each is from the one before. */
typedef struct term_walk {
    const float *a;
    const char *b, *next;
    int64_t a_step, b_step, next_step;
} term_walk;

GB_INLINE void add_run(const int rows, const int vectors, const gb_data_type type, int64_t terms,
        int64_t row, const bool fetches, term_walk *at, vf sums[][MOST_VECTORS])
{
#pragma GCC unroll 4
    for (int64_t i = 0; i < terms; i++) {
        if (fetches) {
            gb_prefetch(at->next);
            at->next += at->next_step;
        }
        add_term(rows, vectors, type, at->a, row, at->b, sums);
        at->a += at->a_step;
        at->b += at->b_step;
    }
}

/* Terms whose offsets rise by equal steps: nothing is loaded but operands. Returns what is asked for next. */
GB_INLINE const char *add_runs(const gb_gemm_tile *tile, const float *a, const char *b,
        const char *next, const int rows, const int vectors, const gb_data_type type,
        vf sums[][MOST_VECTORS])
{
    const int64_t size = (int64_t)gb_float_size(type), k_end = tile->k, run = tile->run;
    const int64_t *a_offsets = tile->a_offsets, *b_offsets = tile->b_offsets;
    term_walk at = {.next = next,
            .a_step = a_offsets[1] - a_offsets[0],
            .b_step = (b_offsets[1] - b_offsets[0]) * size,
            .next_step = tile->next_step};
    for (int64_t k = 0; k < k_end; k += run) {
        const int64_t terms = k_end - k < run ? k_end - k : run;
        at.a = a + a_offsets[k];
        at.b = b + b_offsets[k] * size;
        if (next)
            add_run(rows, vectors, type, terms, tile->a_row, true, &at, sums);
        else
            add_run(rows, vectors, type, terms, tile->a_row, false, &at, sums);
    }
    return at.next;
}

/* Are whole vectors of f32 stored as they are, with nothing to add to, and is K walked in runs? Such tiles have functions
 * that do nothing else, and so begin and end sooner: with 16 to 64 terms they take 0.91 to 0.98 of the time (a core of
 * Emerald Rapids). */
static bool only_stores(const gb_gemm_tile *tile)
{
    return !tile->halves && !tile->c_in && !tile->post_ops && tile->cols % VLEN == 0 &&
           tile->run >= GB_LEAST_RUN && tile->k >= GB_LEAST_RUN;
}

GB_INLINE void multiply_and_store(const gb_gemm_tile *tile, const int rows, const int vectors)
{
    const char *next = tile->next;
    int64_t first = 0;
    do {
        vf sums[ROWS][MOST_VECTORS];
#pragma GCC unroll 14
        for (int m = 0; m < rows; m++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sums[m][v] = vf_zero();
        next = add_runs(tile, tile->a + first * tile->a_row, (const char *)tile->b, next, rows,
                vectors, GB_F32, sums);
        gb_store_sums(
                tile->c_out + first * tile->c_out_row, tile->c_out_row, VLEN, rows, vectors, sums);
        first += rows;
    } while (first < tile->tiles * rows);
}

/* Tile `index` of those below each other. */
GB_INLINE const char *multiply_tile(const gb_gemm_tile *tile, int64_t index, const char *next,
        const int rows, const int vectors, const gb_data_type type)
{
    vf sums[ROWS][MOST_VECTORS];
    const int64_t first = index * rows;
    const char *b_base = (const char *)(type == GB_F32 ? (const void *)tile->b : tile->halves);
    const float *a_base = tile->a + first * tile->a_row;
    const float *c_in = tile->c_in ? tile->c_in + first * tile->c_in_row : NULL;
    float *c_out = tile->c_out + first * tile->c_out_row;
    if (tile->post_ops)
        gb_fetch_post_ops(tile->post_ops, tile->row + first, tile->col, tile->k, rows, vectors);
    else
        fetch_results(c_out, tile, rows, vectors);
    if (c_in && c_in != c_out)
#pragma GCC unroll 14
        for (int m = 0; m < rows; m++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                gb_prefetch(c_in + m * tile->c_in_row + v * VLEN);
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sums[m][v] = vf_zero();
    if (tile->run >= GB_LEAST_RUN && tile->k >= GB_LEAST_RUN) {
        next = add_runs(tile, a_base, b_base, next, rows, vectors, type, sums);
    } else {
        const int64_t size = (int64_t)gb_float_size(type), row = tile->a_row, k_end = tile->k;
        const int64_t *a_offsets = tile->a_offsets, *b_offsets = tile->b_offsets;
        for (int64_t k = 0; k < k_end; k++)
            add_term(rows, vectors, type, a_base + a_offsets[k], row, b_base + b_offsets[k] * size,
                    sums);
    }
    if (c_in)
        add_earlier(c_in, tile, rows, vectors, sums);
    const gb_register_sums place = {.post_ops = tile->post_ops,
            .row = tile->row + first,
            .col = tile->col,
            .last = tile->cols - (vectors - 1) * VLEN,
            .dst = c_out,
            .dst_row = tile->c_out_row};
    gb_finish_sums(&place, rows, vectors, sums);
    return next;
}

GB_INLINE void multiply(
        const gb_gemm_tile *tile, const int rows, const int vectors, const gb_data_type type)
{
    const char *next = tile->next;
    int64_t index = 0;
    do
        next = multiply_tile(tile, index, next, rows, vectors, type);
    while (++index < tile->tiles);
}

#define TILE(name, rows, vectors, type)                                                            \
    static void name##_##rows##x##vectors(const gb_gemm_tile *tile)                                \
    {                                                                                              \
        multiply(tile, rows, vectors, type);                                                       \
    }
#define STORING_TILE(rows, vectors)                                                                \
    static void store_##rows##x##vectors(const gb_gemm_tile *tile)                                 \
    {                                                                                              \
        multiply_and_store(tile, rows, vectors);                                                   \
    }
#define TILES(rows)                                                                                \
    STORING_TILE(rows, 1)                                                                          \
    STORING_TILE(rows, 2)                                                                          \
    TILE(multiply, rows, 1, GB_F32)                                                                \
    TILE(multiply, rows, 2, GB_F32)                                                                \
    TILE(multiply_bf16, rows, 1, GB_BF16)                                                          \
    TILE(multiply_bf16, rows, 2, GB_BF16)                                                          \
    TILE(multiply_f16, rows, 1, GB_F16)                                                            \
    TILE(multiply_f16, rows, 2, GB_F16)
GB_EACH_ROWS(TILES)

#if VREGS == 16
#define WIDE_TILES(rows)                                                                           \
    TILE(multiply, rows, 3, GB_F32)                                                                \
    TILE(multiply, rows, 4, GB_F32)
GB_ROWS_3(WIDE_TILES)
#define WIDE_ENTRY(rows) {multiply_##rows##x3, multiply_##rows##x4},
static gb_gemm_tile_fn *const wide_tiles[FEW_ROWS][MOST_VECTORS - VECTORS] = {
        GB_ROWS_3(WIDE_ENTRY)};
#endif

#define STORE_ENTRY(rows) {store_##rows##x1, store_##rows##x2},
#define BF16_ENTRY(rows)  {multiply_bf16_##rows##x1, multiply_bf16_##rows##x2},
#define F16_ENTRY(rows)   {multiply_f16_##rows##x1, multiply_f16_##rows##x2},
typedef gb_gemm_tile_fn *const row_of_tiles[VECTORS];
static row_of_tiles f32_tiles[ROWS] = {GB_EACH_ROWS(GB_ROWS_ENTRY)};
static row_of_tiles storing_tiles[ROWS] = {GB_EACH_ROWS(STORE_ENTRY)};
static row_of_tiles bf16_tiles[ROWS] = {GB_EACH_ROWS(BF16_ENTRY)};
static row_of_tiles f16_tiles[ROWS] = {GB_EACH_ROWS(F16_ENTRY)};

void GB_ISA_NAME(gemm_tile)(const gb_gemm_tile *tile)
{
#if VREGS == 16
    if (tile->cols > VECTORS * VLEN) {
        wide_tiles[tile->rows - 1][(tile->cols - 1) / VLEN - VECTORS](tile);
        return;
    }
#endif
    row_of_tiles *tiles = only_stores(tile)              ? storing_tiles
                          : !tile->halves                ? f32_tiles
                          : tile->halves_type == GB_BF16 ? bf16_tiles
                                                         : f16_tiles;
    tiles[tile->rows - 1][(tile->cols - 1) / VLEN](tile);
}

gb_gemm_limits GB_ISA_NAME(gemm_limits)(void)
{
    return (gb_gemm_limits){.lanes = VLEN,
            .rows = ROWS,
            .cols = VECTORS * VLEN,
            .few_rows = FEW_ROWS,
            .few_rows_cols = MOST_VECTORS * VLEN};
}
