/* Quantized matrices: quantized values with scales and zero points in groups, dequantized block by
 * block. Plain floating matrices are those without parameters. */
#ifndef GB_KERNELS_GEMM_QUANTIZED_MATRIX_H
#define GB_KERNELS_GEMM_QUANTIZED_MATRIX_H

#include "kernels/isa/kernels.h"

/* Entry (r, c) is element first + r * row_stride + c * col_stride of `data`, of any type but
 * boolean (4-bit elements are numbered by halves of bytes). */
typedef struct gb_entries {
    gb_data_type type; /* GB_UNDEF: there are none */
    const void *data;
    int64_t first, row_stride, col_stride;
} gb_entries;

/* Number (r, c) is (codes(r, c) - zps(r / row_group, c / col_group)) * scales(the same). */
typedef struct gb_quantized_matrix {
    gb_entries codes, scales, zps;
    int64_t row_group, col_group; /* at least 1 */
} gb_quantized_matrix;

typedef struct gb_block {
    int64_t row, rows, col, cols;
} gb_block;

/* Floats of scratch that dequantizing a block needs. */
static inline int64_t gb_quantized_matrix_scratch(int64_t rows, int64_t cols)
{
    return 2 * (rows > cols ? rows : cols);
}

/* Floats of scratch that gb_quantized_matrix_gemv() needs for so many columns. */
static inline int64_t gb_quantized_matrix_gemv_scratch(int64_t cols)
{
    return 2 * (4 * cols + 512);
}

gb_quantized_matrix gb_quantized_matrix_transposed(const gb_quantized_matrix *matrix);

/* Positions first .. first + count of one side at group `across` of the other, as f32; those of a
 * group share an entry. */
void gb_entries_fetch(const gb_kernels *kernels, const gb_entries *entries, bool along_rows,
        int64_t across, int64_t first, int64_t count, int64_t group, float *dst);

/* Writes the numbers of a block as f32: dst, dst_row and panel_stride as in gb_dequantize. */
void gb_quantized_matrix_dequantize(const gb_kernels *kernels, const gb_quantized_matrix *matrix,
        const gb_block *block, float *dst, int64_t dst_row, int64_t panel_stride, float *scratch);

/* y[c] = sum over the rows r of the block of x[r] times number (r, c), where x[0] belongs to the
 * first of them; the quantized values lie one after another along rows or columns. A result does
 * not depend on the columns of the block if that begins at a multiple of
 * GB_QUANTIZED_MATRIX_COLUMNS. */
enum { GB_QUANTIZED_MATRIX_COLUMNS = 128 };
void gb_quantized_matrix_gemv(const gb_kernels *kernels, const gb_quantized_matrix *matrix,
        const gb_block *block, const float *x, float *y, float *scratch);

#endif
