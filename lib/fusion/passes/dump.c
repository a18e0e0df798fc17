/* A partition's graph in the text form of graphs; what that form does not hold stands in comments.
 */
#include "base/memory.h"
#include "fusion/passes/passes.h"
#include "graph/io/text.h"

#include <stdlib.h>

/* The memory that the op's tensors lie in, where it is that of another tensor. */
static void print_views(const gb_graph *graph, const uint32_t *values, uint32_t n, FILE *file)
{
    for (uint32_t i = 0; i < n; i++) {
        const gb_value *value = &graph->values[values[i]];
        if (value->view_of != GB_NONE)
            fprintf(file, " # %%%zu lies in %%%zu", value->tensor.id,
                    graph->values[value->view_of].tensor.id);
    }
}

static void print_op(const gb_op *op, bool *described, FILE *file)
{
    gb_text_write_op(file, op, described);
    print_views(op->graph, op->outputs, op->n_outputs, file);
    print_views(op->graph, op->inputs, op->n_inputs, file);
    fprintf(file, "%s\n", gb_op_is_view(op) ? " # view" : "");
}

void gb_print_group(const gb_graph *graph, const gb_group *group, uint32_t number, FILE *file)
{
    fprintf(file, "# group %u", number);
    if (group->region)
        fprintf(file, " (%s)", group->region->name);
    fprintf(file, ":");
    for (uint32_t i = 0; i < group->n_prologue; i++)
        fprintf(file, " (%zu)", graph->ops[group->prologue[i]]->id);
    if (group->anchor != GB_NONE)
        fprintf(file, " %zu", graph->ops[group->anchor]->id);
    for (uint32_t i = 0; i < group->n_ops; i++)
        fprintf(file, " %zu", graph->ops[group->ops[i]]->id);
    fprintf(file, " ->");
    for (uint32_t i = 0; i < group->n_outputs; i++)
        fprintf(file, " %%%zu", graph->values[group->outputs[i]].tensor.id);
    fprintf(file, "\n");
}

void gb_dump_graph(const gb_graph *graph, const gb_groups *groups, const char *title, FILE *file)
{
    bool *described = gb_calloc(graph->n_values, sizeof *described);
    if (!described)
        return;
    fprintf(file, "# after pass \"%s\"\n", title);
    gb_text_write_header(file, graph);
    for (uint32_t i = 0; i < graph->n_ops; i++)
        print_op(graph->ops[i], described, file);
    for (uint32_t i = 0; groups && i < groups->n_groups; i++)
        gb_print_group(graph, &groups->groups[i], i, file);
    free(described);
}
