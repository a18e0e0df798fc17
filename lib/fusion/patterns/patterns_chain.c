/* Post-op chains behind every anchor. P is a unary or binary op of the chain sets, or the swish
 * pair x * sigmoid(x). */
#include "fusion/patterns/pattern_nodes.h"

/* Chains are at most this long in the catalogue. */
enum { MAX_CHAIN = 19 };

bool gb_accept_at_0(const gb_op *op, uint32_t input)
{
    (void)op;
    return input == 0;
}

bool gb_accept_at_1(const gb_op *op, uint32_t input)
{
    (void)op;
    return input == 1;
}

bool gb_accept_branch(const gb_op *op, uint32_t input)
{
    (void)op;
    return input == 1 || input == 2;
}

/* Joins as the flow's receiver only, and only when the anchor has no bias of its own. */
bool gb_accept_bias(const gb_op *op, uint32_t input)
{
    uint32_t producer = op->graph->values[op->inputs[0]].producer;
    return input == 0 && producer != GB_NONE && op->graph->ops[producer]->n_inputs == 2;
}

NODE(unary, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_UNARY);
NODE(any_post_op, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_UNARY | GB_OP_FLAG_CHAIN_BINARY);
NODE(swish_product, .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_BINARY, .shared = true,
        .sides = {SIDE(GB_OTHER_INPUT, &unary)});
FORK(swish, &swish_product);
const gb_pattern_node gb_node_post_op = {
        .form = GB_PATTERN_ALTERNATIVE, CHILDREN(&any_post_op, &swish)};
/* Convolutions take both and the chain. */
SEQUENCE(post_op_and_swish, &gb_node_post_op, &swish);
OPTIONAL(maybe_post_op_and_swish, &post_op_and_swish);
const gb_pattern_node gb_node_binary = {.form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_BINARY};
const gb_pattern_node gb_node_chain = {
        .form = GB_PATTERN_REPEAT, .min = 0, .max = MAX_CHAIN, CHILDREN(&gb_node_post_op)};
const gb_pattern_node gb_node_chain_of_one = {
        .form = GB_PATTERN_REPEAT, .min = 1, .max = MAX_CHAIN, CHILDREN(&gb_node_post_op)};
const gb_pattern_node gb_node_binary_chain = {
        .form = GB_PATTERN_REPEAT, .min = 0, .max = MAX_CHAIN, CHILDREN(&gb_node_binary)};

NODE(cast, KINDS(GB_OP_TYPE_CAST));
NODE(quantize, KINDS(GB_OP_QUANTIZE));
const gb_pattern_node gb_node_maybe_quantize = {.form = GB_PATTERN_OPTIONAL, CHILDREN(&quantize)};
SEQUENCE(post_ops, &gb_node_chain_of_one, &gb_node_maybe_quantize);
ALTERNATIVE(post_ops_or_quantize, &post_ops, &quantize);
NODE(bias, KINDS(GB_OP_BIAS_ADD), .accept = gb_accept_bias);
NODE(batch_norm_at_0, KINDS(GB_OP_BATCH_NORM_INFERENCE), .accept = gb_accept_at_0);
NODE(select, KINDS(GB_OP_SELECT), .accept = gb_accept_branch);
const gb_pattern_node gb_node_maybe_cast = {.form = GB_PATTERN_OPTIONAL, CHILDREN(&cast)};
OPTIONAL(maybe_bias, &bias);
OPTIONAL(maybe_batch_norm, &batch_norm_at_0);
const gb_pattern_node gb_node_maybe_select = {.form = GB_PATTERN_OPTIONAL, CHILDREN(&select)};

NODE(matmul, KINDS(GB_OP_MATMUL));
NODE(convolution, KINDS(GB_OP_CONVOLUTION));
NODE(conv_transpose, KINDS(GB_OP_CONV_TRANSPOSE));
NODE(pool, KINDS(GB_OP_AVG_POOL, GB_OP_MAX_POOL));
NODE(reduction, KINDS(GB_OP_REDUCE_L1, GB_OP_REDUCE_L2, GB_OP_REDUCE_MAX, GB_OP_REDUCE_MEAN,
                        GB_OP_REDUCE_MIN, GB_OP_REDUCE_PROD, GB_OP_REDUCE_SUM));
NODE(interpolate, KINDS(GB_OP_INTERPOLATE));
NODE(softmax, KINDS(GB_OP_SOFTMAX));
NODE(layer_norm, KINDS(GB_OP_LAYER_NORM, GB_OP_RMS_NORM));
NODE(group_norm, KINDS(GB_OP_GROUP_NORM));
NODE(batch_norm, KINDS(GB_OP_BATCH_NORM_INFERENCE, GB_OP_BATCH_NORM_FORWARD_TRAINING));
NODE(relu, KINDS(GB_OP_RELU));
NODE(dropout, KINDS(GB_OP_DROPOUT), .accept = gb_accept_at_0);
NODE(reshape, KINDS(GB_OP_STATIC_RESHAPE));
NODE(copy, KINDS(GB_OP_STATIC_RESHAPE, GB_OP_REORDER));
OPTIONAL(maybe_reshape, &reshape);
OPTIONAL(maybe_copy, &copy);
NODE(transpose, KINDS(GB_OP_STATIC_TRANSPOSE));

/* All spatial sizes of the filter are `size`. */
static bool has_filter(const gb_op *op, int64_t size)
{
    const gb_logical_tensor *weights = gb_op_input(op, 1);
    if (weights->ndims < 3)
        return false;
    int axes[GB_MAX_NDIMS];
    gb_weights_axes(op, weights->ndims, axes);
    for (int d = 2; d < weights->ndims; d++)
        if (weights->dims[axes[d]] != size)
            return false;
    return true;
}

static bool accept_pointwise(const gb_op *op, uint32_t input)
{
    (void)input;
    return has_filter(op, 1);
}

static bool accept_depthwise(const gb_op *op, uint32_t input)
{
    return input == 0 && has_filter(op, 3);
}

NODE(pointwise, KINDS(GB_OP_CONVOLUTION), .accept = accept_pointwise);
NODE(depthwise, KINDS(GB_OP_CONVOLUTION), .accept = accept_depthwise);
ROOT(gb_root_depthwise_pair, &pointwise, &maybe_bias, &gb_node_chain, &depthwise, &maybe_bias,
        &gb_node_chain);
ROOT(gb_root_matmul_dropout, &matmul, &dropout);
ROOT(gb_root_unary_dropout, &unary, &dropout);
/* Quantize ends any chain: the result leaves as integers instead of being read once more. */
ROOT(gb_root_matmul, &matmul, &maybe_bias, &gb_node_chain, &gb_node_maybe_select,
        &gb_node_maybe_cast, &gb_node_maybe_quantize);
/* The product with its axes in another order, as heads of attention are split and joined. */
ROOT(gb_root_matmul_moved, &matmul, &maybe_bias, &gb_node_maybe_cast, &maybe_reshape, &transpose,
        &maybe_copy);
ROOT(gb_root_convolution, &convolution, &maybe_bias, &maybe_batch_norm, &maybe_post_op_and_swish,
        &gb_node_chain, &gb_node_maybe_cast, &gb_node_maybe_quantize);
ROOT(gb_root_conv_transpose, &conv_transpose, &maybe_bias, &gb_node_chain, &gb_node_maybe_quantize);
ROOT(gb_root_pool, &pool, &post_ops_or_quantize);
ROOT(gb_root_batch_norm, &batch_norm, &relu);
NODE(relu_backward, KINDS(GB_OP_RELU_BACKWARD));

/* As either of the large operands. */
static bool accept_data(const gb_op *op, uint32_t input)
{
    (void)op;
    return input <= 1;
}

NODE(batch_norm_backward, KINDS(GB_OP_BATCH_NORM_BACKWARD), .accept = accept_data);
ROOT(gb_root_batch_norm_backward, &relu_backward, &batch_norm_backward);
ROOT(gb_root_reduction, &reduction, &post_ops_or_quantize);
ROOT(gb_root_interpolate, &interpolate, &post_ops_or_quantize);
ROOT(gb_root_elementwise, &any_post_op, &gb_node_chain_of_one);
NODE(reciprocal, KINDS(GB_OP_RECIPROCAL));
NODE(multiply, KINDS(GB_OP_MULTIPLY));
ROOT(gb_root_reciprocal, &reciprocal, &multiply, &gb_node_chain);
ROOT(gb_root_softmax, &softmax, &gb_node_chain, &gb_node_maybe_cast);
ROOT(gb_root_layer_norm, &layer_norm, &gb_node_maybe_cast, &gb_node_chain);
ROOT(gb_root_group_norm, &group_norm, &gb_node_chain, &gb_node_maybe_cast, &gb_node_chain);
ROOT(gb_root_shuffle, &reshape, &transpose, &reshape);
