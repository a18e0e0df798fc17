/* When to write past the caches. */
#include "base/machine.h"
#include "base/parallel.h"
#include "kernels/plan/pointwise.h"

#include <math.h>

bool gb_streams(double bytes, bool read_soon)
{
    const gb_machine *machine = gb_machine_get();
    double most = 2.0 * (double)machine->l2_bytes * (double)gb_max_threads();
    return bytes >= (read_soon ? fmax(most, (double)machine->l3_bytes / 2) : most);
}
