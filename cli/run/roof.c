/* The machine's roofs, measured. */
#include "cli/run/roof.h"

#include "cli/run/measure.h"
#include "cli/run/memory.h"
#include "cli/run/roof_loop.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

enum { ROUNDS = 5, LOOP_STEPS = 1 << 21 };
static const size_t stream_floats = (size_t)48 << 20; /* 192 MiB per array */

static gb_roof_loop *best_loop(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return gb_cli_roof_loop_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return gb_cli_roof_loop_avx2;
#endif
    return gb_cli_roof_loop_baseline;
}

static double measure_flops(void)
{
    gb_roof_loop *loop = best_loop();
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        float sink = 0;
        int threads = 1;
        int64_t start = gb_cli_now_ns();
#pragma omp parallel reduction(+ : sink)
        {
#pragma omp single
            threads = omp_get_num_threads();
            sink += loop(LOOP_STEPS);
        }
        double seconds = (double)(gb_cli_now_ns() - start) * 1e-9;
        double flops = 2.0 * GB_ROOF_LANES * LOOP_STEPS * threads / seconds;
        if (flops > best && sink >= 0)
            best = flops;
    }
    return best;
}

static double measure_bytes(void)
{
    float *a = gb_cli_memory_allocate(stream_floats * sizeof *a);
    float *b = gb_cli_memory_allocate(stream_floats * sizeof *b);
    double best = 0;
    if (a && b) {
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < stream_floats; i++)
            a[i] = b[i] = 1;
        for (int round = 0; round < ROUNDS; round++) {
            int64_t start = gb_cli_now_ns();
#pragma omp parallel for simd schedule(static)
            for (size_t i = 0; i < stream_floats; i++)
                a[i] += b[i];
            double seconds = (double)(gb_cli_now_ns() - start) * 1e-9;
            double bytes = 3.0 * (double)(stream_floats * sizeof *a) / seconds;
            if (bytes > best)
                best = bytes;
        }
    }
    free(a);
    free(b);
    return best;
}

void gb_cli_roof_measure(gb_roof *roof)
{
    roof->flops = measure_flops();
    roof->bytes = measure_bytes();
}
