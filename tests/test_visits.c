/* Which waiting cases are visited again. The budget is 600 ms: six visits are wanted. */
#include "cli/run/roof.h"
#include "cli/run/visits.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static const int64_t budget_ns = 600000000;

/* A case that waits, by itself. */
typedef struct waiting {
    gb_waiting_case test;
    gb_partition_result part;
    gb_pool pool;
} waiting;

static void start(waiting *w, int64_t visits)
{
    *w = (waiting){.test = {.visits = visits}};
    gb_cli_settings_init(&w->test.settings);
    w->test.settings.mode = MODE_PERFORMANCE;
    w->test.settings.max_ms = 600;
    w->test.result.measured = true;
    w->test.result.n_partitions = 1;
    w->test.result.partitions = &w->part;
    w->part.times.stopped_by = "converged";
    w->part.times.n_fast_visits = 6;
    w->part.measured.n_samples = 1;
    w->part.measured.spent_ns = budget_ns / 2;
    w->pool.cases[0] = &w->test;
    w->pool.n = 1;
}

static void again(waiting *w, bool wanted, const char *what)
{
    size_t order[POOL_LIMIT];
    cr_assert_eq(gb_cli_pool_round(&w->pool, order), wanted ? 1 : 0, "%s", what);
    gb_cli_settings_free(&w->test.settings);
}

Test(visits, wanted_ones_are_made)
{
    waiting w;
    start(&w, 1);
    again(&w, true, "the second of six");
    start(&w, 5);
    again(&w, true, "the sixth of six");
    start(&w, 6);
    again(&w, false, "precise and fast");
    start(&w, 2);
    w.test.settings.visits = 2;
    again(&w, false, "two are asked for");
    start(&w, 1);
    w.test.settings.fix_times = 10;
    again(&w, false, "a count is asked for");
    start(&w, 1);
    w.test.failed = true;
    again(&w, false, "it failed");
    start(&w, 1);
    w.test.result.measured = false;
    again(&w, false, "it could not be measured");
}

Test(visits, wide_intervals_are_visited_within_the_budget)
{
    waiting w;
    start(&w, 6);
    w.part.times.stopped_by = "noisy";
    again(&w, true, "budget is left");
    start(&w, 6);
    w.part.times.stopped_by = "noisy";
    w.part.measured.spent_ns = budget_ns;
    again(&w, false, "the budget is spent");
    start(&w, 30);
    w.part.times.stopped_by = "noisy";
    w.part.times.n_fast_visits = 17;
    again(&w, true, "less than three times those wanted were fast");
    start(&w, 30);
    w.part.times.stopped_by = "noisy";
    w.part.times.n_fast_visits = 18;
    again(&w, false, "three times those wanted were");
}

Test(visits, cases_that_were_seldom_fast_are_visited_until_the_budget_is_spent)
{
    waiting w;
    start(&w, 18);
    w.part.times.n_fast_visits = 4;
    again(&w, true, "budget is left");
    start(&w, 18);
    w.part.times.n_fast_visits = 5;
    again(&w, false, "five were fast");
    start(&w, 18);
    w.part.times.flags = FLAG_SLOW;
    again(&w, true, "never fast");
    start(&w, 200);
    w.part.times.n_fast_visits = 4;
    again(&w, false, "more are not made");
    start(&w, 11);
    w.part.times.n_fast_visits = 4;
    w.part.measured.spent_ns = budget_ns;
    again(&w, true, "twice those wanted are made beyond the budget");
    start(&w, 12);
    w.part.times.n_fast_visits = 4;
    w.part.measured.spent_ns = budget_ns;
    again(&w, false, "the budget is spent");
    start(&w, 18);
    w.test.result.whole.measured.n_samples = 1;
    w.test.result.whole.times.stopped_by = "converged";
    w.test.result.whole.times.n_fast_visits = 4;
    again(&w, true, "the whole graph was seldom fast");
}

Test(visits, a_case_that_was_seldom_fast_takes_what_others_leave)
{
    waiting slow, other;
    size_t order[POOL_LIMIT];
    start(&slow, 18);
    start(&other, 6);
    slow.part.times.n_fast_visits = 4;
    slow.pool.cases[slow.pool.n++] = &other.test;
    slow.part.measured.spent_ns = 9 * budget_ns;
    cr_assert_eq(gb_cli_pool_round(&slow.pool, order), 1);
    cr_assert_eq(order[0], 0, "the other one was fast");
    int64_t left_ns = slow.pool.patient_until_ns - gb_cli_now_ns();
    cr_assert(left_ns > 0 && left_ns <= budget_ns / 2, "half of the other's budget");
    slow.pool.patient_until_ns = gb_cli_now_ns();
    cr_assert_eq(gb_cli_pool_round(&slow.pool, order), 0, "patience is at its end");
    slow.pool.patient_until_ns = 0;
    other.part.measured.spent_ns = budget_ns;
    cr_assert_eq(gb_cli_pool_round(&slow.pool, order), 0, "both budgets are spent");
    slow.pool.patient_until_ns = 0;
    other.test.visits = 5;
    cr_assert_eq(gb_cli_pool_round(&slow.pool, order), 1);
    cr_assert_eq(order[0], 1, "visits that are wanted come first");
    cr_assert_eq(slow.pool.patient_until_ns, 0);
    gb_cli_settings_free(&slow.test.settings);
    gb_cli_settings_free(&other.test.settings);
}

/* Of one visit, whose samples were taken while the probes reached 1 GFLOP/s. */
static gb_measurement measured_at_1e9(void)
{
    enum { SAMPLES = 20 };
    gb_measurement m = {0};
    const gb_rates rates = {1e9, 2e9, 25e6, 0};
    m.samples = malloc(SAMPLES * sizeof *m.samples);
    m.visits = malloc(sizeof *m.visits);
    m.visits[m.n_visits++] = (gb_visit){.n_samples = SAMPLES, .calls_per_sample = 1, .cold_ns = -1};
    for (int i = 0; i < SAMPLES; i++)
        m.samples[m.n_samples++] = (gb_sample){1000 + i, rates, false};
    return m;
}

Test(visits, what_later_probes_reach_tells_of_earlier_samples)
{
    waiting w;
    size_t order[POOL_LIMIT];
    start(&w, 6);
    w.part.measured = measured_at_1e9();
    gb_cli_probe_note((gb_rates){1e9, 2e9, 25e6, 0});
    gb_cli_pool_round(&w.pool, order);
    cr_assert_eq(w.part.times.n_samples, 20);
    cr_assert_not(w.part.times.flags & FLAG_SLOW);
    gb_cli_probe_note((gb_rates){1.01e9, 2e9, 25e6, 0});
    w.part.times.n_samples = -1;
    gb_cli_pool_round(&w.pool, order);
    cr_assert_eq(w.part.times.n_samples, -1, "nothing notable: not summarized again");
    gb_cli_probe_note((gb_rates){3e9, 6e9, 25e6, 0});
    gb_cli_pool_round(&w.pool, order);
    cr_assert_eq(w.part.times.n_samples, 20);
    cr_assert(w.part.times.flags & FLAG_SLOW);
    gb_cli_measurement_free(&w.part.measured);
    gb_cli_settings_free(&w.test.settings);
}

Test(visits, a_slow_visit_has_a_median_of_its_own)
{
    gb_measurement m = measured_at_1e9();
    gb_visit fast = m.visits[0];
    gb_visit_times times = gb_cli_visit_times(&m, &fast, (gb_rates){1e9, 2e9, 25e6, 0});
    cr_assert_eq(times.median_ns, 1010);
    cr_assert_eq(times.slow_median_ns, -1);
    cr_assert_float_eq(times.rates.flops, 1e9, 1);
    /* The second half of the samples is a visit on cores that lie far from each other. */
    gb_visit far = {.first = 10, .n_samples = 10};
    for (size_t i = 10; i < 20; i++)
        m.samples[i].rates = (gb_rates){1e9, 2e9, i % 2 ? 4e6 : 6e6, 0};
    times = gb_cli_visit_times(&m, &far, (gb_rates){1e9, 2e9, 25e6, 0});
    cr_assert_eq(times.median_ns, -1);
    cr_assert_eq(times.slow_median_ns, 1015);
    cr_assert_float_eq(times.rates.handshakes, 5e6, 1);
    m.samples[12].preempted = true;
    times = gb_cli_visit_times(&m, &far, (gb_rates){1e9, 2e9, 25e6, 0});
    cr_assert_float_eq(times.rates.handshakes, 44e6 / 9, 1, "without what was preempted");
    /* Two states in one visit. */
    m.samples[13].rates.flops = 0.5e9;
    times = gb_cli_visit_times(&m, &far, (gb_rates){1e9, 2e9, 25e6, 0});
    cr_assert_eq(times.slow_median_ns, -1);
    gb_cli_measurement_free(&m);
}

Test(visits, states_are_told_by_what_is_slow)
{
    const gb_rates best = {1e9, 2e9, 30e6, 0};
    cr_assert_eq(gb_cli_rates_state(best, best), 0);
    cr_assert_eq(gb_cli_rates_state((gb_rates){0}, best), 0, "not probed");
    cr_assert_eq(
            gb_cli_rates_state((gb_rates){0.69e9, 1.2e9, 30e6, 0}, best), STATE_SLOW_ARITHMETIC);
    cr_assert_eq(gb_cli_rates_state((gb_rates){0.71e9, 1.2e9, 30e6, 0}, best), 0,
            "L1 follows the clock");
    cr_assert_eq(gb_cli_rates_state((gb_rates){1e9, 1.6e9, 30e6, 0}, best), STATE_SLOW_L1);
    cr_assert_eq(gb_cli_rates_state((gb_rates){1e9, 1.6e9, 10e6, 0}, best),
            STATE_SLOW_L1 | STATE_FAR_CORES);
    cr_assert_eq(gb_cli_rates_state((gb_rates){1e9, 2e9, 11e6, 0}, best), 0);
    /* The clock tells which part of a fall is its own. */
    const gb_rates clocked = {1e9, 2e9, 30e6, 1e9};
    cr_assert_eq(gb_cli_rates_state((gb_rates){0.8e9, 1.6e9, 30e6, 0.8e9}, clocked), 0);
    cr_assert_eq(
            gb_cli_rates_state((gb_rates){0.8e9, 2e9, 30e6, 1e9}, clocked), STATE_SLOW_ARITHMETIC);
    cr_assert_eq(gb_cli_rates_state((gb_rates){0.86e9, 1.65e9, 30e6, 1e9}, clocked), 0);
    cr_assert_eq(gb_cli_rates_state((gb_rates){0.86e9, 1.6e9, 30e6, 1e9}, clocked), STATE_SLOW_L1);
}
