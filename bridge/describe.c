/* The description of a module as JSON. */
#include "module.h"

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

gb_status br_describe(gb_bridge_module *module)
{
    br_text text = {0};
    br_print(&text, "{\"groups\": []");
    print_outside(&text, module);
    print_names(&text, module);
    print_steps(&text, module);
    br_print(&text, ",\n \"flops\": 0, \"group_flops\": 0}\n");
    if (text.failed)
        return br_out_of_memory();
    module->description = text.text;
    return GB_SUCCESS;
}
