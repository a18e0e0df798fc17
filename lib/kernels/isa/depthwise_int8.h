/* Depthwise convolutions of 8-bit quantized values, with channels along vectors. */
#ifndef GB_KERNELS_ISA_DEPTHWISE_INT8_H
#define GB_KERNELS_ISA_DEPTHWISE_INT8_H

#include "kernels/isa/tile_post_ops.h"

/* Rows (positions) x cols (channels) results:
 *   factors[c] * sum over taps t of (src[r * row + offsets[t] + c] - zero_point)
 *                                   * weights[weight_offsets[t] + c]
 * Sums are exact in 32 bits. The number of taps is even. Of weights and factors whole vectors are
 * read: room for cols rounded up to GB_DEPTHWISE_COLUMNS. */
typedef struct gb_depthwise_int8 {
    const void *src; /* s8 or u8 */
    bool is_signed;
    int zero_point;
    const int64_t *offsets, *weight_offsets;
    int64_t taps, row;
    const int16_t *weights;
    const float *factors;
    int64_t rows, cols;
    float *dst; /* unless there are post-ops; nothing is written beyond cols */
    int64_t dst_row;
    const gb_tile_post_ops *post_ops; /* in place of dst; or NULL */
    int64_t post_row;                 /* of the block that they are of: row 0 of the results */
} gb_depthwise_int8;

typedef void gb_depthwise_int8_fn(const gb_depthwise_int8 *depthwise);

enum { GB_DEPTHWISE_COLUMNS = 32 };

#endif
