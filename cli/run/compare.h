/* Comparing an output with the reference, element by element, each within its own bound. */
#ifndef GB_CLI_RUN_COMPARE_H
#define GB_CLI_RUN_COMPARE_H

#include <ref/ref.h>
#include <stdbool.h>

enum { WORST_POINTS = 10 };

typedef struct gb_point {
    int64_t index; /* logical, row-major */
    double got, expected, bound;
} gb_point;

typedef struct gb_comparison {
    int64_t total;
    int64_t errors;
    int64_t exact;     /* elements held to equality */
    int64_t unbounded; /* not compared */
    double margin;     /* largest error / bound; > 1 or infinite: an error */
    gb_point worst;    /* where the margin is */
    int64_t n_points;
    gb_point points[WORST_POINTS];          /* the first errors */
    double zeros;                           /* share of zeros among the elements */
    bool constant;                          /* all elements alike */
    bool zeros_expected, constant_expected; /* and so they must be: the reference's values are */
    /* Norms for diagnosis: of the differences and of the expected values (finite elements). */
    double max_difference, l2_difference, l2_expected;
    double typical_bound; /* mean of the finite bounds, rounding to the type left out, over the mean
                             magnitude, of integers over the mean distance from their mean */
} gb_comparison;

/* Both tensors hold the same count of elements. `slack` widens every bound (1 = as it is): with 2 a
 * stored result of another implementation is compared, which may be off by as much in the other
 * direction. */
void gb_cli_compare(const gb_ref_tensor *got, const gb_ref_tensor *expected, double slack,
        gb_comparison *result);

/* Half a unit in the last place of a floating type, relative; 0 for integers. */
double gb_cli_unit_roundoff(gb_data_type type);

/* Text on why a correct result proves little ("" when it does not): mostly zeros, constant, bounds
 * over a tenth of the values, or over 64 roundings of the coarsest type involved (its unit roundoff
 * is `unit`) when those are more. */
const char *gb_cli_mistrust(const gb_comparison *comparison, double unit);

#endif
