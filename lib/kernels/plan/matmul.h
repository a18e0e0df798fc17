/* MatMul as a product over an iteration space, for lowerings of one product or of several. */
#ifndef GB_KERNELS_PLAN_MATMUL_H
#define GB_KERNELS_PLAN_MATMUL_H

#include "kernels/plan/gemm_problem.h"

/* Inputs of MatMul. */
enum { GB_MATMUL_SRC, GB_MATMUL_WEIGHTS, GB_MATMUL_BIAS };

/* Fills in a zeroed plan for the MatMul that is the group's anchor, up to gb_gemm_orient():
 * pointwise program (scratch operands as in gb_anchor_epilogue), operands and K over the dims of
 * the result, and their roles. Adds the uses of the pointwise program and of parameters to the
 * step. */
gb_status gb_matmul_describe(gb_program *program, const gb_group *group,
        const gb_scratch_operands *scratch_operands, gb_step *step, gb_gemm_problem *gemm,
        uint8_t *roles);

#endif
