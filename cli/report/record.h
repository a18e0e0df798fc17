/* What a report keeps of a run, as JSON: one object for each case, one for the environment. The
 * schema is described in docs/json-report.md. */
#ifndef GB_CLI_REPORT_RECORD_H
#define GB_CLI_REPORT_RECORD_H

#include "cli/run/roof.h"
#include "cli/run/run.h"

#include <json-c/json.h>

/* The caller's. `messages`: errors and warnings of the case, a line each ("" when there are none).
 */
json_object *gb_cli_case_record(const gb_settings *settings, const gb_case *test,
        const gb_case_result *result, const char *messages);

/* Where results come from: the program, its arguments and the machine. The engine's description may
 * be NULL; roof all 0: not measured. The caller's. */
json_object *gb_cli_environment_record(
        int argc, char *const *argv, const char *engine, const gb_roof *roof);

#endif
