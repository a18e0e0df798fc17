/* Movement between Dequantize and Quantize of equal parameters stays in the integer type, and so does MaxPool: codes
 * are in the order of what they stand for. */
#include "fusion/passes/passes.h"

#include "base/status.h"

#include <string.h>

static bool same_list(const gb_op *a, const gb_op *b, gb_op_attr name)
{
    const gb_attr *x = gb_op_find_attr(a, name), *y = gb_op_find_attr(b, name);
    if (!x || !y)
        return x == y;
    if (x->count != y->count)
        return false;
    if (gb_op_attr_type(name) == GB_ATTR_TYPE_F32S)
        return memcmp(x->value.f32s, y->value.f32s, x->count * sizeof(float)) == 0;
    return memcmp(x->value.s64s, y->value.s64s, x->count * sizeof(int64_t)) == 0;
}

/* Then x -> (x - zp) * scale -> / scale + zp gives x again: the two roundings are far below half
 * a step of an 8-bit type, unless a scale is so small or large that a product leaves f32, or zp
 * so far out that roundings of x - zp are no longer small. */
static bool parameters_are_sound(const gb_op *op)
{
    const int64_t far = INT64_C(1) << 16;
    const int64_t *zps;
    const float *scales;
    size_t n = gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales);
    size_t n_zps = gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    for (size_t i = 0; i < n_zps; i++)
        if (zps[i] < -far || zps[i] > far)
            return false;
    for (size_t i = 0; i < n; i++)
        if (!(scales[i] > 1e-30F && scales[i] < 1e30F))
            return false;
    return n > 0;
}

static bool is_per_tensor(const gb_op *op)
{
    return gb_op_attr_is(op, GB_ATTR_QTYPE, "per_tensor", true);
}

/* Does the Quantize undo the Dequantize, the elements moved in between by `movement`? */
static bool undoes(const gb_op *quantize, const gb_op *dequantize, const gb_op *movement)
{
    gb_data_type type = gb_op_output(quantize, 0)->data_type;
    bool same = dequantize->kind == GB_OP_DEQUANTIZE && (type == GB_S8 || type == GB_U8) &&
                gb_op_input(dequantize, 0)->data_type == type &&
                gb_op_output(dequantize, 0)->data_type == GB_F32 &&
                same_list(quantize, dequantize, GB_ATTR_SCALES) &&
                same_list(quantize, dequantize, GB_ATTR_ZPS) && parameters_are_sound(quantize);
    if (!same || (is_per_tensor(quantize) && is_per_tensor(dequantize)))
        return same;
    int ndims = gb_op_output(quantize, 0)->ndims;
    int axis = gb_normalize_axis(gb_op_attr_s64(quantize, GB_ATTR_AXIS, 1), ndims);
    int concat_axis = gb_normalize_axis(gb_op_attr_s64(movement, GB_ATTR_AXIS, 0), ndims);
    bool aligned = movement->kind == GB_OP_REORDER ||
                   (movement->kind == GB_OP_CONCAT && axis != concat_axis);
    return aligned && !is_per_tensor(quantize) && !is_per_tensor(dequantize) &&
           axis == gb_normalize_axis(gb_op_attr_s64(dequantize, GB_ATTR_AXIS, 1), ndims);
}

static const gb_op *producer_of(const gb_op *op, uint32_t input)
{
    uint32_t producer = op->graph->values[op->inputs[input]].producer;
    return producer == GB_NONE ? NULL : op->graph->ops[producer];
}

/* The movement in front of the Quantize, when all that it moves was dequantised alike. */
static gb_op *find_movement(const gb_pass_context *context, const gb_op *quantize)
{
    const gb_op *movement = producer_of(quantize, 0);
    if (!movement || (movement->kind != GB_OP_CONCAT && movement->kind != GB_OP_MAX_POOL &&
                             !gb_is_movement(movement)))
        return NULL;
    const gb_value *moved = &quantize->graph->values[quantize->inputs[0]];
    if (moved->n_uses != 1 || gb_leaves_partition(context, moved))
        return NULL;
    for (uint32_t i = 0; i < movement->n_inputs; i++) {
        const gb_op *dequantize = producer_of(movement, i);
        if (!dequantize || !undoes(quantize, dequantize, movement))
            return NULL;
    }
    return quantize->graph->ops[movement->index];
}

static bool is_dead(const gb_pass_context *context, const gb_op *op)
{
    const gb_value *value = &op->graph->values[op->outputs[0]];
    return value->n_uses == 0 && !gb_leaves_partition(context, value);
}

static gb_status drop_dead(gb_graph *graph, const gb_pass_context *context)
{
    for (uint32_t i = graph->n_ops; i-- > 0;)
        if (graph->ops[i]->kind == GB_OP_DEQUANTIZE && is_dead(context, graph->ops[i]))
            GB_TRY(gb_graph_drop_op(graph, i));
    return GB_SUCCESS;
}

gb_status gb_pass_fold_qdq(gb_graph *graph, gb_pass_context *context)
{
    for (uint32_t i = graph->n_ops; i-- > 0;) {
        const gb_op *quantize = graph->ops[i];
        if (quantize->kind != GB_OP_QUANTIZE)
            continue;
        gb_op *movement = find_movement(context, quantize);
        if (!movement)
            continue;
        for (uint32_t k = 0; k < movement->n_inputs; k++)
            movement->inputs[k] = producer_of(movement, k)->inputs[0];
        movement->outputs[0] = quantize->outputs[0];
        GB_TRY(gb_graph_drop_op(graph, i));
    }
    return drop_dead(graph, context);
}
