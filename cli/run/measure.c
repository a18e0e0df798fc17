/* Measuring a piece of code. */
#include "cli/run/measure.h"

#include "cli/options/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* A sample lasts at least this long: a thousand times what the clock resolves. */
static const int64_t shortest_sample_ns = 50000;
/* Half-width of the 95 % confidence interval of the median, relative to it, that ends a
 * measurement. */
static const double precision = 0.005;
enum { FEWEST_SAMPLES = 11, MOST_SAMPLES = 100000 };

typedef struct meter {
    gb_measured_fn function;
    void *payload;
    int64_t calls; /* per sample */
    int64_t n, capacity;
    int64_t *samples; /* per call; in the order taken */
    int status;
} meter;

int64_t gb_cli_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t time_calls(meter *m)
{
    int64_t start = gb_cli_now_ns();
    for (int64_t i = 0; i < m->calls && m->status == 0; i++)
        m->status = m->function(m->payload);
    return gb_cli_now_ns() - start;
}

static void take_sample(meter *m)
{
    if (m->n == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 256;
        m->samples = gb_cli_realloc(m->samples, (size_t)m->capacity, sizeof *m->samples);
    }
    m->samples[m->n++] = time_calls(m) / m->calls;
}

/* Runs until two samples in a row agree within 5 %, for at most a fifth of the budget, and finds
 * the calls per sample. */
static void warm_up(meter *m, int64_t deadline)
{
    int64_t last = time_calls(m);
    while (m->status == 0 && gb_cli_now_ns() < deadline) {
        int64_t elapsed = time_calls(m);
        if (elapsed < shortest_sample_ns) {
            m->calls = elapsed > 0 ? m->calls * shortest_sample_ns / elapsed + 1 : m->calls * 2;
            last = 0;
            continue;
        }
        if (llabs(elapsed - last) * 20 < elapsed)
            return;
        last = elapsed;
    }
}

static int ascending(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Is the interval between the order statistics around the median narrow? (n/2 +- 0.98 sqrt(n):
 * binomial, 95 %.) */
static bool is_precise(const meter *m)
{
    if (m->n < FEWEST_SAMPLES || (m->n & (m->n - 1)) != 0)
        return false; /* looked at for powers of two only */
    int64_t *sorted = gb_cli_realloc(NULL, (size_t)m->n, sizeof *sorted);
    for (int64_t i = 0; i < m->n; i++)
        sorted[i] = m->samples[i];
    qsort(sorted, (size_t)m->n, sizeof *sorted, ascending);
    double half = 0.98 * sqrt((double)m->n);
    int64_t low = (int64_t)fmax(0, floor((double)m->n / 2 - half));
    int64_t high = (int64_t)fmin((double)m->n - 1, ceil((double)m->n / 2 + half));
    bool precise = (double)(sorted[high] - sorted[low]) < 2 * precision * (double)sorted[m->n / 2];
    free(sorted);
    return precise;
}

static int64_t quantile(const int64_t *sorted, int64_t n, double q)
{
    return sorted[(int64_t)fmin((double)n - 1, floor(q * (double)n))];
}

static void summarize(meter *m, gb_measurement *result)
{
    double sum = 0;
    for (int64_t i = 0; i < m->n; i++)
        sum += (double)m->samples[i];
    qsort(m->samples, (size_t)m->n, sizeof *m->samples, ascending);
    result->n_samples = m->n;
    result->calls_per_sample = m->calls;
    result->min_ns = m->samples[0];
    result->median_ns = quantile(m->samples, m->n, 0.5);
    result->p90_ns = quantile(m->samples, m->n, 0.9);
    result->p99_ns = quantile(m->samples, m->n, 0.99);
    result->average_ns = (int64_t)(sum / (double)m->n);
    for (int64_t i = 0; i < m->n; i++)
        m->samples[i] = llabs(m->samples[i] - result->median_ns);
    qsort(m->samples, (size_t)m->n, sizeof *m->samples, ascending);
    result->mad_ns = quantile(m->samples, m->n, 0.5);
}

int gb_cli_measure(gb_measured_fn function, void *payload, double budget_ms, int64_t count,
        gb_measurement *result)
{
    meter m = {.function = function, .payload = payload, .calls = 1};
    int64_t start = gb_cli_now_ns(), budget = (int64_t)(budget_ms * 1e6);
    *result = (gb_measurement){.stopped_by = count > 0 ? "count" : "budget"};
    if (count == 0)
        warm_up(&m, start + budget / 5);
    while (m.status == 0 && m.n < MOST_SAMPLES && (count == 0 || m.n < count)) {
        take_sample(&m);
        if (count > 0)
            continue;
        if (is_precise(&m)) {
            result->stopped_by = "precision";
            break;
        }
        if (gb_cli_now_ns() - start >= budget && m.n >= 5)
            break;
    }
    if (m.status == 0)
        summarize(&m, result);
    free(m.samples);
    return m.status;
}
