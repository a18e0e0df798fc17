/* Ops that stand alone: making them, copying them, and reading any op. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/graph.h"

#include <stdio.h>
#include <stdlib.h>

const gb_logical_tensor *gb_op_input(const gb_op *op, uint32_t i)
{
    return op->graph ? &op->graph->values[op->inputs[i]].tensor : &op->own[op->inputs[i]];
}

const gb_logical_tensor *gb_op_output(const gb_op *op, uint32_t i)
{
    return op->graph ? &op->graph->values[op->outputs[i]].tensor : &op->own[op->outputs[i]];
}

gb_status gb_op_create(gb_op **op, size_t id, gb_op_kind kind, const char *name)
{
    if (!op || !name)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_create: NULL argument");
    char default_name[96];
    snprintf(default_name, sizeof default_name, "%s_%zu", gb_op_kind_name(kind), id);
    gb_op *created = gb_calloc(1, sizeof *created);
    if (!created)
        return GB_OUT_OF_MEMORY;
    created->id = id;
    created->definition = gb_definition_find(kind);
    created->kind = created->definition ? GB_OP_WILDCARD : kind;
    created->index = GB_NONE;
    created->name = gb_strdup(*name ? name : default_name);
    if (!created->name) {
        free(created);
        return GB_OUT_OF_MEMORY;
    }
    *op = created;
    return GB_SUCCESS;
}

void gb_op_free(gb_op *op)
{
    if (!op)
        return;
    while (op->n_attrs > 0)
        gb_op_remove_attr(op, op->attrs[op->n_attrs - 1].name);
    free(op->attrs);
    free(op->inputs);
    free(op->outputs);
    free(op->own);
    free(op->name);
    free(op);
}

gb_status gb_op_destroy(gb_op *op)
{
    if (op && op->graph) {
        return gb_fail(GB_INVALID_ARGUMENTS, "%s is lent by its graph and cannot be destroyed",
                gb_op_label(op));
    }
    gb_op_free(op);
    return GB_SUCCESS;
}

/* Appends to own and to one of the two lists. */
static gb_status add_tensor(gb_op *op, const gb_logical_tensor *tensor, uint32_t **list,
        uint32_t *count, uint32_t *capacity)
{
    if (!gb_reserve(&op->own, &op->own_capacity, op->n_own + (size_t)1, sizeof *op->own) ||
            !gb_reserve(list, capacity, *count + (size_t)1, sizeof **list)) {
        return GB_OUT_OF_MEMORY;
    }
    op->own[op->n_own] = *tensor;
    gb_logical_tensor_normalize(&op->own[op->n_own]);
    (*list)[(*count)++] = op->n_own++;
    return GB_SUCCESS;
}

static gb_status check_add(const gb_op *op, const gb_logical_tensor *tensor)
{
    if (!op || !tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "adding a tensor: NULL argument");
    if (op->graph) {
        return gb_fail(GB_INVALID_ARGUMENTS, "%s is lent by its graph: it takes no more tensors",
                gb_op_label(op));
    }
    gb_status status = gb_logical_tensor_check(tensor);
    return status == GB_SUCCESS ? status : gb_fail_prefix(status, "%s", gb_op_label(op));
}

gb_status gb_op_add_input(gb_op *op, const gb_logical_tensor *tensor)
{
    GB_TRY(check_add(op, tensor));
    return add_tensor(op, tensor, &op->inputs, &op->n_inputs, &op->input_capacity);
}

gb_status gb_op_add_output(gb_op *op, const gb_logical_tensor *tensor)
{
    GB_TRY(check_add(op, tensor));
    return add_tensor(op, tensor, &op->outputs, &op->n_outputs, &op->output_capacity);
}

static gb_status copy_attr(gb_op *op, const gb_op *from, gb_op_attr name)
{
    const void *values;
    size_t count;
    GB_TRY(gb_op_get_attr(from, name, &count, &values));
    switch (gb_op_attr_type(name)) {
    case GB_ATTR_TYPE_F32:
    case GB_ATTR_TYPE_F32S:
        return gb_op_set_attr_f32(op, name, count, values);
    case GB_ATTR_TYPE_S64:
    case GB_ATTR_TYPE_S64S:
        return gb_op_set_attr_s64(op, name, count, values);
    case GB_ATTR_TYPE_BOOL:
        return gb_op_set_attr_bool(op, name, count, values);
    case GB_ATTR_TYPE_STRING:
        return gb_op_set_attr_str(op, name, values, count);
    case GB_ATTR_TYPE_POINTER:
        return gb_op_set_attr_pointer(op, name, *(void *const *)values);
    case GB_ATTR_TYPE_NONE:
        break;
    }
    return GB_SUCCESS;
}

static gb_status copy_contents(gb_op *op, const gb_op *from)
{
    for (uint32_t i = 0; i < from->n_attrs; i++) {
        GB_TRY(copy_attr(op, from, from->attrs[i].name));
        op->attrs[op->n_attrs - 1].left_out = from->attrs[i].left_out;
    }
    for (uint32_t i = 0; i < from->n_inputs; i++) {
        GB_TRY(add_tensor(
                op, gb_op_input(from, i), &op->inputs, &op->n_inputs, &op->input_capacity));
    }
    for (uint32_t i = 0; i < from->n_outputs; i++) {
        GB_TRY(add_tensor(
                op, gb_op_output(from, i), &op->outputs, &op->n_outputs, &op->output_capacity));
    }
    return GB_SUCCESS;
}

gb_status gb_op_clone(const gb_op *op, gb_op **clone)
{
    gb_op *copy = NULL;
    GB_TRY(gb_op_create(&copy, op->id, gb_op_public_kind(op), op->name));
    gb_status status = copy_contents(copy, op);
    if (status == GB_SUCCESS) {
        *clone = copy;
    } else {
        gb_op_free(copy);
    }
    return status;
}

gb_status gb_op_get_id(const gb_op *op, size_t *id)
{
    if (!op || !id)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_get_id: NULL argument");
    *id = op->id;
    return GB_SUCCESS;
}

gb_status gb_op_get_kind(const gb_op *op, gb_op_kind *kind)
{
    if (!op || !kind)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_get_kind: NULL argument");
    *kind = gb_op_public_kind(op);
    return GB_SUCCESS;
}

const char *gb_op_get_name(const gb_op *op)
{
    return op ? op->name : "";
}

size_t gb_op_get_input_num(const gb_op *op)
{
    return op ? op->n_inputs : 0;
}

size_t gb_op_get_output_num(const gb_op *op)
{
    return op ? op->n_outputs : 0;
}

gb_status gb_op_get_input(const gb_op *op, size_t index, gb_logical_tensor *tensor)
{
    if (!op || !tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_get_input: NULL argument");
    if (index >= op->n_inputs) {
        return gb_fail(GB_INVALID_ARGUMENTS, "%s has no input %zu", gb_op_label(op), index);
    }
    *tensor = *gb_op_input(op, (uint32_t)index);
    return GB_SUCCESS;
}

gb_status gb_op_get_output(const gb_op *op, size_t index, gb_logical_tensor *tensor)
{
    if (!op || !tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_get_output: NULL argument");
    if (index >= op->n_outputs) {
        return gb_fail(GB_INVALID_ARGUMENTS, "%s has no output %zu", gb_op_label(op), index);
    }
    *tensor = *gb_op_output(op, (uint32_t)index);
    return GB_SUCCESS;
}
