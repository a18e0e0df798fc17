/* Views of the operands of a pointwise program in scratch: there may be many, and stacks are
 * small. */
#ifndef GB_KERNELS_CONV_CONV_VIEWS_H
#define GB_KERNELS_CONV_CONV_VIEWS_H

#include "kernels/cpu/scratch.h"
#include "kernels/plan/pointwise.h"

/* Room for one view of each operand. */
static inline gb_scratch gb_conv_add_views(gb_step *step, const gb_pointwise_program *pointwise)
{
    return gb_scratch_add(step, pointwise->n_operands * sizeof(gb_pointwise_view));
}

#endif
