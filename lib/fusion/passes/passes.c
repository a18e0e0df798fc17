/* The passes over a partition's graph, in order. */
#include "fusion/passes/passes.h"

#include "base/environment.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Results that are left to the library are dense, until the pass "layouts" chooses. */
static gb_status settle_layout(gb_value *value)
{
    gb_logical_tensor *tensor = &value->tensor;
    if (tensor->layout_type != GB_LAYOUT_ANY)
        return GB_SUCCESS;
    value->preferred_layout = tensor->layout_id;
    return gb_logical_tensor_init_with_dims(tensor, tensor->id, tensor->data_type, tensor->ndims,
            tensor->dims, GB_LAYOUT_STRIDED, tensor->property);
}

static gb_status infer(gb_graph *graph, gb_pass_context *context)
{
    double bytes;
    GB_TRY(gb_graph_infer(graph));
    for (uint32_t i = 0; i < graph->n_values; i++)
        GB_TRY(settle_layout(&graph->values[i]));
    return gb_graph_get_work(graph, &context->flops, &bytes);
}

const gb_pass gb_passes[] = {
        {"infer", infer},
        {"blocks", gb_pass_blocks},
        {"ports", gb_pass_ports},
        {"fold_qdq", gb_pass_fold_qdq},
        {"hoist_elementwise", gb_pass_hoist_elementwise},
        {"split_heads", gb_pass_split_heads},
        {"batch_shared_kv", gb_pass_batch_shared_kv},
        {"views", gb_pass_views},
        {"group", gb_pass_group},
        {"layouts", gb_pass_layouts},
        {NULL, NULL},
};

/* Sum of gb_pass_mode; -1: neither set by a call nor read from the environment. */
static atomic_int pass_mode = -1;

/* A name of gb_passes, or NULL. */
static const char *_Atomic left_out;

gb_status gb_set_left_out_pass(const char *name)
{
    static const char *const needed[] = {"infer", "ports", "group"};
    const gb_pass *pass = gb_passes;
    while (name && pass->name && strcmp(pass->name, name) != 0)
        pass++;
    for (size_t i = 0; name && i < sizeof needed / sizeof *needed; i++)
        if (!pass->name || strcmp(pass->name, needed[i]) == 0)
            return gb_fail(GB_INVALID_ARGUMENTS, "no pass \"%.64s\" that can be left out", name);
    atomic_store(&left_out, name ? pass->name : NULL);
    return GB_SUCCESS;
}

gb_status gb_set_pass_mode(unsigned mode)
{
    if (mode > (GB_PASS_PRINT | GB_PASS_CHECK | GB_PASS_PROGRAM))
        return gb_fail(GB_INVALID_ARGUMENTS, "no mode of passes %u", mode);
    atomic_store(&pass_mode, (int)mode);
    return GB_SUCCESS;
}

static bool is_asked(gb_pass_mode mode)
{
    static const gb_named_flags words[] = {{"print", GB_PASS_PRINT}, {"check", GB_PASS_CHECK},
            {"program", GB_PASS_PROGRAM}, {NULL, 0}};
    return (gb_environment_flags_once(&pass_mode, "GB_PASSES", words) & (unsigned)mode) != 0;
}

static bool must_check(void)
{
#ifdef NDEBUG
    return is_asked(GB_PASS_CHECK);
#else
    return true;
#endif
}

bool gb_prints_programs(void)
{
    return is_asked(GB_PASS_PROGRAM);
}

gb_status gb_run_passes(gb_graph *graph, gb_pass_context *context)
{
    bool checks = must_check(), prints = is_asked(GB_PASS_PRINT);
    const char *without = atomic_load(&left_out);
    for (const gb_pass *pass = gb_passes; pass->name; pass++) {
        if (pass->name == without)
            continue;
        GB_TRY(pass->run(graph, context));
        if (prints)
            gb_dump_graph(graph, context->groups, pass->name, stderr);
        if (checks)
            GB_TRY(gb_check_graph(graph, context, pass->name));
    }
    return GB_SUCCESS;
}
