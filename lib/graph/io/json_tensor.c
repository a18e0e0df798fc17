/* Logical tensors from JSON. */
#include "base/status.h"
#include "graph/io/json_value.h"
#include "graph/ir/graph.h"

#include <string.h>

/* A list of dims or strides; the file's one-element list [INT64_MIN], or [-1], stands for all of
 * them being unknown. */
typedef struct sizes {
    gb_json_item item; /* key NULL when missing */
    int count;
    int64_t values[GB_MAX_NDIMS];
} sizes;

typedef struct tensor_text {
    size_t id;
    gb_data_type type;
    sizes shape, strides;
    gb_layout_type layout;
    const char *layout_name; /* of an opaque one; lent by the document */
    gb_json_item layout_item;
    gb_property property;
} tensor_text;

static gb_status read_id(gb_json_reader *reader, gb_json_item item, void *target)
{
    return gb_json_get_id(reader, item, &((tensor_text *)target)->id);
}

static gb_status read_type(gb_json_reader *reader, gb_json_item item, void *target)
{
    const char *text;
    GB_TRY(gb_json_get_string(reader, item, &text));
    if (gb_data_type_parse(text, &((tensor_text *)target)->type) == GB_SUCCESS)
        return GB_SUCCESS;
    if (strcmp(text, "undef") != 0) {
        return gb_json_fail(reader, item, "unknown data type \"%.64s\"", text);
    }
    if (reader->op->kind == GB_OP_END || reader->op->kind == GB_OP_WILDCARD)
        return GB_SUCCESS;
    return gb_json_fail(reader, item, "the data type is undef");
}

static gb_status read_size(gb_json_reader *reader, gb_json_item item, void *target)
{
    sizes *list = target;
    int64_t value;
    GB_TRY(gb_json_get_s64(reader, item, &value));
    if (!gb_is_size(value)) {
        return gb_json_fail(
                reader, item, "\"%s\" holds %lld, which is negative", item.key, (long long)value);
    }
    if (list->count == GB_MAX_NDIMS) {
        return gb_json_fail(
                reader, list->item, "\"%s\" has more than %d values", item.key, GB_MAX_NDIMS);
    }
    list->values[list->count++] = value < 0 ? GB_UNKNOWN_DIM : value;
    return GB_SUCCESS;
}

static gb_status read_shape(gb_json_reader *reader, gb_json_item item, void *target)
{
    sizes *shape = &((tensor_text *)target)->shape;
    shape->item = item;
    return gb_json_read_list(reader, item, read_size, shape);
}

/* They are read when the layout is known. */
static gb_status keep_strides(gb_json_reader *reader, gb_json_item item, void *target)
{
    ((tensor_text *)target)->strides.item = item;
    return gb_json_expect(reader, item, json_type_array);
}

/* Layouts other than any and opaque mean strides; undef says that they are not known yet. */
static gb_status read_layout(gb_json_reader *reader, gb_json_item item, void *target)
{
    const char *text;
    gb_layout_type layout;
    GB_TRY(gb_json_get_string(reader, item, &text));
    if (gb_layout_type_parse(text, &layout) != GB_SUCCESS) {
        return gb_json_fail(reader, item, "unknown layout type \"%.64s\"", text);
    }
    tensor_text *tensor = target;
    bool strided = layout == GB_LAYOUT_UNDEF || layout == GB_LAYOUT_STRIDED;
    tensor->layout = strided ? GB_LAYOUT_STRIDED : layout;
    tensor->layout_item = item;
    return GB_SUCCESS;
}

static gb_status read_layout_name(gb_json_reader *reader, gb_json_item item, void *target)
{
    return gb_json_get_string(reader, item, &((tensor_text *)target)->layout_name);
}

static gb_status read_property(gb_json_reader *reader, gb_json_item item, void *target)
{
    const char *text;
    GB_TRY(gb_json_get_string(reader, item, &text));
    if (gb_property_parse(text, &((tensor_text *)target)->property) == GB_SUCCESS) {
        return GB_SUCCESS;
    }
    return gb_json_fail(reader, item, "unknown property type \"%.64s\"", text);
}

static bool is_unknown(const sizes *list)
{
    return list->count == 1 && list->values[0] == GB_UNKNOWN_DIM;
}

/* What a dump has in the place of strides means nothing for other layouts and for scalars: its maker
 * writes whatever lies there, the number of a format for instance. */
static gb_status read_strides(gb_json_reader *reader, tensor_text *text)
{
    if (text->layout != GB_LAYOUT_STRIDED || text->shape.count == 0)
        text->strides.item.key = NULL;
    if (text->strides.item.key)
        GB_TRY(gb_json_read_list(reader, text->strides.item, read_size, &text->strides));
    if (!text->strides.item.key || is_unknown(&text->strides))
        return GB_SUCCESS;
    if (is_unknown(&text->shape)) {
        return gb_json_fail(reader, text->strides.item, "\"stride\" is known, \"shape\" is not");
    }
    if (text->strides.count == text->shape.count)
        return GB_SUCCESS;
    return gb_json_fail(reader, text->strides.item, "\"stride\" has %d values, \"shape\" has %d",
            text->strides.count, text->shape.count);
}

/* An opaque layout without a name is known to the library that dumped it only: ours may choose one.
 */
static void settle_layout(gb_json_reader *reader, tensor_text *text)
{
    if (text->layout != GB_LAYOUT_OPAQUE || text->layout_name)
        return;
    gb_json_note_key(reader, text->layout_item, "took layout opaque for any in");
    text->layout = GB_LAYOUT_ANY;
}

static gb_status build_opaque(const tensor_text *text, gb_logical_tensor *tensor)
{
    GB_TRY(gb_logical_tensor_init_with_dims(tensor, text->id, text->type, text->shape.count,
            text->shape.values, GB_LAYOUT_ANY, text->property));
    return gb_logical_tensor_set_layout(tensor, text->layout_name);
}

static gb_status json_tensor_build(tensor_text *text, gb_logical_tensor *tensor)
{
    if (text->layout == GB_LAYOUT_OPAQUE && !is_unknown(&text->shape))
        return build_opaque(text, tensor);
    if (is_unknown(&text->shape)) {
        gb_layout_type layout = text->layout == GB_LAYOUT_OPAQUE ? GB_LAYOUT_ANY : text->layout;
        return gb_logical_tensor_init(
                tensor, text->id, text->type, GB_UNKNOWN_NDIMS, layout, text->property);
    }
    if (text->layout == GB_LAYOUT_ANY || !text->strides.item.key) { /* missing strides are dense */
        return gb_logical_tensor_init_with_dims(tensor, text->id, text->type, text->shape.count,
                text->shape.values, text->layout, text->property);
    }
    if (is_unknown(&text->strides)) {
        for (int d = 0; d < text->shape.count; d++)
            text->strides.values[d] = GB_UNKNOWN_DIM;
    }
    return gb_logical_tensor_init_with_strides(tensor, text->id, text->type, text->shape.count,
            text->shape.values, text->strides.values, text->property);
}

static gb_status read_tensor(gb_json_reader *reader, gb_json_item item, gb_logical_tensor *tensor)
{
    static const gb_json_field fields[] = {
            {"id", true, read_id},
            {"dtype", true, read_type},
            {"shape", true, read_shape},
            {"stride", false, keep_strides},
            {"layout_type", false, read_layout},
            {"layout", false, read_layout_name},
            {"property_type", false, read_property},
    };
    tensor_text text = {.layout = GB_LAYOUT_STRIDED};
    GB_TRY(gb_json_read_fields(reader, item, fields, sizeof fields / sizeof fields[0], &text));
    GB_TRY(read_strides(reader, &text));
    settle_layout(reader, &text);
    gb_status status = json_tensor_build(&text, tensor);
    if (status == GB_SUCCESS)
        return status;
    gb_fail_prefix(status, "%s", gb_op_label(reader->op));
    return gb_json_fail_prefix(reader, item, status);
}

/* The id goes first, wherever it stands, so that messages can name the tensor. */
gb_status gb_json_read_tensor(gb_json_reader *reader, gb_json_item item, gb_logical_tensor *tensor)
{
    json_object *id;
    GB_TRY(gb_json_expect(reader, item, json_type_object));
    if (json_object_object_get_ex(item.value, "id", &id)) {
        GB_TRY(gb_json_get_id(reader, (gb_json_item){id, item.value, "id"}, &reader->tensor_id));
        reader->in_tensor = true;
    }
    gb_status status = read_tensor(reader, item, tensor);
    reader->in_tensor = false;
    return status;
}
