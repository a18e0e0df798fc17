/* Checking a graph as a whole. What was set behind gb_graph_add_op() has not met the op table yet.
 */
#include "base/status.h"
#include "base/verbose.h"
#include "graph/ir/written.h"
#include "graph/ops/op_table.h"

static gb_status verify_ops(const gb_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_ops; i++)
        GB_TRY(gb_op_verify(graph->ops[i]));
    return GB_SUCCESS;
}

gb_status gb_graph_verify(const gb_graph *graph)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_verify: NULL argument");
    GB_TRY(verify_ops(graph));
    return gb_graph_check_written(graph);
}

static gb_status finalize(gb_graph *graph, bool verify)
{
    GB_TRY(gb_graph_connect(graph));
    if (verify)
        GB_TRY(verify_ops(graph));
    GB_TRY(gb_graph_check_written(graph));
    graph->finalized = true;
    return GB_SUCCESS;
}

gb_status gb_graph_finalize(gb_graph *graph)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_finalize: NULL argument");
    if (graph->finalized)
        return GB_SUCCESS;
    return gb_verbose_result("finalize", finalize(graph, true));
}

gb_status gb_graph_finalize_unchecked(gb_graph *graph)
{
    return gb_verbose_result("finalize", finalize(graph, false));
}
