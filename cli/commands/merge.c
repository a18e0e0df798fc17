/* graph-bench merge: one report of many. Reports are read one after the other, and of each case only
 * a few numbers stay in memory: a million of cases fit. */
#include "cli/commands/arguments.h"
#include "cli/commands/files.h"
#include "cli/options/case_name.h"
#include "cli/options/message.h"
#include "cli/report/origin.h"
#include "cli/report/record.h"
#include "cli/report/report.h"

#include <stdlib.h>
#include <string.h>

enum { OPTION_OUTPUT, OPTION_CHECK, OPTION_LOST };

const gb_command_option gb_cli_merge_options[] = {
        [OPTION_OUTPUT] = {"o", "FILE", NULL, "the result; - is the standard output, as JSON"},
        [OPTION_CHECK] = {"check", NULL, NULL, "the exit status is 1 when a case failed, too"},
        [OPTION_LOST] = {"lost", "N", NULL,
                "write nothing; print which of the shards 1 to N have no whole report, as 2,5-7"},
        {0},
};

enum { SHARD_LIMIT = 1000000 };

typedef struct merged_case {
    int64_t index;          /* in its run */
    uint64_t name, outcome; /* hashes of the name, and of status and digest */
    long place;
    uint32_t rank;   /* in the order of reports, later in that of the result */
    uint32_t report; /* its number */
    uint32_t nth;    /* case of this name in its report */
    int status;      /* CASE_STATUS_COUNT: unknown, or expected */
    bool failed;
} merged_case;

typedef struct merged_report {
    const char *path;
    json_object *members; /* owned */
} merged_report;

typedef struct merge {
    merged_report *reports; /* owned */
    size_t n;
    gb_results *all;
    merged_case *cases; /* owned */
    size_t n_cases, capacity;
    size_t counts[CASE_STATUS_COUNT];
    size_t failed, twice, contradictions, incomplete;
} merge;

static json_object *member(json_object *object, const char *outer, const char *inner)
{
    return json_object_object_get(json_object_object_get(object, outer), inner);
}

static uint64_t hash_outcome(json_object *record)
{
    uint64_t hash = gb_cli_hash_text(GB_TEXT_HASH, gb_cli_record_text(record, "status"));
    return gb_cli_hash_text(hash, gb_cli_record_text(record, "digest"));
}

static void take_case(void *data, json_object *record, long place)
{
    merge *m = data;
    gb_case_status status;
    bool counts = !json_object_object_get(record, "expected") &&
                  gb_cli_case_status_find(gb_cli_record_text(record, "status"), &status);
    if (m->n_cases == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 1024;
        m->cases = gb_cli_realloc(m->cases, m->capacity, sizeof *m->cases);
    }
    char *name = gb_cli_case_name(gb_cli_record_text(record, "repro"));
    m->cases[m->n_cases] = (merged_case){
            .index = json_object_get_int64(json_object_object_get(record, "index")),
            .name = gb_cli_hash_text(GB_TEXT_HASH, name),
            .outcome = hash_outcome(record),
            .place = place,
            .rank = (uint32_t)m->n_cases,
            .report = (uint32_t)m->n,
            .status = counts ? (int)status : CASE_STATUS_COUNT,
            .failed = gb_cli_record_is_failure(record),
    };
    m->n_cases++;
    free(name);
}

/* ------------------------------------------------------------ what is there twice */

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int by_index(const void *a, const void *b)
{
    const merged_case *first = a, *second = b;
    int order = COMPARE(first->index, second->index);
    return order ? order : COMPARE(first->rank, second->rank);
}

static int by_rank(const void *a, const void *b)
{
    const merged_case *first = a, *second = b;
    return COMPARE(first->rank, second->rank);
}

static int by_name_in_report(const void *a, const void *b)
{
    const merged_case *first = a, *second = b;
    int order = COMPARE(first->name, second->name);
    order = order ? order : COMPARE(first->report, second->report);
    return order ? order : COMPARE(first->rank, second->rank);
}

static int by_name(const void *a, const void *b)
{
    const merged_case *first = a, *second = b;
    int order = COMPARE(first->name, second->name);
    order = order ? order : COMPARE(first->nth, second->nth);
    return order ? order : COMPARE(first->rank, second->rank);
}

/* A batch may name a case twice: the second in one report is that of another one, and no repetition. */
static void number_in_reports(merge *m)
{
    qsort(m->cases, m->n_cases, sizeof *m->cases, by_name_in_report);
    for (size_t i = 1; i < m->n_cases; i++)
        if (m->cases[i].name == m->cases[i - 1].name &&
                m->cases[i].report == m->cases[i - 1].report)
            m->cases[i].nth = m->cases[i - 1].nth + 1;
}

/* Is the later case the same as the earlier one? It is a contradiction if it ended in another way. */
static bool is_again(merge *m, const merged_case *earlier, const merged_case *later)
{
    json_object *before = gb_cli_results_at(m->all, earlier->place);
    json_object *now = gb_cli_results_at(m->all, later->place);
    const char *repro = gb_cli_record_text(now, "repro");
    bool again = gb_cli_case_names_are_equal(gb_cli_record_text(before, "repro"), repro);
    if (again && earlier->outcome != later->outcome) {
        m->contradictions++;
        gb_cli_print_warning(m->reports[later->report].path,
                "%s: ended as \"%s %s\" here, as \"%s %s\" before", repro,
                gb_cli_record_text(now, "status"), gb_cli_record_text(now, "digest"),
                gb_cli_record_text(before, "status"), gb_cli_record_text(before, "digest"));
    }
    json_object_put(before);
    json_object_put(now);
    return again;
}

/* Of cases that several reports have, the first stays. */
static void drop_repeated(merge *m)
{
    number_in_reports(m);
    qsort(m->cases, m->n_cases, sizeof *m->cases, by_name);
    size_t kept = 0;
    for (size_t i = 0; i < m->n_cases; i++) {
        bool again = false;
        for (size_t k = kept; !again && k > 0 && m->cases[k - 1].name == m->cases[i].name &&
                              m->cases[k - 1].nth == m->cases[i].nth;
                k--)
            again = is_again(m, &m->cases[k - 1], &m->cases[i]);
        m->twice += again;
        if (!again)
            m->cases[kept++] = m->cases[i];
    }
    m->n_cases = kept;
}

/* In the order of their numbers, those of one number in the order of the reports. */
static void arrange_cases(merge *m)
{
    qsort(m->cases, m->n_cases, sizeof *m->cases, by_index);
    for (size_t i = 0; i < m->n_cases; i++)
        m->cases[i].rank = (uint32_t)i;
    drop_repeated(m);
    qsort(m->cases, m->n_cases, sizeof *m->cases, by_rank);
    long *order = gb_cli_realloc(NULL, m->n_cases, sizeof *order);
    for (size_t i = 0; i < m->n_cases; i++) {
        order[i] = m->cases[i].place;
        if (m->cases[i].status < CASE_STATUS_COUNT)
            m->counts[m->cases[i].status]++;
        m->failed += m->cases[i].failed;
    }
    gb_cli_results_arrange(m->all, order, m->n_cases);
}

/* ------------------------------------------------------------ what does not fit */

/* Reports of different programs or machines can be joined, but that is told. */
static void compare_origins(const merge *m)
{
    json_object *first = json_object_object_get(m->reports[0].members, "environment");
    for (size_t i = 1; i < m->n; i++) {
        gb_text differences = {0};
        gb_cli_origin_compare(
                json_object_object_get(m->reports[i].members, "environment"), first, &differences);
        if (differences.length)
            gb_cli_print_warning(
                    m->reports[i].path, "%s than in %s", differences.data, m->reports[0].path);
        gb_cli_text_free(&differences);
    }
}

static const char *end_of(const merged_report *report)
{
    json_object *ended = json_object_object_get(report->members, "ended");
    return ended ? json_object_get_string(ended) : "unknown";
}

/* The number of the report's shard, from 1 on; 0: it is none of `count`. */
static int64_t shard_of(const merged_report *report, int64_t count)
{
    int64_t number = json_object_get_int64(member(report->members, "shard", "number"));
    bool fits = json_object_get_int64(member(report->members, "shard", "count")) == count;
    return fits && number >= 1 && number <= count ? number : 0;
}

/* What the cases were divided by: 0, their hash. */
static int64_t division_of(const merged_report *report)
{
    return json_object_get_int64(member(report->members, "shard", "division"));
}

/* A hash of the cases of the run that the report is a shard of; 0: it is none, did not see all of them,
 * or is an older one. */
static int64_t cases_of(const merged_report *report)
{
    bool saw_all = strcmp(end_of(report), "complete") == 0;
    return saw_all ? json_object_get_int64(member(report->members, "shard", "cases")) : 0;
}

/* Shards of different runs do not add up to one. */
static void find_others(merge *m)
{
    const merged_report *first = NULL;
    for (size_t i = 0; i < m->n; i++) {
        const merged_report *report = &m->reports[i];
        if (!cases_of(report))
            continue;
        if (!first)
            first = report;
        if (cases_of(report) == cases_of(first))
            continue;
        m->incomplete++;
        gb_cli_print_warning(
                report->path, "a shard of other cases than %s: cases may be missing", first->path);
    }
}

/* Counts shards that are missing, and reports that end early. */
static void find_missing(merge *m)
{
    int64_t count = 0;
    for (size_t i = 0; i < m->n; i++) {
        const char *how = end_of(&m->reports[i]);
        if (strcmp(how, "complete") != 0) {
            m->incomplete++;
            gb_cli_print_warning(m->reports[i].path, "the run did not come to its end: %s", how);
        }
        int64_t of = json_object_get_int64(member(m->reports[i].members, "shard", "count"));
        count = of > count ? of : count;
        if (division_of(&m->reports[i]) != division_of(&m->reports[0])) {
            m->incomplete++;
            gb_cli_print_warning(m->reports[i].path,
                    "divided otherwise than %s (--shard-costs): cases may be missing",
                    m->reports[0].path);
        }
    }
    count = count < SHARD_LIMIT ? count : SHARD_LIMIT;
    bool *found = gb_cli_realloc(NULL, (size_t)count + 1, sizeof *found);
    memset(found, 0, (size_t)count + 1);
    for (size_t i = 0; i < m->n; i++)
        found[shard_of(&m->reports[i], count)] = true;
    for (int64_t number = 1; number <= count; number++) {
        if (found[number])
            continue;
        m->incomplete++;
        gb_cli_print_warning(
                NULL, "shard %lld of %lld is missing", (long long)number, (long long)count);
    }
    free(found);
}

/* ------------------------------------------------------------ the result */

/* The environment of the first report that ran a case, or of the first one. */
static json_object *environment_of(const merge *m)
{
    size_t i = 0;
    while (i < m->n && !member(m->reports[i].members, "environment", "engine"))
        i++;
    return json_object_object_get(m->reports[i < m->n ? i : 0].members, "environment");
}

/* Joins what --strict refused in each of them. Returns how much that is. */
static size_t set_strict(merge *m)
{
    json_object *all = json_object_new_array();
    bool any = false;
    for (size_t i = 0; i < m->n; i++) {
        json_object *list;
        any = json_object_object_get_ex(m->reports[i].members, "strict", &list) || any;
        for (size_t k = 0; k < gb_cli_list_count(list); k++)
            json_object_array_add(all, json_object_get(json_object_array_get_idx(list, k)));
    }
    size_t n = json_object_array_length(all);
    if (any)
        gb_cli_results_set(m->all, "strict", json_object_get(all));
    json_object_put(all);
    return n;
}

static int64_t set_members(merge *m)
{
    json_object *summary = json_object_new_object();
    for (int status = 0; status < CASE_STATUS_COUNT; status++)
        json_object_object_add(summary, gb_cli_case_status_name((gb_case_status)status),
                json_object_new_uint64(m->counts[status]));
    int64_t option_errors = 0, of_shards = 0;
    json_object *sources = json_object_new_array();
    for (size_t i = 0; i < m->n; i++) {
        json_object *members = m->reports[i].members;
        int64_t own = json_object_get_int64(member(members, "summary", "option_errors"));
        if (json_object_get_int64(member(members, "shard", "count")) > 1)
            of_shards = own > of_shards ? own : of_shards; /* each has read all batch files */
        else
            option_errors += own;
        json_object_array_add(
                sources, json_object_get(json_object_object_get(members, "environment")));
    }
    option_errors += of_shards;
    json_object_object_add(summary, "option_errors", json_object_new_int64(option_errors));
    gb_cli_results_set(
            m->all, "ended", json_object_new_string(m->incomplete ? "partial" : "complete"));
    gb_cli_results_set(m->all, "summary", summary);
    gb_cli_results_set(m->all, "environment", json_object_get(environment_of(m)));
    gb_cli_results_set(m->all, "merged", sources);
    return option_errors;
}

static int merge_files(merge *m, const gb_arguments *arguments)
{
    m->all = gb_cli_results_create();
    m->reports = gb_cli_realloc(NULL, arguments->n_words, sizeof *m->reports);
    for (; m->n < arguments->n_words; m->n++) {
        merged_report *report = &m->reports[m->n];
        *report = (merged_report){.path = arguments->words[m->n]};
        gb_status status =
                gb_cli_results_append(m->all, report->path, &report->members, take_case, m);
        if (status != GB_SUCCESS) {
            gb_cli_print_error(NULL, "%s", gb_cli_failure());
            return gb_cli_command_failure(status);
        }
    }
    compare_origins(m);
    find_missing(m);
    find_others(m);
    arrange_cases(m);
    bool failed = set_members(m) > 0 || m->failed > 0;
    failed = set_strict(m) > 0 || failed;
    int status = gb_cli_command_write(m->all, arguments->values[OPTION_OUTPUT]);
    fprintf(stderr,
            "merged %zu reports: %zu cases, %zu of them twice or more, %zu contradictions\n", m->n,
            gb_cli_results_count(m->all), m->twice, m->contradictions);
    bool bad = m->incomplete || m->contradictions || (failed && arguments->values[OPTION_CHECK]);
    return status == EXIT_GOOD && bad ? EXIT_CASE_FAILED : status;
}

/* ------------------------------------------------------------ --lost */

/* 2,5-7 */
static void print_missing(const bool *found, int64_t count)
{
    const char *comma = "";
    for (int64_t first = 1; first <= count; first++) {
        int64_t last = first;
        if (found[first])
            continue;
        while (last < count && !found[last + 1])
            last++;
        printf(last > first ? "%s%lld-%lld" : "%s%lld", comma, (long long)first, (long long)last);
        comma = ",";
        first = last;
    }
    putchar('\n');
}

/* A report that is missing, cut short or cannot be read is no reason to stop: its shard is lost. Where
 * there is no room to read one, nothing is known of it. */
static int print_lost(const gb_arguments *arguments)
{
    double number;
    if (!gb_cli_argument_number("lost", arguments->values[OPTION_LOST], &number))
        return EXIT_USAGE;
    int64_t count = (int64_t)number;
    if ((double)count != number || count > SHARD_LIMIT) {
        gb_cli_print_error("merge", "--lost: at most %d shards, a whole number", SHARD_LIMIT);
        return EXIT_USAGE;
    }
    bool *found = gb_cli_realloc(NULL, (size_t)count + 1, sizeof *found);
    bool no_room = false;
    memset(found, 0, (size_t)count + 1);
    for (size_t i = 0; i < arguments->n_words; i++) {
        gb_results *cases = gb_cli_results_create();
        merged_report report = {.path = arguments->words[i]};
        gb_status status = gb_cli_results_append(cases, report.path, &report.members, NULL, NULL);
        no_room = no_room || status == GB_RUNTIME_ERROR;
        if (status != GB_SUCCESS)
            gb_cli_print_warning(NULL, "%s", gb_cli_failure());
        else if (strcmp(end_of(&report), "complete") == 0)
            found[shard_of(&report, count)] = true;
        json_object_put(report.members);
        gb_cli_results_free(cases);
    }
    if (!no_room)
        print_missing(found, count);
    free(found);
    return !no_room && fflush(stdout) == 0 ? EXIT_GOOD : EXIT_UNWRITTEN;
}

static int run_merge(const gb_arguments *arguments)
{
    if (arguments->values[OPTION_LOST])
        return print_lost(arguments);
    if (!arguments->values[OPTION_OUTPUT]) {
        gb_cli_print_error("merge", "-o FILE is missing");
        return EXIT_USAGE;
    }
    if (arguments->n_words == 0) {
        gb_cli_print_error("merge", "at least one report is needed");
        return EXIT_USAGE;
    }
    merge m = {0};
    int status = merge_files(&m, arguments);
    for (size_t i = 0; i < m.n; i++)
        json_object_put(m.reports[i].members);
    free(m.reports);
    free(m.cases);
    gb_cli_results_free(m.all);
    return status;
}

int gb_cli_command_merge(const gb_command *command, int argc, char **argv)
{
    gb_arguments arguments;
    int status = EXIT_USAGE;
    if (gb_cli_arguments_read(command, argc, argv, false, &arguments))
        status = run_merge(&arguments);
    gb_cli_arguments_free(&arguments);
    return status;
}
