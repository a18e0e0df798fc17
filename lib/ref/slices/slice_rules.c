/* The table of rules, one per way in which ops read their inputs. */
#include "ref/slices/slice_rules.h"

typedef bool (*slice_rule)(const gb_op *op, int axis, int *axes);

static int64_t elements_before(const gb_logical_tensor *tensor, int axis)
{
    int64_t count = 1;
    for (int d = 0; d < axis; d++)
        count *= tensor->dims[d];
    return count;
}

/* The axis of `to` that starts where `axis` of `from` does: as many elements lie before both. */
static int same_place(const gb_logical_tensor *from, int axis, const gb_logical_tensor *to)
{
    int64_t before = elements_before(from, axis);
    for (int d = 0; d < to->ndims; d++)
        if (to->dims[d] > 1 && elements_before(to, d) == before)
            return d;
    return GB_REF_WHOLE;
}

/* The axis of an operand that broadcasts onto `dst`; GB_REF_WHOLE when all of dst reads the same.
 */
static int broadcast_axis(const gb_logical_tensor *dst, int axis, const gb_logical_tensor *operand)
{
    int d = axis - (dst->ndims - operand->ndims);
    return d >= 0 && operand->dims[d] == dst->dims[axis] ? d : GB_REF_WHOLE;
}

/* The axis of a vector that lies along `along` of the output. */
static int vector_axis(int along, int axis)
{
    return axis == along ? 0 : GB_REF_WHOLE;
}

/* Element by element, all operands broadcast. */
static bool elementwise(const gb_op *op, int axis, int *axes)
{
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++)
        axes[i] = broadcast_axis(dst, axis, gb_op_tensor(op, i));
    return true;
}

/* Does the attribute name this axis? Then the op looks across it. */
static bool runs_along(const gb_op *op, gb_op_attr name, int64_t otherwise, int axis)
{
    int ndims = gb_op_output(op, 0)->ndims;
    return gb_normalize_axis(gb_op_attr_s64(op, name, otherwise), ndims) == axis;
}

/* Lines along an axis, or pieces of it: SoftMax and its kin, Concat, GenIndex. */
static bool lines(const gb_op *op, int axis, int *axes)
{
    bool logarithm = op->kind == GB_OP_LOG_SOFTMAX || op->kind == GB_OP_LOG_SOFTMAX_BACKWARD;
    bool softmax = gb_op_schema_get(op->kind)->op_class == GB_CLASS_SOFTMAX;
    if (runs_along(op, GB_ATTR_AXIS, logarithm ? -1 : softmax ? 1 : 0, axis))
        return false;
    return elementwise(op, axis, axes);
}

/* Data, and vectors along its channels. */
static bool channels(const gb_op *op, int axis, int *axes)
{
    int channel = gb_channel_axis(op, gb_op_output(op, 0)->ndims);
    axes[0] = axes[op->n_inputs] = axis;
    for (uint32_t i = 1; i < op->n_inputs; i++)
        axes[i] = vector_axis(channel, axis);
    return true;
}

static bool prelu(const gb_op *op, int axis, int *axes)
{
    bool per_channel = gb_op_attr_bool(op, GB_ATTR_PER_CHANNEL_BROADCAST, true);
    const gb_logical_tensor *slope = gb_op_input(op, 1);
    bool vector = slope->ndims == 1 && per_channel && gb_op_output(op, 0)->ndims > 1;
    return vector ? channels(op, axis, axes) : elementwise(op, axis, axes);
}

/* Parameters of a quantisation: one for all, one per channel, or one per group of elements, along
 * every axis. */
static bool quantization(const gb_op *op, int axis, int *axes)
{
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    bool grouped = gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false);
    bool channel = gb_op_attr_is(op, GB_ATTR_QTYPE, "per_channel", false) &&
                   runs_along(op, GB_ATTR_AXIS, 1, axis);
    if (channel && op->n_inputs == 1)
        return false; /* the parameters are attributes */
    axes[0] = axes[op->n_inputs] = axis;
    for (uint32_t i = 1; i < op->n_inputs; i++) {
        const gb_logical_tensor *parameters = gb_op_input(op, i);
        bool single = gb_tensor_count(parameters) == 1;
        if (grouped && parameters->ndims != dst->ndims)
            return false;
        if (channel && !single && parameters->dims[0] != dst->dims[axis])
            return false;
        axes[i] = grouped ? axis : channel && !single ? 0 : GB_REF_WHOLE;
    }
    return true;
}

/* Where a batch axis of the product lies in an operand. */
static int batch_axis(
        const gb_logical_tensor *dst, int n_batch, int axis, const gb_logical_tensor *operand)
{
    int d = axis - (n_batch - (operand->ndims - 2));
    bool has = operand->ndims > 2 && d >= 0 && operand->dims[d] == dst->dims[axis];
    return has ? d : GB_REF_WHOLE;
}

/* Batches, rows of src and columns of weights, each with its part of the bias. */
static bool matmul(const gb_op *op, int axis, int *axes)
{
    const gb_logical_tensor *a = gb_op_input(op, 0), *b = gb_op_input(op, 1);
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    bool has_row = a->ndims > 1, has_column = b->ndims > 1;
    int n_batch = dst->ndims - has_row - has_column;
    bool transpose_a = gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_A, false);
    bool transpose_b = gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_B, false);
    axes[0] = axes[1] = GB_REF_WHOLE;
    if (axis < n_batch) {
        axes[0] = batch_axis(dst, n_batch, axis, a);
        axes[1] = batch_axis(dst, n_batch, axis, b);
    } else if (axis == n_batch && has_row) {
        axes[0] = a->ndims - (transpose_a ? 1 : 2);
    } else {
        axes[1] = b->ndims - (transpose_b ? 2 : 1);
    }
    if (op->n_inputs > 2)
        axes[2] = broadcast_axis(dst, axis, gb_op_input(op, 2));
    axes[op->n_inputs] = axis;
    return true;
}

static bool transpose(const gb_op *op, int axis, int *axes)
{
    const int64_t *order;
    int ndims = gb_op_output(op, 0)->ndims;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_ORDER, &order);
    if (count != 0 && count != (size_t)ndims)
        return false;
    axes[0] = count == 0 ? ndims - 1 - axis : gb_normalize_axis(order[axis], ndims);
    axes[1] = axis;
    return axes[0] >= 0;
}

/* As many elements before, and as many parts: then parts are the same elements. */
static bool reshape(const gb_op *op, int axis, int *axes)
{
    axes[0] = same_place(gb_op_output(op, 0), axis, gb_op_input(op, 0));
    axes[1] = axis;
    return axes[0] >= 0;
}

static bool reduction(const gb_op *op, int axis, int *axes)
{
    const int64_t *listed;
    int ndims = gb_op_input(op, 0)->ndims, kept = -1;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_AXES, &listed);
    bool keep_dims = gb_op_attr_bool(op, GB_ATTR_KEEP_DIMS, false);
    if (op->n_inputs > 1)
        return false; /* the axes are data */
    axes[1] = axis;
    for (int d = 0; d < ndims; d++) {
        bool reduced = false;
        for (size_t i = 0; i < count; i++)
            reduced |= gb_normalize_axis(listed[i], ndims) == d;
        kept += keep_dims || !reduced;
        axes[0] = d;
        if (kept == axis)
            return !reduced;
    }
    return false;
}

/* Statistics have the axes before the one of the attribute, perhaps with others of size 1. */
static bool layer_norm(const gb_op *op, int axis, int *axes)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    int begin = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_BEGIN_NORM_AXIS, -1), src->ndims);
    if (axis >= begin)
        return false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        axes[i] = i == 0 ? axis : GB_REF_WHOLE;
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        const gb_logical_tensor *output = gb_op_output(op, i);
        int place = same_place(src, axis, output);
        if (place < 0 || output->dims[place] != src->dims[axis])
            return false;
        axes[op->n_inputs + i] = place;
    }
    return true;
}

/* Images of a batch: input 0 and all outputs, and inputs of the rank of an image from `first` on.
 */
static bool batch_from(const gb_op *op, int axis, int *axes, uint32_t first)
{
    int ndims = gb_op_output(op, 0)->ndims;
    for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
        bool image =
                i == 0 || i >= op->n_inputs || (i >= first && gb_op_input(op, i)->ndims == ndims);
        axes[i] = image ? 0 : GB_REF_WHOLE;
    }
    return axis == 0;
}

/* The other inputs are weights, bias, gamma and beta. */
static bool batch(const gb_op *op, int axis, int *axes)
{
    return batch_from(op, axis, axes, UINT32_MAX);
}

/* The other inputs are images or shapes. */
static bool batch_of_windows(const gb_op *op, int axis, int *axes)
{
    return batch_from(op, axis, axes, 1);
}

/* Kinds that are not here have none: sums over the batch, numbers that depend on positions. */
static const struct {
    gb_op_kind kind;
    slice_rule rule;
} kind_rules[] = {
        {GB_OP_REORDER, elementwise},
        {GB_OP_TYPE_CAST, elementwise},
        {GB_OP_BIAS_ADD, channels},
        {GB_OP_BATCH_NORM_INFERENCE, channels},
        {GB_OP_PRELU, prelu},
        {GB_OP_CONCAT, lines},
        {GB_OP_GEN_INDEX, lines},
        {GB_OP_QUANTIZE, quantization},
        {GB_OP_DEQUANTIZE, quantization},
        {GB_OP_DYNAMIC_QUANTIZE, quantization},
        {GB_OP_DYNAMIC_DEQUANTIZE, quantization},
        {GB_OP_STATIC_TRANSPOSE, transpose},
        {GB_OP_STATIC_RESHAPE, reshape},
        {GB_OP_LAYER_NORM, layer_norm},
        {GB_OP_RMS_NORM, layer_norm},
        {GB_OP_GROUP_NORM, batch},
        {GB_OP_CONVOLUTION, batch},
        {GB_OP_CONVOLUTION_BACKWARD_DATA, batch},
        {GB_OP_CONV_TRANSPOSE, batch},
        {GB_OP_CONV_TRANSPOSE_BACKWARD_DATA, batch},
        {GB_OP_AVG_POOL, batch_of_windows},
        {GB_OP_AVG_POOL_BACKWARD, batch_of_windows},
        {GB_OP_MAX_POOL, batch_of_windows},
        {GB_OP_MAX_POOL_BACKWARD, batch_of_windows},
        {GB_OP_INTERPOLATE, batch_of_windows},
        {GB_OP_INTERPOLATE_BACKWARD, batch_of_windows},
};

static const slice_rule class_rules[GB_CLASS_PRELU + 1] = {
        [GB_CLASS_UNARY] = elementwise,
        [GB_CLASS_UNARY_BACKWARD] = elementwise,
        [GB_CLASS_BINARY] = elementwise,
        [GB_CLASS_COMPARE] = elementwise,
        [GB_CLASS_SELECT] = elementwise,
        [GB_CLASS_MATMUL] = matmul,
        [GB_CLASS_SOFTMAX] = lines,
        [GB_CLASS_REDUCTION] = reduction,
};

static slice_rule find_rule(gb_op_kind kind)
{
    for (size_t i = 0; i < sizeof kind_rules / sizeof kind_rules[0]; i++)
        if (kind_rules[i].kind == kind)
            return kind_rules[i].rule;
    return class_rules[gb_op_schema_get(kind)->op_class];
}

bool gb_ref_slice_axes(const gb_op *op, int axis, int *axes)
{
    slice_rule rule = find_rule(op->kind);
    if (!rule || !rule(op, axis, axes))
        return false;
    for (uint32_t i = 0; i < op->n_outputs; i++)
        if (axes[op->n_inputs + i] < 0)
            return false;
    return true;
}
