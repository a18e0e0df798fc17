/* A pointwise convolution that makes the source of a depthwise one: block by block, in scratch that
 * stays in the second-level cache, so that the image between them never exists as a whole. */
#ifndef GB_KERNELS_CONV_CONV_PAIR_H
#define GB_KERNELS_CONV_CONV_PAIR_H

#include "kernels/conv/conv_item.h"
#include "kernels/gemm/packing.h"

typedef struct gb_conv_producer {
    /* Its source: f32, bf16 or f16, positions of an image evenly spaced. */
    gb_data_type src_type;
    uint32_t src_buffer, weights_buffer; /* of the program */
    int64_t k, batch_stride, k_stride, position_stride;
    gb_packing weights; /* k x channels */
    int64_t height, width;
    bool has_bias, has_post_ops;
    gb_data_type bias_type;
    uint32_t bias_buffer;
    int64_t bias_stride;
    gb_pointwise_program post_ops; /* over the image; its scratch operands are the block */

    /* Work of gb_conv_add(). */
    uint32_t src, packed_weights, bias; /* slots */
    int64_t rows;                       /* of the image, most of a block */
    int64_t shared_rows;                /* most that a block and the next one read */
    int64_t parts;                      /* work items that share the channels of a block */
    int64_t row_stride;                 /* of the block: from channel to channel, or position */
    gb_scratch packed, block, kept, bias_block; /* source in panels, image, its rows kept for the
                                                   next block, the bias of a panel */
    gb_scratch registers;                       /* of the post-ops */
    int64_t offsets[];                          /* k of them: of a term in a panel */
} gb_conv_producer;

/* Blocks of rows for a plan with a producer, in place of gb_conv_choose_blocks(). */
void gb_conv_pair_blocks(gb_conv *conv, gb_conv_producer *producer, int threads);
/* Gives the step a producer of its own, and its scratch. */
gb_status gb_conv_pair_finish(
        gb_program *program, gb_step *step, gb_conv *conv, const gb_conv_producer *producer);
void gb_conv_pair_run(const gb_step_call *call);

/* conv_depthwise.c: copies and computes the work item that gb_conv_item_start() has chosen. */
void gb_depthwise_item(gb_conv_item *u);

#endif
