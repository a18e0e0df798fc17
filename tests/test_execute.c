/* Executing compiled partitions: memory, scratchpads, constants, threads, in-place ports. */
#include "runtime_case.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { ROWS = 24, INNER = 40, COLUMNS = 56 };

/* src 0 x weights 1 + bias 2 -> 3 -> ReLU 4; the weights have the given property. */
static gb_graph *product(gb_property weights)
{
    gb_graph *graph;
    gb_logical_tensor src = runtime_matrix(0, ROWS, INNER, GB_PROPERTY_VARIABLE);
    gb_logical_tensor filter = runtime_matrix(1, INNER, COLUMNS, weights);
    gb_logical_tensor bias = runtime_matrix(2, 1, COLUMNS, GB_PROPERTY_VARIABLE);
    gb_logical_tensor sum = runtime_matrix(3, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    gb_logical_tensor dst = runtime_matrix(4, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(
            graph, 0, GB_OP_MATMUL, 3, (const gb_logical_tensor *[]){&src, &filter, &bias}, &sum);
    runtime_op(graph, 1, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&sum}, &dst);
    return graph;
}

static float src[ROWS * INNER], weights[2][INNER * COLUMNS], bias[COLUMNS];
static float expected[2][ROWS * COLUMNS]; /* for either set of weights */

static void fill(void)
{
    runtime_fill(src, ROWS * INNER, 0);
    runtime_fill(bias, COLUMNS, 1);
    for (int set = 0; set < 2; set++) {
        runtime_fill(weights[set], INNER * COLUMNS, (float)set / 4);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            double sum = (double)bias[i % COLUMNS];
            for (int k = 0; k < INNER; k++)
                sum += (double)src[i / COLUMNS * INNER + k] *
                       (double)weights[set][k * COLUMNS + i % COLUMNS];
            expected[set][i] = sum > 0 ? (float)sum : 0; /* sums of multiples of 1/256: exact */
        }
    }
}

TestSuite(execute, .init = fill);

static void expect_product(const float *dst, int set)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        cr_assert_eq(dst[i], expected[set][i], "element %d with weights %d: %g, not %g", i, set,
                (double)dst[i], (double)expected[set][i]);
}

static gb_status run_product(const runtime_case *c, int set, float *dst, gb_tensor *scratch)
{
    void *inputs[] = {src, weights[set], bias}, *outputs[] = {dst};
    return runtime_execute(c, inputs, outputs, scratch);
}

/* Arguments ------------------------------------------------------------------------------------ */

Test(execute, arguments)
{
    runtime_case c;
    float dst[ROWS * COLUMNS];
    runtime_compile(&c, product(GB_PROPERTY_VARIABLE), NULL);
    gb_tensor *t;
    runtime_ok(gb_tensor_create(&t, &c.outputs[0], c.engine, dst));
    const gb_tensor *in[] = {t, t, t}, *holes[] = {t, NULL, t};
    gb_tensor *list[] = {t, t, t};
    cr_expect_eq(gb_compiled_partition_execute(NULL, c.stream, 3, in, 1, list, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_execute(c.compiled, NULL, 3, in, 1, list, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_execute(c.compiled, c.stream, 3, NULL, 1, list, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_execute(c.compiled, c.stream, 3, in, 1, NULL, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_execute(c.compiled, c.stream, 2, in, 1, list, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_execute(c.compiled, c.stream, 3, in, 2, list, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_execute(c.compiled, c.stream, 3, holes, 1, list, NULL),
            GB_INVALID_ARGUMENTS);
    gb_tensor_destroy(t);
    cr_expect_eq(run_product(&c, 0, NULL, NULL), GB_INVALID_ARGUMENTS);
    runtime_close(&c);
}

Test(execute, a_compiled_partition_outlives_everything)
{
    runtime_case c;
    float dst[ROWS * COLUMNS];
    runtime_compile(&c, product(GB_PROPERTY_CONSTANT), NULL);
    gb_partition_destroy(c.partition);
    c.partition = NULL;
    gb_engine *other;
    runtime_ok(gb_engine_create(&other, GB_ENGINE_CPU, 0));
    gb_engine_destroy(c.engine);
    c.engine = other; /* another engine of the kind may lend tensors */
    runtime_ok(run_product(&c, 0, dst, NULL));
    expect_product(dst, 0);
    runtime_close(&c);
}

Test(execute, order_of_tensors_is_that_of_compile)
{
    runtime_case c;
    float dst[ROWS * COLUMNS];
    runtime_compile(&c, product(GB_PROPERTY_VARIABLE), NULL);
    gb_compiled_partition_destroy(c.compiled);
    gb_logical_tensor swap = c.inputs[0];
    c.inputs[0] = c.inputs[2];
    c.inputs[2] = swap;
    const gb_logical_tensor *in[] = {&c.inputs[0], &c.inputs[1], &c.inputs[2]};
    const gb_logical_tensor *out[] = {&c.outputs[0]};
    runtime_ok(gb_partition_compile(c.partition, &c.compiled, 3, in, 1, out, c.engine));
    runtime_ok(runtime_execute(&c, (void *[]){bias, weights[1], src}, (void *[]){dst}, NULL));
    expect_product(dst, 1);
    runtime_close(&c);
}

/* Scratchpads and allocators ------------------------------------------------------------------- */

Test(execute, a_scratchpad_of_the_exact_size_suffices)
{
    enum { GUARD = 64 };
    runtime_case c;
    float dst[ROWS * COLUMNS];
    gb_logical_tensor description;
    gb_tensor *scratchpad;
    runtime_compile(&c, product(GB_PROPERTY_VARIABLE), NULL);
    runtime_ok(gb_compiled_partition_get_scratchpad(c.compiled, &description));
    size_t bytes = (size_t)description.dims[0];
    cr_assert_gt(bytes, 0);
    unsigned char *memory = malloc(bytes + 2 * GUARD + 1);
    for (int shift = 0; shift < 2; shift++) { /* the second one is not aligned */
        memset(memory, 0xA5, bytes + 2 * GUARD + 1);
        runtime_ok(gb_tensor_create(&scratchpad, &description, c.engine, memory + GUARD + shift));
        runtime_ok(run_product(&c, 0, dst, scratchpad));
        expect_product(dst, 0);
        for (int i = 0; i < GUARD; i++) {
            cr_assert_eq(memory[i], 0xA5);
            cr_assert_eq(memory[GUARD + (size_t)shift + bytes + (size_t)i], 0xA5);
        }
        gb_tensor_destroy(scratchpad);
    }
    free(memory);
    runtime_close(&c);
}

Test(execute, a_scratchpad_that_does_not_fit_is_refused)
{
    runtime_case c;
    float dst[ROWS * COLUMNS];
    gb_logical_tensor description, small;
    gb_tensor *scratchpad;
    runtime_compile(&c, product(GB_PROPERTY_VARIABLE), NULL);
    runtime_ok(gb_compiled_partition_get_scratchpad(c.compiled, &description));
    small = description;
    small.dims[0]--;
    runtime_ok(gb_tensor_create(&scratchpad, &small, c.engine, GB_MEMORY_ALLOCATE));
    cr_expect_eq(run_product(&c, 0, dst, scratchpad), GB_INVALID_ARGUMENTS);
    gb_tensor_destroy(scratchpad);
    runtime_ok(gb_tensor_create(&scratchpad, &description, c.engine, GB_MEMORY_NONE));
    cr_expect_eq(run_product(&c, 0, dst, scratchpad), GB_INVALID_ARGUMENTS);
    gb_tensor_destroy(scratchpad);
    small.layout_type = GB_LAYOUT_ANY; /* of unknown size */
    runtime_ok(gb_tensor_create(&scratchpad, &small, c.engine, dst));
    cr_expect_eq(run_product(&c, 0, dst, scratchpad), GB_INVALID_ARGUMENTS);
    gb_tensor_destroy(scratchpad);
    runtime_close(&c);
}

static atomic_int live_blocks, all_blocks, blocks_left;

static void *counted_malloc(size_t bytes, size_t alignment)
{
    void *memory = NULL;
    if (atomic_fetch_sub(&blocks_left, 1) <= 0)
        return NULL;
    cr_assert_gt(bytes, 0);
    if (posix_memalign(&memory, alignment ? alignment : 64, bytes))
        return NULL;
    atomic_fetch_add(&live_blocks, 1);
    atomic_fetch_add(&all_blocks, 1);
    return memory;
}

static void counted_free(void *memory)
{
    cr_assert_not_null(memory);
    atomic_fetch_sub(&live_blocks, 1);
    free(memory);
}

static void compile_counted(runtime_case *c, int blocks)
{
    gb_allocator *allocator;
    runtime_ok(gb_allocator_create(&allocator, counted_malloc, counted_free));
    atomic_store(&blocks_left, blocks);
    runtime_compile(c, product(GB_PROPERTY_CONSTANT), allocator);
    gb_allocator_destroy(allocator);
}

Test(execute, memory_of_the_users_allocator_is_given_back)
{
    runtime_case c;
    float dst[ROWS * COLUMNS];
    gb_tensor *tensor;
    compile_counted(&c, 1000);
    runtime_ok(gb_tensor_create(&tensor, &c.outputs[0], c.engine, GB_MEMORY_ALLOCATE));
    for (int i = 0; i < 4; i++) {
        runtime_ok(run_product(&c, i % 2, dst, NULL));
        expect_product(dst, i % 2);
    }
    gb_tensor_destroy(tensor);
    runtime_close(&c);
    cr_expect_gt(all_blocks, 1);
    cr_expect_eq(live_blocks, 0);
}

Test(execute, an_allocator_without_memory_is_an_error)
{
    runtime_case c;
    float dst[ROWS * COLUMNS];
    for (int blocks = 0; blocks < 2; blocks++) {
        compile_counted(&c, blocks);
        gb_status status = run_product(&c, 0, dst, NULL);
        cr_expect(status == GB_OUT_OF_MEMORY || status == GB_SUCCESS);
        atomic_store(&blocks_left, 1000);
        runtime_ok(run_product(&c, 0, dst, NULL));
        expect_product(dst, 0);
        runtime_close(&c);
        cr_expect_eq(live_blocks, 0);
    }
}

/* Constants ------------------------------------------------------------------------------------ */

Test(execute, constants_follow_the_pointer)
{
    runtime_case c;
    float dst[ROWS * COLUMNS];
    runtime_compile(&c, product(GB_PROPERTY_CONSTANT), NULL);
    const int order[] = {0, 0, 1, 1, 0, 1, 0};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        memset(dst, 0xFF, sizeof dst);
        runtime_ok(run_product(&c, order[i], dst, NULL));
        expect_product(dst, order[i]);
    }
    runtime_close(&c);
}

Test(execute, variable_weights_are_read_every_time)
{
    runtime_case c;
    float dst[ROWS * COLUMNS], changing[INNER * COLUMNS];
    runtime_compile(&c, product(GB_PROPERTY_VARIABLE), NULL);
    for (int set = 0; set < 2; set++) {
        memcpy(changing, weights[set], sizeof changing);
        runtime_ok(runtime_execute(&c, (void *[]){src, changing, bias}, (void *[]){dst}, NULL));
        expect_product(dst, set);
    }
    runtime_close(&c);
}

/* Threads -------------------------------------------------------------------------------------- */

typedef struct worker {
    const runtime_case *c;
    int set, wrong;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    float *dst = malloc(sizeof expected[0]);
    for (int i = 0; i < 50; i++) {
        int set = w->set < 0 ? i % 2 : w->set;
        memset(dst, 0xFF, sizeof expected[0]);
        w->wrong += run_product(w->c, set, dst, NULL) != GB_SUCCESS ||
                    memcmp(dst, expected[set], sizeof expected[0]) != 0;
    }
    free(dst);
    return NULL;
}

static void run_workers(gb_property property, const int sets[4])
{
    runtime_case c;
    pthread_t threads[4];
    worker workers[4];
    runtime_compile(&c, product(property), NULL);
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){.c = &c, .set = sets[i]};
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(workers[i].wrong, 0, "thread %d: %d wrong results", i, workers[i].wrong);
    }
    runtime_close(&c);
}

Test(execute, four_threads_execute_at_once)
{
    run_workers(GB_PROPERTY_VARIABLE, (const int[]){0, 1, 0, -1});
}

Test(execute, threads_with_constants_of_their_own)
{
    run_workers(GB_PROPERTY_CONSTANT, (const int[]){0, 1, -1, -1});
}

/* (0 + 1) x 3 * 5 -> 6: an element-wise group and a product in one partition. */
static gb_graph *binary_product(int64_t rows, int64_t inner, int64_t columns)
{
    gb_graph *graph;
    gb_logical_tensor a = runtime_matrix(0, rows, inner, GB_PROPERTY_VARIABLE);
    gb_logical_tensor b = runtime_matrix(1, rows, inner, GB_PROPERTY_VARIABLE);
    gb_logical_tensor sum = runtime_matrix(2, rows, inner, GB_PROPERTY_VARIABLE);
    gb_logical_tensor w = runtime_matrix(3, inner, columns, GB_PROPERTY_VARIABLE);
    gb_logical_tensor product_ = runtime_matrix(4, rows, columns, GB_PROPERTY_VARIABLE);
    gb_logical_tensor side = runtime_matrix(5, rows, columns, GB_PROPERTY_VARIABLE);
    gb_logical_tensor dst = runtime_matrix(6, rows, columns, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_ADD, 2, (const gb_logical_tensor *[]){&a, &b}, &sum);
    runtime_op(graph, 1, GB_OP_MATMUL, 2, (const gb_logical_tensor *[]){&sum, &w}, &product_);
    runtime_op(graph, 2, GB_OP_MULTIPLY, 2, (const gb_logical_tensor *[]){&product_, &side}, &dst);
    return graph;
}

Test(execute, one_and_two_threads_give_the_same_bits)
{
    enum { N = 320 };
    runtime_case c;
    float *memory[4], *dst[2];
    for (int i = 0; i < 4; i++) {
        memory[i] = malloc(N * N * sizeof(float));
        for (int k = 0; k < N * N; k++)
            memory[i][k] = 1 / (float)(k * (i + 3) % 1013 + 7);
    }
    for (int threads = 1; threads <= 2; threads++) {
        omp_set_num_threads(threads);
        dst[threads - 1] = malloc(N * N * sizeof(float));
        runtime_compile(&c, binary_product(N, N, N), NULL);
        cr_assert_eq(c.n_inputs, 4);
        runtime_ok(runtime_execute(&c, (void *const *)memory, (void *[]){dst[threads - 1]}, NULL));
        runtime_close(&c);
    }
    cr_expect_eq(memcmp(dst[0], dst[1], N * N * sizeof(float)), 0);
    for (int i = 0; i < 4; i++)
        free(memory[i]);
    free(dst[0]);
    free(dst[1]);
}

Test(execute, fewer_threads_than_compiled_for)
{
    runtime_case c;
    float dst[ROWS * COLUMNS];
    omp_set_num_threads(4);
    runtime_compile(&c, product(GB_PROPERTY_CONSTANT), NULL);
    for (int threads = 8; threads >= 1; threads /= 2) {
        omp_set_num_threads(threads);
        runtime_ok(run_product(&c, threads % 2, dst, NULL));
        expect_product(dst, threads % 2);
    }
    runtime_close(&c);
}

/* Zero sizes and shared memory ----------------------------------------------------------------- */

Test(execute, outputs_without_elements)
{
    runtime_case c;
    runtime_compile(&c, binary_product(0, 8, 8), NULL);
    double flops, bytes;
    runtime_ok(gb_compiled_partition_get_work(c.compiled, &flops, &bytes));
    cr_expect_eq(flops, 0);
    float w[64] = {0};
    void *inputs[] = {NULL, NULL, NULL, NULL};
    for (size_t i = 0; i < c.n_inputs; i++)
        if (c.inputs[i].id == 3)
            inputs[i] = w;
    runtime_ok(runtime_execute(&c, inputs, (void *[]){NULL}, NULL));
    cr_expect_neq(gb_compiled_partition_get_kernels(c.compiled)[0], ':');
    runtime_close(&c);
}

static gb_graph *elementwise(gb_property property)
{
    gb_graph *graph;
    gb_logical_tensor a = runtime_matrix(0, 30, 50, property);
    gb_logical_tensor b = runtime_matrix(1, 1, 50, GB_PROPERTY_VARIABLE);
    gb_logical_tensor sum = runtime_matrix(2, 30, 50, GB_PROPERTY_VARIABLE);
    gb_logical_tensor dst = runtime_matrix(3, 30, 50, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_ADD, 2, (const gb_logical_tensor *[]){&a, &b}, &sum);
    runtime_op(graph, 1, GB_OP_MULTIPLY, 2, (const gb_logical_tensor *[]){&sum, &a}, &dst);
    return graph;
}

static size_t count_pairs(const runtime_case *c, const gb_inplace_pair **pairs)
{
    size_t count;
    runtime_ok(gb_compiled_partition_get_inplace_ports(c->compiled, &count, pairs));
    return count;
}

Test(execute, an_output_may_take_the_place_of_an_input)
{
    enum { N = 30 * 50 };
    runtime_case c;
    const gb_inplace_pair *pairs;
    static float a[N], b[50], apart[N];
    runtime_fill(a, N, 0);
    runtime_fill(b, 50, 2);
    runtime_compile(&c, elementwise(GB_PROPERTY_VARIABLE), NULL);
    cr_assert_eq(count_pairs(&c, &pairs), 1);
    cr_expect_eq(pairs[0].input_id, 0);
    cr_expect_eq(pairs[0].output_id, 3);
    runtime_ok(runtime_execute(&c, (void *[]){a, b}, (void *[]){apart}, NULL));
    runtime_ok(runtime_execute(&c, (void *[]){a, b}, (void *[]){a}, NULL));
    cr_expect_eq(memcmp(a, apart, sizeof a), 0);
    runtime_close(&c);
}

Test(execute, constants_and_operands_of_a_product_are_not_overwritten)
{
    runtime_case c;
    const gb_inplace_pair *pairs;
    runtime_compile(&c, elementwise(GB_PROPERTY_CONSTANT), NULL);
    cr_expect_eq(count_pairs(&c, &pairs), 0);
    runtime_close(&c);
    runtime_compile(&c, product(GB_PROPERTY_VARIABLE), NULL);
    cr_expect_eq(count_pairs(&c, &pairs), 0);
    runtime_close(&c);
}

Test(execute, an_input_read_before_lends_its_memory_to_a_later_output)
{
    enum { N = 24 };
    runtime_case c;
    const gb_inplace_pair *pairs;
    static float memory[4][N * N], apart[N * N];
    for (int i = 0; i < 4; i++)
        runtime_fill(memory[i], N * N, (float)i);
    runtime_compile(&c, binary_product(N, N, N), NULL);
    size_t count = count_pairs(&c, &pairs);
    void *inputs[] = {memory[0], memory[1], memory[2], memory[3]};
    runtime_ok(runtime_execute(&c, inputs, (void *[]){apart}, NULL));
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; i < c.n_inputs; i++)
            if (c.inputs[i].id == pairs[p].input_id) {
                runtime_ok(runtime_execute(&c, inputs, (void *[]){inputs[i]}, NULL));
                cr_expect_eq(memcmp(inputs[i], apart, sizeof apart), 0);
            }
    cr_expect_eq(count, 1);
    runtime_close(&c);
}
