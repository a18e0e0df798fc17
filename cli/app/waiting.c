/* Measured cases that wait for further visits. */
#include "cli/app/interpreter.h"

#include "cli/options/message.h"
#include "cli/report/interrupt.h"
#include "cli/run/known_machine.h"
#include "cli/run/measure.h"
#include "cli/run/roof.h"

#include <time.h>

/* Visits of patience begin when the machine is fast, or after a second: it may be slow for long. */
static void wait_for_fast(const gb_interpreter *app, const gb_waiting_case *waiting)
{
    int64_t end = gb_cli_now_ns() + 1000000000;
    if (app->known_threads == 0 || gb_cli_is_isolated(&waiting->settings))
        return;
    end = end < app->pool.patient_until_ns ? end : app->pool.patient_until_ns;
    while (gb_cli_now_ns() < end && !gb_cli_interrupt_signal() &&
            gb_cli_rates_are_slow(gb_cli_probe_core(), gb_cli_probe_best()))
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void visit_again(gb_interpreter *app, gb_waiting_case *waiting)
{
    gb_case_result visit = {0};
    gb_cli_messages_clear();
    gb_cli_progress_show(&app->progress, waiting->test.index, waiting->test.file);
    const gb_settings *settings = &waiting->settings;
    gb_status status =
            gb_cli_is_isolated(settings)
                    ? gb_cli_isolated_perform(
                              &app->isolation, settings, &waiting->test, NULL, true, &visit)
                    : gb_cli_perform_visit(&app->performer, settings, &waiting->test, &visit);
    gb_cli_progress_hide(&app->progress);
    if (status != GB_SUCCESS)
        gb_cli_print_error(waiting->test.file, "%s", gb_cli_failure());
    pthread_mutex_lock(&app->lock);
    gb_cli_keep_engine(app, gb_cli_engine_at_work(app, settings));
    gb_cli_pool_join(waiting, &visit, status, gb_cli_messages());
    waiting->result.expected =
            gb_cli_expected_reason(&app->expectations, &waiting->test, waiting->result.status);
    pthread_mutex_unlock(&app->lock);
}

void gb_cli_finish_pool(gb_interpreter *app)
{
    size_t order[POOL_LIMIT], n;
    while (!app->stopped && (n = gb_cli_pool_round(&app->pool, order)) > 0)
        for (size_t i = 0; i < n && !app->stopped; i++) {
            app->stopped = app->stopped || gb_cli_interrupt_signal();
            if (app->stopped || gb_cli_is_out_of_time(app))
                continue;
            wait_for_fast(app, app->pool.cases[order[i]]);
            visit_again(app, app->pool.cases[order[i]]);
        }
    if (app->pool.n > 0 && app->known_threads > 0)
        gb_cli_known_machine_remember(app->known_threads);
    for (size_t i = 0; i < app->pool.n; i++) {
        const gb_waiting_case *waiting = app->pool.cases[i];
        gb_cli_report_case(
                app, &waiting->settings, &waiting->test, &waiting->result, waiting->messages);
    }
    pthread_mutex_lock(&app->lock);
    gb_cli_pool_clear(&app->pool);
    app->pool_printed = 0;
    app->pool_counted = 0;
    pthread_mutex_unlock(&app->lock);
}

void gb_cli_end_case(gb_interpreter *app, const gb_settings *settings, const gb_case *test,
        gb_case_result *result)
{
    bool waits = result->measured && gb_cli_visit_count(settings) > 1;
    if (!waits && app->pool.n == 0) {
        gb_cli_report_case(app, settings, test, result, gb_cli_messages());
        return;
    }
    pthread_mutex_lock(&app->lock);
    gb_cli_pool_add(&app->pool, settings, test, result, gb_cli_messages());
    pthread_mutex_unlock(&app->lock);
    if (app->pool.n == POOL_LIMIT)
        gb_cli_finish_pool(app);
}
