/* Several visits of each case over the run. */
#include "cli/run/visits.h"

#include "cli/options/message.h"
#include "cli/run/measure.h"
#include "cli/run/roof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A visit is worth its compilation, and its probes, from these budgets on. */
static const double least_visit_ms = 100, least_probed_ms = 20;
enum { AUTO_VISITS = 6 };
/* Comparisons of two runs need so many visits of each (cli/stats/effect.c). */
enum { VISITS_FOR_COMPARISON = 5 };
/* Small kernels do not end with the first few samples that agree: so much of a visit is used. */
static const double least_sampling_ms = 50;

int64_t gb_cli_visit_count(const gb_settings *settings)
{
    if (!(settings->mode & MODE_PERFORMANCE))
        return 1;
    if (settings->visits > 0)
        return settings->visits;
    double visits = floor(gb_cli_budget_ms(settings) / least_visit_ms);
    return settings->fix_times > 0 ? 1 : (int64_t)fmax(1, fmin(visits, AUTO_VISITS));
}

gb_visit_plan gb_cli_visit_plan(const gb_settings *settings, size_t n_parts, bool end_to_end)
{
    double ms = gb_cli_budget_ms(settings) / (double)gb_cli_visit_count(settings);
    double shares = n_parts == 1 ? 1 : end_to_end ? 2 : 2 * (double)n_parts;
    bool probes = ms >= least_probed_ms && settings->fix_times == 0 &&
                  settings->engine_kind == GB_ENGINE_CPU;
    return (gb_visit_plan){.budget_ns = (int64_t)(ms * 1e6 / shares),
            .least_ns = (int64_t)(fmin(ms / 2, least_sampling_ms) * 1e6 / shares),
            .precision = settings->precision,
            .count = settings->fix_times,
            .probes = probes,
            .one_of_several = gb_cli_visit_count(settings) > 1};
}

/* ------------------------------------------------------------ results */

bool gb_cli_result_join(gb_case_result *into, gb_case_result *visit, const char **what)
{
    *what = NULL;
    if (!visit->measured || visit->n_partitions != into->n_partitions)
        *what = "a later visit could not be measured";
    else if (visit->digest != into->digest)
        *what = "outputs changed between visits";
    if (*what)
        return false;
    for (size_t i = 0; i < into->n_partitions; i++) {
        gb_partition_result *p = &into->partitions[i], *seen = &visit->partitions[i];
        gb_cli_measurement_join(&p->measured, &seen->measured);
        if (seen->device_ns >= 0 && (p->device_ns < 0 || seen->device_ns < p->device_ns))
            p->device_ns = seen->device_ns;
    }
    gb_cli_measurement_join(&into->whole.measured, &visit->whole.measured);
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        into->phase_ns[phase] += visit->phase_ns[phase];
    into->elapsed_ns += visit->elapsed_ns;
    return true;
}

void gb_cli_result_summarize(gb_case_result *result, const gb_settings *settings)
{
    result->min_ms = result->average_ms = 0;
    for (size_t i = 0; i < result->n_partitions; i++) {
        gb_partition_result *p = &result->partitions[i];
        if (p->measured.n_samples == 0)
            continue;
        gb_cli_measurement_summarize(
                &p->measured, settings->precision, gb_cli_probe_best(), &p->times);
        result->min_ms += (double)p->times.min_ns / 1e6;
        result->average_ms += (double)p->times.average_ns / 1e6;
    }
    if (gb_cli_result_has_whole(result))
        gb_cli_measurement_summarize(&result->whole.measured, settings->precision,
                gb_cli_probe_best(), &result->whole.times);
}

bool gb_cli_result_has_whole(const gb_case_result *result)
{
    return result->whole.measured.n_samples > 0;
}

/* ------------------------------------------------------------ the pool */

gb_waiting_case *gb_cli_waiting_case_create(const gb_settings *settings, const gb_case *test,
        gb_case_result *result, const char *messages)
{
    gb_waiting_case *waiting = gb_cli_realloc(NULL, 1, sizeof *waiting);
    *waiting = (gb_waiting_case){.result = *result, .visits = 1};
    gb_cli_settings_copy(settings, test->choice, &waiting->settings);
    waiting->messages = gb_cli_copy(messages);
    const char *const texts[] = {test->file, test->path, test->repro, test->arguments};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        waiting->texts[i] = gb_cli_copy(texts[i]);
    waiting->test = (gb_case){.index = test->index,
            .file = waiting->texts[0],
            .path = waiting->texts[1],
            .repro = waiting->texts[2],
            .arguments = waiting->texts[3]};
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        waiting->test.choice[axis] = &waiting->settings.axes[axis].items[0];
    *result = (gb_case_result){0};
    return waiting;
}

void gb_cli_waiting_case_free(gb_waiting_case *waiting)
{
    gb_cli_result_free(&waiting->result);
    gb_cli_settings_free(&waiting->settings);
    for (size_t t = 0; t < sizeof waiting->texts / sizeof *waiting->texts; t++)
        free(waiting->texts[t]);
    free(waiting->messages);
    free(waiting);
}

void gb_cli_pool_add(gb_pool *pool, const gb_settings *settings, const gb_case *test,
        gb_case_result *result, const char *messages)
{
    pool->cases[pool->n++] = gb_cli_waiting_case_create(settings, test, result, messages);
}

/* What all visits of the case say together. */
typedef struct overview {
    int64_t spent_ns;
    size_t n_fast_visits; /* of the measurement that has the fewest */
    bool precise, was_fast;
} overview;

/* Takes what was found of one measurement into what is known of the case. */
static void look_at(const gb_measurement *measured, const gb_summary *times, overview *seen)
{
    bool fast = !(times->flags & FLAG_SLOW) && times->n_fast_visits >= VISITS_FOR_COMPARISON;
    seen->spent_ns += measured->spent_ns;
    if (measured->n_samples == 0)
        return;
    seen->was_fast = seen->was_fast && fast;
    if (times->n_fast_visits < seen->n_fast_visits)
        seen->n_fast_visits = times->n_fast_visits;
    seen->precise =
            seen->precise && (!times->stopped_by || strcmp(times->stopped_by, "converged") == 0);
}

static overview look_at_case(const gb_waiting_case *waiting)
{
    const gb_case_result *result = &waiting->result;
    overview seen = {0, SIZE_MAX, true, true};
    for (size_t i = 0; i < result->n_partitions; i++)
        look_at(&result->partitions[i].measured, &result->partitions[i].times, &seen);
    look_at(&result->whole.measured, &result->whole.times, &seen);
    return seen;
}

/* What the budgets of all cases leave, in nanoseconds. */
static int64_t budget_left(const gb_pool *pool)
{
    double left = 0;
    for (size_t i = 0; i < pool->n; i++) {
        const gb_waiting_case *waiting = pool->cases[i];
        double own =
                1e6 * gb_cli_budget_ms(&waiting->settings) - (double)look_at_case(waiting).spent_ns;
        left += waiting->result.measured ? fmax(own, 0) : 0;
    }
    return (int64_t)left;
}

static bool can_be_visited(const gb_waiting_case *waiting)
{
    return waiting->result.measured && !waiting->failed && waiting->visits < MOST_VISITS;
}

/* A budget is that of all visits together. While the interval is too wide, more visits follow within it, until
 * three times those wanted were fast. While too few were fast, twice those wanted are made; more are a matter of
 * patience. */
static bool needs_visit(const gb_waiting_case *waiting)
{
    const gb_settings *settings = &waiting->settings;
    int64_t wanted = gb_cli_visit_count(settings);
    if (!can_be_visited(waiting))
        return false;
    if (waiting->visits < wanted || wanted == 1 || settings->fix_times > 0)
        return waiting->visits < wanted;
    overview seen = look_at_case(waiting);
    if (!seen.was_fast)
        return waiting->visits < 2 * wanted;
    return !seen.precise && (double)seen.spent_ns < 1e6 * gb_cli_budget_ms(settings) &&
           seen.n_fast_visits < 3 * (size_t)wanted;
}

/* Were too few of the visits that are wanted fast? */
static bool waits_for_fast(const gb_waiting_case *waiting)
{
    return can_be_visited(waiting) && gb_cli_visit_count(&waiting->settings) > 1 &&
           waiting->settings.fix_times == 0 && !look_at_case(waiting).was_fast;
}

/* What a later visit of any case has shown of the machine tells, too, which samples were slow. */
static void summarize_again(gb_pool *pool)
{
    const double notable = 1.02;
    gb_rates now = gb_cli_probe_best(), then = pool->best;
    if (now.flops <= notable * then.flops && now.l1 <= notable * then.l1 &&
            now.handshakes <= notable * then.handshakes && now.clock <= notable * then.clock)
        return;
    pool->best = now;
    for (size_t i = 0; i < pool->n; i++)
        gb_cli_result_summarize(&pool->cases[i]->result, &pool->cases[i]->settings);
}

size_t gb_cli_pool_round(gb_pool *pool, size_t order[POOL_LIMIT])
{
    size_t n = 0;
    summarize_again(pool);
    for (size_t i = 0; i < pool->n; i++)
        if (needs_visit(pool->cases[i]))
            order[n++] = i;
    /* Then those that were seldom fast take the time that the others left. */
    if (n == 0 && pool->patient_until_ns == 0)
        pool->patient_until_ns = gb_cli_now_ns() + budget_left(pool);
    bool patient = n == 0 && gb_cli_now_ns() < pool->patient_until_ns;
    for (size_t i = 0; patient && i < pool->n; i++)
        if (waits_for_fast(pool->cases[i]))
            order[n++] = i;
    /* The same run has the same order: seeded by what is left to do. */
    uint64_t state = n ? (uint64_t)pool->cases[order[0]]->settings.seed + 1 : 0;
    for (size_t i = 0; i < n; i++)
        state = state * 31 + (uint64_t)pool->cases[order[i]]->visits;
    for (size_t i = n; i > 1; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t other = (size_t)((state >> 33) % i), kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
    return n;
}

/* Is the line, `length` characters, one of the text? */
static bool has_line(const char *text, const char *line, size_t length)
{
    for (; *text; text += strcspn(text, "\n") + 1)
        if (strcspn(text, "\n") == length && strncmp(text, line, length) == 0)
            return true;
    return false;
}

/* Lines of later visits that are new. */
static void keep_messages(gb_waiting_case *waiting, const char *messages)
{
    gb_text kept = {0};
    gb_cli_text_add(&kept, "%s", waiting->messages);
    for (size_t length; *messages; messages += length + 1) {
        length = strcspn(messages, "\n");
        if (!has_line(gb_cli_text_get(&kept), messages, length))
            gb_cli_text_add(&kept, "%.*s\n", (int)length, messages);
    }
    free(waiting->messages);
    waiting->messages = gb_cli_copy(gb_cli_text_get(&kept));
    gb_cli_text_free(&kept);
}

void gb_cli_pool_join(
        gb_waiting_case *waiting, gb_case_result *visit, gb_status status, const char *messages)
{
    const char *what = NULL;
    bool lost = visit->status == CASE_CRASHED || visit->status == CASE_TIMEOUT ||
                visit->status == CASE_OUT_OF_MEMORY;
    waiting->visits++;
    keep_messages(waiting, messages);
    if (lost) {
        waiting->failed = true;
        gb_cli_result_set(&waiting->result, visit->status, "visit %lld: %s",
                (long long)waiting->visits, visit->reason);
    } else if (status != GB_SUCCESS) {
        waiting->failed = true;
        gb_cli_result_set(&waiting->result, CASE_FAILED, "visit %lld: %s",
                (long long)waiting->visits, gb_cli_failure());
    } else if (!gb_cli_result_join(&waiting->result, visit, &what)) {
        waiting->failed = true;
        gb_cli_result_set(
                &waiting->result, CASE_FAILED, "visit %lld: %s", (long long)waiting->visits, what);
    }
    gb_cli_result_summarize(&waiting->result, &waiting->settings);
    gb_cli_case_unload(&waiting->test);
    gb_cli_result_free(visit);
}

void gb_cli_pool_clear(gb_pool *pool)
{
    for (size_t i = 0; i < pool->n; i++)
        gb_cli_waiting_case_free(pool->cases[i]);
    pool->n = 0;
    pool->patient_until_ns = 0;
}
