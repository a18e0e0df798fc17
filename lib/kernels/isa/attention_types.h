/* Function types of the attention kernels: what happens to rows of scores and of results between
 * two products. Element (r, c) of a block lies at data[r * row_stride + c]. */
#ifndef GB_KERNELS_ISA_ATTENTION_TYPES_H
#define GB_KERNELS_ISA_ATTENTION_TYPES_H

#include <stdint.h>

/* Scores x of some keys, the running maximum and sum of each row, and the sums of values that the
 * keys before them gave. A maximum starts at -FLT_MAX: scores of -inf then weigh nothing. */
typedef struct gb_attention_rows {
    float *scores;
    int64_t row_stride, rows, cols;
    float *max, *sum;
    float *acc; /* NULL: none yet */
    int64_t acc_stride, acc_cols;
} gb_attention_rows;

/* Joins the maximum; scores become exp(x - max), and join the sum; what the sums of values and of
 * weights hold is scaled to the new maximum. */
typedef void gb_attention_softmax_fn(const gb_attention_rows *rows);
/* Scores become exp(x - max[r]) * factor[r]: of finished rows. */
typedef void gb_attention_weights_fn(const gb_attention_rows *rows, const float *factor);

/* Numbers as sums of two bf16: high[i] + low[i] is x[i] but for 2^-17 of it. */
typedef void gb_attention_split_fn(const float *x, int64_t n, uint16_t *high, uint16_t *low);
/* x[i] * factor as the nearest bf16. */
typedef void gb_attention_round_fn(const float *x, int64_t n, float factor, uint16_t *rounded);

/* Weights x >= 0 as round(x * factor / divisor), at most `most`; codes may be the memory of x. */
typedef void gb_attention_codes_fn(
        const float *x, int64_t n, float factor, float divisor, float most, uint8_t *codes);

/* dst[r] = x[r] * a[r] + y[r] * b[r], row by row; a and b NULL: 1, y NULL: 0. dst may be x. */
typedef struct gb_attention_blend {
    int64_t rows, cols;
    float *dst;
    const float *x, *y;
    int64_t dst_stride, x_stride, y_stride;
    const float *a, *b;
} gb_attention_blend;

typedef void gb_attention_blend_fn(const gb_attention_blend *blend);

/* sums[r] = sum of x y over row r. */
typedef void gb_attention_row_products_fn(const float *x, const float *y, int64_t row_stride,
        int64_t rows, int64_t cols, float *sums);

#endif
