/* All partitions of a case back to back, as an application runs them: on one stream, each reading
 * what the ones before have written, results of in-place pairs in the place of what nobody reads
 * afterwards, and tensors between partitions in memory that is free again. */
#ifndef GB_CLI_RUN_END_TO_END_H
#define GB_CLI_RUN_END_TO_END_H

#include "cli/run/verify.h"

/* All zero is closed. */
typedef struct gb_end_to_end {
    gb_workload *work;
    size_t *places;       /* per memory: the memory on whose bytes it lies; owned */
    bool *is_reused;      /* per memory: another tensor lies there later; owned */
    gb_tensor **tensors;  /* per memory: its description there, NULL where that is its own; owned */
    gb_tensor ***handles; /* per partition: inputs, then outputs; owned */
    uint64_t *hashes;     /* per memory, of what the partitions computed alone; owned */
} gb_end_to_end;

/* Of a workload that was executed: what its memories hold then is what is expected later. */
gb_status gb_cli_end_to_end_open(gb_workload *work, gb_end_to_end *whole);
/* Once; complete when it returns. */
gb_status gb_cli_end_to_end_execute(const gb_end_to_end *whole);
/* Makes ready for the first execution: poisons all that partitions make, and brings the inputs that an
 * execution overwrites to where they are overwritten. */
gb_status gb_cli_end_to_end_prepare(const gb_end_to_end *whole);
/* Behind executions: compares every tensor that is there at the end with what the partitions
 * computed alone; differences go to stderr and into the verdict. Where inputs were overwritten, this
 * gives them their data again and executes once more. */
gb_status gb_cli_end_to_end_check(const gb_end_to_end *whole, gb_verdict *verdict);
/* In any state; frees nothing of the workload. */
void gb_cli_end_to_end_close(gb_end_to_end *whole);

#endif
