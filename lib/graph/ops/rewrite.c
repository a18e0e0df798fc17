/* Rewriting a graph before it is finalized. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/graph.h"
#include "graph/ops/op_table.h"

#include <stdlib.h>
#include <string.h>

static gb_status rewrite_check_open(const gb_graph *graph, const char *function)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: NULL argument", function);
    if (!graph->finalized)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_GRAPH, "%s: the graph is finalized", function);
}

gb_status gb_graph_set_tensor(gb_graph *graph, const gb_logical_tensor *tensor)
{
    GB_TRY(rewrite_check_open(graph, "gb_graph_set_tensor"));
    if (!tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_set_tensor: NULL argument");
    GB_TRY(gb_logical_tensor_check(tensor));
    uint32_t index = gb_graph_find_value(graph, tensor->id);
    if (index == GB_NONE) {
        return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no tensor %zu", tensor->id);
    }
    gb_value *value = &graph->values[index];
    size_t bytes = 0;
    if (value->data)
        GB_TRY(gb_logical_tensor_get_mem_size(tensor, &bytes));
    if (value->data && bytes != value->data_bytes)
        return gb_fail(GB_INVALID_ARGUMENTS, "constant %zu has %zu bytes, not %zu", tensor->id,
                value->data_bytes, bytes);
    value->tensor = *tensor;
    gb_logical_tensor_normalize(&value->tensor);
    free(value->conflict);
    value->conflict = NULL;
    return GB_SUCCESS;
}

static bool knows_attr(const gb_op_schema *schema, gb_op_attr name)
{
    for (uint32_t i = 0; i < schema->n_attrs; i++) {
        if (schema->attrs[i].name == name)
            return true;
    }
    return false;
}

gb_status gb_graph_set_op_kind(gb_graph *graph, size_t op_id, gb_op_kind kind)
{
    gb_op *op;
    GB_TRY(rewrite_check_open(graph, "gb_graph_set_op_kind"));
    GB_TRY(gb_graph_edit_op(graph, op_id, &op));
    if ((unsigned)kind >= GB_OP_LAST) {
        return gb_fail(GB_INVALID_ARGUMENTS, "op kind %d does not exist", (int)kind);
    }
    const gb_op_schema *schema = gb_op_schema_get(kind);
    for (uint32_t i = op->n_attrs; i-- > 0;) {
        gb_op_attr name = op->attrs[i].name;
        if (!gb_attr_is_defined(name) && !knows_attr(schema, name))
            gb_op_remove_attr(op, name);
    }
    op->kind = kind;
    op->definition = NULL;
    return gb_op_fill_defaults(op);
}

gb_status gb_graph_drop_op(gb_graph *graph, uint32_t op)
{
    gb_op_free(graph->ops[op]);
    graph->n_ops--;
    memmove(graph->ops + op, graph->ops + op + 1, (graph->n_ops - op) * sizeof *graph->ops);
    gb_id_map_clear(&graph->op_ids);
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        graph->ops[i]->index = i;
        gb_id_map_insert(&graph->op_ids, graph->ops[i]->id, i);
    }
    return gb_graph_wire(graph);
}

/* Drops the values that no op mentions and nobody declared; the others move up. */
static gb_status drop_unused_values(gb_graph *graph)
{
    uint32_t *moved = gb_calloc(graph->n_values, sizeof *moved);
    if (!moved)
        return GB_OUT_OF_MEMORY;
    uint32_t kept = 0;
    gb_id_map_clear(&graph->value_ids);
    for (uint32_t i = 0; i < graph->n_values; i++) {
        gb_value *value = &graph->values[i];
        moved[i] = kept;
        if (value->producer == GB_NONE && value->n_uses == 0 && !value->is_end) {
            free(value->uses);
            free(value->conflict);
            continue;
        }
        gb_id_map_insert(&graph->value_ids, value->tensor.id, kept);
        graph->values[kept++] = *value;
    }
    memset(graph->values + kept, 0, (graph->n_values - kept) * sizeof *graph->values);
    graph->n_values = kept;
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_inputs; k++)
            op->inputs[k] = moved[op->inputs[k]];
        for (uint32_t k = 0; k < op->n_outputs; k++)
            op->outputs[k] = moved[op->outputs[k]];
    }
    free(moved);
    return GB_SUCCESS;
}

static gb_status check_bypass(const gb_op *op, size_t input)
{
    if (op->n_outputs != 1) {
        return gb_fail(GB_INVALID_ARGUMENTS,
                "%s has %u outputs: only an op with one can be bypassed", gb_op_label(op),
                op->n_outputs);
    }
    if (input >= op->n_inputs) {
        return gb_fail(GB_INVALID_ARGUMENTS, "%s has no input %zu", gb_op_label(op), input);
    }
    if (op->inputs[input] == op->outputs[0]) {
        return gb_fail(GB_INVALID_ARGUMENTS, "%s reads its own output", gb_op_label(op));
    }
    return GB_SUCCESS;
}

gb_status gb_graph_bypass_op(gb_graph *graph, size_t op_id, size_t input)
{
    gb_op *op;
    GB_TRY(rewrite_check_open(graph, "gb_graph_bypass_op"));
    GB_TRY(gb_graph_edit_op(graph, op_id, &op));
    GB_TRY(check_bypass(op, input));
    uint32_t from = op->outputs[0], to = op->inputs[input];
    const gb_value *output = &graph->values[from];
    gb_value *source = &graph->values[to];
    size_t room = source->n_uses + (size_t)output->n_uses;
    if (!gb_reserve(&source->uses, &source->use_capacity, room, sizeof *source->uses)) {
        return GB_OUT_OF_MEMORY;
    }
    for (uint32_t u = 0; u < output->n_uses; u++) {
        graph->ops[output->uses[u].op]->inputs[output->uses[u].input] = to;
    }
    GB_TRY(gb_graph_drop_op(graph, op->index));
    return drop_unused_values(graph);
}

/* Strided inputs of the graph, and results of Wildcards, whose strides the file or caller left open
 * are dense. */
static gb_status fill_input_strides(gb_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_values; i++) {
        gb_logical_tensor *tensor = &graph->values[i].tensor;
        uint32_t producer = graph->values[i].producer;
        bool given = producer == GB_NONE || gb_op_is_wildcard(graph->ops[producer]);
        if (!given || tensor->layout_type != GB_LAYOUT_STRIDED)
            continue;
        bool open = false;
        for (int d = 0; d < tensor->ndims; d++)
            open |= tensor->strides[d] == GB_UNKNOWN_DIM;
        if (!open)
            continue;
        GB_TRY(gb_logical_tensor_init_with_dims(tensor, tensor->id, tensor->data_type,
                tensor->ndims, tensor->dims, GB_LAYOUT_STRIDED, tensor->property));
    }
    return GB_SUCCESS;
}

gb_status gb_graph_infer_shapes(gb_graph *graph)
{
    GB_TRY(rewrite_check_open(graph, "gb_graph_infer_shapes"));
    GB_TRY(gb_graph_connect(graph));
    GB_TRY(fill_input_strides(graph));
    return gb_graph_infer_dims(graph);
}
