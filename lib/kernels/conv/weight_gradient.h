/* Weight gradients of convolutions of both directions: for every tap, a product of the channels of
 * two tensors over all positions.
 *
 *   result(m, c, tap) = sum over positions o of plain(m, o) * window(c, o * stride + tap * dilation
 *                       - pad)
 *
 * Of the two sides one gives the rows of tiles, the other the vectors. Positions are summed in
 * chunks: boxes of positions whose sources are copied into the form that tiles read. When there are
 * few channels, the chunks are dealt out to `parts`, each with sums of its own, which a second
 * phase adds up. Chunks and parts follow from sizes alone, so results do not depend on threads. */
#ifndef GB_KERNELS_CONV_WEIGHT_GRADIENT_H
#define GB_KERNELS_CONV_WEIGHT_GRADIENT_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"

/* The batch, or a spatial axis, of one side. */
typedef struct gb_gradient_axis {
    int64_t in, src_stride; /* of the tensor */
    int64_t kernel, stride, dilation, pad;

    /* Planned. The copy holds every step-th position. */
    int64_t step, stride_in_copy, dilation_in_copy;
    int64_t extent, copy_stride;
} gb_gradient_axis;

typedef struct gb_gradient_side {
    gb_data_type type;
    uint32_t buffer;                  /* of the program */
    int dim;                          /* of the result, along its channels */
    int64_t channels, channel_stride; /* channels of one group */
    bool grouped;                     /* the result's dim runs over the channels of all groups */
    gb_gradient_axis axes[GB_AXES];

    /* Planned. */
    uint32_t slot;
    int64_t block, blocks;       /* channels of a work item */
    bool panels;                 /* the copy is [panel][position][PANEL], not rows of positions */
    bool in_place;               /* rows are read from the tensor itself */
    int64_t copy_channel_stride; /* from channel to channel, or from panel to panel */
    size_t copy_bytes;
    gb_scratch copy, offsets; /* of a chunk, and of its positions */
} gb_gradient_side;

enum { GB_GRADIENT_PLAIN, GB_GRADIENT_WINDOW };

typedef struct gb_weight_gradient {
    gb_pointwise_program epilogue; /* over the dims of the result */
    int64_t groups;
    bool depthwise;        /* one channel of either side per group: stands here as one group, whose
                              channels multiply one by one */
    int n_axes;            /* the batch first */
    int64_t out[GB_AXES];  /* positions */
    int tap_dims[GB_AXES]; /* of the result; -1: no taps */
    gb_gradient_side sides[2];

    /* From here on the work of gb_weight_gradient_add(). */
    const gb_kernels *kernels;
    int rows, vectors; /* sides */
    int row_axis;      /* the taps of this axis are the rows of a tile; -1: channels are */
    int64_t taps;
    int64_t chunk[GB_AXES], chunks_along[GB_AXES]; /* positions of a chunk */
    int64_t chunk_positions, chunks, splits, items;
    int64_t tile_rows, tile_cols;
    int64_t panels;     /* of vectors, of one group */
    int64_t split_sums; /* floats of one part: [group][panel][tap][row channel][PANEL] */
    gb_scratch registers;
} gb_weight_gradient;

/* Plans and adds the step, which has the uses of the pointwise program; `gradient` is copied. */
gb_status gb_weight_gradient_add(
        gb_program *program, gb_step *step, const gb_weight_gradient *gradient);

void gb_weight_gradient_run(const gb_step_call *call);

/* Brings `channels` channels of a side from `channel` on (counted over all groups), at a box of
 * positions, into `copy`. */
void gb_gradient_copy(const gb_weight_gradient *gradient, const gb_gradient_side *side,
        const int64_t *box_first, const int64_t *box_count, int64_t channel, int64_t channels,
        const void *src, float *copy);

#endif
