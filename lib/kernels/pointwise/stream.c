/* When to write past the caches, and when to fetch ahead. */
#include "base/machine.h"
#include "base/parallel.h"
#include "kernels/plan/pointwise.h"

#include <math.h>

/* Results as large leave the caches before they are read: half of the last cache, which all share, but no more than
 * what the threads may count on there: eight times what they have to themselves, or 8 MiB each if that is more; and no
 * less than twice what they have to themselves. (Zen 3, 512 KiB of L2 and 32 MiB of L3: results that 16-bit values,
 * broadcasts or joined tensors make take 1.2 to 3.3 times as long past the caches up to 6 MB with one thread and 15 MB
 * with two; one thread's 12 MB take as long either way.) */
static double near_bytes(void)
{
    const double thread_share = 8 << 20;
    const gb_machine *machine = gb_machine_get();
    double threads = (double)gb_max_threads(), own = (double)machine->l2_bytes * threads;
    double share = fmax(8 * own, thread_share * threads);
    return fmax(2 * own, fmin(share, (double)machine->l3_bytes / 2));
}

bool gb_is_far(double bytes)
{
    return bytes >= fmax(near_bytes(), (double)gb_machine_get()->l3_bytes / 2);
}

bool gb_streams(double bytes, bool read_soon)
{
    return read_soon ? gb_is_far(bytes) : bytes >= near_bytes();
}
