/* A run: the arguments are checked, counted and interpreted, and the whole ends with an exit status. */
#include "cli/app/app.h"

#include "cli/app/interpreter.h"
#include "cli/commands/commands.h"
#include "cli/options/exit_status.h"
#include "cli/options/message.h"
#include "cli/report/interrupt.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void interpret_arguments(gb_interpreter *app, int argc, char **argv)
{
    for (int i = 1; i < argc && !app->ended && !app->stopped; i++)
        gb_cli_interpret(app, argv[i]);
}

/* Options of the run as a whole count for cases in front of them, too: a report is written from the
 * first one on. They were checked before. */
static void take_options_of_run(gb_interpreter *app, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const gb_option *option;
        const char *value;
        if (gb_cli_option_find(argv[i], &option, &value) == GB_SUCCESS && option->of_run)
            gb_cli_option_set(&app->settings, option, value);
    }
}

static void app_free(gb_interpreter *app)
{
    gb_cli_pool_clear(&app->pool);
    gb_cli_output_free(app->output);
    free(app->engine);
    gb_cli_selection_free(&app->selection);
    gb_cli_shards_free(&app->shards);
    gb_cli_expectations_free(&app->expectations);
    gb_cli_settings_free(&app->settings);
    gb_cli_search_free(&app->search);
    gb_cli_performer_free(&app->performer);
    gb_cli_isolation_free(&app->isolation);
    gb_cli_jobs_free(&app->jobs);
    gb_cli_repro_free(&app->repro);
    gb_cli_report_free(&app->report);
    gb_cli_text_free(&app->refusal);
    gb_cli_text_free(&app->place);
    for (size_t i = 0; i < FAULT_COUNT; i++)
        gb_cli_text_free(&app->faults[i].place);
}

/* Wrong usage is found before anything runs, and so are files that cannot be written. */
static bool usage_is_good(gb_interpreter *app, int argc, char **argv)
{
    gb_interpreter check = {.checking = true};
    gb_cli_settings_init(&check.settings);
    interpret_arguments(&check, argc, argv);
    const gb_settings *settings = &check.settings;
    bool good = !check.usage_error;
    if (settings->shard_costs_file && settings->n_shards == 0)
        gb_cli_print_warning(NULL, "--shard-costs has no effect without --shard");
    app->keeps_records = gb_cli_output_is_wanted(settings) || check.n_batches > 0;
    if (good && !check.ended && gb_cli_output_probe(settings) != GB_SUCCESS) {
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
        good = false;
    }
    if (good && !check.ended)
        gb_cli_output_take_stdout(settings);
    /* They are not read again: a report may be resumed into the same file. */
    app->selection = check.selection;
    app->shards = check.shards;
    app->expectations = check.expectations;
    check.selection = (gb_selection){0};
    check.shards = (gb_shards){0};
    check.expectations = (gb_expectations){0};
    app_free(&check);
    return good;
}

/* Cases that the arguments will run; 0 when nobody watches, or the batch is short. */
static size_t count_cases(int argc, char **argv)
{
    if (!isatty(STDERR_FILENO))
        return 0;
    gb_interpreter count = {.checking = true, .counting = true};
    gb_cli_settings_init(&count.settings);
    interpret_arguments(&count, argc, argv);
    bool worthwhile = count.next_index > 1 && !(count.settings.mode & (MODE_LIST | MODE_INIT));
    size_t total = worthwhile ? count.next_index : 0;
    app_free(&count);
    return total;
}

static void add_strict(gb_interpreter *app, const char *format, ...)
{
    gb_text reason = {0};
    va_list arguments;
    va_start(arguments, format);
    gb_cli_text_add_list(&reason, format, arguments);
    va_end(arguments);
    gb_cli_print_error(NULL, "--strict: %s", reason.data);
    app->report.strict[app->report.n_strict++] = reason.data;
}

/* --strict: what passes otherwise, but proves nothing. */
static void judge_strictly(gb_interpreter *app)
{
    const gb_settings *settings = &app->settings;
    const size_t *counts = app->report.counts;
    /* Where other shards have all cases, or none had failed, there is nothing to do. */
    bool ran = app->n_left > 0 || app->report.n_expected > 0;
    for (int status = 0; status < CASE_STATUS_COUNT; status++)
        ran = ran || counts[status];
    if (!ran)
        add_strict(app, "no case ran");
    if (counts[CASE_SKIPPED] || counts[CASE_MISTRUSTED])
        add_strict(
                app, "%zu skipped, %zu mistrusted", counts[CASE_SKIPPED], counts[CASE_MISTRUSTED]);
    if (app->out_of_time)
        add_strict(app, "--budget ended the run before its last case");
    /* A part of the cases does not tell which lines are of use. */
    bool part = settings->n_shards > 1 || settings->n_filters > 0 || settings->rerun_file;
    size_t outdated = part ? 0 : gb_cli_expectations_unused(&app->expectations);
    if (outdated)
        add_strict(app, "%zu lines of --expect are of no use", outdated);
}

static int exit_status(const gb_interpreter *app)
{
    if (gb_cli_interrupt_signal())
        return 128 + gb_cli_interrupt_signal();
    if (app->unwritten)
        return EXIT_UNWRITTEN;
    return gb_cli_report_has_failures(&app->report) ? EXIT_CASE_FAILED : EXIT_GOOD;
}

static bool in_cases;

/* A driver or a kernel that calls exit() must not make a good run of half a one. */
static void refuse_to_end(void)
{
    if (!in_cases)
        return;
    gb_cli_print_error(NULL, "a case ended the process; those behind it did not run");
    fflush(stdout);
    _exit(EXIT_CASE_FAILED);
}

static void run(gb_interpreter *app, int argc, char **argv)
{
    atexit(refuse_to_end);
    /* A reader that goes away shows as a failure to write. */
    signal(SIGPIPE, SIG_IGN);
    gb_cli_interrupt_start(gb_cli_finish_interrupted, app);
    app->progress = (gb_progress){count_cases(argc, argv), app->report.begin_ns};
    gb_cli_settings_init(&app->settings);
    take_options_of_run(app, argc, argv);
    gb_cli_output_resume(app->output, app->selection.environment);
    in_cases = true;
    interpret_arguments(app, argc, argv);
    gb_cli_finish_jobs(app);
    gb_cli_finish_pool(app);
    in_cases = false;
    if (!app->ended) {
        pthread_mutex_lock(&app->lock);
        if (app->settings.strict && !gb_cli_interrupt_signal())
            judge_strictly(app);
        else if (app->out_of_time)
            gb_cli_print_warning(NULL, "--budget ended the run before its last case");
        gb_status status = gb_cli_finish_files(app, gb_cli_interrupt_signal() ? "interrupted"
                                                    : app->out_of_time        ? "budget"
                                                    : app->stopped            ? "stopped"
                                                                              : "complete");
        pthread_mutex_unlock(&app->lock);
        if (status != GB_SUCCESS)
            gb_cli_lose_results(app, gb_cli_failure());
        gb_cli_report_end(&app->report, &app->settings);
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        gb_cli_lose_results(app, "standard output cannot be written");
}

int gb_cli_main(int argc, char **argv)
{
    bool roof = argc > 1 && strcmp(argv[1], "--roof") == 0; /* as it was asked for at first */
    const gb_command *command = argc > 1 ? gb_cli_command_find(roof ? "roof" : argv[1]) : NULL;
    if (command)
        return gb_cli_command_run(command, argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "run") == 0) {
        argv++;
        argc--;
    }
    if (argc < 2) {
        gb_cli_print_error(NULL, "no arguments; --help lists the options");
        return EXIT_USAGE;
    }
    /* Not on the stack: when a signal ends the program, its thread may outlive this function. */
    static gb_interpreter app = {.lock = PTHREAD_MUTEX_INITIALIZER};
    app.report.begin_ns = gb_cli_now_ns();
    app.output = gb_cli_output_create(argc, argv);
    int result = EXIT_USAGE;
    if (usage_is_good(&app, argc, argv)) {
        run(&app, argc, argv);
        result = exit_status(&app);
    }
    app_free(&app);
    return result;
}
