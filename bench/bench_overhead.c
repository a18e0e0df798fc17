/* What an execution costs beside its arithmetic: small partitions with known dims, the same with
 * unknown ones and 1, 16 or 64 shapes in turn, and constants that come as new tensor objects each
 * time. Rounds of all ways of a case take turns, the best of each counts.
 * Usage: bench_overhead [rounds] */
#include <graphbench/graphbench.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { X, W, Y };
enum { MOST_SHAPES = 64, CALLS = 64 };

/* y = x w, or relu(x) where w has no columns; x is `rows` x `depth`. */
typedef struct bench_case {
    const char *name;
    int64_t rows, depth, columns;
} bench_case;

static const bench_case cases[] = {{"relu 4 x 16", 4, 16, 0}, {"product 4 x 16 x 32", 4, 16, 32},
        {"product 32 x 128 x 128", 32, 128, 128}, {"product 32 x 1024 x 1024", 32, 1024, 1024}};

typedef enum way { KNOWN, OPEN, OPEN_16, OPEN_64, NEW_CONSTANTS, WAYS } way;

static const struct {
    const char *name;
    int shapes; /* that were executed before the one that is timed, and it; 0: known dims */
} ways[] = {{"known dims", 0}, {"unknown dims", 1}, {"unknown, 16 shapes", 16},
        {"unknown, 64 shapes", 64}, {"constants in new tensors", 0}};

static void ok(gb_status status)
{
    if (status == GB_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", gb_status_name(status), gb_last_error());
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

typedef struct runner {
    const bench_case *test;
    gb_engine *engine;
    gb_stream *stream;
    gb_logical_tensor weights;
    gb_compiled_partition *compiled[WAYS];
    gb_tensor *x[MOST_SHAPES], *y[MOST_SHAPES], *w; /* of growing numbers of rows */
} runner;

static gb_logical_tensor matrix(size_t id, int64_t rows, int64_t columns, gb_property property)
{
    const int64_t dims[] = {rows, columns};
    gb_logical_tensor tensor;
    ok(gb_logical_tensor_init_with_dims(&tensor, id, GB_F32, 2, dims, GB_LAYOUT_STRIDED, property));
    return tensor;
}

static gb_tensor *allocate(const gb_logical_tensor *tensor, const gb_engine *engine)
{
    gb_tensor *made;
    void *data;
    size_t bytes;
    ok(gb_logical_tensor_get_mem_size(tensor, &bytes));
    ok(gb_tensor_create(&made, tensor, engine, GB_MEMORY_ALLOCATE));
    ok(gb_tensor_get_data_handle(made, &data));
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)data)[i] = (float)(i % 17) - 8;
    return made;
}

static gb_compiled_partition *compile(const runner *r, bool open)
{
    const bench_case *test = r->test;
    bool product = test->columns > 0;
    int64_t columns = product ? test->columns : test->depth;
    gb_logical_tensor x = matrix(X, test->rows, test->depth, GB_PROPERTY_VARIABLE);
    gb_logical_tensor y = matrix(Y, test->rows, columns, GB_PROPERTY_VARIABLE);
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_op *op;
    if (open)
        x.dims[0] = y.dims[0] = GB_UNKNOWN_DIM;
    ok(gb_op_create(&op, 0, product ? GB_OP_MATMUL : GB_OP_RELU, ""));
    ok(gb_op_add_input(op, &x));
    if (product)
        ok(gb_op_add_input(op, &r->weights));
    ok(gb_op_add_output(op, &y));
    ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    const gb_logical_tensor *in[] = {&x, &r->weights}, *out = &y;
    ok(gb_partition_compile(partition, &compiled, product ? 2 : 1, in, 1, &out, r->engine));
    ok(gb_partition_destroy(partition));
    ok(gb_op_destroy(op));
    return compiled;
}

static void execute(const runner *r, way w, int shape, const gb_tensor *weights)
{
    const gb_tensor *in[] = {r->x[shape], weights};
    gb_tensor *out = r->y[shape];
    ok(gb_compiled_partition_execute(
            r->compiled[w], r->stream, r->test->columns > 0 ? 2 : 1, in, 1, &out, NULL));
}

static void open_runner(runner *r, const bench_case *test)
{
    int64_t columns = test->columns > 0 ? test->columns : test->depth;
    *r = (runner){.test = test};
    ok(gb_engine_create(&r->engine, GB_ENGINE_CPU, 0));
    ok(gb_stream_create(&r->stream, r->engine));
    r->weights = matrix(W, test->depth, columns, GB_PROPERTY_CONSTANT);
    r->w = allocate(&r->weights, r->engine);
    for (int i = 0; i < MOST_SHAPES; i++) {
        gb_logical_tensor x = matrix(X, test->rows + i, test->depth, GB_PROPERTY_VARIABLE);
        gb_logical_tensor y = matrix(Y, test->rows + i, columns, GB_PROPERTY_VARIABLE);
        r->x[i] = allocate(&x, r->engine);
        r->y[i] = allocate(&y, r->engine);
    }
    for (int w = 0; w < WAYS; w++) {
        r->compiled[w] = compile(r, ways[w].shapes > 0);
        for (int shape = ways[w].shapes; shape-- > 0;)
            execute(r, (way)w, shape, r->w);
    }
}

static void close_runner(runner *r)
{
    for (int i = 0; i < MOST_SHAPES; i++) {
        ok(gb_tensor_destroy(r->x[i]));
        ok(gb_tensor_destroy(r->y[i]));
    }
    ok(gb_tensor_destroy(r->w));
    for (int w = 0; w < WAYS; w++)
        ok(gb_compiled_partition_destroy(r->compiled[w]));
    ok(gb_stream_destroy(r->stream));
    ok(gb_engine_destroy(r->engine));
}

static void execute_on_new_tensor(const runner *r)
{
    gb_tensor *weights;
    void *data;
    ok(gb_tensor_get_data_handle(r->w, &data));
    ok(gb_tensor_create(&weights, &r->weights, r->engine, data));
    execute(r, NEW_CONSTANTS, 0, weights);
    ok(gb_tensor_destroy(weights));
}

static double run(const runner *r, way w)
{
    double start = now();
    for (int call = 0; call < CALLS; call++) {
        if (w == NEW_CONSTANTS)
            execute_on_new_tensor(r);
        else
            execute(r, w, 0, r->w);
    }
    return (now() - start) / CALLS;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double best[WAYS];
        runner r;
        open_runner(&r, &cases[i]);
        for (int w = 0; w < WAYS; w++)
            best[w] = 1e9;
        for (int round = 0; round < rounds; round++)
            for (int w = 0; w < WAYS; w++) {
                double time = run(&r, (way)w);
                best[w] = time < best[w] ? time : best[w];
            }
        for (int w = 0; w < WAYS; w++)
            if (w != NEW_CONSTANTS || cases[i].columns > 0)
                printf("%-24s %-26s %10.3f us  %+9.3f us\n", cases[i].name, ways[w].name,
                        best[w] * 1e6, (best[w] - best[KNOWN]) * 1e6);
        close_runner(&r);
    }
    return 0;
}
