/* The line that a measured case prints, as --perf-template says. */
#ifndef GB_CLI_REPORT_PERF_LINE_H
#define GB_CLI_REPORT_PERF_LINE_H

#include "cli/run/run.h"

/* The template, and the names of its fields. */
void gb_cli_print_perf_header(const gb_settings *settings);
/* Milliseconds of the case: end to end where it has several partitions, else of its partition. */
double gb_cli_perf_min_ms(const gb_case_result *result);
double gb_cli_perf_average_ms(const gb_case_result *result);
void gb_cli_print_perf_line(
        const gb_settings *settings, const gb_case *test, const gb_case_result *result);

#endif
