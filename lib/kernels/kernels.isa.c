/* The kernel table of one instruction set. */
#include "kernels/vec.h"

#include "kernels/kernels.h"

extern const gb_kernels GB_ISA_NAME(kernels);

const gb_kernels GB_ISA_NAME(kernels) = {
        .isa = GB_ISA_LEVEL,
#define GB_KERNEL(name, type) .name = GB_ISA_NAME(name),
#include "kernels/kernels.def"
#undef GB_KERNEL
};
