/* Function type of the kernels for gradients of pools. */
#ifndef GB_KERNELS_ISA_POOL_BACKWARD_TYPES_H
#define GB_KERNELS_ISA_POOL_BACKWARD_TYPES_H

#include <stdint.h>

/* One row of windows along the width over an image whose positions hold `channels` floats each. The
 * cells of window `first` + i lie at positions base + d * depth_step + h * height_step + w, with
 * w = (first + i) stride + k dilation - pad, if that is inside 0..in-1. */
typedef struct gb_pool_gradient_row {
    int64_t channels;
    const float *diff_dst;                                /* count x channels */
    float *diff_src;                                      /* added to */
    int64_t base, depth, depth_step, height, height_step; /* cells and their distances */
    /* For the maximum: the cell at base, and steps from cell to cell and from position to position,
     * in elements. */
    const float *src;
    int64_t src_depth_step, src_height_step, src_step;
    int64_t first, count, in, kernel, stride, dilation, pad;
    float lowest; /* where the maximum starts: what is not above it does not win */
    /* Mean: the divisor is outer times the cells of a window between low and high. */
    float outer;
    int64_t low, high;
} gb_pool_gradient_row;

typedef void gb_pool_gradient_fn(const gb_pool_gradient_row *row);

#endif
