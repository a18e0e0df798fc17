/* Finds the batch norms of training, or their gradients, with the ReLU beside them. */
#include "fusion/regions/batch_norm.h"

#include "base/status.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"

enum { DIFF_DST = 1 };

/* The ReLU that takes the norm's result, or the ReLUBackward that makes diff_dst for sums of it.
 * NULL where others read what is between the two. */
static const gb_op *relu_beside(
        const gb_graph *graph, const gb_pass_context *context, const gb_op *norm)
{
    bool behind = norm->kind == GB_OP_BATCH_NORM_FORWARD_TRAINING;
    const gb_value *value = &graph->values[behind ? norm->outputs[0] : norm->inputs[DIFF_DST]];
    if (value->producer == GB_NONE || value->n_uses != 1 || gb_leaves_partition(context, value))
        return NULL;
    const gb_op *op = graph->ops[behind ? value->uses[0].op : value->producer];
    return op->kind == (behind ? GB_OP_RELU : GB_OP_RELU_BACKWARD) ? op : NULL;
}

static gb_status batch_norm_match(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *norm, gb_op_list *ops, void *found)
{
    const char *reason;
    gb_batch_norm_parts *parts = found;
    const gb_op *relu = relu_beside(graph, context, norm);
    if (!relu || !gb_all_types_float(norm, &reason) || !gb_all_types_float(relu, &reason))
        return GB_SUCCESS;
    *parts = (gb_batch_norm_parts){norm, relu};
    GB_TRY(gb_op_list_add(ops, norm->index));
    return gb_op_list_add(ops, relu->index);
}

const gb_region gb_region_batch_norm_relu = {.name = "batch norm",
        .root = GB_OP_BATCH_NORM_FORWARD_TRAINING,
        .parts_bytes = sizeof(gb_batch_norm_parts),
        .match = batch_norm_match};
const gb_region gb_region_relu_batch_norm_backward = {.name = "batch norm backward",
        .root = GB_OP_BATCH_NORM_BACKWARD,
        .parts_bytes = sizeof(gb_batch_norm_parts),
        .match = batch_norm_match};
