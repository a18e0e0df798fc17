/* Graphs to the text form. Reading it back gives the same graph. */
#include "graph/io/text.h"

#include "base/memory.h"
#include "base/status.h"
#include "graph/io/write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const gb_value_style text_values = {"", {"false", "true"}, false};

static void write_sizes(FILE *file, int ndims, const int64_t *sizes)
{
    for (int d = 0; d < ndims; d++) {
        fputs(d ? "x" : "", file);
        if (sizes[d] == GB_UNKNOWN_DIM)
            fputc('?', file);
        else
            fprintf(file, "%" PRId64, sizes[d]);
    }
}

/* Are the strides those that dims alone give? */
static bool has_default_strides(const gb_logical_tensor *tensor)
{
    gb_logical_tensor plain;
    if (tensor->layout_type != GB_LAYOUT_STRIDED || tensor->ndims <= 0)
        return true;
    return gb_logical_tensor_init_with_dims(&plain, tensor->id, tensor->data_type, tensor->ndims,
                   tensor->dims, GB_LAYOUT_STRIDED, tensor->property) == GB_SUCCESS &&
           memcmp(plain.strides, tensor->strides, (size_t)tensor->ndims * sizeof(int64_t)) == 0;
}

static void write_description(FILE *file, const gb_logical_tensor *tensor)
{
    fprintf(file, ":%s:", gb_data_type_name(tensor->data_type));
    if (tensor->ndims < 0)
        fputs("...", file);
    else if (tensor->ndims == 0)
        fputs("scalar", file);
    write_sizes(file, tensor->ndims, tensor->dims);
    if (!has_default_strides(tensor)) {
        fputc('*', file);
        write_sizes(file, tensor->ndims, tensor->strides);
    }
    if (tensor->layout_type != GB_LAYOUT_STRIDED)
        fprintf(file, ":layout=%s", gb_logical_tensor_get_layout(tensor));
    if (tensor->property != GB_PROPERTY_UNDEF)
        fprintf(file, ":%s", gb_property_name(tensor->property));
}

/* Inputs or outputs of an op. `described`: per value of its graph, with a description already;
 * NULL: none is, and each gets one. */
static void write_tensors(FILE *file, const gb_op *op, bool is_input, bool *described)
{
    uint32_t n_tensors = is_input ? op->n_inputs : op->n_outputs;
    const uint32_t *values = is_input ? op->inputs : op->outputs;
    for (uint32_t i = 0; i < n_tensors; i++) {
        const gb_logical_tensor *tensor = is_input ? gb_op_input(op, i) : gb_op_output(op, i);
        fprintf(file, "%s%%%zu", i ? ", " : "", tensor->id);
        if (!described || !described[values[i]])
            write_description(file, tensor);
        if (described)
            described[values[i]] = true;
    }
}

static void write_attrs(FILE *file, const gb_op *op, const char *prefix)
{
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        if (gb_attr_is_note(op->attrs[i].name))
            continue;
        fprintf(file, " %s%s=", prefix, gb_op_attr_name(op->attrs[i].name));
        gb_write_attr_value(file, &op->attrs[i], &text_values);
    }
}

void gb_text_write_op(FILE *file, const gb_op *op, bool *described)
{
    char default_name[96];
    snprintf(default_name, sizeof default_name, "%s_%zu", gb_op_kind_name(gb_op_public_kind(op)),
            op->id);
    fprintf(file, "%zu", op->id);
    if (strcmp(op->name, default_name) != 0) {
        fputc(' ', file);
        gb_write_string(file, op->name, &text_values);
    }
    fputs(": ", file);
    write_tensors(file, op, false, described);
    fprintf(file, "%s%s(", op->n_outputs ? " = " : "", gb_op_kind_name(gb_op_public_kind(op)));
    write_tensors(file, op, true, described);
    fputc(')', file);
    write_attrs(file, op, "");
}

void gb_text_write_header(FILE *file, const gb_graph *graph)
{
    fprintf(file, "graph engine=%s fpmath=%s", gb_engine_kind_name(graph->engine_kind),
            gb_fpmath_mode_name(graph->fpmath_mode));
    if (graph->fpmath_apply_to_int)
        fputs(" apply_to_int=true", file);
    if (*graph->version) {
        fputs(" version=", file);
        gb_write_string(file, graph->version, &text_values);
    }
    if (graph->attrs)
        write_attrs(file, graph->attrs, "attr:");
    fputc('\n', file);
}

static void write_graph(FILE *file, const gb_graph *graph, void *described)
{
    gb_text_write_header(file, graph);
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        gb_text_write_op(file, graph->ops[i], described);
        fputc('\n', file);
    }
}

gb_status gb_graph_save_text(const gb_graph *graph, const char *path)
{
    if (!graph || !path)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_save_text: NULL argument");
    bool *described = gb_calloc(graph->n_values, sizeof *described);
    if (!described)
        return GB_OUT_OF_MEMORY;
    gb_status status = gb_write_file(graph, path, write_graph, described);
    free(described);
    return status;
}

gb_status gb_op_get_text(const gb_op *op, size_t capacity, char *text, size_t *length)
{
    gb_c_locale locale;
    char *line = NULL;
    size_t bytes = 0;
    if (!op || !length || (capacity && !text))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_get_text: NULL argument");
    FILE *file = open_memstream(&line, &bytes);
    if (!file)
        return gb_fail(GB_OUT_OF_MEMORY, "out of memory: the text of %s", gb_op_label(op));
    gb_status status = gb_enter_c_locale(&locale);
    if (status == GB_SUCCESS) {
        gb_text_write_op(file, op, NULL);
        gb_leave_c_locale(&locale);
    }
    if (fclose(file) != 0 && status == GB_SUCCESS)
        status = gb_fail(GB_OUT_OF_MEMORY, "out of memory: the text of %s", gb_op_label(op));
    if (status == GB_SUCCESS) {
        *length = bytes;
        if (capacity)
            snprintf(text, capacity, "%s", line);
    }
    free(line);
    return status;
}
