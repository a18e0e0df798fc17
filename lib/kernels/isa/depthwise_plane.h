/* Depthwise convolutions of f32 planes that are read where they lie. */
#ifndef GB_KERNELS_ISA_DEPTHWISE_PLANE_H
#define GB_KERNELS_ISA_DEPTHWISE_PLANE_H

#include "kernels/isa/tile_post_ops.h"

enum { GB_PLANE_ACROSS = 2 }; /* vectors of a tile of columns */

/* Of a plane, whose columns lie next to each other, `rows` result rows from `first` on, and all `cols` columns: at row y,
 * column x the sum over taps (i, j) of
 *   weights[i * weight_row + j * weight_col] *
 *   src[(y * step[0] + i * dilation[0] - pad[0]) * src_row + x * step[1] + j * dilation[1] - pad[1]]
 * Beyond height x width there are zeros; nothing is read there. */
typedef struct gb_depthwise_plane {
    const float *src; /* row 0, column 0 of the plane */
    int64_t src_row, height, width;
    const float *weights;
    int64_t weight_row, weight_col;
    /* From row to row, and from column to column; step[1] is 1 or 2. */
    int64_t kernel[2], step[2], dilation[2], pad[2];
    int64_t inner_first, inner_end; /* result rows that no tap reads beyond the plane at */
    /* Of each tile of columns, NULL where all that its taps read lies in the plane: which source columns do, -1 or 0
     * for each lane, of each tap j, vector of the tile, and of the step[1] vectors that it is made of, in this order. */
    const int32_t *const *masks;
    int64_t first, rows, cols;
    float *dst; /* of result row `first`, unless there are post-ops */
    int64_t dst_row;
    const gb_tile_post_ops *post_ops; /* or NULL */
    int64_t post_first;               /* result row that their block begins with */
} gb_depthwise_plane;

typedef void gb_depthwise_plane_fn(const gb_depthwise_plane *plane);

#endif
