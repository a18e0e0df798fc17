/* The cases of --case: which of them run, and running them. */
#include "cli/app/interpreter.h"

#include "cli/case/filter.h"
#include "cli/options/combos.h"
#include "cli/options/message.h"
#include "cli/options/utf8.h"
#include "cli/report/interrupt.h"

#include <stdio.h>
#include <stdlib.h>

/* More is a list that nobody waits for. */
enum { CASE_LIMIT = 1000000 };

/* Runs a case while no other one runs. */
static gb_status perform_case(gb_interpreter *app, gb_case *test, gb_case_result *result)
{
    const char *refusal = gb_cli_prepare_machine(app);
    gb_status status =
            gb_cli_is_isolated(&app->settings)
                    ? gb_cli_isolated_perform(
                              &app->isolation, &app->settings, test, refusal, false, result)
                    : gb_cli_perform(&app->performer, &app->settings, test, refusal, result);
    pthread_mutex_lock(&app->lock);
    gb_cli_keep_engine(app, gb_cli_engine_at_work(app, &app->settings));
    pthread_mutex_unlock(&app->lock);
    return status;
}

bool gb_cli_is_out_of_time(gb_interpreter *app)
{
    double budget_ns = app->settings.budget_s * 1e9;
    app->out_of_time =
            app->out_of_time ||
            (budget_ns > 0 && (double)(gb_cli_now_ns() - app->report.begin_ns) > budget_ns);
    app->stopped = app->stopped || app->out_of_time;
    return app->out_of_time;
}

/* A case that --resume has done is counted and written as it was, with what --expect says now. One
 * that was skipped is not done. */
static bool take_over(gb_interpreter *app, const gb_case *test)
{
    json_object *record = gb_cli_selection_take(&app->selection, test), *name;
    gb_case_status status;
    if (!record)
        return false;
    bool ran = json_object_object_get_ex(record, "status", &name) &&
               gb_cli_case_status_find(json_object_get_string(name), &status) &&
               status != CASE_SKIPPED;
    if (ran) {
        gb_cli_finish_jobs(app);
        gb_cli_finish_pool(app);
        const char *expected = gb_cli_expected_reason(&app->expectations, test, status);
        json_object_object_add(record, "index", json_object_new_uint64(test->index));
        json_object_object_add(record, "repro", gb_cli_utf8_json(test->repro));
        json_object_object_add(record, "expected", gb_cli_utf8_json(expected));
        gb_text line = {0};
        gb_cli_text_add(&line, "%zu:%s (taken over) __REPRO: %s", test->index,
                gb_cli_case_status_name(status), test->repro);
        pthread_mutex_lock(&app->lock);
        if (expected)
            app->report.n_expected++;
        else
            gb_cli_report_count(&app->report, status, line.data);
        gb_cli_output_add(app->output, json_object_get(record));
        pthread_mutex_unlock(&app->lock);
        gb_cli_text_free(&line);
    }
    json_object_put(record);
    return ran;
}

static void run_selected(gb_interpreter *app, gb_case *test)
{
    gb_case_result result = {.seed = app->settings.seed};
    const char *fault = gb_cli_fault_of_case(app);
    bool skipped = (int64_t)test->index < app->settings.start;
    if (!fault && !skipped && gb_cli_runs_beside(&app->settings)) {
        gb_cli_perform_beside(app, test);
        return;
    }
    if (!fault && !skipped)
        gb_cli_finish_jobs(app);
    gb_cli_messages_clear();
    if (fault) {
        gb_cli_result_set(&result, CASE_UNTESTED_FAILED, "Invalid option at %s", fault);
    } else if (skipped) {
        gb_cli_result_set(&result, CASE_SKIPPED, "Skip-start option hit");
    } else {
        if (app->settings.verbose >= 1) {
            printf("run: %s\n", test->arguments);
            fflush(stdout);
        }
        gb_cli_progress_show(&app->progress, test->index, test->file);
        gb_status status = perform_case(app, test, &result);
        gb_cli_progress_hide(&app->progress);
        if (status != GB_SUCCESS)
            gb_cli_print_error(gb_cli_text_get(&app->place), "%s", gb_cli_failure());
    }
    if (!result.left_out) {
        result.expected = gb_cli_expected_reason(&app->expectations, test, result.status);
        gb_cli_end_behind_jobs(app, test, &result);
    }
    gb_cli_result_free(&result);
    gb_cli_case_unload(test);
}

static void run_combination(
        gb_interpreter *app, const char *file, const char *path, const gb_combo *combo)
{
    gb_case test = {.index = app->next_index++, .file = file, .path = path};
    gb_cli_combo_get(&app->settings, combo, test.choice);
    gb_text repro = {0}, arguments = {0};
    gb_cli_write_repro(&app->settings, test.choice, file, &repro);
    gb_cli_write_arguments(&app->settings, test.choice, file, &arguments);
    test.repro = gb_cli_text_get(&repro);
    test.arguments = gb_cli_text_get(&arguments);
    app->stopped = app->stopped || gb_cli_interrupt_signal();
    if (app->settings.n_shards)
        app->report.shard_cases = gb_cli_shards_hash(app->report.shard_cases, &test);
    bool selected = !app->stopped && gb_cli_filter_fits_case(&app->settings, &test);
    if (selected) {
        selected = gb_cli_shards_fit(&app->settings, &app->shards, &test) &&
                   gb_cli_selection_fits(&app->selection, &test);
        app->n_left += !selected;
    }
    if (selected && !take_over(app, &test) && !gb_cli_is_out_of_time(app))
        run_selected(app, &test);
    gb_cli_text_free(&repro);
    gb_cli_text_free(&arguments);
}

void gb_cli_stop_run(gb_interpreter *app, const char *what, size_t limit)
{
    app->stopped = true;
    if (app->counting)
        return;
    gb_cli_print_error(
            gb_cli_text_get(&app->place), "more than %zu %s; the run ends here", limit, what);
    app->report.n_option_errors++;
}

/* Up to one more than CASE_LIMIT. */
static size_t count_combinations(const gb_interpreter *app)
{
    size_t count = 1;
    for (int axis = 0; axis < AXIS_COUNT && count <= CASE_LIMIT; axis++)
        count *= app->settings.axes[axis].count;
    return count < CASE_LIMIT + 1 ? count : CASE_LIMIT + 1;
}

void gb_cli_run_cases(gb_interpreter *app, const char *file)
{
    size_t count = count_combinations(app);
    app->has_cases = true;
    bool runs = app->counting || !app->checking;
    if (runs && app->next_index + count > CASE_LIMIT) {
        gb_cli_stop_run(app, "cases", CASE_LIMIT);
        return;
    }
    if (app->counting)
        app->next_index += count;
    if (app->checking)
        return;
    char *path = gb_cli_search(&app->search, &app->settings, file);
    if (app->settings.verbose >= 50)
        printf("case file: %s\n", path);
    gb_combo combo = {0};
    do
        run_combination(app, file, path, &combo);
    while (!app->stopped && gb_cli_combo_next(&app->settings, &combo));
    free(path);
}
