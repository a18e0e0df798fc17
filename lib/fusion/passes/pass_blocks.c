/* Chains of element-wise ops between tensors in one format of blocks run on the blocks as they lie:
 * what is an axis in blocks to the ports is several axes to the ops, and no Reorder is needed. */
#include "base/status.h"
#include "fusion/passes/passes.h"

typedef struct blocks {
    gb_graph *graph;
    const gb_pass_context *context;
    const gb_format *format;
    gb_logical_tensor space; /* the dims of all results */
    gb_logical_tensor lying; /* the same with an axis for each block, in the order of memory */
} blocks;

bool gb_follows_elements(const gb_pass_context *context, const gb_op *op)
{
    if (!context->capability->is_pointwise(op) || op->n_outputs != 1)
        return false;
    return gb_is_uniform(context, op) || op->kind == GB_OP_BIAS_ADD || op->kind == GB_OP_SELECT ||
           gb_op_schema_get(op->kind)->flags & GB_OP_FLAG_CHAIN_BINARY;
}

/* The axis of the space along which an operand runs that is neither whole nor one element; -1 when
 * there are several. */
static int operand_axis(const gb_op *op, const gb_logical_tensor *space, uint32_t input)
{
    const gb_logical_tensor *tensor = gb_op_input(op, input);
    int lead = space->ndims - tensor->ndims, axis = -1;
    if (op->kind == GB_OP_BIAS_ADD && input > 0)
        lead = gb_channel_axis(op, space->ndims);
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] == 1)
            continue;
        int at = lead + d;
        if (axis >= 0 || at < 0 || at >= space->ndims || space->dims[at] != tensor->dims[d])
            return -1;
        axis = at;
    }
    return axis;
}

static bool is_whole(const blocks *b, const gb_logical_tensor *tensor)
{
    return gb_dims_equal(tensor, &b->space);
}

static bool blocks_fits(const blocks *b, const gb_op *op)
{
    bool good = gb_follows_elements(b->context, op) && is_whole(b, gb_op_output(op, 0));
    for (uint32_t i = 0; i < op->n_inputs && good; i++) {
        const gb_logical_tensor *in = gb_op_input(op, i);
        good = is_whole(b, in) || gb_tensor_count(in) == 1 || operand_axis(op, &b->space, i) >= 0;
    }
    return good;
}

static bool is_port(const blocks *b, const gb_value *value)
{
    return (value->producer == GB_NONE && value->n_uses > 0) ||
           gb_leaves_partition(b->context, value);
}

/* In the format already, or left to the library, which would best choose it. */
static bool lies_well(const blocks *b, const gb_value *value)
{
    if (value->tensor.layout_type == GB_LAYOUT_OPAQUE)
        return value->tensor.layout_id == b->format->id;
    return value->preferred_layout == b->format->id;
}

static void lay_out(blocks *b)
{
    const gb_format *format = b->format;
    int n = 0;
    b->lying = b->space;
    for (int i = 0; i < format->ndims; i++) {
        int axis = format->order[i];
        b->lying.dims[n++] = b->space.dims[axis] / gb_format_block_size(format, axis);
    }
    for (int i = 0; i < format->n_blocks; i++)
        b->lying.dims[n++] = format->blocks[i].size;
    b->lying.ndims = n;
    b->lying.layout_type = GB_LAYOUT_STRIDED;
    gb_dense_strides(n, b->lying.dims, b->lying.strides);
}

/* Is there one format for all whole ports, without padding, and are all ops of that size? */
static bool applies(blocks *b)
{
    for (uint32_t i = 0; i < b->graph->n_values && !b->format; i++)
        if (b->graph->values[i].tensor.layout_type == GB_LAYOUT_OPAQUE) {
            b->space = b->graph->values[i].tensor;
            b->format = gb_format_find(b->space.layout_id);
        }
    if (!b->format || !gb_format_divides(b->format, b->space.dims) ||
            b->format->ndims + b->format->n_blocks > GB_MAX_NDIMS)
        return false;
    bool good = true;
    for (uint32_t i = 0; i < b->graph->n_ops && good; i++)
        good = blocks_fits(b, b->graph->ops[i]);
    for (uint32_t i = 0; i < b->graph->n_values && good; i++) {
        const gb_value *value = &b->graph->values[i];
        if (is_port(b, value))
            good = is_whole(b, &value->tensor) ? lies_well(b, value)
                                               : value->tensor.layout_type == GB_LAYOUT_STRIDED;
    }
    return good;
}

/* An operand along one axis gets that axis' blocks, and the op no axis of its own. */
static gb_status split_operand(blocks *b, gb_op *op, uint32_t input)
{
    int axis = operand_axis(op, &b->space, input), n = 0;
    gb_logical_tensor split = b->lying;
    for (int i = 0; i < b->format->ndims; i++, n++)
        if (b->format->order[i] != axis)
            split.dims[n] = 1;
    for (int i = 0; i < b->format->n_blocks; i++, n++)
        if (b->format->blocks[i].axis != axis)
            split.dims[n] = 1;
    return gb_add_reshape(b->graph, op->inputs[input], &split, &op->inputs[input]);
}

static gb_status split_operands(blocks *b)
{
    for (uint32_t i = 0, n = b->graph->n_ops; i < n; i++) {
        gb_op *op = b->graph->ops[i];
        for (uint32_t k = 0; k < op->n_inputs; k++)
            if (!is_whole(b, gb_op_input(op, k)) && gb_tensor_count(gb_op_input(op, k)) > 1)
                GB_TRY(split_operand(b, op, k));
        if (op->kind == GB_OP_BIAS_ADD)
            op->kind = GB_OP_ADD;
    }
    return gb_graph_connect(b->graph);
}

/* The port, in its format, and the same memory with an axis for each block behind or in front. */
static gb_status split_port(blocks *b, uint32_t port)
{
    uint32_t inside;
    gb_logical_tensor twin = b->lying;
    gb_format_apply(b->format, &b->graph->values[port].tensor);
    twin.id = gb_graph_new_id(b->graph);
    twin.data_type = b->graph->values[port].tensor.data_type;
    twin.property = b->graph->values[port].tensor.property;
    GB_TRY(gb_reorder_port(b->graph, port, &twin, &inside));
    b->graph->values[inside].view_of = port;
    return GB_SUCCESS;
}

gb_status gb_pass_blocks(gb_graph *graph, gb_pass_context *context)
{
    blocks b = {.graph = graph, .context = context};
    if (!applies(&b))
        return GB_SUCCESS;
    lay_out(&b);
    GB_TRY(split_operands(&b));
    for (uint32_t i = 0, n = graph->n_values; i < n; i++) {
        gb_value *value = &graph->values[i];
        if (!is_whole(&b, &value->tensor) || (value->producer == GB_NONE && value->n_uses == 0))
            continue;
        if (is_port(&b, value))
            GB_TRY(split_port(&b, i));
        else
            gb_set_dense_dims(&value->tensor, &b.lying);
    }
    return GB_SUCCESS;
}
