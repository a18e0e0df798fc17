/* Function types of the kernels in kernels.def. Each family declares its types in a header of its
 * own, included here. */
#ifndef GB_KERNELS_ISA_KERNEL_TYPES_H
#define GB_KERNELS_ISA_KERNEL_TYPES_H

#include "kernels/isa/attention_types.h"
#include "kernels/isa/copy_types.h"
#include "kernels/isa/depthwise_int8.h"
#include "kernels/isa/depthwise_plane.h"
#include "kernels/isa/dequantize.h"
#include "kernels/isa/dot.h"
#include "kernels/isa/dropout_types.h"
#include "kernels/isa/gemm.h"
#include "kernels/isa/pool_backward_types.h"
#include "kernels/isa/resample_types.h"
#include "kernels/isa/row_types.h"
#include "kernels/isa/tile_post_ops.h"
#include "kernels/isa/two_pass_types.h"
#include "kernels/isa/winograd_types.h"
#include "kernels/plan/pointwise.h"

#endif
