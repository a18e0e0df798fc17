/* Which reference function evaluates which op kind. */
#include "ref/ops/ref_functions.h"

/* Classes of ops whose formulas are rows of a table of their own. */
static const gb_ref_fn class_functions[GB_CLASS_PRELU + 1] = {
        [GB_CLASS_UNARY] = gb_ref_unary,
        [GB_CLASS_UNARY_BACKWARD] = gb_ref_unary_backward,
        [GB_CLASS_BINARY] = gb_ref_binary,
        [GB_CLASS_COMPARE] = gb_ref_binary,
};

static const gb_ref_fn functions[GB_OP_LAST] = {
        [GB_OP_AVG_POOL] = gb_ref_pool,
        [GB_OP_AVG_POOL_BACKWARD] = gb_ref_pool_backward,
        [GB_OP_BATCH_NORM_BACKWARD] = gb_ref_batch_norm_backward,
        [GB_OP_BATCH_NORM_FORWARD_TRAINING] = gb_ref_batch_norm_training,
        [GB_OP_BATCH_NORM_INFERENCE] = gb_ref_batch_norm_inference,
        [GB_OP_BIAS_ADD] = gb_ref_bias_add,
        [GB_OP_BIAS_ADD_BACKWARD] = gb_ref_bias_add_backward,
        [GB_OP_CONCAT] = gb_ref_concat,
        [GB_OP_CONVOLUTION] = gb_ref_convolution,
        [GB_OP_CONVOLUTION_BACKWARD_DATA] = gb_ref_convolution_backward_data,
        [GB_OP_CONVOLUTION_BACKWARD_WEIGHTS] = gb_ref_convolution_backward_weights,
        [GB_OP_CONV_TRANSPOSE] = gb_ref_conv_transpose,
        [GB_OP_CONV_TRANSPOSE_BACKWARD_DATA] = gb_ref_conv_transpose_backward_data,
        [GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS] = gb_ref_conv_transpose_backward_weights,
        [GB_OP_DEQUANTIZE] = gb_ref_dequantize,
        [GB_OP_DYNAMIC_DEQUANTIZE] = gb_ref_dequantize,
        [GB_OP_DYNAMIC_QUANTIZE] = gb_ref_quantize,
        [GB_OP_END] = gb_ref_end,
        [GB_OP_INTERPOLATE] = gb_ref_interpolate,
        [GB_OP_INTERPOLATE_BACKWARD] = gb_ref_interpolate_backward,
        [GB_OP_LAYER_NORM] = gb_ref_layer_norm,
        [GB_OP_LAYER_NORM_BACKWARD] = gb_ref_layer_norm_backward,
        [GB_OP_LOG_SOFTMAX] = gb_ref_softmax,
        [GB_OP_LOG_SOFTMAX_BACKWARD] = gb_ref_softmax_backward,
        [GB_OP_MATMUL] = gb_ref_matmul,
        [GB_OP_MAX_POOL] = gb_ref_pool,
        [GB_OP_MAX_POOL_BACKWARD] = gb_ref_pool_backward,
        [GB_OP_PRELU] = gb_ref_prelu,
        [GB_OP_PRELU_BACKWARD] = gb_ref_prelu_backward,
        [GB_OP_QUANTIZE] = gb_ref_quantize,
        [GB_OP_REDUCE_L1] = gb_ref_reduce,
        [GB_OP_REDUCE_L2] = gb_ref_reduce,
        [GB_OP_REDUCE_MAX] = gb_ref_reduce,
        [GB_OP_REDUCE_MEAN] = gb_ref_reduce,
        [GB_OP_REDUCE_MIN] = gb_ref_reduce,
        [GB_OP_REDUCE_PROD] = gb_ref_reduce,
        [GB_OP_REDUCE_SUM] = gb_ref_reduce,
        [GB_OP_REORDER] = gb_ref_copy,
        [GB_OP_SOFTMAX] = gb_ref_softmax,
        [GB_OP_SOFTMAX_BACKWARD] = gb_ref_softmax_backward,
        [GB_OP_STATIC_RESHAPE] = gb_ref_reshape,
        [GB_OP_STATIC_TRANSPOSE] = gb_ref_transpose,
        [GB_OP_TYPE_CAST] = gb_ref_copy,
        [GB_OP_SELECT] = gb_ref_select,
        [GB_OP_GROUP_NORM] = gb_ref_group_norm,
        [GB_OP_GEN_INDEX] = gb_ref_gen_index,
        [GB_OP_RMS_NORM] = gb_ref_rms_norm,
        [GB_OP_DROPOUT] = gb_ref_dropout,
};

gb_ref_fn gb_ref_function(gb_op_kind kind)
{
    if ((unsigned)kind >= GB_OP_LAST)
        return NULL;
    return functions[kind] ? functions[kind] : class_functions[gb_op_schema_get(kind)->op_class];
}

int gb_ref_supports(gb_op_kind kind)
{
    return gb_ref_function(kind) != NULL;
}
