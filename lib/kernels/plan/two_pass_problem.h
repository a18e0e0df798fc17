/* Two-pass problems: sums of some inputs over the reduced axes, and a result of the inputs and the
 * sums. The gradients of softmax, norms and PReLU, and batch norm in training. */
#ifndef GB_KERNELS_PLAN_TWO_PASS_PROBLEM_H
#define GB_KERNELS_PLAN_TWO_PASS_PROBLEM_H

#include "kernels/plan/operand.h"
#include "kernels/plan/reduced_space.h"
#include "kernels/plan/two_pass_kind.h"

/* What all of them have. */
typedef struct gb_two_pass_problem {
    gb_two_pass_kind kind;
    bool cross; /* sums along the kept axes, too */
    gb_operand in[GB_TWO_PASS_INPUTS], out;
    gb_reduced_space space; /* in normal form */
} gb_two_pass_problem;

enum { GB_BATCH_NORM_VECTORS = 4 };

/* BatchNormForwardTraining, with ReLU behind it; BatchNormTrainingBackward, with ReLUBackward in
 * front of it. All but `two_pass` runs along the channels, the kept dim. */
typedef struct gb_batch_norm_problem {
    gb_two_pass_problem two_pass;
    float epsilon, momentum;
    gb_operand mean, variance, gamma, beta; /* inputs */
    /* Running mean and variance, batch mean and variance; or gradients of gamma and beta. */
    gb_operand outputs[GB_BATCH_NORM_VECTORS];
} gb_batch_norm_problem;

enum { GB_LAYER_NORM_MEAN, GB_LAYER_NORM_VARIANCE, GB_LAYER_NORM_GAMMA, GB_LAYER_NORM_VECTORS };

/* LayerNormBackward; gamma is in[2]. */
typedef struct gb_layer_norm_backward_problem {
    gb_two_pass_problem two_pass;
    float epsilon;
    gb_operand mean, variance;
    /* Values that no strides express: the operand reads a dense copy, which whoever plans makes
     * (and sets the slot). GB_NONE: it reads the tensor itself. */
    uint32_t copied[GB_LAYER_NORM_VECTORS];
    /* Number of a reduced element in row-major order of the trailing axes, as strides. */
    int64_t order[GB_AXES];
    int n_gradients;                               /* of gamma and beta */
    gb_logical_tensor gradients[GB_TWO_PASS_SUMS]; /* diff_gamma, diff_beta */
    uint32_t slots[GB_TWO_PASS_SUMS];
} gb_layer_norm_backward_problem;

/* PReLUBackward; the kept dims are those of the slope. */
typedef struct gb_prelu_backward_problem {
    gb_two_pass_problem two_pass;
    gb_operand slope, diff_slope;
} gb_prelu_backward_problem;

/* Describe the group of such an anchor. Add what is read and written to the step. */
gb_status gb_softmax_backward_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_two_pass_problem *problem);
/* Also of a region of batch norm and ReLU (fusion/regions/batch_norm.h). */
gb_status gb_batch_norm_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_batch_norm_problem *problem);
gb_status gb_layer_norm_backward_describe(gb_program *program, const gb_group *group, gb_step *step,
        gb_layer_norm_backward_problem *problem);
/* A step that writes a dense copy of a value into a buffer; each backend has its own. */
typedef gb_status gb_add_copy_fn(gb_program *program, uint32_t value, uint32_t *buffer);
/* Has the copies made that the problem asks for, which its step reads then. */
gb_status gb_layer_norm_backward_copy(gb_program *program, gb_step *step, gb_add_copy_fn *add_copy,
        gb_layer_norm_backward_problem *problem);
gb_status gb_prelu_backward_describe(gb_program *program, const gb_group *group, gb_step *step,
        gb_prelu_backward_problem *problem);

/* Uses inputs or a result that run over the whole space, and adds them to the space: results are
 * computed where sums are complete, each from the inputs in its place. */
gb_status gb_two_pass_use(gb_program *program, gb_step *step, uint32_t value, bool written,
        gb_space *space, gb_operand *operand);

/* Write a problem: what all of them have, and one of each kind. */
gb_print_fn gb_two_pass_problem_print, gb_batch_norm_problem_print,
        gb_layer_norm_backward_problem_print, gb_prelu_backward_problem_print;

#endif
