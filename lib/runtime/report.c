/* Lines on partitions, compilations and executions. */
#include "runtime/report.h"

#include "base/memory.h"
#include "base/verbose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

char *gb_ops_text(const gb_graph *graph)
{
    size_t length = 1;
    for (uint32_t i = 0; i < graph->n_ops; i++)
        length += strlen(gb_op_kind_name(gb_op_public_kind(graph->ops[i]))) +
                  strlen(graph->ops[i]->name) + 2;
    char *text = gb_calloc(length, 1), *end = text;
    for (uint32_t i = 0; text && i < graph->n_ops; i++) {
        const gb_op *op = graph->ops[i];
        const char *parts[] = {i ? ";" : "", gb_op_kind_name(gb_op_public_kind(op)),
                *op->name ? ":" : "", op->name};
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            size_t bytes = strlen(parts[p]);
            memcpy(end, parts[p], bytes);
            end += bytes;
        }
    }
    return text;
}

void gb_report_partition(const gb_partition *partition)
{
    gb_line line;
    char *ops = gb_ops_text(partition->graph);
    if (ops && gb_line_begin(&line, "dispatch")) {
        gb_line_field(&line, "%s", gb_engine_kind_name(partition->engine_kind));
        gb_line_field(&line, "%zu", partition->id);
        gb_line_field(&line, "%s", partition->pattern);
        gb_line_field(&line, "%s", ops);
        gb_line_field(&line, "%s", partition->unsupported ? partition->unsupported : "supported");
        gb_line_end(&line);
    }
    free(ops);
}

static void add_sizes(gb_line *line, int n, const int64_t *sizes)
{
    for (int d = 0; d < n; d++)
        if (sizes[d] == GB_UNKNOWN_DIM)
            gb_line_add(line, d ? "x?" : "?");
        else
            gb_line_add(line, d ? "x%" PRId64 : "%" PRId64, sizes[d]);
}

static void add_ports(gb_line *line, const char *side, uint32_t n, const gb_logical_tensor *ports)
{
    for (uint32_t i = 0; i < n; i++) {
        const gb_logical_tensor *port = &ports[i];
        if (port->id == GB_NO_ID)
            continue; /* given to compile, but no port */
        gb_line_add(line, "%s%s%u_%s:%zu:%s:%s:", i || *side == 'o' ? " " : "", side, i,
                gb_data_type_name(port->data_type), port->id,
                gb_layout_type_name(port->layout_type), gb_property_name(port->property));
        add_sizes(line, port->ndims, port->dims);
        gb_line_add(line, ":");
        if (port->layout_type == GB_LAYOUT_STRIDED)
            add_sizes(line, port->ndims, port->strides);
        else if (port->layout_type == GB_LAYOUT_OPAQUE)
            gb_line_add(line, "%zu", port->layout_id);
    }
}

static void report(const gb_compiled_partition *compiled, const char *event, const char *memory,
        size_t bytes, int64_t time)
{
    gb_line line;
    if (!gb_line_begin(&line, event))
        return;
    const gb_executable *executable = compiled->executable;
    const gb_graph *graph = executable->request.graph;
    gb_line_field(&line, "%s", gb_engine_kind_name(executable->engine->backend->kind));
    gb_line_field(&line, "%zu", compiled->partition->id);
    gb_line_field(&line, "%s", compiled->partition->pattern);
    gb_line_field(&line, "%s", compiled->ops);
    gb_line_field(&line, "%s", "");
    add_ports(&line, "in", compiled->n_inputs, compiled->inputs);
    add_ports(&line, "out", compiled->n_outputs, compiled->outputs);
    gb_line_field(&line, "fpm:%s%s", gb_fpmath_mode_name(graph->fpmath_mode),
            graph->fpmath_apply_to_int ? ":true" : "");
    gb_line_field(&line, "%s:%zu", memory, bytes);
    gb_line_field(&line, "%s", executable->kernels);
    gb_line_milliseconds(&line, time);
    gb_line_end(&line);
}

static size_t scratchpad_bytes(const gb_compiled_partition *compiled)
{
    return gb_code_scratch(compiled->executable, NULL);
}

void gb_report_compilation(const gb_compiled_partition *compiled, bool was_cached, int64_t time)
{
    report(compiled, was_cached ? "create:cache_hit" : "create:cache_miss", "scratchpad",
            scratchpad_bytes(compiled), time);
}

void gb_report_constants(const gb_compiled_partition *compiled, int64_t time)
{
    report(compiled, "constants", "constants", compiled->executable->program.constant_bytes, time);
}

void gb_report_execution(
        const gb_compiled_partition *compiled, const gb_tensor *scratchpad, int64_t time)
{
    report(compiled, "exec", scratchpad ? "scratchpad:user" : "scratchpad:library",
            scratchpad_bytes(compiled), time);
}
