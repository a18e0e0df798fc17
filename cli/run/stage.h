/* Where the case is that this process runs, for a process that watches it: what crashed or hangs
 * cannot say so itself. */
#ifndef GB_CLI_RUN_STAGE_H
#define GB_CLI_RUN_STAGE_H

#include "cli/run/run.h"

typedef struct gb_stage {
    bool begun; /* set by the process that runs the case; whoever gives it one clears it */
    int phase;  /* gb_phase */
    int64_t seed;
    char what[240]; /* ops or kernels of the partition at work; "" */
} gb_stage;

/* From now on it is told in this place, which another process may read; NULL: nowhere. */
void gb_cli_stage_share(gb_stage *stage);
/* A case begins. */
void gb_cli_stage_begin(void);
/* `what` may be NULL. */
void gb_cli_stage_enter(gb_phase phase, const char *what);
/* The seed of the data from now on. */
void gb_cli_stage_set_seed(int64_t seed);
/* As the summary of a run names it: "compile". */
const char *gb_cli_phase_name(gb_phase phase);

#endif
