/* Values that the inputs of any op may have. */
#ifndef GB_TESTS_OP_VALUES_H
#define GB_TESTS_OP_VALUES_H

#include "graph/ops/op_table.h"

#include <math.h>

/* Inputs that must be above 0: arguments of roots and logarithms, variances, scales. */
static inline bool op_value_is_positive(gb_op_kind kind, uint32_t input)
{
    static const struct {
        gb_op_kind kind;
        uint32_t input;
    } rules[] = {
            {GB_OP_LOG, 0},
            {GB_OP_SQRT, 0},
            {GB_OP_SQRT_BACKWARD, 0},
            {GB_OP_BATCH_NORM_INFERENCE, 4},
            {GB_OP_BATCH_NORM_FORWARD_TRAINING, 2},
            {GB_OP_BATCH_NORM_BACKWARD, 3},
            {GB_OP_LAYER_NORM_BACKWARD, 3},
            {GB_OP_DYNAMIC_QUANTIZE, 1},
            {GB_OP_DYNAMIC_DEQUANTIZE, 1},
            {GB_OP_DROPOUT, 3},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].kind == kind && rules[i].input == input)
            return true;
    return false;
}

/* Of element `index` of an input, from a number in [-1, 1). */
static inline double op_value(
        gb_op_kind kind, uint32_t input, gb_data_type type, int64_t index, double uniform)
{
    bool reduction = gb_op_schema_get(kind)->op_class == GB_CLASS_REDUCTION;
    switch (type) {
    case GB_BOOLEAN:
        return uniform > 0;
    case GB_S4:
        return floor(uniform * 8);
    case GB_U4:
        return floor(uniform * 8) + 8;
    case GB_S8:
        return floor(uniform * 128);
    case GB_U8:
        return floor(uniform * 128) + 128;
    case GB_S32: /* axes of a reduction are -1, -2, ... */
        return reduction ? (double)(-1 - index) : floor(uniform * 1000);
    case GB_S64:
        return floor(uniform * 1e9);
    default:
        return op_value_is_positive(kind, input) ? fabs(uniform) / 2 + 0.125 : uniform;
    }
}

#endif
