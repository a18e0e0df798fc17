/* Element-wise ops behind a movement come in front of it, to run with what makes the elements; those that make
 * elements narrower come in front of Interpolate that repeats them, too. */
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

/* Does it repeat elements, which are wider than those of the element-wise op? These will lie dense. */
static bool repeats_wide(const gb_op *op, const gb_op *elementwise)
{
    return op->kind == GB_OP_INTERPOLATE && gb_op_attr_is(op, GB_ATTR_MODE, "nearest", false) &&
           gb_is_dense(gb_op_input(op, 0)) &&
           gb_tensor_count(gb_op_input(op, 0)) < gb_tensor_count(gb_op_output(op, 0)) &&
           gb_data_type_bytes(gb_op_output(elementwise, 0)->data_type, 1) <
                   gb_data_type_bytes(gb_op_output(op, 0)->data_type, 1);
}

/* Is what it moves made inside of the partition? */
static bool moves_results(const gb_op *op)
{
    const gb_graph *graph = op->graph;
    if (!gb_is_movement(op))
        return false;
    const uint32_t producer = gb_graph_producer_through_views(graph, op->inputs[0]);
    return producer != GB_NONE && graph->ops[producer]->kind != GB_OP_CONCAT;
}

/* Elements moved and then read by the op alone. */
static gb_op *find_movement(const gb_pass_context *context, const gb_op *op)
{
    const gb_graph *graph = op->graph;
    const gb_value *moved = &graph->values[op->inputs[0]];
    if (moved->producer == GB_NONE || moved->n_uses != 1 || gb_leaves_partition(context, moved))
        return NULL;
    gb_op *movement = graph->ops[moved->producer];
    const bool pays = moves_results(movement) || repeats_wide(movement, op);
    return pays && gb_op_output(op, 0)->ndims >= 0 ? movement : NULL;
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
