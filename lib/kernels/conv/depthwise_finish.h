/* What becomes of the sums of depthwise tiles that have post-ops: one function for each size, whatever form of a tile the
 * sums come from. */
#ifndef GB_KERNELS_CONV_DEPTHWISE_FINISH_H
#define GB_KERNELS_CONV_DEPTHWISE_FINISH_H

#include "kernels/gemm/register_sums.h"
#include "kernels/isa/vec.h"

enum { MOST_DEPTHWISE_ROWS = VREGS == 32 ? 8 : 4 };

/* Of 1, 2, 4 or (VREGS 32) 8 rows of 1 or 2 vectors, or 1 row of MOST_VECTORS; rows of sums are MOST_VECTORS apart. Defined
 * in depthwise.isa.c. */
void GB_ISA_NAME(depthwise_finish)(
        const gb_register_sums *place, int rows, int vectors, const vf *sums);

GB_INLINE void gb_finish_depthwise(
        const gb_register_sums *place, const int rows, const int vectors, vf sums[][MOST_VECTORS])
{
    vf kept[MOST_DEPTHWISE_ROWS *
            MOST_VECTORS]; /* a copy, so that sums may stay in registers elsewhere */
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            kept[i * MOST_VECTORS + v] = sums[i][v];
    GB_ISA_NAME(depthwise_finish)(place, rows, vectors, kept);
}

#endif
