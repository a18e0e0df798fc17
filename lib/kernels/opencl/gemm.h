/* What kernels of cl/gemm.cl share. */
#ifndef GB_KERNELS_OPENCL_GEMM_H
#define GB_KERNELS_OPENCL_GEMM_H

#include "kernels/opencl/lower.h"
#include "kernels/plan/gemm_problem.h"

/* The space of results: tiles of rows and columns (-1: a single one), all other dims as batch. */
typedef struct gb_cl_tile_space {
    int ndims;
    const int64_t *dims;
    int row_dim, col_dim;
    int64_t k;
    /* Of convolutions: dims[col_dim] (or of the rows) are the channels of one group, and the number
     * of the group, `group` in the text, is a batch dim. 0: there are none. */
    int64_t groups;
    bool groups_in_rows;
} gb_cl_tile_space;

/* GB_ROWS, GB_COLUMNS, GB_K, GB_BATCH, GB_POST (of a function gb_post over the space) and the sizes
 * of a tile; sets the sizes of the launch. */
void gb_cl_print_tile_space(gb_cl_writer *w, const gb_cl_tile_space *space);

/* Adds the step of a product whose uses but those of its operands are known. */
gb_status gb_cl_add_product(gb_cl_writer *w, gb_gemm_problem *gemm);

#endif
