/* What must hold of a partition's graph after every pass; anything else is a fault of the pass. */
#include "fusion/passes/passes.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct check {
    const gb_graph *graph;
    const gb_pass_context *context;
    const char *pass;
} check;

static gb_status broken(const check *c, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return gb_fail(GB_RUNTIME_ERROR, "internal error after pass \"%s\": %s", c->pass, text);
}

/* Instead of a group: in prologues only. */
enum { IN_PROLOGUES = GB_NONE - 1 };

static bool is_known(const gb_logical_tensor *tensor)
{
    bool strided = tensor->layout_type == GB_LAYOUT_STRIDED;
    bool known = tensor->ndims >= 0 && tensor->data_type != GB_UNDEF &&
                 (strided || tensor->layout_type == GB_LAYOUT_OPAQUE);
    for (int d = 0; known && d < tensor->ndims; d++)
        known = tensor->dims[d] >= 0 && (!strided || tensor->strides[d] != GB_UNKNOWN_DIM);
    return known;
}

/* The tensor is known; a view lies in memory of another value of its type and size. */
static gb_status check_value(const check *c, uint32_t index)
{
    const gb_graph *graph = c->graph;
    const gb_value *value = &graph->values[index];
    if (value->producer == GB_NONE && value->n_uses == 0)
        return GB_SUCCESS; /* left behind by a rewriting */
    if (!is_known(&value->tensor))
        return broken(c, "tensor %zu is not known", value->tensor.id);
    uint32_t at = index;
    for (uint32_t steps = 0; graph->values[at].view_of != GB_NONE; steps++) {
        at = graph->values[at].view_of;
        if (at >= graph->n_values || steps >= graph->n_values)
            return broken(c, "tensor %zu is a view of itself", value->tensor.id);
    }
    const gb_logical_tensor *storage = &graph->values[at].tensor;
    if (at != index && (storage->data_type != value->tensor.data_type ||
                               gb_tensor_count(storage) != gb_tensor_count(&value->tensor)))
        return broken(c, "tensor %zu does not fit tensor %zu, whose view it is", value->tensor.id,
                storage->id);
    return GB_SUCCESS;
}

static gb_status note_op(const check *c, uint32_t *group_of, uint32_t op, uint32_t group)
{
    if (op >= c->graph->n_ops)
        return broken(c, "group %u holds an op that does not exist", group);
    if (group_of[op] != GB_NONE)
        return broken(c, "%s is in two groups", gb_op_label(c->graph->ops[op]));
    group_of[op] = group;
    return GB_SUCCESS;
}

static gb_status note_prologue(const check *c, uint32_t *group_of, uint32_t op, uint32_t group)
{
    if (op < c->graph->n_ops && group_of[op] == IN_PROLOGUES)
        return GB_SUCCESS; /* every reader has it */
    GB_TRY(note_op(c, group_of, op, group));
    group_of[op] = IN_PROLOGUES;
    return GB_SUCCESS;
}

static bool is_prologue(const gb_group *group, uint32_t op)
{
    for (uint32_t i = 0; i < group->n_prologue; i++)
        if (group->prologue[i] == op)
            return true;
    return false;
}

static bool is_output(const gb_group *group, uint32_t value)
{
    for (uint32_t i = 0; i < group->n_outputs; i++)
        if (group->outputs[i] == value)
            return true;
    return false;
}

/* What `op`, of a group or its prologue, reads from another group is an output of that group, which
 * runs before. */
static gb_status check_inputs(
        const check *c, const uint32_t *group_of, const gb_op *op, uint32_t group)
{
    const gb_graph *graph = c->graph;
    const gb_group *groups = c->context->groups->groups;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t value = op->inputs[i], producer = graph->values[value].producer;
        while (producer != GB_NONE && group_of[producer] == GB_NONE) { /* views */
            value = graph->ops[producer]->inputs[0];
            producer = graph->values[value].producer;
        }
        if (producer == GB_NONE || group_of[producer] == group)
            continue;
        if (group_of[producer] == IN_PROLOGUES) {
            if (!is_prologue(&groups[group], producer))
                return broken(c, "%s is not in the prologue of a reader, group %u",
                        gb_op_label(graph->ops[producer]), group);
            GB_TRY(check_inputs(c, group_of, graph->ops[producer], group));
            continue;
        }
        const gb_group *maker = &groups[group_of[producer]];
        if (group_of[producer] > group)
            return broken(c, "the group of %s runs before that of %s", gb_op_label(op),
                    gb_op_label(graph->ops[producer]));
        if (!is_output(maker, value))
            return broken(c, "tensor %zu is read, but no output of the group of %s",
                    graph->values[value].tensor.id, gb_op_label(graph->ops[producer]));
    }
    return GB_SUCCESS;
}

/* Groups hold every op but views and End once, in an order of execution; but prologues may share
 * ops. */
static gb_status check_groups(const check *c, uint32_t *group_of)
{
    const gb_groups *groups = c->context->groups;
    for (uint32_t i = 0; i < c->graph->n_ops; i++)
        group_of[i] = GB_NONE;
    for (uint32_t g = 0; g < groups->n_groups; g++) {
        const gb_group *group = &groups->groups[g];
        if (group->anchor != GB_NONE)
            GB_TRY(note_op(c, group_of, group->anchor, g));
        for (uint32_t i = 0; i < group->n_ops; i++)
            GB_TRY(note_op(c, group_of, group->ops[i], g));
        for (uint32_t i = 0; i < group->n_prologue; i++)
            GB_TRY(note_prologue(c, group_of, group->prologue[i], g));
    }
    for (uint32_t i = 0; i < c->graph->n_ops; i++) {
        const gb_op *op = c->graph->ops[i];
        if (group_of[i] == GB_NONE && op->kind != GB_OP_END && !gb_op_is_view(op))
            return broken(c, "%s is in no group", gb_op_label(op));
        if (group_of[i] != GB_NONE && group_of[i] != IN_PROLOGUES)
            GB_TRY(check_inputs(c, group_of, op, group_of[i]));
    }
    return GB_SUCCESS;
}

gb_status gb_check_graph(const gb_graph *graph, const gb_pass_context *context, const char *pass)
{
    const check c = {graph, context, pass};
    if (gb_graph_check_structure(graph, true) != GB_SUCCESS)
        return gb_fail_prefix(GB_RUNTIME_ERROR, "internal error after pass \"%s\"", pass);
    for (uint32_t i = 0; i < graph->n_values; i++)
        GB_TRY(check_value(&c, i));
    if (!context->groups)
        return GB_SUCCESS;
    uint32_t *group_of = gb_calloc(graph->n_ops, sizeof *group_of);
    gb_status status = group_of ? check_groups(&c, group_of) : GB_OUT_OF_MEMORY;
    free(group_of);
    return status;
}
