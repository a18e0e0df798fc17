/* Depthwise convolutions whose positions lie last: positions along vectors, and a source of f32 is read where it lies;
 * columns beyond it are masked, rows left out. Rows of another type become f32 first. */
#ifndef GB_KERNELS_CONV_CONV_PLANES_H
#define GB_KERNELS_CONV_CONV_PLANES_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/depthwise_plane.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/conv_problem.h"

/* A plane is an image of one channel. */
typedef struct gb_conv_planes {
    gb_pointwise_program epilogue;            /* over the dims of the result */
    int channel_dim, batch_dim, y_dim, x_dim; /* y_dim -1: a plane is one row */
    const gb_kernels *kernels;
    uint32_t src, weights;    /* slots */
    bool packed;              /* weights, into panels of channels */
    gb_depthwise_plane plane; /* what all have in common */
    int64_t batch, channels;
    int64_t repeats; /* output channels that read the same input channel */
    int64_t batch_stride, channel_stride, first_weight, weight_stride;
    gb_data_type src_type;       /* other than f32: rows become f32 first */
    float zero_point;            /* of quantized values */
    int64_t src_row;             /* elements, from row to row of them */
    gb_scratch numbers;          /* what they become, one row behind the other */
    int64_t rows, block, blocks; /* of the results of a plane, of a work item */
    bool direct;                 /* the pointwise program only stores */
    gb_scratch views, registers;
    gb_scratch columns;    /* what post-ops in tiles need of rows and columns */
    int64_t column_floats; /* 0: post-ops run behind the tiles */
} gb_conv_planes;

/* A row of the variants (conv_plan.c). */
bool gb_conv_planes_fits(const gb_conv_problem *problem);
gb_status gb_conv_planes_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem);
void gb_conv_planes_run(const gb_step_call *call);

/* Parts of it, for pairs of convolutions --------------------------------------------------------*/

/* Are planes what the problem reads, whatever makes them? Of its source, axes count, but neither strides nor type. */
bool gb_conv_planes_can_read(const gb_conv_problem *problem);
/* All but the source and the blocks; `most_rows` result rows are run at a time. Adds scratch, weights and work to the
 * step. */
gb_status gb_conv_planes_make(gb_program *program, gb_step *step, const gb_conv_problem *problem,
        int64_t most_rows, gb_conv_planes *planes);

/* What a call works with. */
typedef struct gb_conv_planes_item {
    const gb_conv_planes *planes;
    const gb_step_call *call;
    int64_t position[GB_AXES]; /* by dim of the result */
    float *registers, *columns, *numbers;
    gb_pointwise_view *views;
} gb_conv_planes_item;

gb_conv_planes_item gb_conv_planes_start(const gb_step_call *call, const gb_conv_planes *planes);
/* `rows` result rows from `first` on of one plane, whose row 0 would be at `src`. */
void gb_conv_planes_run_item(gb_conv_planes_item *u, const float *src, int64_t batch,
        int64_t channel, int64_t first, int64_t rows);

#endif
