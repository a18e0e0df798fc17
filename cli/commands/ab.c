/* graph-bench ab: two executables, sets of options or instruction sets, measured in turn. */
#include "cli/commands/arguments.h"
#include "cli/commands/differences.h"
#include "cli/commands/files.h"
#include "cli/commands/sides.h"
#include "cli/options/message.h"
#include "cli/report/interrupt.h"
#include "cli/report/record.h"
#include "cli/report/report.h"
#include "cli/run/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_FORMAT, OPTION_OUTPUT, OPTION_BLOCKS, OPTION_MS, OPTION_FLOOR, OPTION_SEED };

const gb_command_option gb_cli_ab_options[] = {
        [OPTION_FORMAT] = {"format", "text|markdown|json", "text", "text, markdown or json"},
        [OPTION_OUTPUT] = {"o", "FILE", NULL, "write to FILE and not to the standard output"},
        [OPTION_BLOCKS] = {"blocks", "N", "120",
                "at most N blocks of each case: ABBA or BAAB, as chance has it"},
        [OPTION_MS] = {"ms", "MS", "60", "budget of one measurement"},
        [OPTION_FLOOR] = {"floor", "PERCENT", "1%",
                "smaller changes count as none; cases end early when half of it is resolved"},
        [OPTION_SEED] = {"seed", "N", "1", "of the order of blocks"},
        {0},
};

enum { FEWEST_BLOCKS = 8 };
static const double confidence = 0.99;

/* What one block says of one partition. */
typedef struct pair {
    double log_ratio, base_ns, new_ns;
} pair;

typedef struct ab_case {
    char *before, *behind; /* owned; of the reproducer line: options of the run, and of the case */
    char *repro;           /* owned */
    char *dir;             /* owned; below which side A found the file, or NULL: as named */
    char **ops;            /* owned; kinds of each partition of side A; n_ops of them */
    size_t n_ops;
    char *digest[2];   /* owned; NULL before the first run */
    char *division[2]; /* owned; kinds of all partitions of each side; NULL before its first run */
    bool told, done;
    size_t n_rows, n_blocks; /* times of one run, as in measured_run */
    int64_t last_row;
    gb_rates *probes; /* by block: the lowest probes, 0 without; owned */
    pair *pairs;      /* n_blocks times n_rows; owned */
} ab_case;

typedef struct experiment {
    gb_side sides[2];
    double most_blocks, budget_ms, floor;
    uint64_t random;
    gb_rates best_probe;
    size_t n;
    ab_case *cases; /* owned */
    char *report;   /* owned; the file that each run writes */
    gb_differences differences;
} experiment;

static size_t pick(experiment *e, size_t n)
{
    e->random = e->random * 6364136223846793005u + 1442695040888963407u;
    return (size_t)((e->random >> 33) % n);
}

/* ------------------------------------------------------------ runs */

typedef struct measured_run {
    size_t n_rows;  /* of times: of partitions, and of all of them end to end */
    int64_t last;   /* what the last row is: a partition, or WHOLE_GRAPH */
    double *ns;     /* owned */
    gb_rates probe; /* the lowest */
} measured_run;

static gb_rates lowest_probe(json_object *partition)
{
    gb_rates lowest = {0};
    json_object *visits = json_object_object_get(partition, "visits");
    for (size_t v = 0; v < gb_cli_list_count(visits); v++) {
        json_object *visit = json_object_array_get_idx(visits, v);
        gb_rates rates = gb_cli_record_rates(visit);
        lowest = v ? gb_cli_rates_min(lowest, rates) : rates;
    }
    return lowest;
}

static void take_texts(ab_case *test, int side, json_object *record)
{
    json_object *parts = json_object_object_get(record, "partitions");
    if (test->digest[side])
        return;
    if (side == 0) {
        test->n_ops = gb_cli_list_count(parts);
        test->ops = gb_cli_realloc(NULL, test->n_ops + 1, sizeof *test->ops);
        for (size_t p = 0; p < test->n_ops; p++)
            test->ops[p] =
                    gb_cli_copy(gb_cli_record_text(json_object_array_get_idx(parts, p), "ops"));
    }
    test->digest[side] = gb_cli_copy(gb_cli_record_text(record, "digest"));
    gb_text division = {0};
    for (size_t p = 0; p < gb_cli_list_count(parts); p++)
        gb_cli_text_add(
                &division, "%s\n", gb_cli_record_text(json_object_array_get_idx(parts, p), "ops"));
    test->division[side] = gb_cli_text_get(&division)[0] ? division.data : gb_cli_copy("");
}

static bool take_run(experiment *e, ab_case *test, int side, json_object *record, measured_run *run)
{
    run->n_rows = gb_cli_record_count_rows(record);
    run->ns = gb_cli_realloc(NULL, run->n_rows + 1, sizeof *run->ns);
    for (size_t p = 0; p < run->n_rows; p++) {
        json_object *part = gb_cli_record_row(record, p, &run->last);
        run->ns[p] = json_object_get_double(json_object_object_get(part, "median_ns"));
        if (run->ns[p] <= 0)
            return false;
        gb_rates probe = lowest_probe(part);
        run->probe = p ? gb_cli_rates_min(run->probe, probe) : probe;
    }
    e->best_probe = gb_cli_rates_max(e->best_probe, run->probe);
    take_texts(test, side, record);
    return run->n_rows > 0;
}

/* One process that measures one case. False: it failed there, or a signal came; the case ends. */
static bool run_once(experiment *e, ab_case *test, int side, measured_run *run)
{
    gb_text options = {0};
    *run = (measured_run){0};
    if (test->dir)
        gb_cli_side_quote(test->dir, &options);
    gb_cli_text_add(&options, " %s", test->before);
    gb_cli_side_add_options(&e->sides[side], &options);
    gb_cli_text_add(&options, " --mode=P --max-ms-per-prb=%g %s", e->budget_ms, test->behind);
    gb_results *results = NULL;
    gb_status status = gb_cli_side_run(&e->sides[side], options.data, e->report, &results);
    gb_cli_text_free(&options);
    long cursor = 0;
    json_object *record = results ? gb_cli_results_next(results, &cursor) : NULL;
    bool good = status == GB_SUCCESS && record && !gb_cli_record_is_failure(record) &&
                take_run(e, test, side, record, run);
    /* Later runs repeat what the first one says, such as that a variable means nothing. */
    if ((!good || !e->sides[side].told) && !gb_cli_interrupt_signal())
        gb_cli_side_tell(&e->sides[side], e->report);
    if (!good && !gb_cli_interrupt_signal()) {
        gb_cli_differences_note(&e->differences, true, test->repro, "side %c does not run: %s",
                "AB"[side], record ? gb_cli_record_text(record, "status") : gb_cli_failure());
        test->done = true;
    }
    json_object_put(record);
    gb_cli_results_free(results);
    return good;
}

/* ------------------------------------------------------------ blocks */

static bool is_slow_block(const experiment *e, const ab_case *test, size_t block)
{
    return gb_cli_rates_are_slow(test->probes[block], e->best_probe);
}

/* Of one partition, or of all end to end, without slow blocks if enough others are there. */
static void judge(const experiment *e, const ab_case *test, size_t part, gb_difference *row)
{
    static char end_to_end[] = "end to end";
    double *ratios = gb_cli_realloc(NULL, test->n_blocks + 1, sizeof *ratios);
    double base = 0, new = 0;
    size_t n = 0, fast = 0;
    for (size_t b = 0; b < test->n_blocks; b++)
        fast += !is_slow_block(e, test, b);
    for (size_t b = 0; b < test->n_blocks; b++) {
        const pair *p = &test->pairs[b * test->n_rows + part];
        if (fast >= FEWEST_BLOCKS && is_slow_block(e, test, b))
            continue;
        ratios[n++] = p->log_ratio;
        base += p->base_ns;
        new += p->new_ns;
    }
    static char none[] = "";
    bool whole = part + 1 == test->n_rows && test->last_row == WHOLE_GRAPH;
    *row = (gb_difference){.repro = test->repro,
            .ops = whole                ? end_to_end
                   : part < test->n_ops ? test->ops[part]
                                        : none,
            .partition = whole ? WHOLE_GRAPH : (int64_t)part,
            .floor = e->floor,
            .base_ns = base / (double)n,
            .new_ns = new / (double)n,
            .n_base = n,
            .n_new = n};
    gb_stats_paired(ratios, n, confidence, &row->effect);
    free(ratios);
}

/* Is the interval of every partition narrow enough to stop? This looks at its width alone: to stop
 * at the first clear difference would find some where there are none. */
static bool is_resolved(const experiment *e, const ab_case *test)
{
    bool resolved = test->n_blocks >= FEWEST_BLOCKS;
    for (size_t p = 0; p < test->n_rows && resolved; p++) {
        gb_difference row;
        judge(e, test, p, &row);
        resolved = row.effect.high - row.effect.low < e->floor;
    }
    return resolved;
}

static void add_block(ab_case *test, const measured_run runs[4], const int order[4])
{
    size_t n = test->n_blocks++;
    test->n_rows = runs[0].n_rows;
    test->last_row = runs[0].last;
    test->probes = gb_cli_realloc(test->probes, n + 1, sizeof *test->probes);
    test->pairs = gb_cli_realloc(test->pairs, (n + 1) * test->n_rows, sizeof *test->pairs);
    test->probes[n] = runs[0].probe;
    for (int i = 1; i < 4; i++)
        test->probes[n] = gb_cli_rates_min(test->probes[n], runs[i].probe);
    for (size_t p = 0; p < test->n_rows; p++) {
        double logs[2] = {0, 0}, ns[2] = {0, 0};
        for (int i = 0; i < 4; i++) {
            logs[order[i]] += log(runs[i].ns[p]) / 2;
            ns[order[i]] += runs[i].ns[p] / 2;
        }
        test->pairs[n * test->n_rows + p] = (pair){logs[1] - logs[0], ns[0], ns[1]};
    }
}

static size_t partitions_of(const measured_run *run)
{
    return run->n_rows - (run->last == WHOLE_GRAPH ? 1 : 0);
}

/* The times of the whole graph, which of one partition are its own. */
static void keep_whole(measured_run *run)
{
    run->ns[0] = run->ns[run->n_rows - 1];
    run->n_rows = 1;
    run->last = WHOLE_GRAPH;
}

/* Where the sides divide the graph otherwise, only the whole can be compared. */
static void keep_comparable(experiment *e, ab_case *test, measured_run runs[4], const int order[4])
{
    if (strcmp(test->division[0], test->division[1]) == 0)
        return;
    if (test->n_blocks == 0)
        gb_cli_differences_note(&e->differences, false, test->repro,
                "the sides have other partitions, %zu and %zu: compared end to end",
                partitions_of(&runs[order[0] ? 1 : 0]), partitions_of(&runs[order[0] ? 0 : 1]));
    for (int i = 0; i < 4; i++)
        keep_whole(&runs[i]);
}

/* Four runs, ABBA or BAAB: what changes steadily falls on both sides alike. */
static void run_block(experiment *e, ab_case *test)
{
    int first = (int)pick(e, 2), order[4] = {first, !first, !first, first};
    measured_run runs[4] = {{0}};
    bool good = true;
    for (int i = 0; i < 4 && good; i++) {
        good = !gb_cli_interrupt_signal() && run_once(e, test, order[i], &runs[i]);
    }
    if (good) {
        keep_comparable(e, test, runs, order);
        add_block(test, runs, order);
    }
    for (int i = 0; i < 4; i++)
        free(runs[i].ns);
    if (good && !test->told && strcmp(test->digest[0], test->digest[1]) != 0) {
        gb_cli_differences_note(&e->differences, false, test->repro, "results have other bits");
        test->told = true;
    }
    test->done = test->done || (double)test->n_blocks >= e->most_blocks || is_resolved(e, test);
}

/* Block after block, all cases in random order in each round. */
static void run_blocks(experiment *e)
{
    size_t *order = gb_cli_realloc(NULL, e->n + 1, sizeof *order), n;
    do {
        n = 0;
        for (size_t i = 0; i < e->n; i++)
            if (!e->cases[i].done)
                order[n++] = i;
        for (size_t i = n; i > 1; i--) {
            size_t other = pick(e, i), kept = order[i - 1];
            order[i - 1] = order[other];
            order[other] = kept;
        }
        for (size_t i = 0; i < n && !gb_cli_interrupt_signal(); i++)
            run_block(e, &e->cases[order[i]]);
    } while (n > 0 && !gb_cli_interrupt_signal());
    free(order);
}

/* ------------------------------------------------------------ all of it */

/* In a reproducer line, between the options of the run and the case. */
static const char border[] = "--graph ";

/* The option that lets a single run find the file where it was found beside a batch file, for
 * instance; NULL: it is found as it is named. */
static char *dir_option(const char *path, const char *file)
{
    size_t length = strlen(path), part = strlen(file);
    gb_text option = {0};
    if (length < part + 2 || strcmp(path + length - part, file) != 0)
        return NULL;
    gb_cli_text_add(&option, "--input-dir=%.*s", (int)(length - part - 1), path);
    return option.data;
}

static void add_case(experiment *e, json_object *record, const char *repro, const char *found)
{
    e->cases = gb_cli_realloc(e->cases, e->n + 1, sizeof *e->cases);
    e->cases[e->n++] = (ab_case){.repro = gb_cli_copy(found + strlen(border)),
            .before = gb_cli_copy_part(repro, (size_t)(found - repro)),
            .behind = gb_cli_copy(found),
            .dir = dir_option(
                    gb_cli_record_text(record, "path"), gb_cli_record_text(record, "file"))};
}

/* Cases that can be measured, and notes of those that cannot. */
static void take_list(experiment *e, const gb_results *results, const char *cases)
{
    long cursor = 0;
    for (json_object *record; (record = gb_cli_results_next(results, &cursor));
            json_object_put(record)) {
        const char *status = gb_cli_record_text(record, "status");
        const char *repro = gb_cli_record_text(record, "repro"), *found = strstr(repro, border);
        if (found && strcmp(status, gb_cli_case_status_name(CASE_LISTED)) == 0)
            add_case(e, record, repro, found);
        else
            gb_cli_differences_note(&e->differences, gb_cli_record_is_failure(record),
                    found ? found + strlen(border) : repro, "not measured: %s (%s)", status,
                    gb_cli_record_text(record, "reason"));
    }
    int64_t errors = gb_cli_count_option_errors(results);
    if (errors > 0)
        gb_cli_differences_note(&e->differences, true, cases,
                "%" PRId64 " wrong options or unreadable batch files", errors);
}

/* The cases of the common arguments, as side A sees them without options of its own. */
static gb_status list_cases(experiment *e, int argc, char **argv)
{
    gb_text options = {0};
    gb_results *results = NULL;
    gb_side side = e->sides[0];
    side.name = NULL; /* the words are common to both */
    gb_cli_side_add_cases("L", argc, argv, &options);
    gb_status status = gb_cli_side_run(&side, options.data, e->report, &results);
    const char *words = strchr(options.data, ' ');
    if (status == GB_SUCCESS)
        take_list(e, results, words ? words + 1 : "");
    gb_cli_text_free(&options);
    gb_cli_results_free(results);
    if (status == GB_SUCCESS && e->n == 0)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "no case");
    return status;
}

static void free_case(ab_case *test)
{
    free(test->before);
    free(test->behind);
    free(test->repro);
    free(test->dir);
    for (size_t p = 0; p < test->n_ops; p++)
        free(test->ops[p]);
    free(test->ops);
    free(test->division[0]);
    free(test->division[1]);
    for (int side = 0; side < 2; side++)
        free(test->digest[side]);
    free(test->probes);
    free(test->pairs);
}

static int finish(experiment *e, const gb_arguments *arguments)
{
    for (size_t i = 0; i < e->n; i++)
        for (size_t p = 0; e->cases[i].n_blocks > 0 && p < e->cases[i].n_rows; p++) {
            gb_difference row;
            judge(e, &e->cases[i], p, &row);
            gb_cli_differences_add(&e->differences, row);
        }
    if (gb_cli_interrupt_signal())
        fprintf(stderr, "graph-bench ab: interrupted; the blocks so far:\n");
    return gb_cli_differences_finish(&e->differences, arguments->values[OPTION_FORMAT], true,
            arguments->values[OPTION_OUTPUT]);
}

static int run_experiment(experiment *e, const gb_arguments *arguments, int argc, char **common)
{
    int status = EXIT_USAGE;
    e->report = gb_cli_side_report();
    if (!e->report || list_cases(e, argc, common) != GB_SUCCESS) {
        if (!gb_cli_interrupt_signal())
            gb_cli_print_error("ab", "%s", gb_cli_failure());
    } else {
        e->differences.base = "A";
        e->differences.new = "B";
        run_blocks(e);
        status = finish(e, arguments);
    }
    gb_cli_side_report_free(e->report);
    for (int side = 0; side < 2; side++)
        gb_cli_side_free(&e->sides[side]);
    for (size_t i = 0; i < e->n; i++)
        free_case(&e->cases[i]);
    free(e->cases);
    gb_cli_differences_free(&e->differences);
    return gb_cli_interrupt_signal() ? 128 + gb_cli_interrupt_signal() : status;
}

static bool take_options(const gb_arguments *arguments, experiment *e)
{
    double seed;
    const char *const *values = arguments->values;
    if (!gb_cli_argument_number("blocks", values[OPTION_BLOCKS], &e->most_blocks) ||
            !gb_cli_argument_number("ms", values[OPTION_MS], &e->budget_ms) ||
            !gb_cli_argument_percent("floor", values[OPTION_FLOOR], &e->floor) ||
            !gb_cli_argument_number("seed", values[OPTION_SEED], &seed))
        return false;
    e->random = (uint64_t)seed;
    if (gb_cli_differences_format_is_known(values[OPTION_FORMAT]))
        return true;
    gb_cli_print_error("ab", "--format: text, markdown or json");
    return false;
}

static int find_border(int argc, char **argv, int from)
{
    while (from < argc && strcmp(argv[from], "--") != 0)
        from++;
    return from;
}

int gb_cli_command_ab(const gb_command *command, int argc, char **argv)
{
    gb_arguments arguments;
    experiment e = {0};
    int status = EXIT_USAGE;
    if (gb_cli_arguments_read(command, argc, argv, true, &arguments) &&
            take_options(&arguments, &e)) {
        int a = arguments.next, a_end = find_border(argc, argv, a);
        int b = a_end + 1, b_end = find_border(argc, argv, b);
        if (b_end + 1 >= argc) {
            gb_cli_print_error("ab", "this takes three parts: %s", command->arguments);
        } else if (gb_cli_differences_can_finish(arguments.values[OPTION_OUTPUT])) {
            gb_cli_side_take(&e.sides[0], a_end - a, argv + a);
            gb_cli_side_take(&e.sides[1], b_end - b, argv + b);
            e.sides[0].name = "side A";
            e.sides[1].name = "side B";
            status = run_experiment(&e, &arguments, argc - b_end - 1, argv + b_end + 1);
        }
    }
    gb_cli_arguments_free(&arguments);
    return status;
}
