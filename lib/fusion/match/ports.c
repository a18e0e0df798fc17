/* The tensors that enter and leave a set of ops. */
#include "fusion/fusion.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

typedef struct port_list {
    uint32_t n, capacity;
    uint32_t *values;
} port_list;

/* `ops` are ascending. */
static bool is_inside(const uint32_t *ops, uint32_t n_ops, uint32_t op)
{
    uint32_t first = 0, end = n_ops;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (ops[middle] == op)
            return true;
        if (ops[middle] < op)
            first = middle + 1;
        else
            end = middle;
    }
    return false;
}

static bool append_new(port_list *list, gb_id_map *seen, uint32_t value)
{
    if (gb_id_map_find(seen, value) != GB_NONE)
        return true;
    if (gb_id_map_reserve(seen, seen->count + 1) != GB_SUCCESS)
        return false;
    gb_id_map_insert(seen, value, 0);
    if (!gb_reserve(&list->values, &list->capacity, (size_t)list->n + 1, sizeof *list->values))
        return false;
    list->values[list->n++] = value;
    return true;
}

static bool leaves(
        const gb_graph *graph, const uint32_t *ops, uint32_t n_ops, const gb_value *value)
{
    for (uint32_t i = 0; i < value->n_uses; i++) {
        uint32_t reader = value->uses[i].op;
        if (!is_inside(ops, n_ops, reader) || graph->ops[reader]->kind == GB_OP_END)
            return true;
    }
    return value->n_uses == 0;
}

static bool ports_collect(const gb_graph *graph, const uint32_t *ops, uint32_t n_ops,
        gb_id_map *seen, port_list *inputs, port_list *outputs)
{
    for (uint32_t i = 0; i < n_ops; i++) {
        const gb_op *op = graph->ops[ops[i]];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = graph->values[op->inputs[k]].producer;
            bool made_inside = producer != GB_NONE && is_inside(ops, n_ops, producer);
            if (!made_inside && !append_new(inputs, seen, op->inputs[k]))
                return false;
        }
        for (uint32_t k = 0; k < op->n_outputs; k++)
            if (leaves(graph, ops, n_ops, &graph->values[op->outputs[k]]) &&
                    !append_new(outputs, seen, op->outputs[k]))
                return false;
    }
    return true;
}

gb_status gb_part_ports(const gb_graph *graph, const uint32_t *ops, uint32_t n_ops,
        uint32_t **inputs, uint32_t *n_inputs, uint32_t **outputs, uint32_t *n_outputs)
{
    port_list in = {0}, out = {0};
    gb_id_map seen = {0}; /* values */
    bool complete = ports_collect(graph, ops, n_ops, &seen, &in, &out);
    gb_id_map_free(&seen);
    if (!complete) {
        free(in.values);
        free(out.values);
        return GB_OUT_OF_MEMORY;
    }
    *inputs = in.values;
    *n_inputs = in.n;
    *outputs = out.values;
    *n_outputs = out.n;
    return GB_SUCCESS;
}
