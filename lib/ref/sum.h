/* The error of sums: which ones are exact in floating point, and the bound of the others. */
#ifndef GB_REF_SUM_H
#define GB_REF_SUM_H

#include "ref/ref_op.h"
#include <math.h>

/* The type in which an implementation keeps its partial sums. */
typedef struct gb_ref_accumulator {
    double unit;  /* relative error of one step */
    double tiny;  /* absolute error of one step that underflows */
    double limit; /* partial sums from here on overflow */
} gb_ref_accumulator;

extern const gb_ref_accumulator gb_ref_f32_sums;

/* What one pass over a tensor finds out. */
typedef struct gb_ref_survey {
    double max;   /* largest |value| */
    int grid;     /* all values are multiples of 2^grid; GB_REF_GRID_OF_ZERO when all are zero */
    bool finite;  /* no infinity, no NaN */
    bool exact;   /* no element has a bound above zero */
    bool bounded; /* no element has an infinite bound */
} gb_ref_survey;

enum { GB_REF_GRID_OF_ZERO = 4096 };

/* `bound` may be NULL. */
gb_status gb_ref_survey_values(
        const double *value, const double *bound, int64_t count, gb_ref_survey *survey);
/* Exponent of the lowest set bit of a finite value. */
int gb_ref_grid(double value);
/* Are all sums of multiples of 2^grid exact, in any order, whose terms' magnitudes add up to no
 * more than `total`? */
bool gb_ref_sums_are_exact(const gb_ref_accumulator *accumulator, double total, int grid);

/* Error of a sum of `terms` terms with value `sum`; `magnitude` is the sum of the terms'
 * magnitudes, `wide` the same of the largest magnitudes that the inputs' bounds allow, `factor` the
 * g_k of the summation bound. An infinite or NaN sum is certain unless an input is unbounded. */
static inline double gb_ref_sum_bound(const gb_ref_accumulator *accumulator, double factor,
        int64_t terms, double sum, double magnitude, double wide, bool bounded)
{
    if (!isfinite(sum))
        return bounded ? 0 : INFINITY;
    if (!(wide * (1 + factor) < accumulator->limit))
        return INFINITY;
    return fmax(wide - magnitude, 0) + factor * wide + (double)terms * accumulator->tiny;
}

/* Bound of sum / count from the bound of the sum: an implementation may divide, or multiply the sum
 * or each of its terms by the rounded reciprocal. */
static inline double gb_ref_mean_bound(
        double sum, double bound, double magnitude, double count, bool bounded)
{
    int exponent;
    if (!isfinite(sum / count))
        return bounded ? 0 : (double)INFINITY;
    bound /= count;
    if (frexp(count, &exponent) == 0.5)
        return bound;
    return bound + 2 * GB_REF_U * (magnitude / count + bound) + GB_REF_ETA;
}

#endif
