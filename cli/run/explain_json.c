/* --explain=json: partitions and tensors between ops as one JSON object. */
#include "cli/run/explain.h"

#include "cli/options/utf8.h"

#include <json-c/json.h>

static void add_text(json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, gb_cli_utf8_json(text));
}

static void add_size(json_object *object, const char *key, size_t value)
{
    json_object_object_add(
            object, key, value == SIZE_MAX ? NULL : json_object_new_uint64((uint64_t)value));
}

static json_object *ops_array(const gb_explanation *explanation, const gb_work_part *part)
{
    json_object *ops = json_object_new_array();
    for (size_t i = 0; i < part->n_ops; i++) {
        json_object *op = json_object_new_object();
        add_size(op, "id", part->ops[i]);
        add_text(op, "kind", gb_op_kind_name(gb_cli_explained_kind(explanation, part->ops[i])));
        json_object_array_add(ops, op);
    }
    return ops;
}

static json_object *part_object(const gb_explanation *explanation, const gb_work_part *part)
{
    const gb_partition_result *result = part->result;
    json_object *object = json_object_new_object();
    add_text(object, "pattern", result->pattern);
    json_object_object_add(object, "ops", ops_array(explanation, part));
    add_text(object, "kernels", result->kernels);
    add_text(object, "reason", result->reason);
    if (result->kernels) {
        add_size(object, "intermediates", result->memory.intermediates);
        add_size(object, "arena", result->memory.arena);
        add_size(object, "constants", result->memory.constants);
    }
    return object;
}

static json_object *edge_object(const gb_explained_edge *edge)
{
    json_object *object = json_object_new_object();
    add_size(object, "tensor", edge->tensor.id);
    add_size(object, "producer", edge->producer_id);
    add_size(object, "consumer", edge->consumer_id);
    add_size(object, "producer_partition", edge->producer_part);
    add_size(object, "consumer_partition", edge->consumer_part);
    add_text(
            object, "reason", edge->unfused ? gb_unfused_reason_name(edge->unfused->reason) : NULL);
    add_text(object, "text",
            edge->unfused ? gb_unfused_reason_describe(edge->unfused->reason) : NULL);
    return object;
}

void gb_cli_explain_json(const gb_explanation *explanation, FILE *file)
{
    const gb_workload *work = explanation->work;
    json_object *document = json_object_new_object();
    json_object *parts = json_object_new_array(), *edges = json_object_new_array();
    add_text(document, "schema", "graph-bench-explanation");
    json_object_object_add(document, "schema_version", json_object_new_int(1));
    add_text(document, "case", work->test->file);
    for (size_t i = 0; i < work->n_parts; i++)
        json_object_array_add(parts, part_object(explanation, &work->parts[i]));
    for (size_t i = 0; i < explanation->n_edges; i++)
        if (explanation->edges[i].unfused)
            json_object_array_add(edges, edge_object(&explanation->edges[i]));
    json_object_object_add(document, "partitions", parts);
    json_object_object_add(document, "edges", edges);
    fprintf(file, "%s\n",
            json_object_to_json_string_ext(
                    document, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(document);
}
