/* How the CPU runs weight gradients of convolutions: products of the channels of two tensors, tap by
 * tap.
 *
 * Of the two sides one gives the rows of tiles, the other the vectors. Positions are summed in
 * chunks: boxes of positions whose sources are copied into the form that tiles read. When there are
 * few channels, the chunks are dealt out to `splits`, each with sums of its own, which a second
 * phase adds up. Chunks and splits follow from sizes alone, so results do not depend on threads. */
#ifndef GB_KERNELS_CONV_WEIGHT_GRADIENT_H
#define GB_KERNELS_CONV_WEIGHT_GRADIENT_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/conv_gradient_problem.h"

/* The batch, or a spatial axis, of one side. */
typedef struct gb_gradient_plan_axis {
    int64_t in, src_stride, kernel, stride, dilation, pad; /* as in gb_gradient_axis */
    /* The copy holds every step-th position. */
    int64_t step, stride_in_copy, dilation_in_copy;
    int64_t extent, copy_stride;
} gb_gradient_plan_axis;

typedef struct gb_gradient_plan_side {
    gb_data_type type;
    uint32_t slot;
    int dim;
    bool grouped;
    int64_t channels, channel_stride; /* as in gb_gradient_side; depthwise, of all groups */
    gb_gradient_plan_axis axes[GB_AXES];
    int64_t block, blocks;       /* channels of a work item */
    bool panels;                 /* the copy is [panel][position][PANEL], not rows of positions */
    bool in_place;               /* rows are read from the tensor itself */
    int64_t copy_channel_stride; /* from channel to channel, or from panel to panel */
    size_t copy_bytes;
    gb_scratch copy, offsets; /* of a chunk, and of its positions */
} gb_gradient_plan_side;

/* What the rows of a tile are. */
typedef enum gb_gradient_rows {
    GB_GRADIENT_CHANNELS, /* channels of one side */
    GB_GRADIENT_TAPS,     /* taps of one axis */
    GB_GRADIENT_NONE /* depthwise, one channel of either side per group: channels multiply one by
                        one, and all groups stand here as one */
} gb_gradient_rows;

typedef struct gb_weight_gradient {
    gb_pointwise_program epilogue; /* over the dims of the result */
    const gb_kernels *kernels;
    int64_t groups;
    int n_axes;            /* the batch first */
    int64_t out[GB_AXES];  /* positions */
    int tap_dims[GB_AXES]; /* of the result; -1: no taps */
    gb_gradient_plan_side sides[2];
    gb_gradient_rows rows_are;
    int rows, vectors; /* sides */
    int row_axis;      /* the axis whose taps are rows; -1: they are none */
    int64_t taps;
    int64_t chunk[GB_AXES], chunks_along[GB_AXES]; /* positions of a chunk */
    int64_t chunk_positions, chunks, splits, items;
    int64_t tile_rows, tile_cols;
    int64_t panels;              /* of vectors, of one group */
    int64_t sum_rows;            /* of a panel and tap: channels of the rows' side, depthwise 1 */
    int64_t split_sums;          /* floats of one split: [group][panel][tap][sum row][PANEL] */
    gb_scratch registers, views; /* of the epilogue */
} gb_weight_gradient;

/* Plans and adds the step, which has the uses of the pointwise program. */
gb_status gb_weight_gradient_add(
        gb_program *program, gb_step *step, const gb_gradient_problem *problem);

void gb_weight_gradient_run(const gb_step_call *call);

/* Brings `channels` channels of a side from `channel` on (counted over all groups), at a box of
 * positions, into `copy`. */
void gb_gradient_copy(const gb_weight_gradient *gradient, const gb_gradient_plan_side *side,
        const int64_t *box_first, const int64_t *box_count, int64_t channel, int64_t channels,
        const void *src, float *copy);

#endif
