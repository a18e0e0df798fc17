/* The cache of prepared constants: contents decide, never addresses; who shares, who goes, and
 * preparing once. */
#include "runtime/constant_cache.h"
#include "runtime_case.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

extern const gb_backend gb_cpu_backend;

enum { ROWS = 4, SIZE = 512, WEIGHTS = SIZE * SIZE, MEGABYTE = 1 << 20 };

static float src[ROWS * SIZE], weights[3][WEIGHTS];

static void fill(void)
{
    for (int i = 0; i < ROWS * SIZE; i++)
        src[i] = (float)(i % SIZE == 0); /* picks row 0 of the weights */
    for (int set = 0; set < 3; set++)
        runtime_fill(weights[set], WEIGHTS, (float)set);
}

TestSuite(constant_cache, .init = fill);

/* 0 x constant 1 -> 2, of a megabyte of weights. */
static gb_graph *product(void)
{
    gb_graph *graph;
    gb_logical_tensor a = runtime_matrix(0, ROWS, SIZE, GB_PROPERTY_VARIABLE);
    gb_logical_tensor b = runtime_matrix(1, SIZE, SIZE, GB_PROPERTY_CONSTANT);
    gb_logical_tensor dst = runtime_matrix(2, ROWS, SIZE, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_MATMUL, 2, (const gb_logical_tensor *[]){&a, &b}, &dst);
    return graph;
}

static gb_constant_cache_counters counters(void)
{
    gb_constant_cache_counters now;
    runtime_ok(gb_get_constant_cache_counters(GB_ENGINE_CPU, &now));
    return now;
}

/* A second compiled partition on the engine of the first. */
static runtime_case compile_again(const runtime_case *first)
{
    runtime_case c = *first;
    const gb_logical_tensor *in[] = {&c.inputs[0], &c.inputs[1]}, *out[] = {&c.outputs[0]};
    runtime_ok(gb_partition_compile(c.partition, &c.compiled, 2, in, 1, out, c.engine));
    return c;
}

/* Executes with tensor objects made for this execution; the first row of dst is that of the
 * weights. */
static float run_on(const runtime_case *c, float *memory)
{
    static float dst[ROWS * SIZE];
    memset(dst, 0xFF, sizeof dst);
    runtime_ok(runtime_execute(c, (void *[]){src, memory}, (void *[]){dst}, NULL));
    for (int i = 1; i < SIZE; i++)
        cr_assert_eq(dst[i], memory[i]);
    return dst[0];
}

Test(constant_cache, there_is_something_to_prepare)
{
    runtime_case c;
    gb_memory_use use;
    runtime_compile(&c, product(), NULL);
    runtime_ok(gb_compiled_partition_get_memory(c.compiled, &use));
    cr_expect_geq(use.constants, MEGABYTE);
    run_on(&c, weights[0]);
    cr_expect_eq(counters().bytes, use.constants);
    cr_expect_eq(counters().entries, 1);
    runtime_close(&c);
}

Test(constant_cache, contents_decide_and_not_addresses)
{
    runtime_case c;
    float *memory = malloc(sizeof weights[0]);
    runtime_compile(&c, product(), NULL);
    memcpy(memory, weights[0], sizeof weights[0]);
    cr_expect_eq(run_on(&c, memory), weights[0][0]);
    memcpy(memory, weights[1], sizeof weights[1]); /* other contents at the same address */
    cr_expect_eq(run_on(&c, memory), weights[1][0]);
    cr_expect_eq(counters().misses, 2);
    memory[WEIGHTS - 1] += 1;
    run_on(&c, memory);
    cr_expect_eq(counters().misses, 3);
    cr_expect_eq(run_on(&c, weights[0]), weights[0][0]); /* known contents elsewhere */
    cr_expect_eq(counters().misses, 3);
    cr_expect_eq(counters().hits, 1);
    runtime_close(&c);
    free(memory);
}

Test(constant_cache, set_data_handle_announces_new_contents)
{
    runtime_case c;
    gb_tensor *in[2], *out;
    void *memory, *dst;
    runtime_compile(&c, product(), NULL);
    runtime_ok(gb_tensor_create(&in[0], &c.inputs[0], c.engine, src));
    runtime_ok(gb_tensor_create(&in[1], &c.inputs[1], c.engine, GB_MEMORY_ALLOCATE));
    runtime_ok(gb_tensor_create(&out, &c.outputs[0], c.engine, GB_MEMORY_ALLOCATE));
    runtime_ok(gb_tensor_get_data_handle(in[1], &memory));
    runtime_ok(gb_tensor_get_data_handle(out, &dst));
    for (int set = 0; set < 3; set++) {
        memcpy(memory, weights[set], sizeof weights[set]);
        runtime_ok(gb_tensor_set_data_handle(in[1], memory));
        for (int i = 0; i < 2; i++)
            runtime_ok(gb_compiled_partition_execute(
                    c.compiled, c.stream, 2, (const gb_tensor *const *)in, 1, &out, NULL));
        cr_expect_arr_eq(dst, weights[set], SIZE * sizeof(float));
    }
    cr_expect_eq(counters().misses, 3);
    cr_expect_eq(counters().hits, 0); /* the second execution does not even ask */
    gb_tensor_destroy(in[0]);
    gb_tensor_destroy(in[1]);
    gb_tensor_destroy(out);
    runtime_close(&c);
}

Test(constant_cache, compiled_partitions_of_equal_content_share)
{
    runtime_case first;
    runtime_compile(&first, product(), NULL);
    runtime_case second = compile_again(&first);
    run_on(&first, weights[0]);
    run_on(&second, weights[0]);
    cr_expect_eq(counters().entries, 1);
    cr_expect_eq(counters().misses, 1);
    cr_expect_eq(counters().hits, 1);
    /* It outlives them, as the code does. */
    gb_compiled_partition_destroy(first.compiled);
    gb_compiled_partition_destroy(second.compiled);
    cr_expect_eq(counters().entries, 1);
    first = compile_again(&first);
    run_on(&first, weights[0]);
    cr_expect_eq(counters().misses, 1);
    runtime_close(&first);
    cr_expect_eq(counters().entries, 0); /* the engine takes its entries along */
    cr_expect_eq(counters().bytes, 0);
}

/* The same weights in products with other numbers of rows. */
Test(constant_cache, other_shapes_share)
{
    enum { MOST_ROWS = 64 };
    runtime_case c;
    static float many[MOST_ROWS * SIZE], dst[MOST_ROWS * SIZE];
    gb_tensor *in[2], *out;
    memcpy(many, src, sizeof src);
    runtime_compile(&c, product(), NULL);
    run_on(&c, weights[0]);
    runtime_ok(gb_tensor_create(&in[1], &c.inputs[1], c.engine, weights[0]));
    for (int64_t rows = 16; rows <= MOST_ROWS; rows *= 2) {
        gb_compiled_partition *compiled;
        gb_logical_tensor a = runtime_matrix(0, rows, SIZE, GB_PROPERTY_VARIABLE);
        gb_logical_tensor d = runtime_matrix(2, rows, SIZE, GB_PROPERTY_VARIABLE);
        const gb_logical_tensor *inputs[] = {&a, &c.inputs[1]}, *outputs[] = {&d};
        runtime_ok(gb_partition_compile(c.partition, &compiled, 2, inputs, 1, outputs, c.engine));
        runtime_ok(gb_tensor_create(&in[0], &a, c.engine, many));
        runtime_ok(gb_tensor_create(&out, &d, c.engine, dst));
        runtime_ok(gb_compiled_partition_execute(
                compiled, c.stream, 2, (const gb_tensor *const *)in, 1, &out, NULL));
        cr_expect_arr_eq(dst, weights[0], SIZE * sizeof(float));
        gb_tensor_destroy(in[0]);
        gb_tensor_destroy(out);
        gb_compiled_partition_destroy(compiled);
    }
    cr_expect_eq(counters().misses, 1);
    cr_expect_eq(counters().entries, 1);
    gb_tensor_destroy(in[1]);
    runtime_close(&c);
}

/* Sizes that differ tell packings apart, even if the bytes are the same. */
Test(constant_cache, other_packings_do_not_share)
{
    runtime_case c, other;
    gb_graph *graph;
    gb_logical_tensor a = runtime_matrix(0, ROWS, 2 * SIZE, GB_PROPERTY_VARIABLE);
    gb_logical_tensor b = runtime_matrix(1, 2 * SIZE, SIZE / 2, GB_PROPERTY_CONSTANT);
    gb_logical_tensor d = runtime_matrix(2, ROWS, SIZE / 2, GB_PROPERTY_VARIABLE);
    runtime_compile(&c, product(), NULL);
    run_on(&c, weights[0]);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_MATMUL, 2, (const gb_logical_tensor *[]){&a, &b}, &d);
    runtime_compile(&other, graph, NULL);
    float wide[ROWS * 2 * SIZE] = {1}, dst[ROWS * SIZE];
    runtime_ok(runtime_execute(&other, (void *[]){wide, weights[0]}, (void *[]){dst}, NULL));
    cr_expect_arr_eq(dst, weights[0], SIZE / 2 * sizeof(float));
    cr_expect_eq(counters().misses, 2);
    runtime_close(&other);
    runtime_close(&c);
}

Test(constant_cache, entries_outlive_code_that_others_could_share)
{
    runtime_case c;
    runtime_ok(gb_set_compiled_partition_cache_capacity(0));
    runtime_compile(&c, product(), NULL);
    run_on(&c, weights[0]);
    gb_compiled_partition_destroy(c.compiled);
    cr_expect_eq(counters().entries, 1);
    c = compile_again(&c);
    run_on(&c, weights[0]);
    cr_expect_eq(counters().misses, 1);
    runtime_close(&c);
}

static gb_status fill_memory(void *context, void *memory)
{
    memset(memory, *(int *)context, 64);
    return GB_SUCCESS;
}

Test(constant_cache, what_one_code_owns_goes_with_it)
{
    gb_engine *engine;
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    for (int owner = 1; owner <= 2; owner++) {
        const gb_constants_request request = {.engine = engine,
                .owner = (size_t)owner,
                .bytes = 64,
                .digest = {{(uint64_t)owner, 0}},
                .prepare = fill_memory,
                .context = &owner};
        gb_constants *first, *second;
        runtime_ok(gb_constants_get(&request, &first));
        runtime_ok(gb_constants_get(&request, &second));
        cr_expect_eq(first, second);
        cr_expect_eq(*(char *)first->memory, owner);
        gb_constants_release(first, true);
        gb_constants_release(second, true);
    }
    cr_expect_eq(counters().misses, 2);
    cr_expect_eq(counters().hits, 2);
    gb_constants_forget_owner(engine, 1);
    cr_expect_eq(counters().entries, 1);
    gb_constants_forget_owner(engine, 2);
    cr_expect_eq(counters().entries, 0);
    gb_engine_destroy(engine);
}

Test(constant_cache, a_dead_engine_leaves_compiled_partitions_theirs)
{
    runtime_case c;
    runtime_compile(&c, product(), NULL);
    run_on(&c, weights[0]);
    gb_engine *engine = c.engine;
    gb_tensor *in[2], *out;
    static float dst[ROWS * SIZE];
    runtime_ok(gb_tensor_create(&in[0], &c.inputs[0], engine, src));
    runtime_ok(gb_tensor_create(&in[1], &c.inputs[1], engine, weights[0]));
    runtime_ok(gb_tensor_create(&out, &c.outputs[0], engine, dst));
    runtime_ok(gb_engine_destroy(engine));
    c.engine = NULL;
    cr_expect_eq(counters().entries, 0);
    for (int set = 0; set < 2; set++) {
        runtime_ok(gb_tensor_set_data_handle(in[1], weights[set]));
        runtime_ok(gb_compiled_partition_execute(
                c.compiled, c.stream, 2, (const gb_tensor *const *)in, 1, &out, NULL));
        cr_expect_arr_eq(dst, weights[set], SIZE * sizeof(float));
    }
    gb_tensor_destroy(in[0]);
    gb_tensor_destroy(in[1]);
    gb_tensor_destroy(out);
    runtime_close(&c);
    cr_expect_eq(counters().entries, 0);
}

/* Capacity ------------------------------------------------------------------------------------- */

Test(constant_cache, the_least_recently_used_goes)
{
    runtime_case c;
    gb_memory_use use;
    runtime_compile(&c, product(), NULL);
    runtime_ok(gb_compiled_partition_get_memory(c.compiled, &use));
    runtime_ok(gb_set_constant_cache_capacity(
            GB_ENGINE_CPU, (2 * use.constants + MEGABYTE - 1) / MEGABYTE));
    const int order[] = {0, 1, 0, 2, 0, 1}; /* 2 drives out 1, not 0 */
    const size_t missed[] = {1, 2, 2, 3, 3, 4};
    for (int i = 0; i < 6; i++) {
        cr_expect_eq(run_on(&c, weights[order[i]]), weights[order[i]][0]);
        cr_expect_eq(counters().misses, missed[i], "step %d", i);
        cr_expect_leq(counters().entries, 2);
    }
    cr_expect_eq(counters().evictions, 2);
    runtime_close(&c);
}

Test(constant_cache, what_a_compiled_partition_holds_is_never_taken)
{
    runtime_case c;
    runtime_ok(gb_set_constant_cache_capacity(GB_ENGINE_CPU, 0));
    runtime_compile(&c, product(), NULL);
    for (int i = 0; i < 3; i++)
        run_on(&c, weights[0]);
    cr_expect_eq(counters().misses, 1);
    run_on(&c, weights[1]);
    cr_expect_eq(counters().entries, 1); /* the set before it is gone */
    run_on(&c, weights[0]);
    cr_expect_eq(counters().misses, 3);
    gb_compiled_partition_destroy(c.compiled);
    c.compiled = NULL;
    cr_expect_eq(counters().entries, 0);
    cr_expect_eq(counters().bytes, 0);
    runtime_close(&c);
}

Test(constant_cache, setting_the_capacity_reads_the_contents_again)
{
    runtime_case c;
    gb_tensor *in[2], *out;
    static float memory[WEIGHTS], dst[ROWS * SIZE];
    size_t megabytes;
    memcpy(memory, weights[0], sizeof memory);
    runtime_compile(&c, product(), NULL);
    runtime_ok(gb_tensor_create(&in[0], &c.inputs[0], c.engine, src));
    runtime_ok(gb_tensor_create(&in[1], &c.inputs[1], c.engine, memory));
    runtime_ok(gb_tensor_create(&out, &c.outputs[0], c.engine, dst));
    for (int set = 0; set < 2; set++) {
        memcpy(memory, weights[set], sizeof memory);
        runtime_ok(gb_set_constant_cache_capacity(GB_ENGINE_CPU, 64 + (size_t)set));
        runtime_ok(gb_get_constant_cache_capacity(GB_ENGINE_CPU, &megabytes));
        cr_expect_eq(megabytes, 64 + (size_t)set);
        runtime_ok(gb_compiled_partition_execute(
                c.compiled, c.stream, 2, (const gb_tensor *const *)in, 1, &out, NULL));
        cr_expect_arr_eq(dst, memory, SIZE * sizeof(float));
    }
    gb_tensor_destroy(in[0]);
    gb_tensor_destroy(in[1]);
    gb_tensor_destroy(out);
    runtime_close(&c);
}

Test(constant_cache, arguments)
{
    size_t megabytes;
    gb_constant_cache_counters now;
    const gb_engine_kind bad[] = {GB_ENGINE_ANY, (gb_engine_kind)7, (gb_engine_kind)-1};
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(gb_set_constant_cache_capacity(bad[i], 1), GB_INVALID_ARGUMENTS);
        cr_expect_eq(gb_get_constant_cache_capacity(bad[i], &megabytes), GB_INVALID_ARGUMENTS);
        cr_expect_eq(gb_get_constant_cache_counters(bad[i], &now), GB_INVALID_ARGUMENTS);
    }
    cr_expect_eq(gb_get_constant_cache_capacity(GB_ENGINE_CPU, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_get_constant_cache_counters(GB_ENGINE_CPU, NULL), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_get_constant_cache_capacity(GB_ENGINE_GPU, &megabytes));
    cr_expect_eq(megabytes, 1024);
    runtime_ok(gb_set_constant_cache_capacity(GB_ENGINE_GPU, SIZE_MAX));
    runtime_ok(gb_get_constant_cache_capacity(GB_ENGINE_CPU, &megabytes));
    cr_expect_eq(megabytes, 1024);
}

/* Threads -------------------------------------------------------------------------------------- */

typedef struct worker {
    runtime_case c;
    int set; /* of weights; negative: changing ones, and the capacity is set in between */
    gb_tensor *in[2], *out;
    float dst[ROWS * SIZE];
    int wrong;
} worker;

/* No assertions here: they belong to the main thread. */
static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < 20; i++) {
        int set = w->set < 0 ? i % 3 : w->set;
        if (w->set < 0) {
            w->wrong += gb_tensor_set_data_handle(w->in[1], weights[set]) != GB_SUCCESS;
            w->wrong += gb_set_constant_cache_capacity(GB_ENGINE_CPU, (size_t)i % 4) != GB_SUCCESS;
        }
        w->wrong += gb_compiled_partition_execute(w->c.compiled, w->c.stream, 2,
                            (const gb_tensor *const *)w->in, 1, &w->out, NULL) != GB_SUCCESS;
        w->wrong += memcmp(w->dst, weights[set], SIZE * sizeof(float)) != 0;
    }
    return NULL;
}

/* Threads 0, 1, ... work with sets[i]; even and odd ones through different compiled partitions. */
static void run_threads(int n, const int *sets)
{
    enum { MOST = 8 };
    runtime_case both[2];
    static worker workers[MOST];
    pthread_t threads[MOST];
    runtime_compile(&both[0], product(), NULL);
    both[1] = compile_again(&both[0]);
    for (int i = 0; i < n; i++) {
        worker *w = &workers[i];
        w->c = both[i % 2];
        w->set = sets[i];
        runtime_ok(gb_tensor_create(&w->in[0], &w->c.inputs[0], w->c.engine, src));
        runtime_ok(gb_tensor_create(
                &w->in[1], &w->c.inputs[1], w->c.engine, weights[sets[i] < 0 ? 0 : sets[i]]));
        runtime_ok(gb_tensor_create(&w->out, &w->c.outputs[0], w->c.engine, w->dst));
    }
    for (int i = 0; i < n; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(workers[i].wrong, 0, "thread %d", i);
        gb_tensor_destroy(workers[i].in[0]);
        gb_tensor_destroy(workers[i].in[1]);
        gb_tensor_destroy(workers[i].out);
    }
    gb_compiled_partition_destroy(both[1].compiled);
    runtime_close(&both[0]);
}

Test(constant_cache, threads_prepare_once)
{
    run_threads(8, (const int[]){0, 0, 0, 0, 0, 0, 0, 0});
    cr_expect_eq(counters().misses, 1);
}

Test(constant_cache, threads_on_different_weights)
{
    run_threads(8, (const int[]){0, 1, 2, 0, 1, 2, -1, -1});
    cr_expect_eq(counters().entries, 0);
}

/* Memory --------------------------------------------------------------------------------------- */

static atomic_int live_blocks, blocks_left;

static void *count_malloc(size_t size, size_t alignment)
{
    void *memory = NULL;
    if (atomic_fetch_sub(&blocks_left, 1) <= 0 || posix_memalign(&memory, alignment, size) != 0)
        return NULL;
    live_blocks++;
    return memory;
}

static void count_free(void *memory)
{
    live_blocks--;
    free(memory);
}

Test(constant_cache, memory_comes_from_the_engine_and_goes_back)
{
    gb_allocator *allocator;
    runtime_case c;
    runtime_ok(gb_allocator_create(&allocator, count_malloc, count_free));
    atomic_store(&blocks_left, 0);
    runtime_compile(&c, product(), allocator);
    gb_allocator_destroy(allocator);
    float dst[ROWS * SIZE];
    for (int left = 0; left < 4; left++) { /* a failure leaves the next try a clean state */
        atomic_store(&blocks_left, left);
        gb_status status = runtime_execute(&c, (void *[]){src, weights[0]}, (void *[]){dst}, NULL);
        cr_expect(status == GB_OUT_OF_MEMORY || status == GB_SUCCESS);
        cr_expect(left > 0 || status == GB_OUT_OF_MEMORY);
    }
    atomic_store(&blocks_left, 100);
    for (int set = 0; set < 3; set++)
        run_on(&c, weights[set]);
    cr_expect_eq(live_blocks, 3);
    runtime_ok(gb_set_constant_cache_capacity(GB_ENGINE_CPU, 64));
    cr_expect_eq(live_blocks, 1);
    runtime_close(&c);
    cr_expect_eq(live_blocks, 0);
}

/* Digests -------------------------------------------------------------------------------------- */

Test(constant_cache, digests_tell_contents_apart)
{
    enum { BYTES = 200000 };
    static unsigned char data[BYTES + 8];
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i * 2654435761U >> 24);
    gb_digest whole = gb_digest_memory(data, BYTES);
    for (size_t i = 0; i < BYTES; i += 97) { /* any bit */
        data[i] ^= (unsigned char)(1 << i % 8);
        cr_expect_not(gb_digest_equal(whole, gb_digest_memory(data, BYTES)));
        data[i] ^= (unsigned char)(1 << i % 8);
    }
    cr_expect(gb_digest_equal(whole, gb_digest_memory(data, BYTES)));
    memset(data, 0, sizeof data); /* lengths */
    gb_digest before = gb_digest_memory(data, 0);
    for (size_t bytes = 1; bytes < 300; bytes++) {
        gb_digest now = gb_digest_memory(data, bytes);
        cr_expect_not(gb_digest_equal(before, now), "%zu zeros", bytes);
        before = now;
    }
    data[0] = 1; /* places: within a word, of words, of chunks */
    gb_digest first = gb_digest_memory(data, BYTES);
    data[0] = 0;
    for (size_t place = 1; place < BYTES; place *= 2) {
        data[place] = 1;
        cr_expect_not(gb_digest_equal(first, gb_digest_memory(data, BYTES)));
        data[place] = 0;
    }
    cr_expect_not(gb_digest_equal(gb_digest_join(whole, first), gb_digest_join(first, whole)));
}

static void backwards(void *pool, int n, void (*body)(void *context, int i), void *context)
{
    *(int *)pool += n;
    while (n-- > 0)
        body(context, n);
}

/* The backend's digest of memory, on its own threads or on these. */
static gb_digest digest_on(gb_stream *stream)
{
    gb_digest digest;
    runtime_ok(gb_cpu_backend.digest(stream, weights, 0, sizeof weights, &digest));
    return digest;
}

Test(constant_cache, digests_do_not_depend_on_threads)
{
    gb_engine *engine;
    gb_stream *openmp, *own;
    gb_digest expected = gb_digest_memory(weights, sizeof weights);
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    runtime_ok(gb_stream_create(&openmp, engine));
    for (int threads = 1; threads < 8; threads++) {
        int calls = 0;
        runtime_ok(gb_stream_create_with_thread_pool(&own, engine, threads, backwards, &calls));
        omp_set_num_threads(threads);
        cr_expect(gb_digest_equal(expected, digest_on(openmp)));
        cr_expect(gb_digest_equal(expected, digest_on(own)));
        cr_expect_eq(calls, threads > 1 ? threads : 0);
        gb_stream_destroy(own);
    }
    gb_stream_destroy(openmp);
    gb_engine_destroy(engine);
}
