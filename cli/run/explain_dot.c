/* --explain=dot: the graph for Graphviz, one box per partition. */
#include "cli/run/explain.h"

#include <inttypes.h>

/* Text inside of a quoted string of the DOT language. */
static void write_escaped(const char *text, FILE *file)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        if (*text == '\n')
            fputs("\\n", file);
        else if (*text != '\r')
            fputc(*text, file);
    }
}

static void explain_dot_write_op(const gb_explanation *explanation, size_t op_id, FILE *file)
{
    const gb_op *op = NULL;
    const char *name = "";
    if (gb_graph_find_op(explanation->work->graph, op_id, &op) == GB_SUCCESS)
        name = gb_op_get_name(op);
    fprintf(file, "op_%zu [label=\"%zu %s", op_id, op_id,
            gb_op_kind_name(gb_cli_explained_kind(explanation, op_id)));
    if (*name) {
        fputs("\\n", file);
        write_escaped(name, file);
    }
    fputs("\"];\n", file);
}

static void write_part(const gb_explanation *explanation, size_t index, FILE *file)
{
    const gb_work_part *part = &explanation->work->parts[index];
    fprintf(file, "  subgraph cluster_%zu {\n    label=\"%zu ", index, index);
    write_escaped(part->result->pattern, file);
    if (part->result->kernels) {
        fputs("\\n", file);
        write_escaped(part->result->kernels, file);
        fprintf(file, "\\nintermediates %zu B", part->result->memory.intermediates);
    }
    fputs("\";\n", file);
    if (part->result->reason)
        fputs("    style=dashed;\n", file);
    for (size_t i = 0; i < part->n_ops; i++) {
        fputs("    ", file);
        explain_dot_write_op(explanation, part->ops[i], file);
    }
    fputs("  }\n", file);
}

static void write_tensor(const gb_logical_tensor *tensor, FILE *file)
{
    fprintf(file, "%zu %s:", tensor->id, gb_data_type_name(tensor->data_type));
    for (int d = 0; d < tensor->ndims; d++) {
        if (d)
            fputc('x', file);
        if (tensor->dims[d] == GB_UNKNOWN_DIM)
            fputc('?', file);
        else
            fprintf(file, "%" PRId64, tensor->dims[d]);
    }
}

static void write_edge(const gb_explained_edge *edge, FILE *file)
{
    fprintf(file, "  op_%zu -> op_%zu [label=\"", edge->producer_id, edge->consumer_id);
    write_tensor(&edge->tensor, file);
    if (edge->unfused)
        fprintf(file, "\\n%s", gb_unfused_reason_name(edge->unfused->reason));
    fprintf(file, "\"%s];\n", edge->unfused ? ", style=bold" : "");
}

void gb_cli_explain_dot(const gb_explanation *explanation, FILE *file)
{
    const gb_workload *work = explanation->work;
    fputs("digraph \"", file);
    write_escaped(work->test->file, file);
    fputs("\" {\n  node [shape=box];\n", file);
    for (size_t i = 0; i < work->n_parts; i++)
        write_part(explanation, i, file);
    for (size_t i = 0; i < explanation->n_edges; i++) {
        const gb_explained_edge *edge = &explanation->edges[i];
        if (edge->consumer_part == SIZE_MAX) {
            fputs("  ", file);
            explain_dot_write_op(explanation, edge->consumer_id, file);
        }
        write_edge(edge, file);
    }
    fputs("}\n", file);
}
