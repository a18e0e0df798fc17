/* Graphs to JSON, in the form and key order of the oneDNN Graph dump.
 *
 * Reading the text back gives the same graph, with an exception that lies in the format: a vector
 * of unknown length reads as an unknown rank. Opaque layouts have a key of their own, "layout". */
#include "base/status.h"
#include "graph/io/write.h"

#include <inttypes.h>

/* The release of oneDNN whose files these are like. */
static const char format_version[] = "3.14.0";

static const gb_value_style json_values = {"\"", {"0", "1"}, true};

/* `indent`: spaces in front of the key. */
static void write_attrs(FILE *file, const gb_op *op, int indent)
{
    const char *separator = "";
    fprintf(file, "%*s\"attrs\": {", indent, "");
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const gb_attr *attr = &op->attrs[i];
        if (gb_attr_is_note(attr->name))
            continue;
        fprintf(file, "%s\n%*s\"%s\": {\n", separator, indent + 2, "", gb_op_attr_name(attr->name));
        separator = ",";
        fprintf(file, "%*s\"type\": \"%s\",\n%*s\"value\": ", indent + 4, "",
                gb_attr_type_name(gb_op_attr_type(attr->name)), indent + 4, "");
        gb_write_attr_value(file, attr, &json_values);
        fprintf(file, "\n%*s}", indent + 2, "");
    }
    if (*separator)
        fprintf(file, "\n%*s},\n", indent, "");
    else
        fputs("},\n", file);
}

static void write_unknown(FILE *file)
{
    gb_write_s64s(file, &(int64_t){GB_UNKNOWN_DIM}, 1);
}

/* Unknown as a whole: one element. So are those of a vector of unknown length, which the form
 * cannot tell from a tensor of unknown rank. */
static void write_strides(FILE *file, const gb_logical_tensor *tensor)
{
    bool known = tensor->ndims == 0;
    for (int d = 0; d < tensor->ndims; d++)
        known |= tensor->strides[d] != GB_UNKNOWN_DIM;
    known &= tensor->ndims != 1 || tensor->dims[0] != GB_UNKNOWN_DIM;
    if (known && (tensor->layout_type == GB_LAYOUT_STRIDED || tensor->ndims == 0)) {
        gb_write_s64s(file, tensor->strides, (size_t)tensor->ndims);
    } else {
        write_unknown(file);
    }
}

static void write_tensor(FILE *file, const gb_logical_tensor *tensor)
{
    fprintf(file, "        {\n          \"id\": %zu,\n          \"dtype\": \"%s\",\n", tensor->id,
            gb_data_type_name(tensor->data_type));
    fputs("          \"shape\": ", file);
    if (tensor->ndims < 0) {
        write_unknown(file);
    } else {
        gb_write_s64s(file, tensor->dims, (size_t)tensor->ndims);
    }
    fputs(",\n          \"stride\": ", file);
    write_strides(file, tensor);
    fprintf(file, ",\n          \"layout_type\": \"%s\",\n",
            gb_layout_type_name(tensor->layout_type));
    if (tensor->layout_type == GB_LAYOUT_OPAQUE)
        fprintf(file, "          \"layout\": \"%s\",\n", gb_logical_tensor_get_layout(tensor));
    fprintf(file, "          \"property_type\": \"%s\"\n", gb_property_name(tensor->property));
    fputs("        }", file);
}

static void write_tensors(FILE *file, const gb_op *op, bool outputs)
{
    uint32_t count = outputs ? op->n_outputs : op->n_inputs;
    fprintf(file, "      \"%s\": [", outputs ? "outputs" : "inputs");
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", file);
        write_tensor(file, outputs ? gb_op_output(op, i) : gb_op_input(op, i));
    }
    fputs(count > 0 ? "\n      ]" : "]", file);
}

static void json_write_write_op(FILE *file, const gb_op *op)
{
    fprintf(file, "    {\n      \"id\": %zu,\n      \"name\": ", op->id);
    gb_write_string(file, op->name, &json_values);
    fprintf(file, ",\n      \"kind\": \"%s\",\n", gb_op_kind_name(gb_op_public_kind(op)));
    write_attrs(file, op, 6);
    write_tensors(file, op, false);
    fputs(",\n", file);
    write_tensors(file, op, true);
    fputs("\n    }", file);
}

static void write_ports(FILE *file, const gb_graph *graph, bool outputs)
{
    const char *separator = "";
    fprintf(file, "  \"%s\": [", outputs ? "output_ports" : "input_ports");
    for (uint32_t i = 0; i < graph->n_values; i++) {
        if (!(outputs ? gb_graph_is_output(graph, i) : gb_graph_is_input(graph, i)))
            continue;
        fprintf(file, "%s%zu", separator, graph->values[i].tensor.id);
        separator = ", ";
    }
    fputs("],\n", file);
}

static void write_graph(FILE *file, const gb_graph *graph, void *context)
{
    (void)context;
    fputs("{\n  \"version\": ", file);
    gb_write_string(file, *graph->version ? graph->version : format_version, &json_values);
    fprintf(file, ",\n  \"engine_kind\": \"%s\",\n  \"fpmath_mode\": \"%s\",\n",
            gb_engine_kind_name(graph->engine_kind), gb_fpmath_mode_name(graph->fpmath_mode));
    fprintf(file, "  \"fpmath_mode_apply_to_int\": \"%s\",\n",
            graph->fpmath_apply_to_int ? "true" : "false");
    if (graph->attrs && graph->attrs->n_attrs)
        write_attrs(file, graph->attrs, 2);
    write_ports(file, graph, false);
    write_ports(file, graph, true);
    fputs("  \"graph\": [", file);
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        fputs(i > 0 ? ",\n" : "\n", file);
        json_write_write_op(file, graph->ops[i]);
    }
    fputs(graph->n_ops > 0 ? "\n  ]\n}\n" : "]\n}\n", file);
}

gb_status gb_graph_save_json(const gb_graph *graph, const char *path)
{
    if (!graph || !path)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_save_json: NULL argument");
    return gb_write_file(graph, path, write_graph, NULL);
}
