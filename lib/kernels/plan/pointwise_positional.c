/* GenIndex and Dropout as instructions of pointwise programs: functions of where an element
 * lies. */
#include "base/status.h"
#include "kernels/plan/pointwise_builder.h"

#include <string.h>

bool gb_pointwise_is_positional(gb_op_kind kind)
{
    return kind == GB_OP_GEN_INDEX || kind == GB_OP_DROPOUT;
}

static gb_status emit_gen_index(
        gb_pointwise_builder *b, const gb_op *op, gb_pointwise_binding *result)
{
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 0), dst->ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    if (gb_tensor_count(dst) > 0 && dst->dims[axis] > (int64_t)INT32_MAX + 1)
        return gb_fail(GB_INVALID_SHAPE, "%s: axis %d of %s is too long for s32", gb_op_label(op),
                axis, gb_tensor_label(dst));
    int64_t along[GB_AXES] = {0}, strides[GB_AXES];
    uint32_t operand;
    along[axis] = 1;
    gb_pointwise_map_strides(b, along, NULL, strides);
    GB_TRY(gb_pointwise_add_index(b, strides, &operand));
    GB_TRY(gb_pointwise_take(b, &result->reg));
    b->partial[result->reg] = true;
    result->s32 = true;
    return gb_pointwise_emit(b,
            (gb_pointwise_instruction){
                    .opcode = GB_POINTWISE_INDEX, .dst = result->reg, .operand = (uint8_t)operand});
}

enum { SRC, SEED, OFFSET, PROBABILITY };

static gb_status check_scalars(const gb_op *op)
{
    for (uint32_t i = SEED; i <= PROBABILITY; i++)
        if (gb_tensor_count(gb_op_input(op, i)) != 1)
            return gb_fail(GB_INVALID_SHAPE, "%s: input %u is %s, expected one element",
                    gb_op_label(op), i, gb_tensor_label(gb_op_input(op, i)));
    return GB_SUCCESS;
}

/* keep = draws for the elements as they lie in dst, p = the probability within 0 .. 1. */
static gb_status emit_draws(gb_pointwise_builder *b, const gb_op *op, uint8_t keep, uint8_t p)
{
    const int64_t nowhere[GB_AXES] = {0};
    int64_t strides[GB_AXES];
    uint32_t index, seed, offset;
    uint8_t probability;
    gb_pointwise_map_strides(b, gb_op_output(op, 0)->strides, NULL, strides);
    GB_TRY(gb_pointwise_add_index(b, strides, &index));
    GB_TRY(gb_pointwise_add_value(b, op->inputs[SEED], nowhere, false, &seed));
    GB_TRY(gb_pointwise_add_value(b, op->inputs[OFFSET], nowhere, false, &offset));
    GB_TRY(gb_pointwise_fetch(b, op->inputs[PROBABILITY], nowhere, false, &probability));
    GB_TRY(gb_pointwise_emit(b, (gb_pointwise_instruction){.opcode = GB_POINTWISE_CLAMP,
                                        .dst = p,
                                        .a = probability,
                                        .alpha = 0,
                                        .beta = 1}));
    return gb_pointwise_emit(b, (gb_pointwise_instruction){.opcode = GB_POINTWISE_DROPOUT,
                                        .dst = keep,
                                        .a = p,
                                        .b = (uint8_t)seed,
                                        .c = (uint8_t)offset,
                                        .operand = (uint8_t)index});
}

/* dst = keep ? src / (1 - p) : 0; the second result, when asked for, is keep. */
static gb_status emit_dropout(
        gb_pointwise_builder *b, const gb_op *op, gb_pointwise_binding *result, uint8_t *keep)
{
    uint8_t x, y, p, constant;
    int64_t strides[GB_AXES];
    GB_TRY(check_scalars(op));
    GB_TRY(gb_pointwise_align(b, gb_op_input(op, SRC), 0, strides));
    GB_TRY(gb_pointwise_fetch(b, op->inputs[SRC], strides, false, &x));
    GB_TRY(gb_pointwise_take(b, keep));
    GB_TRY(gb_pointwise_take(b, &y));
    GB_TRY(gb_pointwise_take(b, &p));
    GB_TRY(gb_pointwise_take(b, &constant));
    b->partial[p] = b->partial[constant] = true;
    GB_TRY(emit_draws(b, op, *keep, p));
    const gb_pointwise_instruction steps[] = {
            {.opcode = GB_POINTWISE_CONSTANT, .dst = constant, .alpha = 1},
            {.opcode = GB_POINTWISE_SUB, .dst = p, .a = constant, .b = p},
            {.opcode = GB_POINTWISE_DIV, .dst = p, .a = constant, .b = p},
            {.opcode = GB_POINTWISE_MUL, .dst = y, .a = x, .b = p},
            {.opcode = GB_POINTWISE_CONSTANT, .dst = constant, .alpha = 0},
            {.opcode = GB_POINTWISE_SELECT, .dst = y, .a = *keep, .b = y, .c = constant},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        GB_TRY(gb_pointwise_emit(b, steps[i]));
    result->reg = y;
    return GB_SUCCESS;
}

gb_status gb_pointwise_emit_positional(
        gb_pointwise_builder *b, const gb_op *op, gb_pointwise_binding *results)
{
    return op->kind == GB_OP_GEN_INDEX ? emit_gen_index(b, op, &results[0])
                                       : emit_dropout(b, op, &results[0], &results[1].reg);
}
