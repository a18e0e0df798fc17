/* Work items of kernels that reduce: a block of up to `block` indices of the last kept dim, at one
 * index of each of the others. */
#ifndef GB_KERNELS_ROWWISE_KEPT_BLOCKS_H
#define GB_KERNELS_ROWWISE_KEPT_BLOCKS_H

#include "base/memory.h"
#include "kernels/plan/reduced_space.h"

static inline int64_t gb_kept_blocks(const gb_reduced_space *space, int64_t block)
{
    int64_t items = gb_product(space->n_kept, space->kept, space->dims);
    int64_t all = gb_reduced_space_size(space, gb_last_kept(space));
    return items ? items / all * gb_div_up(all, block) : 0;
}

/* Sets the kept indices of a work item's first element; returns its indices of the last kept dim. */
static inline int64_t gb_kept_block(
        const gb_reduced_space *space, int64_t block, int64_t item, int64_t *position)
{
    int last = gb_last_kept(space);
    if (last < 0)
        return 1;
    int64_t all = space->dims[last], blocks = gb_div_up(all, block);
    gb_position_set(space->n_kept - 1, space->kept, space->dims, item / blocks, position);
    position[last] = item % blocks * block;
    return gb_min_i64(block, all - position[last]);
}

#endif
