/* Ends of a graph: inputs that are declared, constants with their contents, and outputs. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/graph.h"

#include <stdlib.h>

static gb_status ends_check_open(const gb_graph *graph, const void *argument, const char *function)
{
    if (!graph || !argument)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: NULL argument", function);
    if (graph->finalized)
        return gb_fail(GB_INVALID_GRAPH, "%s: the graph is finalized", function);
    return GB_SUCCESS;
}

static gb_status made_by_op(const gb_graph *graph, const gb_value *value)
{
    return gb_fail(GB_INVALID_GRAPH, "tensor %zu is an input of the graph, but %s makes it",
            value->tensor.id, gb_op_label(graph->ops[value->producer]));
}

/* What ops know of the tensor already is completed. */
static gb_status declare(gb_graph *graph, const gb_logical_tensor *tensor, gb_value **value)
{
    uint32_t index = gb_graph_find_value(graph, tensor->id);
    if (index != GB_NONE) {
        *value = &graph->values[index];
        if ((*value)->producer != GB_NONE)
            return made_by_op(graph, *value);
        if (!gb_logical_tensor_merge(&(*value)->tensor, tensor))
            return gb_fail(GB_INVALID_GRAPH, "tensor %zu is described in two ways: %s %s and %s %s",
                    tensor->id, gb_tensor_label(&(*value)->tensor),
                    gb_property_name((*value)->tensor.property), gb_tensor_label(tensor),
                    gb_property_name(tensor->property));
    } else {
        GB_TRY(gb_graph_add_value(graph, tensor, &index));
        *value = &graph->values[index];
    }
    (*value)->is_end = true;
    return GB_SUCCESS;
}

gb_status gb_graph_make_input(gb_graph *graph, const gb_logical_tensor *tensor)
{
    gb_value *value;
    GB_TRY(ends_check_open(graph, tensor, "gb_graph_make_input"));
    GB_TRY(gb_logical_tensor_check(tensor));
    gb_logical_tensor input = *tensor;
    gb_logical_tensor_normalize(&input);
    return declare(graph, &input, &value);
}

gb_status gb_graph_make_constant(gb_graph *graph, const gb_logical_tensor *tensor, const void *data)
{
    gb_value *value;
    size_t bytes;
    GB_TRY(ends_check_open(graph, tensor, "gb_graph_make_constant"));
    if (!data)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_make_constant: no contents");
    gb_logical_tensor constant = *tensor;
    constant.property = GB_PROPERTY_CONSTANT;
    GB_TRY(gb_logical_tensor_check(&constant));
    GB_TRY(gb_logical_tensor_get_mem_size(&constant, &bytes));
    if (bytes == SIZE_MAX)
        return gb_fail(GB_INVALID_ARGUMENTS, "constant %zu (%s): its size is not known", tensor->id,
                gb_tensor_label(tensor));
    void *copy = bytes ? gb_memdup(data, bytes) : gb_calloc(1, 1);
    if (!copy)
        return GB_OUT_OF_MEMORY;
    gb_status status = declare(graph, &constant, &value);
    if (status != GB_SUCCESS) {
        free(copy);
        return status;
    }
    free(value->data);
    value->data = copy;
    value->data_bytes = bytes;
    return GB_SUCCESS;
}

gb_status gb_graph_get_constant(
        const gb_graph *graph, size_t tensor_id, const void **data, size_t *bytes)
{
    if (!graph || !data || !bytes)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_constant: NULL argument");
    uint32_t index = gb_graph_find_value(graph, tensor_id);
    if (index == GB_NONE)
        return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no tensor %zu", tensor_id);
    *data = graph->values[index].data;
    *bytes = graph->values[index].data_bytes;
    return GB_SUCCESS;
}

gb_status gb_graph_make_output(gb_graph *graph, size_t tensor_id)
{
    gb_op *end;
    GB_TRY(ends_check_open(graph, &tensor_id, "gb_graph_make_output"));
    uint32_t index = gb_graph_find_value(graph, tensor_id);
    if (index == GB_NONE)
        return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no tensor %zu", tensor_id);
    const gb_value *value = &graph->values[index];
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (graph->ops[value->uses[i].op]->kind == GB_OP_END)
            return GB_SUCCESS;
    GB_TRY(gb_op_create(&end, gb_graph_new_id(graph), GB_OP_END, "output"));
    gb_status status = gb_op_add_input(end, &value->tensor);
    if (status == GB_SUCCESS)
        status = gb_graph_add_op(graph, end);
    gb_op_free(end);
    return status;
}

gb_status gb_graph_copy_ends(const gb_graph *from, gb_graph *to)
{
    for (uint32_t i = 0; i < from->n_values; i++) {
        const gb_value *end = &from->values[i];
        uint32_t index;
        if (!end->is_end)
            continue;
        GB_TRY(gb_graph_add_value(to, &end->tensor, &index));
        gb_value *copy = &to->values[index];
        if (copy->producer != GB_NONE)
            return made_by_op(to, copy);
        copy->is_end = true;
        if (!end->data)
            continue;
        copy->data = gb_memdup(end->data, end->data_bytes ? end->data_bytes : 1);
        if (!copy->data)
            return GB_OUT_OF_MEMORY;
        copy->data_bytes = end->data_bytes;
    }
    return GB_SUCCESS;
}
