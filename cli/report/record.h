/* What a report keeps of a run, as JSON: one object for each case, one for the environment. The
 * schema is described in docs/json-report.md. */
#ifndef GB_CLI_REPORT_RECORD_H
#define GB_CLI_REPORT_RECORD_H

#include "cli/report/results.h"
#include "cli/run/roof.h"
#include "cli/run/run.h"

#include <json-c/json.h>

/* The caller's. `messages`: errors and warnings of the case, a line each ("" when there are none).
 */
json_object *gb_cli_case_record(const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages);

/* Did the case fail? Not when --expect expected it; a status that this program does not know is a
 * failure. */
bool gb_cli_record_is_failure(json_object *record);

/* Wrong options in batch files and batch files that could not be read. */
int64_t gb_cli_count_option_errors(const gb_results *results);

/* Lists of a report that was read, which may hold anything: what is no list has no members, and
 * null is "". The text is lent. */
size_t gb_cli_list_count(json_object *list);
const char *gb_cli_list_text(json_object *list, size_t index);

/* Where results come from: the program, its arguments and the machine. The engine's description may
 * be NULL; roof all 0: not measured. The caller's. */
json_object *gb_cli_environment_record(
        int argc, char *const *argv, const char *engine, const gb_roof *roof);

#endif
