/* graph-bench report, and what writes its forms. */
#include "cli/commands/files.h"

#include "cli/commands/arguments.h"
#include "cli/commands/history.h"
#include "cli/options/message.h"
#include "cli/report/new_file.h"
#include "cli/report/render.h"

#include <errno.h>
#include <string.h>

enum { OPTION_OUTPUT, OPTION_HISTORY };

const gb_command_option gb_cli_report_options[] = {
        [OPTION_OUTPUT] = {"o", "FILE", NULL, "the result; - is the standard output, as JSON"},
        [OPTION_HISTORY] = {"history", "FILE", NULL,
                "of a page: plot the times of this machine from a file of graph-bench history"},
        {0},
};

static const struct {
    const char *extension;
    bool (*write)(const gb_results *results, FILE *file);
} forms[] = {
        {".html", gb_cli_write_html},
        {".xml", gb_cli_write_junit},
        {".csv", gb_cli_write_csv},
        {".json", gb_cli_results_write_json},
};

int gb_cli_command_failure(gb_status status)
{
    return status == GB_RUNTIME_ERROR ? EXIT_UNWRITTEN : EXIT_USAGE;
}

int gb_cli_command_write(const gb_results *results, const char *path)
{
    const char *extension = strcmp(path, "-") == 0 ? ".json" : strrchr(path, '.');
    size_t form = 0, n = sizeof forms / sizeof forms[0];
    while (form < n && (!extension || strcmp(forms[form].extension, extension) != 0))
        form++;
    if (form == n) {
        gb_cli_print_error(NULL, "%s: the name must end in .html, .xml, .csv or .json", path);
        return EXIT_USAGE;
    }
    gb_new_file file;
    if (gb_cli_new_file_open(path, &file) &&
            gb_cli_new_file_close(&file, forms[form].write(results, file.stream)))
        return EXIT_GOOD;
    int error = errno;
    if (gb_cli_results_check(results) != GB_SUCCESS)
        gb_cli_print_error(NULL, "%s: cannot be written: %s", path, gb_cli_failure());
    else
        gb_cli_print_error(NULL, "%s: cannot be written: %s", path, strerror(error));
    return EXIT_UNWRITTEN;
}

/* What the history knows of the report's partitions becomes a member of the page's data. */
static gb_status add_history(gb_results *results, const char *path)
{
    gb_history *history;
    CLI_TRY(gb_cli_history_open(path, false, &history));
    json_object *environment = gb_cli_results_get(results, "environment"), *record;
    json_object *list = json_object_new_array();
    gb_status status = GB_SUCCESS;
    long cursor = 0;
    while (status == GB_SUCCESS && (record = gb_cli_results_next(results, &cursor))) {
        json_object *series;
        size_t n = gb_cli_record_count_rows(record);
        const char *repro = gb_cli_record_text(record, "repro");
        for (size_t i = 0; i < n && status == GB_SUCCESS; i++) {
            int64_t part;
            json_object *row = gb_cli_record_row(record, i, &part);
            status = gb_cli_history_series(history, environment, repro, part, &series);
            if (!series)
                continue;
            json_object *ops = json_object_object_get(row, "ops");
            json_object_object_add(series, "repro", json_object_new_string(repro));
            json_object_object_add(series, "part", json_object_new_int64(part));
            json_object_object_add(series, "ops", json_object_get(ops));
            json_object_array_add(list, series);
        }
        json_object_put(record);
    }
    gb_cli_history_close(history);
    gb_cli_results_set(results, "history", list);
    return status == GB_SUCCESS ? gb_cli_results_check(results) : status;
}

static int write_report(const gb_arguments *arguments)
{
    const char *output = arguments->values[OPTION_OUTPUT];
    const char *history = arguments->values[OPTION_HISTORY];
    const char *extension = output ? strrchr(output, '.') : NULL;
    if (!output) {
        gb_cli_print_error("report", "-o FILE is missing");
        return EXIT_USAGE;
    }
    if (arguments->n_words != 1) {
        gb_cli_print_error("report", "one report is needed");
        return EXIT_USAGE;
    }
    if (history && (!extension || strcmp(extension, ".html") != 0)) {
        gb_cli_print_error("report", "--history is for pages (.html)");
        return EXIT_USAGE;
    }
    gb_results *results;
    gb_status good = gb_cli_results_read(arguments->words[0], &results);
    if (good == GB_SUCCESS && history)
        good = add_history(results, history);
    int status = gb_cli_command_failure(good);
    if (good == GB_SUCCESS)
        status = gb_cli_command_write(results, output);
    else
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
    gb_cli_results_free(results);
    return status;
}

int gb_cli_command_report(const gb_command *command, int argc, char **argv)
{
    gb_arguments arguments;
    int status = EXIT_USAGE;
    if (gb_cli_arguments_read(command, argc, argv, false, &arguments))
        status = write_report(&arguments);
    gb_cli_arguments_free(&arguments);
    return status;
}
