/* Comparison with stored results: --golden. */
#ifndef GB_CLI_RUN_GOLDEN_H
#define GB_CLI_RUN_GOLDEN_H

#include "cli/run/verify.h"

/* Does the comparison keep the tensor in the reference's f64 form? */
bool gb_cli_golden_holds(const gb_workload *work, size_t memory);
/* Do so many bytes suffice for what the reference has beside them? */
bool gb_cli_golden_fits(const gb_workload *work, double bytes);
/* Evaluates the graph in the reference, from its inputs. Compares the stored results in
 * settings->golden_dir with the outputs and with the reference. Needs at least one stored result.
 */
gb_status gb_cli_verify_golden(const gb_workload *work, gb_verdict *verdict);

#endif
