/* What becomes of the result of a case: lines, counts, records, files. */
#include "cli/app/interpreter.h"

#include "cli/options/message.h"
#include "cli/report/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gb_cli_lose_results(gb_interpreter *app, const char *message)
{
    if (!app->unwritten)
        gb_cli_print_error(NULL, "%s", message);
    app->unwritten = true;
    app->stopped = true;
}

const char *gb_cli_engine_at_work(const gb_interpreter *app, const gb_settings *settings)
{
    const gb_engine *engine = app->performer.session.engine;
    if (gb_cli_is_isolated(settings))
        return app->isolation.engine;
    return engine ? gb_engine_get_description(engine) : NULL;
}

void gb_cli_keep_engine(gb_interpreter *app, const char *description)
{
    if (!description || (app->engine && strcmp(app->engine, description) == 0))
        return;
    free(app->engine);
    app->engine = gb_cli_copy(description);
}

void gb_cli_print_case(gb_interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result)
{
    gb_cli_report_print_case(&app->report, settings, test, result);
    if (app->pool.n > 0)
        app->pool_printed++;
}

void gb_cli_count_case(gb_interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages)
{
    gb_cli_report_count_case(&app->report, settings, test, result);
    if (app->keeps_records)
        gb_cli_output_add(app->output, gb_cli_case_record(settings, test, result, messages));
    if (app->pool.n > 0)
        app->pool_counted++;
}

/* --repro-dir. */
static void write_repro(gb_interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages)
{
    bool wanted = settings->repro_dir && !result->expected &&
                  gb_cli_case_status_is_failure(result->status);
    if (wanted && gb_cli_repro_write(&app->repro, settings, test, result, messages) != GB_SUCCESS)
        gb_cli_lose_results(app, gb_cli_failure());
}

void gb_cli_report_case(gb_interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages)
{
    pthread_mutex_lock(&app->lock);
    gb_cli_raise_roof(app);
    pthread_mutex_unlock(&app->lock);
    gb_cli_print_case(app, settings, test, result);
    if (ferror(stdout))
        gb_cli_lose_results(app, "standard output cannot be written; the run ends here");
    pthread_mutex_lock(&app->lock);
    gb_cli_count_case(app, settings, test, result, messages);
    gb_status status = GB_SUCCESS;
    if (gb_cli_output_is_wanted(settings))
        status = gb_cli_output_refresh(app->output, settings, &app->report, app->engine);
    pthread_mutex_unlock(&app->lock);
    if (status != GB_SUCCESS)
        gb_cli_lose_results(app, gb_cli_failure());
    write_repro(app, settings, test, result, messages);
}

gb_status gb_cli_finish_files(gb_interpreter *app, const char *ended)
{
    bool wanted = !app->finished && gb_cli_output_is_wanted(&app->settings);
    app->finished = true;
    if (!wanted)
        return GB_SUCCESS;
    return gb_cli_output_write(app->output, &app->settings, &app->report, app->engine, ended);
}
