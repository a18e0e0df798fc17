/* Cases that workers perform beside each other: they start in their order, and are reported in it. */
#ifndef GB_CLI_APP_JOBS_H
#define GB_CLI_APP_JOBS_H

#include "cli/perform/isolate.h"
#include "cli/run/visits.h"

/* Cases that are not reported yet. */
enum { JOB_LIMIT = 256 };

typedef enum gb_job_state {
    JOB_WAITS, /* until no other case runs: it took memory that others needed */
    JOB_RUNS,
    JOB_ENDED
} gb_job_state;

typedef struct gb_job {
    gb_job_state state;
    size_t worker;                   /* of JOB_RUNS */
    int blamed;                      /* failures looked into when it was given to the worker */
    gb_waiting_case *of;             /* owned */
    char *place;                     /* owned; of the case */
    gb_text printed[WORKER_STREAMS]; /* what is to be printed in front of its verdict */
} gb_job;

/* All zero is empty. */
typedef struct gb_jobs {
    gb_isolation workers[MOST_WORKERS];
    size_t n_workers; /* used so far */
    gb_job queue[JOB_LIMIT];
    size_t n;
    int blamed;          /* failures that were looked into */
    double memory_limit; /* bytes that the process may have; 0: not asked yet */
} gb_jobs;

#endif
