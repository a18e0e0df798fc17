/* What kernels with a bias and an epilogue share. */
#ifndef GB_KERNELS_PLAN_ANCHOR_H
#define GB_KERNELS_PLAN_ANCHOR_H

#include "kernels/plan/tile.h"

/* Builds the tile program of a group over the dims of the anchor's output 0, and puts the addition
 * of the anchor's input `bias` (if it has one) in front; bias_strides are over the dims of the
 * output. Locals as in gb_tile_build_local(); NULL: none. */
gb_status gb_anchor_tile(gb_program *program, const gb_group *group, uint32_t bias,
        const int64_t *bias_strides, const gb_tile_locals *locals, gb_step *step,
        gb_tile_program *tile);

/* Puts (register 0 - shift) * factor in front of the program, in registers 0 and 1. */
gb_status gb_tile_scale_first(
        const gb_op *op, float shift, float factor, gb_step *step, gb_tile_program *tile);

/* The first operand that the program writes, or NULL. */
gb_tile_operand *gb_tile_result(gb_tile_program *tile);

#endif
