/* Attributes of ops from JSON. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/io/json_value.h"
#include "graph/ir/graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct attr_text {
    gb_op *op;
    gb_op_attr name;
    gb_json_item value;
} attr_text;

static gb_status read_attr_type(gb_json_reader *reader, gb_json_item item, void *target)
{
    const attr_text *attr = target;
    const char *text, *natural = gb_attr_type_name(gb_op_attr_type(attr->name));
    GB_TRY(gb_json_get_string(reader, item, &text));
    if (strcmp(text, natural) == 0)
        return GB_SUCCESS;
    return gb_json_fail(reader, item, "attribute \"%s\" has type \"%.32s\", expected \"%s\"",
            gb_op_attr_name(attr->name), text, natural);
}

static gb_status read_attr_value(gb_json_reader *reader, gb_json_item item, void *target)
{
    (void)reader;
    attr_text *attr = target;
    attr->value = (gb_json_item){item.value, item.parent, gb_op_attr_name(attr->name)};
    return GB_SUCCESS;
}

static gb_status set_f32s(gb_json_reader *reader, const attr_text *attr, size_t count)
{
    float *values = gb_calloc(count, sizeof *values);
    if (!values)
        return GB_OUT_OF_MEMORY;
    gb_status status = GB_SUCCESS;
    for (size_t i = 0; i < count && status == GB_SUCCESS; i++) {
        gb_json_item element = {json_object_array_get_idx(attr->value.value, i), attr->value.value,
                attr->value.key};
        status = gb_json_get_f32(reader, element, &values[i]);
    }
    if (status == GB_SUCCESS)
        status = gb_op_set_attr_f32(attr->op, attr->name, count, values);
    free(values);
    return status;
}

static gb_status set_s64s(gb_json_reader *reader, const attr_text *attr, size_t count)
{
    int64_t *values = gb_calloc(count, sizeof *values);
    if (!values)
        return GB_OUT_OF_MEMORY;
    gb_status status = GB_SUCCESS;
    for (size_t i = 0; i < count && status == GB_SUCCESS; i++) {
        gb_json_item element = {json_object_array_get_idx(attr->value.value, i), attr->value.value,
                attr->value.key};
        status = gb_json_get_s64(reader, element, &values[i]);
    }
    if (status == GB_SUCCESS)
        status = gb_op_set_attr_s64(attr->op, attr->name, count, values);
    free(values);
    return status;
}

static gb_status set_string(gb_json_reader *reader, const attr_text *attr)
{
    const char *text;
    GB_TRY(gb_json_get_string(reader, attr->value, &text));
    if (*text)
        return gb_op_set_attr_str(attr->op, attr->name, text, strlen(text));
    return gb_json_fail(
            reader, attr->value, "attribute \"%s\" is an empty string", attr->value.key);
}

static gb_status json_attr_set_attr(gb_json_reader *reader, const attr_text *attr)
{
    gb_attr_type type = gb_op_attr_type(attr->name);
    bool truth;
    float f32;
    int64_t s64;
    switch (type) {
    case GB_ATTR_TYPE_F32:
        GB_TRY(gb_json_get_f32(reader, attr->value, &f32));
        return gb_op_set_attr_f32(attr->op, attr->name, 1, &f32);
    case GB_ATTR_TYPE_S64:
        GB_TRY(gb_json_get_s64(reader, attr->value, &s64));
        return gb_op_set_attr_s64(attr->op, attr->name, 1, &s64);
    case GB_ATTR_TYPE_BOOL:
        GB_TRY(gb_json_get_bool(reader, attr->value, &truth));
        return gb_op_set_attr_bool(attr->op, attr->name, 1, &(uint8_t){truth});
    case GB_ATTR_TYPE_STRING:
        return set_string(reader, attr);
    default:
        break;
    }
    GB_TRY(gb_json_expect(reader, attr->value, json_type_array));
    size_t count = json_object_array_length(attr->value.value);
    return type == GB_ATTR_TYPE_F32S ? set_f32s(reader, attr, count)
                                     : set_s64s(reader, attr, count);
}

static bool is_dump_only(const char *name)
{
    return strcmp(name, "partition_id") == 0 || strcmp(name, "backend") == 0;
}

static gb_status read_attr(gb_json_reader *reader, gb_json_item item, gb_op *op)
{
    static const gb_json_field fields[] = {
            {"type", true, read_attr_type},
            {"value", true, read_attr_value},
    };
    attr_text attr = {.op = op};
    if (is_dump_only(item.key)) {
        gb_json_note_key(reader, item, "skipped the dump-only attribute");
        return GB_SUCCESS;
    }
    if (gb_op_attr_parse(item.key, &attr.name) != GB_SUCCESS || gb_attr_is_note(attr.name)) {
        return gb_json_fail(reader, item, "unknown attribute \"%.64s\"", item.key);
    }
    GB_TRY(gb_json_read_fields(reader, item, fields, sizeof fields / sizeof fields[0], &attr));
    return json_attr_set_attr(reader, &attr);
}

gb_status gb_json_read_graph_attrs(gb_json_reader *reader, gb_json_item item, void *target)
{
    gb_graph *graph = target;
    json_object_iter member;
    gb_op *carrier;
    GB_TRY(gb_json_expect(reader, item, json_type_object));
    GB_TRY(gb_graph_attr_carrier(graph, &carrier));
    json_object_object_foreachC(item.value, member)
    {
        gb_json_item attr = {member.val, item.value, member.key};
        gb_op_attr name;
        if (gb_op_attr_parse(member.key, &name) != GB_SUCCESS || !gb_attr_is_defined(name) ||
                gb_attr_is_note(name))
            gb_json_note_key(reader, attr, "skipped the unknown attribute of the graph");
        else
            GB_TRY(read_attr(reader, attr, carrier));
    }
    return GB_SUCCESS;
}

gb_status gb_json_read_attrs(gb_json_reader *reader, gb_json_item item, gb_op *op)
{
    GB_TRY(gb_json_expect(reader, item, json_type_object));
    json_object_iter member;
    json_object_object_foreachC(item.value, member)
    {
        GB_TRY(read_attr(reader, (gb_json_item){member.val, item.value, member.key}, op));
    }
    return GB_SUCCESS;
}
