/* What earlier reports say of cases. */
#include "cli/report/selection.h"

#include "cli/options/message.h"
#include "cli/options/utf8.h"
#include "cli/report/cases.h"
#include "cli/report/origin.h"
#include "cli/report/record.h"
#include "cli/report/report.h"
#include "cli/report/results.h"

/* What is taken over of another program or machine may not be what this run would find. */
static void compare_origin(const char *path, const gb_results *results)
{
    static const gb_roof no_roof = {.flops = 0};
    gb_text differences = {0};
    json_object *own = gb_cli_environment_record(0, NULL, NULL, &no_roof);
    gb_cli_origin_compare(gb_cli_results_get(results, "environment"), own, &differences);
    if (differences.length)
        gb_cli_print_warning(path, "--resume: these are results of %s", differences.data);
    json_object_put(own);
    gb_cli_text_free(&differences);
}

/* A case that the report has several times is there as often. */
static void add_turn(json_object *cases, const char *repro, json_object *record)
{
    json_object *turns;
    if (!json_object_object_get_ex(cases, repro, &turns)) {
        turns = json_object_new_array();
        json_object_object_add(cases, repro, turns);
    }
    json_object_array_add(turns, json_object_get(record));
}

/* Cases of a report by their reproducer lines: all, or those that failed. */
static gb_status read_cases(
        const char *path, bool failed_only, json_object **cases, json_object **environment)
{
    gb_results *results;
    gb_status status = gb_cli_results_read(path, &results);
    if (status != GB_SUCCESS)
        return status;
    if (!failed_only)
        compare_origin(path, results);
    *cases = json_object_new_object();
    *environment = json_object_get(gb_cli_results_get(results, "environment"));
    long cursor = 0;
    for (json_object *record; (record = gb_cli_results_next(results, &cursor));) {
        const char *repro = gb_cli_record_text(record, "repro");
        if (!failed_only)
            add_turn(*cases, repro, record);
        else if (gb_cli_record_is_failure(record))
            gb_cli_cases_add(*cases, repro, json_object_get(record));
        json_object_put(record);
    }
    status = gb_cli_results_check(results);
    gb_cli_results_free(results);
    return status;
}

gb_status gb_cli_selection_read(const gb_settings *settings, gb_selection *selection)
{
    gb_status status = GB_SUCCESS;
    json_object *ignored = NULL;
    if (settings->rerun_file && !selection->failed)
        status = read_cases(settings->rerun_file, true, &selection->failed, &ignored);
    if (status == GB_SUCCESS && settings->resume_file && !selection->done)
        status =
                read_cases(settings->resume_file, false, &selection->done, &selection->environment);
    json_object_put(ignored);
    return status;
}

void gb_cli_selection_free(gb_selection *selection)
{
    json_object_put(selection->failed);
    json_object_put(selection->done);
    json_object_put(selection->environment);
    *selection = (gb_selection){0};
}

bool gb_cli_selection_fits(const gb_selection *selection, const gb_case *test)
{
    return !selection->failed || gb_cli_cases_find(selection->failed, test->repro, NULL);
}

json_object *gb_cli_selection_take(gb_selection *selection, const gb_case *test)
{
    json_object *turns = NULL, *record = NULL;
    if (selection->done) /* by the very line: another one may expect another number of partitions */
        gb_cli_utf8_find(selection->done, test->repro, &turns);
    if (turns && json_object_array_length(turns) > 0) {
        record = json_object_get(json_object_array_get_idx(turns, 0));
        json_object_array_del_idx(turns, 0, 1);
    }
    return record;
}
