/* The text form of graphs: what it looks like, what else is read, and what is told of faults. */
#include "graph/ir/content.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "graph engine=cpu fpmath=strict\n"
#define MATMUL "0: %2:f32:2x4 = MatMul(%0:f32:2x3, %1:f32:3x4)\n"

static gb_graph *parse(const char *text)
{
    gb_graph *graph = NULL;
    gb_status status = gb_graph_parse_text(&graph, text, strlen(text), "g.gbt");
    cr_assert_eq(status, GB_SUCCESS, "%s", gb_last_error());
    return graph;
}

static void expect_tensor(const gb_graph *graph, size_t id, const gb_logical_tensor *expected)
{
    gb_logical_tensor tensor;
    cr_assert_eq(gb_graph_find_tensor(graph, id, &tensor), GB_SUCCESS);
    cr_expect(gb_tensor_same(&tensor, expected), "tensor %zu", id);
}

Test(graph_text, an_op_to_a_line)
{
    gb_graph *graph = parse("# a layer\n"
                            "\n"
                            "graph engine=cpu fpmath=bf16 apply_to_int=true version=\"3.14.0\"\n"
                            "7 \"the \\\"first\\\"\": %5:f32:2x4 = MatMul(%3:f32:2x3:variable, "
                            "%4:f32:3x4*1x3:constant) transpose_b=false # comment\r\n"
                            "  8 : %6:f32:2x4=Clamp( %5 )min=-inf  max=6.5\n"
                            "9: End(%6)");
    const gb_op *op;
    cr_expect_eq(graph->engine_kind, GB_ENGINE_CPU);
    cr_expect_eq(graph->fpmath_mode, GB_FPMATH_BF16);
    cr_expect(graph->fpmath_apply_to_int);
    cr_expect_str_eq(graph->version, "3.14.0");
    cr_expect_eq(graph->n_ops, 3);
    cr_assert_eq(gb_graph_find_op(graph, 7, &op), GB_SUCCESS);
    cr_expect_str_eq(op->name, "the \"first\"");
    cr_assert_eq(gb_graph_find_op(graph, 8, &op), GB_SUCCESS);
    cr_expect_str_eq(op->name, "Clamp_8");
    cr_expect_eq(gb_op_attr_f32(op, GB_ATTR_MIN, 0), -INFINITY);
    cr_expect_eq(gb_op_attr_f32(op, GB_ATTR_MAX, 0), 6.5F);
    expect_tensor(graph, 4,
            &(gb_logical_tensor){.ndims = 2,
                    .dims = {3, 4},
                    .data_type = GB_F32,
                    .property = GB_PROPERTY_CONSTANT,
                    .layout_type = GB_LAYOUT_STRIDED,
                    .strides = {1, 3}});
    gb_graph_destroy(graph);
}

Test(graph_text, tensors_in_all_states)
{
    gb_graph *graph = parse(HEADER "0: %9:f32:... = Wildcard(%0:u8:scalar, %1:bf16:?, "
                                   "%2:f32:2x-1x4:layout=any:variable, %3:s8:0x3*-1x1, "
                                   "%4:s64:scalar:host_scalar, %5:f32:2:layout=opaque)\n");
    const int64_t unknown = GB_UNKNOWN_DIM;
    expect_tensor(graph, 9,
            &(gb_logical_tensor){
                    .ndims = -1, .data_type = GB_F32, .layout_type = GB_LAYOUT_STRIDED});
    expect_tensor(
            graph, 0, &(gb_logical_tensor){.data_type = GB_U8, .layout_type = GB_LAYOUT_STRIDED});
    expect_tensor(graph, 1,
            &(gb_logical_tensor){.ndims = 1,
                    .dims = {unknown},
                    .data_type = GB_BF16,
                    .layout_type = GB_LAYOUT_STRIDED,
                    .strides = {unknown}});
    expect_tensor(graph, 2,
            &(gb_logical_tensor){.ndims = 3,
                    .dims = {2, unknown, 4},
                    .data_type = GB_F32,
                    .property = GB_PROPERTY_VARIABLE,
                    .layout_type = GB_LAYOUT_ANY});
    expect_tensor(graph, 3,
            &(gb_logical_tensor){.ndims = 2,
                    .dims = {0, 3},
                    .data_type = GB_S8,
                    .layout_type = GB_LAYOUT_STRIDED,
                    .strides = {unknown, 1}});
    expect_tensor(graph, 4,
            &(gb_logical_tensor){.data_type = GB_S64,
                    .property = GB_PROPERTY_HOST_SCALAR,
                    .layout_type = GB_LAYOUT_STRIDED});
    expect_tensor(graph, 5,
            &(gb_logical_tensor){
                    .ndims = 1, .dims = {2}, .data_type = GB_F32, .layout_type = GB_LAYOUT_ANY});
    gb_graph_destroy(graph);
}

/* A reader may come before the op that makes what it reads. */
Test(graph_text, ops_in_any_order)
{
    gb_graph *graph = parse("graph\n1: %1:f32:4 = Abs(%0:f32:4)\n0: %0 = Exp(%9:f32:4)\n");
    const gb_op *op;
    cr_assert_eq(gb_graph_get_producer(graph, 0, &op), GB_SUCCESS);
    cr_expect_eq(op->kind, GB_OP_EXP);
    gb_graph_destroy(graph);
}

Test(graph_text, numbers_have_a_point_in_any_locale)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        cr_skip_test("there is no locale with a decimal comma");
    gb_graph *graph = parse("graph\n0: %1:f32:4 = Elu(%0:f32:4) alpha=0.25\n");
    cr_expect_eq(gb_op_attr_f32(graph->ops[0], GB_ATTR_ALPHA, 0), 0.25F);
    gb_graph_destroy(graph);
}

Test(graph_text, faults_are_told_with_their_place)
{
    static const struct {
        const char *text, *message;
    } faults[] = {
            {"", "g.gbt:1:1: the end of the line where the word \"graph\" is expected"},
            {"graph\n# nothing\n", "g.gbt:3:1: the graph has no ops"},
            {"graph speed=9\n", "g.gbt:1:7: \"speed=9\" where engine=, fpmath=, apply_to_int=,"},
            {"graph engine=tpu\n", "g.gbt:1:14: unknown engine kind \"tpu\""},
            {HEADER "0 %1", "g.gbt:2:3: \"%1\" where \":\" is expected"},
            {HEADER "0: %1 = Abs(%0:f32:4)", "g.gbt:2:4: tensor 1 is not described where it is"},
            {HEADER "0: %1:f23:4 = Abs(%0)", "g.gbt:2:7: unknown data type \"f23\""},
            {HEADER "0: %1:f32:4x = Abs(%0)", "g.gbt:2:14: \"=\" where a size or ? is expected"},
            {HEADER "0: %1:f32:4*1x1 = Abs(%0)", "g.gbt:2:12: 2 strides for 1 dims"},
            {HEADER "0: %1:f32:4:often = Abs(%0)", "g.gbt:2:13: unknown property \"often\""},
            {HEADER "0: %1:f32:4 = Absolute(%0)", "g.gbt:2:15: unknown op kind \"Absolute\""},
            {HEADER "0: %1:f32:4 = Abs(%0:f32:4", "op 0 (Abs): the end of the line where \")\" is"},
            {HEADER "0: %1:f32:4 = Abs(%0:f32:4) bet=1",
                    "g.gbt:2:29: op 0 (Abs): unknown attribute \"bet\""},
            {HEADER "0: %1:f32:4 = Abs(%0:f32:4) beta=1",
                    "g.gbt:2:1: op 0 (Abs) has no attribute \"beta\""},
            {HEADER "0: %1:f32:4 = Elu(%0:f32:4) alpha=1 alpha=1",
                    "g.gbt:2:37: op 0 (Elu): attribute \"alpha\" is set twice"},
            {HEADER "0: %1:f32:4 = Elu(%0:f32:4) alpha=1e99", "1e99 does not fit f32"},
            {HEADER "0: %1:f32:4 = Elu(%0:f32:4) alpha=0x1", "\"0x1\" is no number"},
            {HEADER "0: %1:f32:4 = Concat(%0:f32:4) axis=9223372036854775808", "not fit s64"},
            {HEADER "0: %1:f32:4 = Concat(%0:f32:4) axis=99999999999999999999", "not fit 64 bits"},
            {HEADER "0: %1:f32:4 = GELU(%0:f32:4) mode=\"gelu",
                    "g.gbt:2:35: op 0 (GELU): the string"},
            {HEADER "0: %1:f32:4 = GELU(%0:f32:4) mode=\"\"", "is an empty string"},
            {HEADER "0: %1:f32:1x1x1x1x1x1x1x1x1x1x1x1x1 = Abs(%0)", "more than 12 sizes"},
            {HEADER "0 \"a\\n\": %1:f32:4 = Abs(%0:f32:4)", "g.gbt:2:5: an escape other than"},
            {HEADER "0: %18446744073709551615:f32:4 = Abs(%0:f32:4)", "the id is the reserved one"},
            {HEADER MATMUL MATMUL, "g.gbt:3:1: op 0 (MatMul): the graph has an op of this id"},
            {HEADER MATMUL "1: %2 = Abs(%0)\n", "g.gbt: tensor 2 is produced twice"},
            {HEADER MATMUL "1: %3:f32:2x4 = Abs(%2:f32:2x5)\n", "is described in two ways"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        gb_graph *graph = NULL;
        const char *text = faults[i].text;
        gb_status status = gb_graph_parse_text(&graph, text, strlen(text), "g.gbt");
        cr_expect_neq(status, GB_SUCCESS, "%s", text);
        cr_expect_neq(strstr(gb_last_error(), faults[i].message), NULL, "%s\nexpected: %s",
                gb_last_error(), faults[i].message);
        cr_expect_null(graph);
    }
    cr_expect_eq(gb_graph_parse_text(NULL, "", 0, ""), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_save_text(NULL, "-"), GB_INVALID_ARGUMENTS);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

Test(graph_text, files_of_both_forms_are_told_apart)
{
    char path[] = "/tmp/graph_text_XXXXXX";
    gb_graph *from_text, *from_json;
    uint8_t equal;
    int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    write_file(path, "  # text\n\n" HEADER MATMUL);
    cr_assert_eq(gb_graph_load(&from_text, path, NULL, NULL), GB_SUCCESS, "%s", gb_last_error());
    cr_expect_neq(gb_graph_load_json(&from_json, path, NULL, NULL), GB_SUCCESS);
    cr_assert_eq(gb_graph_save_json(from_text, path), GB_SUCCESS);
    cr_assert_eq(gb_graph_load(&from_json, path, NULL, NULL), GB_SUCCESS, "%s", gb_last_error());
    cr_assert_eq(gb_graph_is_equal(from_text, from_json, &equal), GB_SUCCESS);
    cr_expect(equal);
    gb_graph_destroy(from_json);
    write_file(path, "graphs\n");
    cr_expect_neq(gb_graph_load(&from_json, path, NULL, NULL), GB_SUCCESS);
    cr_expect_eq(gb_graph_load(&from_json, "/no/such/file", NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_load(NULL, path, NULL, NULL), GB_INVALID_ARGUMENTS);
    gb_graph_destroy(from_text);
    remove(path);
}
