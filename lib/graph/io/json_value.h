/* Typed reading of JSON values, with messages that name the place, the op and the tensor. */
#ifndef GB_GRAPH_IO_JSON_VALUE_H
#define GB_GRAPH_IO_JSON_VALUE_H

#include "graph/io/json_parse.h"

#include <stdbool.h>

enum { GB_JSON_NOTED_MAX = 32 };

/* What is being read, for messages. */
typedef struct gb_json_reader {
    gb_json json;
    const gb_op *op; /* NULL outside of ops */
    bool in_tensor;
    size_t tensor_id;
    uint32_t n_opened, opened_capacity;
    size_t *opened; /* tensors that the file gives two shapes; owned */
    uint32_t n_noted;
    const char *noted[GB_JSON_NOTED_MAX]; /* keys of which a note was given; owned by the tree */
} gb_json_reader;

/* A value with the way to it. */
typedef struct gb_json_item {
    json_object *value;  /* NULL for a JSON null */
    json_object *parent; /* stands in for the place of a null */
    const char *key;     /* of the value or of the list that holds it */
} gb_json_item;

/* One key of an object. `target` is what gb_json_read_fields() was given. */
typedef struct gb_json_field {
    const char *key;
    bool required;
    gb_status (*read)(gb_json_reader *reader, gb_json_item item, void *target);
} gb_json_field;

/* GB_INVALID_GRAPH: "file:line:column: op 7 (MatMul): tensor 3: text". */
gb_status gb_json_fail(gb_json_reader *reader, gb_json_item item, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Puts the place in front of the recorded message. */
gb_status gb_json_fail_prefix(gb_json_reader *reader, gb_json_item item, gb_status status);
/* Gives a note on a key, once for each key of the file and GB_JSON_NOTED_MAX times in all. */
void gb_json_note_key(gb_json_reader *reader, gb_json_item item, const char *text);

/* Reads the members of an object in the order of the text. A key that is not a field is skipped
 * with a note. */
gb_status gb_json_read_fields(gb_json_reader *reader, gb_json_item object,
        const gb_json_field *fields, size_t n_fields, void *target);
/* Calls `read` for each element of a list. */
gb_status gb_json_read_list(gb_json_reader *reader, gb_json_item list,
        gb_status (*read)(gb_json_reader *reader, gb_json_item item, void *target), void *target);

gb_status gb_json_expect(gb_json_reader *reader, gb_json_item item, json_type type);
/* The text lives as long as the tree and holds no NUL. */
gb_status gb_json_get_string(gb_json_reader *reader, gb_json_item item, const char **text);
gb_status gb_json_get_id(gb_json_reader *reader, gb_json_item item, size_t *id);
gb_status gb_json_get_s64(gb_json_reader *reader, gb_json_item item, int64_t *number);
/* Any number; inf, -inf and nan bare or as strings. */
gb_status gb_json_get_f32(gb_json_reader *reader, gb_json_item item, float *number);
/* true, false, 1 or 0. */
gb_status gb_json_get_bool(gb_json_reader *reader, gb_json_item item, bool *truth);

/* Attributes of `op`, and a tensor of reader->op; in files of their own. */
gb_status gb_json_read_attrs(gb_json_reader *reader, gb_json_item attrs, gb_op *op);
/* Those of the graph that `target` is; one that the program has not defined is skipped. */
gb_status gb_json_read_graph_attrs(gb_json_reader *reader, gb_json_item attrs, void *target);
gb_status gb_json_read_tensor(gb_json_reader *reader, gb_json_item item, gb_logical_tensor *tensor);

#endif
