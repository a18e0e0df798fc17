/* The table of mappings: one row for each op of the framework. To add an op, add a row; where no
 * function fits, write one beside its kin. docs/bridge.md tells how. */
#include "map.h"

#include <string.h>

#define V true  /* a view: shares memory with its first argument */
#define W true  /* has a form in place, named with an underscore */
#define N false /* neither */

static const br_row rows[] = {
        /* op, function, kind, view, written in place, value */
        /* What computes nothing. `reshape` and its like may copy: taken as views, which is the
         * careful side where memory is written to. */
        {"view.default", br_map_reshape, 0, V, N, 0},
        {"_unsafe_view.default", br_map_reshape, 0, V, N, 0},
        {"reshape.default", br_map_reshape, 0, V, N, 0},
        {"flatten.using_ints", br_map_reshape, 0, V, N, 0},
        {"unflatten.int", br_map_reshape, 0, V, N, 0},
        {"unsqueeze.default", br_map_reshape, 0, V, N, 0},
        {"squeeze.default", br_map_reshape, 0, V, N, 0},
        {"squeeze.dim", br_map_reshape, 0, V, N, 0},
        {"squeeze.dims", br_map_reshape, 0, V, N, 0},
        {"permute.default", br_map_transpose, 0, V, N, 0},
        {"transpose.int", br_map_transpose, 0, V, N, 0},
        {"swapaxes.default", br_map_transpose, 0, V, N, 0},
        {"t.default", br_map_transpose, 0, V, N, 0},
        {"numpy_T.default", br_map_transpose, 0, V, N, 0},
        {"expand.default", br_map_expand, 0, V, N, 0},
        {"detach.default", br_map_identity, 0, V, N, 0},
        {"alias.default", br_map_identity, 0, V, N, 0},
        {"contiguous.default", br_map_identity, 0, V, N, 0},
        {"clone.default", br_map_identity, 0, N, N, 0},
        {"lift_fresh_copy.default", br_map_identity, 0, N, N, 0},
        {"dropout.default", br_map_dropout, 0, V, N, 0},
        {"feature_dropout.default", br_map_dropout, 0, V, N, 0},
        {"native_dropout.default", br_map_dropout, 0, N, N, 0},
        {"to.dtype", br_map_cast, 0, V, N, 0},
        {"to.dtype_layout", br_map_cast, 0, V, N, 0},
        {"to.device", br_map_cast, 0, V, N, 0},
        {"_to_copy.default", br_map_cast, 0, N, N, 0},
        {"convert_element_type.default", br_map_cast, 0, V, N, 0},

        {"abs.default", br_map_unary, GB_OP_ABS, N, W, 0},
        {"exp.default", br_map_unary, GB_OP_EXP, N, W, 0},
        {"hardswish.default", br_map_unary, GB_OP_HARD_SWISH, N, W, 0},
        {"log.default", br_map_unary, GB_OP_LOG, N, W, 0},
        {"mish.default", br_map_unary, GB_OP_MISH, N, W, 0},
        {"reciprocal.default", br_map_unary, GB_OP_RECIPROCAL, N, W, 0},
        {"relu.default", br_map_unary, GB_OP_RELU, N, W, 0},
        {"round.default", br_map_unary, GB_OP_ROUND, N, W, 0},
        {"sigmoid.default", br_map_unary, GB_OP_SIGMOID, N, W, 0},
        {"sqrt.default", br_map_unary, GB_OP_SQRT, N, W, 0},
        {"square.default", br_map_unary, GB_OP_SQUARE, N, W, 0},
        {"tanh.default", br_map_unary, GB_OP_TANH, N, W, 0},
        {"gelu.default", br_map_gelu, GB_OP_GELU, N, W, 0},
        {"elu.default", br_map_elu, GB_OP_ELU, N, W, 0},
        {"leaky_relu.default", br_map_leaky_relu, GB_OP_LEAKY_RELU, N, W, 0},
        {"clamp.default", br_map_clamp, GB_OP_CLAMP, N, W, 0},
        {"clamp_min.default", br_map_clamp, GB_OP_CLAMP, N, W, 0},
        {"clamp_max.default", br_map_clamp, GB_OP_CLAMP, N, W, 0},
        {"hardtanh.default", br_map_hardtanh, GB_OP_CLAMP, N, W, 0},
        {"relu6.default", br_map_relu6, GB_OP_CLAMP, N, W, 0},
        {"hardsigmoid.default", br_map_hardsigmoid, GB_OP_HARD_SIGMOID, N, W, 0},
        {"softplus.default", br_map_softplus, GB_OP_SOFTPLUS, N, N, 0},
        {"silu.default", br_map_silu, 0, N, W, 0},
        {"neg.default", br_map_neg, 0, N, W, 0},
        {"pow.Tensor_Scalar", br_map_pow, 0, N, N, 0},
        {"rsqrt.default", br_map_rsqrt, GB_OP_POW, N, W, 0},

        {"add.Tensor", br_map_binary, GB_OP_ADD, N, W, 0},
        {"add.Scalar", br_map_binary, GB_OP_ADD, N, W, 0},
        {"sub.Tensor", br_map_binary, GB_OP_SUBTRACT, N, W, 0},
        {"sub.Scalar", br_map_binary, GB_OP_SUBTRACT, N, W, 0},
        {"mul.Tensor", br_map_binary, GB_OP_MULTIPLY, N, W, 0},
        {"mul.Scalar", br_map_binary, GB_OP_MULTIPLY, N, W, 0},
        {"div.Tensor", br_map_binary, GB_OP_DIVIDE, N, W, 0},
        {"div.Scalar", br_map_binary, GB_OP_DIVIDE, N, W, 0},
        {"rsub.Scalar", br_map_rsub, GB_OP_SUBTRACT, N, N, 0},
        {"rsub.Tensor", br_map_rsub, GB_OP_SUBTRACT, N, N, 0},
        {"maximum.default", br_map_extremum, GB_OP_MAXIMUM, N, N, 0},
        {"minimum.default", br_map_extremum, GB_OP_MINIMUM, N, N, 0},
        {"ge.Tensor", br_map_compare, GB_OP_GREATER_EQUAL, N, N, 0},
        {"ge.Scalar", br_map_compare, GB_OP_GREATER_EQUAL, N, N, 0},
        {"le.Tensor", br_map_compare, GB_OP_GREATER_EQUAL, N, N, 1 /* turned round */},
        {"le.Scalar", br_map_compare, GB_OP_GREATER_EQUAL, N, N, 1},
        {"gt.Tensor", br_map_other_comparison, 0, N, N, 0},
        {"gt.Scalar", br_map_other_comparison, 0, N, N, 0},
        {"lt.Tensor", br_map_other_comparison, 0, N, N, 0},
        {"lt.Scalar", br_map_other_comparison, 0, N, N, 0},
        {"eq.Tensor", br_map_other_comparison, 0, N, N, 0},
        {"eq.Scalar", br_map_other_comparison, 0, N, N, 0},
        {"ne.Tensor", br_map_other_comparison, 0, N, N, 0},
        {"ne.Scalar", br_map_other_comparison, 0, N, N, 0},
        {"where.self", br_map_where, GB_OP_SELECT, N, N, 0},
        {"where.ScalarOther", br_map_where, GB_OP_SELECT, N, N, 0},
        {"where.ScalarSelf", br_map_where, GB_OP_SELECT, N, N, 0},
        {"masked_fill.Scalar", br_map_masked_fill, GB_OP_SELECT, N, W, 0},
        {"masked_fill.Tensor", br_map_masked_fill, GB_OP_SELECT, N, W, 0},

        {"threshold_backward.default", br_map_threshold_backward, GB_OP_RELU_BACKWARD, N, N, 0},
        {"gelu_backward.default", br_map_gelu_backward, GB_OP_GELU_BACKWARD, N, N, 0},
        {"silu_backward.default", br_map_silu_backward, 0, N, N, 0},
        {"tanh_backward.default", br_map_result_backward, GB_OP_TANH_BACKWARD, N, N, 0},
        {"sigmoid_backward.default", br_map_result_backward, GB_OP_SIGMOID_BACKWARD, N, N, 0},
        {"hardtanh_backward.default", br_map_hardtanh_backward, GB_OP_CLAMP_BACKWARD, N, N, 0},
        {"hardswish_backward.default", br_map_source_backward, GB_OP_HARD_SWISH_BACKWARD, N, N, 0},
        {"mish_backward.default", br_map_source_backward, GB_OP_MISH_BACKWARD, N, N, 0},
        {"hardsigmoid_backward.default", br_map_hardsigmoid_backward, GB_OP_HARD_SIGMOID_BACKWARD,
                N, N, 0},
        {"softplus_backward.default", br_map_softplus_backward, GB_OP_SOFTPLUS_BACKWARD, N, N, 0},
        {"elu_backward.default", br_map_elu_backward, GB_OP_ELU_BACKWARD, N, N, 0},
        {"native_dropout_backward.default", br_map_dropout_backward, GB_OP_SELECT, N, N, 0},

        {"softmax.int", br_map_softmax, GB_OP_SOFTMAX, N, N, 0},
        {"_softmax.default", br_map_softmax, GB_OP_SOFTMAX, N, N, 0},
        {"_safe_softmax.default", br_map_softmax, GB_OP_SOFTMAX, N, N, 1 /* -inf as zero */},
        {"log_softmax.int", br_map_softmax, GB_OP_LOG_SOFTMAX, N, N, 0},
        {"_log_softmax.default", br_map_softmax, GB_OP_LOG_SOFTMAX, N, N, 0},
        {"_softmax_backward_data.default", br_map_softmax_backward, GB_OP_SOFTMAX_BACKWARD, N, N,
                0},
        {"_log_softmax_backward_data.default", br_map_softmax_backward, GB_OP_LOG_SOFTMAX_BACKWARD,
                N, N, 0},
        {"mean.dim", br_map_reduce, GB_OP_REDUCE_MEAN, N, N, 0},
        {"mean.default", br_map_reduce, GB_OP_REDUCE_MEAN, N, N, 0},
        {"sum.dim_IntList", br_map_reduce, GB_OP_REDUCE_SUM, N, N, 0},
        {"sum.default", br_map_reduce, GB_OP_REDUCE_SUM, N, N, 0},
        {"amax.default", br_map_reduce, GB_OP_REDUCE_MAX, N, N, 0},
        {"amin.default", br_map_reduce, GB_OP_REDUCE_MIN, N, N, 0},
        {"cat.default", br_map_cat, GB_OP_CONCAT, N, N, 0},

        {"mm.default", br_map_product, GB_OP_MATMUL, N, N, 2 /* "mat2" */},
        {"bmm.default", br_map_product, GB_OP_MATMUL, N, N, 2},
        {"matmul.default", br_map_product, GB_OP_MATMUL, N, N, 0},
        {"linear.default", br_map_linear, GB_OP_MATMUL, N, N, 0},
        {"addmm.default", br_map_addmm, GB_OP_MATMUL, N, N, 2},
        {"baddbmm.default", br_map_addmm, GB_OP_MATMUL, N, N, 3 /* "batch1" */},
        {"scaled_dot_product_attention.default", br_map_attention, 0, N, N, 0},
        {"_scaled_dot_product_flash_attention_for_cpu.default", br_map_attention, 0, N, N, 0},
        {"_scaled_dot_product_flash_attention_for_cpu_backward.default", br_map_attention_backward,
                0, N, N, 0},

        {"conv1d.default", br_map_conv, GB_OP_CONVOLUTION, N, N, 0},
        {"conv2d.default", br_map_conv, GB_OP_CONVOLUTION, N, N, 0},
        {"conv3d.default", br_map_conv, GB_OP_CONVOLUTION, N, N, 0},
        {"conv1d.padding", br_map_conv, GB_OP_CONVOLUTION, N, N, 0},
        {"conv2d.padding", br_map_conv, GB_OP_CONVOLUTION, N, N, 0},
        {"conv3d.padding", br_map_conv, GB_OP_CONVOLUTION, N, N, 0},
        {"convolution.default", br_map_conv, GB_OP_CONVOLUTION, N, N, 0},
        {"conv_transpose1d.default", br_map_conv, GB_OP_CONV_TRANSPOSE, N, N, 1 /* transposed */},
        {"conv_transpose2d.input", br_map_conv, GB_OP_CONV_TRANSPOSE, N, N, 1},
        {"conv_transpose3d.input", br_map_conv, GB_OP_CONV_TRANSPOSE, N, N, 1},
        {"convolution_backward.default", br_map_conv_backward, 0, N, N, 0},
        {"max_pool1d.default", br_map_max_pool, GB_OP_MAX_POOL, N, N, 1 /* spatial axes */},
        {"max_pool2d.default", br_map_max_pool, GB_OP_MAX_POOL, N, N, 2},
        {"max_pool3d.default", br_map_max_pool, GB_OP_MAX_POOL, N, N, 3},
        {"max_pool2d_with_indices.default", br_map_max_pool, GB_OP_MAX_POOL, N, N, 2},
        {"max_pool3d_with_indices.default", br_map_max_pool, GB_OP_MAX_POOL, N, N, 3},
        {"max_pool2d_with_indices_backward.default", br_map_max_pool_backward,
                GB_OP_MAX_POOL_BACKWARD, N, N, 2},
        {"max_pool3d_with_indices_backward.default", br_map_max_pool_backward,
                GB_OP_MAX_POOL_BACKWARD, N, N, 3},
        {"avg_pool1d.default", br_map_avg_pool, GB_OP_AVG_POOL, N, N, 1},
        {"avg_pool2d.default", br_map_avg_pool, GB_OP_AVG_POOL, N, N, 2},
        {"avg_pool3d.default", br_map_avg_pool, GB_OP_AVG_POOL, N, N, 3},
        {"avg_pool2d_backward.default", br_map_avg_pool_backward, GB_OP_AVG_POOL_BACKWARD, N, N, 2},
        {"adaptive_avg_pool1d.default", br_map_adaptive_avg_pool, GB_OP_AVG_POOL, N, N, 1},
        {"adaptive_avg_pool2d.default", br_map_adaptive_avg_pool, GB_OP_AVG_POOL, N, N, 2},
        {"_adaptive_avg_pool2d.default", br_map_adaptive_avg_pool, GB_OP_AVG_POOL, N, N, 2},

        {"upsample_nearest1d.default", br_map_upsample, GB_OP_INTERPOLATE, N, N, 0 /* nearest */},
        {"upsample_nearest2d.default", br_map_upsample, GB_OP_INTERPOLATE, N, N, 0},
        {"upsample_nearest3d.default", br_map_upsample, GB_OP_INTERPOLATE, N, N, 0},
        {"upsample_nearest1d.vec", br_map_upsample, GB_OP_INTERPOLATE, N, N, 0},
        {"upsample_nearest2d.vec", br_map_upsample, GB_OP_INTERPOLATE, N, N, 0},
        {"upsample_nearest3d.vec", br_map_upsample, GB_OP_INTERPOLATE, N, N, 0},
        {"upsample_linear1d.default", br_map_upsample, GB_OP_INTERPOLATE, N, N, 1 /* linear */},
        {"upsample_bilinear2d.default", br_map_upsample, GB_OP_INTERPOLATE, N, N, 1},
        {"upsample_trilinear3d.default", br_map_upsample, GB_OP_INTERPOLATE, N, N, 1},
        {"upsample_linear1d.vec", br_map_upsample, GB_OP_INTERPOLATE, N, N, 1},
        {"upsample_bilinear2d.vec", br_map_upsample, GB_OP_INTERPOLATE, N, N, 1},
        {"upsample_trilinear3d.vec", br_map_upsample, GB_OP_INTERPOLATE, N, N, 1},

        {"upsample_nearest1d_backward.default", br_map_nearest_backward, GB_OP_AVG_POOL, N, N, 1},
        {"upsample_nearest2d_backward.default", br_map_nearest_backward, GB_OP_AVG_POOL, N, N, 2},
        {"upsample_nearest3d_backward.default", br_map_nearest_backward, GB_OP_AVG_POOL, N, N, 3},

        {"upsample_linear1d_backward.default", br_map_linear_backward, GB_OP_INTERPOLATE_BACKWARD,
                N, N, 1},
        {"upsample_bilinear2d_backward.default", br_map_linear_backward, GB_OP_INTERPOLATE_BACKWARD,
                N, N, 2},
        {"upsample_trilinear3d_backward.default", br_map_linear_backward,
                GB_OP_INTERPOLATE_BACKWARD, N, N, 3},

        {"batch_norm.default", br_map_batch_norm, GB_OP_BATCH_NORM_INFERENCE, N, N, 0},
        {"_native_batch_norm_legit_no_training.default", br_map_batch_norm,
                GB_OP_BATCH_NORM_INFERENCE, N, N, 0},
        {"_native_batch_norm_legit_functional.default", br_map_batch_norm_training,
                GB_OP_BATCH_NORM_FORWARD_TRAINING, N, N, 0},
        {"native_batch_norm_backward.default", br_map_batch_norm_backward,
                GB_OP_BATCH_NORM_BACKWARD, N, N, 0},
        {"layer_norm.default", br_map_layer_norm, GB_OP_LAYER_NORM, N, N, 0},
        {"native_layer_norm.default", br_map_layer_norm, GB_OP_LAYER_NORM, N, N, 0},
        {"native_layer_norm_backward.default", br_map_layer_norm_backward,
                GB_OP_LAYER_NORM_BACKWARD, N, N, 0},
        {"group_norm.default", br_map_group_norm, GB_OP_GROUP_NORM, N, N, 0},
        {"native_group_norm.default", br_map_group_norm, GB_OP_GROUP_NORM, N, N, 1 /* "group" */},
        {"native_group_norm_backward.default", br_map_group_norm_backward, 0, N, N, 0},
        {"rms_norm.default", br_map_rms_norm, GB_OP_RMS_NORM, N, N, 0},
        {"_fused_rms_norm.default", br_map_rms_norm, GB_OP_RMS_NORM, N, N, 0},
};

const br_row *br_find_row(const br_node *node, bool *is_in_place)
{
    char name[96];
    const char *op = node->op;
    *is_in_place = false;
    if (strncmp(op, "aten.", 5) == 0)
        op += 5;
    else if (strncmp(op, "prims.", 6) == 0)
        op += 6;
    else
        return NULL;
    const char *dot = strchr(op, '.');
    size_t length = strlen(op);
    if (!dot || dot == op || length >= sizeof name)
        return NULL;
    memcpy(name, op, length + 1);
    if (dot[-1] == '_') {
        size_t at = (size_t)(dot - op);
        memmove(name + at - 1, name + at, length - at + 1);
        *is_in_place = true;
    }
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        if (strcmp(rows[i].op, name) == 0)
            return *is_in_place && !rows[i].may_be_written ? NULL : &rows[i];
    return NULL;
}
