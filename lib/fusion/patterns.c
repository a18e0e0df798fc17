/* The fusion patterns: post-op chains of every anchor. Names of the grammar: P is a unary or binary op of the chain sets,
 * "swish" is x * sigmoid(x). */
#include "fusion/pattern.h"

/* Chains are at most this long in the catalogue. */
enum { MAX_CHAIN = 19 };

static bool has_no_bias_input(const gb_op *op)
{
    return op->n_inputs == 2;
}

/* BiasAdd joins only as the flow's receiver, and only when the anchor has no bias of its own. */
static bool accept_bias(const gb_op *op, uint32_t input)
{
    if (input != 0) return false;
    const gb_value *src = &op->graph->values[op->inputs[0]];
    return src->producer == GB_NONE || has_no_bias_input(op->graph->ops[src->producer]);
}

static bool accept_flow(const gb_op *op, uint32_t input)
{
    (void)op;
    return input == 0;
}

static bool accept_branch(const gb_op *op, uint32_t input)
{
    (void)op;
    return input == 1 || input == 2;
}

static const gb_pattern_node unary = {.form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_UNARY};
static const gb_pattern_node binary = {.form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_BINARY};
static const gb_pattern_node any_link = {
        .form = GB_PATTERN_OP, .flags = GB_OP_FLAG_CHAIN_UNARY | GB_OP_FLAG_CHAIN_BINARY};
static const gb_pattern_node swish = {.form = GB_PATTERN_JOIN, .children = {&unary, &binary}};
static const gb_pattern_node link = {.form = GB_PATTERN_ALTERNATIVE, .children = {&any_link, &swish}};
static const gb_pattern_node chain = {
        .form = GB_PATTERN_REPEAT, .min = 0, .max = MAX_CHAIN, .children = {&link}};
static const gb_pattern_node chain_of_one = {
        .form = GB_PATTERN_REPEAT, .min = 1, .max = MAX_CHAIN, .children = {&link}};

#define OP_NODE(name, ...)                                                                                             \
    static const gb_pattern_node name = {.form = GB_PATTERN_OP,                                                        \
            .n_kinds = sizeof((gb_op_kind[]){__VA_ARGS__}) / sizeof(gb_op_kind), .kinds = {__VA_ARGS__}}
#define OPTIONAL_OP(name, condition, ...)                                                                              \
    static const gb_pattern_node name##_op = {.form = GB_PATTERN_OP, .accept = (condition),                            \
            .n_kinds = sizeof((gb_op_kind[]){__VA_ARGS__}) / sizeof(gb_op_kind), .kinds = {__VA_ARGS__}};              \
    static const gb_pattern_node name = {.form = GB_PATTERN_OPTIONAL, .children = {&name##_op}}
#define ROOT(name, ...)                                                                                                \
    static const gb_pattern_node name = {.form = GB_PATTERN_SEQUENCE, .children = {__VA_ARGS__}}

OP_NODE(matmul, GB_OP_MATMUL);
OP_NODE(convolution, GB_OP_CONVOLUTION);
OP_NODE(conv_transpose, GB_OP_CONV_TRANSPOSE);
OP_NODE(pool, GB_OP_AVG_POOL, GB_OP_MAX_POOL);
OP_NODE(reduction, GB_OP_REDUCE_L1, GB_OP_REDUCE_L2, GB_OP_REDUCE_MAX, GB_OP_REDUCE_MEAN, GB_OP_REDUCE_MIN,
        GB_OP_REDUCE_PROD, GB_OP_REDUCE_SUM);
OP_NODE(interpolate, GB_OP_INTERPOLATE);
OP_NODE(softmax, GB_OP_SOFTMAX);
OP_NODE(layer_norm, GB_OP_LAYER_NORM);
OP_NODE(group_norm, GB_OP_GROUP_NORM);
OP_NODE(batch_norm, GB_OP_BATCH_NORM_INFERENCE, GB_OP_BATCH_NORM_FORWARD_TRAINING);
OP_NODE(relu, GB_OP_RELU);
OPTIONAL_OP(maybe_bias, accept_bias, GB_OP_BIAS_ADD);
OPTIONAL_OP(maybe_batch_norm, accept_flow, GB_OP_BATCH_NORM_INFERENCE);
OPTIONAL_OP(maybe_select, accept_branch, GB_OP_SELECT);
OPTIONAL_OP(maybe_cast, NULL, GB_OP_TYPE_CAST);

ROOT(matmul_root, &matmul, &maybe_bias, &chain, &maybe_select, &maybe_cast);
ROOT(convolution_root, &convolution, &maybe_bias, &maybe_batch_norm, &chain, &maybe_cast);
ROOT(conv_transpose_root, &conv_transpose, &maybe_bias, &chain);
ROOT(pool_root, &pool, &chain_of_one);
ROOT(batch_norm_root, &batch_norm, &relu);
ROOT(reduction_root, &reduction, &chain_of_one);
ROOT(interpolate_root, &interpolate, &chain_of_one);
ROOT(binary_root, &binary, &chain_of_one);
ROOT(unary_root, &unary, &chain_of_one);
ROOT(softmax_root, &softmax, &chain, &maybe_cast);
ROOT(layer_norm_root, &layer_norm, &maybe_cast, &chain);
ROOT(group_norm_root, &group_norm, &chain, &maybe_cast, &chain);

const gb_pattern gb_patterns[] = {
        {"conv_transpose_post_ops", 10.4F, &conv_transpose_root},
        {"pool_post_ops", 9.9F, &pool_root},
        {"convolution_post_ops", 9.8F, &convolution_root},
        {"batch_norm_relu", 8.8F, &batch_norm_root},
        {"matmul_post_ops", 8.8F, &matmul_root},
        {"reduction_post_ops", 8.4F, &reduction_root},
        {"interpolate_post_ops", 8.4F, &interpolate_root},
        {"group_norm_post_ops", 8.4F, &group_norm_root},
        {"binary_post_ops", 8.3F, &binary_root},
        {"softmax_post_ops", 8.2F, &softmax_root},
        {"layer_norm_post_ops", 8.2F, &layer_norm_root},
        {"unary_post_ops", 8.2F, &unary_root},
        {NULL, 0, NULL},
};
