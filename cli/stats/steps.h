/* Steps in a series of times: where its level changed for good. */
#ifndef GB_CLI_STATS_STEPS_H
#define GB_CLI_STATS_STEPS_H

#include <stddef.h>

typedef struct gb_step {
    size_t at;     /* the first value of the new level */
    double change; /* relative: 0.1 is 10 % more */
} gb_step;

/* Finds at most `limit` steps in `n` positive values in the order of time, by binary segmentation:
 * the split that leaves the least scatter about two medians is a step if hardly any shuffled series
 * gains as much by one (a permutation test, one in a hundred) and the change is beyond the floor; both sides
 * are searched in turn. Returns their number; they are in the order of time. */
size_t gb_stats_steps(const double *values, size_t n, double floor, gb_step *steps, size_t limit);

/* What one value differs from the next without a step, as a standard deviation (relative); 0 for
 * fewer than four values. */
double gb_stats_noise(const double *values, size_t n);

#endif
