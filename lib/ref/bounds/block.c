/* Copying stretches of operands. */
#include "ref/bounds/block.h"

#include "ref/bounds/clones.h"
#include <math.h>
#include <string.h>

static void block_copy(const double *from, int64_t step, int64_t count, double *to)
{
    if (step == 1) {
        memcpy(to, from, (size_t)count * sizeof(double));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i * step];
}

/* A subnormal may be read as zero. */
GB_REF_CLONES static void allow_flush(int64_t count, const double *restrict v, double *restrict e)
{
    for (int64_t i = 0; i < count; i++) {
        double size = fabs(v[i]);
        e[i] = size < GB_REF_ETA && size > e[i] ? size : e[i];
    }
}

void gb_ref_block_get(const gb_ref_tensor *tensor, int64_t offset, int64_t step, int64_t count,
        gb_ref_block *block)
{
    block_copy(tensor->value + offset, step, count, block->v);
    if (tensor->bound)
        block_copy(tensor->bound + offset, step, count, block->e);
    else
        memset(block->e, 0, (size_t)count * sizeof(double));
    allow_flush(count, block->v, block->e);
}
