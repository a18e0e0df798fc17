/* Logical tensors from the text form. */
#include "graph/io/text_reader.h"
#include "graph/ir/format.h"

#include "base/status.h"

#include <string.h>

static gb_status read_sizes(gb_text_reader *r, int64_t sizes[GB_MAX_NDIMS], int *count)
{
    *count = 0;
    do {
        size_t size;
        if (*count == GB_MAX_NDIMS)
            return gb_text_fail(r, r->at, "more than %d sizes", GB_MAX_NDIMS);
        if (gb_text_take(r, '?') || gb_text_take_text(r, "-1")) {
            sizes[(*count)++] = GB_UNKNOWN_DIM;
            continue;
        }
        GB_TRY(gb_text_read_unsigned(r, "a size or ?", &size));
        if (size > INT64_MAX)
            return gb_text_fail(r, r->at, "a size that does not fit s64");
        sizes[(*count)++] = (int64_t)size;
    } while (gb_text_take(r, 'x'));
    return GB_SUCCESS;
}

static gb_status read_shape(gb_text_reader *r, gb_logical_tensor *tensor, bool *has_strides)
{
    int count;
    if (gb_text_take_text(r, "...")) {
        tensor->ndims = GB_UNKNOWN_NDIMS;
        return GB_SUCCESS;
    }
    if (!gb_text_take_text(r, "scalar"))
        GB_TRY(read_sizes(r, tensor->dims, &tensor->ndims));
    const char *star = r->at;
    *has_strides = gb_text_take(r, '*');
    if (!*has_strides)
        return GB_SUCCESS;
    GB_TRY(read_sizes(r, tensor->strides, &count));
    return count == tensor->ndims
                   ? GB_SUCCESS
                   : gb_text_fail(r, star, "%d strides for %d dims", count, tensor->ndims);
}

/* "any" and the like, or the text of an opaque layout, whose id is kept until there are dims.
 * "opaque" alone says nothing: ours may choose one. */
static gb_status parse_layout(const char *word, gb_logical_tensor *tensor)
{
    const gb_format *format;
    tensor->layout_id = 0;
    if (gb_layout_type_parse(word, &tensor->layout_type) == GB_SUCCESS) {
        if (tensor->layout_type == GB_LAYOUT_OPAQUE)
            tensor->layout_type = GB_LAYOUT_ANY;
        return GB_SUCCESS;
    }
    GB_TRY(gb_format_parse(word, &format));
    tensor->layout_type = GB_LAYOUT_ANY;
    tensor->layout_id = format->id;
    return GB_SUCCESS;
}

/* ":layout=any", ":constant" and the like, any number. */
static gb_status read_properties(gb_text_reader *r, gb_logical_tensor *tensor)
{
    while (gb_text_take(r, ':')) {
        char word[GB_TEXT_WORD];
        bool is_layout = gb_text_take_text(r, "layout=");
        const char *start = r->at;
        GB_TRY(gb_text_read_word(r, "_", is_layout ? "a layout" : "a property", word));
        gb_status status =
                is_layout ? parse_layout(word, tensor) : gb_property_parse(word, &tensor->property);
        if (status != GB_SUCCESS)
            return gb_text_fail(
                    r, start, "unknown %s \"%s\"", is_layout ? "layout" : "property", word);
    }
    return GB_SUCCESS;
}

/* The rest of a description, from its first colon on. */
static gb_status read_description(gb_text_reader *r, gb_logical_tensor *tensor)
{
    gb_logical_tensor text = {.id = tensor->id, .layout_type = GB_LAYOUT_STRIDED};
    char word[GB_TEXT_WORD];
    bool has_strides = false;
    const char *start = r->at;
    GB_TRY(gb_text_read_word(r, "_", "a data type", word));
    if (strcmp(word, "undef") != 0 && gb_data_type_parse(word, &text.data_type) != GB_SUCCESS)
        return gb_text_fail(r, start, "unknown data type \"%s\"", word);
    GB_TRY(gb_text_expect(r, ':'));
    GB_TRY(read_shape(r, &text, &has_strides));
    GB_TRY(read_properties(r, &text));
    gb_status status;
    if (text.ndims == GB_UNKNOWN_NDIMS)
        status = gb_logical_tensor_init(
                tensor, text.id, text.data_type, text.ndims, text.layout_type, text.property);
    else if (has_strides && text.layout_type == GB_LAYOUT_STRIDED)
        status = gb_logical_tensor_init_with_strides(tensor, text.id, text.data_type, text.ndims,
                text.dims, text.strides, text.property);
    else
        status = gb_logical_tensor_init_with_dims(tensor, text.id, text.data_type, text.ndims,
                text.dims, text.layout_type, text.property);
    if (status == GB_SUCCESS && text.layout_id && text.ndims != GB_UNKNOWN_NDIMS)
        status = gb_logical_tensor_set_layout(tensor, gb_format_find(text.layout_id)->text);
    return status == GB_SUCCESS || status == GB_OUT_OF_MEMORY ? status
                                                              : gb_text_prefix(r, start, status);
}

/* What was said of the tensor before: by this op or by another. */
static const gb_logical_tensor *find_described(const gb_text_reader *r, size_t id)
{
    for (uint32_t i = 0; i < r->n_outputs; i++)
        if (r->outputs[i].id == id)
            return &r->outputs[i];
    for (uint32_t i = 0; r->op && i < r->op->n_inputs; i++)
        if (gb_op_input(r->op, i)->id == id)
            return gb_op_input(r->op, i);
    uint32_t value = gb_graph_find_value(r->graph, id);
    return value == GB_NONE ? NULL : &r->graph->values[value].tensor;
}

gb_status gb_text_read_tensor(gb_text_reader *r, gb_logical_tensor *tensor)
{
    gb_text_skip_blanks(r);
    const char *start = r->at;
    GB_TRY(gb_text_expect(r, '%'));
    GB_TRY(gb_text_read_unsigned(r, "the id of a tensor", &tensor->id));
    if (gb_text_take(r, ':'))
        return read_description(r, tensor);
    const gb_logical_tensor *known = find_described(r, tensor->id);
    if (!known)
        return gb_text_fail(
                r, start, "tensor %zu is not described where it is first mentioned", tensor->id);
    *tensor = *known;
    return GB_SUCCESS;
}
