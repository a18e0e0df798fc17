/* The interpreter of the command line and of batch files: options change the settings, cases run
 * with them at once. */
#include "app.h"

#include "cli/case/batch.h"
#include "cli/case/filter.h"
#include "cli/commands/commands.h"
#include "cli/options/combos.h"
#include "cli/options/exit_status.h"
#include "cli/options/message.h"
#include "cli/options/option_parsers.h"
#include "cli/options/options.h"
#include "cli/options/utf8.h"
#include "cli/perform/isolate.h"
#include "cli/perform/perform.h"
#include "cli/perform/repro.h"
#include "cli/perform/single.h"
#include "cli/report/expectations.h"
#include "cli/report/interrupt.h"
#include "cli/report/op_cells.h"
#include "cli/report/output.h"
#include "cli/report/progress.h"
#include "cli/report/record.h"
#include "cli/report/selection.h"
#include "cli/report/shards.h"
#include "cli/run/session.h"
#include "cli/run/visits.h"

#include <graphbench/graphbench_tools.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a run may take; more is a loop of batch files, or lists that nobody waits for. */
enum { BATCH_DEPTH_LIMIT = 32, BATCH_FILE_LIMIT = 10000, CASE_LIMIT = 1000000 };

/* A wrong option in a batch file: the cases it was meant for must not run without it. */
typedef struct option_fault {
    gb_text place; /* "" = none */
    size_t line;   /* as of interpreter.line */
} option_fault;

/* Beside the rows of the option table there is one for words that are no option. */
enum { NO_OPTION = OPTION_LIMIT, FAULT_COUNT };

typedef struct interpreter {
    gb_settings settings;
    gb_search search;
    gb_performer performer;
    gb_isolation isolation;
    gb_repro_folders repro;
    gb_report report;
    gb_progress progress;
    gb_output *output; /* owned */
    gb_selection selection;
    gb_shards shards;
    gb_expectations expectations;
    gb_pool pool; /* measured cases that wait for further visits, and what came behind them */
    atomic_size_t pool_printed; /* of these, so many were printed */
    size_t pool_counted;        /* and so many counted */
    pthread_mutex_t lock;       /* of report, output and pool: a signal's thread reads them */
    size_t next_index;
    bool checking; /* only look for usage errors; run nothing */
    bool counting; /* while checking, count the cases, of batch files too, and say nothing */
    bool ended;    /* --help, --version or --list-ops was met */
    bool stopped;  /* a limit was met, a signal came, or results cannot be written */
    bool finished; /* the files were written for the last time */
    bool unwritten;
    bool out_of_time; /* --budget */
    bool usage_error;
    int depth;        /* of batch files */
    const char *file; /* the batch file being read; NULL = the command line */
    gb_text place;    /* "file:line", "" on the command line */
    size_t line;      /* number of the logical line being read, over all files */
    size_t n_lines;
    size_t n_batches;   /* read so far */
    bool too_deep;      /* said already */
    bool has_cases;     /* one was met */
    bool keeps_records; /* --json or the like is there, or may come in a batch file */
    gb_text refusal;    /* why --strict-env lets nothing be measured */
    char *engine;       /* owned; description of the engine that ran last, or NULL */
    bool has_roof;      /* the report's, of this engine */
    gb_engine_kind roof_kind;
    int64_t roof_index;
    option_fault faults[FAULT_COUNT];
    bool warned[OPTION_LIMIT]; /* of an option without effect */
} interpreter;

/* The place of a wrong option that was meant for the next case, or NULL. The value of an option that
 * describes cases stays wrong until it is set again or reset; others concern their line. */
static const char *fault_of_case(const interpreter *app)
{
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        const option_fault *fault = &app->faults[i];
        bool stays = i < gb_cli_option_count() && gb_cli_options[i].of_case;
        if (fault->place.length > 0 && (stays || fault->line == app->line))
            return fault->place.data;
    }
    return NULL;
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
    option_fault *fault = &app->faults[option ? option - gb_cli_options : NO_OPTION];
    fault->line = app->line;
    gb_cli_text_clear(&fault->place);
    gb_cli_text_add(&fault->place, "%s", gb_cli_text_get(&app->place));
}

/* ------------------------------------------------------------ cases */

/* Do reports tell of the machine, too? Beside the shortest measurements it would take most of the
 * time to look at it. */
static bool reports_machine(const gb_settings *settings)
{
    return gb_cli_output_is_wanted(settings) && gb_cli_budget_ms(settings) >= 100;
}

/* Rates are told beside the roofs of what the case runs on, measured in the same run. */
static void measure_roof(interpreter *app)
{
    const gb_settings *settings = &app->settings;
    bool wanted = settings->mode & MODE_PERFORMANCE &&
                  (settings->verbose >= 1 || reports_machine(settings));
    bool known = app->has_roof && app->roof_kind == settings->engine_kind &&
                 app->roof_index == settings->engine_index;
    if (!wanted || known)
        return;
    app->has_roof = true;
    app->roof_kind = settings->engine_kind;
    app->roof_index = settings->engine_index;
    gb_cli_roof_of(settings->engine_kind, (size_t)settings->engine_index, &app->report.roof);
}

/* The doctor looks once, in front of the first measurement that is long enough to be worth it. */
static void examine_machine(interpreter *app)
{
    const gb_settings *settings = &app->settings;
    if (!(settings->mode & MODE_PERFORMANCE) || app->report.diagnosis.n > 0 ||
            !(settings->strict_env || reports_machine(settings)))
        return;
    gb_cli_diagnose(settings->threads ? (int)settings->threads : gb_cli_default_threads(),
            &app->report.diagnosis);
}

/* The name of the first check that --strict-env does not let pass, or NULL. */
static const gb_check *forbidding_check(const interpreter *app)
{
    const gb_diagnosis *diagnosis = &app->report.diagnosis;
    if (!app->settings.strict_env || !(app->settings.mode & MODE_PERFORMANCE))
        return NULL;
    for (size_t i = 0; i < diagnosis->n; i++)
        if (diagnosis->checks[i].grade == CHECK_BAD)
            return &diagnosis->checks[i];
    return NULL;
}

/* Looks at the machine in front of a case that is measured. Why it may not be, or NULL. */
static const char *prepare_machine(interpreter *app)
{
    examine_machine(app);
    const gb_check *bad = forbidding_check(app);
    gb_cli_text_clear(&app->refusal);
    if (!bad) {
        measure_roof(app);
        return NULL;
    }
    gb_cli_text_add(&app->refusal, "--strict-env: %s: %s", bad->name, bad->finding);
    return app->refusal.data;
}

static gb_status perform_case(interpreter *app, gb_case *test, gb_case_result *result)
{
    const char *refusal = prepare_machine(app);
    if (gb_cli_is_isolated(&app->settings))
        return gb_cli_isolated_perform(
                &app->isolation, &app->settings, test, refusal, false, result);
    return gb_cli_perform(&app->performer, &app->settings, test, refusal, result);
}

/* Results that cannot be written end the run: nobody would learn of what follows. */
static void lose_results(interpreter *app, const char *message)
{
    if (!app->unwritten)
        gb_cli_print_error(NULL, "%s", message);
    app->unwritten = true;
    app->stopped = true;
}

/* Kept beside the engine: a signal's thread reports while the main one may be changing engines. */
static void keep_engine(interpreter *app)
{
    const gb_engine *engine = app->performer.session.engine;
    const char *text = app->isolation.engine ? app->isolation.engine
                       : engine              ? gb_engine_get_description(engine)
                                             : NULL;
    if (!text || (app->engine && strcmp(app->engine, text) == 0))
        return;
    free(app->engine);
    app->engine = gb_cli_copy(text);
}

/* The roof is what the machine was seen to reach: a neighbour may have been there before. */
static void raise_roof(interpreter *app)
{
    if (app->has_roof && app->roof_kind == GB_ENGINE_CPU &&
            app->report.roof.flops < gb_cli_probe_best())
        app->report.roof.flops = gb_cli_probe_best();
}

static void print_case(interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result)
{
    gb_cli_report_print_case(&app->report, settings, test, result);
    if (app->pool.n > 0)
        app->pool_printed++;
}

/* Called with the lock. */
static void count_case(interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages)
{
    gb_cli_report_count_case(&app->report, settings, test, result);
    if (app->keeps_records)
        gb_cli_output_add(app->output, gb_cli_case_record(settings, test, result, messages));
    if (app->pool.n > 0)
        app->pool_counted++;
}

/* --repro-dir. */
static void write_repro(interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages)
{
    bool wanted = settings->repro_dir && !result->expected &&
                  gb_cli_case_status_is_failure(result->status);
    if (wanted && gb_cli_repro_write(&app->repro, settings, test, result, messages) != GB_SUCCESS)
        lose_results(app, gb_cli_failure());
}

/* It is printed without the lock: who reads the standard output may keep the program waiting, but not
 * a signal's thread. */
static void report_case(interpreter *app, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages)
{
    pthread_mutex_lock(&app->lock);
    keep_engine(app);
    raise_roof(app);
    pthread_mutex_unlock(&app->lock);
    print_case(app, settings, test, result);
    if (ferror(stdout))
        lose_results(app, "standard output cannot be written; the run ends here");
    pthread_mutex_lock(&app->lock);
    count_case(app, settings, test, result, messages);
    gb_status status = GB_SUCCESS;
    if (gb_cli_output_is_wanted(settings))
        status = gb_cli_output_refresh(app->output, settings, &app->report, app->engine);
    pthread_mutex_unlock(&app->lock);
    if (status != GB_SUCCESS)
        lose_results(app, gb_cli_failure());
    write_repro(app, settings, test, result, messages);
}

static bool is_out_of_time(interpreter *app)
{
    double budget_ns = app->settings.budget_s * 1e9;
    app->out_of_time =
            app->out_of_time ||
            (budget_ns > 0 && (double)(gb_cli_now_ns() - app->report.begin_ns) > budget_ns);
    app->stopped = app->stopped || app->out_of_time;
    return app->out_of_time;
}

static void visit_again(interpreter *app, gb_waiting_case *waiting)
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
    gb_cli_pool_join(waiting, &visit, status, gb_cli_messages());
    waiting->result.expected =
            gb_cli_expected_reason(&app->expectations, &waiting->test, waiting->result.status);
    pthread_mutex_unlock(&app->lock);
}

/* All further visits of the cases in the pool, as long as the run goes on; then they are
 * reported, in their order. */
static void finish_pool(interpreter *app)
{
    size_t order[POOL_LIMIT], n;
    while (!app->stopped && (n = gb_cli_pool_round(&app->pool, order)) > 0)
        for (size_t i = 0; i < n && !app->stopped; i++) {
            app->stopped = app->stopped || gb_cli_interrupt_signal();
            if (!app->stopped && !is_out_of_time(app))
                visit_again(app, app->pool.cases[order[i]]);
        }
    for (size_t i = 0; i < app->pool.n; i++) {
        const gb_waiting_case *waiting = app->pool.cases[i];
        report_case(app, &waiting->settings, &waiting->test, &waiting->result, waiting->messages);
    }
    pthread_mutex_lock(&app->lock);
    gb_cli_pool_clear(&app->pool);
    app->pool_printed = 0;
    app->pool_counted = 0;
    pthread_mutex_unlock(&app->lock);
}

/* Measured cases wait for their further visits; others are reported at once, or behind those. */
static void end_case(interpreter *app, const gb_case *test, gb_case_result *result)
{
    bool waits = result->measured && gb_cli_visit_count(&app->settings) > 1;
    if (!waits && app->pool.n == 0) {
        report_case(app, &app->settings, test, result, gb_cli_messages());
        return;
    }
    pthread_mutex_lock(&app->lock);
    keep_engine(app);
    gb_cli_pool_add(&app->pool, &app->settings, test, result, gb_cli_messages());
    pthread_mutex_unlock(&app->lock);
    if (app->pool.n == POOL_LIMIT)
        finish_pool(app);
}

/* A case that --resume has done is counted and written as it was, with what --expect says now. One
 * that was skipped is not done. */
static bool take_over(interpreter *app, const gb_case *test)
{
    json_object *record = gb_cli_selection_done(&app->selection, test), *name;
    gb_case_status status;
    if (!record)
        return false;
    bool ran = json_object_object_get_ex(record, "status", &name) &&
               gb_cli_case_status_find(json_object_get_string(name), &status) &&
               status != CASE_SKIPPED;
    if (ran) {
        finish_pool(app);
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

static void run_selected(interpreter *app, gb_case *test)
{
    gb_case_result result = {.seed = app->settings.seed};
    const char *fault = fault_of_case(app);
    gb_cli_messages_clear();
    if (fault) {
        gb_cli_result_set(&result, CASE_UNTESTED_FAILED, "Invalid option at %s", fault);
    } else if ((int64_t)test->index < app->settings.start) {
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
        end_case(app, test, &result);
    }
    gb_cli_result_free(&result);
    gb_cli_case_unload(test);
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
    app->stopped = app->stopped || gb_cli_interrupt_signal();
    bool selected = !app->stopped && gb_cli_shards_fit(&app->settings, &app->shards, &test) &&
                    gb_cli_filter_fits_case(&app->settings, &test) &&
                    gb_cli_selection_fits(&app->selection, &test);
    if (selected && !take_over(app, &test) && !is_out_of_time(app))
        run_selected(app, &test);
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
    app->has_cases = true;
    bool runs = app->counting || !app->checking;
    if (runs && app->next_index + count > CASE_LIMIT) {
        stop(app, "cases", CASE_LIMIT);
        return;
    }
    if (app->counting)
        app->next_index += count;
    if (app->checking)
        return;
    app->settings.in_batch = app->file != NULL;
    char *path = gb_cli_search(&app->search, &app->settings, file);
    if (app->settings.verbose >= 50)
        printf("case file: %s\n", path);
    gb_combo combo = {0};
    do
        run_combination(app, file, path, &combo);
    while (!app->stopped && gb_cli_combo_next(&app->settings, &combo));
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

static void print_help(void)
{
    gb_cli_print_help();
    puts("\nSubcommands:");
    const gb_command *command;
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++)
        printf("  graph-bench %s %s\n      %s\n", command->name, command->arguments, command->help);
}

/* The schema of every op, and what runs of it. */
static void list_ops(interpreter *app)
{
    bool all_ran = gb_op_table_write("-") == GB_SUCCESS;
    if (all_ran &&
            gb_cli_write_op_cells(&app->performer.session, &app->settings, &all_ran) != GB_SUCCESS)
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
    app->report.n_option_errors += !all_ran;
}

static void end_with(interpreter *app, gb_option_action action)
{
    app->ended = true;
    if (app->checking)
        return;
    if (action == ACTION_HELP)
        print_help();
    else if (action == ACTION_VERSION)
        gb_cli_print_version();
    else if (action == ACTION_LIST_DEVICES)
        gb_cli_list_devices();
    else
        list_ops(app);
}

static void reset(interpreter *app)
{
    gb_cli_settings_reset(&app->settings);
    for (size_t i = 0; i < gb_cli_option_count(); i++)
        if (gb_cli_options[i].of_case)
            gb_cli_text_clear(&app->faults[i].place);
}

/* What an option names is read at once: what cannot be read is wrong usage. */
static gb_status read_named_files(interpreter *app)
{
    const char *path = app->settings.expect_file;
    if (app->counting)
        return GB_SUCCESS;
    if (path && app->expectations.n == 0) /* there is one for the run */
        CLI_TRY(gb_cli_expectations_read(path, &app->expectations));
    CLI_TRY(gb_cli_shards_read(&app->settings, &app->shards));
    app->report.shard_division = app->shards.division;
    return gb_cli_selection_read(&app->settings, &app->selection);
}

static void interpret(interpreter *app, const char *token)
{
    const gb_option *option;
    const char *value;
    if (gb_cli_option_find(token, &option, &value) != GB_SUCCESS) {
        option_error(app, option);
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
    case ACTION_LIST_DEVICES:
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
    gb_status status = gb_cli_option_set(&app->settings, option, value);
    if (app->checking && !app->counting && app->has_cases &&
            option->take == gb_cli_parse_option_shard)
        gb_cli_print_warning(gb_cli_text_get(&app->place),
                "--shard stands behind cases: they run in every shard");
    if (status == GB_SUCCESS && option->once) {
        status = read_named_files(app);
        if (status != GB_SUCCESS)
            gb_cli_set_option(&app->settings, option->name, NULL);
    }
    if (status != GB_SUCCESS)
        option_error(app, option);
    else
        gb_cli_text_clear(&app->faults[option - gb_cli_options].place);
    if (status == GB_SUCCESS && option->take == gb_cli_take_seed && !app->checking &&
            strcmp(value, "random") == 0)
        printf("seed: %lld\n", (long long)app->settings.seed);
}

/* ------------------------------------------------------------ main */

static void interpret_arguments(interpreter *app, int argc, char **argv)
{
    for (int i = 1; i < argc && !app->ended && !app->stopped; i++)
        interpret(app, argv[i]);
}

/* Options of the run as a whole count for cases in front of them, too: a report is written from the
 * first one on. They were checked before. */
static void take_options_of_run(interpreter *app, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const gb_option *option;
        const char *value;
        if (gb_cli_option_find(argv[i], &option, &value) == GB_SUCCESS && option->of_run)
            gb_cli_option_set(&app->settings, option, value);
    }
}

/* Called with the lock; only the first call does anything. */
static gb_status finish_files(interpreter *app, const char *ended)
{
    bool wanted = !app->finished && gb_cli_output_is_wanted(&app->settings);
    app->finished = true;
    if (!wanted)
        return GB_SUCCESS;
    return gb_cli_output_write(app->output, &app->settings, &app->report, app->engine, ended);
}

/* On a thread of a signal, while a case runs. The lock is kept: nothing may follow. */
static void finish_interrupted(void *data, int signal)
{
    interpreter *app = data;
    pthread_mutex_lock(&app->lock);
    while (app->pool_counted < app->pool.n) {
        const gb_waiting_case *waiting = app->pool.cases[app->pool_counted];
        count_case(app, &waiting->settings, &waiting->test, &waiting->result, waiting->messages);
    }
    gb_status status = finish_files(app, "interrupted");
    gb_cli_interrupt_saved();
    if (status != GB_SUCCESS)
        lose_results(app, gb_cli_failure());
    gb_cli_progress_hide(&app->progress);
    fprintf(stderr, "graph-bench: ended by signal %d (%s) before its last case\n", signal,
            strsignal(signal));
    while (app->pool_printed < app->pool.n) {
        const gb_waiting_case *waiting = app->pool.cases[app->pool_printed];
        print_case(app, &waiting->settings, &waiting->test, &waiting->result);
    }
    gb_cli_report_end(&app->report, &app->settings);
    fflush(stdout);
}

static void app_free(interpreter *app)
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
    gb_cli_repro_free(&app->repro);
    gb_cli_report_free(&app->report);
    gb_cli_text_free(&app->refusal);
    gb_cli_text_free(&app->place);
    for (size_t i = 0; i < FAULT_COUNT; i++)
        gb_cli_text_free(&app->faults[i].place);
}

/* Wrong usage is found before anything runs, and so are files that cannot be written. */
static bool usage_is_good(interpreter *app, int argc, char **argv)
{
    interpreter check = {.checking = true};
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
    interpreter count = {.checking = true, .counting = true};
    gb_cli_settings_init(&count.settings);
    interpret_arguments(&count, argc, argv);
    bool worthwhile = count.next_index > 1 && !(count.settings.mode & (MODE_LIST | MODE_INIT));
    size_t total = worthwhile ? count.next_index : 0;
    app_free(&count);
    return total;
}

/* --strict: what passes otherwise, but proves nothing. */
static bool strictly_good(const interpreter *app)
{
    const size_t *counts = app->report.counts;
    bool ran = false, unsure = counts[CASE_SKIPPED] || counts[CASE_MISTRUSTED];
    for (int status = 0; status < CASE_STATUS_COUNT; status++)
        ran = ran || counts[status];
    ran = ran || app->report.n_expected;
    if (!ran)
        gb_cli_print_error(NULL, "--strict: no case ran");
    if (unsure)
        gb_cli_print_error(NULL, "--strict: %zu skipped, %zu mistrusted", counts[CASE_SKIPPED],
                counts[CASE_MISTRUSTED]);
    if (app->out_of_time)
        gb_cli_print_error(NULL, "--strict: --budget ended the run before its last case");
    bool outdated = gb_cli_expectations_unused(&app->expectations) > 0;
    return ran && !unsure && !app->out_of_time && !outdated;
}

static int exit_status(const interpreter *app)
{
    if (gb_cli_interrupt_signal())
        return 128 + gb_cli_interrupt_signal();
    if (app->unwritten)
        return EXIT_UNWRITTEN;
    if (gb_cli_report_has_failures(&app->report) ||
            (app->settings.strict && !app->ended && !strictly_good(app)))
        return EXIT_CASE_FAILED;
    return EXIT_GOOD;
}

static void run(interpreter *app, int argc, char **argv)
{
    /* A reader that goes away shows as a failure to write. */
    signal(SIGPIPE, SIG_IGN);
    gb_cli_interrupt_start(finish_interrupted, app);
    app->progress = (gb_progress){count_cases(argc, argv), app->report.begin_ns};
    gb_cli_settings_init(&app->settings);
    take_options_of_run(app, argc, argv);
    interpret_arguments(app, argc, argv);
    finish_pool(app);
    if (!app->ended) {
        pthread_mutex_lock(&app->lock);
        gb_status status = finish_files(app, gb_cli_interrupt_signal() ? "interrupted"
                                             : app->out_of_time        ? "budget"
                                             : app->stopped            ? "stopped"
                                                                       : "complete");
        pthread_mutex_unlock(&app->lock);
        if (status != GB_SUCCESS)
            lose_results(app, gb_cli_failure());
        gb_cli_report_end(&app->report, &app->settings);
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        lose_results(app, "standard output cannot be written");
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
    static interpreter app = {.lock = PTHREAD_MUTEX_INITIALIZER};
    app.report.begin_ns = gb_cli_now_ns();
    app.output = gb_cli_output_create(argc, argv);
    if (!app.output) {
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
        return EXIT_UNWRITTEN;
    }
    int result = EXIT_USAGE;
    if (usage_is_good(&app, argc, argv)) {
        run(&app, argc, argv);
        result = exit_status(&app);
    }
    app_free(&app);
    return result;
}
