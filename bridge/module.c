#include "module.h"

#include <stdlib.h>

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

/* Every node stays the framework's. */
static gb_status leave_all_outside(gb_bridge_module *module)
{
    const gb_bridge_graph *graph = module->graph;
    module->fates = br_alloc(&module->arena, graph->n_nodes, sizeof *module->fates);
    module->steps = br_alloc(&module->arena, graph->n_nodes, sizeof *module->steps);
    if (module->arena.failed)
        return br_out_of_memory();
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        module->fates[i] = (br_fate){.reason = "no op of the library", .group = BR_NONE};
        module->steps[module->n_steps++] = (br_step){.group = BR_NONE, .node = i};
    }
    return GB_SUCCESS;
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
    gb_status status = leave_all_outside(made);
    if (status == GB_SUCCESS)
        status = br_describe(made);
    if (status != GB_SUCCESS) {
        gb_bridge_module_destroy(made);
        return status;
    }
    *module = made;
    return GB_SUCCESS;
}

gb_status gb_bridge_module_destroy(gb_bridge_module *module)
{
    if (!module)
        return GB_SUCCESS;
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
