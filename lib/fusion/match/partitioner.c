/* From a graph to partitions: patterns in the order of their list, each tried at every free op;
 * what is left runs alone. */
#include "fusion/match/merge.h"
#include "fusion/match/pattern.h"

#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"

#include <stdlib.h>
#include <string.h>

typedef struct partitioner {
    const gb_graph *graph;
    const gb_capability *capability;
    uint32_t most_ops; /* of a match */
    uint32_t *part_of; /* per op; GB_NONE while it is free */
    uint32_t *ops;     /* of the match at hand, with room for one that joins it */
    uint32_t *visited; /* per op: the last walk of the cycle rule that came by; 0: none */
    uint32_t n_walks;
    uint32_t *stack;
    /* Per op: itself when no partition has ops both before it and from it on; otherwise an op
     * before it. See walk_limit(). */
    uint32_t *gaps;
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

/* The last op up to `first` that no partition lies across: no walk upwards leads from an op before
 * it to one from it on. */
static uint32_t walk_limit(partitioner *p, uint32_t first)
{
    while (p->gaps[first] != first)
        first = p->gaps[first] = p->gaps[p->gaps[first]];
    return first;
}

static void close_gaps(partitioner *p, const gb_part *part)
{
    uint32_t at = walk_limit(p, last_op(part));
    for (; at > part->ops[0]; at = walk_limit(p, at))
        p->gaps[at] = at - 1;
}

/* Puts an op that has not been visited on the stack, with all ops of its partition. */
static uint32_t visit(partitioner *p, uint32_t op, uint32_t depth)
{
    if (p->visited[op] == p->n_walks)
        return depth;
    const gb_part single = {.n_ops = 1, .ops = &op};
    const gb_part *part = p->part_of[op] == GB_NONE ? &single : &p->parts[p->part_of[op]];
    for (uint32_t i = 0; i < part->n_ops; i++) {
        p->visited[part->ops[i]] = p->n_walks;
        p->stack[depth++] = part->ops[i];
    }
    return depth;
}

/* Would something outside, an op or a partition, both feed the match and depend on it? Walks
 * upwards from the outside producers. */
static bool makes_cycle(partitioner *p, uint32_t n)
{
    uint32_t depth = 0, limit = walk_limit(p, p->ops[0]);
    p->n_walks++;
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
            else if (p->visited[op->index] == p->n_walks)
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
    close_gaps(p, &p->parts[p->n_parts - 1]);
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
        uint32_t n = gb_pattern_match(
                pattern, p->graph, start, p->part_of, p->capability, p->most_ops, p->ops);
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

/* The partition gets an op more. */
static gb_status extend_part(partitioner *p, uint32_t index, uint32_t op, uint32_t n)
{
    uint32_t *ops = gb_memdup(p->ops, n * sizeof *ops);
    if (!ops)
        return GB_OUT_OF_MEMORY;
    gb_part *part = &p->parts[index];
    free(part->ops);
    part->ops = ops;
    part->n_ops = n;
    p->part_of[op] = index;
    close_gaps(p, part);
    return GB_SUCCESS;
}

/* The ops of the partition are free again; the last partition takes its number. */
static void dissolve_part(partitioner *p, uint32_t index)
{
    gb_part *part = &p->parts[index], *last = &p->parts[--p->n_parts];
    for (uint32_t i = 0; i < part->n_ops; i++)
        p->part_of[part->ops[i]] = GB_NONE;
    free(part->ops);
    if (part == last)
        return;
    *part = *last;
    for (uint32_t i = 0; i < part->n_ops; i++)
        p->part_of[part->ops[i]] = index;
}

/* Collects the ops of the reader's partition, or the reader alone, and the op. */
static uint32_t collect_joined(partitioner *p, uint32_t op, uint32_t reader)
{
    uint32_t n = 1, index = p->part_of[reader];
    p->ops[0] = reader;
    if (index != GB_NONE) {
        n = p->parts[index].n_ops;
        memcpy(p->ops, p->parts[index].ops, n * sizeof *p->ops);
    }
    p->ops[n++] = op;
    gb_sort_ops(p->ops, n);
    return n;
}

/* A Dequantize whose scales are numbered over all groups of a transposed convolution joins it, whatever
 * the policy: only together do they tell which scale is whose. Where the partition that the convolution
 * is in cannot have it, both leave the others alone. */
static gb_status join_inseparable(partitioner *p)
{
    for (uint32_t i = 0; i < p->graph->n_ops; i++) {
        int64_t groups;
        int along;
        const gb_op *reader = p->part_of[i] == GB_NONE
                                      ? gb_quantize_groups_reader(p->graph->ops[i], &groups, &along)
                                      : NULL;
        if (!reader)
            continue;
        uint32_t index = p->part_of[reader->index], n = collect_joined(p, i, reader->index);
        bool fits = n <= GB_PATTERN_MAX_OPS && !makes_cycle(p, n);
        if (fits) {
            GB_TRY(index == GB_NONE ? add_part(p, "weights_by_group", NULL, n)
                                    : extend_part(p, index, i, n));
        } else if (index != GB_NONE) {
            dissolve_part(p, index);
            return join_inseparable(p); /* also what had joined that partition */
        }
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

/* Inputs of partition `index` that other partitions make. */
static uint32_t count_waited_for(const partitioner *p, uint32_t index)
{
    const gb_part *part = &p->parts[index];
    uint32_t n = 0;
    for (uint32_t i = 0; i < part->n_ops; i++) {
        const gb_op *op = p->graph->ops[part->ops[i]];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = p->graph->values[op->inputs[k]].producer;
            n += producer != GB_NONE && p->part_of[producer] != index;
        }
    }
    return n;
}

static void number_parts(partitioner *p)
{
    for (uint32_t i = 0; i < p->n_parts; i++)
        for (uint32_t k = 0; k < p->parts[i].n_ops; k++)
            p->part_of[p->parts[i].ops[k]] = i;
}

/* The partition that reads a value of `index`, when that was the last input it has waited for. */
static void release_readers(const partitioner *p, uint32_t index, uint32_t *waiting, gb_heap *ready)
{
    const gb_part *part = &p->parts[index];
    for (uint32_t i = 0; i < part->n_ops; i++) {
        const gb_op *op = p->graph->ops[part->ops[i]];
        for (uint32_t k = 0; k < op->n_outputs; k++) {
            const gb_value *value = &p->graph->values[op->outputs[k]];
            for (uint32_t u = 0; u < value->n_uses; u++) {
                uint32_t reader = p->part_of[value->uses[u].op];
                if (reader != index && --waiting[reader] == 0)
                    gb_heap_push(ready, reader);
            }
        }
    }
}

/* By their last op, which is an order of execution, unless a partition that goes on after one of
 * its results is read must move in front of the reader: of those that can run, that with the first
 * last op comes first. `numbers` has room for two per partition. */
static gb_status sort_parts(partitioner *p, gb_part *ordered, uint32_t *numbers)
{
    uint32_t *waiting = numbers, n = 0;
    gb_heap ready = {.numbers = numbers + p->n_parts};
    qsort(p->parts, p->n_parts, sizeof *p->parts, by_last_op);
    number_parts(p);
    for (uint32_t i = 0; i < p->n_parts; i++) {
        waiting[i] = count_waited_for(p, i);
        if (waiting[i] == 0)
            gb_heap_push(&ready, i);
    }
    while (ready.n > 0) {
        uint32_t next = gb_heap_pop(&ready);
        ordered[n++] = p->parts[next];
        release_readers(p, next, waiting, &ready);
    }
    if (n < p->n_parts)
        return gb_fail(GB_RUNTIME_ERROR, "internal error: %u partitions wait for each other",
                p->n_parts - n);
    memcpy(p->parts, ordered, n * sizeof *ordered);
    number_parts(p);
    return GB_SUCCESS;
}

static gb_status order_parts(partitioner *p)
{
    if (p->n_parts == 0)
        return GB_SUCCESS;
    gb_part *ordered = gb_calloc(p->n_parts, sizeof *ordered);
    uint32_t *numbers = gb_calloc(2 * (size_t)p->n_parts, sizeof *numbers);
    gb_status status = ordered && numbers ? sort_parts(p, ordered, numbers) : GB_OUT_OF_MEMORY;
    free(ordered);
    free(numbers);
    return status;
}

static void free_parts(uint32_t n, gb_part *parts)
{
    for (uint32_t i = 0; i < n; i++)
        free(parts[i].ops);
    free(parts);
}

static gb_status merge_parts(partitioner *p, uint32_t most_ops)
{
    gb_part *parts = p->parts;
    uint32_t n = p->n_parts;
    gb_status status =
            gb_merge_parts(p->graph, most_ops, n, parts, p->part_of, &p->n_parts, &p->parts);
    free_parts(n, parts);
    return status == GB_SUCCESS ? order_parts(p) : status;
}

static gb_status partition(partitioner *p, gb_policy policy, uint32_t most_ops)
{
    if (policy != GB_POLICY_DEBUG)
        for (const gb_pattern *pattern = gb_patterns; pattern->name; pattern++)
            GB_TRY(match_pattern(p, pattern));
    GB_TRY(join_inseparable(p));
    GB_TRY(add_single_ops(p));
    GB_TRY(order_parts(p));
    return policy == GB_POLICY_MAX ? merge_parts(p, most_ops) : GB_SUCCESS;
}

gb_status gb_partition_graph(const gb_graph *graph, gb_policy policy,
        const gb_capability *capability, gb_partitioning **result)
{
    uint32_t most_ops = policy == GB_POLICY_MAX ? GB_MAX_POLICY_OPS : GB_PATTERN_MAX_OPS;
    return gb_partition_graph_within(graph, policy, most_ops, capability, result);
}

gb_status gb_partition_graph_within(const gb_graph *graph, gb_policy policy, uint32_t most_ops,
        const gb_capability *capability, gb_partitioning **result)
{
    uint32_t n = graph->n_ops;
    partitioner p = {.graph = graph,
            .capability = capability,
            .most_ops = most_ops < GB_PATTERN_MAX_OPS ? most_ops : GB_PATTERN_MAX_OPS};
    p.part_of = gb_calloc(n, sizeof *p.part_of);
    p.visited = gb_calloc(n, sizeof *p.visited);
    p.gaps = gb_calloc(n, sizeof *p.gaps);
    p.ops = gb_calloc(GB_PATTERN_MAX_OPS + 1, sizeof *p.ops);
    p.stack = gb_calloc((size_t)n + GB_PATTERN_MAX_OPS, sizeof *p.stack);
    gb_partitioning *partitioning = gb_calloc(1, sizeof *partitioning);
    gb_status status = GB_OUT_OF_MEMORY;
    if (p.part_of && p.visited && p.gaps && p.ops && p.stack && partitioning) {
        for (uint32_t i = 0; i < n; i++) {
            p.part_of[i] = GB_NONE;
            p.gaps[i] = i;
        }
        status = partition(&p, policy, most_ops);
    }
    free(p.visited);
    free(p.gaps);
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

void gb_partitioning_free(gb_partitioning *partitioning)
{
    if (!partitioning)
        return;
    free_parts(partitioning->n_parts, partitioning->parts);
    free_parts(partitioning->n_dropped, partitioning->dropped);
    free(partitioning->part_of);
    free(partitioning);
}
