/* Taking samples: visits, warm-up, slices between probes. */
#include "cli/run/measure.h"

#include "cli/options/text.h"
#include "cli/run/machine.h"
#include "cli/run/roof.h"

#include <math.h>
#include <time.h>

/* A sample lasts at least this long: a thousand times what the clock resolves. */
static const int64_t shortest_sample_ns = 50000;
/* Samples between two compute probes take about so long. */
static const int64_t slice_ns = 20000000;
enum { FEWEST_SAMPLES = 11, FEWEST_AT_ALL = 5, MOST_SAMPLES = 4000 };
/* A visit of at least so long may spend a probe of the memory, some milliseconds. */
static const int64_t memory_probe_budget_ns = 100000000;

typedef struct meter {
    gb_measured_fn function;
    void *payload;
    const gb_visit_plan *plan;
    gb_measurement *into;
    int64_t begin_ns, calls;
    size_t first, checked; /* samples before the visit; how many there were when the interval was
                              looked at last */
    bool slow;             /* the last slice was */
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
    if (m->plan->before)
        m->plan->before(m->plan->context);
    int64_t start = gb_cli_now_ns();
    for (int64_t i = 0; i < m->calls && m->status == 0; i++)
        m->status = m->function(m->payload);
    return gb_cli_now_ns() - start;
}

static void take_sample(meter *m)
{
    gb_measurement *into = m->into;
    if (into->n_samples == into->sample_capacity) {
        into->sample_capacity = into->sample_capacity ? 2 * into->sample_capacity : 256;
        into->samples = gb_cli_realloc(into->samples, into->sample_capacity, sizeof *into->samples);
    }
    int64_t switches = gb_cli_involuntary_switches();
    int64_t ns = time_calls(m) / m->calls;
    bool preempted = gb_cli_involuntary_switches() != switches;
    into->samples[into->n_samples++] = (gb_sample){.ns = ns, .preempted = preempted};
}

/* Runs until two samples in a row agree within 5 %, for at most a fifth of the budget, and finds
 * the calls per sample. */
static void warm_up(meter *m, int64_t deadline)
{
    /* A visit does not fill more memory than it needs. */
    int64_t shortest = m->plan->budget_ns / MOST_SAMPLES;
    shortest = shortest > shortest_sample_ns ? shortest : shortest_sample_ns;
    int64_t last = time_calls(m);
    while (m->status == 0 && gb_cli_now_ns() < deadline) {
        int64_t elapsed = time_calls(m);
        if (elapsed < shortest && !m->plan->before) {
            m->calls = elapsed > 0 ? m->calls * shortest / elapsed + 1 : m->calls * 2;
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

/* Looked at each time that there are a third more samples. */
static bool is_precise(meter *m)
{
    size_t n = m->into->n_samples - m->first;
    if (n < FEWEST_SAMPLES || n < m->checked + m->checked / 3)
        return false;
    m->checked = n;
    int64_t *sorted = gb_cli_realloc(NULL, n, sizeof *sorted), low, high;
    for (size_t i = 0; i < n; i++)
        sorted[i] = m->into->samples[m->first + i].ns;
    qsort(sorted, n, sizeof *sorted, ascending);
    gb_cli_median_interval(sorted, n, &low, &high);
    bool precise = (double)(high - low) < 2 * m->plan->precision * (double)sorted[n / 2];
    free(sorted);
    return precise;
}

/* Does the visit need no further sample? Looked at behind each of them. */
static bool has_enough(meter *m)
{
    int64_t n = (int64_t)(m->into->n_samples - m->first), elapsed = gb_cli_now_ns() - m->begin_ns;
    if (m->plan->count > 0)
        return n >= m->plan->count;
    /* Other visits have further samples of what takes long. */
    bool long_over = m->plan->one_of_several && elapsed >= 2 * m->plan->budget_ns;
    if (elapsed >= m->plan->budget_ns && (n >= FEWEST_AT_ALL || long_over)) {
        m->into->out_of_budget = true;
        return true;
    }
    if (n >= MOST_SAMPLES)
        return true;
    if (elapsed < m->plan->least_ns)
        return false;
    return (m->slow && m->plan->one_of_several && n >= FEWEST_AT_ALL) || is_precise(m);
}

/* Slices of samples, each with the lower rate of the probes around it. */
static void take_samples(meter *m)
{
    gb_rates before = m->plan->probes ? gb_cli_probe_core() : (gb_rates){0};
    for (bool enough = false; m->status == 0 && !enough;) {
        size_t first = m->into->n_samples;
        int64_t end = gb_cli_now_ns() + slice_ns;
        do {
            take_sample(m);
            enough = has_enough(m);
        } while (m->status == 0 && !enough && gb_cli_now_ns() < end);
        gb_rates after = m->plan->probes ? gb_cli_probe_core() : (gb_rates){0};
        gb_rates rates = gb_cli_rates_min(before, after);
        for (size_t i = first; i < m->into->n_samples; i++)
            m->into->samples[i].rates = rates;
        m->slow = gb_cli_rates_are_slow(rates, gb_cli_probe_best());
        before = after;
    }
}

int gb_cli_measure_visit(
        gb_measured_fn function, void *payload, const gb_visit_plan *plan, gb_measurement *into)
{
    meter m = {.function = function,
            .payload = payload,
            .plan = plan,
            .into = into,
            .begin_ns = gb_cli_now_ns(),
            .calls = 1,
            .first = into->n_samples};
    gb_visit visit = {.at_ns = m.begin_ns, .cold_ns = -1, .first = m.first};
    gb_cpu_times times = gb_cli_cpu_times();
    into->fixed = plan->count > 0;
    into->out_of_budget = false;
    if (plan->probes && plan->budget_ns >= memory_probe_budget_ns) {
        visit.bytes = gb_cli_probe_memory();
        visit.cold_ns = time_calls(&m);
    }
    int64_t warm_until = m.begin_ns + plan->budget_ns / 5;
    if (plan->count == 0 && (visit.cold_ns < 0 || gb_cli_now_ns() < warm_until))
        warm_up(&m, warm_until);
    take_samples(&m);
    if (m.status != 0) {
        into->n_samples = m.first;
        return m.status;
    }
    visit.calls_per_sample = m.calls;
    visit.n_samples = into->n_samples - m.first;
    visit.steal = gb_cli_steal_since(&times);
    into->spent_ns += gb_cli_now_ns() - m.begin_ns;
    into->visits = gb_cli_realloc(into->visits, into->n_visits + 1, sizeof *into->visits);
    into->visits[into->n_visits++] = visit;
    return 0;
}

void gb_cli_measurement_join(gb_measurement *into, gb_measurement *from)
{
    size_t samples = into->n_samples + from->n_samples, visits = into->n_visits + from->n_visits;
    if (from->n_visits == 0)
        return;
    into->samples = gb_cli_realloc(into->samples, samples, sizeof *into->samples);
    into->visits = gb_cli_realloc(into->visits, visits, sizeof *into->visits);
    for (size_t i = 0; i < from->n_samples; i++)
        into->samples[into->n_samples + i] = from->samples[i];
    for (size_t i = 0; i < from->n_visits; i++) {
        into->visits[into->n_visits + i] = from->visits[i];
        into->visits[into->n_visits + i].first += into->n_samples;
    }
    into->n_samples = into->sample_capacity = samples;
    into->n_visits = visits;
    into->spent_ns += from->spent_ns;
    into->out_of_budget = from->out_of_budget;
    into->fixed = from->fixed;
    gb_cli_measurement_free(from);
}

void gb_cli_measurement_free(gb_measurement *measurement)
{
    free(measurement->samples);
    free(measurement->visits);
    *measurement = (gb_measurement){0};
}
