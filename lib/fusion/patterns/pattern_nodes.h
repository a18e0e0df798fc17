/* Shorthands for writing pattern nodes, and the roots that the list of patterns names. */
#ifndef GB_FUSION_PATTERNS_PATTERN_NODES_H
#define GB_FUSION_PATTERNS_PATTERN_NODES_H

#include "fusion/match/pattern.h"

/* Initialisers: KINDS(a, b) of an OP node, CHILDREN(&x, &y), SIDE(input, &x) and MAYBE_SIDE(input,
 * &x). */
#define KINDS(...)                                                                                 \
    .form = GB_PATTERN_OP, .n_kinds = sizeof((gb_op_kind[]){__VA_ARGS__}) / sizeof(gb_op_kind),    \
    .kinds = {__VA_ARGS__}
#define CHILDREN(...) .children = {__VA_ARGS__}
#define SIDE(at, what)                                                                             \
    {                                                                                              \
        .input = (at), .node = (what)                                                              \
    }
#define MAYBE_SIDE(at, what)                                                                       \
    {                                                                                              \
        .input = (at), .optional = true, .node = (what)                                            \
    }
#define NODE(name, ...)        static const gb_pattern_node name = {__VA_ARGS__}
#define SEQUENCE(name, ...)    NODE(name, .form = GB_PATTERN_SEQUENCE, CHILDREN(__VA_ARGS__))
#define OPTIONAL(name, ...)    NODE(name, .form = GB_PATTERN_OPTIONAL, CHILDREN(__VA_ARGS__))
#define ALTERNATIVE(name, ...) NODE(name, .form = GB_PATTERN_ALTERNATIVE, CHILDREN(__VA_ARGS__))
#define FORK(name, ...)        NODE(name, .form = GB_PATTERN_FORK, CHILDREN(__VA_ARGS__))
#define ROOT(name, ...)                                                                            \
    const gb_pattern_node name = {.form = GB_PATTERN_SEQUENCE, CHILDREN(__VA_ARGS__)}

/* The flow enters at this input. */
bool gb_accept_at_0(const gb_op *op, uint32_t input);
bool gb_accept_at_1(const gb_op *op, uint32_t input);
/* As one of the branches of a Select, as its condition excluded. */
bool gb_accept_branch(const gb_op *op, uint32_t input);
/* BiasAdd behind an anchor that has no bias of its own. */
bool gb_accept_bias(const gb_op *op, uint32_t input);
/* The op joins two products of one source. */
bool gb_accept_gate(const gb_op *op, uint32_t input);

/* Chains of the P ops, the swish pair included; one of them is a post-op. */
extern const gb_pattern_node gb_node_post_op, gb_node_chain, gb_node_chain_of_one, gb_node_binary,
        gb_node_binary_chain;
/* TypeCast, or Select on a branch, or Quantize, or nothing. */
extern const gb_pattern_node gb_node_maybe_cast, gb_node_maybe_select, gb_node_maybe_quantize;
/* Weights behind Dequantize, as the producer of an input. */
extern const gb_pattern_node gb_node_weights;
/* Attention: scale and masks between the first product and SoftMax; the move of heads behind the
 * second. */
extern const gb_pattern_node gb_node_scores, gb_node_maybe_heads_last;

extern const gb_pattern_node gb_root_matmul, gb_root_convolution, gb_root_conv_transpose,
        gb_root_pool, gb_root_batch_norm, gb_root_reduction, gb_root_interpolate,
        gb_root_elementwise, gb_root_reciprocal, gb_root_matmul_moved, gb_root_batch_norm_backward,
        gb_root_softmax, gb_root_layer_norm, gb_root_group_norm, gb_root_shuffle,
        gb_root_depthwise_pair, gb_root_matmul_dropout,
        gb_root_unary_dropout; /* patterns_chain.c */
extern const gb_pattern_node gb_root_attention, gb_root_attention_gpt, gb_root_attention_gqa,
        gb_root_attention_mha, gb_root_attention_mqa,
        gb_root_attention_backward; /* patterns_attention.c */
extern const gb_pattern_node gb_root_gated_mlp, gb_root_gated_mlp_swish,
        gb_root_binary_matmul; /* patterns_mlp.c */
extern const gb_pattern_node gb_root_quantized_attention, gb_root_compressed_keys,
        gb_root_compressed_values, gb_root_compressed_mlp, gb_root_compressed_mlp_swish,
        gb_root_quantized_matmul, gb_root_quantized_matmul_moved, gb_root_quantized_convolution,
        gb_root_quantized_conv_transpose, gb_root_quantized_pool, gb_root_quantized_batch_norm,
        gb_root_quantized_reorder_sum, gb_root_quantized_reorder, gb_root_reorder_add,
        gb_root_quantized_group_norm, gb_root_quantized_layer_norm, gb_root_quantized_softmax,
        gb_root_quantized_concat, gb_root_cast_quantize, gb_root_quantized_elementwise,
        gb_root_compressed_matmul, gb_root_compressed_matmul_moved; /* patterns_quantized.c */
extern const gb_pattern_node gb_root_bottlenecks, gb_root_quantized_basic_blocks,
        gb_root_quantized_bottlenecks,
        gb_root_quantized_grouped_bottlenecks; /* patterns_residual.c */

#endif
