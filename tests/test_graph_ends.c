/* Ends of a graph, readers with inputs, and attributes of the program's own. */
#include "runtime_case.h"

#include <graphbench/graphbench_tools.h>
#include <stdio.h>
#include <unistd.h>

static gb_graph *new_graph(void)
{
    gb_graph *graph;
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_CPU));
    return graph;
}

static size_t count_inputs(const gb_graph *graph)
{
    size_t count;
    runtime_ok(gb_graph_get_inputs(graph, 0, NULL, &count));
    return count;
}

/* x (0) and w (1) make y (2) = MatMul 5, z (3) = Multiply 6 of y and y. */
static void add_ops(gb_graph *graph, gb_property of_w)
{
    gb_logical_tensor x = runtime_matrix(0, 3, 4, GB_PROPERTY_VARIABLE);
    gb_logical_tensor w = runtime_matrix(1, 4, 2, of_w), y, z;
    y = runtime_matrix(2, 3, 2, GB_PROPERTY_VARIABLE);
    z = runtime_matrix(3, 3, 2, GB_PROPERTY_VARIABLE);
    runtime_op(graph, 5, GB_OP_MATMUL, 2, (const gb_logical_tensor *[]){&x, &w}, &y);
    runtime_op(graph, 6, GB_OP_MULTIPLY, 2, (const gb_logical_tensor *[]){&y, &y}, &z);
}

Test(graph_ends, inputs_need_no_op)
{
    gb_graph *graph = new_graph();
    gb_logical_tensor x = runtime_matrix(0, 3, 4, GB_PROPERTY_VARIABLE),
                      alone = runtime_matrix(9, 7, 7, GB_PROPERTY_VARIABLE), inputs[3], found;
    size_t count = 3;
    alone.dims[0] = alone.strides[0] = -1;
    runtime_ok(gb_graph_make_input(graph, &x));
    runtime_ok(gb_graph_make_input(graph, &alone));
    cr_expect_eq(gb_graph_get_op_num(graph), 0);
    cr_expect_eq(count_inputs(graph), 2);
    add_ops(graph, GB_PROPERTY_CONSTANT);
    runtime_ok(gb_graph_find_tensor(graph, 9, &found));
    cr_expect_eq(found.dims[0], GB_UNKNOWN_DIM);
    cr_expect_eq(count_inputs(graph), 3);
    runtime_ok(gb_graph_remove_op(graph, 6)); /* an edit keeps them */
    runtime_ok(gb_graph_get_inputs(graph, count, inputs, NULL));
    cr_expect_eq(count, 3);
    runtime_ok(gb_graph_finalize(graph));
    runtime_ok(gb_graph_filter(graph, GB_POLICY_FUSION));
    runtime_ok(gb_graph_get_partitions(graph, 0, NULL, &count));
    cr_expect_eq(count, 1);
    gb_graph_destroy(graph);
}

Test(graph_ends, no_op_makes_an_input)
{
    gb_graph *graph = new_graph();
    gb_logical_tensor y = runtime_matrix(2, 3, 2, GB_PROPERTY_VARIABLE), x = y;
    gb_op *op;
    x.id = 0;
    runtime_ok(gb_graph_make_input(graph, &y));
    runtime_ok(gb_op_create(&op, 0, GB_OP_RELU, ""));
    runtime_ok(gb_op_add_input(op, &x));
    runtime_ok(gb_op_add_output(op, &y));
    cr_expect_eq(gb_graph_add_op(graph, op), GB_INVALID_GRAPH_OP);
    cr_expect(strstr(gb_last_error(), "tensor 2, an input of the graph"), "%s", gb_last_error());
    gb_op_destroy(op);
    gb_graph_destroy(graph);
}

Test(graph_ends, constants_have_contents)
{
    gb_graph *graph = new_graph();
    gb_logical_tensor w = runtime_matrix(1, 4, 2, GB_PROPERTY_UNDEF), found;
    float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const void *data;
    size_t bytes;
    add_ops(graph, GB_PROPERTY_CONSTANT);
    runtime_ok(gb_graph_get_constant(graph, 1, &data, &bytes));
    cr_expect(!data && bytes == 0);
    runtime_ok(gb_graph_make_constant(graph, &w, values));
    values[0] = 9; /* a copy is kept */
    runtime_ok(gb_graph_get_constant(graph, 1, &data, &bytes));
    cr_assert_eq(bytes, sizeof values);
    cr_expect_eq(((const float *)data)[0], 1);
    runtime_ok(gb_graph_find_tensor(graph, 1, &found));
    cr_expect_eq(found.property, GB_PROPERTY_CONSTANT);
    runtime_ok(gb_graph_make_constant(graph, &w, values));
    runtime_ok(gb_graph_remove_op(graph, 6));
    runtime_ok(gb_graph_get_constant(graph, 1, &data, &bytes));
    cr_expect_eq(((const float *)data)[0], 9);
    found.dims[0] = 5;
    found.strides[0] = 2;
    cr_expect_eq(gb_graph_set_tensor(graph, &found), GB_INVALID_ARGUMENTS);
    gb_graph_destroy(graph);
}

/* 6: Multiply by the constant 1, 7: ReLU; input 8, which nobody reads. */
Test(graph_ends, a_bypass_keeps_what_was_declared)
{
    gb_graph *graph = new_graph();
    gb_logical_tensor w = runtime_matrix(1, 3, 4, GB_PROPERTY_CONSTANT), x = w, y = w, unread = w;
    const float values[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const void *data;
    size_t bytes, count;
    x.id = 0, y.id = 2, unread.id = 8;
    x.property = y.property = unread.property = GB_PROPERTY_VARIABLE;
    runtime_ok(gb_graph_make_constant(graph, &w, values));
    runtime_ok(gb_graph_make_input(graph, &unread));
    runtime_op(graph, 6, GB_OP_MULTIPLY, 2, (const gb_logical_tensor *[]){&x, &w}, &y);
    x.id = 3;
    runtime_op(graph, 7, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&y}, &x);
    runtime_ok(gb_graph_bypass_op(graph, 6, 0));
    runtime_ok(gb_graph_get_inputs(graph, 0, NULL, &count));
    cr_expect_eq(count, 3);
    runtime_ok(gb_graph_find_tensor(graph, 8, &unread));
    runtime_ok(gb_graph_get_constant(graph, 1, &data, &bytes));
    cr_assert_eq(bytes, sizeof values);
    cr_expect_eq(((const float *)data)[11], 12);
    cr_expect_neq(gb_graph_find_tensor(graph, 2, &y), GB_SUCCESS);
    runtime_ok(gb_graph_finalize(graph));
    gb_graph_destroy(graph);
}

Test(graph_ends, a_declaration_is_named)
{
    gb_graph *graph = new_graph();
    gb_logical_tensor declared = runtime_matrix(0, 2, 3, GB_PROPERTY_VARIABLE),
                      x = runtime_matrix(0, 4, 3, GB_PROPERTY_VARIABLE), y = x;
    y.id = 1;
    runtime_ok(gb_graph_make_input(graph, &declared));
    runtime_op(graph, 1, GB_OP_RELU, 1, (const gb_logical_tensor *[]){&x}, &y);
    cr_expect_eq(gb_graph_finalize(graph), GB_INVALID_GRAPH);
    cr_expect_str_eq(gb_last_error(),
            "tensor 0 is described in two ways: f32:2x3 strided variable at its declaration, "
            "f32:4x3 strided variable at op 1 (ReLU)");
    gb_graph_destroy(graph);
}

Test(graph_ends, outputs_leave_although_they_are_read)
{
    gb_graph *graph = new_graph();
    gb_partition *partitions[4];
    size_t count, ports = 0, n;
    add_ops(graph, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_get_outputs(graph, 0, NULL, &count));
    cr_expect_eq(count, 1);
    runtime_ok(gb_graph_make_output(graph, 2));
    runtime_ok(gb_graph_make_output(graph, 2));
    cr_expect_eq(gb_graph_get_op_num(graph), 3);
    runtime_ok(gb_graph_get_outputs(graph, 0, NULL, &count));
    cr_expect_eq(count, 2);
    runtime_ok(gb_graph_finalize(graph));
    runtime_ok(gb_graph_filter(graph, GB_POLICY_FUSION));
    runtime_ok(gb_graph_get_partitions(graph, 0, NULL, &n));
    cr_assert_leq(n, 4);
    runtime_ok(gb_graph_get_partitions(graph, n, partitions, NULL));
    for (size_t i = 0; i < n; i++) {
        runtime_ok(gb_partition_get_output_ports(partitions[i], 0, NULL, &count));
        ports += count;
        gb_partition_destroy(partitions[i]);
    }
    cr_expect_eq(ports, 2);
    gb_graph_destroy(graph);
}

Test(graph_ends, readers_with_their_inputs)
{
    gb_graph *graph = new_graph();
    gb_tensor_use uses[2];
    size_t count;
    add_ops(graph, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_get_uses(graph, 2, 2, uses, &count));
    cr_assert_eq(count, 2);
    cr_expect(uses[0].op_id == 6 && uses[0].input == 0);
    cr_expect(uses[1].op_id == 6 && uses[1].input == 1);
    runtime_ok(gb_graph_get_uses(graph, 1, 2, uses, &count));
    cr_assert_eq(count, 1);
    cr_expect(uses[0].op_id == 5 && uses[0].input == 1);
    runtime_ok(gb_graph_get_uses(graph, 3, 0, NULL, &count));
    cr_expect_eq(count, 0);
    gb_graph_destroy(graph);
}

/* Attributes ----------------------------------------------------------------------------------- */

static gb_op *op_with(gb_op_attr attr, int64_t value)
{
    gb_op *op;
    gb_logical_tensor x = runtime_matrix(0, 3, 4, GB_PROPERTY_VARIABLE), y = x;
    y.id = 1;
    runtime_ok(gb_op_create(&op, 4, GB_OP_RELU, "relu"));
    runtime_ok(gb_op_add_input(op, &x));
    runtime_ok(gb_op_add_output(op, &y));
    runtime_ok(gb_op_set_attr_s64(op, attr, 1, &value));
    return op;
}

/* Attributes of the program count, notes do not. */
Test(graph_ends, attributes_of_the_program_are_content)
{
    static const char *const names[] = {"stage", "temp.stage"};
    for (int note = 0; note < 2; note++) {
        gb_op_attr attr;
        uint64_t hashes[2];
        uint8_t equal;
        runtime_ok(gb_op_attr_define(names[note], GB_ATTR_TYPE_S64, &attr));
        gb_op *one = op_with(attr, 1), *two = op_with(attr, 2);
        runtime_ok(gb_op_get_hash(one, &hashes[0]));
        runtime_ok(gb_op_get_hash(two, &hashes[1]));
        runtime_ok(gb_op_is_equal(one, two, &equal));
        cr_expect_eq(hashes[0] == hashes[1], note);
        cr_expect_eq(equal, note);
        gb_op_destroy(one);
        gb_op_destroy(two);
    }
}

Test(graph_ends, attributes_of_the_program_are_written_and_read)
{
    gb_op_attr stage, pointer;
    gb_graph *graph = new_graph(), *again;
    char text[512];
    const void *values;
    size_t length, count;
    const gb_op *lent;
    runtime_ok(gb_op_attr_define("my.stage", GB_ATTR_TYPE_S64, &stage));
    runtime_ok(gb_op_attr_define("my.object", GB_ATTR_TYPE_POINTER, &pointer));
    gb_op *op = op_with(stage, 7);
    const gb_op *inside;
    runtime_ok(gb_op_set_attr_pointer(op, pointer, text));
    runtime_ok(gb_op_get_attr(op, pointer, &count, &values));
    cr_expect(count == 1 && *(void *const *)values == text);
    runtime_ok(gb_graph_add_op(graph, op));
    runtime_ok(gb_op_get_text(op, sizeof text, text, &length));
    cr_expect(strstr(text, "my.stage=7"), "%s", text);
    cr_expect_null(strstr(text, "my.object"), "%s", text);
    char file[600];
    snprintf(file, sizeof file, "graph engine=cpu\n%s\n", text);
    runtime_ok(gb_graph_parse_text(&again, file, strlen(file), "text"));
    runtime_ok(gb_graph_get_op(again, 0, &inside));
    lent = inside;
    runtime_ok(gb_op_get_attr(lent, stage, &count, &values));
    cr_assert_eq(count, 1);
    cr_expect_eq(*(const int64_t *)values, 7);
    runtime_ok(gb_graph_get_op(graph, 0, &inside)); /* the graph's copy has the pointer */
    runtime_ok(gb_op_get_attr(inside, pointer, &count, &values));
    cr_expect(count == 1 && *(void *const *)values == text);
    gb_op_destroy(op);
    gb_graph_destroy(graph);
    gb_graph_destroy(again);
}

Test(graph_ends, attributes_of_graphs_are_written_and_read)
{
    gb_op_attr step, title, sizes, note, found[8];
    gb_graph *graph = new_graph();
    const int64_t numbers[] = {3, -4, 5};
    const float half = 0.5F;
    runtime_ok(gb_op_attr_define("graph.step", GB_ATTR_TYPE_F32, &step));
    runtime_ok(gb_op_attr_define("title", GB_ATTR_TYPE_STRING, &title));
    runtime_ok(gb_op_attr_define("graph.sizes", GB_ATTR_TYPE_S64S, &sizes));
    runtime_ok(gb_op_attr_define("temp.note", GB_ATTR_TYPE_S64, &note));
    add_ops(graph, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_set_attr_f32(graph, step, 1, &half));
    runtime_ok(gb_graph_set_attr_s64(graph, note, 1, numbers));
    runtime_ok(gb_graph_set_attr_str(graph, title, "a \"graph\"", 9));
    runtime_ok(gb_graph_set_attr_s64(graph, sizes, 3, numbers));
    char path[] = "/tmp/test_graph_ends_XXXXXX";
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    for (int json = 0; json < 2; json++) {
        gb_graph *again;
        const void *values;
        size_t count;
        uint8_t equal;
        runtime_ok(json ? gb_graph_save_json(graph, path) : gb_graph_save_text(graph, path));
        runtime_ok(gb_graph_load(&again, path, NULL, NULL));
        runtime_ok(gb_graph_get_attrs(again, 8, found, &count));
        cr_expect(count == 3 && found[0] == step && found[1] == title && found[2] == sizes);
        runtime_ok(gb_graph_get_attr(again, step, &count, &values));
        cr_expect(count == 1 && *(const float *)values == half);
        runtime_ok(gb_graph_get_attr(again, title, &count, &values));
        cr_expect(count == 9 && memcmp(values, "a \"graph\"", 9) == 0);
        runtime_ok(gb_graph_get_attr(again, sizes, &count, &values));
        cr_expect(count == 3 && memcmp(values, numbers, sizeof numbers) == 0);
        runtime_ok(gb_graph_is_equal(graph, again, &equal));
        cr_expect(equal);
        gb_graph_destroy(again);
    }
    remove(path);
    gb_graph_destroy(graph);
}

static void count_notes(void *context, const char *message)
{
    *(int *)context += strstr(message, "graph.unknown") != NULL;
}

/* In JSON what nobody has defined is skipped with a note, as other keys are; the text form, which
 * has no notes, refuses it, as it does for ops. */
Test(graph_ends, unknown_attributes_of_graphs)
{
    static const char ops[] = "\n0: %1:f32:4 = ReLU(%0:f32:4)\n";
    static const char *const texts[] = {
            "graph attr:graph.unknown=3", "graph attr:axis=3", "graph attr:temp.note=3"};
    static const char json[] =
            "{\"attrs\": {\"graph.unknown\": {\"type\": \"s64\", \"value\": 3}}, \"graph\": [{"
            "\"id\": 0, \"kind\": \"ReLU\", \"inputs\": [{\"id\": 0, \"dtype\": \"f32\", "
            "\"shape\": [4], \"stride\": [1], \"layout_type\": \"strided\", "
            "\"property_type\": \"undef\"}], \"outputs\": [{\"id\": 1, \"dtype\": \"f32\", "
            "\"shape\": [4], \"stride\": [1], \"layout_type\": \"strided\", "
            "\"property_type\": \"undef\"}]}]}";
    gb_graph *graph;
    gb_op_attr note;
    int notes = 0;
    runtime_ok(gb_op_attr_define("temp.note", GB_ATTR_TYPE_S64, &note));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s%s", texts[i], ops);
        cr_expect_eq(gb_graph_parse_text(&graph, text, strlen(text), "t"), GB_INVALID_GRAPH);
        cr_expect(strstr(gb_last_error(), "t:1:12: unknown attribute"), "%s", gb_last_error());
    }
    runtime_ok(gb_graph_parse_json(&graph, json, strlen(json), "j", count_notes, &notes));
    cr_expect_eq(notes, 1);
    gb_graph_destroy(graph);
}

Test(graph_ends, graphs_have_attributes)
{
    gb_graph *graph = new_graph();
    gb_op_attr scale, title, attrs[4];
    const float two = 2;
    const void *values;
    size_t count = 9;
    runtime_ok(gb_op_attr_define("scale", GB_ATTR_TYPE_F32, &scale));
    runtime_ok(gb_op_attr_define("title", GB_ATTR_TYPE_STRING, &title));
    runtime_ok(gb_graph_get_attr(graph, scale, &count, &values));
    cr_expect(!values && count == 0);
    runtime_ok(gb_graph_set_attr_f32(graph, scale, 1, &two));
    runtime_ok(gb_graph_set_attr_str(graph, title, "a graph", 7));
    add_ops(graph, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_remove_op(graph, 6)); /* an edit keeps them */
    runtime_ok(gb_graph_get_attr(graph, scale, &count, &values));
    cr_assert_eq(count, 1);
    cr_expect_eq(*(const float *)values, 2);
    runtime_ok(gb_graph_get_attrs(graph, 4, attrs, &count));
    cr_expect(count == 2 && attrs[0] == scale && attrs[1] == title);
    gb_graph_destroy(graph);
}
