/* Views: values that lie in the memory of another value, with strides of their own. */
#include "graph/ir/graph.h"

uint32_t gb_graph_storage(const gb_graph *graph, uint32_t value)
{
    while (graph->values[value].view_of != GB_NONE)
        value = graph->values[value].view_of;
    return value;
}

bool gb_op_is_view(const gb_op *op)
{
    if (!op->graph || op->n_inputs != 1 || op->n_outputs != 1)
        return false;
    const gb_value *values = op->graph->values;
    uint32_t in = op->inputs[0], out = op->outputs[0];
    return values[out].view_of == in || values[in].view_of == out;
}

bool gb_graph_strides_count(const gb_graph *graph, uint32_t value)
{
    const gb_value *v = &graph->values[value];
    return v->producer != GB_NONE && v->producer_output == 0 &&
           graph->ops[v->producer]->kind == GB_OP_DROPOUT;
}

uint32_t gb_graph_producer_through_views(const gb_graph *graph, uint32_t value)
{
    uint32_t producer = graph->values[value].producer;
    while (producer != GB_NONE && gb_op_is_view(graph->ops[producer]))
        producer = graph->values[graph->ops[producer]->inputs[0]].producer;
    return producer;
}
