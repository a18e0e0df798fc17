/* Ports in formats of blocks: a Reorder stands between them and the ops, which work on strides. */
#include "fusion/passes/passes.h"

#include "base/status.h"

static bool is_opaque(const gb_value *value)
{
    return value->tensor.layout_type == GB_LAYOUT_OPAQUE;
}

/* A Reorder from `from` to `to`, one of which is a tensor that the graph does not have yet. */
static gb_status add_reorder(
        gb_graph *graph, const gb_logical_tensor *from, const gb_logical_tensor *to)
{
    gb_op *op;
    GB_TRY(gb_op_create(&op, gb_graph_new_id(graph), GB_OP_REORDER, ""));
    gb_status status = gb_op_add_input(op, from);
    if (status == GB_SUCCESS)
        status = gb_op_add_output(op, to);
    if (status == GB_SUCCESS)
        return gb_graph_take_op(graph, op); /* frees it on failure */
    gb_op_free(op);
    return status;
}

/* Like the tensor, with an id of its own and dense strides. */
static gb_status strided_twin(
        const gb_graph *graph, const gb_logical_tensor *tensor, gb_logical_tensor *twin)
{
    return gb_logical_tensor_init_with_dims(twin, gb_graph_new_id(graph), tensor->data_type,
            tensor->ndims, tensor->dims, GB_LAYOUT_STRIDED, tensor->property);
}

/* Readers other than Reorder ops read `to` instead. */
static void move_readers(gb_graph *graph, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_inputs && op->kind != GB_OP_REORDER; k++)
            if (op->inputs[k] == from)
                op->inputs[k] = to;
    }
}

static bool has_other_readers(const gb_graph *graph, const gb_value *value)
{
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (graph->ops[value->uses[i].op]->kind != GB_OP_REORDER)
            return true;
    return false;
}

gb_status gb_reorder_port(
        gb_graph *graph, uint32_t port, const gb_logical_tensor *twin, uint32_t *inside)
{
    uint32_t producer = graph->values[port].producer, output = graph->values[port].producer_output;
    const gb_logical_tensor tensor = graph->values[port].tensor;
    bool is_input = producer == GB_NONE;
    GB_TRY(add_reorder(graph, is_input ? &tensor : twin, is_input ? twin : &tensor));
    *inside = gb_graph_find_value(graph, twin->id);
    if (!is_input)
        graph->ops[producer]->outputs[output] = *inside;
    move_readers(graph, port, *inside);
    return gb_graph_connect(graph);
}

/* Where an op stands between, the port can stay as it is. */
static bool needs_reorder(const gb_graph *graph, const gb_value *value)
{
    if (!is_opaque(value))
        return false;
    bool moved = value->producer != GB_NONE && graph->ops[value->producer]->kind == GB_OP_REORDER;
    return (value->producer != GB_NONE && !moved) || has_other_readers(graph, value);
}

gb_status gb_pass_ports(gb_graph *graph, gb_pass_context *context)
{
    (void)context;
    for (uint32_t i = 0, n = graph->n_values; i < n; i++) {
        gb_logical_tensor twin;
        uint32_t inside;
        if (!needs_reorder(graph, &graph->values[i]))
            continue;
        GB_TRY(strided_twin(graph, &graph->values[i].tensor, &twin));
        GB_TRY(gb_reorder_port(graph, i, &twin, &inside));
    }
    return GB_SUCCESS;
}
