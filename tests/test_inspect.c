/* What an application may ask of tensors, ops, partitions and compiled partitions, and both
 * spellings of what is not known. */
#include "runtime_case.h"

#include <graphbench/graphbench_tools.h>

enum { ROWS = 3, INNER = 4, COLUMNS = 2 };

/* MatMul 10 (tensors 1 and 0) > Add 11 (its result and 0x2 once more) > ReLU 12. */
static gb_partition *product_partition(void)
{
    gb_graph *graph;
    gb_logical_tensor a = runtime_matrix(1, ROWS, INNER, GB_PROPERTY_VARIABLE);
    gb_logical_tensor b = runtime_matrix(0, INNER, COLUMNS, GB_PROPERTY_CONSTANT);
    gb_logical_tensor bias = runtime_matrix(5, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    gb_logical_tensor ab = runtime_matrix(2, ROWS, COLUMNS, GB_PROPERTY_VARIABLE), sum = ab, y = ab;
    sum.id = 3;
    y.id = 4;
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 10, GB_OP_MATMUL, 2, (const gb_logical_tensor *[]){&a, &b}, &ab);
    runtime_op(graph, 11, GB_OP_ADD, 2, (const gb_logical_tensor *[]){&bias, &ab}, &sum);
    runtime_op(graph, 12, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&sum}, &y);
    return runtime_partition(graph);
}

/* Unknown sizes -------------------------------------------------------------------------------- */

Test(unknown_dims, both_spellings_are_one)
{
    const int64_t minus[] = {2, -1, 3}, unknown[] = {2, GB_UNKNOWN_DIM, 3}, wrong[] = {2, -2, 3};
    gb_logical_tensor a, b;
    uint8_t equal;
    runtime_ok(gb_logical_tensor_init_with_dims(
            &a, 7, GB_F32, 3, minus, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    runtime_ok(gb_logical_tensor_init_with_dims(
            &b, 7, GB_F32, 3, unknown, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    cr_expect_eq(a.dims[1], GB_UNKNOWN_DIM);
    cr_expect_eq(a.strides[0], GB_UNKNOWN_DIM);
    runtime_ok(gb_logical_tensor_is_equal(&a, &b, &equal));
    cr_expect(equal);
    a.dims[1] = a.strides[0] = a.strides[1] = -1; /* written by hand */
    runtime_ok(gb_logical_tensor_is_equal(&a, &b, &equal));
    cr_expect(equal);
    a.dims[1] = 5;
    runtime_ok(gb_logical_tensor_is_equal(&a, &b, &equal));
    cr_expect_not(equal);
    runtime_ok(gb_logical_tensor_init_with_strides(
            &a, 7, GB_F32, 3, minus, minus, GB_PROPERTY_VARIABLE));
    cr_expect_eq(a.strides[1], GB_UNKNOWN_DIM);
    cr_expect_eq(gb_logical_tensor_init_with_dims(
                         &a, 7, GB_F32, 3, wrong, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE),
            GB_INVALID_ARGUMENTS);
}

Test(unknown_dims, a_graph_sees_one_spelling)
{
    gb_graph *graph;
    gb_logical_tensor x = runtime_matrix(0, 4, 6, GB_PROPERTY_VARIABLE), y = x, found;
    y.id = 1;
    y.dims[0] = y.strides[0] = -1;
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 0, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&x}, &y);
    runtime_ok(gb_graph_find_tensor(graph, 1, &found));
    cr_expect_eq(found.dims[0], GB_UNKNOWN_DIM);
    cr_expect_eq(found.strides[0], GB_UNKNOWN_DIM);
    y.dims[0] = GB_UNKNOWN_DIM;
    y.dims[1] = -1;
    runtime_ok(gb_graph_set_tensor(graph, &y));
    runtime_ok(gb_graph_find_tensor(graph, 1, &found));
    cr_expect_eq(found.dims[1], GB_UNKNOWN_DIM);
    runtime_ok(gb_graph_infer_shapes(graph));
    runtime_ok(gb_graph_find_tensor(graph, 1, &found));
    cr_expect(found.dims[0] == 4 && found.dims[1] == 6);
    gb_graph_destroy(graph);
}

/* Compiles for any number of rows, says so with -1, and executes on two. */
Test(unknown_dims, compiling_and_executing)
{
    gb_op *op;
    gb_partition *partition;
    gb_compiled_partition *compiled;
    gb_engine *engine;
    gb_stream *stream;
    gb_tensor *in, *out;
    gb_logical_tensor x = runtime_matrix(0, 2, 3, GB_PROPERTY_VARIABLE), open_x = x, open_y = x,
                      found;
    float values[] = {-1, 2, -3, 4, -5, 6};
    void *result;
    open_x.dims[0] = open_x.strides[0] = -1;
    open_y = open_x;
    open_y.id = 1;
    open_y.dims[1] = open_y.strides[1] = -1;
    runtime_ok(gb_op_create(&op, 0, GB_OP_ABS, "abs"));
    runtime_ok(gb_op_add_input(op, &open_x));
    runtime_ok(gb_op_add_output(op, &open_y));
    runtime_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_CPU));
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    runtime_ok(gb_stream_create(&stream, engine));
    runtime_ok(gb_partition_compile(partition, &compiled, 1, (const gb_logical_tensor *[]){&open_x},
            1, (const gb_logical_tensor *[]){&open_y}, engine));
    runtime_ok(gb_compiled_partition_query_logical_tensor(compiled, 0, &found));
    cr_expect_eq(found.dims[0], GB_UNKNOWN_DIM);
    found = open_y;
    runtime_ok(gb_partition_infer_shape(
            partition, 1, (const gb_logical_tensor *[]){&x}, 1, (gb_logical_tensor *[]){&found}));
    cr_expect(found.dims[0] == 2 && found.strides[0] == 3);
    runtime_ok(gb_tensor_create(&in, &x, engine, values));
    runtime_ok(gb_tensor_create(&out, &open_y, engine, GB_MEMORY_ALLOCATE));
    runtime_ok(gb_tensor_get_logical_tensor(out, &found));
    cr_expect_eq(found.dims[0], GB_UNKNOWN_DIM);
    runtime_ok(gb_compiled_partition_execute(
            compiled, stream, 1, (const gb_tensor *[]){in}, 1, (gb_tensor *[]){out}, NULL));
    runtime_ok(gb_tensor_get_data_handle(out, &result));
    for (int i = 0; i < 6; i++)
        cr_expect_eq(((float *)result)[i], (float)(i + 1));
    gb_tensor_destroy(in);
    gb_tensor_destroy(out);
    gb_compiled_partition_destroy(compiled);
    gb_stream_destroy(stream);
    gb_engine_destroy(engine);
    gb_partition_destroy(partition);
    gb_op_destroy(op);
}

/* Tensors -------------------------------------------------------------------------------------- */

static uint8_t same_layout(const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    uint8_t same = 9;
    runtime_ok(gb_logical_tensor_has_same_layout_and_dtype(a, b, &same));
    return same;
}

Test(inspect, layouts_compare_without_ids_and_properties)
{
    gb_logical_tensor a = runtime_matrix(0, 4, 6, GB_PROPERTY_VARIABLE), b = a;
    b.id = 1;
    b.property = GB_PROPERTY_CONSTANT;
    cr_expect_eq(same_layout(&a, &b), 1);
    b.strides[0] = 7;
    cr_expect_eq(same_layout(&a, &b), 0);
    b = a;
    b.data_type = GB_S32;
    cr_expect_eq(same_layout(&a, &b), 0);
    b = a;
    b.layout_type = GB_LAYOUT_ANY;
    cr_expect_eq(same_layout(&a, &b), 0);
    runtime_ok(gb_logical_tensor_set_layout(&a, "aB4b"));
    cr_expect_eq(same_layout(&a, &b), 0);
    b = a;
    b.id = 3;
    cr_expect_eq(same_layout(&a, &b), 1);
    runtime_ok(gb_logical_tensor_set_layout(&b, "aB2b"));
    cr_expect_eq(same_layout(&a, &b), 0);
    b = a;
    b.dims[0]++;
    cr_expect_eq(same_layout(&a, &b), 0);
}

static size_t count_of(int ndims, const int64_t *dims)
{
    gb_logical_tensor tensor;
    size_t count;
    runtime_ok(gb_logical_tensor_init_with_dims(
            &tensor, 0, GB_S4, ndims, dims, GB_LAYOUT_ANY, GB_PROPERTY_VARIABLE));
    runtime_ok(gb_logical_tensor_get_element_count(&tensor, &count));
    return count;
}

Test(inspect, elements_are_counted)
{
    const int64_t dims[] = {3, 5, 7}, none[] = {INT64_MAX, 0, INT64_MAX}, open[] = {3, -1, 7};
    gb_logical_tensor blocked = runtime_matrix(0, 3, 5, GB_PROPERTY_VARIABLE), any_rank;
    size_t count;
    cr_expect_eq(count_of(3, dims), 105);
    cr_expect_eq(count_of(0, NULL), 1);
    cr_expect_eq(count_of(3, none), 0);
    cr_expect_eq(count_of(3, open), SIZE_MAX);
    runtime_ok(gb_logical_tensor_set_layout(&blocked, "aB4b")); /* padding does not count */
    runtime_ok(gb_logical_tensor_get_element_count(&blocked, &count));
    cr_expect_eq(count, 15);
    runtime_ok(gb_logical_tensor_init(
            &any_rank, 0, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
    runtime_ok(gb_logical_tensor_get_element_count(&any_rank, &count));
    cr_expect_eq(count, SIZE_MAX);
}

Test(inspect, dims_as_they_lie_in_memory)
{
    static const struct {
        const char *layout;
        int ndims;
        int64_t dims[7];
    } cases[] = {
            {"abcd", 4, {16, 64, 224, 224}},
            {"acdb", 4, {16, 224, 224, 64}},
            {"NCHW16c", 5, {16, 4, 224, 224, 16}},
            {"aBcd24b", 5, {16, 3, 224, 224, 24}},
            {"ABcd4b8a2b", 7, {2, 8, 224, 224, 4, 8, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t dims[] = {16, 64, 224, 224};
        gb_logical_tensor tensor;
        int ndims;
        int64_t physical[GB_MAX_NDIMS];
        runtime_ok(gb_logical_tensor_init_with_dims(
                &tensor, 0, GB_F32, 4, dims, GB_LAYOUT_ANY, GB_PROPERTY_VARIABLE));
        runtime_ok(gb_logical_tensor_set_layout(&tensor, cases[i].layout));
        runtime_ok(gb_logical_tensor_get_physical_dims(&tensor, &ndims, physical));
        cr_expect_eq(ndims, cases[i].ndims, "%s", cases[i].layout);
        for (int d = 0; d < ndims && d < 7; d++)
            cr_expect_eq(physical[d], cases[i].dims[d], "%s", cases[i].layout);
    }
}

/* Ops ------------------------------------------------------------------------------------------ */

Test(inspect, text_of_an_op)
{
    gb_op *op;
    gb_logical_tensor x = runtime_matrix(3, 4, 6, GB_PROPERTY_CONSTANT), y = x;
    const float one = 1.5f;
    char text[256], small[8];
    size_t length, again;
    const char *expected = "7 \"act\": %4:f32:4x? = Elu(%3:f32:4x6:constant) alpha=1.5";
    y.id = 4;
    y.property = GB_PROPERTY_UNDEF;
    y.dims[1] = y.strides[0] = y.strides[1] = -1;
    runtime_ok(gb_op_create(&op, 7, GB_OP_ELU, "act"));
    runtime_ok(gb_op_add_input(op, &x));
    runtime_ok(gb_op_add_output(op, &y));
    runtime_ok(gb_op_set_attr_f32(op, GB_ATTR_ALPHA, 1, &one));
    runtime_ok(gb_op_get_text(op, 0, NULL, &length));
    runtime_ok(gb_op_get_text(op, sizeof text, text, &again));
    cr_expect_str_eq(text, expected);
    cr_expect(length == strlen(expected) && again == length);
    runtime_ok(gb_op_get_text(op, sizeof small, small, &length));
    cr_expect_str_eq(small, "7 \"act\"");
    cr_expect_eq(length, again);
    gb_op_destroy(op);
}

/* Partitions ----------------------------------------------------------------------------------- */

Test(inspect, ops_and_ports_of_a_partition)
{
    gb_partition *partition = product_partition();
    gb_logical_tensor ports[3];
    static const struct {
        size_t tensor, op, input;
    } reads[] = {{1, 10, 0}, {0, 10, 1}, {5, 11, 0}};
    size_t n, op_id, place;
    runtime_ok(gb_partition_get_input_ports(partition, 0, NULL, &n));
    cr_assert_eq(n, 3);
    runtime_ok(gb_partition_get_input_ports(partition, n, ports, NULL));
    for (size_t i = 0; i < n; i++) {
        runtime_ok(gb_partition_get_input_port_op(partition, i, &op_id, &place));
        cr_expect_eq(ports[i].id, reads[i].tensor);
        cr_expect_eq(op_id, reads[i].op);
        cr_expect_eq(place, reads[i].input);
    }
    runtime_ok(gb_partition_get_output_port_op(partition, 0, &op_id, &place));
    cr_expect(op_id == 12 && place == 0);
    for (size_t i = 0; i < 3; i++) {
        const gb_op *op;
        runtime_ok(gb_partition_get_op(partition, i, &op));
        runtime_ok(gb_op_get_id(op, &op_id));
        cr_expect_eq(op_id, 10 + i);
    }
    gb_partition_destroy(partition);
}

Test(inspect, a_compiled_partition_knows_its_source)
{
    runtime_case c;
    gb_graph *graph;
    gb_logical_tensor x = runtime_matrix(0, 2, 2, GB_PROPERTY_VARIABLE), y = x;
    const gb_partition *source;
    size_t wanted, found, id;
    y.id = 1;
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    runtime_op(graph, 21, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&x}, &y);
    runtime_compile(&c, graph, NULL);
    runtime_ok(gb_partition_get_id(c.partition, &wanted));
    gb_partition_destroy(c.partition);
    c.partition = NULL;
    runtime_ok(gb_compiled_partition_get_partition(c.compiled, &source));
    runtime_ok(gb_partition_get_id(source, &found));
    runtime_ok(gb_partition_get_ops(source, 1, &id, NULL));
    cr_expect_eq(found, wanted);
    cr_expect_eq(id, 21);
    runtime_close(&c);
}

/* Allocators ----------------------------------------------------------------------------------- */

typedef struct heap {
    int taken, returned;
} heap;

static void *take(size_t size, size_t alignment, void *context)
{
    void *memory;
    ((heap *)context)->taken++;
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void give(void *memory, void *context)
{
    ((heap *)context)->returned++;
    free(memory);
}

Test(inspect, allocators_get_their_context)
{
    heap heaps[2] = {{0, 0}, {0, 0}};
    gb_logical_tensor x = runtime_matrix(0, 8, 8, GB_PROPERTY_VARIABLE);
    for (int i = 0; i < 2; i++) {
        gb_allocator *allocator;
        gb_engine *engine;
        gb_tensor *tensors[2];
        runtime_ok(gb_allocator_create_with_context(&allocator, take, give, &heaps[i]));
        runtime_ok(gb_engine_create_with_allocator(&engine, GB_ENGINE_CPU, 0, allocator));
        gb_allocator_destroy(allocator);
        for (int k = 0; k <= i; k++)
            runtime_ok(gb_tensor_create(&tensors[k], &x, engine, GB_MEMORY_ALLOCATE));
        for (int k = 0; k <= i; k++)
            gb_tensor_destroy(tensors[k]);
        gb_engine_destroy(engine);
        cr_expect(heaps[i].taken == i + 1 && heaps[i].returned == i + 1);
    }
}
