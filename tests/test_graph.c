/* Building, checking, inspecting and rewriting graphs through the public interface. */
#include <criterion/criterion.h>
#include <graphbench/graphbench_tools.h>
#include <string.h>

static gb_logical_tensor vector(size_t id, int64_t n)
{
    gb_logical_tensor tensor;
    gb_status status = gb_logical_tensor_init_with_dims(
            &tensor, id, GB_F32, 1, &n, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF);
    cr_assert_eq(status, GB_SUCCESS, "%s", gb_last_error());
    return tensor;
}

static gb_op *make_op(
        size_t id, gb_op_kind kind, size_t n_inputs, const size_t *inputs, size_t output)
{
    gb_op *op;
    cr_assert_eq(gb_op_create(&op, id, kind, ""), GB_SUCCESS);
    for (size_t i = 0; i < n_inputs; i++) {
        gb_logical_tensor tensor = vector(inputs[i], 4);
        cr_assert_eq(gb_op_add_input(op, &tensor), GB_SUCCESS);
    }
    gb_logical_tensor tensor = vector(output, 4);
    cr_assert_eq(gb_op_add_output(op, &tensor), GB_SUCCESS);
    return op;
}

static gb_graph *make_graph(void)
{
    gb_graph *graph;
    cr_assert_eq(gb_graph_create(&graph, GB_ENGINE_CPU), GB_SUCCESS);
    return graph;
}

static gb_status add(gb_graph *graph, gb_op *op)
{
    gb_status status = gb_graph_add_op(graph, op);
    gb_op_destroy(op);
    return status;
}

static gb_status add_unary(gb_graph *graph, size_t id, size_t input, size_t output)
{
    return add(graph, make_op(id, GB_OP_RELU, 1, &input, output));
}

static gb_status add_binary(gb_graph *graph, size_t id, size_t left, size_t right, size_t output)
{
    return add(graph, make_op(id, GB_OP_ADD, 2, (size_t[]){left, right}, output));
}

static size_t op_id_at(const gb_graph *graph, size_t index)
{
    const gb_op *op;
    size_t id;
    cr_assert_eq(gb_graph_get_op(graph, index, &op), GB_SUCCESS);
    cr_assert_eq(gb_op_get_id(op, &id), GB_SUCCESS);
    return id;
}

Test(graph, names_and_parsers_agree)
{
    for (int i = 0; i < GB_OP_LAST; i++) {
        gb_op_kind kind = GB_OP_LAST;
        cr_expect_eq(gb_op_kind_parse(gb_op_kind_name((gb_op_kind)i), &kind), GB_SUCCESS);
        cr_expect_eq((int)kind, i);
    }
    int n_attrs = 0;
    for (int i = 0; i <= GB_ATTR_END; i++) {
        if (gb_op_attr_type((gb_op_attr)i) == GB_ATTR_TYPE_NONE)
            continue;
        gb_op_attr attr = GB_ATTR_UNDEF;
        cr_expect_eq(gb_op_attr_parse(gb_op_attr_name((gb_op_attr)i), &attr), GB_SUCCESS);
        cr_expect_eq((int)attr, i);
        n_attrs++;
    }
    cr_expect_eq(n_attrs, 43);
    for (int i = 0; i <= GB_PROPERTY_HOST_SCALAR; i++) {
        gb_property property;
        cr_expect_eq(gb_property_parse(gb_property_name((gb_property)i), &property), GB_SUCCESS);
        cr_expect_eq((int)property, i);
    }
    for (int i = 0; i <= GB_FPMATH_TF32; i++) {
        gb_fpmath_mode mode;
        cr_expect_eq(
                gb_fpmath_mode_parse(gb_fpmath_mode_name((gb_fpmath_mode)i), &mode), GB_SUCCESS);
        cr_expect_eq((int)mode, i);
    }
    cr_expect_str_eq(gb_engine_kind_name(GB_ENGINE_GPU), "gpu");
}

Test(graph, unknown_names_are_refused)
{
    gb_op_kind kind;
    gb_op_attr attr;
    gb_property property;
    gb_fpmath_mode mode;
    cr_expect_eq(gb_op_kind_parse("matmul", &kind), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_attr_parse("undef", &attr), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_property_parse("", &property), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_fpmath_mode_parse("strictly", &mode), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_kind_parse(NULL, &kind), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_kind_parse("MatMul", NULL), GB_INVALID_ARGUMENTS);
    cr_expect_str_eq(gb_op_kind_name((gb_op_kind)1000), "undef");
    cr_expect_str_eq(gb_op_attr_name((gb_op_attr)0x2F), "undef");
    cr_expect_str_eq(gb_property_name((gb_property)9), "undef");
    cr_expect_str_eq(gb_fpmath_mode_name((gb_fpmath_mode)-1), "undef");
}

Test(graph, lent_ops_belong_to_their_graph)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(add_unary(graph, 1, 0, 1), GB_SUCCESS);
    gb_op *op;
    gb_logical_tensor tensor = vector(9, 4);
    cr_assert_eq(gb_graph_edit_op(graph, 1, &op), GB_SUCCESS);
    cr_expect_eq(gb_op_destroy(op), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_add_input(op, &tensor), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_add_output(op, &tensor), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_edit_op(graph, 2, &op), GB_INVALID_ARGUMENTS);
    float alpha = 0.5F;
    cr_expect_eq(gb_op_set_attr_f32(op, GB_ATTR_ALPHA, 1, &alpha), GB_SUCCESS);
    cr_expect_eq(gb_graph_verify(graph), GB_INVALID_GRAPH_OP, "ReLU has no alpha");
    gb_graph_destroy(graph);
}

Test(graph, finalized_graphs_do_not_change)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(add_unary(graph, 1, 0, 1), GB_SUCCESS);
    uint8_t finalized = 9;
    gb_op *op;
    cr_assert_eq(gb_graph_edit_op(graph, 1, &op), GB_SUCCESS);
    gb_graph_is_finalized(graph, &finalized);
    cr_expect_eq(finalized, 0);
    cr_assert_eq(gb_graph_finalize(graph), GB_SUCCESS);
    cr_assert_eq(gb_graph_finalize(graph), GB_SUCCESS);
    gb_graph_is_finalized(graph, &finalized);
    cr_expect_eq(finalized, 1);

    float alpha = 1;
    gb_logical_tensor tensor = vector(0, 4);
    cr_expect_eq(gb_graph_edit_op(graph, 1, &op), GB_INVALID_GRAPH);
    cr_expect_eq(add_unary(graph, 2, 1, 2), GB_INVALID_GRAPH);
    cr_expect_eq(gb_op_set_attr_f32(op, GB_ATTR_ALPHA, 1, &alpha), GB_INVALID_GRAPH);
    cr_expect_eq(gb_graph_set_fpmath_mode(graph, GB_FPMATH_ANY, 0), GB_INVALID_GRAPH);
    cr_expect_eq(gb_graph_set_tensor(graph, &tensor), GB_INVALID_GRAPH);
    cr_expect_eq(gb_graph_set_op_kind(graph, 1, GB_OP_ABS), GB_INVALID_GRAPH);
    cr_expect_eq(gb_graph_bypass_op(graph, 1, 0), GB_INVALID_GRAPH);
    cr_expect_eq(gb_graph_infer_shapes(graph), GB_INVALID_GRAPH);
    cr_expect_eq(gb_graph_verify(graph), GB_SUCCESS);
    gb_graph_destroy(graph);
}

Test(graph, add_op_refuses_bad_ops_and_stays_as_it_was)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(add_unary(graph, 1, 0, 1), GB_SUCCESS);
    cr_expect_eq(add_unary(graph, 1, 1, 2), GB_INVALID_GRAPH_OP);
    cr_expect(strstr(gb_last_error(), "op 1 (ReLU)"), "%s", gb_last_error());
    cr_expect_eq(add(graph, make_op(2, GB_OP_RELU, 2, (size_t[]){5, 6}, 7)), GB_INVALID_GRAPH_OP);
    cr_expect_eq(add(graph, make_op(2, GB_OP_ELU, 1, (size_t[]){5}, 7)), GB_INVALID_GRAPH_OP);
    cr_expect_eq(add(graph, make_op(2, (gb_op_kind)99, 1, (size_t[]){5}, 7)), GB_INVALID_GRAPH_OP);
    cr_expect_eq(gb_graph_add_op(graph, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_add_op(NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_get_op_num(graph), 1);
    cr_expect_eq(gb_graph_get_tensor_num(graph), 2);
    gb_graph_destroy(graph);
}

Test(graph, added_ops_are_copies_with_defaults)
{
    gb_graph *graph = make_graph();
    gb_op *op = make_op(1, GB_OP_ADD, 2, (size_t[]){0, 1}, 2);
    const gb_op *lent;
    cr_assert_eq(gb_graph_add_op(graph, op), GB_SUCCESS);
    const void *value;
    size_t count;
    gb_op_get_attr(op, GB_ATTR_AUTO_BROADCAST, &count, &value);
    cr_expect_null(value, "the caller's op is not touched");
    gb_op_destroy(op);
    cr_assert_eq(gb_graph_find_op(graph, 1, &lent), GB_SUCCESS);
    gb_op_get_attr(lent, GB_ATTR_AUTO_BROADCAST, &count, &value);
    cr_assert_not_null(value);
    cr_expect_str_eq(value, "numpy");
    cr_expect_str_eq(gb_op_get_name(lent), "Add_1");
    gb_graph_destroy(graph);
}

Test(graph, finalize_sorts_and_keeps_the_order_of_equals)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(add_binary(graph, 50, 11, 12, 13), GB_SUCCESS);
    cr_assert_eq(add_unary(graph, 40, 10, 12), GB_SUCCESS);
    cr_assert_eq(add_unary(graph, 30, 10, 11), GB_SUCCESS);
    cr_assert_eq(add_unary(graph, 20, 9, 10), GB_SUCCESS);
    cr_assert_eq(add_unary(graph, 10, 8, 20), GB_SUCCESS);
    cr_expect_eq(op_id_at(graph, 0), 50);
    cr_assert_eq(gb_graph_finalize(graph), GB_SUCCESS);
    const size_t expected[] = {20, 40, 30, 50, 10};
    for (size_t i = 0; i < 5; i++)
        cr_expect_eq(op_id_at(graph, i), expected[i]);
    const gb_op *op;
    cr_expect_eq(gb_graph_find_op(graph, 30, &op), GB_SUCCESS);
    cr_expect_eq(gb_graph_find_op(graph, 31, &op), GB_INVALID_ARGUMENTS);
    gb_graph_destroy(graph);
}

Test(graph, connections)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(add_unary(graph, 1, 0, 1), GB_SUCCESS);
    cr_assert_eq(add_binary(graph, 2, 1, 1, 2), GB_SUCCESS);
    cr_assert_eq(add_binary(graph, 3, 2, 1, 3), GB_SUCCESS);
    for (int round = 0; round < 2; round++) {
        const gb_op *ops[3];
        const gb_op *op;
        size_t count, id;
        cr_assert_eq(gb_graph_get_producer(graph, 1, &op), GB_SUCCESS);
        gb_op_get_id(op, &id);
        cr_expect_eq(id, 1);
        cr_assert_eq(gb_graph_get_producer(graph, 0, &op), GB_SUCCESS);
        cr_expect_null(op);
        cr_assert_eq(gb_graph_get_consumers(graph, 1, 0, NULL, &count), GB_SUCCESS);
        cr_assert_eq(count, 3);
        gb_graph_get_consumers(graph, 1, count, ops, NULL);
        const size_t expected[] = {2, 2, 3};
        for (size_t i = 0; i < 3; i++) {
            gb_op_get_id(ops[i], &id);
            cr_expect_eq(id, expected[i]);
        }
        gb_graph_get_consumers(graph, 3, 0, NULL, &count);
        cr_expect_eq(count, 0);
        cr_expect_eq(gb_graph_get_producer(graph, 77, &op), GB_INVALID_ARGUMENTS);
        cr_assert_eq(gb_graph_finalize(graph), GB_SUCCESS);
    }
    gb_graph_destroy(graph);
}

Test(graph, cycles_are_named)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(add_unary(graph, 9, 0, 1), GB_SUCCESS);
    cr_assert_eq(add_binary(graph, 1, 1, 4, 2), GB_SUCCESS);
    cr_assert_eq(add_unary(graph, 2, 2, 3), GB_SUCCESS);
    cr_assert_eq(add_unary(graph, 3, 3, 4), GB_SUCCESS);
    cr_assert_eq(add_unary(graph, 8, 4, 5), GB_SUCCESS);
    cr_expect_eq(gb_graph_finalize(graph), GB_INVALID_GRAPH);
    const char *message = gb_last_error();
    cr_expect(strstr(message, "op 1 (Add) -> op 2 (ReLU) -> op 3 (ReLU)") ||
                      strstr(message, "op 2 (ReLU) -> op 3 (ReLU) -> op 1 (Add)") ||
                      strstr(message, "op 3 (ReLU) -> op 1 (Add) -> op 2 (ReLU)"),
            "%s", message);
    cr_expect_null(strstr(message, "op 8"));
    cr_expect_null(strstr(message, "op 9"));
    uint8_t finalized;
    gb_graph_is_finalized(graph, &finalized);
    cr_expect_eq(finalized, 0);
    gb_graph_destroy(graph);
}

Test(graph, tensors_have_one_producer)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(add_unary(graph, 1, 0, 5), GB_SUCCESS);
    cr_assert_eq(add_unary(graph, 2, 0, 5), GB_SUCCESS);
    cr_expect_eq(gb_graph_finalize(graph), GB_INVALID_GRAPH);
    cr_expect(strstr(gb_last_error(), "tensor 5"), "%s", gb_last_error());
    cr_expect(strstr(gb_last_error(), "op 1"), "%s", gb_last_error());
    cr_expect(strstr(gb_last_error(), "op 2"), "%s", gb_last_error());
    gb_graph_destroy(graph);
}

/* A graph whose op 2 reads tensor 1 as `second`, while op 1 wrote a vector of 4. */
static gb_graph *describe_twice(const gb_logical_tensor *second)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(add_unary(graph, 1, 0, 1), GB_SUCCESS);
    gb_op *op;
    gb_op_create(&op, 2, GB_OP_END, "");
    gb_op_add_input(op, second);
    cr_assert_eq(add(graph, op), GB_SUCCESS);
    return graph;
}

Test(graph, contradicting_descriptions_are_found_at_finalize)
{
    gb_logical_tensor seconds[6];
    for (int i = 0; i < 6; i++)
        seconds[i] = vector(1, 4);
    seconds[0].dims[0] = 5;
    seconds[1].data_type = GB_F16;
    seconds[2].strides[0] = 2;
    seconds[3].property = GB_PROPERTY_CONSTANT;
    seconds[4].layout_type = GB_LAYOUT_ANY;
    seconds[5].ndims = 2;
    seconds[5].dims[1] = seconds[5].strides[1] = 1;
    for (int i = 0; i < 6; i++) {
        gb_graph *graph = describe_twice(&seconds[i]);
        cr_expect_eq(gb_graph_finalize(graph), GB_INVALID_GRAPH, "case %d", i);
        cr_expect(strstr(gb_last_error(), "tensor 1 "), "%s", gb_last_error());
        cr_expect(strstr(gb_last_error(), "op 1 (ReLU)"), "%s", gb_last_error());
        cr_expect(strstr(gb_last_error(), "op 2 (End)"), "%s", gb_last_error());
        gb_logical_tensor tensor = vector(1, 4);
        cr_assert_eq(gb_graph_set_tensor(graph, &tensor), GB_SUCCESS);
        cr_expect_eq(gb_graph_finalize(graph), GB_SUCCESS, "one description for all mends it");
        gb_graph_destroy(graph);
    }
}

Test(graph, open_descriptions_are_completed)
{
    gb_logical_tensor seconds[4], tensor;
    gb_logical_tensor_init(
            &seconds[0], 1, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF);
    gb_logical_tensor_init(&seconds[1], 1, GB_F32, 1, GB_LAYOUT_UNDEF, GB_PROPERTY_VARIABLE);
    gb_logical_tensor_init(&seconds[2], 1, GB_UNDEF, 1, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF);
    seconds[3] = vector(1, 4);
    seconds[3].strides[0] = GB_UNKNOWN_DIM;
    for (int i = 0; i < 4; i++) {
        gb_graph *graph = describe_twice(&seconds[i]);
        cr_expect_eq(gb_graph_finalize(graph), GB_SUCCESS, "case %d: %s", i, gb_last_error());
        cr_assert_eq(gb_graph_find_tensor(graph, 1, &tensor), GB_SUCCESS);
        cr_expect_eq(tensor.ndims, 1);
        cr_expect_eq(tensor.dims[0], 4);
        cr_expect_eq(tensor.strides[0], 1);
        cr_expect_eq(tensor.data_type, GB_F32);
        gb_graph_destroy(graph);
    }
}

Test(graph, set_op_kind_drops_foreign_attributes)
{
    gb_graph *graph = make_graph();
    gb_op *op = make_op(1, GB_OP_ELU, 1, (size_t[]){0}, 1);
    const gb_op *lent;
    float alpha = 0.25F;
    gb_op_set_attr_f32(op, GB_ATTR_ALPHA, 1, &alpha);
    cr_assert_eq(add(graph, op), GB_SUCCESS);
    gb_graph_find_op(graph, 1, &lent);

    const void *value;
    size_t count;
    cr_assert_eq(gb_graph_set_op_kind(graph, 1, GB_OP_LEAKY_RELU), GB_SUCCESS);
    gb_op_get_attr(lent, GB_ATTR_ALPHA, &count, &value);
    cr_assert_not_null(value, "both kinds have alpha");
    cr_expect_eq(*(const float *)value, 0.25F);
    cr_assert_eq(gb_graph_set_op_kind(graph, 1, GB_OP_SOFTPLUS), GB_SUCCESS);
    gb_op_get_attr(lent, GB_ATTR_ALPHA, &count, &value);
    cr_expect_null(value);
    gb_op_get_attr(lent, GB_ATTR_BETA, &count, &value);
    cr_expect_not_null(value, "defaults of the new kind are filled in");
    cr_expect_eq(gb_graph_verify(graph), GB_SUCCESS);
    cr_expect_eq(gb_graph_set_op_kind(graph, 1, GB_OP_MATMUL), GB_SUCCESS);
    cr_expect_eq(gb_graph_verify(graph), GB_INVALID_GRAPH_OP, "MatMul has two inputs");
    cr_expect_eq(gb_graph_set_op_kind(graph, 5, GB_OP_ABS), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_set_op_kind(graph, 1, GB_OP_LAST), GB_INVALID_ARGUMENTS);
    gb_graph_destroy(graph);
}

Test(graph, bypass_joins_the_neighbours)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(add_unary(graph, 1, 0, 1), GB_SUCCESS);
    cr_assert_eq(add_binary(graph, 2, 9, 1, 2), GB_SUCCESS);
    cr_assert_eq(add_binary(graph, 3, 2, 2, 3), GB_SUCCESS);
    cr_expect_eq(gb_graph_bypass_op(graph, 2, 2), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_bypass_op(graph, 7, 0), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_graph_bypass_op(graph, 2, 1), GB_SUCCESS);

    cr_expect_eq(gb_graph_get_op_num(graph), 2);
    cr_expect_eq(gb_graph_get_tensor_num(graph), 3, "tensors 2 and 9 are gone");
    gb_logical_tensor tensor;
    cr_expect_eq(gb_graph_find_tensor(graph, 9, &tensor), GB_INVALID_ARGUMENTS);
    const gb_op *op;
    cr_assert_eq(gb_graph_find_op(graph, 3, &op), GB_SUCCESS);
    for (size_t i = 0; i < 2; i++) {
        gb_op_get_input(op, i, &tensor);
        cr_expect_eq(tensor.id, 1);
    }
    gb_op_get_output(op, 0, &tensor);
    cr_expect_eq(tensor.id, 3);
    size_t count;
    gb_graph_get_consumers(graph, 1, 0, NULL, &count);
    cr_expect_eq(count, 2);
    cr_expect_eq(gb_graph_finalize(graph), GB_SUCCESS);
    gb_graph_destroy(graph);
}

/* What is set behind gb_graph_add_op() obeys the schema, too. */
Test(graph, finalize_checks_what_was_set_since)
{
    gb_logical_tensor narrow = vector(1, 4);
    narrow.data_type = GB_U8;
    for (int i = 0; i < 3; i++) {
        gb_graph *graph = make_graph();
        gb_op *op;
        cr_assert_eq(add_unary(graph, 1, 0, 1), GB_SUCCESS);
        if (i == 0)
            cr_assert_eq(gb_graph_set_tensor(graph, &narrow), GB_SUCCESS);
        if (i == 1)
            cr_assert_eq(gb_graph_set_op_kind(graph, 1, GB_OP_ADD), GB_SUCCESS);
        if (i == 2) {
            cr_assert_eq(gb_graph_edit_op(graph, 1, &op), GB_SUCCESS);
            cr_assert_eq(gb_op_set_attr_s64(op, GB_ATTR_AXIS, 1, (const int64_t[]){0}), GB_SUCCESS);
        }
        uint8_t finalized;
        cr_expect_eq(gb_graph_finalize(graph), GB_INVALID_GRAPH_OP, "case %d", i);
        cr_expect(strstr(gb_last_error(), "op 1 ("), "%s", gb_last_error());
        gb_graph_is_finalized(graph, &finalized);
        cr_expect_not(finalized);
        gb_graph_destroy(graph);
    }
}

Test(graph, shapes_are_inferred_from_the_inputs)
{
    gb_graph *graph = make_graph();
    gb_logical_tensor open;
    gb_op *op;
    gb_op_create(&op, 2, GB_OP_RELU, "");
    gb_logical_tensor_init(
            &open, 1, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF);
    gb_op_add_input(op, &open);
    open.id = 2;
    gb_op_add_output(op, &open);
    cr_assert_eq(add(graph, op), GB_SUCCESS);
    gb_op_create(&op, 1, GB_OP_RELU, "");
    gb_logical_tensor_init(&open, 0, GB_F32, 2, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF);
    open.dims[0] = 2;
    open.dims[1] = 3;
    gb_op_add_input(op, &open);
    gb_logical_tensor_init(
            &open, 1, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_STRIDED, GB_PROPERTY_UNDEF);
    gb_op_add_output(op, &open);
    cr_assert_eq(add(graph, op), GB_SUCCESS);

    cr_assert_eq(gb_graph_infer_shapes(graph), GB_SUCCESS, "%s", gb_last_error());
    for (size_t id = 0; id < 3; id++) {
        gb_logical_tensor tensor;
        gb_graph_find_tensor(graph, id, &tensor);
        cr_expect_eq(tensor.ndims, 2);
        cr_expect_eq(tensor.dims[0], 2);
        cr_expect_eq(tensor.dims[1], 3);
        cr_expect_eq(tensor.strides[0], 3, "open strides become dense, of inputs too");
        cr_expect_eq(tensor.strides[1], 1);
    }
    gb_graph_destroy(graph);
}

Test(graph, set_tensor_checks_its_argument)
{
    gb_graph *graph = make_graph();
    cr_assert_eq(add_unary(graph, 1, 0, 1), GB_SUCCESS);
    gb_logical_tensor tensor = vector(5, 4);
    cr_expect_eq(gb_graph_set_tensor(graph, &tensor), GB_INVALID_ARGUMENTS);
    tensor.id = 1;
    tensor.ndims = 13;
    cr_expect_eq(gb_graph_set_tensor(graph, &tensor), GB_INVALID_ARGUMENTS);
    tensor.ndims = 1;
    tensor.dims[0] = -4;
    cr_expect_eq(gb_graph_set_tensor(graph, &tensor), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_set_tensor(graph, NULL), GB_INVALID_ARGUMENTS);
    gb_graph_destroy(graph);
}

Test(graph, null_and_range_are_checked)
{
    gb_graph *graph = NULL;
    const gb_op *op;
    gb_logical_tensor tensor;
    cr_expect_eq(gb_graph_create(NULL, GB_ENGINE_CPU), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_create(&graph, (gb_engine_kind)4), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_create_with_fpmath_mode(&graph, GB_ENGINE_CPU, (gb_fpmath_mode)5),
            GB_INVALID_ARGUMENTS);
    cr_expect_null(graph);
    cr_expect_eq(gb_graph_destroy(NULL), GB_SUCCESS);
    cr_expect_eq(gb_graph_finalize(NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_get_op_num(NULL), 0);
    cr_expect_eq(gb_graph_get_tensor_num(NULL), 0);
    cr_expect_eq(gb_graph_verify(NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_infer_shapes(NULL), GB_INVALID_ARGUMENTS);
    graph = make_graph();
    cr_expect_eq(gb_graph_get_op(graph, 0, &op), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_get_tensor(graph, 0, &tensor), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_finalize(graph), GB_SUCCESS, "an empty graph is a graph");
    gb_graph_destroy(graph);
}

Test(graph, long_chains_are_fast_in_any_order)
{
    enum { LENGTH = 20000 };
    gb_graph *graph = make_graph();
    for (size_t i = LENGTH; i-- > 0;)
        cr_assert_eq(add_unary(graph, i, i, i + 1), GB_SUCCESS);
    cr_assert_eq(gb_graph_finalize(graph), GB_SUCCESS);
    for (size_t i = 0; i < LENGTH; i++)
        cr_assert_eq(op_id_at(graph, i), i);
    gb_graph_destroy(graph);
}
