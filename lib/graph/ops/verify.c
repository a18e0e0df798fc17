/* gb_op_verify(): an op against its row of the op table. */
#include "base/status.h"
#include "graph/ops/op_rules.h"
#include <stdio.h>
#include <string.h>

/* One side of an op and of its schema. */
typedef struct port_list {
    const char *name; /* "input" or "output" */
    uint32_t count, min, max, legal;
    uint32_t n_ports;
    const gb_port_schema *ports;
    const gb_logical_tensor *(*tensor)(const gb_op *op, uint32_t i);
} port_list;

/* The type that a type variable stands for, and the port that fixed it. */
typedef struct binding {
    gb_data_type type;
    const char *port;
} binding;

enum { N_VARIABLES = 26, TEXT_SIZE = 160 };

/* Appends to text, cutting what does not fit. */
static void append(char text[TEXT_SIZE], const char *separator, const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, TEXT_SIZE - length, "%s%s", length ? separator : "", more);
}

static void type_names(gb_type_set types, char text[TEXT_SIZE])
{
    text[0] = '\0';
    for (int type = 0; type <= GB_S64; type++)
        if (types >> type & 1)
            append(text, ", ", gb_data_type_name((gb_data_type)type));
}

static void legal_counts(const port_list *side, char text[TEXT_SIZE])
{
    text[0] = '\0';
    if (!side->legal) {
        if (side->max == UINT32_MAX)
            snprintf(text, TEXT_SIZE, "at least %u", side->min);
        else if (side->min == side->max)
            snprintf(text, TEXT_SIZE, "%u", side->min);
        else
            snprintf(text, TEXT_SIZE, "%u to %u", side->min, side->max);
        return;
    }
    for (uint32_t count = 0; count < 32; count++) {
        char number[16];
        snprintf(number, sizeof(number), "%u", count);
        if (side->legal >> count & 1)
            append(text, " or ", number);
    }
}

static gb_status check_count(const gb_op *op, const port_list *side)
{
    bool legal = side->count >= side->min && side->count <= side->max;
    if (legal && side->legal)
        legal = side->legal >> side->count & 1;
    if (legal)
        return GB_SUCCESS;
    char expected[TEXT_SIZE];
    legal_counts(side, expected);
    return gb_fail(GB_INVALID_GRAPH_OP, "%s: %u %s tensors, expected %s", gb_op_label(op),
            side->count, side->name, expected);
}

static gb_status check_type(
        const gb_op *op, const port_list *side, uint32_t i, binding bindings[N_VARIABLES])
{
    const gb_port_schema *port = &side->ports[i < side->n_ports ? i : side->n_ports - 1];
    gb_data_type type = side->tensor(op, i)->data_type;
    if ((unsigned)type > GB_S64 || !(port->types >> type & 1)) {
        char expected[TEXT_SIZE];
        type_names(port->types, expected);
        return gb_fail(GB_INVALID_GRAPH_OP, "%s: %s %u (%s) is %s, allowed: %s", gb_op_label(op),
                side->name, i, port->name, gb_data_type_name(type), expected);
    }
    if (!port->type_variable)
        return GB_SUCCESS;
    binding *bound = &bindings[port->type_variable - 'A'];
    if (!bound->port)
        *bound = (binding){type, port->name};
    if (bound->type != type)
        return gb_fail(GB_INVALID_GRAPH_OP, "%s: %s %u (%s) is %s, but %s is %s", gb_op_label(op),
                side->name, i, port->name, gb_data_type_name(type), bound->port,
                gb_data_type_name(bound->type));
    return GB_SUCCESS;
}

static gb_status check_types(const gb_op *op, const port_list *side, binding bindings[N_VARIABLES])
{
    for (uint32_t i = 0; i < side->count; i++)
        GB_TRY(check_type(op, side, i, bindings));
    return GB_SUCCESS;
}

static const gb_attr_schema *find_attr_schema(const gb_op_schema *schema, gb_op_attr name)
{
    for (uint32_t i = 0; i < schema->n_attrs; i++)
        if (schema->attrs[i].name == name)
            return &schema->attrs[i];
    return NULL;
}

static gb_status check_unknown_attrs(const gb_op *op, const gb_op_schema *schema)
{
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        if (gb_attr_is_defined(op->attrs[i].name) || find_attr_schema(schema, op->attrs[i].name))
            continue;
        char known[TEXT_SIZE] = "";
        for (uint32_t j = 0; j < schema->n_attrs; j++)
            append(known, ", ", gb_op_attr_name(schema->attrs[j].name));
        return gb_fail(GB_INVALID_GRAPH_OP, "%s has no attribute \"%s\"; allowed: %s",
                gb_op_label(op), gb_op_attr_name(op->attrs[i].name),
                schema->n_attrs ? known : "none");
    }
    return GB_SUCCESS;
}

static gb_status check_attr(const gb_op *op, const gb_attr_schema *schema)
{
    const gb_attr *attr = gb_op_find_attr(op, schema->name);
    if (!attr && schema->required)
        return gb_fail(GB_INVALID_GRAPH_OP, "%s: attribute \"%s\" is missing", gb_op_label(op),
                gb_op_attr_name(schema->name));
    if (!attr || !schema->values)
        return GB_SUCCESS;
    char allowed[TEXT_SIZE] = "";
    for (const char *const *value = schema->values; *value; value++) {
        if (!strcmp(*value, attr->value.string))
            return GB_SUCCESS;
        append(allowed, ", ", *value);
    }
    return gb_fail(GB_INVALID_GRAPH_OP, "%s: attribute \"%s\" is \"%s\", allowed: %s",
            gb_op_label(op), gb_op_attr_name(schema->name), attr->value.string, allowed);
}

static port_list input_list(const gb_op *op, const gb_op_schema *schema)
{
    return (port_list){"input", op->n_inputs, schema->min_inputs, schema->max_inputs,
            schema->input_counts, schema->n_inputs, schema->inputs, gb_op_input};
}

static port_list output_list(const gb_op *op, const gb_op_schema *schema)
{
    return (port_list){"output", op->n_outputs, schema->min_outputs, schema->max_outputs,
            schema->output_counts, schema->n_outputs, schema->outputs, gb_op_output};
}

static gb_status check_definition(const gb_op *op)
{
    const gb_op_definition *d = op->definition;
    if (op->n_inputs >= d->min_inputs && op->n_inputs <= d->max_inputs &&
            op->n_outputs >= d->min_outputs && op->n_outputs <= d->max_outputs)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_GRAPH_OP,
            "%s has %u inputs and %u outputs, defined with %zu to %zu and %zu to %zu",
            gb_op_label(op), op->n_inputs, op->n_outputs, d->min_inputs, d->max_inputs,
            d->min_outputs, d->max_outputs);
}

gb_status gb_op_verify_counts(const gb_op *op)
{
    const gb_op_schema *schema = gb_op_schema_get(op->kind);
    if (!schema)
        return gb_fail(
                GB_INVALID_GRAPH_OP, "%s: %d is not an op kind", gb_op_label(op), (int)op->kind);
    port_list inputs = input_list(op, schema), outputs = output_list(op, schema);
    if (op->definition)
        return check_definition(op);
    GB_TRY(check_count(op, &inputs));
    return check_count(op, &outputs);
}

gb_status gb_op_verify(const gb_op *op)
{
    GB_TRY(gb_op_verify_counts(op));
    if (op->kind == GB_OP_WILDCARD) /* stands for any op, so it may carry anything */
        return GB_SUCCESS;
    const gb_op_schema *schema = gb_op_schema_get(op->kind);
    binding bindings[N_VARIABLES] = {{GB_UNDEF, NULL}};
    port_list inputs = input_list(op, schema), outputs = output_list(op, schema);
    GB_TRY(check_types(op, &inputs, bindings));
    GB_TRY(check_types(op, &outputs, bindings));
    for (uint32_t i = 0; i < schema->n_attrs; i++)
        GB_TRY(check_attr(op, &schema->attrs[i]));
    GB_TRY(check_unknown_attrs(op, schema));
    return schema->check ? schema->check(op) : GB_SUCCESS;
}
