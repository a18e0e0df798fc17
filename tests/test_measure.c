/* What measurements say of samples whose values are known. */
#include "cli/run/evict.h"
#include "cli/run/measure.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void add_probed_visit(
        gb_measurement *m, size_t n, int64_t (*time)(size_t i), gb_rates rates, bool preempted)
{
    m->samples = realloc(m->samples, (m->n_samples + n) * sizeof *m->samples);
    m->visits = realloc(m->visits, (m->n_visits + 1) * sizeof *m->visits);
    m->visits[m->n_visits++] =
            (gb_visit){.first = m->n_samples, .n_samples = n, .calls_per_sample = 1, .cold_ns = -1};
    for (size_t i = 0; i < n; i++)
        m->samples[m->n_samples++] = (gb_sample){time(i), rates, preempted};
}

static void add_visit(
        gb_measurement *m, size_t n, int64_t (*time)(size_t i), double rate, bool preempted)
{
    add_probed_visit(m, n, time, (gb_rates){rate * 1e9, rate * 2e9, 0, 0}, preempted);
}

static int64_t one_to(size_t i)
{
    return (int64_t)((i * 37) % 101 + 1); /* a permutation of 1 .. 101 */
}

static int64_t about_1000(size_t i)
{
    return 1000 + (int64_t)(i % 3);
}

static int64_t about_2000(size_t i)
{
    return 2000 + (int64_t)(i % 3);
}

static int64_t two_heaps(size_t i)
{
    return (i % 2 ? 1500 : 1000) + (int64_t)(i % 5);
}

static int64_t some_far(size_t i)
{
    return i % 10 == 0 ? 5000 : 1000 + (int64_t)(i % 7);
}

static gb_summary summarize(gb_measurement *m, double best_rate)
{
    gb_summary summary;
    gb_cli_measurement_summarize(m, 0.01, (gb_rates){best_rate, 2 * best_rate, 25e6, 0}, &summary);
    gb_cli_measurement_free(m);
    return summary;
}

Test(measure, quantiles_of_known_samples)
{
    gb_measurement m = {0};
    add_visit(&m, 101, one_to, 0, false);
    gb_summary s = summarize(&m, 0);
    cr_assert_eq(s.min_ns, 1);
    cr_assert_eq(s.median_ns, 51);
    cr_assert_eq(s.average_ns, 51);
    cr_assert_eq(s.p90_ns, 91);
    cr_assert_eq(s.p99_ns, 100);
    cr_assert_eq(s.mad_ns, 25);
    /* Binomial with n = 101: ranks 41 and 62 hold the median with 95 %. */
    cr_assert_eq(s.low_ns, 41);
    cr_assert_eq(s.high_ns, 62);
    cr_assert_str_eq(s.stopped_by, "noisy");
}

Test(measure, intervals_of_few_values_are_their_range)
{
    int64_t values[] = {3, 5, 8, 13, 21, 34}, low, high;
    gb_cli_median_interval(values, 5, &low, &high);
    cr_assert(low == 3 && high == 21);
    gb_cli_median_interval(values, 6, &low, &high);
    cr_assert(low == 3 && high == 34);
    gb_cli_median_interval(values, 1, &low, &high);
    cr_assert(low == 3 && high == 3);
}

Test(measure, slow_samples_are_set_apart)
{
    gb_measurement m = {0};
    add_visit(&m, 10, about_1000, 100, false);
    add_visit(&m, 90, about_2000, 50, false);
    gb_summary s = summarize(&m, 100e9);
    cr_assert_eq(s.n_slow, 90);
    cr_assert_eq(s.median_ns, 1001);
    cr_assert_eq(s.flags & FLAG_SLOW, 0);
    cr_assert_eq(s.n_fast_visits, 1);
    cr_assert_str_eq(s.stopped_by, "converged");
}

/* Another program on the core's other hardware thread takes half of L1, and leaves the arithmetic alone. */
Test(measure, samples_beside_a_slow_cache_are_set_apart)
{
    gb_measurement m = {0};
    add_visit(&m, 10, about_1000, 100, false);
    add_probed_visit(&m, 90, about_2000, (gb_rates){100e9, 100e9, 0, 0}, false);
    gb_summary s = summarize(&m, 100e9);
    cr_assert_eq(s.n_slow, 90);
    cr_assert_eq(s.median_ns, 1001);
    cr_assert_eq(s.n_fast_visits, 1);
}

/* One that only stands there halves the queues of the core: a fifth of L1 is gone. */
Test(measure, samples_beside_a_waiting_neighbour_are_set_apart)
{
    gb_measurement m = {0};
    add_visit(&m, 10, about_1000, 90, false); /* a lower clock takes from both */
    add_probed_visit(&m, 90, about_2000, (gb_rates){90e9, 145e9, 0, 0}, false);
    gb_summary s = summarize(&m, 100e9);
    cr_assert_eq(s.n_slow, 90);
    cr_assert_eq(s.median_ns, 1001);
}

Test(measure, samples_of_threads_on_cores_that_share_no_cache_are_set_apart)
{
    gb_measurement m = {0};
    add_probed_visit(&m, 10, about_1000, (gb_rates){100e9, 200e9, 16e6, 0}, false);
    add_probed_visit(&m, 90, about_2000, (gb_rates){100e9, 200e9, 5e6, 0}, false);
    gb_summary s = summarize(&m, 100e9);
    cr_assert_eq(s.n_slow, 90);
    cr_assert_eq(s.median_ns, 1001);
}

/* The widest vectors run at a lower clock: that is their time, and no neighbour's. */
Test(measure, a_lower_clock_is_not_slow)
{
    gb_measurement m = {0};
    add_visit(&m, 10, about_1000, 100, false);
    add_visit(&m, 90, about_2000, 75, false);
    gb_summary s = summarize(&m, 100e9);
    cr_assert_eq(s.n_slow, 0);
    cr_assert_eq(s.median_ns, 2001);
    cr_assert_eq(s.n_fast_visits, 2);
}

Test(measure, a_machine_that_was_never_fast_is_told)
{
    gb_measurement m = {0};
    add_visit(&m, 90, about_2000, 50, false);
    gb_summary s = summarize(&m, 100e9);
    cr_assert_eq(s.median_ns, 2001);
    cr_assert(s.flags & FLAG_SLOW);
}

Test(measure, preempted_samples_are_set_apart_while_others_suffice)
{
    gb_measurement m = {0};
    add_visit(&m, 10, about_1000, 100, false);
    add_visit(&m, 90, about_2000, 100, true);
    gb_summary s = summarize(&m, 100e9);
    cr_assert_eq(s.n_preempted, 90);
    cr_assert_eq(s.median_ns, 1001);
    cr_assert_eq(s.flags & FLAG_PREEMPTED, 0);
    add_visit(&m, 2, about_1000, 100, false);
    add_visit(&m, 90, about_2000, 100, true);
    s = summarize(&m, 100e9);
    cr_assert(s.flags & FLAG_PREEMPTED);
    cr_assert_eq(s.median_ns, 2001);
}

Test(measure, visits_decide_the_interval)
{
    gb_measurement m = {0};
    for (int visit = 0; visit < 6; visit++)
        add_visit(&m, 50, visit == 2 ? about_2000 : about_1000, 100, false);
    gb_summary s = summarize(&m, 100e9);
    cr_assert_eq(s.median_ns, 1001);
    cr_assert_eq(s.low_ns, 1001);
    cr_assert_eq(s.high_ns, 2001);
    cr_assert_str_eq(s.stopped_by, "noisy");
}

static int64_t level;

static int64_t at_level(size_t i)
{
    return level + (int64_t)(i % 3);
}

Test(measure, flags)
{
    gb_measurement m = {0};
    add_visit(&m, 100, two_heaps, 0, false);
    cr_assert_eq(summarize(&m, 0).flags, FLAG_BIMODAL);
    add_visit(&m, 100, some_far, 0, false);
    cr_assert_eq(summarize(&m, 0).flags, FLAG_OUTLIERS);
    add_visit(&m, 100, about_1000, 0, false);
    cr_assert_eq(summarize(&m, 0).flags, 0);
    for (level = 1000; level < 1300; level += 50)
        add_visit(&m, 20, at_level, 0, false);
    cr_assert(summarize(&m, 0).flags & FLAG_DRIFT);
}

static int count_down(void *payload)
{
    int *calls = payload;
    return --*calls == 0 ? 7 : 0;
}

Test(measure, a_failure_ends_the_visit_and_leaves_no_samples)
{
    int calls = 30;
    gb_measurement m = {0};
    gb_visit_plan plan = {.count = 1000};
    cr_assert_eq(gb_cli_measure_visit(count_down, &calls, &plan, &m), 7);
    cr_assert_eq(m.n_samples, 0);
    cr_assert_eq(m.n_visits, 0);
    gb_cli_measurement_free(&m);
}

Test(measure, a_count_is_exact_and_visits_join)
{
    int calls = -1;
    gb_measurement m = {0}, more = {0};
    gb_visit_plan plan = {.count = 20};
    cr_assert_eq(gb_cli_measure_visit(count_down, &calls, &plan, &m), 0);
    cr_assert_eq(calls, -21);
    cr_assert_eq(gb_cli_measure_visit(count_down, &calls, &plan, &more), 0);
    gb_cli_measurement_join(&m, &more);
    cr_assert_eq(m.n_samples, 40);
    cr_assert_eq(m.visits[1].first, 20);
    cr_assert_null(more.samples);
    cr_assert_str_eq(summarize(&m, 0).stopped_by, "fixed");
}

typedef struct counted {
    int befores, calls;
} counted;

static void pause_two_ms(void *context)
{
    ((counted *)context)->befores++;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static int count_call(void *payload)
{
    ((counted *)payload)->calls++;
    return 0;
}

Test(measure, what_comes_before_each_call_is_not_timed)
{
    counted c = {0, 0};
    gb_measurement m = {0};
    gb_visit_plan plan = {.budget_ns = 60000000,
            .least_ns = 20000000,
            .precision = 0.01,
            .before = pause_two_ms,
            .context = &c};
    cr_assert_eq(gb_cli_measure_visit(count_call, &c, &plan, &m), 0);
    cr_assert_gt(m.n_samples, 0);
    cr_assert_eq(c.befores, c.calls);
    cr_assert_eq(m.visits[0].calls_per_sample, 1);
    gb_summary s = summarize(&m, 0);
    cr_assert_lt(s.median_ns, 1000000, "%lld ns", (long long)s.median_ns);
}

#if defined(__x86_64__)

/* A cycle through all lines in an order that no prefetcher guesses; each step waits for the last. */
enum { LINES = 4096, WORDS = 8, STEP = 1597 };
static uint64_t ring[LINES * WORDS] __attribute__((aligned(64)));

static int64_t walk(void)
{
    static volatile uint64_t end;
    uint64_t at = 0;
    int64_t start = gb_cli_now_ns();
    for (int i = 0; i < LINES; i++)
        at = ring[at * WORDS];
    end = at;
    (void)end;
    return gb_cli_now_ns() - start;
}

Test(measure, evicted_lines_come_from_memory)
{
    gb_cached_range range = {ring, sizeof ring};
    gb_eviction eviction = {1, &range};
    int64_t warm = INT64_MAX, cold = INT64_MAX;
    if (!getenv("GB_TIMING"))
        cr_skip_test("times are compared with GB_TIMING=1 only");
    for (uint64_t i = 0; i < LINES; i++)
        ring[i * WORDS] = (i + STEP) % LINES;
    for (int i = 0; i < 20; i++) {
        int64_t ns = walk();
        warm = ns < warm ? ns : warm;
    }
    for (int i = 0; i < 20; i++) {
        gb_cli_evict(&eviction);
        int64_t ns = walk();
        cold = ns < cold ? ns : cold;
    }
    cr_assert_gt(cold, 2 * warm, "%lld ns cold, %lld ns warm", (long long)cold, (long long)warm);
}

#endif
