/* Convolutions of 3 x 3 taps by minimal filtering (kernels/isa/winograd_types.h): 16 products of
 * tiles x input channels by weights, then lines of results as in conv_product.h. Of quantized values
 * (the plan has a `vnni`) input channels are pairs. */
#ifndef GB_KERNELS_CONV_CONV_WINOGRAD_H
#define GB_KERNELS_CONV_CONV_WINOGRAD_H

#include "kernels/conv/conv_product.h"

/* What differs from the plan of a product: its in_block is all channels, of which copied_channels are
 * copied at a time. */
typedef struct gb_conv_winograd {
    int64_t copied_channels;
    int64_t depth;               /* terms of K whose weights share L1 */
    int64_t row, matrix;         /* of the transformed source: floats from tile to tile, ... */
    int64_t sum_row, sum_matrix; /* ... and of the sums */
    gb_scratch source, sums;
    /* Of floats alone: */
    gb_scratch most;     /* of each tile: the largest magnitude in its source */
    gb_scratch tap_sums; /* results that are summed tap by tap: a group of positions, a panel */
    uint32_t taps;       /* slot of the weights as they are */
    int64_t first_weight, in_stride, out_stride, tap_strides[GB_AXES];
} gb_conv_winograd;

/* A work item at work. */
typedef struct gb_conv_winograd_item {
    float *source, *sums, *most, *tap_sums; /* most, tap_sums: NULL but of floats */
    bool any_beyond;                        /* some tile is (conv_winograd_run.c) */
} gb_conv_winograd_item;

/* Rows of the variants (conv_plan.c): floats, and quantized values where pairs of s16 are the VNNI
 * groups. gb_conv_winograd_run() runs both. */
bool gb_conv_winograd_fits(const gb_conv_problem *problem);
gb_status gb_conv_winograd_plan(gb_program *program, gb_step *step, const gb_conv_problem *problem);

bool gb_conv_winograd_int8_fits(const gb_conv_problem *problem);
gb_status gb_conv_winograd_int8_plan(
        gb_program *program, gb_step *step, const gb_conv_problem *problem);

void gb_conv_winograd_run(const gb_step_call *call);

extern const gb_conv_arithmetic gb_conv_winograd_arithmetic, gb_conv_winograd_int8_arithmetic;

/* Floats of the weights of a panel of channels: its 16 matrices, and the largest magnitude of its
 * taps behind them. */
static inline int64_t gb_conv_winograd_panel(int64_t terms)
{
    return (GB_WINOGRAD_PRODUCTS * terms + 1) * GB_GEMM_PANEL;
}

#endif
