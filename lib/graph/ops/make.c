/* Making an op for a graph by the name of its kind: the op table knows the types of its outputs. */
#include "base/status.h"
#include "graph/ir/graph.h"
#include "graph/ops/op_table.h"

/* The first tensor id that is free, from the number of tensors on. */
static size_t free_tensor_id(const gb_graph *graph, size_t after)
{
    while (gb_graph_find_value(graph, after) != GB_NONE)
        after++;
    return after;
}

static size_t free_op_id(const gb_graph *graph)
{
    size_t id = graph->n_ops;
    while (gb_graph_find_op_index(graph, id) != GB_NONE)
        id++;
    return id;
}

static const gb_port_schema *make_port_of(const gb_port_schema *ports, uint32_t n, uint32_t i)
{
    return n == 0 ? NULL : &ports[i < n ? i : n - 1];
}

/* The type of an input whose port shares the letter of the output's, the only type that the port
 * allows, or that of input 0. */
static gb_status derive_type(const gb_op *op, uint32_t output, gb_data_type *type)
{
    const gb_op_schema *schema = gb_op_schema_get(op->kind);
    const gb_port_schema *port = make_port_of(schema->outputs, schema->n_outputs, output);
    gb_type_set types = port ? port->types : 0;
    for (uint32_t i = 0; port && port->type_variable && i < op->n_inputs; i++) {
        const gb_port_schema *input = make_port_of(schema->inputs, schema->n_inputs, i);
        *type = gb_op_input(op, i)->data_type;
        if (input && input->type_variable == port->type_variable)
            return GB_SUCCESS;
    }
    for (int only = GB_UNDEF + 1; only <= GB_S64; only++) {
        *type = (gb_data_type)only;
        if (types == (gb_type_set)1 << only)
            return GB_SUCCESS;
    }
    *type = op->n_inputs ? gb_op_input(op, 0)->data_type : GB_UNDEF;
    if (*type != GB_UNDEF && types >> *type & 1)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS,
            "%s: the type of output %u does not follow from its inputs", gb_op_label(op), output);
}

static gb_status add_inputs(gb_op *op, const gb_graph *graph, size_t n, const size_t *ids)
{
    for (size_t i = 0; i < n; i++) {
        gb_logical_tensor tensor;
        GB_TRY(gb_graph_find_tensor(graph, ids[i], &tensor));
        GB_TRY(gb_op_add_input(op, &tensor));
    }
    return GB_SUCCESS;
}

static gb_status add_outputs(gb_op *op, const gb_graph *graph, size_t n, const gb_data_type *types)
{
    size_t id = graph->n_values;
    for (uint32_t i = 0; i < n; i++) {
        gb_logical_tensor tensor;
        gb_data_type type = types ? types[i] : GB_UNDEF;
        if (type == GB_UNDEF)
            GB_TRY(derive_type(op, i, &type));
        id = free_tensor_id(graph, id);
        GB_TRY(gb_logical_tensor_init(
                &tensor, id++, type, GB_UNKNOWN_NDIMS, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE));
        GB_TRY(gb_op_add_output(op, &tensor));
    }
    return GB_SUCCESS;
}

gb_status gb_graph_make_op(gb_op **op, const gb_graph *graph, const char *kind, size_t n_inputs,
        const size_t *input_ids, size_t n_outputs, const gb_data_type *types)
{
    gb_op_kind number;
    gb_op *made;
    if (!op || !graph || (n_inputs && !input_ids))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_make_op: NULL argument");
    GB_TRY(gb_op_kind_parse(kind, &number));
    GB_TRY(gb_op_create(&made, free_op_id(graph), number, ""));
    gb_status status = add_inputs(made, graph, n_inputs, input_ids);
    if (status == GB_SUCCESS)
        status = add_outputs(made, graph, n_outputs, types);
    if (status == GB_SUCCESS)
        *op = made;
    else
        gb_op_free(made);
    return status;
}
