/* Shape rules of normalisations and softmax. */
#include "base/memory.h"
#include "graph/ops/op_rules.h"

gb_status gb_infer_batch_norm(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    GB_TRY(gb_rank_between(op, 0, 2, GB_MAX_NDIMS));
    const int64_t *channels = &src->dims[gb_channel_axis(op, src->ndims)];
    for (uint32_t i = 1; i < op->n_inputs; i++)
        GB_TRY(gb_vector_input(op, i, *channels));
    gb_dims_set(&outputs[0], src->ndims, src->dims);
    for (uint32_t i = 1; i < op->n_outputs; i++)
        gb_dims_set(&outputs[i], 1, channels);
    return GB_SUCCESS;
}

gb_status gb_infer_batch_norm_backward(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    GB_TRY(gb_rank_between(op, 0, 2, GB_MAX_NDIMS));
    GB_TRY(gb_same_dims(op, 0, 1));
    const int64_t *channels = &src->dims[gb_channel_axis(op, src->ndims)];
    for (uint32_t i = 2; i < op->n_inputs; i++)
        GB_TRY(gb_vector_input(op, i, *channels));
    gb_dims_set(&outputs[0], src->ndims, src->dims);
    for (uint32_t i = 1; i < op->n_outputs; i++)
        gb_dims_set(&outputs[i], 1, channels);
    return GB_SUCCESS;
}

/* Input `i`, if the op has it, holds as many elements as the dims given. */
static gb_status check_elements(const gb_op *op, uint32_t i, int ndims, const int64_t *dims)
{
    if (i >= op->n_inputs)
        return GB_SUCCESS;
    gb_logical_tensor expected = *gb_op_input(op, i);
    gb_dims_set(&expected, ndims, dims);
    if (gb_tensor_count(gb_op_input(op, i)) == gb_tensor_count(&expected))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: %s is %s, expected the elements of %s", gb_op_label(op),
            gb_input_name(op, i), gb_tensor_label(gb_op_input(op, i)), gb_tensor_label(&expected));
}

/* Statistics may be given with dims of 1 that the rule leaves out. */
static void set_stats_dims(gb_logical_tensor *stats, int ndims, const int64_t *dims)
{
    int64_t given, expected;
    if (!gb_dims_known(stats) || !gb_dims_count(stats->ndims, stats->dims, &given) ||
            !gb_dims_count(ndims, dims, &expected) || given != expected)
        gb_dims_set(stats, ndims, dims);
}

/* LayerNorm and RMSNorm: statistics have the leading axes, gamma and beta the trailing ones. */
gb_status gb_infer_layer_norm(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    int axis;
    GB_TRY(gb_axis_attr(op, GB_ATTR_BEGIN_NORM_AXIS, src->ndims, &axis));
    for (uint32_t i = 1; i < op->n_inputs; i++)
        GB_TRY(check_elements(op, i, src->ndims - axis, &src->dims[axis]));
    gb_dims_set(&outputs[0], src->ndims, src->dims);
    for (uint32_t i = 1; i < op->n_outputs; i++)
        set_stats_dims(&outputs[i], axis, src->dims);
    return GB_SUCCESS;
}

gb_status gb_infer_layer_norm_backward(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    int axis;
    GB_TRY(gb_axis_attr(op, GB_ATTR_BEGIN_NORM_AXIS, src->ndims, &axis));
    GB_TRY(gb_same_dims(op, 0, 1));
    for (uint32_t i = 2; i < 4; i++)
        GB_TRY(check_elements(op, i, axis, src->dims));
    for (uint32_t i = 4; i < op->n_inputs; i++)
        GB_TRY(check_elements(op, i, src->ndims - axis, &src->dims[axis]));
    gb_dims_set(&outputs[0], src->ndims, src->dims);
    for (uint32_t i = 1; i < op->n_outputs; i++) {
        if (op->n_inputs > 4)
            gb_dims_set(&outputs[i], gb_op_input(op, 4)->ndims, gb_op_input(op, 4)->dims);
        else
            gb_dims_set(&outputs[i], src->ndims - axis, &src->dims[axis]);
    }
    return GB_SUCCESS;
}

gb_status gb_infer_group_norm(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    int64_t groups = gb_op_attr_s64(op, GB_ATTR_GROUPS, 1);
    GB_TRY(gb_rank_between(op, 0, 2, GB_MAX_NDIMS));
    int64_t channels = src->dims[gb_channel_axis(op, src->ndims)];
    if (groups < 1 || channels % groups != 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: %lld channels do not divide into %lld groups",
                gb_op_label(op), (long long)channels, (long long)groups);
    for (uint32_t i = 1; i < op->n_inputs; i++)
        GB_TRY(gb_vector_input(op, i, channels));
    gb_dims_set(&outputs[0], src->ndims, src->dims);
    for (uint32_t i = 1; i < op->n_outputs; i++)
        gb_dims_set(&outputs[i], 2, (const int64_t[]){src->dims[0], groups});
    return GB_SUCCESS;
}

/* SoftMax, LogSoftmax and their gradients; output 1 is stats, one per slice. */
gb_status gb_infer_softmax(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    int axis;
    GB_TRY(gb_axis_attr(op, GB_ATTR_AXIS, src->ndims, &axis));
    GB_TRY(gb_infer_same(op, outputs));
    if (op->n_outputs > 1)
        outputs[1].dims[axis] = 1;
    return GB_SUCCESS;
}
