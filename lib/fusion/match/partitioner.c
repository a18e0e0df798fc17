/* From a graph to partitions: patterns by falling priority, each tried at every free op; what is
 * left runs alone. */
#include "fusion/match/pattern.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct partitioner {
    const gb_graph *graph;
    const gb_capability *capability;
    uint32_t *part_of; /* per op; GB_NONE while it is free */
    uint32_t *ops;     /* of the match at hand */
    bool *visited;     /* ops, for the cycle rule */
    uint32_t *stack;
    uint32_t n_parts, capacity;
    gb_part *parts;
    uint32_t n_dropped, dropped_capacity;
    gb_part *dropped;
} partitioner;

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void gb_sort_ops(uint32_t *ops, uint32_t n)
{
    qsort(ops, n, sizeof *ops, by_value);
}

static bool contains(const uint32_t *sorted, uint32_t n, uint32_t op)
{
    return bsearch(&op, sorted, n, sizeof op, by_value) != NULL;
}

static uint32_t last_op(const gb_part *part)
{
    return part->ops[part->n_ops - 1];
}

/* No walk upwards leads from an op before the result to the op `first` or one behind it. */
static uint32_t walk_limit(const partitioner *p, uint32_t first)
{
    for (uint32_t before = GB_NONE; before != first;) {
        before = first;
        for (uint32_t i = p->n_parts; i-- > 0;)
            if (p->parts[i].ops[0] < first && last_op(&p->parts[i]) >= first)
                first = p->parts[i].ops[0];
    }
    return first;
}

/* Puts an op that has not been visited on the stack, with all ops of its partition. */
static uint32_t visit(partitioner *p, uint32_t op, uint32_t depth)
{
    if (p->visited[op])
        return depth;
    const gb_part single = {.n_ops = 1, .ops = &op};
    const gb_part *part = p->part_of[op] == GB_NONE ? &single : &p->parts[p->part_of[op]];
    for (uint32_t i = 0; i < part->n_ops; i++) {
        p->visited[part->ops[i]] = true;
        p->stack[depth++] = part->ops[i];
    }
    return depth;
}

/* Would something outside, an op or a partition, both feed the match and depend on it? Walks
 * upwards from the outside producers. */
static bool makes_cycle(partitioner *p, uint32_t n)
{
    uint32_t depth = 0, limit = walk_limit(p, p->ops[0]);
    memset(p->visited, 0, p->graph->n_ops * sizeof *p->visited);
    for (uint32_t i = 0; i < n; i++)
        p->stack[depth++] = p->ops[i];
    while (depth > 0) {
        const gb_op *op = p->graph->ops[p->stack[--depth]];
        for (uint32_t i = 0; i < op->n_inputs; i++) {
            uint32_t producer = p->graph->values[op->inputs[i]].producer;
            if (producer == GB_NONE || producer < limit)
                continue;
            if (!contains(p->ops, n, producer))
                depth = visit(p, producer, depth);
            else if (p->visited[op->index])
                return true;
        }
    }
    return false;
}

static gb_status add_part(partitioner *p, const char *pattern, const char *unsupported, uint32_t n)
{
    if (!gb_reserve(&p->parts, &p->capacity, (size_t)p->n_parts + 1, sizeof *p->parts))
        return GB_OUT_OF_MEMORY;
    uint32_t *ops = gb_memdup(p->ops, n * sizeof *ops);
    if (!ops)
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < n; i++)
        p->part_of[ops[i]] = p->n_parts;
    p->parts[p->n_parts++] =
            (gb_part){.pattern = pattern, .unsupported = unsupported, .n_ops = n, .ops = ops};
    return GB_SUCCESS;
}

/* Keeps a match that would have made a cycle, to tell why its ops are apart. */
static gb_status note_dropped(partitioner *p, const char *pattern, uint32_t n)
{
    if (!gb_reserve(
                &p->dropped, &p->dropped_capacity, (size_t)p->n_dropped + 1, sizeof *p->dropped))
        return GB_OUT_OF_MEMORY;
    uint32_t *ops = gb_memdup(p->ops, n * sizeof *ops);
    if (!ops)
        return GB_OUT_OF_MEMORY;
    p->dropped[p->n_dropped++] = (gb_part){.pattern = pattern, .n_ops = n, .ops = ops};
    return GB_SUCCESS;
}

static gb_status match_pattern(partitioner *p, const gb_pattern *pattern)
{
    for (uint32_t start = 0; start < p->graph->n_ops; start++) {
        if (p->part_of[start] != GB_NONE)
            continue;
        uint32_t n = gb_pattern_match(pattern, p->graph, start, p->part_of, p->capability, p->ops);
        if (n < 2)
            continue;
        gb_sort_ops(p->ops, n);
        if (makes_cycle(p, n))
            GB_TRY(note_dropped(p, pattern->name, n));
        else
            GB_TRY(add_part(p, pattern->name, NULL, n));
    }
    return GB_SUCCESS;
}

static gb_status add_single_ops(partitioner *p)
{
    for (uint32_t i = 0; i < p->graph->n_ops; i++) {
        if (p->part_of[i] != GB_NONE)
            continue;
        const char *reason = "no kernel";
        bool supported = p->capability->supports(p->graph->ops[i], &reason);
        p->ops[0] = i;
        GB_TRY(add_part(p, "single_op", supported ? NULL : reason, 1));
    }
    return GB_SUCCESS;
}

static int by_last_op(const void *a, const void *b)
{
    uint32_t x = last_op(a), y = last_op(b);
    return (x > y) - (x < y);
}

/* Are all values that partition `index` reads made by partitions in place (or by itself)? */
static bool is_ready(const partitioner *p, uint32_t index, const bool *placed)
{
    const gb_part *part = &p->parts[index];
    for (uint32_t i = 0; i < part->n_ops; i++) {
        const gb_op *op = p->graph->ops[part->ops[i]];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = p->graph->values[op->inputs[k]].producer;
            if (producer == GB_NONE || p->part_of[producer] == index)
                continue;
            if (!placed[p->part_of[producer]])
                return false;
        }
    }
    return true;
}

static void number_parts(partitioner *p)
{
    for (uint32_t i = 0; i < p->n_parts; i++)
        for (uint32_t k = 0; k < p->parts[i].n_ops; k++)
            p->part_of[p->parts[i].ops[k]] = i;
}

/* By their last op, which is an order of execution, unless a partition that goes on after one of
 * its results is read must move in front of the reader. */
static gb_status order_parts(partitioner *p)
{
    if (p->n_parts == 0)
        return GB_SUCCESS;
    gb_part *ordered = gb_calloc(p->n_parts, sizeof *ordered);
    bool *placed = gb_calloc(p->n_parts, sizeof *placed);
    uint32_t n = 0;
    if (ordered && placed) {
        qsort(p->parts, p->n_parts, sizeof *p->parts, by_last_op);
        number_parts(p);
        while (n < p->n_parts) /* the partitions form no cycle: each sweep places at least one */
            for (uint32_t i = 0; i < p->n_parts; i++)
                if (!placed[i] && is_ready(p, i, placed)) {
                    placed[i] = true;
                    ordered[n++] = p->parts[i];
                }
        memcpy(p->parts, ordered, n * sizeof *ordered);
        number_parts(p);
    }
    bool complete = ordered && placed;
    free(ordered);
    free(placed);
    return complete ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

static gb_status partition(partitioner *p, gb_policy policy)
{
    if (policy != GB_POLICY_DEBUG)
        for (const gb_pattern *pattern = gb_patterns; pattern->name; pattern++)
            GB_TRY(match_pattern(p, pattern));
    GB_TRY(add_single_ops(p));
    return order_parts(p);
}

gb_status gb_partition_graph(const gb_graph *graph, gb_policy policy,
        const gb_capability *capability, gb_partitioning **result)
{
    uint32_t n = graph->n_ops;
    partitioner p = {.graph = graph, .capability = capability};
    p.part_of = gb_calloc(n, sizeof *p.part_of);
    p.visited = gb_calloc(n, sizeof *p.visited);
    p.ops = gb_calloc(GB_PATTERN_MAX_OPS, sizeof *p.ops);
    p.stack = gb_calloc((size_t)n + GB_PATTERN_MAX_OPS, sizeof *p.stack);
    gb_partitioning *partitioning = gb_calloc(1, sizeof *partitioning);
    gb_status status = GB_OUT_OF_MEMORY;
    if (p.part_of && p.visited && p.ops && p.stack && partitioning) {
        memset(p.part_of, 0xFF, n * sizeof *p.part_of); /* GB_NONE */
        status = partition(&p, policy);
    }
    free(p.visited);
    free(p.ops);
    free(p.stack);
    if (!partitioning)
        free(p.part_of);
    else
        *partitioning = (gb_partitioning){.policy = policy,
                .n_parts = p.n_parts,
                .parts = p.parts,
                .part_of = p.part_of,
                .n_dropped = p.n_dropped,
                .dropped = p.dropped};
    if (status == GB_SUCCESS)
        *result = partitioning;
    else
        gb_partitioning_free(partitioning);
    return status;
}

static void free_parts(uint32_t n, gb_part *parts)
{
    for (uint32_t i = 0; i < n; i++)
        free(parts[i].ops);
    free(parts);
}

void gb_partitioning_free(gb_partitioning *partitioning)
{
    if (!partitioning)
        return;
    free_parts(partitioning->n_parts, partitioning->parts);
    free_parts(partitioning->n_dropped, partitioning->dropped);
    free(partitioning->part_of);
    free(partitioning);
}
