/* Depthwise convolutions: no sums over channels, so the source is read about once. */
#ifndef GB_KERNELS_CONV_CONV_DEPTHWISE_H
#define GB_KERNELS_CONV_CONV_DEPTHWISE_H

#include "kernels/conv/conv_blocks.h"
#include "kernels/conv/conv_item.h"

typedef struct gb_conv_depthwise {
    gb_conv_plan conv;
    int64_t repeats;       /* output channels that read the same input channel */
    int row_axis;          /* wide: rows of tiles, -1: single rows */
    int64_t run, run_step; /* taps along the rows of tiles, see gb_depthwise */
} gb_conv_depthwise;

/* A work item at work. */
typedef struct gb_conv_depthwise_item {
    gb_conv_item item;
    const gb_conv_depthwise *plan;
    float *registers;
    gb_pointwise_view *views;
} gb_conv_depthwise_item;

/* Groups of one input and few output channels, whatever makes the source? */
bool gb_conv_is_depthwise(const gb_conv_problem *problem);

/* A row of the variants (conv_plan.c). */
bool gb_conv_depthwise_fits(const gb_conv_problem *problem);
gb_status gb_conv_depthwise_plan(
        gb_program *program, gb_step *step, const gb_conv_problem *problem);
void gb_conv_depthwise_run(const gb_step_call *call);

/* Another row, where channels lie last: the source is read where it lies (conv_depthwise_lines.c). */
bool gb_conv_depthwise_lines_fits(const gb_conv_problem *problem);
gb_status gb_conv_depthwise_lines_plan(
        gb_program *program, gb_step *step, const gb_conv_problem *problem);
void gb_conv_depthwise_lines_run(const gb_step_call *call);

/* Parts of it, for pairs of convolutions --------------------------------------------------------*/

/* All but the blocks: axes, sides and depth. `tile_axis` -1: the best one. */
gb_conv_depthwise gb_conv_depthwise_begin(const gb_conv_problem *problem, int tile_axis);
/* Makes `plan`, which has its blocks, complete: what its taps are, packed weights, scratch and work
 * of the step. */
gb_status gb_conv_depthwise_finish(gb_program *program, gb_step *step,
        const gb_conv_problem *problem, gb_conv_depthwise *plan);
/* The work item of a call. */
gb_conv_depthwise_item gb_conv_depthwise_start(
        const gb_step_call *call, const gb_conv_depthwise *plan);
/* Copies and computes what gb_conv_item_start() has chosen. */
void gb_conv_depthwise_run_item(gb_conv_depthwise_item *u);

#endif
