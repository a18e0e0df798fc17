/* Shape rules of ops that work element by element. */
#include "graph/ops/op_rules.h"

/* Every output has the dims of input 0. */
gb_status gb_infer_identity(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    for (uint32_t i = 0; i < op->n_outputs; i++)
        gb_dims_set(&outputs[i], src->ndims, src->dims);
    return GB_SUCCESS;
}

/* Every tensor has the same dims. */
gb_status gb_infer_same(gb_op *op, gb_logical_tensor *outputs)
{
    for (uint32_t i = 1; i < op->n_inputs; i++)
        GB_TRY(gb_same_dims(op, 0, i));
    return gb_infer_identity(op, outputs);
}

/* The broadcast of inputs a and b; with auto_broadcast "none" they must have the same dims. */
static gb_status broadcast_inputs(
        const gb_op *op, uint32_t a, uint32_t b, gb_logical_tensor *output)
{
    const gb_logical_tensor *first = gb_op_input(op, a), *second = gb_op_input(op, b);
    if (gb_op_attr_is(op, GB_ATTR_AUTO_BROADCAST, "none", false)) {
        GB_TRY(gb_same_dims(op, a, b));
        gb_dims_set(output, first->ndims, first->dims);
        return GB_SUCCESS;
    }
    if (gb_broadcast_dims(first->ndims, first->dims, second->ndims, second->dims, &output->ndims,
                output->dims))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: %s is %s, %s is %s; they do not broadcast",
            gb_op_label(op), gb_input_name(op, a), gb_tensor_label(first), gb_input_name(op, b),
            gb_tensor_label(second));
}

gb_status gb_infer_binary(gb_op *op, gb_logical_tensor *outputs)
{
    return broadcast_inputs(op, 0, 1, &outputs[0]);
}

/* The condition may not enlarge what src_0 and src_1 give. */
gb_status gb_infer_select(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *condition = gb_op_input(op, 0);
    GB_TRY(broadcast_inputs(op, 1, 2, &outputs[0]));
    if (gb_op_attr_is(op, GB_ATTR_AUTO_BROADCAST, "none", false))
        return gb_same_dims(op, 0, 1);
    if (gb_broadcasts_onto(condition->ndims, condition->dims, outputs[0].ndims, outputs[0].dims))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: cond is %s, which does not broadcast onto dst %s",
            gb_op_label(op), gb_tensor_label(condition), gb_tensor_label(&outputs[0]));
}

gb_status gb_infer_bias_add(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    GB_TRY(gb_rank_between(op, 0, 2, GB_MAX_NDIMS));
    GB_TRY(gb_vector_input(op, 1, src->dims[gb_channel_axis(op, src->ndims)]));
    return gb_infer_identity(op, outputs);
}

gb_status gb_infer_bias_add_backward(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    GB_TRY(gb_rank_between(op, 0, 2, GB_MAX_NDIMS));
    gb_dims_set(&outputs[0], 1, &src->dims[gb_channel_axis(op, src->ndims)]);
    return GB_SUCCESS;
}

/* A slope of rank 1 runs along the channels where it is per channel, else along the last axis;
 * further ranks broadcast. */
static bool slope_fits(
        const gb_op *op, const gb_logical_tensor *src, const gb_logical_tensor *slope)
{
    bool per_channel = op->kind == GB_OP_PRELU_BACKWARD
                               ? slope->ndims == 1 && slope->dims[0] != 1
                               : gb_op_attr_bool(op, GB_ATTR_PER_CHANNEL_BROADCAST, true);
    if (slope->ndims == 1 && per_channel && src->ndims > 1)
        return slope->dims[0] == src->dims[gb_channel_axis(op, src->ndims)];
    return gb_broadcasts_onto(slope->ndims, slope->dims, src->ndims, src->dims);
}

/* PReLU and its gradient, whose outputs follow src and slope. */
gb_status gb_infer_prelu(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0), *slope = gb_op_input(op, 1);
    if (!slope_fits(op, src, slope))
        return gb_fail(GB_INVALID_SHAPE, "%s: slope is %s, which does not fit src %s",
                gb_op_label(op), gb_tensor_label(slope), gb_tensor_label(src));
    gb_dims_set(&outputs[0], src->ndims, src->dims);
    if (op->n_inputs > 2)
        GB_TRY(gb_same_dims(op, 0, 2));
    if (op->n_outputs > 1)
        gb_dims_set(&outputs[1], slope->ndims, slope->dims);
    return GB_SUCCESS;
}

/* seed, offset and probability are single values. */
gb_status gb_infer_dropout(gb_op *op, gb_logical_tensor *outputs)
{
    for (uint32_t i = 1; i < op->n_inputs; i++)
        if (gb_tensor_count(gb_op_input(op, i)) != 1)
            return gb_fail(GB_INVALID_SHAPE, "%s: %s is %s, expected one element", gb_op_label(op),
                    gb_input_name(op, i), gb_tensor_label(gb_op_input(op, i)));
    return gb_infer_identity(op, outputs);
}

gb_status gb_infer_gen_index(gb_op *op, gb_logical_tensor *outputs)
{
    int axis;
    GB_TRY(gb_axis_attr(op, GB_ATTR_AXIS, gb_op_input(op, 0)->ndims, &axis));
    return gb_infer_identity(op, outputs);
}

/* Nothing is known about the op, so its outputs must be given. */
gb_status gb_infer_wildcard(gb_op *op, gb_logical_tensor *outputs)
{
    for (uint32_t i = 0; i < op->n_outputs; i++)
        if (!gb_dims_known(&outputs[i]))
            return gb_fail(GB_INVALID_SHAPE, "%s: dims of output %u (tensor %zu) are not known",
                    gb_op_label(op), i, outputs[i].id);
    return GB_SUCCESS;
}
