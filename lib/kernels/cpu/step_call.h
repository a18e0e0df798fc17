/* How a step runs on the host's threads. */
#ifndef GB_KERNELS_CPU_STEP_CALL_H
#define GB_KERNELS_CPU_STEP_CALL_H

#include "runtime/program.h"

#include <stdatomic.h>

/* The first failure of a run: of an op that the application defined. */
typedef struct gb_step_failure {
    atomic_int status; /* gb_status */
    const gb_op *op;   /* known when the run has ended */
} gb_step_failure;

struct gb_step_call {
    const void *params;
    void *const *buffers; /* in the order in which the step listed them */
    char *scratch; /* thread_scratch bytes of this thread, cache-line aligned; contents undefined */
    char *shared;  /* shared_scratch bytes of all threads */
    int phase, thread, n_threads;
    gb_step_failure *failure; /* of the run */
};

/* Threads that will run the program at most; sizes per-thread plans. */
int gb_program_threads(const gb_program *program);

#endif
