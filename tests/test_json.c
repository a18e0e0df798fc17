/* Reading and writing graph files. */
#include <criterion/criterion.h>
#include <float.h>
#include <graphbench/graphbench.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct notes {
    int count;
    char last[512];
} notes;

static void take_note(void *context, const char *message)
{
    notes *taken = context;
    taken->count++;
    snprintf(taken->last, sizeof taken->last, "%s", message);
}

static gb_graph *parse(const char *text, notes *taken)
{
    gb_graph *graph = NULL;
    gb_status status = gb_graph_parse_json(
            &graph, text, strlen(text), "test.json", taken ? take_note : NULL, taken);
    cr_assert_eq(status, GB_SUCCESS, "%s", gb_last_error());
    return graph;
}

/* A graph of one op, its key "attrs" and the first tensor's further keys to be filled in. */
static gb_graph *parse_op(const char *kind, const char *attrs, const char *tensor, notes *taken)
{
    char text[2048];
    snprintf(text, sizeof text,
            "{\"graph\": [{\"id\": 7, \"kind\": \"%s\", \"attrs\": %s, \"inputs\": [{\"id\": 0, "
            "\"dtype\": \"f32\"%s}], \"outputs\": [{\"id\": 1, \"dtype\": \"f32\", \"shape\": "
            "[-9223372036854775808]}]}]}",
            kind, attrs, tensor);
    return parse(text, taken);
}

static const void *attr(const gb_graph *graph, gb_op_attr name, size_t *count)
{
    const gb_op *op;
    const void *values;
    size_t number;
    cr_assert_eq(gb_graph_get_op(graph, 0, &op), GB_SUCCESS);
    cr_assert_eq(gb_op_get_attr(op, name, &number, &values), GB_SUCCESS);
    cr_assert_not_null(values, "attribute %s is not set", gb_op_attr_name(name));
    if (count)
        *count = number;
    return values;
}

static float attr_f32(const gb_graph *graph, gb_op_attr name)
{
    return *(const float *)attr(graph, name, NULL);
}

static const char shape[] = ", \"shape\": [2, 3], \"stride\": [3, 1]";

Test(json, minimal_graph_gets_defaults)
{
    gb_graph *graph = parse_op("ReLU", "{}", shape, NULL);
    const gb_op *op;
    gb_fpmath_mode mode;
    uint8_t apply_to_int;
    uint8_t finalized;
    cr_assert_eq(gb_graph_get_op_num(graph), 1);
    cr_assert_eq(gb_graph_get_tensor_num(graph), 2);
    cr_assert_eq(gb_graph_find_op(graph, 7, &op), GB_SUCCESS);
    cr_expect_str_eq(gb_op_get_name(op), "ReLU_7");
    gb_graph_get_fpmath_mode(graph, &mode, &apply_to_int);
    cr_expect_eq(mode, GB_FPMATH_STRICT);
    cr_expect_eq(apply_to_int, 0);
    gb_graph_is_finalized(graph, &finalized);
    cr_expect_eq(finalized, 0);
    gb_graph_destroy(graph);
}

Test(json, keys_and_nodes_come_in_any_order)
{
    gb_graph *graph = parse(
            "{\"graph\": [{\"outputs\": [{\"shape\": [4], \"id\": 2, \"dtype\": \"f32\"}], "
            "\"kind\": \"ReLU\", \"inputs\": [{\"shape\": [4], \"dtype\": \"f32\", \"id\": 1}], "
            "\"id\": 9}, {\"attrs\": {\"alpha\": {\"value\": 0.5, \"type\": \"f32\"}}, "
            "\"outputs\": "
            "[{\"id\": 1, \"dtype\": \"f32\", \"shape\": [4]}], \"inputs\": [{\"id\": 0, "
            "\"dtype\": "
            "\"f32\", \"shape\": [4]}], \"kind\": \"Elu\", \"id\": 3}], \"version\": \"0.6.0\"}",
            NULL);
    const gb_op *op;
    size_t id;
    gb_graph_get_op(graph, 0, &op);
    gb_op_get_id(op, &id);
    cr_expect_eq(id, 9, "ops keep the order of the file until they are finalized");
    cr_assert_eq(gb_graph_finalize(graph), GB_SUCCESS);
    gb_graph_get_op(graph, 0, &op);
    gb_op_get_id(op, &id);
    cr_expect_eq(id, 3);
    cr_expect_eq(attr_f32(graph, GB_ATTR_ALPHA), 0.5F);
    gb_graph_destroy(graph);
}

Test(json, bools_are_words_or_digits)
{
    static const struct {
        const char *text;
        uint8_t value;
    } cases[] = {{"true", 1}, {"false", 0}, {"1", 1}, {"0", 0}};
    for (int i = 0; i < 4; i++) {
        char attrs[128];
        snprintf(attrs, sizeof attrs,
                "{\"alpha\": {\"type\": \"f32\", \"value\": 1}, \"use_dst\": {\"type\": \"bool\", "
                "\"value\": %s}}",
                cases[i].text);
        char text[1024];
        snprintf(text, sizeof text,
                "{\"graph\": [{\"id\": 7, \"kind\": \"EluBackward\", \"attrs\": %s, \"inputs\": "
                "[{\"id\": 0, \"dtype\": \"f32\", \"shape\": [2]}, {\"id\": 1, \"dtype\": \"f32\", "
                "\"shape\": [2]}], \"outputs\": [{\"id\": 2, \"dtype\": \"f32\", \"shape\": "
                "[2]}]}]}",
                attrs);
        gb_graph *graph = parse(text, NULL);
        const uint8_t *value = attr(graph, GB_ATTR_USE_DST, NULL);
        cr_expect_eq(*value, cases[i].value, "%s", cases[i].text);
        gb_graph_destroy(graph);
    }
}

Test(json, f32_values_take_special_numbers_and_integers)
{
    static const struct {
        const char *text;
        float value;
    } cases[] = {
            {"inf", INFINITY},
            {"-inf", -INFINITY},
            {"Infinity", INFINITY},
            {"-INFINITY", -INFINITY},
            {"\"inf\"", INFINITY},
            {"\"-Inf\"", -INFINITY},
            {"nan", NAN},
            {"-NaN", NAN},
            {"\"nan\"", NAN},
            {"6", 6},
            {"-6", -6},
            {"1e-3", 1e-3F},
            {"1E+2", 100},
            {"340282346638528859811704183484516925440", FLT_MAX},
            {"1e-60", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char attrs[256];
        snprintf(attrs, sizeof attrs,
                "{\"min\": {\"type\": \"f32\", \"value\": %s}, \"max\": {\"value\": %s, \"type\": "
                "\"f32\"}}",
                cases[i].text, cases[i].text);
        gb_graph *graph = parse_op("Clamp", attrs, shape, NULL);
        float low = attr_f32(graph, GB_ATTR_MIN), high = attr_f32(graph, GB_ATTR_MAX);
        cr_expect(isnan(cases[i].value) ? isnan(low) : low == cases[i].value, "%s: %g",
                cases[i].text, (double)low);
        cr_expect(isnan(cases[i].value) ? isnan(high) : high == cases[i].value, "%s: %g",
                cases[i].text, (double)high);
        gb_graph_destroy(graph);
    }
}

Test(json, ids_are_exact_to_64_bits)
{
    gb_graph *graph = parse("{\"graph\": [{\"id\": 18446744073709551615, \"kind\": \"ReLU\", "
                            "\"inputs\": [{\"id\": 18446744073709551614, \"dtype\": \"f32\", "
                            "\"shape\": [2]}], \"outputs\": [{\"id\": 9007199254740993, \"dtype\": "
                            "\"f32\", \"shape\": [2]}]}]}",
            NULL);
    const gb_op *op;
    gb_logical_tensor tensor;
    cr_expect_eq(gb_graph_find_op(graph, SIZE_MAX, &op), GB_SUCCESS);
    cr_expect_eq(gb_graph_find_tensor(graph, SIZE_MAX - 1, &tensor), GB_SUCCESS);
    cr_expect_eq(gb_graph_find_tensor(graph, 9007199254740993U, &tensor), GB_SUCCESS);
    cr_expect_eq(gb_graph_find_tensor(graph, 9007199254740992U, &tensor), GB_INVALID_ARGUMENTS);
    gb_graph_destroy(graph);
}

Test(json, unknown_keys_are_skipped_with_one_note_each)
{
    notes taken = {0};
    gb_graph *graph = parse_op("ReLU",
            "{\"partition_id\": {\"type\": \"string\", \"value\": \"5\"}, \"backend\": {\"type\": "
            "\"string\", \"value\": \"x\"}}",
            ", \"shape\": [2], \"colour\": {\"deep\": [1, {\"er\": null}]}", &taken);
    cr_expect_eq(taken.count, 3);
    cr_expect(strstr(taken.last, "test.json:1:"), "%s", taken.last);
    cr_expect(strstr(taken.last, "\"colour\""), "%s", taken.last);
    gb_graph_destroy(graph);

    taken.count = 0;
    graph = parse("{\"a\": 1, \"graph\": [{\"id\": 1, \"kind\": \"ReLU\", \"a\": 2, \"inputs\": "
                  "[{\"id\": 0, \"dtype\": \"f32\", \"shape\": [], \"a\": 3}], \"outputs\": "
                  "[{\"id\": 1, \"dtype\": \"f32\", \"shape\": [], \"a\": inf}]}]}",
            &taken);
    cr_expect_eq(taken.count, 1);
    gb_graph_destroy(graph);
}

Test(json, byte_order_mark_is_noted)
{
    notes taken = {0};
    gb_graph *graph =
            parse("\xEF\xBB\xBF{\"graph\": [{\"id\": 1, \"kind\": \"End\", \"inputs\": "
                  "[{\"id\": 0, \"dtype\": \"undef\", \"shape\": [2]}], \"outputs\": []}]}"
                  "\r\n \t",
                    &taken);
    cr_expect_eq(taken.count, 1);
    gb_graph_destroy(graph);
}

Test(json, layouts_and_unknown_sizes)
{
#define UNKNOWN "-9223372036854775808"
    static const struct {
        const char *text;
        int ndims;
        int64_t dim0, stride0;
        gb_layout_type layout;
        int notes;
    } cases[] = {
            {", \"shape\": [2, 3]", 2, 2, 3, GB_LAYOUT_STRIDED, 0},
            {", \"shape\": [2, 3], \"stride\": [1, 2]", 2, 2, 1, GB_LAYOUT_STRIDED, 0},
            {", \"shape\": [2, 3], \"stride\": [" UNKNOWN "], \"layout_type\": \"undef\"", 2, 2,
                    GB_UNKNOWN_DIM, GB_LAYOUT_STRIDED, 0},
            {", \"shape\": [2, " UNKNOWN "], \"stride\": [4, 1]", 2, 2, 4, GB_LAYOUT_STRIDED, 0},
            {", \"shape\": [" UNKNOWN "], \"stride\": [" UNKNOWN "]", -1, GB_UNKNOWN_DIM,
                    GB_UNKNOWN_DIM, GB_LAYOUT_STRIDED, 0},
            {", \"shape\": [2, -1], \"stride\": [-1, 1]", 2, 2, GB_UNKNOWN_DIM, GB_LAYOUT_STRIDED,
                    0},
            {", \"shape\": [-1], \"stride\": [-1]", -1, GB_UNKNOWN_DIM, GB_UNKNOWN_DIM,
                    GB_LAYOUT_STRIDED, 0},
            {", \"shape\": [], \"stride\": []", 0, 0, 0, GB_LAYOUT_STRIDED, 0},
            {", \"shape\": [0, 3]", 2, 0, 3, GB_LAYOUT_STRIDED, 0},
            {", \"shape\": [5], \"layout_type\": \"any\"", 1, 5, GB_UNKNOWN_DIM, GB_LAYOUT_ANY, 0},
            {", \"shape\": [5], \"layout_type\": \"opaque\"", 1, 5, GB_UNKNOWN_DIM, GB_LAYOUT_ANY,
                    1},
            {", \"shape\": [2, 3], \"layout_type\": \"opaque\", \"layout\": \"bA2a\"", 2, 2,
                    GB_UNKNOWN_DIM, GB_LAYOUT_OPAQUE, 0},
            {", \"shape\": [2, 3], \"layout_type\": \"any\", \"layout\": \"bA2a\"", 2, 2,
                    GB_UNKNOWN_DIM, GB_LAYOUT_ANY, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        notes taken = {0};
        gb_graph *graph = parse_op("ReLU", "{}", cases[i].text, &taken);
        gb_logical_tensor tensor;
        gb_graph_find_tensor(graph, 0, &tensor);
        cr_expect_eq(tensor.ndims, cases[i].ndims, "%s", cases[i].text);
        cr_expect_eq(tensor.dims[0], cases[i].dim0, "%s", cases[i].text);
        cr_expect_eq(tensor.strides[0], cases[i].stride0, "%s", cases[i].text);
        cr_expect_eq(tensor.layout_type, cases[i].layout, "%s", cases[i].text);
        cr_expect_eq(taken.count, cases[i].notes, "%s", cases[i].text);
        gb_graph_destroy(graph);
    }
}

Test(json, fpmath_mode_in_all_spellings)
{
    static const struct {
        const char *keys;
        gb_fpmath_mode mode;
        int apply_to_int;
    } cases[] = {
            {"\"fpmath_mode\": \"tf32\"", GB_FPMATH_TF32, 0},
            {"\"fpmath_mode\": \"any\", \"fpmath_mode_apply_to_int\": \"true\"", GB_FPMATH_ANY, 1},
            {"\"fpmath_mode\": \"bf16\", \"fpmath_mode_apply_to_int\": true", GB_FPMATH_BF16, 1},
            {"\"fpmath_mode\": \"f16\", \"fpmath_mode_apply_to_int\": 1", GB_FPMATH_F16, 1},
            {"\"fpmath_mode\": \"\", \"fpmath_mode_apply_to_int\": \"False\"", GB_FPMATH_STRICT, 0},
            {"\"fpmath_mode\": \"strict\", \"fpmath_mode_apply_to_int\": \"\"", GB_FPMATH_STRICT,
                    0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                "{%s, \"engine_kind\": \"gpu\", \"graph\": [{\"id\": 1, \"kind\": \"ReLU\", "
                "\"inputs\": [{\"id\": 0, \"dtype\": \"f32\", \"shape\": []}], \"outputs\": "
                "[{\"id\": 1, \"dtype\": \"f32\", \"shape\": []}]}]}",
                cases[i].keys);
        gb_graph *graph = parse(text, NULL);
        gb_fpmath_mode mode;
        uint8_t apply_to_int;
        gb_graph_get_fpmath_mode(graph, &mode, &apply_to_int);
        cr_expect_eq(mode, cases[i].mode, "%s", cases[i].keys);
        cr_expect_eq(apply_to_int, cases[i].apply_to_int, "%s", cases[i].keys);
        gb_graph_destroy(graph);
    }
}

/* The whole file as text, to be freed. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    char *text = calloc(1, 1 << 20);
    size_t length = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    cr_assert_gt(length, 0);
    return text;
}

static char *save(const gb_graph *graph)
{
    char path[] = "/tmp/graphbench-test-XXXXXX";
    int handle = mkstemp(path);
    cr_assert_geq(handle, 0);
    close(handle);
    gb_status status = gb_graph_save_json(graph, path);
    cr_assert_eq(status, GB_SUCCESS, "%s", gb_last_error());
    char *text = read_file(path);
    unlink(path);
    return text;
}

Test(json, opaque_layouts_are_written_by_name)
{
    notes taken = {0};
    gb_graph *first = parse_op("ReLU", "{}",
            ", \"shape\": [2, 3], \"layout_type\": \"opaque\", \"layout\": \"aB4b\"", &taken);
    char *text = save(first);
    gb_graph *second = parse(text, NULL);
    gb_logical_tensor before, after;
    uint8_t equal;
    gb_graph_find_tensor(first, 0, &before);
    gb_graph_find_tensor(second, 0, &after);
    cr_assert_eq(gb_logical_tensor_is_equal(&before, &after, &equal), GB_SUCCESS);
    cr_expect(equal);
    cr_expect_str_eq(gb_logical_tensor_get_layout(&after), "aB4b");
    gb_graph_destroy(first);
    gb_graph_destroy(second);
    free(text);
}

Test(json, written_graphs_read_back_the_same)
{
    gb_graph *first = parse(
            "{\"version\": \"3.2.0\", \"engine_kind\": \"gpu\", \"fpmath_mode\": \"tf32\", "
            "\"fpmath_mode_apply_to_int\": \"true\", \"graph\": [{\"id\": 140000000000001, "
            "\"name\": \"a \\\"quoted\\\" \\\\ name\\n\\u00e9\", \"kind\": \"Wildcard\", "
            "\"attrs\": "
            "{\"scales\": {\"type\": \"f32[]\", \"value\": [0.1, 0.3333333333333, 1e-42, -0, inf, "
            "-inf, nan, 3.4028234e38, 16777217, 0.2438]}, \"zps\": {\"type\": \"s64[]\", "
            "\"value\": "
            "[0, -128, 127, 9007199254740993, 1, 2, 3, 4, 5, 6]}, \"qtype\": {\"type\": "
            "\"string\", "
            "\"value\": \"per_channel\"}, \"axis\": {\"type\": \"s64\", \"value\": -1}}, "
            "\"inputs\": "
            "[{\"id\": 0, \"dtype\": \"s8\", \"shape\": [2, 10], \"stride\": [16, 1], "
            "\"layout_type\": \"strided\", \"property_type\": \"constant\"}], \"outputs\": "
            "[{\"id\": "
            "1, \"dtype\": \"f32\", \"shape\": [2, 10], \"stride\": [-9223372036854775808], "
            "\"layout_type\": \"undef\", \"property_type\": \"variable\"}]}, {\"id\": 2, \"kind\": "
            "\"End\", \"inputs\": [{\"id\": 1, \"dtype\": \"f32\", \"shape\": [2, 10], \"stride\": "
            "[-9223372036854775808]}], \"outputs\": []}]}",
            NULL);
    char *text = save(first);
    gb_graph *second = parse(text, NULL);
    char *again = save(second);
    cr_expect_str_eq(again, text);

    size_t count, count_again;
    const float *scales = attr(first, GB_ATTR_SCALES, &count);
    const float *scales_again = attr(second, GB_ATTR_SCALES, &count_again);
    cr_assert_eq(count, 10);
    cr_assert_eq(count_again, 10);
    for (size_t i = 0; i < count; i++) {
        cr_expect(isnan(scales[i]) ? isnan(scales_again[i])
                                   : memcmp(&scales[i], &scales_again[i], sizeof(float)) == 0,
                "scale %zu: %.9g, then %.9g", i, (double)scales[i], (double)scales_again[i]);
    }
    cr_expect_eq(scales[9], 0.2438F, "scales are not rounded");
    const int64_t *zps = attr(second, GB_ATTR_ZPS, &count);
    cr_expect_eq(zps[3], 9007199254740993);

    const gb_op *op_again;
    const gb_op *op;
    gb_graph_get_op(first, 0, &op);
    gb_graph_get_op(second, 0, &op_again);
    cr_expect_str_eq(gb_op_get_name(op_again), gb_op_get_name(op));
    for (size_t i = 0; i < 2; i++) {
        gb_logical_tensor tensor, tensor_again;
        uint8_t equal;
        gb_graph_get_tensor(first, i, &tensor);
        gb_graph_get_tensor(second, i, &tensor_again);
        gb_logical_tensor_is_equal(&tensor, &tensor_again, &equal);
        cr_expect(equal, "tensor %zu", tensor.id);
    }
    free(text);
    free(again);
    gb_graph_destroy(first);
    gb_graph_destroy(second);
}

/* Latin 1, a character of two bytes and one of four, a surrogate, and one cut short. */
Test(json, names_that_are_no_utf8_are_written_all_the_same)
{
    static const char bytes[] = "\xe9t\xc3\xa9\xf0\x9f\x98\x80\xed\xa0\x80\xe2\x82",
                      written[] = "\\xE9t\xc3\xa9\xf0\x9f\x98\x80\\xED\\xA0\\x80\\xE2\\x82";
    char path[] = "/tmp/test_json_XXXXXX";
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    for (int json = 0; json < 2; json++) {
        gb_graph *graph, *again = NULL;
        const gb_op *op;
        gb_op *named;
        cr_assert_eq(gb_graph_create(&graph, GB_ENGINE_CPU), GB_SUCCESS);
        cr_assert_eq(gb_op_create(&named, 0, GB_OP_WILDCARD, bytes), GB_SUCCESS);
        cr_assert_eq(gb_graph_add_op(graph, named), GB_SUCCESS);
        cr_assert_eq(json ? gb_graph_save_json(graph, path) : gb_graph_save_text(graph, path),
                GB_SUCCESS);
        cr_assert_eq(gb_graph_load(&again, path, NULL, NULL), GB_SUCCESS, "%s", gb_last_error());
        cr_assert_eq(gb_graph_get_op(again, 0, &op), GB_SUCCESS);
        cr_expect_str_eq(gb_op_get_name(op), json ? written : bytes);
        gb_graph_destroy(graph);
        gb_graph_destroy(again);
        gb_op_destroy(named);
    }
    remove(path);
}

Test(json, every_float_survives)
{
    uint32_t state = 12345;
    for (int i = 0; i < 300; i++) {
        float value;
        state = state * 1664525 + 1013904223;
        memcpy(&value, &state, sizeof value);
        if (!isfinite(value))
            continue;
        char attrs[96];
        snprintf(attrs, sizeof attrs, "{\"alpha\": {\"type\": \"f32\", \"value\": %.9g}}",
                (double)value);
        gb_graph *graph = parse_op("LeakyReLU", attrs, shape, NULL);
        cr_expect_eq(attr_f32(graph, GB_ATTR_ALPHA), value);
        char *text = save(graph);
        gb_graph *again = parse(text, NULL);
        cr_expect_eq(attr_f32(again, GB_ATTR_ALPHA), value, "%.9g", (double)value);
        free(text);
        gb_graph_destroy(graph);
        gb_graph_destroy(again);
    }
}

Test(json, ports_are_derived)
{
    gb_graph *graph = parse_op("ReLU", "{}", shape, NULL);
    char *text = save(graph);
    cr_expect(strstr(text, "\"input_ports\": [0]"), "%s", text);
    cr_expect(strstr(text, "\"output_ports\": [1]"), "%s", text);
    free(text);
    gb_graph_destroy(graph);
}

Test(json, files_that_cannot_be_opened)
{
    gb_graph *graph = NULL;
    cr_expect_eq(
            gb_graph_load_json(&graph, "/no/such/graph.json", NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect(strstr(gb_last_error(), "/no/such/graph.json"));
    cr_expect_eq(gb_graph_load_json(&graph, "/", NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_load_json(&graph, NULL, NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_load_json(NULL, "x", NULL, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_null(graph);

    graph = parse_op("ReLU", "{}", shape, NULL);
    cr_expect_eq(gb_graph_save_json(graph, "/no/such/graph.json"), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_save_json(graph, "/dev/full"), GB_RUNTIME_ERROR);
    cr_expect_eq(gb_graph_save_json(graph, NULL), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_graph_save_json(NULL, "x"), GB_INVALID_ARGUMENTS);
    gb_graph_destroy(graph);
}
