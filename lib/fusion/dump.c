/* A partition's graph and its groups as text, one op per line. */
#include "fusion/passes.h"

static void print_tensor(const gb_graph *graph, uint32_t index, FILE *file)
{
    const gb_value *value = &graph->values[index];
    const gb_logical_tensor *tensor = &value->tensor;
    fprintf(file, "%%%zu:%s", tensor->id, gb_tensor_label(tensor));
    if (value->view_of == GB_NONE && gb_is_dense(tensor))
        return;
    fprintf(file, "*");
    for (int d = 0; d < tensor->ndims; d++)
        fprintf(file, d ? "x%lld" : "%lld", (long long)tensor->strides[d]);
    if (value->view_of != GB_NONE)
        fprintf(file, "@%%%zu", graph->values[value->view_of].tensor.id);
}

static void print_tensors(
        const gb_graph *graph, const uint32_t *values, uint32_t n_values, FILE *file)
{
    for (uint32_t i = 0; i < n_values; i++) {
        if (i)
            fprintf(file, ", ");
        print_tensor(graph, values[i], file);
    }
}

static void print_attr(const gb_op *op, const gb_attr *attr, FILE *file)
{
    const int64_t *integers;
    const float *numbers;
    size_t n;
    fprintf(file, " %s=", gb_op_attr_name(attr->name));
    switch (gb_op_attr_type(attr->name)) {
    case GB_ATTR_TYPE_F32:
        fprintf(file, "%g", (double)attr->value.f32);
        break;
    case GB_ATTR_TYPE_F32S:
        n = gb_op_attr_f32s(op, attr->name, &numbers);
        for (size_t i = 0; i < n; i++)
            fprintf(file, i ? ",%g" : "%g", (double)numbers[i]);
        break;
    case GB_ATTR_TYPE_S64:
        fprintf(file, "%lld", (long long)attr->value.s64);
        break;
    case GB_ATTR_TYPE_S64S:
        n = gb_op_attr_s64s(op, attr->name, &integers);
        for (size_t i = 0; i < n; i++)
            fprintf(file, i ? ",%lld" : "%lld", (long long)integers[i]);
        break;
    case GB_ATTR_TYPE_BOOL:
        fprintf(file, "%s", attr->value.boolean ? "true" : "false");
        break;
    default:
        fprintf(file, "\"%s\"", attr->value.string);
    }
}

static void print_op(const gb_op *op, FILE *file)
{
    fprintf(file, "  %zu: ", op->id);
    print_tensors(op->graph, op->outputs, op->n_outputs, file);
    fprintf(file, "%s%s(", op->n_outputs ? " = " : "", gb_op_kind_name(op->kind));
    print_tensors(op->graph, op->inputs, op->n_inputs, file);
    fprintf(file, ")");
    for (uint32_t i = 0; i < op->n_attrs; i++)
        print_attr(op, &op->attrs[i], file);
    fprintf(file, "%s\n", gb_op_is_view(op) ? " [view]" : "");
}

static void print_group(const gb_graph *graph, const gb_group *group, uint32_t number, FILE *file)
{
    fprintf(file, "  group %u", number);
    if (group->region)
        fprintf(file, " (%s)", group->region->name);
    fprintf(file, ":");
    for (uint32_t i = 0; i < group->n_prologue; i++)
        fprintf(file, " (%zu)", graph->ops[group->prologue[i]]->id);
    if (group->anchor != GB_NONE)
        fprintf(file, " %zu", graph->ops[group->anchor]->id);
    for (uint32_t i = 0; i < group->n_links; i++)
        fprintf(file, " %zu", graph->ops[group->links[i]]->id);
    fprintf(file, " ->");
    for (uint32_t i = 0; i < group->n_outputs; i++)
        fprintf(file, " %%%zu", graph->values[group->outputs[i]].tensor.id);
    fprintf(file, "\n");
}

void gb_dump_graph(const gb_graph *graph, const gb_groups *groups, const char *title, FILE *file)
{
    fprintf(file, "graph %s\n", title);
    for (uint32_t i = 0; i < graph->n_ops; i++)
        print_op(graph->ops[i], file);
    for (uint32_t i = 0; groups && i < groups->n_groups; i++)
        print_group(graph, &groups->groups[i], i, file);
}
