/* The CPU backend: kernels on OpenMP threads. */
#include "base/dtype.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/isa/kernels.h"

#include <stdio.h>

extern const gb_backend gb_cpu_backend;

static size_t device_count(void)
{
    return 1;
}

static void describe(size_t index, char *text, size_t bytes)
{
    (void)index;
    int threads = gb_max_threads();
    snprintf(text, bytes, "cpu, isa %s, %d thread%s", gb_isa_name(gb_cpu_isa()), threads,
            threads == 1 ? "" : "s");
}

static const char *variant(void)
{
    return gb_isa_name(gb_cpu_isa());
}

static bool supports(const gb_op *op, const char **reason)
{
    const gb_lowering *lowering = gb_lowering_get(op->kind);
    if (lowering)
        return lowering->supports(op, reason);
    return gb_tile_supports(op, reason);
}

static bool takes_epilogue(const gb_op *op)
{
    const gb_lowering *lowering = gb_lowering_get(op->kind);
    return lowering && lowering->takes_epilogue;
}

static bool takes_prologue(const gb_op *anchor, uint32_t input, const gb_op *op)
{
    const gb_lowering *lowering = gb_lowering_get(anchor->kind);
    return lowering && lowering->takes_prologue && lowering->takes_prologue(anchor, input, op);
}

static uint32_t reads_formats(const gb_op *op, uint32_t input, gb_format_offer *offers)
{
    const gb_lowering *lowering = gb_lowering_get(op->kind);
    return lowering && lowering->reads_formats ? lowering->reads_formats(op, input, offers) : 0;
}

static uint32_t writes_formats(
        const gb_graph *graph, const gb_group *group, uint32_t value, gb_format_offer *offers)
{
    if (group->region) {
        const gb_region_lowering *region = (const gb_region_lowering *)group->region;
        return region->writes_formats ? region->writes_formats(graph, group, value, offers) : 0;
    }
    if (group->anchor == GB_NONE)
        return 0;
    const gb_lowering *lowering = gb_lowering_get(graph->ops[group->anchor]->kind);
    if (!lowering || !lowering->writes_formats)
        return 0;
    return lowering->writes_formats(graph, group, value, offers);
}

static bool is_link(const gb_op *op)
{
    const char *reason;
    return !gb_lowering_get(op->kind) && gb_tile_supports(op, &reason);
}

static bool types_float(const gb_op *op, uint32_t n_inputs, const char **reason)
{
    for (uint32_t i = 0; i < n_inputs + op->n_outputs; i++) {
        const gb_logical_tensor *tensor =
                i < n_inputs ? gb_op_input(op, i) : gb_op_output(op, i - n_inputs);
        if (gb_dtype_is_f(tensor->data_type))
            continue;
        *reason = "data type";
        return false;
    }
    return true;
}

bool gb_all_types_float(const gb_op *op, const char **reason)
{
    return types_float(op, op->n_inputs, reason);
}

bool gb_convolution_types_float(const gb_op *op, const char **reason)
{
    return types_float(op, 2, reason);
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    if (group->region)
        return ((const gb_region_lowering *)group->region)->lower(program, group);
    if (group->anchor == GB_NONE)
        return gb_lower_links(program, group);
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    return gb_lowering_get(op->kind)->lower(program, group);
}

const gb_backend gb_cpu_backend = {
        .name = "cpu",
        .kind = GB_ENGINE_CPU,
        .device_count = device_count,
        .describe = describe,
        .variant = variant,
        .capability = {.supports = supports,
                .takes_epilogue = takes_epilogue,
                .is_link = is_link,
                .takes_prologue = takes_prologue,
                .reads_formats = reads_formats,
                .writes_formats = writes_formats,
                .regions = gb_cpu_regions},
        .lower = lower,
};
