/* Quantize and Dequantize, static and dynamic, as instructions of pointwise programs: scales and
 * zero points are constants or operands that repeat along the other dims. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/pointwise_builder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Static parameters. A zero point that f32 cannot hold is the sum of two. */
typedef enum parameter { SCALES, ZERO_POINTS, ZERO_POINTS_REST } parameter;

/* Values of an attribute. */
typedef struct parameter_list {
    size_t count;
    float values[];
} parameter_list;

bool gb_pointwise_quantizes(gb_op_kind kind)
{
    return kind == GB_OP_QUANTIZE || kind == GB_OP_DEQUANTIZE || kind == GB_OP_DYNAMIC_QUANTIZE ||
           kind == GB_OP_DYNAMIC_DEQUANTIZE;
}

static bool is_per_group(const gb_op *op)
{
    return gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false);
}

gb_status gb_pointwise_split(const gb_op *op, int64_t *sizes)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    int64_t groups;
    int axis = gb_quantize_groups(op, &groups);
    if (axis >= 0)
        sizes[axis] = src->dims[axis] / groups;
    if (op->kind != GB_OP_DYNAMIC_DEQUANTIZE || !is_per_group(op))
        return GB_SUCCESS;
    const int64_t *shape = NULL;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_GROUP_SHAPE, &shape);
    if (count != (size_t)src->ndims)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: attribute \"group_shape\" does not fit src %s",
                gb_op_label(op), gb_tensor_label(src));
    for (int d = 0; d < src->ndims; d++)
        sizes[d] = shape[d];
    return GB_SUCCESS;
}

/* Parameters ----------------------------------------------------------------------------------- */

/* What f32 leaves of a zero point. */
static float zero_point_rest(int64_t zp)
{
    float near = (float)zp;
    return fabsf(near) < 0x1p62F ? (float)(zp - (int64_t)near) : 0;
}

/* The attribute's values; NULL when out of memory. */
static parameter_list *pointwise_quantize_read_list(const gb_op *op, parameter what)
{
    const float *scales = NULL;
    const int64_t *zps = NULL;
    size_t count = what == SCALES ? gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales)
                                  : gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    parameter_list *list = gb_calloc(1, sizeof *list + count * sizeof *list->values);
    if (!list)
        return NULL;
    list->count = count;
    for (size_t i = 0; i < count; i++)
        list->values[i] = what == SCALES        ? scales[i]
                          : what == ZERO_POINTS ? (float)zps[i]
                                                : zero_point_rest(zps[i]);
    return list;
}

/* Dim of the space that the first dim of the op lies along: operands that are repeated have fewer.
 */
static int lead_of(const gb_pointwise_builder *b, const gb_op *op)
{
    return b->space->ndims - gb_op_input(op, 0)->ndims;
}

/* The axis of the parameters in the space, or -1. */
static int axis_of(const gb_pointwise_builder *b, const gb_op *op)
{
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 1), gb_op_input(op, 0)->ndims);
    return axis < 0 ? axis : lead_of(b, op) + axis;
}

static gb_status fetch_constant(gb_pointwise_builder *b, float value, uint8_t *reg)
{
    GB_TRY(gb_pointwise_take(b, reg));
    b->partial[*reg] = true;
    return gb_pointwise_emit(
            b, (gb_pointwise_instruction){
                       .opcode = GB_POINTWISE_CONSTANT, .dst = *reg, .alpha = value});
}

static gb_status fetch_attribute(
        gb_pointwise_builder *b, const gb_op *op, parameter what, uint8_t *reg)
{
    parameter_list *list = pointwise_quantize_read_list(op, what);
    if (!list)
        return GB_OUT_OF_MEMORY;
    if (list->count == 1) {
        float value = list->values[0];
        free(list);
        return fetch_constant(b, value, reg);
    }
    int axis = axis_of(b, op);
    int64_t along[GB_AXES] = {0}, across[GB_AXES], strides[GB_AXES], groups;
    if (axis < 0) {
        free(list);
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: attribute \"axis\" is outside src %s",
                gb_op_label(op), gb_tensor_label(b->space));
    }
    uint32_t buffer;
    gb_status status = gb_program_literals(b->program, list->values, list->count, &buffer);
    free(list);
    GB_TRY(status);
    along[axis] = 1;
    for (int d = 0; d < b->space->ndims; d++)
        across[d] = along[d] * b->sizes[d];
    int split = gb_quantize_groups(op, &groups);
    if (split >= 0) /* groups of one channel are positions of the dim */
        (b->sizes[split] > 1 ? across : along)[split] = b->space->dims[axis];
    gb_pointwise_map_strides(b, along, across, strides);
    return gb_pointwise_fetch_buffer(b, buffer, GB_F32, strides, reg);
}

static gb_status fetch_tensor(
        gb_pointwise_builder *b, const gb_op *op, uint32_t input, bool s32, uint8_t *reg)
{
    const gb_logical_tensor *tensor = gb_op_input(op, input);
    int64_t along[GB_AXES] = {0}, across[GB_AXES] = {0}, strides[GB_AXES];
    if (is_per_group(op)) {
        for (int d = 0; d < tensor->ndims; d++) {
            across[d] = tensor->strides[d];
            along[d] = b->sizes[d] > 1 || tensor->dims[d] == 1 ? 0 : tensor->strides[d];
        }
        gb_pointwise_map_strides(b, along, across, strides);
    } else {
        GB_TRY(gb_pointwise_align(b, tensor, axis_of(b, op), strides));
    }
    return gb_pointwise_fetch(b, op->inputs[input], strides, s32, reg);
}

/* Has a static zero point that is not 0, or a rest that is not? */
static bool has_any(const gb_op *op, bool rest)
{
    const int64_t *zps = NULL;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    for (size_t i = 0; i < count; i++)
        if (rest ? zero_point_rest(zps[i]) != 0 : zps[i] != 0)
            return true;
    return false;
}

/* Scales that vf_div_known() takes. */
#define MOST_KNOWN_SCALE 0x1p60F

/* The division by the static scale of a whole tensor as a product with 1 / scale, where that is exact, or with its
 * correction; false where it has to be a division. */
static bool is_product(const gb_op *op, gb_pointwise_instruction *product)
{
    const float *scales = NULL;
    int exponent;
    if (gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales) != 1)
        return false;
    float scale = scales[0], magnitude = fabsf(scale), reciprocal = 1.0F / scale;
    product->opcode = GB_POINTWISE_DIV_KNOWN;
    product->alpha = reciprocal;
    product->beta = scale;
    if (isnormal(reciprocal) && frexpf(magnitude, &exponent) == 0.5F)
        product->opcode = GB_POINTWISE_MUL;
    return product->opcode == GB_POINTWISE_MUL ||
           (magnitude > 1 / MOST_KNOWN_SCALE && magnitude < MOST_KNOWN_SCALE);
}

/* Ops ------------------------------------------------------------------------------------------ */

typedef struct quantization {
    uint8_t x, zp, rest;
    gb_pointwise_instruction scaling; /* lacks dst and a */
    bool has_zp, has_rest;
    bool partial; /* what it makes of x, if x is partial */
} quantization;

static gb_status emit_unary(
        gb_pointwise_builder *b, gb_pointwise_opcode opcode, uint8_t a, uint8_t *reg)
{
    GB_TRY(gb_pointwise_take(b, reg));
    b->partial[*reg] = b->partial[a];
    return gb_pointwise_emit(
            b, (gb_pointwise_instruction){.opcode = (uint8_t)opcode, .dst = *reg, .a = a});
}

/* Zero points of type s32 in lanes as f32 and what that leaves of them. */
static gb_status split_zero_points(gb_pointwise_builder *b, uint8_t lanes, quantization *q)
{
    uint8_t back;
    GB_TRY(emit_unary(b, GB_POINTWISE_FROM_S32, lanes, &q->zp));
    GB_TRY(emit_unary(b, GB_POINTWISE_TO_S32, q->zp, &back));
    GB_TRY(gb_pointwise_emit(
            b, (gb_pointwise_instruction){
                       .opcode = GB_POINTWISE_SUB_S32, .dst = back, .a = lanes, .b = back}));
    q->has_rest = true;
    return emit_unary(b, GB_POINTWISE_FROM_S32, back, &q->rest);
}

static gb_status fetch_zero_points(gb_pointwise_builder *b, const gb_op *op, quantization *q)
{
    bool dequantizes = op->kind == GB_OP_DEQUANTIZE || op->kind == GB_OP_DYNAMIC_DEQUANTIZE;
    bool is_static = op->kind == GB_OP_QUANTIZE || op->kind == GB_OP_DEQUANTIZE;
    if (!is_static) {
        bool wide = dequantizes && gb_op_input(op, 2)->data_type == GB_S32;
        GB_TRY(fetch_tensor(b, op, 2, wide, &q->zp));
        return wide ? split_zero_points(b, q->zp, q) : GB_SUCCESS;
    }
    GB_TRY(fetch_attribute(b, op, ZERO_POINTS, &q->zp));
    q->has_rest = dequantizes && has_any(op, true);
    return q->has_rest ? fetch_attribute(b, op, ZERO_POINTS_REST, &q->rest) : GB_SUCCESS;
}

static gb_status fetch_scale(gb_pointwise_builder *b, const gb_op *op, quantization *q)
{
    bool is_static = op->kind == GB_OP_QUANTIZE || op->kind == GB_OP_DEQUANTIZE;
    bool divides = op->kind == GB_OP_QUANTIZE || op->kind == GB_OP_DYNAMIC_QUANTIZE;
    gb_pointwise_instruction product = {0};
    uint8_t scale;
    if (op->kind == GB_OP_QUANTIZE && is_product(op, &product)) {
        q->scaling = product;
        q->partial = true;
        return product.opcode == GB_POINTWISE_MUL ? fetch_constant(b, product.alpha, &q->scaling.b)
                                                  : GB_SUCCESS;
    }
    GB_TRY(is_static ? fetch_attribute(b, op, SCALES, &scale)
                     : fetch_tensor(b, op, 1, false, &scale));
    q->scaling.opcode = divides ? GB_POINTWISE_DIV : GB_POINTWISE_MUL;
    q->scaling.b = scale;
    q->partial = b->partial[scale];
    return GB_SUCCESS;
}

static gb_status fetch_all(gb_pointwise_builder *b, const gb_op *op, quantization *q)
{
    bool is_static = op->kind == GB_OP_QUANTIZE || op->kind == GB_OP_DEQUANTIZE;
    int64_t strides[GB_AXES];
    GB_TRY(gb_pointwise_align(b, gb_op_input(op, 0), lead_of(b, op), strides));
    GB_TRY(gb_pointwise_fetch(b, op->inputs[0], strides, false, &q->x));
    GB_TRY(fetch_scale(b, op, q));
    q->has_zp = is_static ? has_any(op, false) : op->n_inputs > 2;
    if (!q->has_zp)
        return GB_SUCCESS;
    GB_TRY(fetch_zero_points(b, op, q));
    q->partial = q->partial && b->partial[q->zp];
    return GB_SUCCESS;
}

/* Quantise: x / scale + zero point, which a store rounds; the rounding is an instruction where the
 * value is read again. Dequantise: (x - rest - zero point) scale, whose difference is the exact
 * one, rounded once. */
gb_status gb_pointwise_emit_quantization(gb_pointwise_builder *b, const gb_op *op, uint8_t *reg)
{
    quantization q = {0};
    uint8_t t = 0;
    GB_TRY(fetch_all(b, op, &q));
    GB_TRY(gb_pointwise_take(b, &t));
    b->partial[t] = b->partial[q.x] && q.partial;
    bool divides = op->kind == GB_OP_QUANTIZE || op->kind == GB_OP_DYNAMIC_QUANTIZE;
    uint8_t x = q.x;
    if (q.has_rest) {
        GB_TRY(gb_pointwise_emit(
                b, (gb_pointwise_instruction){
                           .opcode = GB_POINTWISE_SUB, .dst = t, .a = x, .b = q.rest}));
        x = t;
    }
    if (q.has_zp && !divides) {
        GB_TRY(gb_pointwise_emit(
                b, (gb_pointwise_instruction){
                           .opcode = GB_POINTWISE_SUB, .dst = t, .a = x, .b = q.zp}));
        x = t;
    }
    q.scaling.dst = t;
    q.scaling.a = x;
    GB_TRY(gb_pointwise_emit(b, q.scaling));
    if (q.has_zp && divides)
        GB_TRY(gb_pointwise_emit(
                b, (gb_pointwise_instruction){
                           .opcode = GB_POINTWISE_ADD, .dst = t, .a = t, .b = q.zp}));
    if (divides && gb_pointwise_read_later(b, op->outputs[0])) {
        uint8_t type = (uint8_t)gb_op_output(op, 0)->data_type;
        GB_TRY(gb_pointwise_emit(
                b, (gb_pointwise_instruction){
                           .opcode = GB_POINTWISE_ROUND, .dst = t, .a = t, .type = type}));
    }
    *reg = t;
    return GB_SUCCESS;
}
