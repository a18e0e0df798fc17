/* How rows of a product are divided into register tiles. */
#ifndef GB_KERNELS_ISA_TILE_ROWS_H
#define GB_KERNELS_ISA_TILE_ROWS_H

#include <stdint.h>

/* Rows of the next tile when `rest` are left, none more than `most`: the last two share what is
 * left, because a tile of few rows waits for its own multiply-adds. */
static inline int64_t gb_tile_rows(int64_t rest, int64_t most)
{
    if (rest <= most)
        return rest;
    return rest < 2 * most ? (rest + 1) / 2 : most;
}

#endif
