/* What a signal leaves of a run. */
#include "cli/app/interpreter.h"

#include "cli/options/message.h"
#include "cli/report/interrupt.h"

#include <stdio.h>
#include <string.h>

void gb_cli_finish_interrupted(void *data, int signal)
{
    gb_interpreter *app = data;
    pthread_mutex_lock(&app->lock);
    while (app->pool_counted < app->pool.n) {
        const gb_waiting_case *waiting = app->pool.cases[app->pool_counted];
        gb_cli_count_case(
                app, &waiting->settings, &waiting->test, &waiting->result, waiting->messages);
    }
    gb_cli_report_ended_jobs(app, false);
    gb_status status = gb_cli_finish_files(app, "interrupted");
    gb_cli_interrupt_saved();
    if (status != GB_SUCCESS)
        gb_cli_lose_results(app, gb_cli_failure());
    gb_cli_progress_hide(&app->progress);
    fprintf(stderr, "graph-bench: ended by signal %d (%s) before its last case\n", signal,
            strsignal(signal));
    while (app->pool_printed < app->pool.n) {
        const gb_waiting_case *waiting = app->pool.cases[app->pool_printed];
        gb_cli_print_case(app, &waiting->settings, &waiting->test, &waiting->result);
    }
    gb_cli_report_ended_jobs(app, true);
    gb_cli_report_end(&app->report, &app->settings);
    fflush(stdout);
}
