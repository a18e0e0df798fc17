/* Threads: how many to use, and how a range is split. The split is by fixed chunks, so results
 * never depend on timing. */
#ifndef GB_BASE_PARALLEL_H
#define GB_BASE_PARALLEL_H

#include <stdint.h>

/* Threads a parallel region may use (OMP_NUM_THREADS, affinity). */
int gb_max_threads(void);
/* Threads worth using for `work` (in f32 operations or bytes moved): at most `max`, one for small
 * work. */
int gb_threads_within(int max, double work);
/* The same with at most gb_max_threads(). */
int gb_threads_for(double work);

/* The part of 0..n-1 that thread `thread` of `n_threads` takes: *begin..*end-1, contiguous, sizes
 * differ by at most one. */
static inline void gb_split(int64_t n, int thread, int n_threads, int64_t *begin, int64_t *end)
{
    int64_t base = n / n_threads, rest = n % n_threads;
    *begin = thread * base + (thread < rest ? thread : rest);
    *end = *begin + base + (thread < rest ? 1 : 0);
}

/* Calls body(context, thread, n_threads) on n_threads threads at once and waits for all. */
void gb_parallel(
        int n_threads, void (*body)(void *context, int thread, int n_threads), void *context);
/* Inside gb_parallel(): waits until all of its n_threads threads arrive. */
void gb_barrier(int n_threads);

#endif
