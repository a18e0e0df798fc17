/* The description of a module as JSON. */
#include "module.h"

#include <stdlib.h>

static void print_steps(br_text *text, const gb_bridge_module *module)
{
    const gb_bridge_graph *graph = module->graph;
    br_print(text, ",\n \"order\": [");
    for (uint32_t i = 0; i < module->n_steps; i++) {
        const br_step *step = &module->steps[i];
        br_print(text, i ? ", " : "");
        if (step->node == BR_NONE) {
            br_print(text, "{\"group\": %u}", step->group);
            continue;
        }
        br_print(text, "{\"node\": ");
        br_print_quoted(text, graph->nodes[step->node].name);
        br_print(text, "}");
    }
    br_print(text, "]");
}

static void print_outside(br_text *text, const gb_bridge_module *module)
{
    const char *separator = "";
    br_print(text, ",\n \"outside\": [");
    for (uint32_t i = 0; i < module->graph->n_nodes; i++) {
        const br_node *node = &module->graph->nodes[i];
        if (!module->fates[i].reason)
            continue;
        br_print(text, "%s\n  {\"node\": ", separator);
        br_print_quoted(text, node->name);
        br_print(text, ", \"target\": ");
        br_print_quoted(text, node->target);
        br_print(text, ", \"reason\": ");
        br_print_quoted(text, module->fates[i].reason);
        br_print(text, "}");
        separator = ",";
    }
    br_print(text, "]");
}

static void print_names(br_text *text, const gb_bridge_module *module)
{
    const gb_bridge_graph *graph = module->graph;
    const char *separator = "";
    br_print(text, ",\n \"absorbed\": [");
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        if (!module->fates[i].is_absorbed)
            continue;
        br_print(text, "%s", separator);
        br_print_quoted(text, graph->nodes[i].name);
        separator = ", ";
    }
    br_print(text, "],\n \"outputs\": [");
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
        br_print(text, i ? ", " : "");
        br_print_quoted(text, graph->values[graph->outputs[i]].name);
    }
    br_print(text, "]");
}

static void print_sizes(br_text *text, const char *key, const br_size *sizes, int count)
{
    br_print(text, ", \"%s\": [", key);
    for (int d = 0; d < count; d++)
        br_print(text, "%s%lld", d ? ", " : "", (long long)sizes[d].value);
    br_print(text, "]");
}

static void print_ports(br_text *text, const gb_bridge_module *module, const br_port *ports,
        uint32_t count, bool are_inputs)
{
    for (uint32_t i = 0; i < count; i++) {
        const br_value *value = &module->graph->values[ports[i].value];
        br_print(text, "%s\n     {\"name\": ", i ? "," : "");
        br_print_quoted(text, value->name);
        br_print(text, ", \"id\": %u, \"dtype\": \"%s\"", ports[i].wire, value->dtype->name);
        print_sizes(text, "dims", value->dims, value->ndims);
        print_sizes(text, "strides", value->strides, value->ndims);
        if (are_inputs)
            br_print(text, ", \"constant\": %s}", ports[i].is_constant ? "true" : "false");
        else
            br_print(text, ", \"opaque\": %s}", ports[i].is_opaque ? "true" : "false");
    }
}

static void print_group(br_text *text, const gb_bridge_module *module, uint32_t index)
{
    const br_group *group = &module->groups[index];
    br_print(text, "%s\n  {\"id\": %u, \"nodes\": [", index ? "," : "", index);
    for (uint32_t i = 0; i < group->n_nodes; i++) {
        br_print(text, i ? ", " : "");
        br_print_quoted(text, module->graph->nodes[group->nodes[i]].name);
    }
    br_print(text, "],\n   \"inputs\": [");
    print_ports(text, module, group->inputs, group->n_inputs, true);
    br_print(text, "],\n   \"outputs\": [");
    print_ports(text, module, group->outputs, group->n_outputs, false);
    br_print(text, "],\n   \"ops\": [");
    for (uint32_t i = 0; i < group->n_ops; i++)
        br_print(text, "%s\"%s\"", i ? ", " : "",
                gb_op_kind_name(module->builder.ops[group->ops[i]].kind));
    br_print(text, "], \"pattern\": ");
    br_print_quoted(text, gb_partition_get_pattern(group->partition));
    br_print(text, ", \"flops\": %.17g}", group->flops);
}

gb_status br_describe(gb_bridge_module *module)
{
    br_text text = {0};
    br_print(&text, "{\"groups\": [");
    for (uint32_t g = 0; g < module->n_groups; g++)
        print_group(&text, module, g);
    br_print(&text, "]");
    print_outside(&text, module);
    print_names(&text, module);
    print_steps(&text, module);
    br_print(&text, ",\n \"flops\": %.17g, \"group_flops\": %.17g}\n", module->flops,
            module->group_flops);
    if (text.failed) {
        free(text.text);
        return br_out_of_memory();
    }
    module->description = text.text;
    return GB_SUCCESS;
}
