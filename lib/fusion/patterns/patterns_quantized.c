/* Quantised forms: ops between Dequantize (or DynamicDequantize) of their operands and Quantize of
 * their result, with TypeCast in mixed precision. */
#include "fusion/patterns/pattern_nodes.h"

enum { MAX_CHAIN = 19 };

/* Nobody but one op reads the result. An optional side with other readers stays outside: its value
 * would escape. */
static bool accept_private(const gb_op *op, uint32_t input)
{
    (void)input;
    const gb_value *value = &op->graph->values[op->outputs[0]];
    for (uint32_t i = 1; i < value->n_uses; i++)
        if (value->uses[i].op != value->uses[0].op)
            return false;
    return true;
}

/* Weights may be quantised inside when they come from outside of the graph, or never change. */
static bool accept_weights(const gb_op *op, uint32_t input)
{
    const gb_value *value = &op->graph->values[op->inputs[0]];
    bool given = value->producer == GB_NONE ||
                 op->graph->ops[value->producer]->kind == GB_OP_WILDCARD ||
                 value->tensor.property == GB_PROPERTY_CONSTANT;
    return given && accept_private(op, input);
}

/* ------------------------------------------------------------------------------------- operands */

#define PRIVATE(name, kind, ...)                                                                   \
    NODE(name, KINDS(kind), .accept = accept_private, .sides = {__VA_ARGS__})

NODE(quantize, KINDS(GB_OP_QUANTIZE));
NODE(dequantize, KINDS(GB_OP_DEQUANTIZE), .accept = accept_private);
PRIVATE(cast_dequantize, GB_OP_TYPE_CAST, SIDE(0, &dequantize));
ALTERNATIVE(dequantized, &dequantize, &cast_dequantize);

NODE(weights_quantize, KINDS(GB_OP_QUANTIZE), .accept = accept_weights);
PRIVATE(weights_dequantize, GB_OP_DEQUANTIZE, MAYBE_SIDE(0, &weights_quantize));
PRIVATE(weights_cast, GB_OP_TYPE_CAST, SIDE(0, &weights_dequantize));
/* Weights of depthwise convolutions as frameworks write them: reshaped around the quantisation. */
NODE(weights_reshape, KINDS(GB_OP_STATIC_RESHAPE), .accept = accept_weights);
PRIVATE(reshaped_quantize, GB_OP_QUANTIZE, SIDE(0, &weights_reshape));
PRIVATE(reshaped_dequantize, GB_OP_DEQUANTIZE, SIDE(0, &reshaped_quantize));
PRIVATE(reshaped_back, GB_OP_STATIC_RESHAPE, SIDE(0, &reshaped_dequantize));
const gb_pattern_node gb_node_weights = {.form = GB_PATTERN_ALTERNATIVE,
        CHILDREN(&weights_dequantize, &weights_cast, &reshaped_back)};

NODE(dynamic_dequantize, KINDS(GB_OP_DYNAMIC_DEQUANTIZE), .accept = accept_private);
NODE(operand_cast, KINDS(GB_OP_TYPE_CAST), .accept = accept_private);

/* Tails ---------------------------------------------------------------------------------------- */

NODE(bias, KINDS(GB_OP_BIAS_ADD), .accept = gb_accept_bias,
        .sides = {MAYBE_SIDE(1, &operand_cast)});
OPTIONAL(maybe_bias, &bias);
NODE(sum, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_BINARY,
        .sides = {SIDE(GB_OTHER_INPUT, &dequantized)});
OPTIONAL(maybe_sum, &sum);
ALTERNATIVE(sum_or_post_op, &sum, &gb_node_post_op);
NODE(chain, .form = GB_PATTERN_REPEAT, .min = 0, .max = MAX_CHAIN, CHILDREN(&sum_or_post_op));
NODE(reshape, KINDS(GB_OP_STATIC_RESHAPE));
NODE(transpose, KINDS(GB_OP_STATIC_TRANSPOSE));
NODE(copy, KINDS(GB_OP_STATIC_RESHAPE, GB_OP_REORDER));
NODE(movement, KINDS(GB_OP_STATIC_RESHAPE, GB_OP_STATIC_TRANSPOSE));
OPTIONAL(maybe_reshape, &reshape);
OPTIONAL(maybe_copy, &copy);
OPTIONAL(maybe_movement, &movement);

/* Products and windows ------------------------------------------------------------------------- */

#define QUANTIZED_OPERANDS                                                                         \
    .sides = {SIDE(0, &dequantized), SIDE(1, &gb_node_weights), MAYBE_SIDE(2, &operand_cast)}

NODE(matmul, KINDS(GB_OP_MATMUL), QUANTIZED_OPERANDS);
/* Weights of few bits for a source that is not quantised. */
ALTERNATIVE(compressed_weights, &dynamic_dequantize, &gb_node_weights);
NODE(matmul_compressed, KINDS(GB_OP_MATMUL), .accept = gb_accept_at_0,
        .sides = {SIDE(1, &compressed_weights)});
ROOT(gb_root_compressed_matmul, &matmul_compressed, &maybe_bias, &gb_node_chain,
        &gb_node_maybe_select, &gb_node_maybe_cast, &gb_node_maybe_quantize);
ROOT(gb_root_compressed_matmul_moved, &matmul_compressed, &maybe_bias, &gb_node_maybe_cast,
        &maybe_reshape, &transpose, &maybe_copy);
NODE(convolution, KINDS(GB_OP_CONVOLUTION), QUANTIZED_OPERANDS);
NODE(conv_transpose, KINDS(GB_OP_CONV_TRANSPOSE), QUANTIZED_OPERANDS);
/* Behind the cast: a sum and the factor of smooth quantisation. */
ROOT(gb_root_quantized_matmul, &matmul, &maybe_bias, &maybe_sum, &chain, &gb_node_maybe_select,
        &gb_node_maybe_cast, &gb_node_binary_chain, &gb_node_maybe_quantize);
ROOT(gb_root_quantized_matmul_moved, &matmul, &maybe_bias, &maybe_reshape, &transpose, &maybe_copy,
        &gb_node_maybe_cast, &gb_node_maybe_quantize);
ROOT(gb_root_quantized_convolution, &convolution, &maybe_bias, &maybe_sum, &chain,
        &gb_node_maybe_cast, &gb_node_maybe_quantize);
ROOT(gb_root_quantized_conv_transpose, &conv_transpose, &maybe_bias, &maybe_sum, &chain,
        &gb_node_maybe_cast, &gb_node_maybe_quantize);

NODE(pool, KINDS(GB_OP_AVG_POOL, GB_OP_MAX_POOL), .sides = {SIDE(0, &dequantize)});
ROOT(gb_root_quantized_pool, &pool, &maybe_sum, &chain, &maybe_movement, &quantize);

/* Norms, softmax, movement --------------------------------------------------------------------- */

NODE(relu, KINDS(GB_OP_RELU));
OPTIONAL(maybe_relu, &relu);
NODE(batch_norm, KINDS(GB_OP_BATCH_NORM_INFERENCE), .sides = {SIDE(0, &dequantize)});
NODE(group_norm, KINDS(GB_OP_GROUP_NORM), .sides = {MAYBE_SIDE(0, &dequantize)});
NODE(layer_norm, KINDS(GB_OP_LAYER_NORM, GB_OP_RMS_NORM), .sides = {MAYBE_SIDE(0, &dequantize)});
NODE(softmax, KINDS(GB_OP_SOFTMAX), .sides = {MAYBE_SIDE(0, &dequantize)});
ROOT(gb_root_quantized_batch_norm, &batch_norm, &maybe_relu, &quantize);
ROOT(gb_root_quantized_group_norm, &group_norm, &gb_node_chain, &gb_node_maybe_cast, &gb_node_chain,
        &quantize);
ROOT(gb_root_quantized_layer_norm, &layer_norm, &gb_node_maybe_cast, &gb_node_chain, &quantize);
ROOT(gb_root_quantized_softmax, &softmax, &gb_node_chain, &gb_node_maybe_cast, &quantize);

NODE(concat, KINDS(GB_OP_CONCAT), .sides = {SIDE(GB_EVERY_INPUT, &dequantize)});
ROOT(gb_root_quantized_concat, &concat, &quantize);
NODE(plain_reorder, KINDS(GB_OP_REORDER));
NODE(reorder, KINDS(GB_OP_REORDER), .sides = {SIDE(0, &dequantize)});
NODE(add, KINDS(GB_OP_ADD));
NODE(add_dequantized, KINDS(GB_OP_ADD), .sides = {SIDE(GB_OTHER_INPUT, &dequantize)});
ROOT(gb_root_quantized_reorder_sum, &reorder, &add_dequantized, &quantize);
ROOT(gb_root_quantized_reorder, &reorder, &quantize);
ROOT(gb_root_reorder_add, &plain_reorder, &add);
NODE(cast, KINDS(GB_OP_TYPE_CAST));
ROOT(gb_root_cast_quantize, &cast, &quantize);
/* An element-wise chain whose operands are integers, or whose result is. */
NODE(elementwise, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_UNARY | GB_OP_FLAG_CHAIN_BINARY,
        .sides = {MAYBE_SIDE(0, &dequantized), MAYBE_SIDE(1, &dequantized)});
ROOT(gb_root_quantized_elementwise, &elementwise, &chain, &gb_node_maybe_cast, &quantize);

/* Attention ------------------------------------------------------------------------------------ */

NODE(keys_matmul, KINDS(GB_OP_MATMUL), .sides = {SIDE(0, &dequantized), SIDE(1, &dequantized)});
NODE(values_matmul, KINDS(GB_OP_MATMUL), .accept = gb_accept_at_0,
        .sides = {SIDE(1, &dequantized)});
NODE(mask_select, KINDS(GB_OP_SELECT), .accept = gb_accept_branch);
NODE(scale, KINDS(GB_OP_MULTIPLY, GB_OP_DIVIDE));
NODE(mask_add, KINDS(GB_OP_ADD));
SEQUENCE(masked_before_scale, &mask_select, &scale, &mask_add);
ALTERNATIVE(scores, &masked_before_scale, &gb_node_scores);
NODE(probabilities, KINDS(GB_OP_SOFTMAX));
NODE(probabilities_dequantize, KINDS(GB_OP_DEQUANTIZE));
SEQUENCE(requantized, &gb_node_maybe_cast, &quantize, &probabilities_dequantize,
        &gb_node_maybe_cast);
ROOT(gb_root_quantized_attention, &keys_matmul, &scores, &probabilities, &requantized,
        &values_matmul, &gb_node_maybe_heads_last, &gb_node_maybe_cast, &quantize);

NODE(compressed_matmul, KINDS(GB_OP_MATMUL), .accept = gb_accept_at_0,
        .sides = {SIDE(1, &dynamic_dequantize)});
NODE(plain_matmul, KINDS(GB_OP_MATMUL));
NODE(compressed_or_plain, KINDS(GB_OP_MATMUL), .accept = gb_accept_at_0,
        .sides = {MAYBE_SIDE(1, &dynamic_dequantize)});
ROOT(gb_root_compressed_keys, &compressed_matmul, &gb_node_scores, &probabilities,
        &gb_node_maybe_cast, &compressed_or_plain, &gb_node_maybe_heads_last);
ROOT(gb_root_compressed_values, &plain_matmul, &gb_node_scores, &probabilities, &gb_node_maybe_cast,
        &compressed_matmul, &gb_node_maybe_heads_last);

/* Gated MLP ------------------------------------------------------------------------------------ */

NODE(activation, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_UNARY);
OPTIONAL(maybe_activation, &activation);
NODE(gate, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_BINARY, .accept = gb_accept_gate,
        .sides = {SIDE(GB_OTHER_INPUT, &compressed_matmul)});
NODE(sigmoid, KINDS(GB_OP_SIGMOID));
NODE(swish_product, KINDS(GB_OP_MULTIPLY), .shared = true,
        .sides = {SIDE(GB_OTHER_INPUT, &sigmoid)});
FORK(swish, &swish_product);
ROOT(gb_root_compressed_mlp, &compressed_matmul, &maybe_activation, &gate, &gb_node_maybe_cast,
        &compressed_matmul);
ROOT(gb_root_compressed_mlp_swish, &compressed_matmul, &swish, &gate, &gb_node_maybe_cast,
        &compressed_matmul);
