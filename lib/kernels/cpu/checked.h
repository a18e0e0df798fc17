/* Checked memory of a run on the host (base/guard.h): what a step must not rely on is poisoned
 * before it runs, and what it must not write is looked at when it has run.
 * */
#ifndef GB_KERNELS_CPU_CHECKED_H
#define GB_KERNELS_CPU_CHECKED_H

#include "runtime/program.h"

/* Scratch as gb_step_call has it. */
typedef struct gb_checked_scratch {
    char *shared, *threads;
    size_t shared_bytes, thread_bytes;
    int n_threads;
} gb_checked_scratch;

/* Before step `number` runs, on one thread: all of the scratch is poisoned, temporaries that it is
 * the first to write, and what lies behind them. */
void gb_checked_begin(const gb_program *program, uint32_t number, void *const *slots,
        const gb_checked_scratch *scratch);
/* When it has run: false where something was written behind a part of the memory, and what that was (static text). */
bool gb_checked_end(const gb_program *program, uint32_t number, void *const *slots,
        const gb_checked_scratch *scratch, const char **what);

#endif
