/* The library on the application's own thread pool: a parallel_for in place of OpenMP. */
#include "example.h"

#include <pthread.h>
#include <string.h>

enum { SIZE = 192, WORKERS = 3 };

/* A plain pool: workers wait for a loop, take its indices one by one, and report. */
typedef struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work_came, all_done;
    void (*body)(void *context, int i);
    void *context;
    int n, next, left;
    int loops; /* served so far */
    int stop;
    pthread_t workers[WORKERS];
} pool;

/* With the lock held: takes indices until none is left. */
static void take_indices(pool *p)
{
    while (p->next < p->n) {
        int i = p->next++;
        pthread_mutex_unlock(&p->lock);
        p->body(p->context, i);
        pthread_mutex_lock(&p->lock);
        if (--p->left == 0)
            pthread_cond_signal(&p->all_done);
    }
}

static void *serve(void *argument)
{
    pool *p = argument;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        take_indices(p);
        pthread_cond_wait(&p->work_came, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* What the library calls. */
static void parallel_for(void *argument, int n, void (*body)(void *context, int i), void *context)
{
    pool *p = argument;
    pthread_mutex_lock(&p->lock);
    p->body = body;
    p->context = context;
    p->n = p->left = n;
    p->next = 0;
    p->loops++;
    pthread_cond_broadcast(&p->work_came);
    take_indices(p);
    while (p->left > 0)
        pthread_cond_wait(&p->all_done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void pool_start(pool *p)
{
    EXPECT(pthread_mutex_init(&p->lock, NULL) == 0);
    EXPECT(pthread_cond_init(&p->work_came, NULL) == 0);
    EXPECT(pthread_cond_init(&p->all_done, NULL) == 0);
    for (int i = 0; i < WORKERS; i++)
        EXPECT(pthread_create(&p->workers[i], NULL, serve, p) == 0);
}

static void pool_stop(pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = 1;
    pthread_cond_broadcast(&p->work_came);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < WORKERS; i++)
        EXPECT(pthread_join(p->workers[i], NULL) == 0);
    pthread_cond_destroy(&p->work_came);
    pthread_cond_destroy(&p->all_done);
    pthread_mutex_destroy(&p->lock);
}

static gb_compiled_partition *compile_product(const gb_engine *engine, gb_logical_tensor *ports)
{
    const int64_t dims[] = {SIZE, SIZE};
    for (size_t i = 0; i < 3; i++)
        ports[i] = dense(i, GB_F32, 2, dims, GB_PROPERTY_VARIABLE);
    gb_op *op = make_op(0, GB_OP_MATMUL, "product", &ports[0], &ports[1], NULL, &ports[2]);
    gb_partition *partition;
    gb_compiled_partition *compiled;
    CHECK(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    const gb_logical_tensor *inputs[] = {&ports[0], &ports[1]}, *outputs[] = {&ports[2]};
    CHECK(gb_partition_compile(partition, &compiled, 2, inputs, 1, outputs, engine));
    CHECK(gb_partition_destroy(partition));
    CHECK(gb_op_destroy(op));
    return compiled;
}

int main(void)
{
    static float a[SIZE * SIZE], b[SIZE * SIZE], by_openmp[SIZE * SIZE], by_pool[SIZE * SIZE];
    static pool threads;
    gb_engine *engine;
    gb_stream *openmp, *own;
    gb_logical_tensor ports[3];
    gb_tensor *x, *w, *y[2];
    fill_random(a, SIZE * SIZE, 1);
    fill_random(b, SIZE * SIZE, 2);
    pool_start(&threads);
    CHECK(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    gb_compiled_partition *compiled = compile_product(engine, ports);
    CHECK(gb_stream_create(&openmp, engine));
    CHECK(gb_stream_create_with_thread_pool(&own, engine, WORKERS + 1, parallel_for, &threads));
    CHECK(gb_tensor_create(&x, &ports[0], engine, a));
    CHECK(gb_tensor_create(&w, &ports[1], engine, b));
    CHECK(gb_tensor_create(&y[0], &ports[2], engine, by_openmp));
    CHECK(gb_tensor_create(&y[1], &ports[2], engine, by_pool));
    const gb_tensor *inputs[] = {x, w};
    CHECK(gb_compiled_partition_execute(
            compiled, openmp, 2, inputs, 1, (gb_tensor *[]){y[0]}, NULL));
    CHECK(gb_compiled_partition_execute(compiled, own, 2, inputs, 1, (gb_tensor *[]){y[1]}, NULL));
    EXPECT(memcmp(by_openmp, by_pool, sizeof by_pool) == 0);
    printf("%d loops on the pool; the result is that of OpenMP, bit by bit\n", threads.loops);

    CHECK(gb_tensor_destroy(x));
    CHECK(gb_tensor_destroy(w));
    CHECK(gb_tensor_destroy(y[0]));
    CHECK(gb_tensor_destroy(y[1]));
    CHECK(gb_stream_destroy(own));
    CHECK(gb_stream_destroy(openmp));
    CHECK(gb_compiled_partition_destroy(compiled));
    CHECK(gb_engine_destroy(engine));
    pool_stop(&threads);
    return 0;
}
