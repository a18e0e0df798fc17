/* A batch of matrix products over an iteration space: what is to be computed, whoever computes it.
 *
 * The space is that of the pointwise program which takes the results: one of its dims runs along
 * the rows of C, one along the columns, all others are batch dims. Operands are tensors seen
 * through strides over the space, with one more stride along K.
 *
 * Operands may be quantized values with scales and zero points; where both are of 8 bits, the
 * products are those of integers if `integer` says that they can be. */
#ifndef GB_KERNELS_PLAN_GEMM_PROBLEM_H
#define GB_KERNELS_PLAN_GEMM_PROBLEM_H

#include "kernels/plan/pointwise.h"

/* Scales or zero points of an operand. */
typedef struct gb_gemm_parameter {
    gb_data_type type;                  /* GB_UNDEF: there are none */
    uint32_t slot;                      /* of the step */
    int64_t strides[GB_AXES], k_stride; /* elements, from group to group */
} gb_gemm_parameter;

typedef struct gb_gemm_operand {
    gb_data_type type; /* any but s32, s64 and boolean */
    uint32_t buffer;   /* of the program */
    bool constant;
    int64_t strides[GB_AXES]; /* elements, per dim of the space */
    int64_t k_stride;
    bool in_panels; /* f32 in blocks of PANEL of the last dim: K of A, columns of B; the stride
                       there holds from block to block */
    uint32_t slot;  /* of the step, once a plan has it */
    gb_gemm_parameter scales, zps;
    /* Positions of the operand's own dim (rows of A, columns of B) and along K that share an entry;
     * 0 counts as 1. */
    int64_t group, k_group;
    int64_t reach; /* of quantized values with parameters: the largest |code - zero point|, or
                      INT64_MAX */
} gb_gemm_operand;

typedef struct gb_gemm_problem gb_gemm_problem;
struct gb_gemm_problem {
    gb_pointwise_program pointwise;
    int row_dim, col_dim; /* -1: a single row, or column */
    gb_gemm_operand a, b; /* A does not move along col_dim, B not along row_dim */
    int64_t k;
    bool integer; /* the products are those of quantized values; set by gb_gemm_orient() */
    /* A second product of the same A in the same space, or NULL: tile by tile it runs first, and
     * what its pointwise program writes is the scratch operand that this one reads. Both have
     * columns, neither is of integers. */
    gb_gemm_problem *gate;
};

/* Dims of the space that only A moves along, only B, or both. */
enum { GB_GEMM_ROWS, GB_GEMM_COLUMNS, GB_GEMM_BATCH };

/* For a problem with pointwise program, operands and K over any dims: brings the space into normal
 * form and chooses row_dim and col_dim; A and B may change places, unless there is a gate. From
 * then on the problem is constant. */
void gb_gemm_orient(gb_gemm_problem *problem, const uint8_t *roles);

/* Writes a gb_gemm_problem that has been oriented. */
gb_print_fn gb_gemm_problem_print;

/* Quantized values with parameters, or of a type that is no floating one? */
bool gb_gemm_is_quantized(const gb_gemm_operand *operand);

static inline int64_t gb_gemm_stride(const gb_gemm_operand *operand, int dim)
{
    return dim < 0 ? 0 : operand->strides[dim];
}

#endif
