/* Stretches of operands copied side by side, so that element-wise rules run over plain arrays. */
#ifndef GB_REF_BOUNDS_BLOCK_H
#define GB_REF_BOUNDS_BLOCK_H

#include "ref/bounds/ref_op.h"

enum { GB_REF_BLOCK = 256 };

typedef struct gb_ref_block {
    double v[GB_REF_BLOCK], e[GB_REF_BLOCK];
} gb_ref_block;

/* Elements offset, offset + step, ... as operands: gb_ref_get() of each. */
void gb_ref_block_get(const gb_ref_tensor *tensor, int64_t offset, int64_t step, int64_t count,
        gb_ref_block *block);

#endif
