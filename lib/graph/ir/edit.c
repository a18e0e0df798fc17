/* Edits that take ops out, put others in their place, or put new ones in between. The edit is made
 * on a copy, which the graph exchanges its contents for when nothing is wrong with it. */
#include "base/status.h"
#include "graph/ir/graph.h"

/* What is different in the copy. Ops are indices in the graph. */
typedef struct edit {
    const gb_op *op;                  /* the new one; NULL = none */
    uint32_t at;                      /* it comes before this op or... */
    bool replaces;                    /* in its place */
    size_t tensor_id;                 /* read by ops no more... */
    const gb_logical_tensor *instead; /* but this one; NULL = none */
    uint32_t only;                    /* by this op; GB_NONE = by all */
} edit;

static gb_status edit_check_open(const gb_graph *graph, const char *function)
{
    if (!graph)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: NULL argument", function);
    if (graph->finalized)
        return gb_fail(GB_INVALID_GRAPH, "%s: the graph is finalized", function);
    for (uint32_t i = 0; i < graph->n_values; i++)
        if (graph->values[i].conflict)
            return gb_fail(GB_INVALID_GRAPH, "%s", graph->values[i].conflict);
    return GB_SUCCESS;
}

static bool is_redirected(const edit *e, const gb_op *op)
{
    return e->instead && (e->only == GB_NONE || e->only == op->index);
}

static gb_status copy_op(const edit *e, const gb_op *op, gb_graph *copy)
{
    gb_op *clone;
    GB_TRY(gb_op_clone(op, &clone));
    for (uint32_t k = 0; is_redirected(e, op) && k < clone->n_inputs; k++)
        if (gb_op_input(clone, k)->id == e->tensor_id)
            clone->own[clone->inputs[k]] = *e->instead;
    return gb_graph_take_op(copy, clone);
}

/* What the new op says of tensors, and what the graph knew of them. */
static gb_status merge_tensors(const gb_graph *graph, gb_graph *copy)
{
    for (uint32_t i = 0; i < copy->n_values; i++) {
        gb_logical_tensor *tensor = &copy->values[i].tensor;
        uint32_t known = gb_graph_find_value(graph, tensor->id);
        if (known == GB_NONE || gb_logical_tensor_merge(tensor, &graph->values[known].tensor))
            continue;
        return gb_fail(GB_INVALID_GRAPH,
                "tensor %zu is described in two ways: %s and, by the new op, %s", tensor->id,
                gb_tensor_label(&graph->values[known].tensor), gb_tensor_label(tensor));
    }
    return GB_SUCCESS;
}

static gb_status edit_build(const gb_graph *graph, const edit *e, gb_graph *copy)
{
    for (uint32_t i = 0; i < graph->n_ops; i++) {
        if (i == e->at && e->op)
            GB_TRY(gb_graph_add_op(copy, e->op));
        if (i != e->at || !e->replaces)
            GB_TRY(copy_op(e, graph->ops[i], copy));
    }
    GB_TRY(merge_tensors(graph, copy));
    GB_TRY(gb_graph_copy_ends(graph, copy));
    return gb_graph_connect(copy);
}

#define EXCHANGE(type, a, b)                                                                       \
    do {                                                                                           \
        type kept = (a);                                                                           \
        (a) = (b);                                                                                 \
        (b) = kept;                                                                                \
    } while (0)

/* The graph takes what the copy has. An op that both have stays where callers know it. */
static void exchange(gb_graph *graph, gb_graph *copy)
{
    for (uint32_t i = 0; i < copy->n_ops; i++) {
        uint32_t known = gb_graph_find_op_index(graph, copy->ops[i]->id);
        copy->ops[i]->graph = graph;
        if (known == GB_NONE)
            continue;
        EXCHANGE(gb_op, *graph->ops[known], *copy->ops[i]);
        EXCHANGE(gb_op *, graph->ops[known], copy->ops[i]);
    }
    gb_graph before = *graph;
    graph->n_ops = copy->n_ops, graph->op_capacity = copy->op_capacity, graph->ops = copy->ops;
    graph->n_values = copy->n_values, graph->value_capacity = copy->value_capacity;
    graph->values = copy->values;
    graph->op_ids = copy->op_ids, graph->value_ids = copy->value_ids;
    *copy = before;
    copy->attrs = NULL; /* stays the graph's */
}

static gb_status apply(gb_graph *graph, const edit *e)
{
    gb_graph *copy = NULL;
    uint32_t other = e->op ? gb_graph_find_op_index(graph, e->op->id) : GB_NONE;
    if (other != GB_NONE && !(e->replaces && other == e->at))
        return gb_fail(GB_INVALID_GRAPH_OP, "%s: the graph has an op of this id already: %s",
                gb_op_label(e->op), gb_op_label(graph->ops[other]));
    GB_TRY(gb_graph_create_with_fpmath_mode(&copy, graph->engine_kind, graph->fpmath_mode));
    gb_status status = edit_build(graph, e, copy);
    if (status == GB_SUCCESS)
        exchange(graph, copy);
    gb_graph_destroy(copy);
    return status;
}

gb_status gb_graph_remove_op(gb_graph *graph, size_t op_id)
{
    const gb_op *op;
    GB_TRY(edit_check_open(graph, "gb_graph_remove_op"));
    GB_TRY(gb_graph_find_op(graph, op_id, &op));
    return apply(graph, &(edit){.at = op->index, .replaces = true});
}

static bool mentions(const gb_op *op, size_t tensor_id, bool outputs)
{
    for (uint32_t k = 0; k < (outputs ? op->n_outputs : op->n_inputs); k++)
        if ((outputs ? gb_op_output(op, k) : gb_op_input(op, k))->id == tensor_id)
            return true;
    return false;
}

gb_status gb_graph_replace_op(gb_graph *graph, size_t op_id, const gb_op *op)
{
    const gb_op *old;
    GB_TRY(edit_check_open(graph, "gb_graph_replace_op"));
    GB_TRY(gb_graph_find_op(graph, op_id, &old));
    if (!op)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_replace_op: NULL argument");
    for (uint32_t k = 0; k < old->n_outputs; k++) {
        const gb_value *value = &graph->values[old->outputs[k]];
        if (value->n_uses == 0 || mentions(op, value->tensor.id, true))
            continue;
        return gb_fail(GB_INVALID_GRAPH,
                "%s in place of %s: tensor %zu, which %s reads, is not made", gb_op_label(op),
                gb_op_label(old), value->tensor.id, gb_op_label(graph->ops[value->uses[0].op]));
    }
    return apply(graph, &(edit){.op = op, .at = old->index, .replaces = true});
}

/* The first of the ops that will read the new op's output. */
static gb_status find_reader(
        const gb_graph *graph, size_t tensor_id, size_t consumer_id, uint32_t *reader)
{
    uint32_t value = gb_graph_find_value(graph, tensor_id);
    if (value == GB_NONE)
        return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no tensor %zu", tensor_id);
    for (uint32_t u = 0; u < graph->values[value].n_uses; u++) {
        *reader = graph->values[value].uses[u].op;
        if (consumer_id == GB_NO_ID || graph->ops[*reader]->id == consumer_id)
            return GB_SUCCESS;
    }
    if (consumer_id == GB_NO_ID)
        return gb_fail(GB_INVALID_ARGUMENTS, "no op reads tensor %zu", tensor_id);
    return gb_fail(GB_INVALID_ARGUMENTS, "op %zu does not read tensor %zu", consumer_id, tensor_id);
}

gb_status gb_graph_insert_op(gb_graph *graph, size_t tensor_id, size_t consumer_id, const gb_op *op)
{
    uint32_t reader;
    GB_TRY(edit_check_open(graph, "gb_graph_insert_op"));
    if (!op)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_insert_op: NULL argument");
    GB_TRY(find_reader(graph, tensor_id, consumer_id, &reader));
    if (!mentions(op, tensor_id, false) || op->n_outputs == 0)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s does not read tensor %zu to make another",
                gb_op_label(op), tensor_id);
    return apply(graph, &(edit){.op = op,
                                .at = reader,
                                .tensor_id = tensor_id,
                                .instead = gb_op_output(op, 0),
                                .only = consumer_id == GB_NO_ID ? GB_NONE : reader});
}
