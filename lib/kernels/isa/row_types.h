/* Function types of the row kernels: softmax, norms and reductions over dense or strided f32
 * blocks.
 *
 * A block of rows has element i of row r at x[r * x_stride + i]; a block of columns has element i
 * of column c at x[i * x_stride + c]. `count` is the number of rows or columns, `n` the elements of
 * each; y may be x. Column kernels take at most GB_TILE_ELEMENTS columns.
 */
#ifndef GB_KERNELS_ISA_ROW_TYPES_H
#define GB_KERNELS_ISA_ROW_TYPES_H

#include "kernels/plan/reduce_kind.h"

#include <graphbench/graphbench.h>
#include <stdbool.h>

/* Loads rows x cols elements of f32, bf16, f16 or a type of 8 bits into dense f32. Strides in
 * elements. */
typedef void gb_load_tile_fn(gb_data_type type, const void *src, int64_t row_stride,
        int64_t col_stride, int64_t rows, int64_t cols, float *dst);

enum { GB_SOFTMAX_GROUP = 64 }; /* columns whose exponentials wait together, at most */

typedef struct gb_softmax_block {
    const float *x;
    float *y;
    int64_t x_stride, y_stride, count, n;
    bool log;         /* x - max - ln(sum) instead of exp(x - max) / sum */
    bool inf_as_zero; /* a block of -inf gives 0 */
    float *stats;     /* max + ln(sum), count values; NULL when not wanted */
    float *row; /* room for n elements, of columns for n times GB_SOFTMAX_GROUP: results go past
                         the caches if that can be; NULL: they do not */
} gb_softmax_block;

typedef void gb_softmax_fn(const gb_softmax_block *block); /* softmax_rows, softmax_columns */

typedef struct gb_norm_block {
    const float *x;
    float *y;
    int64_t x_stride, y_stride, count, n;
    float *mean, *variance; /* count values; root mean square norms: mean is 0, variance the mean of
                               squares */
    bool root_mean_square;
    int64_t group; /* columns that share statistics, next to each other; count is a multiple of it
                    */
    /* Application: the n elements are `runs` runs of `run`; gamma of element j of run i of row or
     * column k is gamma[i * affine_run + j * affine_step + k * affine_count], and likewise beta.
     * NULL: 1 and 0. */
    const float *gamma, *beta;
    int64_t runs, run, affine_run, affine_step, affine_count;
    const float *scale; /* 1 / sqrt(variance + epsilon), count values */
} gb_norm_block;

/* Fills mean and variance: norm_statistics_rows, norm_statistics_columns. */
typedef void gb_norm_statistics_fn(const gb_norm_block *block);
/* y = (x - mean) * scale * gamma + beta: norm_apply_rows, norm_apply_columns. */
typedef void gb_norm_apply_fn(const gb_norm_block *block);

/* Folds the elements of each row or column into accumulator[row or column]: reduce_rows,
 * reduce_columns. For up to a few thousand elements of a row or a few dozen rows of columns; longer
 * sums are to be joined from such pieces. */
typedef void gb_reduce_fn(gb_reduce_kind kind, const float *x, int64_t x_stride, int64_t count,
        int64_t n, float *accumulator);

/* dst[r * dst_row + c] = start joined with x[(d * strides[0] + h * strides[1] + w * strides[2]) +
 * r * x_row + c] over d < counts[0], h < counts[1], w < counts[2]: maximum (which passes over NaN)
 * or sum. */
enum {
    GB_POOL_PORTION = 64 /* cells, or sums of cells, that are added up before they join a sum: the
                          * roundings of one sum of thousands of equal cells all go the same way */
};
typedef struct gb_pool_window {
    gb_data_type type; /* f32, bf16 or f16 */
    bool max;
    const void *x;
    int64_t counts[3], strides[3];         /* elements */
    int64_t rows, columns, x_row, dst_row; /* elements */
    float start;
    float *dst;
    uint8_t *
            codes; /* in place of dst: maxima of s8 or u8 as they are, the lowest where there are no cells */
} gb_pool_window;

typedef void gb_pool_window_fn(const gb_pool_window *window);

/* dst[r * cols + c] = x[r * x_row + c] / (by_row[r] * by_col[c]); by_col NULL: 1. dst may be x when
 * x_row is cols. */
typedef void gb_divide_rows_fn(const float *x, int64_t x_row, int64_t rows, int64_t cols,
        const float *by_row, const float *by_col, float *dst);

#endif
