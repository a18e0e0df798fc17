/* When to write past the caches, and when to fetch ahead. */
#include "base/machine.h"
#include "base/parallel.h"
#include "kernels/plan/pointwise.h"

#include <math.h>

/* Results as large leave the caches before they are read: half of the last cache, which all share, but no more than
 * eight times, and no less than twice, what the threads have to themselves. */
static double near_bytes(void)
{
    const gb_machine *machine = gb_machine_get();
    double own = (double)machine->l2_bytes * (double)gb_max_threads();
    return fmax(2 * own, fmin(8 * own, (double)machine->l3_bytes / 2));
}

bool gb_is_far(double bytes)
{
    return bytes >= fmax(near_bytes(), (double)gb_machine_get()->l3_bytes / 2);
}

bool gb_streams(double bytes, bool read_soon)
{
    return read_soon ? gb_is_far(bytes) : bytes >= near_bytes();
}
