/* Which lowering serves which op kind. */
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"

static const gb_lowering *const table[GB_OP_LAST] = {
        [GB_OP_MATMUL] = &gb_lowering_matmul,
        [GB_OP_CONVOLUTION] = &gb_lowering_convolution,
        [GB_OP_CONVOLUTION_BACKWARD_DATA] = &gb_lowering_convolution,
        [GB_OP_CONV_TRANSPOSE] = &gb_lowering_convolution,
        [GB_OP_CONVOLUTION_BACKWARD_WEIGHTS] = &gb_lowering_weight_gradient,
        [GB_OP_CONV_TRANSPOSE_BACKWARD_DATA] = &gb_lowering_conv_transpose_backward_data,
        [GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS] = &gb_lowering_weight_gradient,
        [GB_OP_SOFTMAX] = &gb_lowering_softmax,
        [GB_OP_LOG_SOFTMAX] = &gb_lowering_softmax,
        [GB_OP_LAYER_NORM] = &gb_lowering_norm,
        [GB_OP_RMS_NORM] = &gb_lowering_norm,
        [GB_OP_GROUP_NORM] = &gb_lowering_norm,
        [GB_OP_REDUCE_L1] = &gb_lowering_reduction,
        [GB_OP_REDUCE_L2] = &gb_lowering_reduction,
        [GB_OP_REDUCE_MAX] = &gb_lowering_reduction,
        [GB_OP_REDUCE_MEAN] = &gb_lowering_reduction,
        [GB_OP_REDUCE_MIN] = &gb_lowering_reduction,
        [GB_OP_REDUCE_PROD] = &gb_lowering_reduction,
        [GB_OP_REDUCE_SUM] = &gb_lowering_reduction,
        [GB_OP_AVG_POOL] = &gb_lowering_pool,
        [GB_OP_MAX_POOL] = &gb_lowering_pool,
        [GB_OP_CONCAT] = &gb_lowering_concat,
        [GB_OP_STATIC_RESHAPE] = &gb_lowering_movement,
        [GB_OP_STATIC_TRANSPOSE] = &gb_lowering_movement,
        [GB_OP_REORDER] = &gb_lowering_reorder,
        [GB_OP_SOFTMAX_BACKWARD] = &gb_lowering_softmax_backward,
        [GB_OP_LOG_SOFTMAX_BACKWARD] = &gb_lowering_softmax_backward,
        [GB_OP_BATCH_NORM_FORWARD_TRAINING] = &gb_lowering_batch_norm,
        [GB_OP_BATCH_NORM_BACKWARD] = &gb_lowering_batch_norm,
        [GB_OP_LAYER_NORM_BACKWARD] = &gb_lowering_layer_norm_backward,
        [GB_OP_PRELU_BACKWARD] = &gb_lowering_prelu_backward,
        [GB_OP_BIAS_ADD_BACKWARD] = &gb_lowering_bias_backward,
        [GB_OP_AVG_POOL_BACKWARD] = &gb_lowering_pool_backward,
        [GB_OP_MAX_POOL_BACKWARD] = &gb_lowering_pool_backward,
        [GB_OP_INTERPOLATE] = &gb_lowering_interpolate,
        [GB_OP_WILDCARD] = &gb_lowering_defined,
        [GB_OP_INTERPOLATE_BACKWARD] = &gb_lowering_interpolate,
};

const gb_lowering *gb_lowering_get(gb_op_kind kind)
{
    return (unsigned)kind < GB_OP_LAST ? table[kind] : NULL;
}

static const gb_region_lowering *const regions[] = {
        &gb_lowering_attention,
        &gb_lowering_conv_int8,
        &gb_lowering_conv_transpose_int8,
        &gb_lowering_conv_pair,
        &gb_lowering_gated_matmul,
        &gb_lowering_attention_gradients,
        &gb_lowering_batch_norm_relu,
        &gb_lowering_relu_batch_norm_backward,
};

const gb_region_lowering *gb_region_lowering_at(uint32_t index)
{
    return index < sizeof regions / sizeof *regions ? regions[index] : NULL;
}

const gb_region_lowering *gb_region_lowering_of(const gb_region *region)
{
    uint32_t i = 0;
    while (regions[i]->region != region)
        i++;
    return regions[i];
}
