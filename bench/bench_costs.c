/* What the kernels of each instruction set take, in cycles per element: the figures behind the rows
 * of lib/kernels/isa/costs.c.
 *
 * A cycle is one addition of a chain in which each needs the one before, timed beside every
 * measurement; of all rounds the median counts, since the machine's speed may change in between.
 * Usage: bench_costs [rounds] */
#include "base/machine.h"
#include "kernels/isa/kernels.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PANEL = GB_GEMM_PANEL, K = 192, ROWS = 16, WIDE = 512, TAPS = 9, CHAIN = 200000 };

typedef struct bench_data {
    const gb_kernels *kernels;
    float *a, *b, *c; /* a and c stay in L1, b fills half of L2 */
    int64_t *steps, *panel_steps;
    int64_t b_panels; /* of K rows */
} bench_data;

/* Runs a kernel often enough to be timed; how many elements (see each) it took in all. */
typedef double bench_fn(bench_data *data);

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double cycle_ns(void)
{
    uint64_t x = 1;
    double start = now_ns();
    for (int i = 0; i < CHAIN; i++) {
        x += 3;
        __asm__ volatile("" : "+r"(x)); /* each addition is done, one after the other */
    }
    return (now_ns() - start) / CHAIN;
}

/* Tiles over panels of B: the same one again and again, or all of them in turn. */
static double tiles(bench_data *data, int64_t panels, int64_t k)
{
    gb_gemm_limits limits = data->kernels->gemm_limits();
    int64_t calls = 4 * data->b_panels;
    for (int64_t i = 0; i < calls; i++) {
        gb_gemm_tile tile = {.a = data->a,
                .b = data->b + i % panels * K * PANEL,
                .a_row = K,
                .a_offsets = data->steps,
                .b_offsets = data->panel_steps,
                .k = k,
                .run = k,
                .c_out = data->c,
                .c_out_row = PANEL,
                .rows = limits.rows,
                .cols = limits.cols};
        data->kernels->gemm_tile(&tile);
    }
    return (double)calls;
}

/* Multiply-adds of tiles that have all they read in L1. */
static double multiply_adds(bench_data *data)
{
    gb_gemm_limits limits = data->kernels->gemm_limits();
    return tiles(data, 1, K) * limits.rows * limits.cols * K;
}

/* Elements of B that tiles read, in L1 and in L2: the difference is what L2 takes. */
static double read_near(bench_data *data)
{
    return tiles(data, 1, K) * data->kernels->gemm_limits().cols * K;
}

static double read_far(bench_data *data)
{
    return tiles(data, data->b_panels, K) * data->kernels->gemm_limits().cols * K;
}

/* Tiles of a single term: what a call takes. */
static double calls(bench_data *data)
{
    return tiles(data, 1, 1);
}

static double depthwise(bench_data *data)
{
    int64_t times = 4 * data->b_panels;
    gb_depthwise unit = {.src = data->a,
            .weights = data->c,
            .row = PANEL,
            .offsets = data->panel_steps,
            .weight_offsets = data->panel_steps,
            .taps = TAPS,
            .run = 1,
            .run_step = 1,
            .rows = ROWS,
            .cols = PANEL,
            .dst = data->b,
            .dst_row = PANEL};
    for (int64_t i = 0; i < times; i++)
        data->kernels->depthwise_channels(&unit);
    return (double)(times * TAPS * ROWS * PANEL);
}

/* Panels of a row-major matrix in L2. */
static double pack_rows(bench_data *data)
{
    int64_t rows = data->b_panels * K * PANEL / WIDE / 2;
    gb_gemm_pack pack = {.type = GB_F32,
            .src = data->b,
            .k = rows,
            .n = PANEL,
            .k_stride = WIDE,
            .n_stride = 1,
            .dst = data->b + data->b_panels * K * PANEL / 2,
            .panel_stride = rows * PANEL};
    for (int i = 0; i < WIDE / PANEL; i++, pack.src = (const float *)pack.src + PANEL)
        data->kernels->gemm_pack(&pack);
    return (double)(rows * WIDE);
}

/* The same of its transpose, as keys of an attention lie. */
static double pack_columns(bench_data *data)
{
    int64_t columns = data->b_panels * K / WIDE / 2 * PANEL;
    gb_gemm_pack pack = {.type = GB_F32,
            .src = data->b,
            .k = WIDE,
            .n = columns,
            .k_stride = 1,
            .n_stride = WIDE,
            .dst = data->b + data->b_panels * K * PANEL / 2,
            .panel_stride = (int64_t)WIDE * PANEL};
    data->kernels->gemm_pack(&pack);
    return (double)(columns * WIDE);
}

/* Rows of A, and lines of a source with padding around them. */
static double copy_rows(bench_data *data)
{
    int64_t rows = data->b_panels * K * PANEL / WIDE / 2;
    gb_gemm_copy copy = {.type = GB_F32,
            .src = data->b,
            .rows = rows,
            .cols = WIDE,
            .row_stride = WIDE,
            .col_stride = 1,
            .dst = data->b + data->b_panels * K * PANEL / 2,
            .dst_row = WIDE};
    data->kernels->gemm_copy(&copy);
    return (double)(rows * WIDE);
}

static const struct bench_row {
    const char *name;
    bench_fn *run;
} rows[] = {
        {"multiply-add of a tile", multiply_adds},
        {"element of B that a tile reads, in L1", read_near},
        {"element of B that a tile reads, in L2", read_far},
        {"call of a tile of one term", calls},
        {"multiply-add of a depthwise kernel", depthwise},
        {"element packed from rows", pack_rows},
        {"element packed from columns", pack_columns},
        {"element copied", copy_rows},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(bench_data *data, int n_rounds, double *cycles)
{
    for (int row = 0; row < N_ROWS; row++) {
        rows[row].run(data);
        for (int round = 0; round < n_rounds; round++) {
            double before = cycle_ns(), start = now_ns();
            double elements = rows[row].run(data), ns = now_ns() - start;
            cycles[round] = ns / elements / ((before + cycle_ns()) / 2);
        }
        qsort(cycles, (size_t)n_rounds, sizeof *cycles, by_value);
        printf("%-8s  %8.4f  (%.4f .. %.4f)  %s\n", gb_isa_name(data->kernels->isa),
                cycles[n_rounds / 2], cycles[n_rounds / 10], cycles[n_rounds - 1 - n_rounds / 10],
                rows[row].name);
    }
}

static void *numbers(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "bench_costs: out of memory\n");
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

int main(int argc, char **argv)
{
    long n_rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 51;
    if (n_rounds < 1 || n_rounds > 10000) {
        fprintf(stderr, "usage: bench_costs [rounds]\n");
        return 2;
    }
    bench_data data = {
            .b_panels = (int64_t)(gb_machine_get()->l2_bytes / 2 / (K * PANEL * sizeof(float)))};
    data.a = numbers(sizeof(float) * (ROWS + TAPS) * K);
    data.b = numbers(sizeof(float) * (size_t)data.b_panels * K * PANEL);
    data.c = numbers(sizeof(float) * ROWS * PANEL);
    data.steps = numbers(sizeof(int64_t) * K);
    data.panel_steps = numbers(sizeof(int64_t) * K);
    double *cycles = numbers(sizeof(double) * (size_t)n_rounds);
    for (int64_t k = 0; k < K; k++) {
        data.steps[k] = k;
        data.panel_steps[k] = k * PANEL;
    }
    printf("cycles: median of %ld rounds (tenths at both ends)\n", n_rounds);
    for (int isa = 0; isa < GB_ISA_COUNT; isa++) {
        data.kernels = gb_kernels_of((gb_isa)isa);
        if (data.kernels)
            measure(&data, (int)n_rounds, cycles);
        else
            printf("%-8s  not on this machine\n", gb_isa_name((gb_isa)isa));
    }
    void *all[] = {data.a, data.b, data.c, data.steps, data.panel_steps, cycles};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return 0;
}
