/* The machine's roofs, measured. */
#include "cli/run/roof.h"

#include "cli/run/measure.h"
#include "cli/run/memory.h"
#include "cli/run/roof_loop.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

enum { ROUNDS = 5, LOOP_STEPS = 1 << 21, PROBE_STEPS = 1 << 16 };
static const size_t stream_floats = (size_t)48 << 20; /* 192 MiB per array */
static const size_t probe_floats = (size_t)8 << 20;   /* 32 MiB per array */

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

/* The best of some rounds, per second. */
static double compute_rate(int rounds, long steps)
{
    gb_roof_loop *loop = best_loop();
    double best = 0;
    for (int round = 0; round < rounds; round++) {
        float sink = 0;
        int threads = 1;
        int64_t start = gb_cli_now_ns();
#pragma omp parallel reduction(+ : sink)
        {
#pragma omp single
            threads = omp_get_num_threads();
            sink += loop(steps);
        }
        double seconds = (double)(gb_cli_now_ns() - start) * 1e-9;
        double flops = 2.0 * GB_ROOF_LANES * (double)steps * threads / seconds;
        if (flops > best && sink >= 0)
            best = flops;
    }
    return best;
}

/* a += b over `floats` elements, the best of some rounds in bytes per second. */
static double stream_rate(int rounds, float *a, const float *b, size_t floats)
{
    double best = 0;
    for (int round = 0; round < rounds; round++) {
        int64_t start = gb_cli_now_ns();
#pragma omp parallel for simd schedule(static)
        for (size_t i = 0; i < floats; i++)
            a[i] += b[i];
        double seconds = (double)(gb_cli_now_ns() - start) * 1e-9;
        double bytes = 3.0 * (double)(floats * sizeof *a) / seconds;
        if (bytes > best)
            best = bytes;
    }
    return best;
}

static void touch(float *a, float *b, size_t floats)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < floats; i++)
        a[i] = b[i] = 1;
}

static double measure_bytes(void)
{
    float *a = gb_cli_memory_allocate(stream_floats * sizeof *a);
    float *b = gb_cli_memory_allocate(stream_floats * sizeof *b);
    double best = 0;
    if (a && b) {
        touch(a, b, stream_floats);
        best = stream_rate(ROUNDS, a, b, stream_floats);
    }
    free(a);
    free(b);
    return best;
}

void gb_cli_roof_of(gb_engine_kind engine, size_t index, gb_roof *roof)
{
    *roof = (gb_roof){0};
#ifdef GB_HAS_OPENCL
    if (engine == GB_ENGINE_GPU) {
        gb_cli_roof_of_device(index, roof);
        return;
    }
#endif
    (void)engine, (void)index;
    roof->flops = compute_rate(ROUNDS, LOOP_STEPS);
    roof->bytes = measure_bytes();
}

/* ------------------------------------------------------------ probes */

static double best_probe;

double gb_cli_probe_compute(void)
{
    /* Short rounds, of which one passes between two preemptions. */
    double rate = compute_rate(3, PROBE_STEPS);
    best_probe = rate > best_probe ? rate : best_probe;
    return rate;
}

void gb_cli_probe_note(double best)
{
    best_probe = best > best_probe ? best : best_probe;
}

double gb_cli_probe_best(void)
{
    return best_probe;
}

double gb_cli_probe_memory(void)
{
    /* Kept: fresh pages would cost more than the probe. */
    static float *a, *b;
    if (!a || !b) {
        a = a ? a : gb_cli_memory_allocate(probe_floats * sizeof *a);
        b = b ? b : gb_cli_memory_allocate(probe_floats * sizeof *b);
        if (!a || !b)
            return 0;
        touch(a, b, probe_floats);
    }
    return stream_rate(1, a, b, probe_floats);
}
