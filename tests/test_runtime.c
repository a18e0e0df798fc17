/* The runtime part of the public interface: statuses, ownership, tensors, partitions, compiling. */
#include "runtime_case.h"

static gb_engine *engine;

static void open_engine(void)
{
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
}

static void close_engine(void)
{
    gb_engine_destroy(engine);
}

TestSuite(runtime, .init = open_engine, .fini = close_engine);

/* 0 -> ReLU -> 1 -> Add 2 -> 3 */
static gb_graph *chain(void)
{
    gb_graph *graph;
    gb_logical_tensor t[4];
    for (size_t i = 0; i < 4; i++)
        t[i] = runtime_matrix(i, 3, 5, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 10, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&t[0]}, &t[1]);
    runtime_op(graph, 11, GB_OP_ADD, 2, (const gb_logical_tensor *[]){&t[1], &t[2]}, &t[3]);
    return graph;
}

Test(runtime, partitions_within_a_number_of_ops)
{
    static const gb_policy policies[] = {GB_POLICY_FUSION, GB_POLICY_MAX};
    gb_graph *graph = chain();
    size_t count;
    runtime_ok(gb_graph_finalize(graph));
    for (int i = 0; i < 2; i++)
        for (size_t most_ops = 1; most_ops <= 2; most_ops++) {
            runtime_ok(gb_graph_filter_within(graph, policies[i], most_ops));
            runtime_ok(gb_graph_get_partitions(graph, 0, NULL, &count));
            cr_expect_eq(count, most_ops == 1 ? 2 : 1);
        }
    gb_graph_destroy(graph);
}

/* Engines, allocators, streams ----------------------------------------------------------------- */

Test(runtime, engines)
{
    gb_engine *made = NULL;
    gb_engine_kind kind;
    size_t count;
    cr_expect_eq(gb_engine_create(NULL, GB_ENGINE_CPU, 0), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_engine_create(&made, GB_ENGINE_CPU, 1), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_engine_create(&made, (gb_engine_kind)7, 0), GB_INVALID_ARGUMENTS);
    cr_expect_eq(
            gb_engine_create_with_allocator(&made, GB_ENGINE_CPU, 0, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_null(made);
    cr_expect_eq(gb_engine_get_count(GB_ENGINE_CPU, NULL), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_engine_get_count(GB_ENGINE_CPU, &count));
    cr_expect_eq(count, 1);
    runtime_ok(gb_engine_get_count((gb_engine_kind)7, &count));
    cr_expect_eq(count, 0);
    cr_expect_eq(gb_engine_get_kind(NULL, &kind), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_engine_get_kind(engine, NULL), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_engine_get_kind(engine, &kind));
    cr_expect_eq(kind, GB_ENGINE_CPU);
    cr_expect_str_eq(gb_engine_get_description(NULL), "");
    cr_expect(strstr(gb_engine_get_description(engine), "cpu"));
    runtime_ok(gb_engine_create(&made, GB_ENGINE_ANY, 0));
    runtime_ok(gb_engine_destroy(made));
    runtime_ok(gb_engine_destroy(NULL));
}

Test(runtime, streams_and_allocators)
{
    gb_stream *stream = NULL;
    gb_allocator *allocator = NULL;
    cr_expect_eq(gb_stream_create(NULL, engine), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_stream_create(&stream, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_null(stream);
    cr_expect_eq(gb_stream_wait(NULL), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_stream_create(&stream, engine));
    runtime_ok(gb_stream_wait(stream));
    runtime_ok(gb_stream_destroy(stream));
    runtime_ok(gb_stream_destroy(NULL));
    cr_expect_eq(gb_allocator_create(NULL, NULL, NULL), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_allocator_create(&allocator, NULL, NULL));
    runtime_ok(gb_allocator_destroy(allocator));
    runtime_ok(gb_allocator_destroy(NULL));
}

/* Tensors -------------------------------------------------------------------------------------- */

Test(runtime, tensor_memory_is_none_lent_or_owned)
{
    gb_logical_tensor description = runtime_matrix(1, 3, 5, GB_PROPERTY_VARIABLE), read;
    gb_tensor *tensor;
    void *handle, *owned;
    float memory[15];
    runtime_ok(gb_tensor_create(&tensor, &description, engine, GB_MEMORY_NONE));
    runtime_ok(gb_tensor_get_data_handle(tensor, &handle));
    cr_expect_null(handle);
    runtime_ok(gb_tensor_set_data_handle(tensor, memory));
    runtime_ok(gb_tensor_get_data_handle(tensor, &handle));
    cr_expect_eq(handle, memory);
    runtime_ok(gb_tensor_set_data_handle(tensor, GB_MEMORY_ALLOCATE));
    runtime_ok(gb_tensor_get_data_handle(tensor, &owned));
    cr_expect_neq(owned, memory);
    cr_expect_eq((uintptr_t)owned % 64, 0);
    runtime_ok(gb_tensor_set_data_handle(tensor, owned)); /* stays its own */
    memset(owned, 1, sizeof memory);
    runtime_ok(gb_tensor_get_logical_tensor(tensor, &read));
    cr_expect_eq(read.id, 1);
    cr_expect_eq(read.dims[1], 5);
    runtime_ok(gb_tensor_destroy(tensor));
    runtime_ok(gb_tensor_destroy(NULL));
}

Test(runtime, tensor_arguments)
{
    gb_logical_tensor good = runtime_matrix(1, 3, 5, GB_PROPERTY_VARIABLE), bad = good;
    gb_tensor *tensor = NULL;
    void *handle;
    cr_expect_eq(gb_tensor_create(NULL, &good, engine, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_create(&tensor, NULL, engine, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_create(&tensor, &good, NULL, NULL), GB_INVALID_ARGUMENTS);
    bad.ndims = 100;
    cr_expect_eq(gb_tensor_create(&tensor, &bad, engine, NULL), GB_INVALID_ARGUMENTS);
    bad = good;
    bad.layout_type = GB_LAYOUT_ANY;
    cr_expect_eq(gb_tensor_create(&tensor, &bad, engine, GB_MEMORY_ALLOCATE), GB_INVALID_ARGUMENTS);
    bad = good;
    bad.dims[0] = bad.strides[0] = INT64_MAX;
    cr_expect_eq(gb_tensor_create(&tensor, &bad, engine, GB_MEMORY_ALLOCATE), GB_INVALID_ARGUMENTS);
    cr_expect_null(tensor);
    cr_expect_eq(gb_tensor_set_data_handle(NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_get_data_handle(NULL, &handle), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_get_logical_tensor(NULL, &bad), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_tensor_create(&tensor, &good, engine, NULL));
    cr_expect_eq(gb_tensor_get_data_handle(tensor, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_get_logical_tensor(tensor, NULL), GB_INVALID_ARGUMENTS);
    gb_tensor_destroy(tensor);
}

Test(runtime, host_scalars_copy_their_value)
{
    gb_logical_tensor description, matrix = runtime_matrix(1, 1, 1, GB_PROPERTY_VARIABLE);
    gb_tensor *tensor = NULL;
    float value = 2.5F;
    runtime_ok(gb_logical_tensor_init(
            &description, 3, GB_F32, 0, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR));
    cr_expect_eq(gb_tensor_create(&tensor, &description, engine, &value), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_create_scalar(&tensor, &matrix, &value), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_create_scalar(&tensor, &description, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_tensor_create_scalar(NULL, &description, &value), GB_INVALID_ARGUMENTS);
    gb_logical_tensor bad = description;
    bad.data_type = GB_BF16;
    cr_expect_eq(gb_tensor_create_scalar(&tensor, &bad, &value), GB_INVALID_ARGUMENTS);
    bad = description;
    bad.ndims = 1;
    cr_expect_eq(gb_tensor_create_scalar(&tensor, &bad, &value), GB_INVALID_ARGUMENTS);
    cr_expect_null(tensor);
    runtime_ok(gb_tensor_create_scalar(&tensor, &description, &value));
    cr_expect_eq(gb_tensor_set_data_handle(tensor, &value), GB_INVALID_ARGUMENTS);
    gb_tensor_destroy(tensor);
}

/* Partitions ----------------------------------------------------------------------------------- */

Test(runtime, filter_and_get_partitions)
{
    gb_graph *graph = chain();
    gb_partition *partition = NULL;
    size_t num = 7;
    cr_expect_eq(gb_graph_filter(NULL, GB_POLICY_FUSION), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_filter(graph, GB_POLICY_FUSION), GB_INVALID_GRAPH);
    runtime_ok(gb_graph_finalize(graph));
    cr_expect_eq(gb_graph_get_partitions(graph, 1, &partition, NULL), GB_INVALID_GRAPH);
    cr_expect_eq(gb_graph_filter(graph, (gb_policy)9), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_graph_filter(graph, GB_POLICY_DEBUG));
    runtime_ok(gb_graph_get_partitions(graph, 0, NULL, &num));
    cr_expect_eq(num, 2);
    runtime_ok(gb_graph_filter(graph, GB_POLICY_FUSION));
    runtime_ok(gb_graph_get_partitions(graph, 0, NULL, &num));
    cr_expect_eq(num, 1);
    cr_expect_eq(gb_graph_get_partitions(NULL, 0, NULL, &num), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_get_partitions(graph, 0, NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_get_partitions(graph, 2, &partition, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_get_partitions(graph, 1, NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_get_partitions(NULL, 1, &partition, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_null(partition);
    gb_graph_destroy(graph);
}

Test(runtime, what_a_partition_tells)
{
    gb_partition *partition = runtime_partition(chain());
    gb_logical_tensor ports[2];
    gb_engine_kind kind;
    uint8_t supported;
    size_t num, id, ids[2];
    runtime_ok(gb_partition_get_id(partition, &id));
    runtime_ok(gb_partition_get_engine_kind(partition, &kind));
    cr_expect_eq(kind, GB_ENGINE_CPU);
    runtime_ok(gb_partition_is_supported(partition, &supported));
    cr_expect_eq(supported, 1);
    cr_expect_str_eq(gb_partition_get_unsupported_reason(partition), "");
    cr_expect_str_eq(gb_partition_get_pattern(partition), "elementwise_post_ops");
    runtime_ok(gb_partition_get_ops(partition, 0, NULL, &num));
    cr_expect_eq(num, 2);
    runtime_ok(gb_partition_get_ops(partition, 2, ids, NULL));
    cr_expect_eq(ids[0], 10);
    cr_expect_eq(ids[1], 11);
    runtime_ok(gb_partition_get_input_ports(partition, 0, NULL, &num));
    cr_expect_eq(num, 2);
    runtime_ok(gb_partition_get_input_ports(partition, 2, ports, NULL));
    cr_expect_eq(ports[0].id, 0);
    cr_expect_eq(ports[1].id, 2);
    runtime_ok(gb_partition_get_output_ports(partition, 0, NULL, &num));
    cr_expect_eq(num, 1);
    runtime_ok(gb_partition_get_output_ports(partition, 1, ports, NULL));
    cr_expect_eq(ports[0].id, 3);
    cr_expect_eq(gb_partition_get_ops(partition, 1, ids, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_get_ops(partition, 2, NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_get_input_ports(partition, 1, ports, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_get_output_ports(partition, 2, ports, NULL), GB_INVALID_ARGUMENTS);
    gb_partition_destroy(partition);
    runtime_ok(gb_partition_destroy(NULL));
}

Test(runtime, no_partition)
{
    gb_engine_kind kind;
    uint8_t flag;
    size_t n;
    gb_logical_tensor port;
    cr_expect_eq(gb_partition_get_id(NULL, &n), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_get_engine_kind(NULL, &kind), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_is_supported(NULL, &flag), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_get_ops(NULL, 0, NULL, &n), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_get_ops(NULL, 0, &n, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_get_input_ports(NULL, 0, NULL, &n), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_get_input_ports(NULL, 0, &port, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_get_output_ports(NULL, 0, NULL, &n), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_get_output_ports(NULL, 0, &port, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_str_eq(gb_partition_get_unsupported_reason(NULL), "");
    cr_expect_str_eq(gb_partition_get_pattern(NULL), "");
}

/* 0 x 0 -> 1, + 0 -> 2 */
Test(runtime, what_is_read_twice_is_listed_twice)
{
    gb_graph *graph;
    gb_logical_tensor t[3], ports[3];
    for (size_t i = 0; i < 3; i++)
        t[i] = runtime_matrix(i, 2, 2, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_MULTIPLY, 2, (const gb_logical_tensor *[]){&t[0], &t[0]}, &t[1]);
    runtime_op(graph, 1, GB_OP_ADD, 2, (const gb_logical_tensor *[]){&t[1], &t[0]}, &t[2]);
    gb_partition *partition = runtime_partition(graph);
    size_t num;
    runtime_ok(gb_partition_get_input_ports(partition, 0, NULL, &num));
    cr_assert_eq(num, 3);
    runtime_ok(gb_partition_get_input_ports(partition, num, ports, NULL));
    for (int i = 0; i < 3; i++)
        cr_expect_eq(ports[i].id, 0);
    gb_stream *stream;
    float x[4] = {1, 2, 3, -4}, y[4];
    const gb_logical_tensor *out[] = {&t[2]};
    const gb_logical_tensor *lists[] = {&ports[0], &ports[1], &ports[2]};
    runtime_ok(gb_stream_create(&stream, engine));
    for (size_t n = 1; n <= 3; n += 2) { /* however often it is given */
        gb_compiled_partition *compiled;
        gb_tensor *in, *dst;
        runtime_ok(gb_partition_compile(partition, &compiled, n, lists, 1, out, engine));
        runtime_ok(gb_tensor_create(&in, &t[0], engine, x));
        runtime_ok(gb_tensor_create(&dst, &t[2], engine, y));
        runtime_ok(gb_compiled_partition_execute(compiled, stream, n,
                (const gb_tensor *[]){in, in, in}, 1, (gb_tensor *[]){dst}, NULL));
        for (int i = 0; i < 4; i++)
            cr_expect_eq(y[i], x[i] * x[i] + x[i]);
        gb_tensor_destroy(in);
        gb_tensor_destroy(dst);
        gb_compiled_partition_destroy(compiled);
    }
    gb_stream_destroy(stream);
    gb_partition_destroy(partition);
}

Test(runtime, a_partition_of_one_op)
{
    gb_logical_tensor t = runtime_matrix(0, 2, 2, GB_PROPERTY_VARIABLE);
    gb_partition *partition = NULL;
    gb_op *op;
    uint8_t supported;
    runtime_ok(gb_op_create(&op, 1, GB_OP_END, ""));
    cr_expect_eq(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU), GB_INVALID_GRAPH_OP);
    cr_expect_eq(gb_partition_create_with_op(NULL, op, GB_ENGINE_CPU), GB_INVALID_ARGUMENTS);
    cr_expect_eq(
            gb_partition_create_with_op(&partition, NULL, GB_ENGINE_CPU), GB_INVALID_ARGUMENTS);
    runtime_ok(gb_op_add_input(op, &t));
    runtime_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    runtime_ok(gb_partition_is_supported(partition, &supported));
    cr_expect_eq(supported, 0);
    cr_expect_str_neq(gb_partition_get_unsupported_reason(partition), "");
    gb_compiled_partition *compiled = NULL;
    cr_expect_eq(gb_partition_compile(partition, &compiled, 1, (const gb_logical_tensor *[]){&t}, 0,
                         NULL, engine),
            GB_INVALID_ARGUMENTS);
    gb_partition_destroy(partition);
    gb_op_destroy(op);
}

/* Compiling ------------------------------------------------------------------------------------ */

static gb_status compile_with(gb_logical_tensor a, gb_logical_tensor b, gb_logical_tensor out)
{
    gb_compiled_partition *compiled = NULL;
    gb_partition *partition = runtime_partition(chain());
    gb_status status = gb_partition_compile(partition, &compiled, 2,
            (const gb_logical_tensor *[]){&a, &b}, 1, (const gb_logical_tensor *[]){&out}, engine);
    cr_expect_eq(status == GB_SUCCESS, compiled != NULL);
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    return status;
}

Test(runtime, compile_checks_the_descriptions)
{
    gb_logical_tensor a = runtime_matrix(0, 3, 5, GB_PROPERTY_VARIABLE), bad = a;
    gb_logical_tensor b = runtime_matrix(2, 3, 5, GB_PROPERTY_VARIABLE);
    gb_logical_tensor out = runtime_matrix(3, 3, 5, GB_PROPERTY_VARIABLE);
    runtime_ok(compile_with(a, b, out));
    runtime_ok(compile_with(b, a, out)); /* any order */
    bad.id = 9;
    cr_expect_eq(compile_with(bad, b, out), GB_INVALID_ARGUMENTS);
    bad = a;
    bad.layout_type = GB_LAYOUT_ANY;
    cr_expect_eq(compile_with(bad, b, out), GB_INVALID_ARGUMENTS);
    bad.layout_type = GB_LAYOUT_OPAQUE;
    cr_expect_eq(compile_with(bad, b, out), GB_INVALID_ARGUMENTS);
    bad = a;
    bad.data_type = GB_UNDEF;
    cr_expect_eq(compile_with(bad, b, out), GB_INVALID_ARGUMENTS);
    bad.data_type = GB_BF16; /* not the type the graph was checked for */
    cr_expect_eq(compile_with(bad, b, out), GB_INVALID_ARGUMENTS);
    bad = a;
    bad.dims[0] = GB_UNKNOWN_DIM; /* any value fits */
    runtime_ok(compile_with(bad, b, out));
    bad = a;
    bad.ndims = GB_UNKNOWN_NDIMS;
    runtime_ok(compile_with(bad, b, out));
    bad.ndims = 1000;
    cr_expect_eq(compile_with(bad, b, out), GB_INVALID_ARGUMENTS);
    bad = b;
    bad.dims[1] = 4;
    cr_expect_eq(compile_with(a, bad, out), GB_INVALID_SHAPE);
    bad = out;
    bad.dims[1] = 4;
    cr_expect_eq(compile_with(a, b, bad), GB_INVALID_SHAPE);
    bad = out;
    bad.layout_type = GB_LAYOUT_UNDEF;
    cr_expect_eq(compile_with(a, b, bad), GB_INVALID_ARGUMENTS);
}

/* The value of a host scalar is read when it is made; nothing reads it from there. */
Test(runtime, no_output_is_a_host_scalar)
{
    gb_logical_tensor x = runtime_matrix(0, 3, 5, GB_PROPERTY_VARIABLE), y;
    gb_op *op;
    gb_partition *partition;
    gb_compiled_partition *compiled = NULL;
    runtime_ok(
            gb_logical_tensor_init(&y, 1, GB_F32, 0, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR));
    runtime_ok(gb_op_create(&op, 0, GB_OP_REDUCE_SUM, ""));
    runtime_ok(gb_op_add_input(op, &x));
    runtime_ok(gb_op_add_output(op, &y));
    runtime_ok(gb_op_set_attr_s64(op, GB_ATTR_AXES, 2, (const int64_t[]){0, 1}));
    runtime_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    cr_expect_eq(gb_partition_compile(partition, &compiled, 1, (const gb_logical_tensor *[]){&x}, 1,
                         (const gb_logical_tensor *[]){&y}, engine),
            GB_INVALID_ARGUMENTS);
    cr_expect(strstr(gb_last_error(), "output tensor 1 is a host scalar"), "%s", gb_last_error());
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    gb_op_destroy(op);
}

Test(runtime, compile_arguments)
{
    gb_partition *partition = runtime_partition(chain());
    gb_compiled_partition *compiled = NULL;
    gb_logical_tensor a = runtime_matrix(0, 3, 5, GB_PROPERTY_VARIABLE);
    const gb_logical_tensor *list[] = {&a, NULL};
    cr_expect_eq(
            gb_partition_compile(NULL, &compiled, 0, NULL, 0, NULL, engine), GB_INVALID_ARGUMENTS);
    cr_expect_eq(
            gb_partition_compile(partition, NULL, 0, NULL, 0, NULL, engine), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_compile(partition, &compiled, 0, NULL, 0, NULL, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_compile(partition, &compiled, 1, NULL, 0, NULL, engine),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_compile(partition, &compiled, 2, list, 0, NULL, engine),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_partition_compile(partition, &compiled, 1, list, 0, NULL, engine),
            GB_INVALID_ARGUMENTS);
    cr_expect_null(compiled);
    gb_partition_destroy(partition);
}

Test(runtime, compile_infers_what_outputs_leave_open)
{
    gb_logical_tensor a = runtime_matrix(0, 3, 5, GB_PROPERTY_VARIABLE), out, found;
    gb_logical_tensor b = runtime_matrix(2, 3, 5, GB_PROPERTY_VARIABLE);
    gb_logical_tensor extra = runtime_matrix(77, 9, 9, GB_PROPERTY_VARIABLE);
    gb_partition *partition = runtime_partition(chain());
    gb_compiled_partition *compiled;
    runtime_ok(gb_logical_tensor_init(
            &out, 3, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_ANY, GB_PROPERTY_VARIABLE));
    runtime_ok(gb_partition_compile(partition, &compiled, 3,
            (const gb_logical_tensor *[]){&extra, &a, &b}, 1, (const gb_logical_tensor *[]){&out},
            engine));
    gb_partition_destroy(partition);
    runtime_ok(gb_compiled_partition_query_logical_tensor(compiled, 3, &found));
    cr_expect_eq(found.ndims, 2);
    cr_expect_eq(found.dims[0], 3);
    cr_expect_eq(found.strides[0], 5);
    cr_expect_eq(found.layout_type, GB_LAYOUT_STRIDED);
    cr_expect_eq(
            gb_compiled_partition_query_logical_tensor(compiled, 77, &found), GB_INVALID_ARGUMENTS);
    cr_expect_eq(
            gb_compiled_partition_query_logical_tensor(compiled, 1, &found), GB_INVALID_ARGUMENTS);
    cr_expect_eq(
            gb_compiled_partition_query_logical_tensor(compiled, 3, NULL), GB_INVALID_ARGUMENTS);
    gb_compiled_partition_destroy(compiled);
}

Test(runtime, what_a_compiled_partition_tells)
{
    runtime_case c;
    runtime_compile(&c, chain(), NULL);
    double flops, bytes;
    gb_logical_tensor scratchpad;
    const gb_inplace_pair *pairs;
    size_t count;
    cr_expect(strncmp(gb_compiled_partition_get_kernels(c.compiled), "tile:", 5) == 0, "%s",
            gb_compiled_partition_get_kernels(c.compiled));
    runtime_ok(gb_compiled_partition_get_work(c.compiled, &flops, &bytes));
    cr_expect_eq(flops, 2 * 15);
    cr_expect_eq(bytes, 3 * 15 * 4);
    runtime_ok(gb_compiled_partition_get_scratchpad(c.compiled, &scratchpad));
    cr_expect_eq(scratchpad.data_type, GB_U8);
    cr_expect_eq(scratchpad.ndims, 1);
    cr_expect_eq(gb_compiled_partition_get_work(NULL, &flops, &bytes), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_compiled_partition_get_scratchpad(NULL, &scratchpad), GB_INVALID_ARGUMENTS);
    cr_expect_eq(
            gb_compiled_partition_get_inplace_ports(NULL, &count, &pairs), GB_INVALID_ARGUMENTS);
    cr_expect_str_eq(gb_compiled_partition_get_kernels(NULL), "");
    runtime_ok(gb_compiled_partition_destroy(NULL));
    runtime_close(&c);
}
