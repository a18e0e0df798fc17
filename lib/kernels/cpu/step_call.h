/* How a step runs on the host's threads. */
#ifndef GB_KERNELS_CPU_STEP_CALL_H
#define GB_KERNELS_CPU_STEP_CALL_H

#include "base/memory.h"
#include "runtime/program.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The first failure of a run: of an op that the application defined, or of a step whose memory is
 * checked. The rest is known when the run has ended. */
typedef struct gb_step_failure {
    atomic_int status; /* gb_status */
    const gb_op *op;
    const gb_step *step; /* that wrote behind `memory`; NULL: none did */
    const char *memory;
} gb_step_failure;

/* What is left of a thread's share of the items of a phase. */
typedef struct gb_item_share {
    _Alignas(GB_CACHE_LINE) atomic_uint_least64_t rest;
} gb_item_share;

struct gb_step_call {
    const void *params;
    void *const *buffers; /* in the order in which the step listed them */
    char *scratch; /* thread_scratch bytes of this thread, cache-line aligned; contents undefined */
    char *shared;  /* shared_scratch bytes of all threads */
    int phase, thread, n_threads;
    gb_step_failure *failure; /* of the run */
    gb_item_share *shares;    /* one for each thread */
    uint32_t turn;            /* counts the phases of a run */
};

/* The next of items 0..n-1 of this phase for this thread, *begin..*end-1, until it returns false. Each
 * thread begins with its share in order; who has done it takes of the others' from the end, so that
 * one that is slow or late is not waited for. Items of a phase must not depend on one another nor on
 * the thread, and all calls of a phase have the same n: results don't depend on timing. */
bool gb_take_items(const gb_step_call *call, int64_t n, int64_t *begin, int64_t *end);

/* Threads that will run the program at most; sizes per-thread plans. */
int gb_program_threads(const gb_program *program);

#endif
