/* Fusion of several anchors: attention, gated MLPs, residual stages. */
#include "fusion_words.h"

TestSuite(large, .init = open_case, .fini = close_case);

/* Attention ------------------------------------------------------------------------------------ */

Test(large, attention_with_scale_masks_and_tail)
{
    size_t x = OP(DIVIDE, OP(MATMUL, IN_OF(BF16), IN_OF(BF16)), IN());
    x = OP(SELECT, IN_OF(BOOLEAN), IN(), OP(ADD, x, IN()));
    x = OP_OF(BF16, TYPE_CAST, dropout(OP(SOFTMAX, x)));
    x = OP_OF(BF16, MATMUL, x, IN_OF(BF16));
    OP_OF(BF16, STATIC_RESHAPE, OP_OF(BF16, STATIC_TRANSPOSE, x));
    expect("attention[0 1 2 3 4 5 6 7 8 9]");
}

/* The scores where the row is not before the column, else a fill value. */
static size_t causal_mask(size_t scores, bool shifted)
{
    size_t row = OP_OF(S32, GEN_INDEX, scores);
    if (shifted)
        row = OP_OF(S32, SUBTRACT, OP_OF(S32, ADD, row, IN_OF(S32)), IN_OF(S32));
    size_t column = OP_OF(S32, GEN_INDEX, scores);
    return OP(SELECT, OP_OF(BOOLEAN, GREATER_EQUAL, row, column), scores, IN());
}

Test(large, attention_with_a_causal_mask)
{
    size_t x = OP(MULTIPLY, OP(MATMUL, IN(), IN()), IN());
    OP(MATMUL, OP(SOFTMAX, causal_mask(x, false)), IN());
    expect("attention[0 1 2 3 4 5 6 7]");
}

Test(large, attention_with_a_shifted_causal_mask)
{
    size_t x = OP(MATMUL, IN(), IN());
    OP(MATMUL, OP(SOFTMAX, causal_mask(x, true)), IN());
    expect("attention[0 1 2 3 4 5 6 7 8]");
}

Test(large, attention_with_soft_cap)
{
    size_t x = OP(MULTIPLY, OP(TANH, OP(DIVIDE, OP(MATMUL, IN(), IN()), IN())), IN());
    OP(MATMUL, OP(SOFTMAX, x), IN());
    expect("attention[0 1 2 3 4 5]");
}

Test(large, attention_keeps_its_statistics)
{
    size_t x = fusion_op_outputs(&c, GB_OP_SOFTMAX, 1, (const size_t[]){OP(MATMUL, IN(), IN())}, 2,
            (const gb_data_type[]){GB_F32, GB_F32});
    OP(MATMUL, x, IN());
    END(x + 1);
    expect("attention[0 1 2] single_op![3]");
}

Test(large, probabilities_read_elsewhere_are_no_attention)
{
    size_t x = OP(SOFTMAX, OP(MATMUL, IN(), IN()));
    OP(MATMUL, x, IN());
    END(x);
    expect("single_op[0] single_op[1] single_op[2] single_op![3]");
}

Test(large, attention_that_masks_before_it_scales)
{
    size_t x = OP(SELECT, IN_OF(BOOLEAN), OP(MATMUL, IN(), IN()), IN());
    x = OP(SOFTMAX, OP(ADD, OP(DIVIDE, x, IN()), IN()));
    OP(STATIC_RESHAPE, OP(STATIC_TRANSPOSE, OP(MATMUL, x, IN())));
    expect("attention_gpt[0 1 2 3 4 5 6 7]");
}

Test(large, attention_of_grouped_queries)
{
    size_t query = OP(STATIC_RESHAPE, IN()), key = OP(STATIC_RESHAPE, IN());
    size_t x = OP(SOFTMAX, OP(DIVIDE, OP(MATMUL, query, key), IN()));
    OP(STATIC_RESHAPE, OP(MATMUL, x, OP(STATIC_RESHAPE, IN())));
    expect("attention_gqa[0 1 2 3 4 5 6 7]");
}

Test(large, attention_with_probabilities_as_weights)
{
    size_t x = OP(SOFTMAX, OP(ADD, OP(DIVIDE, OP(MATMUL, IN(), IN()), IN()), IN()));
    x = OP(REORDER, OP(STATIC_TRANSPOSE, x));
    OP(REORDER, OP(STATIC_TRANSPOSE, OP(MATMUL, IN(), x)));
    expect("attention_mha[0 1 2 3 4 5 6 7 8]");
}

Test(large, attention_of_one_key_head)
{
    size_t x = OP(STATIC_TRANSPOSE, OP(STATIC_RESHAPE, OP(MATMUL, IN(), IN())));
    x = OP(STATIC_RESHAPE, OP(STATIC_TRANSPOSE, OP(SOFTMAX, OP(ADD, x, IN()))));
    OP(MATMUL, IN(), x);
    expect("attention_mqa[0 1 2 3 4 5 6 7]");
}

Test(large, gradients_of_attention)
{
    size_t query = IN(), key = IN(), gradient = IN();
    size_t scores = OP(MULTIPLY, OP(MATMUL, query, key), IN());
    size_t probabilities = OP(EXP, OP(SUBTRACT, scores, IN()));
    OP(MATMUL, probabilities, gradient);
    size_t correction = OP(REDUCE_SUM, OP(MULTIPLY, IN(), gradient));
    size_t x = OP(SUBTRACT, OP(MATMUL, gradient, IN()), correction);
    x = OP(MULTIPLY, OP(MULTIPLY, probabilities, x), IN());
    OP(MATMUL, x, key);
    OP(MATMUL, x, query);
    expect("attention_backward[0 1 2 3 4 5 6 7 8 9 10 11 12]");
}

Test(large, gated_product)
{
    size_t source = IN();
    size_t gate = OP(GELU, OP(MATMUL, source, IN())), up = OP(MATMUL, source, IN());
    OP(MATMUL, OP(MULTIPLY, gate, up), IN());
    expect("gated_mlp[0 1 2 3 4]");
}

Test(large, gated_product_with_swish)
{
    size_t source = IN();
    size_t gate = OP(MATMUL, source, IN()), up = OP(MATMUL, source, IN());
    OP(MATMUL, OP(MULTIPLY, OP(MULTIPLY, gate, OP(SIGMOID, gate)), up), IN());
    expect("gated_mlp_swish[0 1 2 3 4 5]");
}

Test(large, a_gate_needs_two_products_of_one_source)
{
    size_t source = IN();
    OP(MATMUL, source, IN()); /* a further product of the source */
    size_t gate = OP(GELU, OP(MATMUL, IN(), IN())), up = OP(MATMUL, source, IN());
    OP(MATMUL, OP(MULTIPLY, gate, up), IN());
    expect("single_op[0] matmul_post_ops[1 2] single_op[3] binary_matmul_binary[4 5]");
}

Test(large, binaries_around_a_matmul)
{
    size_t x = OP(ADD, OP(MULTIPLY, IN(), IN()), IN());
    x = OP(MATMUL, OP_OF(BF16, TYPE_CAST, x), IN_OF(BF16));
    OP(DIVIDE, x, IN());
    expect("binary_matmul_binary[0 1 2 3 4]");
}

/* Residual stages ------------------------------------------------------------------------------ */

static size_t bottleneck(size_t x, bool project)
{
    size_t y = OP(RELU, OP(CONVOLUTION, x, IN(), IN()));
    y = OP(RELU, OP(BIAS_ADD, OP(CONVOLUTION, y, IN()), IN()));
    y = OP(CONVOLUTION, y, IN(), IN());
    return OP(RELU, OP(ADD, y, project ? OP(CONVOLUTION, x, IN()) : x));
}

Test(large, blocks_that_add_their_source_are_a_stage)
{
    size_t x = bottleneck(IN(), true);
    bottleneck(bottleneck(x, false), false);
    expect_one("bottlenecks");
}

Test(large, a_projection_starts_another_stage)
{
    size_t x = bottleneck(bottleneck(IN(), true), false); /* ops 0 to 16 */
    bottleneck(bottleneck(x, true), false);
    expect("bottlenecks[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16] "
           "bottlenecks[17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33]");
}

Test(large, one_block_is_no_stage)
{
    bottleneck(IN(), true);
    expect("convolution_post_ops[0 1] convolution_post_ops[2 3 4] single_op[6] "
           "convolution_post_ops[5 7 8]");
}

Test(large, a_stage_ends_where_its_values_are_read_elsewhere)
{
    size_t x = bottleneck(bottleneck(IN(), true), false);
    END(x);
    bottleneck(x, false);
    expect("bottlenecks[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16] single_op![17] "
           "convolution_post_ops[18 19] convolution_post_ops[20 21 22] "
           "convolution_post_ops[23 24 25]");
}

Test(large, a_sum_with_something_else_is_no_block)
{
    size_t x = IN();
    for (int i = 0; i < 2; i++) {
        size_t y = OP(RELU, OP(CONVOLUTION, x, IN()));
        y = OP(CONVOLUTION, OP(RELU, OP(CONVOLUTION, y, IN())), IN());
        x = OP(RELU, OP(ADD, y, IN()));
    }
    expect("convolution_post_ops[0 1] convolution_post_ops[2 3] convolution_post_ops[4 5 6] "
           "convolution_post_ops[7 8] convolution_post_ops[9 10] convolution_post_ops[11 12 13]");
}

/* Between integers: `shared`, when all readers of the source share one Dequantize. */
static size_t int_conv(size_t x, bool relu)
{
    x = OP(BIAS_ADD, OP(CONVOLUTION, x, OP(DEQUANTIZE, IN_OF(S8))), IN());
    return relu ? OP_OF(U8, QUANTIZE, OP(RELU, x)) : x;
}

static size_t int_block(size_t x, int n, bool project, bool shared)
{
    size_t source = OP(DEQUANTIZE, x);
    size_t y = int_conv(source, true);
    for (int i = 2; i < n; i++)
        y = int_conv(OP(DEQUANTIZE, y), true);
    y = int_conv(OP(DEQUANTIZE, y), false);
    size_t other = shared ? source : OP(DEQUANTIZE, x);
    if (project)
        other = OP(DEQUANTIZE, OP_OF(S8, QUANTIZE, int_conv(other, false)));
    return OP_OF(U8, QUANTIZE, OP(RELU, OP(ADD, y, other)));
}

Test(large, stages_between_integers)
{
    int_block(int_block(IN_OF(U8), 3, true, false), 3, false, false);
    expect_one("quantized_bottlenecks");
}

Test(large, stages_whose_readers_share_one_dequantize)
{
    int_block(int_block(IN_OF(U8), 3, true, true), 3, false, true);
    expect_one("quantized_bottlenecks");
}

Test(large, stages_of_blocks_of_two_convolutions)
{
    int_block(int_block(int_block(IN_OF(U8), 2, false, false), 2, false, true), 2, false, false);
    expect_one("quantized_basic_blocks");
}

Test(large, an_integer_block_that_others_read_ends_the_stage)
{
    size_t x = int_block(IN_OF(U8), 2, false, true);
    END(x);
    int_block(x, 2, false, true);
    gb_partitioning *partitioning;
    fusion_ok(gb_graph_finalize(c.graph));
    fusion_ok(gb_partition_graph(c.graph, GB_POLICY_FUSION, &fusion_capability, &partitioning));
    for (uint32_t i = 0; i < partitioning->n_parts; i++)
        cr_expect_str_neq(partitioning->parts[i].pattern, "quantized_basic_blocks");
    gb_partitioning_free(partitioning);
}

/* Blocks of three convolutions, the second in groups; each starts with a projection. */
static size_t grouped_block(size_t x, int64_t groups)
{
    size_t y = int_conv(OP(DEQUANTIZE, x), true);
    y = int_conv(OP(DEQUANTIZE, y), true);
    gb_op *middle = c.graph->ops[c.n_ops - 4]; /* before bias, ReLU and Quantize */
    cr_assert_eq(middle->kind, GB_OP_CONVOLUTION);
    fusion_ok(gb_op_set_attr_s64(middle, GB_ATTR_GROUPS, 1, &groups));
    y = int_conv(OP(DEQUANTIZE, y), false);
    size_t other = OP_OF(S8, QUANTIZE, int_conv(OP(DEQUANTIZE, x), false));
    return OP_OF(U8, QUANTIZE, OP(RELU, OP(ADD, y, OP(DEQUANTIZE, other))));
}

Test(large, all_stages_of_grouped_blocks_are_one)
{
    grouped_block(grouped_block(IN_OF(U8), 4), 4);
    expect_one("quantized_grouped_bottlenecks");
}

Test(large, stages_of_blocks_without_groups_are_apart)
{
    grouped_block(grouped_block(IN_OF(U8), 1), 1);
    gb_partitioning *partitioning;
    fusion_ok(gb_graph_finalize(c.graph));
    fusion_ok(gb_partition_graph(c.graph, GB_POLICY_FUSION, &fusion_capability, &partitioning));
    for (uint32_t i = 0; i < partitioning->n_parts; i++)
        cr_expect_str_eq(partitioning->parts[i].pattern, "quantized_convolution");
    gb_partitioning_free(partitioning);
}

Test(large, sixteen_bit_blocks_are_no_stage)
{
    size_t x = IN_OF(BF16);
    for (int i = 0; i < 2; i++) {
        size_t y = OP_OF(BF16, RELU, OP_OF(BF16, CONVOLUTION, x, IN_OF(BF16)));
        y = OP_OF(BF16, RELU, OP_OF(BF16, CONVOLUTION, y, IN_OF(BF16)));
        y = OP_OF(BF16, CONVOLUTION, y, IN_OF(BF16));
        x = OP_OF(BF16, RELU, OP_OF(BF16, ADD, y, x));
    }
    expect("convolution_post_ops[0 1] convolution_post_ops[2 3] convolution_post_ops[4 5 6] "
           "convolution_post_ops[7 8] convolution_post_ops[9 10] convolution_post_ops[11 12 13]");
}
