/* Graphs to JSON, in the form and key order of the oneDNN Graph dump.
 *
 * Reading the text back gives the same graph, with two exceptions that lie in the format: a vector
 * of unknown length reads as an unknown rank, and a private (opaque) layout as any. */
#include "base/status.h"
#include "graph/graph.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The release of oneDNN whose files these are like. */
static const char format_version[] = "3.14.0";

static void write_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            fprintf(file, "\\%c", c);
        } else if (c < ' ') {
            fprintf(file, "\\u%04x", c);
        } else {
            fputc(c, file);
        }
    }
    fputc('"', file);
}

/* The fewest digits that read back as the same number; numbers that JSON does not have are strings.
 */
static void write_f32(FILE *file, float number)
{
    char text[32];
    if (!isfinite(number)) {
        fprintf(file, isnan(number) ? "\"nan\"" : number < 0 ? "\"-inf\"" : "\"inf\"");
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)number);
        if ((float)strtod(text, NULL) == number)
            break;
    }
    fputs(text, file);
}

static void write_s64s(FILE *file, const int64_t *values, size_t count)
{
    fputc('[', file);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%s%" PRId64, i > 0 ? ", " : "", values[i]);
    }
    fputc(']', file);
}

static void write_f32s(FILE *file, const float *values, size_t count)
{
    fputc('[', file);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fputs(", ", file);
        write_f32(file, values[i]);
    }
    fputc(']', file);
}

static void write_value(FILE *file, const gb_attr *attr)
{
    switch (gb_op_attr_type(attr->name)) {
    case GB_ATTR_TYPE_F32:
        write_f32(file, attr->value.f32);
        break;
    case GB_ATTR_TYPE_F32S:
        write_f32s(file, attr->value.f32s, attr->count);
        break;
    case GB_ATTR_TYPE_S64:
        fprintf(file, "%" PRId64, attr->value.s64);
        break;
    case GB_ATTR_TYPE_S64S:
        write_s64s(file, attr->value.s64s, attr->count);
        break;
    case GB_ATTR_TYPE_BOOL:
        fputc(attr->value.boolean ? '1' : '0', file);
        break;
    case GB_ATTR_TYPE_STRING:
        write_string(file, attr->value.string);
        break;
    case GB_ATTR_TYPE_NONE:
        break;
    }
}

static void write_attrs(FILE *file, const gb_op *op)
{
    fputs("      \"attrs\": {", file);
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const gb_attr *attr = &op->attrs[i];
        fprintf(file, "%s\n        \"%s\": {\n", i > 0 ? "," : "", gb_op_attr_name(attr->name));
        fprintf(file, "          \"type\": \"%s\",\n          \"value\": ",
                gb_attr_type_name(gb_op_attr_type(attr->name)));
        write_value(file, attr);
        fputs("\n        }", file);
    }
    fputs(op->n_attrs > 0 ? "\n      },\n" : "},\n", file);
}

static void write_unknown(FILE *file)
{
    write_s64s(file, &(int64_t){GB_UNKNOWN_DIM}, 1);
}

/* Unknown as a whole: one element. */
static void write_strides(FILE *file, const gb_logical_tensor *tensor)
{
    bool known = tensor->ndims == 0;
    for (int d = 0; d < tensor->ndims; d++)
        known |= tensor->strides[d] != GB_UNKNOWN_DIM;
    if (known && (tensor->layout_type == GB_LAYOUT_STRIDED || tensor->ndims == 0)) {
        write_s64s(file, tensor->strides, (size_t)tensor->ndims);
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
        write_s64s(file, tensor->dims, (size_t)tensor->ndims);
    }
    fputs(",\n          \"stride\": ", file);
    write_strides(file, tensor);
    fprintf(file, ",\n          \"layout_type\": \"%s\",\n          \"property_type\": \"%s\"\n",
            gb_layout_type_name(tensor->layout_type), gb_property_name(tensor->property));
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

static void write_op(FILE *file, const gb_op *op)
{
    fprintf(file, "    {\n      \"id\": %zu,\n      \"name\": ", op->id);
    write_string(file, op->name);
    fprintf(file, ",\n      \"kind\": \"%s\",\n", gb_op_kind_name(op->kind));
    write_attrs(file, op);
    write_tensors(file, op, false);
    fputs(",\n", file);
    write_tensors(file, op, true);
    fputs("\n    }", file);
}

static bool is_port(const gb_graph *graph, const gb_value *value, bool output)
{
    if (!output)
        return value->producer == GB_NONE && value->n_uses > 0;
    bool ended = false;
    for (uint32_t i = 0; i < value->n_uses; i++) {
        ended |= graph->ops[value->uses[i].op]->kind == GB_OP_END;
    }
    return value->producer != GB_NONE && (value->n_uses == 0 || ended);
}

static void write_ports(FILE *file, const gb_graph *graph, bool outputs)
{
    const char *separator = "";
    fprintf(file, "  \"%s\": [", outputs ? "output_ports" : "input_ports");
    for (uint32_t i = 0; i < graph->n_values; i++) {
        if (!is_port(graph, &graph->values[i], outputs))
            continue;
        fprintf(file, "%s%zu", separator, graph->values[i].tensor.id);
        separator = ", ";
    }
    fputs("],\n", file);
}

static void write_graph(FILE *file, const gb_graph *graph)
{
    fputs("{\n  \"version\": ", file);
    write_string(file, *graph->version ? graph->version : format_version);
    fprintf(file, ",\n  \"engine_kind\": \"%s\",\n  \"fpmath_mode\": \"%s\",\n",
            gb_engine_kind_name(graph->engine_kind), gb_fpmath_mode_name(graph->fpmath_mode));
    fprintf(file, "  \"fpmath_mode_apply_to_int\": \"%s\",\n",
            graph->fpmath_apply_to_int ? "true" : "false");
    write_ports(file, graph, false);
    write_ports(file, graph, true);
    fputs("  \"graph\": [", file);
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        fputs(i > 0 ? ",\n" : "\n", file);
        write_op(file, graph->ops[i]);
    }
    fputs(graph->n_ops > 0 ? "\n  ]\n}\n" : "]\n}\n", file);
}

/* Numbers are written with a point, whatever the program's locale. */
static gb_status write_in_c_locale(FILE *file, const gb_graph *graph)
{
    locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!c_locale)
        return gb_fail(GB_OUT_OF_MEMORY, "out of memory: the C locale");
    locale_t before = uselocale(c_locale);
    write_graph(file, graph);
    uselocale(before);
    freelocale(c_locale);
    return GB_SUCCESS;
}

gb_status gb_graph_save_json(const gb_graph *graph, const char *path)
{
    if (!graph || !path) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_save_json: NULL argument");
    }
    bool standard_output = strcmp(path, "-") == 0;
    FILE *file = standard_output ? stdout : fopen(path, "wb");
    if (!file) {
        return gb_fail(GB_INVALID_ARGUMENTS, "cannot open %s: %s", path, strerror(errno));
    }
    gb_status status = write_in_c_locale(file, graph);
    bool failed = fflush(file) != 0 || ferror(file);
    if (!standard_output && fclose(file) != 0)
        failed = true;
    if (status == GB_SUCCESS && failed) {
        status = gb_fail(GB_RUNTIME_ERROR, "cannot write %s: %s", path, strerror(errno));
    }
    return status;
}
