/* Adding an op to a graph: what the op table says of it is checked first. */
#include "base/status.h"
#include "base/verbose.h"
#include "graph/ops/op_table.h"

static gb_status check_add(const gb_graph *graph, const gb_op *op)
{
    if (!graph || !op)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_add_op: NULL argument");
    if (graph->finalized) {
        return gb_fail(
                GB_INVALID_GRAPH, "%s: the graph is finalized and takes no op", gb_op_label(op));
    }
    if ((unsigned)op->kind >= GB_OP_LAST) {
        return gb_fail(
                GB_INVALID_GRAPH_OP, "op %zu: op kind %d does not exist", op->id, (int)op->kind);
    }
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        uint32_t value = gb_graph_find_value(graph, gb_op_output(op, i)->id);
        if (value != GB_NONE && graph->values[value].is_end)
            return gb_fail(GB_INVALID_GRAPH_OP, "%s makes tensor %zu, an input of the graph",
                    gb_op_label(op), gb_op_output(op, i)->id);
    }
    uint32_t other = gb_graph_find_op_index(graph, op->id);
    if (other == GB_NONE)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_GRAPH_OP, "%s: the graph has an op of this id already: %s",
            gb_op_label(op), gb_op_label(graph->ops[other]));
}

static gb_status add_op(gb_graph *graph, const gb_op *op)
{
    GB_TRY(check_add(graph, op));
    gb_op *copy = NULL;
    GB_TRY(gb_op_clone(op, &copy));
    gb_status status = gb_op_fill_defaults(copy);
    if (status == GB_SUCCESS)
        status = gb_op_verify(copy);
    if (status != GB_SUCCESS) {
        gb_op_free(copy);
        return status;
    }
    GB_TRY(gb_graph_take_op(graph, copy));
    return gb_graph_merge_tensors(graph, op);
}

gb_status gb_graph_add_op(gb_graph *graph, const gb_op *op)
{
    return gb_verbose_result("add_op", add_op(graph, op));
}
