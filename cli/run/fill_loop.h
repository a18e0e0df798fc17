/* The random numbers of the inputs, and the loops that make most of them, built once per
 * instruction set. */
#ifndef GB_CLI_RUN_FILL_LOOP_H
#define GB_CLI_RUN_FILL_LOOP_H

#include <stdint.h>

/* splitmix64, a published mixing function: every bit of the argument reaches every bit of the
 * result. */
static inline uint64_t gb_cli_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

/* Sum of four uniform numbers: mean 0, variance 1, close to a normal distribution. Exact but for
 * the last product. */
static inline double gb_cli_near_normal(uint64_t bits)
{
    int32_t sum = (int32_t)(bits & 0xFFFF) + (int32_t)(bits >> 16 & 0xFFFF) +
                  (int32_t)(bits >> 32 & 0xFFFF) + (int32_t)(bits >> 48);
    return ((double)sum / 65536 - 2 + 2.0 / 65536) * 1.7320508075688772;
}

/* Where quantised values lie: `centre` stands for 0. */
typedef struct gb_fill_steps {
    double step, centre, low, high;
    int sides; /* 0: of both signs; else only those above, 1, or below, -1 */
} gb_fill_steps;

/* near_normal of mix(first), mix(first + 1), ..., times `size`. With `steps`, the nearest of them:
 * integers. The same values from each instruction set. */
typedef void gb_fill_loop(
        uint64_t first, int64_t count, double size, const gb_fill_steps *steps, double *values);

gb_fill_loop gb_cli_fill_loop_baseline, gb_cli_fill_loop_avx2, gb_cli_fill_loop_avx512;

#endif
