/* Convolution as an implicit product: positions x channels of the result, K over taps and input
 * channels, read from padded copies of small blocks of the source.
 *
 * Positions run along the tile axis inside a tile (broadcast, or along the vector when there are
 * few output channels: `wide`), output channels along the other side. The order of K is: blocks of
 * input channels, taps of the skip axis, all other taps, channels of the block. */
#ifndef GB_KERNELS_CONV_PLAN_H
#define GB_KERNELS_CONV_PLAN_H

#include "kernels/kernels.h"

/* The batch, or a spatial axis. Result position o reads source positions o * stride + tap *
 * dilation
 * - pad. */
typedef struct gb_conv_axis {
    int64_t in, out, kernel, stride, dilation, pad;
    int64_t src_stride, tap_stride; /* elements of the source and of the weights */
    int dim;                        /* of the result */

    /* Planned. The copy holds every step-th source position: in it, strides are stride / step. */
    int64_t step, stride_in_copy, dilation_in_copy;
    /* When positions go along vectors and have a stride, the copy of the tile axis is ordered by
     * position modulo stride: `phases` runs one after another. */
    int64_t phases;
    int64_t block, blocks; /* result positions of a unit */
    int64_t extent, copy_stride;
} gb_conv_axis;

typedef struct gb_conv {
    gb_tile_program tile; /* over the dims of the result */
    int channel_dim;
    gb_data_type src_type, weights_type;
    uint32_t src_buffer, weights_buffer; /* of the program */
    int64_t src_channel_stride;
    int64_t in_stride, out_stride;             /* of the weights, along input and output channels */
    int64_t groups, in_channels, out_channels; /* channels of one group */
    bool depthwise; /* one input and one output channel per group: stands here as one group whose
                       in_channels are 1 and whose out_channels are all */
    int n_axes;
    gb_conv_axis axes[GB_MAX_NDIMS]; /* the batch first */

    /* From here on the work of gb_conv_add(). */
    const gb_kernels *kernels;
    uint32_t src, weights; /* slots; weights are packed panels */
    uint8_t operand_bytes[GB_TILE_OPERANDS];
    int tile_axis, skip_axis; /* skip axis: taps outside the source are left out; -1: none */
    int row_axis;             /* wide depthwise: rows of tiles, -1: single rows */
    bool wide, channels_last; /* channels_last: of the copy */
    bool transposed;          /* tiles are positions x channels, the result wants the reverse */
    bool direct;              /* the tile program only stores, along the rows of tiles */
    int64_t taps, skip_taps;  /* taps of one tap of the skip axis */
    int64_t in_block, out_block, out_blocks, units;
    int64_t tile_rows, tile_cols, group_positions; /* group: positions a tile program run takes */
    int64_t copy_channel_stride;
    size_t copy_bytes, sum_bytes, transpose_bytes;   /* parts of the scratch */
    int64_t *offsets, *last_offsets, *panel_offsets; /* in the copy, for a whole and for the last
                                                        block of channels; in panels */
} gb_conv;

/* Positions of the copy that `count` result positions read, a multiple of the phases. */
int64_t gb_conv_extent(const gb_conv_axis *axis, int64_t count);

/* Adds the packing of the weights and the convolution. Takes `step` over, which has the uses of the
 * tile program, and copies `conv`. */
gb_status gb_conv_add(gb_program *program, gb_step *step, const gb_conv *conv);

void gb_conv_run(const gb_step_call *call);
void gb_depthwise_run(const gb_step_call *call);

#endif
