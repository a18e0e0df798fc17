/* A partition's in-place pairs: inputs that it may take from the memory of its outputs. */
#ifndef GB_CLI_RUN_INPLACE_H
#define GB_CLI_RUN_INPLACE_H

#include "cli/run/workload.h"

/* Lists the pairs of a compiled partition and makes their handles, once the memories exist. */
gb_status gb_cli_inplace_list(gb_workload *work, gb_work_part *part);
/* Copies the inputs of all pairs to their outputs' memory, where an execution takes and overwrites
 * them. */
gb_status gb_cli_inplace_fill(const gb_workload *work, const gb_work_part *part);
void gb_cli_inplace_free(gb_work_part *part);

#endif
