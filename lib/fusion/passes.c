/* The passes over a partition's graph, in order. */
#include "fusion/passes.h"

#include "base/status.h"

static gb_status infer(gb_graph *graph, gb_pass_context *context)
{
    (void)context;
    return gb_graph_infer(graph);
}

const gb_pass gb_passes[] = {
        {"infer", infer},
        {"group", gb_pass_group},
        {NULL, NULL},
};

gb_status gb_run_passes(gb_graph *graph, gb_pass_context *context)
{
    for (const gb_pass *pass = gb_passes; pass->name; pass++)
        GB_TRY(pass->run(graph, context));
    return GB_SUCCESS;
}
