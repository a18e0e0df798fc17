/* The kernel table of one instruction set. */
#include "kernels/isa/vec.h"

#include "kernels/isa/kernels.h"

extern const gb_kernels GB_ISA_NAME(kernels);

const gb_kernels GB_ISA_NAME(kernels) = {
        .isa = GB_ISA_LEVEL,
#define GB_KERNEL(name, type) .name = GB_ISA_NAME(name),
#include "kernels/isa/kernels.def"
#undef GB_KERNEL
};
