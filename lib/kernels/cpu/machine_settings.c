/* What programs say of the machine that plans are made for. */
#include "base/machine.h"
#include "base/status.h"

#include <graphbench/graphbench_tools.h>

gb_status gb_set_caches(const char *caches)
{
    if (gb_machine_replace(caches))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS,
            "gb_set_caches: \"%.64s\" is not L1:L2:L3 with at least 4096 bytes of L1 and L2",
            caches);
}

void gb_get_caches(size_t bytes[3])
{
    gb_machine_caches(bytes);
}

gb_status gb_set_bf16_products(gb_bf16_products products)
{
    if ((unsigned)products > GB_BF16_PRODUCTS_F32)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_set_bf16_products: %d is none of gb_bf16_products",
                (int)products);
    if (gb_machine_choose_bf16(products))
        return GB_SUCCESS;
    return gb_fail(GB_UNIMPLEMENTED, "the processor has no instructions for products of bf16, or "
                                     "GB_MAX_ISA leaves them out");
}
