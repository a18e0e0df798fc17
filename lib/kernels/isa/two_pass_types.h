/* Function types of the two-pass kernels: sums over a part of the axes, and formulas that apply
 * them.
 *
 * A block is rows x cols of f32 with contiguous columns. Its sums and the values that stand for the
 * axes that are kept ("per-row parameters") run over the columns when `columns` is set, else over
 * the rows.
 */
#ifndef GB_KERNELS_ISA_TWO_PASS_TYPES_H
#define GB_KERNELS_ISA_TWO_PASS_TYPES_H

#include <graphbench/graphbench.h>
#include <stdbool.h>

enum { GB_TWO_PASS_INPUTS = 3, GB_TWO_PASS_VALUES = 5, GB_TWO_PASS_SUMS = 2 };

/* What is summed, and what is computed of the sums. in: the inputs, k: the per-row parameters. */
typedef enum gb_two_pass_kind {
    GB_TWO_PASS_SOFTMAX,         /* s = sum of in0 in1; in1 (in0 - k0) */
    GB_TWO_PASS_LOG_SOFTMAX,     /* s = sum of in0; in0 - exp(in1) k0 */
    GB_TWO_PASS_BATCH_NORM,      /* s = sum of in0, of (in0 - mean)^2; (in0 - k0) k1 + k2 */
    GB_TWO_PASS_BATCH_NORM_RELU, /* the same; max(0, (in0 - k0) k1 + k2) */
    /* x = (in0 - k0) k1, in1 is 0 where in2 <= 0: s = sum of in1, of in1 x; k2 (in1 - k3 - x k4) */
    GB_TWO_PASS_BATCH_NORM_BACKWARD,
    /* x = (in0 - k0) k1, h = in1 in2 (in2 NULL: in1): s = sum of h, sum of h x;
     * k1 (h - k2 - x k3), and across the block the sums of in1 x and of in1 */
    GB_TWO_PASS_LAYER_NORM_BACKWARD,
    /* s = sum of min(in0, 0) in1; with the sum already in0 > 0 ? in1 : in1 k0 */
    GB_TWO_PASS_PRELU_BACKWARD,
    GB_TWO_PASS_SCALE /* no sum; in0 k0, 0 where in1 <= 0 (in1 NULL: in0 k0) */
} gb_two_pass_kind;

typedef struct gb_two_pass_block {
    int64_t rows, cols;
    bool columns;
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

/* Stores rows x cols dense f32 as f32, bf16 or f16; twin of gb_load_tile_fn. */
typedef void gb_store_tile_fn(gb_data_type type, const float *src, int64_t rows, int64_t cols,
        void *dst, int64_t row_stride, int64_t col_stride);

#endif
