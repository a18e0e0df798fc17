/* Performing one case, from its file to its verdict, in this process. */
#ifndef GB_CLI_PERFORM_PERFORM_H
#define GB_CLI_PERFORM_PERFORM_H

#include "cli/run/run.h"

/* What outlives the cases that a process performs. All zero at the start. */
typedef struct gb_performer {
    gb_session session;
    bool sets_pass_mode; /* a case asked for prints: GB_PASSES no longer counts */
} gb_performer;

void gb_cli_performer_free(gb_performer *performer);

/* Loads, rewrites and runs a case under each of its seeds, and fills in the result, which is all
 * zero at the start. `refusal`: why nothing may be measured now; NULL: it may. A failure is one of
 * the case, whose result says so; its message is gb_cli_failure(). The graph stays loaded. */
gb_status gb_cli_perform(gb_performer *performer, const gb_settings *settings, gb_case *test,
        const char *refusal, gb_case_result *result);
/* A further visit of a case that was checked, shown and saved before: it is measured only. */
gb_status gb_cli_perform_visit(gb_performer *performer, const gb_settings *settings, gb_case *test,
        gb_case_result *result);

#endif
