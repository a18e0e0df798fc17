/* Grouping: which ops of a partition run as one kernel. */
#include "fusion/passes.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

/* Links of one group; bounds the size of its tile program. */
enum { MAX_LINKS = 24 };

typedef struct grouping {
    gb_graph *graph;
    const gb_pass_context *context;
    uint32_t *group_of; /* per op */
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
        if (producer == GB_NONE)
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

static gb_status place(grouping *g, const gb_op *op)
{
    bool is_link = g->context->capability->is_link(op);
    uint32_t latest = is_link ? latest_group(g, op) : GB_NONE;
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
    for (uint32_t i = 0; i < g->graph->n_ops; i++) {
        g->group_of[i] = GB_NONE;
        if (g->graph->ops[i]->kind != GB_OP_END)
            GB_TRY(place(g, g->graph->ops[i]));
    }
    for (uint32_t i = 0; i < g->groups->n_groups; i++)
        GB_TRY(collect_outputs(g, &g->groups->groups[i]));
    return GB_SUCCESS;
}

gb_status gb_pass_group(gb_graph *graph, gb_pass_context *context)
{
    grouping g = {.graph = graph, .context = context};
    g.group_of = gb_calloc(graph->n_ops, sizeof *g.group_of);
    g.groups = gb_calloc(1, sizeof *g.groups);
    gb_status status = g.group_of && g.groups ? group_ops(&g) : GB_OUT_OF_MEMORY;
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
