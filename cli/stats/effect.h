/* Is one set of times longer than another? Effects with intervals, and the verdict on them. GSL
 * does the statistics; the results depend on the values alone (resampling is seeded). */
#ifndef GB_CLI_STATS_EFFECT_H
#define GB_CLI_STATS_EFFECT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum gb_change { CHANGE_SAME, CHANGE_FASTER, CHANGE_SLOWER, CHANGE_UNSURE } gb_change;

/* Relative to the first set: 0.1 is 10 % more. */
typedef struct gb_effect {
    double change, low, high; /* the estimate and its interval */
    double spread; /* of a single value, as a standard deviation; from the median absolute
                                 deviation */
} gb_effect;

/* An interval needs so many values of each set. */
enum { GB_STATS_FEWEST_VALUES = 5 };

/* In any order; 0 of none. */
double gb_stats_median(const double *values, size_t n);
/* The change from the median of `a` to that of `b` (positive values); the interval is that of a
 * bootstrap, both sets drawn anew. Too few values give an interval without end. */
void gb_stats_unpaired(const double *a, size_t n_a, const double *b, size_t n_b, double confidence,
        gb_effect *effect);
/* The change that the logarithms of `n` ratios, one for each pair, say: their median. */
void gb_stats_paired(const double *log_ratios, size_t n, double confidence, gb_effect *effect);

/* SLOWER and FASTER need a change beyond floor and noise, and an interval beyond half of the change: one
 * that reaches further towards 0 comes from a machine that was in two states. SAME needs a change that
 * lies within the floor, with an interval that reaches no further than twice the floor. All else is
 * UNSURE: noise makes changes doubtful, but nothing the same. */
gb_change gb_stats_judge(const gb_effect *effect, double floor, double noise);
const char *gb_stats_change_name(gb_change change);

#endif
