/* Element-wise ops. */
#include "map.h"

#include <math.h>
#include <string.h>

bool br_map_unary(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t in;
    if (br_has_arg(node, "decimals"))
        return br_refuse(b, "rounds to decimals");
    if (!br_arg_wire(b, node, "self", &in))
        return false;
    br_unary(b, row->kind, in, br_output_wire(b, node, 0));
    return true;
}

static bool gelu_mode(br_builder *b, const br_node *node, const char **mode)
{
    const br_arg *arg = br_find_arg(node, "approximate");
    bool is_text = !arg || arg->kind == BR_ARG_STRING;
    *mode = arg && is_text && strcmp(arg->text, "tanh") == 0 ? "gelu_tanh" : "gelu_erf";
    return is_text || br_refuse(b, "an argument is no text");
}

bool br_map_gelu(br_builder *b, const br_node *node, const br_row *row)
{
    const char *mode;
    if (!gelu_mode(b, node, &mode) || !br_map_unary(b, node, row))
        return false;
    br_set_text(&b->ops[b->n_ops - 1], GB_ATTR_MODE, mode);
    return true;
}

bool br_map_elu(br_builder *b, const br_node *node, const br_row *row)
{
    double alpha, scale, input_scale;
    if (!br_arg_float(b, node, "alpha", 1, &alpha) || !br_arg_float(b, node, "scale", 1, &scale) ||
            !br_arg_float(b, node, "input_scale", 1, &input_scale))
        return false;
    if (scale != 1 || input_scale != 1 || alpha < 0)
        return br_refuse(b, "scaled, or with a negative alpha");
    if (!br_map_unary(b, node, row))
        return false;
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_ALPHA, alpha);
    return true;
}

bool br_map_leaky_relu(br_builder *b, const br_node *node, const br_row *row)
{
    double slope;
    if (!br_arg_float(b, node, "negative_slope", 0.01, &slope) || !br_map_unary(b, node, row))
        return false;
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_ALPHA, slope);
    return true;
}

static bool clamp(br_builder *b, const br_node *node, double min, double max)
{
    static const br_row row = {.kind = GB_OP_CLAMP};
    if (!(min <= max))
        return br_refuse(b, "the bounds are not in order");
    if (!br_map_unary(b, node, &row))
        return false;
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_MIN, min);
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_MAX, max);
    return true;
}

bool br_map_clamp(br_builder *b, const br_node *node, const br_row *row)
{
    double min, max;
    (void)row;
    const br_arg *low = br_find_arg(node, "min"), *high = br_find_arg(node, "max");
    if ((low && low->kind == BR_ARG_TENSOR) || (high && high->kind == BR_ARG_TENSOR))
        return br_refuse(b, "a bound is a tensor");
    return br_arg_float(b, node, "min", -(double)INFINITY, &min) &&
           br_arg_float(b, node, "max", (double)INFINITY, &max) && clamp(b, node, min, max);
}

bool br_map_hardtanh(br_builder *b, const br_node *node, const br_row *row)
{
    double min, max;
    (void)row;
    return br_arg_float(b, node, "min_val", -1, &min) &&
           br_arg_float(b, node, "max_val", 1, &max) && clamp(b, node, min, max);
}

bool br_map_relu6(br_builder *b, const br_node *node, const br_row *row)
{
    (void)row;
    return clamp(b, node, 0, 6);
}

bool br_map_hardsigmoid(br_builder *b, const br_node *node, const br_row *row)
{
    if (!br_map_unary(b, node, row))
        return false;
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_ALPHA, 1.0 / 6);
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_BETA, 0.5);
    return true;
}

bool br_map_softplus(br_builder *b, const br_node *node, const br_row *row)
{
    double beta, threshold;
    if (!br_arg_float(b, node, "beta", 1, &beta) ||
            !br_arg_float(b, node, "threshold", 20, &threshold))
        return false;
    /* Above the threshold the framework gives x, which differs by less than exp(-threshold). */
    if (beta <= 0 || threshold < 20)
        return br_refuse(b, "a threshold that would be seen");
    if (!br_map_unary(b, node, row))
        return false;
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_BETA, beta);
    return true;
}

bool br_map_silu(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t in;
    (void)row;
    if (!br_arg_wire(b, node, "self", &in))
        return false;
    uint32_t out = br_output_wire(b, node, 0);
    uint32_t gate = br_unary(b, GB_OP_SIGMOID, in, br_wire_like(b, in, br_wire_of(b, in)->type));
    br_binary(b, GB_OP_MULTIPLY, in, gate, out);
    return true;
}

static bool is_float(gb_data_type type)
{
    return type == GB_F32 || type == GB_BF16 || type == GB_F16;
}

bool br_map_neg(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t in;
    (void)row;
    if (!br_arg_wire(b, node, "self", &in))
        return false;
    if (!is_float(br_wire_of(b, in)->type))
        return br_refuse(b, "integers");
    br_binary(b, GB_OP_MULTIPLY, in, br_scalar(b, -1), br_output_wire(b, node, 0));
    return true;
}

bool br_map_pow(br_builder *b, const br_node *node, const br_row *row)
{
    double exponent;
    uint32_t in;
    const br_arg *arg = br_find_arg(node, "exponent");
    if (!arg || arg->kind == BR_ARG_TENSOR)
        return br_refuse(b, "the exponent is a tensor");
    if (!br_arg_float(b, node, "exponent", 1, &exponent))
        return false;
    if (exponent == 1)
        return br_map_identity(b, node, row);
    if (!br_arg_wire(b, node, "self", &in))
        return false;
    uint32_t out = br_output_wire(b, node, 0);
    if (exponent == 2) {
        br_unary(b, GB_OP_SQUARE, in, out);
    } else if (exponent == 0.5) {
        br_unary(b, GB_OP_SQRT, in, out);
    } else {
        br_unary(b, GB_OP_POW, in, out);
        br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_BETA, exponent);
    }
    return true;
}

bool br_map_rsqrt(br_builder *b, const br_node *node, const br_row *row)
{
    static const br_row pow = {.kind = GB_OP_POW};
    (void)row;
    if (!br_map_unary(b, node, &pow))
        return false;
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_BETA, -0.5);
    return true;
}

/* An operand as the framework promotes it: numbers keep f32, tensors are converted to the result's
 * type. */
static bool operand(br_builder *b, const br_node *node, const char *name, gb_data_type type,
        uint32_t *wire, bool *is_number, double *number)
{
    const br_arg *arg = br_find_arg(node, name);
    *is_number = arg && arg->kind != BR_ARG_TENSOR;
    if (*is_number)
        return br_arg_float(b, node, name, 0, number);
    if (!br_arg_operand(b, node, name, wire))
        return false;
    if (!is_float(br_wire_of(b, *wire)->type))
        return br_refuse(b, "an operand of integers");
    *wire = br_cast(b, *wire, type);
    return true;
}

/* A number beside a tensor whose expansion was left out: one element, or one for each place along the
 * axes that the tensor lacks, so that the result has them. */
static bool number_operand(
        br_builder *b, const br_value *result, uint32_t tensor, double number, uint32_t *wire)
{
    enum { MOST = 1 << 16 };
    br_wire have = *br_wire_of(b, tensor);
    int64_t dims[GB_MAX_NDIMS], count = 1;
    int missing = result->ndims - have.ndims;
    for (int d = 0; missing >= 0 && d < result->ndims; d++) {
        bool is_single = d < missing || have.dims[d - missing] == 1;
        dims[d] = is_single ? br_size_value(b, &result->dims[d]) : 1;
        if (dims[d] < 1 || dims[d] > MOST / count)
            return br_refuse(b, "an expanded tensor");
        count *= dims[d];
    }
    if (missing < 0 || (missing == 0 && count == 1)) {
        *wire = br_scalar(b, number);
        return true;
    }
    float *data = br_alloc(b->arena, (size_t)count, sizeof *data);
    *wire = br_wire_new(b, GB_F32, result->ndims, dims);
    if (b->arena->failed)
        return false;
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)number;
    b->wires[*wire].data = data;
    b->wires[*wire].bytes = (size_t)count * sizeof *data;
    return true;
}

/* x + 0, x - 0, x * 1, x / 1 */
static bool is_neutral(gb_op_kind kind, double number)
{
    bool is_sum = kind == GB_OP_ADD || kind == GB_OP_SUBTRACT;
    return number == (is_sum ? 0 : 1);
}

static bool same_meta(const br_value *a, const br_value *c)
{
    bool same = a && c && a->dtype == c->dtype && a->ndims == c->ndims;
    for (int d = 0; same && d < a->ndims; d++)
        same = a->dims[d].value == c->dims[d].value;
    return same;
}

bool br_map_binary(br_builder *b, const br_node *node, const br_row *row)
{
    const br_value *result = br_output(b, node, 0);
    uint32_t left = BR_NONE, right = BR_NONE;
    bool left_is_number, right_is_number;
    double left_number = 0, number = 0, alpha;
    if (!result || !is_float(result->dtype->type))
        return br_refuse(b, "the result is of integers");
    if (br_has_arg(node, "rounding_mode"))
        return br_refuse(b, "a division that rounds");
    gb_data_type type = result->dtype->type;
    if (!br_arg_float(b, node, "alpha", 1, &alpha) ||
            !operand(b, node, "self", type, &left, &left_is_number, &left_number) ||
            !operand(b, node, "other", type, &right, &right_is_number, &number))
        return false;
    if (left_is_number)
        return br_refuse(b, "the first operand is a number");
    if (right_is_number) {
        if (is_neutral(row->kind, number * alpha) &&
                same_meta(br_arg_value(b, node, "self"), result))
            return br_map_identity(b, node, row);
        if (!number_operand(b, result, left, number * alpha, &right))
            return false;
    } else if (alpha != 1) {
        right = br_binary(
                b, GB_OP_MULTIPLY, right, br_scalar(b, alpha), br_wire_like(b, right, type));
    }
    br_binary(b, row->kind, left, right, br_output_wire(b, node, 0));
    return true;
}

bool br_map_rsub(br_builder *b, const br_node *node, const br_row *row)
{
    const br_value *result = br_output(b, node, 0);
    uint32_t self = BR_NONE, other = BR_NONE;
    bool self_is_number, other_is_number;
    double number = 0, alpha;
    (void)row;
    if (!result || !is_float(result->dtype->type))
        return br_refuse(b, "the result is of integers");
    gb_data_type type = result->dtype->type;
    if (!br_arg_float(b, node, "alpha", 1, &alpha) ||
            !operand(b, node, "self", type, &self, &self_is_number, &number) ||
            !operand(b, node, "other", type, &other, &other_is_number, &number))
        return false;
    if (alpha != 1 || self_is_number)
        return br_refuse(b, "a factor of the operand");
    if (other_is_number && !number_operand(b, result, self, number, &other))
        return false;
    br_binary(b, GB_OP_SUBTRACT, other, self, br_output_wire(b, node, 0));
    return true;
}

/* The larger or smaller of two. The library's op gives the second where the first is not a number;
 * the framework gives what is not a number, wherever it is. */
bool br_map_extremum(br_builder *b, const br_node *node, const br_row *row)
{
    const br_value *result = br_output(b, node, 0);
    uint32_t left = BR_NONE, right = BR_NONE;
    bool left_is_number, right_is_number;
    double number = 0;
    if (!result || !is_float(result->dtype->type))
        return br_refuse(b, "the result is of integers");
    gb_data_type type = result->dtype->type;
    if (!operand(b, node, "self", type, &left, &left_is_number, &number) ||
            !operand(b, node, "other", type, &right, &right_is_number, &number))
        return false;
    if (left_is_number || right_is_number)
        return br_refuse(b, "an argument is no tensor");
    uint32_t out = br_output_wire(b, node, 0);
    uint32_t extremum = br_binary(b, row->kind, left, right, br_wire_like(b, out, type));
    const uint32_t inputs[] = {
            br_binary(b, GB_OP_GREATER_EQUAL, left, left, br_wire_like(b, left, GB_BOOLEAN)),
            extremum, left};
    br_emit(b, GB_OP_SELECT, 3, inputs, 1, &out);
    return true;
}

/* a >= b, and with row->value b >= a. */
bool br_map_compare(br_builder *b, const br_node *node, const br_row *row)
{
    const br_value *self = br_arg_value(b, node, "self"), *other = br_arg_value(b, node, "other");
    uint32_t left = BR_NONE, right = BR_NONE;
    bool left_is_number, right_is_number;
    double number = 0;
    if (!self || !self->dtype->is_float || (other && !other->dtype->is_float))
        return br_refuse(b, "a comparison of integers");
    gb_data_type type = self->dtype->type;
    /* With a tensor of one element as with a number: which type they are compared in is a rule of its
     * own. */
    if (other && other->dtype->type != type)
        return br_refuse(b, "a comparison of two types");
    if (!operand(b, node, "self", type, &left, &left_is_number, &number) ||
            !operand(b, node, "other", type, &right, &right_is_number, &number))
        return false;
    if (right_is_number)
        right = br_cast(b, br_scalar(b, number), type);
    uint32_t out = br_output_wire(b, node, 0);
    br_binary(b, row->kind, row->value != 0 ? right : left, row->value != 0 ? left : right, out);
    return true;
}

bool br_map_other_comparison(br_builder *b, const br_node *node, const br_row *row)
{
    (void)node;
    (void)row;
    return br_refuse(b, "the library compares by >= alone");
}

/* Is the argument a tensor of one element that a node before filled with a known number? */
static bool is_filled(const br_builder *b, const br_node *node, const char *name, gb_data_type type,
        double *number)
{
    const br_value *value = br_arg_value(b, node, name);
    if (!value || value->ndims != 0 || value->producer == BR_NONE || b->has_writes ||
            (value->dtype->type != GB_F32 && value->dtype->type != type))
        return false;
    const br_node *maker = &b->graph->nodes[value->producer];
    const char *filling = strcmp(maker->op, "aten.scalar_tensor.default") == 0 ? "s"
                          : strcmp(maker->op, "aten.full.default") == 0        ? "fill_value"
                                                                               : NULL;
    const br_arg *arg = filling ? br_find_arg(maker, filling) : NULL;
    if (!arg || (arg->kind != BR_ARG_FLOAT && arg->kind != BR_ARG_INT) ||
            (arg->kind == BR_ARG_INT && arg->sizes[0].expr))
        return false;
    *number = arg->kind == BR_ARG_FLOAT ? arg->floats[0] : (double)arg->sizes[0].value;
    return true;
}

/* A number of the type that the other branch has, or a tensor converted to it. */
static bool branch(
        br_builder *b, const br_node *node, const char *name, gb_data_type type, uint32_t *wire)
{
    double number = 0;
    bool is_number = is_filled(b, node, name, type, &number);
    if (!is_number && !operand(b, node, name, type, wire, &is_number, &number))
        return false;
    if (is_number)
        *wire = br_cast(b, br_scalar(b, number), type);
    return true;
}

/* Arguments by name: where `condition` holds, `then`, else `otherwise`. */
static bool map_select(br_builder *b, const br_node *node, const char *condition, const char *then,
        const char *otherwise)
{
    const br_value *result = br_output(b, node, 0);
    uint32_t inputs[3], out;
    if (!result || !is_float(result->dtype->type))
        return br_refuse(b, "the result is of integers");
    if (!br_arg_operand(b, node, condition, &inputs[0]) ||
            !branch(b, node, then, result->dtype->type, &inputs[1]) ||
            !branch(b, node, otherwise, result->dtype->type, &inputs[2]))
        return false;
    out = br_output_wire(b, node, 0);
    br_emit(b, GB_OP_SELECT, 3, inputs, 1, &out);
    return true;
}

bool br_map_where(br_builder *b, const br_node *node, const br_row *row)
{
    (void)row;
    return map_select(b, node, "condition", "self", "other");
}

bool br_map_masked_fill(br_builder *b, const br_node *node, const br_row *row)
{
    (void)row;
    return map_select(b, node, "mask", "value", "self");
}

/* ---- gradients ---- */

static bool gradient(br_builder *b, const br_node *node, gb_op_kind kind, const char *source)
{
    uint32_t inputs[2], out;
    if (!br_arg_wire(b, node, source, &inputs[0]) ||
            !br_arg_wire(b, node, "grad_output", &inputs[1]))
        return false;
    out = br_output_wire(b, node, 0);
    br_emit(b, kind, 2, inputs, 1, &out);
    return true;
}

bool br_map_threshold_backward(br_builder *b, const br_node *node, const br_row *row)
{
    double threshold;
    (void)row;
    if (!br_arg_float(b, node, "threshold", 0, &threshold))
        return false;
    if (threshold != 0)
        return br_refuse(b, "a threshold other than 0");
    if (!gradient(b, node, GB_OP_RELU_BACKWARD, "self"))
        return false;
    br_set_bool(b, &b->ops[b->n_ops - 1], GB_ATTR_USE_DST, false);
    return true;
}

bool br_map_gelu_backward(br_builder *b, const br_node *node, const br_row *row)
{
    const char *mode;
    (void)row;
    if (!gelu_mode(b, node, &mode) || !gradient(b, node, GB_OP_GELU_BACKWARD, "self"))
        return false;
    br_set_text(&b->ops[b->n_ops - 1], GB_ATTR_MODE, mode);
    return true;
}

/* Of tanh and sigmoid, from the result. */
bool br_map_result_backward(br_builder *b, const br_node *node, const br_row *row)
{
    if (!gradient(b, node, row->kind, "output"))
        return false;
    br_set_bool(b, &b->ops[b->n_ops - 1], GB_ATTR_USE_DST, true);
    return true;
}

/* Of the input, without further arguments. */
bool br_map_source_backward(br_builder *b, const br_node *node, const br_row *row)
{
    return gradient(b, node, row->kind, "self");
}

bool br_map_hardsigmoid_backward(br_builder *b, const br_node *node, const br_row *row)
{
    if (!gradient(b, node, row->kind, "self"))
        return false;
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_ALPHA, 1.0 / 6);
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_BETA, 0.5);
    return true;
}

bool br_map_softplus_backward(br_builder *b, const br_node *node, const br_row *row)
{
    double beta, threshold;
    if (!br_arg_float(b, node, "beta", 1, &beta) ||
            !br_arg_float(b, node, "threshold", 20, &threshold))
        return false;
    if (beta <= 0 || threshold < 20)
        return br_refuse(b, "a threshold that would be seen");
    if (!gradient(b, node, row->kind, "self"))
        return false;
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_BETA, beta);
    return true;
}

bool br_map_elu_backward(br_builder *b, const br_node *node, const br_row *row)
{
    double alpha, scale, input_scale;
    bool is_result;
    if (!br_arg_float(b, node, "alpha", 1, &alpha) || !br_arg_float(b, node, "scale", 1, &scale) ||
            !br_arg_float(b, node, "input_scale", 1, &input_scale) ||
            !br_arg_bool(b, node, "is_result", false, &is_result))
        return false;
    if (scale != 1 || input_scale != 1 || alpha < 0)
        return br_refuse(b, "scaled, or with a negative alpha");
    if (!gradient(b, node, row->kind, "self_or_result"))
        return false;
    br_set_f32(&b->ops[b->n_ops - 1], GB_ATTR_ALPHA, alpha);
    br_set_bool(b, &b->ops[b->n_ops - 1], GB_ATTR_USE_DST, is_result);
    return true;
}

bool br_map_hardtanh_backward(br_builder *b, const br_node *node, const br_row *row)
{
    double min, max;
    (void)row;
    if (!br_arg_float(b, node, "min_val", -1, &min) || !br_arg_float(b, node, "max_val", 1, &max) ||
            !gradient(b, node, GB_OP_CLAMP_BACKWARD, "self"))
        return false;
    br_op *op = &b->ops[b->n_ops - 1];
    br_set_f32(op, GB_ATTR_MIN, min);
    br_set_f32(op, GB_ATTR_MAX, max);
    br_set_bool(b, op, GB_ATTR_USE_DST, false);
    return true;
}

/* g s (1 + x (1 - s)) with s = sigmoid(x), in f32 throughout. */
bool br_map_silu_backward(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t x, g;
    (void)row;
    if (!br_arg_wire(b, node, "self", &x) || !br_arg_wire(b, node, "grad_output", &g))
        return false;
    gb_data_type type = br_wire_of(b, x)->type;
    uint32_t one = br_scalar(b, 1), out = br_output_wire(b, node, 0);
    x = br_cast(b, x, GB_F32);
    g = br_cast(b, g, GB_F32);
    uint32_t s = br_unary(b, GB_OP_SIGMOID, x, br_wire_like(b, x, GB_F32));
    uint32_t rest = br_binary(b, GB_OP_SUBTRACT, one, s, br_wire_like(b, x, GB_F32));
    uint32_t slope = br_binary(b, GB_OP_MULTIPLY, x, rest, br_wire_like(b, x, GB_F32));
    slope = br_binary(b, GB_OP_ADD, slope, one, br_wire_like(b, x, GB_F32));
    slope = br_binary(b, GB_OP_MULTIPLY, s, slope, br_wire_like(b, x, GB_F32));
    if (type == GB_F32) {
        br_binary(b, GB_OP_MULTIPLY, g, slope, out);
        return true;
    }
    uint32_t product = br_binary(b, GB_OP_MULTIPLY, g, slope, br_wire_like(b, x, GB_F32));
    br_unary(b, GB_OP_TYPE_CAST, product, out);
    return true;
}

/* The gradient times the scale where the mask holds, else 0. */
bool br_map_dropout_backward(br_builder *b, const br_node *node, const br_row *row)
{
    uint32_t inputs[3], out;
    double scale;
    (void)row;
    if (!br_arg_wire(b, node, "grad_output", &inputs[1]) ||
            !br_arg_wire(b, node, "mask", &inputs[0]) || !br_arg_float(b, node, "scale", 1, &scale))
        return false;
    gb_data_type type = br_wire_of(b, inputs[1])->type;
    if (br_wire_of(b, inputs[0])->type != GB_BOOLEAN)
        return br_refuse(b, "a mask that is not of truths");
    inputs[1] = br_binary(
            b, GB_OP_MULTIPLY, inputs[1], br_scalar(b, scale), br_wire_like(b, inputs[1], type));
    inputs[2] = br_cast(b, br_scalar(b, 0), type);
    out = br_output_wire(b, node, 0);
    br_emit(b, GB_OP_SELECT, 3, inputs, 1, &out);
    return true;
}
