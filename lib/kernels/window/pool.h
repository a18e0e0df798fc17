/* Average and maximum over windows of a strided tensor. */
#ifndef GB_KERNELS_WINDOW_POOL_H
#define GB_KERNELS_WINDOW_POOL_H

#include "kernels/isa/kernels.h"
#include "kernels/plan/space.h"

/* One spatial axis; a missing one has size 1 and dim -1. */
typedef struct gb_pool_axis {
    int dim; /* in the tensors */
    int64_t in, out, kernel, stride, dilation, pad_begin, pad_end;
    int64_t src_stride;
} gb_pool_axis;

enum { GB_POOL_DEPTH, GB_POOL_HEIGHT, GB_POOL_WIDTH, GB_POOL_AXES };

typedef struct gb_pool {
    bool mean, exclude_pad;        /* otherwise the maximum */
    float start;                   /* of an empty window: the lowest number or 0 */
    float zero_point;              /* of a mean: what the cells of the image count from */
    gb_pointwise_program epilogue; /* over the dims of the output */
    gb_data_type src_type;
    uint32_t src_slot;
    int64_t src_strides[GB_AXES];
    gb_pool_axis axes[GB_POOL_AXES];
    int channel_dim;
    bool channels;        /* vectors lie across the channels; otherwise along the width */
    int row_dim, col_dim; /* a work item is rows x cols of these */
    int64_t rows, cols, items;
    int64_t pitch;          /* along the width: elements from row to row of the lines */
    int64_t capacity;       /* elements of one buffer of lines */
    int64_t steps[GB_AXES]; /* source offset of a position's window: steps . position + base */
    int64_t base;
} gb_pool;

/* Chooses the loops; everything above `channels` is set. */
void gb_pool_init(gb_pool *plan);
size_t gb_pool_thread_scratch(const gb_pool *plan);
void gb_pool_run(const gb_pool *plan, const gb_step_call *call);
/* Elements of window `position` of an axis that a mean counts. */
int64_t gb_pool_cells(const gb_pool_axis *axis, int64_t position, bool exclude_pad);

#endif
