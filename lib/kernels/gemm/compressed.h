/* Compressed matrices: codes with scales and zero points in groups, expanded block by block. Plain
 * floating matrices are those without parameters. */
#ifndef GB_KERNELS_GEMM_COMPRESSED_H
#define GB_KERNELS_GEMM_COMPRESSED_H

#include "kernels/isa/kernels.h"

/* Entry (r, c) is element first + r * row_stride + c * col_stride of `data`, of any type but
 * boolean (4-bit elements are numbered by halves of bytes). */
typedef struct gb_entries {
    gb_data_type type; /* GB_UNDEF: there are none */
    const void *data;
    int64_t first, row_stride, col_stride;
} gb_entries;

/* Number (r, c) is (codes(r, c) - zps(r / row_group, c / col_group)) * scales(the same). */
typedef struct gb_compressed {
    gb_entries codes, scales, zps;
    int64_t row_group, col_group; /* at least 1 */
} gb_compressed;

typedef struct gb_block {
    int64_t row, rows, col, cols;
} gb_block;

/* Floats of scratch that expanding a block needs. */
static inline int64_t gb_compressed_scratch(int64_t rows, int64_t cols)
{
    return 2 * (rows > cols ? rows : cols);
}

/* Floats of scratch that gb_compressed_gemv() needs for so many columns. */
static inline int64_t gb_compressed_gemv_scratch(int64_t cols)
{
    return 2 * (4 * cols + 512);
}

gb_compressed gb_compressed_transposed(const gb_compressed *matrix);

/* Positions first .. first + count of one side at group `across` of the other, as f32; those of a
 * group share an entry. */
void gb_entries_fetch(const gb_kernels *kernels, const gb_entries *entries, bool along_rows,
        int64_t across, int64_t first, int64_t count, int64_t group, float *dst);

/* Writes the numbers of a block as f32: dst, dst_row and panel_stride as in gb_expand. */
void gb_compressed_expand(const gb_kernels *kernels, const gb_compressed *matrix,
        const gb_block *block, float *dst, int64_t dst_row, int64_t panel_stride, float *scratch);

/* y[c] = sum over the rows r of the block of x[r] times number (r, c), where x[0] belongs to the
 * first of them; the codes lie one after another along rows or columns. A result does not depend on
 * the columns of the block if that begins at a multiple of GB_COMPRESSED_COLUMNS. */
enum { GB_COMPRESSED_COLUMNS = 128 };
void gb_compressed_gemv(const gb_kernels *kernels, const gb_compressed *matrix,
        const gb_block *block, const float *x, float *y, float *scratch);

#endif
