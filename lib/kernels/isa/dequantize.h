/* Quantized blocks: quantized values of few bits as the f32 numbers they stand for. */
#ifndef GB_KERNELS_ISA_DEQUANTIZE_H
#define GB_KERNELS_ISA_DEQUANTIZE_H

#include <graphbench/graphbench.h>

/* dst(r, c) = (code(r, c) - zero point) * scale for quantized values of any type but boolean, each
 * step rounded in f32. Code (r, c) is element first + r * row_stride + c * col_stride of the array
 * `codes` (4-bit elements are numbered by halves of bytes).
 *
 * A result is dst[r * dst_row + c]; with a panel_stride other than 0 it lies in panels of
 * GB_GEMM_PANEL columns, dst[c / PANEL * panel_stride + r * dst_row + c % PANEL], with zeros in the
 * columns up to the end of the last panel.
 *
 * Parameters have one entry per column, or per row; whoever has groups along the other side makes
 * one call per group. Any thread may expand any block. */
typedef struct gb_dequantize {
    gb_data_type type;
    const void *codes;
    int64_t first, rows, cols, row_stride, col_stride;
    const float *scales, *zps; /* NULL: 1 and 0 */
    bool by_row;               /* entry r instead of entry c */
    float *dst;
    int64_t dst_row, panel_stride;
} gb_dequantize;

typedef void gb_dequantize_fn(const gb_dequantize *dequantize);

/* Vector times quantized matrix: y[n] (+)= sum over k of x[k] (code(k, n) - zp) * scale.
 *
 * Without a group, parameters have one entry per column. With a k_group, quantized values lie along
 * K, and code (k, n) has entry k / k_group * parameter_row + n. With a group, they lie along N, and
 * it has entry k * parameter_row + (n + phase) / group of both lists, neither of which is NULL.
 */
typedef struct gb_dequantize_gemv {
    gb_data_type type;
    const void *codes;
    int64_t first, k, n, k_stride, n_stride; /* one of the strides is 1 */
    const float *scales, *zps;               /* NULL: 1 and 0 */
    int64_t k_group, group, phase, parameter_row;
    const float *x;
    float *y;
    bool add;
} gb_dequantize_gemv;

typedef void gb_dequantize_gemv_fn(const gb_dequantize_gemv *gemv);

#endif
