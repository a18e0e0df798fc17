/* What the descriptions of attention and of its gradients share. */
#ifndef GB_KERNELS_PLAN_ATTENTION_OPERAND_H
#define GB_KERNELS_PLAN_ATTENTION_OPERAND_H

#include "kernels/plan/attention_problem.h"

/* The matrices of an input of `op` in a space with n_batch batch dims: strides, no use. */
void gb_attention_operand_init(const gb_op *op, uint32_t input, bool transposed, int n_batch,
        gb_attention_operand *operand);
/* The program of a chain that ends in the input; adds its uses. */
gb_status gb_attention_source_init(gb_program *program, const gb_attention_chain *chain,
        uint32_t value, bool along_rows, gb_step *step, gb_attention_operand *operand);
/* GB_NONE: none. */
gb_status gb_attention_scalar_init(
        gb_program *program, gb_step *step, uint32_t value, gb_attention_scalar *scalar);
gb_status gb_attention_causal_init(gb_program *program, gb_step *step,
        const gb_attention_mask *mask, gb_attention_causal *causal);

#endif
