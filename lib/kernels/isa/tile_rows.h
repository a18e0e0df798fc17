/* How rows of a product are divided into register tiles. */
#ifndef GB_KERNELS_ISA_TILE_ROWS_H
#define GB_KERNELS_ISA_TILE_ROWS_H

#include "base/machine.h"
#include "base/memory.h"
#include "kernels/isa/gemm.h"

#include <stdint.h>

/* Rows of the next tile when `rest` are left, none more than `most`: the last two share what is
 * left, because a tile of few rows waits for its own multiply-adds. */
static inline int64_t gb_tile_rows(int64_t rest, int64_t most)
{
    if (rest <= most)
        return rest;
    return rest < 2 * most ? (rest + 1) / 2 : most;
}

/* How many tiles of equal rows follow each other when `rest` rows are left. Their `k` terms of 4 bytes each stay in
 * half of L1, for the tiles of the columns beside them. */
static inline int64_t gb_tiles_alike(int64_t rest, int64_t most, int64_t k)
{
    if (rest < 2 * most)
        return 1;
    const int64_t l1 = (int64_t)(gb_machine_get()->l1_bytes / 2 / sizeof(float));
    const int64_t alike = rest / most - (rest % most != 0), near = l1 / (most * (k + 1));
    return near <= 1 ? 1 : alike < near ? alike : near;
}

/* The same where tiles take as long for all rows up to a multiple of `step`, of which `most` is
 * one. */
static inline int64_t gb_tile_rows_in(int64_t rest, int64_t most, int64_t step)
{
    return step == 1 ? gb_tile_rows(rest, most) : rest < most ? rest : most;
}

/* Rows of tiles, none more than `limit`, that divide `rows` evenly but for the step. */
static inline int64_t gb_even_rows(int64_t rows, int64_t limit, int64_t step)
{
    int64_t tiles = (rows + limit - 1) / limit, each = (rows + tiles - 1) / tiles;
    int64_t whole = (each + step - 1) / step * step;
    return whole < limit ? whole : limit;
}

/* All tiles of f32 or halves of rows x cols results, none larger than `most`: `tile` has A, B, C and the row and column
 * of the first, and moves over them. A copy of it would wait for the parts that were written just now. */
static inline void gb_multiply_tiles(gb_gemm_tile_fn *multiply, const gb_gemm_limits *most,
        gb_gemm_tile *tile, int64_t rows, int64_t cols)
{
    const float *a = tile->a, *b = tile->b, *c_in = tile->c_in;
    const uint16_t *halves = tile->halves;
    float *c_out = tile->c_out;
    const int64_t row = tile->row, col = tile->col;
    for (int64_t r = 0; r < rows; r += tile->tiles * tile->rows) {
        tile->rows = (int)gb_tile_rows(rows - r, most->rows);
        tile->tiles = gb_tiles_alike(rows - r, most->rows, tile->k);
        const bool few = tile->rows <= most->few_rows && !halves;
        const int64_t step = few ? most->few_rows_cols : most->cols;
        tile->a = a + r * tile->a_row;
        tile->row = row + r;
        for (int64_t c = 0; c < cols; c += step) {
            tile->cols = (int)gb_min_i64(step, cols - c);
            if (halves)
                tile->halves = halves + c;
            else
                tile->b = b + c;
            tile->c_in = c_in ? c_in + r * tile->c_in_row + c : NULL;
            tile->c_out = c_out + r * tile->c_out_row + c;
            tile->col = col + c;
            multiply(tile);
            if (tile->next)
                tile->next += tile->tiles * tile->k * tile->next_step;
        }
    }
}

#endif
