/* Cases performed by a worker, a process of its own that is replaced when it dies. */
#ifndef GB_CLI_PERFORM_ISOLATE_H
#define GB_CLI_PERFORM_ISOLATE_H

#include "cli/perform/parcel.h"
#include "cli/run/stage.h"

#include <sys/types.h>

/* Where what workers print goes. */
typedef enum gb_worker_output {
    OUTPUT_SHOWN, /* to where this process prints */
    OUTPUT_QUIET, /* nowhere */
    OUTPUT_KEPT   /* into `printed`, for who takes it */
} gb_worker_output;

/* Standard output and standard error; workers at the same time. */
enum { WORKER_STREAMS = 2, MOST_WORKERS = 64 };

/* All zero has no worker yet. */
typedef struct gb_isolation {
    pid_t worker; /* 0: none */
    bool dead;    /* it has ended, in this way: */
    int ended;
    int socket;      /* to the worker */
    gb_stage *stage; /* where the worker is; shared with it; owned */
    int stage_file;
    gb_worker_output output;
    int printed[WORKER_STREAMS]; /* files, of OUTPUT_KEPT */
    gb_isa_limit isa;            /* of the worker */
    bool measures;               /* the worker: its threads wait as OpenMP has them wait */
    int blamed;
    double memory_limit; /* bytes that a process may have; 0: not asked yet */
    char *engine;        /* owned; description of the worker's engine, or NULL */
    /* Of the case that the worker has: */
    bool busy;
    gb_parcel letter; /* owned */
    double most_seconds, most_bytes;
    int64_t begin_ns;
    bool sent_again; /* the worker before had ended while it had nothing to do */
    bool judged;     /* it failed, as this says, and is looked into: */
    gb_outcome verdict;
    gb_case_result verdict_result; /* owned */
} gb_isolation;

/* Does a case with these settings run in a worker? */
bool gb_cli_is_isolated(const gb_settings *settings);
/* As gb_cli_perform(), or with `visit` as gb_cli_perform_visit(), but in the worker, which is
 * started when there is none. A worker that dies, hangs or takes too much memory is a verdict. The
 * graph is not loaded here. */
gb_status gb_cli_isolated_perform(gb_isolation *isolation, const gb_settings *settings,
        const gb_case *test, const char *refusal, bool visit, gb_case_result *result);

/* The parts of it, for several workers at a time. Gives the worker the case; on failure nobody has
 * it, as `result` says. */
gb_status gb_cli_isolated_start(gb_isolation *isolation, const gb_settings *settings,
        const gb_case *test, const char *refusal, bool visit, gb_case_result *result);
/* Waits until one of the busy workers answers or dies, or for a short while. */
void gb_cli_isolated_wait(const gb_isolation *isolations, size_t n);
/* Has the worker done with its case, in one way or another? Then `result` says so, and *status is
 * what gb_cli_isolated_perform() returns. */
bool gb_cli_isolated_ended(gb_isolation *isolation, gb_case_result *result, gb_status *status);
/* Ends the worker, whatever it is at: nobody has its case then. */
void gb_cli_isolated_stop(gb_isolation *isolation);
/* What workers printed on standard output (0) or standard error (1) since it was taken last; the
 * caller's. OUTPUT_KEPT only. */
char *gb_cli_isolated_printed(gb_isolation *isolation, int stream);
/* Bytes that the worker has in memory. */
double gb_cli_isolated_bytes(const gb_isolation *isolation);

/* Ends the worker, when it has done with its case. */
void gb_cli_isolation_free(gb_isolation *isolation);

#endif
