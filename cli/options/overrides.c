/* Parser of the list options: alternatives (','), overrides ('+'), and the value of each kind of
 * override. */
#include "cli/options/overrides.h"

#include "cli/options/cursor.h"
#include "cli/options/message.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool ends_override(const gb_cursor *input)
{
    return !*input->at || *input->at == ',' || *input->at == '+';
}

/* ------------------------------------------------------------ values of overrides */

static gb_status take_dims(gb_cursor *input, int *count, int64_t dims[GB_MAX_NDIMS])
{
    *count = 0;
    for (;;) {
        if (*count == GB_MAX_NDIMS)
            return gb_cli_expected(input, "at most 12 dimensions");
        gb_cursor begin = *input;
        CLI_TRY(gb_cli_parse_integer(input, "a dimension", &dims[*count]));
        if (dims[*count] < 0)
            return gb_cli_expected(&begin, "a dimension (0 or more)");
        ++*count;
        if (*input->at != 'x')
            return GB_SUCCESS;
        input->at++;
    }
}

/* [SHAPE][*TAG | *STRIDES]; SHAPE "-" is a scalar. */
static gb_status take_shape(gb_cursor *input, gb_override *result)
{
    gb_shape_override *shape = &result->value.shape;
    if (*input->at == '-') {
        input->at++;
        shape->has_dims = true;
        return GB_SUCCESS;
    }
    if (*input->at != '*') {
        CLI_TRY(take_dims(input, &shape->ndims, shape->dims));
        shape->has_dims = true;
    }
    if (*input->at != '*')
        return GB_SUCCESS;
    input->at++;
    if (*input->at >= '0' && *input->at <= '9') {
        shape->has_strides = true;
        return take_dims(input, &shape->n_strides, shape->strides);
    }
    size_t length = strspn(input->at, "abcdefghijklABCDEFGHIJKL0123456789");
    size_t plain = strspn(input->at, "abcdefghijkl");
    bool is_tag =
            plain == length ? length <= GB_MAX_NDIMS : strpbrk(input->at, "abcdefghijkl") != NULL;
    if (length == 0 || length >= TAG_LIMIT || !is_tag)
        return gb_cli_expected(input, "strides or a tag of the letters a to l, as acdb or aBcd16b");
    memcpy(shape->tag, input->at, length);
    input->at += length;
    return GB_SUCCESS;
}

/* Cuts a fraction off. */
static void skip_fraction(gb_cursor *input, gb_attr_override *attr)
{
    if (*input->at != '.')
        return;
    input->at++;
    input->at += strspn(input->at, "0123456789");
    attr->truncated = true;
}

static gb_status take_s64s(gb_cursor *input, gb_attr_override *attr, bool list)
{
    for (;;) {
        attr->s64s = gb_cli_realloc(attr->s64s, attr->count + 1, sizeof(*attr->s64s));
        CLI_TRY(gb_cli_parse_integer(input, "an integer", &attr->s64s[attr->count]));
        skip_fraction(input, attr);
        attr->count++;
        if (!list || *input->at != 'x')
            return GB_SUCCESS;
        input->at++;
    }
}

static gb_status take_f32s(gb_cursor *input, gb_attr_override *attr, bool list)
{
    for (;;) {
        attr->f32s = gb_cli_realloc(attr->f32s, attr->count + 1, sizeof(*attr->f32s));
        CLI_TRY(gb_cli_parse_float(input, "a number", &attr->f32s[attr->count]));
        attr->count++;
        if (!list || *input->at != 'x')
            return GB_SUCCESS;
        input->at++;
    }
}

static gb_status take_attr_value(gb_cursor *input, gb_attr_override *attr)
{
    char word[WORD_LIMIT];
    bool truth;
    switch (gb_op_attr_type(attr->attr)) {
    case GB_ATTR_TYPE_F32:
        return take_f32s(input, attr, false);
    case GB_ATTR_TYPE_F32S:
        return take_f32s(input, attr, true);
    case GB_ATTR_TYPE_S64:
        return take_s64s(input, attr, false);
    case GB_ATTR_TYPE_S64S:
        return take_s64s(input, attr, true);
    case GB_ATTR_TYPE_BOOL:
        CLI_TRY(gb_cli_parse_truth(input, &truth));
        attr->s64s = gb_cli_realloc(NULL, 1, sizeof(*attr->s64s));
        attr->s64s[attr->count++] = truth;
        return GB_SUCCESS;
    default:
        CLI_TRY(gb_cli_parse_word(input, "*+,", "a word", word));
        attr->string = gb_cli_copy(word);
        attr->count = strlen(word);
        return GB_SUCCESS;
    }
}

/* NAME:VALUE */
static gb_status take_attr(gb_cursor *input, gb_override *result)
{
    gb_cursor begin = *input;
    gb_attr_override *attr = &result->value.attr;
    char word[WORD_LIMIT];
    CLI_TRY(gb_cli_parse_word(input, ":*+,", "an attribute's name", word));
    if (gb_op_attr_parse(word, &attr->attr) != GB_SUCCESS)
        return gb_cli_expected(&begin, "an attribute's name");
    if (*input->at != ':')
        return gb_cli_expected(input, "':' behind the attribute's name");
    input->at++;
    return take_attr_value(input, attr);
}

static gb_status take_type(gb_cursor *input, gb_override *result)
{
    gb_cursor begin = *input;
    char word[WORD_LIMIT];
    CLI_TRY(gb_cli_parse_word(input, "+,", "a data type", word));
    if (gb_data_type_parse(word, &result->value.type) != GB_SUCCESS)
        return gb_cli_expected(&begin, "a data type");
    return GB_SUCCESS;
}

static gb_status take_kind(gb_cursor *input, gb_override *result)
{
    gb_cursor begin = *input;
    char word[WORD_LIMIT];
    CLI_TRY(gb_cli_parse_word(input, "+,", "an op kind", word));
    result->value.kind = KIND_REMOVED;
    if (strcmp(word, "undef") == 0)
        return GB_SUCCESS;
    if (gb_op_kind_parse(word, &result->value.kind) != GB_SUCCESS)
        return gb_cli_expected(&begin, "an op kind, undef or default");
    return GB_SUCCESS;
}

static gb_status take_property(gb_cursor *input, gb_override *result)
{
    gb_cursor begin = *input;
    char word[WORD_LIMIT];
    CLI_TRY(gb_cli_parse_word(input, "+,", "a property", word));
    if (gb_property_parse(word, &result->value.property) != GB_SUCCESS)
        return gb_cli_expected(&begin, "undef, variable, constant, host_scalar or default");
    return GB_SUCCESS;
}

/* ------------------------------------------------------------ alternatives */

/* The text of one ID:... of an alternative. */
typedef struct span {
    size_t id;
    const char *text;
    size_t length;
} span;

static int compare_spans(const void *a, const void *b)
{
    const span *left = a, *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

static gb_override *append_override(gb_alternative *alternative, size_t id)
{
    size_t count = alternative->n_overrides++;
    gb_override *items =
            gb_cli_realloc(alternative->overrides, count + 1, sizeof(*alternative->overrides));
    alternative->overrides = items;
    items[count] = (gb_override){.id = id};
    return &items[count];
}

/* What --op-attrs may repeat for one op: NAME:VALUE*NAME:VALUE. */
static gb_status take_attrs(gb_cursor *input, gb_alternative *alternative, size_t id)
{
    size_t first = alternative->n_overrides;
    for (;;) {
        gb_cursor begin = *input;
        gb_override *added = append_override(alternative, id);
        CLI_TRY(take_attr(input, added));
        for (size_t i = first; i + 1 < alternative->n_overrides; i++)
            if (alternative->overrides[i].value.attr.attr == added->value.attr.attr)
                return gb_cli_expected(&begin, "each attribute of an op once");
        if (*input->at != '*')
            return GB_SUCCESS;
        input->at++;
    }
}

/* Skips a value that stands for "as in the file". */
static bool takes_word(gb_cursor *input, const char *word)
{
    size_t length = word ? strlen(word) : 0;
    gb_cursor behind = {input->start, input->at + length};
    if (length == 0 || strncmp(input->at, word, length) != 0 || !ends_override(&behind))
        return false;
    *input = behind;
    return true;
}

/* ID:VALUE[+ID:VALUE]*; leaves the canonical text, sorted by id, in the alternative. `unchanged` is
 * the value that changes nothing, and is left out; NULL: there is none. */
static gb_status take_overrides(gb_cursor *input, gb_alternative *alternative,
        gb_status (*take)(gb_cursor *, gb_override *), const char *unchanged)
{
    gb_status status;
    span *spans = NULL;
    size_t n_spans = 0;
    for (;;) {
        spans = gb_cli_realloc(spans, n_spans + 1, sizeof(*spans));
        span *last = &spans[n_spans++];
        last->text = input->at;
        bool tagged = false;
        status = gb_cli_parse_id(input, &last->id, take == take_shape ? &tagged : NULL);
        if (status != GB_SUCCESS)
            goto done;
        if (takes_word(input, unchanged))
            n_spans--;
        else
            status = take == take_attr ? take_attrs(input, alternative, last->id)
                                       : take(input, append_override(alternative, last->id));
        if (status == GB_SUCCESS && tagged)
            alternative->overrides[alternative->n_overrides - 1].value.shape.stray_tag = true;
        if (status != GB_SUCCESS)
            goto done;
        last->length = (size_t)(input->at - last->text);
        if (!ends_override(input)) {
            status = gb_cli_expected(input, "'+', ',' or the end");
            goto done;
        }
        if (*input->at != '+')
            break;
        input->at++;
    }
    qsort(spans, n_spans, sizeof(*spans), compare_spans);
    gb_text text = {0};
    for (size_t i = 0; i < n_spans; i++) {
        if (i && spans[i].id == spans[i - 1].id) {
            status = gb_cli_fail(
                    GB_INVALID_ARGUMENTS, "id %zu stands twice in one alternative", spans[i].id);
            break;
        }
        if (i)
            gb_cli_text_add(&text, "+");
        gb_cli_text_add_part(&text, spans[i].text, spans[i].length);
    }
    alternative->text = text.data ? text.data : gb_cli_copy("");
done:
    free(spans);
    return status;
}

static gb_status take_in_shapes(gb_cursor *input, gb_alternative *alternative)
{
    return take_overrides(input, alternative, take_shape, NULL);
}

static gb_status take_op_attrs(gb_cursor *input, gb_alternative *alternative)
{
    return take_overrides(input, alternative, take_attr, NULL);
}

static gb_status take_op_kinds(gb_cursor *input, gb_alternative *alternative)
{
    return take_overrides(input, alternative, take_kind, "default");
}

static gb_status take_properties(gb_cursor *input, gb_alternative *alternative)
{
    return take_overrides(input, alternative, take_property, "default");
}

static gb_status take_types(gb_cursor *input, gb_alternative *alternative)
{
    return take_overrides(input, alternative, take_type, "undef");
}

static gb_status take_number(gb_cursor *input, gb_alternative *alternative)
{
    return gb_cli_parse_count(input, "a number (0 or more)", &alternative->number);
}

static gb_status take_graph_type(gb_cursor *input, gb_alternative *alternative)
{
    gb_cursor begin = *input;
    char word[WORD_LIMIT];
    CLI_TRY(gb_cli_parse_word(input, ",", "a data type", word));
    if (strcmp(word, "undef") == 0) {
        alternative->text = gb_cli_copy("");
        return GB_SUCCESS;
    }
    if (gb_data_type_parse(word, &alternative->type) != GB_SUCCESS)
        return gb_cli_expected(&begin, "a data type (ID:TYPE and TYPE cannot be mixed)");
    return GB_SUCCESS;
}

static gb_status take_fpmath(gb_cursor *input, gb_alternative *alternative)
{
    gb_cursor begin = *input;
    char word[WORD_LIMIT];
    CLI_TRY(gb_cli_parse_word(input, ",:", "a floating-point math mode", word));
    for (char *letter = word; *letter; letter++)
        *letter = (char)tolower((unsigned char)*letter);
    if (gb_fpmath_mode_parse(word, &alternative->fpmath) != GB_SUCCESS)
        return gb_cli_expected(&begin, "strict, bf16, f16, tf32 or any");
    if (*input->at != ':')
        return GB_SUCCESS;
    input->at++;
    return gb_cli_parse_truth(input, &alternative->apply_to_int);
}

/* How the options of each axis are parsed, and what an empty alternative stands for. */
static const struct axis_rule {
    gb_status (*take)(gb_cursor *, gb_alternative *);
    int64_t default_number;
    const char *default_text;
} axis_rules[AXIS_COUNT] = {
        [AXIS_IN_SHAPES] = {take_in_shapes, 0, ""},
        [AXIS_OP_ATTRS] = {take_op_attrs, 0, ""},
        [AXIS_EXPECTED_N_PARTITIONS] = {take_number, -1, ""},
        [AXIS_FPMATH] = {take_fpmath, 0, ""},
        [AXIS_OP_KIND] = {take_op_kinds, 0, ""},
        [AXIS_TENSOR_PROPERTY] = {take_properties, 0, ""},
        [AXIS_DT] = {take_graph_type, 0, ""},
        [AXIS_DT_IDS] = {take_types, 0, ""},
        [AXIS_MB] = {take_number, 0, "0"},
};

const char *gb_cli_axis_default(gb_axis axis)
{
    return axis_rules[axis].default_text;
}

static gb_alternative default_alternative(gb_axis axis)
{
    return (gb_alternative){.text = gb_cli_copy(axis_rules[axis].default_text),
            .number = axis_rules[axis].default_number};
}

void gb_cli_alternatives_default(gb_axis axis, gb_alternatives *result)
{
    result->count = 1;
    result->items = gb_cli_realloc(NULL, 1, sizeof(*result->items));
    result->items[0] = default_alternative(axis);
}

static gb_status take_alternative(gb_cursor *input, gb_axis axis, gb_alternative *alternative)
{
    const char *begin = input->at;
    if (!*begin || *begin == ',') {
        *alternative = default_alternative(axis);
        return GB_SUCCESS;
    }
    CLI_TRY(axis_rules[axis].take(input, alternative));
    if (*input->at && *input->at != ',')
        return gb_cli_expected(input, "',' or the end");
    size_t length = (size_t)(input->at - begin);
    if (!alternative->text)
        alternative->text = gb_cli_copy_part(begin, length);
    return GB_SUCCESS;
}

gb_status gb_cli_alternatives_parse(gb_axis axis, const char *value, gb_alternatives *result)
{
    gb_cursor input = {value, value};
    gb_alternatives parsed = {0};
    for (;;) {
        parsed.items = gb_cli_realloc(parsed.items, parsed.count + 1, sizeof(*parsed.items));
        gb_alternative *last = &parsed.items[parsed.count++];
        *last = (gb_alternative){0};
        gb_status status = take_alternative(&input, axis, last);
        if (status != GB_SUCCESS) {
            gb_cli_alternatives_free(axis, &parsed);
            return status;
        }
        if (!*input.at)
            break;
        input.at++;
    }
    *result = parsed;
    return GB_SUCCESS;
}

const gb_override *gb_cli_find_override(const gb_alternative *alternative, size_t id)
{
    for (size_t i = 0; i < alternative->n_overrides; i++)
        if (alternative->overrides[i].id == id)
            return &alternative->overrides[i];
    return NULL;
}

void gb_cli_alternatives_free(gb_axis axis, gb_alternatives *alternatives)
{
    for (size_t i = 0; i < alternatives->count; i++) {
        gb_alternative *item = &alternatives->items[i];
        for (size_t j = 0; axis == AXIS_OP_ATTRS && j < item->n_overrides; j++) {
            gb_attr_override *attr = &item->overrides[j].value.attr;
            free(attr->f32s);
            free(attr->s64s);
            free(attr->string);
        }
        free(item->overrides);
        free(item->text);
    }
    free(alternatives->items);
    *alternatives = (gb_alternatives){0};
}
