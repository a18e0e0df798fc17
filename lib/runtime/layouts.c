/* Combinations of layouts that a partition takes: each input in each layout that its readers take,
 * tried by the passes, which tell the outputs' layouts. */
#include "base/memory.h"
#include "base/status.h"
#include "runtime/compiled.h"

#include <stdlib.h>

enum { MOST_ROWS = 64, MOST_ALTERNATIVES = 1 + GB_FORMAT_CANDIDATES };

/* What an input may lie in; NULL: dense. */
typedef struct alternatives {
    uint32_t n, chosen;
    const gb_format *formats[MOST_ALTERNATIVES];
} alternatives;

typedef struct layout_query {
    const gb_partition *partition;
    const gb_capability *capability;
    size_t n_inputs;
    const gb_logical_tensor *const *inputs;
    const gb_graph *dense;   /* all dims known */
    alternatives *of_inputs; /* per input of the partition */
    size_t width, n_rows;
    gb_logical_tensor *rows;
} layout_query;

/* What is constant is packed once anyway, which whoever asks wants to do himself. */
static void vary_inputs(const gb_partition *partition, gb_graph *graph)
{
    for (uint32_t i = 0; i < partition->n_inputs; i++) {
        uint32_t value = gb_graph_find_value(graph, partition->inputs[i]);
        gb_property *property = &graph->values[value].tensor.property;
        if (*property == GB_PROPERTY_CONSTANT)
            *property = GB_PROPERTY_VARIABLE;
    }
}

static gb_status find_alternatives(const layout_query *q)
{
    for (uint32_t i = 0; i < q->partition->n_inputs; i++) {
        gb_format_candidate candidates[GB_FORMAT_CANDIDATES];
        uint32_t n, value = gb_graph_find_value(q->dense, q->partition->inputs[i]);
        GB_TRY(gb_input_formats(q->dense, q->capability, value, &n, candidates));
        alternatives *a = &q->of_inputs[i];
        a->formats[a->n++] = NULL;
        for (uint32_t k = 0; k < n; k++)
            a->formats[a->n++] = candidates[k].format;
    }
    return GB_SUCCESS;
}

/* The next combination; false after the last. */
static bool advance(const layout_query *q)
{
    for (uint32_t i = 0; i < q->partition->n_inputs; i++) {
        alternatives *a = &q->of_inputs[i];
        if (++a->chosen < a->n)
            return true;
        a->chosen = 0;
    }
    return false;
}

/* Ports as the combination has them, all else left to the passes. */
static void set_ports(const layout_query *q, gb_graph *graph)
{
    const gb_partition *partition = q->partition;
    for (uint32_t v = 0; v < graph->n_values; v++) {
        graph->values[v].tensor = q->dense->values[v].tensor;
        gb_forget_layout(&graph->values[v].tensor);
    }
    for (uint32_t i = 0; i < partition->n_inputs + partition->n_outputs; i++) {
        bool is_input = i < partition->n_inputs;
        size_t id = is_input ? partition->inputs[i] : partition->outputs[i - partition->n_inputs];
        uint32_t value = gb_graph_find_value(graph, id);
        gb_logical_tensor *port = &graph->values[value].tensor;
        *port = q->dense->values[value].tensor;
        const gb_format *format = is_input ? q->of_inputs[i].formats[q->of_inputs[i].chosen] : NULL;
        if (format)
            gb_format_apply(format, port);
        if (is_input)
            continue;
        port->layout_type = GB_LAYOUT_ANY;
        port->layout_id = GB_LAYOUT_OF_WRITER;
    }
}

/* Is no input brought into another layout? Reorder ops of the partition itself read strided
 * inputs. */
static bool is_taken(const gb_graph *graph, const gb_groups *groups)
{
    for (uint32_t g = 0; g < groups->n_groups; g++) {
        uint32_t anchor = groups->groups[g].anchor;
        if (anchor == GB_NONE || graph->ops[anchor]->kind != GB_OP_REORDER)
            continue;
        const gb_value *value = &graph->values[graph->ops[anchor]->inputs[0]];
        if (value->producer == GB_NONE && value->tensor.layout_type == GB_LAYOUT_OPAQUE)
            return false;
    }
    return true;
}

static void take_port(gb_logical_tensor *to, const gb_logical_tensor *from, gb_property property)
{
    *to = *from;
    to->property = property;
    if (to->layout_type != GB_LAYOUT_OPAQUE)
        to->layout_id = 0;
}

/* `graph` has been through the passes. */
static void add_row(layout_query *q, const gb_graph *graph)
{
    const gb_partition *partition = q->partition;
    gb_logical_tensor *row = q->rows + q->n_rows++ * q->width;
    for (size_t i = 0; i < q->n_inputs; i++) {
        uint32_t value = gb_graph_find_value(q->dense, q->inputs[i]->id);
        row[i] = *q->inputs[i];
        for (uint32_t p = 0; p < partition->n_inputs; p++) {
            if (partition->inputs[p] != row[i].id)
                continue;
            const gb_format *format = q->of_inputs[p].formats[q->of_inputs[p].chosen];
            take_port(&row[i], &q->dense->values[value].tensor, q->inputs[i]->property);
            if (format)
                gb_format_apply(format, &row[i]);
        }
    }
    for (uint32_t o = 0; o < partition->n_outputs; o++) {
        uint32_t value = gb_graph_find_value(graph, partition->outputs[o]);
        const gb_logical_tensor *port = &graph->values[value].tensor;
        take_port(&row[q->n_inputs + o], port, port->property);
    }
}

static gb_status try_combination(layout_query *q)
{
    gb_graph *graph;
    gb_pass_context context = {.capability = q->capability,
            .output_ids = q->partition->outputs,
            .n_outputs = q->partition->n_outputs};
    GB_TRY(gb_graph_clone(q->dense, NULL, 0, &graph));
    set_ports(q, graph);
    gb_status status = gb_run_passes(graph, &context);
    if (status == GB_SUCCESS && is_taken(graph, context.groups))
        add_row(q, graph);
    gb_groups_free(context.groups);
    gb_graph_destroy(graph);
    return status;
}

static gb_status query(layout_query *q)
{
    gb_graph *dense;
    GB_TRY(gb_graph_clone(q->partition->graph, NULL, 0, &dense));
    q->dense = dense;
    gb_status status = gb_fill_in_dense(q->partition, dense, q->n_inputs, q->inputs);
    if (status == GB_SUCCESS) {
        vary_inputs(q->partition, dense);
        status = find_alternatives(q);
    }
    int tries = 0;
    if (status == GB_SUCCESS)
        do
            status = try_combination(q);
        while (status == GB_SUCCESS && ++tries < MOST_ROWS && advance(q));
    gb_graph_destroy(dense);
    return status;
}

gb_status gb_partition_query_layouts(const gb_partition *partition, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t capacity, gb_logical_tensor *rows,
        size_t *count)
{
    if (!partition || (n_inputs && !inputs))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_partition_query_layouts: NULL argument");
    if (partition->unsupported)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s is not supported: %s",
                gb_op_label(partition->graph->ops[0]), partition->unsupported);
    layout_query q = {.partition = partition,
            .capability = partition->backend->capability(0),
            .n_inputs = n_inputs,
            .inputs = inputs,
            .width = n_inputs + partition->n_outputs};
    q.of_inputs = gb_calloc(partition->n_inputs, sizeof *q.of_inputs);
    q.rows = gb_calloc(MOST_ROWS * q.width, sizeof *q.rows);
    gb_status status = q.of_inputs && q.rows ? query(&q) : GB_OUT_OF_MEMORY;
    if (status == GB_SUCCESS)
        status = gb_check_list(__func__, q.n_rows, capacity, rows, count);
    for (size_t i = 0; status == GB_SUCCESS && rows && i < q.n_rows * q.width; i++)
        rows[i] = q.rows[i];
    free(q.of_inputs);
    free(q.rows);
    return status;
}
