/* Every status that the header documents: one row for each function and misuse. Rows are grouped as
 * the header is; the last test finds functions without a row. */
#include "runtime_case.h"

#include <graphbench/graphbench_tools.h>
#include <stdatomic.h>
#include <stdio.h>

/* Runs the call, which must give the status, and, when it is a failure, say why. */
#define ROW(expected, call) row(expected, call, #call)

static const char untouched[] = "untouched";

/* Leaves a message that only another failure replaces. */
static void mark_message(void)
{
    gb_data_type type;
    gb_data_type_parse(untouched, &type);
}

static void row(gb_status expected, gb_status got, const char *call)
{
    cr_expect_eq(
            got, expected, "%s: %s, not %s", call, gb_status_name(got), gb_status_name(expected));
    bool said = !strstr(gb_last_error(), untouched);
    cr_expect_eq(said, expected != GB_SUCCESS, "%s: message \"%s\"", call, gb_last_error());
    mark_message();
}

/* What the calls are made with. */
static gb_engine *engine;
static gb_stream *stream;
static gb_op *op;               /* ReLU 1: 0 -> 1 */
static gb_graph *open, *closed; /* with that op; closed: finalized, partitioned */
static gb_partition *partition;
static gb_compiled_partition *compiled;
static gb_tensor *in, *out, *scalar;
static gb_logical_tensor x, y, value; /* 8 x 8; a host scalar */
static float memory[64];
static const size_t few = 4;
static const int64_t dims[] = {8, 8}, strides[] = {8, 1};

static gb_graph *new_graph(void)
{
    gb_graph *graph;
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_ok(gb_graph_add_op(graph, op));
    return graph;
}

static void open_all(void)
{
    const gb_logical_tensor *inputs[] = {&x}, *outputs[] = {&y};
    x = runtime_matrix(0, 8, 8, GB_PROPERTY_VARIABLE);
    y = runtime_matrix(1, 8, 8, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_logical_tensor_init(
            &value, 2, GB_F32, 0, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR));
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    runtime_ok(gb_stream_create(&stream, engine));
    runtime_ok(gb_op_create(&op, 1, GB_OP_RELU, "relu"));
    runtime_ok(gb_op_add_input(op, &x));
    runtime_ok(gb_op_add_output(op, &y));
    open = new_graph();
    closed = new_graph();
    runtime_ok(gb_graph_finalize(closed));
    runtime_ok(gb_graph_filter(closed, GB_POLICY_FUSION));
    runtime_ok(gb_graph_get_partitions(closed, 1, &partition, NULL));
    runtime_ok(gb_partition_compile(partition, &compiled, 1, inputs, 1, outputs, engine));
    runtime_ok(gb_tensor_create(&in, &x, engine, memory));
    runtime_ok(gb_tensor_create(&out, &y, engine, memory));
    runtime_ok(gb_tensor_create_scalar(&scalar, &value, memory));
    mark_message();
}

static void close_all(void)
{
    gb_tensor_destroy(in);
    gb_tensor_destroy(out);
    gb_tensor_destroy(scalar);
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    gb_graph_destroy(open);
    gb_graph_destroy(closed);
    gb_op_destroy(op);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
}

TestSuite(api_status, .init = open_all, .fini = close_all);

Test(api_status, names)
{
    gb_data_type type;
    gb_op_kind kind;
    gb_op_attr attr;
    gb_property property;
    gb_fpmath_mode mode;
    ROW(GB_INVALID_ARGUMENTS, gb_data_type_parse(NULL, &type));
    ROW(GB_INVALID_ARGUMENTS, gb_data_type_parse("F32", &type));
    ROW(GB_INVALID_ARGUMENTS, gb_op_kind_parse(NULL, &kind));
    ROW(GB_INVALID_ARGUMENTS, gb_op_kind_parse("Sigmund", &kind));
    ROW(GB_INVALID_ARGUMENTS, gb_op_attr_parse(NULL, &attr));
    ROW(GB_INVALID_ARGUMENTS, gb_op_attr_parse("stride", &attr));
    ROW(GB_INVALID_ARGUMENTS, gb_property_parse(NULL, &property));
    ROW(GB_INVALID_ARGUMENTS, gb_property_parse("fixed", &property));
    ROW(GB_INVALID_ARGUMENTS, gb_fpmath_mode_parse(NULL, &mode));
    ROW(GB_INVALID_ARGUMENTS, gb_fpmath_mode_parse("exact", &mode));
    cr_expect_str_eq(gb_status_name(GB_INVALID_DATA_TYPE), "invalid_data_type");
    cr_expect_str_eq(gb_status_name((gb_status)99), "unknown_status");
}

static void run_serially(void *pool, int n, void (*body)(void *context, int i), void *context)
{
    (void)pool;
    for (int i = 0; i < n; i++)
        body(context, i);
}

Test(api_status, allocators_engines_streams)
{
    gb_allocator *allocator;
    gb_engine *made;
    gb_stream *other;
    gb_engine_kind kind;
    const gb_engine *of;
    size_t count;
    void *handle = memory;
    ROW(GB_INVALID_ARGUMENTS, gb_allocator_create(NULL, NULL, NULL));
    ROW(GB_SUCCESS, gb_allocator_create(&allocator, NULL, NULL));
    ROW(GB_SUCCESS, gb_allocator_destroy(allocator));
    ROW(GB_SUCCESS, gb_allocator_destroy(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_allocator_create_with_context(&allocator, NULL, NULL, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_get_index(NULL, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_get_index(engine, NULL));
    ROW(GB_SUCCESS, gb_engine_get_index(engine, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_get_handle(NULL, &handle));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_get_handle(engine, NULL));
    ROW(GB_SUCCESS, gb_engine_get_handle(engine, &handle));
    cr_expect(count == 0 && !handle);
    ROW(GB_INVALID_ARGUMENTS, gb_engine_create(NULL, GB_ENGINE_CPU, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_create(&made, GB_ENGINE_CPU, 1));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_create(&made, GB_ENGINE_GPU, SIZE_MAX));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_create(&made, (gb_engine_kind)9, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_create_with_allocator(&made, GB_ENGINE_CPU, 0, NULL));
    ROW(GB_SUCCESS, gb_engine_destroy(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_get_kind(NULL, &kind));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_get_kind(engine, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_get_count(GB_ENGINE_CPU, NULL));
    ROW(GB_SUCCESS, gb_engine_get_count((gb_engine_kind)9, &count));
    cr_expect_eq(count, 0);
    ROW(GB_INVALID_ARGUMENTS, gb_stream_create(NULL, engine));
    ROW(GB_INVALID_ARGUMENTS, gb_stream_create(&other, NULL));
    ROW(GB_INVALID_ARGUMENTS,
            gb_stream_create_with_thread_pool(NULL, engine, 1, run_serially, NULL));
    ROW(GB_INVALID_ARGUMENTS,
            gb_stream_create_with_thread_pool(&other, NULL, 1, run_serially, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_stream_create_with_thread_pool(&other, engine, 1, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS,
            gb_stream_create_with_thread_pool(&other, engine, 0, run_serially, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_stream_get_engine(NULL, &of));
    ROW(GB_INVALID_ARGUMENTS, gb_stream_get_engine(stream, NULL));
    ROW(GB_SUCCESS, gb_stream_get_engine(stream, &of));
    cr_expect_eq(of, engine);
    uint8_t yes = 0;
    ROW(GB_INVALID_ARGUMENTS, gb_engine_has_host_memory(NULL, &yes));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_has_host_memory(engine, NULL));
    ROW(GB_SUCCESS, gb_engine_has_host_memory(engine, &yes));
    cr_expect_eq(yes, 1);
    ROW(GB_INVALID_ARGUMENTS, gb_event_wait(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_event_is_complete(NULL, &yes));
    ROW(GB_SUCCESS, gb_event_destroy(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_stream_wait(NULL));
    ROW(GB_SUCCESS, gb_stream_wait(stream));
    ROW(GB_SUCCESS, gb_stream_destroy(NULL));
}

Test(api_status, attributes_of_engines_and_streams)
{
    gb_context *context;
    gb_engine *made;
    gb_stream *other;
    gb_cache_counters counters;
    gb_constant_cache_counters constants;
    gb_context_attrs c = {.size = sizeof c}, low = {.size = sizeof low, .constant_megabytes = -2};
    gb_engine_attrs e = {.size = sizeof e};
    gb_stream_attrs s = {.size = sizeof s}, half = {.size = sizeof half, .concurrency = 2};
    const gb_context_attrs c_of_later = {.size = sizeof c + 8};
    const gb_engine_attrs e_of_later = {.size = sizeof e + 8};
    const gb_stream_attrs s_of_later = {.size = 0};
    ROW(GB_INVALID_ARGUMENTS, gb_context_create(NULL, &c));
    ROW(GB_INVALID_ARGUMENTS, gb_context_create(&context, &c_of_later));
    ROW(GB_INVALID_ARGUMENTS, gb_context_create(&context, &low));
    ROW(GB_SUCCESS, gb_context_create(&context, NULL));
    ROW(GB_SUCCESS, gb_context_destroy(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_create_with_attrs(NULL, GB_ENGINE_CPU, 0, &e));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_create_with_attrs(&made, GB_ENGINE_CPU, 0, &e_of_later));
    ROW(GB_INVALID_ARGUMENTS, gb_engine_create_with_attrs(&made, GB_ENGINE_CPU, 1, &e));
    ROW(GB_SUCCESS, gb_engine_create_with_attrs(&made, GB_ENGINE_CPU, 0, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_stream_create_with_attrs(NULL, made, &s));
    ROW(GB_INVALID_ARGUMENTS, gb_stream_create_with_attrs(&other, NULL, &s));
    ROW(GB_INVALID_ARGUMENTS, gb_stream_create_with_attrs(&other, made, &s_of_later));
    ROW(GB_INVALID_ARGUMENTS, gb_stream_create_with_attrs(&other, made, &half));
    half.parallel_for = run_serially;
    ROW(GB_SUCCESS, gb_stream_create_with_attrs(&other, made, &half));
    gb_stream_destroy(other);
    half.concurrency = 0;
    ROW(GB_INVALID_ARGUMENTS, gb_stream_create_with_attrs(&other, made, &half));
    ROW(GB_INVALID_ARGUMENTS, gb_context_get_cache_counters(context, NULL));
    ROW(GB_SUCCESS, gb_context_get_cache_counters(context, &counters));
    ROW(GB_SUCCESS, gb_context_get_cache_counters(NULL, &counters));
    ROW(GB_INVALID_ARGUMENTS, gb_context_get_constant_cache_counters(context, 9, &constants));
    ROW(GB_INVALID_ARGUMENTS, gb_context_get_constant_cache_counters(NULL, GB_ENGINE_CPU, NULL));
    ROW(GB_SUCCESS, gb_context_get_constant_cache_counters(context, GB_ENGINE_CPU, &constants));
    gb_engine_destroy(made);
    gb_context_destroy(context);
}

Test(api_status, logical_tensors)
{
    int ndims;
    int64_t sizes[GB_MAX_NDIMS];
    gb_logical_tensor t, huge = x, bad = x;
    const int64_t large[] = {INT64_MAX, INT64_MAX}, negative[] = {8, -3};
    size_t bytes;
    uint8_t equal;
    const gb_layout_type dense = GB_LAYOUT_STRIDED;
    const gb_property any = GB_PROPERTY_VARIABLE, host = GB_PROPERTY_HOST_SCALAR;
    huge.dims[0] = huge.strides[0] = INT64_MAX;
    bad.ndims = GB_MAX_NDIMS + 1;
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_init(NULL, 0, GB_F32, 2, dense, any));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_init(&t, 0, GB_F32, 13, dense, any));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_init(&t, 0, GB_F32, -2, dense, any));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_init(&t, 0, GB_F32, 1, dense, host));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_init(&t, 0, GB_BF16, 0, dense, host));
    ROW(GB_INVALID_ARGUMENTS,
            gb_logical_tensor_init_with_dims(NULL, 0, GB_F32, 2, dims, dense, any));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_init_with_dims(&t, 0, GB_F32, 2, NULL, dense, any));
    ROW(GB_INVALID_ARGUMENTS,
            gb_logical_tensor_init_with_dims(&t, 0, GB_F32, 13, dims, dense, any));
    ROW(GB_INVALID_ARGUMENTS,
            gb_logical_tensor_init_with_dims(&t, 0, GB_F32, -1, dims, dense, any));
    ROW(GB_INVALID_ARGUMENTS,
            gb_logical_tensor_init_with_dims(&t, 0, GB_F32, 2, large, dense, any));
    ROW(GB_INVALID_ARGUMENTS,
            gb_logical_tensor_init_with_dims(&t, 0, GB_F32, 2, negative, dense, any));
    ROW(GB_INVALID_ARGUMENTS,
            gb_logical_tensor_init_with_strides(NULL, 0, GB_F32, 2, dims, strides, any));
    ROW(GB_INVALID_ARGUMENTS,
            gb_logical_tensor_init_with_strides(&t, 0, GB_F32, 2, NULL, strides, any));
    ROW(GB_INVALID_ARGUMENTS,
            gb_logical_tensor_init_with_strides(&t, 0, GB_F32, 2, dims, NULL, any));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_mem_size(NULL, &bytes));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_mem_size(&x, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_mem_size(&huge, &bytes));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_is_equal(NULL, &x, &equal));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_is_equal(&x, NULL, &equal));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_is_equal(&x, &x, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_is_equal(&bad, &x, &equal));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_has_same_layout_and_dtype(NULL, &x, &equal));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_has_same_layout_and_dtype(&x, NULL, &equal));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_has_same_layout_and_dtype(&x, &x, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_has_same_layout_and_dtype(&bad, &x, &equal));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_element_count(NULL, &bytes));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_element_count(&x, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_element_count(&huge, &bytes));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_element_count(&bad, &bytes));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_physical_dims(NULL, &ndims, sizes));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_physical_dims(&x, NULL, sizes));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_physical_dims(&x, &ndims, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_physical_dims(&bad, &ndims, sizes));
    bad = x;
    bad.dims[1] = -1;
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_physical_dims(&bad, &ndims, sizes));
    bad = x;
    bad.layout_type = GB_LAYOUT_ANY;
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_get_physical_dims(&bad, &ndims, sizes));
}

Test(api_status, layouts)
{
    gb_logical_tensor t = x, open_dims = x, codes = x, blocked = x;
    gb_tensor *empty, *other, *bytes, *in_blocks;
    open_dims.dims[0] = GB_UNKNOWN_DIM;
    codes.data_type = GB_S4;
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_set_layout(NULL, "Ab8a"));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_set_layout(&t, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_set_layout(&t, "aBcd16b"));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_set_layout(&open_dims, "Ab8a"));
    ROW(GB_INVALID_ARGUMENTS, gb_logical_tensor_set_layout(&codes, "Ab8a"));
    ROW(GB_SUCCESS, gb_logical_tensor_set_layout(&blocked, "Ab4a"));
    cr_expect_str_eq(gb_logical_tensor_get_layout(&blocked), "Ab4a");
    runtime_ok(gb_tensor_create(&empty, &x, engine, GB_MEMORY_NONE));
    runtime_ok(gb_tensor_create(&in_blocks, &blocked, engine, GB_MEMORY_ALLOCATE));
    t.dims[0] = 4;
    runtime_ok(gb_tensor_create(&other, &t, engine, memory));
    t = x;
    t.data_type = GB_S8;
    runtime_ok(gb_tensor_create(&bytes, &t, engine, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_reorder(NULL, in_blocks, stream));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_reorder(in, NULL, stream));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_reorder(in, in_blocks, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_reorder(in, empty, stream));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_reorder(in, other, stream));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_reorder(in, bytes, stream));
    ROW(GB_SUCCESS, gb_tensor_reorder(in, in_blocks, stream));
    gb_tensor_destroy(empty);
    gb_tensor_destroy(other);
    gb_tensor_destroy(bytes);
    gb_tensor_destroy(in_blocks);
}

Test(api_status, tensors)
{
    gb_tensor *made;
    gb_logical_tensor any = x, t;
    void *handle;
    const gb_engine *of;
    any.layout_type = GB_LAYOUT_ANY;
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_create(NULL, &x, engine, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_create(&made, NULL, engine, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_create(&made, &x, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_create(&made, &value, engine, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_create(&made, &any, engine, GB_MEMORY_ALLOCATE));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_create_scalar(NULL, &value, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_create_scalar(&made, NULL, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_create_scalar(&made, &value, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_create_scalar(&made, &value, GB_MEMORY_ALLOCATE));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_create_scalar(&made, &x, memory));
    ROW(GB_SUCCESS, gb_tensor_destroy(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_get_data_handle(NULL, &handle));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_get_data_handle(in, NULL));
    ROW(GB_SUCCESS, gb_tensor_get_data_handle(scalar, &handle));
    cr_expect_null(handle);
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_set_data_handle(NULL, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_set_data_handle(scalar, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_get_engine(NULL, &of));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_get_engine(in, NULL));
    ROW(GB_SUCCESS, gb_tensor_get_engine(in, &of));
    cr_expect_eq(of, engine);
    ROW(GB_SUCCESS, gb_tensor_get_engine(scalar, &of));
    cr_expect_null(of);
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_get_logical_tensor(NULL, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_get_logical_tensor(in, NULL));
    float numbers[2];
    void *pointer;
    ROW(GB_SUCCESS, gb_tensor_create(&made, &x, engine, GB_MEMORY_ALLOCATE));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_read(NULL, stream, 0, 4, numbers));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_read(made, NULL, 0, 4, numbers));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_read(made, stream, 0, 4, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_read(made, stream, SIZE_MAX, 4, numbers));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_read(made, stream, 0, SIZE_MAX, numbers));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_read(scalar, stream, 0, 4, numbers));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_write(NULL, stream, 0, 4, numbers));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_write(made, NULL, 0, 4, numbers));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_write(made, stream, 0, 4, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_map(NULL, stream, &pointer));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_map(made, NULL, &pointer));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_map(made, stream, NULL));
    ROW(GB_SUCCESS, gb_tensor_map(made, stream, &pointer));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_unmap(NULL, stream, pointer));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_unmap(made, NULL, pointer));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_unmap(made, stream, NULL));
    ROW(GB_SUCCESS, gb_tensor_unmap(made, stream, pointer));
    ROW(GB_SUCCESS, gb_tensor_set_data_handle(made, GB_MEMORY_NONE));
    ROW(GB_INVALID_ARGUMENTS, gb_tensor_read(made, stream, 0, 4, numbers));
    gb_tensor_destroy(made);
}

Test(api_status, ops)
{
    gb_op *made, *lent;
    gb_logical_tensor t, bad = x;
    gb_op_attr attrs[4];
    gb_op_kind kind;
    const void *values;
    size_t count;
    const float f = 1;
    const int64_t s = 1;
    const uint8_t b[] = {1, 0};
    bad.ndims = 40;
    gb_graph *graph = new_graph();
    runtime_ok(gb_graph_edit_op(graph, 1, &lent));
    runtime_ok(gb_graph_finalize(graph));
    mark_message();
    ROW(GB_INVALID_ARGUMENTS, gb_op_create(NULL, 0, GB_OP_RELU, ""));
    ROW(GB_INVALID_ARGUMENTS, gb_op_create(&made, 0, GB_OP_RELU, NULL));
    ROW(GB_SUCCESS, gb_op_destroy(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_destroy(lent));
    ROW(GB_INVALID_ARGUMENTS, gb_op_add_input(NULL, &x));
    ROW(GB_INVALID_ARGUMENTS, gb_op_add_input(op, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_add_input(op, &bad));
    ROW(GB_INVALID_ARGUMENTS, gb_op_add_input(lent, &x));
    ROW(GB_INVALID_ARGUMENTS, gb_op_add_output(NULL, &x));
    ROW(GB_INVALID_ARGUMENTS, gb_op_add_output(op, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_add_output(op, &bad));
    ROW(GB_INVALID_ARGUMENTS, gb_op_add_output(lent, &x));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_f32(NULL, GB_ATTR_ALPHA, 1, &f));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_f32(op, GB_ATTR_SCALES, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_f32(op, GB_ATTR_ALPHA, 2, &f));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_f32(op, GB_ATTR_AXIS, 1, &f));
    ROW(GB_INVALID_GRAPH, gb_op_set_attr_f32(lent, GB_ATTR_ALPHA, 1, &f));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_s64(NULL, GB_ATTR_AXIS, 1, &s));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_s64(op, GB_ATTR_AXES, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_s64(op, GB_ATTR_ALPHA, 1, &s));
    ROW(GB_INVALID_GRAPH, gb_op_set_attr_s64(lent, GB_ATTR_AXIS, 1, &s));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_bool(NULL, GB_ATTR_KEEP_DIMS, 1, b));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_bool(op, GB_ATTR_KEEP_DIMS, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_bool(op, GB_ATTR_KEEP_DIMS, 2, b));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_bool(op, GB_ATTR_KEEP_DIMS, 0, b));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_bool(op, GB_ATTR_AXIS, 1, b));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_str(NULL, GB_ATTR_MODE, "none", 4));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_str(op, GB_ATTR_MODE, NULL, 4));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_str(op, GB_ATTR_MODE, "none", 0));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_str(op, GB_ATTR_AXIS, "none", 4));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_attr(NULL, GB_ATTR_MODE, &count, &values));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_attr(op, GB_ATTR_MODE, &count, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_attr(op, GB_ATTR_MODE, NULL, &values));
    ROW(GB_SUCCESS, gb_op_get_attr(op, GB_ATTR_MODE, &count, &values));
    cr_expect(!values && !count);
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_attrs(NULL, 4, attrs, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_attrs(op, 4, NULL, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_attrs(op, 4, attrs, NULL));
    ROW(GB_SUCCESS, gb_op_get_attrs(op, 0, NULL, NULL));
    ROW(GB_SUCCESS, gb_op_get_attrs(op, 4, attrs, &count));
    cr_expect_eq(count, 0);
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_id(NULL, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_id(op, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_kind(NULL, &kind));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_kind(op, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_input(NULL, 0, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_input(op, 0, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_input(op, 1, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_output(NULL, 0, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_output(op, 0, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_output(op, 1, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_text(NULL, 0, NULL, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_text(op, 0, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_text(op, 1, NULL, &count));
    gb_graph_destroy(graph);
}

Test(api_status, building_graphs)
{
    gb_graph *made;
    gb_op *bad;
    gb_fpmath_mode mode;
    uint8_t to_int;
    uint8_t finalized;
    const gb_fpmath_mode none = (gb_fpmath_mode)9;
    runtime_ok(gb_op_create(&bad, 5, GB_OP_RELU, "")); /* without tensors */
    ROW(GB_INVALID_ARGUMENTS, gb_graph_create(NULL, GB_ENGINE_CPU));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_create(&made, (gb_engine_kind)9));
    ROW(GB_INVALID_ARGUMENTS,
            gb_graph_create_with_fpmath_mode(NULL, GB_ENGINE_CPU, GB_FPMATH_STRICT));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_create_with_fpmath_mode(&made, GB_ENGINE_CPU, none));
    ROW(GB_SUCCESS, gb_graph_destroy(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_fpmath_mode(NULL, GB_FPMATH_ANY, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_fpmath_mode(open, none, 0));
    ROW(GB_INVALID_GRAPH, gb_graph_set_fpmath_mode(closed, GB_FPMATH_ANY, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_fpmath_mode(NULL, &mode, &to_int));
    ROW(GB_SUCCESS, gb_graph_get_fpmath_mode(closed, &mode, NULL));
    ROW(GB_SUCCESS, gb_graph_get_fpmath_mode(closed, NULL, &to_int));
    ROW(GB_INVALID_ARGUMENTS, gb_set_default_fpmath_mode(none));
    ROW(GB_INVALID_ARGUMENTS, gb_get_default_fpmath_mode(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_engine_kind(NULL, GB_ENGINE_CPU));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_engine_kind(open, (gb_engine_kind)9));
    ROW(GB_INVALID_GRAPH, gb_graph_set_engine_kind(closed, GB_ENGINE_CPU));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_add_op(NULL, op));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_add_op(open, NULL));
    ROW(GB_INVALID_GRAPH_OP, gb_graph_add_op(open, bad));
    ROW(GB_INVALID_GRAPH_OP, gb_graph_add_op(open, op)); /* its id is there */
    ROW(GB_INVALID_GRAPH, gb_graph_add_op(closed, bad));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_finalize(NULL));
    ROW(GB_SUCCESS, gb_graph_finalize(closed));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_is_finalized(NULL, &finalized));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_is_finalized(open, NULL));
    gb_op_destroy(bad);
    runtime_op(open, 2, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&y}, &x);
    ROW(GB_INVALID_GRAPH, gb_graph_finalize(open)); /* a cycle */
}

Test(api_status, partitioning)
{
    gb_partition *list[2];
    gb_graph *gpu;
    size_t count;
    gb_unfused_edge edges[1];
    runtime_ok(gb_graph_create(&gpu, GB_ENGINE_GPU));
    runtime_ok(gb_graph_add_op(gpu, op));
    runtime_ok(gb_graph_finalize(gpu));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_filter(NULL, GB_POLICY_FUSION));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_filter(closed, (gb_policy)0));
    ROW(GB_INVALID_GRAPH, gb_graph_filter(open, GB_POLICY_FUSION));
    if (gb_engine_get_count(GB_ENGINE_GPU, &count) == GB_SUCCESS && count == 0)
        ROW(GB_UNIMPLEMENTED, gb_graph_filter(gpu, GB_POLICY_FUSION));
    gb_graph_destroy(gpu);
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_partitions(NULL, 0, NULL, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_partitions(closed, 0, NULL, NULL));
    ROW(GB_INVALID_GRAPH, gb_graph_get_partitions(open, 0, NULL, &count));
    ROW(GB_SUCCESS, gb_graph_get_partitions(closed, 0, NULL, &count));
    cr_expect_eq(count, 1);
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_partitions(NULL, 1, list, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_partitions(closed, 1, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_partitions(closed, 0, list, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_partitions(closed, 2, list, NULL));
    ROW(GB_INVALID_GRAPH, gb_graph_get_partitions(open, 1, list, NULL));
    /* Room for more than there are will do when the count is asked for. */
    list[1] = partition;
    ROW(GB_SUCCESS, gb_graph_get_partitions(closed, 2, list, &count));
    cr_expect(count == 1 && list[1] == partition);
    gb_partition_destroy(list[0]);
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_unfused_edges(NULL, 1, edges, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_unfused_edges(closed, 1, edges, NULL));
    ROW(GB_INVALID_GRAPH, gb_graph_get_unfused_edges(open, 1, edges, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_filter_within(NULL, GB_POLICY_MAX, 2));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_filter_within(closed, GB_POLICY_MAX, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_filter_within(closed, (gb_policy)0, 2));
    ROW(GB_INVALID_GRAPH, gb_graph_filter_within(open, GB_POLICY_MAX, 2));
    ROW(GB_SUCCESS, gb_graph_filter_within(closed, GB_POLICY_MAX, SIZE_MAX));
}

Test(api_status, graphs_as_data)
{
    gb_graph *made;
    const gb_op *found;
    gb_logical_tensor t, bad = x, other = y;
    size_t count;
    const char text[] = "{\"graph\": 7}";
    bad.ndims = 40;
    other.dims[0] = 9;
    ROW(GB_INVALID_ARGUMENTS, gb_graph_load_json(NULL, "a.json", NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_load_json(&made, NULL, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_load_json(&made, "/there/is/no.json", NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_parse_json(NULL, text, 5, "text", NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_parse_json(&made, NULL, 5, "text", NULL, NULL));
    ROW(GB_INVALID_GRAPH, gb_graph_parse_json(&made, text, sizeof text - 1, "text", NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_save_json(NULL, "-"));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_save_json(open, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_save_json(open, "/there/is/no.json"));
    ROW(GB_RUNTIME_ERROR, gb_graph_save_json(open, "/dev/full"));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_op(NULL, 0, &found));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_op(open, 0, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_op(open, 1, &found));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_find_op(NULL, 1, &found));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_find_op(open, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_find_op(open, 9, &found));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_tensor(NULL, 0, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_tensor(open, 0, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_tensor(open, 2, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_find_tensor(NULL, 0, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_find_tensor(open, 0, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_find_tensor(open, 9, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_producer(NULL, 1, &found));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_producer(open, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_producer(open, 9, &found));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_consumers(NULL, 0, 0, NULL, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_consumers(open, 0, 0, &found, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_consumers(open, 0, 2, &found, NULL));
    ROW(GB_SUCCESS, gb_graph_get_consumers(open, 0, 2, &found, &count));
    cr_expect_eq(count, 1);
    gb_op *edited;
    ROW(GB_INVALID_ARGUMENTS, gb_graph_edit_op(NULL, 1, &edited));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_edit_op(open, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_edit_op(open, 9, &edited));
    ROW(GB_INVALID_GRAPH, gb_graph_edit_op(closed, 1, &edited));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_consumers(open, 9, 0, NULL, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_tensor(NULL, &x));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_tensor(open, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_tensor(open, &bad));
    ROW(GB_INVALID_GRAPH, gb_graph_set_tensor(closed, &x));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_op_kind(NULL, 1, GB_OP_ABS));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_op_kind(open, 9, GB_OP_ABS));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_op_kind(open, 1, GB_OP_LAST));
    ROW(GB_INVALID_GRAPH, gb_graph_set_op_kind(closed, 1, GB_OP_ABS));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_bypass_op(NULL, 1, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_bypass_op(open, 9, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_bypass_op(open, 1, 1));
    ROW(GB_INVALID_GRAPH, gb_graph_bypass_op(closed, 1, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_verify(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_infer_shapes(NULL));
    ROW(GB_INVALID_GRAPH, gb_graph_infer_shapes(closed));
    runtime_ok(gb_graph_set_tensor(open, &other));
    ROW(GB_INVALID_SHAPE, gb_graph_infer_shapes(open));
    runtime_ok(gb_graph_set_op_kind(open, 1, GB_OP_ADD));
    ROW(GB_INVALID_GRAPH_OP, gb_graph_verify(open));
    ROW(GB_INVALID_GRAPH_OP, gb_graph_finalize(open));
}

static gb_status ignore_op(void *context, const gb_op *visited)
{
    (void)context;
    (void)visited;
    return GB_SUCCESS;
}

Test(api_status, files_of_both_forms)
{
    gb_graph *made;
    ROW(GB_INVALID_ARGUMENTS, gb_graph_load(NULL, "a.json", NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_load(&made, NULL, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_load(&made, "/there/is/no.gbt", NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_parse_text(NULL, "graph", 5, "text"));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_parse_text(&made, NULL, 5, "text"));
    ROW(GB_INVALID_GRAPH, gb_graph_parse_text(&made, "graph", 5, "text"));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_save_text(NULL, "-"));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_save_text(open, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_save_text(open, "/there/is/no.gbt"));
    ROW(GB_RUNTIME_ERROR, gb_graph_save_text(open, "/dev/full"));
}

Test(api_status, contents_visits_and_work)
{
    uint64_t hash;
    uint8_t equal;
    size_t count;
    double flops, bytes;
    gb_logical_tensor unknown = x;
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_hash(NULL, &hash));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_hash(op, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_is_equal(op, NULL, &equal));
    ROW(GB_INVALID_ARGUMENTS, gb_op_is_equal(op, op, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_hash(NULL, &hash));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_hash(open, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_is_equal(open, NULL, &equal));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_is_equal(open, closed, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_inputs(NULL, 0, NULL, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_inputs(open, 0, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_outputs(NULL, 0, NULL, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_visit(NULL, GB_VISIT_REVERSE, ignore_op, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_visit(open, GB_VISIT_REVERSE, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_visit(open, (gb_visit_order)9, ignore_op, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_work(NULL, &flops, &bytes));
    ROW(GB_INVALID_ARGUMENTS, gb_op_get_work(op, NULL, &bytes));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_work(NULL, &flops, &bytes));
    unknown.dims[0] = GB_UNKNOWN_DIM;
    runtime_ok(gb_graph_set_tensor(open, &unknown));
    ROW(GB_INVALID_SHAPE, gb_graph_get_work(open, &flops, &bytes));
}

Test(api_status, edits)
{
    gb_op *made, *cycle;
    gb_op_attr attr;
    const size_t ids[] = {0, 9};
    ROW(GB_INVALID_ARGUMENTS, gb_op_attr_define(NULL, GB_ATTR_TYPE_S64, &attr));
    ROW(GB_INVALID_ARGUMENTS, gb_op_attr_define("a note", GB_ATTR_TYPE_S64, &attr));
    ROW(GB_INVALID_ARGUMENTS, gb_op_attr_define("temp.note", GB_ATTR_TYPE_NONE, &attr));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_op(&made, NULL, "Abs", 1, ids, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_op(&made, open, "abs", 1, ids, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_op(&made, open, "Add", 2, ids, 1, NULL));
    runtime_ok(gb_graph_make_op(&made, open, "Abs", 1, ids, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_insert_op(NULL, 0, GB_NO_ID, made));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_insert_op(open, 0, GB_NO_ID, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_insert_op(open, 0, 9, made));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_insert_op(open, 1, GB_NO_ID, made));
    ROW(GB_INVALID_GRAPH, gb_graph_insert_op(closed, 0, GB_NO_ID, made));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_replace_op(open, 9, made));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_replace_op(open, 1, NULL));
    ROW(GB_INVALID_GRAPH, gb_graph_replace_op(closed, 1, made));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_remove_op(NULL, 1));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_remove_op(open, 9));
    ROW(GB_INVALID_GRAPH, gb_graph_remove_op(closed, 1));
    runtime_ok(gb_graph_make_op(&cycle, open, "Add", 2, (const size_t[]){0, 1}, 1, NULL));
    ROW(GB_INVALID_GRAPH, gb_graph_insert_op(open, 0, 1, cycle));
    gb_op_destroy(cycle);
    gb_op_destroy(made);
}

Test(api_status, partitions)
{
    gb_partition *made;
    gb_op *bad;
    gb_engine_kind kind;
    gb_logical_tensor port;
    const gb_op *lent;
    size_t n, id;
    uint8_t supported;
    runtime_ok(gb_op_create(&bad, 5, GB_OP_RELU, ""));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_create_with_op(NULL, op, GB_ENGINE_CPU));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_create_with_op(&made, NULL, GB_ENGINE_CPU));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_create_with_op(&made, op, (gb_engine_kind)9));
    ROW(GB_INVALID_GRAPH_OP, gb_partition_create_with_op(&made, bad, GB_ENGINE_CPU));
    gb_op_destroy(bad);
    ROW(GB_SUCCESS, gb_partition_destroy(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_id(NULL, &n));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_id(partition, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_engine_kind(NULL, &kind));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_engine_kind(partition, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_is_supported(NULL, &supported));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_is_supported(partition, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_ops(NULL, 0, NULL, &n));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_ops(partition, 0, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_ops(NULL, 1, &n, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_ops(partition, 1, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_ops(partition, few, &n, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_input_ports(NULL, 0, NULL, &n));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_input_ports(partition, 0, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_input_ports(NULL, 1, &port, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_input_ports(partition, 1, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_input_ports(partition, few, &port, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_output_ports(NULL, 0, NULL, &n));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_output_ports(partition, 0, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_output_ports(NULL, 1, &port, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_output_ports(partition, 1, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_output_ports(partition, few, &port, NULL));
    const gb_logical_tensor *given[] = {&x};
    size_t n_rows;
    const gb_logical_tensor *const asked[] = {&x}, *const none[] = {NULL};
    ROW(GB_INVALID_ARGUMENTS, gb_partition_query_layouts(NULL, 1, asked, 0, NULL, &n_rows));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_query_layouts(partition, 1, NULL, 0, NULL, &n_rows));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_query_layouts(partition, 0, asked, 0, NULL, &n_rows));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_query_layouts(partition, 1, none, 0, NULL, &n_rows));
    ROW(GB_SUCCESS, gb_partition_query_layouts(partition, 1, asked, 0, NULL, &n_rows));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_query_layouts(partition, 1, asked, 1, NULL, &n_rows));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_query_preferred_layout(NULL, 1, given, 0, &port));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_query_preferred_layout(partition, 1, NULL, 0, &port));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_query_preferred_layout(partition, 1, given, 0, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_query_preferred_layout(partition, 0, given, 0, &port));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_query_preferred_layout(partition, 1, given, 1, &port));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_op(NULL, 0, &lent));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_op(partition, 0, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_op(partition, 1, &lent));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_input_port_op(NULL, 0, &id, &n));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_input_port_op(partition, 0, NULL, &n));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_input_port_op(partition, 0, &id, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_input_port_op(partition, 1, &id, &n));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_output_port_op(NULL, 0, &id, &n));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_output_port_op(partition, 0, NULL, &n));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_output_port_op(partition, 0, &id, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_get_output_port_op(partition, 1, &id, &n));
}

Test(api_status, inferring_shapes)
{
    gb_logical_tensor result = y, wrong = y, unknown = y;
    const gb_logical_tensor *i[] = {&x}, *none[] = {NULL};
    gb_logical_tensor *o[] = {&result}, *bad[] = {&wrong}, *strange[] = {&unknown};
    wrong.dims[0] = 9;
    unknown.id = 77;
    ROW(GB_SUCCESS, gb_partition_infer_shape(partition, 1, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_infer_shape(NULL, 1, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_infer_shape(partition, 1, NULL, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_infer_shape(partition, 1, none, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_infer_shape(partition, 1, i, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_infer_shape(partition, 0, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_infer_shape(partition, 1, i, 1, strange));
    ROW(GB_INVALID_SHAPE, gb_partition_infer_shape(partition, 1, i, 1, bad));
    ROW(GB_SUCCESS, gb_compiled_partition_infer_shape(compiled, 1, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_infer_shape(NULL, 1, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_infer_shape(compiled, 1, NULL, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_infer_shape(compiled, 0, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_infer_shape(compiled, 1, i, 1, NULL));
}

Test(api_status, unknown_dims)
{
    gb_compiled_partition *dynamic, *made;
    gb_logical_tensor open_x = x, open_y = y, other = x;
    gb_memory_use use;
    double flops, bytes;
    open_x.dims[0] = open_x.strides[0] = open_y.dims[0] = open_y.strides[0] = GB_UNKNOWN_DIM;
    other.dims[1] = 9;
    other.strides[0] = 9;
    const gb_logical_tensor *i[] = {&x}, *o[] = {&y}, *wrong[] = {&other};
    const gb_logical_tensor *open_i[] = {&open_x}, *open_o[] = {&open_y};
    ROW(GB_SUCCESS, gb_partition_compile(partition, &dynamic, 1, open_i, 1, open_o, engine));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_specialize(NULL, &made, 1, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_specialize(dynamic, NULL, 1, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_specialize(dynamic, &made, 1, NULL, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_specialize(dynamic, &made, 1, i, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_specialize(dynamic, &made, 0, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_specialize(dynamic, &made, 1, wrong, 1, o));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_work(dynamic, &flops, &bytes));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_executed_flops(dynamic, &flops));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_memory(dynamic, &use));
    ROW(GB_SUCCESS, gb_compiled_partition_specialize(dynamic, &made, 1, i, 1, o));
    gb_compiled_partition_destroy(made);
    gb_compiled_partition_destroy(dynamic);
}

/* Compiles the partition for other descriptions of its ports. */
static gb_status compile_as(gb_logical_tensor input, gb_logical_tensor output)
{
    gb_compiled_partition *made;
    const gb_logical_tensor *inputs[] = {&input}, *outputs[] = {&output};
    return gb_partition_compile(partition, &made, 1, inputs, 1, outputs, engine);
}

Test(api_status, compiling)
{
    gb_compiled_partition *made;
    gb_partition *unknown;
    gb_op *wildcard;
    const gb_logical_tensor *i[] = {&x}, *o[] = {&y}, *none[] = {NULL};
    gb_logical_tensor wrong = y, open_type = x, open_layout = x, halves = x, other_id = x;
    wrong.dims[0] = 9;
    open_type.data_type = GB_UNDEF;
    open_layout.layout_type = GB_LAYOUT_UNDEF;
    halves.data_type = GB_F16;
    other_id.id = 77;
    ROW(GB_INVALID_ARGUMENTS, gb_partition_compile(NULL, &made, 1, i, 1, o, engine));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_compile(partition, NULL, 1, i, 1, o, engine));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_compile(partition, &made, 1, NULL, 1, o, engine));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_compile(partition, &made, 1, none, 1, o, engine));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_compile(partition, &made, 1, i, 1, NULL, engine));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_compile(partition, &made, 1, i, 1, o, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_compile(partition, &made, 0, i, 1, o, engine));
    ROW(GB_INVALID_ARGUMENTS, compile_as(other_id, y));
    ROW(GB_INVALID_ARGUMENTS, compile_as(open_type, y));
    ROW(GB_INVALID_ARGUMENTS, compile_as(open_layout, y));
    ROW(GB_INVALID_ARGUMENTS, compile_as(halves, y));
    ROW(GB_INVALID_SHAPE, compile_as(x, wrong));
    runtime_ok(gb_op_create(&wildcard, 1, GB_OP_WILDCARD, ""));
    runtime_ok(gb_op_add_input(wildcard, &x));
    runtime_ok(gb_op_add_output(wildcard, &y));
    runtime_ok(gb_partition_create_with_op(&unknown, wildcard, GB_ENGINE_CPU));
    ROW(GB_INVALID_ARGUMENTS, gb_partition_compile(unknown, &made, 1, i, 1, o, engine));
    gb_partition_destroy(unknown);
    gb_op_destroy(wildcard);
}

Test(api_status, compiled_partitions)
{
    gb_logical_tensor t;
    const gb_inplace_pair *pairs;
    gb_memory_use use;
    size_t n;
    double flops, bytes;
    ROW(GB_SUCCESS, gb_compiled_partition_destroy(NULL));
    const gb_partition *source;
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_query_preferred_layout(NULL, 0, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_query_preferred_layout(compiled, 0, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_query_preferred_layout(compiled, 1, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_partition(NULL, &source));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_partition(compiled, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_query_logical_tensor(NULL, 0, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_query_logical_tensor(compiled, 0, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_query_logical_tensor(compiled, 9, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_inplace_ports(NULL, &n, &pairs));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_inplace_ports(compiled, NULL, &pairs));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_inplace_ports(compiled, &n, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_scratchpad(NULL, &t));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_scratchpad(compiled, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_work(NULL, &flops, &bytes));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_work(compiled, NULL, &bytes));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_executed_flops(NULL, &flops));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_executed_flops(compiled, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_work(compiled, &flops, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_memory(NULL, &use));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_get_memory(compiled, NULL));
}

#define EXECUTE(c, s, n_in, ins, n_out, outs)                                                      \
    gb_compiled_partition_execute(c, s, n_in, ins, n_out, outs, NULL)

Test(api_status, executing)
{
    gb_tensor *empty;
    runtime_ok(gb_tensor_create(&empty, &x, engine, GB_MEMORY_NONE));
    const gb_tensor *i[] = {in}, *none[] = {NULL}, *no_memory[] = {empty};
    gb_tensor *o[] = {out}, *no_output[] = {NULL}, *without[] = {empty};
    const gb_event *no_event = NULL;
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_execute_with_events(
                                      compiled, stream, 1, i, 1, o, NULL, 1, NULL, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_compiled_partition_execute_with_events(
                                      compiled, stream, 1, i, 1, o, NULL, 1, &no_event, NULL));
    ROW(GB_SUCCESS, EXECUTE(compiled, stream, 1, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, EXECUTE(NULL, stream, 1, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, EXECUTE(compiled, NULL, 1, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, EXECUTE(compiled, stream, 1, NULL, 1, o));
    ROW(GB_INVALID_ARGUMENTS, EXECUTE(compiled, stream, 1, i, 1, NULL));
    ROW(GB_INVALID_ARGUMENTS, EXECUTE(compiled, stream, 0, i, 1, o));
    ROW(GB_INVALID_ARGUMENTS, EXECUTE(compiled, stream, 1, i, 2, o));
    ROW(GB_INVALID_ARGUMENTS, EXECUTE(compiled, stream, 1, none, 1, o));
    ROW(GB_INVALID_ARGUMENTS, EXECUTE(compiled, stream, 1, i, 1, no_output));
    ROW(GB_INVALID_ARGUMENTS, EXECUTE(compiled, stream, 1, no_memory, 1, o));
    ROW(GB_INVALID_ARGUMENTS, EXECUTE(compiled, stream, 1, i, 1, without));
    gb_tensor_destroy(empty);
}

Test(api_status, caches_and_diagnostics)
{
    int capacity;
    size_t megabytes;
    gb_cache_counters counters;
    gb_constant_cache_counters constant;
    const gb_engine_kind none = (gb_engine_kind)9;
    ROW(GB_INVALID_ARGUMENTS, gb_set_compiled_partition_cache_capacity(-1));
    ROW(GB_INVALID_ARGUMENTS, gb_get_compiled_partition_cache_capacity(NULL));
    ROW(GB_SUCCESS, gb_get_compiled_partition_cache_capacity(&capacity));
    cr_expect_eq(capacity, 1024);
    ROW(GB_INVALID_ARGUMENTS, gb_get_compiled_partition_cache_counters(NULL));
    ROW(GB_SUCCESS, gb_get_compiled_partition_cache_counters(&counters));
    ROW(GB_INVALID_ARGUMENTS, gb_set_constant_cache_capacity(none, 1));
    ROW(GB_INVALID_ARGUMENTS, gb_set_constant_cache_capacity(GB_ENGINE_ANY, 1));
    ROW(GB_INVALID_ARGUMENTS, gb_get_constant_cache_capacity(none, &megabytes));
    ROW(GB_INVALID_ARGUMENTS, gb_get_constant_cache_capacity(GB_ENGINE_CPU, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_get_constant_cache_counters(none, &constant));
    ROW(GB_INVALID_ARGUMENTS, gb_get_constant_cache_counters(GB_ENGINE_CPU, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_set_verbose(1U << 20));
    ROW(GB_SUCCESS, gb_set_verbose(GB_VERBOSE_NONE));
    ROW(GB_INVALID_ARGUMENTS, gb_set_dump_mode(1U << 20));
    ROW(GB_SUCCESS, gb_set_dump_mode(GB_DUMP_NONE));
}

Test(api_status, the_op_set)
{
    gb_op *sample;
    ROW(GB_INVALID_ARGUMENTS, gb_op_table_write(NULL));
    ROW(GB_RUNTIME_ERROR, gb_op_table_write("/there/is/no.md"));
    ROW(GB_INVALID_ARGUMENTS, gb_op_sample_create(NULL, GB_OP_RELU, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_op_sample_create(&sample, GB_OP_LAST, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_op_sample_create(&sample, GB_OP_RELU, SIZE_MAX));
}

/* An allocator of the application's that has no more memory after some blocks. */
static atomic_int blocks_left;

static void *take(size_t size, size_t alignment)
{
    void *block = NULL;
    if (atomic_fetch_sub(&blocks_left, 1) <= 0 || posix_memalign(&block, alignment, size) != 0)
        return NULL;
    return block;
}

Test(api_status, allocators_without_memory)
{
    gb_allocator *allocator;
    gb_engine *poor;
    gb_tensor *made;
    runtime_case c;
    gb_graph *graph;
    /* a product of enough work to want scratch memory */
    gb_logical_tensor a = runtime_matrix(0, 300, 300, GB_PROPERTY_VARIABLE);
    gb_logical_tensor b = runtime_matrix(1, 300, 300, GB_PROPERTY_CONSTANT);
    gb_logical_tensor d = runtime_matrix(2, 300, 300, GB_PROPERTY_VARIABLE);
    static float numbers[300 * 300];
    void *inputs[] = {numbers, numbers}, *outputs[] = {(float[300 * 300]){0}};
    runtime_ok(gb_allocator_create(&allocator, take, free));
    runtime_ok(gb_engine_create_with_allocator(&poor, GB_ENGINE_CPU, 0, allocator));
    ROW(GB_OUT_OF_MEMORY, gb_tensor_create(&made, &x, poor, GB_MEMORY_ALLOCATE));
    runtime_ok(gb_tensor_create(&made, &x, poor, memory));
    ROW(GB_OUT_OF_MEMORY, gb_tensor_set_data_handle(made, GB_MEMORY_ALLOCATE));
    gb_tensor_destroy(made);
    gb_engine_destroy(poor);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_MATMUL, 2, (const gb_logical_tensor *[]){&a, &b}, &d);
    runtime_compile(&c, graph, allocator);
    gb_allocator_destroy(allocator);
    ROW(GB_OUT_OF_MEMORY, runtime_execute(&c, inputs, outputs, NULL));
    atomic_store(&blocks_left, 100);
    ROW(GB_SUCCESS, runtime_execute(&c, inputs, outputs, NULL));
    runtime_close(&c);
}

Test(api_status, ops_of_the_program)
{
    gb_op_kind kind;
    gb_op_definition d = {.size = sizeof d, .name = "Mine", .max_inputs = 2, .max_outputs = 1};
    gb_op_definition bad = d;
    ROW(GB_INVALID_ARGUMENTS, gb_op_kind_define(NULL, &kind));
    ROW(GB_INVALID_ARGUMENTS, gb_op_kind_define(&d, NULL));
    bad.size--;
    ROW(GB_INVALID_ARGUMENTS, gb_op_kind_define(&bad, &kind));
    bad = d;
    bad.name = "two words";
    ROW(GB_INVALID_ARGUMENTS, gb_op_kind_define(&bad, &kind));
    bad.name = "MatMul";
    ROW(GB_INVALID_ARGUMENTS, gb_op_kind_define(&bad, &kind));
    bad = d;
    bad.min_inputs = 3;
    ROW(GB_INVALID_ARGUMENTS, gb_op_kind_define(&bad, &kind));
    ROW(GB_SUCCESS, gb_op_kind_define(&d, &kind));
    ROW(GB_SUCCESS, gb_op_kind_define(&d, &kind));
    d.max_inputs = 3;
    ROW(GB_INVALID_ARGUMENTS, gb_op_kind_define(&d, &kind));
}

Test(api_status, ends_and_attributes_of_graphs)
{
    gb_op_attr flag, number, numbers, text, pointer, attrs[8];
    gb_logical_tensor fresh = x, any = x, other = x;
    const void *values;
    gb_tensor_use uses[2];
    size_t count;
    const float f = 1;
    const int64_t s[] = {1, 2};
    const uint8_t b = 1;
    fresh.id = any.id = 50;
    any.layout_type = GB_LAYOUT_ANY;
    other.data_type = GB_S32;
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_uses(NULL, 0, 2, uses, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_uses(open, 0, 0, uses, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_uses(open, 9, 2, uses, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_input(NULL, &fresh));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_input(open, NULL));
    ROW(GB_INVALID_GRAPH, gb_graph_make_input(closed, &fresh));
    ROW(GB_INVALID_GRAPH, gb_graph_make_input(open, &y));
    ROW(GB_INVALID_GRAPH, gb_graph_make_input(open, &other));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_constant(NULL, &fresh, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_constant(open, NULL, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_constant(open, &fresh, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_constant(open, &any, memory));
    ROW(GB_INVALID_GRAPH, gb_graph_make_constant(closed, &fresh, memory));
    ROW(GB_INVALID_GRAPH, gb_graph_make_constant(open, &x, memory)); /* variable for its reader */
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_constant(NULL, 0, &values, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_constant(open, 50, &values, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_constant(open, 0, NULL, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_output(NULL, 0));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_make_output(open, 50));
    ROW(GB_INVALID_GRAPH, gb_graph_make_output(closed, 0));
    runtime_ok(gb_op_attr_define("number", GB_ATTR_TYPE_F32, &number));
    runtime_ok(gb_op_attr_define("numbers", GB_ATTR_TYPE_S64S, &numbers));
    runtime_ok(gb_op_attr_define("flag", GB_ATTR_TYPE_BOOL, &flag));
    runtime_ok(gb_op_attr_define("text", GB_ATTR_TYPE_STRING, &text));
    runtime_ok(gb_op_attr_define("pointer", GB_ATTR_TYPE_POINTER, &pointer));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_pointer(NULL, pointer, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_op_set_attr_pointer(op, text, memory));
    ROW(GB_SUCCESS, gb_op_set_attr_pointer(op, pointer, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_attr_f32(NULL, number, 1, &f));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_attr_f32(open, GB_ATTR_ALPHA, 1, &f));
    ROW(GB_INVALID_GRAPH, gb_graph_set_attr_f32(closed, number, 1, &f));
    ROW(GB_SUCCESS, gb_graph_set_attr_f32(open, number, 1, &f));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_attr_s64(open, number, 1, s));
    ROW(GB_SUCCESS, gb_graph_set_attr_s64(open, numbers, 2, s));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_attr_bool(open, flag, 2, &b));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_attr_str(open, text, "", 0));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_set_attr_pointer(open, text, memory));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_attr(NULL, number, &count, &values));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_attr(open, number, &count, NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_attrs(NULL, 8, attrs, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_attrs(open, 1, attrs, &count));
    ROW(GB_INVALID_ARGUMENTS, gb_graph_get_attrs(closed, 8, NULL, &count));
    ROW(GB_SUCCESS, gb_graph_get_attrs(open, 8, attrs, &count));
    cr_expect_eq(count, 2);
    ROW(GB_SUCCESS, gb_graph_get_attrs(closed, 8, attrs, &count));
    cr_expect_eq(count, 0);
}

/* Structs ---------------------------------------------------------------------------------------
 */

/* Value structs are frozen: programs hold them by value, in arrays, and compiled against an older
 * header. Members stay where they are (of LP64). */
#define FROZEN(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " is frozen")
#define PLACED(type, member, place)                                                                \
    _Static_assert(offsetof(type, member) == (place), #type "." #member " stays")
#if SIZE_MAX == UINT64_MAX
FROZEN(gb_logical_tensor, 232);
PLACED(gb_logical_tensor, dims, 16);
PLACED(gb_logical_tensor, data_type, 112);
PLACED(gb_logical_tensor, property, 116);
PLACED(gb_logical_tensor, layout_type, 120);
PLACED(gb_logical_tensor, strides, 128);
PLACED(gb_logical_tensor, layout_id, 224);
FROZEN(gb_inplace_pair, 16);
FROZEN(gb_memory_use, 32);
FROZEN(gb_unfused_edge, 32);
FROZEN(gb_version, 12);
FROZEN(gb_tensor_use, 16);
FROZEN(gb_cache_counters, 32);
FROZEN(gb_constant_cache_counters, 40);
/* These may grow at their end; what is there stays. */
PLACED(gb_op_definition, size, 0);
PLACED(gb_op_definition, context, 72);
PLACED(gb_context_attrs, size, 0);
PLACED(gb_context_attrs, constant_megabytes, 16);
PLACED(gb_engine_attrs, size, 0);
PLACED(gb_engine_attrs, context, 16);
PLACED(gb_stream_attrs, size, 0);
PLACED(gb_stream_attrs, concurrency, 24);
#endif

/* Completeness --------------------------------------------------------------------------------- */

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    char *text = calloc(1, 1 << 20);
    cr_assert_lt(fread(text, 1, 1 << 20, file), 1 << 20);
    fclose(file);
    return text;
}

/* Returns the number of functions that a header declares with a status. */
static int expect_rows(const char *path, const char *rows)
{
    char *header = read_text(path);
    const char *declaration = "\nGB_API gb_status ";
    int functions = 0;
    for (const char *at = header; (at = strstr(at, declaration)); functions++) {
        char name[96];
        at += strlen(declaration);
        cr_assert_lt(strcspn(at, "("), sizeof name - 1);
        snprintf(name, sizeof name, "%.*s(", (int)strcspn(at, "("), at);
        bool found = false;
        for (const char *row = rows; !found && (row = strstr(row, "ROW("));) {
            row += strlen("ROW(");
            const char *end = strchr(row, ';'), *call = strstr(row, name);
            found = end && call && call < end;
        }
        found = found || strcmp(name, "gb_compiled_partition_execute(") == 0; /* EXECUTE */
        cr_expect(found, "%s has no row", name);
    }
    free(header);
    return functions;
}

Test(api_status, every_function_has_a_row)
{
    char *rows = read_text(GB_TEST_DATA "/test_api_status.c");
    cr_expect_gt(expect_rows(GB_TEST_DATA "/../include/graphbench/graphbench.h", rows), 100);
    cr_expect_gt(expect_rows(GB_TEST_DATA "/../include/graphbench/graphbench_tools.h", rows), 8);
    free(rows);
}

Test(api_status, passes)
{
    ROW(GB_INVALID_ARGUMENTS, gb_set_pass_mode(8));
    ROW(GB_SUCCESS, gb_set_pass_mode(GB_PASS_CHECK));
    ROW(GB_INVALID_ARGUMENTS, gb_set_left_out_pass("infer"));
    ROW(GB_INVALID_ARGUMENTS, gb_set_left_out_pass("nothing"));
    ROW(GB_SUCCESS, gb_set_left_out_pass("views"));
    ROW(GB_SUCCESS, gb_set_left_out_pass(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_set_caches("4095:65536"));
    ROW(GB_SUCCESS, gb_set_caches("4096:16384:65536"));
    ROW(GB_SUCCESS, gb_set_caches(NULL));
    ROW(GB_INVALID_ARGUMENTS, gb_set_bf16_products((gb_bf16_products)3));
    ROW(GB_SUCCESS, gb_set_bf16_products(GB_BF16_PRODUCTS_F32));
    ROW(GB_SUCCESS, gb_set_bf16_products(GB_BF16_PRODUCTS_AUTO));
}
