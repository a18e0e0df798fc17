/* Typed reading of JSON values, with messages that name the place, the op and the tensor. */
#include "graph/io/json_value.h"

#include "base/status.h"
#include "graph/ir/graph.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *source_of(const gb_json_reader *reader, gb_json_item item)
{
    return gb_json_source(&reader->json, item.value ? item.value : item.parent);
}

gb_status gb_json_fail_prefix(gb_json_reader *reader, gb_json_item item, gb_status status)
{
    gb_json_place place = gb_json_find(&reader->json, source_of(reader, item));
    return gb_fail_prefix(status, "%s:%zu:%zu", reader->json.name, place.line, place.column);
}

gb_status gb_json_fail(gb_json_reader *reader, gb_json_item item, const char *format, ...)
{
    const gb_status status = GB_INVALID_GRAPH;
    va_list args;
    va_start(args, format);
    gb_set_error_list(format, args);
    va_end(args);
    if (reader->in_tensor)
        gb_fail_prefix(status, "tensor %zu", reader->tensor_id);
    if (reader->op)
        gb_fail_prefix(status, "%s", gb_op_label(reader->op));
    return gb_json_fail_prefix(reader, item, status);
}

void gb_json_note_key(gb_json_reader *reader, gb_json_item item, const char *text)
{
    if (reader->n_noted == GB_JSON_NOTED_MAX)
        return;
    for (uint32_t i = 0; i < reader->n_noted; i++) {
        if (strcmp(reader->noted[i], item.key) == 0)
            return;
    }
    reader->noted[reader->n_noted++] = item.key;
    char message[256];
    snprintf(message, sizeof message, "%s \"%.64s\"%s", text, item.key,
            reader->n_noted == GB_JSON_NOTED_MAX ? " (no further notes)" : "");
    gb_json_note(&reader->json, source_of(reader, item), message);
}

static const gb_json_field *find_field(const gb_json_field *fields, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(fields[i].key, key) == 0)
            return &fields[i];
    }
    return NULL;
}

gb_status gb_json_read_fields(gb_json_reader *reader, gb_json_item object,
        const gb_json_field *fields, size_t n_fields, void *target)
{
    GB_TRY(gb_json_expect(reader, object, json_type_object));
    for (size_t i = 0; i < n_fields; i++) {
        if (!fields[i].required || json_object_object_get_ex(object.value, fields[i].key, NULL)) {
            continue;
        }
        return gb_json_fail(reader, object, "key \"%s\" is missing", fields[i].key);
    }
    json_object_iter iterator;
    json_object_object_foreachC(object.value, iterator)
    {
        gb_json_item member = {iterator.val, object.value, iterator.key};
        const gb_json_field *field = find_field(fields, n_fields, member.key);
        if (!field) {
            gb_json_note_key(reader, member, "skipped the unknown key");
        } else {
            GB_TRY(field->read(reader, member, target));
        }
    }
    return GB_SUCCESS;
}

gb_status gb_json_read_list(gb_json_reader *reader, gb_json_item list,
        gb_status (*read)(gb_json_reader *reader, gb_json_item item, void *target), void *target)
{
    GB_TRY(gb_json_expect(reader, list, json_type_array));
    size_t count = json_object_array_length(list.value);
    for (size_t i = 0; i < count; i++) {
        json_object *element = json_object_array_get_idx(list.value, i);
        GB_TRY(read(reader, (gb_json_item){element, list.value, list.key}, target));
    }
    return GB_SUCCESS;
}

static const char *type_name(json_type type)
{
    switch (type) {
    case json_type_null:
        return "null";
    case json_type_boolean:
        return "true or false";
    case json_type_double:
        return "a number with a fraction";
    case json_type_int:
        return "an integer";
    case json_type_object:
        return "an object";
    case json_type_array:
        return "a list";
    case json_type_string:
        return "a string";
    }
    return "unknown";
}

/* Bare inf and nan came out of the parser as strings. */
static bool is_bare_word(const gb_json_reader *reader, gb_json_item item)
{
    return json_object_is_type(item.value, json_type_string) && *source_of(reader, item) != '"';
}

static gb_status fail_type(gb_json_reader *reader, gb_json_item item, const char *expected)
{
    const char *found = is_bare_word(reader, item) ? "a special number"
                                                   : type_name(json_object_get_type(item.value));
    return gb_json_fail(
            reader, item, "\"%.64s\" is %s where %s is expected", item.key, found, expected);
}

gb_status gb_json_expect(gb_json_reader *reader, gb_json_item item, json_type type)
{
    if (json_object_is_type(item.value, type) && !is_bare_word(reader, item))
        return GB_SUCCESS;
    return fail_type(reader, item, type_name(type));
}

gb_status gb_json_get_string(gb_json_reader *reader, gb_json_item item, const char **text)
{
    GB_TRY(gb_json_expect(reader, item, json_type_string));
    *text = json_object_get_string(item.value);
    if (strlen(*text) == (size_t)json_object_get_string_len(item.value))
        return GB_SUCCESS;
    return gb_json_fail(reader, item, "\"%.64s\" holds a NUL character", item.key);
}

/* The number is read again from the text: json-c silently clips what does not fit. */
gb_status gb_json_get_id(gb_json_reader *reader, gb_json_item item, size_t *id)
{
    GB_TRY(gb_json_expect(reader, item, json_type_int));
    const char *source = source_of(reader, item);
    if (*source == '-')
        return gb_json_fail(reader, item, "\"%.64s\" is a negative id", item.key);
    errno = 0;
    *id = strtoull(source, NULL, 10);
    if (errno == 0)
        return GB_SUCCESS;
    return gb_json_fail(reader, item, "\"%.64s\" is an id that does not fit 64 bits", item.key);
}

gb_status gb_json_get_s64(gb_json_reader *reader, gb_json_item item, int64_t *number)
{
    GB_TRY(gb_json_expect(reader, item, json_type_int));
    errno = 0;
    *number = strtoll(source_of(reader, item), NULL, 10);
    if (errno == 0)
        return GB_SUCCESS;
    return gb_json_fail(reader, item, "\"%.64s\" is a number that does not fit s64", item.key);
}

/* inf, infinity and nan in any case, with a minus or without. */
static bool parse_special(const char *word, float *number)
{
    float sign = *word == '-' ? -1.0F : 1.0F;
    if (*word == '-')
        word++;
    if (strcasecmp(word, "nan") == 0) {
        *number = copysignf(NAN, sign);
        return true;
    }
    *number = sign * INFINITY;
    return strcasecmp(word, "inf") == 0 || strcasecmp(word, "infinity") == 0;
}

/* An integer of any length, rounded. No strtod(): a locale may take the comma behind for a decimal
 * one. */
static double parse_digits(const char *source)
{
    double value = 0, sign = *source == '-' ? -1 : 1;
    for (source += *source == '-'; *source >= '0' && *source <= '9'; source++) {
        value = value * 10 + (*source - '0');
    }
    return sign * value;
}

gb_status gb_json_get_f32(gb_json_reader *reader, gb_json_item item, float *number)
{
    if (json_object_is_type(item.value, json_type_string)) {
        if (parse_special(json_object_get_string(item.value), number))
            return GB_SUCCESS;
        return fail_type(reader, item, "a number");
    }
    double value = json_object_get_double(item.value);
    if (json_object_is_type(item.value, json_type_int)) {
        value = parse_digits(source_of(reader, item));
    } else if (!json_object_is_type(item.value, json_type_double)) {
        return fail_type(reader, item, "a number");
    }
    *number = (float)value;
    if (isfinite(*number))
        return GB_SUCCESS;
    return gb_json_fail(reader, item, "\"%.64s\" is a number that does not fit f32", item.key);
}

gb_status gb_json_get_bool(gb_json_reader *reader, gb_json_item item, bool *truth)
{
    if (json_object_is_type(item.value, json_type_boolean)) {
        *truth = json_object_get_boolean(item.value) != 0;
        return GB_SUCCESS;
    }
    int64_t number;
    if (!json_object_is_type(item.value, json_type_int)) {
        return fail_type(reader, item, "true, false, 1 or 0");
    }
    GB_TRY(gb_json_get_s64(reader, item, &number));
    if (number != 0 && number != 1) {
        return gb_json_fail(reader, item, "\"%.64s\" is %lld where 1 or 0 is expected", item.key,
                (long long)number);
    }
    *truth = number == 1;
    return GB_SUCCESS;
}
