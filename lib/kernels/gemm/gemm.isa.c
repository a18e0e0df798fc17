/* The GEMM micro-kernel: a tile of C stays in registers while K runs by. */
#include "kernels/gemm/register_tile.h"

/* The line will be written soon. */
static inline void vf_prefetch(const float *p)
{
    __builtin_prefetch(p, 1);
}

GB_INLINE void load_sums(
        const gb_gemm_tile *tile, const int rows, const int vectors, vf sums[][VECTORS])
{
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[m][v] =
                    tile->c_in ? vf_load(tile->c_in + m * tile->c_in_row + v * VLEN) : vf_zero();
}

GB_INLINE void store_sums(
        const gb_gemm_tile *tile, const int rows, const int vectors, vf sums[][VECTORS])
{
    const int last = tile->cols - (vectors - 1) * VLEN;
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++) {
        float *c = tile->c_out + m * tile->c_out_row;
#pragma GCC unroll 2
        for (int v = 0; v + 1 < vectors; v++)
            vf_store(c + v * VLEN, sums[m][v]);
        if (last == VLEN)
            vf_store(c + (vectors - 1) * VLEN, sums[m][vectors - 1]);
        else
            vf_store_n(c + (vectors - 1) * VLEN, sums[m][vectors - 1], last);
    }
}

GB_INLINE void multiply(const gb_gemm_tile *tile, const int rows, const int vectors)
{
    vf sums[ROWS][VECTORS];
#pragma GCC unroll 14
    for (int m = 0; m < rows; m++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            vf_prefetch(tile->c_out + m * tile->c_out_row + v * VLEN);
    load_sums(tile, rows, vectors, sums);
    const int64_t row = tile->a_row, k_end = tile->k;
    const int64_t *a_offsets = tile->a_offsets, *b_offsets = tile->b_offsets;
    const float *a_base = tile->a, *b_base = tile->b;
    for (int64_t k = 0; k < k_end; k++) {
        const float *a = a_base + a_offsets[k], *b = b_base + b_offsets[k];
        vf b_row[VECTORS];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            b_row[v] = vf_load(b + v * VLEN);
#pragma GCC unroll 14
        for (int m = 0; m < rows; m++) {
            /* Three rows per base register keep the addresses of all rows in registers. */
            vf factor = vf_set1(a[m % 3 * row]);
            if (m % 3 == 2)
                a += 3 * row;
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sums[m][v] = vf_fma(factor, b_row[v], sums[m][v]);
        }
    }
    store_sums(tile, rows, vectors, sums);
}

#define TILE(rows)                                                                                 \
    static void multiply_##rows##x1(const gb_gemm_tile *tile)                                      \
    {                                                                                              \
        multiply(tile, rows, 1);                                                                   \
    }                                                                                              \
    static void multiply_##rows##x2(const gb_gemm_tile *tile)                                      \
    {                                                                                              \
        multiply(tile, rows, 2);                                                                   \
    }
GB_EACH_ROWS(TILE)

static gb_gemm_tile_fn *const tiles[ROWS][VECTORS] = {GB_EACH_ROWS(GB_ROWS_ENTRY)};

void GB_ISA_NAME(gemm_tile)(const gb_gemm_tile *tile)
{
    tiles[tile->rows - 1][(tile->cols - 1) / VLEN](tile);
}

gb_gemm_limits GB_ISA_NAME(gemm_limits)(void)
{
    return (gb_gemm_limits){.rows = ROWS, .cols = VECTORS * VLEN};
}
