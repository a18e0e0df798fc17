/* Tensors that belong to some axes of another one, as statistics and affine parameters of norms do:
 * as many elements, in row-major order, perhaps under other dims. */
#ifndef GB_KERNELS_PLAN_PER_AXIS_H
#define GB_KERNELS_PLAN_PER_AXIS_H

#include <graphbench/graphbench.h>
#include <stdbool.h>

/* Sets strides[first..end-1], over axes of `src`, of a tensor with as many elements as these axes.
 * False when no strides can express it: other dims, with gaps between them. */
bool gb_per_axis_strides(const gb_logical_tensor *src, int first, int end,
        const gb_logical_tensor *tensor, int64_t *strides);
/* Offset of an element by its number in row-major order. */
int64_t gb_per_axis_offset(const gb_logical_tensor *tensor, int64_t index);

#endif
