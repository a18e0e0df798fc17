/* Grouping: which ops of a partition run as one kernel. */
#include "fusion/passes.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

/* Links of one group, which bounds the size of its tile program; ops of a side branch that wait for
 * their reader. */
enum { MAX_LINKS = 24, MAX_WAITING = 4 };

typedef struct grouping {
    gb_graph *graph;
    const gb_pass_context *context;
    uint32_t *group_of; /* per op; GB_NONE: not placed yet */
    uint8_t *waiting;   /* per op that waits for its reader: itself and what waits for it */
    bool *is_side;      /* per op: of a side branch */
    gb_groups *groups;
    uint32_t group_capacity;
} grouping;

static bool same_dims(const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    if (a->ndims != b->ndims)
        return false;
    for (int d = 0; d < a->ndims; d++)
        if (a->dims[d] != b->dims[d])
            return false;
    return true;
}

/* The value whose dims are the space of the group: what its links work on. */
static uint32_t space_value(const gb_graph *graph, const gb_group *group)
{
    uint32_t op = group->anchor != GB_NONE ? group->anchor : group->links[0];
    return graph->ops[op]->outputs[0];
}

/* Parameters by groups split dims of the space, and 4-bit elements lie at no whole byte: both need
 * a group of links that begins with the op. */
static bool begins_group(const gb_op *op)
{
    int64_t groups;
    if (op->kind == GB_OP_DEQUANTIZE)
        return gb_quantize_groups(op, &groups) >= 0;
    if (op->kind != GB_OP_DYNAMIC_DEQUANTIZE)
        return false;
    bool begins = gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        gb_data_type type = gb_op_input(op, i)->data_type;
        begins = begins || type == GB_S4 || type == GB_U4;
    }
    return begins;
}

static bool can_append(const grouping *g, const gb_group *group, const gb_op *op)
{
    if (group->n_links >= MAX_LINKS || begins_group(op))
        return false;
    const gb_op *anchor = group->anchor == GB_NONE ? NULL : g->graph->ops[group->anchor];
    if (anchor && !g->context->capability->takes_epilogue(anchor))
        return false;
    const gb_logical_tensor *space = &g->graph->values[space_value(g->graph, group)].tensor;
    if (!same_dims(gb_op_output(op, 0), space))
        return false;
    for (uint32_t i = 0; anchor && i < op->n_inputs; i++) {
        const gb_value *value = &g->graph->values[op->inputs[i]];
        if (value->producer == anchor->index && value->producer_output != 0)
            return false;
    }
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_value *value = &g->graph->values[op->inputs[i]];
        bool inside = value->producer != GB_NONE &&
                      g->group_of[value->producer] == (uint32_t)(group - g->groups->groups);
        if (inside && !same_dims(&value->tensor, space))
            return false;
    }
    return true;
}

/* The group that must have run last before `op` can: the latest of its producers' groups. */
static uint32_t latest_group(const grouping *g, const gb_op *op)
{
    uint32_t latest = GB_NONE;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t producer = g->graph->values[op->inputs[i]].producer;
        if (producer == GB_NONE || g->group_of[producer] == GB_NONE)
            continue;
        uint32_t group = g->group_of[producer];
        if (latest == GB_NONE || group > latest)
            latest = group;
    }
    return latest;
}

static gb_status append_link(gb_group *group, uint32_t op)
{
    if (!group->links)
        group->links = gb_calloc(MAX_LINKS, sizeof *group->links);
    if (!group->links)
        return GB_OUT_OF_MEMORY;
    group->links[group->n_links++] = op;
    return GB_SUCCESS;
}

/* The producer of input `i` that has not been placed yet, because it waits for this reader. */
static const gb_op *waiting_producer(const grouping *g, const gb_op *op, uint32_t i)
{
    uint32_t producer = g->graph->values[op->inputs[i]].producer;
    bool waits = producer != GB_NONE && g->group_of[producer] == GB_NONE;
    return waits ? g->graph->ops[producer] : NULL;
}

/* Can `op`, with all that waits for it, become part of the group in front of its reader? */
static bool joins(const grouping *g, const gb_group *group, const gb_op *op, const gb_op *reader)
{
    if (!can_append(g, group, reader) || !can_append(g, group, op))
        return false;
    return group->n_links + g->waiting[op->index] + 1U <= MAX_LINKS;
}

static gb_status place(grouping *g, const gb_op *op, uint32_t wanted);

/* Places what waits for `op`: in the group that `op` will join if possible. */
static gb_status place_waiting(grouping *g, const gb_op *op, bool is_link, uint32_t wanted)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_op *producer = waiting_producer(g, op, i);
        if (!producer)
            continue;
        uint32_t group = wanted != GB_NONE ? wanted : is_link ? latest_group(g, op) : GB_NONE;
        if (group != GB_NONE && !joins(g, &g->groups->groups[group], producer, op))
            group = GB_NONE;
        GB_TRY(place(g, producer, group));
    }
    return GB_SUCCESS;
}

/* Puts the op in the group `wanted` if it can be there, or in that of its producers, or in a new
 * one. */
static gb_status place(grouping *g, const gb_op *op, uint32_t wanted)
{
    bool is_link = g->context->capability->is_link(op);
    GB_TRY(place_waiting(g, op, is_link, wanted));
    uint32_t latest = is_link ? latest_group(g, op) : GB_NONE;
    if (latest == GB_NONE || (wanted != GB_NONE && wanted > latest))
        latest = wanted;
    if (latest != GB_NONE && can_append(g, &g->groups->groups[latest], op)) {
        g->group_of[op->index] = latest;
        return append_link(&g->groups->groups[latest], op->index);
    }
    if (!gb_reserve(&g->groups->groups, &g->group_capacity, (size_t)g->groups->n_groups + 1,
                sizeof *g->groups->groups))
        return GB_OUT_OF_MEMORY;
    g->group_of[op->index] = g->groups->n_groups;
    gb_group *group = &g->groups->groups[g->groups->n_groups++];
    *group = (gb_group){.anchor = is_link ? GB_NONE : op->index};
    return is_link ? append_link(group, op->index) : GB_SUCCESS;
}

static bool leaves_partition(const gb_pass_context *context, size_t id)
{
    for (size_t i = 0; i < context->n_outputs; i++)
        if (context->output_ids[i] == id)
            return true;
    return false;
}

/* The link that alone reads the op's only output, or NULL. */
static const gb_op *only_reader(const grouping *g, const gb_op *op)
{
    const gb_value *value = &g->graph->values[op->outputs[0]];
    if (op->n_outputs != 1 || value->n_uses == 0 || leaves_partition(g->context, value->tensor.id))
        return NULL;
    for (uint32_t i = 1; i < value->n_uses; i++)
        if (value->uses[i].op != value->uses[0].op)
            return NULL;
    const gb_op *reader = g->graph->ops[value->uses[0].op];
    return reader->kind != GB_OP_END && g->context->capability->is_link(reader) ? reader : NULL;
}

/* Does everything that the op reads come from inputs of the partition, through side branches?
 * Counts what waits for it. */
static bool reads_sides(const grouping *g, const gb_op *op, uint32_t *waiting)
{
    *waiting = 0;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t producer = g->graph->values[op->inputs[i]].producer;
        if (producer == GB_NONE)
            continue;
        if (!g->is_side[producer])
            return false;
        *waiting += g->waiting[producer];
    }
    return true;
}

/* Side branches are links made of inputs of the partition only, read by one link. Short ones of the
 * size of what reads them wait for it, so that they run in its group; the others come first, so
 * that their reader can join the group of its other inputs. */
static gb_status place_side_branches(grouping *g)
{
    for (uint32_t i = 0; i < g->graph->n_ops; i++) {
        const gb_op *op = g->graph->ops[i], *reader = NULL;
        uint32_t waiting;
        if (op->kind != GB_OP_END && g->context->capability->is_link(op))
            reader = only_reader(g, op);
        g->is_side[i] = reader && reads_sides(g, op, &waiting);
        if (!g->is_side[i])
            continue;
        if (waiting < MAX_WAITING && !begins_group(op) &&
                same_dims(gb_op_output(op, 0), gb_op_output(reader, 0)))
            g->waiting[i] = (uint8_t)(waiting + 1);
        else
            GB_TRY(place(g, op, GB_NONE));
    }
    return GB_SUCCESS;
}

static bool leaves_group(const grouping *g, const gb_value *value)
{
    if (leaves_partition(g->context, value->tensor.id))
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
    for (uint32_t i = 0; i <= group->n_links; i++) {
        uint32_t index = i == 0 ? group->anchor : group->links[i - 1];
        if (index == GB_NONE)
            continue;
        const gb_op *op = g->graph->ops[index];
        for (uint32_t k = 0; k < op->n_outputs; k++)
            if (leaves_group(g, &g->graph->values[op->outputs[k]]))
                GB_TRY(add_output(group, &capacity, op->outputs[k]));
    }
    return GB_SUCCESS;
}

static gb_status group_ops(grouping *g)
{
    for (uint32_t i = 0; i < g->graph->n_ops; i++)
        g->group_of[i] = GB_NONE;
    GB_TRY(place_side_branches(g));
    for (uint32_t i = 0; i < g->graph->n_ops; i++)
        if (g->graph->ops[i]->kind != GB_OP_END && !g->is_side[i])
            GB_TRY(place(g, g->graph->ops[i], GB_NONE));
    for (uint32_t i = 0; i < g->groups->n_groups; i++)
        GB_TRY(collect_outputs(g, &g->groups->groups[i]));
    return GB_SUCCESS;
}

gb_status gb_pass_group(gb_graph *graph, gb_pass_context *context)
{
    grouping g = {.graph = graph, .context = context};
    g.group_of = gb_calloc(graph->n_ops, sizeof *g.group_of);
    g.groups = gb_calloc(1, sizeof *g.groups);
    g.waiting = gb_calloc(graph->n_ops, sizeof *g.waiting);
    g.is_side = gb_calloc(graph->n_ops, sizeof *g.is_side);
    bool complete = g.group_of && g.groups && g.waiting && g.is_side;
    gb_status status = complete ? group_ops(&g) : GB_OUT_OF_MEMORY;
    free(g.is_side);
    free(g.waiting);
    free(g.group_of);
    if (status == GB_SUCCESS)
        context->groups = g.groups;
    else
        gb_groups_free(g.groups);
    return status;
}

void gb_groups_free(gb_groups *groups)
{
    if (!groups)
        return;
    for (uint32_t i = 0; i < groups->n_groups; i++) {
        free(groups->groups[i].links);
        free(groups->groups[i].outputs);
    }
    free(groups->groups);
    free(groups);
}
