/* The passes over a partition's graph, in order. */
#include "fusion/passes.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static gb_status infer(gb_graph *graph, gb_pass_context *context)
{
    double bytes;
    GB_TRY(gb_graph_infer(graph));
    return gb_graph_get_work(graph, &context->flops, &bytes);
}

const gb_pass gb_passes[] = {
        {"infer", infer},
        {"integers", gb_pass_integers},
        {"sink", gb_pass_sink},
        {"heads", gb_pass_heads},
        {"queries", gb_pass_queries},
        {"views", gb_pass_views},
        {"group", gb_pass_group},
        {NULL, NULL},
};

/* Is `word` in the list that the environment asks for? */
static bool is_asked(const char *word)
{
    const char *list = getenv("GB_PASSES");
    size_t length = strlen(word);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, word, length) == 0 && strcspn(at, ",") == length)
            return true;
    return false;
}

static bool must_check(void)
{
#ifdef NDEBUG
    return is_asked("check");
#else
    return true;
#endif
}

gb_status gb_run_passes(gb_graph *graph, gb_pass_context *context)
{
    bool checks = must_check(), prints = is_asked("print");
    for (const gb_pass *pass = gb_passes; pass->name; pass++) {
        GB_TRY(pass->run(graph, context));
        if (prints)
            gb_dump_graph(graph, context->groups, pass->name, stderr);
        if (checks)
            GB_TRY(gb_check_graph(graph, context, pass->name));
    }
    return GB_SUCCESS;
}
