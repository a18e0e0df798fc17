/* Which lowering serves which op kind: lowerings.def. */
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"

static const gb_lowering *const table[GB_OP_LAST] = {
#define GB_LOWERING(kind, lowering) [GB_OP_##kind] = &gb_lowering_##lowering,
#include "kernels/cpu/lowerings.def"
};

const gb_lowering *gb_lowering_get(gb_op_kind kind)
{
    return (unsigned)kind < GB_OP_LAST ? table[kind] : NULL;
}

static const gb_region_lowering *const regions[] = {
#define GB_REGION_LOWERING(lowering) &gb_lowering_##lowering,
#include "kernels/cpu/lowerings.def"
};

const gb_region_lowering *gb_region_lowering_at(uint32_t index)
{
    return index < sizeof regions / sizeof *regions ? regions[index] : NULL;
}

const gb_region_lowering *gb_region_lowering_of(const gb_region *region)
{
    uint32_t i = 0;
    while (regions[i]->region != region)
        i++;
    return regions[i];
}
