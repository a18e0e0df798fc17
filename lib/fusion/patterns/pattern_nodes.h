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

/* The roots, each in the file of its family. */
#define GB_PATTERN(name, root) extern const gb_pattern_node gb_root_##root;
#include "fusion/patterns/patterns.def"
#undef GB_PATTERN

#endif
