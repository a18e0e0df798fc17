/* Interpolate and its gradient. Both gather: an element is the weighted sum of a few elements of the
 * source, by a table of taps per axis. */
#ifndef GB_KERNELS_PLAN_RESAMPLE_PROBLEM_H
#define GB_KERNELS_PLAN_RESAMPLE_PROBLEM_H

#include "kernels/plan/operand.h"
#include "kernels/plan/pointwise.h"
#include "kernels/plan/resample_taps.h"

enum { GB_RESAMPLE_DEPTH, GB_RESAMPLE_HEIGHT, GB_RESAMPLE_WIDTH, GB_RESAMPLE_AXES };

typedef struct gb_resample_axis {
    int dim;               /* in the space; -1: missing */
    int64_t size;          /* of the source */
    gb_resample_taps taps; /* of all positions of the result; tables are memory of the step */
} gb_resample_axis;

/* The space is the result's; one without elements has no taps. */
typedef struct gb_resample_problem {
    bool gradient, nearest, align_corners;
    gb_operand src; /* along a spatial axis from element to element of the source */
    gb_pointwise_program pointwise;
    int channel_dim;
    gb_resample_axis axes[GB_RESAMPLE_AXES];
} gb_resample_problem;

/* Describes a group whose anchor is Interpolate or InterpolateBackward. Adds what is read and
 * written to the step. */
gb_status gb_resample_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_resample_problem *problem);

/* Fills in the table of an axis that has `in` elements before Interpolate and `out` behind it, from
 * memory of the step; pitch = count. Of the gradient: positions are those of `in`, which gather
 * from `out`. */
gb_status gb_resample_taps_make(gb_step *step, const gb_resample_problem *problem, int64_t in,
        int64_t out, gb_resample_taps *taps);

/* Writes a gb_resample_problem. */
gb_print_fn gb_resample_problem_print;

#endif
