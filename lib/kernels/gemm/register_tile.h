/* Register tiles of products: how large they are, and one function for each size. */
#ifndef GB_KERNELS_GEMM_REGISTER_POINTWISE_H
#define GB_KERNELS_GEMM_REGISTER_POINTWISE_H

#include "kernels/isa/vec.h"

/* Accumulators, one row of B and one broadcast fill the registers. */
enum { VECTORS = 2, ROWS = VREGS == 32 ? 14 : VLEN == 8 ? 6 : 4 };

/* Terms of K in a run from which on a loop of their own, which does not look up where they lie, is
 * worth its start. */
enum { GB_LEAST_RUN = 4 };

/* X(1) X(2) ... X(ROWS) */
#define GB_ROWS_3(X)  X(1) X(2) X(3)
#define GB_ROWS_4(X)  GB_ROWS_3(X) X(4)
#define GB_ROWS_6(X)  GB_ROWS_4(X) X(5) X(6)
#define GB_ROWS_14(X) GB_ROWS_6(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#if VREGS >= 32
#define GB_EACH_ROWS(X) GB_ROWS_14(X)
#elif VLEN >= 8
#define GB_EACH_ROWS(X) GB_ROWS_6(X)
#else
#define GB_EACH_ROWS(X) GB_ROWS_4(X)
#endif

/* An entry of a table by rows and vectors. */
#define GB_ROWS_ENTRY(rows) {multiply_##rows##x1, multiply_##rows##x2},

#endif
