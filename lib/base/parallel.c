/* Threads: how many to use, and running a function on them. */
#include "base/parallel.h"

#include <omp.h>
#include <stdatomic.h>

/* Below this much work (operations or bytes) per thread a parallel region costs more than it saves.
 */
static const double work_per_thread = 1 << 17;

int gb_max_threads(void)
{
    return omp_in_parallel() ? 1 : omp_get_max_threads();
}

int gb_threads_for(double work)
{
    return gb_threads_within(gb_max_threads(), work);
}

int gb_threads_within(int max, double work)
{
    double useful = work / work_per_thread;
    if (useful >= max)
        return max;
    return useful < 2 ? 1 : (int)useful;
}

void gb_parallel(
        int n_threads, void (*body)(void *context, int thread, int n_threads), void *context)
{
    if (n_threads <= 1) {
        body(context, 0, 1);
        return;
    }
#pragma omp parallel num_threads(n_threads)
    {
        body(context, omp_get_thread_num(), omp_get_num_threads());
        atomic_thread_fence(memory_order_seq_cst);
    }
}

void gb_barrier(int n_threads)
{
    if (n_threads <= 1)
        return;
    /* also for stores past the caches, which x86 does not order with others */
    atomic_thread_fence(memory_order_seq_cst);
#pragma omp barrier
}
