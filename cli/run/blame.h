/* What a failed case is due to: an op that is wrong alone, a pass of the compiler, a pattern. */
#ifndef GB_CLI_RUN_BLAME_H
#define GB_CLI_RUN_BLAME_H

#include "cli/run/verify.h"
#include "cli/run/workload.h"

/* Partitions, compiles, fills, executes and checks a workload of which session, settings, test,
 * graph and result are set. *go_on is false when it comes to no verdict, which is in the result. */
gb_status gb_cli_attempt(gb_workload *work, gb_verdict *verdict, bool *go_on);

/* After a failure in mode C: runs the case op by op, then with each pass left out, and prints a line
 * that begins with [BLAME]. Looks into the first failures of a session only, as each takes several
 * runs. --blame=false switches it off. */
void gb_cli_blame(const gb_workload *failed);

#endif
