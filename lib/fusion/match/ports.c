/* The tensors that enter and leave a set of ops. */
#include "fusion/fusion.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

typedef struct port_list {
    uint32_t n, capacity;
    uint32_t *values;
} port_list;

static bool append_new(port_list *list, bool *seen, uint32_t value)
{
    if (seen[value])
        return true;
    seen[value] = true;
    if (!gb_reserve(&list->values, &list->capacity, (size_t)list->n + 1, sizeof *list->values))
        return false;
    list->values[list->n++] = value;
    return true;
}

static bool leaves(const gb_graph *graph, const bool *inside, const gb_value *value)
{
    for (uint32_t i = 0; i < value->n_uses; i++) {
        uint32_t reader = value->uses[i].op;
        if (!inside[reader] || graph->ops[reader]->kind == GB_OP_END)
            return true;
    }
    return value->n_uses == 0;
}

static bool collect(const gb_graph *graph, const uint32_t *ops, uint32_t n_ops, const bool *inside,
        bool *seen, port_list *inputs, port_list *outputs)
{
    for (uint32_t i = 0; i < n_ops; i++) {
        const gb_op *op = graph->ops[ops[i]];
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t producer = graph->values[op->inputs[k]].producer;
            bool made_inside = producer != GB_NONE && inside[producer];
            if (!made_inside && !append_new(inputs, seen, op->inputs[k]))
                return false;
        }
        for (uint32_t k = 0; k < op->n_outputs; k++)
            if (leaves(graph, inside, &graph->values[op->outputs[k]]) &&
                    !append_new(outputs, seen, op->outputs[k]))
                return false;
    }
    return true;
}

gb_status gb_part_ports(const gb_graph *graph, const uint32_t *ops, uint32_t n_ops,
        uint32_t **inputs, uint32_t *n_inputs, uint32_t **outputs, uint32_t *n_outputs)
{
    port_list in = {0}, out = {0};
    bool *inside = gb_calloc(graph->n_ops, sizeof *inside);
    bool *seen = gb_calloc(graph->n_values, sizeof *seen);
    bool complete = false;
    if (inside && seen) {
        for (uint32_t i = 0; i < n_ops; i++)
            inside[ops[i]] = true;
        complete = collect(graph, ops, n_ops, inside, seen, &in, &out);
    }
    free(inside);
    free(seen);
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
