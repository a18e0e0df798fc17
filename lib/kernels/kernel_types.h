/* Function types of the kernels in kernels.def. Each family declares its types in a header of its own, included here. */
#ifndef GB_KERNELS_KERNEL_TYPES_H
#define GB_KERNELS_KERNEL_TYPES_H

#include "kernels/tile.h"

#endif
