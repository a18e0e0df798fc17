/* The formulas of two-pass problems. */
#ifndef GB_KERNELS_PLAN_TWO_PASS_KIND_H
#define GB_KERNELS_PLAN_TWO_PASS_KIND_H

enum { GB_TWO_PASS_INPUTS = 3, GB_TWO_PASS_VALUES = 5, GB_TWO_PASS_SUMS = 2 };

/* What is summed, and what is computed of the sums. in: the inputs, k: the per-row parameters. */
typedef enum gb_two_pass_kind {
    GB_TWO_PASS_SOFTMAX,         /* s = sum of in0 in1; in1 (in0 - k0) */
    GB_TWO_PASS_LOG_SOFTMAX,     /* s = sum of in0; in0 - exp(in1) k0 */
    GB_TWO_PASS_BATCH_NORM,      /* s = sum of in0, of (in0 - mean)^2; (in0 - k0) k1 + k2 */
    GB_TWO_PASS_BATCH_NORM_RELU, /* the same; max(0, (in0 - k0) k1 + k2) */
    /* x = (in0 - k0) k1, in1 is 0 where in2 <= 0: s = sum of in1, of in1 x; k2 (in1 - k3 - x k4) */
    GB_TWO_PASS_BATCH_NORM_BACKWARD,
    /* x = (in0 - k0) k1, h = in1 in2 (in2 NULL: in1): s = sum of h, sum of h x;
     * k1 (h - k2 - x k3), and across the block the sums of in1 x and of in1 */
    GB_TWO_PASS_LAYER_NORM_BACKWARD,
    /* s = sum of min(in0, 0) in1; with the sum already in0 > 0 ? in1 : in1 k0 */
    GB_TWO_PASS_PRELU_BACKWARD,
    GB_TWO_PASS_SCALE /* no sum; in0 k0, 0 where in1 <= 0 (in1 NULL: in0 k0) */
} gb_two_pass_kind;

#endif
