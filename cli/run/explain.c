/* --explain: gathers the partitions and the tensors between them, and writes them as text. */
#include "cli/run/explain.h"

#include "cli/options/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

gb_op_kind gb_cli_explained_kind(const gb_explanation *explanation, size_t op_id)
{
    const gb_op *op = NULL;
    gb_op_kind kind = GB_OP_LAST;
    if (gb_graph_find_op(explanation->work->graph, op_id, &op) == GB_SUCCESS)
        gb_op_get_kind(op, &kind);
    return kind;
}

static size_t explain_part_of(const gb_workload *work, size_t op_id)
{
    for (size_t p = 0; p < work->n_parts; p++)
        for (size_t i = 0; i < work->parts[p].n_ops; i++)
            if (work->parts[p].ops[i] == op_id)
                return p;
    return SIZE_MAX;
}

static const gb_unfused_edge *find_unfused(
        const gb_explanation *explanation, const gb_explained_edge *edge)
{
    for (size_t i = 0; i < explanation->n_unfused; i++) {
        const gb_unfused_edge *unfused = &explanation->unfused[i];
        if (unfused->tensor_id == edge->tensor.id && unfused->producer_id == edge->producer_id &&
                unfused->consumer_id == edge->consumer_id)
            return unfused;
    }
    return NULL;
}

static void add_edge(gb_explanation *explanation, const gb_logical_tensor *tensor,
        size_t producer_id, size_t consumer_id)
{
    const gb_workload *work = explanation->work;
    size_t n = explanation->n_edges;
    gb_explained_edge edge = {.tensor = *tensor,
            .producer_id = producer_id,
            .consumer_id = consumer_id,
            .producer_part = explain_part_of(work, producer_id),
            .consumer_part = explain_part_of(work, consumer_id)};
    const gb_explained_edge *last = n ? &explanation->edges[n - 1] : NULL;
    if (last && last->tensor.id == tensor->id && last->consumer_id == consumer_id)
        return; /* reads it twice */
    edge.unfused = find_unfused(explanation, &edge);
    explanation->edges = gb_cli_realloc(explanation->edges, n + 1, sizeof edge);
    explanation->edges[n] = edge;
    explanation->n_edges++;
}

static gb_status add_edges(gb_explanation *explanation, const gb_logical_tensor *tensor)
{
    const gb_graph *graph = explanation->work->graph;
    const gb_op *producer = NULL;
    size_t n = 0, from = 0, to = 0;
    LIB_TRY(gb_graph_get_producer(graph, tensor->id, &producer));
    LIB_TRY(gb_graph_get_consumers(graph, tensor->id, 0, NULL, &n));
    if (!producer || n == 0)
        return GB_SUCCESS;
    const gb_op **consumers = gb_cli_realloc(NULL, n, sizeof(gb_op *));
    gb_status status = gb_graph_get_consumers(graph, tensor->id, n, consumers, NULL);
    gb_op_get_id(producer, &from);
    for (size_t i = 0; i < n && status == GB_SUCCESS; i++) {
        gb_op_get_id(consumers[i], &to);
        add_edge(explanation, tensor, from, to);
    }
    free(consumers);
    return status == GB_SUCCESS ? status : gb_cli_fail_library(status);
}

static gb_status explain_gather(gb_explanation *explanation)
{
    const gb_graph *graph = explanation->work->graph;
    LIB_TRY(gb_graph_get_unfused_edges(graph, 0, NULL, &explanation->n_unfused));
    explanation->unfused =
            gb_cli_realloc(NULL, explanation->n_unfused + 1, sizeof *explanation->unfused);
    LIB_TRY(gb_graph_get_unfused_edges(graph, explanation->n_unfused, explanation->unfused, NULL));
    for (size_t i = 0; i < gb_graph_get_tensor_num(graph); i++) {
        gb_logical_tensor tensor;
        LIB_TRY(gb_graph_get_tensor(graph, i, &tensor));
        CLI_TRY(add_edges(explanation, &tensor));
    }
    return GB_SUCCESS;
}

/* ------------------------------------------------------------ text */

static void write_part(const gb_explanation *explanation, size_t index, FILE *file)
{
    const gb_work_part *part = &explanation->work->parts[index];
    const gb_partition_result *result = part->result;
    fprintf(file, "  partition %zu: pattern %s; ops", index, result->pattern);
    for (size_t i = 0; i < part->n_ops; i++)
        fprintf(file, " %zu:%s", part->ops[i],
                gb_op_kind_name(gb_cli_explained_kind(explanation, part->ops[i])));
    if (result->kernels)
        fprintf(file, "; kernels %s; intermediates %zu B; arena %zu B; constants %zu B",
                result->kernels, result->memory.intermediates, result->memory.arena,
                result->memory.constants);
    if (result->reason)
        fprintf(file, "; %s", result->reason);
    fputc('\n', file);
}

static void write_end(const gb_explanation *explanation, size_t op_id, size_t part, FILE *file)
{
    fprintf(file, "%zu:%s", op_id, gb_op_kind_name(gb_cli_explained_kind(explanation, op_id)));
    if (part != SIZE_MAX)
        fprintf(file, " of partition %zu", part);
}

static void write_text(const gb_explanation *explanation, FILE *file)
{
    const gb_workload *work = explanation->work;
    fprintf(file, "explanation of %s: %zu partition%s\n", work->test->file, work->n_parts,
            work->n_parts == 1 ? "" : "s");
    for (size_t i = 0; i < work->n_parts; i++)
        write_part(explanation, i, file);
    for (size_t i = 0; i < explanation->n_edges; i++) {
        const gb_explained_edge *edge = &explanation->edges[i];
        if (!edge->unfused)
            continue;
        fprintf(file, "  tensor %zu: ", edge->tensor.id);
        write_end(explanation, edge->producer_id, edge->producer_part, file);
        fputs(" -> ", file);
        write_end(explanation, edge->consumer_id, edge->consumer_part, file);
        fprintf(file, ": %s (%s)\n", gb_unfused_reason_name(edge->unfused->reason),
                gb_unfused_reason_describe(edge->unfused->reason));
    }
    if (work->test->outside)
        fputs(work->test->outside, file);
}

/* ------------------------------------------------------------ all */

static gb_status write_to(const gb_explanation *explanation, const char *path, gb_explain format)
{
    static void (*const writers[])(const gb_explanation *, FILE *) = {
            [EXPLAIN_TEXT] = write_text,
            [EXPLAIN_JSON] = gb_cli_explain_json,
            [EXPLAIN_DOT] = gb_cli_explain_dot,
    };
    FILE *file = path ? fopen(path, "w") : stdout;
    if (!file)
        return gb_cli_fail(GB_RUNTIME_ERROR, "--explain: %s: %s", path, strerror(errno));
    writers[format](explanation, file);
    bool failed = path ? fclose(file) != 0 : fflush(file) != 0;
    if (failed)
        return gb_cli_fail(GB_RUNTIME_ERROR, "--explain: %s: %s", path ? path : "standard output",
                strerror(errno));
    return GB_SUCCESS;
}

gb_status gb_cli_explain(const gb_workload *work)
{
    const gb_settings *settings = work->settings;
    gb_explanation explanation = {.work = work};
    gb_status status = explain_gather(&explanation);
    if (status == GB_SUCCESS)
        status = write_to(&explanation, settings->explain_file, settings->explain);
    free(explanation.edges);
    free(explanation.unfused);
    return status;
}
