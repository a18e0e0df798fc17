/* A side of graph-bench ab: what is run as a process of its own, and the report that it leaves. */
#ifndef GB_CLI_COMMANDS_SIDES_H
#define GB_CLI_COMMANDS_SIDES_H

#include "cli/options/text.h"
#include "cli/report/results.h"

/* "[NAME=VALUE]... [PROGRAM] [OPTION]..."; words are lent. To be freed by gb_cli_side_free(). */
typedef struct gb_side {
    int n_variables;
    char **variables;
    const char *program; /* NULL: this program */
    int n_options;
    char **options;
    const char *name; /* stands in front of its messages; NULL: they are shown as they come */
    char *told;       /* owned; messages that were passed on last; NULL: no run was told of */
} gb_side;

void gb_cli_side_take(gb_side *side, int n, char **words);
void gb_cli_side_free(gb_side *side);
/* Adds the side's options, each behind a blank and quoted for a shell. */
void gb_cli_side_add_options(const gb_side *side, gb_text *text);
void gb_cli_side_quote(const char *word, gb_text *text);
/* Adds "--mode=`mode`" and the words that name cases, quoted for a shell. Modes among the words, as
 * reproducer lines have them, are left out. */
void gb_cli_side_add_cases(const char *mode, int n, char *const *words, gb_text *text);
/* A name for reports, in a new folder below TMPDIR; NULL, with a message, when that cannot be made.
 * From then on a signal that ends programs (gb_cli_interrupt_signal() tells of it) ends the side that
 * runs, after a short while, and not this program: it has to, soon. */
char *gb_cli_side_report(void);
void gb_cli_side_report_free(char *path);
/* Runs the program of the side with `options` (for a shell) and --json=`report`, and reads what it
 * left. A case that failed is no failure here; a program that left no report is. */
gb_status gb_cli_side_run(
        const gb_side *side, const char *options, const char *report, gb_results **results);
/* Passes on what the last run, of a side with a name, wrote to its standard error: each line behind the
 * name. What was told last is not told again. */
void gb_cli_side_tell(gb_side *side, const char *report);

#endif
