/* graph-bench merge: one report of many. */
#include "cli/commands/files.h"
#include "cli/options/message.h"
#include "cli/report/report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A report that is read along with the others, in the order of its cases. */
typedef struct merged_report {
    const char *path;
    gb_results *results;
    long cursor;
    json_object *next; /* owned; NULL: no further case */
} merged_report;

typedef struct merge {
    merged_report *reports; /* owned */
    size_t n;
    gb_results *all;
    json_object *seen; /* "STATUS DIGEST" of each case, by reproducer line */
    size_t counts[CASE_STATUS_COUNT];
    size_t twice, contradictions, incomplete;
} merge;

static json_object *member(json_object *object, const char *outer, const char *inner)
{
    return json_object_object_get(json_object_object_get(object, outer), inner);
}

static void advance(merged_report *report)
{
    json_object_put(report->next);
    report->next = gb_cli_results_next(report->results, &report->cursor);
}

/* The report whose next case has the least number; NULL: all are read. */
static merged_report *first_of(merge *m)
{
    merged_report *first = NULL;
    int64_t least = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!m->reports[i].next)
            continue;
        int64_t index = json_object_get_int64(json_object_object_get(m->reports[i].next, "index"));
        if (!first || index < least) {
            first = &m->reports[i];
            least = index;
        }
    }
    return first;
}

/* A case that was there before is left out; it is a contradiction if it ended in another way. */
static void take_case(merge *m, const merged_report *report)
{
    const char *repro = gb_cli_record_text(report->next, "repro");
    gb_text outcome = {0};
    gb_cli_text_add(&outcome, "%s %s", gb_cli_record_text(report->next, "status"),
            gb_cli_record_text(report->next, "digest"));
    json_object *before = json_object_object_get(m->seen, repro);
    if (before) {
        m->twice++;
        if (strcmp(json_object_get_string(before), outcome.data) != 0) {
            m->contradictions++;
            gb_cli_print_warning(report->path, "%s: ended as \"%s\" here, as \"%s\" before", repro,
                    outcome.data, json_object_get_string(before));
        }
    } else {
        json_object_object_add(m->seen, repro, json_object_new_string(outcome.data));
        gb_case_status status;
        if (!json_object_object_get(report->next, "expected") &&
                gb_cli_case_status_find(gb_cli_record_text(report->next, "status"), &status))
            m->counts[status]++;
        gb_cli_results_add(m->all, json_object_get(report->next));
    }
    gb_cli_text_free(&outcome);
}

/* Reports of different programs or machines can be joined, but that is told. */
static void compare_origins(const merge *m)
{
    static const struct {
        const char *outer, *inner, *what;
    } origins[] = {
            {"build", "commit", "commit"},
            {"build", "compiler", "compiler"},
            {"build", "flags", "compiler flags"},
            {"cpu", "model", "CPU"},
    };
    json_object *first = gb_cli_results_get(m->reports[0].results, "environment");
    for (size_t i = 1; i < m->n; i++) {
        json_object *other = gb_cli_results_get(m->reports[i].results, "environment");
        for (size_t o = 0; o < sizeof origins / sizeof origins[0]; o++) {
            json_object *a = member(first, origins[o].outer, origins[o].inner);
            json_object *b = member(other, origins[o].outer, origins[o].inner);
            if (!json_object_equal(a, b))
                gb_cli_print_warning(m->reports[i].path, "another %s than in %s: %s, %s",
                        origins[o].what, m->reports[0].path, b ? json_object_get_string(b) : "none",
                        a ? json_object_get_string(a) : "none");
        }
    }
}

/* Counts shards that are missing, and reports that end early. */
static void find_missing(merge *m)
{
    int64_t count = 0;
    for (size_t i = 0; i < m->n; i++) {
        const gb_results *results = m->reports[i].results;
        json_object *ended = gb_cli_results_get(results, "ended");
        const char *how = ended ? json_object_get_string(ended) : "unknown";
        if (strcmp(how, "complete") != 0) {
            m->incomplete++;
            gb_cli_print_warning(m->reports[i].path, "the run did not come to its end: %s", how);
        }
        json_object *shard = gb_cli_results_get(results, "shard");
        int64_t of = json_object_get_int64(json_object_object_get(shard, "count"));
        count = of > count ? of : count;
    }
    for (int64_t number = 1; number <= count; number++) {
        bool found = false;
        for (size_t i = 0; i < m->n && !found; i++) {
            json_object *shard = gb_cli_results_get(m->reports[i].results, "shard");
            found = json_object_get_int64(json_object_object_get(shard, "number")) == number &&
                    json_object_get_int64(json_object_object_get(shard, "count")) == count;
        }
        if (found)
            continue;
        m->incomplete++;
        gb_cli_print_warning(
                NULL, "shard %lld of %lld is missing", (long long)number, (long long)count);
    }
}

static void set_members(merge *m)
{
    json_object *summary = json_object_new_object();
    for (int status = 0; status < CASE_STATUS_COUNT; status++)
        json_object_object_add(summary, gb_cli_case_status_name((gb_case_status)status),
                json_object_new_uint64(m->counts[status]));
    int64_t option_errors = 0;
    json_object *sources = json_object_new_array();
    for (size_t i = 0; i < m->n; i++) {
        const gb_results *results = m->reports[i].results;
        option_errors += json_object_get_int64(
                json_object_object_get(gb_cli_results_get(results, "summary"), "option_errors"));
        json_object_array_add(sources, json_object_get(gb_cli_results_get(results, "environment")));
    }
    json_object_object_add(summary, "option_errors", json_object_new_int64(option_errors));
    gb_cli_results_set(
            m->all, "ended", json_object_new_string(m->incomplete ? "partial" : "complete"));
    gb_cli_results_set(m->all, "summary", summary);
    gb_cli_results_set(m->all, "environment",
            json_object_get(gb_cli_results_get(m->reports[0].results, "environment")));
    gb_cli_results_set(m->all, "merged", sources);
}

static int merge_files(merge *m, const gb_command_files *files)
{
    m->reports = gb_cli_realloc(NULL, files->n_inputs, sizeof *m->reports);
    for (; m->n < files->n_inputs; m->n++) {
        merged_report *report = &m->reports[m->n];
        *report = (merged_report){.path = files->inputs[m->n]};
        if (gb_cli_results_read(report->path, &report->results) != GB_SUCCESS) {
            gb_cli_print_error(NULL, "%s", gb_cli_failure());
            return EXIT_USAGE;
        }
        advance(report);
    }
    m->all = gb_cli_results_create();
    if (!m->all) {
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
        return EXIT_UNWRITTEN;
    }
    compare_origins(m);
    find_missing(m);
    for (merged_report *report; (report = first_of(m)); advance(report))
        take_case(m, report);
    set_members(m);
    int status = gb_cli_command_write(m->all, files->output);
    fprintf(stderr,
            "merged %zu reports: %zu cases, %zu of them twice or more, %zu contradictions\n", m->n,
            gb_cli_results_count(m->all), m->twice, m->contradictions);
    if (status == EXIT_GOOD && (m->incomplete || m->contradictions))
        status = EXIT_CASE_FAILED;
    return status;
}

int gb_cli_command_merge(const gb_command *command, int argc, char **argv)
{
    gb_command_files files;
    int status = EXIT_USAGE;
    if (gb_cli_command_files(command, argc, argv, 1, INT_MAX, &files)) {
        merge m = {.seen = json_object_new_object()};
        status = merge_files(&m, &files);
        for (size_t i = 0; i < m.n; i++) {
            gb_cli_results_free(m.reports[i].results);
            json_object_put(m.reports[i].next);
        }
        free(m.reports);
        gb_cli_results_free(m.all);
        json_object_put(m.seen);
    }
    free(files.inputs);
    return status;
}
