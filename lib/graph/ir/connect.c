/* Who makes and who reads each tensor, and the order in which the ops can run. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/written.h"

#include <stdio.h>
#include <stdlib.h>

gb_status gb_graph_wire(gb_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_values; i++) {
        graph->values[i].producer = GB_NONE;
        graph->values[i].n_uses = 0;
    }
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            gb_value *value = &graph->values[op->inputs[k]];
            size_t count = value->n_uses + (size_t)1;
            if (!gb_reserve(&value->uses, &value->use_capacity, count, sizeof *value->uses)) {
                return GB_OUT_OF_MEMORY;
            }
            value->uses[value->n_uses++] = (gb_use){i, k};
        }
        for (uint32_t k = 0; k < op->n_outputs; k++) {
            gb_value *value = &graph->values[op->outputs[k]];
            if (value->producer != GB_NONE)
                continue;
            value->producer = i;
            value->producer_output = k;
        }
    }
    return GB_SUCCESS;
}

/* The graph is wired: an output whose value names another producer has two. */
static gb_status check_producers(const gb_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_outputs; k++) {
            const gb_value *value = &graph->values[op->outputs[k]];
            if (value->producer == i && value->producer_output == k)
                continue;
            return gb_fail(GB_INVALID_GRAPH, "tensor %zu is produced twice: by %s and by %s",
                    value->tensor.id, gb_op_label(graph->ops[value->producer]), gb_op_label(op));
        }
    }
    return GB_SUCCESS;
}

void gb_heap_push(gb_heap *heap, uint32_t number)
{
    uint32_t at = heap->n++, *numbers = heap->numbers;
    while (at > 0 && numbers[(at - 1) / 2] > number) {
        numbers[at] = numbers[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    numbers[at] = number;
}

uint32_t gb_heap_pop(gb_heap *heap)
{
    uint32_t *numbers = heap->numbers, top = numbers[0], last = numbers[--heap->n], at = 0;
    for (uint32_t child = 1; child < heap->n; child = 2 * at + 1) {
        if (child + 1 < heap->n && numbers[child + 1] < numbers[child])
            child++;
        if (numbers[child] >= last)
            break;
        numbers[at] = numbers[child];
        at = child;
    }
    numbers[at] = last;
    return top;
}

/* An op that `op` waits for. */
static uint32_t waited_for(const gb_graph *graph, uint32_t op, const uint32_t *waiting)
{
    for (uint32_t k = 0; k < graph->ops[op]->n_inputs; k++) {
        uint32_t producer = graph->values[graph->ops[op]->inputs[k]].producer;
        if (producer != GB_NONE && waiting[producer] > 0)
            return producer;
    }
    return op; /* not reached: an op waits for another or for itself */
}

/* Names one cycle among the ops that still wait: going backwards from any of them ends in one. */
static gb_status report_cycle(const gb_graph *graph, const uint32_t *waiting, uint32_t *cycle)
{
    uint32_t at = 0, length = 0;
    while (waiting[at] == 0)
        at++;
    for (uint32_t i = 0; i < graph->n_ops; i++)
        at = waited_for(graph, at, waiting);
    do {
        cycle[length++] = at;
        at = waited_for(graph, at, waiting);
    } while (at != cycle[0]);

    char text[768];
    int used = snprintf(text, sizeof text, "%s", gb_op_label(graph->ops[cycle[0]]));
    for (uint32_t i = length; i-- > 0 && used < 512;) {
        used += snprintf(text + used, sizeof text - (size_t)used, " -> %s",
                gb_op_label(graph->ops[cycle[i]]));
    }
    return gb_fail(GB_INVALID_GRAPH, "%u ops form a cycle: %s", length, text);
}

/* Kahn's algorithm, smallest position first. `waiting` counts the produced inputs an op still waits
 * for; both arrays have room for one entry per op, `room` too. */
static gb_status sort_ops(const gb_graph *graph, uint32_t *waiting, uint32_t *room, uint32_t *order)
{
    gb_heap ready = {.numbers = room}; /* ops that can run next */
    uint32_t n_sorted = 0;
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        const gb_op *op = graph->ops[i];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            waiting[i] += graph->values[op->inputs[k]].producer != GB_NONE;
        }
        if (waiting[i] == 0)
            gb_heap_push(&ready, i);
    }
    while (ready.n > 0) {
        uint32_t next = gb_heap_pop(&ready);
        order[n_sorted++] = next;
        const gb_op *op = graph->ops[next];
        for (uint32_t k = 0; k < op->n_outputs; k++) {
            const gb_value *value = &graph->values[op->outputs[k]];
            for (uint32_t u = 0; u < value->n_uses; u++) {
                uint32_t user = value->uses[u].op;
                if (--waiting[user] == 0)
                    gb_heap_push(&ready, user);
            }
        }
    }
    return n_sorted == graph->n_ops ? GB_SUCCESS : report_cycle(graph, waiting, room);
}

static void apply_order(gb_graph *graph, const uint32_t *order, gb_op **sorted)
{
    for (uint32_t i = 0; i < graph->n_ops; i++)
        sorted[i] = graph->ops[order[i]];
    gb_id_map_clear(&graph->op_ids);
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        graph->ops[i] = sorted[i];
        graph->ops[i]->index = i;
        gb_id_map_insert(&graph->op_ids, graph->ops[i]->id, i);
    }
}

static gb_status check_conflicts(const gb_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_values; i++) {
        const char *conflict = graph->values[i].conflict;
        if (conflict)
            return gb_fail(GB_INVALID_GRAPH, "%s", conflict);
    }
    return GB_SUCCESS;
}

static gb_status connect_ops(gb_graph *graph, bool reorder)
{
    GB_TRY(check_conflicts(graph));
    GB_TRY(gb_graph_wire(graph));
    GB_TRY(check_producers(graph));
    uint32_t *scratch = gb_calloc(3 * (size_t)graph->n_ops, sizeof *scratch);
    gb_op **sorted = gb_calloc(graph->n_ops, sizeof(gb_op *));
    gb_status status = GB_OUT_OF_MEMORY;
    if (!scratch || !sorted)
        goto done;
    uint32_t *order = scratch + 2 * (size_t)graph->n_ops;
    status = sort_ops(graph, scratch, scratch + graph->n_ops, order);
    if (status == GB_SUCCESS && reorder) {
        apply_order(graph, order, sorted);
        status = gb_graph_wire(graph);
    }
done:
    free(scratch);
    free(sorted);
    return status;
}

gb_status gb_graph_connect(gb_graph *graph)
{
    return connect_ops(graph, true);
}

gb_status gb_graph_check(gb_graph *graph)
{
    GB_TRY(connect_ops(graph, false));
    return gb_graph_check_written(graph);
}
