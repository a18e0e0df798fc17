/* Reductions of a strided tensor over some of its axes: the Reduce ops, the gradient of a bias, and
 * pools whose window covers the whole image. */
#ifndef GB_KERNELS_PLAN_REDUCTION_PROBLEM_H
#define GB_KERNELS_PLAN_REDUCTION_PROBLEM_H

#include "kernels/plan/operand.h"
#include "kernels/plan/reduce_kind.h"
#include "kernels/plan/reduced_space.h"

/* A result is reduced; then, as the fields say, replaced or raised, divided, and its root taken;
 * the pointwise program goes on with it. */
typedef struct gb_reduction_problem {
    gb_reduce_kind kind;
    bool mean, root;            /* take zero_points off and divide by `divisor`; square root */
    bool at_least_empty;        /* no result falls below `empty` */
    float divisor, zero_points; /* zero_points: what the sum of quantized values counts from */
    float empty;                /* result over no elements */
    gb_operand src;
    gb_pointwise_program pointwise; /* over the dims of the space, stride 0 along reduced ones */
    gb_reduced_space space;         /* in normal form */
} gb_reduction_problem;

/* A reduction whose axes are in a tensor: they are known when the step runs. */
typedef struct gb_late_reduction_problem {
    /* Its source over the axes of src, its pointwise program over those of dst, and no space. */
    gb_reduction_problem reduction;
    int src_ndims, dst_ndims;
    int64_t src_dims[GB_MAX_NDIMS], dst_dims[GB_MAX_NDIMS];
    bool keep_dims;
    uint32_t axes_slot; /* s32 */
    int64_t n_axes, axes_stride;
} gb_late_reduction_problem;

/* Does the anchor, a Reduce op, take its axes from a tensor? */
bool gb_reduction_is_late(const gb_op *op);
/* Describes a group whose anchor is a Reduce op that is not late, or BiasAddBackward. Adds what is
 * read and written to the step. */
gb_status gb_reduction_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_reduction_problem *problem);
/* The same for a late one. */
gb_status gb_late_reduction_describe(gb_program *program, const gb_group *group, gb_step *step,
        gb_late_reduction_problem *problem);

/* The reduction with the axes that the tensor holds; those that are no axes of src or do not lead
 * to dst make NaN of all results. `operands` has room for those of the pointwise program. */
void gb_late_reduction_resolve(const gb_late_reduction_problem *late, const int32_t *axes,
        gb_pointwise_operand *operands, gb_reduction_problem *problem);

/* Sets the space of a reduction, whose source and pointwise program are set: that of src, whose
 * reduced dims (GB_REDUCED) are 1 in the pointwise program if keep_dims, else missing there. */
void gb_reduction_set_space(gb_reduction_problem *problem, gb_space *src, bool keep_dims);

/* Write a gb_reduction_problem, a gb_late_reduction_problem. */
gb_print_fn gb_reduction_problem_print, gb_late_reduction_problem_print;

#endif
