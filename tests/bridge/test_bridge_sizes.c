/* Sizes that are expressions of symbols: read, given other values, and refused. */
#include "bridge_case.h"

#define SYMBOL "{\"as_expr\": {\"expr_str\": \"s0\", \"hint\": {\"as_int\": 3}}}"

#define SYMPY "Symbol('s0', positive=True, integer=True)"

/* x:[s0,4] -> linear -> y:[s0,2] -> view -> z:[E] -> relu -> r:[E] */
static const char model[] =
        "{\"graph_module\": {\"graph\": {"
        "\"inputs\": [{\"as_tensor\": {\"name\": \"x\"}}, {\"as_tensor\": {\"name\": \"w\"}}],"
        "\"outputs\": [{\"as_tensor\": {\"name\": \"r\"}}],"
        "\"tensor_values\": {"
        "\"x\": {\"dtype\": 7, \"sizes\": [" SYMBOL ", {\"as_int\": 4}],"
        " \"strides\": [{\"as_int\": 4}, {\"as_int\": 1}]},"
        "\"w\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 2}, {\"as_int\": 4}],"
        " \"strides\": [{\"as_int\": 4}, {\"as_int\": 1}]},"
        "\"y\": {\"dtype\": 7, \"sizes\": [" SYMBOL ", {\"as_int\": 2}],"
        " \"strides\": [{\"as_int\": 2}, {\"as_int\": 1}]},"
        "\"z\": {\"dtype\": 7, \"sizes\": [{\"as_expr\": {\"expr_str\": \"%s\"}}],"
        " \"strides\": [{\"as_int\": 1}]},"
        "\"r\": {\"dtype\": 7, \"sizes\": [{\"as_expr\": {\"expr_str\": \"%s\"}}],"
        " \"strides\": [{\"as_int\": 1}]}},"
        "\"nodes\": ["
        "{\"target\": \"torch.ops.aten.linear.default\", \"inputs\": ["
        "{\"name\": \"input\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}},"
        "{\"name\": \"weight\", \"arg\": {\"as_tensor\": {\"name\": \"w\"}}}],"
        " \"outputs\": [{\"as_tensor\": {\"name\": \"y\"}}]},"
        "{\"target\": \"torch.ops.aten.view.default\", \"inputs\": ["
        "{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"y\"}}},"
        "{\"name\": \"size\", \"arg\": {\"as_ints\": [-1]}}],"
        " \"outputs\": [{\"as_tensor\": {\"name\": \"z\"}}]},"
        "{\"target\": \"torch.ops.aten.relu.default\", \"inputs\": ["
        "{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"z\"}}}],"
        " \"outputs\": [{\"as_tensor\": {\"name\": \"r\"}}]}]}},"
        "\"range_constraints\": {\"s0\": {\"min_val\": 2, \"max_val\": %s}}}";

static gb_bridge_graph *read_model(const char *expression, const char *max)
{
    char text[4096];
    gb_bridge_graph *graph = NULL;
    snprintf(text, sizeof text, model, expression, expression, max);
    cr_assert_eq(gb_bridge_graph_create_from_json(&graph, text, strlen(text)), GB_SUCCESS, "%s",
            gb_bridge_last_error());
    return graph;
}

/* What a file can lengthen: many symbols, and an expression without an end. */
Test(bridge_sizes, as_many_symbols_as_a_file_names)
{
    enum { VALUES = 60000, LONG = 300000 };
    char *text = malloc((size_t)VALUES * 200 + LONG * 10 + 1000), *at = text;
    at += sprintf(at,
            "{\"graph_module\": {\"graph\": {\"inputs\": [], \"outputs\": [], \"nodes\": [],"
            "\"tensor_values\": {\"long\": {\"dtype\": 7, \"strides\": [{\"as_int\": 1}],"
            "\"sizes\": [{\"as_expr\": {\"expr_str\": \"");
    for (int i = 0; i < LONG; i++)
        at += sprintf(at, "Symbol('a");
    at += sprintf(at, "\"}}]}");
    for (int i = 0; i < VALUES; i++)
        at += sprintf(at,
                ",\"v%d\": {\"dtype\": 7, \"strides\": [{\"as_int\": 1}],"
                "\"sizes\": [{\"as_expr\": {\"expr_str\": \"s%d\"}}]}",
                i, i);
    at += sprintf(at, "}}}, \"range_constraints\": {");
    for (int i = 0; i < VALUES; i++)
        at += sprintf(at, "%s\"s%d\": {\"min_val\": 2}", i ? "," : "", i);
    at += sprintf(at, "}}");
    gb_bridge_graph *graph = NULL;
    cr_assert_eq(gb_bridge_graph_create_from_json(&graph, text, (size_t)(at - text)), GB_SUCCESS,
            "%s", gb_bridge_last_error());
    cr_assert_eq(gb_bridge_graph_get_size_num(graph), VALUES);
    gb_bridge_size size;
    cr_assert_eq(gb_bridge_graph_get_size(graph, VALUES - 1, &size), GB_SUCCESS);
    cr_assert_eq(size.min, 2);
    gb_bridge_graph_destroy(graph);
    free(text);
}

static gb_status set(gb_bridge_graph *graph, const char *name, int64_t value)
{
    const gb_bridge_size size = {.name = name, .value = value};
    return gb_bridge_graph_set_sizes(graph, 1, &size);
}

static const gb_bridge_options options = {.size = sizeof options, .policy = GB_POLICY_MAX};

static bool is_whole(const gb_bridge_graph *graph)
{
    gb_bridge_module *module;
    cr_assert_eq(gb_bridge_module_create(&module, graph, &options), GB_SUCCESS);
    bool whole = strstr(gb_bridge_module_describe(module), "\"outside\": []") != NULL;
    gb_bridge_module_destroy(module);
    return whole;
}

/* The view fits only where the expression has the value that it should: twice the batch. */
static void expect_twice(const char *expression, int64_t batch, bool is_known)
{
    gb_bridge_graph *graph = read_model(expression, "null");
    cr_assert_eq(set(graph, "s0", batch), GB_SUCCESS, "%s", gb_bridge_last_error());
    cr_assert_eq(is_whole(graph), is_known, "%s for %lld", expression, (long long)batch);
    gb_bridge_graph_destroy(graph);
}

Test(bridge_sizes, expressions_have_values)
{
    static const char *const twice[] = {"2*s0", "s0 + s0", "s0*4//2", "((s0 + 1)*2) - 2",
            "Max(2*s0, s0, 3)", "-Min(-2*s0, 0)", "FloorDiv(4*s0 + 1, 2)", "CleanDiv(6*s0, 3)",
            "s0**2 - s0**2 + 2*s0", "4*s0/2", "2*s0 + Mod(7, 7)", "2*s0 + PythonMod(-3, 3)",
            "2*(s0 - 5) + 10", "2*s0 + (-1)//2 + 1", "2*s0 - 6%4 + 2", "Mul(Integer(2), " SYMPY ")",
            "Add(" SYMPY ", Integer(-1), " SYMPY ", Integer(1))",
            "FloorDiv(Mul(Integer(4), " SYMPY "), Integer(2))",
            "Add(Pow(" SYMPY ", Integer(2)), Mul(Integer(-1), " SYMPY ", " SYMPY "), Mul(" SYMPY
            ", Integer(2)))",
            "TruncToInt(Add(Float('0.25', precision=53), Mul(Float('2.0', precision=53), "
            "ToFloat(" SYMPY "))))",
            "CeilToInt(IntTrueDiv(Add(Mul(Integer(8), " SYMPY "), Integer(-1)), Integer(4)))",
            "FloorToInt(2.0625*ToFloat(s0))"};
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++)
        for (int64_t batch = 3; batch <= 9; batch += 3)
            expect_twice(twice[i], batch, true);
    expect_twice("2*s0 + 1", 4, false);
    expect_twice("s0//2", 4, false);
}

Test(bridge_sizes, what_is_not_understood_is_not_known)
{
    static const char *const odd[] = {"2*s1", "2*s0 +", "(2*s0", "2*s0)", "Weird(s0, 1)", "2*s0//0",
            "2s0", "2*s0/4", "", "s0**-1", "s0**99", "99999999999999999999*s0", "Mod(s0)",
            "FloorDiv(2*s0, 1, 1)", "Mod(2*s0, 0)", "2.0*s0", "ToFloat(2*s0)", "Symbol('s0'",
            "Symbol('s1')", "Symbol(s0)", "Float('2.0'", "Integer(2*s0, 1)", "TruncToInt(1.5**99)",
            "Max(2.0*s0, s0)", "FloorDiv(4.0*s0, 2)"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        expect_twice(odd[i], 3, false);
    char deep[600] = "";
    for (int i = 0; i < 250; i++)
        strcat(deep, "(");
    expect_twice(deep, 3, false);
}

Test(bridge_sizes, sizes_and_inputs_are_told)
{
    gb_bridge_graph *graph = read_model("2*s0", "64");
    gb_bridge_size size;
    gb_bridge_input input;
    cr_assert_eq(gb_bridge_graph_get_size_num(graph), 1);
    cr_assert_eq(gb_bridge_graph_get_size(graph, 0, &size), GB_SUCCESS);
    cr_assert_str_eq(size.name, "s0");
    cr_assert(size.value == 3 && size.min == 2 && size.max == 64);
    cr_assert_eq(gb_bridge_graph_get_size(graph, 1, &size), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_bridge_graph_get_input_num(graph), 2);
    cr_assert_eq(set(graph, "s0", 7), GB_SUCCESS);
    cr_assert_eq(gb_bridge_graph_get_input(graph, 0, &input), GB_SUCCESS);
    cr_assert_str_eq(input.name, "x");
    cr_assert(input.is_user && input.dtype == GB_F32 && input.ndims == 2);
    cr_assert(input.dims[0] == 7 && input.dims[1] == 4 && !input.expressions[1]);
    cr_assert_str_eq(input.expressions[0], "s0");
    gb_bridge_graph_destroy(graph);
}

Test(bridge_sizes, a_module_is_made_for_the_sizes_as_they_are)
{
    gb_bridge_graph *graph = read_model("2*s0", "64");
    gb_bridge_module *module;
    cr_assert_eq(set(graph, "s0", 5), GB_SUCCESS);
    cr_assert_eq(gb_bridge_module_create(&module, graph, &options), GB_SUCCESS);
    cr_assert_eq(set(graph, "s0", 6), GB_INVALID_ARGUMENTS); /* the module reads the graph */
    float x[20], w[8] = {1, 0, 0, 0, 0, -1, 0, 0}, r[10];
    for (int i = 0; i < 20; i++)
        x[i] = (float)(i - 8);
    gb_bridge_tensor inputs[2] = {
            {.data = x, .dtype = GB_F32, .ndims = 2, .dims = {5, 4}, .strides = {4, 1}},
            {.data = w, .dtype = GB_F32, .ndims = 2, .dims = {2, 4}, .strides = {4, 1}}};
    gb_bridge_tensor output = {.data = r};
    cr_assert_eq(gb_bridge_group_execute(module, 0, 2, inputs, 1, &output), GB_SUCCESS, "%s",
            gb_bridge_last_error());
    for (int i = 0; i < 5; i++) {
        float first = x[i * 4], second = -x[i * 4 + 1];
        cr_assert_eq(r[2 * i], first > 0 ? first : 0);
        cr_assert_eq(r[2 * i + 1], second > 0 ? second : 0);
    }
    gb_bridge_module_destroy(module);
    cr_assert_eq(set(graph, "s0", 6), GB_SUCCESS);
    gb_bridge_graph_destroy(graph);
}

Test(bridge_sizes, values_that_are_refused_change_nothing)
{
    gb_bridge_graph *graph = read_model("2*s0", "64");
    gb_bridge_graph *open = read_model("s0**9", "null");
    gb_bridge_input input;
    cr_assert_eq(set(graph, "s0", 1), GB_INVALID_SHAPE);
    cr_assert_eq(set(graph, "s0", 65), GB_INVALID_SHAPE);
    cr_assert(strstr(gb_bridge_last_error(), "from 2 to 64"), "%s", gb_bridge_last_error());
    cr_assert_eq(set(graph, "s1", 3), GB_INVALID_ARGUMENTS);
    cr_assert_eq(set(open, "s0", 127), GB_INVALID_SHAPE); /* fits an integer, but no memory */
    const gb_bridge_size both[] = {{.name = "s0", .value = 9}, {.name = "t", .value = 9}};
    cr_assert_eq(gb_bridge_graph_set_sizes(graph, 2, both), GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_bridge_graph_get_input(graph, 0, &input), GB_SUCCESS);
    cr_assert_eq(input.dims[0], 3);
    cr_assert(is_whole(graph));
    gb_bridge_graph_destroy(graph);
    gb_bridge_graph_destroy(open);
}
