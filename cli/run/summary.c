/* What samples say: which of them count, their quantiles, the interval of the median, and what is
 * odd about them. */
#include "cli/options/text.h"
#include "cli/run/measure.h"

#include <math.h>

/* Multiply-adds below this share of what the clock allows say that the machine is slow: a neighbour on a
 * core's other hardware thread takes about half, or for half of the time a quarter. The clock alone, which falls
 * by a fifth under the widest instructions of the measured code, is no such reason. */
static const double slow_share = 0.85;
/* The same of all of the best, where the clock was not probed. */
static const double slow_share_at_any_clock = 0.7;
/* L1 below this share of what the clock allows is slow; the clock is told by multiply-adds where it
 * was not probed. There is a state in which it reaches four fifths, and a convolution takes 1.25
 * times as long (the cause is not known). */
static const double slow_l1_share = 0.82;
/* Cores that share no cache meet in several times the time (measured: 210 ns in place of 40 to 62; two
 * hardware threads of one core, 34). */
static const double slow_handshakes = 0.35;
/* The same for probes of the memory. */
static const double slow_memory = 0.6;
/* So many samples are enough to do without the others; of a visit, and of all. */
enum { FEWEST_OF_VISIT = 3, FEWEST_THAT_COUNT = 5, VISITS_FOR_INTERVAL = 3 };

const gb_summary gb_cli_no_times = {.min_ns = -1,
        .median_ns = -1,
        .average_ns = -1,
        .p90_ns = -1,
        .p99_ns = -1,
        .max_ns = -1,
        .mad_ns = -1,
        .low_ns = -1,
        .high_ns = -1};

const char *gb_cli_flag_name(int bit)
{
    static const char *const names[FLAG_COUNT] = {
            "drift", "bimodal", "outliers", "preempted", "slow", "steal"};
    return names[bit];
}

static int ascending(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void sort(int64_t *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
}

static int64_t quantile(const int64_t *sorted, size_t n, double q)
{
    return sorted[(size_t)fmin((double)n - 1, floor(q * (double)n))];
}

void gb_cli_median_interval(const int64_t *sorted, size_t n, int64_t *low, int64_t *high)
{
    /* n/2 +- 0.98 sqrt(n): the normal approximation of the binomial distribution. */
    double half = 0.98 * sqrt((double)n);
    *low = sorted[(size_t)fmax(0, floor((double)n / 2 - half))];
    *high = sorted[(size_t)fmin((double)n - 1, ceil((double)n / 2 + half))];
}

/* Which samples are left out. */
typedef struct choice {
    bool without_preempted, without_slow;
    gb_rates best;
} choice;

gb_rates gb_cli_rates_min(gb_rates a, gb_rates b)
{
    return (gb_rates){fmin(a.flops, b.flops), fmin(a.l1, b.l1), fmin(a.handshakes, b.handshakes),
            fmin(a.clock, b.clock)};
}

gb_rates gb_cli_rates_max(gb_rates a, gb_rates b)
{
    return (gb_rates){fmax(a.flops, b.flops), fmax(a.l1, b.l1), fmax(a.handshakes, b.handshakes),
            fmax(a.clock, b.clock)};
}

unsigned gb_cli_rates_state(gb_rates rates, gb_rates best)
{
    double share = best.flops > 0 ? fmin(rates.flops / best.flops, 1) : 1;
    bool knows_clock = rates.clock > 0 && best.clock > 0;
    double clock = knows_clock ? fmin(rates.clock / best.clock, 1) : share;
    double least = knows_clock ? slow_share * clock : slow_share_at_any_clock;
    bool slow_arithmetic = rates.flops > 0 && share < least;
    bool slow_l1 = rates.l1 > 0 && rates.l1 < slow_l1_share * clock * best.l1;
    bool far = rates.handshakes > 0 && rates.handshakes < slow_handshakes * best.handshakes;
    return (slow_arithmetic ? STATE_SLOW_ARITHMETIC : 0u) | (slow_l1 ? STATE_SLOW_L1 : 0u) |
           (far ? STATE_FAR_CORES : 0u);
}

bool gb_cli_rates_are_slow(gb_rates rates, gb_rates best)
{
    return gb_cli_rates_state(rates, best) != 0;
}

static bool counts(const choice *c, const gb_sample *sample)
{
    return !(c->without_preempted && sample->preempted) &&
           !(c->without_slow && gb_cli_rates_are_slow(sample->rates, c->best));
}

/* The times that count of `n` samples from `first` on, in ascending order; the caller's. */
static int64_t *take(
        const choice *c, const gb_measurement *m, size_t first, size_t n, size_t *n_taken)
{
    int64_t *times = gb_cli_realloc(NULL, n + 1, sizeof *times);
    *n_taken = 0;
    for (size_t i = first; i < first + n; i++)
        if (counts(c, &m->samples[i]))
            times[(*n_taken)++] = m->samples[i].ns;
    sort(times, *n_taken);
    return times;
}

/* Samples are left out only as far as enough stay: slow ones last, since they are furthest off. */
static choice choose(const gb_measurement *m, gb_rates best)
{
    static const choice choices[] = {{.without_preempted = true, .without_slow = true},
            {.without_slow = true}, {.without_preempted = true}};
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        choice c = choices[k];
        size_t n = 0;
        c.best = best;
        for (size_t i = 0; i < m->n_samples; i++)
            n += counts(&c, &m->samples[i]);
        if (n >= FEWEST_THAT_COUNT)
            return c;
    }
    return (choice){.best = best};
}

/* Median of the visit's samples that the choice leaves; -1: they are too few. */
static double median_of_visit(const choice *c, const gb_measurement *m, const gb_visit *visit)
{
    size_t n;
    int64_t *times = take(c, m, visit->first, visit->n_samples, &n);
    bool enough = n >= FEWEST_OF_VISIT || n == visit->n_samples;
    double median = n > 0 && enough ? (double)times[n / 2] : -1;
    free(times);
    return median;
}

/* The rates beside the visit's samples that the choice leaves: on average, and whether they tell of one state. */
static gb_rates rates_of_visit(
        const choice *c, const gb_measurement *m, const gb_visit *visit, bool *steady)
{
    gb_rates sum = {0};
    double n = 0;
    unsigned first = 0;
    *steady = true;
    for (size_t i = visit->first; i < visit->first + visit->n_samples; i++) {
        const gb_sample *sample = &m->samples[i];
        if (!counts(c, sample))
            continue;
        unsigned state = gb_cli_rates_state(sample->rates, c->best);
        first = n > 0 ? first : state;
        *steady = *steady && state == first;
        sum = (gb_rates){sum.flops + sample->rates.flops, sum.l1 + sample->rates.l1,
                sum.handshakes + sample->rates.handshakes, sum.clock + sample->rates.clock};
        n++;
    }
    n = fmax(n, 1);
    return (gb_rates){sum.flops / n, sum.l1 / n, sum.handshakes / n, sum.clock / n};
}

gb_visit_times gb_cli_visit_times(
        const gb_measurement *measurement, const gb_visit *visit, gb_rates best)
{
    choice c = choose(measurement, best);
    gb_visit_times times = {
            .median_ns = median_of_visit(&c, measurement, visit), .slow_median_ns = -1};
    bool steady;
    if (times.median_ns < 0)
        c = (choice){.without_preempted = true, .best = best};
    times.rates = rates_of_visit(&c, measurement, visit, &steady);
    if (times.median_ns < 0 && steady)
        times.slow_median_ns = median_of_visit(&c, measurement, visit);
    return times;
}

/* Two heaps: the widest gap between neighbours in the middle four fifths is wide against what lies
 * on both sides of it. */
static bool is_bimodal(const int64_t *sorted, size_t n)
{
    size_t low = n / 10, high = n - 1 - n / 10, at = low;
    if (n < 20)
        return false;
    for (size_t i = low; i < high; i++)
        if (sorted[i + 1] - sorted[i] > sorted[at + 1] - sorted[at])
            at = i;
    int64_t gap = sorted[at + 1] - sorted[at];
    int64_t left = sorted[at] - sorted[low], right = sorted[high] - sorted[at + 1];
    return gap * 20 > sorted[at] && gap > left && gap > right;
}

/* More than one in twenty beyond three times the distance from the median to the third quartile. */
static bool has_outliers(const int64_t *sorted, size_t n)
{
    int64_t median = sorted[n / 2], spread = quantile(sorted, n, 0.75) - median;
    int64_t limit = median + 3 * (spread > median / 100 ? spread : median / 100);
    size_t beyond = 0;
    for (size_t i = n; i > 0 && sorted[i - 1] > limit; i--)
        beyond++;
    return n >= 20 && beyond * 20 > n;
}

/* Mann and Kendall: nearly all pairs of visits are in the same order, and the ends lie apart. */
static bool drifts(const int64_t *medians, size_t n, double precision)
{
    int64_t score = 0, pairs = (int64_t)(n * (n - 1) / 2);
    if (n < 5)
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            score += (medians[j] > medians[i]) - (medians[j] < medians[i]);
    double change = fabs((double)(medians[n - 1] - medians[0]));
    return llabs(score) * 10 >= pairs * 8 && change > 4 * precision * (double)medians[0];
}

static int64_t middle(const int64_t *sorted, size_t n)
{
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* Of the visits' medians, in the order of the visits; into the summary and its flags. */
static void summarize_visits(
        const gb_measurement *m, double precision, gb_rates best, int64_t *medians, gb_summary *s)
{
    choice c = choose(m, best);
    size_t n = 0, n_stolen = 0;
    double best_bytes = 0;
    for (size_t v = 0; v < m->n_visits; v++)
        best_bytes = fmax(best_bytes, m->visits[v].bytes);
    for (size_t v = 0; v < m->n_visits; v++) {
        const gb_visit *visit = &m->visits[v];
        double median = median_of_visit(&c, m, visit);
        n_stolen += visit->steal > 0.02;
        bool starved = visit->bytes > 0 && visit->bytes < slow_memory * best_bytes;
        if (median >= 0 && !starved)
            medians[n++] = (int64_t)median;
    }
    s->n_fast_visits = n;
    if (drifts(medians, n, precision))
        s->flags |= FLAG_DRIFT;
    if (2 * n_stolen > m->n_visits)
        s->flags |= FLAG_STEAL;
    if (n < VISITS_FOR_INTERVAL)
        return;
    sort(medians, n);
    gb_cli_median_interval(medians, n, &s->low_ns, &s->high_ns);
    s->median_ns = middle(medians, n);
}

static void summarize_samples(int64_t *times, size_t n, gb_summary *s)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)times[i];
    s->min_ns = times[0];
    s->median_ns = middle(times, n);
    s->p90_ns = quantile(times, n, 0.9);
    s->p99_ns = quantile(times, n, 0.99);
    s->max_ns = times[n - 1];
    s->average_ns = (int64_t)(sum / (double)n);
    if (n > 1) /* one time tells nothing of its interval */
        gb_cli_median_interval(times, n, &s->low_ns, &s->high_ns);
    s->flags |= (is_bimodal(times, n) ? FLAG_BIMODAL : 0) |
                (has_outliers(times, n) ? FLAG_OUTLIERS : 0);
    for (size_t i = 0; i < n; i++)
        times[i] = llabs(times[i] - s->median_ns);
    sort(times, n);
    s->mad_ns = middle(times, n);
}

void gb_cli_measurement_summarize(
        const gb_measurement *measurement, double precision, gb_rates best, gb_summary *summary)
{
    choice c = choose(measurement, best);
    size_t n;
    int64_t *times = take(&c, measurement, 0, measurement->n_samples, &n);
    *summary =
            (gb_summary){.n_samples = (int64_t)measurement->n_samples, .low_ns = -1, .high_ns = -1};
    for (size_t i = 0; i < measurement->n_samples; i++) {
        summary->n_preempted += measurement->samples[i].preempted;
        summary->n_slow += gb_cli_rates_are_slow(measurement->samples[i].rates, best);
    }
    if (!c.without_preempted && summary->n_preempted)
        summary->flags |= FLAG_PREEMPTED;
    if (!c.without_slow && summary->n_slow)
        summary->flags |= FLAG_SLOW;
    summarize_samples(times, n, summary);
    int64_t *medians = gb_cli_realloc(NULL, measurement->n_visits + 1, sizeof *medians);
    summarize_visits(measurement, precision, best, medians, summary);
    free(medians);
    free(times);
    double width = (double)(summary->high_ns - summary->low_ns);
    bool narrow = n >= FEWEST_THAT_COUNT && width <= 2 * precision * (double)summary->median_ns;
    summary->stopped_by = measurement->fixed           ? "fixed"
                          : narrow                     ? "converged"
                          : measurement->out_of_budget ? "budget"
                                                       : "noisy";
}
