/* Transposes, reshapes and reorders inside a partition become strides: no element moves. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "fusion/passes/passes.h"

/* Dims of a tensor with neighbours merged where one stride leads through both; dims of 1 left out.
 */
typedef struct runs {
    int n;
    int64_t dims[GB_MAX_NDIMS], strides[GB_MAX_NDIMS];
} runs;

static runs merge(const gb_logical_tensor *tensor)
{
    runs r = {0};
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] == 1)
            continue;
        if (r.n && r.strides[r.n - 1] == tensor->strides[d] * tensor->dims[d])
            r.dims[r.n - 1] *= tensor->dims[d];
        else
            r.dims[r.n++] = tensor->dims[d];
        r.strides[r.n - 1] = tensor->strides[d];
    }
    return r;
}

bool gb_reshape_view(const gb_logical_tensor *from, gb_logical_tensor *to)
{
    runs r = merge(from);
    int run = r.n;
    int64_t left = 1, stride = 1;
    for (int d = to->ndims; d-- > 0;) {
        while (left == 1 && to->dims[d] != 1 && run > 0) {
            left = r.dims[--run];
            stride = r.strides[run];
        }
        if (left % to->dims[d])
            return false;
        to->strides[d] = stride;
        stride *= to->dims[d];
        left /= to->dims[d];
    }
    return left == 1 && run == 0;
}

/* Strides of one side of a transpose from those of the other: `to_output` from input to output. */
static bool transpose_strides(
        const gb_op *op, const gb_logical_tensor *from, gb_logical_tensor *to, bool to_output)
{
    int64_t order[GB_MAX_NDIMS];
    if (!gb_transpose_order(op, order))
        return false;
    for (int d = 0; d < to->ndims; d++) {
        if (to_output)
            to->strides[d] = from->strides[order[d]];
        else
            to->strides[order[d]] = from->strides[d];
    }
    return true;
}

static bool view_strides(
        const gb_op *op, const gb_logical_tensor *from, gb_logical_tensor *to, bool to_output)
{
    switch (op->kind) {
    case GB_OP_STATIC_TRANSPOSE:
        return transpose_strides(op, from, to, to_output);
    case GB_OP_STATIC_RESHAPE:
        return gb_reshape_view(from, to);
    default: /* Reorder */
        for (int d = 0; d < to->ndims; d++)
            to->strides[d] = from->strides[d];
        return true;
    }
}

/* Elements of whole bytes, of which there are some. Their type does not change: no movement casts. */
static bool may_be_view(const gb_op *op)
{
    if (!gb_is_movement(op))
        return false;
    const gb_logical_tensor *in = gb_op_input(op, 0);
    const gb_dtype_info *type = gb_dtype_get(in->data_type);
    return type && type->bits >= 8 && gb_tensor_count(in) > 0;
}

/* Makes `view` lie in the memory of `base`, which is the other side of the op. */
static void try_view(gb_graph *graph, const gb_op *op, uint32_t base, uint32_t view)
{
    gb_logical_tensor tensor = graph->values[view].tensor;
    if (gb_graph_strides_count(graph, view) ||
            !view_strides(op, &graph->values[base].tensor, &tensor, view == op->outputs[0]))
        return;
    graph->values[view].tensor = tensor;
    graph->values[view].view_of = base;
}

/* What makes the input may as well write it where the output of the partition lies. */
static void look_upstream(gb_graph *graph, const gb_pass_context *context, const gb_op *op)
{
    const gb_value *in = &graph->values[op->inputs[0]], *out = &graph->values[op->outputs[0]];
    bool leads_out = gb_leaves_partition(context, out) || out->view_of != GB_NONE;
    bool inside = in->producer != GB_NONE && in->n_uses == 1 && !gb_leaves_partition(context, in);
    if (leads_out && inside)
        try_view(graph, op, op->outputs[0], op->inputs[0]);
}

/* What reads the output may as well read it where the input lies. */
static void look_downstream(gb_graph *graph, const gb_pass_context *context, const gb_op *op)
{
    const gb_value *out = &graph->values[op->outputs[0]];
    if (!gb_op_is_view(op) && out->view_of == GB_NONE && !gb_leaves_partition(context, out))
        try_view(graph, op, op->inputs[0], op->outputs[0]);
}

/* What reads a Reorder inside of the partition may as well read its input: all of them take any
 * strides. */
static gb_status skip_reorders(gb_graph *graph, const gb_pass_context *context)
{
    for (uint32_t i = graph->n_ops; i-- > 0;) {
        const gb_op *op = graph->ops[i];
        if (op->kind != GB_OP_REORDER || !may_be_view(op))
            continue;
        const gb_value *out = &graph->values[op->outputs[0]];
        if (gb_leaves_partition(context, out) || out->n_uses == 0)
            continue;
        for (uint32_t k = 0; k < out->n_uses; k++)
            graph->ops[out->uses[k].op]->inputs[out->uses[k].input] = op->inputs[0];
        GB_TRY(gb_graph_drop_op(graph, i));
        GB_TRY(gb_graph_connect(graph));
    }
    return GB_SUCCESS;
}

gb_status gb_pass_views(gb_graph *graph, gb_pass_context *context)
{
    GB_TRY(skip_reorders(graph, context));
    for (uint32_t i = graph->n_ops; i-- > 0;)
        if (may_be_view(graph->ops[i]))
            look_upstream(graph, context, graph->ops[i]);
    for (uint32_t i = 0; i < graph->n_ops; i++)
        if (may_be_view(graph->ops[i]))
            look_downstream(graph, context, graph->ops[i]);
    return GB_SUCCESS;
}
