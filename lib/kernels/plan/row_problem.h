/* Functions of whole rows, softmax and norms: what one row, the reduced dims of a space, turns into
 * depends on this row of the source alone. */
#ifndef GB_KERNELS_PLAN_ROW_PROBLEM_H
#define GB_KERNELS_PLAN_ROW_PROBLEM_H

#include "kernels/plan/operand.h"
#include "kernels/plan/reduced_space.h"

/* What all of them have. */
typedef struct gb_row_problem {
    gb_operand src;
    gb_pointwise_program pointwise; /* on the rows that the function leaves */
    gb_reduced_space space;         /* in normal form */
} gb_row_problem;

/* SoftMax, LogSoftmax */
typedef struct gb_softmax_problem {
    gb_row_problem rows;
    bool log, inf_as_zero; /* a row of -inf gives 0 */
    gb_operand stats;      /* max + ln(sum) of each row, f32, if wanted */
} gb_softmax_problem;

/* Mean or variance as an output. */
typedef struct gb_norm_statistic {
    gb_operand operand; /* strides in parts 1 / gb_norm_problem.group of an element */
    bool numbered;      /* strides count elements in row-major order of `tensor`, not memory */
    gb_logical_tensor tensor;
} gb_norm_statistic;

/* gamma or beta: as many elements as gb_norm_problem.affine_count. */
typedef struct gb_norm_affine {
    bool present;
    uint32_t slot;
    gb_logical_tensor tensor;
} gb_norm_affine;

/* LayerNorm, RMSNorm, GroupNorm: (x - mean) / sqrt(variance + epsilon) * gamma + beta */
typedef struct gb_norm_problem {
    gb_row_problem rows;
    bool root_mean_square; /* without the mean */
    bool has_stats;
    float epsilon;
    int64_t group; /* kept indices of the innermost dim that share statistics */
    gb_norm_statistic mean, variance;
    gb_norm_affine gamma, beta;
    int64_t affine_count;
    int64_t affine_strides[GB_AXES]; /* of gamma and beta in row-major order, over the space */
} gb_norm_problem;

/* Describe the group of such an anchor. Add what is read and written to the step. */
gb_status gb_softmax_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_softmax_problem *problem);
/* `widest_group`: a kernel can work on columns that share statistics. Then groups of up to so many
 * channels, which lie next to each other, stay one kept dim with the others. */
gb_status gb_norm_describe(gb_program *program, const gb_group *group, int64_t widest_group,
        gb_step *step, gb_norm_problem *problem);

/* Write a gb_softmax_problem, a gb_norm_problem. */
gb_print_fn gb_softmax_problem_print, gb_norm_problem_print;

#endif
