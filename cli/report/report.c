/* What is printed about cases. */
#include "cli/report/report.h"

#include "cli/report/perf_line.h"
#include "cli/run/stage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    bool failure;
} statuses[CASE_STATUS_COUNT] = {
        [CASE_PASSED] = {"PASSED", false},
        [CASE_FAILED] = {"FAILED", true},
        [CASE_MISTRUSTED] = {"MISTRUSTED", false},
        [CASE_SKIPPED] = {"SKIPPED", false},
        [CASE_UNIMPLEMENTED] = {"UNIMPLEMENTED", true},
        [CASE_INVALID_ARGUMENTS] = {"INVALID_ARGUMENTS", true},
        [CASE_UNTESTED_FAILED] = {"UNTESTED_FAILED", true},
        [CASE_CRASHED] = {"CRASHED", true},
        [CASE_TIMEOUT] = {"TIMEOUT", true},
        [CASE_OUT_OF_MEMORY] = {"OUT_OF_MEMORY", true},
        [CASE_LISTED] = {"LISTED", false},
        [CASE_INITIALIZED] = {"INITIALIZED", false},
        [CASE_EXECUTED] = {"EXECUTED", false},
};

const char *gb_cli_case_status_name(gb_case_status status)
{
    return statuses[status].name;
}

bool gb_cli_case_status_is_failure(gb_case_status status)
{
    return statuses[status].failure;
}

bool gb_cli_case_status_find(const char *name, gb_case_status *status)
{
    for (int i = 0; i < CASE_STATUS_COUNT; i++)
        if (strcmp(statuses[i].name, name) == 0) {
            *status = (gb_case_status)i;
            return true;
        }
    return false;
}

/* ------------------------------------------------------------ one case */

static void print_ms(const char *label, int64_t ns)
{
    if (ns >= 0)
        printf("; %s %.4g ms", label, (double)ns * 1e-6);
}

/* How well the median is known, and what is odd about the samples. */
static void print_precision(const gb_summary *times)
{
    if (times->n_samples <= 0)
        return;
    if (times->low_ns >= 0)
        printf(" (%.4g to %.4g)", (double)times->low_ns * 1e-6, (double)times->high_ns * 1e-6);
    printf("; %" PRId64 " samples, %s", times->n_samples, times->stopped_by);
    for (int bit = 0; bit < FLAG_COUNT; bit++)
        if (times->flags & 1u << bit)
            printf(", %s", gb_cli_flag_name(bit));
}

/* Work per second of the median, with the share that what was executed has of the machine's roof. */
static void print_rate(const char *unit, double work, double executed, int64_t ns, double roof)
{
    if (work <= 0 || ns <= 0)
        return;
    printf("; %.4g %s", work / (double)ns, unit); /* per nanosecond: giga per second */
    if (roof > 0)
        printf(" (%.2g%%)", 100 * executed / (double)ns * 1e9 / roof);
}

static void print_bytes(const char *label, size_t bytes)
{
    if (bytes)
        printf("; %s %zu B", label, bytes);
}

/* What `bytes` can come from: the smallest cache that holds them, or memory where caches are emptied. */
static double bandwidth_of(const gb_settings *settings, const gb_roof *roof, double bytes)
{
    return settings->cold_cache == COLD_ALL ? roof->bytes : gb_cli_roof_bandwidth(roof, bytes);
}

static void print_partition(
        const gb_settings *settings, const gb_partition_result *partition, const gb_roof *roof)
{
    printf("partition %zu: %s; pattern %s", partition->id, partition->ops ? partition->ops : "?",
            partition->pattern ? partition->pattern : "?");
    if (partition->kernels)
        printf("; kernels %s", partition->kernels);
    print_ms("compile", partition->compile_ns);
    print_ms("build", partition->build_ns);
    print_ms("first", partition->first_ns);
    print_ms("min", partition->times.min_ns);
    print_ms("median", partition->times.median_ns);
    print_precision(&partition->times);
    print_ms("device", partition->device_ns);
    print_rate("GFLOP/s", partition->flops, partition->executed_flops, partition->times.median_ns,
            roof->flops);
    print_rate("GB/s", partition->bytes, partition->bytes, partition->times.median_ns,
            bandwidth_of(settings, roof, partition->bytes));
    print_bytes("intermediates", partition->memory.intermediates);
    print_bytes("arena", partition->memory.arena);
    print_bytes("scratch", partition->memory.scratch);
    print_bytes("constants", partition->memory.constants);
    if (partition->margin >= 0)
        printf("; margin %.3g", partition->margin);
    if (partition->reason)
        printf("; %s", partition->reason);
    putchar('\n');
}

/* All partitions back to back, beside what they take alone. */
static void print_whole(const gb_case_result *result, const gb_roof *roof)
{
    const gb_summary *times = &result->whole.times;
    double flops = 0, executed = 0, alone = 0;
    for (size_t i = 0; i < result->n_partitions; i++) {
        flops += fmax(result->partitions[i].flops, 0);
        executed += fmax(result->partitions[i].executed_flops, 0);
        alone += (double)result->partitions[i].times.median_ns;
    }
    printf("end to end: %zu partitions", result->n_partitions);
    print_ms("min", times->min_ns);
    print_ms("median", times->median_ns);
    print_precision(times);
    print_rate("GFLOP/s", flops, executed, times->median_ns, roof->flops);
    printf("; sum of the partitions %.4g ms\n", alone * 1e-6);
}

static void write_status_line(const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, gb_text *line)
{
    gb_cli_text_add(line, "%zu:%s", test->index, statuses[result->status].name);
    if (result->reason)
        gb_cli_text_add(line, " (%s)", result->reason);
    if (result->expected)
        gb_cli_text_add(line, " (expected%s%s)", *result->expected ? ": " : "", result->expected);
    if (settings->seeds > 1 &&
            (statuses[result->status].failure || result->status == CASE_MISTRUSTED))
        gb_cli_text_add(line, " (seed %" PRId64 ")", result->seed);
    if (result->status == CASE_FAILED && result->n_total > 0)
        gb_cli_text_add(
                line, " (errors:%" PRId64 " total:%" PRId64 ")", result->n_errors, result->n_total);
    gb_cli_text_add(
            line, " (%" PRId64 " ms) __REPRO: %s", result->elapsed_ns / 1000000, test->repro);
}

static void print_perf_line(gb_report *report, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result)
{
    if (!report->perf_header_printed) {
        gb_cli_print_perf_header(settings);
        report->perf_header_printed = true;
    }
    gb_cli_print_perf_line(settings, test, result);
}

static void count_kernels(gb_report *report, const char *kernels)
{
    for (size_t i = 0; i < report->n_kernel_uses; i++)
        if (strcmp(report->kernel_uses[i].kernels, kernels) == 0) {
            report->kernel_uses[i].count++;
            return;
        }
    size_t count = report->n_kernel_uses++;
    report->kernel_uses =
            gb_cli_realloc(report->kernel_uses, count + 1, sizeof(*report->kernel_uses));
    report->kernel_uses[count] = (gb_kernel_use){gb_cli_copy(kernels), 1};
}

void gb_cli_report_count(gb_report *report, gb_case_status status, const char *status_line)
{
    report->counts[status]++;
    if (!statuses[status].failure)
        return;
    if (report->n_failures < FAILURE_LIST_LIMIT)
        report->failures[report->n_failures] = gb_cli_copy(status_line);
    report->n_failures++;
}

static bool is_measured(const gb_settings *settings, const gb_case_result *result)
{
    return settings->mode & MODE_PERFORMANCE && result->measured;
}

void gb_cli_report_count_case(gb_report *report, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result)
{
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        report->phase_ns[phase] += result->phase_ns[phase];
    if (settings->summary & SUMMARY_IMPL)
        for (size_t i = 0; i < result->n_partitions; i++)
            if (result->partitions[i].kernels)
                count_kernels(report, result->partitions[i].kernels);
    if (is_measured(settings, result)) {
        report->n_measured++;
        report->min_ms += gb_cli_perf_min_ms(result);
        report->average_ms += gb_cli_perf_average_ms(result);
    }
    gb_text line = {0};
    write_status_line(settings, test, result, &line);
    if (result->expected)
        report->n_expected++;
    else
        gb_cli_report_count(report, result->status, line.data);
    gb_cli_text_free(&line);
}

void gb_cli_report_print_case(gb_report *report, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result)
{
    for (size_t i = 0; settings->verbose >= 1 && i < result->n_partitions; i++)
        print_partition(settings, &result->partitions[i], &report->roof);
    if (settings->verbose >= 1 && gb_cli_result_has_whole(result))
        print_whole(result, &report->roof);
    if (settings->verbose >= 1 && result->memory_kind)
        printf("memory: %s\n", result->memory_kind);
    for (size_t i = 0; settings->verbose >= 1 && i < result->n_chosen; i++)
        printf("tensor %zu: layout %s\n", result->chosen[i].tensor_id, result->chosen[i].text);
    gb_text line = {0};
    write_status_line(settings, test, result, &line);
    /* A measured case that has no verdict says all in its perf line. */
    if (result->status != CASE_EXECUTED || settings->mode & MODE_RUN)
        puts(line.data);
    if (is_measured(settings, result))
        print_perf_line(report, settings, test, result);
    gb_cli_text_free(&line);
    fflush(stdout);
}

/* ------------------------------------------------------------ the end */

static void print_failures(const gb_report *report)
{
    puts("===========================================================\n"
         "= Failed cases summary\n"
         "===========================================================");
    for (size_t i = 0; i < report->n_failures && i < FAILURE_LIST_LIMIT; i++)
        puts(report->failures[i]);
    if (report->n_failures > FAILURE_LIST_LIMIT)
        printf("... %zu more cases\n", report->n_failures - FAILURE_LIST_LIMIT);
    puts("===========================================================");
}

static void print_kernel_uses(const gb_report *report)
{
    puts("kernels used: partitions, kernels");
    for (size_t i = 0; i < report->n_kernel_uses; i++)
        printf("%8zu %s\n", report->kernel_uses[i].count, report->kernel_uses[i].kernels);
}

static void print_counters(const gb_report *report)
{
    size_t passed = 0, failed = 0;
    static const gb_case_status good[] = {CASE_PASSED, CASE_INITIALIZED, CASE_EXECUTED};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        passed += report->counts[good[i]];
    for (int status = 0; status < CASE_STATUS_COUNT; status++)
        if (statuses[status].failure)
            failed += report->counts[status];
    size_t skipped = report->counts[CASE_SKIPPED];
    size_t mistrusted = report->counts[CASE_MISTRUSTED];
    size_t listed = report->counts[CASE_LISTED];
    printf("tests:%zu passed:%zu skipped:%zu mistrusted:%zu unimplemented:%zu "
           "invalid_arguments:%zu failed:%zu listed:%zu",
            passed + skipped + mistrusted + failed + listed + report->n_expected, passed, skipped,
            mistrusted, report->counts[CASE_UNIMPLEMENTED], report->counts[CASE_INVALID_ARGUMENTS],
            failed, listed);
    if (report->n_expected)
        printf(" expected:%zu", report->n_expected);
    putchar('\n');
}

static void print_times(const gb_report *report)
{
    double total = (double)(gb_cli_now_ns() - report->begin_ns) * 1e-9;
    printf("total: %.2fs;", total);
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        double seconds = (double)report->phase_ns[phase] * 1e-9;
        if (seconds >= 0.005)
            printf(" %s: %.2fs (%.0f%%);", gb_cli_phase_name((gb_phase)phase), seconds,
                    100 * seconds / total);
    }
    putchar('\n');
}

void gb_cli_report_end(const gb_report *report, const gb_settings *settings)
{
    if (settings->summary & SUMMARY_IMPL && report->n_kernel_uses > 0)
        print_kernel_uses(report);
    if (settings->summary & SUMMARY_FAILURES && report->n_failures > 0)
        print_failures(report);
    print_counters(report);
    if (report->n_measured > 0)
        printf("total perf: min(ms):%.6g avg(ms):%.6g\n", report->min_ms, report->average_ms);
    print_times(report);
}

bool gb_cli_report_has_failures(const gb_report *report)
{
    return report->n_failures > 0 || report->n_option_errors > 0 || report->n_strict > 0;
}

void gb_cli_report_free(gb_report *report)
{
    for (size_t i = 0; i < FAILURE_LIST_LIMIT; i++)
        free(report->failures[i]);
    for (size_t i = 0; i < STRICT_LIST_LIMIT; i++)
        free(report->strict[i]);
    for (size_t i = 0; i < report->n_kernel_uses; i++)
        free(report->kernel_uses[i].kernels);
    free(report->kernel_uses);
}
