/* What is printed about cases: status lines, perf lines, partitions, and the summary at the end. */
#ifndef GB_CLI_REPORT_REPORT_H
#define GB_CLI_REPORT_REPORT_H

#include "cli/report/doctor.h"
#include "cli/run/measure.h"
#include "cli/run/roof.h"
#include "cli/run/run.h"

enum { FAILURE_LIST_LIMIT = 10, STRICT_LIST_LIMIT = 4 };

/* How often a kernel list was chosen. */
typedef struct gb_kernel_use {
    char *kernels; /* owned */
    size_t count;
} gb_kernel_use;

/* All zero at the start. */
typedef struct gb_report {
    size_t counts[CASE_STATUS_COUNT];
    size_t n_expected;      /* cases that ended as --expect says; in no other count */
    size_t n_option_errors; /* in batch files; each makes the exit status 1 */
    bool perf_header_printed;
    size_t n_measured;
    double min_ms, average_ms; /* sums over the measured cases */
    int64_t phase_ns[PHASE_COUNT];
    int64_t begin_ns;
    gb_roof roof;            /* all 0: not measured */
    gb_diagnosis diagnosis;  /* no checks: not examined */
    uint32_t shard_division; /* of gb_shards */
    uint32_t shard_cases;    /* a hash of the names of all cases of the run, of every shard */
    size_t n_strict;
    char *strict[STRICT_LIST_LIMIT]; /* owned; why the run fails by --strict alone */
    size_t n_failures;
    char *failures[FAILURE_LIST_LIMIT]; /* owned; the first status lines of failed cases */
    size_t n_kernel_uses;
    gb_kernel_use *kernel_uses; /* owned */
} gb_report;

const char *gb_cli_case_status_name(gb_case_status status);
bool gb_cli_case_status_is_failure(gb_case_status status);
/* The status of that name; false: there is none. */
bool gb_cli_case_status_find(const char *name, gb_case_status *status);

/* Prints the lines of a case. */
void gb_cli_report_print_case(gb_report *report, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result);
void gb_cli_report_count_case(gb_report *report, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result);
/* Counts a case whose lines are not printed. */
void gb_cli_report_count(gb_report *report, gb_case_status status, const char *status_line);
/* Prints the summary. */
void gb_cli_report_end(const gb_report *report, const gb_settings *settings);
bool gb_cli_report_has_failures(const gb_report *report);
void gb_cli_report_free(gb_report *report);

#endif
