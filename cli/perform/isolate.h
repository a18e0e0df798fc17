/* Cases performed by a worker, a process of its own that is replaced when it dies. */
#ifndef GB_CLI_PERFORM_ISOLATE_H
#define GB_CLI_PERFORM_ISOLATE_H

#include "cli/perform/parcel.h"
#include "cli/run/stage.h"

#include <sys/types.h>

/* All zero has no worker yet. */
typedef struct gb_isolation {
    pid_t worker;    /* 0: none */
    int socket;      /* to the worker */
    gb_stage *stage; /* where the worker is; shared with it; owned */
    int stage_file;
    bool quiet;       /* what workers print is for nobody */
    gb_isa_limit isa; /* of the worker */
    bool measures;    /* the worker: its threads wait as OpenMP has them wait */
    int blamed;
    double memory_limit; /* bytes that a process may have; 0: not asked yet */
    char *engine;        /* owned; description of the worker's engine, or NULL */
} gb_isolation;

/* Does a case with these settings run in a worker? */
bool gb_cli_is_isolated(const gb_settings *settings);
/* As gb_cli_perform(), or with `visit` as gb_cli_perform_visit(), but in the worker, which is
 * started when there is none. A worker that dies, hangs or takes too much memory is a verdict. The
 * graph is not loaded here. */
gb_status gb_cli_isolated_perform(gb_isolation *isolation, const gb_settings *settings,
        const gb_case *test, const char *refusal, bool visit, gb_case_result *result);
/* Ends the worker. */
void gb_cli_isolation_free(gb_isolation *isolation);

#endif
