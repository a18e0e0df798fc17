/* A pointwise convolution that makes the source of a depthwise one: block by block, in scratch that
 * stays in the second-level cache, so that the image between them never exists as a whole. */
#ifndef GB_KERNELS_CONV_CONV_PAIR_H
#define GB_KERNELS_CONV_CONV_PAIR_H

#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_planes.h"

/* The producer's source is f32, bf16 or f16, its positions evenly spaced over an image. */
typedef struct gb_conv_pair {
    gb_conv_depthwise depthwise; /* its source is the block */
    bool in_planes; /* channels of the block are planes, which are read where they lie */
    gb_conv_planes planes;

    /* The producer. */
    gb_data_type src_type;
    int64_t k, batch_stride, k_stride, position_stride;
    int64_t height, width; /* of the image */
    gb_conv_bias bias;
    gb_pointwise_program post_ops; /* over the image; its scratch operands are the block. Without
                                      instructions: none */
    uint32_t src, packed_weights, bias_slot; /* slots */
    int64_t rows;                            /* of the image, most of a block */
    int64_t shared_rows;                     /* most that a block and the next one read */
    int64_t parts;                           /* work items that share the channels of a block */
    int64_t items;                           /* blocks times parts */
    int64_t row_stride; /* of the block: from channel to channel, or position */
    gb_scratch packed, block, kept, bias_block; /* source in panels, image, its rows kept for the
                                                   next block, the bias of a panel */
    gb_scratch registers, views;                /* of the post-ops */
    int64_t k_block;  /* terms of K whose panels, of weights and source, share L1 */
    int64_t *offsets; /* k of them: of a term in a panel */
} gb_conv_pair;

/* A row of the variants (conv_plan.c). */
bool gb_conv_pair_fits(const gb_conv_problem *problem);
gb_status gb_conv_pair_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem);
void gb_conv_pair_run(const gb_step_call *call);

#endif
