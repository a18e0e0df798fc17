/* Partitions: the graph's filter, and what one can ask a partition. */
#include "base/memory.h"
#include "base/verbose.h"
#include "graph/ops/op_table.h"
#include "runtime/dump.h"
#include "runtime/report.h"

#include <stdlib.h>
#include <string.h>

static void free_partitioning(void *partitioning)
{
    gb_partitioning_free(partitioning);
}

static gb_status filter(gb_graph *graph, gb_policy policy, uint32_t most_ops)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "filtering: the graph is NULL");
    if (!graph->finalized)
        return gb_fail(GB_INVALID_GRAPH, "partitioning needs a finalized graph");
    if (policy != GB_POLICY_FUSION && policy != GB_POLICY_DEBUG && policy != GB_POLICY_MAX)
        return gb_fail(GB_INVALID_ARGUMENTS, "unknown partition policy %d", (int)policy);
    const gb_backend *backend = gb_backend_find(graph->engine_kind);
    if (!backend)
        return gb_fail(GB_UNIMPLEMENTED, "no %s engine in this build",
                gb_engine_kind_name(graph->engine_kind));
    gb_dump_graph_file(graph);
    gb_partitioning *partitioning;
    const gb_capability *capability = backend->capability(0);
    GB_TRY(most_ops ? gb_partition_graph_within(graph, policy, most_ops, capability, &partitioning)
                    : gb_partition_graph(graph, policy, capability, &partitioning));
    if (graph->partitioning)
        graph->free_partitioning(graph->partitioning);
    graph->partitioning = partitioning;
    graph->free_partitioning = free_partitioning;
    return GB_SUCCESS;
}

gb_status gb_graph_filter(gb_graph *graph, gb_policy policy)
{
    return filter(graph, policy, 0);
}

gb_status gb_graph_filter_within(gb_graph *graph, gb_policy policy, size_t most_ops)
{
    if (most_ops == 0)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_filter_within: partitions of no ops");
    return filter(graph, policy, most_ops < UINT32_MAX ? (uint32_t)most_ops : UINT32_MAX);
}

/* Ids of the listed values. */
static size_t *value_ids(const gb_graph *graph, const uint32_t *values, uint32_t n)
{
    size_t *ids = gb_calloc(n, sizeof *ids);
    for (uint32_t i = 0; ids && i < n; i++)
        ids[i] = graph->values[values[i]].tensor.id;
    return ids;
}

static size_t *find_preferred_layouts(
        const gb_partition *partition, const gb_graph *graph, const uint32_t *outputs)
{
    size_t *preferred_layouts = gb_calloc(partition->n_outputs, sizeof *preferred_layouts);
    for (uint32_t i = 0; preferred_layouts && i < partition->n_outputs; i++)
        preferred_layouts[i] = gb_preferred_layout(
                graph, graph->partitioning, partition->backend->capability(0), outputs[i]);
    return preferred_layouts;
}

static gb_status set_ports(gb_partition *partition, const gb_graph *graph, const gb_part *part)
{
    uint32_t *inputs, *outputs;
    GB_TRY(gb_part_ports(graph, part->ops, part->n_ops, &inputs, &partition->n_inputs, &outputs,
            &partition->n_outputs));
    partition->inputs = value_ids(graph, inputs, partition->n_inputs);
    partition->outputs = value_ids(graph, outputs, partition->n_outputs);
    partition->preferred_layouts = find_preferred_layouts(partition, graph, outputs);
    free(inputs);
    free(outputs);
    return partition->inputs && partition->outputs && partition->preferred_layouts
                   ? GB_SUCCESS
                   : GB_OUT_OF_MEMORY;
}

/* What the ops read from outside, in their order; `reads` may be NULL. */
static uint32_t list_reads(const gb_graph *graph, gb_partition_read *reads)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->n_ops; i++)
        for (uint32_t k = 0; k < graph->ops[i]->n_inputs; k++) {
            const gb_value *value = &graph->values[graph->ops[i]->inputs[k]];
            if (value->producer != GB_NONE)
                continue;
            if (reads)
                reads[n] = (gb_partition_read){value->tensor.id, graph->ops[i]->id, k};
            n++;
        }
    return n;
}

static gb_status set_reads(gb_partition *partition)
{
    partition->n_reads = list_reads(partition->graph, NULL);
    partition->reads = gb_calloc(partition->n_reads, sizeof *partition->reads);
    if (!partition->reads)
        return GB_OUT_OF_MEMORY;
    list_reads(partition->graph, partition->reads);
    return GB_SUCCESS;
}

static gb_status create_partition(gb_partition **result, const gb_graph *graph, const gb_part *part)
{
    gb_partition *partition = gb_calloc(1, sizeof *partition);
    if (!partition)
        return GB_OUT_OF_MEMORY;
    partition->references = 1;
    partition->id = gb_next_id();
    partition->backend = gb_backend_find(graph->engine_kind);
    partition->engine_kind = graph->engine_kind;
    partition->pattern = part->pattern;
    partition->unsupported = part->unsupported;
    gb_status status = gb_graph_clone(graph, part->ops, part->n_ops, &partition->graph);
    if (status == GB_SUCCESS)
        status = set_ports(partition, graph, part);
    if (status == GB_SUCCESS)
        status = set_reads(partition);
    if (status == GB_SUCCESS)
        *result = partition;
    else
        gb_partition_destroy(partition);
    return status;
}

/* One for each part, or none. */
static gb_status create_partitions(gb_partition **partitions, const gb_graph *graph)
{
    const gb_partitioning *partitioning = graph->partitioning;
    size_t num = partitioning->n_parts;
    gb_partition **made = gb_calloc(num, sizeof *made);
    gb_status status = made ? GB_SUCCESS : GB_OUT_OF_MEMORY;
    for (size_t i = 0; i < num && status == GB_SUCCESS; i++)
        status = create_partition(&made[i], graph, &partitioning->parts[i]);
    for (size_t i = 0; i < num && status == GB_SUCCESS && gb_verbose_on(GB_VERBOSE_DISPATCH); i++)
        gb_report_partition(made[i]);
    for (size_t i = 0; i < num && made; i++) {
        if (status == GB_SUCCESS)
            partitions[i] = made[i];
        else
            gb_partition_destroy(made[i]);
    }
    free(made);
    return status;
}

gb_status gb_graph_get_partitions(
        const gb_graph *graph, size_t capacity, gb_partition **partitions, size_t *count)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_partitions: NULL argument");
    const gb_partitioning *partitioning = graph->partitioning;
    if (!partitioning)
        return gb_fail(GB_INVALID_GRAPH, "gb_graph_get_partitions: the graph is not partitioned");
    size_t found, num = partitioning->n_parts;
    GB_TRY(gb_check_list("gb_graph_get_partitions", num, capacity, (const void *)partitions,
            count ? &found : NULL));
    gb_status status = partitions ? create_partitions(partitions, graph) : GB_SUCCESS;
    if (status == GB_SUCCESS && count)
        *count = num;
    return status;
}

gb_status gb_graph_get_unfused_edges(
        const gb_graph *graph, size_t capacity, gb_unfused_edge *edges, size_t *count)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_unfused_edges: NULL argument");
    if (!graph->partitioning)
        return gb_fail(
                GB_INVALID_GRAPH, "gb_graph_get_unfused_edges: the graph is not partitioned");
    const gb_capability *capability = gb_backend_find(graph->engine_kind)->capability(0);
    size_t n;
    GB_TRY(gb_explain_edges(graph, graph->partitioning, capability, &n, NULL));
    GB_TRY(gb_check_list("gb_graph_get_unfused_edges", n, capacity, edges, count));
    return edges ? gb_explain_edges(graph, graph->partitioning, capability, &n, edges) : GB_SUCCESS;
}

static gb_status build_checked(gb_graph *graph, const gb_op *op)
{
    GB_TRY(gb_graph_add_op(graph, op));
    return gb_graph_finalize(graph);
}

static gb_status build_unchecked(gb_graph *graph, const gb_op *op)
{
    gb_op *copy;
    GB_TRY(gb_op_clone(op, &copy));
    GB_TRY(gb_graph_take_op(graph, copy)); /* frees it on failure */
    return gb_graph_finalize_unchecked(graph);
}

/* `build` brings the op into an empty graph and finalizes it. */
static gb_status create_with_op(gb_partition **partition, const gb_op *op, gb_engine_kind kind,
        gb_status (*build)(gb_graph *graph, const gb_op *op))
{
    gb_graph *graph = NULL;
    gb_status status = gb_graph_create(&graph, kind);
    if (status == GB_SUCCESS)
        status = build(graph, op);
    if (status == GB_SUCCESS)
        status = gb_graph_filter(graph, GB_POLICY_FUSION);
    if (status == GB_SUCCESS)
        status = gb_graph_get_partitions(graph, 1, partition, NULL);
    for (uint32_t i = 0; status == GB_SUCCESS && i < (*partition)->n_outputs; i++)
        (*partition)->preferred_layouts[i] = GB_LAYOUT_OF_WRITER; /* there are no readers to ask */
    gb_graph_destroy(graph);
    return status;
}

gb_partition *gb_partition_retain(const gb_partition *partition)
{
    gb_partition *shared = (gb_partition *)(uintptr_t)partition; /* only the count changes */
    atomic_fetch_add(&shared->references, 1);
    return shared;
}

gb_status gb_partition_create_with_op(
        gb_partition **partition, const gb_op *op, gb_engine_kind kind)
{
    if (!partition || !op)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_partition_create_with_op: NULL argument");
    return create_with_op(partition, op, kind, build_checked);
}

gb_status gb_partition_create_unchecked(
        gb_partition **partition, const gb_op *op, gb_engine_kind kind)
{
    return create_with_op(partition, op, kind, build_unchecked);
}

gb_status gb_partition_destroy(gb_partition *partition)
{
    if (!partition || atomic_fetch_sub(&partition->references, 1) != 1)
        return GB_SUCCESS;
    gb_graph_destroy(partition->graph);
    free(partition->inputs);
    free(partition->outputs);
    free(partition->preferred_layouts);
    free(partition->reads);
    free(partition);
    return GB_SUCCESS;
}

static gb_status refuse(const char *function)
{
    return gb_fail(GB_INVALID_ARGUMENTS, "%s: NULL argument, or no such place", function);
}

gb_status gb_partition_get_id(const gb_partition *partition, size_t *id)
{
    if (!partition || !id)
        return refuse(__func__);
    *id = partition->id;
    return GB_SUCCESS;
}

gb_status gb_partition_get_engine_kind(const gb_partition *partition, gb_engine_kind *kind)
{
    if (!partition || !kind)
        return refuse(__func__);
    *kind = partition->engine_kind;
    return GB_SUCCESS;
}

gb_status gb_partition_is_supported(const gb_partition *partition, uint8_t *supported)
{
    if (!partition || !supported)
        return refuse(__func__);
    *supported = !partition->unsupported;
    return GB_SUCCESS;
}

const char *gb_partition_get_unsupported_reason(const gb_partition *partition)
{
    return partition && partition->unsupported ? partition->unsupported : "";
}

const char *gb_partition_get_pattern(const gb_partition *partition)
{
    return partition ? partition->pattern : "";
}

gb_status gb_partition_get_ops(
        const gb_partition *partition, size_t capacity, size_t *ids, size_t *count)
{
    if (!partition)
        return refuse(__func__);
    GB_TRY(gb_check_list(__func__, partition->graph->n_ops, capacity, ids, count));
    for (uint32_t i = 0; ids && i < partition->graph->n_ops; i++)
        ids[i] = partition->graph->ops[i]->id;
    return GB_SUCCESS;
}

gb_status gb_partition_get_op(const gb_partition *partition, size_t index, const gb_op **op)
{
    if (!partition || !op || index >= partition->graph->n_ops)
        return refuse(__func__);
    *op = partition->graph->ops[index];
    return GB_SUCCESS;
}

static const gb_value *port_value(const gb_partition *partition, size_t tensor_id)
{
    return &partition->graph->values[gb_graph_find_value(partition->graph, tensor_id)];
}

gb_status gb_partition_get_input_ports(
        const gb_partition *partition, size_t capacity, gb_logical_tensor *ports, size_t *count)
{
    if (!partition)
        return refuse(__func__);
    GB_TRY(gb_check_list(__func__, partition->n_reads, capacity, ports, count));
    for (uint32_t i = 0; ports && i < partition->n_reads; i++)
        ports[i] = port_value(partition, partition->reads[i].tensor_id)->tensor;
    return GB_SUCCESS;
}

gb_status gb_partition_get_output_ports(
        const gb_partition *partition, size_t capacity, gb_logical_tensor *ports, size_t *count)
{
    if (!partition)
        return refuse(__func__);
    GB_TRY(gb_check_list(__func__, partition->n_outputs, capacity, ports, count));
    for (uint32_t i = 0; ports && i < partition->n_outputs; i++)
        ports[i] = port_value(partition, partition->outputs[i])->tensor;
    return GB_SUCCESS;
}

gb_status gb_partition_get_input_port_op(
        const gb_partition *partition, size_t port, size_t *op_id, size_t *input)
{
    if (!partition || !op_id || !input || port >= partition->n_reads)
        return refuse(__func__);
    *op_id = partition->reads[port].op_id;
    *input = partition->reads[port].input;
    return GB_SUCCESS;
}

gb_status gb_partition_get_output_port_op(
        const gb_partition *partition, size_t port, size_t *op_id, size_t *output)
{
    if (!partition || !op_id || !output || port >= partition->n_outputs)
        return refuse(__func__);
    const gb_value *value = port_value(partition, partition->outputs[port]);
    *op_id = partition->graph->ops[value->producer]->id;
    *output = value->producer_output;
    return GB_SUCCESS;
}
