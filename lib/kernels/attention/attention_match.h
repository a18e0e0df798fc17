/* The parts of a region of attention: two products around a softmax, and the links between them. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_MATCH_H
#define GB_KERNELS_ATTENTION_ATTENTION_MATCH_H

#include "fusion/fusion.h"

/* Most links of a chain, moves of the weights, columns of Q, K and V, and elements of K and of the
 * results that a thread keeps where products sum over rows. */
enum {
    GB_ATTENTION_LINKS = 24,
    GB_ATTENTION_MOVES = 4,
    GB_ATTENTION_WIDTH = 4096,
    GB_ATTENTION_KEPT = 1 << 20
};

/* Links in topological order. */
typedef struct gb_attention_chain {
    uint32_t n;
    uint32_t links[GB_ATTENTION_LINKS]; /* op indices */
} gb_attention_chain;

typedef struct gb_attention_parts {
    const gb_op *scores, *softmax, *values;    /* MatMul(Q, K), SoftMax, MatMul(P, V) */
    gb_attention_chain before, between, after; /* behind each of the three */
    /* Links that dequantise Q, K and V, or none. */
    gb_attention_chain query_source, key_source, value_source;
    uint32_t n_moves, moves[GB_ATTENTION_MOVES]; /* ops that only turn the weights, or less */
    bool swapped; /* V^T P^T: the weights are the second operand, queries the last dim */
    bool by_rows; /* P^T V, V^T P: the product sums over the rows of the weights, not over the dim
                     along which SoftMax does (attention_by_rows.h) */
    uint32_t result; /* the value that leaves `after` */
} gb_attention_parts;

/* Finds the parts around a SoftMax. Where `members` is given, only these ops count (a region that
 * was matched before); otherwise `context` says what must stay visible. */
bool gb_attention_find(const gb_graph *graph, const gb_pass_context *context,
        const gb_group *members, const gb_op *softmax, gb_attention_parts *parts);

/* An implicit causal mask: scores are those of the value `visible` where key <= query + shift_up -
 * shift_down, `fill` elsewhere. Values of numbers, GB_NONE when there is no shift. */
typedef struct gb_attention_mask {
    uint32_t visible, shift_up, shift_down, fill;
} gb_attention_mask;

/* Is the value `scores` such a mask's result? (attention_causal.c) */
bool gb_attention_find_causal(const gb_graph *graph, const gb_attention_chain *chain,
        uint32_t scores, gb_attention_mask *mask);
/* The links of the chain that `value` is made by. */
void gb_attention_keep_makers(const gb_graph *graph, const gb_attention_chain *chain,
        uint32_t value, gb_attention_chain *kept);

/* May weights be scaled after the links: do they only choose among them, or round to their type? */
bool gb_attention_keeps_scale(const gb_graph *graph, const gb_attention_chain *chain);

/* gb_region.match of attention. */
gb_status gb_attention_match(const gb_graph *graph, const gb_pass_context *context,
        const gb_op *root, gb_op_list *ops);

#endif
