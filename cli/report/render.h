/* Results in the forms that other tools read. False when the file cannot be written. */
#ifndef GB_CLI_REPORT_RENDER_H
#define GB_CLI_REPORT_RENDER_H

#include "cli/report/results.h"

/* JUnit's XML: a test case for each case. */
bool gb_cli_write_junit(const gb_results *results, FILE *file);
/* A table (RFC 4180): a row for each partition, or for a case that has none. */
bool gb_cli_write_csv(const gb_results *results, FILE *file);

/* One page that needs nothing else: tables, failures, a roofline, times. */
bool gb_cli_write_html(const gb_results *results, FILE *file);

#endif
