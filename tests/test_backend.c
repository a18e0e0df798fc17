/* The boundary between runtime and backends, held against a backend that has memory of its own and
 * runs later, in another order (backend/test_device.h). */
#include "backend/test_device.h"
#include "runtime_case.h"

#include <signal.h>

enum { ROWS = 7, COLUMNS = 9, COUNT = ROWS * COLUMNS };

static gb_engine *engine;
static gb_stream *stream;

static void open_device(void)
{
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_TEST, 0));
    runtime_ok(gb_stream_create(&stream, engine));
}

/* The device aborts when memory is left. */
static void close_device(void)
{
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

TestSuite(backend, .init = open_device, .fini = close_device);

/* One binary op on two matrices, or on a matrix and itself. */
static gb_compiled_partition *compile(gb_op_kind kind, gb_property property)
{
    gb_logical_tensor t[3];
    const gb_logical_tensor *in[] = {&t[0], &t[1]}, *out[] = {&t[2]};
    gb_graph *graph;
    gb_compiled_partition *compiled;
    for (size_t i = 0; i < 3; i++)
        t[i] = runtime_matrix(i, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    t[1].property = property;
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_TEST));
    runtime_op(graph, 0, kind, 2, in, &t[2]);
    gb_partition *partition = runtime_partition(graph);
    runtime_ok(gb_partition_compile(partition, &compiled, 2, in, 1, out, engine));
    gb_partition_destroy(partition);
    return compiled;
}

static gb_tensor *matrix(size_t id, gb_property property, float value)
{
    gb_logical_tensor description = runtime_matrix(id, ROWS, COLUMNS, property);
    gb_tensor *tensor;
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = value;
    runtime_ok(gb_tensor_create(&tensor, &description, engine, GB_MEMORY_ALLOCATE));
    runtime_ok(gb_tensor_write(tensor, stream, 0, sizeof values, values));
    return tensor;
}

static gb_event *execute_after(const gb_compiled_partition *compiled, gb_stream *on,
        const gb_tensor *a, const gb_tensor *b, gb_tensor *y, const gb_event *dependency)
{
    gb_event *event = NULL;
    runtime_ok(gb_compiled_partition_execute_with_events(compiled, on, 2,
            (const gb_tensor *[]){a, b}, 1, &y, NULL, dependency != NULL, &dependency, &event));
    return event;
}

static bool is_complete(const gb_event *event)
{
    uint8_t complete;
    runtime_ok(gb_event_is_complete(event, &complete));
    return complete;
}

static void expect_all(const gb_tensor *tensor, float value)
{
    float values[COUNT];
    runtime_ok(gb_tensor_read(tensor, stream, 0, sizeof values, values));
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(
                values[i], value, "element %d is %g, not %g", i, (double)values[i], (double)value);
}

/* Memory --------------------------------------------------------------------------------------- */

Test(backend, memory_is_reached_by_copies_and_maps_only)
{
    gb_tensor *tensor = matrix(0, GB_PROPERTY_VARIABLE, 2);
    float values[COUNT] = {0}, *mapped;
    uint8_t host_memory = 1;
    runtime_ok(gb_engine_has_host_memory(engine, &host_memory));
    cr_expect_eq(host_memory, 0);
    values[0] = 5;
    runtime_ok(gb_tensor_write(tensor, stream, 3 * sizeof(float), sizeof(float), values));
    void *pointer;
    runtime_ok(gb_tensor_map(tensor, stream, &pointer));
    mapped = pointer;
    cr_expect_eq(mapped[2], 2);
    cr_expect_eq(mapped[3], 5);
    mapped[3] = 2;
    runtime_ok(gb_tensor_unmap(tensor, stream, pointer));
    expect_all(tensor, 2);
    cr_expect_eq(gb_tensor_read(tensor, stream, 4, sizeof values, values), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_write(tensor, stream, SIZE_MAX, 4, values), GB_INVALID_ARGUMENTS);
    gb_tensor_destroy(tensor);
    cr_expect_eq(gb_test_device_objects(engine), 0);
}

static void *read_handle(void *tensor)
{
    void *handle;
    runtime_ok(gb_tensor_get_data_handle(tensor, &handle));
    return handle;
}

#ifndef __SANITIZE_ADDRESS__ /* which ends the process itself */
Test(backend, host_pointers_reach_nothing, .signal = SIGSEGV)
{
    volatile float *handle = read_handle(matrix(0, GB_PROPERTY_VARIABLE, 2));
    cr_assert_neq(*handle, 2);
}

Test(backend, a_map_ends, .signal = SIGSEGV)
{
    gb_tensor *tensor = matrix(0, GB_PROPERTY_VARIABLE, 2);
    void *pointer;
    runtime_ok(gb_tensor_map(tensor, stream, &pointer));
    runtime_ok(gb_tensor_unmap(tensor, stream, pointer));
    cr_assert_neq(*(volatile float *)pointer, 2);
}
#endif

Test(backend, handles_of_the_device_are_shared_and_others_refused)
{
    gb_tensor *tensor = matrix(0, GB_PROPERTY_VARIABLE, 2), *other = NULL;
    gb_logical_tensor large = runtime_matrix(1, ROWS + 1, COLUMNS, GB_PROPERTY_VARIABLE);
    gb_logical_tensor same = runtime_matrix(2, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    float mine[COUNT] = {0};
    void *handle = read_handle(tensor);
    cr_expect_eq(gb_tensor_create(&other, &same, engine, mine), GB_INVALID_ARGUMENTS);
    cr_expect(strstr(gb_last_error(), "no memory"), "%s", gb_last_error());
    cr_expect_eq(gb_tensor_create(&other, &large, engine, handle), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_set_data_handle(tensor, mine), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_tensor_create(&other, &same, engine, handle));
    gb_tensor_destroy(tensor); /* the object stays while the other tensor holds it */
    expect_all(other, 2);
    gb_tensor_destroy(other);
    cr_expect_eq(gb_test_device_objects(engine), 0);
}

Test(backend, what_is_of_another_engine_is_refused)
{
    gb_compiled_partition *compiled = compile(GB_OP_ADD, GB_PROPERTY_VARIABLE);
    gb_tensor *a = matrix(0, GB_PROPERTY_VARIABLE, 1), *y = matrix(2, GB_PROPERTY_VARIABLE, 0);
    gb_engine *cpu, *second;
    gb_stream *cpu_stream;
    gb_tensor *b[2];
    float mine[COUNT] = {0};
    gb_logical_tensor description = runtime_matrix(1, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_engine_create(&cpu, GB_ENGINE_CPU, 0));
    runtime_ok(gb_engine_create(&second, GB_ENGINE_TEST, 1));
    runtime_ok(gb_stream_create(&cpu_stream, cpu));
    runtime_ok(gb_tensor_create(&b[0], &description, cpu, mine));
    runtime_ok(gb_tensor_create(&b[1], &description, second, GB_MEMORY_ALLOCATE));
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(gb_compiled_partition_execute(compiled, stream, 2,
                             (const gb_tensor *[]){a, b[i]}, 1, (gb_tensor *[]){y}, NULL),
                GB_INVALID_ARGUMENTS);
        cr_expect(strstr(gb_last_error(), "input 1 (tensor 1) is of another engine"), "%s",
                gb_last_error());
    }
    cr_expect_eq(gb_compiled_partition_execute(compiled, cpu_stream, 2, (const gb_tensor *[]){a, a},
                         1, (gb_tensor *[]){y}, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect(strstr(gb_last_error(), "the stream is of another engine"), "%s", gb_last_error());
    cr_expect_eq(gb_tensor_read(a, cpu_stream, 0, 4, mine), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_reorder(a, y, cpu_stream), GB_INVALID_ARGUMENTS);
    gb_tensor_destroy(b[0]);
    gb_tensor_destroy(b[1]);
    gb_stream_destroy(cpu_stream);
    gb_engine_destroy(second);
    gb_engine_destroy(cpu);
    gb_tensor_destroy(a);
    gb_tensor_destroy(y);
    gb_compiled_partition_destroy(compiled);
}

/* Order and life time -------------------------------------------------------------------------- */

Test(backend, runs_complete_later_and_in_another_order)
{
    gb_compiled_partition *compiled = compile(GB_OP_ADD, GB_PROPERTY_VARIABLE);
    gb_tensor *x = matrix(0, GB_PROPERTY_VARIABLE, 1);
    gb_tensor *y[2] = {matrix(2, GB_PROPERTY_VARIABLE, 0), matrix(2, GB_PROPERTY_VARIABLE, 0)};
    gb_event *events[2];
    gb_test_device_hold(engine, true);
    for (int i = 0; i < 2; i++)
        events[i] = execute_after(compiled, stream, x, x, y[i], NULL);
    cr_expect(!is_complete(events[0]) && !is_complete(events[1]));
    gb_test_device_let(engine, 1);
    runtime_ok(gb_event_wait(events[1])); /* alone: they have no memory in common that is written */
    cr_expect(!is_complete(events[0]));
    gb_test_device_hold(engine, false);
    runtime_ok(gb_event_wait(events[0]));
    for (int i = 0; i < 2; i++) {
        expect_all(y[i], 2);
        gb_event_destroy(events[i]);
        gb_tensor_destroy(y[i]);
    }
    gb_tensor_destroy(x);
    gb_compiled_partition_destroy(compiled);
}

Test(backend, dependencies_order_streams)
{
    gb_compiled_partition *compiled = compile(GB_OP_ADD, GB_PROPERTY_VARIABLE);
    gb_tensor *a = matrix(0, GB_PROPERTY_VARIABLE, 1), *b = matrix(1, GB_PROPERTY_VARIABLE, 2);
    gb_tensor *first = matrix(2, GB_PROPERTY_VARIABLE, 0);
    gb_tensor *second = matrix(2, GB_PROPERTY_VARIABLE, 0);
    gb_stream *other;
    runtime_ok(gb_stream_create(&other, engine));
    gb_test_device_hold(engine, true);
    gb_event *stuck = execute_after(compiled, stream, a, b, first, NULL);
    gb_event *on_other = execute_after(compiled, other, a, first, second, stuck);
    cr_expect(!is_complete(stuck) && !is_complete(on_other));
    gb_test_device_hold(engine, false);
    runtime_ok(gb_event_wait(on_other));
    cr_expect(is_complete(stuck));
    expect_all(first, 3);
    expect_all(second, 4);
    gb_event_destroy(stuck);
    gb_event_destroy(on_other);
    gb_stream_destroy(other);
    gb_tensor_destroy(a);
    gb_tensor_destroy(b);
    gb_tensor_destroy(first);
    gb_tensor_destroy(second);
    gb_compiled_partition_destroy(compiled);
}

/* y = x + x doubles; three runs in a row are chained by their memory, whatever the device prefers.
 */
Test(backend, a_stream_keeps_the_order_that_memory_needs)
{
    gb_compiled_partition *compiled = compile(GB_OP_ADD, GB_PROPERTY_VARIABLE);
    gb_tensor *x[4];
    for (int i = 0; i < 4; i++)
        x[i] = matrix(0, GB_PROPERTY_VARIABLE, i == 0);
    gb_test_device_hold(engine, true);
    for (int i = 0; i < 3; i++)
        gb_event_destroy(execute_after(compiled, stream, x[i], x[i], x[i + 1], NULL));
    gb_test_device_hold(engine, false);
    runtime_ok(gb_stream_wait(stream));
    expect_all(x[3], 8);
    for (int i = 0; i < 4; i++)
        gb_tensor_destroy(x[i]);
    gb_compiled_partition_destroy(compiled);
}

Test(backend, what_is_in_flight_is_kept_alive)
{
    gb_compiled_partition *compiled = compile(GB_OP_SUBTRACT, GB_PROPERTY_VARIABLE);
    gb_tensor *a = matrix(0, GB_PROPERTY_VARIABLE, 5), *b = matrix(1, GB_PROPERTY_VARIABLE, 2);
    gb_tensor *y = matrix(2, GB_PROPERTY_VARIABLE, 0), *kept;
    gb_logical_tensor description = runtime_matrix(2, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_tensor_create(&kept, &description, engine, read_handle(y)));
    gb_test_device_hold(engine, true);
    gb_event_destroy(execute_after(compiled, stream, a, b, y, NULL));
    gb_tensor_destroy(a);
    gb_tensor_destroy(b);
    gb_tensor_destroy(y);
    gb_compiled_partition_destroy(compiled);
    cr_expect_geq(gb_test_device_objects(engine), 3);
    gb_test_device_hold(engine, false);
    runtime_ok(gb_stream_wait(stream));
    cr_expect_eq(gb_test_device_objects(engine), 1);
    expect_all(kept, 3);
    gb_tensor_destroy(kept);
}

Test(backend, host_scalars_are_taken_when_the_call_is_made)
{
    gb_logical_tensor x = runtime_matrix(0, ROWS, COLUMNS, GB_PROPERTY_VARIABLE), y = x, scale;
    const gb_logical_tensor *in[] = {&x, &scale}, *out[] = {&y};
    gb_graph *graph;
    gb_compiled_partition *compiled;
    gb_tensor *factor, *source = matrix(0, GB_PROPERTY_VARIABLE, 3);
    gb_tensor *result = matrix(2, GB_PROPERTY_VARIABLE, 0);
    float value = 4;
    y.id = 2;
    runtime_ok(gb_logical_tensor_init(
            &scale, 1, GB_F32, 0, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR));
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_TEST));
    runtime_op(graph, 0, GB_OP_MULTIPLY, 2, in, &y);
    gb_partition *partition = runtime_partition(graph);
    runtime_ok(gb_partition_compile(partition, &compiled, 2, in, 1, out, engine));
    runtime_ok(gb_tensor_create_scalar(&factor, &scale, &value));
    gb_test_device_hold(engine, true);
    gb_event_destroy(execute_after(compiled, stream, source, factor, result, NULL));
    gb_tensor_destroy(factor);
    gb_test_device_hold(engine, false);
    expect_all(result, 12);
    gb_tensor_destroy(source);
    gb_tensor_destroy(result);
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
}

/* Many more executions than a stream keeps: the memory of those that are complete is let go. */
Test(backend, a_stream_bounds_what_it_keeps)
{
    gb_compiled_partition *compiled = compile(GB_OP_ADD, GB_PROPERTY_VARIABLE);
    gb_tensor *x = matrix(0, GB_PROPERTY_VARIABLE, 1), *y = matrix(2, GB_PROPERTY_VARIABLE, 0);
    for (int i = 0; i < 700; i++)
        runtime_ok(gb_compiled_partition_execute(
                compiled, stream, 2, (const gb_tensor *[]){x, x}, 1, (gb_tensor *[]){y}, NULL));
    runtime_ok(gb_stream_wait(stream));
    expect_all(y, 2);
    cr_expect_leq(gb_test_device_objects(engine), 3);
    gb_tensor_destroy(x);
    gb_tensor_destroy(y);
    gb_compiled_partition_destroy(compiled);
}

/* Constants ------------------------------------------------------------------------------------ */

enum { M = 24, K = 40, N = 64 };

/* MatMul with constant weights, which are packed once. */
static gb_compiled_partition *compile_product(gb_logical_tensor *t)
{
    const gb_logical_tensor *in[] = {&t[0], &t[1]}, *out[] = {&t[2]};
    gb_graph *graph;
    gb_compiled_partition *compiled;
    gb_memory_use use;
    t[0] = runtime_matrix(0, M, K, GB_PROPERTY_VARIABLE);
    t[1] = runtime_matrix(1, K, N, GB_PROPERTY_CONSTANT);
    t[2] = runtime_matrix(2, M, N, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_TEST));
    runtime_op(graph, 0, GB_OP_MATMUL, 2, in, &t[2]);
    gb_partition *partition = runtime_partition(graph);
    runtime_ok(gb_partition_compile(partition, &compiled, 2, in, 1, out, engine));
    runtime_ok(gb_compiled_partition_get_memory(compiled, &use));
    cr_assert_gt(use.constants, 0);
    gb_partition_destroy(partition);
    return compiled;
}

static gb_tensor *filled(const gb_logical_tensor *description, float value)
{
    gb_tensor *tensor;
    float values[M * N > K * N ? M * N : K * N];
    size_t bytes;
    runtime_ok(gb_logical_tensor_get_mem_size(description, &bytes));
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = value;
    runtime_ok(gb_tensor_create(&tensor, description, engine, GB_MEMORY_ALLOCATE));
    runtime_ok(gb_tensor_write(tensor, stream, 0, bytes, values));
    return tensor;
}

static void expect_product(const gb_tensor *y, float value)
{
    float values[M * N];
    runtime_ok(gb_tensor_read(y, stream, 0, sizeof values, values));
    for (int i = 0; i < M * N; i++)
        cr_assert_eq(values[i], value);
}

Test(backend, constants_go_by_contents_on_the_device)
{
    gb_logical_tensor t[3];
    gb_constant_cache_counters before, after;
    gb_compiled_partition *compiled = compile_product(t);
    gb_tensor *x = filled(&t[0], 1), *w = filled(&t[1], 2), *y = filled(&t[2], 0);
    runtime_ok(gb_get_constant_cache_counters(GB_ENGINE_TEST, &before));
    for (int i = 0; i < 3; i++) {
        float weight = i < 2 ? 2 : 3;
        if (i == 2) {
            gb_tensor_destroy(w);
            w = filled(&t[1], weight);
        }
        runtime_ok(gb_compiled_partition_execute(
                compiled, stream, 2, (const gb_tensor *[]){x, w}, 1, (gb_tensor *[]){y}, NULL));
        expect_product(y, K * weight);
    }
    runtime_ok(gb_get_constant_cache_counters(GB_ENGINE_TEST, &after));
    cr_expect_eq(after.misses - before.misses, 2);
    gb_tensor_destroy(x);
    gb_tensor_destroy(w);
    gb_tensor_destroy(y);
    gb_compiled_partition_destroy(compiled);
}

Test(backend, constants_that_failed_are_made_again)
{
    gb_logical_tensor t[3];
    gb_compiled_partition *compiled = compile_product(t);
    gb_tensor *x = filled(&t[0], 1), *w = filled(&t[1], 2), *y = filled(&t[2], 0);
    gb_test_device_fail(engine, 1);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(gb_compiled_partition_execute(compiled, stream, 2, (const gb_tensor *[]){x, w},
                             1, (gb_tensor *[]){y}, NULL),
                i == 0 ? GB_RUNTIME_ERROR : GB_SUCCESS);
    runtime_ok(gb_stream_wait(stream));
    expect_product(y, K * 2);
    gb_tensor_destroy(x);
    gb_tensor_destroy(w);
    gb_tensor_destroy(y);
    gb_compiled_partition_destroy(compiled);
}

/* Failures ------------------------------------------------------------------------------------- */

Test(backend, a_late_failure_is_told_once_by_wait_and_always_by_the_event)
{
    gb_compiled_partition *compiled = compile(GB_OP_ADD, GB_PROPERTY_VARIABLE);
    gb_tensor *x = matrix(0, GB_PROPERTY_VARIABLE, 1), *y = matrix(2, GB_PROPERTY_VARIABLE, 0);
    gb_tensor *z = matrix(2, GB_PROPERTY_VARIABLE, 0);
    gb_test_device_fail(engine, 1);
    gb_event *failed = execute_after(compiled, stream, x, x, y, NULL);
    gb_event *dependent = execute_after(compiled, stream, y, x, z, failed);
    cr_expect_eq(gb_event_wait(failed), GB_RUNTIME_ERROR);
    cr_expect(strstr(gb_last_error(), "told to fail"), "%s", gb_last_error());
    cr_expect_eq(gb_event_wait(dependent), GB_RUNTIME_ERROR);
    cr_expect_eq(gb_stream_wait(stream), GB_RUNTIME_ERROR);
    cr_expect(strstr(gb_last_error(), "told to fail"), "%s", gb_last_error());
    runtime_ok(gb_stream_wait(stream));
    cr_expect_eq(gb_event_wait(failed), GB_RUNTIME_ERROR);
    runtime_ok(gb_compiled_partition_execute(
            compiled, stream, 2, (const gb_tensor *[]){x, x}, 1, (gb_tensor *[]){y}, NULL));
    expect_all(y, 2);
    gb_event_destroy(failed);
    gb_event_destroy(dependent);
    gb_tensor_destroy(x);
    gb_tensor_destroy(y);
    gb_tensor_destroy(z);
    gb_compiled_partition_destroy(compiled);
}

Test(backend, a_refused_call_leaves_nothing)
{
    gb_compiled_partition *compiled = compile(GB_OP_ADD, GB_PROPERTY_VARIABLE);
    gb_tensor *x = matrix(0, GB_PROPERTY_VARIABLE, 1), *y = matrix(2, GB_PROPERTY_VARIABLE, 0);
    gb_event *event = NULL;
    gb_test_device_refuse(engine);
    cr_expect_eq(gb_compiled_partition_execute_with_events(compiled, stream, 2,
                         (const gb_tensor *[]){x, x}, 1, (gb_tensor *[]){y}, NULL, 0, NULL, &event),
            GB_RUNTIME_ERROR);
    cr_expect_null(event);
    runtime_ok(gb_stream_wait(stream));
    cr_expect_eq(gb_test_device_objects(engine), 2);
    gb_tensor_destroy(x);
    gb_tensor_destroy(y);
    gb_compiled_partition_destroy(compiled);
}

/* Programs ------------------------------------------------------------------------------------- */

Test(backend, a_program_is_finished_once)
{
    gb_logical_tensor t[3];
    size_t before = gb_test_device_finished();
    gb_compiled_partition *compiled = compile_product(t); /* packing and product: two steps */
    cr_expect_eq(gb_test_device_finished() - before, 1);
    gb_compiled_partition_destroy(compiled);
}

/* On the host an execution is complete when the call returns, and so is its event. */
Test(backend, events_of_the_cpu_are_complete)
{
    gb_engine *cpu;
    gb_stream *cpu_stream;
    gb_graph *graph;
    gb_compiled_partition *compiled;
    gb_logical_tensor x = runtime_matrix(0, ROWS, COLUMNS, GB_PROPERTY_VARIABLE), y = x;
    const gb_logical_tensor *in = &x, *out = &y;
    float source[COUNT] = {-1, 2}, result[COUNT];
    gb_tensor *a, *b, *slow = matrix(0, GB_PROPERTY_VARIABLE, 1);
    gb_tensor *sum = matrix(0, GB_PROPERTY_VARIABLE, 0);
    gb_compiled_partition *add = compile(GB_OP_ADD, GB_PROPERTY_VARIABLE);
    gb_event *event = NULL, *before = execute_after(add, stream, slow, slow, sum, NULL);
    const gb_event *dependency = before;
    y.id = 1;
    runtime_ok(gb_engine_create(&cpu, GB_ENGINE_CPU, 0));
    runtime_ok(gb_stream_create(&cpu_stream, cpu));
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_RELU, 1, &in, &y);
    gb_partition *partition = runtime_partition(graph);
    runtime_ok(gb_partition_compile(partition, &compiled, 1, &in, 1, &out, cpu));
    runtime_ok(gb_tensor_create(&a, &x, cpu, source));
    runtime_ok(gb_tensor_create(&b, &y, cpu, result));
    runtime_ok(gb_compiled_partition_execute_with_events(compiled, cpu_stream, 1,
            (const gb_tensor *[]){a}, 1, (gb_tensor *[]){b}, NULL, 1, &dependency, &event));
    cr_expect(is_complete(before) && is_complete(event));
    runtime_ok(gb_event_wait(event));
    cr_expect_eq(result[0], 0);
    cr_expect_eq(result[1], 2);
    float read[2];
    runtime_ok(gb_tensor_read(b, cpu_stream, 0, sizeof read, read));
    cr_expect_eq(read[1], 2);
    cr_expect_eq(gb_event_wait(NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_event_is_complete(event, NULL), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_event_destroy(NULL));
    gb_event_destroy(event);
    gb_event_destroy(before);
    gb_tensor_destroy(a);
    gb_tensor_destroy(b);
    gb_tensor_destroy(slow);
    gb_tensor_destroy(sum);
    gb_compiled_partition_destroy(add);
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    gb_stream_destroy(cpu_stream);
    gb_engine_destroy(cpu);
}
