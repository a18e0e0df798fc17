/* Smaller graphs that fail as a case does. */
#ifndef GB_CLI_PERFORM_REDUCE_H
#define GB_CLI_PERFORM_REDUCE_H

#include "cli/perform/parcel.h"

/* What gb_cli_reduce() fails by: a file or folder cannot be written, the case cannot be read, or the
 * graph alone, without the options that rewrite it, does not fail as the case does. */
typedef enum gb_reduce_fault { REDUCE_UNWRITTEN, REDUCE_UNREAD, REDUCE_NO_FAILURE } gb_reduce_fault;

/* What came of it. To be freed by gb_cli_reduced_free(). */
typedef struct gb_reduced {
    char *failure; /* owned; what the case fails with: "FAILED", "CRASHED (SIGSEGV)" */
    bool fails;    /* false: it does not, and nothing was reduced */
    size_t ops_before, ops, runs;
    char *arguments; /* owned; those that show the failure with the small graph */
    char *tensors;   /* owned; the folder of the data that the failure needs; NULL: any will do */
    gb_reduce_fault fault; /* where gb_cli_reduce() failed */
} gb_reduced;

/* Writes a graph to `path` that fails as the case does, the smallest that was found by leaving out
 * ops, making dims smaller, and leaving out types and attributes. Where it fails only with data of the
 * case (--load-tensors, the contents of a model), or ops only with what those in front of them made,
 * that lies in `path`.tensors. The same case gives the same graph, unless a signal ends the search
 * (gb_cli_trials_start()): then it is the smallest so far. All runs are a worker's. A failure has a
 * message. */
gb_status gb_cli_reduce(gb_errand *errand, const char *path, gb_reduced *reduced);
void gb_cli_reduced_free(gb_reduced *reduced);

#endif
