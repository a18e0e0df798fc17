/* Attributes of a graph as a whole: those of an op that stands for it. */
#include "base/status.h"
#include "graph/ir/graph.h"

gb_status gb_graph_attr_carrier(gb_graph *graph, gb_op **op)
{
    if (!graph->attrs)
        GB_TRY(gb_op_create(&graph->attrs, 0, GB_OP_WILDCARD, "graph"));
    *op = graph->attrs;
    return GB_SUCCESS;
}

/* The op to set an attribute on. */
static gb_status carrier(gb_graph *graph, gb_op_attr attr, gb_op **op)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "setting an attribute: the graph is NULL");
    if (graph->finalized)
        return gb_fail(GB_INVALID_GRAPH, "attribute \"%s\" set after the graph was finalized",
                gb_op_attr_name(attr));
    if (!gb_attr_is_defined(attr))
        return gb_fail(GB_INVALID_ARGUMENTS, "attribute \"%s\" (%d) is none of a graph",
                gb_op_attr_name(attr), (int)attr);
    return gb_graph_attr_carrier(graph, op);
}

gb_status gb_graph_set_attr_f32(gb_graph *graph, gb_op_attr attr, size_t count, const float *values)
{
    gb_op *op;
    GB_TRY(carrier(graph, attr, &op));
    return gb_op_set_attr_f32(op, attr, count, values);
}

gb_status gb_graph_set_attr_s64(
        gb_graph *graph, gb_op_attr attr, size_t count, const int64_t *values)
{
    gb_op *op;
    GB_TRY(carrier(graph, attr, &op));
    return gb_op_set_attr_s64(op, attr, count, values);
}

gb_status gb_graph_set_attr_bool(
        gb_graph *graph, gb_op_attr attr, size_t count, const uint8_t *values)
{
    gb_op *op;
    GB_TRY(carrier(graph, attr, &op));
    return gb_op_set_attr_bool(op, attr, count, values);
}

gb_status gb_graph_set_attr_str(gb_graph *graph, gb_op_attr attr, const char *value, size_t length)
{
    gb_op *op;
    GB_TRY(carrier(graph, attr, &op));
    return gb_op_set_attr_str(op, attr, value, length);
}

gb_status gb_graph_set_attr_pointer(gb_graph *graph, gb_op_attr attr, void *pointer)
{
    gb_op *op;
    GB_TRY(carrier(graph, attr, &op));
    return gb_op_set_attr_pointer(op, attr, pointer);
}

gb_status gb_graph_get_attr(
        const gb_graph *graph, gb_op_attr attr, size_t *count, const void **values)
{
    if (!graph || !values || !count)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_attr: NULL argument");
    *values = NULL;
    *count = 0;
    return graph->attrs ? gb_op_get_attr(graph->attrs, attr, count, values) : GB_SUCCESS;
}

gb_status gb_graph_get_attrs(
        const gb_graph *graph, size_t capacity, gb_op_attr *attrs, size_t *count)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_attrs: NULL argument");
    return graph->attrs ? gb_op_get_attrs(graph->attrs, capacity, attrs, count)
                        : gb_check_list("gb_graph_get_attrs", 0, capacity, attrs, count);
}
