/* Orders in which the ops of a graph are visited. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/graph.h"

#include <stdlib.h>

/* Room for lists of ops, each with an entry per op. */
typedef struct lists {
    uint32_t *order; /* what is asked for */
    uint32_t *stack; /* ops on the way from where a walk began */
    uint32_t *next;  /* for each op, its input that the walk goes up next */
    bool *seen;
} lists;

static void order_topologically(const gb_graph *graph, lists *l)
{
    for (uint32_t i = 0; i < graph->n_ops; i++)
        l->order[i] = i;
}

static void order_in_reverse(const gb_graph *graph, lists *l)
{
    for (uint32_t i = 0; i < graph->n_ops; i++)
        l->order[i] = graph->n_ops - 1 - i;
}

/* The op behind the next input of `op` that was not seen yet, or GB_NONE. */
static uint32_t next_above(const gb_graph *graph, uint32_t op, lists *l)
{
    while (l->next[op] < graph->ops[op]->n_inputs) {
        uint32_t value = graph->ops[op]->inputs[l->next[op]++];
        uint32_t producer = graph->values[value].producer;
        if (producer != GB_NONE && !l->seen[producer])
            return producer;
    }
    return GB_NONE;
}

/* Every op above `op`, then itself. */
static uint32_t walk_up(const gb_graph *graph, uint32_t op, lists *l, uint32_t n_ordered)
{
    uint32_t depth = 0;
    l->stack[depth++] = op;
    l->seen[op] = true;
    while (depth > 0) {
        uint32_t above = next_above(graph, l->stack[depth - 1], l);
        if (above == GB_NONE) {
            l->order[n_ordered++] = l->stack[--depth];
        } else {
            l->seen[above] = true;
            l->stack[depth++] = above;
        }
    }
    return n_ordered;
}

static bool is_read(const gb_graph *graph, const gb_op *op)
{
    for (uint32_t k = 0; k < op->n_outputs; k++)
        if (graph->values[op->outputs[k]].n_uses > 0)
            return true;
    return false;
}

static void order_by_depth(const gb_graph *graph, lists *l)
{
    uint32_t n_ordered = 0;
    for (uint32_t i = 0; i < graph->n_ops; i++)
        if (!is_read(graph, graph->ops[i]))
            n_ordered = walk_up(graph, i, l, n_ordered);
}

static void (*const orders[])(const gb_graph *graph, lists *l) = {
        [GB_VISIT_TOPOLOGICAL] = order_topologically,
        [GB_VISIT_REVERSE] = order_in_reverse,
        [GB_VISIT_DEPTH_FIRST] = order_by_depth,
};

/* `sorted` has the ops of the graph, by the same ids, in topological order. */
static gb_status visit_all(const gb_graph *graph, const gb_graph *sorted, gb_visit_order order,
        gb_visit_fn visit, void *context)
{
    size_t n = sorted->n_ops;
    uint32_t *room = gb_calloc(3 * n, sizeof *room);
    bool *seen = gb_calloc(n, sizeof *seen);
    gb_status status = room && seen ? GB_SUCCESS : GB_OUT_OF_MEMORY;
    if (status == GB_SUCCESS) {
        lists l = {room, room + n, room + 2 * n, seen};
        orders[order](sorted, &l);
    }
    for (size_t i = 0; i < n && status == GB_SUCCESS; i++)
        status =
                visit(context, graph->ops[gb_graph_find_op_index(graph, sorted->ops[room[i]]->id)]);
    free(room);
    free(seen);
    return status;
}

gb_status gb_graph_visit(
        const gb_graph *graph, gb_visit_order order, gb_visit_fn visit, void *context)
{
    if (!graph || !visit)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_visit: NULL argument");
    if ((unsigned)order > GB_VISIT_DEPTH_FIRST)
        return gb_fail(GB_INVALID_ARGUMENTS, "no order of visits %d", (int)order);
    if (graph->finalized)
        return visit_all(graph, graph, order, visit, context);
    gb_graph *sorted = NULL;
    GB_TRY(gb_graph_clone(graph, NULL, 0, &sorted));
    gb_status status = visit_all(graph, sorted, order, visit, context);
    gb_graph_destroy(sorted);
    return status;
}
