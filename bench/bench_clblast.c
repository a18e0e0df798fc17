/* MatMul on an OpenCL device next to CLBlast on the same device.
 *
 * Rounds are interleaved: ours and CLBlast take turns on one queue. Of each the best round counts,
 * by the clock and, since other programs disturb that, by the time of the process on all cores.
 * Usage: bench_clblast [rounds [device index]] */
#include <clblast_c.h>
#include <graphbench/graphbench.h>
#include <graphbench/graphbench_ocl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* C = A B, `batch` times. */
typedef struct bench_case {
    const char *name;
    int64_t batch, rows, columns, k;
    bool transpose_b;
} bench_case;

static const bench_case cases[] = {
        {"square 1024", 1, 1024, 1024, 1024, false},
        {"square 512, B transposed", 1, 512, 512, 512, true},
        {"square 1000", 1, 1000, 1000, 1000, false},
        {"tall 8192 x 128, k 256", 1, 8192, 128, 256, false},
        {"tall sums 64 x 64, k 16384", 1, 64, 64, 16384, false},
        {"32 of 128 x 128, k 64", 32, 128, 128, 64, false},
        {"16 of 256 x 64, k 256, B transposed", 16, 256, 64, 256, true},
};

typedef struct device {
    gb_engine *engine;
    gb_stream *stream;
    cl_context context;
    cl_command_queue queue;
} device;

typedef struct run {
    const bench_case *c;
    gb_compiled_partition *compiled;
    gb_tensor *tensors[3]; /* A, B, C */
    cl_mem memory[4];      /* A, B, C of ours, C of CLBlast's */
} run;

typedef struct times {
    double clock, process; /* seconds */
} times;

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(gb_status status)
{
    if (status == GB_SUCCESS)
        return;
    fprintf(stderr, "bench_clblast: %s: %s\n", gb_status_name(status), gb_last_error());
    exit(1);
}

static void check_cl(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "bench_clblast: %s: error %d\n", what, error);
    exit(1);
}

static int64_t count_of(const bench_case *c, int which)
{
    const int64_t counts[] = {c->rows * c->k, c->k * c->columns, c->rows * c->columns};
    return c->batch * counts[which < 3 ? which : 2];
}

static cl_mem create_memory(const device *d, int64_t count)
{
    float *numbers = malloc((size_t)count * sizeof *numbers);
    cl_int error;
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)(i % 17 - 8) / 8;
    cl_mem memory = clCreateBuffer(
            d->context, CL_MEM_COPY_HOST_PTR, (size_t)count * sizeof *numbers, numbers, &error);
    check_cl(error, "creating a buffer");
    free(numbers);
    return memory;
}

static run run_create(const bench_case *c, const device *d)
{
    run r = {.c = c};
    gb_op *op;
    gb_graph *graph;
    gb_partition *partition;
    gb_logical_tensor tensors[3];
    const gb_logical_tensor *ports[] = {&tensors[0], &tensors[1], &tensors[2]};
    const int64_t dims[3][3] = {{c->batch, c->rows, c->k},
            {c->batch, c->transpose_b ? c->columns : c->k, c->transpose_b ? c->k : c->columns},
            {c->batch, c->rows, c->columns}};
    uint8_t transpose = c->transpose_b;
    for (int i = 0; i < 3; i++)
        check(gb_logical_tensor_init_with_dims(&tensors[i], (size_t)i, GB_F32, 3, dims[i],
                GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    check(gb_op_create(&op, 1, GB_OP_MATMUL, "matmul"));
    check(gb_op_set_attr_bool(op, GB_ATTR_TRANSPOSE_B, 1, &transpose));
    check(gb_op_add_input(op, ports[0]));
    check(gb_op_add_input(op, ports[1]));
    check(gb_op_add_output(op, ports[2]));
    check(gb_graph_create(&graph, GB_ENGINE_GPU));
    check(gb_graph_add_op(graph, op));
    check(gb_graph_finalize(graph));
    check(gb_graph_filter(graph, GB_POLICY_FUSION));
    check(gb_graph_get_partitions(graph, 1, &partition, NULL));
    check(gb_partition_compile(partition, &r.compiled, 2, ports, 1, ports + 2, d->engine));
    for (int i = 0; i < 4; i++)
        r.memory[i] = create_memory(d, count_of(c, i));
    for (int i = 0; i < 3; i++)
        check(gb_ocl_tensor_create(
                &r.tensors[i], ports[i], d->engine, GB_OCL_MEMORY_BUFFER, r.memory[i]));
    gb_partition_destroy(partition);
    gb_graph_destroy(graph);
    gb_op_destroy(op);
    return r;
}

static void run_ours(const run *r, device *d)
{
    const gb_tensor *ins[] = {r->tensors[0], r->tensors[1]};
    gb_tensor *outs[] = {r->tensors[2]};
    check(gb_compiled_partition_execute(r->compiled, d->stream, 2, ins, 1, outs, NULL));
    check(gb_stream_wait(d->stream));
}

static void run_clblast(const run *r, device *d)
{
    const bench_case *c = r->c;
    size_t rows = (size_t)c->rows, columns = (size_t)c->columns, k = (size_t)c->k;
    CLBlastTranspose turned = c->transpose_b ? CLBlastTransposeYes : CLBlastTransposeNo;
    size_t b_row = c->transpose_b ? k : columns;
    check_cl(CLBlastSgemmStridedBatched(CLBlastLayoutRowMajor, CLBlastTransposeNo, turned, rows,
                     columns, k, 1, r->memory[0], 0, k, rows * k, r->memory[1], 0, b_row,
                     k * columns, 0, r->memory[3], 0, columns, rows * columns, (size_t)c->batch,
                     &d->queue, NULL),
            "CLBlast");
    check_cl(clFinish(d->queue), "waiting");
}

static void take(times *best, void (*go)(const run *r, device *d), const run *r, device *d)
{
    double clock = read_clock(CLOCK_MONOTONIC), process = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    go(r, d);
    process = read_clock(CLOCK_PROCESS_CPUTIME_ID) - process;
    clock = read_clock(CLOCK_MONOTONIC) - clock;
    best->clock = fmin(best->clock, clock);
    best->process = fmin(best->process, process);
}

/* The largest difference of both results. */
static double difference(const run *r, const device *d)
{
    size_t n = (size_t)count_of(r->c, 2), bytes = n * sizeof(float);
    float *results[2];
    double most = 0;
    for (int i = 0; i < 2; i++) {
        results[i] = malloc(bytes);
        check_cl(clEnqueueReadBuffer(
                         d->queue, r->memory[2 + i], CL_TRUE, 0, bytes, results[i], 0, NULL, NULL),
                "reading");
    }
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)results[0][i] - (double)results[1][i]));
    free(results[0]);
    free(results[1]);
    return most;
}

static void run_case(const bench_case *c, device *d, int rounds)
{
    run r = run_create(c, d);
    times ours = {INFINITY, INFINITY}, peer = {INFINITY, INFINITY};
    run_ours(&r, d);
    run_clblast(&r, d);
    double off = difference(&r, d);
    for (int i = 0; i < rounds; i++) {
        take(&ours, run_ours, &r, d);
        take(&peer, run_clblast, &r, d);
    }
    double flops = 2e-9 * (double)c->batch * (double)c->rows * (double)c->columns * (double)c->k;
    printf("%-36s %7.1f %7.1f %5.1fx   per core-second %7.1f %7.1f %5.1fx   differ by %.1e\n",
            c->name, flops / ours.clock, flops / peer.clock, peer.clock / ours.clock,
            flops / ours.process, flops / peer.process, peer.process / ours.process, off);
    for (int i = 0; i < 3; i++)
        gb_tensor_destroy(r.tensors[i]);
    for (int i = 0; i < 4; i++)
        clReleaseMemObject(r.memory[i]);
    gb_compiled_partition_destroy(r.compiled);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    device d;
    check(gb_ocl_engine_create(
            &d.engine, argc > 2 ? (size_t)atoi(argv[2]) : 0, GB_OCL_MEMORY_BUFFER));
    check(gb_ocl_stream_create(&d.stream, d.engine, GB_OCL_STREAM_IN_ORDER));
    check(gb_ocl_engine_get_context(d.engine, &d.context));
    check(gb_ocl_stream_get_queue(d.stream, &d.queue));
    printf("GFLOP/s of ours, of CLBlast\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_case(&cases[i], &d, rounds);
    gb_stream_destroy(d.stream);
    gb_engine_destroy(d.engine);
    return 0;
}
