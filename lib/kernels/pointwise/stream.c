/* When to write past the caches. */
#include "base/machine.h"
#include "base/parallel.h"
#include "kernels/plan/pointwise.h"

bool gb_streams(double bytes)
{
    return bytes >= 2.0 * (double)gb_machine_get()->l2_bytes * (double)gb_max_threads();
}
