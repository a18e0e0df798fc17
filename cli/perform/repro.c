/* Folders that hold all that a failure needs to be seen again. */
#define _GNU_SOURCE
#include "cli/perform/repro.h"

#include "cli/options/message.h"
#include "cli/options/option_parsers.h"
#include "cli/options/options.h"
#include "cli/options/utf8.h"
#include "cli/perform/folder.h"
#include "cli/perform/single.h"
#include "cli/report/interrupt.h"
#include "cli/report/record.h"
#include "cli/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FOLDERS = 100, MOST_MEBIBYTES = 64, SMALL_KIBIBYTES = 1024 };
/* Behind a signal: so long the program may take to end by itself. */
enum { ENDING_SECONDS = 5 };

/* ------------------------------------------------------------ trials */

/* On the thread that waits for signals; the main one goes on, without the trial that ran. */
static void leave_time(void *data, int signal)
{
    (void)data;
    (void)signal;
    sleep(ENDING_SECONDS);
}

void gb_cli_trials_start(void)
{
    gb_cli_interrupt_start(leave_time, NULL);
}

gb_status gb_cli_trial(gb_isolation *isolation, const gb_settings *settings, const gb_case *test,
        gb_case_result *result)
{
    gb_status status = GB_SUCCESS;
    bool ended = false;
    if (!gb_cli_interrupt_signal())
        CLI_TRY(gb_cli_isolated_start(isolation, settings, test, NULL, false, result));
    while (!ended && !gb_cli_interrupt_signal()) {
        gb_cli_isolated_wait(isolation, 1);
        ended = gb_cli_isolated_ended(isolation, result, &status);
    }
    if (ended)
        return status;
    gb_cli_isolated_stop(isolation);
    return gb_cli_fail(GB_RUNTIME_ERROR, "a signal ended the run");
}

void gb_cli_write_limits(const gb_settings *settings, gb_case_status status, gb_text *text)
{
    if (status != CASE_CRASHED && status != CASE_TIMEOUT && status != CASE_OUT_OF_MEMORY)
        return;
    gb_cli_text_add(text, "%s--isolate=on", text->length ? " " : "");
    for (size_t i = 0; i < gb_cli_option_count(); i++)
        if (gb_cli_options[i].is_limit && settings->text[i])
            gb_cli_text_add(text, " --%s=%s", gb_cli_options[i].name, settings->text[i]);
}

/* ------------------------------------------------------------ files */

static char *join(const char *folder, const char *name)
{
    gb_text path = {0};
    gb_cli_text_add(&path, "%s/%s", folder, name);
    return path.data;
}

static bool make_folder(const char *path)
{
    struct stat info;
    return mkdir(path, 0777) == 0 ||
           (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

/* ------------------------------------------------------------ writing */

/* Paths as they are from anywhere. */
static void make_absolute(gb_settings *settings)
{
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        bool is_path = option->in_repro && option->take == gb_cli_parse_option_path;
        char *path = is_path && settings->text[i] ? realpath(settings->text[i], NULL) : NULL;
        if (path)
            gb_cli_set_option(settings, option->name, path);
        free(path);
    }
}

/* Settings of the case alone, under the seed that it failed with. */
static void failing_settings(const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, gb_settings *failing)
{
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRId64, result->seed);
    gb_cli_settings_copy(settings, test->choice, failing);
    gb_cli_set_option(failing, "seed", seed);
    gb_cli_set_option(failing, "seeds", "1");
    make_absolute(failing);
}

static void add_word(json_object *words, const char *name, const char *value)
{
    gb_text word = {0};
    gb_cli_text_add(&word, "--%s=%s", name, value);
    json_object_array_add(words, gb_cli_utf8_json(word.data));
    gb_cli_text_free(&word);
}

/* The name of the option of an axis. */
static const char *option_of(gb_axis axis)
{
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        bool two_forms = option->take == gb_cli_parse_option_dt;
        if (option->of_case && (two_forms ? axis == AXIS_DT || axis == AXIS_DT_IDS
                                          : (gb_axis)option->offset == axis))
            return option->name;
    }
    return "";
}

/* The options of the case. */
static json_object *words_of(const gb_settings *settings)
{
    json_object *words = json_object_new_array();
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *option = &gb_cli_options[i];
        const char *text = settings->text[i];
        bool is_default = text && option->fallback && strcmp(text, option->fallback) == 0;
        bool counts = (option->in_repro && !option->repeats) || option->is_limit;
        if (counts && text && !is_default)
            add_word(words, option->name, text);
    }
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const char *text = settings->axes[axis].items[0].text;
        if (strcmp(text, gb_cli_axis_default((gb_axis)axis)) != 0)
            add_word(words, option_of((gb_axis)axis), text);
    }
    return words;
}

static json_object *describe(const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages, const char *engine, const char *file)
{
    static const gb_roof no_roof = {.flops = 0};
    char *kind = gb_cli_failure_class(result);
    json_object *object = json_object_new_object();
    json_object_object_add(object, "schema", json_object_new_string("graph-bench-repro"));
    json_object_object_add(object, "schema_version", json_object_new_int(1));
    json_object_object_add(object, "failure", gb_cli_utf8_json(kind));
    json_object_object_add(object, "arguments", words_of(settings));
    json_object_object_add(object, "graph", json_object_new_string(file));
    json_object_object_add(object, "case", gb_cli_case_record(settings, test, result, messages));
    json_object_object_add(
            object, "environment", gb_cli_environment_record(0, NULL, engine, &no_roof));
    free(kind);
    return object;
}

/* Variables that change what a case does, as far as they are set. */
static void add_environment(gb_text *line)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "GB_MAX_ISA", "GB_CACHES",
            "GB_CHECK_MEMORY", "GB_DEFAULT_FPMATH_MODE", "GB_OPENCL_DEVICE"};
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (!value)
            continue;
        gb_cli_text_add(line, "%s%s='", any ? "" : "env ", names[i]);
        for (; *value; value++)
            gb_cli_text_add(line, *value == '\'' ? "'\\''" : "%c", *value);
        gb_cli_text_add(line, "' ");
        any = true;
    }
}

static bool write_command(
        const char *folder, const gb_settings *settings, gb_case_status status, const char *file)
{
    const gb_alternative *choice[AXIS_COUNT];
    gb_text line = {0}, repro = {0};
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        choice[axis] = &settings->axes[axis].items[0];
    gb_cli_write_limits(settings, status, &repro);
    gb_cli_write_repro(settings, choice, file, &repro);
    gb_cli_text_add(&line, "#!/bin/sh\ncd \"$(dirname \"$0\")\" && exec ");
    add_environment(&line);
    gb_cli_text_add(&line, "graph-bench %s\n", repro.data);
    char *path = join(folder, "command");
    bool good = gb_cli_write_file(path, line.data) && chmod(path, 0755) == 0;
    free(path);
    gb_cli_text_free(&line);
    gb_cli_text_free(&repro);
    return good;
}

/* Runs the case in another way, with the result in a file or folder. */
static void run_for(gb_isolation *isolation, const gb_settings *settings, const gb_case *test,
        const char *option, const char *path, bool lists)
{
    gb_settings copy;
    gb_case of_copy = *test;
    gb_cli_settings_copy(settings, test->choice, &copy);
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        of_copy.choice[axis] = &copy.axes[axis].items[0];
    gb_cli_set_option(&copy, "save-tensors", NULL);
    gb_cli_set_option(&copy, "save-graph", NULL);
    gb_cli_set_option(&copy, "blame", "false");
    gb_cli_set_option(&copy, option, path);
    if (lists)
        gb_cli_set_option(&copy, "mode", "L");
    gb_case_result result = {.status = CASE_UNTESTED_FAILED};
    gb_cli_trial(isolation, &copy, &of_copy, &result);
    gb_cli_result_free(&result);
    gb_cli_settings_free(&copy);
}

/* Graphs are read by what their file holds, but for models, which are known by their name. */
static const char *name_of(const char *path)
{
    const char *extension = strrchr(path, '.');
    if (extension && strcmp(extension, ".pt2") == 0)
        return "graph.pt2";
    return extension && strcmp(extension, ".gbt") == 0 ? "graph.gbt" : "graph.json";
}

static double elements_of(json_object *tensor)
{
    json_object *shape = json_object_object_get(tensor, "shape");
    double elements = 1;
    for (size_t d = 0; shape && d < json_object_array_length(shape); d++)
        elements *= (double)json_object_get_int64(json_object_array_get_idx(shape, d));
    return elements;
}

/* At most four bytes an element, counted wherever an op has it. */
static bool is_small(const char *graph_file)
{
    json_object *graph = json_object_from_file(graph_file);
    json_object *ops = graph ? json_object_object_get(graph, "graph") : NULL;
    double elements = 0;
    for (size_t i = 0; ops && i < json_object_array_length(ops); i++) {
        static const char *const sides[] = {"inputs", "outputs"};
        for (int side = 0; side < 2; side++) {
            json_object *list =
                    json_object_object_get(json_object_array_get_idx(ops, i), sides[side]);
            for (size_t k = 0; list && k < json_object_array_length(list); k++)
                elements += elements_of(json_object_array_get_idx(list, k));
        }
    }
    json_object_put(graph);
    return ops && 4 * elements <= SMALL_KIBIBYTES * 1024.0;
}

/* Is it a file that can be read, and not too large? What is not is no reason to end the run. */
static bool can_be_kept(const char *path)
{
    struct stat info;
    bool kept = stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, R_OK) == 0 &&
                (size_t)info.st_size <= (size_t)MOST_MEBIBYTES << 20;
    if (!kept)
        gb_cli_print_warning(
                path, "--repro-dir keeps no copy: no file that can be read, or a large one");
    return kept;
}

static gb_status fill_folder(gb_repro_folders *folders, const char *folder,
        const gb_settings *settings, const gb_case *test, const gb_case_result *result,
        const char *messages)
{
    const char *name = name_of(test->path);
    char *graph = join(folder, name), *rewritten = join(folder, "rewritten.json");
    char *tensors = join(folder, "tensors"), *record = join(folder, "repro.json");
    gb_isolation *isolation = &folders->isolation;
    isolation->output = OUTPUT_QUIET;
    bool is_there = can_be_kept(test->path);
    bool good = !is_there || gb_cli_copy_file(test->path, graph, (size_t)MOST_MEBIBYTES << 20);
    run_for(isolation, settings, test, "save-graph", rewritten, true);
    gb_cli_remove_folder(tensors);
    if (good && result->status == CASE_FAILED && is_small(rewritten))
        run_for(isolation, settings, test, "save-tensors", tensors, false);
    json_object *object = describe(settings, test, result, messages, isolation->engine, name);
    good = json_object_to_file_ext(record, object,
                   JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                           JSON_C_TO_STRING_NOSLASHESCAPE) == 0 &&
           good;
    json_object_put(object);
    good = write_command(folder, settings, result->status, name) && good;
    folders->bytes += gb_cli_folder_bytes(folder) + gb_cli_folder_bytes(tensors);
    free(graph);
    free(rewritten);
    free(tensors);
    free(record);
    return good ? GB_SUCCESS
                : gb_cli_fail(
                          GB_RUNTIME_ERROR, "--repro-dir: %s cannot be written as a whole", folder);
}

/* "0007-FAILED-relu". */
static char *folder_of(
        const gb_settings *settings, const gb_case *test, const gb_case_result *result)
{
    const char *slash = strrchr(test->file, '/'), *base = slash ? slash + 1 : test->file;
    gb_text path = {0};
    gb_cli_text_add(&path, "%s/%04zu-%s-%.*s", settings->repro_dir, test->index,
            gb_cli_case_status_name(result->status), (int)strcspn(base, "."), base);
    return path.data;
}

gb_status gb_cli_repro_write(gb_repro_folders *folders, const gb_settings *settings,
        const gb_case *test, const gb_case_result *result, const char *messages)
{
    bool full = folders->n >= MOST_FOLDERS || folders->bytes >= (size_t)MOST_MEBIBYTES << 20;
    if (full && !folders->full)
        gb_cli_print_warning(NULL, "--repro-dir: no more folders after %zu, %zu KiB", folders->n,
                folders->bytes >> 10);
    folders->full = full;
    if (full)
        return GB_SUCCESS;
    char *folder = folder_of(settings, test, result);
    gb_status status;
    if (!make_folder(settings->repro_dir) || !make_folder(folder)) {
        status = gb_cli_fail(
                GB_RUNTIME_ERROR, "--repro-dir: %s cannot be made: %s", folder, strerror(errno));
    } else {
        gb_settings failing;
        gb_case alone = *test;
        failing_settings(settings, test, result, &failing);
        failing.in_batch = settings->in_batch;
        for (int axis = 0; axis < AXIS_COUNT; axis++)
            alone.choice[axis] = &failing.axes[axis].items[0];
        status = fill_folder(folders, folder, &failing, &alone, result, messages);
        gb_cli_settings_free(&failing);
        folders->n++;
        if (status == GB_SUCCESS)
            printf("[REPRO] %s\n", folder);
    }
    free(folder);
    return status;
}

void gb_cli_repro_free(gb_repro_folders *folders)
{
    gb_cli_isolation_free(&folders->isolation);
    *folders = (gb_repro_folders){.n = 0};
}

/* ------------------------------------------------------------ running again */

static const char *text_of(json_object *object, const char *key)
{
    const char *text = json_object_get_string(json_object_object_get(object, key));
    return text ? text : "";
}

/* The case of the folder, from anywhere. */
static gb_status read_case(const char *folder, json_object *object, gb_errand *errand)
{
    json_object *arguments = json_object_object_get(object, "arguments");
    *errand = (gb_errand){.visit = false};
    if (strcmp(text_of(object, "schema"), "graph-bench-repro") != 0 ||
            !json_object_is_type(arguments, json_type_array))
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s/repro.json is no record of a failure", folder);
    size_t n = json_object_array_length(arguments);
    char **words = gb_cli_realloc(NULL, n + 1, sizeof(char *));
    gb_text file = {0};
    gb_cli_text_add(&file, "--case=%s%s/%s", strchr(folder, '/') ? "" : "./", folder,
            text_of(object, "graph"));
    for (size_t i = 0; i < n; i++)
        words[i] = gb_cli_utf8_restore(
                json_object_get_string(json_object_array_get_idx(arguments, i)));
    words[n] = file.data;
    gb_status status = gb_cli_single_read(n + 1, words, errand);
    for (size_t i = 0; i <= n; i++)
        free(words[i]);
    free(words);
    return status;
}

/* Of the first element that was wrong, or "". */
static void place_of(json_object *record, gb_text *place)
{
    json_object *list = json_object_object_get(record, "mismatches");
    if (!list || json_object_array_length(list) == 0)
        return;
    json_object *first = json_object_array_get_idx(list, 0);
    gb_cli_text_add(place, " at tensor %s[%s]", text_of(first, "tensor"), text_of(first, "index"));
}

static void tell(json_object *object, const gb_errand *errand, const gb_case_result *result)
{
    gb_text before = {0}, now = {0};
    char *kind = gb_cli_failure_class(result);
    json_object *record = gb_cli_case_record(&errand->settings, &errand->test, result, "");
    gb_cli_text_add(&before, "%s", text_of(object, "failure"));
    place_of(json_object_object_get(object, "case"), &before);
    gb_cli_text_add(&now, "%s", kind);
    place_of(record, &now);
    if (strcmp(before.data, now.data) == 0)
        printf("the same failure: %s\n", now.data);
    else if (gb_cli_case_status_is_failure(result->status))
        printf("another failure: %s, not %s\n", now.data, before.data);
    else
        printf("no failure: %s, not %s\n", now.data, before.data);
    json_object_put(record);
    free(kind);
    gb_cli_text_free(&before);
    gb_cli_text_free(&now);
}

gb_status gb_cli_repro_run(const char *folder, bool *fails)
{
    char *path = join(folder, "repro.json");
    json_object *object = json_object_from_file(path);
    free(path);
    if (!object)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s/repro.json cannot be read", folder);
    gb_errand errand;
    gb_status status = read_case(folder, object, &errand);
    if (status == GB_SUCCESS) {
        gb_isolation isolation = {.worker = 0};
        gb_case_result result = {.status = CASE_UNTESTED_FAILED};
        if (gb_cli_isolated_perform(
                    &isolation, &errand.settings, &errand.test, NULL, false, &result) != GB_SUCCESS)
            gb_cli_print_error(NULL, "%s", gb_cli_failure());
        tell(object, &errand, &result);
        *fails = gb_cli_case_status_is_failure(result.status);
        gb_cli_result_free(&result);
        gb_cli_isolation_free(&isolation);
    }
    gb_cli_errand_free(&errand);
    json_object_put(object);
    return status;
}
