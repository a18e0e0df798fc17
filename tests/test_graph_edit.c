/* Edits, ops made by name, visits, markers and work of small graphs: results and refusals. */
#include "graph/ir/graph.h"

#include <criterion/criterion.h>
#include <graphbench/graphbench_tools.h>
#include <stdio.h>
#include <string.h>

/* x -> Exp -> (1) -> MatMul by w -> (2) -> ReLU -> (3) -> End */
static const char chain[] = "graph engine=cpu\n"
                            "10: %1:f32:2x3 = Exp(%0:f32:2x3)\n"
                            "11: %2:f32:2x4 = MatMul(%1, %9:f32:3x4:constant)\n"
                            "12: %3:f32:2x4 = ReLU(%2)\n"
                            "13: End(%3)\n";

static gb_graph *graph;

static void open_graph(void)
{
    cr_assert_eq(gb_graph_parse_text(&graph, chain, strlen(chain), "chain"), GB_SUCCESS, "%s",
            gb_last_error());
}

static void close_graph(void)
{
    gb_graph_destroy(graph);
}

TestSuite(graph_edit, .init = open_graph, .fini = close_graph);

static gb_op *make(const char *kind, size_t n, const size_t *inputs)
{
    gb_op *op;
    cr_assert_eq(gb_graph_make_op(&op, graph, kind, n, inputs, 1, NULL), GB_SUCCESS, "%s",
            gb_last_error());
    return op;
}

/* Kinds in the order of the graph. */
static void expect_ops(const char *expected)
{
    char text[256] = "";
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        strcat(text, i ? " " : "");
        strcat(text, gb_op_kind_name(graph->ops[i]->kind));
    }
    cr_expect_str_eq(text, expected, "%s, expected %s", text, expected);
    cr_expect_eq(gb_graph_check_structure(graph, true), GB_SUCCESS, "%s", gb_last_error());
}

Test(graph_edit, an_op_in_front_of_one_reader)
{
    gb_op *op = make("Sigmoid", 1, (const size_t[]){2});
    const gb_op *relu;
    cr_assert_eq(gb_graph_find_op(graph, 12, &relu), GB_SUCCESS);
    cr_expect_eq(gb_op_output(op, 0)->data_type, GB_F32);
    cr_assert_eq(gb_graph_insert_op(graph, 2, 12, op), GB_SUCCESS, "%s", gb_last_error());
    expect_ops("Exp MatMul Sigmoid ReLU End");
    cr_expect_eq(gb_op_input(relu, 0)->id, gb_op_output(op, 0)->id);
    gb_op_destroy(op);
}

/* What the graph knew of a tensor is not lost when the new op says less. */
Test(graph_edit, an_op_in_the_place_of_another)
{
    gb_op *op;
    gb_logical_tensor in, out;
    gb_logical_tensor_init(&in, 2, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_STRIDED, 0);
    gb_logical_tensor_init(&out, 3, GB_F32, GB_UNKNOWN_NDIMS, GB_LAYOUT_STRIDED, 0);
    cr_assert_eq(gb_op_create(&op, 12, GB_OP_TANH, ""), GB_SUCCESS);
    gb_op_add_input(op, &in);
    gb_op_add_output(op, &out);
    cr_assert_eq(gb_graph_replace_op(graph, 12, op), GB_SUCCESS, "%s", gb_last_error());
    expect_ops("Exp MatMul Tanh End");
    cr_assert_eq(gb_graph_find_tensor(graph, 3, &out), GB_SUCCESS);
    cr_expect_eq(out.ndims, 2);
    gb_op_destroy(op);
}

Test(graph_edit, what_a_removed_op_made_becomes_an_input)
{
    gb_logical_tensor inputs[4];
    size_t count;
    cr_assert_eq(gb_graph_remove_op(graph, 11), GB_SUCCESS);
    expect_ops("Exp ReLU End");
    cr_assert_eq(gb_graph_get_inputs(graph, 0, NULL, &count), GB_SUCCESS);
    cr_assert_eq(count, 2);
    cr_assert_eq(gb_graph_get_inputs(graph, count, inputs, NULL), GB_SUCCESS);
    cr_expect_eq(inputs[0].id, 0);
    cr_expect_eq(inputs[1].id, 2);
    cr_assert_eq(gb_graph_get_outputs(graph, count, inputs, NULL), GB_SUCCESS);
    cr_assert_eq(count, 2);
    cr_expect_eq(inputs[0].id, 1, "nobody reads it");
    cr_expect_eq(inputs[1].id, 3, "an End reads it");
    cr_expect_eq(gb_graph_get_inputs(NULL, 0, NULL, &count), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_get_outputs(graph, 0, NULL, NULL), GB_INVALID_ARGUMENTS);
}

/* Each refusal leaves the graph as it is. */
Test(graph_edit, refusals)
{
    gb_op *op = make("Add", 2, (const size_t[]){3, 3}), *sigmoid;
    const gb_op *known;
    cr_expect_eq(gb_graph_insert_op(graph, 3, GB_NO_ID, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_insert_op(graph, 77, GB_NO_ID, op), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_insert_op(graph, 3, 12, op), GB_INVALID_ARGUMENTS, "12 makes tensor 3");
    cr_expect_eq(gb_graph_insert_op(graph, 2, 12, op), GB_INVALID_ARGUMENTS, "reads 3, not 2");
    cr_expect_eq(gb_graph_replace_op(graph, 11, op), GB_INVALID_GRAPH, "does not make tensor 2");
    cr_expect_not_null(strstr(gb_last_error(), "tensor 2, which op 12 (ReLU) reads"));
    cr_expect_eq(gb_graph_replace_op(graph, 11, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_replace_op(graph, 99, op), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_remove_op(graph, 99), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_remove_op(NULL, 0), GB_INVALID_ARGUMENTS);
    gb_op_destroy(op);

    op = make("Add", 2, (const size_t[]){1, 3});
    cr_expect_eq(gb_graph_insert_op(graph, 1, 11, op), GB_INVALID_GRAPH, "a cycle");
    cr_expect_not_null(strstr(gb_last_error(), "cycle"), "%s", gb_last_error());
    op->id = 10;
    cr_expect_eq(gb_graph_insert_op(graph, 1, 11, op), GB_INVALID_GRAPH_OP, "an id taken");
    gb_op_destroy(op);

    cr_assert_eq(gb_graph_find_op(graph, 10, &known), GB_SUCCESS);
    sigmoid = make("Sigmoid", 1, (const size_t[]){1});
    cr_expect_eq(gb_op_set_attr_f32(sigmoid, GB_ATTR_ALPHA, 1, &(float){1}), GB_SUCCESS);
    cr_expect_eq(gb_graph_insert_op(graph, 1, GB_NO_ID, sigmoid), GB_INVALID_GRAPH_OP);
    gb_op_remove_attr(sigmoid, GB_ATTR_ALPHA);
    expect_ops("Exp MatMul ReLU End");
    cr_expect_eq(graph->ops[0], known);

    cr_assert_eq(gb_graph_finalize(graph), GB_SUCCESS);
    cr_expect_eq(gb_graph_insert_op(graph, 1, GB_NO_ID, sigmoid), GB_INVALID_GRAPH);
    cr_expect_eq(gb_graph_remove_op(graph, 10), GB_INVALID_GRAPH);
    gb_op_destroy(sigmoid);
}

Test(graph_edit, types_of_ops_made_by_name)
{
    gb_op *op;
    const size_t x[] = {1, 2, 99};
    cr_expect_eq(gb_graph_make_op(&op, graph, "Matmul", 1, x, 1, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_make_op(&op, graph, "Add", 3, x, 1, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_make_op(&op, graph, "Quantize", 1, x, 1, NULL), GB_INVALID_ARGUMENTS,
            "several types fit");
    cr_expect_eq(gb_graph_make_op(&op, NULL, "Add", 1, x, 1, NULL), GB_INVALID_ARGUMENTS);
    cr_assert_eq(
            gb_graph_make_op(&op, graph, "Quantize", 1, x, 1, (gb_data_type[]){GB_S8}), GB_SUCCESS);
    cr_expect_eq(gb_op_output(op, 0)->data_type, GB_S8);
    gb_op_destroy(op);
    op = make("GreaterEqual", 2, x);
    cr_expect_eq(gb_op_output(op, 0)->data_type, GB_BOOLEAN);
    cr_expect_eq(gb_graph_find_value(graph, gb_op_output(op, 0)->id), GB_NONE);
    cr_assert_eq(gb_graph_add_op(graph, op), GB_SUCCESS, "%s", gb_last_error());
    gb_op_destroy(op);
}

typedef struct trail {
    char text[64];
    gb_status last;
} trail;

static gb_status follow(void *context, const gb_op *op)
{
    trail *t = context;
    strncat(t->text, gb_op_kind_name(op->kind), 3);
    return strlen(t->text) < 9 ? GB_SUCCESS : t->last;
}

Test(graph_edit, a_visit_can_be_ended)
{
    trail up = {"", GB_SUCCESS}, ended = {"", GB_NOT_REQUIRED};
    cr_expect_eq(gb_graph_visit(graph, GB_VISIT_REVERSE, follow, &up), GB_SUCCESS);
    cr_expect_str_eq(up.text, "EndReLMatExp");
    cr_expect_eq(gb_graph_visit(graph, GB_VISIT_DEPTH_FIRST, follow, &ended), GB_NOT_REQUIRED);
    cr_expect_str_eq(ended.text, "ExpMatReL");
    cr_expect_eq(gb_graph_visit(graph, 3, follow, &up), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_visit(graph, GB_VISIT_REVERSE, NULL, &up), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_visit(NULL, GB_VISIT_REVERSE, follow, &up), GB_INVALID_ARGUMENTS);
}

Test(graph_edit, work_of_ops_adds_up)
{
    double flops, bytes, sums[2] = {0, 0};
    const double expected[][2] = {{6, 48}, {48, 104}, {8, 64}, {0, 0}};
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(gb_op_get_work(graph->ops[i], &flops, &bytes), GB_SUCCESS);
        cr_expect_eq(flops, expected[i][0], "%g", flops);
        cr_expect_eq(bytes, expected[i][1], "%g", bytes);
        sums[0] += flops;
        sums[1] += bytes;
    }
    cr_assert_eq(gb_graph_get_work(graph, &flops, &bytes), GB_SUCCESS);
    cr_expect_eq(flops, sums[0]);
    cr_expect_eq(bytes, sums[1]);
    gb_logical_tensor open;
    gb_logical_tensor_init(&open, 2, GB_F32, 2, GB_LAYOUT_STRIDED, 0);
    cr_assert_eq(gb_graph_set_tensor(graph, &open), GB_SUCCESS);
    cr_expect_eq(gb_graph_get_work(graph, &flops, &bytes), GB_INVALID_SHAPE);
    cr_expect_eq(gb_graph_get_work(NULL, &flops, &bytes), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_get_work(NULL, &flops, &bytes), GB_INVALID_ARGUMENTS);
}

/* Operations of the first op of a graph. */
static double flops_of(const char *line)
{
    char text[512];
    gb_graph *one;
    double flops, bytes;
    snprintf(text, sizeof text, "graph\n0: %s", line);
    cr_assert_eq(
            gb_graph_parse_text(&one, text, strlen(text), line), GB_SUCCESS, "%s", gb_last_error());
    cr_assert_eq(gb_graph_get_work(one, &flops, &bytes), GB_SUCCESS, "%s", gb_last_error());
    gb_graph_destroy(one);
    return flops;
}

/* No axis of a scalar is looked for: shapes need not have been checked. */
Test(graph_edit, no_work_of_products_of_scalars)
{
    const char *const lines[] = {"%2:f32:scalar = MatMul(%0:f32:scalar, %1:f32:5)",
            "%2:f32:5 = MatMul(%0:f32:scalar, %1:f32:5) transpose_a=true",
            "%2:f32:scalar = Convolution(%0:f32:scalar, %1:f32:2x3x3) strides=[1] pads_begin=[0] "
            "pads_end=[0] dilations=[1] data_format=\"NXC\"",
            "%2:f32:scalar = ConvolutionBackwardData(%0:f32:scalar, %1:f32:2x3x3) strides=[1] "
            "pads_begin=[0] pads_end=[0] dilations=[1]",
            "%2:f32:scalar = ConvolutionBackwardWeights(%0:f32:2x3x3, %1:f32:scalar) strides=[1] "
            "pads_begin=[0] pads_end=[0] dilations=[1]"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[512];
        gb_graph *one;
        double flops, bytes;
        snprintf(text, sizeof text, "graph\n0: %s", lines[i]);
        cr_assert_eq(gb_graph_parse_text(&one, text, strlen(text), lines[i]), GB_SUCCESS, "%s",
                gb_last_error());
        cr_expect_eq(gb_graph_get_work(one, &flops, &bytes), GB_INVALID_SHAPE, "%s", lines[i]);
        gb_graph_destroy(one);
    }
}

#define WINDOW      " strides=[2, 1] pads_begin=[1, 0] pads_end=[1, 0]"
#define CONVOLUTION WINDOW " dilations=[1, 1] groups=2 data_format=\"NCX\" weights_format="

/* src 2x4x9x5, weights of 3x2 for 2 x 6 channels in 2 groups, dst 2x6x5x4: one convolution, its
 * gradients, and the transposed one that goes the other way. */
Test(graph_edit, work_of_convolutions)
{
    const char *const lines[] = {
            "%3:f32:2x6x5x4 = Convolution(%0:f32:2x4x9x5, %1:f32:6x2x3x2)" CONVOLUTION "\"OIX\"",
            "%3:f32:2x4x9x5 = ConvolutionBackwardData(%0:f32:2x6x5x4, %1:f32:6x2x3x2)" CONVOLUTION
            "\"OIX\"",
            "%3:f32:3x2x2x6 = ConvolutionBackwardWeights(%0:f32:2x4x9x5, "
            "%1:f32:2x6x5x4)" CONVOLUTION "\"XIO\"",
            "%3:f32:2x4x9x5 = ConvTranspose(%0:f32:2x6x5x4, %1:f32:3x2x2x6)" CONVOLUTION "\"XOI\"",
            "%3:f32:2x6x5x4 = ConvTransposeBackwardData(%0:f32:2x4x9x5, %1:f32:6x2x3x2)" CONVOLUTION
            "\"IOX\"",
            "%3:f32:6x2x3x2 = ConvTransposeBackwardWeights(%0:f32:2x6x5x4, "
            "%1:f32:2x4x9x5)" CONVOLUTION "\"IOX\"",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect_eq(flops_of(lines[i]), 2.0 * (2 * 6 * 5 * 4) * (2 * 3 * 2), "%s", lines[i]);
}

Test(graph_edit, work_of_other_ops)
{
    const struct {
        const char *line;
        double flops;
    } cases[] = {
            {"%2:f32:7x2x5 = MatMul(%0:f32:7x2x3, %1:f32:3x5)", 2 * 7 * 2 * 5 * 3},
            {"%2:f32:2x5 = MatMul(%0:f32:3x2, %1:f32:5x3) transpose_a=true transpose_b=true",
                    2 * 2 * 5 * 3},
            {"%2:f32:5 = MatMul(%0:f32:3, %1:f32:3x5) transpose_a=true", 2 * 5 * 3},
            {"%2:f32:0x5 = MatMul(%0:f32:0x3, %1:f32:3x5)", 0},
            {"%1:f32:1x5x4x2 = MaxPool(%0:f32:1x9x5x2)" WINDOW " kernel=[3, 2]", 5 * 4 * 2 * 6},
            {"%2:f32:1x9x5x2 = MaxPoolBackward(%0:f32:1x9x5x2, %1:f32:1x5x4x2)" WINDOW
             " kernel=[3, 2]",
                    5 * 4 * 2 * 6},
            {"%1:f32:1x9x5x2 = AvgPoolBackward(%0:f32:1x5x4x2)" WINDOW
             " kernel=[3, 2] exclude_pad=true src_shape=[1, 9, 5, 2]",
                    5 * 4 * 2 * 6},
            {"%1:f32:3x4 = SoftMax(%0:f32:3x4)", 5 * 12},
            {"%1:f32:3 = ReduceSum(%0:f32:3x4) axes=[1]", 12},
            {"%1:f32:4x3 = StaticTranspose(%0:f32:3x4) order=[1, 0]", 0},
            {"%1:f32:1x4x6x2 = Interpolate(%0:f32:1x2x3x2) mode=\"bilinear\" sizes=[4, 6]",
                    2 * 4 * 48},
            {"%1:f32:1x4x6x2 = Interpolate(%0:f32:1x2x3x2) mode=\"nearest\" sizes=[4, 6]", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(flops_of(cases[i].line), cases[i].flops, "%s: %g", cases[i].line,
                flops_of(cases[i].line));
}

Test(graph_edit, scratch_attributes)
{
    gb_op_attr attr, again;
    const void *values;
    size_t count;
    gb_op *clone;
    cr_expect_eq(gb_op_attr_define("9note", GB_ATTR_TYPE_S64, &attr), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_attr_define("a note", GB_ATTR_TYPE_S64, &attr), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_attr_define("", GB_ATTR_TYPE_S64, &attr), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_attr_define("alpha", GB_ATTR_TYPE_F32, &attr), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_attr_define(NULL, GB_ATTR_TYPE_S64, &attr), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_op_attr_define("temp.a", GB_ATTR_TYPE_NONE, &attr), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_op_attr_define("temp.text", GB_ATTR_TYPE_STRING, &attr), GB_SUCCESS);
    cr_assert_eq(gb_op_attr_define("temp.text", GB_ATTR_TYPE_STRING, &again), GB_SUCCESS);
    cr_expect_eq(attr, again);
    cr_expect_eq(gb_op_attr_define("temp.text", GB_ATTR_TYPE_F32, &again), GB_INVALID_ARGUMENTS);
    cr_expect_str_eq(gb_op_attr_name(attr), "temp.text");
    cr_expect_eq(gb_op_attr_parse("temp.text", &again), GB_SUCCESS);
    cr_expect_eq(gb_op_attr_type(attr), GB_ATTR_TYPE_STRING);
    cr_expect_str_eq(gb_op_attr_name((gb_op_attr)(GB_ATTR_DEFINED_END)), "undef");

    cr_assert_eq(gb_op_set_attr_str(graph->ops[0], attr, "kept", 4), GB_SUCCESS);
    cr_assert_eq(gb_op_clone(graph->ops[0], &clone), GB_SUCCESS);
    cr_assert_eq(gb_op_get_attr(clone, attr, &count, &values), GB_SUCCESS);
    cr_expect_eq(count, 4);
    gb_op_destroy(clone);
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "temp.%d", i);
        gb_status status = gb_op_attr_define(name, GB_ATTR_TYPE_BOOL, &attr);
        cr_assert_eq(status, i < 255 ? GB_SUCCESS : GB_OUT_OF_MEMORY, "%d", i);
    }
}
