/* Change-point detection. */
#include "cli/stats/steps.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

enum { LEAST_SEGMENT = 3, SHUFFLES = 199, MOST_LEVELS = 32 };
static const double most_false = 0.01; /* steps found in series that have none */
static const unsigned long seed = 20240229;

typedef struct search {
    gsl_rng *rng;
    double *work;
    double floor;
    gb_step *steps;
    size_t n, limit;
} search;

static double median_of(search *s, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        s->work[i] = values[i];
    return gsl_stats_median(s->work, 1, n);
}

/* Sum of the distances from the median. */
static double scatter(search *s, const double *values, size_t n)
{
    return (double)n * gsl_stats_absdev_m(values, 1, n, median_of(s, values, n));
}

/* The split that leaves the least scatter about two medians; *at is the first value behind it, the
 * result how much less scatter there is. */
static double best_split(search *s, const double *values, size_t n, size_t *at)
{
    double best = -1, whole = scatter(s, values, n);
    for (size_t i = LEAST_SEGMENT; i + LEAST_SEGMENT <= n; i++) {
        double score = whole - scatter(s, values, i) - scatter(s, values + i, n - i);
        if (score <= best)
            continue;
        best = score;
        *at = i;
    }
    return best;
}

static int is_step(search *s, const double *values, size_t n, double score)
{
    double *shuffled = malloc(n * sizeof *shuffled);
    if (!shuffled)
        abort();
    size_t as_large = 0, at;
    for (size_t i = 0; i < n; i++)
        shuffled[i] = values[i];
    for (int round = 0; round < SHUFFLES; round++) {
        gsl_ran_shuffle(s->rng, shuffled, n, sizeof *shuffled);
        as_large += best_split(s, shuffled, n, &at) >= score;
    }
    free(shuffled);
    return (double)(as_large + 1) / (SHUFFLES + 1) <= most_false;
}

static void find(search *s, const double *values, size_t first, size_t n, int levels)
{
    size_t at = 0;
    if (n < 2 * LEAST_SEGMENT || levels == 0)
        return;
    double score = best_split(s, values + first, n, &at);
    double change =
            expm1(median_of(s, values + first + at, n - at) - median_of(s, values + first, at));
    if (!is_step(s, values + first, n, score))
        return;
    find(s, values, first, at, levels - 1);
    if (fabs(change) > s->floor && s->n < s->limit)
        s->steps[s->n++] = (gb_step){first + at, change};
    find(s, values, first + at, n - at, levels - 1);
}

/* The change across a step is that between the levels beside it. */
static void measure_steps(search *s, const double *logs, size_t n)
{
    for (size_t k = 0; k < s->n; k++) {
        size_t begin = k ? s->steps[k - 1].at : 0, at = s->steps[k].at;
        size_t end = k + 1 < s->n ? s->steps[k + 1].at : n;
        s->steps[k].change =
                expm1(median_of(s, logs + at, end - at) - median_of(s, logs + begin, at - begin));
    }
}

size_t gb_stats_steps(const double *values, size_t n, double floor, gb_step *steps, size_t limit)
{
    search s = {.floor = floor, .steps = steps, .limit = limit};
    double *logs = malloc((n + 1) * sizeof *logs);
    s.work = malloc((n + 1) * sizeof *s.work);
    s.rng = gsl_rng_alloc(gsl_rng_mt19937);
    if (!logs || !s.work || !s.rng)
        abort();
    gsl_rng_set(s.rng, seed);
    for (size_t i = 0; i < n; i++)
        logs[i] = log(values[i]);
    find(&s, logs, 0, n, MOST_LEVELS);
    measure_steps(&s, logs, n);
    gsl_rng_free(s.rng);
    free(s.work);
    free(logs);
    return s.n;
}

double gb_stats_noise(const double *values, size_t n)
{
    if (n < 4)
        return 0;
    double *differences = malloc(n * sizeof *differences), *work = malloc(n * sizeof *work);
    if (!differences || !work)
        abort();
    for (size_t i = 0; i + 1 < n; i++)
        differences[i] = log(values[i + 1] / values[i]);
    /* A step is one difference among many, which the median absolute deviation does not see. */
    double noise = gsl_stats_mad(differences, 1, n - 1, work) / M_SQRT2;
    free(differences);
    free(work);
    return noise;
}
