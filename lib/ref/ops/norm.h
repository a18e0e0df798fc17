/* What the normalisations share: mean and variance of a subset, and their use on an element. */
#ifndef GB_REF_OPS_NORM_H
#define GB_REF_OPS_NORM_H

#include "ref/bounds/bound.h"
#include "ref/bounds/subset.h"

typedef struct gb_ref_moments {
    gb_ref_pair mean, variance; /* biased; 0 for an empty subset */
} gb_ref_moments;

/* The variance is that of the differences from the mean, in two passes or Welford's. */
gb_ref_moments gb_ref_moments_of(
        const gb_ref_tensor *tensor, const gb_ref_subsets *subsets, int64_t s, int *statistical);

/* The op's epsilon. */
double gb_ref_epsilon(const gb_op *op);
/* Fails when the tensor does not have `count` elements. */
gb_status gb_ref_check_count(const gb_ref_call *call, const gb_ref_tensor *tensor, int64_t count);
/* Notes in every output that a statistical bound was used. */
void gb_ref_mark_statistical(const gb_ref_call *call, int statistical);

/* Scale and shift of an element; NULL = 1 and 0. */
typedef struct gb_ref_affine {
    const gb_ref_tensor *gamma, *beta;
} gb_ref_affine;

/* (x - mean) rstd */
gb_ref_pair gb_ref_normalized(gb_ref_pair x, gb_ref_pair mean, gb_ref_pair rstd);
/* (x - mean) rstd gamma[i] + beta[i], also in the form x scale + shift. */
gb_ref_pair gb_ref_normalized_affine(
        gb_ref_pair x, gb_ref_pair mean, gb_ref_pair rstd, gb_ref_affine affine, int64_t i);
/* sum / count, for count > 0. */
gb_ref_pair gb_ref_average(gb_ref_pair sum, int64_t count);

#endif
