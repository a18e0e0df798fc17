/* Graphs of the framework for tests, one line for each input, node and output:
 *
 *     input x f32 2x3            param w f32 4x3          input n s64 2x3 1x2 (strides)
 *     linear.default y:f32:2x4 input=@x weight=@w         (of the namespace aten)
 *     max_pool2d.default p:f32:1x1x2x2,i:s64:1x1x2x2 self=@x kernel_size=[2,2] ceil_mode=false
 *     output y
 *
 * Arguments: @value, [@value,..], integer, float (with a point), [integers], true, false, "text". */
#ifndef BRIDGE_CASE_H
#define BRIDGE_CASE_H

#include "graphbench_bridge.h"

#include <criterion/criterion.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 1 << 16 };

typedef struct case_text {
    char inputs[MOST_TEXT], outputs[MOST_TEXT], nodes[MOST_TEXT], values[MOST_TEXT],
            specs[MOST_TEXT];
} case_text;

static inline void put(char *text, const char *format, ...)
{
    size_t length = strlen(text);
    va_list list;
    va_start(list, format);
    int n = vsnprintf(text + length, MOST_TEXT - length, format, list);
    va_end(list);
    cr_assert(n >= 0 && length + (size_t)n < MOST_TEXT);
}

static inline int dtype_code(const char *name)
{
    static const struct {
        const char *name;
        int code;
    } types[] = {{"u8", 1}, {"s32", 4}, {"s64", 5}, {"f16", 6}, {"f32", 7}, {"f64", 8},
            {"bool", 12}, {"bf16", 13}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].code;
    cr_assert_fail("dtype %s", name);
    return 0;
}

/* "2x3"; "-" for a scalar */
static inline int read_dims(const char *text, long long *dims)
{
    int n = 0;
    for (const char *at = text; *at && *at != '-';) {
        char *end;
        dims[n++] = strtoll(at, &end, 10);
        at = *end == 'x' ? end + 1 : end;
    }
    return n;
}

static inline void put_value(
        case_text *c, const char *name, const char *dtype, const char *sizes, const char *strides)
{
    long long dims[12], steps[12];
    int n = read_dims(sizes, dims);
    if (strides)
        cr_assert_eq(read_dims(strides, steps), n);
    for (int d = n - 1; d >= 0 && !strides; d--)
        steps[d] = d == n - 1 ? 1 : steps[d + 1] * (dims[d + 1] ? dims[d + 1] : 1);
    put(c->values, "%s\"%s\": {\"dtype\": %d, \"sizes\": [", *c->values ? ", " : "", name,
            dtype_code(dtype));
    for (int d = 0; d < n; d++)
        put(c->values, "%s{\"as_int\": %lld}", d ? ", " : "", dims[d]);
    put(c->values, "], \"strides\": [");
    for (int d = 0; d < n; d++)
        put(c->values, "%s{\"as_int\": %lld}", d ? ", " : "", steps[d]);
    put(c->values, "]}");
}

static inline void put_arg(case_text *c, char *name, char *text)
{
    const char *kind = "as_int";
    bool is_list = *text == '[';
    put(c->nodes, "{\"name\": \"%s\", \"arg\": {", name);
    if (text[is_list] == '@')
        kind = is_list ? "as_tensors" : "as_tensor";
    else if (is_list)
        kind = "as_ints";
    else if (*text == '"')
        kind = "as_string";
    else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        kind = "as_bool";
    else if (strpbrk(text, ".I"))
        kind = "as_float";
    put(c->nodes, "\"%s\": ", kind);
    if (text[is_list] != '@') {
        put(c->nodes, "%s}}", text);
        return;
    }
    const char *separator = is_list ? "[" : "";
    for (char *save, *value = strtok_r(text, "[],@", &save); value;
            value = strtok_r(NULL, "[],@", &save)) {
        put(c->nodes, "%s{\"name\": \"%s\"}", separator, value);
        separator = ", ";
    }
    put(c->nodes, "%s}}", is_list ? "]" : "");
}

static inline void put_node(case_text *c, const char *op, char *outputs, char *args)
{
    const char *separator = "";
    char made[2048] = "";
    put(c->nodes, "%s{\"target\": \"torch.ops.%s%s\", \"inputs\": [", *c->nodes ? ", " : "",
            strncmp(op, "my.", 3) == 0 ? "" : "aten.", op);
    for (char *save, *arg = strtok_r(args, " ", &save); arg; arg = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(arg, '=');
        cr_assert(equals, "%s", arg);
        *equals = '\0';
        put(c->nodes, "%s", separator);
        put_arg(c, arg, equals + 1);
        separator = ", ";
    }
    for (char *save, *out = strtok_r(outputs, ",", &save); out; out = strtok_r(NULL, ",", &save)) {
        char *inner, *name = strtok_r(out, ":", &inner), *dtype = strtok_r(NULL, ":", &inner);
        char *dims = strtok_r(NULL, ":", &inner), *strides = strtok_r(NULL, ":", &inner);
        cr_assert(dims, "%s", op);
        put_value(c, name, dtype, dims, strides);
        snprintf(made + strlen(made), sizeof made - strlen(made),
                "%s{\"as_tensor\": {\"name\": \"%s\"}}", *made ? ", " : "", name);
    }
    put(c->nodes, "], \"outputs\": [%s]}", made);
}

static inline void put_line(case_text *c, char *line)
{
    char *save, *word = strtok_r(line, " ", &save), *second = strtok_r(NULL, " ", &save);
    if (!word)
        return;
    if (strcmp(word, "output") == 0) {
        put(c->outputs, "%s{\"as_tensor\": {\"name\": \"%s\"}}", *c->outputs ? ", " : "", second);
        return;
    }
    bool is_param = strcmp(word, "param") == 0;
    if (!is_param && strcmp(word, "input") != 0) {
        put_node(c, word, second, save);
        return;
    }
    char *dtype = strtok_r(NULL, " ", &save), *dims = strtok_r(NULL, " ", &save);
    put_value(c, second, dtype, dims, strtok_r(NULL, " ", &save));
    put(c->inputs, "%s{\"as_tensor\": {\"name\": \"%s\"}}", *c->inputs ? ", " : "", second);
    put(c->specs, "%s", *c->specs ? ", " : "");
    if (is_param)
        put(c->specs,
                "{\"parameter\": {\"arg\": {\"name\": \"%s\"}, \"parameter_name\": \"m.%s\"}}",
                second, second);
    else
        put(c->specs, "{\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": \"%s\"}}}}", second);
}

/* The JSON of a case; the caller frees it. */
static inline char *case_json(const char *lines)
{
    case_text *c = calloc(1, sizeof *c);
    char *copy = strdup(lines), *json = malloc(6 * MOST_TEXT);
    for (char *save, *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        put_line(c, line);
    snprintf(json, 6 * MOST_TEXT,
            "{\"graph_module\": {\"graph\": {\"inputs\": [%s], \"outputs\": [%s], \"nodes\": [%s], "
            "\"tensor_values\": {%s}, \"sym_int_values\": {}}, \"signature\": {\"input_specs\": "
            "[%s], \"output_specs\": []}}}",
            c->inputs, c->outputs, c->nodes, c->values, c->specs);
    free(copy);
    free(c);
    return json;
}

static inline gb_bridge_module *make_module(const char *lines, const gb_bridge_options *options)
{
    char *json = case_json(lines);
    gb_bridge_graph *graph;
    gb_bridge_module *module;
    cr_assert_eq(gb_bridge_graph_create_from_json(&graph, json, strlen(json)), GB_SUCCESS, "%s\n%s",
            gb_bridge_last_error(), lines);
    cr_assert_eq(gb_bridge_module_create(&module, graph, options), GB_SUCCESS, "%s\n%s",
            gb_bridge_last_error(), lines);
    gb_bridge_graph_destroy(graph);
    free(json);
    return module;
}

static inline size_t count_groups(const char *lines)
{
    gb_bridge_module *module = make_module(lines, NULL);
    size_t count = gb_bridge_module_get_group_num(module);
    gb_bridge_module_destroy(module);
    return count;
}

/* Is the node outside for a reason that has this text in it? */
static inline bool is_outside(const gb_bridge_module *module, const char *node, const char *reason)
{
    json_object *root = json_tokener_parse(gb_bridge_module_describe(module)), *list;
    bool found = false;
    cr_assert(root && json_object_object_get_ex(root, "outside", &list));
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i), *name, *why;
        json_object_object_get_ex(entry, "node", &name);
        json_object_object_get_ex(entry, "reason", &why);
        if (strcmp(json_object_get_string(name), node) == 0)
            found = strstr(json_object_get_string(why), reason) != NULL;
    }
    json_object_put(root);
    return found;
}

/* Is the value an input of a group, and said to be constant wherever it is? */
static inline bool is_constant_input(const gb_bridge_module *module, const char *value)
{
    json_object *root = json_tokener_parse(gb_bridge_module_describe(module)), *groups;
    int count = 0, constant = 0;
    cr_assert(root && json_object_object_get_ex(root, "groups", &groups));
    for (size_t g = 0; g < json_object_array_length(groups); g++) {
        json_object *inputs, *name, *truth;
        json_object_object_get_ex(json_object_array_get_idx(groups, g), "inputs", &inputs);
        for (size_t i = 0; i < json_object_array_length(inputs); i++) {
            json_object *input = json_object_array_get_idx(inputs, i);
            json_object_object_get_ex(input, "name", &name);
            json_object_object_get_ex(input, "constant", &truth);
            if (strcmp(json_object_get_string(name), value) != 0)
                continue;
            count++;
            constant += json_object_get_boolean(truth);
        }
    }
    json_object_put(root);
    cr_assert(constant == 0 || constant == count, "%s", value);
    return constant > 0;
}

#endif
