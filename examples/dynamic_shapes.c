/* A partition compiled once, for any batch and any length of sequence: eight threads execute it,
 * each on shapes of its own. */
#include "example.h"

#include <pthread.h>

enum { SRC, WEIGHTS, SUM, DST };
enum { THREADS = 8, ROUNDS = 12, INNER = 32, COLUMNS = 48, MOST_BATCH = 3, MOST_LENGTH = 20 };

typedef struct shared {
    gb_compiled_partition *compiled;
    gb_engine *engine;
    gb_logical_tensor dst;
    gb_tensor *weights;
    const float *data;
} shared;

typedef struct job {
    const shared *common;
    unsigned first;
} job;

/* tanh(src x weights), src of rank 3 with its last dim known. */
static shared prepare(float *weights)
{
    const int64_t open_dims[] = {GB_UNKNOWN_DIM, GB_UNKNOWN_DIM, INNER};
    const int64_t dims[] = {INNER, COLUMNS};
    gb_logical_tensor src = dense(SRC, GB_F32, 3, open_dims, GB_PROPERTY_VARIABLE);
    gb_logical_tensor filter = dense(WEIGHTS, GB_F32, 2, dims, GB_PROPERTY_CONSTANT);
    gb_logical_tensor sum = inferred(SUM, GB_F32, 3);
    shared s = {.dst = inferred(DST, GB_F32, 3), .data = weights};
    gb_graph *graph;
    gb_partition *partition;
    CHECK(gb_graph_create(&graph, GB_ENGINE_CPU));
    add_op(graph, make_op(0, GB_OP_MATMUL, "matmul", &src, &filter, NULL, &sum));
    add_op(graph, make_op(1, GB_OP_TANH, "tanh", &sum, NULL, NULL, &s.dst));
    CHECK(gb_graph_finalize(graph));
    CHECK(gb_graph_filter(graph, GB_POLICY_FUSION));
    CHECK(gb_graph_get_partitions(graph, 1, &partition, NULL));
    CHECK(gb_engine_create(&s.engine, GB_ENGINE_CPU, 0));
    const gb_logical_tensor *inputs[] = {&src, &filter}, *outputs[] = {&s.dst};
    CHECK(gb_partition_compile(partition, &s.compiled, 2, inputs, 1, outputs, s.engine));
    CHECK(gb_tensor_create(&s.weights, &filter, s.engine, weights));
    CHECK(gb_partition_destroy(partition));
    CHECK(gb_graph_destroy(graph));
    return s;
}

/* Is the result's last element the product of the last row and the last column? */
static void check(const shared *s, const float *src, const gb_tensor *dst, int64_t rows)
{
    gb_logical_tensor shape;
    void *data;
    CHECK(gb_tensor_get_logical_tensor(dst, &shape));
    CHECK(gb_tensor_get_data_handle(dst, &data));
    EXPECT(shape.dims[0] * shape.dims[1] == rows && shape.dims[2] == COLUMNS);
    const float *result = data;
    double sum = 0;
    for (int k = 0; k < INNER; k++)
        sum += (double)src[(rows - 1) * INNER + k] * (double)s->data[k * COLUMNS + COLUMNS - 1];
    EXPECT(fabs(tanh(sum) - (double)result[rows * COLUMNS - 1]) < 1e-5);
}

static void *work(void *argument)
{
    const job *j = argument;
    const shared *s = j->common;
    static _Thread_local float src[MOST_BATCH * MOST_LENGTH * INNER];
    gb_stream *stream;
    gb_tensor *dst; /* its shape and memory come with each execution */
    CHECK(gb_stream_create(&stream, s->engine));
    CHECK(gb_tensor_create(&dst, &s->dst, s->engine, GB_MEMORY_ALLOCATE));
    for (unsigned round = 0; round < ROUNDS; round++) {
        const int64_t dims[] = {
                1 + (j->first + round) % MOST_BATCH, 5 + (j->first + round) % 4 * 5, INNER};
        gb_logical_tensor description = dense(SRC, GB_F32, 3, dims, GB_PROPERTY_VARIABLE);
        gb_tensor *input;
        fill_random(src, (size_t)(dims[0] * dims[1]) * INNER, round);
        CHECK(gb_tensor_create(&input, &description, s->engine, src));
        const gb_tensor *inputs[] = {input, s->weights};
        gb_tensor *outputs[] = {dst};
        CHECK(gb_compiled_partition_execute(s->compiled, stream, 2, inputs, 1, outputs, NULL));
        check(s, src, dst, dims[0] * dims[1]);
        CHECK(gb_tensor_destroy(input));
    }
    CHECK(gb_tensor_destroy(dst));
    CHECK(gb_stream_destroy(stream));
    return NULL;
}

/* What is there to know about one shape before it is executed. */
static void ask(const shared *s)
{
    const int64_t src_dims[] = {2, 7, INNER}, dims[] = {INNER, COLUMNS};
    gb_logical_tensor src = dense(SRC, GB_F32, 3, src_dims, GB_PROPERTY_VARIABLE);
    gb_logical_tensor filter = dense(WEIGHTS, GB_F32, 2, dims, GB_PROPERTY_CONSTANT);
    gb_logical_tensor dst = inferred(DST, GB_F32, 3), scratchpad;
    const gb_logical_tensor *inputs[] = {&src, &filter};
    gb_logical_tensor *outputs[] = {&dst};
    CHECK(gb_compiled_partition_infer_shape(s->compiled, 2, inputs, 1, outputs));
    EXPECT(dst.dims[0] == 2 && dst.dims[1] == 7 && dst.dims[2] == COLUMNS);
    gb_compiled_partition *specialized;
    CHECK(gb_compiled_partition_specialize(s->compiled, &specialized, 2, inputs, 0, NULL));
    CHECK(gb_compiled_partition_get_scratchpad(specialized, &scratchpad));
    printf("2x7x%d: %s, scratchpad of %lld bytes\n", INNER,
            gb_compiled_partition_get_kernels(specialized), (long long)scratchpad.dims[0]);
    CHECK(gb_compiled_partition_destroy(specialized));
}

int main(void)
{
    static float weights[INNER * COLUMNS];
    job jobs[THREADS];
    pthread_t threads[THREADS];
    fill_random(weights, INNER * COLUMNS, 99);
    shared s = prepare(weights);
    ask(&s);
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (job){.common = &s, .first = i};
        EXPECT(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
    printf("%d threads, %d executions each: all results right\n", THREADS, ROUNDS);
    CHECK(gb_tensor_destroy(s.weights));
    CHECK(gb_compiled_partition_destroy(s.compiled));
    CHECK(gb_engine_destroy(s.engine));
    return 0;
}
