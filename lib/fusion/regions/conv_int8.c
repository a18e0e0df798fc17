/* Finds convolutions of 8-bit codes: the Dequantize of source and weights, the convolution, and the
 * post-ops behind it. */
#include "base/status.h"
#include "fusion/regions/convolution.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"

enum { SRC, WEIGHTS };

/* Is the value read once, and inside of the partition only? */
static bool is_inner(const gb_graph *graph, const gb_pass_context *context, uint32_t value)
{
    const gb_value *v = &graph->values[value];
    return v->n_uses == 1 && !gb_leaves_partition(context, v);
}

/* Up from an input of the convolution. */
static bool find_codes(
        const gb_graph *graph, const gb_pass_context *context, uint32_t value, gb_conv_codes *found)
{
    for (found->n_casts = 0; is_inner(graph, context, value);) {
        uint32_t producer = graph->values[value].producer;
        const gb_op *op = producer == GB_NONE ? NULL : graph->ops[producer];
        if (op && op->kind == GB_OP_DEQUANTIZE) {
            found->dequantize = op;
            gb_data_type type = gb_op_input(op, 0)->data_type;
            return type == GB_S8 || type == GB_U8;
        }
        if (!op || op->kind != GB_OP_TYPE_CAST || found->n_casts == 2)
            return false;
        found->casts[found->n_casts++] = op->index;
        value = op->inputs[0];
    }
    return false;
}

static bool read_source(const gb_op *op, gb_conv_int8_parts *parts)
{
    const float *scales = NULL;
    const int64_t *zps = NULL;
    bool is_signed = gb_op_input(op, 0)->data_type == GB_S8;
    size_t n_zps = gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    if (gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales) != 1 || n_zps > 1 ||
            !gb_op_attr_is(op, GB_ATTR_QTYPE, "per_tensor", true))
        return false;
    parts->scale = scales[0];
    parts->zero_point = n_zps ? zps[0] : 0;
    return parts->zero_point >= (is_signed ? -128 : 0) &&
           parts->zero_point <= (is_signed ? 127 : 255);
}

/* Symmetric codes with one scale, or one for each output channel. */
static bool read_weights(const gb_op *op, const gb_op *conv, gb_conv_int8_parts *parts)
{
    const gb_logical_tensor *filter = gb_op_input(op, 0);
    const int64_t *zps = NULL;
    size_t n_scales = gb_op_attr_f32s(op, GB_ATTR_SCALES, &parts->scales);
    size_t n_zps = gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    int axes[GB_MAX_NDIMS], out = conv->kind == GB_OP_CONV_TRANSPOSE ? 1 : 0;
    for (size_t i = 0; i < n_zps; i++)
        if (zps[i] != 0)
            return false;
    if (filter->data_type != GB_S8 || n_scales == 0 ||
            gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false))
        return false;
    parts->n_scales = (int64_t)n_scales;
    if (n_scales == 1)
        return true;
    gb_weights_axes(conv, filter->ndims, axes);
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 1), filter->ndims);
    return axis == axes[out] && filter->dims[axis] == parts->n_scales;
}

static gb_status conv_int8_match(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *conv, gb_op_list *ops, void *found)
{
    const char *reason;
    gb_conv_int8_parts *parts = found;
    if (!gb_convolution_types_float(conv, &reason) || gb_tensor_count(gb_op_output(conv, 0)) == 0 ||
            !find_codes(graph, context, conv->inputs[SRC], &parts->src) ||
            !find_codes(graph, context, conv->inputs[WEIGHTS], &parts->weights) ||
            !read_source(parts->src.dequantize, parts) ||
            !read_weights(parts->weights.dequantize, conv, parts))
        return GB_SUCCESS;
    parts->conv = conv;
    gb_region_find_post_ops(graph, context, conv, &parts->post_ops);
    GB_TRY(gb_op_list_add(ops, conv->index));
    GB_TRY(gb_op_list_add(ops, parts->src.dequantize->index));
    GB_TRY(gb_op_list_add(ops, parts->weights.dequantize->index));
    GB_TRY(gb_op_list_add_all(ops, parts->src.n_casts, parts->src.casts));
    GB_TRY(gb_op_list_add_all(ops, parts->weights.n_casts, parts->weights.casts));
    return gb_op_list_add_all(ops, parts->post_ops.n, parts->post_ops.ops);
}

const gb_region gb_region_conv_int8 = {.name = "conv int8",
        .root = GB_OP_CONVOLUTION,
        .parts_bytes = sizeof(gb_conv_int8_parts),
        .match = conv_int8_match};
const gb_region gb_region_conv_transpose_int8 = {.name = "conv int8",
        .root = GB_OP_CONV_TRANSPOSE,
        .parts_bytes = sizeof(gb_conv_int8_parts),
        .match = conv_int8_match};
