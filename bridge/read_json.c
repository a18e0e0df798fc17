/* Reads the part of torch.export's model.json that the bridge needs. Whoever wrote it is not
 * trusted: each key is looked up with its type, and a fault names the node or value. */
#include "read.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 200, MOST_ENTRIES = 1 << 24 };

typedef struct reader {
    gb_bridge_graph *graph;
    br_arena *arena;
    char place[160]; /* what is being read, for messages */
} reader;

#define fail_at(r, what) br_fail(GB_INVALID_GRAPH, "%s: %s", (r)->place, what)

static void set_place(reader *r, const char *kind, const char *name)
{
    snprintf(r->place, sizeof r->place, "%s \"%.100s\"", kind, name);
}

static gb_status get_key(
        const reader *r, json_object *object, const char *key, json_type type, json_object **value)
{
    if (!json_object_is_type(object, json_type_object))
        return br_fail(
                GB_INVALID_GRAPH, "%s: not an object where \"%s\" is looked for", r->place, key);
    if (!json_object_object_get_ex(object, key, value))
        return br_fail(GB_INVALID_GRAPH, "%s: no \"%s\"", r->place, key);
    if (!json_object_is_type(*value, type))
        return br_fail(GB_INVALID_GRAPH, "%s: \"%s\" is not of type %s", r->place, key,
                json_type_to_name(type));
    return GB_SUCCESS;
}

/* A key that may be missing or null: *value is NULL then. */
static gb_status get_optional(
        const reader *r, json_object *object, const char *key, json_type type, json_object **value)
{
    if (!json_object_object_get_ex(object, key, value) || !*value) {
        *value = NULL;
        return GB_SUCCESS;
    }
    return get_key(r, object, key, type, value);
}

static gb_status get_text(const reader *r, json_object *object, const char *key, const char **text)
{
    json_object *value;
    BR_TRY(get_key(r, object, key, json_type_string, &value));
    const char *string = json_object_get_string(value);
    size_t length = (size_t)json_object_get_string_len(value);
    if (strlen(string) != length)
        return br_fail(GB_INVALID_GRAPH, "%s: \"%s\" has a NUL", r->place, key);
    *text = br_copy_text(r->arena, string, length);
    return *text ? GB_SUCCESS : br_out_of_memory();
}

/* The only key of a union. */
static gb_status get_union(
        const reader *r, json_object *object, const char **key, json_object **value)
{
    if (!json_object_is_type(object, json_type_object) || json_object_object_length(object) != 1)
        return fail_at(r, "not an object with one key");
    *key = "";
    *value = NULL;
    json_object_iter entry;
    json_object_object_foreachC(object, entry)
    {
        *key = entry.key;
        *value = entry.val;
    }
    return GB_SUCCESS;
}

static gb_status read_int(const reader *r, json_object *value, int64_t *number)
{
    if (!json_object_is_type(value, json_type_int))
        return fail_at(r, "not an integer");
    *number = json_object_get_int64(value);
    return GB_SUCCESS;
}

/* Infinities and NaN are written as words. */
static gb_status read_float(const reader *r, json_object *value, double *number)
{
    if (json_object_is_type(value, json_type_double) || json_object_is_type(value, json_type_int)) {
        *number = json_object_get_double(value);
        return GB_SUCCESS;
    }
    const char *word =
            json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
    if (strcmp(word, "Infinity") == 0)
        *number = (double)INFINITY;
    else if (strcmp(word, "-Infinity") == 0)
        *number = -(double)INFINITY;
    else if (strcmp(word, "NaN") == 0)
        *number = (double)NAN;
    else
        return fail_at(r, "not a number");
    return GB_SUCCESS;
}

/* {"as_int": 3} or {"as_bool": true}, and then *key is NULL; else the key and what it holds. */
static gb_status read_known_size(
        const reader *r, json_object *object, br_size *size, const char **key, json_object **value)
{
    BR_TRY(get_union(r, object, key, value));
    if (strcmp(*key, "as_int") == 0)
        BR_TRY(read_int(r, *value, &size->value));
    else if (strcmp(*key, "as_bool") == 0 && json_object_is_type(*value, json_type_boolean))
        size->value = json_object_get_boolean(*value);
    else
        return GB_SUCCESS;
    *key = NULL;
    return GB_SUCCESS;
}

/* {"as_int": 3}, {"as_expr": {"expr_str": "2*s0", "hint": {"as_int": 8}}} */
static gb_status read_size(reader *r, json_object *object, br_size *size)
{
    const char *key;
    json_object *value, *hint;
    *size = (br_size){0};
    BR_TRY(read_known_size(r, object, size, &key, &value));
    if (!key)
        return GB_SUCCESS;
    if (strcmp(key, "as_expr") != 0)
        return fail_at(r, "a size that is neither as_int nor as_expr");
    BR_TRY(get_text(r, value, "expr_str", &size->expr));
    BR_TRY(get_optional(r, value, "hint", json_type_object, &hint));
    size->unknown = true;
    if (!hint)
        return GB_SUCCESS;
    BR_TRY(get_union(r, hint, &key, &value));
    if (strcmp(key, "as_int") == 0) {
        size->unknown = false;
        return read_int(r, value, &size->value);
    }
    return GB_SUCCESS; /* of a truth or float, which no dim is */
}

static gb_status read_sizes(
        reader *r, json_object *list, const char *what, br_size *sizes, int count)
{
    for (int d = 0; d < count; d++) {
        BR_TRY(read_size(r, json_object_array_get_idx(list, (size_t)d), &sizes[d]));
        if (!sizes[d].unknown && sizes[d].value < 0)
            return br_fail(GB_INVALID_GRAPH, "%s: %s %d is negative", r->place, what, d);
    }
    return GB_SUCCESS;
}

static gb_status read_tensor(reader *r, json_object *meta, br_value *value)
{
    json_object *sizes, *strides, *dtype, *device, *layout;
    int64_t code, layout_code = 7;
    BR_TRY(get_key(r, meta, "dtype", json_type_int, &dtype));
    BR_TRY(read_int(r, dtype, &code));
    value->dtype = br_dtype_of_code(code);
    BR_TRY(get_key(r, meta, "sizes", json_type_array, &sizes));
    BR_TRY(get_key(r, meta, "strides", json_type_array, &strides));
    BR_TRY(get_optional(r, meta, "device", json_type_object, &device));
    BR_TRY(get_optional(r, meta, "layout", json_type_int, &layout));
    value->is_cpu = true;
    if (device) {
        const char *type;
        BR_TRY(get_text(r, device, "type", &type));
        value->is_cpu = strcmp(type, "cpu") == 0;
    }
    if (layout)
        BR_TRY(read_int(r, layout, &layout_code));
    value->is_strided = layout_code == 7;
    size_t rank = json_object_array_length(sizes);
    value->ndims = rank > GB_MAX_NDIMS ? -1 : (int)rank;
    if (!value->is_strided || value->ndims < 0)
        return GB_SUCCESS;
    if (json_object_array_length(strides) != rank)
        return fail_at(r, "as many strides as sizes are needed");
    BR_TRY(read_sizes(r, sizes, "size", value->dims, value->ndims));
    BR_TRY(read_sizes(r, strides, "stride", value->strides, value->ndims));
    size_t bytes;
    bool is_open = false;
    for (int d = 0; d < value->ndims; d++)
        is_open = is_open || value->dims[d].unknown || value->strides[d].unknown;
    if (!is_open && (!br_value_bytes(value, &bytes) || bytes > (size_t)PTRDIFF_MAX))
        return fail_at(r, "no memory can hold tensors of this size");
    return GB_SUCCESS;
}

static gb_status add_value(reader *r, const char *text, br_value_kind kind, br_value **value)
{
    gb_bridge_graph *g = r->graph;
    const char *name = br_copy_text(r->arena, text, strlen(text));
    uint32_t index = name ? br_names_add(r->arena, &g->names, name) : BR_NONE;
    if (index == BR_NONE)
        return br_out_of_memory();
    if (index != g->n_values)
        return br_fail(GB_INVALID_GRAPH, "value \"%.100s\" is described twice", text);
    if (!br_grow(r->arena, &g->values, &g->values_capacity, g->n_values, sizeof *g->values))
        return br_out_of_memory();
    g->n_values++;
    *value = &g->values[index];
    **value = (br_value){.name = name, .kind = kind, .producer = BR_NONE};
    return GB_SUCCESS;
}

static gb_status read_tensor_values(reader *r, json_object *graph)
{
    json_object *values;
    json_object_iter entry;
    BR_TRY(get_key(r, graph, "tensor_values", json_type_object, &values));
    json_object_object_foreachC(values, entry)
    {
        br_value *value;
        set_place(r, "value", entry.key);
        BR_TRY(add_value(r, entry.key, BR_TENSOR, &value));
        BR_TRY(read_tensor(r, entry.val, value));
    }
    return GB_SUCCESS;
}

static gb_status read_symbols(reader *r, json_object *graph, const char *key)
{
    json_object *values;
    json_object_iter entry;
    BR_TRY(get_optional(r, graph, key, json_type_object, &values));
    if (!values)
        return GB_SUCCESS;
    json_object_object_foreachC(values, entry)
    {
        br_value *value;
        set_place(r, "symbol", entry.key);
        BR_TRY(add_value(r, entry.key, BR_SYMBOL, &value));
        if (strcmp(key, "sym_int_values") == 0)
            BR_TRY(read_size(r, entry.val, &value->symbol));
        else
            value->symbol.unknown = true;
    }
    return GB_SUCCESS;
}

static gb_status find_value(const reader *r, const char *name, uint32_t *index)
{
    *index = br_names_find(&r->graph->names, name);
    if (*index == BR_NONE)
        return br_fail(GB_INVALID_GRAPH, "%s: value \"%.100s\" is not described", r->place, name);
    return GB_SUCCESS;
}

static gb_status find_defined(const reader *r, const char *name, uint32_t *index)
{
    BR_TRY(find_value(r, name, index));
    if (!r->graph->values[*index].is_defined)
        return br_fail(GB_INVALID_GRAPH, "%s: reads \"%.100s\" before it is made", r->place, name);
    return GB_SUCCESS;
}

/* {"name": "x"} */
static gb_status read_reference(const reader *r, json_object *object, uint32_t *index)
{
    const char *name;
    BR_TRY(get_text(r, object, "name", &name));
    return find_defined(r, name, index);
}

/* {"as_tensor": {"name": "x"}} or {"as_none": true} */
static gb_status read_optional_reference(const reader *r, json_object *object, uint32_t *index)
{
    const char *key;
    json_object *value;
    BR_TRY(get_union(r, object, &key, &value));
    *index = BR_NONE;
    if (strcmp(key, "as_none") == 0)
        return GB_SUCCESS;
    if (strcmp(key, "as_tensor") != 0)
        return fail_at(r, "neither as_tensor nor as_none");
    return read_reference(r, value, index);
}

/* An integer, or {"as_int": 3}, or {"as_name": "s"}. */
static gb_status read_argument_size(const reader *r, json_object *object, br_size *size)
{
    const char *key;
    json_object *value;
    *size = (br_size){0};
    if (json_object_is_type(object, json_type_int))
        return read_int(r, object, &size->value);
    if (json_object_is_type(object, json_type_boolean)) {
        size->value = json_object_get_boolean(object);
        return GB_SUCCESS;
    }
    BR_TRY(read_known_size(r, object, size, &key, &value));
    if (!key)
        return GB_SUCCESS;
    uint32_t index;
    const char *name;
    if (strcmp(key, "as_name") != 0)
        return fail_at(r, "neither as_int nor as_name");
    BR_TRY(get_text(r, object, "as_name", &name));
    BR_TRY(find_defined(r, name, &index));
    *size = r->graph->values[index].symbol;
    if (r->graph->values[index].kind != BR_SYMBOL)
        return fail_at(r, "a tensor where a number is wanted");
    return GB_SUCCESS;
}

/* How the elements of each kind of argument are read. */
typedef enum element { NOTHING, REFERENCE, OPTIONAL_REFERENCE, SIZE, FLOAT, TEXT, DEVICE } element;

typedef struct arg_row {
    const char *key;
    br_arg_kind kind;
    element element;
    bool is_list;
} arg_row;

static const arg_row arg_rows[] = {
        {"as_none", BR_ARG_NONE, NOTHING, false},
        {"as_tensor", BR_ARG_TENSOR, REFERENCE, false},
        {"as_tensors", BR_ARG_TENSORS, REFERENCE, true},
        {"as_optional_tensor", BR_ARG_TENSOR, OPTIONAL_REFERENCE, false},
        {"as_optional_tensors", BR_ARG_TENSORS, OPTIONAL_REFERENCE, true},
        {"as_int", BR_ARG_INT, SIZE, false},
        {"as_ints", BR_ARG_INTS, SIZE, true},
        {"as_sym_int", BR_ARG_INT, SIZE, false},
        {"as_sym_ints", BR_ARG_INTS, SIZE, true},
        {"as_float", BR_ARG_FLOAT, FLOAT, false},
        {"as_floats", BR_ARG_FLOATS, FLOAT, true},
        {"as_bool", BR_ARG_BOOL, SIZE, false},
        {"as_bools", BR_ARG_BOOLS, SIZE, true},
        {"as_string", BR_ARG_STRING, TEXT, false},
        {"as_scalar_type", BR_ARG_DTYPE, SIZE, false},
        {"as_memory_format", BR_ARG_MEMORY_FORMAT, SIZE, false},
        {"as_device", BR_ARG_DEVICE, DEVICE, false},
};

static gb_status read_element(
        const reader *r, const arg_row *row, json_object *value, br_arg *arg, uint32_t i)
{
    switch (row->element) {
    case REFERENCE:
        return read_reference(r, value, &arg->values[i]);
    case OPTIONAL_REFERENCE:
        return read_optional_reference(r, value, &arg->values[i]);
    case SIZE:
        return read_argument_size(r, value, &arg->sizes[i]);
    case FLOAT:
        return read_float(r, value, &arg->floats[i]);
    case DEVICE:
        return get_text(r, value, "type", &arg->text);
    case TEXT:
        if (!json_object_is_type(value, json_type_string))
            return fail_at(r, "not a string");
        arg->text = br_copy_text(
                r->arena, json_object_get_string(value), strlen(json_object_get_string(value)));
        return arg->text ? GB_SUCCESS : br_out_of_memory();
    case NOTHING:
        break;
    }
    return GB_SUCCESS;
}

/* Of an argument that is not understood: the values it names, for the order of execution. */
static gb_status collect_references(
        const reader *r, json_object *value, br_arg *arg, uint32_t *capacity)
{
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            BR_TRY(collect_references(r, json_object_array_get_idx(value, i), arg, capacity));
        return GB_SUCCESS;
    }
    if (!json_object_is_type(value, json_type_object))
        return GB_SUCCESS;
    json_object_iter entry;
    json_object_object_foreachC(value, entry)
    {
        bool is_name = strcmp(entry.key, "name") == 0 || strcmp(entry.key, "as_name") == 0;
        uint32_t index =
                is_name && json_object_is_type(entry.val, json_type_string)
                        ? br_names_find(&r->graph->names, json_object_get_string(entry.val))
                        : BR_NONE;
        if (index == BR_NONE || !r->graph->values[index].is_defined) {
            BR_TRY(collect_references(r, entry.val, arg, capacity));
            continue;
        }
        if (!br_grow(r->arena, &arg->values, capacity, arg->count, sizeof *arg->values))
            return br_out_of_memory();
        arg->values[arg->count++] = index;
    }
    return GB_SUCCESS;
}

static gb_status read_arg(const reader *r, json_object *object, br_arg *arg)
{
    const char *key;
    json_object *value;
    BR_TRY(get_union(r, object, &key, &value));
    for (size_t i = 0; i < BR_COUNT(arg_rows); i++) {
        const arg_row *row = &arg_rows[i];
        if (strcmp(row->key, key) != 0)
            continue;
        if (row->is_list && !json_object_is_type(value, json_type_array))
            return br_fail(GB_INVALID_GRAPH, "%s: %s is not a list", r->place, key);
        size_t count = row->is_list ? json_object_array_length(value) : 1;
        if (count > MOST_ENTRIES)
            return fail_at(r, "a list of too many entries");
        arg->kind = row->kind;
        arg->count = row->element == NOTHING ? 0 : (uint32_t)count;
        arg->values = br_alloc(r->arena, count, sizeof *arg->values);
        arg->sizes = br_alloc(r->arena, count, sizeof *arg->sizes);
        arg->floats = br_alloc(r->arena, count, sizeof *arg->floats);
        if (r->arena->failed)
            return br_out_of_memory();
        for (uint32_t e = 0; e < arg->count; e++)
            BR_TRY(read_element(
                    r, row, row->is_list ? json_object_array_get_idx(value, e) : value, arg, e));
        if (row->element == OPTIONAL_REFERENCE && !row->is_list && arg->values[0] == BR_NONE)
            *arg = (br_arg){.name = arg->name, .kind = BR_ARG_NONE};
        return GB_SUCCESS;
    }
    uint32_t capacity = 0;
    arg->kind = BR_ARG_OTHER;
    arg->text = br_copy_text(r->arena, key, strlen(key));
    return collect_references(r, value, arg, &capacity);
}

static gb_status define(const reader *r, const char *name, uint32_t producer, uint32_t *index)
{
    BR_TRY(find_value(r, name, index));
    br_value *value = &r->graph->values[*index];
    if (value->is_defined)
        return br_fail(
                GB_INVALID_GRAPH, "%s: makes \"%.100s\", which is there already", r->place, name);
    value->is_defined = true;
    value->producer = producer;
    return GB_SUCCESS;
}

/* Adds the values that an output of a node names: one, a list, or none. */
static gb_status read_output(const reader *r, json_object *object, uint32_t node_index,
        br_node *node, uint32_t *capacity)
{
    const char *key, *name;
    json_object *value;
    BR_TRY(get_union(r, object, &key, &value));
    bool is_list = json_object_is_type(value, json_type_array);
    size_t count = is_list ? json_object_array_length(value) : 1;
    if (count > MOST_ENTRIES)
        return fail_at(r, "a list of too many entries");
    for (size_t i = 0; i < count; i++) {
        json_object *item = is_list ? json_object_array_get_idx(value, i) : value;
        uint32_t index = BR_NONE;
        const char *inner = key;
        if (strcmp(key, "as_optional_tensors") == 0 || strcmp(key, "as_optional_tensor") == 0)
            BR_TRY(get_union(r, item, &inner, &item));
        if (json_object_is_type(item, json_type_object) &&
                (json_object_object_get_ex(item, "name", NULL) ||
                        json_object_object_get_ex(item, "as_name", NULL))) {
            bool is_symbol = json_object_object_get_ex(item, "as_name", NULL);
            BR_TRY(get_text(r, item, is_symbol ? "as_name" : "name", &name));
            if (br_names_find(&r->graph->names, name) != BR_NONE || strstr(inner, "tensor"))
                BR_TRY(define(r, name, node_index, &index));
        }
        if (!br_grow(r->arena, &node->outputs, capacity, node->n_outputs, sizeof *node->outputs))
            return br_out_of_memory();
        node->outputs[node->n_outputs++] = index;
    }
    return GB_SUCCESS;
}

static gb_status name_node(const reader *r, json_object *object, br_node *node, size_t index)
{
    json_object *name;
    BR_TRY(get_optional(r, object, "name", json_type_string, &name));
    if (name)
        return get_text(r, object, "name", &node->name);
    for (uint32_t i = 0; i < node->n_outputs && !node->name; i++)
        if (node->outputs[i] != BR_NONE)
            node->name = r->graph->values[node->outputs[i]].name;
    if (!node->name)
        node->name = br_format(r->arena, "node_%zu", index);
    return node->name ? GB_SUCCESS : br_out_of_memory();
}

static gb_status read_node(reader *r, json_object *object, uint32_t index)
{
    br_node *node = &r->graph->nodes[index];
    json_object *inputs, *outputs;
    uint32_t capacity = 0;
    snprintf(r->place, sizeof r->place, "node %u", index);
    BR_TRY(get_text(r, object, "target", &node->target));
    snprintf(r->place, sizeof r->place, "node %u (%.100s)", index, node->target);
    static const char prefix[] = "torch.ops.";
    bool is_op = strncmp(node->target, prefix, sizeof prefix - 1) == 0;
    node->op = node->target + (is_op ? sizeof prefix - 1 : 0);
    BR_TRY(get_key(r, object, "inputs", json_type_array, &inputs));
    BR_TRY(get_key(r, object, "outputs", json_type_array, &outputs));
    size_t count = json_object_array_length(inputs);
    if (count > MOST_ENTRIES)
        return fail_at(r, "too many inputs");
    node->args = br_alloc(r->arena, count, sizeof *node->args);
    if (!node->args)
        return br_out_of_memory();
    for (; node->n_args < count; node->n_args++) {
        json_object *input = json_object_array_get_idx(inputs, node->n_args), *arg, *name;
        br_arg *made = &node->args[node->n_args];
        made->name = "";
        BR_TRY(get_key(r, input, "arg", json_type_object, &arg));
        BR_TRY(get_optional(r, input, "name", json_type_string, &name));
        if (name)
            BR_TRY(get_text(r, input, "name", &made->name));
        BR_TRY(read_arg(r, arg, made));
    }
    for (size_t i = 0; i < json_object_array_length(outputs); i++)
        BR_TRY(read_output(r, json_object_array_get_idx(outputs, i), index, node, &capacity));
    return name_node(r, object, node, index);
}

/* Inputs and outputs of the graph: arguments that name values; others are passed over. */
static gb_status read_ends(reader *r, json_object *graph, const char *key, uint32_t **ends,
        uint32_t *count, bool are_inputs)
{
    json_object *list;
    snprintf(r->place, sizeof r->place, "%s of the graph", key);
    BR_TRY(get_key(r, graph, key, json_type_array, &list));
    *ends = br_alloc(r->arena, json_object_array_length(list), sizeof **ends);
    if (!*ends)
        return br_out_of_memory();
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        const char *inner, *name;
        json_object *value;
        uint32_t index;
        BR_TRY(get_union(r, json_object_array_get_idx(list, i), &inner, &value));
        bool is_tensor = strcmp(inner, "as_tensor") == 0;
        if (!is_tensor && strncmp(inner, "as_sym_", 7) != 0)
            continue;
        if (!json_object_is_type(value, json_type_object))
            return fail_at(r, "not an object");
        if (!is_tensor && !json_object_object_get_ex(value, "as_name", NULL))
            continue;
        BR_TRY(get_text(r, value, is_tensor ? "name" : "as_name", &name));
        if (are_inputs)
            BR_TRY(define(r, name, BR_NONE, &index));
        else
            BR_TRY(find_defined(r, name, &index));
        if (are_inputs)
            r->graph->values[index].role = BR_USER;
        else
            r->graph->values[index].is_output = true;
        (*ends)[(*count)++] = index;
    }
    return GB_SUCCESS;
}

static const struct {
    const char *key, *qualified_name;
    br_role role;
} input_specs[] = {
        {"parameter", "parameter_name", BR_PARAMETER},
        {"buffer", "buffer_name", BR_BUFFER},
        {"tensor_constant", "tensor_constant_name", BR_CONSTANT},
};

static gb_status read_input_spec(reader *r, json_object *spec)
{
    const char *key, *name;
    json_object *value, *arg;
    BR_TRY(get_union(r, spec, &key, &value));
    for (size_t i = 0; i < BR_COUNT(input_specs); i++) {
        uint32_t index;
        if (strcmp(key, input_specs[i].key) != 0)
            continue;
        BR_TRY(get_key(r, value, "arg", json_type_object, &arg));
        BR_TRY(get_text(r, arg, "name", &name));
        BR_TRY(find_value(r, name, &index));
        br_value *found = &r->graph->values[index];
        if (found->role != BR_USER)
            return fail_at(r, "ties a value that is no input");
        found->role = input_specs[i].role;
        BR_TRY(get_text(r, value, input_specs[i].qualified_name, &found->qualified_name));
    }
    return GB_SUCCESS;
}

/* Outputs that are new contents of a buffer or input: what they are written to is no constant. */
static gb_status read_output_spec(reader *r, json_object *spec)
{
    const char *key, *name;
    json_object *value;
    BR_TRY(get_union(r, spec, &key, &value));
    bool is_input = strcmp(key, "user_input_mutation") == 0;
    bool is_parameter = strcmp(key, "parameter_mutation") == 0;
    if (!is_input && !is_parameter && strcmp(key, "buffer_mutation") != 0)
        return GB_SUCCESS;
    BR_TRY(get_text(r, value,
            is_input ? "user_input_name" : (is_parameter ? "parameter_name" : "buffer_name"),
            &name));
    for (uint32_t i = 0; i < r->graph->n_inputs; i++) {
        br_value *input = &r->graph->values[r->graph->inputs[i]];
        const char *other = is_input ? input->name : input->qualified_name;
        if (other && strcmp(other, name) == 0)
            input->is_written = true;
    }
    return GB_SUCCESS;
}

static gb_status read_signature(reader *r, json_object *signature)
{
    json_object *list;
    snprintf(r->place, sizeof r->place, "signature");
    BR_TRY(get_optional(r, signature, "input_specs", json_type_array, &list));
    for (size_t i = 0; list && i < json_object_array_length(list); i++)
        BR_TRY(read_input_spec(r, json_object_array_get_idx(list, i)));
    BR_TRY(get_optional(r, signature, "output_specs", json_type_array, &list));
    for (size_t i = 0; list && i < json_object_array_length(list); i++)
        BR_TRY(read_output_spec(r, json_object_array_get_idx(list, i)));
    return GB_SUCCESS;
}

/* {"s0": {"min_val": 1, "max_val": 64}}; a bound that is null is open. */
static gb_status read_ranges(reader *r, json_object *root)
{
    json_object *ranges, *bound;
    json_object_iter entry;
    snprintf(r->place, sizeof r->place, "range_constraints");
    BR_TRY(get_optional(r, root, "range_constraints", json_type_object, &ranges));
    if (!ranges)
        return GB_SUCCESS;
    json_object_object_foreachC(ranges, entry)
    {
        set_place(r, "range of", entry.key);
        uint32_t index = br_names_find(&r->graph->symbol_names, entry.key);
        br_symbol *symbol = index == BR_NONE ? NULL : &r->graph->symbols[index];
        BR_TRY(get_optional(r, entry.val, "min_val", json_type_int, &bound));
        if (symbol && bound && json_object_get_int64(bound) > symbol->min)
            symbol->min = json_object_get_int64(bound);
        BR_TRY(get_optional(r, entry.val, "max_val", json_type_int, &bound));
        if (symbol && bound && json_object_get_int64(bound) >= symbol->min)
            symbol->max = json_object_get_int64(bound);
    }
    return GB_SUCCESS;
}

static gb_status read_root(reader *r, json_object *root)
{
    json_object *module = root, *graph, *nodes, *signature;
    if (json_object_is_type(root, json_type_object) &&
            json_object_object_get_ex(root, "graph_module", NULL))
        BR_TRY(get_key(r, root, "graph_module", json_type_object, &module));
    BR_TRY(get_key(r, module, "graph", json_type_object, &graph));
    BR_TRY(get_optional(r, module, "signature", json_type_object, &signature));
    BR_TRY(read_tensor_values(r, graph));
    BR_TRY(read_symbols(r, graph, "sym_int_values"));
    BR_TRY(read_symbols(r, graph, "sym_bool_values"));
    BR_TRY(read_symbols(r, graph, "sym_float_values"));
    BR_TRY(read_ends(r, graph, "inputs", &r->graph->inputs, &r->graph->n_inputs, true));
    snprintf(r->place, sizeof r->place, "graph");
    BR_TRY(get_key(r, graph, "nodes", json_type_array, &nodes));
    size_t count = json_object_array_length(nodes);
    if (count > MOST_ENTRIES)
        return fail_at(r, "too many nodes");
    r->graph->nodes = br_alloc(r->arena, count, sizeof *r->graph->nodes);
    if (!r->graph->nodes)
        return br_out_of_memory();
    for (; r->graph->n_nodes < count; r->graph->n_nodes++)
        BR_TRY(read_node(
                r, json_object_array_get_idx(nodes, r->graph->n_nodes), r->graph->n_nodes));
    BR_TRY(read_ends(r, graph, "outputs", &r->graph->outputs, &r->graph->n_outputs, false));
    if (signature)
        BR_TRY(read_signature(r, signature));
    BR_TRY(br_find_symbols(r->graph));
    return read_ranges(r, root);
}

gb_status br_read_tensor_meta(
        gb_bridge_graph *graph, const char *name, json_object *meta, br_value *value)
{
    reader r = {.graph = graph, .arena = &graph->arena};
    set_place(&r, "contents of", name);
    *value = (br_value){0};
    return read_tensor(&r, meta, value);
}

gb_status br_parse_json(const char *text, size_t length, json_object **root)
{
    if (length > INT_MAX)
        return br_fail(GB_INVALID_GRAPH, "more than 2 GiB of JSON");
    json_tokener *tokener = json_tokener_new_ex(MOST_DEPTH);
    if (!tokener)
        return br_out_of_memory();
    json_object *parsed = json_tokener_parse_ex(tokener, text, (int)length);
    enum json_tokener_error error = json_tokener_get_error(tokener);
    size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    if (error != json_tokener_success) {
        json_object_put(parsed);
        return br_fail(GB_INVALID_GRAPH, "not JSON at byte %zu: %s", end,
                error == json_tokener_continue ? "the text ends too early"
                                               : json_tokener_error_desc(error));
    }
    *root = parsed;
    return GB_SUCCESS;
}

gb_status br_graph_read(gb_bridge_graph *graph, const char *text, size_t length)
{
    json_object *root = NULL;
    BR_TRY(br_parse_json(text, length, &root));
    reader r = {.graph = graph, .arena = &graph->arena, .place = "file"};
    gb_status status = read_root(&r, root);
    json_object_put(root);
    return status;
}
