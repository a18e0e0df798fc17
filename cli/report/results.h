/* The records of a run, or of a report that was read: a summary, the environment, and the cases in
 * order. Cases wait in a file without a name, so that a long run does not keep them in memory. */
#ifndef GB_CLI_REPORT_RESULTS_H
#define GB_CLI_REPORT_RESULTS_H

#include "cli/options/settings.h"
#include "cli/run/measure.h"

#include <json-c/json.h>
#include <stdio.h>

typedef struct gb_results gb_results;

/* No results yet. */
gb_results *gb_cli_results_create(void);
void gb_cli_results_free(gb_results *results);
/* Reads a report that --json wrote. Failures name the file, and the line where it is no JSON. */
gb_status gb_cli_results_read(const char *path, gb_results **results);

/* Called with each case (lent) and the place where it was put. */
typedef void gb_results_take(void *data, json_object *record, long place);
/* Adds the cases of a report of --json, one after the other, to those that are there; the other
 * members become the caller's. After a failure, some cases may have been added. `take` may be NULL.
 */
gb_status gb_cli_results_append(gb_results *results, const char *path, json_object **members,
        gb_results_take *take, void *data);

/* Takes a case over. Whether it could be kept says gb_cli_results_check(). */
void gb_cli_results_add(gb_results *results, json_object *record);
/* Takes the other members of a report over, in place of those it had: "ended", "summary",
 * "environment". */
void gb_cli_results_set(gb_results *results, const char *key, json_object *value);
/* A member, lent, or NULL. */
json_object *gb_cli_results_get(const gb_results *results, const char *key);

/* Are all cases there that were added, and could those be read that were asked for? The disk may be
 * full. To be asked in front of what is made of them, and behind it. */
gb_status gb_cli_results_check(const gb_results *results);

size_t gb_cli_results_count(const gb_results *results);
/* The case at *cursor (0 at first), and moves it on; NULL behind the last, or where it cannot be read.
 * The caller's. */
json_object *gb_cli_results_next(const gb_results *results, long *cursor);

/* The case that was put at a place; the caller's. */
json_object *gb_cli_results_at(const gb_results *results, long place);
/* From now on the report has these cases only, in this order: places, which are taken over. */
void gb_cli_results_arrange(gb_results *results, long *order, size_t n);

/* A member of a record as text, lent; "" where it is null or missing. */
const char *gb_cli_record_text(json_object *record, const char *key);

/* What of a record has times, lent: its partitions in their order, then, of several, all of them end
 * to end. *part is the place of the partition, or WHOLE_GRAPH. */
enum { WHOLE_GRAPH = -1 };
size_t gb_cli_record_count_rows(json_object *record);
json_object *gb_cli_record_row(json_object *record, size_t row, int64_t *part);
/* The probes of the cores beside a visit. */
gb_rates gb_cli_record_rates(json_object *visit);

/* Writes the report as JSON, one case a line. False when the file cannot be written. */
bool gb_cli_results_write_json(const gb_results *results, FILE *file);

#endif
