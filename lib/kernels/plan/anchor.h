/* What kernels with a bias and an epilogue share. */
#ifndef GB_KERNELS_PLAN_ANCHOR_H
#define GB_KERNELS_PLAN_ANCHOR_H

#include "kernels/plan/pointwise.h"

/* Builds the pointwise program of a group over the dims of the anchor's output 0, and puts the
 * addition of the anchor's input `bias` (if it has one) in front; bias_strides are over the dims of
 * the output. Scratch operands as in gb_pointwise_build_with_scratch(); NULL: none. */
gb_status gb_anchor_epilogue(gb_program *program, const gb_group *group, uint32_t bias,
        const int64_t *bias_strides, const gb_scratch_operands *scratch_operands, gb_step *step,
        gb_pointwise_program *pointwise);

/* Puts (register 0 - shift) * factor in front of the program, in registers 0 and 1. */
gb_status gb_pointwise_scale_first(
        const gb_op *op, float shift, float factor, gb_step *step, gb_pointwise_program *pointwise);

/* Puts the larger of register 0 and `least` in front. */
gb_status gb_pointwise_raise_first(
        const gb_op *op, float least, gb_step *step, gb_pointwise_program *pointwise);

/* The first operand that the program writes, or NULL. */
gb_pointwise_operand *gb_pointwise_result(gb_pointwise_program *pointwise);

#endif
