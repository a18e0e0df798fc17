/* What earlier reports say of cases: --rerun-failed and --resume. Cases are told apart by their names
 * (cli/options/case_name.h). */
#ifndef GB_CLI_REPORT_SELECTION_H
#define GB_CLI_REPORT_SELECTION_H

#include "cli/case/case.h"

#include <json-c/json.h>

/* All zero: no report was named. */
typedef struct gb_selection {
    json_object *failed;      /* owned; cases that failed */
    json_object *done;        /* owned; lists of records of cases that ran, in order */
    json_object *environment; /* owned; of the report that is resumed */
} gb_selection;

/* Reads the reports that the settings name; those read before are kept. */
gb_status gb_cli_selection_read(const gb_settings *settings, gb_selection *selection);
void gb_cli_selection_free(gb_selection *selection);

/* --rerun-failed: is the case to be run? */
bool gb_cli_selection_fits(const gb_selection *selection, const gb_case *test);
/* --resume: the record of a case that was done, which becomes the caller's; NULL: it was not, or not
 * as often as it has been asked for. */
json_object *gb_cli_selection_take(gb_selection *selection, const gb_case *test);

#endif
