/* A loop of independent f32 multiply-adds, left to the compiler's vectoriser. */
#include "cli/run/roof_loop.h"

#define CONCAT_(a, b) a##b
#define CONCAT(a, b)  CONCAT_(a, b)

float CONCAT(gb_cli_roof_loop_, GB_ISA)(long steps)
{
    enum {
        LANES = GB_ROOF_WIDTH
    }; /* what the registers hold at once; the rest of the chains run one after another */
    float sum = 0;
    for (int part = 0; part < GB_ROOF_LANES / LANES; part++) {
        float x[LANES];
        for (int i = 0; i < LANES; i++)
            x[i] = (float)i;
        for (long step = 0; step < steps; step++) {
#pragma GCC unroll 256
            for (int i = 0; i < LANES; i++)
                x[i] = x[i] * 0.5F + 0.25F;
        }
        for (int i = 0; i < LANES; i++)
            sum += x[i];
    }
    return sum;
}
