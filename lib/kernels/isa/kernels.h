/* The kernels of one instruction set as a table of functions, filled once per ISA from kernels.def.
 * Kernels take pointers, sizes and strides and know no graph. */
#ifndef GB_KERNELS_ISA_KERNELS_H
#define GB_KERNELS_ISA_KERNELS_H

#include "base/cpu.h"
#include "kernels/isa/kernel_types.h"

/* kernels.def: GB_KERNEL(name, type) per line; `type` is a function type, the function is gb_<name>_<isa>. */
typedef struct gb_kernels {
    gb_isa isa;
#define GB_KERNEL(name, type) type *name;
#include "kernels/isa/kernels.def"
#undef GB_KERNEL
} gb_kernels;

/* The table for this machine and GB_MAX_ISA, chosen at the first call of gb_engine_create() or of this. */
const gb_kernels *gb_kernels_get(void);
/* The table of one level, NULL when the machine (or GB_MAX_ISA) does not have it. For tests. */
const gb_kernels *gb_kernels_of(gb_isa isa);

#endif
