/* Fusion of quantised graphs: which ops between Dequantize and Quantize are one partition. */
#include "fusion_words.h"

TestSuite(quantized, .init = open_case, .fini = close_case);

#define DEQUANTIZED()  OP(DEQUANTIZE, IN_OF(S8))
#define INTEGERS(x)    OP_OF(U8, QUANTIZE, x)
#define NARROW(x)      OP_OF(BF16, TYPE_CAST, x)
#define WIDE(x)        OP_OF(F32, TYPE_CAST, x)
#define COMPRESSED(to) OP_OF(to, DYNAMIC_DEQUANTIZE, IN_OF(S8), IN_OF(to))

/* Products and windows ------------------------------------------------------------------------- */

Test(quantized, convolution_with_bias_and_chain)
{
    size_t x = OP(BIAS_ADD, OP(CONVOLUTION, DEQUANTIZED(), DEQUANTIZED()), IN());
    INTEGERS(OP(TANH, OP(RELU, x)));
    expect_one("quantized_convolution");
}

Test(quantized, convolution_with_a_sum_of_its_own_scale)
{
    size_t x = OP(CONVOLUTION, DEQUANTIZED(), DEQUANTIZED(), IN());
    INTEGERS(OP(RELU, OP(ADD, DEQUANTIZED(), x)));
    expect_one("quantized_convolution");
}

Test(quantized, the_sum_comes_before_a_whole_chain)
{
    size_t x = OP(ADD, OP(CONV_TRANSPOSE, DEQUANTIZED(), DEQUANTIZED()), DEQUANTIZED());
    for (int i = 0; i < 19; i++)
        x = OP(RELU, x);
    INTEGERS(x);
    expect_one("quantized_conv_transpose");
}

Test(quantized, weights_quantised_inside)
{
    size_t weights = OP(DEQUANTIZE, OP_OF(S8, QUANTIZE, IN()));
    OP(RELU, OP(CONVOLUTION, DEQUANTIZED(), weights));
    expect_one("quantized_convolution");
}

Test(quantized, computed_weights_are_quantised_apart)
{
    size_t weights = OP_OF(S8, QUANTIZE, OP(SOFTMAX, IN())); /* 0, 1 */
    INTEGERS(OP(MATMUL, DEQUANTIZED(), OP(DEQUANTIZE, weights)));
    expect("quantized_softmax[0 1] quantized_matmul[2 3 4 5]");
}

Test(quantized, weights_reshaped_around_their_quantisation)
{
    size_t weights = OP(DEQUANTIZE, OP_OF(S8, QUANTIZE, OP(STATIC_RESHAPE, IN())));
    size_t x = OP(CONVOLUTION, DEQUANTIZED(), OP(STATIC_RESHAPE, weights));
    INTEGERS(OP(BIAS_ADD, x, IN()));
    expect_one("quantized_convolution");
}

Test(quantized, convolution_in_mixed_precision)
{
    size_t x = OP_OF(BF16, CONVOLUTION, NARROW(DEQUANTIZED()), NARROW(DEQUANTIZED()));
    x = OP_OF(BF16, BIAS_ADD, x, NARROW(IN()));
    x = OP_OF(BF16, ADD, x, NARROW(DEQUANTIZED()));
    INTEGERS(WIDE(OP_OF(BF16, RELU, x)));
    expect_one("quantized_convolution");
}

Test(quantized, a_float_source_leaves_the_weights_alone)
{
    OP(RELU, OP(CONVOLUTION, IN(), DEQUANTIZED()));
    expect("single_op[0] convolution_post_ops[1 2]");
}

Test(quantized, an_operand_that_others_read_stays_outside)
{
    size_t source = DEQUANTIZED();
    INTEGERS(OP(MATMUL, source, DEQUANTIZED()));
    OP(RELU, source);
    expect("single_op[0] compressed_matmul[1 2 3] single_op[4]");
}

Test(quantized, a_result_that_others_read_is_not_quantised_inside)
{
    size_t x = OP(RELU, OP(CONVOLUTION, DEQUANTIZED(), DEQUANTIZED()));
    INTEGERS(x);
    OP(MAX_POOL, x);
    expect("quantized_convolution[0 1 2 3] single_op[4] single_op[5]");
}

Test(quantized, transposed_convolution)
{
    size_t x = OP(BIAS_ADD, OP(CONV_TRANSPOSE, DEQUANTIZED(), DEQUANTIZED()), IN());
    INTEGERS(OP(RELU, OP(ADD, x, DEQUANTIZED())));
    expect_one("quantized_conv_transpose");
}

Test(quantized, matmul_with_bias_chain_and_select)
{
    size_t x = OP(BIAS_ADD, OP(MATMUL, DEQUANTIZED(), DEQUANTIZED()), IN());
    INTEGERS(OP(SELECT, IN_OF(BOOLEAN), IN(), OP(GELU, x)));
    expect_one("quantized_matmul");
}

Test(quantized, matmul_with_a_sum_of_its_own_scale)
{
    size_t x = OP(ADD, OP(MATMUL, DEQUANTIZED(), DEQUANTIZED(), IN()), DEQUANTIZED());
    INTEGERS(OP(RELU, x));
    expect_one("quantized_matmul");
}

Test(quantized, matmul_with_a_factor_behind_the_cast)
{
    size_t x = OP_OF(BF16, MATMUL, NARROW(DEQUANTIZED()), NARROW(DEQUANTIZED()));
    x = OP(ADD, WIDE(OP_OF(BF16, GELU, x)), IN());
    INTEGERS(OP(DIVIDE, x, IN()));
    expect_one("quantized_matmul");
}

Test(quantized, matmul_with_moved_axes)
{
    size_t x = OP(STATIC_RESHAPE, OP(MATMUL, DEQUANTIZED(), DEQUANTIZED(), IN()));
    INTEGERS(OP(STATIC_TRANSPOSE, x));
    expect_one("quantized_matmul_moved");
}

Test(quantized, mixed_matmul_with_moved_axes)
{
    size_t x = OP_OF(BF16, MATMUL, NARROW(DEQUANTIZED()), NARROW(DEQUANTIZED()));
    INTEGERS(WIDE(OP_OF(BF16, REORDER, OP_OF(BF16, STATIC_TRANSPOSE, x))));
    expect_one("quantized_matmul_moved");
}

Test(quantized, matmul_with_compressed_weights)
{
    OP(RELU, OP(BIAS_ADD, OP(MATMUL, IN(), COMPRESSED(F32)), IN()));
    INTEGERS(OP(MATMUL, IN(), DEQUANTIZED()));
    OP(STATIC_TRANSPOSE, OP(STATIC_RESHAPE, OP(MATMUL, IN(), COMPRESSED(F32))));
    expect("compressed_matmul[0 1 2 3] compressed_matmul[4 5 6] compressed_matmul_moved[7 8 9 10]");
}

Test(quantized, weights_that_two_products_read_are_made_before)
{
    size_t weights = COMPRESSED(F32);
    OP(MATMUL, IN(), weights);
    OP(RELU, OP(MATMUL, IN(), weights));
    expect("single_op[0] single_op[1] matmul_post_ops[2 3]");
}

Test(quantized, a_compressed_source_is_made_before)
{
    OP(RELU, OP(MATMUL, COMPRESSED(F32), IN()));
    expect("single_op[0] matmul_post_ops[1 2]");
}

/* Pools, movement, norms ----------------------------------------------------------------------- */

Test(quantized, pool_with_chain_or_movement)
{
    INTEGERS(OP(ADD, OP(AVG_POOL, DEQUANTIZED()), DEQUANTIZED()));
    INTEGERS(OP(STATIC_RESHAPE, OP(MAX_POOL, DEQUANTIZED())));
    expect("quantized_pool[0 1 2 3 4] quantized_pool[5 6 7 8]");
}

Test(quantized, a_pool_without_quantize_is_alone)
{
    OP(STATIC_RESHAPE, OP(MAX_POOL, DEQUANTIZED()));
    expect("single_op[0] single_op[1] single_op[2]");
}

Test(quantized, norms_between_integers)
{
    INTEGERS(OP(RELU, OP(BATCH_NORM_INFERENCE, DEQUANTIZED(), IN(), IN(), IN(), IN())));
    INTEGERS(OP(MULTIPLY, OP(LAYER_NORM, IN()), IN()));
    INTEGERS(WIDE(OP_OF(BF16, GROUP_NORM, IN_OF(BF16))));
    INTEGERS(OP(RMS_NORM, IN()));
    INTEGERS(OP(MULTIPLY, OP(SOFTMAX, IN()), IN()));
    expect("quantized_batch_norm[0 1 2 3] quantized_layer_norm[4 5 6] "
           "quantized_group_norm[7 8 9] quantized_layer_norm[10 11] quantized_softmax[12 13 14]");
}

Test(quantized, a_batch_norm_of_floats_is_not_quantised_inside)
{
    INTEGERS(OP(BATCH_NORM_INFERENCE, IN(), IN(), IN(), IN(), IN()));
    expect("single_op[0] single_op[1]");
}

Test(quantized, concat_of_integers)
{
    INTEGERS(OP(CONCAT, DEQUANTIZED(), DEQUANTIZED(), DEQUANTIZED()));
    expect_one("quantized_concat");
}

Test(quantized, concat_with_a_float_is_none_of_integers)
{
    INTEGERS(OP(CONCAT, DEQUANTIZED(), IN()));
    expect("single_op[0] single_op[1] single_op[2]");
}

Test(quantized, reorder_of_integers)
{
    INTEGERS(OP(REORDER, DEQUANTIZED()));
    INTEGERS(OP(ADD, DEQUANTIZED(), OP(REORDER, DEQUANTIZED())));
    expect("quantized_reorder[0 1 2] quantized_reorder_sum[3 4 5 6 7]");
}

Test(quantized, casts_join_quantize_but_not_dequantize)
{
    INTEGERS(WIDE(IN_OF(BF16)));
    NARROW(DEQUANTIZED());
    expect("cast_quantize[0 1] single_op[2] single_op[3]");
}

/* Floating types with integer results ---------------------------------------------------------- */

Test(quantized, float_anchors_end_in_integers)
{
    INTEGERS(OP(RELU, OP(MATMUL, IN(), IN())));
    INTEGERS(OP(CONVOLUTION, IN(), IN()));
    INTEGERS(OP(RELU, OP(CONV_TRANSPOSE, IN(), IN())));
    INTEGERS(OP(AVG_POOL, IN()));
    INTEGERS(OP(ABS, OP(REDUCE_SUM, IN())));
    INTEGERS(OP(INTERPOLATE, IN()));
    expect("matmul_post_ops[0 1 2] convolution_post_ops[3 4] conv_transpose_post_ops[5 6 7] "
           "pool_post_ops[8 9] reduction_post_ops[10 11 12] interpolate_post_ops[13 14]");
}

Test(quantized, elementwise_ops_between_integers)
{
    INTEGERS(OP(RELU, OP(ADD, DEQUANTIZED(), DEQUANTIZED())));
    INTEGERS(OP(SQRT, IN()));
    size_t x = OP(ADD, IN(), IN());
    INTEGERS(OP(MULTIPLY, OP(SIGMOID, x), x));
    expect("quantized_elementwise[0 1 2 3 4] quantized_elementwise[5 6] "
           "quantized_elementwise[7 8 9 10]");
}

Test(quantized, elementwise_ops_with_float_results_leave_dequantize)
{
    OP(RELU, OP(ADD, DEQUANTIZED(), DEQUANTIZED()));
    expect("single_op[0] single_op[1] elementwise_post_ops[2 3]");
}

Test(quantized, a_value_read_as_float_and_integer_ends_the_chain)
{
    size_t x = OP(RELU, OP(MATMUL, IN(), IN()));
    INTEGERS(x);
    OP(SOFTMAX, x);
    expect("matmul_post_ops[0 1] single_op[2] single_op[3]");
}

/* Attention and gated MLP ---------------------------------------------------------------------- */

static size_t requantized(size_t x)
{
    return OP(DEQUANTIZE, OP_OF(S8, QUANTIZE, x));
}

Test(quantized, attention_between_integers)
{
    size_t x = OP(DIVIDE, OP(MATMUL, DEQUANTIZED(), DEQUANTIZED()), IN());
    x = OP(SELECT, IN_OF(BOOLEAN), OP(ADD, x, IN()), IN());
    x = OP(MATMUL, requantized(OP(SOFTMAX, x)), DEQUANTIZED());
    INTEGERS(OP(STATIC_RESHAPE, OP(STATIC_TRANSPOSE, x)));
    expect_one("quantized_attention");
}

Test(quantized, attention_that_masks_before_it_scales)
{
    size_t x = OP(MATMUL, DEQUANTIZED(), DEQUANTIZED());
    x = OP(DIVIDE, OP(SELECT, IN_OF(BOOLEAN), x, IN()), IN());
    x = requantized(OP(SOFTMAX, OP(ADD, x, IN())));
    INTEGERS(OP(STATIC_RESHAPE, OP(STATIC_TRANSPOSE, OP(MATMUL, x, DEQUANTIZED()))));
    expect_one("quantized_attention");
}

Test(quantized, attention_in_mixed_precision)
{
    size_t x = OP_OF(BF16, MATMUL, NARROW(DEQUANTIZED()), NARROW(DEQUANTIZED()));
    x = NARROW(requantized(WIDE(OP_OF(BF16, SOFTMAX, x))));
    x = OP_OF(BF16, MATMUL, x, NARROW(DEQUANTIZED()));
    INTEGERS(WIDE(OP_OF(BF16, REORDER, OP_OF(BF16, STATIC_TRANSPOSE, x))));
    expect_one("quantized_attention");
}

Test(quantized, attention_with_float_values_is_cut)
{
    size_t x = OP(SOFTMAX, OP(MATMUL, DEQUANTIZED(), DEQUANTIZED()));
    OP(MATMUL, requantized(x), IN());
    expect("quantized_matmul[0 1 2] quantized_softmax[3 4] single_op[5] single_op[6]");
}

Test(quantized, attention_over_compressed_keys)
{
    size_t x = OP(ADD, OP(MULTIPLY, OP(MATMUL, IN(), COMPRESSED(F32)), IN()), IN());
    OP(MATMUL, OP(SOFTMAX, x), IN());
    expect_one("attention_compressed_keys");
}

Test(quantized, attention_over_compressed_values)
{
    OP(MATMUL, OP(SOFTMAX, OP(MATMUL, IN(), IN())), COMPRESSED(F32));
    expect_one("attention_compressed_values");
}

Test(quantized, attention_over_compressed_keys_and_values)
{
    size_t x = OP_OF(F16, SOFTMAX, OP(MATMUL, IN_OF(F16), COMPRESSED(F16)));
    OP_OF(F16, MATMUL, x, COMPRESSED(F16));
    expect_one("attention_compressed_keys");
}

Test(quantized, compressed_keys_that_others_read_stay_outside)
{
    size_t keys = COMPRESSED(F32);
    OP(MATMUL, OP(SOFTMAX, OP(MATMUL, IN(), keys)), IN());
    END(keys);
    expect("single_op[0] attention[1 2 3] single_op![4]");
}

Test(quantized, gated_product_of_compressed_weights)
{
    size_t x = IN();
    size_t gate = OP(MATMUL, x, COMPRESSED(F32)), up = OP(MATMUL, x, COMPRESSED(F32));
    OP(MATMUL, OP(MULTIPLY, OP(GELU, gate), up), COMPRESSED(F32));
    expect_one("gated_mlp_compressed");
}

Test(quantized, gated_product_of_compressed_weights_with_swish)
{
    size_t x = IN_OF(F16);
    size_t gate = OP(MATMUL, x, COMPRESSED(F16)), up = OP(MATMUL, x, COMPRESSED(F16));
    gate = OP(MULTIPLY, gate, OP(SIGMOID, gate));
    OP(MATMUL, OP_OF(F16, TYPE_CAST, OP(MULTIPLY, gate, up)), COMPRESSED(F16));
    expect_one("gated_mlp_compressed_swish");
}

Test(quantized, one_plain_weight_is_no_compressed_mlp)
{
    size_t x = IN();
    size_t gate = OP(MATMUL, x, COMPRESSED(F32)), up = OP(MATMUL, x, COMPRESSED(F32));
    OP(MATMUL, OP(MULTIPLY, OP(GELU, gate), up), IN());
    expect("single_op[0] single_op[2] gated_mlp[1 3 4 5 6]");
}

/* Several partitions --------------------------------------------------------------------------- */

Test(quantized, a_block_of_a_quantised_transformer)
{
    size_t x = IN();                                                          /* 0 */
    size_t y = OP_OF(S8, QUANTIZE, OP(LAYER_NORM, x));                        /* ops 0, 1 */
    size_t up = OP(MATMUL, OP(DEQUANTIZE, y), DEQUANTIZED(), IN());           /* 2 to 4 */
    size_t inner = OP_OF(S8, QUANTIZE, OP(GELU, up));                         /* 5, 6 */
    size_t down = OP(MATMUL, OP(DEQUANTIZE, inner), DEQUANTIZED(), IN());     /* 7 to 9 */
    OP(LAYER_NORM, OP(ADD, down, OP(DEQUANTIZE, OP_OF(S8, QUANTIZE, IN())))); /* 10 to 13 */
    expect("quantized_layer_norm[0 1] quantized_matmul[2 3 4 5 6] single_op[10] "
           "quantized_matmul[7 8 9 11 12] single_op[13]");
}
