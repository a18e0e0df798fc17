/* Attributes of ops from the text form. */
#include "graph/io/text_reader.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* One element of a list attribute, or a single number. */
static gb_status read_element(gb_text_reader *r, bool integers, void *values, size_t i)
{
    return integers ? gb_text_read_s64(r, (int64_t *)values + i)
                    : gb_text_read_f32(r, (float *)values + i);
}

static gb_status read_elements(
        gb_text_reader *r, bool integers, char **values, uint32_t *capacity, size_t *count)
{
    size_t size = integers ? sizeof(int64_t) : sizeof(float);
    GB_TRY(gb_text_expect(r, '['));
    if (gb_text_take(r, ']'))
        return GB_SUCCESS;
    do {
        if (!gb_reserve(values, capacity, (*count + 1) * size, 1))
            return GB_OUT_OF_MEMORY;
        GB_TRY(read_element(r, integers, *values, (*count)++));
    } while (gb_text_take(r, ','));
    return gb_text_expect(r, ']');
}

static gb_status set_list(gb_text_reader *r, gb_op_attr attr, bool integers)
{
    char *values = NULL;
    uint32_t capacity = 0;
    size_t count = 0;
    gb_status status =
            gb_reserve(&values, &capacity, sizeof(int64_t), 1) ? GB_SUCCESS : GB_OUT_OF_MEMORY;
    if (status == GB_SUCCESS)
        status = read_elements(r, integers, &values, &capacity, &count);
    if (status == GB_SUCCESS && integers)
        status = gb_op_set_attr_s64(r->op, attr, count, (const int64_t *)(const void *)values);
    else if (status == GB_SUCCESS)
        status = gb_op_set_attr_f32(r->op, attr, count, (const float *)(const void *)values);
    free(values);
    return status;
}

static gb_status text_attr_set_attr(gb_text_reader *r, gb_op_attr attr)
{
    union {
        float f32;
        int64_t s64;
    } value;
    bool truth;
    switch (gb_op_attr_type(attr)) {
    case GB_ATTR_TYPE_F32:
        GB_TRY(gb_text_read_f32(r, &value.f32));
        return gb_op_set_attr_f32(r->op, attr, 1, &value.f32);
    case GB_ATTR_TYPE_S64:
        GB_TRY(gb_text_read_s64(r, &value.s64));
        return gb_op_set_attr_s64(r->op, attr, 1, &value.s64);
    case GB_ATTR_TYPE_BOOL:
        GB_TRY(gb_text_read_bool(r, &truth));
        return gb_op_set_attr_bool(r->op, attr, 1, &(uint8_t){truth});
    case GB_ATTR_TYPE_STRING:
        GB_TRY(gb_text_read_string(r));
        return gb_op_set_attr_str(r->op, attr, r->string, strlen(r->string));
    default:
        return set_list(r, attr, gb_op_attr_type(attr) == GB_ATTR_TYPE_S64S);
    }
}

gb_status gb_text_read_attr(gb_text_reader *r)
{
    char word[GB_TEXT_WORD];
    gb_op_attr attr;
    const char *start = r->at;
    GB_TRY(gb_text_read_word(r, "_.", "an attribute", word));
    bool known = gb_op_attr_parse(word, &attr) == GB_SUCCESS && !gb_attr_is_note(attr);
    if (!known || (r->op == r->graph->attrs && !gb_attr_is_defined(attr)))
        return gb_text_fail(r, start, "unknown attribute \"%s\"", word);
    if (gb_op_find_attr(r->op, attr))
        return gb_text_fail(r, start, "attribute \"%s\" is set twice", word);
    GB_TRY(gb_text_expect(r, '='));
    start = r->at;
    gb_status status = text_attr_set_attr(r, attr);
    /* faults of the text name their place already */
    return status == GB_INVALID_ARGUMENTS ? gb_text_prefix(r, start, status) : status;
}
