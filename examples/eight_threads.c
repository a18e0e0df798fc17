/* Eight threads share one compiled partition: it is immutable, and each call brings its own
 * tensors. */
#include "example.h"

#include <pthread.h>
#include <string.h>

enum { A, B, SUM, DST };
enum { THREADS = 8, ROUNDS = 20, SIZE = 48 };

typedef struct shared {
    gb_compiled_partition *compiled;
    gb_engine *engine;
    gb_logical_tensor a, b, dst;
    gb_tensor *weights; /* read by all */
} shared;

typedef struct job {
    const shared *common;
    unsigned seed;
    float a[SIZE * SIZE], first[SIZE * SIZE];
} job;

static shared prepare(float *weights)
{
    const int64_t dims[] = {SIZE, SIZE};
    shared s = {.a = dense(A, GB_F32, 2, dims, GB_PROPERTY_VARIABLE),
            .b = dense(B, GB_F32, 2, dims, GB_PROPERTY_CONSTANT),
            .dst = dense(DST, GB_F32, 2, dims, GB_PROPERTY_VARIABLE)};
    gb_logical_tensor sum = inferred(SUM, GB_F32, 2);
    gb_graph *graph;
    gb_partition *partition;
    CHECK(gb_graph_create(&graph, GB_ENGINE_CPU));
    add_op(graph, make_op(0, GB_OP_MATMUL, "matmul", &s.a, &s.b, NULL, &sum));
    add_op(graph, make_op(1, GB_OP_TANH, "tanh", &sum, NULL, NULL, &s.dst));
    CHECK(gb_graph_finalize(graph));
    CHECK(gb_graph_filter(graph, GB_POLICY_FUSION));
    CHECK(gb_graph_get_partitions(graph, 1, &partition, NULL));
    CHECK(gb_engine_create(&s.engine, GB_ENGINE_CPU, 0));
    const gb_logical_tensor *inputs[] = {&s.a, &s.b}, *outputs[] = {&s.dst};
    CHECK(gb_partition_compile(partition, &s.compiled, 2, inputs, 1, outputs, s.engine));
    CHECK(gb_tensor_create(&s.weights, &s.b, s.engine, weights));
    CHECK(gb_partition_destroy(partition));
    CHECK(gb_graph_destroy(graph));
    return s;
}

/* A stream of its own, and the same result every time. */
static void *work(void *argument)
{
    job *j = argument;
    const shared *s = j->common;
    static _Thread_local float result[SIZE * SIZE];
    gb_stream *stream;
    gb_tensor *a, *dst;
    CHECK(gb_stream_create(&stream, s->engine));
    CHECK(gb_tensor_create(&a, &s->a, s->engine, j->a));
    CHECK(gb_tensor_create(&dst, &s->dst, s->engine, result));
    const gb_tensor *inputs[] = {a, s->weights};
    gb_tensor *outputs[] = {dst};
    fill_random(j->a, SIZE * SIZE, j->seed);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(gb_compiled_partition_execute(s->compiled, stream, 2, inputs, 1, outputs, NULL));
        if (round == 0)
            memcpy(j->first, result, sizeof result);
        EXPECT(memcmp(j->first, result, sizeof result) == 0);
    }
    CHECK(gb_tensor_destroy(a));
    CHECK(gb_tensor_destroy(dst));
    CHECK(gb_stream_destroy(stream));
    return NULL;
}

int main(void)
{
    static float weights[SIZE * SIZE];
    static job jobs[THREADS];
    pthread_t threads[THREADS];
    fill_random(weights, SIZE * SIZE, 99);
    shared s = prepare(weights);
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i].common = &s;
        jobs[i].seed = i;
        EXPECT(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        double sum = 0;
        for (int k = 0; k < SIZE; k++)
            sum += (double)jobs[i].a[k] * (double)weights[k * SIZE];
        EXPECT(fabs(tanh(sum) - (double)jobs[i].first[0]) < 1e-5);
    }
    printf("%d threads, %d executions each: all results right\n", THREADS, ROUNDS);
    CHECK(gb_tensor_destroy(s.weights));
    CHECK(gb_compiled_partition_destroy(s.compiled));
    CHECK(gb_engine_destroy(s.engine));
    return 0;
}
