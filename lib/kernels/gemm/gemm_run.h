/* Running a GEMM plan: the work item that a thread is at. */
#ifndef GB_KERNELS_GEMM_GEMM_RUN_H
#define GB_KERNELS_GEMM_GEMM_RUN_H

#include "kernels/gemm/gemm_plan.h"
#include "kernels/gemm/quantized_matrix.h"

/* Of the integer products of a work item. */
typedef struct gb_gemm_integers {
    int32_t *row_sums, *column_sums;
    int32_t *column_terms, *column_factors; /* of gb_dot_finish, for all columns of the work item */
    float *column_scales, *row_scales;      /* row_scales: where A has them */
} gb_gemm_integers;

/* What b_copy holds: offsets of its first elements and columns; 0 columns: nothing. */
typedef struct gb_gemm_copied {
    int64_t codes, scales, zps, columns;
} gb_gemm_copied;

typedef struct gb_gemm_item {
    const gb_gemm *gemm;
    const gb_step_call *call;
    float *a_copy, *b_copy, *sums, *parameters, *registers;
    float *gate_result; /* what the gate leaves of a tile */
    gb_gemm_copied copied;
    int64_t position[GB_AXES];
    gb_pointwise_view views[GB_POINTWISE_OPERANDS];
    gb_tile_post_ops post_ops;
    float *columns;
    bool in_tiles; /* post_ops hold what the pointwise program does */
    int64_t m_first, m, n_first, n, k_first, k;
    bool follows; /* this block of B has been asked for: while the block of K, or the work item, before
                     it was at work */
    bool leads;         /* the thread's next work item is the next one */
    int64_t first_rows; /* of the first group of rows */
    /* The current block, as it was prepared; VNNI groups stand as floats. */
    const float *a;
    int64_t a_row;
    const void *b; /* its first panel */
    const int64_t *b_offsets;
    int64_t panel_stride;
    gb_gemm_integers integers;
} gb_gemm_item;

void gb_gemm_run(const gb_step_call *call);

/* gemm_block.c: brings A and B of the work item's current block into the form that tiles read;
 * those of its gate have the same A. */
void gb_gemm_prepare_block(gb_gemm_item *u, gb_gemm_item *gate);
/* The first phase where A is shared: its rows, divided among the threads. */
void gb_gemm_share_a(const gb_step_call *call);
/* gemm_groups.c: the same for VNNI groups, and what finishes those of integers once all of K has
 * been there. */
void gb_gemm_prepare_groups(gb_gemm_item *u, gb_gemm_item *gate);
size_t gb_gemm_integer_scratch(const gb_gemm *gemm);
void gb_gemm_integer_start(gb_gemm_item *u, char *scratch);

/* Element of an operand at the work item's position and the first K of the block. */
int64_t gb_gemm_element(const gb_gemm_item *u, const gb_gemm_operand *operand);
/* Does b_copy hold the current block of B? From now on it will. */
bool gb_gemm_is_copied(gb_gemm_item *u);

/* gemm_operand.c */
/* The whole operand at a batch position of the space: rows run along K, columns along its own dim.
 */
gb_quantized_matrix gb_gemm_matrix(const gb_gemm_operand *operand, int ndims, void *const *buffers,
        const int64_t *position, int own_dim);

#endif
