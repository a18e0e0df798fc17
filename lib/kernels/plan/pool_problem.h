/* Means and maxima over windows of a strided tensor, and their gradients. */
#ifndef GB_KERNELS_PLAN_POOL_PROBLEM_H
#define GB_KERNELS_PLAN_POOL_PROBLEM_H

#include "base/memory.h"
#include "kernels/plan/reduction_problem.h"

enum { GB_POOL_DEPTH, GB_POOL_HEIGHT, GB_POOL_WIDTH, GB_POOL_AXES };

/* One spatial axis; a missing one has size 1 and dim -1. Cell c of window o lies at
 * o * stride + c * dilation - pad_begin, if that is inside 0 .. in-1. */
typedef struct gb_pool_axis {
    int dim; /* in the space */
    int64_t in, out, kernel, stride, dilation, pad_begin, pad_end;
} gb_pool_axis;

/* AvgPool, MaxPool, of numbers or of quantized values with one scale and zero point; the space is
 * the result's. */
typedef struct gb_pool_problem {
    bool mean, exclude_pad; /* otherwise the maximum; a mean over the cells of the image only */
    float start;            /* of an empty window: the lowest number, below all codes, or 0 */
    float zero_point;       /* of a mean: what the cells of the image count from */
    gb_operand src;         /* along a spatial axis from cell to cell */
    gb_pointwise_program pointwise;
    gb_pool_axis axes[GB_POOL_AXES];
    int channel_dim;
} gb_pool_problem;

enum { GB_POOL_BATCH_DIM, GB_POOL_CHANNEL_DIM, GB_POOL_SPATIAL_DIM }; /* of the gradients' space */

/* AvgPoolBackward, MaxPoolBackward. The space is batch, channel, depth, height and width of the
 * image; along the spatial dims diff_dst has the windows. */
typedef struct gb_pool_backward_problem {
    bool mean, exclude_pad;
    float lowest;                       /* of a maximum: what is not above it does not win */
    gb_operand src, diff_dst, diff_src; /* src: of the maximum */
    int64_t batch, channels;
    int first_axis; /* those in front of it are missing */
    gb_pool_axis axes[GB_POOL_AXES];
} gb_pool_backward_problem;

/* Describe the group of such an anchor. Add what is read and written to the step. */
gb_status gb_pool_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_pool_problem *problem);
gb_status gb_pool_backward_describe(gb_program *program, const gb_group *group, gb_step *step,
        gb_pool_backward_problem *problem);
/* Are its tensors of floats, or the codes of a maximum? */
bool gb_pool_has_types(const gb_op *op, const char **reason);
/* Can an AvgPool or MaxPool read what `op`, the producer of its input 0, dequantizes? */
bool gb_pool_takes_prologue(const gb_op *anchor, uint32_t input, const gb_op *op);

/* Cells of window `position` that a mean counts. */
static inline int64_t gb_pool_cells(const gb_pool_axis *axis, int64_t position, bool exclude_pad)
{
    int64_t begin = position * axis->stride - axis->pad_begin, end = begin + axis->kernel;
    int64_t low = exclude_pad ? 0 : -axis->pad_begin;
    int64_t high = axis->in + (exclude_pad ? 0 : axis->pad_end);
    return gb_max_i64(0, gb_min_i64(end, high) - gb_max_i64(begin, low));
}
/* Elements between the first and the last cell of a window, both included. */
static inline int64_t gb_pool_extent(const gb_pool_axis *axis)
{
    return (axis->kernel - 1) * axis->dilation + 1;
}

/* Does one window cover the whole image? Then the pool is a reduction. */
bool gb_pool_is_global(const gb_pool_problem *problem);
/* That reduction; its operands are memory of the step. */
gb_status gb_pool_as_reduction(
        const gb_pool_problem *problem, gb_step *step, gb_reduction_problem *reduction);

/* Write a gb_pool_problem, a gb_pool_backward_problem. */
gb_print_fn gb_pool_problem_print, gb_pool_backward_problem_print;

#endif
