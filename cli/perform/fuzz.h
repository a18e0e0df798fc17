/* Random graphs, each checked in several ways. */
#ifndef GB_CLI_PERFORM_FUZZ_H
#define GB_CLI_PERFORM_FUZZ_H

#include "cli/options/settings.h"

typedef struct gb_fuzz {
    gb_settings settings; /* of all cases: engine, threads; owned by the caller */
    double seconds;       /* 0: no limit */
    uint64_t graphs;      /* at most; 0: no limit */
    uint64_t seed;
    int64_t elements;    /* of a tensor of a random graph, at most */
    const char *against; /* another engine that each graph runs on, too; NULL: none; lent */
    const char *folder;  /* of what is found; lent */
} gb_fuzz;

/* What came of it. */
typedef struct gb_fuzz_result {
    uint64_t graphs, cases;
    uint64_t near_misses;      /* graphs that are made from one of the project's */
    uint64_t refused;          /* the library declined to compile or run them */
    size_t findings, repeated; /* failures of a new sort, and of one that was found before */
    double seconds;
    int64_t signal; /* that ended it, or 0 */
} gb_fuzz_result;

/* Makes and checks graphs until a limit is met; findings are reduced, printed and written as folders
 * for graph-bench repro. Which graphs are made depends on the seed alone. A failure has a message. */
gb_status gb_cli_fuzz(const gb_fuzz *fuzz, gb_fuzz_result *result);

#endif
