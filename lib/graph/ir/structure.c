/* What must hold of a graph's structure between any two functions that change it. */
#include "base/status.h"
#include "graph/ir/graph.h"

#define BROKEN(...) gb_fail(GB_RUNTIME_ERROR, __VA_ARGS__)

static bool is_used(const gb_value *value, uint32_t op, uint32_t input)
{
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (value->uses[i].op == op && value->uses[i].input == input)
            return true;
    return false;
}

static gb_status structure_check_inputs(const gb_graph *graph, const gb_op *op, bool ordered)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        if (op->inputs[i] >= graph->n_values)
            return BROKEN("%s: input %u does not exist", gb_op_label(op), i);
        const gb_value *value = &graph->values[op->inputs[i]];
        if (!is_used(value, op->index, i))
            return BROKEN(
                    "tensor %zu does not know that %s reads it", value->tensor.id, gb_op_label(op));
        if (ordered && value->producer != GB_NONE && value->producer >= op->index)
            return BROKEN("%s runs before its input %u is made", gb_op_label(op), i);
    }
    return GB_SUCCESS;
}

static gb_status check_outputs(const gb_graph *graph, const gb_op *op)
{
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        if (op->outputs[i] >= graph->n_values)
            return BROKEN("%s: output %u does not exist", gb_op_label(op), i);
        const gb_value *value = &graph->values[op->outputs[i]];
        if (value->producer != op->index || value->producer_output != i)
            return BROKEN(
                    "tensor %zu does not know that %s makes it", value->tensor.id, gb_op_label(op));
    }
    return GB_SUCCESS;
}

static gb_status check_op(const gb_graph *graph, uint32_t index, bool ordered)
{
    const gb_op *op = graph->ops[index];
    if (op->graph != graph || op->index != index || op->n_own)
        return BROKEN("%s is not where it says", gb_op_label(op));
    if (gb_graph_find_op_index(graph, op->id) != index)
        return BROKEN("%s is not found by its id", gb_op_label(op));
    GB_TRY(structure_check_inputs(graph, op, ordered));
    return check_outputs(graph, op);
}

static bool makes(const gb_graph *graph, const gb_value *value, uint32_t index)
{
    const gb_op *op = value->producer < graph->n_ops ? graph->ops[value->producer] : NULL;
    return op && value->producer_output < op->n_outputs &&
           op->outputs[value->producer_output] == index;
}

/* The value is found by its id, and who makes and reads it is real. */
static gb_status check_value(const gb_graph *graph, uint32_t index)
{
    const gb_value *value = &graph->values[index];
    if (gb_graph_find_value(graph, value->tensor.id) != index)
        return BROKEN("tensor %zu is not found by its id", value->tensor.id);
    if (value->producer != GB_NONE && !makes(graph, value, index))
        return BROKEN("tensor %zu names a producer that does not make it", value->tensor.id);
    for (uint32_t i = 0; i < value->n_uses; i++) {
        gb_use use = value->uses[i], before = value->uses[i ? i - 1 : 0];
        if (use.op >= graph->n_ops || use.input >= graph->ops[use.op]->n_inputs ||
                graph->ops[use.op]->inputs[use.input] != index)
            return BROKEN("tensor %zu lists a reader that does not read it", value->tensor.id);
        if (i && (use.op < before.op || (use.op == before.op && use.input <= before.input)))
            return BROKEN("the readers of tensor %zu are out of order", value->tensor.id);
    }
    return GB_SUCCESS;
}

gb_status gb_graph_check_structure(const gb_graph *graph, bool ordered)
{
    for (uint32_t i = 0; i < graph->n_ops; i++)
        GB_TRY(check_op(graph, i, ordered));
    for (uint32_t i = 0; i < graph->n_values; i++)
        GB_TRY(check_value(graph, i));
    return GB_SUCCESS;
}
