/* Graphs in: what a well-formed text gives, and that no text does harm. */
#include "graphbench_bridge.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define META(dtype, size)                                                                          \
    "{\"dtype\": " dtype ", \"sizes\": [" size "], \"strides\": [{\"as_int\": 1}], "               \
    "\"device\": {\"type\": \"cpu\", \"index\": null}, \"layout\": 7}"
#define GRAPH(values, nodes, outputs)                                                              \
    "{\"graph_module\": {\"graph\": {\"inputs\": [{\"as_tensor\": {\"name\": \"x\"}}], "           \
    "\"outputs\": [" outputs "], \"nodes\": [" nodes "], \"tensor_values\": {" values "}, "        \
    "\"sym_int_values\": {\"s\": {\"as_expr\": {\"expr_str\": \"s0\", \"hint\": "                  \
    "{\"as_int\": 4}}}}}, \"signature\": {\"input_specs\": [{\"user_input\": {\"arg\": "           \
    "{\"as_tensor\": {\"name\": \"x\"}}}}], \"output_specs\": []}}}"
#define X     "\"x\": " META("7", "{\"as_int\": 4}")
#define Y     "\"y\": " META("7", "{\"as_int\": 4}")
#define OUT_Y "{\"as_tensor\": {\"name\": \"y\"}}"
#define RELU                                                                                       \
    "{\"target\": \"torch.ops.aten.relu.default\", \"inputs\": [{\"name\": \"self\", \"arg\": "    \
    "{\"as_tensor\": {\"name\": \"x\"}}}], \"outputs\": [" OUT_Y "], \"metadata\": {}}"

static const char good[] = GRAPH(X ", " Y, RELU, OUT_Y);

static gb_status read_text(const char *text, size_t length)
{
    gb_bridge_graph *graph = NULL;
    gb_status status = gb_bridge_graph_create_from_json(&graph, text, length);
    cr_assert((status == GB_SUCCESS) == (graph != NULL));
    if (status != GB_SUCCESS)
        cr_assert(strlen(gb_bridge_last_error()) > 0);
    gb_bridge_graph_destroy(graph);
    return status;
}

static void expect_fault(const char *text, const char *message)
{
    cr_assert_eq(read_text(text, strlen(text)), GB_INVALID_GRAPH, "%s", text);
    cr_assert(
            strstr(gb_bridge_last_error(), message), "%s, not %s", gb_bridge_last_error(), message);
}

Test(bridge_read, names_and_order)
{
    gb_bridge_graph *graph;
    gb_bridge_module *module;
    cr_assert_eq(gb_bridge_graph_create_from_json(&graph, good, strlen(good)), GB_SUCCESS, "%s",
            gb_bridge_last_error());
    cr_assert_eq(gb_bridge_module_create(&module, graph, NULL), GB_SUCCESS);
    gb_bridge_graph_destroy(graph);
    const char *text = gb_bridge_module_describe(module);
    cr_assert(strstr(text, "\"node\": \"y\""));
    cr_assert(strstr(text, "\"target\": \"torch.ops.aten.relu.default\""));
    gb_bridge_module_destroy(module);
}

Test(bridge_read, unknown_dtypes_keep_nodes_outside)
{
    static const char *const codes[] = {"0", "28", "34", "77", "-1"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        char text[4096];
        gb_bridge_graph *graph;
        gb_bridge_module *module;
        snprintf(text, sizeof text, GRAPH(X ", \"y\": " META("%s", "{\"as_int\": 4}"), RELU, OUT_Y),
                codes[i]);
        cr_assert_eq(gb_bridge_graph_create_from_json(&graph, text, strlen(text)), GB_SUCCESS, "%s",
                gb_bridge_last_error());
        cr_assert_eq(gb_bridge_module_create(&module, graph, NULL), GB_SUCCESS, "%s",
                gb_bridge_last_error());
        gb_bridge_graph_destroy(graph);
        cr_assert(strstr(gb_bridge_module_describe(module), "\"reason\": \"data type "));
        gb_bridge_module_destroy(module);
    }
}

Test(bridge_read, every_prefix_is_refused)
{
    size_t length = strlen(good);
    for (size_t end = 0; end < length; end++) {
        char *part = malloc(end + 1); /* so that a sanitizer sees reads behind the end */
        memcpy(part, good, end);
        cr_assert_eq(read_text(part, end), GB_INVALID_GRAPH, "%zu", end);
        free(part);
    }
}

/* One byte changed, everywhere: read or refused, but nothing else. */
Test(bridge_read, changed_bytes_do_no_harm)
{
    static const char others[] = "\"{}[]:,9-n\\ ";
    size_t length = strlen(good), refused = 0;
    char *copy = malloc(length);
    for (size_t at = 0; at < length; at++)
        for (const char *c = others; *c; c++) {
            memcpy(copy, good, length);
            copy[at] = *c;
            refused += read_text(copy, length) != GB_SUCCESS;
        }
    free(copy);
    cr_assert(refused > length);
}

Test(bridge_read, faults_are_named)
{
    expect_fault("[]", "not an object");
    expect_fault("{}", "no \"graph\"");
    expect_fault("{\"graph\": 3}", "\"graph\" is not of type object");
    expect_fault(GRAPH(X, RELU, ""), "\"y\" is not described");
    expect_fault(GRAPH(X ", " Y, RELU ", " RELU, ""), "\"y\", which is there already");
    expect_fault(GRAPH(X ", " Y, "", OUT_Y), "reads \"y\" before it is made");
    expect_fault(
            GRAPH(X ", \"y\": " META("7", "{\"as_int\": -4}"), RELU, ""), "size 0 is negative");
    expect_fault(GRAPH(X ", \"y\": " META("7", "{\"as_int\": 4611686018427387904}"), RELU, ""),
            "no memory can hold");
    expect_fault(GRAPH(X ", \"y\": " META("7", "{\"as_int\": 1}, {\"as_int\": 1}"), RELU, ""),
            "as many strides as sizes");
    expect_fault(GRAPH(X ", \"y\": " META("7", "{\"as_real\": 1}"), RELU, ""), "neither as_int");
    expect_fault(GRAPH(X ", \"y\": " META("\"f32\"", "{\"as_int\": 4}"), RELU, ""),
            "\"dtype\" is not of type int");
    expect_fault(GRAPH(X ", " Y,
                         "{\"target\": \"torch.ops.aten.relu.default\", \"inputs\": [{\"name\": "
                         "\"self\", \"arg\": {\"as_tensor\": {\"name\": \"y\"}}}], \"outputs\": "
                         "[" OUT_Y "]}",
                         ""),
            "reads \"y\" before it is made");
    expect_fault(GRAPH(X ", " Y, "{\"target\": 3, \"inputs\": [], \"outputs\": []}", ""), "node 0");
}

Test(bridge_read, deep_nesting_is_refused)
{
    enum { DEPTH = 100000 };
    char *text = malloc(DEPTH);
    memset(text, '[', DEPTH);
    cr_assert_eq(read_text(text, DEPTH), GB_INVALID_GRAPH);
    free(text);
}

Test(bridge_read, no_archive)
{
    gb_bridge_graph *graph = NULL;
    cr_assert_neq(gb_bridge_graph_create_from_pt2(&graph, "/nonexistent.pt2"), GB_SUCCESS);
    cr_assert_null(graph);
    cr_assert(strstr(gb_bridge_last_error(), "/nonexistent.pt2"));
}

Test(bridge_read, null_arguments)
{
    gb_bridge_graph *graph = NULL;
    gb_bridge_options options = {0};
    gb_bridge_module *module;
    cr_assert_eq(gb_bridge_graph_create_from_json(NULL, good, 1), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_bridge_graph_create_from_json(&graph, NULL, 0), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_bridge_graph_create_from_pt2(&graph, NULL), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_bridge_graph_create_from_json(&graph, good, strlen(good)), GB_SUCCESS);
    cr_assert_eq(gb_bridge_module_create(&module, graph, &options), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_bridge_module_create(NULL, graph, NULL), GB_INVALID_ARGUMENTS);
    gb_bridge_graph_destroy(graph);
}
