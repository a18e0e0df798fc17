/* Exit statuses of graph-bench and its subcommands. */
#ifndef GB_CLI_OPTIONS_EXIT_STATUS_H
#define GB_CLI_OPTIONS_EXIT_STATUS_H

/* A signal that ended the run gives 128 + its number. */
enum {
    EXIT_GOOD = 0,
    EXIT_CASE_FAILED = 1, /* of merge: something is missing or contradictory */
    EXIT_USAGE = 2,
    EXIT_UNWRITTEN = 3
};

#endif
