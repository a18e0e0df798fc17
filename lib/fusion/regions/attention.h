/* Regions of attention: two products around a softmax, and the post-ops between them (root SoftMax,
 * gb_attention_parts); and their gradients (root Exp, gb_attention_gradient_parts). */
#ifndef GB_FUSION_REGIONS_ATTENTION_H
#define GB_FUSION_REGIONS_ATTENTION_H

#include "fusion/fusion.h"

/* Most post-ops of a chain, and moves of the weights. */
enum { GB_ATTENTION_CHAIN_OPS = 24, GB_ATTENTION_MOVES = 4 };

/* Post-ops in topological order. */
typedef struct gb_attention_chain {
    uint32_t n;
    uint32_t ops[GB_ATTENTION_CHAIN_OPS]; /* op indices */
} gb_attention_chain;

typedef struct gb_attention_parts {
    const gb_op *scores, *softmax, *values;    /* MatMul(Q, K), SoftMax, MatMul(P, V) */
    gb_attention_chain before, between, after; /* behind each of the three */
    /* Post-ops that dequantise Q, K and V, or none. */
    gb_attention_chain query_source, key_source, value_source;
    uint32_t n_moves, moves[GB_ATTENTION_MOVES]; /* ops that only turn the weights, or less */
    bool swapped; /* V^T P^T: the weights are the second operand, queries the last dim */
    bool by_rows; /* P^T V, V^T P: the product sums over the rows of the weights, not over the dim
                     along which SoftMax does (attention_by_rows.h) */
    uint32_t result; /* the value that leaves `after` */
} gb_attention_parts;

/* An implicit causal mask: scores are those of the value `visible` where key <= query + shift_up -
 * shift_down, `fill` elsewhere. Values of numbers, GB_NONE when there is no shift. */
typedef struct gb_attention_mask {
    uint32_t visible, shift_up, shift_down, fill;
} gb_attention_mask;

/* Is the value `scores` such a mask's result? (causal_mask.c) */
bool gb_attention_find_causal(const gb_graph *graph, const gb_attention_chain *chain,
        uint32_t scores, gb_attention_mask *mask);
/* The post-ops of the chain that `value` is made by. */
void gb_attention_keep_producers(const gb_graph *graph, const gb_attention_chain *chain,
        uint32_t value, gb_attention_chain *kept);

/* May weights be scaled after the post-ops: do they only choose among them, and round nothing but
 * what they end in? */
bool gb_attention_keeps_scale(const gb_graph *graph, const gb_attention_chain *chain);

typedef struct gb_attention_gradient_parts {
    const gb_op *exponential;
    const gb_op *scores, *gradients; /* S, G */
    const gb_op *dv, *dk, *dq;
    const gb_op *dv_sum, *dk_sum;    /* ReduceSum of both, or NULL */
    const gb_op *outputs, *row_sums; /* O dO and its ReduceSum D, or NULL: D is made elsewhere */
    gb_attention_chain score_ops;
    bool is_row[GB_MAX_NDIMS]; /* batch dims summed over */
} gb_attention_gradient_parts;

#endif
