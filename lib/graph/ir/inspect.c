/* Looking inside a graph: its ops, its tensors and how they are connected. */
#include "base/status.h"
#include "graph/ir/graph.h"

size_t gb_graph_get_op_num(const gb_graph *graph)
{
    return graph ? graph->n_ops : 0;
}

gb_status gb_graph_get_op(const gb_graph *graph, size_t index, const gb_op **op)
{
    if (!graph || !op)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_op: NULL argument");
    if (index >= graph->n_ops) {
        return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no op number %zu", index);
    }
    *op = graph->ops[index];
    return GB_SUCCESS;
}

gb_status gb_graph_find_op(const gb_graph *graph, size_t op_id, const gb_op **op)
{
    if (!graph || !op)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_find_op: NULL argument");
    uint32_t index = gb_graph_find_op_index(graph, op_id);
    if (index == GB_NONE) {
        return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no op %zu", op_id);
    }
    *op = graph->ops[index];
    return GB_SUCCESS;
}

gb_status gb_graph_edit_op(gb_graph *graph, size_t op_id, gb_op **op)
{
    if (!graph || !op)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_edit_op: NULL argument");
    if (graph->finalized)
        return gb_fail(GB_INVALID_GRAPH, "gb_graph_edit_op: the graph is finalized");
    uint32_t index = gb_graph_find_op_index(graph, op_id);
    if (index == GB_NONE)
        return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no op %zu", op_id);
    *op = graph->ops[index];
    return GB_SUCCESS;
}

size_t gb_graph_get_tensor_num(const gb_graph *graph)
{
    return graph ? graph->n_values : 0;
}

gb_status gb_graph_get_tensor(const gb_graph *graph, size_t index, gb_logical_tensor *tensor)
{
    if (!graph || !tensor) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_tensor: NULL argument");
    }
    if (index >= graph->n_values) {
        return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no tensor number %zu", index);
    }
    *tensor = graph->values[index].tensor;
    return GB_SUCCESS;
}

static gb_status find_value(const gb_graph *graph, size_t tensor_id, const gb_value **value)
{
    uint32_t index = gb_graph_find_value(graph, tensor_id);
    if (index == GB_NONE) {
        return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no tensor %zu", tensor_id);
    }
    *value = &graph->values[index];
    return GB_SUCCESS;
}

gb_status gb_graph_find_tensor(const gb_graph *graph, size_t tensor_id, gb_logical_tensor *tensor)
{
    const gb_value *value;
    if (!graph || !tensor) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_find_tensor: NULL argument");
    }
    GB_TRY(find_value(graph, tensor_id, &value));
    *tensor = value->tensor;
    return GB_SUCCESS;
}

gb_status gb_graph_get_producer(const gb_graph *graph, size_t tensor_id, const gb_op **op)
{
    const gb_value *value;
    if (!graph || !op) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_producer: NULL argument");
    }
    GB_TRY(find_value(graph, tensor_id, &value));
    *op = value->producer == GB_NONE ? NULL : graph->ops[value->producer];
    return GB_SUCCESS;
}

gb_status gb_graph_get_consumers(
        const gb_graph *graph, size_t tensor_id, size_t capacity, const gb_op **ops, size_t *count)
{
    const gb_value *value;
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_consumers: NULL argument");
    GB_TRY(find_value(graph, tensor_id, &value));
    GB_TRY(gb_check_list(
            "gb_graph_get_consumers", value->n_uses, capacity, (const void *)ops, count));
    for (uint32_t i = 0; ops && i < value->n_uses; i++)
        ops[i] = graph->ops[value->uses[i].op];
    return GB_SUCCESS;
}

gb_status gb_graph_get_uses(const gb_graph *graph, size_t tensor_id, size_t capacity,
        gb_tensor_use *uses, size_t *count)
{
    const gb_value *value;
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_uses: NULL argument");
    GB_TRY(find_value(graph, tensor_id, &value));
    GB_TRY(gb_check_list("gb_graph_get_uses", value->n_uses, capacity, uses, count));
    for (uint32_t i = 0; uses && i < value->n_uses; i++)
        uses[i] = (gb_tensor_use){graph->ops[value->uses[i].op]->id, value->uses[i].input};
    return GB_SUCCESS;
}

bool gb_graph_is_input(const gb_graph *graph, uint32_t value)
{
    const gb_value *v = &graph->values[value];
    return v->producer == GB_NONE && (v->n_uses > 0 || v->is_end);
}

bool gb_graph_is_output(const gb_graph *graph, uint32_t value)
{
    const gb_value *v = &graph->values[value];
    bool ended = v->n_uses == 0;
    for (uint32_t i = 0; i < v->n_uses; i++)
        ended |= graph->ops[v->uses[i].op]->kind == GB_OP_END;
    return v->producer != GB_NONE && ended;
}

/* The tensors with a marker. */
static gb_status list_marked(const gb_graph *graph, const char *function,
        bool (*is_marked)(const gb_graph *graph, uint32_t value), size_t capacity,
        gb_logical_tensor *tensors, size_t *count)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: NULL argument", function);
    size_t n = 0;
    for (uint32_t i = 0; i < graph->n_values; i++)
        n += is_marked(graph, i);
    GB_TRY(gb_check_list(function, n, capacity, tensors, count));
    n = 0;
    for (uint32_t i = 0; tensors && i < graph->n_values; i++)
        if (is_marked(graph, i))
            tensors[n++] = graph->values[i].tensor;
    return GB_SUCCESS;
}

gb_status gb_graph_get_inputs(
        const gb_graph *graph, size_t capacity, gb_logical_tensor *tensors, size_t *count)
{
    return list_marked(graph, __func__, gb_graph_is_input, capacity, tensors, count);
}

gb_status gb_graph_get_outputs(
        const gb_graph *graph, size_t capacity, gb_logical_tensor *tensors, size_t *count)
{
    return list_marked(graph, __func__, gb_graph_is_output, capacity, tensors, count);
}
