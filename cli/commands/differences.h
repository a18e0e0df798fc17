/* What differs between two reports, or two sides that were measured in turn: a row for each
 * partition and one for all of them end to end, notes on the rest; as text, Markdown or JSON. */
#ifndef GB_CLI_COMMANDS_DIFFERENCES_H
#define GB_CLI_COMMANDS_DIFFERENCES_H

#include "cli/report/results.h"
#include "cli/stats/effect.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct gb_difference {
    char *repro, *ops; /* owned */
    int64_t partition; /* place in the case; WHOLE_GRAPH: all of them end to end */
    gb_change change;
    gb_effect effect;
    double floor, noise; /* as gb_stats_judge() has them */
    double base_ns, new_ns;
    bool equal_clock; /* the effect is that of times as at one clock; base_ns and new_ns are not */
    size_t n_base, n_new; /* values that were compared */
    const char *why;      /* it is UNSURE whatever the effect; static, or NULL */
} gb_difference;

typedef struct gb_difference_note {
    char *repro, *text; /* owned */
    bool worse;         /* makes the exit status 1 */
} gb_difference_note;

/* All zero is empty. */
typedef struct gb_differences {
    const char *base, *new; /* names of the sides; lent */
    size_t n, n_notes;
    gb_difference *rows;       /* owned */
    gb_difference_note *notes; /* owned */
} gb_differences;

/* Takes the row over and judges it; repro and ops are copied. */
void gb_cli_differences_add(gb_differences *differences, gb_difference row);
void gb_cli_differences_note(gb_differences *differences, bool worse, const char *repro,
        const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Something is SLOWER, or a note says worse. */
bool gb_cli_differences_are_worse(const gb_differences *differences);
/* format: "text", "markdown" or "json". `all`: rows that are SAME, too (JSON always has them). */
void gb_cli_differences_write(
        const gb_differences *differences, const char *format, bool all, FILE *file);
bool gb_cli_differences_format_is_known(const char *format);
void gb_cli_differences_free(gb_differences *differences);

/* Can the result be written to `path` (NULL: the standard output)? A message if not. To be asked in front
 * of what takes long. */
bool gb_cli_differences_can_finish(const char *path);
int gb_cli_differences_finish(
        const gb_differences *differences, const char *format, bool all, const char *path);

#endif
