/* Element-wise ops behind a movement come in front of it, to run with what makes the elements. */
#include "fusion/passes/passes.h"

bool gb_is_uniform(const gb_pass_context *context, const gb_op *op)
{
    if (!context->capability->is_pointwise(op) || op->n_outputs != 1 || op->n_inputs != 1)
        return false;
    if (op->kind == GB_OP_QUANTIZE || op->kind == GB_OP_DEQUANTIZE)
        return gb_op_attr_is(op, GB_ATTR_QTYPE, "per_tensor", true);
    return op->kind == GB_OP_TYPE_CAST ||
           gb_op_schema_get(op->kind)->flags & GB_OP_FLAG_CHAIN_UNARY;
}

/* Elements made inside of the partition, moved, and then read by the op alone. */
static gb_op *find_movement(const gb_pass_context *context, const gb_op *op)
{
    const gb_graph *graph = op->graph;
    const gb_value *moved = &graph->values[op->inputs[0]];
    if (moved->producer == GB_NONE || moved->n_uses != 1 || gb_leaves_partition(context, moved))
        return NULL;
    gb_op *movement = graph->ops[moved->producer];
    if (!gb_is_movement(movement) ||
            gb_graph_producer_through_views(graph, movement->inputs[0]) == GB_NONE)
        return NULL;
    const gb_op *producer = graph->ops[gb_graph_producer_through_views(graph, movement->inputs[0])];
    return gb_op_output(op, 0)->ndims >= 0 && producer->kind != GB_OP_CONCAT ? movement : NULL;
}

/* in > movement > moved > op > out  becomes  in > op > moved > movement > out, `moved` with the
 * dims of `in` and the type of `out`. The ops exchange their places. */
static gb_status exchange(gb_graph *graph, gb_op *movement, gb_op *op)
{
    uint32_t in = movement->inputs[0], moved = op->inputs[0], out = op->outputs[0];
    gb_logical_tensor *tensor = &graph->values[moved].tensor;
    const gb_logical_tensor *from = &graph->values[in].tensor;
    tensor->ndims = from->ndims;
    tensor->data_type = graph->values[out].tensor.data_type;
    for (int d = 0; d < from->ndims; d++)
        tensor->dims[d] = from->dims[d];
    gb_dense_strides(tensor->ndims, tensor->dims, tensor->strides);
    op->inputs[0] = in;
    op->outputs[0] = moved;
    movement->inputs[0] = moved;
    movement->outputs[0] = out;
    uint32_t first = movement->index, last = op->index;
    graph->ops[first] = op;
    graph->ops[last] = movement;
    return gb_graph_connect(graph);
}

gb_status gb_pass_hoist_elementwise(gb_graph *graph, gb_pass_context *context)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < graph->n_ops && !changed; i++) {
            gb_op *op = graph->ops[i];
            gb_op *movement = gb_is_uniform(context, op) ? find_movement(context, op) : NULL;
            if (!movement)
                continue;
            gb_status status = exchange(graph, movement, op);
            if (status != GB_SUCCESS)
                return status;
            changed = true;
        }
    }
    return GB_SUCCESS;
}
