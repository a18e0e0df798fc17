/* The machine's roofs, measured. */
#include "cli/run/roof.h"

#include "cli/run/machine.h"
#include "cli/run/measure.h"
#include "cli/run/memory.h"
#include "cli/run/roof_dot.h"
#include "cli/run/roof_loop.h"

#include <graphbench/graphbench_tools.h>

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ROUNDS = 5,
    PRINTED_ROUNDS = 9,
    LOOP_STEPS = 1 << 21,
    DOT_STEPS = 1 << 17,
    PROBE_STEPS = 1 << 16,
    PROBE_PASSES = 512,
    ALIGNED = 512, /* floats: parts of threads are a multiple */
    /* Floats between the parts of threads. Where they lie side by side, one core prefetches the pages
     * that the other writes: L1 gives half (measured on a Xeon with AMX; 64 KiB are enough). */
    GAP = 16384
};
static const size_t probe_floats = (size_t)8 << 20; /* 32 MiB per array */

/* Loops of the widest vectors. */
typedef struct roof_loops {
    const char *name;
    gb_roof_loop *compute;
    gb_roof_sweep *sweep;
} roof_loops;

static roof_loops best_loops(void)
{
    static const roof_loops levels[] = {
        [GB_LOOPS_BASELINE] = {"baseline", gb_cli_roof_loop_baseline, gb_cli_roof_sweep_baseline},
#if defined(__x86_64__)
        [GB_LOOPS_AVX2] = {"avx2", gb_cli_roof_loop_avx2, gb_cli_roof_sweep_avx2},
        [GB_LOOPS_AVX512] = {"avx512", gb_cli_roof_loop_avx512, gb_cli_roof_sweep_avx512},
#endif
    };
    return levels[gb_cli_loop_level()];
}

/* Of some rounds, per second. */
typedef struct rate {
    double best, median;
    double even; /* the best if all threads were as slow as the slowest; 0: not known */
} rate;

static int compare_rates(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static rate summarize(int rounds, double *rates)
{
    qsort(rates, (size_t)rounds, sizeof *rates, compare_rates);
    return (rate){.best = rates[rounds - 1], .median = rates[rounds / 2]};
}

/* ------------------------------------------------------------ arithmetic */

/* `dot` NULL: f32 multiply-adds. Each thread looks at the clock by itself: how long sleeping ones
 * take to wake is no matter of arithmetic. */
static rate compute_rate(int threads, int rounds, long steps, const gb_roof_dot *dot)
{
    gb_roof_loop *loop = best_loops().compute;
    double rates[PRINTED_ROUNDS], even = 0;
    double operations = dot ? dot->operations * dot->chains : 2.0 * GB_ROOF_LANES;
    for (int round = 0; round < rounds; round++) {
        double all = 0, slowest = INFINITY;
#pragma omp parallel reduction(+ : all) reduction(min : slowest) num_threads(threads)
        {
            float sink = 0;
#pragma omp barrier
            int64_t start = gb_cli_now_ns();
            if (dot)
                dot->run(steps);
            else
                sink = loop(steps);
            double seconds = (double)(gb_cli_now_ns() - start) * 1e-9;
            slowest = sink >= 0 ? operations * (double)steps / seconds : 0;
            all += slowest;
        }
        rates[round] = all;
        even = fmax(even, threads * slowest);
    }
    rate found = summarize(rounds, rates);
    found.even = even;
    return found;
}

/* ------------------------------------------------------------ memory */

static const struct {
    const char *name;
    int arrays; /* that are moved in a sweep: a, b, a again */
} patterns[GB_ROOF_PATTERNS] = {
        [GB_ROOF_READ_1] = {"read", 1},
        [GB_ROOF_READ_2] = {"read, 2 streams", 1},
        [GB_ROOF_READ_4] = {"read, 4 streams", 1},
        [GB_ROOF_COPY] = {"copy", 2},
        [GB_ROOF_COPY_STREAMED] = {"copy past caches", 2},
        [GB_ROOF_UPDATE] = {"a += b", 3},
};

static const char *const level_names[GB_ROOF_LEVELS] = {"L1", "L2", "L3", "memory"};

typedef struct arrays {
    float *a, *b;
    size_t floats; /* of each */
} arrays;

/* Bytes of the cache of this level that a core reaches; 0: none, or not told. */
static double cache_bytes(gb_roof_level level)
{
    size_t bytes[GB_ROOF_MEMORY];
    gb_get_caches(bytes);
    return (double)bytes[level];
}

/* Bytes of cache that the cores of so many threads reach together. An L3 may be shared by all cores
 * of the machine or by some; what sysconf() says may be the sum. */
static double reached_bytes(gb_roof_level level, int threads)
{
    double one = cache_bytes(level), all = one * threads;
    if (level < GB_ROOF_L3)
        return all;
    return fmin(all, fmax(one, (double)sysconf(_SC_LEVEL3_CACHE_SIZE)));
}

/* Floats of each array for a thread: both fill half of a cache, or are twice as large as the last
 * one. */
static size_t floats_of(gb_roof_level level, int threads)
{
    const double least = 192 << 20, most = 512 << 20;
    double bytes = level < GB_ROOF_MEMORY ? cache_bytes(level) / 4
                                          : 2 * reached_bytes(GB_ROOF_L3, threads);
    if (level == GB_ROOF_MEMORY)
        bytes = bytes < least ? least : bytes > most ? most : bytes;
    if (level >= GB_ROOF_L3)
        bytes /= threads;
    return (size_t)(bytes / sizeof(float)) / ALIGNED * ALIGNED;
}

/* Each thread goes over a part of its own, `passes` times in a round. */
static rate sweep_rate(const arrays *m, int threads, int rounds, gb_roof_pattern pattern,
        size_t floats, int64_t passes)
{
    gb_roof_sweep *sweep = best_loops().sweep;
    double rates[PRINTED_ROUNDS];
    for (int round = 0; round < rounds; round++) {
        float sink = 0;
        int running = 1;
        int64_t start = gb_cli_now_ns();
#pragma omp parallel reduction(+ : sink) num_threads(threads)
        {
#pragma omp single
            running = omp_get_num_threads();
            size_t first = (size_t)omp_get_thread_num() * (floats + GAP);
            for (int64_t pass = 0; pass < passes; pass++)
                sink += sweep(pattern, m->a + first, m->b + first, floats);
        }
        double seconds = (double)(gb_cli_now_ns() - start) * 1e-9;
        double bytes = (double)patterns[pattern].arrays * (double)floats * sizeof(float);
        rates[round] = sink >= 0 ? bytes * (double)passes * running / seconds : 0;
    }
    return summarize(rounds, rates);
}

static rate level_rate(
        const arrays *m, int threads, int rounds, gb_roof_level level, gb_roof_pattern pattern)
{
    const double sample = 8 << 20; /* bytes of a thread in a round */
    size_t floats = floats_of(level, threads);
    if (floats == 0 || (floats + GAP) * (size_t)threads > m->floats)
        return (rate){0};
    int64_t passes = (int64_t)(sample / ((double)floats * sizeof(float)));
    return sweep_rate(m, threads, rounds, pattern, floats, passes < 1 ? 1 : passes);
}

static void touch(float *a, float *b, size_t floats)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < floats; i++)
        a[i] = b[i] = 1;
}

static arrays allocate(size_t floats)
{
    arrays m = {gb_cli_memory_allocate(floats * sizeof(float)),
            gb_cli_memory_allocate(floats * sizeof(float)), floats};
    if (m.a && m.b) {
        touch(m.a, m.b, floats);
        return m;
    }
    free(m.a);
    free(m.b);
    return (arrays){0};
}

static void release(arrays *m)
{
    free(m->a);
    free(m->b);
}

/* ------------------------------------------------------------ roofs */

double gb_cli_roof_bandwidth(const gb_roof *roof, double bytes)
{
    for (int level = 0; level < GB_ROOF_MEMORY; level++)
        if (roof->cache_bytes[level] > 0 && bytes <= roof->cache_size[level])
            return roof->cache_bytes[level];
    return roof->bytes;
}

static void raise_to(double *roof, double reached)
{
    *roof = reached > *roof ? reached : *roof;
}

/* A working set of twice the size may still come from a cache in part. */
static void measure_levels(int threads, gb_roof *roof)
{
    arrays m = allocate((floats_of(GB_ROOF_MEMORY, threads) + GAP) * (size_t)threads);
    for (int level = 0; level < GB_ROOF_LEVELS && m.a; level++)
        for (int pattern = 0; pattern < GB_ROOF_PATTERNS; pattern++) {
            /* A slower level is no faster than a quicker one: what was seen there counts, too. */
            double best =
                    level_rate(&m, threads, ROUNDS, (gb_roof_level)level, (gb_roof_pattern)pattern)
                            .best;
            for (int l = 0; l <= level && l < GB_ROOF_MEMORY; l++)
                if (cache_bytes((gb_roof_level)l) > 0)
                    raise_to(&roof->cache_bytes[l], best);
            if (level == GB_ROOF_MEMORY)
                raise_to(&roof->bytes, best);
        }
    for (int level = 0; level < GB_ROOF_MEMORY; level++)
        roof->cache_size[level] = 2 * reached_bytes((gb_roof_level)level, threads);
    release(&m);
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
    int threads = omp_get_max_threads();
    roof->flops = compute_rate(threads, ROUNDS, LOOP_STEPS, NULL).best;
    const gb_roof_dot *dot;
    for (unsigned i = 0; (dot = gb_cli_roof_dot_at(i)); i++) {
        double *peak = dot->type[0] == 'i'   ? &roof->int8_operations
                       : dot->type[0] == 'b' ? &roof->bf16_flops
                                             : &roof->half_flops;
        *peak = compute_rate(threads, ROUNDS, DOT_STEPS, dot).best;
    }
    measure_levels(threads, roof);
}

/* ------------------------------------------------------------ printing */

static void print_rates(const char *what, const char *how, rate one, rate all)
{
    printf("%-7s %-22s %9.1f %9.1f %9.1f %9.1f\n", what, how, one.best * 1e-9, one.median * 1e-9,
            all.best * 1e-9, all.median * 1e-9);
}

static void print_compute(int threads)
{
    printf("%-30s %9s %9s %9s %9s\n", "GFLOP/s (GOP/s)", "1 thread", "median", "all", "median");
    char name[32];
    snprintf(name, sizeof name, "multiply-add, %s", best_loops().name);
    print_rates("f32", name, compute_rate(1, PRINTED_ROUNDS, LOOP_STEPS / 8, NULL),
            compute_rate(threads, PRINTED_ROUNDS, LOOP_STEPS / 8, NULL));
    const gb_roof_dot *dot;
    for (unsigned i = 0; (dot = gb_cli_roof_dot_at(i)); i++)
        print_rates(dot->type, dot->name, compute_rate(1, PRINTED_ROUNDS, DOT_STEPS, dot),
                compute_rate(threads, PRINTED_ROUNDS, DOT_STEPS, dot));
}

void gb_cli_roof_print(void)
{
    int threads = omp_get_max_threads();
    printf("%d threads\n", threads);
    print_compute(threads);
    printf("\n%-30s %9s %9s %9s %9s\n", "GB/s", "1 thread", "median", "all", "median");
    /* The arrays of one thread are the larger ones. */
    arrays m = allocate(floats_of(GB_ROOF_MEMORY, 1) + GAP * (size_t)threads);
    for (int level = 0; level < GB_ROOF_LEVELS && m.a; level++) {
        gb_roof_level at = (gb_roof_level)level;
        int rounds = at == GB_ROOF_MEMORY ? ROUNDS : PRINTED_ROUNDS;
        for (int pattern = 0; pattern < GB_ROOF_PATTERNS && floats_of(at, threads); pattern++)
            print_rates(level_names[level], patterns[pattern].name,
                    level_rate(&m, 1, rounds, at, (gb_roof_pattern)pattern),
                    level_rate(&m, threads, rounds, at, (gb_roof_pattern)pattern));
    }
    release(&m);
}

void gb_cli_roof_print_device(const gb_roof *roof)
{
    const struct {
        const char *what, *unit;
        double rate;
    } rows[] = {{"f32, multiply-adds", "GFLOP/s", roof->flops},
            {"f16, multiply-adds", "GFLOP/s", roof->half_flops},
            {"int8, dot products", "GOP/s", roof->int8_operations},
            {"memory", "GB/s", roof->bytes}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].rate > 0)
            printf("%-20s %9.1f %s\n", rows[i].what, rows[i].rate * 1e-9, rows[i].unit);
        else
            printf("%-20s      none\n", rows[i].what);
}

/* ------------------------------------------------------------ probes */

static gb_rates best_probe;

/* Each thread in 8 KiB of its own. */
static double l1_rate(int threads, int rounds, int passes)
{
    enum { FLOATS = 1024, DISTANCE = FLOATS + GAP };
    static arrays m;
    if (m.floats < (size_t)threads * DISTANCE) {
        release(&m);
        m = allocate((size_t)threads * DISTANCE);
    }
    if (!m.a)
        return 0;
    gb_roof_sweep *sweep = best_loops().sweep;
    double even = 0;
    for (int round = 0; round < rounds; round++) {
        double slowest = INFINITY;
#pragma omp parallel reduction(min : slowest) num_threads(threads)
        {
            size_t first = (size_t)omp_get_thread_num() * DISTANCE;
#pragma omp barrier
            int64_t start = gb_cli_now_ns();
            for (int pass = 0; pass < passes; pass++)
                sweep(GB_ROOF_UPDATE, m.a + first, m.b + first, FLOATS);
            double seconds = (double)(gb_cli_now_ns() - start) * 1e-9;
            slowest = 3.0 * FLOATS * sizeof(float) * passes / seconds;
        }
        even = fmax(even, threads * slowest);
    }
    return even;
}

/* All threads meet again and again; they give up when one is away for long. 0: there is one thread, or
 * there are more than processors. */
static double handshake_rate(int threads, int rounds)
{
    enum { MEETINGS = 100, PATIENCE = 1 << 14 };
    static _Alignas(128) atomic_long arrived;
    double best = 0;
    if (threads < 2 || threads > omp_get_num_procs())
        return 0;
    for (int round = 0; round < rounds; round++) {
        double reached = INFINITY;
        atomic_store(&arrived, 0);
#pragma omp parallel reduction(min : reached) num_threads(threads)
        {
            int met = 0;
#pragma omp barrier
            int64_t start = gb_cli_now_ns();
            for (bool all = true; all && met < MEETINGS; met += all) {
                int patience = PATIENCE;
                atomic_fetch_add(&arrived, 1);
                do
                    all = atomic_load(&arrived) >= (met + 1L) * threads;
                while (!all && --patience);
            }
            reached = fmax(met, 1) / ((double)(gb_cli_now_ns() - start) * 1e-9);
        }
        best = fmax(best, reached);
    }
    return best;
}

/* Of the slowest thread. */
static double clock_rate(int threads, int rounds)
{
    enum { STEPS = 1 << 13 };
    double best = 0;
    for (int round = 0; round < rounds; round++) {
        double slowest = INFINITY;
#pragma omp parallel reduction(min : slowest) num_threads(threads)
        slowest = gb_cli_chain_rate(STEPS);
        best = fmax(best, slowest);
    }
    return best;
}

gb_rates gb_cli_probe_core(void)
{
    /* Short rounds, of which one passes between two preemptions. */
    int threads = omp_get_max_threads();
    gb_rates reached = {compute_rate(threads, 3, PROBE_STEPS, NULL).even,
            l1_rate(threads, 3, PROBE_PASSES), handshake_rate(threads, 3), clock_rate(threads, 3)};
    gb_cli_probe_note(reached);
    return reached;
}

void gb_cli_probe_note(gb_rates reached)
{
    /* Threads that share a core meet fastest, and compute at half the rate: no measure for others. */
    if (gb_cli_rates_state(reached, best_probe) & STATE_SLOW_ARITHMETIC)
        reached.handshakes = 0;
    else if (gb_cli_rates_state(best_probe, reached) & STATE_SLOW_ARITHMETIC)
        best_probe.handshakes = 0;
    best_probe = gb_cli_rates_max(best_probe, reached);
}

gb_rates gb_cli_probe_best(void)
{
    return best_probe;
}

double gb_cli_probe_memory(void)
{
    /* Kept: fresh pages would cost more than the probe. */
    static arrays m;
    if (!m.a)
        m = allocate(probe_floats + (size_t)omp_get_max_threads() * GAP);
    if (!m.a)
        return 0;
    int threads = omp_get_max_threads();
    size_t part = probe_floats / (size_t)threads / ALIGNED * ALIGNED;
    return sweep_rate(&m, threads, 1, GB_ROOF_UPDATE, part, 1).best;
}
