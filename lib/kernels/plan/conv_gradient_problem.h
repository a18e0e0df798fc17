/* Weight gradients of convolutions of both directions: for every tap, a product of the channels of
 * two tensors over all positions; what is to be computed, whoever computes it.
 *
 *   result(m, c, tap) = sum over positions o of plain(m, o) * window(c, o * stride + tap * dilation
 *                       - pad)
 */
#ifndef GB_KERNELS_PLAN_CONV_GRADIENT_PROBLEM_H
#define GB_KERNELS_PLAN_CONV_GRADIENT_PROBLEM_H

#include "kernels/plan/pointwise.h"

/* The batch, or a spatial axis, of one side. */
typedef struct gb_gradient_axis {
    int64_t in, src_stride; /* of the tensor */
    int64_t kernel, stride, dilation, pad;
} gb_gradient_axis;

typedef struct gb_gradient_side {
    gb_data_type type;
    uint32_t buffer;                  /* of the program */
    int dim;                          /* of the result, along its channels */
    int64_t channels, channel_stride; /* channels of one group */
    bool grouped;                     /* the result's dim runs over the channels of all groups */
    gb_gradient_axis axes[GB_AXES];
} gb_gradient_side;

enum { GB_GRADIENT_PLAIN, GB_GRADIENT_WINDOW };

typedef struct gb_gradient_problem {
    gb_pointwise_program pointwise; /* over the dims of the result */
    int64_t groups;
    int n_axes;            /* the batch first */
    int64_t out[GB_AXES];  /* positions */
    int tap_dims[GB_AXES]; /* of the result; -1: no taps */
    gb_gradient_side sides[2];
} gb_gradient_problem;

/* The problem of a group around ConvolutionBackwardWeights or ConvTransposeBackwardWeights; `step`
 * gets the uses of its pointwise program. `problem` is zeroed before and constant from then on. */
gb_status gb_gradient_read_group(
        gb_program *program, const gb_group *group, gb_step *step, gb_gradient_problem *problem);

/* As a gb_print_fn for a gb_gradient_problem. */
void gb_gradient_problem_print(const gb_printer *printer, const void *gradient_problem);

#endif
