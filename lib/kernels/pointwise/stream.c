/* When to write past the caches, and when to fetch ahead. */
#include "base/machine.h"
#include "base/parallel.h"
#include "kernels/plan/pointwise.h"

#include <math.h>

bool gb_is_far(double bytes)
{
    const gb_machine *machine = gb_machine_get();
    double near = 2.0 * (double)machine->l2_bytes * (double)gb_max_threads();
    return bytes >= fmax(near, (double)machine->l3_bytes / 2);
}

bool gb_streams(double bytes, bool read_soon)
{
    double near = 2.0 * (double)gb_machine_get()->l2_bytes * (double)gb_max_threads();
    return read_soon ? gb_is_far(bytes) : bytes >= near;
}
