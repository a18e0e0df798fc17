/* Graphs from JSON: the files that the oneDNN Graph API dumps, of any version, and hand-written
 * ones. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/io/json_value.h"
#include "graph/ir/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef struct op_text {
    gb_graph *graph;
    size_t id;
    gb_op_kind kind;
    const char *name;
    gb_json_item attrs, inputs, outputs; /* key NULL when missing */
    gb_op *op;                           /* owned */
    bool outputs_next;                   /* tensors read are outputs */
} op_text;

static gb_status read_op_id(gb_json_reader *reader, gb_json_item item, void *target)
{
    return gb_json_get_id(reader, item, &((op_text *)target)->id);
}

static gb_status read_op_kind(gb_json_reader *reader, gb_json_item item, void *target)
{
    const char *text;
    GB_TRY(gb_json_get_string(reader, item, &text));
    gb_status status = gb_op_kind_parse(text, &((op_text *)target)->kind);
    return status == GB_SUCCESS ? status
                                : gb_json_fail(reader, item, "unknown op kind \"%.64s\"", text);
}

static gb_status read_op_name(gb_json_reader *reader, gb_json_item item, void *target)
{
    return gb_json_get_string(reader, item, &((op_text *)target)->name);
}

static gb_status keep_attrs(gb_json_reader *reader, gb_json_item item, void *target)
{
    (void)reader;
    ((op_text *)target)->attrs = item;
    return GB_SUCCESS;
}

static gb_status keep_inputs(gb_json_reader *reader, gb_json_item item, void *target)
{
    (void)reader;
    ((op_text *)target)->inputs = item;
    return GB_SUCCESS;
}

static gb_status keep_outputs(gb_json_reader *reader, gb_json_item item, void *target)
{
    (void)reader;
    ((op_text *)target)->outputs = item;
    return GB_SUCCESS;
}

static gb_status read_op_tensor(gb_json_reader *reader, gb_json_item item, void *target)
{
    op_text *text = target;
    gb_logical_tensor tensor;
    GB_TRY(gb_json_read_tensor(reader, item, &tensor));
    gb_status status = text->outputs_next ? gb_op_add_output(text->op, &tensor)
                                          : gb_op_add_input(text->op, &tensor);
    return status == GB_SUCCESS ? status : gb_json_fail_prefix(reader, item, status);
}

static void forget_shape(gb_logical_tensor *tensor)
{
    tensor->ndims = GB_UNKNOWN_NDIMS;
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        tensor->dims[d] = tensor->strides[d] = GB_UNKNOWN_DIM;
}

static bool differ_in_shape_only(gb_logical_tensor known, gb_logical_tensor other)
{
    gb_logical_tensor merged = known;
    if (gb_dims_equal(&known, &other) || gb_logical_tensor_merge(&merged, &other))
        return false;
    forget_shape(&known);
    forget_shape(&other);
    return gb_logical_tensor_merge(&known, &other);
}

static bool is_opened(const gb_json_reader *reader, size_t id)
{
    for (uint32_t i = 0; i < reader->n_opened; i++)
        if (reader->opened[i] == id)
            return true;
    return false;
}

/* Rewritten files often keep a shape that the ops before no longer make: a tensor with two of them
 * has neither. */
static gb_status open_shape(gb_json_reader *reader, gb_graph *graph, gb_logical_tensor *tensor)
{
    uint32_t value = gb_graph_find_value(graph, tensor->id);
    if (value == GB_NONE)
        return GB_SUCCESS;
    gb_logical_tensor known = graph->values[value].tensor;
    if (!is_opened(reader, tensor->id)) {
        if (!differ_in_shape_only(known, *tensor))
            return GB_SUCCESS;
        if (!gb_reserve(&reader->opened, &reader->opened_capacity, (size_t)reader->n_opened + 1,
                    sizeof *reader->opened))
            return GB_OUT_OF_MEMORY;
        reader->opened[reader->n_opened++] = tensor->id;
        char message[320];
        snprintf(message, sizeof message,
                "tensor %zu is described with two shapes, %s and %s; it is left to inference",
                tensor->id, gb_tensor_label(&known), gb_tensor_label(tensor));
        gb_json_note(&reader->json, reader->json.text, message);
    }
    forget_shape(&known);
    forget_shape(tensor);
    return gb_graph_set_tensor(graph, &known);
}

static gb_status open_shapes(gb_json_reader *reader, const op_text *text)
{
    for (uint32_t i = 0; i < text->op->n_own; i++)
        GB_TRY(open_shape(reader, text->graph, &text->op->own[i]));
    return GB_SUCCESS;
}

/* The op is known by id and kind: the rest can be read with messages that name it. */
static gb_status read_op_contents(gb_json_reader *reader, gb_json_item item, op_text *text)
{
    if (text->attrs.key)
        GB_TRY(gb_json_read_attrs(reader, text->attrs, text->op));
    if (text->inputs.key) {
        GB_TRY(gb_json_read_list(reader, text->inputs, read_op_tensor, text));
    }
    text->outputs_next = true;
    if (text->outputs.key) {
        GB_TRY(gb_json_read_list(reader, text->outputs, read_op_tensor, text));
    }
    GB_TRY(open_shapes(reader, text));
    gb_status status = gb_graph_add_op(text->graph, text->op);
    return status == GB_SUCCESS ? status : gb_json_fail_prefix(reader, item, status);
}

static gb_status read_op(gb_json_reader *reader, gb_json_item item, void *graph)
{
    static const gb_json_field fields[] = {
            {"id", true, read_op_id},
            {"name", false, read_op_name},
            {"kind", true, read_op_kind},
            {"attrs", false, keep_attrs},
            {"inputs", false, keep_inputs},
            {"outputs", false, keep_outputs},
    };
    op_text text = {.graph = graph, .name = ""};
    GB_TRY(gb_json_read_fields(reader, item, fields, COUNT(fields), &text));
    GB_TRY(gb_op_create(&text.op, text.id, text.kind, text.name));
    reader->op = text.op;
    gb_status status = read_op_contents(reader, item, &text);
    reader->op = NULL;
    gb_op_destroy(text.op);
    return status;
}

static gb_status read_version(gb_json_reader *reader, gb_json_item item, void *target)
{
    gb_graph *graph = target;
    const char *text;
    GB_TRY(gb_json_get_string(reader, item, &text));
    snprintf(graph->version, sizeof graph->version, "%s", text);
    return GB_SUCCESS;
}

static gb_status read_engine_kind(gb_json_reader *reader, gb_json_item item, void *target)
{
    gb_graph *graph = target;
    const char *text;
    GB_TRY(gb_json_get_string(reader, item, &text));
    if (gb_engine_kind_parse(text, &graph->engine_kind) == GB_SUCCESS)
        return GB_SUCCESS;
    return gb_json_fail(reader, item, "unknown engine kind \"%.64s\"", text);
}

static gb_status read_fpmath_mode(gb_json_reader *reader, gb_json_item item, void *target)
{
    gb_graph *graph = target;
    const char *text;
    GB_TRY(gb_json_get_string(reader, item, &text));
    if (!*text)
        return GB_SUCCESS; /* the default */
    if (gb_fpmath_mode_parse(text, &graph->fpmath_mode) == GB_SUCCESS)
        return GB_SUCCESS;
    return gb_json_fail(reader, item, "unknown fpmath mode \"%.64s\"", text);
}

/* Dumps write the words true and false as strings. */
static gb_status read_apply_to_int(gb_json_reader *reader, gb_json_item item, void *target)
{
    gb_graph *graph = target;
    const char *text;
    if (!json_object_is_type(item.value, json_type_string)) {
        return gb_json_get_bool(reader, item, &graph->fpmath_apply_to_int);
    }
    GB_TRY(gb_json_get_string(reader, item, &text));
    bool on = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!on && *text && strcasecmp(text, "false") != 0 && strcmp(text, "0") != 0) {
        return gb_json_fail(
                reader, item, "\"%s\" is \"%.32s\", expected true or false", item.key, text);
    }
    graph->fpmath_apply_to_int = on;
    return GB_SUCCESS;
}

static gb_status check_port(gb_json_reader *reader, gb_json_item item, void *target)
{
    (void)target;
    size_t id;
    return gb_json_get_id(reader, item, &id);
}

/* Ports follow from the ops, and files are often wrong about them: only their form is checked. */
static gb_status read_ports(gb_json_reader *reader, gb_json_item item, void *target)
{
    return gb_json_read_list(reader, item, check_port, target);
}

static gb_status read_ops(gb_json_reader *reader, gb_json_item item, void *graph)
{
    GB_TRY(gb_json_read_list(reader, item, read_op, graph));
    if (gb_graph_get_op_num(graph) > 0)
        return GB_SUCCESS;
    return gb_json_fail(reader, item, "the graph has no ops");
}

static gb_status read_graph(gb_json_reader *reader, gb_graph *graph)
{
    static const gb_json_field fields[] = {
            {"version", false, read_version},
            {"engine_kind", false, read_engine_kind},
            {"fpmath_mode", false, read_fpmath_mode},
            {"fpmath_mode_apply_to_int", false, read_apply_to_int},
            {"attrs", false, gb_json_read_graph_attrs},
            {"input_ports", false, read_ports},
            {"output_ports", false, read_ports},
            {"graph", true, read_ops},
    };
    gb_json_item root = {reader->json.root, reader->json.root, "graph"};
    GB_TRY(gb_json_read_fields(reader, root, fields, COUNT(fields), graph));
    gb_status status = gb_graph_check(graph);
    return status == GB_SUCCESS ? status : gb_fail_prefix(status, "%s", reader->json.name);
}

gb_status gb_graph_parse_json(gb_graph **graph, const char *text, size_t length, const char *name,
        gb_note_fn note, void *context)
{
    if (!graph || !text || !name) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_parse_json: NULL argument");
    }
    gb_json_reader reader = {.json = {.name = name,
                                     .text = text,
                                     .length = length,
                                     .note = note,
                                     .note_context = context}};
    gb_graph *read = NULL;
    GB_TRY(gb_json_parse(&reader.json));
    gb_status status = gb_graph_create(&read, GB_ENGINE_ANY);
    if (status == GB_SUCCESS)
        status = read_graph(&reader, read);
    gb_json_free(&reader.json);
    free(reader.opened);
    if (status == GB_SUCCESS) {
        *graph = read;
    } else {
        gb_graph_destroy(read);
    }
    return status;
}
