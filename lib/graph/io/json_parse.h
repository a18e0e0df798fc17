/* JSON text as a tree whose every value knows where in the text it stands. */
#ifndef GB_GRAPH_IO_JSON_PARSE_H
#define GB_GRAPH_IO_JSON_PARSE_H

#include <graphbench/graphbench.h>
#include <json-c/json.h>

typedef struct gb_json_place {
    size_t line, column; /* both from 1 */
} gb_json_place;

typedef struct gb_json {
    const char *name; /* of the file, for messages; borrowed */
    const char *text; /* borrowed */
    size_t length;
    gb_note_fn note; /* may be NULL */
    void *note_context;
    json_object *root; /* owned; always an object */
} gb_json;

/* Fills `root` from the other members. Bare inf, -inf, nan and infinity, in any case, become
 * strings. A fault is GB_INVALID_GRAPH with file:line:column; so are a key that occurs twice in an
 * object and text behind the end. */
gb_status gb_json_parse(gb_json *json);
void gb_json_free(gb_json *json);

/* Where a value starts in the text. */
const char *gb_json_source(const gb_json *json, json_object *value);
gb_json_place gb_json_find(const gb_json *json, const char *source);
/* Gives a note to the caller's function. */
void gb_json_note(const gb_json *json, const char *source, const char *text);

#endif
