/* The names by which cases are found again in what earlier runs left. */
#ifndef GB_CLI_OPTIONS_CASE_NAME_H
#define GB_CLI_OPTIONS_CASE_NAME_H

#include <stdbool.h>

/* The name of a case by its reproducer line, or by its arguments alone: the line without
 * --expected-n-partitions=1 and --input-dir. Cases of batch files have the first in their lines, in
 * older reports they have it not; where files are found differs from one checkout to the next. The
 * caller's. */
char *gb_cli_case_name(const char *line);
/* The other line of that name, with the option. The caller's. */
char *gb_cli_case_name_with_option(const char *line);
/* Are these lines of one name? */
bool gb_cli_case_names_are_equal(const char *line, const char *other);

#endif
