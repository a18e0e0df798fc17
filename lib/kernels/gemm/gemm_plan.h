/* How the CPU runs a batch of matrix products: in cache-sized blocks on all threads, or, of single
 * rows, as products of vectors. */
#ifndef GB_KERNELS_GEMM_GEMM_PLAN_H
#define GB_KERNELS_GEMM_GEMM_PLAN_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/gemm_problem.h"

typedef enum gb_gemm_access {
    GB_GEMM_IN_PLACE, /* f32 that the tiles can read as it lies */
    GB_GEMM_COPY,     /* each block is copied or dequantized before use */
    GB_GEMM_SHARED,   /* A only: all of it is copied first, for all threads */
    /* B only, in panels as another step or the tensor's own layout has them: */
    GB_GEMM_PACKED, /* of f32, or VNNI groups */
    GB_GEMM_HALVES  /* of bf16 or f16, which tiles widen as they read */
} gb_gemm_access;

/* Results of a work item, and K of a block inside; how many of each there are. */
typedef struct gb_gemm_blocks {
    int64_t m_block, n_block, k_block, m_blocks, n_blocks, k_blocks;
} gb_gemm_blocks;

typedef struct gb_gemm gb_gemm;
struct gb_gemm {
    /* Those of the problem, but for a B that another step packs: then b is what it writes. */
    gb_pointwise_program epilogue;
    int row_dim, col_dim;
    gb_gemm_operand a, b;
    gb_gemm *gate;

    const gb_kernels *kernels;
    int n_batch_dims;
    uint8_t batch_dims[GB_AXES];
    int64_t batches, m, n;
    int64_t k;       /* in VNNI groups, where there are such */
    int64_t terms;   /* K in elements */
    int vnni_factor; /* elements in a VNNI group; 0: products are those of f32 */
    bool floats;     /* VNNI groups are of bf16, else of quantized values: then what scales and zero
                        points do follows the products */
    gb_gemm_access a_access, b_access;
    bool a_along_m; /* the copy of A is k x m, not m x k */
    int64_t tile_rows, tile_cols;
    int64_t row_step, k_step; /* of gb_dot_form */
    int64_t group_rows;       /* group: rows that the pointwise program takes at
                                                 once */
    int64_t l1_rows;          /* and so many, where each tile finishes its results itself */
    bool by_panels;   /* each panel of B meets all rows of A, in place of the other way round */
    bool direct;      /* tiles are written to the result as they are */
    bool row_sums;    /* integer products need the sums of A, ... */
    bool column_sums; /* ... or of B */
    bool row_scales;  /* the scales of A differ from row to row */
    gb_gemm_blocks blocks;
    int64_t a_copy_row; /* between rows of the copy */
    /* Parts of the scratch; a gate has its own copy of B, sums and parameters. */
    gb_scratch a_copy, b_copy, sums, parameters;
    gb_scratch gate_result;                         /* what the gate leaves of a tile */
    gb_scratch registers;                           /* of both pointwise programs */
    gb_scratch columns;                             /* what post-ops in tiles need of each column */
    int64_t column_floats;                          /* 0: post-ops run over groups of tiles */
    gb_scratch integers;                            /* of integer products */
    int64_t *a_offsets, *b_offsets, *panel_offsets; /* k_block entries each */
};

/* Plans and adds the step, which has the uses of the pointwise programs, and the packing of a
 * constant B. */
gb_status gb_gemm_add(gb_program *program, gb_step *step, const gb_gemm_problem *problem);

/* The part of a plan that sizes decide, also that of a gate: batches, M, N and K. */
gb_gemm gb_gemm_begin(const gb_gemm_problem *problem);
/* Adds A and B of the products to the buffers that the step reads. */
gb_status gb_gemm_use_operands(gb_step *step, gb_gemm *gemm);
/* Adds the parts `local` and `registers` of a product and its gate. */
void gb_gemm_add_registers(gb_step *step, gb_gemm *gemm);
/* Sets the view of what the gate leaves, whose rows are `row` apart. */
void gb_gemm_set_gate_view(
        const gb_gemm *gemm, float *local, int64_t row, gb_pointwise_view *views);

/* Vectors instead of one matrix (gemv_plan.c): rows or columns of C are single, B can be read as it
 * lies. */
bool gb_gemv_fits(const gb_gemm_problem *problem);
gb_status gb_gemv_add(gb_program *program, gb_step *step, const gb_gemm_problem *problem);

#endif
