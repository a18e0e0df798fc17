/* Graphs: creating, taking ops and copying. */
#include "graph/ir/graph.h"
#include "base/environment.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gb_status gb_graph_create_with_fpmath_mode(
        gb_graph **graph, gb_engine_kind kind, gb_fpmath_mode mode)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_create: NULL argument");
    if ((unsigned)kind > GB_ENGINE_TEST || (unsigned)mode > GB_FPMATH_TF32) {
        return gb_fail(
                GB_INVALID_ARGUMENTS, "no engine kind %d or fpmath mode %d", (int)kind, (int)mode);
    }
    gb_graph *created = gb_calloc(1, sizeof *created);
    if (!created)
        return GB_OUT_OF_MEMORY;
    created->engine_kind = kind;
    created->fpmath_mode = mode;
    *graph = created;
    return GB_SUCCESS;
}

static atomic_int default_fpmath_mode = -1; /* the environment was not asked yet */

gb_status gb_set_default_fpmath_mode(gb_fpmath_mode mode)
{
    if ((unsigned)mode > GB_FPMATH_TF32)
        return gb_fail(GB_INVALID_ARGUMENTS, "no fpmath mode %d", (int)mode);
    atomic_store(&default_fpmath_mode, (int)mode);
    return GB_SUCCESS;
}

gb_status gb_get_default_fpmath_mode(gb_fpmath_mode *mode)
{
    if (!mode)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_get_default_fpmath_mode: NULL argument");
    int now = atomic_load(&default_fpmath_mode);
    if (now < 0) {
        int unread = -1;
        const char *variable = "GB_DEFAULT_FPMATH_MODE", *name = getenv(variable);
        gb_fpmath_mode named = GB_FPMATH_STRICT;
        if (name && *name && gb_fpmath_mode_parse(name, &named) != GB_SUCCESS)
            gb_environment_complain(
                    variable, name, strlen(name), "strict | bf16 | f16 | any | tf32");
        now = (int)named;
        if (!atomic_compare_exchange_strong(&default_fpmath_mode, &unread, now))
            now = unread; /* set by another thread in the meantime */
    }
    *mode = (gb_fpmath_mode)now;
    return GB_SUCCESS;
}

gb_status gb_graph_create(gb_graph **graph, gb_engine_kind kind)
{
    gb_fpmath_mode mode;
    GB_TRY(gb_get_default_fpmath_mode(&mode));
    return gb_graph_create_with_fpmath_mode(graph, kind, mode);
}

gb_status gb_graph_destroy(gb_graph *graph)
{
    if (!graph)
        return GB_SUCCESS;
    if (graph->free_partitioning)
        graph->free_partitioning(graph->partitioning);
    for (uint32_t i = 0; i < graph->n_ops; i++)
        gb_op_free(graph->ops[i]);
    for (uint32_t i = 0; i < graph->n_values; i++) {
        free(graph->values[i].uses);
        free(graph->values[i].conflict);
        free(graph->values[i].data);
    }
    gb_op_free(graph->attrs);
    free(graph->ops);
    free(graph->values);
    gb_id_map_free(&graph->op_ids);
    gb_id_map_free(&graph->value_ids);
    free(graph);
    return GB_SUCCESS;
}

gb_status gb_graph_set_fpmath_mode(gb_graph *graph, gb_fpmath_mode mode, uint8_t apply_to_int)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_set_fpmath_mode: NULL argument");
    if (graph->finalized)
        return gb_fail(GB_INVALID_GRAPH, "fpmath mode set after finalize");
    if ((unsigned)mode > GB_FPMATH_TF32) {
        return gb_fail(GB_INVALID_ARGUMENTS, "no fpmath mode %d", (int)mode);
    }
    graph->fpmath_mode = mode;
    graph->fpmath_apply_to_int = apply_to_int != 0;
    return GB_SUCCESS;
}

gb_status gb_graph_set_engine_kind(gb_graph *graph, gb_engine_kind kind)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_set_engine_kind: NULL argument");
    if (graph->finalized)
        return gb_fail(GB_INVALID_GRAPH, "engine kind set after finalize");
    if ((unsigned)kind > GB_ENGINE_TEST)
        return gb_fail(GB_INVALID_ARGUMENTS, "no engine kind %d", (int)kind);
    graph->engine_kind = kind;
    return GB_SUCCESS;
}

gb_status gb_graph_get_fpmath_mode(
        const gb_graph *graph, gb_fpmath_mode *mode, uint8_t *apply_to_int)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_fpmath_mode: NULL argument");
    if (mode)
        *mode = graph->fpmath_mode;
    if (apply_to_int)
        *apply_to_int = graph->fpmath_apply_to_int;
    return GB_SUCCESS;
}

uint32_t gb_graph_find_value(const gb_graph *graph, size_t tensor_id)
{
    return gb_id_map_find(&graph->value_ids, tensor_id);
}

uint32_t gb_graph_find_op_index(const gb_graph *graph, size_t op_id)
{
    return gb_id_map_find(&graph->op_ids, op_id);
}

gb_status gb_graph_add_value(gb_graph *graph, const gb_logical_tensor *tensor, uint32_t *value)
{
    uint32_t found = gb_graph_find_value(graph, tensor->id);
    if (found != GB_NONE) {
        *value = found;
        return GB_SUCCESS;
    }
    size_t count = graph->n_values + (size_t)1;
    if (!gb_reserve(&graph->values, &graph->value_capacity, count, sizeof *graph->values)) {
        return GB_OUT_OF_MEMORY;
    }
    GB_TRY(gb_id_map_reserve(&graph->value_ids, (uint32_t)count));
    graph->values[graph->n_values] =
            (gb_value){.tensor = *tensor, .producer = GB_NONE, .view_of = GB_NONE};
    gb_id_map_insert(&graph->value_ids, tensor->id, graph->n_values);
    *value = graph->n_values++;
    return GB_SUCCESS;
}

/* Forgets the values from index `count` on: none has been used yet. */
static void truncate_values(gb_graph *graph, uint32_t count)
{
    if (graph->n_values == count)
        return;
    while (graph->n_values > count)
        free(graph->values[--graph->n_values].uses); /* nothing else was set */
    gb_id_map_clear(&graph->value_ids);
    for (uint32_t i = 0; i < count; i++) {
        gb_id_map_insert(&graph->value_ids, graph->values[i].tensor.id, i);
    }
}

/* The value of each tensor of `op`, with room for the uses it will get. */
static gb_status graph_find_values(gb_graph *graph, const gb_op *op, uint32_t *values)
{
    for (uint32_t i = 0; i < op->n_own; i++) {
        GB_TRY(gb_graph_add_value(graph, &op->own[i], &values[i]));
    }
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        gb_value *value = &graph->values[values[op->inputs[i]]];
        size_t room = value->n_uses + (size_t)op->n_inputs;
        if (!gb_reserve(&value->uses, &value->use_capacity, room, sizeof *value->uses)) {
            return GB_OUT_OF_MEMORY;
        }
    }
    return GB_SUCCESS;
}

/* Everything has been made room for; the op becomes the graph's last. */
static void attach(gb_graph *graph, gb_op *op, const uint32_t *values)
{
    op->graph = graph;
    op->index = graph->n_ops;
    graph->ops[graph->n_ops++] = op;
    gb_id_map_insert(&graph->op_ids, op->id, op->index);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        op->inputs[i] = values[op->inputs[i]];
        gb_value *value = &graph->values[op->inputs[i]];
        value->uses[value->n_uses++] = (gb_use){op->index, i};
    }
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        op->outputs[i] = values[op->outputs[i]];
        gb_value *value = &graph->values[op->outputs[i]];
        if (value->producer != GB_NONE)
            continue; /* gb_graph_connect() reports it */
        value->producer = op->index;
        value->producer_output = i;
    }
    free(op->own);
    op->own = NULL;
    op->n_own = op->own_capacity = 0;
}

gb_status gb_graph_take_op(gb_graph *graph, gb_op *op)
{
    size_t count = graph->n_ops + (size_t)1;
    uint32_t n_values = graph->n_values;
    uint32_t *values = gb_calloc(op->n_own, sizeof *values);
    gb_status status = GB_OUT_OF_MEMORY;
    if (!values)
        goto done;
    if (!gb_reserve(&graph->ops, &graph->op_capacity, count, sizeof(gb_op *)))
        goto done;
    status = gb_id_map_reserve(&graph->op_ids, (uint32_t)count);
    if (status != GB_SUCCESS)
        goto done;
    status = graph_find_values(graph, op, values);
    if (status == GB_SUCCESS)
        attach(graph, op, values);
done:
    if (status != GB_SUCCESS) {
        truncate_values(graph, n_values);
        gb_op_free(op);
    }
    free(values);
    return status;
}

/* The first op that mentions a value; one that the graph was just given does. */
static const gb_op *first_mention(const gb_graph *graph, const gb_value *value)
{
    uint32_t op = value->producer;
    if (value->n_uses > 0 && value->uses[0].op < op)
        op = value->uses[0].op;
    return graph->ops[op];
}

/* Notes that `op` describes the value's tensor in another way than the ops before it. */
static gb_status record_conflict(
        const gb_graph *graph, gb_value *value, const gb_logical_tensor *other, const gb_op *op)
{
    if (value->conflict)
        return GB_SUCCESS;
    const gb_logical_tensor *known = &value->tensor;
    const char *known_label = gb_tensor_label(known), *other_label = gb_tensor_label(other);
    bool same_label = strcmp(known_label, other_label) == 0 &&
                      known->layout_type == other->layout_type &&
                      known->property == other->property;
    const gb_op *first = first_mention(graph, value);
    bool declared = value->is_end && first->id == op->id;
    char message[640];
    snprintf(message, sizeof message,
            "tensor %zu is described in two ways: %s %s %s at %s, %s %s %s at %s%s", known->id,
            known_label, gb_layout_type_name(known->layout_type), gb_property_name(known->property),
            declared ? "its declaration" : gb_op_label(first), other_label,
            gb_layout_type_name(other->layout_type), gb_property_name(other->property),
            gb_op_label(op), same_label ? " (the strides differ)" : "");
    value->conflict = gb_strdup(message);
    return value->conflict ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

/* The graph's op with the id of `op` was copied from it: its tensors complete what is known of
 * them, or contradict it. */
gb_status gb_graph_merge_tensors(gb_graph *graph, const gb_op *op)
{
    for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
        const gb_logical_tensor *tensor = gb_op_tensor(op, i);
        gb_value *value = &graph->values[gb_graph_find_value(graph, tensor->id)];
        if (!gb_logical_tensor_merge(&value->tensor, tensor)) {
            GB_TRY(record_conflict(graph, value, tensor, op));
        }
    }
    return GB_SUCCESS;
}

gb_status gb_graph_is_finalized(const gb_graph *graph, uint8_t *finalized)
{
    if (!graph || !finalized) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_is_finalized: NULL argument");
    }
    *finalized = graph->finalized;
    return GB_SUCCESS;
}

static gb_status clone_ops(
        const gb_graph *graph, const uint32_t *ops, uint32_t n_ops, gb_graph *clone)
{
    for (uint32_t i = 0; i < n_ops; i++) {
        gb_op *op = NULL;
        GB_TRY(gb_op_clone(graph->ops[ops ? ops[i] : i], &op));
        GB_TRY(gb_graph_take_op(clone, op));
    }
    return gb_graph_connect(clone);
}

gb_status gb_graph_clone(
        const gb_graph *graph, const uint32_t *ops, uint32_t n_ops, gb_graph **clone)
{
    gb_graph *copy = NULL;
    GB_TRY(gb_graph_create_with_fpmath_mode(&copy, graph->engine_kind, graph->fpmath_mode));
    copy->fpmath_apply_to_int = graph->fpmath_apply_to_int;
    memcpy(copy->version, graph->version, sizeof copy->version);
    gb_status status = clone_ops(graph, ops, ops ? n_ops : graph->n_ops, copy);
    if (status == GB_SUCCESS && !ops)
        status = gb_graph_copy_ends(graph, copy);
    if (status != GB_SUCCESS) {
        gb_graph_destroy(copy);
        return status;
    }
    *clone = copy;
    return GB_SUCCESS;
}

size_t gb_graph_new_id(const gb_graph *graph)
{
    size_t id = SIZE_MAX / 2 + graph->n_values + graph->n_ops;
    while (gb_graph_find_value(graph, id) != GB_NONE ||
            gb_graph_find_op_index(graph, id) != GB_NONE) {
        id++;
    }
    return id;
}
