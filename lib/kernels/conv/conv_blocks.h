/* The blocks of result positions and channels that a convolution works on at once: candidates and
 * what they cost. */
#ifndef GB_KERNELS_CONV_CONV_BLOCKS_H
#define GB_KERNELS_CONV_CONV_BLOCKS_H

#include "kernels/conv/conv_plan.h"

typedef struct gb_conv_blocks {
    int64_t positions[GB_AXES], channels; /* of a work item: result positions, output channels */
    int64_t copied;                       /* channels in the copy of the source */
    double cost; /* cycles of the busiest thread, per input channel; < 0: not known */
} gb_conv_blocks;

/* The copy of the source that a work item of such blocks reads. */
typedef struct gb_conv_layout {
    int64_t extent[GB_AXES], stride[GB_AXES], channel_stride;
    double floats; /* more than 1e12 where it is to be refused; then the rest says nothing */
} gb_conv_layout;

gb_conv_layout gb_conv_lay_out(const gb_conv_plan *plan, const gb_conv_blocks *blocks);

/* The cheapest blocks of an implicit product (tile_rows: positions of a tile), and of a depthwise
 * convolution. Axes, sides and depth are planned. */
gb_conv_blocks gb_conv_product_blocks(const gb_conv_plan *plan, int64_t tile_rows, int threads);
gb_conv_blocks gb_conv_depthwise_blocks(const gb_conv_plan *plan, int64_t tile_rows, int threads);

/* Sets the blocks of the plan, and all that follows from them. GB_OUT_OF_MEMORY when the copy is
 * too large. */
gb_status gb_conv_set_blocks(gb_conv_plan *plan, const gb_conv_blocks *blocks);

#endif
