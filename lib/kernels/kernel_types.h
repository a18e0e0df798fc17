/* Function types of the kernels in kernels.def. Each family declares its types in a header of its own, included here. */
#ifndef GB_KERNELS_KERNEL_TYPES_H
#define GB_KERNELS_KERNEL_TYPES_H

#include "kernels/attention_types.h"
#include "kernels/copy_types.h"
#include "kernels/dot.h"
#include "kernels/dropout_types.h"
#include "kernels/expand.h"
#include "kernels/gemm.h"
#include "kernels/pool_backward_types.h"
#include "kernels/resample_types.h"
#include "kernels/row_types.h"
#include "kernels/sweep_types.h"
#include "kernels/tile.h"

#endif
