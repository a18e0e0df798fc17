/* --filter: which cases run. Each word is a pattern of the shell, for the file or the reproducer
 * line; behind "op:" for the kinds of the graph's ops, behind "pattern:" for the patterns of its
 * partitions. A case runs when, of each of these three sorts, a word fits or there is none. */
#ifndef GB_CLI_CASE_FILTER_H
#define GB_CLI_CASE_FILTER_H

#include "cli/case/case.h"

typedef enum gb_filter_sort { FILTER_CASE, FILTER_OP, FILTER_PATTERN } gb_filter_sort;

/* Does a word of this sort fit one of the texts, or is there no such word? */
bool gb_cli_filter_fits(
        const gb_settings *settings, gb_filter_sort sort, size_t n_texts, const char *const *texts);
/* Does the pattern fit the file, or the reproducer line or arguments with or without what their name
 * leaves out (cli/options/case_name.h)? */
bool gb_cli_case_fits(const gb_case *test, const char *glob);
bool gb_cli_filter_fits_case(const gb_settings *settings, const gb_case *test);
/* The same for the loaded graph. */
gb_status gb_cli_filter_fits_ops(const gb_settings *settings, const gb_case *test, bool *fits);

#endif
