/* The micro-kernel of VNNI groups: a tile of C stays in registers while K runs by. */
#define GB_CODES_ADD_TERMS 0 /* sums begin with them */
#include "kernels/gemm/finish_codes.h"
#include "kernels/gemm/register_sums.h"
#include "kernels/gemm/register_tile.h"

#include "base/cpu.h"

/* What a VNNI group holds. */
enum { BYTES, HALVES, FLOATS };

/* Sums of floats travel as their bits. */
GB_INLINE vi dot(const int groups, vi sum, vi a, vi b)
{
#if defined(GB_VEC_HAS_DOT4)
    if (groups == BYTES)
        return vi_dot4(sum, a, b);
#endif
#if defined(GB_VEC_HAS_DOT_BF16)
    if (groups == FLOATS)
        return vf_bits(vf_dot_bf16(vi_as_vf(sum), a, b));
#endif
    (void)groups;
    return vi_dot2(sum, a, b);
}

/* Lanes that are left in the last vector are not written. */
GB_INLINE void store_sums(
        const gb_dot_tile *tile, const int rows, const int vectors, vi sums[][VECTORS])
{
    const int last = tile->cols - (vectors - 1) * VLEN;
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++) {
        int32_t *c = (int32_t *)tile->c_out + m * tile->c_out_row;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            if (v + 1 < vectors || last == VLEN)
                vi_store(c + v * VLEN, sums[m][v]);
            else
                vi_store_n(c + v * VLEN, sums[m][v], last);
    }
}

/* Sums of floats are results. */
GB_INLINE void finish_sums(const gb_dot_tile *tile, const int rows, const int vectors,
        const int groups, vi sums[][VECTORS])
{
    if (groups != FLOATS && vectors == 2 && gb_become_codes(tile)) {
        vi memory[ROWS][VECTORS];
#pragma GCC unroll 14
        for (int m = 0; m < rows; m++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                memory[m][v] = sums[m][v];
        gb_finish_codes(tile->post_ops, tile->finish, (const int32_t *)(const void *)memory,
                tile->row, tile->col, rows);
        return;
    }
    vf results[ROWS][MOST_VECTORS];
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            results[m][v] = groups == FLOATS
                                    ? vi_as_vf(sums[m][v])
                                    : gb_finish_integers(tile->finish, sums[m][v], m, v * VLEN);
    const gb_register_sums place = {.post_ops = tile->post_ops,
            .row = tile->row,
            .col = tile->col,
            .last = tile->cols - (vectors - 1) * VLEN,
            .dst = tile->c_out,
            .dst_row = tile->c_out_row};
    gb_finish_sums(&place, rows, vectors, results);
}

/* One VNNI group of K. */
GB_INLINE void add_group(const int rows, const int vectors, const int groups, const int32_t *a,
        const int64_t row, const int32_t *b, vi sums[][VECTORS])
{
    vi b_row[VECTORS];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++)
        b_row[v] = vi_load(b + v * VLEN);
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++) {
        /* Three rows per base register keep the addresses of all rows in registers. */
        vi factor = vi_set1(a[m % 3 * row]);
        if (m % 3 == 2)
            a += 3 * row;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[m][v] = dot(groups, sums[m][v], factor, b_row[v]);
    }
}

/* VNNI groups whose offsets rise by equal steps: nothing is loaded but operands. */
GB_INLINE void add_runs(const gb_dot_tile *tile, const int rows, const int vectors,
        const int groups, vi sums[][VECTORS])
{
    const int64_t row = tile->a_row, k_end = tile->k, run = tile->run;
    const int64_t *a_offsets = tile->a_offsets, *b_offsets = tile->b_offsets;
    const int64_t a_step = a_offsets[1] - a_offsets[0], b_step = b_offsets[1] - b_offsets[0];
    const int64_t next_step = tile->next ? tile->next_step : 0;
    const char *next = tile->next ? tile->next : (const char *)tile->b;
    for (int64_t k = 0; k < k_end; k += run) {
        const int32_t *a = tile->a + a_offsets[k], *b = tile->b + b_offsets[k];
        const int64_t terms = k_end - k < run ? k_end - k : run;
#pragma GCC unroll 4
        for (int64_t i = 0; i < terms; i++) {
            gb_prefetch(next);
            next += next_step;
            add_group(rows, vectors, groups, a, row, b, sums);
            a += a_step;
            b += b_step;
        }
    }
}

GB_INLINE void multiply(
        const gb_dot_tile *tile, const int rows, const int vectors, const int groups)
{
    vi sums[ROWS][VECTORS];
    const int32_t *c_in = tile->c_in;
    vi terms[VECTORS];
    if (tile->post_ops)
        gb_fetch_post_ops(tile->post_ops, tile->row, tile->col, tile->k, rows, vectors);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++)
        terms[v] = groups != FLOATS && tile->finish ? vi_load(tile->finish->column_terms + v * VLEN)
                                                    : vi_set1(0);
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[m][v] = c_in ? vi_add(vi_load(c_in + m * tile->c_in_row + v * VLEN), terms[v])
                              : terms[v];
    if (tile->run >= GB_LEAST_RUN && tile->k >= GB_LEAST_RUN) {
        add_runs(tile, rows, vectors, groups, sums);
    } else {
        const int64_t row = tile->a_row, k_end = tile->k;
        const int64_t *a_offsets = tile->a_offsets, *b_offsets = tile->b_offsets;
        for (int64_t k = 0; k < k_end; k++)
            add_group(rows, vectors, groups, tile->a + a_offsets[k], row, tile->b + b_offsets[k],
                    sums);
    }
    if (tile->finish || tile->post_ops)
        finish_sums(tile, rows, vectors, groups, sums);
    else
        store_sums(tile, rows, vectors, sums);
}

#define TILE(name, rows, vectors, groups)                                                          \
    static void name##_##rows##x##vectors(const gb_dot_tile *tile)                                 \
    {                                                                                              \
        multiply(tile, rows, vectors, groups);                                                     \
    }
#define HALVES_TILES(rows)                                                                         \
    TILE(multiply, rows, 1, HALVES)                                                                \
    TILE(multiply, rows, 2, HALVES)
GB_EACH_ROWS(HALVES_TILES)
typedef gb_dot_tile_fn *const row_of_tiles[VECTORS];
static row_of_tiles halves_tiles[ROWS] = {GB_EACH_ROWS(GB_ROWS_ENTRY)};

#if defined(GB_VEC_HAS_DOT4)
#define BYTES_TILES(rows)                                                                          \
    TILE(multiply_bytes, rows, 1, BYTES)                                                           \
    TILE(multiply_bytes, rows, 2, BYTES)
GB_EACH_ROWS(BYTES_TILES)
#define BYTES_ENTRY(rows) {multiply_bytes_##rows##x1, multiply_bytes_##rows##x2},
static row_of_tiles bytes_tiles[ROWS] = {GB_EACH_ROWS(BYTES_ENTRY)};
#endif

#if defined(GB_VEC_HAS_DOT_BF16)
#define FLOATS_TILES(rows)                                                                         \
    TILE(multiply_floats, rows, 1, FLOATS)                                                         \
    TILE(multiply_floats, rows, 2, FLOATS)
GB_EACH_ROWS(FLOATS_TILES)
#define FLOATS_ENTRY(rows) {multiply_floats_##rows##x1, multiply_floats_##rows##x2},
static row_of_tiles floats_tiles[ROWS] = {GB_EACH_ROWS(FLOATS_ENTRY)};
#endif

void GB_ISA_NAME(dot_tile)(const gb_dot_tile *tile)
{
    row_of_tiles *tiles = halves_tiles;
#if defined(GB_VEC_HAS_DOT4)
    if (tile->vnni_factor == 4)
        tiles = bytes_tiles;
#endif
#if defined(GB_VEC_HAS_DOT_BF16)
    if (tile->floats)
        tiles = floats_tiles;
#endif
    tiles[tile->rows - 1][(tile->cols - 1) / VLEN](tile);
}

gb_dot_form GB_ISA_NAME(dot_form)(bool floats)
{
    gb_dot_form form = {.vnni_factor = floats ? 0 : 2,
            .rows = ROWS,
            .cols = VECTORS * VLEN,
            .row_step = 1,
            .group_step = 1};
#if defined(GB_VEC_HAS_DOT4)
    if (!floats && gb_cpu_has_dot())
        form.vnni_factor = 4;
#endif
#if defined(GB_VEC_HAS_DOT_BF16)
    if (floats && gb_cpu_has_dot_bf16())
        form.vnni_factor = 2;
#endif
    return form;
}

void GB_ISA_NAME(dot_begin)(void)
{
}

void GB_ISA_NAME(dot_end)(void)
{
}
