/* The interpreter of the command line and of batch files: options change the settings, cases run
 * with them at once. */
#include "app.h"

#include "cli/case/batch.h"
#include "cli/options/combos.h"
#include "cli/options/message.h"
#include "cli/options/options.h"
#include "cli/report/json_report.h"
#include "cli/report/op_cells.h"
#include "cli/report/progress.h"
#include "cli/report/report.h"

#include <graphbench/graphbench_tools.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a run may take; more is a loop of batch files, or lists that nobody waits for. */
enum { BATCH_DEPTH_LIMIT = 32, BATCH_FILE_LIMIT = 10000, CASE_LIMIT = 1000000 };

typedef struct interpreter {
    gb_settings settings;
    gb_search search;
    gb_session session;
    gb_report report;
    gb_progress progress;
    gb_json_report *json; /* owned */
    size_t next_index;
    bool checking; /* only look for usage errors; run nothing */
    bool counting; /* while checking, count the cases, of batch files too, and say nothing */
    bool ended;    /* --help, --version or --list-ops was met */
    bool stopped;  /* a limit was met */
    bool usage_error;
    int depth;        /* of batch files */
    const char *file; /* the batch file being read; NULL = the command line */
    gb_text place;    /* "file:line", "" on the command line */
    size_t line;      /* number of the logical line being read, over all files */
    size_t n_lines;
    size_t n_batches; /* read so far */
    bool too_deep;    /* said already */
    /* A wrong option in a batch file: the cases it was meant for must not run without it. */
    bool faulty;
    const gb_option *faulty_option; /* NULL = unknown */
    gb_text faulty_place;
    size_t faulty_line;
    bool warned[OPTION_LIMIT]; /* of an option without effect */
} interpreter;

static bool is_faulty(const interpreter *app)
{
    if (!app->faulty)
        return false;
    /* The state of a case option stays wrong until it is set again or reset; others concern their
     * line. */
    return (app->faulty_option && app->faulty_option->of_case) || app->faulty_line == app->line;
}

static void option_error(interpreter *app, const gb_option *option)
{
    if (app->counting)
        return;
    gb_cli_print_error(gb_cli_text_get(&app->place), "%s", gb_cli_failure());
    if (!app->file) {
        app->usage_error = true;
        return;
    }
    app->report.n_option_errors++;
    app->faulty = true;
    app->faulty_option = option;
    app->faulty_line = app->line;
    gb_cli_text_clear(&app->faulty_place);
    gb_cli_text_add(&app->faulty_place, "%s", gb_cli_text_get(&app->place));
}

/* ------------------------------------------------------------ cases */

/* In the form that the name of the file asks for. */
static gb_status save_graph(const interpreter *app, const gb_case *test)
{
    const char *path = app->settings.save_graph_file;
    const char *extension = path ? strrchr(path, '.') : NULL;
    if (extension && strcmp(extension, ".gbt") == 0)
        LIB_TRY(gb_graph_save_text(test->graph, path));
    else if (path)
        LIB_TRY(gb_graph_save_json(test->graph, path));
    return GB_SUCCESS;
}

/* Rates are told beside the machine's roofs, measured in the same run. */
static void measure_roof(interpreter *app)
{
    const gb_settings *settings = &app->settings;
    bool wanted =
            settings->mode & MODE_PERFORMANCE && (settings->verbose >= 1 || settings->json_file);
    if (wanted && app->report.roof.flops <= 0)
        gb_cli_roof_measure(&app->report.roof);
}

/* Everything of a case but its report; a failure is one of the case. */
static gb_status perform_case(interpreter *app, gb_case *test, gb_case_result *result)
{
    const gb_settings *settings = &app->settings;
    const char *stage = "Cannot load graph";
    int64_t begin = gb_cli_now_ns();
    gb_status status = gb_cli_case_load(test);
    if (status == GB_SUCCESS) {
        stage = "Rewriter failed";
        status = gb_cli_case_rewrite(test);
    }
    if (status == GB_SUCCESS) {
        status = gb_cli_case_verify(test);
        stage = status == GB_INVALID_ARGUMENTS ? NULL : stage;
    }
    if (status == GB_SUCCESS) {
        stage = "Cannot save graph";
        status = save_graph(app, test);
    }
    result->phase_ns[PHASE_LOAD] = gb_cli_now_ns() - begin;
    if (status != GB_SUCCESS && !stage) {
        gb_cli_result_set(result, CASE_INVALID_ARGUMENTS, "%s", gb_cli_failure());
        return GB_SUCCESS;
    }
    if (status != GB_SUCCESS) {
        gb_cli_result_set(result, CASE_UNTESTED_FAILED, "%s", stage);
        return status;
    }
    if (settings->verbose >= 7)
        gb_cli_print_graph(test->graph);
    if (settings->mode & MODE_LIST) {
        gb_cli_result_set(result, CASE_LISTED, NULL);
        return GB_SUCCESS;
    }
    if (settings->verbose >= 20 && !getenv("GB_PASSES"))
        gb_set_pass_mode(GB_PASS_PRINT);
    measure_roof(app);
    begin = gb_cli_now_ns();
    status = gb_cli_run_case(&app->session, settings, test, result);
    result->elapsed_ns = gb_cli_now_ns() - begin;
    if (status != GB_SUCCESS)
        gb_cli_result_set(result, CASE_UNTESTED_FAILED, "Cannot run");
    return status;
}

static void run_combination(
        interpreter *app, const char *file, const char *path, const gb_combo *combo)
{
    gb_case test = {.index = app->next_index++, .file = file, .path = path};
    gb_cli_combo_get(&app->settings, combo, test.choice);
    gb_text repro = {0}, arguments = {0};
    gb_cli_write_repro(&app->settings, test.choice, file, &repro);
    gb_cli_write_arguments(&app->settings, test.choice, file, &arguments);
    test.repro = gb_cli_text_get(&repro);
    test.arguments = gb_cli_text_get(&arguments);
    gb_case_result result = {0};
    if (is_faulty(app)) {
        gb_cli_result_set(&result, CASE_UNTESTED_FAILED, "Invalid option at %s",
                gb_cli_text_get(&app->faulty_place));
    } else if ((int64_t)test.index < app->settings.start) {
        gb_cli_result_set(&result, CASE_SKIPPED, "Skip-start option hit");
    } else {
        if (app->settings.verbose >= 1) {
            printf("run: %s\n", test.arguments);
            fflush(stdout);
        }
        gb_cli_progress_show(&app->progress, test.index, file);
        gb_status status = perform_case(app, &test, &result);
        gb_cli_progress_hide(&app->progress);
        if (status != GB_SUCCESS)
            gb_cli_print_error(gb_cli_text_get(&app->place), "%s", gb_cli_failure());
    }
    gb_cli_report_case(&app->report, &app->settings, &test, &result);
    gb_cli_json_add(app->json, &app->settings, &test, &result);
    gb_cli_result_free(&result);
    gb_cli_case_unload(&test);
    gb_cli_text_free(&repro);
    gb_cli_text_free(&arguments);
}

/* Nothing more is read: what ran is reported, and the run fails. */
static void stop(interpreter *app, const char *what, size_t limit)
{
    app->stopped = true;
    if (app->counting)
        return;
    gb_cli_print_error(
            gb_cli_text_get(&app->place), "more than %zu %s; the run ends here", limit, what);
    app->report.n_option_errors++;
}

/* Up to one more than CASE_LIMIT. */
static size_t count_combinations(const interpreter *app)
{
    size_t count = 1;
    for (int axis = 0; axis < AXIS_COUNT && count <= CASE_LIMIT; axis++)
        count *= app->settings.axes[axis].count;
    return count < CASE_LIMIT + 1 ? count : CASE_LIMIT + 1;
}

static void run_cases(interpreter *app, const char *file)
{
    size_t count = count_combinations(app);
    bool runs = app->counting || !app->checking;
    if (runs && app->next_index + count > CASE_LIMIT) {
        stop(app, "cases", CASE_LIMIT);
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
    while (gb_cli_combo_next(&app->settings, &combo));
    free(path);
}

/* ------------------------------------------------------------ words */

static void interpret(interpreter *app, const char *token);

static void set_place(interpreter *app, const char *file, size_t line)
{
    app->file = file;
    gb_cli_text_clear(&app->place);
    if (file)
        gb_cli_text_add(&app->place, "%s:%zu", file, line);
}

static void interpret_words(interpreter *app, const char *path, const gb_words *words)
{
    const char *outer_file = app->file;
    gb_text outer_place = app->place;
    size_t outer_line = app->line;
    app->place = (gb_text){0};
    app->depth++;
    for (size_t i = 0; i < words->count && !app->ended && !app->stopped; i++) {
        if (i == 0 || words->items[i].line != words->items[i - 1].line)
            app->line = ++app->n_lines;
        set_place(app, path, words->items[i].line);
        interpret(app, words->items[i].text);
    }
    app->depth--;
    gb_cli_text_free(&app->place);
    app->place = outer_place;
    app->line = outer_line;
    app->file = outer_file;
}

/* Only a file can be read once more: cases of a pipe are not counted in advance. */
static gb_status read_words(const interpreter *app, const char *path, gb_words *words)
{
    struct stat info;
    if (app->counting && (stat(path, &info) != 0 || !S_ISREG(info.st_mode)))
        return GB_SUCCESS;
    return gb_cli_words_read(path, words);
}

static void read_batch(interpreter *app, const char *name)
{
    app->n_batches++;
    if (app->checking && !app->counting)
        return;
    if (app->n_batches > BATCH_FILE_LIMIT) {
        stop(app, "batch files", BATCH_FILE_LIMIT);
        return;
    }
    char *path = gb_cli_search(&app->search, &app->settings, name);
    if (app->settings.verbose >= 50 && !app->counting)
        printf("batch file: %s\n", path);
    gb_words words = {0};
    gb_status status = GB_SUCCESS;
    if (app->depth == BATCH_DEPTH_LIMIT)
        status = gb_cli_fail(
                GB_INVALID_ARGUMENTS, "batch files are nested deeper than %d", BATCH_DEPTH_LIMIT);
    else
        status = read_words(app, path, &words);
    if (status != GB_SUCCESS && !app->counting) {
        bool said = app->depth == BATCH_DEPTH_LIMIT && app->too_deep;
        if (!said)
            gb_cli_print_error(gb_cli_text_get(&app->place), "--batch: %s", gb_cli_failure());
        app->too_deep = app->too_deep || app->depth == BATCH_DEPTH_LIMIT;
        app->report.n_option_errors++;
    }
    interpret_words(app, path, &words);
    gb_cli_words_free(&words);
    free(path);
}

static void warn_ignored(interpreter *app, const gb_option *option)
{
    bool *warned = &app->warned[option - gb_cli_options];
    if (!*warned && !app->checking)
        gb_cli_print_warning(gb_cli_text_get(&app->place), "--%s has no effect here", option->name);
    *warned = *warned || !app->checking;
}

/* The schema of every op, and what runs of it. */
static void list_ops(interpreter *app)
{
    bool all_ran = gb_op_table_write("-") == GB_SUCCESS;
    if (all_ran && gb_cli_write_op_cells(&app->session, &app->settings, &all_ran) != GB_SUCCESS)
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
    app->report.n_option_errors += !all_ran;
}

static void end_with(interpreter *app, gb_option_action action)
{
    app->ended = true;
    if (app->checking)
        return;
    if (action == ACTION_HELP)
        gb_cli_print_help();
    else if (action == ACTION_VERSION)
        gb_cli_print_version();
    else
        list_ops(app);
}

static void reset(interpreter *app)
{
    gb_cli_settings_reset(&app->settings);
    if (app->faulty_option && app->faulty_option->of_case)
        app->faulty = false;
}

static void interpret(interpreter *app, const char *token)
{
    const gb_option *option;
    const char *value;
    if (gb_cli_option_find(token, &option, &value) != GB_SUCCESS) {
        option_error(app, NULL);
        return;
    }
    switch (option->action) {
    case ACTION_CASE:
        run_cases(app, value);
        return;
    case ACTION_BATCH:
        read_batch(app, value);
        return;
    case ACTION_RESET:
        reset(app);
        return;
    case ACTION_HELP:
    case ACTION_VERSION:
    case ACTION_LIST_OPS:
        end_with(app, option->action);
        return;
    case ACTION_IGNORE:
        warn_ignored(app, option);
        return;
    case ACTION_NONE:
        break;
    }
    if (!option->take)
        return;
    if (!value && option->value_optional)
        value = "1";
    if (gb_cli_option_set(&app->settings, option, value) != GB_SUCCESS)
        option_error(app, option);
    else if (app->faulty_option == option)
        app->faulty = false;
}

/* ------------------------------------------------------------ main */

static void interpret_arguments(interpreter *app, int argc, char **argv)
{
    for (int i = 1; i < argc && !app->ended && !app->stopped; i++)
        interpret(app, argv[i]);
}

/* Also a run without a case leaves a document. */
static gb_status write_json(interpreter *app)
{
    const char *path = app->settings.json_file;
    if (!path)
        return GB_SUCCESS;
    const gb_engine *engine = app->session.engine;
    return gb_cli_json_write(
            app->json, path, engine ? gb_engine_get_description(engine) : NULL, &app->report.roof);
}

static void app_free(interpreter *app)
{
    gb_cli_json_free(app->json);
    gb_cli_settings_free(&app->settings);
    gb_cli_search_free(&app->search);
    gb_cli_session_free(&app->session);
    gb_cli_report_free(&app->report);
    gb_cli_text_free(&app->place);
    gb_cli_text_free(&app->faulty_place);
}

/* Wrong usage is found before anything runs. *reports: --json is there, or may come in a batch
 * file. */
static bool usage_is_good(int argc, char **argv, bool *reports)
{
    interpreter check = {.checking = true};
    gb_cli_settings_init(&check.settings);
    interpret_arguments(&check, argc, argv);
    *reports = check.settings.json_file || check.n_batches > 0;
    app_free(&check);
    return !check.usage_error;
}

/* Cases that the arguments will run; 0 when nobody watches, or the batch is short. */
static size_t count_cases(int argc, char **argv)
{
    if (!isatty(STDERR_FILENO))
        return 0;
    interpreter count = {.checking = true, .counting = true};
    gb_cli_settings_init(&count.settings);
    interpret_arguments(&count, argc, argv);
    bool worthwhile = count.next_index > 1 && !(count.settings.mode & (MODE_LIST | MODE_INIT));
    size_t total = worthwhile ? count.next_index : 0;
    app_free(&count);
    return total;
}

int gb_cli_main(int argc, char **argv)
{
    if (argc < 2) {
        gb_cli_print_error(NULL, "no arguments; --help lists the options");
        return EXIT_USAGE;
    }
    bool reports;
    if (!usage_is_good(argc, argv, &reports))
        return EXIT_USAGE;
    interpreter app = {
            .report.begin_ns = gb_cli_now_ns(), .json = reports ? gb_cli_json_create() : NULL};
    app.progress = (gb_progress){count_cases(argc, argv), app.report.begin_ns};
    gb_cli_settings_init(&app.settings);
    interpret_arguments(&app, argc, argv);
    if (!app.ended)
        gb_cli_report_end(&app.report, &app.settings);
    int result = gb_cli_report_has_failures(&app.report) ? EXIT_CASE_FAILED : EXIT_GOOD;
    if (!app.ended && write_json(&app) != GB_SUCCESS) {
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
        result = EXIT_CASE_FAILED;
    }
    app_free(&app);
    return result;
}
