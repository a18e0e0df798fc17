/* Softmax, reductions, concatenation and norms. */
#include "map.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The argument that names another type of the result must not differ from the input's. */
static bool same_type(br_builder *b, const br_node *node, uint32_t in)
{
    const br_value *out = br_output(b, node, 0);
    if (!out || out->dtype->type != br_wire_of(b, in)->type)
        return br_refuse(b, "converts its input");
    return true;
}

bool br_map_softmax(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t in;
    int64_t dim;
    const br_value *result = br_output(b, node, 0);
    if (!br_arg_wire(b, node, "self", &in) || !br_arg_int(b, node, "dim", -1, &dim))
        return false;
    if (!result || !result->dtype->is_float)
        return br_refuse(b, "the result is of integers");
    if (br_wire_of(b, in)->ndims == 0)
        return br_refuse(b, "a scalar");
    if (br_wire_of(b, in)->type != result->dtype->type)
        in = br_cast(b, in, result->dtype->type);
    br_unary(b, row->kind, in, br_output_wire(b, node, 0));
    br_op *op = &b->ops[b->n_ops - 1];
    br_set_s64(b, op, GB_ATTR_AXIS, 1, &dim);
    if (row->value != 0)
        br_set_text(op, GB_ATTR_MODE, "inf_as_zero");
    return true;
}

bool br_map_softmax_backward(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[2], out;
    int64_t dim;
    if (!br_arg_wire(b, node, "grad_output", &inputs[0]) ||
            !br_arg_wire(b, node, "output", &inputs[1]) || !br_arg_int(b, node, "dim", -1, &dim))
        return false;
    if (!same_type(b, node, inputs[1]) || br_wire_of(b, inputs[0])->ndims == 0)
        return br_refuse(b, "a scalar");
    out = br_output_wire(b, node, 0);
    br_op *op = br_emit(b, row->kind, 2, inputs, 1, &out);
    br_set_s64(b, op, GB_ATTR_AXIS, 1, &dim);
    return true;
}

bool br_map_reduce(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t in;
    bool keep;
    int count;
    int64_t axes[GB_MAX_NDIMS];
    if (!br_arg_wire(b, node, "self", &in) || !br_arg_bool(b, node, "keepdim", false, &keep) ||
            !br_arg_ints(b, node, "dim", &count, axes) || !same_type(b, node, in))
        return false;
    int ndims = br_wire_of(b, in)->ndims;
    if (ndims == 0)
        return br_refuse(b, "a scalar");
    if (count == 0)
        for (count = 0; count < ndims; count++)
            axes[count] = count;
    br_unary(b, row->kind, in, br_output_wire(b, node, 0));
    br_op *op = &b->ops[b->n_ops - 1];
    br_set_s64(b, op, GB_ATTR_AXES, (size_t)count, axes);
    br_set_bool(b, op, GB_ATTR_KEEP_DIMS, keep);
    return true;
}

bool br_map_cat(br_builder *b, const br_node *node, const br_row *row)
{
    enum { MOST = 64 };
    uint32_t inputs[MOST], out;
    int64_t dim;
    const br_arg *list = br_find_arg(node, "tensors");
    const br_value *result = br_output(b, node, 0);
    (void)row;
    if (!list || list->kind != BR_ARG_TENSORS || list->count == 0 || list->count > MOST || !result)
        return br_refuse(b, "not 1 to 64 tensors");
    if (!br_arg_int(b, node, "dim", 0, &dim))
        return false;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->values[i] == BR_NONE || !br_read_value(b, list->values[i], &inputs[i]))
            return br_refuse(b, "a tensor is missing");
        const br_wire *wire = br_wire_of(b, inputs[i]);
        if (wire->type != result->dtype->type &&
                (!b->graph->values[list->values[i]].dtype->is_float || !result->dtype->is_float))
            return br_refuse(b, "an operand of integers");
        inputs[i] = br_cast(b, inputs[i], result->dtype->type);
    }
    out = br_output_wire(b, node, 0);
    br_op *op = br_emit(b, GB_OP_CONCAT, list->count, inputs, 1, &out);
    br_set_s64(b, op, GB_ATTR_AXIS, 1, &dim);
    return true;
}

/* ---- norms ---- */

/* Weight and bias of one entry per channel or column, either of which may be missing: both or
 * neither is what ops take. */
static bool affine(br_builder *b, const br_node *node, const char *weight, const char *bias,
        int64_t count, uint32_t pair[2], bool *is_affine)
{
    if (!br_arg_optional_wire(b, node, weight, &pair[0]) ||
            !br_arg_optional_wire(b, node, bias, &pair[1]))
        return false;
    *is_affine = pair[0] != BR_NONE || pair[1] != BR_NONE;
    for (int i = 0; *is_affine && i < 2; i++) {
        if (pair[i] == BR_NONE) {
            float *data = br_alloc(b->arena, (size_t)count, sizeof *data);
            pair[i] = br_wire_new(b, GB_F32, 1, &count);
            if (b->arena->failed)
                return false;
            for (int64_t c = 0; i == 0 && c < count; c++)
                data[c] = 1;
            b->wires[pair[i]].data = data;
            b->wires[pair[i]].bytes = (size_t)count * sizeof *data;
        }
        const br_wire *wire = br_wire_of(b, pair[i]);
        if (wire->ndims != 1 || wire->dims[0] != count)
            return br_refuse(b, "weight or bias are not of one axis");
    }
    if (*is_affine && br_wire_of(b, pair[0])->type != br_wire_of(b, pair[1])->type) {
        pair[0] = br_cast(b, pair[0], GB_F32);
        pair[1] = br_cast(b, pair[1], GB_F32);
    }
    return true;
}

/* 1 / sqrt(variance + epsilon), into `out`. */
static void inverse_deviation(br_builder *b, uint32_t variance, double epsilon, uint32_t out)
{
    uint32_t sum = br_binary(
            b, GB_OP_ADD, variance, br_scalar(b, epsilon), br_wire_like(b, variance, GB_F32));
    br_unary(b, GB_OP_POW, sum, out);
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_BETA, -0.5);
}

/* The variance again: what is lost where it is small beside epsilon does not count in the sum that
 * gradients make of the two. */
static uint32_t variance_of(br_builder *b, uint32_t inverse, double epsilon)
{
    uint32_t sum = br_unary(b, GB_OP_POW, inverse, br_wire_like(b, inverse, GB_F32));
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_BETA, -2);
    if (epsilon == 0)
        return sum;
    return br_binary(b, GB_OP_SUBTRACT, sum, br_scalar(b, epsilon), br_wire_like(b, sum, GB_F32));
}

static bool is_f32_output(const br_builder *b, const br_node *node, uint32_t index)
{
    const br_value *value = br_output(b, node, index);
    return value && value->dtype->type == GB_F32;
}

bool br_map_batch_norm(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[5], pair[2], out;
    double epsilon;
    bool training, is_affine;
    (void)row;
    if (!br_arg_bool(b, node, "training", false, &training) || training)
        return br_refuse(b, "statistics are written");
    if (br_output_is_read(b, node, 1) || br_output_is_read(b, node, 2))
        return br_refuse(b, "statistics are read");
    if (!br_arg_wire(b, node, "input", &inputs[0]) ||
            !br_arg_wire(b, node, "running_mean", &inputs[3]) ||
            !br_arg_wire(b, node, "running_var", &inputs[4]) ||
            !br_arg_float(b, node, "eps", 1e-5, &epsilon))
        return false;
    if (br_wire_of(b, inputs[0])->ndims < 2 || br_wire_of(b, inputs[3])->ndims != 1)
        return br_refuse(b, "no channels");
    if (!affine(b, node, "weight", "bias", br_wire_of(b, inputs[0])->dims[1], pair, &is_affine))
        return false;
    if (!is_affine)
        return br_refuse(b, "neither weight nor bias");
    inputs[1] = pair[0];
    inputs[2] = pair[1];
    if (br_wire_of(b, inputs[1])->type != br_wire_of(b, inputs[3])->type)
        for (int i = 1; i < 5; i++)
            inputs[i] = br_cast(b, inputs[i], GB_F32);
    out = br_output_wire(b, node, 0);
    br_op *op = br_emit(b, GB_OP_BATCH_NORM_INFERENCE, 5, inputs, 1, &out);
    br_set_f32(op, GB_ATTR_EPSILON, epsilon);
    br_set_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    return true;
}

/* m new + (1 - m) old, with the variance of a sample. */
static void running(
        br_builder *b, uint32_t old, uint32_t batch, double momentum, double factor, uint32_t out)
{
    uint32_t kept = br_binary(
            b, GB_OP_MULTIPLY, old, br_scalar(b, 1 - momentum), br_wire_like(b, old, GB_F32));
    uint32_t added = br_binary(b, GB_OP_MULTIPLY, batch, br_scalar(b, momentum * factor),
            br_wire_like(b, old, GB_F32));
    br_binary(b, GB_OP_ADD, kept, added, out);
}

/* Outputs: result, mean, 1 / deviation, running mean, running variance. */
bool br_map_batch_norm_training(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[5], pair[2], outputs[5];
    double epsilon, momentum;
    bool training, is_affine;
    (void)row;
    if (!br_arg_bool(b, node, "training", false, &training) || !training)
        return br_refuse(b, "not in training");
    if (!br_arg_wire(b, node, "input", &inputs[0]) ||
            !br_arg_wire(b, node, "running_mean", &inputs[1]) ||
            !br_arg_wire(b, node, "running_var", &inputs[2]) ||
            !br_arg_float(b, node, "eps", 1e-5, &epsilon) ||
            !br_arg_float(b, node, "momentum", 0.1, &momentum))
        return false;
    br_wire data = *br_wire_of(b, inputs[0]), mean = *br_wire_of(b, inputs[1]);
    if (data.ndims < 2 || mean.ndims != 1 || mean.type != GB_F32)
        return br_refuse(b, "no channels, or statistics that are not f32");
    int64_t channels = data.dims[1], count = 1;
    for (int d = 0; d < data.ndims; d++)
        count *= d == 1 ? 1 : data.dims[d];
    if (!affine(b, node, "weight", "bias", channels, pair, &is_affine))
        return false;
    if (count < 2 || (is_affine && br_wire_of(b, pair[0])->type != GB_F32))
        return br_refuse(b, "a single sample, or weights that are not f32");
    inputs[3] = pair[0];
    inputs[4] = pair[1];
    for (uint32_t i = 1; i < 5; i++)
        if (i < node->n_outputs && br_output_is_read(b, node, i) && !is_f32_output(b, node, i))
            return br_refuse(b, "statistics that are not f32");
    outputs[0] = br_output_wire(b, node, 0);
    outputs[1] = br_output_is_read(b, node, 3) ? br_output_wire(b, node, 3)
                                               : br_wire_new(b, GB_F32, 1, &channels);
    outputs[2] = br_wire_new(b, GB_F32, 1, &channels);
    outputs[3] = br_output_is_read(b, node, 1) ? br_output_wire(b, node, 1)
                                               : br_wire_new(b, GB_F32, 1, &channels);
    outputs[4] = br_wire_new(b, GB_F32, 1, &channels);
    br_op *op =
            br_emit(b, GB_OP_BATCH_NORM_FORWARD_TRAINING, is_affine ? 5 : 3, inputs, 5, outputs);
    br_set_f32(op, GB_ATTR_EPSILON, epsilon);
    br_set_f32(op, GB_ATTR_MOMENTUM, 1 - momentum);
    br_set_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    if (br_output_is_read(b, node, 2))
        inverse_deviation(b, outputs[4], epsilon, br_output_wire(b, node, 2));
    if (br_output_is_read(b, node, 4))
        running(b, inputs[2], outputs[4], momentum, (double)count / (double)(count - 1),
                br_output_wire(b, node, 4));
    return true;
}

static bool output_or_inner(br_builder *b, const br_node *node, uint32_t index, gb_data_type type,
        int64_t count, uint32_t *wire)
{
    if (!br_output_is_read(b, node, index)) {
        *wire = br_wire_new(b, type, 1, &count);
        return true;
    }
    const br_value *value = br_output(b, node, index);
    if (value->dtype->type != type)
        return br_refuse(b, "a gradient of another type than its weight");
    *wire = br_output_wire(b, node, index);
    return true;
}

/* Where f32 results go before they have the type of the output. */
static uint32_t f32_before(br_builder *b, uint32_t out)
{
    return br_wire_of(b, out)->type == GB_F32 ? out : br_wire_like(b, out, GB_F32);
}

static void convert_into(br_builder *b, uint32_t made, uint32_t out)
{
    if (made != out)
        br_unary(b, GB_OP_TYPE_CAST, made, out);
}

/* The sum over all axes but that of the channels. */
static uint32_t sum_for_channels(br_builder *b, uint32_t in, uint32_t out)
{
    int64_t axes[GB_MAX_NDIMS], n = 0;
    int ndims = br_wire_of(b, in)->ndims;
    for (int d = 0; d < ndims; d++)
        if (d != 1)
            axes[n++] = d;
    br_unary(b, GB_OP_REDUCE_SUM, in, out);
    br_op *op = &b->ops[b->n_ops - 1];
    br_set_s64(b, op, GB_ATTR_AXES, (size_t)n, axes);
    br_set_bool(b, op, GB_ATTR_KEEP_DIMS, false);
    return out;
}

/* An entry for each channel as an operand of images of `ndims`. */
static uint32_t along_channels(br_builder *b, uint32_t wire, int ndims)
{
    int64_t dims[GB_MAX_NDIMS];
    for (int d = 0; d < ndims - 1; d++)
        dims[d] = d == 0 ? br_wire_of(b, wire)->dims[0] : 1;
    return ndims == 2 ? wire : br_reshape(b, wire, ndims - 1, dims, BR_NONE);
}

/* Statistics that do not depend on the input: the gradient is a factor for each channel. */
static bool gradient_of_fixed_norm(br_builder *b, const br_node *node, double epsilon)
{
    uint32_t x, g, mean, variance, weight;
    if (!br_arg_wire(b, node, "input", &x) || !br_arg_wire(b, node, "grad_out", &g) ||
            !br_arg_wire(b, node, "running_mean", &mean) ||
            !br_arg_wire(b, node, "running_var", &variance) ||
            !br_arg_optional_wire(b, node, "weight", &weight))
        return false;
    int ndims = br_wire_of(b, x)->ndims;
    if (ndims < 2 || br_wire_of(b, mean)->ndims != 1 || br_wire_of(b, variance)->ndims != 1)
        return br_refuse(b, "no channels");
    g = br_cast(b, g, GB_F32);
    variance = br_cast(b, variance, GB_F32);
    uint32_t inverse = br_wire_like(b, variance, GB_F32);
    inverse_deviation(b, variance, epsilon, inverse);
    if (br_output_is_read(b, node, 0)) {
        uint32_t out = br_output_wire(b, node, 0), factor = inverse;
        if (weight != BR_NONE)
            factor = br_binary(b, GB_OP_MULTIPLY, br_cast(b, weight, GB_F32), inverse,
                    br_wire_like(b, inverse, GB_F32));
        factor = along_channels(b, factor, ndims);
        convert_into(b, br_binary(b, GB_OP_MULTIPLY, g, factor, f32_before(b, out)), out);
    }
    if (br_output_is_read(b, node, 1)) {
        uint32_t out = br_output_wire(b, node, 1);
        mean = along_channels(b, br_cast(b, mean, GB_F32), ndims);
        x = br_cast(b, x, GB_F32);
        uint32_t centred = br_binary(b, GB_OP_SUBTRACT, x, mean, br_wire_like(b, x, GB_F32));
        uint32_t both = br_binary(b, GB_OP_MULTIPLY, g, centred, br_wire_like(b, x, GB_F32));
        uint32_t sum = sum_for_channels(b, both, br_wire_like(b, inverse, GB_F32));
        convert_into(b, br_binary(b, GB_OP_MULTIPLY, sum, inverse, f32_before(b, out)), out);
    }
    if (br_output_is_read(b, node, 2)) {
        uint32_t out = br_output_wire(b, node, 2);
        convert_into(b, sum_for_channels(b, g, f32_before(b, out)), out);
    }
    return !b->reason;
}

bool br_map_batch_norm_backward(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[5], outputs[3], inverse;
    double epsilon;
    bool train;
    (void)row;
    if (!br_arg_bool(b, node, "train", false, &train) ||
            !br_arg_float(b, node, "eps", 1e-5, &epsilon))
        return false;
    if (!train)
        return gradient_of_fixed_norm(b, node, epsilon);
    if (!br_arg_wire(b, node, "input", &inputs[0]) ||
            !br_arg_wire(b, node, "grad_out", &inputs[1]) ||
            !br_arg_wire(b, node, "save_mean", &inputs[2]) ||
            !br_arg_wire(b, node, "save_invstd", &inverse) ||
            !br_arg_wire(b, node, "weight", &inputs[4]))
        return false;
    if (br_wire_of(b, inverse)->type != GB_F32 || br_wire_of(b, inputs[2])->type != GB_F32 ||
            br_wire_of(b, inputs[4])->type != GB_F32 || br_wire_of(b, inputs[0])->ndims < 2 ||
            br_wire_of(b, inverse)->ndims != 1)
        return br_refuse(b, "statistics or weights that are not f32");
    if (!br_output(b, node, 0))
        return br_refuse(b, "an output is missing");
    inputs[3] = variance_of(b, inverse, epsilon);
    int64_t channels = br_wire_of(b, inputs[0])->dims[1];
    outputs[0] = br_output_wire(b, node, 0);
    if (!output_or_inner(b, node, 1, GB_F32, channels, &outputs[1]) ||
            !output_or_inner(b, node, 2, GB_F32, channels, &outputs[2]))
        return false;
    br_op *op = br_emit(b, GB_OP_BATCH_NORM_BACKWARD, 5, inputs, 3, outputs);
    br_set_f32(op, GB_ATTR_EPSILON, epsilon);
    br_set_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    return true;
}

/* The columns of a norm over the last axis; 0: over others. */
static int64_t last_axis(br_builder *b, const br_node *node, uint32_t in)
{
    int count;
    int64_t shape[GB_MAX_NDIMS];
    if (!br_arg_ints(b, node, "normalized_shape", &count, shape))
        return 0;
    const br_wire *wire = br_wire_of(b, in);
    if (count != 1 || wire->ndims < 1 || wire->dims[wire->ndims - 1] != shape[0]) {
        br_refuse(b, "normalises more than the last axis");
        return 0;
    }
    return shape[0];
}

/* Statistics as the framework has them: with an axis of 1 at their end, or as ops make them. */
static uint32_t stat_output(br_builder *b, const br_node *node, uint32_t index, uint32_t plain,
        bool is_inverse, double eps)
{
    if (!br_output_is_read(b, node, index))
        return plain;
    if (!is_f32_output(b, node, index)) {
        br_refuse(b, "statistics that are not f32");
        return plain;
    }
    br_wire shape = *br_wire_of(b, plain);
    const br_value *value = br_output(b, node, index);
    bool is_same = value->ndims == shape.ndims;
    uint32_t out = br_output_wire(b, node, index);
    uint32_t from = plain;
    if (is_inverse) {
        from = is_same ? out : br_wire_like(b, plain, GB_F32);
        inverse_deviation(b, plain, eps, from);
    }
    if (from == out)
        return out;
    br_wire wanted = *br_wire_of(b, out);
    br_reshape(b, from, wanted.ndims, wanted.dims, out);
    return out;
}

bool br_map_layer_norm(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[3], outputs[3];
    double epsilon;
    bool is_affine;
    (void)row;
    if (!br_arg_wire(b, node, "input", &inputs[0]) || !br_arg_float(b, node, "eps", 1e-5, &epsilon))
        return false;
    int64_t columns = last_axis(b, node, inputs[0]);
    if (!columns || !affine(b, node, "weight", "bias", columns, &inputs[1], &is_affine))
        return false;
    bool keeps = br_output_is_read(b, node, 1) || br_output_is_read(b, node, 2);
    br_wire data = *br_wire_of(b, inputs[0]);
    outputs[0] = br_output_wire(b, node, 0);
    outputs[1] = br_wire_new(b, GB_F32, data.ndims - 1, data.dims);
    outputs[2] = br_wire_new(b, GB_F32, data.ndims - 1, data.dims);
    br_op *op = br_emit(b, GB_OP_LAYER_NORM, is_affine ? 3 : 1, inputs, keeps ? 3 : 1, outputs);
    br_set_f32(op, GB_ATTR_EPSILON, epsilon);
    br_set_bool(b, op, GB_ATTR_KEEP_STATS, keeps);
    br_set_bool(b, op, GB_ATTR_USE_AFFINE, is_affine);
    if (keeps) {
        stat_output(b, node, 1, outputs[1], false, epsilon);
        stat_output(b, node, 2, outputs[2], true, epsilon);
    }
    return !b->reason;
}

/* A statistic without the axis of 1 at its end. */
static uint32_t plain_stat(br_builder *b, uint32_t wire, int ndims)
{
    br_wire shape = *br_wire_of(b, wire);
    return shape.ndims == ndims ? wire : br_reshape(b, wire, ndims, shape.dims, BR_NONE);
}

bool br_map_layer_norm_backward(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[6], outputs[3], mean, inverse;
    /* The framework gives 1 / deviation, which has its epsilon in it already: another one here would
     * be lost beside a larger one, and hide a smaller one. */
    const double epsilon = 0;
    (void)row;
    if (!br_arg_wire(b, node, "input", &inputs[0]) ||
            !br_arg_wire(b, node, "grad_out", &inputs[1]) || !br_arg_wire(b, node, "mean", &mean) ||
            !br_arg_wire(b, node, "rstd", &inverse) ||
            !br_arg_wire(b, node, "weight", &inputs[4]) ||
            !br_arg_wire(b, node, "bias", &inputs[5]))
        return false;
    int64_t columns = last_axis(b, node, inputs[0]);
    if (!columns)
        return false;
    br_wire data = *br_wire_of(b, inputs[0]), weight = *br_wire_of(b, inputs[4]);
    if (br_wire_of(b, mean)->type != GB_F32 || br_wire_of(b, inverse)->type != GB_F32 ||
            weight.ndims != 1 || weight.type != br_wire_of(b, inputs[5])->type)
        return br_refuse(b, "statistics or weights of other types");
    if (!br_output(b, node, 0))
        return br_refuse(b, "an output is missing");
    inputs[2] = plain_stat(b, mean, data.ndims - 1);
    inputs[3] = variance_of(b, plain_stat(b, inverse, data.ndims - 1), epsilon);
    outputs[0] = br_output_wire(b, node, 0);
    if (!output_or_inner(b, node, 1, weight.type, columns, &outputs[1]) ||
            !output_or_inner(b, node, 2, weight.type, columns, &outputs[2]))
        return false;
    br_op *op = br_emit(b, GB_OP_LAYER_NORM_BACKWARD, 6, inputs, 3, outputs);
    br_set_f32(op, GB_ATTR_EPSILON, epsilon);
    br_set_bool(b, op, GB_ATTR_USE_AFFINE, true);
    return true;
}

bool br_map_group_norm(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[3], outputs[3];
    double epsilon;
    int64_t groups;
    bool is_affine;
    if (!br_arg_wire(b, node, "input", &inputs[0]) ||
            !br_arg_float(b, node, "eps", 1e-5, &epsilon) ||
            !br_arg_int(b, node, row->value != 0 ? "group" : "num_groups", 0, &groups))
        return false;
    br_wire data = *br_wire_of(b, inputs[0]);
    if (groups < 1 || data.ndims < 2 || data.dims[1] % groups != 0)
        return br_refuse(b, "channels that do not divide into groups");
    if (!affine(b, node, "weight", "bias", data.dims[1], &inputs[1], &is_affine))
        return false;
    bool keeps = br_output_is_read(b, node, 1) || br_output_is_read(b, node, 2);
    const int64_t dims[] = {data.dims[0], groups};
    outputs[0] = br_output_wire(b, node, 0);
    outputs[1] = br_wire_new(b, GB_F32, 2, dims);
    outputs[2] = br_wire_new(b, GB_F32, 2, dims);
    br_op *op = br_emit(b, GB_OP_GROUP_NORM, is_affine ? 3 : 1, inputs, keeps ? 3 : 1, outputs);
    br_set_f32(op, GB_ATTR_EPSILON, epsilon);
    br_set_s64(b, op, GB_ATTR_GROUPS, 1, &groups);
    br_set_bool(b, op, GB_ATTR_KEEP_STATS, keeps);
    br_set_bool(b, op, GB_ATTR_USE_AFFINE, is_affine);
    br_set_text(op, GB_ATTR_DATA_FORMAT, "NCX");
    if (keeps) {
        stat_output(b, node, 1, outputs[1], false, epsilon);
        stat_output(b, node, 2, outputs[2], true, epsilon);
    }
    return !b->reason;
}

/* What the gradient of a group norm is made of: tensors as [batch, group, channel of it, place]. */
typedef struct group_gradient {
    uint32_t x, g, mean, inverse, weight; /* f32; weight: BR_NONE where there is none */
    uint32_t sum_g, sum_gx;               /* over the places */
    int64_t dims[4];
} group_gradient;

static uint32_t as_groups(
        br_builder *b, uint32_t wire, int64_t n, int64_t groups, int64_t channels, int64_t places)
{
    const int64_t dims[] = {n, groups, channels, places};
    return br_cast(b, br_reshape(b, wire, 4, dims, BR_NONE), GB_F32);
}

static uint32_t sum_over(br_builder *b, uint32_t in, size_t count, const int64_t *axes, bool keep)
{
    br_wire shape = *br_wire_of(b, in);
    int64_t dims[GB_MAX_NDIMS];
    int n = 0;
    for (int d = 0; d < shape.ndims; d++) {
        bool is_summed = false;
        for (size_t i = 0; i < count; i++)
            is_summed = is_summed || axes[i] == d;
        if (!is_summed || keep)
            dims[n++] = is_summed ? 1 : shape.dims[d];
    }
    uint32_t out = br_unary(b, GB_OP_REDUCE_SUM, in, br_wire_new(b, GB_F32, n, dims));
    br_op *op = &b->ops[b->n_ops - 1];
    br_set_s64(b, op, GB_ATTR_AXES, count, axes);
    br_set_bool(b, op, GB_ATTR_KEEP_DIMS, keep);
    return out;
}

/* a * c, of the dims of `like`. */
static uint32_t times(br_builder *b, uint32_t a, uint32_t c, uint32_t like)
{
    return br_binary(b, GB_OP_MULTIPLY, a, c, br_wire_like(b, like, GB_F32));
}

static void write_output(br_builder *b, const br_node *node, uint32_t index, uint32_t made)
{
    const br_value *value = br_output(b, node, index);
    made = br_cast(b, made, value->dtype->type);
    uint32_t out = br_output_wire(b, node, index);
    br_wire shape = *br_wire_of(b, out);
    br_reshape(b, made, shape.ndims, shape.dims, out);
}

/* With s = sums over the group of weight g and of weight g x, M elements in a group, r = 1 / deviation:
 * dx = weight r g + c x - (c mean + s_g r / M), c = (s_g mean - s_gx) r^3 / M */
static uint32_t input_gradient(br_builder *b, const group_gradient *p)
{
    const int64_t channels = 2;
    uint32_t of_g = p->sum_g, of_gx = p->sum_gx, factor = p->inverse;
    if (p->weight != BR_NONE) {
        of_g = times(b, of_g, p->weight, p->sum_g);
        of_gx = times(b, of_gx, p->weight, p->sum_g);
        factor = times(b, p->weight, p->inverse, p->sum_g);
    }
    of_g = sum_over(b, of_g, 1, &channels, true);
    of_gx = sum_over(b, of_gx, 1, &channels, true);
    uint32_t share = br_scalar(b, 1 / ((double)p->dims[2] * (double)p->dims[3]));
    share = times(b, p->inverse, share, p->inverse);
    uint32_t cube = times(b, times(b, p->inverse, p->inverse, p->inverse), share, p->inverse);
    uint32_t c = br_binary(
            b, GB_OP_SUBTRACT, times(b, of_g, p->mean, of_g), of_gx, br_wire_like(b, of_g, GB_F32));
    c = times(b, c, cube, c);
    uint32_t constant = br_binary(b, GB_OP_ADD, times(b, c, p->mean, c),
            times(b, of_g, share, of_g), br_wire_like(b, c, GB_F32));
    uint32_t rest = br_binary(
            b, GB_OP_SUBTRACT, times(b, p->x, c, p->x), constant, br_wire_like(b, p->x, GB_F32));
    return br_binary(
            b, GB_OP_ADD, times(b, p->g, factor, p->g), rest, br_wire_like(b, p->x, GB_F32));
}

bool br_map_group_norm_backward(br_builder *b, const br_node *node, const br_row *row)
{
    group_gradient p;
    uint32_t x, g, mean, inverse;
    int64_t groups;
    (void)row;
    if (!br_arg_wire(b, node, "input", &x) || !br_arg_wire(b, node, "grad_out", &g) ||
            !br_arg_wire(b, node, "mean", &mean) || !br_arg_wire(b, node, "rstd", &inverse) ||
            !br_arg_optional_wire(b, node, "weight", &p.weight) ||
            !br_arg_int(b, node, "group", 0, &groups))
        return false;
    br_wire data = *br_wire_of(b, x);
    if (groups < 1 || data.ndims < 2 || data.dims[1] % groups != 0)
        return br_refuse(b, "channels that do not divide into groups");
    int64_t n = data.dims[0], channels = data.dims[1] / groups, places = 1;
    for (int d = 2; d < data.ndims; d++)
        places *= data.dims[d];
    memcpy(p.dims, (int64_t[]){n, groups, channels, places}, sizeof p.dims);
    p.x = as_groups(b, x, n, groups, channels, places);
    p.g = as_groups(b, g, n, groups, channels, places);
    p.mean = as_groups(b, mean, n, groups, 1, 1);
    p.inverse = as_groups(b, inverse, n, groups, 1, 1);
    if (p.weight != BR_NONE)
        p.weight = as_groups(b, p.weight, 1, groups, channels, 1);
    const int64_t places_axis = 3, others[] = {0, 3};
    p.sum_g = sum_over(b, p.g, 1, &places_axis, true);
    p.sum_gx = sum_over(b, times(b, p.g, p.x, p.x), 1, &places_axis, true);
    if (br_output_is_read(b, node, 0))
        write_output(b, node, 0, input_gradient(b, &p));
    if (br_output_is_read(b, node, 1)) {
        uint32_t centred = br_binary(b, GB_OP_SUBTRACT, p.sum_gx,
                times(b, p.sum_g, p.mean, p.sum_g), br_wire_like(b, p.sum_g, GB_F32));
        centred = times(b, centred, p.inverse, p.sum_g);
        write_output(b, node, 1, sum_over(b, centred, 2, others, false));
    }
    if (br_output_is_read(b, node, 2))
        write_output(b, node, 2, sum_over(b, p.sum_g, 2, others, false));
    return !b->reason;
}

bool br_map_rms_norm(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[2], out;
    double epsilon;
    (void)row;
    if (br_output_is_read(b, node, 1))
        return br_refuse(b, "statistics are read");
    if (!br_arg_wire(b, node, "input", &inputs[0]) ||
            !br_arg_optional_wire(b, node, "weight", &inputs[1]))
        return false;
    gb_data_type type = br_wire_of(b, inputs[0])->type;
    if (type != GB_F32 && !br_has_arg(node, "eps"))
        return br_refuse(b, "epsilon follows from the type");
    if (!br_arg_float(b, node, "eps", (double)FLT_EPSILON, &epsilon) ||
            !last_axis(b, node, inputs[0]))
        return false;
    out = br_output_wire(b, node, 0);
    br_op *op = br_emit(b, GB_OP_RMS_NORM, inputs[1] == BR_NONE ? 1 : 2, inputs, 1, &out);
    br_set_f32(op, GB_ATTR_EPSILON, epsilon);
    return true;
}
