/* Effects by the bootstrap. */
#include "cli/stats/effect.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

enum { RESAMPLES = 4000 };
static const unsigned long seed = 20240229;

typedef struct bootstrap {
    gsl_rng *rng;
    double *drawn;   /* as many as the larger set */
    double *changes; /* RESAMPLES */
} bootstrap;

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory)
        abort();
    return memory;
}

static void start(bootstrap *b, size_t most_values)
{
    b->rng = gsl_rng_alloc(gsl_rng_mt19937);
    if (!b->rng)
        abort();
    gsl_rng_set(b->rng, seed);
    b->drawn = allocate(most_values, sizeof *b->drawn);
    b->changes = allocate(RESAMPLES, sizeof *b->changes);
}

static void finish(bootstrap *b)
{
    gsl_rng_free(b->rng);
    free(b->drawn);
    free(b->changes);
}

static double median_of_draw(bootstrap *b, double *values, size_t n)
{
    gsl_ran_sample(b->rng, b->drawn, n, values, n, sizeof *values);
    return gsl_stats_median(b->drawn, 1, n);
}

static double *logarithms(const double *values, size_t n)
{
    double *logs = allocate(n, sizeof *logs);
    for (size_t i = 0; i < n; i++)
        logs[i] = log(values[i]);
    return logs;
}

/* Standard deviation by the median absolute deviation; leaves the values as they are. */
static double spread_of(const double *values, size_t n)
{
    double *work = allocate(n, sizeof *work);
    double spread = n > 1 ? gsl_stats_mad(values, 1, n, work) : 0;
    free(work);
    return spread;
}

double gb_stats_median(const double *values, size_t n)
{
    double *sorted = allocate(n, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = values[i];
    double median = n ? gsl_stats_median(sorted, 1, n) : 0;
    free(sorted);
    return median;
}

static void take_interval(bootstrap *b, double confidence, gb_effect *effect)
{
    gsl_sort(b->changes, 1, RESAMPLES);
    double tail = (1 - confidence) / 2;
    effect->low = expm1(gsl_stats_quantile_from_sorted_data(b->changes, 1, RESAMPLES, tail));
    effect->high = expm1(gsl_stats_quantile_from_sorted_data(b->changes, 1, RESAMPLES, 1 - tail));
}

void gb_stats_unpaired(const double *a, size_t n_a, const double *b, size_t n_b, double confidence,
        gb_effect *effect)
{
    double *log_a = logarithms(a, n_a), *log_b = logarithms(b, n_b);
    double spread_a = spread_of(log_a, n_a), spread_b = spread_of(log_b, n_b);
    *effect =
            (gb_effect){.change = expm1(gb_stats_median(log_b, n_b) - gb_stats_median(log_a, n_a)),
                    .low = -1,
                    .high = INFINITY,
                    .spread = fmax(spread_a, spread_b)};
    if (n_a >= GB_STATS_FEWEST_VALUES && n_b >= GB_STATS_FEWEST_VALUES) {
        bootstrap boot;
        start(&boot, n_a > n_b ? n_a : n_b);
        for (int i = 0; i < RESAMPLES; i++) {
            double drawn_a = median_of_draw(&boot, log_a, n_a);
            boot.changes[i] = median_of_draw(&boot, log_b, n_b) - drawn_a;
        }
        take_interval(&boot, confidence, effect);
        finish(&boot);
    }
    free(log_a);
    free(log_b);
}

void gb_stats_paired(const double *log_ratios, size_t n, double confidence, gb_effect *effect)
{
    *effect = (gb_effect){.change = expm1(gb_stats_median(log_ratios, n)),
            .low = -1,
            .high = INFINITY,
            .spread = spread_of(log_ratios, n)};
    if (n < GB_STATS_FEWEST_VALUES)
        return;
    double *values = allocate(n, sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = log_ratios[i];
    bootstrap boot;
    start(&boot, n);
    for (int i = 0; i < RESAMPLES; i++)
        boot.changes[i] = median_of_draw(&boot, values, n);
    take_interval(&boot, confidence, effect);
    finish(&boot);
    free(values);
}

gb_change gb_stats_judge(const gb_effect *effect, double floor, double noise)
{
    double least = fmax(floor, noise), size = fabs(effect->change);
    double nearest = effect->change > 0 ? effect->low : -effect->high; /* to no change */
    if (size > least && nearest >= size / 2)
        return effect->change > 0 ? CHANGE_SLOWER : CHANGE_FASTER;
    bool within = fabs(effect->change) <= floor;
    bool narrow = effect->low >= -2 * floor && effect->high <= 2 * floor;
    return within && narrow ? CHANGE_SAME : CHANGE_UNSURE;
}

const char *gb_stats_change_name(gb_change change)
{
    static const char *const names[] = {
            [CHANGE_SAME] = "SAME",
            [CHANGE_FASTER] = "FASTER",
            [CHANGE_SLOWER] = "SLOWER",
            [CHANGE_UNSURE] = "UNSURE",
    };
    return names[change];
}
