/* The error of sums: which ones are exact in floating point, and the bound of the others. */
#ifndef GB_REF_BOUNDS_SUM_H
#define GB_REF_BOUNDS_SUM_H

#include "ref/bounds/ref_op.h"
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

/* Is an infinite sum certain whose finite terms' magnitudes add up to `finite`? They may overflow
 * to the infinity opposite to that of another term. */
static inline bool gb_ref_infinity_is_certain(double finite)
{
    return finite < gb_ref_f32_sums.limit;
}

/* Up to so many terms the bounds of summation are linear; beyond it they are statistical. */
enum { GB_REF_FEW_TERMS = 64 };

/* Counts an element. */
static inline void gb_ref_spread_add(gb_ref_spread *spread, double variance, double bound)
{
    double square = bound * bound;
    if (!isfinite(square) || square == 0)
        return;
    spread->deviations += variance;
    spread->bounds += square;
    spread->quotients += variance / square;
    spread->elements += 1;
}

static inline void gb_ref_spread_join(gb_ref_spread *spread, const gb_ref_spread *other)
{
    spread->deviations += other->deviations;
    spread->bounds += other->bounds;
    spread->quotients += other->quotients;
    spread->elements += other->elements;
}

/* Standard deviation over bound, root mean square over a tensor: the larger one of the mean that goes
 * by the size of the bounds and of that in which all elements count alike, for a sum may be over
 * elements of one size. */
static inline double gb_ref_ratio(const gb_ref_tensor *tensor)
{
    const gb_ref_spread *spread = &tensor->spread;
    if (spread->elements == 0)
        return 1;
    double mean = fmax(spread->deviations / spread->bounds, spread->quotients / spread->elements);
    return sqrt(fmin(mean, 1));
}

/* What the errors of the terms add to a sum, from the sums of the errors and of their squares:
 * linear, or 8 standard deviations of independent errors, `ratio` being that of one error over its
 * bound, around `shift`, the sum of gb_ref_store_shift() of the terms (0 where it is not known).
 * Other errors that all terms share are at most a few units of f32, which the rounding of the sum
 * covers. The ratio is a mean over a tensor: where one error outweighs the others, it may still be
 * as large as its bound. */
static inline double gb_ref_sum_of_errors(double errors, double squares, double ratio, double shift)
{
    return fmin(errors, fmax(1, 8 * ratio) * sqrt(squares) + fabs(shift));
}

/* How far partial sums can get from 0 in an order of summation that knows nothing of the values: a
 * run of neighbours by twice the peak of the partial sums in natural order, scattered terms by
 * another 8 standard deviations (docs/numerics.md). `squares` is the sum of squares of the terms.
 */
static inline double gb_ref_sum_reach(int64_t terms, double magnitude, double squares, double peak)
{
    return terms <= GB_REF_FEW_TERMS ? magnitude : fmin(magnitude, 2 * peak + 4 * sqrt(squares));
}

typedef struct gb_ref_terms {
    int64_t count;
    double sum, magnitude; /* of the terms, and of their magnitudes (or more) */
    double reach;          /* largest partial sum */
    double error;          /* what the errors of the terms add */
    double other;          /* rounding of another way to the sum, or 0 */
} gb_ref_terms;

/* Bound of a sum, `factor` being the g_k of the summation bound. An infinite or NaN sum is certain
 * unless an input is unbounded. */
static inline double gb_ref_sum_bound(const gb_ref_accumulator *accumulator, double factor,
        const gb_ref_terms *terms, bool bounded)
{
    if (!isfinite(terms->sum))
        return bounded ? 0 : INFINITY;
    if (!((terms->magnitude + terms->error) * (1 + factor) < accumulator->limit))
        return INFINITY;
    return terms->error + fmax(factor * (terms->reach + terms->error), terms->other) +
           (double)terms->count * accumulator->tiny;
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
