/* Random graphs, each checked in several ways. */
#define _GNU_SOURCE
#include "cli/perform/fuzz.h"

#include "cli/options/message.h"
#include "cli/perform/folder.h"
#include "cli/perform/near_miss.h"
#include "cli/perform/random_graph.h"
#include "cli/perform/reduce.h"
#include "cli/perform/repro.h"
#include "cli/perform/single.h"
#include "cli/report/interrupt.h"
#include "cli/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sorts of failures that are told apart; each is reduced. */
enum { MOST_FINDINGS = 50 };
/* One graph in so many is a near-miss: they take longer than others. */
enum { NEAR_MISS_EACH = 4 };

/* How a graph is run besides its check with the defaults. With `same` nothing is compared with the
 * reference: the bits have to be those of the first run. Each graph is run in one of these ways. */
typedef struct way {
    const char *options[3];
    bool same;
} way;

static const way ways[] = {
        {{"policy=debug"}, false},
        {{"policy=max"}, false},
        {{"dynamic=true"}, false},
        {{"layouts=strided"}, false},
        {{"fill=adversarial"}, false},
        {{"fill=edges"}, false},
        {{"caches=4096:16384:65536"}, false},
        {{"bf16-products=dot"}, false},
        {{"mode=R"}, true},
        {{"mode=R", "threads=1"}, true},
        {{"mode=R", "threads=2"}, true},
        {{"mode=R", "threads=3"}, true},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

typedef struct fuzzing {
    const gb_fuzz *fuzz;
    gb_fuzz_result *result;
    gb_isolation isolation;
    gb_repro_folders folders;
    gb_near_misses misses;
    gb_text folder, path;       /* of the graph at work */
    gb_text other;              /* the option of the other engine */
    way against;                /* with that */
    char *sorts[MOST_FINDINGS]; /* owned; of what was found */
} fuzzing;

static void set_way(gb_settings *settings, const way *how)
{
    for (size_t i = 0; i < sizeof how->options / sizeof *how->options && how->options[i]; i++) {
        const char *value = strchr(how->options[i], '=');
        char *name = gb_cli_copy_part(how->options[i], (size_t)(value - how->options[i]));
        gb_cli_set_option(settings, name, value + 1);
        free(name);
    }
}

/* Any number of partitions is right. */
static void allow_partitions(gb_settings *settings)
{
    gb_alternatives any;
    gb_axis axis = AXIS_EXPECTED_N_PARTITIONS;
    if (gb_cli_alternatives_parse(axis, "0", &any) != GB_SUCCESS)
        return;
    gb_cli_alternatives_free(axis, &settings->axes[axis]);
    settings->axes[axis] = any;
}

static void open_settings(const fuzzing *f, const way *how, uint64_t number, gb_settings *settings)
{
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, number);
    gb_cli_plain_settings(&f->fuzz->settings, settings);
    gb_cli_set_option(settings, "seed", seed);
    allow_partitions(settings);
    if (how)
        set_way(settings, how);
}

static gb_status perform(fuzzing *f, gb_settings *settings, gb_case_result *result)
{
    gb_case test = {.file = f->path.data, .path = f->path.data, .repro = "", .arguments = ""};
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        test.choice[axis] = &settings->axes[axis].items[0];
    f->result->cases++;
    return gb_cli_trial(&f->isolation, settings, &test, result);
}

/* What the library declines is no fault of a graph that it could not know. */
static bool is_finding(const gb_case_result *result)
{
    return gb_cli_case_status_is_failure(result->status) && result->status != CASE_UNIMPLEMENTED &&
           result->status != CASE_INVALID_ARGUMENTS;
}

/* ------------------------------------------------------------ findings */

/* The verdict and the kinds of ops of the small graph: what fails for the same reason is most often
 * alike in these. */
static char *sort_of(const char *failure, const char *graph_file)
{
    gb_text text = {0};
    gb_graph *graph = NULL;
    gb_cli_text_add(&text, "%s:", failure);
    if (gb_graph_load(&graph, graph_file, NULL, NULL) == GB_SUCCESS)
        for (size_t i = 0; i < gb_graph_get_op_num(graph); i++) {
            const gb_op *op;
            gb_op_kind kind = GB_OP_LAST;
            gb_graph_get_op(graph, i, &op);
            gb_op_get_kind(op, &kind);
            gb_cli_text_add(&text, " %s", gb_op_kind_name(kind));
        }
    gb_graph_destroy(graph);
    return text.data;
}

/* False: it was found before, or there are too many, and is only counted. Takes the sort over. */
static bool is_new(fuzzing *f, char *sort)
{
    bool known = f->result->findings == MOST_FINDINGS;
    for (size_t i = 0; i < f->result->findings && !known; i++)
        known = strcmp(f->sorts[i], sort) == 0;
    if (known) {
        free(sort);
        f->result->repeated++;
        return false;
    }
    f->sorts[f->result->findings++] = sort;
    return true;
}

/* A folder with the small graph, and a line. */
static gb_status tell(fuzzing *f, uint64_t number, const gb_settings *settings, const char *graph,
        const gb_reduced *reduced)
{
    gb_case_result result = {.status = CASE_UNTESTED_FAILED};
    gb_settings own;
    gb_case test = {.index = (size_t)number, .file = graph, .path = graph, .arguments = ""};
    gb_cli_plain_settings(settings, &own);
    allow_partitions(&own);
    gb_cli_set_option(&own, "repro-dir", f->fuzz->folder);
    gb_cli_set_option(&own, "load-tensors", reduced->tensors);
    test.repro = reduced->arguments;
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        test.choice[axis] = &own.axes[axis].items[0];
    gb_cli_trial(&f->isolation, &own, &test, &result);
    printf("finding in graph %" PRIu64 ": %s\ngraph-bench %s\n", number,
            f->sorts[f->result->findings - 1], reduced->arguments);
    gb_status status = GB_SUCCESS;
    /* It may fail only now and then, and behind a signal there is no result. */
    if (gb_cli_case_status_is_failure(result.status) && !gb_cli_interrupt_signal())
        status = gb_cli_repro_write(&f->folders, &own, &test, &result, gb_cli_messages());
    gb_cli_result_free(&result);
    gb_cli_settings_free(&own);
    return status;
}

/* Of a finding. The seed makes it another one than those of other runs in the folder. */
static char *small_path(const fuzzing *f, uint64_t number)
{
    gb_text path = {0};
    gb_cli_text_add(
            &path, "%s/graph-%" PRIu64 "-%" PRIu64 ".gbt", f->fuzz->folder, f->fuzz->seed, number);
    return path.data;
}

static void add_options(gb_text *text, const way *how)
{
    for (size_t i = 0; i < sizeof how->options / sizeof *how->options && how->options[i]; i++)
        gb_cli_text_add(text, " --%s", how->options[i]);
}

/* Of a graph that did not fail again: what it failed with, and how it ran. */
static void tell_single(
        fuzzing *f, uint64_t number, const way *how, const gb_case_result *result, const char *path)
{
    gb_text text = {0};
    gb_cli_text_add(&text, "%s", gb_cli_case_status_name(result->status));
    if (result->reason)
        gb_cli_text_add(&text, " (%s)", result->reason);
    if (is_new(f, sort_of(text.data, f->path.data))) {
        gb_cli_copy_file(f->path.data, path, SIZE_MAX);
        gb_cli_text_add(&text, ", once; --seed=%" PRIu64, number);
        if (how)
            add_options(&text, how);
        printf("finding in graph %" PRIu64 ", not reduced: %s; %s\n", number, path, text.data);
    }
    gb_cli_text_free(&text);
}

/* Of a graph that fails as a whole. */
static void tell_whole(fuzzing *f, uint64_t number, const char *path)
{
    char *why = gb_cli_copy(gb_cli_failure());
    if (is_new(f, sort_of("not reduced", f->path.data))) {
        gb_cli_copy_file(f->path.data, path, SIZE_MAX);
        printf("finding in graph %" PRIu64 ", not reduced: %s; %s\n", number, path, why);
    }
    free(why);
}

static void remove_small(const char *path, const gb_reduced *reduced)
{
    unlink(path);
    if (reduced->tensors)
        gb_cli_remove_folder(reduced->tensors);
}

/* Reduces a graph that fails with these settings. */
static gb_status examine(fuzzing *f, uint64_t number, const way *how, const gb_settings *settings,
        const gb_case_result *result)
{
    gb_errand errand = {.visit = false};
    gb_reduced reduced;
    const gb_alternative *choice[AXIS_COUNT];
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        choice[axis] = &settings->axes[axis].items[0];
    gb_cli_settings_copy(settings, choice, &errand.settings);
    for (size_t i = 0; i < 4; i++)
        errand.texts[i] = gb_cli_copy(f->path.data);
    errand.test = (gb_case){.file = errand.texts[0],
            .path = errand.texts[1],
            .repro = errand.texts[2],
            .arguments = errand.texts[3]};
    for (int axis = 0; axis < AXIS_COUNT; axis++)
        errand.test.choice[axis] = &errand.settings.axes[axis].items[0];
    char *small = small_path(f, number);
    gb_status status = gb_cli_reduce(&errand, small, &reduced);
    if (status == GB_SUCCESS && reduced.fails) {
        if (is_new(f, sort_of(reduced.failure, small)))
            status = tell(f, number, settings, small, &reduced);
        else
            remove_small(small, &reduced);
    } else if (status == GB_SUCCESS) {
        tell_single(f, number, how, result, small);
    } else {
        tell_whole(f, number, small);
        status = GB_SUCCESS;
    }
    fflush(stdout);
    free(small);
    gb_cli_reduced_free(&reduced);
    gb_cli_errand_free(&errand);
    return status;
}

/* Other bits under other circumstances: there is no verdict that could be reduced. */
static gb_status tell_difference(fuzzing *f, uint64_t number, const way *how)
{
    gb_text failure = {0};
    add_options(&failure, how);
    gb_cli_text_add(&failure, " makes other bits");
    char *small = small_path(f, number), *sort = sort_of(failure.data, f->path.data);
    if (is_new(f, sort)) {
        gb_cli_copy_file(f->path.data, small, SIZE_MAX);
        printf("finding in graph %" PRIu64 ":%s; %s --seed=%" PRIu64 "\n", number,
                f->sorts[f->result->findings - 1], small, number);
        fflush(stdout);
    }
    free(small);
    gb_cli_text_free(&failure);
    return GB_SUCCESS;
}

/* ------------------------------------------------------------ one graph */

/* In one way; the digest of what was computed, if `digest` was 0, else compared with it. */
static gb_status run_way(fuzzing *f, uint64_t number, const way *how, uint64_t *digest, bool *good)
{
    gb_settings settings;
    gb_case_result result = {.status = CASE_UNTESTED_FAILED};
    open_settings(f, how, number, &settings);
    gb_status status = GB_SUCCESS;
    perform(f, &settings, &result);
    *good = !is_finding(&result) || gb_cli_interrupt_signal(); /* the result may be none then */
    bool differs = how && how->same && result.executed && result.digest != *digest;
    bool fails = gb_cli_case_status_is_failure(result.status);
    if (!fails && !how)
        *digest = result.executed ? result.digest : 0;
    f->result->refused += fails && !is_finding(&result);
    if (!*good)
        status = examine(f, number, how, &settings, &result);
    else if (differs)
        status = tell_difference(f, number, how);
    gb_cli_result_free(&result);
    gb_cli_settings_free(&settings);
    return status;
}

static gb_status run_graph(fuzzing *f, uint64_t number)
{
    gb_chance chance = gb_cli_chance(f->fuzz->seed, number);
    gb_graph *graph = NULL;
    uint64_t digest = 0;
    bool good;
    if (gb_cli_chance_below(&chance, NEAR_MISS_EACH) == 0)
        CLI_TRY(gb_cli_near_miss(&f->misses, &chance, &graph));
    f->result->near_misses += graph != NULL;
    if (!graph)
        CLI_TRY(gb_cli_random_graph(
                &chance, f->fuzz->settings.engine_kind, f->fuzz->elements, number, &graph));
    gb_status status = gb_graph_save_text(graph, f->path.data);
    gb_graph_destroy(graph);
    if (status != GB_SUCCESS)
        return gb_cli_fail_library(status);
    f->result->graphs++;
    CLI_TRY(run_way(f, number, NULL, &digest, &good));
    const way *how = &ways[gb_cli_chance_below(&chance, WAYS)];
    if (good && (digest || !how->same))
        CLI_TRY(run_way(f, number, how, &digest, &good));
    if (good && f->fuzz->against)
        CLI_TRY(run_way(f, number, &f->against, &digest, &good));
    return GB_SUCCESS;
}

/* For what is found, which may go into a folder that is there. */
static gb_status make_folder(const char *path, bool *made)
{
    *made = mkdir(path, 0777) == 0;
    if (!*made && errno != EEXIST)
        return gb_cli_fail(GB_RUNTIME_ERROR, "%s cannot be made: %s", path, strerror(errno));
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode) || access(path, W_OK | X_OK) != 0)
        return gb_cli_fail(GB_RUNTIME_ERROR, "%s is no folder to write to", path);
    return GB_SUCCESS;
}

gb_status gb_cli_fuzz(const gb_fuzz *fuzz, gb_fuzz_result *result)
{
    int64_t begin = gb_cli_now_ns();
    bool made;
    *result = (gb_fuzz_result){.graphs = 0};
    fuzzing f = {.fuzz = fuzz, .result = result, .isolation = {.output = OUTPUT_QUIET}};
    gb_cli_trials_start();
    CLI_TRY(make_folder(fuzz->folder, &made));
    gb_status status = gb_cli_make_temporary(&f.folder);
    gb_cli_text_add(&f.path, "%s/graph.gbt", gb_cli_text_get(&f.folder));
    gb_cli_text_add(&f.other, "engine=%s", fuzz->against ? fuzz->against : "");
    f.against = (way){{f.other.data}, false};
    gb_cli_near_misses_find(&fuzz->settings, &f.misses);
    for (uint64_t number = 0; status == GB_SUCCESS && !gb_cli_interrupt_signal(); number++) {
        result->seconds = (double)(gb_cli_now_ns() - begin) * 1e-9;
        if ((fuzz->seconds > 0 && result->seconds >= fuzz->seconds) ||
                (fuzz->graphs && number == fuzz->graphs))
            break;
        status = run_graph(&f, number);
    }
    result->signal = gb_cli_interrupt_signal();
    gb_cli_remove_folder(gb_cli_text_get(&f.folder));
    if (made)
        rmdir(fuzz->folder); /* unless something was found */
    for (size_t i = 0; i < result->findings; i++)
        free(f.sorts[i]);
    gb_cli_text_free(&f.folder);
    gb_cli_text_free(&f.path);
    gb_cli_text_free(&f.other);
    gb_cli_near_misses_free(&f.misses);
    gb_cli_isolation_free(&f.isolation);
    gb_cli_repro_free(&f.folders);
    return status;
}
