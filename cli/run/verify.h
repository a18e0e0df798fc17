/* Checking what a partition computed: against the reference, and against stored results. */
#ifndef GB_CLI_RUN_VERIFY_H
#define GB_CLI_RUN_VERIFY_H

#include "cli/run/compare.h"
#include "cli/run/workload.h"

/* The verdict on a whole case as it grows output by output. */
typedef struct gb_verdict {
    int64_t errors, total;
    bool failed;
    char *mistrust; /* owned; reason, NULL = none */
} gb_verdict;

/* Guards and gaps of every tensor the partition touches; errors go to stderr and into the verdict.
 */
void gb_cli_verify_guards(const gb_workload *work, const gb_work_part *part, gb_verdict *verdict);
/* Hashes of the partition's inputs, one for each; the caller's. NULL after a failure. */
uint64_t *gb_cli_hash_inputs(const gb_workload *work, const gb_work_part *part);
/* Has it left its inputs as they were? */
gb_status gb_cli_verify_inputs(const gb_workload *work, const gb_work_part *part,
        const uint64_t *hashes, gb_verdict *verdict);
/* Executes the partition once more, into memory that holds something else: the results must be the same. */
gb_status gb_cli_verify_again(gb_workload *work, const gb_work_part *part, gb_verdict *verdict);
/* Evaluates the partition's ops on its actual inputs in the reference and compares each output.
 * Points and norms of a failing output go to stdout. */
gb_status gb_cli_verify_part(
        const gb_workload *work, const gb_work_part *part, gb_verdict *verdict);
/* The partition's outputs must have the bits of `hash`. */
void gb_cli_verify_unchanged(
        gb_workload *work, const gb_work_part *part, uint64_t hash, gb_verdict *verdict);
/* Executes with each in-place pair in one buffer: the outputs must have the bits of `hash`. */
gb_status gb_cli_verify_shared(
        gb_workload *work, const gb_work_part *part, uint64_t hash, gb_verdict *verdict);
/* Takes one comparison, named `what` (static), into the verdict. */
void gb_cli_judge(const gb_workload *work, const gb_logical_tensor *tensor, const char *what,
        const gb_comparison *comparison, gb_verdict *verdict);
/* The tensor's actual contents, as exact values; and puts them into the store. */
gb_status gb_cli_read(const gb_workload *work, const gb_memory *memory, gb_ref_tensor *tensor);
gb_status gb_cli_reference_put(
        const gb_workload *work, gb_ref_store *store, const gb_memory *memory);

/* --load-tensors and --save-tensors. */
bool gb_cli_has_input_file(const gb_workload *work, const gb_memory *memory);
gb_status gb_cli_load_input(const gb_workload *work, gb_memory *memory);
gb_status gb_cli_save_tensors(const gb_workload *work);

#endif
