/* A history of results: an SQLite file that several writers may share. */
#ifndef GB_CLI_COMMANDS_HISTORY_H
#define GB_CLI_COMMANDS_HISTORY_H

#include "cli/report/results.h"

typedef struct gb_history gb_history;

/* Opens the file; `writes`: to add to it, and it is made when it is missing, and brought to this
 * program's version when it is older. Else it is only read, and what is no whole history is a
 * failure. Failures name the file; without SQLite in this build every call fails. */
gb_status gb_cli_history_open(const char *path, bool writes, gb_history **history);
void gb_cli_history_close(gb_history *history);
/* `partition` is its place in the case, or WHOLE_GRAPH. */
/* How much the median of a partition differs from one run to the next without a step, as a standard
 * deviation (relative), on the machine of `environment`; 0: not known, or no history (NULL). */
double gb_cli_history_noise(
        gb_history *history, json_object *environment, const char *repro, int64_t partition);

/* The medians of a partition on the machine of `environment`, in the order of time, for a plot: an
 * object with `points` ([time, commit, median, low, high] each, null where not known) and `steps`
 * ([number of the point, relative change]). NULL when there are fewer than two points; the caller's.
 */
gb_status gb_cli_history_series(gb_history *history, json_object *environment, const char *repro,
        int64_t partition, json_object **plot);

#endif
