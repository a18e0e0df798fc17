/* Depthwise convolutions of 8-bit quantized values whose channels lie last: integers, channels along
 * vectors, post-ops in tiles. The source is read where it lies; taps beyond it are left out. */
#ifndef GB_KERNELS_CONV_CONV_DEPTHWISE_INT8_H
#define GB_KERNELS_CONV_CONV_DEPTHWISE_INT8_H

#include "kernels/conv/conv_lines.h"
#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"

/* A work item is a line of positions along the tile axis, of a block of channels. */
typedef struct gb_conv_depthwise_int8 {
    gb_pointwise_program epilogue; /* over the dims of the result */
    int channel_dim;
    const gb_kernels *kernels;
    bool is_signed; /* of the source */
    int zero_point;
    uint32_t src, weights; /* slots; weights: see gb_depthwise_weights */
    gb_conv_lines lines;
    int64_t channels;
    int64_t weights_row;          /* channels, and what fills up the last vectors */
    int64_t block, blocks;        /* of channels */
    gb_scratch offsets;           /* of the taps that count, and where their weights lie */
    gb_scratch views, tile_views; /* of the operands of the epilogue: a line, a tile of it */
    gb_scratch registers;
    gb_scratch columns;    /* what post-ops in tiles need of each channel */
    int64_t column_floats; /* 0: post-ops run behind the tiles */
} gb_conv_depthwise_int8;

/* Packed weights: a factor for each channel, then taps of all channels, s16, and a tap of zeros. */
static inline const int16_t *gb_depthwise_weights(
        const gb_conv_depthwise_int8 *plan, const float *factors)
{
    return (const int16_t *)(const void *)(factors + plan->weights_row);
}

/* A row of the variants (conv_plan.c). */
bool gb_conv_depthwise_int8_fits(const gb_conv_problem *problem);
gb_status gb_conv_depthwise_int8_plan(
        gb_program *program, gb_step *step, const gb_conv_problem *problem);
void gb_conv_depthwise_int8_run(const gb_step_call *call);

#endif
