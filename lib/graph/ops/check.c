/* The checks of single ops that a schema row cannot express. All fail with GB_INVALID_GRAPH_OP. */
#include "graph/ops/op_rules.h"

#include <math.h>
#include <string.h>

static gb_data_type input_type(const gb_op *op, uint32_t i)
{
    return gb_op_input(op, i)->data_type;
}

static gb_data_type output_type(const gb_op *op, uint32_t i)
{
    return gb_op_output(op, i)->data_type;
}

static gb_status check_not_negative(const gb_op *op, gb_op_attr name)
{
    const int64_t *values;
    size_t count = gb_op_attr_s64s(op, name, &values);
    for (size_t i = 0; i < count; i++)
        if (values[i] < 0)
            return gb_fail(GB_INVALID_GRAPH_OP, "%s: attribute \"%s\" holds %lld, below 0",
                    gb_op_label(op), gb_op_attr_name(name), (long long)values[i]);
    return GB_SUCCESS;
}

gb_status gb_check_convolution(const gb_op *op)
{
    GB_TRY(check_not_negative(op, GB_ATTR_PADS_BEGIN));
    return check_not_negative(op, GB_ATTR_PADS_END);
}

static bool all_ones(const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] != 1)
            return false;
    return true;
}

/* pads_end may be negative: graphs in use crop the end of an axis that way. */
gb_status gb_check_pool(const gb_op *op)
{
    GB_TRY(check_not_negative(op, GB_ATTR_PADS_BEGIN));
    const int64_t *kernel, *dilations;
    size_t n_kernel = gb_op_attr_s64s(op, GB_ATTR_KERNEL, &kernel);
    size_t n_dilations = gb_op_attr_s64s(op, GB_ATTR_DILATIONS, &dilations);
    bool is_default = n_dilations == GB_MAX_NDIMS && all_ones(dilations, n_dilations);
    if (!gb_op_find_attr(op, GB_ATTR_DILATIONS) || is_default || n_dilations == n_kernel)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_GRAPH_OP,
            "%s: attribute \"dilations\" has %zu values, \"kernel\" has %zu", gb_op_label(op),
            n_dilations, n_kernel);
}

/* Narrow statistics would lose what wider data has. */
static gb_status check_bf16_stats(const gb_op *op, gb_data_type stats, const char *name)
{
    if (stats == GB_BF16 && input_type(op, 0) != GB_BF16)
        return gb_fail(GB_INVALID_GRAPH_OP, "%s: %s is bf16, which needs src in bf16, not %s",
                gb_op_label(op), name, gb_data_type_name(input_type(op, 0)));
    return GB_SUCCESS;
}

gb_status gb_check_batch_norm(const gb_op *op)
{
    return check_bf16_stats(op, input_type(op, 2), gb_input_name(op, 2));
}

gb_status gb_check_layer_norm(const gb_op *op)
{
    if (op->n_inputs > 1)
        GB_TRY(check_bf16_stats(op, input_type(op, 1), "gamma"));
    else if (op->n_outputs > 1)
        GB_TRY(check_bf16_stats(op, output_type(op, 1), "mean"));
    if (gb_op_attr_bool(op, GB_ATTR_KEEP_STATS, true) && op->n_outputs != 3)
        return gb_fail(GB_INVALID_GRAPH_OP,
                "%s: keep_stats needs 3 output tensors (dst, mean, variance), not %u",
                gb_op_label(op), op->n_outputs);
    if (gb_op_attr_bool(op, GB_ATTR_USE_AFFINE, true) && op->n_inputs != 3)
        return gb_fail(GB_INVALID_GRAPH_OP,
                "%s: use_affine needs 3 input tensors (src, gamma, beta), not %u", gb_op_label(op),
                op->n_inputs);
    return GB_SUCCESS;
}

gb_status gb_check_layer_norm_backward(const gb_op *op)
{
    GB_TRY(check_bf16_stats(op, input_type(op, 2), "mean"));
    if (!gb_op_attr_bool(op, GB_ATTR_USE_AFFINE, true))
        return GB_SUCCESS;
    if (op->n_inputs < 5)
        return gb_fail(
                GB_INVALID_GRAPH_OP, "%s: use_affine needs input 4 (gamma)", gb_op_label(op));
    if (op->n_outputs != 3)
        return gb_fail(GB_INVALID_GRAPH_OP,
                "%s: use_affine needs 3 output tensors (diff_src, diff_gamma, diff_beta), not %u",
                gb_op_label(op), op->n_outputs);
    return GB_SUCCESS;
}

gb_status gb_check_rms_norm(const gb_op *op)
{
    return op->n_inputs > 1 ? check_bf16_stats(op, input_type(op, 1), "gamma") : GB_SUCCESS;
}

/* The output has the type given or f32. */
static gb_status check_same_or_f32(const gb_op *op, gb_data_type type, const char *name)
{
    gb_data_type dst = output_type(op, 0);
    if (dst == type || dst == GB_F32)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_GRAPH_OP, "%s: output 0 is %s, allowed with %s in %s: %s",
            gb_op_label(op), gb_data_type_name(dst), name, gb_data_type_name(type),
            type == GB_F32 ? "f32" : "the same or f32");
}

gb_status gb_check_matmul(const gb_op *op)
{
    return check_same_or_f32(op, input_type(op, 0), "src");
}

gb_status gb_check_softmax_backward(const gb_op *op)
{
    return check_same_or_f32(op, input_type(op, 0), "diff_dst");
}

gb_status gb_check_softmax(const gb_op *op)
{
    gb_data_type src = input_type(op, 0), dst = output_type(op, 0);
    if (src == dst || src == GB_F32 || dst == GB_F32)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_GRAPH_OP, "%s: no conversion from %s to %s", gb_op_label(op),
            gb_data_type_name(src), gb_data_type_name(dst));
}

gb_status gb_check_type_cast(const gb_op *op)
{
    gb_data_type src = input_type(op, 0), dst = output_type(op, 0);
    if ((src == GB_F32) != (dst == GB_F32))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_GRAPH_OP,
            "%s: casts %s to %s; exactly one side must be f32 and the other bf16 or f16",
            gb_op_label(op), gb_data_type_name(src), gb_data_type_name(dst));
}

gb_status gb_check_interpolate(const gb_op *op)
{
    const int64_t *sizes;
    const float *scales;
    bool has_sizes = gb_op_attr_s64s(op, GB_ATTR_SIZES, &sizes) > 0;
    bool has_scales = gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales) > 0;
    if (has_sizes != has_scales)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_GRAPH_OP,
            "%s: exactly one of the attributes \"sizes\" and \"scales\" must hold values, not %s",
            gb_op_label(op), has_sizes ? "both" : "none");
}

static bool is_f8(gb_data_type type)
{
    return type == GB_F8_E5M2 || type == GB_F8_E4M3;
}

gb_status gb_check_quantize(const gb_op *op)
{
    const float *scales;
    const int64_t *zps;
    size_t n_scales = gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales);
    size_t n_zps = gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    bool per_tensor = gb_op_attr_is(op, GB_ATTR_QTYPE, "per_tensor", true);
    if (n_scales == 0 || (per_tensor && n_scales != 1))
        return gb_fail(GB_INVALID_GRAPH_OP, "%s: attribute \"scales\" has %zu values, expected %s",
                gb_op_label(op), n_scales, per_tensor ? "1 (per_tensor)" : "one per channel");
    if (n_zps && n_zps != n_scales)
        return gb_fail(GB_INVALID_GRAPH_OP,
                "%s: attribute \"zps\" has %zu values, \"scales\" has %zu", gb_op_label(op), n_zps,
                n_scales);
    for (size_t i = 0; i < n_scales; i++)
        if (!isfinite(scales[i]) || (op->kind == GB_OP_QUANTIZE && scales[i] == 0))
            return gb_fail(GB_INVALID_GRAPH_OP, "%s: attribute \"scales\": value %zu is %g",
                    gb_op_label(op), i, (double)scales[i]);
    if (n_zps && (is_f8(input_type(op, 0)) || is_f8(output_type(op, 0))))
        return gb_fail(GB_INVALID_GRAPH_OP, "%s: attribute \"zps\" is not allowed with f8",
                gb_op_label(op));
    return GB_SUCCESS;
}

/* Dim 0 of an input, 1 for a scalar; -1 when not known, so that nothing is concluded from it. */
static int64_t first_dim(const gb_op *op, uint32_t i)
{
    const gb_logical_tensor *tensor = gb_op_input(op, i);
    if (tensor->ndims == 0)
        return 1;
    return tensor->ndims > 0 && tensor->dims[0] >= 0 ? tensor->dims[0] : -1;
}

static gb_status check_group_zps(const gb_op *op)
{
    const gb_logical_tensor *scales = gb_op_input(op, 1), *zps = gb_op_input(op, 2);
    if (scales->ndims < 2 || !gb_dims_equal(scales, zps))
        return gb_fail(GB_INVALID_GRAPH_OP,
                "%s: per_group needs scales and zps of equal dims and rank 2 or more, not %s and "
                "%s",
                gb_op_label(op), gb_tensor_label(scales), gb_tensor_label(zps));
    return GB_SUCCESS;
}

/* What dim 0 of scales and zps tells; unknown dims are left to the shape rule. */
gb_status gb_check_dynamic_quantize(const gb_op *op)
{
    bool per_tensor = gb_op_attr_is(op, GB_ATTR_QTYPE, "per_tensor", true);
    bool per_group = gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false);
    if (per_group && !gb_op_find_attr(op, GB_ATTR_GROUP_SHAPE))
        return gb_fail(GB_INVALID_GRAPH_OP, "%s: per_group needs the attribute \"group_shape\"",
                gb_op_label(op));
    int64_t scales = first_dim(op, 1);
    if (per_tensor && scales >= 0 && scales != 1)
        return gb_fail(GB_INVALID_GRAPH_OP, "%s: per_tensor needs scales of shape 1, not %s",
                gb_op_label(op), gb_tensor_label(gb_op_input(op, 1)));
    if (op->n_inputs < 3)
        return GB_SUCCESS;
    int64_t zps = first_dim(op, 2);
    if (scales < 0 || zps < 0)
        return GB_SUCCESS;
    if (per_group)
        return check_group_zps(op);
    if (zps == 1 || (!per_tensor && zps == scales))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_GRAPH_OP, "%s: zps is %s, scales is %s", gb_op_label(op),
            gb_tensor_label(gb_op_input(op, 2)), gb_tensor_label(gb_op_input(op, 1)));
}
