/* Dims that are unknown when a partition is made, when it is compiled, and when a tensor is
 * created. */
#include "runtime_case.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { INNER = 24, COLUMNS = 40, MOST_ROWS = 96 };
enum { SRC, WEIGHTS, BIAS, SUM, DST };

static gb_engine *engine;
static gb_stream *stream;
static float src[MOST_ROWS * INNER], weights[2][INNER * COLUMNS], bias[COLUMNS];

static void open_engine(void)
{
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    runtime_ok(gb_stream_create(&stream, engine));
    runtime_fill(src, MOST_ROWS * INNER, 0);
    runtime_fill(bias, COLUMNS, 1);
    runtime_fill(weights[0], INNER * COLUMNS, 0);
    runtime_fill(weights[1], INNER * COLUMNS, 2);
}

static void close_engine(void)
{
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

TestSuite(dynamic, .init = open_engine, .fini = close_engine);

static const int64_t unknown = GB_UNKNOWN_DIM;

static gb_logical_tensor of_rank(size_t id, int ndims)
{
    gb_logical_tensor tensor;
    runtime_ok(gb_logical_tensor_init(
            &tensor, id, GB_F32, ndims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    return tensor;
}

/* The partition ReLU(src x weights + bias); the graph knows the ranks at most. */
static gb_partition *product(int ndims)
{
    gb_graph *graph;
    gb_logical_tensor t[] = {of_rank(SRC, ndims),
            runtime_matrix(WEIGHTS, INNER, COLUMNS, GB_PROPERTY_CONSTANT), of_rank(BIAS, ndims),
            of_rank(SUM, ndims), of_rank(DST, ndims)};
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_MATMUL, 3,
            (const gb_logical_tensor *[]){&t[SRC], &t[WEIGHTS], &t[BIAS]}, &t[SUM]);
    runtime_op(graph, 1, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&t[SUM]}, &t[DST]);
    return runtime_partition(graph);
}

/* src x weights + bias with `rows` rows of src, which may be unknown. */
typedef struct product_ports {
    gb_logical_tensor in[3], out;
} product_ports;

static product_ports describe(int64_t rows)
{
    return (product_ports){{runtime_matrix(SRC, rows, INNER, GB_PROPERTY_VARIABLE),
                                   runtime_matrix(WEIGHTS, INNER, COLUMNS, GB_PROPERTY_CONSTANT),
                                   runtime_matrix(BIAS, 1, COLUMNS, GB_PROPERTY_VARIABLE)},
            of_rank(DST, 2)};
}

static gb_compiled_partition *compile(const gb_partition *partition, const product_ports *p)
{
    gb_compiled_partition *compiled;
    runtime_ok(gb_partition_compile(partition, &compiled, 3,
            (const gb_logical_tensor *[]){&p->in[0], &p->in[1], &p->in[2]}, 1,
            (const gb_logical_tensor *[]){&p->out}, engine));
    return compiled;
}

static gb_compiled_partition *compile_open_product(void)
{
    gb_partition *partition = product(2);
    product_ports open = describe(unknown);
    gb_compiled_partition *compiled = compile(partition, &open);
    gb_partition_destroy(partition);
    return compiled;
}

static gb_status run(const gb_compiled_partition *compiled, const product_ports *p,
        float *with_weights, gb_tensor *dst, gb_tensor *scratchpad)
{
    gb_tensor *in[3];
    float *data[] = {src, with_weights, bias};
    for (int i = 0; i < 3; i++)
        runtime_ok(gb_tensor_create(&in[i], &p->in[i], engine, data[i]));
    gb_status status = gb_compiled_partition_execute(
            compiled, stream, 3, (const gb_tensor *const *)in, 1, &dst, scratchpad);
    for (int i = 0; i < 3; i++)
        gb_tensor_destroy(in[i]);
    return status;
}

static gb_tensor *make_tensor(gb_logical_tensor description, void *handle)
{
    gb_tensor *tensor;
    runtime_ok(gb_tensor_create(&tensor, &description, engine, handle));
    return tensor;
}

static float *data_of(const gb_tensor *tensor)
{
    void *handle;
    runtime_ok(gb_tensor_get_data_handle(tensor, &handle));
    return handle;
}

/* What a partition compiled for just this shape computes. */
static void run_static(int64_t rows, float *with_weights, float *result)
{
    gb_partition *partition = product(2);
    product_ports ports = describe(rows);
    gb_compiled_partition *compiled = compile(partition, &ports);
    gb_tensor *dst = make_tensor(runtime_matrix(DST, rows, COLUMNS, GB_PROPERTY_VARIABLE), result);
    runtime_ok(run(compiled, &ports, with_weights, dst, NULL));
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
}

/* Executing ------------------------------------------------------------------------------------ */

Test(dynamic, any_number_of_rows)
{
    static float expected[MOST_ROWS * COLUMNS];
    gb_compiled_partition *compiled = compile_open_product();
    gb_tensor *dst = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    const int64_t rows[] = {5, 1, 96, 33, 5, 0, 64, 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float *with_weights = weights[i % 2];
        product_ports ports = describe(rows[i]);
        gb_logical_tensor shape;
        run_static(rows[i], with_weights, expected);
        runtime_ok(run(compiled, &ports, with_weights, dst, NULL));
        runtime_ok(gb_tensor_get_logical_tensor(dst, &shape));
        cr_assert_eq(shape.ndims, 2);
        cr_assert_eq(shape.dims[0], rows[i]);
        cr_assert_eq(shape.dims[1], COLUMNS);
        cr_assert_eq(shape.strides[0], COLUMNS);
        cr_assert_eq(memcmp(data_of(dst), expected, (size_t)rows[i] * COLUMNS * sizeof(float)), 0);
    }
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
}

/* a 0 + b 1 -> 2, of any rank */
static gb_compiled_partition *compile_open_sum(
        const gb_logical_tensor *a, const gb_logical_tensor *b, const gb_logical_tensor *out)
{
    gb_graph *graph;
    gb_compiled_partition *compiled;
    gb_logical_tensor t[3];
    for (size_t i = 0; i < 3; i++)
        t[i] = of_rank(i, GB_UNKNOWN_NDIMS);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_ADD, 2, (const gb_logical_tensor *[]){&t[0], &t[1]}, &t[2]);
    gb_partition *partition = runtime_partition(graph);
    runtime_ok(gb_partition_compile(partition, &compiled, 2, (const gb_logical_tensor *[]){a, b}, 1,
            (const gb_logical_tensor *[]){out}, engine));
    gb_partition_destroy(partition);
    return compiled;
}

Test(dynamic, any_rank_and_any_strides)
{
    gb_logical_tensor open[] = {of_rank(0, GB_UNKNOWN_NDIMS), of_rank(1, GB_UNKNOWN_NDIMS),
            of_rank(2, GB_UNKNOWN_NDIMS)};
    gb_compiled_partition *compiled = compile_open_sum(&open[0], &open[1], &open[2]);
    float a[6] = {1, 2, 3, 4, 5, 6}, b[3] = {10, 20, 30}, rows[6] = {11, 22, 33, 14, 25, 36};
    float columns[6] = {11, 23, 35, 12, 24, 36}; /* of a read along its columns */
    gb_tensor *dst = make_tensor(open[2], GB_MEMORY_ALLOCATE);
    for (int transposed = 0; transposed < 2; transposed++) {
        gb_logical_tensor a_tensor = runtime_matrix(0, 2, 3, GB_PROPERTY_VARIABLE), b_tensor;
        const int64_t three = 3;
        runtime_ok(gb_logical_tensor_init_with_dims(
                &b_tensor, 1, GB_F32, 1, &three, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
        if (transposed) {
            a_tensor.strides[0] = 1;
            a_tensor.strides[1] = 2;
        }
        gb_tensor *in[] = {make_tensor(a_tensor, a), make_tensor(b_tensor, b)};
        runtime_ok(gb_compiled_partition_execute(
                compiled, stream, 2, (const gb_tensor *const *)in, 1, (gb_tensor *[]){dst}, NULL));
        const float *result = data_of(dst), *expected = transposed ? columns : rows;
        for (int i = 0; i < 6; i++)
            cr_expect_eq(result[i], expected[i], "%d: %g", i, (double)result[i]);
        gb_tensor_destroy(in[0]);
        gb_tensor_destroy(in[1]);
    }
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
}

Test(dynamic, a_shape_that_breaks_a_rule_spoils_nothing)
{
    gb_logical_tensor open[] = {of_rank(0, 2), of_rank(1, 2), of_rank(2, 2)};
    gb_compiled_partition *compiled = compile_open_sum(&open[0], &open[1], &open[2]);
    float a[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    gb_tensor *dst = make_tensor(open[2], GB_MEMORY_ALLOCATE);
    gb_tensor *first = make_tensor(runtime_matrix(0, 3, 4, GB_PROPERTY_VARIABLE), a);
    gb_tensor *bad = make_tensor(runtime_matrix(1, 4, 3, GB_PROPERTY_VARIABLE), a);
    gb_tensor *good = make_tensor(runtime_matrix(1, 3, 4, GB_PROPERTY_VARIABLE), a);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(gb_compiled_partition_execute(compiled, stream, 2,
                             (const gb_tensor *[]){first, bad}, 1, (gb_tensor *[]){dst}, NULL),
                GB_INVALID_SHAPE);
        runtime_ok(gb_compiled_partition_execute(compiled, stream, 2,
                (const gb_tensor *[]){first, good}, 1, (gb_tensor *[]){dst}, NULL));
        cr_expect_eq(data_of(dst)[11], 24);
    }
    /* an output that says another shape */
    gb_tensor *small = make_tensor(runtime_matrix(2, 3, 3, GB_PROPERTY_VARIABLE), a);
    cr_expect_eq(gb_compiled_partition_execute(compiled, stream, 2,
                         (const gb_tensor *[]){first, good}, 1, (gb_tensor *[]){small}, NULL),
            GB_INVALID_SHAPE);
    gb_tensor *all[] = {dst, first, bad, good, small};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gb_tensor_destroy(all[i]);
    gb_compiled_partition_destroy(compiled);
}

Test(dynamic, it_outlives_partition_and_engine)
{
    static float expected[4 * COLUMNS];
    gb_compiled_partition *compiled = compile_open_product();
    gb_cache_counters before, after;
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
    runtime_ok(gb_get_compiled_partition_cache_counters(&before));
    open_engine();
    product_ports ports = describe(4);
    gb_tensor *dst = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    runtime_ok(run(compiled, &ports, weights[0], dst, NULL));
    runtime_ok(gb_get_compiled_partition_cache_counters(&after));
    cr_expect_eq(after.entries, before.entries, "code for an engine that is gone stays");
    run_static(4, weights[0], expected);
    cr_expect_eq(memcmp(data_of(dst), expected, sizeof expected), 0);
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
}

/* What is compiled when ------------------------------------------------------------------------ */

static size_t compilations(void)
{
    gb_cache_counters counters;
    runtime_ok(gb_get_compiled_partition_cache_counters(&counters));
    return counters.hits + counters.misses;
}

Test(dynamic, each_shape_is_compiled_once_and_the_oldest_go)
{
    enum { KEPT = 64 };
    gb_compiled_partition *compiled = compile_open_product();
    gb_tensor *dst = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    size_t before = compilations();
    for (int round = 0; round < 2; round++)
        for (int64_t rows = 1; rows <= KEPT; rows++) {
            product_ports ports = describe(rows);
            runtime_ok(run(compiled, &ports, weights[0], dst, NULL));
        }
    cr_expect_eq(compilations() - before, KEPT);
    const int64_t more[] = {KEPT + 1, 2, 1, 2}; /* 1 was the oldest; 2 then, unless it is used */
    for (int i = 0; i < 4; i++) {
        product_ports ports = describe(more[i]);
        runtime_ok(run(compiled, &ports, weights[0], dst, NULL));
    }
    cr_expect_eq(compilations() - before, KEPT + 2);
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
}

enum { THREADS = 8, ROUNDS = 40, SHAPES = 5 };

typedef struct worker {
    const gb_compiled_partition *compiled;
    const float *expected[SHAPES];
    int first, wrong;
} worker;

static const int64_t worker_rows[SHAPES] = {3, 17, 32, 64, 90};

static void *work(void *argument)
{
    worker *w = argument;
    gb_logical_tensor open = of_rank(DST, 2);
    gb_tensor *dst;
    w->wrong += gb_tensor_create(&dst, &open, engine, GB_MEMORY_ALLOCATE) != GB_SUCCESS;
    for (int i = 0; i < ROUNDS; i++) {
        int shape = (w->first + i) % SHAPES;
        product_ports ports = describe(worker_rows[shape]);
        void *data = NULL;
        w->wrong += run(w->compiled, &ports, weights[0], dst, NULL) != GB_SUCCESS ||
                    gb_tensor_get_data_handle(dst, &data) != GB_SUCCESS ||
                    memcmp(data, w->expected[shape],
                            (size_t)worker_rows[shape] * COLUMNS * sizeof(float)) != 0;
    }
    gb_tensor_destroy(dst);
    return NULL;
}

Test(dynamic, eight_threads_with_shapes_of_their_own)
{
    static float expected[SHAPES][MOST_ROWS * COLUMNS];
    pthread_t threads[THREADS];
    worker workers[THREADS];
    gb_compiled_partition *compiled = compile_open_product();
    for (int i = 0; i < SHAPES; i++)
        run_static(worker_rows[i], weights[0], expected[i]);
    size_t before = compilations();
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.compiled = compiled, .first = i};
        for (int k = 0; k < SHAPES; k++)
            workers[i].expected[k] = expected[k];
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(workers[i].wrong, 0, "thread %d: %d wrong results", i, workers[i].wrong);
    }
    cr_expect_eq(compilations() - before, SHAPES);
    gb_compiled_partition_destroy(compiled);
}

/* Questions ------------------------------------------------------------------------------------ */

Test(dynamic, what_it_tells)
{
    gb_compiled_partition *compiled = compile_open_product();
    gb_logical_tensor tensor;
    const gb_inplace_pair *pairs;
    gb_memory_use use;
    double flops, bytes;
    size_t count;
    runtime_ok(gb_compiled_partition_query_logical_tensor(compiled, SRC, &tensor));
    cr_expect_eq(tensor.dims[0], GB_UNKNOWN_DIM);
    cr_expect_eq(tensor.dims[1], INNER);
    runtime_ok(gb_compiled_partition_query_logical_tensor(compiled, DST, &tensor));
    cr_expect_eq(tensor.dims[1], GB_UNKNOWN_DIM);
    runtime_ok(gb_compiled_partition_get_inplace_ports(compiled, &count, &pairs));
    cr_expect_eq(count, 0);
    runtime_ok(gb_compiled_partition_get_scratchpad(compiled, &tensor));
    cr_expect_eq(tensor.dims[0], GB_UNKNOWN_DIM);
    cr_expect_str_eq(gb_compiled_partition_get_kernels(compiled), "dynamic");
    cr_expect_eq(gb_compiled_partition_get_work(compiled, &flops, &bytes), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_get_memory(compiled, &use), GB_INVALID_ARGUMENTS);
    cr_expect(strstr(gb_last_error(), "gb_compiled_partition_specialize()"));
    gb_compiled_partition_destroy(compiled);
}

static gb_status specialize(const gb_compiled_partition *compiled, const product_ports *p,
        gb_compiled_partition **specialized)
{
    return gb_compiled_partition_specialize(compiled, specialized, 3,
            (const gb_logical_tensor *[]){&p->in[2], &p->in[0], &p->in[1]}, 0, NULL);
}

Test(dynamic, a_specialization_is_an_ordinary_compiled_partition)
{
    static float expected[7 * COLUMNS], result[7 * COLUMNS];
    gb_compiled_partition *compiled = compile_open_product(), *seven = NULL, *same;
    product_ports ports = describe(7);
    gb_logical_tensor tensor;
    double flops, bytes;
    runtime_ok(specialize(compiled, &ports, &seven));
    gb_compiled_partition_destroy(compiled);
    runtime_ok(gb_compiled_partition_query_logical_tensor(seven, DST, &tensor));
    cr_expect_eq(tensor.dims[0], 7);
    cr_expect_eq(tensor.dims[1], COLUMNS);
    cr_expect_str_neq(gb_compiled_partition_get_kernels(seven), "dynamic");
    runtime_ok(gb_compiled_partition_get_work(seven, &flops, &bytes));
    cr_expect_geq(flops, 2.0 * 7 * INNER * COLUMNS);
    gb_tensor *dst = make_tensor(tensor, result);
    runtime_ok(run(seven, &ports, weights[1], dst, NULL));
    run_static(7, weights[1], expected);
    cr_expect_eq(memcmp(result, expected, sizeof result), 0);
    runtime_ok(specialize(seven, &ports, &same));
    cr_expect_eq(same, seven);
    gb_compiled_partition_destroy(same);
    ports = describe(8);
    cr_expect_eq(specialize(seven, &ports, &same), GB_INVALID_ARGUMENTS);
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(seven);
}

Test(dynamic, specializing_checks_its_arguments)
{
    gb_compiled_partition *compiled = compile_open_product(), *made = NULL;
    product_ports ports = describe(7);
    const gb_logical_tensor *in[] = {&ports.in[0], &ports.in[1]};
    cr_expect_eq(
            gb_compiled_partition_specialize(NULL, &made, 2, in, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(
            gb_compiled_partition_specialize(compiled, NULL, 2, in, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_specialize(compiled, &made, 2, NULL, 0, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_specialize(compiled, &made, 2, in, 0, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect(strstr(gb_last_error(), "input tensor 2 is missing"), "%s", gb_last_error());
    ports.in[0].dims[0] = GB_UNKNOWN_DIM;
    cr_expect_eq(specialize(compiled, &ports, &made), GB_INVALID_ARGUMENTS);
    ports = describe(7);
    ports.in[0].dims[1] = INNER + 1;
    cr_expect_eq(specialize(compiled, &ports, &made), GB_INVALID_ARGUMENTS);
    cr_expect_str_eq(gb_last_error(), "input 0 (tensor 0): dim 1 is 25, compiled for 24");
    cr_expect_null(made);
    gb_compiled_partition_destroy(compiled);
}

/* Shapes before execution ---------------------------------------------------------------------- */

Test(dynamic, a_partition_infers_shapes)
{
    gb_partition *partition = product(GB_UNKNOWN_NDIMS);
    product_ports p = describe(9);
    gb_logical_tensor dst = of_rank(DST, GB_UNKNOWN_NDIMS), sum = of_rank(SUM, 2), other;
    const gb_logical_tensor *in[] = {&p.in[1], &p.in[2], &p.in[0]};
    dst.layout_type = GB_LAYOUT_ANY;
    runtime_ok(gb_partition_infer_shape(partition, 3, in, 2, (gb_logical_tensor *[]){&dst, &sum}));
    cr_expect_eq(dst.ndims, 2);
    cr_expect_eq(dst.dims[0], 9);
    cr_expect_eq(dst.dims[1], COLUMNS);
    cr_expect_eq(dst.layout_type, GB_LAYOUT_ANY);
    cr_expect_eq(sum.dims[0], 9);
    cr_expect_eq(sum.strides[0], COLUMNS);
    runtime_ok(gb_partition_infer_shape(partition, 3, in, 1, (gb_logical_tensor *[]){&dst}));
    dst.dims[0] = 8; /* not what the inputs make it */
    cr_expect_eq(gb_partition_infer_shape(partition, 3, in, 1, (gb_logical_tensor *[]){&dst}),
            GB_INVALID_SHAPE);
    other = of_rank(77, 2);
    cr_expect_eq(gb_partition_infer_shape(partition, 3, in, 1, (gb_logical_tensor *[]){&other}),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_infer_shape(partition, 2, in, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_infer_shape(partition, 3, NULL, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_infer_shape(NULL, 3, in, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_infer_shape(partition, 3, in, 1, (gb_logical_tensor *[]){NULL}),
            GB_INVALID_ARGUMENTS);
    p.in[0].dims[1] = INNER - 1;
    dst = of_rank(DST, 2);
    cr_expect_eq(gb_partition_infer_shape(partition, 3, in, 1, (gb_logical_tensor *[]){&dst}),
            GB_INVALID_SHAPE);
    cr_expect_eq(dst.dims[0], GB_UNKNOWN_DIM);
    gb_partition_destroy(partition);
}

Test(dynamic, a_compiled_partition_infers_shapes)
{
    gb_compiled_partition *compiled = compile_open_product(), *fixed;
    product_ports p = describe(9), wrong = describe(9);
    gb_logical_tensor dst = of_rank(DST, 2), other = of_rank(77, 2);
    const gb_logical_tensor *in[] = {&p.in[0], &p.in[1], &p.in[2]};
    size_t before = compilations();
    runtime_ok(
            gb_compiled_partition_infer_shape(compiled, 3, in, 1, (gb_logical_tensor *[]){&dst}));
    cr_expect_eq(dst.dims[0], 9);
    cr_expect_eq(compilations(), before);
    runtime_ok(specialize(compiled, &p, &fixed));
    dst = of_rank(DST, 2);
    runtime_ok(gb_compiled_partition_infer_shape(fixed, 3, in, 1, (gb_logical_tensor *[]){&dst}));
    cr_expect_eq(dst.dims[0], 9);
    cr_expect_eq(
            gb_compiled_partition_infer_shape(fixed, 3, in, 1, (gb_logical_tensor *[]){&other}),
            GB_INVALID_ARGUMENTS);
    wrong.in[0].ndims = 1;
    in[0] = &wrong.in[0];
    cr_expect_eq(
            gb_compiled_partition_infer_shape(compiled, 3, in, 1, (gb_logical_tensor *[]){&dst}),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_infer_shape(NULL, 3, in, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(
            gb_compiled_partition_infer_shape(compiled, 3, in, 1, (gb_logical_tensor *[]){NULL}),
            GB_INVALID_ARGUMENTS);
    gb_compiled_partition_destroy(fixed);
    gb_compiled_partition_destroy(compiled);
}

/* Tensors that do not fit ---------------------------------------------------------------------- */

static gb_compiled_partition *compile_product(int64_t rows)
{
    gb_partition *partition = product(2);
    product_ports ports = describe(rows);
    gb_compiled_partition *compiled = compile(partition, &ports);
    gb_partition_destroy(partition);
    return compiled;
}

static void expect_refusal(
        const gb_compiled_partition *compiled, const product_ports *p, const char *message)
{
    static float result[MOST_ROWS * COLUMNS];
    gb_tensor *dst = make_tensor(p->out, result);
    cr_expect_eq(run(compiled, p, weights[0], dst, NULL), GB_INVALID_ARGUMENTS, "not: %s", message);
    cr_expect_str_eq(gb_last_error(), message);
    gb_tensor_destroy(dst);
}

static product_ports fitting(int64_t rows)
{
    product_ports p = describe(rows);
    p.out = runtime_matrix(DST, rows, COLUMNS, GB_PROPERTY_VARIABLE);
    return p;
}

Test(dynamic, tensors_are_held_against_what_was_compiled)
{
    gb_compiled_partition *fixed = compile_product(6), *open = compile_open_product();
    product_ports p = fitting(7);
    expect_refusal(fixed, &p, "execute: input 0 (tensor 0): dim 0 is 7, compiled for 6");
    p = fitting(6);
    p.out.dims[0] = 5;
    expect_refusal(fixed, &p, "execute: output 0 (tensor 4): dim 0 is 5, compiled for 6");
    p = fitting(6);
    p.in[0].strides[0] = 30;
    expect_refusal(fixed, &p, "execute: input 0 (tensor 0): stride 0 is 30, compiled for 24");
    p = fitting(6);
    p.in[2].dims[0] = GB_UNKNOWN_DIM;
    expect_refusal(open, &p, "execute: input 2 (tensor 2): dim 0 is unknown, compiled for 1");
    p = fitting(6);
    p.in[0].dims[0] = GB_UNKNOWN_DIM;
    expect_refusal(
            open, &p, "execute: input 0 (tensor 0): dim 0 is unknown, compiled for any known one");
    p = fitting(6);
    p.in[0].ndims = GB_UNKNOWN_NDIMS;
    expect_refusal(open, &p, "execute: input 0 (tensor 0): the rank is unknown");
    p = fitting(6);
    p.in[0].ndims = 1;
    expect_refusal(open, &p, "execute: input 0 (tensor 0): the rank is 1, compiled for 2");
    p = fitting(6);
    p.in[0].data_type = GB_S32;
    expect_refusal(open, &p, "execute: input 0 (tensor 0): the type is s32, compiled for f32");
    p = fitting(6);
    p.in[1].property = GB_PROPERTY_VARIABLE;
    expect_refusal(open, &p,
            "execute: input 1 (tensor 1): the property is variable, compiled for constant");
    p = fitting(6);
    p.in[0].layout_type = GB_LAYOUT_ANY;
    expect_refusal(
            fixed, &p, "execute: input 0 (tensor 0): the layout is any, compiled for strided");
    p = fitting(6);
    p.out.dims[0] = GB_UNKNOWN_DIM; /* of memory whose size nobody knows */
    expect_refusal(fixed, &p, "execute: output 0 (tensor 4): dim 0 is unknown, compiled for 6");
    gb_compiled_partition_destroy(fixed);
    gb_compiled_partition_destroy(open);
}

Test(dynamic, what_says_nothing_is_not_compared)
{
    static float result[MOST_ROWS * COLUMNS];
    gb_compiled_partition *compiled = compile_product(6);
    product_ports p = fitting(6);
    p.in[2].strides[0] = 7777; /* along one element */
    p.in[0].id = 99;
    p.in[0].property = GB_PROPERTY_CONSTANT; /* a promise that nothing relies on */
    gb_tensor *dst = make_tensor(p.out, result);
    runtime_ok(run(compiled, &p, weights[0], dst, NULL));
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
}

Test(dynamic, host_scalars_stay_host_scalars)
{
    gb_logical_tensor scalar, plain, open[] = {of_rank(0, 1), of_rank(2, 1)};
    runtime_ok(gb_logical_tensor_init(
            &scalar, 1, GB_F32, 0, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR));
    plain = scalar;
    plain.property = GB_PROPERTY_VARIABLE;
    gb_compiled_partition *compiled = compile_open_sum(&open[0], &scalar, &open[1]);
    float values[3] = {1, 2, 3}, shift = 4;
    const int64_t three = 3;
    runtime_ok(gb_logical_tensor_init_with_dims(
            &open[0], 0, GB_F32, 1, &three, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    gb_tensor *a = make_tensor(open[0], values), *dst = make_tensor(open[1], GB_MEMORY_ALLOCATE);
    gb_tensor *b, *not_scalar = make_tensor(plain, &shift);
    runtime_ok(gb_tensor_create_scalar(&b, &scalar, &shift));
    runtime_ok(gb_compiled_partition_execute(
            compiled, stream, 2, (const gb_tensor *[]){a, b}, 1, (gb_tensor *[]){dst}, NULL));
    cr_expect_eq(data_of(dst)[2], 7);
    cr_expect_eq(gb_compiled_partition_execute(compiled, stream, 2,
                         (const gb_tensor *[]){a, not_scalar}, 1, (gb_tensor *[]){dst}, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_str_eq(gb_last_error(),
            "execute: input 1 (tensor 1): the property is variable, compiled for host_scalar");
    gb_tensor *all[] = {a, b, not_scalar, dst};
    for (int i = 0; i < 4; i++)
        gb_tensor_destroy(all[i]);
    gb_compiled_partition_destroy(compiled);
}

Test(dynamic, tensors_without_memory)
{
    gb_compiled_partition *compiled = compile_open_product();
    product_ports p = fitting(6);
    gb_tensor *none = make_tensor(p.out, GB_MEMORY_NONE);
    cr_expect_eq(run(compiled, &p, weights[0], none, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_str_eq(gb_last_error(), "execute: output 0 (tensor 4) has no memory");
    cr_expect_eq(run(compiled, &p, GB_MEMORY_NONE, none, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_str_eq(gb_last_error(), "execute: input 1 (tensor 1) has no memory");
    cr_expect_eq(run(compiled, &p, weights[0], NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_str_eq(gb_last_error(), "execute: output 0 (tensor 4) is NULL");
    runtime_ok(gb_tensor_set_data_handle(none, GB_MEMORY_ALLOCATE));
    runtime_ok(run(compiled, &p, weights[0], none, NULL));
    gb_tensor_destroy(none);
    gb_compiled_partition_destroy(compiled);
}

/* Tensors that wait for their shape ------------------------------------------------------------ */

Test(dynamic, memory_that_suffices_is_kept)
{
    gb_compiled_partition *compiled = compile_open_product();
    gb_tensor *dst = make_tensor(of_rank(DST, GB_UNKNOWN_NDIMS), GB_MEMORY_ALLOCATE);
    gb_logical_tensor shape;
    cr_expect_null(data_of(dst));
    product_ports p = describe(10);
    runtime_ok(run(compiled, &p, weights[0], dst, NULL));
    float *ten = data_of(dst);
    cr_expect_eq((uintptr_t)ten % 64, 0);
    p = describe(3);
    runtime_ok(run(compiled, &p, weights[0], dst, NULL));
    cr_expect_eq(data_of(dst), ten);
    runtime_ok(gb_tensor_get_logical_tensor(dst, &shape));
    cr_expect_eq(shape.dims[0], 3);
    runtime_ok(gb_tensor_set_data_handle(dst, GB_MEMORY_ALLOCATE)); /* as new */
    cr_expect_null(data_of(dst));
    runtime_ok(gb_tensor_get_logical_tensor(dst, &shape));
    cr_expect_eq(shape.ndims, GB_UNKNOWN_NDIMS);
    runtime_ok(run(compiled, &p, weights[0], dst, NULL));
    static float mine[10 * COLUMNS];
    runtime_ok(gb_tensor_set_data_handle(dst, mine)); /* for the shape it has now */
    runtime_ok(run(compiled, &p, weights[0], dst, NULL));
    p = describe(10);
    cr_expect_eq(run(compiled, &p, weights[0], dst, NULL), GB_INVALID_SHAPE);
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
}

Test(dynamic, a_result_is_the_next_input)
{
    gb_logical_tensor open[] = {of_rank(0, 2), of_rank(1, 2), of_rank(2, 2)};
    gb_compiled_partition *sum = compile_open_sum(&open[0], &open[1], &open[2]);
    gb_compiled_partition *compiled = compile_open_product();
    gb_tensor *middle = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    gb_tensor *twice = make_tensor(open[2], GB_MEMORY_ALLOCATE);
    const gb_tensor *both[] = {middle, middle};
    cr_expect_eq(
            gb_compiled_partition_execute(sum, stream, 2, both, 1, (gb_tensor *[]){twice}, NULL),
            GB_INVALID_ARGUMENTS); /* nothing is in it yet */
    for (int64_t rows = 4; rows <= 12; rows += 8) {
        product_ports p = describe(rows);
        runtime_ok(run(compiled, &p, weights[0], middle, NULL));
        runtime_ok(gb_compiled_partition_execute(
                sum, stream, 2, both, 1, (gb_tensor *[]){twice}, NULL));
        for (int64_t i = 0; i < rows * COLUMNS; i++)
            cr_assert_eq(data_of(twice)[i], 2 * data_of(middle)[i]);
    }
    gb_tensor_destroy(middle);
    gb_tensor_destroy(twice);
    gb_compiled_partition_destroy(sum);
    gb_compiled_partition_destroy(compiled);
}

Test(dynamic, an_output_is_inferred_for_known_shapes_too)
{
    gb_compiled_partition *compiled = compile_product(6);
    product_ports p = describe(6);
    gb_logical_tensor partly = of_rank(DST, 2), shape;
    partly.dims[1] = COLUMNS + 1;
    gb_tensor *wrong = make_tensor(partly, GB_MEMORY_ALLOCATE);
    gb_tensor *dst = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    runtime_ok(run(compiled, &p, weights[0], dst, NULL));
    runtime_ok(gb_tensor_get_logical_tensor(dst, &shape));
    cr_expect_eq(shape.dims[0], 6);
    cr_expect_eq(run(compiled, &p, weights[0], wrong, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_null(data_of(wrong));
    gb_tensor_destroy(dst);
    gb_tensor_destroy(wrong);
    gb_compiled_partition_destroy(compiled);
}

/* What was compiled of an output counts: of a shape that leaves some dims open the tensor brings only
 * these. */
Test(dynamic, what_an_output_was_compiled_for_stays)
{
    gb_partition *partition = product(2);
    product_ports open = describe(unknown), p = describe(3);
    open.out.dims[1] = COLUMNS;
    open.out.strides[0] = COLUMNS + 8;
    open.out.strides[1] = 1;
    gb_compiled_partition *compiled = compile(partition, &open);
    gb_logical_tensor shape;
    gb_tensor *dst = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    runtime_ok(run(compiled, &p, weights[0], dst, NULL));
    runtime_ok(gb_tensor_get_logical_tensor(dst, &shape));
    cr_expect_eq(shape.strides[0], COLUMNS + 8);
    cr_expect_eq(shape.dims[0], 3);
    gb_compiled_partition_destroy(compiled);
    open.out.dims[1] = COLUMNS + 1;
    gb_compiled_partition *wrong = NULL;
    gb_status status = gb_partition_compile(partition, &wrong, 3,
            (const gb_logical_tensor *[]){&open.in[0], &open.in[1], &open.in[2]}, 1,
            (const gb_logical_tensor *[]){&open.out}, engine);
    gb_tensor *other = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    if (status == GB_SUCCESS)
        status = run(wrong, &p, weights[0], other, NULL);
    cr_expect_eq(status, GB_INVALID_SHAPE);
    gb_compiled_partition_destroy(wrong);
    gb_partition_destroy(partition);
    gb_tensor_destroy(dst);
    gb_tensor_destroy(other);
}

Test(dynamic, a_failed_execution_leaves_outputs_as_they_were)
{
    gb_compiled_partition *compiled = compile_product(6);
    product_ports p = describe(6);
    gb_tensor *in[3], *dst = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    float *data[] = {NULL, weights[0], bias};
    for (int i = 0; i < 3; i++)
        runtime_ok(gb_tensor_create(&in[i], &p.in[i], engine, data[i]));
    cr_expect_eq(gb_compiled_partition_execute(
                         compiled, stream, 3, (const gb_tensor *const *)in, 1, &dst, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_null(data_of(dst));
    for (int i = 0; i < 3; i++)
        gb_tensor_destroy(in[i]);
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
}

/* Its size is told in bytes. */
Test(dynamic, a_scratchpad_is_one_of_bytes)
{
    gb_compiled_partition *compiled = compile_open_product();
    product_ports p = describe(6);
    gb_tensor *scratchpad = make_tensor(of_rank(99, 1), GB_MEMORY_ALLOCATE);
    gb_tensor *dst = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    cr_expect_eq(run(compiled, &p, weights[0], dst, scratchpad), GB_INVALID_ARGUMENTS);
    gb_tensor_destroy(scratchpad);
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
}

Test(dynamic, a_scratchpad_grows)
{
    static float expected[MOST_ROWS * COLUMNS];
    gb_compiled_partition *compiled = compile_open_product();
    gb_logical_tensor description;
    runtime_ok(gb_compiled_partition_get_scratchpad(compiled, &description));
    gb_tensor *scratchpad = make_tensor(description, GB_MEMORY_ALLOCATE);
    gb_tensor *dst = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    for (int64_t rows = 2; rows < MOST_ROWS; rows += 40) {
        product_ports p = describe(rows);
        runtime_ok(run(compiled, &p, weights[0], dst, scratchpad));
        run_static(rows, weights[0], expected);
        cr_expect_eq(memcmp(data_of(dst), expected, (size_t)rows * COLUMNS * sizeof(float)), 0);
    }
    gb_tensor_destroy(scratchpad);
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
}

static atomic_int blocks_left, live_blocks;

static void *rationed_malloc(size_t bytes, size_t alignment)
{
    void *memory = NULL;
    if (atomic_fetch_sub(&blocks_left, 1) <= 0 ||
            posix_memalign(&memory, alignment ? alignment : 64, bytes))
        return NULL;
    atomic_fetch_add(&live_blocks, 1);
    return memory;
}

static void rationed_free(void *memory)
{
    atomic_fetch_sub(&live_blocks, 1);
    free(memory);
}

Test(dynamic, outputs_come_from_the_engines_allocator)
{
    gb_allocator *allocator;
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
    runtime_ok(gb_allocator_create(&allocator, rationed_malloc, rationed_free));
    runtime_ok(gb_engine_create_with_allocator(&engine, GB_ENGINE_CPU, 0, allocator));
    runtime_ok(gb_stream_create(&stream, engine));
    gb_allocator_destroy(allocator);
    gb_compiled_partition *compiled = compile_open_product();
    gb_tensor *dst = make_tensor(of_rank(DST, 2), GB_MEMORY_ALLOCATE);
    product_ports p = describe(6);
    atomic_store(&blocks_left, 0);
    cr_expect_eq(run(compiled, &p, weights[0], dst, NULL), GB_OUT_OF_MEMORY);
    cr_expect_null(data_of(dst));
    atomic_store(&blocks_left, 100);
    runtime_ok(run(compiled, &p, weights[0], dst, NULL));
    cr_expect_geq(live_blocks, 1);
    gb_tensor_destroy(dst);
    gb_compiled_partition_destroy(compiled);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
    cr_expect_eq(live_blocks, 0);
    open_engine();
}
