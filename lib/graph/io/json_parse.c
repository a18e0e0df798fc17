/* JSON text as a tree whose every value knows where in the text it stands.
 *
 * json-c builds the tree and judges the grammar, but it keeps no positions, lets the last of two
 * equal keys win and knows only some spellings of infinity. So a light scan runs over the text
 * first: it notes where values and keys start and where bare inf and nan stand. The values of the
 * tree, in order, are then those of the scan. */
#include "graph/io/json_parse.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Graph files nest 7 deep; the rest is for keys that are skipped. CHUNK_MAX: json-c counts in int.
 */
enum { DEPTH_MAX = 64, WORD_MAX = 9, CHUNK_MAX = 1 << 28 };

typedef struct span {
    size_t start, length;
} span;

typedef struct key {
    size_t object;    /* where the object that holds it starts */
    const char *name; /* with its quotes */
    size_t length;
} key;

typedef struct scan {
    const char *text;
    size_t length, at;
    size_t objects[DEPTH_MAX]; /* open brackets: where they stand */
    int depth;
    uint32_t n_values, value_capacity, n_words, word_capacity, n_keys, key_capacity;
    size_t *values;
    span *words; /* bare inf and nan */
    key *keys;
    const char *fault; /* what json-c lets pass although JSON does not, and where the first such
                          place is */
    size_t fault_at;
} scan;

static gb_status fail_at(const gb_json *json, size_t offset, const char *text)
{
    gb_json_place place = gb_json_find(json, json->text + offset);
    return gb_fail(GB_INVALID_GRAPH, "%s:%zu:%zu: %s", json->name, place.line, place.column, text);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool add_value(scan *state)
{
    size_t count = state->n_values + (size_t)1;
    if (!gb_reserve(&state->values, &state->value_capacity, count, sizeof *state->values)) {
        return false;
    }
    state->values[state->n_values++] = state->at;
    return true;
}

static bool add_word(scan *state, span word)
{
    size_t count = state->n_words + (size_t)1;
    if (!gb_reserve(&state->words, &state->word_capacity, count, sizeof word))
        return false;
    state->words[state->n_words++] = word;
    return true;
}

static bool add_key(scan *state, span name)
{
    size_t count = state->n_keys + (size_t)1;
    if (!gb_reserve(&state->keys, &state->key_capacity, count, sizeof *state->keys))
        return false;
    state->keys[state->n_keys++] =
            (key){state->objects[state->depth - 1], state->text + name.start, name.length};
    return true;
}

static bool is_special_float(const char *text, size_t length)
{
    static const char *const words[] = {"inf", "infinity", "nan"};
    if (length > 0 && *text == '-')
        text++, length--;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (length == strlen(words[i]) && strncasecmp(text, words[i], length) == 0)
            return true;
    }
    return false;
}

static void note_fault(scan *state, const char *fault, size_t at)
{
    if (state->fault)
        return;
    state->fault = fault;
    state->fault_at = at;
}

/* From the opening quote to behind the closing one. */
static span skip_string(scan *state)
{
    size_t start = state->at++;
    while (state->at < state->length && state->text[state->at] != '"') {
        char c = state->text[state->at];
        if (c >= 0 && c < ' ')
            note_fault(state, "control character in a string", state->at);
        state->at += c == '\\' ? 2 : 1;
    }
    if (state->at < state->length)
        state->at++;
    if (state->at > state->length)
        state->at = state->length;
    return (span){start, state->at - start};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number, a literal or anything else up to the next separator. */
static bool scan_bare(scan *state)
{
    span word = {state->at, 0};
    if (!add_value(state))
        return false;
    while (state->at < state->length && !strchr("{}[]:,\" \t\r\n", state->text[state->at])) {
        if (state->text[state->at] == '\'') {
            note_fault(state, "strings stand in double quotes", state->at);
        }
        if (state->text[state->at++] == '.' &&
                (state->at == state->length || !is_digit(state->text[state->at]))) {
            note_fault(state, "malformed number", word.start);
        }
    }
    word.length = state->at - word.start;
    if (word.length == 0)
        state->at++; /* a NUL */
    return !is_special_float(state->text + word.start, word.length) || add_word(state, word);
}

static bool open_bracket(scan *state)
{
    if (!add_value(state))
        return false;
    state->objects[state->depth++] = state->at++;
    return true;
}

static bool in_object(const scan *state)
{
    return state->depth > 0 && state->text[state->objects[state->depth - 1]] == '{';
}

/* False when out of memory. Wrong text is scanned somehow: json-c will refuse it. */
static bool scan_text(scan *state)
{
    bool key_next = false;
    while (state->at < state->length && state->depth < DEPTH_MAX) {
        char c = state->text[state->at];
        bool ok = true;
        if (c == '{' || c == '[') {
            ok = open_bracket(state);
            key_next = c == '{';
        } else if (c == '}' || c == ']') {
            if (state->depth > 0)
                state->depth--;
            key_next = false;
            state->at++;
        } else if (c == ',' || c == ':') {
            key_next = c == ',' && in_object(state);
            state->at++;
        } else if (c == '"' && key_next) {
            ok = add_key(state, skip_string(state));
        } else if (c == '"') {
            ok = add_value(state);
            skip_string(state);
        } else if (is_space(c)) {
            state->at++;
        } else {
            ok = scan_bare(state);
        }
        if (!ok)
            return false;
    }
    return true;
}

static gb_status describe_error(const gb_json *json, enum json_tokener_error error, size_t offset)
{
    switch (error) {
    case json_tokener_error_depth:
        return fail_at(json, offset, "nested too deeply");
    case json_tokener_error_parse_number:
        return fail_at(json, offset, "malformed number, or one that does not fit 64 bits");
    case json_tokener_error_parse_unexpected:
        return fail_at(json, offset, "unexpected character");
    default:
        return fail_at(json, offset, json_tokener_error_desc(error));
    }
}

/* Gives text[*at]...text[end - 1] to the tokener; `quoted` as a string. Sets root when the document
 * is complete. */
static gb_status feed(gb_json *json, json_tokener *tokener, size_t *at, size_t end, bool quoted)
{
    if (quoted && !json->root) {
        char word[WORD_MAX + 2];
        size_t length = end - *at;
        word[0] = word[length + 1] = '"';
        memcpy(word + 1, json->text + *at, length);
        json->root = json_tokener_parse_ex(tokener, word, (int)length + 2);
        enum json_tokener_error error = json_tokener_get_error(tokener);
        if (!json->root && error != json_tokener_continue) {
            return describe_error(json, error, *at);
        }
        *at = end;
    }
    while (*at < end && !json->root) {
        size_t length = end - *at < CHUNK_MAX ? end - *at : CHUNK_MAX;
        json->root = json_tokener_parse_ex(tokener, json->text + *at, (int)length);
        enum json_tokener_error error = json_tokener_get_error(tokener);
        size_t used = json_tokener_get_parse_end(tokener);
        if (!json->root && error != json_tokener_continue) {
            return describe_error(json, error, *at + used);
        }
        *at += json->root ? used : length;
    }
    return GB_SUCCESS;
}

static gb_status build_tree(gb_json *json, const scan *state, json_tokener *tokener, size_t at)
{
    for (uint32_t i = 0; i < state->n_words; i++) {
        GB_TRY(feed(json, tokener, &at, state->words[i].start, false));
        GB_TRY(feed(json, tokener, &at, state->words[i].start + state->words[i].length, true));
    }
    GB_TRY(feed(json, tokener, &at, json->length, false));
    if (!json->root)
        return fail_at(json, json->length, "the file ends too early");
    while (at < json->length && is_space(json->text[at]))
        at++;
    return at == json->length ? GB_SUCCESS : fail_at(json, at, "text behind the end of the graph");
}

/* Counts the values of the tree in *count and, when `values` is given, tells each where it starts.
 */
static void walk(json_object *value, const size_t *values, size_t *count)
{
    if (values && value) {
        json_object_set_userdata(value, (void *)(uintptr_t)values[*count], NULL);
    }
    ++*count;
    if (json_object_is_type(value, json_type_object)) {
        json_object_iter member;
        json_object_object_foreachC(value, member)
        {
            walk(member.val, values, count);
        }
    } else if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            walk(json_object_array_get_idx(value, i), values, count);
        }
    }
}

/* By object, then by name; equal ones in the order of the text. */
static int compare_keys(const void *a, const void *b)
{
    const key *left = a, *right = b;
    if (left->object != right->object)
        return left->object < right->object ? -1 : 1;
    if (left->length != right->length)
        return left->length < right->length ? -1 : 1;
    int order = memcmp(left->name, right->name, left->length);
    if (order != 0)
        return order;
    return left->name < right->name ? -1 : 1;
}

/* The tree has fewer values than the text: a later one of the same key took the place of an earlier
 * one, or a key without quotes was counted as a number. */
static gb_status report_duplicate(const gb_json *json, scan *state)
{
    if (state->n_keys > 0)
        qsort(state->keys, state->n_keys, sizeof *state->keys, compare_keys);
    for (uint32_t i = 1; i < state->n_keys; i++) {
        const key *a = &state->keys[i - 1], *b = &state->keys[i];
        if (a->object != b->object || a->length != b->length)
            continue;
        if (memcmp(a->name, b->name, a->length) != 0)
            continue;
        char message[112];
        int shown = a->length < 64 ? (int)a->length : 64;
        snprintf(message, sizeof message, "key %.*s occurs twice in one object", shown, b->name);
        return fail_at(json, (size_t)(b->name - json->text), message);
    }
    return gb_fail(GB_INVALID_GRAPH,
            "%s: a key occurs twice in one object, or is no string in quotes", json->name);
}

static gb_status parse(gb_json *json, scan *state, json_tokener *tokener, size_t start)
{
    GB_TRY(build_tree(json, state, tokener, start));
    if (state->fault)
        return fail_at(json, state->fault_at, state->fault);
    size_t count = 0;
    walk(json->root, NULL, &count);
    if (count != state->n_values)
        return report_duplicate(json, state);
    count = 0;
    walk(json->root, state->values, &count);
    return GB_SUCCESS;
}

gb_status gb_json_parse(gb_json *json)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    size_t start = 0;
    if (json->length >= 3 && memcmp(json->text, byte_order_mark, 3) == 0) {
        start = 3;
        gb_json_note(json, json->text, "byte order mark skipped");
    }
    while (start < json->length && is_space(json->text[start]))
        start++;
    if (start == json->length)
        return fail_at(json, start, "there is no graph: the text is empty");
    if (json->text[start] != '{') {
        return fail_at(json, start, "a graph starts with an object, \"{\"");
    }
    json->root = NULL;
    scan state = {.text = json->text, .length = json->length, .at = start};
    json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
    gb_status status = GB_OUT_OF_MEMORY;
    if (tokener && scan_text(&state)) {
        json_tokener_set_flags(tokener,
                JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8 |
                        JSON_TOKENER_ALLOW_TRAILING_CHARS); /* build_tree() reports those */
        status = parse(json, &state, tokener, start);
    }
    if (tokener)
        json_tokener_free(tokener);
    if (status != GB_SUCCESS)
        gb_json_free(json);
    free(state.values);
    free(state.words);
    free(state.keys);
    return status;
}

void gb_json_free(gb_json *json)
{
    json_object_put(json->root);
    json->root = NULL;
}

const char *gb_json_source(const gb_json *json, json_object *value)
{
    return json->text + (size_t)(uintptr_t)json_object_get_userdata(value);
}

gb_json_place gb_json_find(const gb_json *json, const char *source)
{
    gb_json_place place = {1, 1};
    for (const char *c = json->text; c < source; c++) {
        place.column++;
        if (*c == '\n')
            place = (gb_json_place){place.line + 1, 1};
    }
    return place;
}

void gb_json_note(const gb_json *json, const char *source, const char *text)
{
    if (!json->note)
        return;
    gb_json_place place = gb_json_find(json, source);
    char message[512];
    snprintf(message, sizeof message, "%s:%zu:%zu: %s", json->name, place.line, place.column, text);
    json->note(json->note_context, message);
}
