/* An order in which groups and nodes outside can be executed: after what they read, and with what
 * they do to memory in the order of the graph. */
#include "module.h"

#include <stdlib.h>

typedef struct edges {
    uint32_t (*pairs)[2];
    uint32_t count, capacity;
} edges;

typedef struct order {
    gb_bridge_module *module;
    br_arena arena;
    uint32_t n_units;       /* groups, then nodes */
    uint32_t *unit_of_node; /* BR_NONE: absorbed */
    uint32_t *maker;        /* of values: unit; BR_NONE */
    edges edges;
} order;

static void add_edge(order *o, uint32_t from, uint32_t to)
{
    if (from == BR_NONE || to == BR_NONE || from == to)
        return;
    edges *e = &o->edges;
    if (!br_grow(&o->arena, &e->pairs, &e->capacity, e->count, sizeof *e->pairs))
        return;
    e->pairs[e->count][0] = from;
    e->pairs[e->count++][1] = to;
}

static void set_units(order *o)
{
    const gb_bridge_module *module = o->module;
    const gb_bridge_graph *graph = module->graph;
    for (uint32_t v = 0; v < graph->n_values; v++)
        o->maker[v] = BR_NONE;
    for (uint32_t n = 0; n < graph->n_nodes; n++) {
        const br_fate *fate = &module->fates[n];
        o->unit_of_node[n] = fate->reason ? module->n_groups + n
                                          : (fate->group != BR_NONE ? fate->group : BR_NONE);
        for (uint32_t i = 0; fate->reason && i < graph->nodes[n].n_outputs; i++)
            if (graph->nodes[n].outputs[i] != BR_NONE)
                o->maker[graph->nodes[n].outputs[i]] = module->n_groups + n;
    }
    for (uint32_t g = 0; g < module->n_groups; g++)
        for (uint32_t i = 0; i < module->groups[g].n_outputs; i++)
            o->maker[module->groups[g].outputs[i].value] = g;
}

static void add_reads(order *o)
{
    const gb_bridge_module *module = o->module;
    const gb_bridge_graph *graph = module->graph;
    for (uint32_t n = 0; n < graph->n_nodes; n++) {
        const br_node *node = &graph->nodes[n];
        if (!module->fates[n].reason)
            continue;
        for (uint32_t i = 0; i < node->n_args; i++)
            for (uint32_t k = 0; node->args[i].values && k < node->args[i].count; k++)
                if (node->args[i].values[k] != BR_NONE)
                    add_edge(o, o->maker[node->args[i].values[k]], module->n_groups + n);
    }
    for (uint32_t g = 0; g < module->n_groups; g++)
        for (uint32_t i = 0; i < module->groups[g].n_inputs; i++)
            add_edge(o, o->maker[module->groups[g].inputs[i].value], g);
}

static uint32_t storage_of(const br_builder *b, uint32_t value)
{
    uint32_t storage = value == BR_NONE ? BR_NONE : b->bindings[value].storage;
    return storage == BR_NONE ? BR_NONE : br_find_storage(b, storage);
}

static bool touches(const br_builder *b, const br_node *node, uint32_t storage)
{
    for (uint32_t i = 0; i < node->n_args; i++)
        for (uint32_t k = 0; node->args[i].values && k < node->args[i].count; k++)
            if (storage_of(b, node->args[i].values[k]) == storage)
                return true;
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (storage_of(b, node->outputs[i]) == storage)
            return true;
    return false;
}

/* All that touches memory before a write to it comes before the write, and all after it after. A
 * group reads at the places of its nodes, also through views that it has absorbed. */
static void add_writes(order *o)
{
    const gb_bridge_module *module = o->module;
    const gb_bridge_graph *graph = module->graph;
    const br_builder *b = &module->builder;
    uint32_t last_effect = BR_NONE;
    for (uint32_t w = 0; w < graph->n_nodes; w++) {
        const br_node *writer = &graph->nodes[w];
        if (!module->fates[w].reason)
            continue;
        if (br_node_has_effects(writer)) {
            add_edge(o, last_effect, module->n_groups + w);
            last_effect = module->n_groups + w;
        }
        if (!br_node_writes(writer))
            continue;
        for (uint32_t i = 0; i < writer->n_args; i++)
            for (uint32_t k = 0; writer->args[i].values && k < writer->args[i].count; k++) {
                uint32_t storage = storage_of(b, writer->args[i].values[k]);
                if (storage == BR_NONE || !br_node_writes_arg(writer, i))
                    continue;
                for (uint32_t n = 0; n < graph->n_nodes; n++)
                    if (n != w && touches(b, &graph->nodes[n], storage))
                        add_edge(o, n < w ? o->unit_of_node[n] : module->n_groups + w,
                                n < w ? module->n_groups + w : o->unit_of_node[n]);
            }
    }
}

/* Where a unit belongs among those that are free to run: the last of its nodes. */
static uint32_t place_of(const gb_bridge_module *module, uint32_t unit)
{
    if (unit >= module->n_groups)
        return unit - module->n_groups;
    const br_group *group = &module->groups[unit];
    return group->nodes[group->n_nodes - 1];
}

static bool is_unit(const gb_bridge_module *module, uint32_t unit)
{
    return unit < module->n_groups || module->fates[unit - module->n_groups].reason;
}

static gb_status sort_units(order *o, uint32_t *culprit)
{
    gb_bridge_module *module = o->module;
    uint32_t n = o->n_units;
    uint32_t *waits = br_alloc(&o->arena, n, sizeof *waits);
    uint32_t *first = br_alloc(&o->arena, (size_t)n + 1, sizeof *first);
    uint32_t *next = br_alloc(&o->arena, o->edges.count, sizeof *next);
    bool *done = br_alloc(&o->arena, n, sizeof *done);
    module->steps = br_alloc(&module->arena, n, sizeof *module->steps);
    module->n_steps = 0;
    if (o->arena.failed || module->arena.failed)
        return br_out_of_memory();
    for (uint32_t u = 0; u < n; u++)
        first[u] = BR_NONE;
    for (uint32_t e = 0; e < o->edges.count; e++) {
        waits[o->edges.pairs[e][1]]++;
        next[e] = first[o->edges.pairs[e][0]];
        first[o->edges.pairs[e][0]] = e;
    }
    for (;;) {
        uint32_t best = BR_NONE, left = BR_NONE;
        for (uint32_t u = 0; u < n; u++) {
            if (done[u] || !is_unit(module, u))
                continue;
            if (u < module->n_groups && left == BR_NONE)
                left = u;
            if (waits[u] == 0 && (best == BR_NONE || place_of(module, u) < place_of(module, best)))
                best = u;
        }
        if (best == BR_NONE) {
            *culprit = left;
            return GB_SUCCESS;
        }
        done[best] = true;
        module->steps[module->n_steps++] =
                best < module->n_groups
                        ? (br_step){.group = best, .node = BR_NONE}
                        : (br_step){.group = BR_NONE, .node = best - module->n_groups};
        for (uint32_t e = first[best]; e != BR_NONE; e = next[e])
            waits[o->edges.pairs[e][1]]--;
    }
}

gb_status br_order_steps(gb_bridge_module *module, uint32_t *culprit)
{
    const gb_bridge_graph *graph = module->graph;
    order o = {.module = module, .n_units = module->n_groups + graph->n_nodes};
    o.unit_of_node = br_alloc(&o.arena, graph->n_nodes, sizeof *o.unit_of_node);
    o.maker = br_alloc(&o.arena, graph->n_values, sizeof *o.maker);
    gb_status status = GB_SUCCESS;
    if (o.arena.failed) {
        status = br_out_of_memory();
    } else {
        set_units(&o);
        add_reads(&o);
        add_writes(&o);
        status = sort_units(&o, culprit);
    }
    br_release(&o.arena);
    return status;
}
