/* From op kinds to instructions of pointwise programs. */
#ifndef GB_KERNELS_PLAN_POINTWISE_RULES_H
#define GB_KERNELS_PLAN_POINTWISE_RULES_H

#include "kernels/plan/pointwise.h"

/* `other` is for the second form of the op: mode gelu_tanh, or use_dst = true. Sources are the op's
 * inputs in order. */
typedef struct gb_pointwise_rule {
    uint8_t sources;
    uint8_t opcode, other, integer;
    gb_op_attr alpha, beta;
} gb_pointwise_rule;

/* NULL when the op is not a single instruction. */
const gb_pointwise_rule *gb_pointwise_rule_of(gb_op_kind kind);
/* The op code of the form that the op's attributes ask for. */
uint8_t gb_pointwise_opcode_of(const gb_op *op, const gb_pointwise_rule *rule);

/* GenIndex, Dropout (pointwise_positional.c). */
bool gb_pointwise_is_positional(gb_op_kind kind);

/* Is the op a post-op: can a pointwise program compute it? */
bool gb_pointwise_supports(const gb_op *op, const char **reason);

#endif
