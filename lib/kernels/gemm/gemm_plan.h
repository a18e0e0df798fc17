/* A batch of matrix products over an iteration space, run in cache-sized blocks on all threads.
 *
 * The space is that of the tile program which takes the results: one of its dims runs along the
 * rows of C, one along the columns, all others are batch dims. Operands are tensors seen through
 * strides over the space, with one more stride along K. Whoever lowers to GEMM fills in the plan
 * and hands it to gb_gemm_add().
 *
 * Operands may be codes with scales and zero points, which are expanded block by block; where both
 * are of 8 bits, the products are those of integers if `integer` says that they can be. */
#ifndef GB_KERNELS_GEMM_GEMM_PLAN_H
#define GB_KERNELS_GEMM_GEMM_PLAN_H

#include "kernels/isa/kernels.h"

typedef enum gb_gemm_access {
    GB_GEMM_IN_PLACE, /* f32 that the tiles can read as it lies */
    GB_GEMM_COPY,     /* each block is copied or expanded before use */
    GB_GEMM_PACKED    /* B only: in panels, as another step or the tensor's own layout has them */
} gb_gemm_access;

/* Scales or zero points of an operand. */
typedef struct gb_gemm_parameter {
    gb_data_type type;                  /* GB_UNDEF: there are none */
    uint32_t slot;                      /* of the step */
    int64_t strides[GB_AXES], k_stride; /* elements, from group to group */
} gb_gemm_parameter;

typedef struct gb_gemm_operand {
    gb_data_type type; /* any but s32, s64 and boolean */
    gb_gemm_access access;
    uint32_t buffer; /* of the program */
    bool constant;
    int64_t strides[GB_AXES]; /* elements, per dim of the space */
    int64_t k_stride;
    bool in_panels; /* f32 in blocks of PANEL of the last dim: K of A, columns of B; the stride
                       there holds from block to block */
    uint32_t slot;
    gb_gemm_parameter scales, zps;
    /* Positions of the operand's own dim (rows of A, columns of B) and along K that share an entry;
     * 0 counts as 1. */
    int64_t group, k_group;
    int64_t reach; /* of codes with parameters: the largest |code - zero point|, or INT64_MAX */
} gb_gemm_operand;

typedef struct gb_gemm gb_gemm;
struct gb_gemm {
    gb_tile_program tile;
    int row_dim, col_dim; /* -1: a single row, or column */
    gb_gemm_operand a, b; /* A does not move along col_dim, B not along row_dim */
    int64_t k;
    bool integer; /* the products are those of codes; set by gb_gemm_orient() */
    /* A second product of the same A in the same space, or NULL: tile by tile it runs first, and
     * what its tile program writes is the local that this one reads. Both have columns, neither is
     * of integers. */
    gb_gemm *gate;

    /* From here on the work of gb_gemm_add(). */
    const gb_kernels *kernels;
    int n_batch_dims;
    uint8_t batch_dims[GB_AXES];
    int64_t batches, m, n;
    int64_t m_block, n_block, k_block, m_blocks, n_blocks, k_blocks;
    int64_t tile_rows, tile_cols, group_rows; /* group: rows that the tile program takes at once */
    bool direct;                              /* tiles are written to the result as they are */
    bool a_along_m;                           /* the copy of A is k x m, not m x k */
    int depth;       /* of integer products: codes in a word; k, k_block count words. Otherwise 0 */
    int64_t terms;   /* K in codes */
    bool row_sums;   /* integer products need the sums of A */
    bool row_scales; /* the scales of A differ from row to row */
    int64_t a_copy_row;
    /* Parts of the scratch, in this order. */
    size_t a_bytes, b_bytes, sum_bytes, parameter_bytes;
    int64_t *a_offsets, *b_offsets, *panel_offsets; /* k_block entries each */
};

/* Dims of the space that only A moves along, only B, or both. */
enum { GB_GEMM_ROWS, GB_GEMM_COLUMNS, GB_GEMM_BATCH };

/* Are both operands codes of 8 bits with the same parameters all along K, A with one zero point,
 * and do the sums fit 32 bits? */
bool gb_gemm_is_integer(const gb_gemm *gemm);

/* For a plan with tile program, operands and K over any dims: brings the space into normal form and
 * chooses row_dim and col_dim; A and B may change places, unless there is a gate. */
void gb_gemm_orient(gb_gemm *gemm, const uint8_t *roles);

/* Plans the blocks and adds the step, which has the uses of the tile programs, and the packing of a
 * constant B. `gemm` and its gate are copied. */
gb_status gb_gemm_add(gb_program *program, gb_step *step, const gb_gemm *gemm);

/* Adds A and B of the products to the buffers that the step reads. */
gb_status gb_gemm_use_operands(gb_step *step, gb_gemm *gemm);
/* Bytes for what the gate leaves and, behind it, the registers of the tile programs. */
size_t gb_gemm_registers(const gb_gemm *gemm);
/* Sets the view of what the gate leaves, whose rows are `row` apart. */
void gb_gemm_set_local(const gb_gemm *gemm, float *local, int64_t row, gb_tile_view *views);

/* Vectors instead of one matrix (gemv_plan.c): rows or columns of C are single, B can be read as it
 * lies. */
bool gb_gemv_fits(const gb_gemm *gemm);
gb_status gb_gemv_add(gb_program *program, gb_step *step, const gb_gemm *gemm);

#endif
