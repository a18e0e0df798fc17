/* Between the readers of JSON and of archives. */
#ifndef GB_BRIDGE_READ_H
#define GB_BRIDGE_READ_H

#include "graph.h"

#include <json-c/json.h>

/* The caller puts the root back (json_object_put). */
gb_status br_parse_json(const char *text, size_t length, json_object **root);
/* Reads dtype, sizes and strides as tensor_values has them; `name` is for messages. */
gb_status br_read_tensor_meta(
        gb_bridge_graph *graph, const char *name, json_object *meta, br_value *value);

#endif
