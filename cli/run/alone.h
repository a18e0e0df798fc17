/* Functions that stand alone are held to the error that is documented for them. */
#ifndef GB_CLI_RUN_ALONE_H
#define GB_CLI_RUN_ALONE_H

#include "cli/run/workload.h"

#include <ref/ref.h>

/* Narrows the reference's bounds of tensor `id` in the store, the result of a partition of one
 * transcendental op on the CPU, to the documented error of the function (docs/numerics.md); others
 * stay as they are. The bounds of the reference hold for every correct implementation, these for
 * ours. */
void gb_cli_tighten(
        const gb_workload *work, const gb_work_part *part, const gb_ref_store *store, size_t id);

#endif
