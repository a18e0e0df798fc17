/* The times of a case: of each partition, and of all of them end to end. */
#ifndef GB_CLI_RUN_TAKE_TIMES_H
#define GB_CLI_RUN_TAKE_TIMES_H

#include "cli/run/verify.h"

/* One visit of what was executed before: the outputs' bits must stay those of then. */
gb_status gb_cli_take_times(gb_workload *work, gb_verdict *verdict);

#endif
