/* Function types of the two-pass kernels: sums over a part of the axes, and formulas that apply
 * them.
 *
 * A block is rows x cols of f32 with contiguous columns. Its sums and the values that stand for the
 * axes that are kept ("per-row parameters") run over the columns when `columns` is set, else over
 * the rows.
 */
#ifndef GB_KERNELS_ISA_TWO_PASS_TYPES_H
#define GB_KERNELS_ISA_TWO_PASS_TYPES_H

#include "kernels/plan/two_pass_kind.h"

#include <graphbench/graphbench.h>
#include <stdbool.h>

typedef struct gb_two_pass_block {
    int64_t rows, cols;
    bool columns;
    bool far; /* inputs come from memory */
    const float *in[GB_TWO_PASS_INPUTS];
    int64_t in_stride[GB_TWO_PASS_INPUTS]; /* from row to row */
    float *out;
    int64_t out_stride;
    const float *params[GB_TWO_PASS_VALUES];
    float *sum[GB_TWO_PASS_SUMS];
    float *cross
            [GB_TWO_PASS_SUMS]; /* sums in the other direction, added to; NULL when not wanted */
    int64_t before;             /* elements in the sums already */
} gb_two_pass_block;

/* Adds the block to the sums: two_pass_reduce. Computes its result: two_pass_apply. */
typedef void gb_two_pass_fn(gb_two_pass_kind kind, const gb_two_pass_block *block);

/* Gradients of softmax or of its logarithm: in[0] those of the results, in[1] the results. All are of one floating type.
 * `count` rows of n elements, or columns, at most GB_TILE_ELEMENTS of them. Steps in elements: from row to row, or from
 * one element of a column to the next. */
typedef struct gb_softmax_gradient_block {
    gb_two_pass_kind kind;
    gb_data_type type;
    int64_t count, n;
    const char *in[2];
    char *out;
    int64_t in_step[2], out_step;
} gb_softmax_gradient_block;

/* softmax_gradient_rows, softmax_gradient_columns */
typedef void gb_softmax_gradient_fn(const gb_softmax_gradient_block *block);

/* Stores rows x cols dense f32 as f32, bf16 or f16; twin of gb_load_tile_fn. */
typedef void gb_store_tile_fn(gb_data_type type, const float *src, int64_t rows, int64_t cols,
        void *dst, int64_t row_stride, int64_t col_stride);

#endif
