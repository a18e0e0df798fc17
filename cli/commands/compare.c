/* graph-bench compare: what became slower, faster, wrong or right between two reports. */
#include "cli/commands/arguments.h"
#include "cli/commands/differences.h"
#include "cli/commands/files.h"
#include "cli/commands/history.h"
#include "cli/options/case_name.h"
#include "cli/options/message.h"
#include "cli/report/new_file.h"
#include "cli/report/record.h"
#include "cli/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_FORMAT, OPTION_OUTPUT, OPTION_ALL, OPTION_FLOOR, OPTION_HISTORY, OPTION_FORCE };

const gb_command_option gb_cli_compare_options[] = {
        [OPTION_FORMAT] = {"format", "text|markdown|json", "text", "text, markdown or json"},
        [OPTION_OUTPUT] = {"o", "FILE", NULL, "write to FILE and not to the standard output"},
        [OPTION_ALL] = {"all", NULL, NULL, "list partitions that are SAME, too"},
        [OPTION_FLOOR] = {"floor", "PERCENT", "5%", "smaller changes count as none"},
        [OPTION_HISTORY] = {"history", "FILE", NULL,
                "learn from this history how much each case scatters from run to run"},
        [OPTION_FORCE] = {"force", NULL, NULL,
                "compare reports of different machines, threads or instruction sets, too"},
        {0},
};

enum { EXIT_NOT_COMPARABLE = 3 };
static const double confidence = 0.99;
/* From this share of the compute probe on, the clock decides about the time. */
static const double arithmetic_share = 0.5;
/* A change of this is noise: in two pairs of runs of one program, a SoftMax of 3.5 us on two threads differed
 * by 0.25 and 0.43 us, and no probe told (the cause is not known). */
static const double noise_ns = 500;

typedef struct comparison {
    gb_results *base, *new;
    double floor;
    gb_history *history; /* NULL: none */
    gb_rates best;       /* that probes reached in either report */
    bool slow_machine;   /* too often for one of the comparisons */
    bool bad_machine;    /* of one of the reports: overloaded, for instance */
    gb_differences differences;
} comparison;

static json_object *member(json_object *object, const char *outer, const char *inner)
{
    json_object *held = outer ? json_object_object_get(object, outer) : object;
    return json_object_object_get(held, inner);
}

static const char *text_of(json_object *value)
{
    return value ? json_object_get_string(value) : "none";
}

/* Names what is different; false if anything is. */
static bool are_comparable(const comparison *c)
{
    static const struct {
        const char *outer, *inner, *what;
    } conditions[] = {
            {NULL, "engine", "engine, instruction set or number of threads"},
            {NULL, "omp_num_threads", "OMP_NUM_THREADS"},
            {NULL, "max_isa", "GB_MAX_ISA"},
            {NULL, "processors", "number of processors"},
            {"cpu", "model", "CPU"},
    };
    json_object *base = gb_cli_results_get(c->base, "environment");
    json_object *new = gb_cli_results_get(c->new, "environment");
    bool same = true;
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        json_object *a = member(base, conditions[i].outer, conditions[i].inner);
        json_object *b = member(new, conditions[i].outer, conditions[i].inner);
        if (json_object_equal(a, b))
            continue;
        gb_cli_print_warning(
                "compare", "another %s: %s, %s", conditions[i].what, text_of(a), text_of(b));
        same = false;
    }
    return same;
}

static json_object *partitions_of(json_object *record)
{
    return json_object_object_get(record, "partitions");
}

/* Did the doctor of graph-bench env find something that makes times worthless? The clock of that moment does not:
 * probes beside the visits tell. */
static bool is_bad_machine(const gb_results *results)
{
    json_object *checks =
            json_object_object_get(gb_cli_results_get(results, "environment"), "doctor");
    bool bad = false;
    for (size_t i = 0; i < gb_cli_list_count(checks); i++) {
        json_object *check = json_object_array_get_idx(checks, i);
        bad = bad || (strcmp(gb_cli_record_text(check, "grade"), "bad") == 0 &&
                             strcmp(gb_cli_record_text(check, "name"), "clock") != 0);
    }
    return bad;
}

/* The best probes that a report knows of. */
static gb_rates best_probe(const gb_results *results)
{
    gb_rates best = gb_cli_record_rates(gb_cli_results_get(results, "environment"));
    long cursor = 0;
    for (json_object *record; (record = gb_cli_results_next(results, &cursor));) {
        for (size_t r = 0; r < gb_cli_record_count_rows(record); r++) {
            int64_t part;
            json_object *visits =
                    json_object_object_get(gb_cli_record_row(record, r, &part), "visits");
            for (size_t v = 0; v < gb_cli_list_count(visits); v++)
                best = gb_cli_rates_max(
                        best, gb_cli_record_rates(json_object_array_get_idx(visits, v)));
        }
        json_object_put(record);
    }
    return best;
}

/* ------------------------------------------------------------ visits */

/* A median, and what probes beside it reached; 0: not known. */
enum { VISIT_NS, VISIT_FLOPS, VISIT_L1, VISIT_BYTES, VISIT_VALUES };
typedef struct visit {
    double values[VISIT_VALUES];
    unsigned state; /* of the machine */
} visit;

/* Of one partition. */
typedef struct visits {
    visit *list; /* owned */
    size_t n;
    double flops; /* of one execution */
} visits;

/* A time that its report set apart as slow counts, too, where the machine was in one state. A report without
 * visits has one median. */
static visits visits_of(json_object *partition, gb_rates best)
{
    json_object *list = json_object_object_get(partition, "visits");
    visits v = {.list = gb_cli_realloc(NULL, gb_cli_list_count(list) + 1, sizeof *v.list),
            .flops = json_object_get_double(json_object_object_get(partition, "flops"))};
    for (size_t i = 0; i < gb_cli_list_count(list); i++) {
        json_object *one = json_object_array_get_idx(list, i);
        gb_rates rates = gb_cli_record_rates(one);
        json_object *median = json_object_object_get(one, "median_ns");
        if (!median)
            median = json_object_object_get(one, "slow_median_ns");
        v.list[v.n] = (visit){.values = {[VISIT_NS] = json_object_get_double(median),
                                      [VISIT_FLOPS] = rates.flops,
                                      [VISIT_L1] = rates.l1,
                                      [VISIT_BYTES] = json_object_get_double(json_object_object_get(
                                              one, "probe_bytes_per_second"))},
                .state = gb_cli_rates_state(rates, best)};
        v.n += v.list[v.n].values[VISIT_NS] > 0;
    }
    double median = json_object_get_double(json_object_object_get(partition, "median_ns"));
    if (v.n == 0 && median > 0)
        v.list[v.n++] = (visit){.values = {[VISIT_NS] = median}};
    return v;
}

static size_t count_in_state(const visits *v, unsigned state)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += v->list[i].state == state;
    return n;
}

static void keep_state(visits *v, unsigned state)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        if (v->list[i].state == state)
            v->list[n++] = v->list[i];
    v->n = n;
}

/* Only times of one state of the machine can be compared: fast, or fast on cores that lie far from each other,
 * if both sides have enough such visits. (How much a neighbour takes of a core changes by the second.) The
 * others are left out. NULL, or why that is impossible. */
static const char *keep_shared_state(visits *a, visits *b)
{
    static const unsigned states[] = {0, STATE_FAR_CORES};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        size_t n_a = count_in_state(a, states[i]), n_b = count_in_state(b, states[i]);
        if (n_a < GB_STATS_FEWEST_VALUES || n_b < GB_STATS_FEWEST_VALUES)
            continue;
        keep_state(a, states[i]);
        keep_state(b, states[i]);
        return NULL;
    }
    bool always_fast = count_in_state(a, 0) == a->n && count_in_state(b, 0) == b->n;
    return always_fast ? NULL : "the machine was slow too often, or its cores lay elsewhere";
}

/* A value of all visits that know it; returns how many do. */
static size_t gather(const visits *v, int value, double *into)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        if (v->list[i].values[value] > 0)
            into[n++] = v->list[i].values[value];
    return n;
}

/* 0: no visit knows it. */
static double median_of(const visits *v, int value)
{
    double *values = gb_cli_realloc(NULL, v->n + 1, sizeof *values);
    size_t n = gather(v, value, values);
    double median = gb_stats_median(values, n);
    free(values);
    return median;
}

/* What the machine alone explains of a change. */
static double change_of_machine(const visits *a, const visits *b)
{
    double change = 0;
    for (int probe = VISIT_FLOPS; probe < VISIT_VALUES; probe++) {
        double before = median_of(a, probe), after = median_of(b, probe);
        if (before > 0 && after > 0)
            change = fmax(change, fabs(log(after / before)));
    }
    return change;
}

/* Is the time that of arithmetic, which follows the clock? */
static bool follows_clock(const visits *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->list[i].values[VISIT_FLOPS] <= 0)
            return false;
    return v->flops * 1e9 / median_of(v, VISIT_NS) >= arithmetic_share * median_of(v, VISIT_FLOPS);
}

/* The times as they would be if every probe had reached the rate. */
static void at_clock(visits *v, double rate)
{
    for (size_t i = 0; i < v->n; i++)
        v->list[i].values[VISIT_NS] *= v->list[i].values[VISIT_FLOPS] / rate;
}

static void take_effect(const visits *before, const visits *after, gb_effect *effect)
{
    double *a = gb_cli_realloc(NULL, before->n, sizeof *a);
    double *b = gb_cli_realloc(NULL, after->n, sizeof *b);
    gather(before, VISIT_NS, a);
    gather(after, VISIT_NS, b);
    gb_stats_unpaired(a, before->n, b, after->n, confidence, effect);
    free(a);
    free(b);
}

static bool has_flag(json_object *partition, const char *flag)
{
    json_object *flags = json_object_object_get(partition, "flags");
    for (size_t i = 0; i < gb_cli_list_count(flags); i++)
        if (strcmp(gb_cli_list_text(flags, i), flag) == 0)
            return true;
    return false;
}

/* How bad is what became of a case? One that was expected to end as it did is no worse than one that
 * ran. */
static int badness(json_object *record)
{
    const char *skipped = gb_cli_case_status_name(CASE_SKIPPED);
    if (json_object_object_get(record, "expected"))
        return 0;
    return gb_cli_record_is_failure(record)                             ? 2
           : strcmp(gb_cli_record_text(record, "status"), skipped) == 0 ? 1
                                                                        : 0;
}

/* Where the case itself did not run, that is told, and not what it lacks. */
static void tell_lost_time(comparison *c, json_object *record, int64_t index)
{
    const char *repro = gb_cli_record_text(record, "repro");
    if (badness(record) > 0 || json_object_object_get(record, "expected"))
        return;
    if (index == WHOLE_GRAPH)
        gb_cli_differences_note(&c->differences, true, repro, "end to end: no time any more");
    else
        gb_cli_differences_note(
                &c->differences, true, repro, "partition %" PRId64 ": no time any more", index);
}

static void compare_times(
        comparison *c, json_object *record, int64_t index, json_object *base, json_object *new)
{
    visits before = visits_of(base, c->best), after = visits_of(new, c->best);
    if (before.n > 0 && after.n == 0)
        tell_lost_time(c, record, index);
    if (before.n > 0 && after.n > 0) {
        const char *doubt = keep_shared_state(&before, &after);
        c->slow_machine = c->slow_machine || doubt;
        /* By what its own run saw. */
        if (!doubt && before.list[0].state == 0 &&
                (has_flag(base, "slow") || has_flag(new, "slow")))
            doubt = "the machine was slow all the time";
        const char *repro = gb_cli_record_text(record, "repro");
        gb_difference row = {.repro = gb_cli_copy(repro),
                .ops = gb_cli_copy(gb_cli_record_text(new, "ops")),
                .partition = index,
                .base_ns = median_of(&before, VISIT_NS),
                .new_ns = median_of(&after, VISIT_NS),
                .n_base = before.n,
                .n_new = after.n};
        if (follows_clock(&before) && follows_clock(&after)) {
            double rate = median_of(&before, VISIT_FLOPS);
            at_clock(&before, rate);
            at_clock(&after, rate);
            row.equal_clock = true;
        }
        take_effect(&before, &after, &row.effect);
        double learnt = gb_cli_history_noise(
                c->history, gb_cli_results_get(c->new, "environment"), repro, index);
        double machine = row.equal_clock ? 0 : change_of_machine(&before, &after);
        row.floor = c->floor;
        row.noise =
                fmax(fmax(row.effect.spread, 3 * learnt), fmax(machine, noise_ns / row.base_ns));
        row.why = c->bad_machine ? "graph-bench env found the machine bad" : doubt;
        gb_cli_differences_add(&c->differences, row);
        free(row.repro);
        free(row.ops);
    }
    free(before.list);
    free(after.list);
}

static void compare_margins(
        comparison *c, const char *repro, size_t index, json_object *base, json_object *new)
{
    json_object *before = json_object_object_get(base, "margin");
    json_object *after = json_object_object_get(new, "margin");
    double a = json_object_get_double(before), b = json_object_get_double(after);
    bool differ = before && after && fabs(b - a) > 0.1 && (b > 1.5 * a || a > 1.5 * b);
    if (differ)
        gb_cli_differences_note(
                &c->differences, false, repro, "partition %zu: margin %.3g -> %.3g", index, a, b);
}

/* The times of a graph from end to end: a single partition's are its own. NULL: there are none. */
static json_object *whole_of(json_object *record)
{
    json_object *parts = partitions_of(record),
                *whole = json_object_object_get(record, "end_to_end");
    bool single = !whole && gb_cli_list_count(parts) == 1;
    return single ? json_object_array_get_idx(parts, 0) : whole;
}

static bool have_same_partitions(json_object *base, json_object *new)
{
    size_t n = gb_cli_list_count(partitions_of(new));
    bool same = gb_cli_list_count(partitions_of(base)) == n;
    for (size_t i = 0; i < n && same; i++)
        same = strcmp(gb_cli_record_text(json_object_array_get_idx(partitions_of(base), i), "ops"),
                       gb_cli_record_text(
                               json_object_array_get_idx(partitions_of(new), i), "ops")) == 0;
    return same;
}

/* Of a graph that was divided otherwise, only the whole can be compared. */
static void compare_divided(comparison *c, json_object *base, json_object *new)
{
    size_t n_base = gb_cli_list_count(partitions_of(base)),
           n_new = gb_cli_list_count(partitions_of(new));
    if (n_base == 0 || n_new == 0)
        return; /* a case that did not run has none */
    const char *repro = gb_cli_record_text(new, "repro");
    if (n_base != n_new)
        gb_cli_differences_note(
                &c->differences, n_new > n_base, repro, "%zu -> %zu partitions", n_base, n_new);
    else
        gb_cli_differences_note(&c->differences, false, repro, "partitions of other ops");
    if (whole_of(base) && (whole_of(new) || n_base > 1))
        compare_times(c, new, WHOLE_GRAPH, whole_of(base), whole_of(new));
}

static const char *expectation(json_object *record)
{
    return json_object_object_get(record, "expected") ? " (expected)" : "";
}

static void compare_verdicts(comparison *c, json_object *base, json_object *new)
{
    const char *before = gb_cli_record_text(base, "status");
    const char *after = gb_cli_record_text(new, "status");
    if (strcmp(before, after) != 0 || strcmp(expectation(base), expectation(new)) != 0)
        gb_cli_differences_note(&c->differences, badness(new) > badness(base),
                gb_cli_record_text(new, "repro"), "%s%s -> %s%s", before, expectation(base), after,
                expectation(new));
}

static void compare_cases(comparison *c, json_object *base, json_object *new)
{
    const char *repro = gb_cli_record_text(new, "repro");
    compare_verdicts(c, base, new);
    json_object *before = json_object_object_get(base, "digest");
    json_object *after = json_object_object_get(new, "digest");
    if (before && after && !json_object_equal(before, after))
        gb_cli_differences_note(&c->differences, false, repro, "results have other bits");
    if (!have_same_partitions(base, new)) {
        compare_divided(c, base, new);
        return;
    }
    size_t n = gb_cli_list_count(partitions_of(new));
    for (size_t i = 0; i < n; i++) {
        json_object *base_part = json_object_array_get_idx(partitions_of(base), i);
        json_object *new_part = json_object_array_get_idx(partitions_of(new), i);
        compare_times(c, new, (int64_t)i, base_part, new_part);
        compare_margins(c, repro, i, base_part, new_part);
    }
    json_object *base_whole = json_object_object_get(base, "end_to_end");
    json_object *new_whole = json_object_object_get(new, "end_to_end");
    if (base_whole && (new_whole || n > 1))
        compare_times(c, new, WHOLE_GRAPH, base_whole, new_whole);
}

/* What is no case's. That cases are missing where a run was cut short is told for each of them. */
static void compare_runs(comparison *c)
{
    int64_t before = gb_cli_count_option_errors(c->base);
    int64_t after = gb_cli_count_option_errors(c->new);
    json_object *base_end = gb_cli_results_get(c->base, "ended");
    json_object *new_end = gb_cli_results_get(c->new, "ended");
    if (before != after)
        gb_cli_differences_note(&c->differences, after > before, c->differences.new,
                "%" PRId64 " -> %" PRId64 " wrong options or unreadable batch files", before,
                after);
    if (!json_object_equal(base_end, new_end))
        gb_cli_differences_note(&c->differences, false, c->differences.new,
                "the run ended: %s -> %s", text_of(base_end), text_of(new_end));
}

/* A case that is there several times is told apart by its turn. */
static char *key_of(json_object *counts, json_object *record)
{
    char *name = gb_cli_case_name(gb_cli_record_text(record, "repro"));
    int turn = json_object_get_int(json_object_object_get(counts, name)) + 1;
    gb_text key = {0};
    gb_cli_text_add(&key, "%d %s", turn, name);
    json_object_object_add(counts, name, json_object_new_int(turn));
    free(name);
    return key.data;
}

static void compare_reports(comparison *c)
{
    json_object *cases = json_object_new_object(), *counts = json_object_new_object();
    long cursor = 0;
    json_object *record;
    c->best = gb_cli_rates_max(best_probe(c->base), best_probe(c->new));
    c->bad_machine = is_bad_machine(c->base) || is_bad_machine(c->new);
    for (; (record = gb_cli_results_next(c->base, &cursor));) {
        char *key = key_of(counts, record);
        json_object_object_add(cases, key, record);
        free(key);
    }
    json_object_put(counts);
    counts = json_object_new_object();
    cursor = 0;
    for (; (record = gb_cli_results_next(c->new, &cursor)); json_object_put(record)) {
        char *key = key_of(counts, record);
        json_object *base;
        if (json_object_object_get_ex(cases, key, &base)) {
            compare_cases(c, base, record);
            json_object_object_del(cases, key);
        } else {
            gb_cli_differences_note(&c->differences, gb_cli_record_is_failure(record),
                    gb_cli_record_text(record, "repro"), "new case: %s%s",
                    gb_cli_record_text(record, "status"), expectation(record));
        }
        free(key);
    }
    /* That a run was as short as its --budget says nothing of the cases behind. */
    bool cut = strcmp(text_of(gb_cli_results_get(c->new, "ended")), "budget") == 0;
    json_object_object_foreach(cases, key, missing)
    {
        (void)key;
        gb_cli_differences_note(&c->differences, !cut, gb_cli_record_text(missing, "repro"),
                cut ? "case was not reached" : "case is gone");
    }
    json_object_put(cases);
    json_object_put(counts);
}

bool gb_cli_differences_can_finish(const char *path)
{
    if (!path || gb_cli_new_file_can_be_made(path))
        return true;
    gb_cli_print_error(NULL, "%s: cannot be written: %s", path, strerror(errno));
    return false;
}

int gb_cli_differences_finish(
        const gb_differences *differences, const char *format, bool all, const char *path)
{
    gb_new_file file;
    bool good = gb_cli_new_file_open(path ? path : "-", &file);
    if (good) {
        gb_cli_differences_write(differences, format, all, file.stream);
        good = gb_cli_new_file_close(&file, true);
    }
    if (!good) {
        gb_cli_print_error(
                NULL, "%s: cannot be written: %s", path ? path : "output", strerror(errno));
        return EXIT_UNWRITTEN;
    }
    return gb_cli_differences_are_worse(differences) ? EXIT_CASE_FAILED : EXIT_GOOD;
}

/* Of a case that could not be read, nothing was told. */
static bool all_were_read(const comparison *c)
{
    bool good = gb_cli_results_check(c->base) == GB_SUCCESS &&
                gb_cli_results_check(c->new) == GB_SUCCESS;
    if (!good)
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
    return good;
}

static int compare(const gb_arguments *arguments)
{
    comparison c = {0};
    const char *const *values = arguments->values;
    if (!gb_cli_argument_percent("floor", values[OPTION_FLOOR], &c.floor))
        return EXIT_USAGE;
    int status = EXIT_USAGE;
    if (gb_cli_results_read(arguments->words[0], &c.base) != GB_SUCCESS ||
            gb_cli_results_read(arguments->words[1], &c.new) != GB_SUCCESS ||
            (values[OPTION_HISTORY] &&
                    gb_cli_history_open(values[OPTION_HISTORY], false, &c.history) != GB_SUCCESS)) {
        gb_cli_print_error(NULL, "%s", gb_cli_failure());
    } else if (!are_comparable(&c) && !values[OPTION_FORCE]) {
        gb_cli_print_error("compare", "the reports are not comparable; --force compares them");
        status = EXIT_NOT_COMPARABLE;
    } else {
        c.differences.base = arguments->words[0];
        c.differences.new = arguments->words[1];
        compare_runs(&c);
        compare_reports(&c);
        if (c.slow_machine)
            gb_cli_print_warning("compare",
                    "the machine was slow too often for some of the comparisons: measure with a "
                    "larger --max-ms-per-prb, which waits longer");
        if (all_were_read(&c))
            status = gb_cli_differences_finish(&c.differences, values[OPTION_FORMAT],
                    values[OPTION_ALL] != NULL, values[OPTION_OUTPUT]);
        if (status == EXIT_UNWRITTEN) /* as EXIT_NOT_COMPARABLE is */
            status = EXIT_USAGE;
    }
    gb_cli_differences_free(&c.differences);
    gb_cli_history_close(c.history);
    gb_cli_results_free(c.base);
    gb_cli_results_free(c.new);
    return status;
}

int gb_cli_command_compare(const gb_command *command, int argc, char **argv)
{
    gb_arguments arguments;
    int status = EXIT_USAGE;
    if (gb_cli_arguments_read(command, argc, argv, false, &arguments)) {
        if (arguments.n_words != 2)
            gb_cli_print_error("compare", "two reports are needed: %s", command->arguments);
        else if (!gb_cli_differences_format_is_known(arguments.values[OPTION_FORMAT]))
            gb_cli_print_error("compare", "--format: text, markdown or json");
        else if (gb_cli_differences_can_finish(arguments.values[OPTION_OUTPUT]))
            status = compare(&arguments);
    }
    gb_cli_arguments_free(&arguments);
    return status;
}
