/* Most of the input data: left to the compiler's vectoriser. */
#include "cli/run/fill_loop.h"

#include <math.h>

#define CONCAT_(a, b) a##b
#define CONCAT(a, b)  CONCAT_(a, b)

static void to_steps(const gb_fill_steps *steps, int64_t count, double *values)
{
    gb_fill_steps s = *steps;
    for (int64_t i = 0; i < count; i++) {
        double n = rint(values[i] / s.step);
        n = s.sides == 0 ? n : s.sides > 0 ? fabs(n) : -fabs(n);
        double x = s.centre + n;
        x = x > s.low ? x : s.low;
        values[i] = x < s.high ? x : s.high;
    }
}

void CONCAT(gb_cli_fill_loop_, GB_ISA)(
        uint64_t first, int64_t count, double size, const gb_fill_steps *steps, double *values)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = gb_cli_near_normal(gb_cli_mix(first + (uint64_t)i)) * size;
    if (steps)
        to_steps(steps, count, values);
}
