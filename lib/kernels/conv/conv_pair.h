/* A pointwise convolution that makes the source of a depthwise one: block by block, in scratch that
 * stays in the second-level cache, so that the image between them never exists as a whole. */
#ifndef GB_KERNELS_CONV_CONV_PAIR_H
#define GB_KERNELS_CONV_CONV_PAIR_H

#include "kernels/conv/conv_unit.h"
#include "kernels/gemm/packing.h"

typedef struct gb_conv_maker {
    /* Its source: f32, bf16 or f16, positions of an image evenly spaced. */
    gb_data_type src_type;
    uint32_t src_buffer, weights_buffer; /* of the program */
    int64_t k, batch_stride, k_stride, position_stride;
    gb_packing weights; /* k x channels */
    int64_t height, width;
    bool has_bias, has_links;
    gb_data_type bias_type;
    uint32_t bias_buffer;
    int64_t bias_stride;
    gb_tile_program links; /* over the image; its locals are the block */

    /* Work of gb_conv_add(). */
    uint32_t src, packed_weights, bias; /* slots */
    int64_t rows;                       /* of the image, most of a block */
    int64_t shared_rows;                /* most that a block and the next one read */
    int64_t parts;                      /* units that share the channels of a block */
    int64_t row_stride;                 /* of the block: from channel to channel, or position */
    gb_scratch packed, block, kept, bias_block; /* source in panels, image, its rows kept for the
                                                   next block, the bias of a panel */
    gb_scratch registers;                       /* of the links */
    int64_t offsets[];                          /* k of them: of a term in a panel */
} gb_conv_maker;

/* Blocks of rows for a plan with a maker, in place of gb_conv_choose_blocks(). */
void gb_conv_pair_blocks(gb_conv *conv, gb_conv_maker *maker, int threads);
/* Gives the step a maker of its own, and its scratch. */
gb_status gb_conv_pair_finish(
        gb_program *program, gb_step *step, gb_conv *conv, const gb_conv_maker *maker);
void gb_conv_pair_run(const gb_step_call *call);

/* conv_depthwise.c: copies and computes the unit that gb_conv_unit_start() has chosen. */
void gb_depthwise_unit(gb_conv_unit *u);

#endif
