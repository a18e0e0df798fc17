/* --expect=FILE: cases that are known not to pass, with the reason. */
#ifndef GB_CLI_REPORT_EXPECTATIONS_H
#define GB_CLI_REPORT_EXPECTATIONS_H

#include "cli/run/run.h"

/* All zero: nothing is expected. */
typedef struct gb_expectations {
    struct gb_expectation *rows; /* owned */
    size_t n;
} gb_expectations;

/* Reads lines of "STATUS GLOB # reason". Failures name file and line. */
gb_status gb_cli_expectations_read(const char *path, gb_expectations *expectations);
void gb_cli_expectations_free(gb_expectations *expectations);

/* The reason why the case was expected to end so, "" without one; NULL: it was not. */
const char *gb_cli_expected_reason(
        gb_expectations *expectations, const gb_case *test, gb_case_status status);
/* Prints a warning for each line that no case came to; their number. */
size_t gb_cli_expectations_unused(const gb_expectations *expectations);

#endif
