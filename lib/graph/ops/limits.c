/* Limits of ops on values whose dims are known. They are apart from shape rules, so that shapes can
 * be inferred while parameters are still being made to fit. All fail with GB_INVALID_ARGUMENTS. */
#include "graph/ops/op_rules.h"

gb_status gb_limit_clamp(const gb_op *op)
{
    float min = gb_op_attr_f32(op, GB_ATTR_MIN, 0), max = gb_op_attr_f32(op, GB_ATTR_MAX, 0);
    if (max >= min)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "%s: max is %g, below min %g", gb_op_label(op),
            (double)max, (double)min);
}

/* From dst the sign of src is not known where alpha is negative: both branches are positive. */
gb_status gb_limit_elu_backward(const gb_op *op)
{
    float alpha = gb_op_attr_f32(op, GB_ATTR_ALPHA, 0);
    if (alpha >= 0 || !gb_op_attr_bool(op, GB_ATTR_USE_DST, true))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "%s: alpha is %g; with use_dst it must not be negative",
            gb_op_label(op), (double)alpha);
}

/* Length of the parameter lists: 1, or the channel axis of src. */
static gb_status parameter_count(const gb_op *op, int64_t *count)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    int axis;
    *count = 1;
    if (gb_op_attr_is(op, GB_ATTR_QTYPE, "per_tensor", true))
        return GB_SUCCESS;
    if (gb_axis_attr(op, GB_ATTR_AXIS, src->ndims, &axis) != GB_SUCCESS)
        return GB_INVALID_ARGUMENTS;
    *count = src->dims[axis];
    return GB_SUCCESS;
}

const gb_op *gb_quantize_groups_reader(const gb_op *op, int64_t *groups, int *along)
{
    if (op->kind != GB_OP_DEQUANTIZE || !op->graph)
        return NULL;
    const gb_logical_tensor *src = gb_op_input(op, 0);
    const float *scales;
    int axis, axes[GB_MAX_NDIMS];
    if (!gb_op_attr_is(op, GB_ATTR_QTYPE, "per_channel", false) ||
            gb_axis_attr(op, GB_ATTR_AXIS, src->ndims, &axis) != GB_SUCCESS)
        return NULL;
    int64_t count = (int64_t)gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales),
            channels = src->dims[axis];
    const gb_value *value = &op->graph->values[op->outputs[0]];
    for (uint32_t i = 0; count != channels && i < value->n_uses; i++) {
        const gb_op *user = op->graph->ops[value->uses[i].op];
        if (user->kind != GB_OP_CONV_TRANSPOSE || value->uses[i].input != 1)
            continue;
        *groups = gb_op_attr_s64(user, GB_ATTR_GROUPS, 1);
        gb_weights_axes(user, src->ndims, axes);
        *along = axes[0];
        if (axes[1] == axis && *groups > 1 && src->dims[axes[0]] % *groups == 0 && channels > 0 &&
                count % channels == 0 && count / channels == *groups)
            return user;
    }
    return NULL;
}

int gb_quantize_groups(const gb_op *op, int64_t *groups)
{
    int along;
    return gb_quantize_groups_reader(op, groups, &along) ? along : -1;
}

gb_status gb_limit_quantize(const gb_op *op)
{
    const float *scales;
    size_t n_scales = gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales);
    int64_t count, groups;
    GB_TRY(parameter_count(op, &count));
    if (gb_quantize_groups(op, &groups) >= 0)
        count *= groups;
    if (n_scales != (size_t)count)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "%s: attribute \"scales\" has %zu values, the axis of src %s has %lld",
                gb_op_label(op), n_scales, gb_tensor_label(gb_op_input(op, 0)), (long long)count);
    for (size_t i = 0; op->kind == GB_OP_QUANTIZE && i < n_scales; i++)
        if (scales[i] == 0.0f)
            return gb_fail(GB_INVALID_ARGUMENTS, "%s: scale %zu is 0", gb_op_label(op), i);
    return GB_SUCCESS;
}

/* Input `i` holds `count` elements in one axis (or as a scalar). */
static gb_status check_parameters(const gb_op *op, uint32_t i, int64_t count)
{
    const gb_logical_tensor *tensor = gb_op_input(op, i);
    if (tensor->ndims <= 1 && gb_tensor_count(tensor) == count)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "%s: %s is %s, expected a vector of %lld elements",
            gb_op_label(op), gb_input_name(op, i), gb_tensor_label(tensor), (long long)count);
}

/* Parameters of per_group: dim of input `i` times group_shape gives the dim of src, on every axis.
 */
static gb_status limits_check_groups(const gb_op *op, uint32_t i)
{
    const gb_logical_tensor *src = gb_op_input(op, 0), *tensor = gb_op_input(op, i);
    const int64_t *group;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_GROUP_SHAPE, &group);
    bool fits = count == (size_t)src->ndims && tensor->ndims == src->ndims;
    for (int d = 0; fits && d < src->ndims; d++) {
        int64_t product;
        fits = group[d] >= 1 && (group[d] == 1 || d >= src->ndims - 2) &&
               !__builtin_mul_overflow(tensor->dims[d], group[d], &product) &&
               product == src->dims[d];
    }
    if (fits)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS,
            "%s: %s is %s, which does not tile src %s in groups of attribute \"group_shape\" "
            "(only the last two axes may have groups)",
            gb_op_label(op), gb_input_name(op, i), gb_tensor_label(tensor), gb_tensor_label(src));
}

gb_status gb_limit_dynamic_quantize(const gb_op *op)
{
    int64_t count;
    if (gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false)) {
        for (uint32_t i = 1; i < op->n_inputs; i++)
            GB_TRY(limits_check_groups(op, i));
        return GB_SUCCESS;
    }
    GB_TRY(parameter_count(op, &count));
    GB_TRY(check_parameters(op, 1, count));
    if (op->n_inputs > 2 && gb_tensor_count(gb_op_input(op, 2)) != 1)
        GB_TRY(check_parameters(op, 2, count));
    return GB_SUCCESS;
}
