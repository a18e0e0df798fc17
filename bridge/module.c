#include "module.h"

#include <stdlib.h>
#include <string.h>

static gb_status check_options(const gb_bridge_options *options)
{
    if (options->size != sizeof *options)
        return br_fail(GB_INVALID_ARGUMENTS, "size of the options is %zu, not %zu", options->size,
                sizeof *options);
    if (options->policy != 0 && options->policy != GB_POLICY_FUSION &&
            options->policy != GB_POLICY_MAX)
        return br_fail(GB_INVALID_ARGUMENTS, "policy is neither fusion nor max");
    return GB_SUCCESS;
}

static gb_status fill_module(gb_bridge_module *module)
{
    if (module->options.disabled_ops) {
        module->options.disabled_ops = br_copy_text(
                &module->arena, module->options.disabled_ops, strlen(module->options.disabled_ops));
        if (!module->options.disabled_ops)
            return br_out_of_memory();
    }
    BR_TRY(br_make_groups(module));
    gb_status status = gb_engine_create(&module->engine, GB_ENGINE_CPU, 0);
    if (status != GB_SUCCESS)
        return br_fail_library(status, "engine");
    return br_describe(module);
}

static void log_module(const gb_bridge_module *module)
{
    for (uint32_t g = 0; g < module->n_groups; g++)
        br_log(1, "group %u: %u nodes, %u ops, %s", g, module->groups[g].n_nodes,
                module->groups[g].n_ops, gb_partition_get_pattern(module->groups[g].partition));
    for (uint32_t n = 0; n < module->graph->n_nodes; n++)
        if (module->fates[n].reason)
            br_log(1, "outside: %s (%s): %s", module->graph->nodes[n].name,
                    module->graph->nodes[n].op, module->fates[n].reason);
}

gb_status gb_bridge_module_create(
        gb_bridge_module **module, const gb_bridge_graph *graph, const gb_bridge_options *options)
{
    if (!module || !graph)
        return br_fail(GB_INVALID_ARGUMENTS, "module or graph is NULL");
    gb_bridge_options given = options ? *options : (gb_bridge_options){.size = sizeof given};
    BR_TRY(check_options(&given));
    gb_bridge_module *made = calloc(1, sizeof *made);
    if (!made)
        return br_out_of_memory();
    made->options = given;
    made->graph = graph;
    br_graph_retain(graph);
    gb_status status = fill_module(made);
    if (status != GB_SUCCESS) {
        gb_bridge_module_destroy(made);
        return status;
    }
    log_module(made);
    *module = made;
    return GB_SUCCESS;
}

gb_status gb_bridge_module_destroy(gb_bridge_module *module)
{
    if (!module)
        return GB_SUCCESS;
    br_release_groups(module);
    gb_engine_destroy(module->engine);
    br_graph_release(module->graph);
    free(module->description);
    br_release(&module->arena);
    free(module);
    return GB_SUCCESS;
}

const char *gb_bridge_module_describe(const gb_bridge_module *module)
{
    return module ? module->description : "";
}

size_t gb_bridge_module_get_group_num(const gb_bridge_module *module)
{
    return module ? module->n_groups : 0;
}

const char *gb_bridge_module_get_value_name(const gb_bridge_module *module, size_t id)
{
    if (!module || id >= module->builder.n_wires)
        return NULL;
    uint32_t value = module->builder.wires[id].value;
    return value == BR_NONE ? NULL : module->graph->values[value].name;
}

gb_status gb_bridge_module_get_graph(const gb_bridge_module *module, size_t group, gb_graph **graph)
{
    if (!module || !graph || (group != SIZE_MAX && group >= module->n_groups))
        return br_fail(GB_INVALID_ARGUMENTS, "no such group");
    return br_export_graph(module, group, graph);
}
