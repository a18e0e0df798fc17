/* The cache of compiled partitions: what counts as equal, who goes first, and compiling once. */
#include <graphbench/graphbench_tools.h>

#include <criterion/criterion.h>
#include <pthread.h>

enum { SIZE = 4 };

static gb_engine *engine;

static void ok(gb_status status)
{
    cr_assert_eq(status, GB_SUCCESS, "%s", gb_last_error());
}

static void start(void)
{
    ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
}

static void finish(void)
{
    ok(gb_engine_destroy(engine));
}

TestSuite(cache, .init = start, .fini = finish);

static gb_logical_tensor tensor_of(size_t id, int64_t columns)
{
    const int64_t dims[] = {SIZE, columns};
    gb_logical_tensor tensor;
    ok(gb_logical_tensor_init_with_dims(
            &tensor, id, GB_F32, 2, dims, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    return tensor;
}

static void add_op(gb_graph *graph, size_t id, gb_op_kind kind, const gb_logical_tensor *a,
        const gb_logical_tensor *b, const gb_logical_tensor *out)
{
    gb_op *op;
    ok(gb_op_create(&op, id, kind, ""));
    ok(gb_op_add_input(op, a));
    if (b)
        ok(gb_op_add_input(op, b));
    ok(gb_op_add_output(op, out));
    ok(gb_graph_add_op(graph, op));
    ok(gb_op_destroy(op));
}

/* tanh(a - b), and with `middle` a - b too; ids begin at `first`. */
typedef struct compiled_case {
    gb_logical_tensor a, b, difference, result;
    gb_compiled_partition *compiled;
} compiled_case;

/* `open`: the shape of the result is left to the library. */
static compiled_case compile_result(
        size_t first, int64_t columns, bool swapped, bool middle, bool open)
{
    compiled_case c = {.a = tensor_of(first, columns),
            .b = tensor_of(first + 1, columns),
            .difference = tensor_of(first + 2, columns),
            .result = tensor_of(first + 3, columns)};
    gb_graph *graph;
    gb_partition *partition;
    ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    add_op(graph, first + 1, GB_OP_SUBTRACT, &c.a, &c.b, &c.difference);
    add_op(graph, first, GB_OP_TANH, &c.difference, NULL, &c.result);
    if (middle) {
        gb_op *end;
        ok(gb_op_create(&end, 99, GB_OP_END, ""));
        ok(gb_op_add_input(end, &c.difference));
        ok(gb_graph_add_op(graph, end));
        ok(gb_op_destroy(end));
    }
    ok(gb_graph_finalize(graph));
    ok(gb_graph_filter(graph, middle ? GB_POLICY_DEBUG : GB_POLICY_FUSION));
    gb_partition *partitions[3];
    size_t count;
    ok(gb_graph_get_partitions(graph, 0, NULL, &count));
    ok(gb_graph_get_partitions(graph, count, partitions, NULL));
    partition = partitions[0];
    for (size_t i = 1; i < count; i++)
        ok(gb_partition_destroy(partitions[i]));
    const gb_logical_tensor *inputs[] = {swapped ? &c.b : &c.a, swapped ? &c.a : &c.b};
    const gb_logical_tensor *outputs[] = {middle ? &c.difference : &c.result};
    gb_logical_tensor any;
    ok(gb_logical_tensor_init(
            &any, c.result.id, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_ANY, GB_PROPERTY_VARIABLE));
    if (open)
        outputs[0] = &any;
    ok(gb_partition_compile(partition, &c.compiled, 2, inputs, 1, outputs, engine));
    ok(gb_partition_destroy(partition));
    ok(gb_graph_destroy(graph));
    return c;
}

static compiled_case compile_case(size_t first, int64_t columns, bool swapped, bool middle)
{
    return compile_result(first, columns, swapped, middle, false);
}

static gb_cache_counters counters(void)
{
    gb_cache_counters now;
    ok(gb_get_compiled_partition_cache_counters(&now));
    return now;
}

/* Runs the case; inputs stand in the order in which they were given. */
static float first_result(const compiled_case *c, bool swapped)
{
    float a[64], b[64], result[64];
    gb_tensor *in[2], *out;
    gb_stream *stream;
    for (int i = 0; i < 64; i++)
        a[i] = 0.25F, b[i] = 1;
    ok(gb_tensor_create(&in[0], swapped ? &c->b : &c->a, engine, swapped ? b : a));
    ok(gb_tensor_create(&in[1], swapped ? &c->a : &c->b, engine, swapped ? a : b));
    ok(gb_tensor_create(&out, &c->result, engine, result));
    ok(gb_stream_create(&stream, engine));
    ok(gb_compiled_partition_execute(
            c->compiled, stream, 2, (const gb_tensor *const *)in, 1, &out, NULL));
    ok(gb_stream_destroy(stream));
    ok(gb_tensor_destroy(in[0]));
    ok(gb_tensor_destroy(in[1]));
    ok(gb_tensor_destroy(out));
    return result[0];
}

Test(cache, other_ids_and_orders_hit)
{
    compiled_case one = compile_case(0, 5, false, false);
    gb_cache_counters before = counters();
    compiled_case two = compile_case(70, 5, true, false);
    cr_expect_eq(counters().hits, before.hits + 1);
    cr_expect_eq(counters().misses, before.misses);
    cr_expect_float_eq(first_result(&one, false), -0.63514895F, 1e-6);
    cr_expect_eq(first_result(&one, false), first_result(&two, true));
    size_t count;
    const gb_inplace_pair *pairs;
    ok(gb_compiled_partition_get_inplace_ports(two.compiled, &count, &pairs));
    for (size_t i = 0; i < count; i++) {
        cr_expect(pairs[i].input_id == 70 || pairs[i].input_id == 71);
        cr_expect_eq(pairs[i].output_id, 73);
    }
    gb_logical_tensor tensor;
    ok(gb_compiled_partition_query_logical_tensor(two.compiled, 73, &tensor));
    cr_expect_eq(tensor.dims[1], 5);
    cr_expect_eq(gb_compiled_partition_query_logical_tensor(two.compiled, 3, &tensor),
            GB_INVALID_ARGUMENTS);
    ok(gb_compiled_partition_destroy(one.compiled));
    cr_expect_eq(first_result(&two, true), -0.63514895F);
    ok(gb_compiled_partition_destroy(two.compiled));
}

/* Engines of a context share its caches, and leave those of the process and of others alone. */
Test(cache, contexts_have_their_own)
{
    gb_engine *of_process = engine, *one, *two;
    gb_context *context, *none;
    gb_cache_counters before = counters(), own;
    ok(gb_context_create(&context, NULL));
    ok(gb_context_create(&none, &(gb_context_attrs){.size = sizeof(gb_context_attrs),
                                        .compiled_partitions = -1,
                                        .constant_megabytes = 3}));
    const gb_engine_attrs attrs = {.size = sizeof attrs, .context = context},
                          without = {.size = sizeof without, .context = none};
    ok(gb_engine_create_with_attrs(&one, GB_ENGINE_CPU, 0, &attrs));
    ok(gb_engine_create_with_attrs(&two, GB_ENGINE_CPU, 0, &without));
    ok(gb_context_destroy(context)); /* the engine has it */
    for (int round = 0; round < 2; round++) {
        engine = one;
        compiled_case c = compile_case(0, 6, false, false);
        cr_expect_float_eq(first_result(&c, false), -0.63514895F, 1e-6);
        ok(gb_compiled_partition_destroy(c.compiled));
        engine = two;
        c = compile_case(0, 6, false, false);
        ok(gb_compiled_partition_destroy(c.compiled));
    }
    ok(gb_context_get_cache_counters(context, &own));
    cr_expect(own.entries == 1 && own.hits == 1 && own.misses == 1, "%zu %zu %zu", own.entries,
            own.hits, own.misses);
    ok(gb_context_get_cache_counters(none, &own));
    cr_expect(own.entries == 0 && own.hits == 0, "%zu %zu", own.entries, own.hits);
    gb_cache_counters after = counters();
    cr_expect(after.entries == before.entries && after.hits == before.hits &&
              after.misses == before.misses);
    engine = of_process;
    compiled_case c = compile_case(0, 6, false, false);
    cr_expect_eq(counters().misses, before.misses + 1);
    ok(gb_compiled_partition_destroy(c.compiled));
    ok(gb_engine_destroy(one));
    ok(gb_engine_destroy(two));
    ok(gb_context_destroy(none));
}

/* What is asked for the shapes that the first compilation told is known, under other ids, too. */
Test(cache, results_that_were_left_open)
{
    compiled_case open = compile_result(0, 9, false, false, true);
    gb_cache_counters before = counters();
    compiled_case known = compile_case(50, 9, true, false);
    compiled_case again = compile_result(30, 9, true, false, true);
    cr_expect_eq(counters().hits, before.hits + 2);
    cr_expect_eq(counters().misses, before.misses);
    gb_logical_tensor tensor;
    ok(gb_compiled_partition_query_logical_tensor(known.compiled, 53, &tensor));
    cr_expect(tensor.dims[1] == 9 && tensor.strides[0] == 9);
    cr_expect_float_eq(first_result(&known, true), -0.63514895F, 1e-6);
    cr_expect_float_eq(first_result(&open, false), -0.63514895F, 1e-6);
    ok(gb_compiled_partition_destroy(open.compiled));
    ok(gb_compiled_partition_destroy(known.compiled));
    ok(gb_compiled_partition_destroy(again.compiled));
}

Test(cache, other_shapes_and_results_miss)
{
    compiled_case one = compile_case(0, 5, false, false);
    size_t misses = counters().misses;
    compiled_case two = compile_case(0, 6, false, false);
    cr_expect_eq(counters().misses, misses + 1);
    compiled_case three = compile_case(0, 5, false, true); /* another part of the graph */
    cr_expect_eq(counters().misses, misses + 2);
    ok(gb_compiled_partition_destroy(one.compiled));
    ok(gb_compiled_partition_destroy(two.compiled));
    ok(gb_compiled_partition_destroy(three.compiled));
}

Test(cache, what_checks_its_memory_is_compiled_anew)
{
    compiled_case one = compile_case(0, 5, false, false);
    size_t misses = counters().misses;
    gb_set_memory_checks(1);
    compiled_case two = compile_case(0, 5, false, false);
    gb_set_memory_checks(0);
    cr_expect_eq(counters().misses, misses + 1);
    cr_expect_eq(first_result(&one, false), first_result(&two, false));
    ok(gb_compiled_partition_destroy(one.compiled));
    ok(gb_compiled_partition_destroy(two.compiled));
}

Test(cache, other_caches_of_the_machine_miss)
{
    ok(gb_set_caches("32768:524288:33554432"));
    compiled_case one = compile_case(0, 5, false, false);
    size_t misses = counters().misses;
    ok(gb_set_caches("32768:524288:1048576"));
    compiled_case two = compile_case(0, 5, false, false);
    ok(gb_set_caches(NULL));
    cr_expect_eq(counters().misses, misses + 1);
    ok(gb_compiled_partition_destroy(one.compiled));
    ok(gb_compiled_partition_destroy(two.compiled));
}

Test(cache, other_products_of_bf16_miss)
{
    ok(gb_set_bf16_products(GB_BF16_PRODUCTS_F32));
    compiled_case one = compile_case(0, 5, false, false);
    const size_t misses = counters().misses;
    const gb_status status = gb_set_bf16_products(GB_BF16_PRODUCTS_DOT);
    cr_expect(status == GB_SUCCESS || status == GB_UNIMPLEMENTED);
    compiled_case two = compile_case(0, 5, false, false);
    ok(gb_set_bf16_products(GB_BF16_PRODUCTS_AUTO));
    cr_expect_eq(counters().misses, misses + (status == GB_SUCCESS));
    ok(gb_compiled_partition_destroy(one.compiled));
    ok(gb_compiled_partition_destroy(two.compiled));
}

Test(cache, the_least_recently_used_goes)
{
    ok(gb_set_compiled_partition_cache_capacity(2));
    int capacity;
    ok(gb_get_compiled_partition_cache_capacity(&capacity));
    cr_expect_eq(capacity, 2);
    const int64_t columns[] = {1, 2, 1, 3, 1, 2}; /* 3 drives out 2, not 1 */
    const size_t hits[] = {0, 0, 1, 1, 2, 2};
    size_t before = counters().hits;
    for (int i = 0; i < 6; i++) {
        ok(gb_compiled_partition_destroy(compile_case(0, columns[i], false, false).compiled));
        cr_expect_eq(counters().hits, before + hits[i], "step %d", i);
        cr_expect_leq(counters().entries, 2);
    }
    cr_expect_eq(counters().evictions, 2);
}

Test(cache, capacity_0_turns_it_off)
{
    compiled_case kept = compile_case(0, 5, false, false);
    cr_expect_eq(counters().entries, 1);
    ok(gb_set_compiled_partition_cache_capacity(0));
    cr_expect_eq(counters().entries, 0);
    cr_expect_float_eq(first_result(&kept, false), -0.63514895F, 1e-6);
    ok(gb_compiled_partition_destroy(compile_case(0, 5, false, false).compiled));
    cr_expect_eq(counters().entries, 0);
    cr_expect_eq(counters().hits, 0);
    ok(gb_compiled_partition_destroy(kept.compiled));
    cr_expect_eq(gb_set_compiled_partition_cache_capacity(-1), GB_INVALID_ARGUMENTS);
}

Test(cache, an_engine_takes_its_entries_along)
{
    gb_engine *shared = engine;
    ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    compiled_case c = compile_case(0, 5, false, false);
    cr_expect_eq(counters().entries, 1);
    ok(gb_engine_destroy(engine));
    cr_expect_eq(counters().entries, 0);
    ok(gb_compiled_partition_destroy(c.compiled)); /* it keeps what it needs */
    engine = shared;
}

typedef struct job {
    gb_partition *partition;
    gb_logical_tensor x, y;
    gb_compiled_partition *compiled;
    gb_status status;
} job;

/* No assertions here: they belong to the main thread. */
static void *compile_job(void *argument)
{
    job *j = argument;
    const gb_logical_tensor *inputs[] = {&j->x}, *outputs[] = {&j->y};
    j->status = gb_partition_compile(j->partition, &j->compiled, 1, inputs, 1, outputs, engine);
    return NULL;
}

static job softmax_job(size_t id)
{
    job j = {.x = tensor_of(id, 7), .y = tensor_of(id + 1, 7)};
    const int64_t axis = 1;
    gb_op *op;
    ok(gb_op_create(&op, id, GB_OP_SOFTMAX, ""));
    ok(gb_op_add_input(op, &j.x));
    ok(gb_op_add_output(op, &j.y));
    ok(gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, &axis));
    ok(gb_partition_create_with_op(&j.partition, op, GB_ENGINE_CPU));
    ok(gb_op_destroy(op));
    return j;
}

Test(cache, threads_compile_once)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    job jobs[THREADS];
    gb_cache_counters before = counters();
    for (size_t i = 0; i < THREADS; i++)
        jobs[i] = softmax_job(10 * i);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, compile_job, &jobs[i]), 0);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    cr_expect_eq(counters().misses, before.misses + 1);
    cr_expect_eq(counters().hits, before.hits + THREADS - 1);
    for (int i = 0; i < THREADS; i++) {
        cr_expect_eq(jobs[i].status, GB_SUCCESS);
        ok(gb_compiled_partition_destroy(jobs[i].compiled));
        ok(gb_partition_destroy(jobs[i].partition));
    }
}
