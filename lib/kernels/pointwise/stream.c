/* When to write past the caches. */
#include "base/cpu.h"
#include "base/parallel.h"
#include "kernels/plan/tile.h"

bool gb_streams(double bytes)
{
    return bytes >= 2.0 * (double)gb_cpu_l2_bytes() * (double)gb_max_threads();
}
