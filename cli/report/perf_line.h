/* The line that a measured case prints, as --perf-template says. */
#ifndef GB_CLI_REPORT_PERF_LINE_H
#define GB_CLI_REPORT_PERF_LINE_H

#include "cli/run/run.h"

/* The template, and the names of its fields. */
void gb_cli_print_perf_header(const gb_settings *settings);
void gb_cli_print_perf_line(
        const gb_settings *settings, const gb_case *test, const gb_case_result *result);

#endif
