/* The policy "max": partitions that read each other's results become one.
 *
 * Each partition has a level: at least that of all whose results it reads, and above that of those
 * that the engine does not run. It is joined with what it reads on its own level; if the ops were
 * too many, it begins the next level instead. So a result that goes from one joined partition to
 * another always leads to a higher level, or to a partition that is not run and from there to a
 * higher level, and there is no way back. */
#include "fusion/match/merge.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct merging {
    const gb_graph *graph;
    uint32_t most_ops, n_parts;
    gb_part *parts;
    const uint32_t *part_of;
    uint32_t *levels;
    uint32_t *joined;  /* per part: itself, or a later part that it was joined with */
    uint32_t *n_ops;   /* of all that was joined with the part, which is the last of them */
    uint32_t *counted; /* per part: the latest reader that has added its ops up */
    uint32_t *places;  /* per part that is the last of some: among the merged */
} merging;

static uint32_t last_of(merging *m, uint32_t part)
{
    while (m->joined[part] != part)
        part = m->joined[part] = m->joined[m->joined[part]];
    return part;
}

typedef void (*visit_fn)(merging *m, uint32_t part, uint32_t producer);

/* Calls `visit` with the parts that make what `part` reads. */
static void for_producers(merging *m, uint32_t part, visit_fn visit)
{
    for (uint32_t i = 0; i < m->parts[part].n_ops; i++) {
        const gb_op *op = m->graph->ops[m->parts[part].ops[i]];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = m->graph->values[op->inputs[k]].producer;
            if (producer != GB_NONE && m->part_of[producer] != part)
                visit(m, part, m->part_of[producer]);
        }
    }
}

static void raise_level(merging *m, uint32_t part, uint32_t producer)
{
    uint32_t least = m->levels[producer] + (m->parts[producer].unsupported != NULL);
    if (m->levels[part] < least)
        m->levels[part] = least;
}

static bool is_beside(const merging *m, uint32_t part, uint32_t producer)
{
    return !m->parts[producer].unsupported && m->levels[producer] == m->levels[part];
}

static void count_ops(merging *m, uint32_t part, uint32_t producer)
{
    uint32_t last = last_of(m, producer);
    if (!is_beside(m, part, producer) || m->counted[last] == part)
        return;
    m->counted[last] = part;
    m->n_ops[part] += m->n_ops[last];
}

static void merge_join(merging *m, uint32_t part, uint32_t producer)
{
    if (is_beside(m, part, producer))
        m->joined[last_of(m, producer)] = part;
}

static void join_all(merging *m)
{
    for (uint32_t i = 0; i < m->n_parts; i++) {
        m->joined[i] = i;
        m->n_ops[i] = m->parts[i].n_ops;
        m->counted[i] = GB_NONE;
        for_producers(m, i, raise_level);
        if (m->parts[i].unsupported)
            continue;
        for_producers(m, i, count_ops);
        if (m->n_ops[i] <= m->most_ops) {
            for_producers(m, i, merge_join);
        } else if (m->n_ops[i] > m->parts[i].n_ops) {
            m->n_ops[i] = m->parts[i].n_ops;
            m->levels[i]++;
        }
    }
}

/* Adds a part to those that it was joined with, or as one of its own. */
static gb_status add_part(merging *m, uint32_t part, uint32_t *n_merged, gb_part *merged)
{
    gb_part *from = &m->parts[part];
    uint32_t last = last_of(m, part);
    if (m->n_ops[last] == from->n_ops) {
        merged[(*n_merged)++] = *from;
        from->ops = NULL; /* moved */
        return GB_SUCCESS;
    }
    if (m->places[last] == GB_NONE) {
        m->places[last] = *n_merged;
        merged[(*n_merged)++] =
                (gb_part){.pattern = "max", .ops = gb_calloc(m->n_ops[last], sizeof *merged->ops)};
    }
    gb_part *to = &merged[m->places[last]];
    if (!to->ops)
        return GB_OUT_OF_MEMORY;
    memcpy(to->ops + to->n_ops, from->ops, from->n_ops * sizeof *from->ops);
    to->n_ops += from->n_ops;
    return GB_SUCCESS;
}

static gb_status merge_collect(merging *m, uint32_t *n_merged, gb_part *merged)
{
    for (uint32_t i = 0; i < m->n_parts; i++)
        m->places[i] = GB_NONE;
    for (uint32_t i = 0; i < m->n_parts; i++)
        GB_TRY(add_part(m, i, n_merged, merged));
    for (uint32_t i = 0; i < *n_merged; i++)
        gb_sort_ops(merged[i].ops, merged[i].n_ops);
    return GB_SUCCESS;
}

gb_status gb_merge_parts(const gb_graph *graph, uint32_t most_ops, uint32_t n_parts, gb_part *parts,
        const uint32_t *part_of, uint32_t *n_merged, gb_part **merged)
{
    enum { LISTS = 5 };
    merging m = {.graph = graph,
            .most_ops = most_ops,
            .n_parts = n_parts,
            .parts = parts,
            .part_of = part_of};
    uint32_t *lists = gb_calloc((size_t)n_parts * LISTS, sizeof *lists);
    *n_merged = 0;
    *merged = gb_calloc(n_parts, sizeof **merged);
    gb_status status = GB_OUT_OF_MEMORY;
    if (lists && *merged) {
        m.levels = lists;
        m.joined = lists + n_parts;
        m.n_ops = lists + 2 * (size_t)n_parts;
        m.counted = lists + 3 * (size_t)n_parts;
        m.places = lists + 4 * (size_t)n_parts;
        join_all(&m);
        status = merge_collect(&m, n_merged, *merged);
    }
    free(lists);
    return status;
}
