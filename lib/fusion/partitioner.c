/* From a graph to partitions: patterns by falling priority, each tried at every free op; what is
 * left runs alone. */
#include "fusion/pattern.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct partitioner {
    const gb_graph *graph;
    const gb_capability *capability;
    bool *taken;
    uint32_t *ops; /* of the match at hand */
    bool *visited; /* for the cycle rule */
    uint32_t *stack;
    uint32_t n_parts, capacity;
    gb_part *parts;
} partitioner;

static int by_value(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static bool contains(const uint32_t *sorted, uint32_t n, uint32_t op)
{
    return bsearch(&op, sorted, n, sizeof op, by_value) != NULL;
}

/* Would an op outside both feed the match and depend on it? Walks upwards from the outside
 * producers. */
static bool makes_cycle(partitioner *p, uint32_t n)
{
    uint32_t depth = 0, pushed = 0;
    bool cycle = false;
    for (uint32_t i = 0; i < n; i++)
        p->stack[depth++] = p->ops[i];
    while (depth > 0 && !cycle) {
        const gb_op *op = p->graph->ops[p->stack[--depth]];
        bool inside = contains(p->ops, n, op->index);
        for (uint32_t i = 0; i < op->n_inputs && !cycle; i++) {
            uint32_t producer = p->graph->values[op->inputs[i]].producer;
            if (producer == GB_NONE || producer < p->ops[0] || p->visited[producer])
                continue;
            if (contains(p->ops, n, producer)) {
                cycle = !inside;
                continue;
            }
            p->visited[producer] = true;
            p->stack[depth++] = producer;
            pushed++;
        }
    }
    if (pushed)
        memset(p->visited, 0, p->graph->n_ops * sizeof *p->visited);
    return cycle;
}

static gb_status add_part(partitioner *p, const char *pattern, const char *unsupported, uint32_t n)
{
    if (!gb_reserve(&p->parts, &p->capacity, (size_t)p->n_parts + 1, sizeof *p->parts))
        return GB_OUT_OF_MEMORY;
    uint32_t *ops = gb_memdup(p->ops, n * sizeof *ops);
    if (!ops)
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < n; i++)
        p->taken[ops[i]] = true;
    p->parts[p->n_parts++] =
            (gb_part){.pattern = pattern, .unsupported = unsupported, .n_ops = n, .ops = ops};
    return GB_SUCCESS;
}

static gb_status match_pattern(partitioner *p, const gb_pattern *pattern)
{
    for (uint32_t start = 0; start < p->graph->n_ops; start++) {
        if (p->taken[start])
            continue;
        uint32_t n = gb_pattern_match(pattern, p->graph, start, p->taken, p->capability, p->ops);
        if (n < 2)
            continue;
        qsort(p->ops, n, sizeof *p->ops, by_value);
        if (!makes_cycle(p, n))
            GB_TRY(add_part(p, pattern->name, NULL, n));
    }
    return GB_SUCCESS;
}

static gb_status add_single_ops(partitioner *p)
{
    for (uint32_t i = 0; i < p->graph->n_ops; i++) {
        if (p->taken[i])
            continue;
        const char *reason = "no kernel";
        bool supported = p->capability->supports(p->graph->ops[i], &reason);
        p->ops[0] = i;
        GB_TRY(add_part(p, "single_op", supported ? NULL : reason, 1));
    }
    return GB_SUCCESS;
}

/* Ops are in topological order, so a partition may run where its last op stands. */
static int by_last_op(const void *a, const void *b)
{
    const gb_part *x = a, *y = b;
    return by_value(&x->ops[x->n_ops - 1], &y->ops[y->n_ops - 1]);
}

static gb_status partition(partitioner *p, gb_policy policy)
{
    if (policy != GB_POLICY_DEBUG)
        for (const gb_pattern *pattern = gb_patterns; pattern->name; pattern++)
            GB_TRY(match_pattern(p, pattern));
    GB_TRY(add_single_ops(p));
    qsort(p->parts, p->n_parts, sizeof *p->parts, by_last_op);
    return GB_SUCCESS;
}

gb_status gb_partition_graph(const gb_graph *graph, gb_policy policy,
        const gb_capability *capability, gb_partitioning **result)
{
    uint32_t n = graph->n_ops;
    partitioner p = {.graph = graph, .capability = capability};
    p.taken = gb_calloc(n, sizeof *p.taken);
    p.visited = gb_calloc(n, sizeof *p.visited);
    p.ops = gb_calloc(GB_PATTERN_MAX_OPS, sizeof *p.ops);
    p.stack = gb_calloc((size_t)n + GB_PATTERN_MAX_OPS, sizeof *p.stack);
    gb_partitioning *partitioning = gb_calloc(1, sizeof *partitioning);
    gb_status status = GB_OUT_OF_MEMORY;
    if (p.taken && p.visited && p.ops && p.stack && partitioning)
        status = partition(&p, policy);
    free(p.taken);
    free(p.visited);
    free(p.ops);
    free(p.stack);
    if (partitioning)
        *partitioning = (gb_partitioning){.n_parts = p.n_parts, .parts = p.parts};
    if (status == GB_SUCCESS)
        *result = partitioning;
    else
        gb_partitioning_free(partitioning);
    return status;
}

void gb_partitioning_free(gb_partitioning *partitioning)
{
    if (!partitioning)
        return;
    for (uint32_t i = 0; i < partitioning->n_parts; i++)
        free(partitioning->parts[i].ops);
    free(partitioning->parts);
    free(partitioning);
}
