/* Grouping: which ops of a partition run as one kernel. */
#include "fusion/passes/passes.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

/* Most ops of a side branch that wait for their reader. */
enum { MAX_WAITING = 4 };

typedef struct grouping {
    gb_graph *graph;
    const gb_pass_context *context;
    uint32_t *region_of; /* per op: index of its region, GB_NONE without */
    uint32_t n_regions, region_capacity;
    gb_group *regions;  /* groups that have not been placed yet */
    uint32_t *group_of; /* per op; GB_NONE: not placed yet */
    uint8_t *waiting;   /* per op that waits for its reader: itself and what waits for it */
    bool *is_bound;     /* per op that waits: it, or what waits for it, needs dims of its own */
    bool *is_side;      /* per op: of a side branch */
    bool *is_fused;     /* per op: in the prologues of its readers, in no group of its own */
    gb_groups *groups;
    uint32_t group_capacity;
} grouping;

static bool can_append(const grouping *g, const gb_group *group, const gb_op *op)
{
    if (group->region || group->n_ops >= g->context->capability->cost.group_post_ops ||
            gb_begins_group(op))
        return false;
    const gb_op *anchor = group->anchor == GB_NONE ? NULL : g->graph->ops[group->anchor];
    if (anchor && !g->context->capability->takes_epilogue(anchor))
        return false;
    const gb_logical_tensor *space = &g->graph->values[group->space].tensor;
    if (!gb_dims_equal(gb_op_output(op, 0), space))
        return false;
    for (uint32_t i = 0; anchor && i < op->n_inputs; i++) {
        const gb_value *value = &g->graph->values[op->inputs[i]];
        if (value->producer == anchor->index && value->producer_output != 0)
            return false;
    }
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_value *value = &g->graph->values[op->inputs[i]];
        uint32_t producer = gb_graph_producer_through_views(g->graph, op->inputs[i]);
        bool inside = producer != GB_NONE &&
                      g->group_of[producer] == (uint32_t)(group - g->groups->groups);
        if (inside && (producer != value->producer || !gb_dims_equal(&value->tensor, space)))
            return false;
    }
    return true;
}

/* The group that must have run last before `op` can: the latest of its producers' groups, and of
 * those that what waits for it reads. */
static uint32_t latest_group(const grouping *g, const gb_op *op)
{
    uint32_t latest = GB_NONE;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t producer = gb_graph_producer_through_views(g->graph, op->inputs[i]);
        if (producer == GB_NONE)
            continue;
        uint32_t group = g->group_of[producer];
        if (group == GB_NONE && g->waiting[producer])
            group = latest_group(g, g->graph->ops[producer]);
        if (group != GB_NONE && (latest == GB_NONE || group > latest))
            latest = group;
    }
    return latest;
}

/* A new group at the end of the order. */
static gb_status add_group(grouping *g, gb_group group)
{
    if (!gb_reserve(&g->groups->groups, &g->group_capacity, (size_t)g->groups->n_groups + 1,
                sizeof *g->groups->groups))
        return GB_OUT_OF_MEMORY;
    g->groups->groups[g->groups->n_groups++] = group;
    return GB_SUCCESS;
}

static gb_status append_post_op(gb_group *group, uint32_t op)
{
    if (!group->ops)
        group->ops = gb_calloc(GB_GROUP_OPS, sizeof *group->ops);
    if (!group->ops)
        return GB_OUT_OF_MEMORY;
    group->ops[group->n_ops++] = op;
    return GB_SUCCESS;
}

/* The producer of input `i` that has not been placed yet, because it waits for this reader. */
static const gb_op *waiting_producer(const grouping *g, const gb_op *op, uint32_t i)
{
    uint32_t producer = gb_graph_producer_through_views(g->graph, op->inputs[i]);
    bool waits = producer != GB_NONE && g->group_of[producer] == GB_NONE && !g->is_fused[producer];
    return waits ? g->graph->ops[producer] : NULL;
}

/* Can `op`, with all that waits for it, become part of the group in front of its reader? */
static bool joins(const grouping *g, const gb_group *group, const gb_op *op, const gb_op *reader)
{
    if (!can_append(g, group, reader) || !can_append(g, group, op))
        return false;
    return group->n_ops + g->waiting[op->index] + 1U <= g->context->capability->cost.group_post_ops;
}

static gb_status group_place(grouping *g, const gb_op *op, uint32_t wanted);

/* Has `op` fewer elements than its reader, which repeats them? */
static bool is_repeated(const gb_op *op, const gb_op *reader)
{
    return !gb_dims_equal(gb_op_output(op, 0), gb_op_output(reader, 0));
}

/* Places what waits for `op` and has its size: in the group that `op` will join if possible. */
static gb_status place_waiting(grouping *g, const gb_op *op, bool is_post_op, uint32_t wanted)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_op *producer = waiting_producer(g, op, i);
        if (!producer || is_repeated(producer, op))
            continue;
        uint32_t group = wanted != GB_NONE ? wanted : is_post_op ? latest_group(g, op) : GB_NONE;
        if (group != GB_NONE && !joins(g, &g->groups->groups[group], producer, op))
            group = GB_NONE;
        GB_TRY(group_place(g, producer, group));
    }
    return GB_SUCCESS;
}

/* Lists the fused producers that lead to the inputs of `op`, each once. */
static gb_status add_prologue(const grouping *g, gb_group *group, const gb_op *op)
{
    uint32_t capacity = 0;
    for (uint32_t next = 0;; op = g->graph->ops[group->prologue[next++]]) {
        for (uint32_t i = 0; i < op->n_inputs; i++) {
            uint32_t producer = g->graph->values[op->inputs[i]].producer, k = 0;
            if (producer == GB_NONE || !g->is_fused[producer])
                continue;
            while (k < group->n_prologue && group->prologue[k] != producer)
                k++;
            if (k < group->n_prologue)
                continue;
            if (!gb_reserve(&group->prologue, &capacity, (size_t)k + 1, sizeof *group->prologue))
                return GB_OUT_OF_MEMORY;
            group->prologue[group->n_prologue++] = producer;
        }
        if (next == group->n_prologue)
            return GB_SUCCESS;
    }
}

/* The post-ops that still wait for `op`, directly or behind others. */
static uint32_t count_waiting(const grouping *g, const gb_op *op)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_op *producer = waiting_producer(g, op, i);
        count += producer ? g->waiting[producer->index] : 0;
    }
    return count;
}

/* Appends the op, behind what still waits for it: operands that it repeats. */
static gb_status append_all(grouping *g, uint32_t group, const gb_op *op)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_op *producer = waiting_producer(g, op, i);
        if (producer)
            GB_TRY(append_all(g, group, producer));
    }
    g->group_of[op->index] = group;
    return append_post_op(&g->groups->groups[group], op->index);
}

/* Puts the op in the group `wanted` if it can be there, or in that of its producers, or in a new
 * one. */
static gb_status group_place(grouping *g, const gb_op *op, uint32_t wanted)
{
    bool is_post_op = g->context->capability->is_pointwise(op);
    GB_TRY(place_waiting(g, op, is_post_op, wanted));
    uint32_t latest = is_post_op ? latest_group(g, op) : GB_NONE;
    if (latest == GB_NONE || (wanted != GB_NONE && wanted > latest))
        latest = wanted;
    if (latest != GB_NONE && can_append(g, &g->groups->groups[latest], op) &&
            g->groups->groups[latest].n_ops + count_waiting(g, op) <
                    g->context->capability->cost.group_post_ops)
        return append_all(g, latest, op);
    uint32_t own = g->groups->n_groups;
    GB_TRY(add_group(
            g, (gb_group){.anchor = is_post_op ? GB_NONE : op->index, .space = op->outputs[0]}));
    if (is_post_op)
        return append_all(g, own, op);
    g->group_of[op->index] = own;
    return add_prologue(g, &g->groups->groups[own], op);
}

static bool is_free_post_op(const grouping *g, const gb_op *op)
{
    return op->kind != GB_OP_END && g->region_of[op->index] == GB_NONE && !g->is_fused[op->index] &&
           g->context->capability->is_pointwise(op);
}

/* The post-op that alone reads the op's only output, or NULL. */
static const gb_op *group_only_reader(const grouping *g, const gb_op *op)
{
    const gb_value *value = &g->graph->values[op->outputs[0]];
    if (op->n_outputs != 1 || value->n_uses == 0 || gb_leaves_partition(g->context, value))
        return NULL;
    for (uint32_t i = 1; i < value->n_uses; i++)
        if (value->uses[i].op != value->uses[0].op)
            return NULL;
    const gb_op *reader = g->graph->ops[value->uses[0].op];
    return is_free_post_op(g, reader) ? reader : NULL;
}

/* Where the inputs of an op come from. */
typedef struct origins {
    bool sides;         /* inputs of the partition, through side branches */
    bool waiting;       /* those, or what waits for the op */
    bool bound;         /* some of that needs dims of its own */
    uint32_t n_waiting; /* ops that wait */
} origins;

static origins origins_of(const grouping *g, const gb_op *op)
{
    origins found = {.sides = true, .waiting = true};
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t producer = gb_graph_producer_through_views(g->graph, op->inputs[i]);
        if (producer == GB_NONE)
            continue;
        found.sides = found.sides && g->is_side[producer];
        found.waiting = found.waiting && (g->is_side[producer] || g->waiting[producer]);
        found.bound = found.bound || g->is_bound[producer];
        found.n_waiting += g->waiting[producer];
    }
    return found;
}

/* Side branches are post-ops made of inputs of the partition only, read by one post-op. Short ones
 * that can run in the group of what reads them wait for it; the others come first, so that their
 * reader can join the group of its other inputs. Dequantize waits wherever its codes come from:
 * they are smaller than what it makes of them. */
static gb_status place_side_branches(grouping *g)
{
    for (uint32_t i = 0; i < g->graph->n_ops; i++) {
        const gb_op *op = g->graph->ops[i];
        const gb_op *reader = is_free_post_op(g, op) ? group_only_reader(g, op) : NULL;
        if (!reader)
            continue;
        origins from = origins_of(g, op);
        bool can_wait = from.waiting || op->kind == GB_OP_DEQUANTIZE;
        if (can_wait && from.n_waiting < MAX_WAITING && !(from.bound && is_repeated(op, reader)) &&
                gb_runs_with_reader(g->context->capability, op, reader)) {
            g->waiting[i] = (uint8_t)(from.n_waiting + 1);
            g->is_bound[i] = from.bound || !gb_runs_anywhere(op);
        }
        g->is_side[i] = from.sides;
        if (from.sides && !g->waiting[i])
            GB_TRY(group_place(g, op, GB_NONE));
    }
    return GB_SUCCESS;
}

static bool leaves_group(const grouping *g, const gb_value *value)
{
    if (gb_leaves_partition(g->context, value))
        return true;
    for (uint32_t i = 0; i < value->n_uses; i++) {
        const gb_op *reader = g->graph->ops[value->uses[i].op];
        if (reader->kind != GB_OP_END && g->group_of[reader->index] != g->group_of[value->producer])
            return true;
    }
    return false;
}

static gb_status add_output(gb_group *group, uint32_t *capacity, uint32_t value)
{
    if (!gb_reserve(
                &group->outputs, capacity, (size_t)group->n_outputs + 1, sizeof *group->outputs))
        return GB_OUT_OF_MEMORY;
    group->outputs[group->n_outputs++] = value;
    return GB_SUCCESS;
}

static gb_status collect_outputs(grouping *g, gb_group *group)
{
    uint32_t capacity = 0;
    for (uint32_t i = 0; i <= group->n_ops; i++) {
        uint32_t index = i == 0 ? group->anchor : group->ops[i - 1];
        if (index == GB_NONE)
            continue;
        const gb_op *op = g->graph->ops[index];
        for (uint32_t k = 0; k < op->n_outputs; k++)
            if (leaves_group(g, &g->graph->values[op->outputs[k]]))
                GB_TRY(add_output(group, &capacity, op->outputs[k]));
    }
    return GB_SUCCESS;
}

/* Takes ops and parts over unless another region has one of the ops. */
static gb_status add_region(grouping *g, const gb_region *region, gb_op_list *list, void **parts)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (g->region_of[list->ops[i]] != GB_NONE)
            return GB_SUCCESS;
    if (!gb_reserve(&g->regions, &g->region_capacity, (size_t)g->n_regions + 1, sizeof *g->regions))
        return GB_OUT_OF_MEMORY;
    gb_sort_ops(list->ops, list->n);
    for (uint32_t i = 0; i < list->n; i++)
        g->region_of[list->ops[i]] = g->n_regions;
    g->regions[g->n_regions++] = (gb_group){.region = region,
            .parts = *parts,
            .anchor = GB_NONE,
            .space = GB_NONE,
            .ops = list->ops,
            .n_ops = list->n};
    *list = (gb_op_list){0}; /* moved */
    *parts = NULL;
    return GB_SUCCESS;
}

static gb_status try_region(grouping *g, const gb_region *region, const gb_op *root)
{
    const gb_capability *engine = g->context->capability;
    gb_op_list list = {0};
    void *parts = gb_calloc(1, region->parts_bytes);
    gb_status status =
            parts ? region->match(g->graph, g->context, root, &list, parts) : GB_OUT_OF_MEMORY;
    bool accepted = status == GB_SUCCESS && list.n > 0 &&
                    (!engine->accepts_region || engine->accepts_region(g->graph, region, parts));
    if (accepted)
        status = add_region(g, region, &list, &parts);
    gb_op_list_free(&list);
    free(parts);
    return status;
}

static gb_status find_regions(grouping *g)
{
    const gb_capability *engine = g->context->capability;
    const gb_region *region;
    for (uint32_t r = 0; engine->region && (region = engine->region(r)) != NULL; r++)
        for (uint32_t i = 0; i < g->graph->n_ops; i++) {
            const gb_op *op = g->graph->ops[i];
            if (op->kind == region->root && g->region_of[i] == GB_NONE)
                GB_TRY(try_region(g, region, op));
        }
    return GB_SUCCESS;
}

/* Has everything run that the op reads, but for what waits for it and for its own region? */
static bool is_ready(const grouping *g, const gb_op *op)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t producer = gb_graph_producer_through_views(g->graph, op->inputs[i]);
        if (producer == GB_NONE || g->group_of[producer] != GB_NONE)
            continue;
        if (g->is_fused[producer] || g->waiting[producer]) {
            if (!is_ready(g, g->graph->ops[producer]))
                return false;
            continue;
        }
        if (g->region_of[op->index] == GB_NONE || g->region_of[producer] != g->region_of[op->index])
            return false;
    }
    return true;
}

/* Places a region once all that it reads has run; *placed says whether. */
static gb_status place_region(grouping *g, gb_group *region, bool *placed)
{
    for (uint32_t i = 0; i < region->n_ops; i++)
        if (!is_ready(g, g->graph->ops[region->ops[i]]))
            return GB_SUCCESS;
    for (uint32_t i = 0; i < region->n_ops; i++)
        g->group_of[region->ops[i]] = g->groups->n_groups;
    GB_TRY(add_group(g, *region));
    *region = (gb_group){0}; /* moved */
    *placed = true;
    return GB_SUCCESS;
}

/* Places what is ready, in order; *left counts the ops that are not. */
static gb_status place_ready(grouping *g, uint32_t *left)
{
    *left = 0;
    for (uint32_t i = 0; i < g->graph->n_ops; i++) {
        const gb_op *op = g->graph->ops[i];
        if (op->kind == GB_OP_END || g->waiting[i] || g->is_fused[i] || g->group_of[i] != GB_NONE ||
                (gb_op_is_view(op) && g->region_of[i] == GB_NONE))
            continue;
        bool placed = false;
        if (g->region_of[i] != GB_NONE) {
            GB_TRY(place_region(g, &g->regions[g->region_of[i]], &placed));
        } else if (is_ready(g, op)) {
            GB_TRY(group_place(g, op, GB_NONE));
            placed = true;
        }
        *left += !placed;
    }
    return GB_SUCCESS;
}

/* The ops of a region that feeds what it waits for run one by one. False: there is none left. */
static bool drop_region(grouping *g)
{
    for (uint32_t r = 0; r < g->n_regions; r++) {
        if (!g->regions[r].ops)
            continue;
        for (uint32_t i = 0; i < g->regions[r].n_ops; i++)
            g->region_of[g->regions[r].ops[i]] = GB_NONE;
        gb_group_clear(&g->regions[r]);
        return true;
    }
    return false;
}

static gb_status group_ops(grouping *g)
{
    for (uint32_t i = 0; i < g->graph->n_ops; i++)
        g->group_of[i] = g->region_of[i] = GB_NONE;
    GB_TRY(find_regions(g));
    gb_find_fused_producers(g->graph, g->context, g->region_of, g->is_fused);
    GB_TRY(place_side_branches(g));
    for (uint32_t left = 1, before = GB_NONE; left > 0; before = left) {
        GB_TRY(place_ready(g, &left));
        if (left == before && !drop_region(g))
            return gb_fail(GB_RUNTIME_ERROR, "internal error: %u ops wait for each other", left);
    }
    for (uint32_t i = 0; i < g->groups->n_groups; i++)
        GB_TRY(collect_outputs(g, &g->groups->groups[i]));
    return GB_SUCCESS;
}

gb_status gb_pass_group(gb_graph *graph, gb_pass_context *context)
{
    grouping g = {.graph = graph, .context = context};
    g.group_of = gb_calloc(graph->n_ops, sizeof *g.group_of);
    g.region_of = gb_calloc(graph->n_ops, sizeof *g.region_of);
    g.groups = gb_calloc(1, sizeof *g.groups);
    g.waiting = gb_calloc(graph->n_ops, sizeof *g.waiting);
    g.is_bound = gb_calloc(graph->n_ops, sizeof *g.is_bound);
    g.is_side = gb_calloc(graph->n_ops, sizeof *g.is_side);
    g.is_fused = gb_calloc(graph->n_ops, sizeof *g.is_fused);
    context->region_of = g.region_of;
    bool complete = g.group_of && g.region_of && g.groups && g.waiting && g.is_bound && g.is_side &&
                    g.is_fused;
    gb_status status = complete ? group_ops(&g) : GB_OUT_OF_MEMORY;
    context->region_of = NULL;
    for (uint32_t i = 0; i < g.n_regions; i++)
        gb_group_clear(&g.regions[i]);
    free(g.regions);
    free(g.is_fused);
    free(g.is_side);
    free(g.is_bound);
    free(g.waiting);
    free(g.region_of);
    free(g.group_of);
    if (status == GB_SUCCESS)
        context->groups = g.groups;
    else
        gb_groups_free(g.groups);
    return status;
}
