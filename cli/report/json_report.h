/* --json=FILE: all results as one document, for trackers. The schema is described in
 * docs/json-report.md. */
#ifndef GB_CLI_REPORT_JSON_REPORT_H
#define GB_CLI_REPORT_JSON_REPORT_H

#include "cli/run/roof.h"
#include "cli/run/run.h"

typedef struct gb_json_report gb_json_report;

gb_json_report *gb_cli_json_create(void);
/* Adds a case; the result is copied, to a temporary file. Nothing happens with a NULL report. */
void gb_cli_json_add(gb_json_report *report, const gb_settings *settings, const gb_case *test,
        const gb_case_result *result);
/* Writes the document with the environment (engine description may be NULL; roof all 0: not
 * measured). */
gb_status gb_cli_json_write(
        gb_json_report *report, const char *path, const char *engine, const gb_roof *roof);
void gb_cli_json_free(gb_json_report *report);

#endif
