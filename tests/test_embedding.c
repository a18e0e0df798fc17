/* The library inside an application: its allocator, its parallel regions, many streams at once. */
#include "runtime_case.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { ROWS = 48, SIZE = 96, N = ROWS * SIZE };

static float src[N], weights[SIZE * SIZE], expected[N];

/* tanh(0 x 1) -> 3; the weights are constant. */
static gb_graph *product(void)
{
    gb_graph *graph;
    gb_logical_tensor a = runtime_matrix(0, ROWS, SIZE, GB_PROPERTY_VARIABLE);
    gb_logical_tensor b = runtime_matrix(1, SIZE, SIZE, GB_PROPERTY_CONSTANT);
    gb_logical_tensor middle = runtime_matrix(2, ROWS, SIZE, GB_PROPERTY_VARIABLE);
    gb_logical_tensor dst = runtime_matrix(3, ROWS, SIZE, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_MATMUL, 2, (const gb_logical_tensor *[]){&a, &b}, &middle);
    runtime_op(graph, 1, GB_OP_TANH, 1, (const gb_logical_tensor *[]){&middle}, &dst);
    return graph;
}

static void fill(void)
{
    runtime_case c;
    runtime_fill(src, N, 0);
    runtime_fill(weights, SIZE * SIZE, 1);
    runtime_compile(&c, product(), NULL);
    runtime_ok(runtime_execute(&c, (void *[]){src, weights}, (void *[]){expected}, NULL));
    runtime_close(&c);
}

TestSuite(embedding, .init = fill);

/* A whole life, from graph to result; no assertions, for any thread. */
static gb_status live(float *dst)
{
    runtime_case c = {.engine = NULL};
    gb_graph *graph = NULL;
    gb_op *op = NULL;
    gb_tensor *in[2] = {NULL, NULL}, *out = NULL;
    gb_logical_tensor a, b, d;
    const int64_t rows[] = {ROWS, SIZE}, square[] = {SIZE, SIZE};
    const gb_layout_type dense = GB_LAYOUT_STRIDED;
    gb_status status =
            gb_logical_tensor_init_with_dims(&a, 0, GB_F32, 2, rows, dense, GB_PROPERTY_VARIABLE);
    status |=
            gb_logical_tensor_init_with_dims(&b, 1, GB_F32, 2, square, dense, GB_PROPERTY_CONSTANT);
    gb_logical_tensor middle = a;
    d = a;
    middle.id = 2;
    d.id = 3;
    status |= gb_graph_create(&graph, GB_ENGINE_CPU);
    status |= gb_op_create(&op, 0, GB_OP_MATMUL, "");
    status |= gb_op_add_input(op, &a) | gb_op_add_input(op, &b) | gb_op_add_output(op, &middle);
    status |= gb_graph_add_op(graph, op);
    gb_op_destroy(op);
    status |= gb_op_create(&op, 1, GB_OP_TANH, "");
    status |= gb_op_add_input(op, &middle) | gb_op_add_output(op, &d);
    status |= gb_graph_add_op(graph, op);
    gb_op_destroy(op);
    status |= gb_graph_finalize(graph) | gb_graph_filter(graph, GB_POLICY_FUSION);
    status |= gb_graph_get_partitions(graph, 1, &c.partition, NULL);
    gb_graph_destroy(graph);
    status |= gb_engine_create(&c.engine, GB_ENGINE_CPU, 0);
    status |= gb_stream_create(&c.stream, c.engine);
    status |= gb_partition_compile(c.partition, &c.compiled, 2,
            (const gb_logical_tensor *[]){&a, &b}, 1, (const gb_logical_tensor *[]){&d}, c.engine);
    status |= gb_tensor_create(&in[0], &a, c.engine, src);
    status |= gb_tensor_create(&in[1], &b, c.engine, weights);
    status |= gb_tensor_create(&out, &d, c.engine, dst);
    status |= gb_compiled_partition_execute(
            c.compiled, c.stream, 2, (const gb_tensor *const *)in, 1, &out, NULL);
    status |= gb_stream_wait(c.stream);
    gb_tensor_destroy(in[0]);
    gb_tensor_destroy(in[1]);
    gb_tensor_destroy(out);
    runtime_close(&c);
    return status;
}

Test(embedding, inside_a_parallel_region_of_the_application)
{
    atomic_int wrong = 0;
    for (int levels = 1; levels <= 2; levels++) { /* nested regions off and on */
        omp_set_max_active_levels(levels);
#pragma omp parallel num_threads(4)
        {
            float *dst = calloc(N, sizeof *dst);
            for (int i = 0; i < 5; i++) {
                wrong += live(dst) != GB_SUCCESS;
                wrong += memcmp(dst, expected, sizeof expected) != 0;
            }
            free(dst);
        }
    }
    cr_expect_eq(wrong, 0);
}

Test(embedding, one_compiled_partition_inside_a_parallel_region)
{
    runtime_case c;
    atomic_int wrong = 0;
    gb_tensor *in[2];
    runtime_compile(&c, product(), NULL);
    runtime_ok(gb_tensor_create(&in[0], &c.inputs[0], c.engine, src));
    runtime_ok(gb_tensor_create(&in[1], &c.inputs[1], c.engine, weights));
#pragma omp parallel for num_threads(4) schedule(dynamic)
    for (int i = 0; i < 40; i++) {
        float *dst = calloc(N, sizeof *dst);
        gb_tensor *out = NULL;
        wrong += gb_tensor_create(&out, &c.outputs[0], c.engine, dst) != GB_SUCCESS;
        wrong += gb_compiled_partition_execute(c.compiled, c.stream, 2,
                         (const gb_tensor *const *)in, 1, &out, NULL) != GB_SUCCESS;
        wrong += memcmp(dst, expected, sizeof expected) != 0;
        gb_tensor_destroy(out);
        free(dst);
    }
    cr_expect_eq(wrong, 0);
    gb_tensor_destroy(in[0]);
    gb_tensor_destroy(in[1]);
    runtime_close(&c);
}

/* Streams -------------------------------------------------------------------------------------- */

typedef struct worker {
    const runtime_case *c;
    gb_stream *stream;
    gb_tensor *in[2], *out;
    float dst[N];
    int wrong;
} worker;

/* No assertions here: they belong to the main thread. */
static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < 20; i++) {
        memset(w->dst, 0xFF, sizeof w->dst);
        w->wrong += gb_compiled_partition_execute(w->c->compiled, w->stream, 2,
                            (const gb_tensor *const *)w->in, 1, &w->out, NULL) != GB_SUCCESS;
        w->wrong += gb_stream_wait(w->stream) != GB_SUCCESS;
        w->wrong += memcmp(w->dst, expected, sizeof expected) != 0;
    }
    return NULL;
}

static void backwards(void *pool, int n, void (*body)(void *context, int i), void *context)
{
    atomic_fetch_add((atomic_int *)pool, n);
    while (n-- > 0)
        body(context, n);
}

/* Half of them on OpenMP's threads, half on the application's. */
Test(embedding, many_streams_at_once)
{
    enum { STREAMS = 8 };
    static worker workers[STREAMS];
    pthread_t threads[STREAMS];
    atomic_int calls = 0;
    runtime_case c;
    runtime_compile(&c, product(), NULL);
    for (int i = 0; i < STREAMS; i++) {
        worker *w = &workers[i];
        const gb_engine *engine;
        w->c = &c;
        if (i % 2)
            runtime_ok(
                    gb_stream_create_with_thread_pool(&w->stream, c.engine, 2, backwards, &calls));
        else
            runtime_ok(gb_stream_create(&w->stream, c.engine));
        runtime_ok(gb_stream_get_engine(w->stream, &engine));
        cr_expect_eq(engine, c.engine);
        runtime_ok(gb_tensor_create(&w->in[0], &c.inputs[0], c.engine, src));
        runtime_ok(gb_tensor_create(&w->in[1], &c.inputs[1], c.engine, weights));
        runtime_ok(gb_tensor_create(&w->out, &c.outputs[0], c.engine, w->dst));
    }
    for (int i = 0; i < STREAMS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < STREAMS; i++) {
        worker *w = &workers[i];
        pthread_join(threads[i], NULL);
        cr_expect_eq(w->wrong, 0, "stream %d", i);
        gb_stream_destroy(w->stream);
        gb_tensor_destroy(w->in[0]);
        gb_tensor_destroy(w->in[1]);
        gb_tensor_destroy(w->out);
    }
    runtime_close(&c);
}

/* Allocators ----------------------------------------------------------------------------------- */

enum { MOST_BLOCKS = 256 };
static void *blocks[MOST_BLOCKS]; /* under the lock */
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;
static int taken, faults;

static void *take(size_t size, size_t alignment)
{
    void *block = NULL;
    bool good = size > 0 && alignment >= 64 && (alignment & (alignment - 1)) == 0 &&
                posix_memalign(&block, alignment, size) == 0;
    if (block)
        memset(block, 0xA5, size); /* all of it is there */
    pthread_mutex_lock(&blocks_lock);
    faults += !good;
    taken++;
    int i = 0;
    while (i < MOST_BLOCKS - 1 && blocks[i])
        i++;
    blocks[i] = block;
    pthread_mutex_unlock(&blocks_lock);
    return block;
}

static void give_back(void *block)
{
    pthread_mutex_lock(&blocks_lock);
    int i = 0;
    while (i < MOST_BLOCKS - 1 && blocks[i] != block)
        i++;
    faults += blocks[i] != block;
    blocks[i] = NULL;
    pthread_mutex_unlock(&blocks_lock);
    free(block);
}

static int live_blocks(void)
{
    int n = 0;
    for (int i = 0; i < MOST_BLOCKS; i++)
        n += blocks[i] != NULL;
    return n;
}

/* Objects go in any order; each block goes back once. */
Test(embedding, every_block_goes_back)
{
    for (int order = 0; order < 6; order++) {
        gb_allocator *allocator;
        runtime_case c;
        gb_tensor *in[2], *out;
        void *data;
        runtime_ok(gb_allocator_create(&allocator, take, give_back));
        runtime_compile(&c, product(), allocator);
        runtime_ok(gb_allocator_destroy(allocator));
        for (int i = 0; i < 2; i++) {
            runtime_ok(gb_tensor_create(&in[i], &c.inputs[i], c.engine, GB_MEMORY_ALLOCATE));
            runtime_ok(gb_tensor_get_data_handle(in[i], &data));
            memcpy(data, i ? weights : src, i ? sizeof weights : sizeof src);
        }
        runtime_ok(gb_tensor_create(&out, &c.outputs[0], c.engine, GB_MEMORY_ALLOCATE));
        for (int i = 0; i < 3; i++)
            runtime_ok(gb_compiled_partition_execute(
                    c.compiled, c.stream, 2, (const gb_tensor *const *)in, 1, &out, NULL));
        runtime_ok(gb_tensor_get_data_handle(out, &data));
        cr_expect_arr_eq(data, expected, sizeof expected);
        runtime_ok(gb_tensor_set_data_handle(in[0], GB_MEMORY_ALLOCATE)); /* another block */
        runtime_ok(gb_tensor_set_data_handle(in[1], weights));
        cr_expect_gt(live_blocks(), 0);
        for (int step = 0; step < 6; step++) {
            switch ((order + step) % 6) {
            case 0:
                gb_engine_destroy(c.engine);
                break;
            case 1:
                gb_compiled_partition_destroy(c.compiled);
                break;
            case 2:
                gb_stream_destroy(c.stream);
                break;
            case 3:
                gb_tensor_destroy(out);
                break;
            case 4:
                gb_partition_destroy(c.partition);
                break;
            default:
                gb_tensor_destroy(in[0]);
                gb_tensor_destroy(in[1]);
            }
        }
        cr_expect_eq(live_blocks(), 0, "order %d", order);
        cr_expect_eq(faults, 0);
    }
    cr_expect_gt(taken, 0);
}
