/* When to write past the caches, and when to fetch ahead. */
#include "base/machine.h"
#include "base/parallel.h"
#include "kernels/plan/pointwise.h"

#include <math.h>

static double near_bytes(void)
{
    return 2.0 * (double)gb_machine_get()->l2_bytes * (double)gb_max_threads();
}

bool gb_is_far(double bytes)
{
    return bytes >= fmax(near_bytes(), (double)gb_machine_get()->l3_bytes / 2);
}

bool gb_streams(double bytes, bool read_soon)
{
    return read_soon ? gb_is_far(bytes) : bytes >= near_bytes();
}
