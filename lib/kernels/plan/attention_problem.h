/* Attention and its gradients: what is to be computed, whoever computes it.
 *
 *   S = before(Q K^T), P = between(SoftMax(S)), result = after(P V)
 *
 * Scores S have the dims [batch..., queries, keys], results [batch..., queries, columns of V]. What
 * stands between the products are pointwise programs: `before` and `between` read and write scores
 * in scratch, `after` goes from scratch to a tensor. Softmax runs along the keys.
 *
 * A problem is described for a step, which then has its uses of buffers and owns what it points to;
 * slots are those of that step. Once it was described it is constant. */
#ifndef GB_KERNELS_PLAN_ATTENTION_PROBLEM_H
#define GB_KERNELS_PLAN_ATTENTION_PROBLEM_H

#include "fusion/regions/attention.h"
#include "kernels/plan/pointwise.h"

/* What makes an operand of other values, block by block: a pointwise program over the dims of the
 * tensor, some of them split into groups of sizes[d] > 1 elements, which have a dim of their own.
 * Its result is scratch operand 0. */
typedef struct gb_attention_source {
    bool along_rows; /* the rows of the operand are the last dim of the tensor */
    int ndims;
    int64_t dims[GB_AXES], sizes[GB_AXES];
    uint8_t places[GB_AXES]; /* dim of the program that tensor dim d, or its inside, is */
    gb_pointwise_program pointwise;
} gb_attention_source;

/* A matrix per combination of batch dims: rows are queries or keys, columns features or columns of
 * V. Seen through strides, or made by a source. */
typedef struct gb_attention_operand {
    const gb_attention_source *source; /* NULL: the tensor is in memory */
    gb_data_type type;                 /* f32, bf16 or f16; of what a source makes, too */
    uint32_t slot;                     /* without a source */
    int64_t strides[GB_AXES];          /* elements, per batch dim */
    int64_t row_stride, col_stride;
} gb_attention_operand;

/* Quantized values of 8 bits in memory, of which a source makes (code - zero_point) * scale, the same
 * everywhere. */
typedef struct gb_attention_codes {
    bool is_set;
    gb_attention_operand operand; /* of s8 or u8 */
    float scale;
    int32_t zero_point;
} gb_attention_codes;

/* What `between` makes of weights w: round(w / divisor), at most `most`, times the scale. */
typedef struct gb_attention_weight_codes {
    bool is_set;
    float divisor, most, scale;
} gb_attention_weight_codes;

/* A number that a tensor of one element holds at run time. */
typedef struct gb_attention_scalar {
    bool is_set;
    gb_data_type type; /* a floating type or s32 */
    uint32_t slot;
} gb_attention_scalar;

/* An implicit causal mask: scores where key > query + shift_up - shift_down are `fill`. */
typedef struct gb_attention_causal {
    bool is_set;
    gb_attention_scalar shift_up, shift_down, fill;
} gb_attention_causal;

/* A pointwise program between two blocks in scratch (operands 0 and 1), or from register 0 to a
 * tensor. */
typedef struct gb_attention_program {
    bool is_empty; /* nothing to do: the result is the input */
    gb_pointwise_program pointwise;
} gb_attention_program;

typedef struct gb_attention_problem {
    int n_batch;
    int64_t batch_dims[GB_AXES];
    bool is_row[GB_AXES]; /* batch dims along which neither K nor V moves, as of heads that share
                             them: queries of all of them see the same keys */
    int64_t queries, keys, features, columns;
    gb_attention_operand q, k, v;
    gb_attention_codes q_codes, k_codes, v_codes; /* of operands with such a source */
    gb_attention_weight_codes weight_codes;
    gb_data_type weights_type; /* what the product with V takes; they may stay f32 */

    gb_attention_scalar scale; /* of Q */
    bool divide_by_scale;
    /* Scores from Q K^T; the same where no score is hidden; weights; results. */
    gb_attention_program before, before_unmasked, between, after;
    /* `before` from register 0 to a block in scratch (operand 0), for products whose tiles take
     * post-ops; without instructions where there is none: under causal masks, for instance. */
    gb_pointwise_program before_in_tiles;
    gb_attention_causal causal;
    bool exact;       /* `between` needs weights that sum to 1 */
    bool inf_as_zero; /* rows whose scores are all -inf have weights 0, not NaN */
    bool has_stats;   /* maximum + log of the sum of each row, f32 */
    uint32_t stats_slot;
    int64_t stats_strides[GB_AXES]; /* per batch dim, then queries */

    /* The product with V sums over the queries, while softmax runs along the keys: V has a row per
     * query, results are P^T V, [batch..., keys, columns], or with keys_last V^T P. */
    bool over_queries, keys_last;
} gb_attention_problem;

/* Places among the scratch operands of the post-ops of gradients. */
enum { GB_ATTENTION_S, GB_ATTENTION_G, GB_ATTENTION_P, GB_ATTENTION_DS, GB_ATTENTION_D };

/* The weights are computed again from the statistics of the forward pass:
 *
 *   S = Q K^T, G = dO V^T, D = row sums of O dO; post-ops give P and dS from S, G and D;
 *   dV = P^T dO, dK = dS^T Q, dQ = dS K */
typedef struct gb_attention_gradient_problem {
    int n_batch;
    int64_t batch_dims[GB_AXES];
    bool is_row[GB_AXES]; /* batch dims that dK and dV are summed over */
    int64_t queries, keys, features, columns;
    gb_attention_operand q, k, g, v; /* Q, K, dO, V: [queries or keys, features or columns] */
    bool has_outputs;
    gb_attention_operand o; /* O as dO, for D */
    gb_attention_causal causal;
    uint32_t stats_slot;            /* f32; where the mask is known */
    int64_t stats_strides[GB_AXES]; /* per batch dim, then queries */
    bool exposes;                   /* post-ops write scores to memory */
    gb_pointwise_program score_ops, dq, dk, dv;
} gb_attention_gradient_problem;

/* Sizes of what was matched, as far as known: features of Q and K, columns of V. */
int64_t gb_attention_features(const gb_attention_parts *parts);
int64_t gb_attention_columns(const gb_attention_parts *parts);

/* Describe a group whose parts are gb_attention_parts or gb_attention_gradient_parts, for `step`,
 * into a zeroed problem, and as text where programs are printed. GB_UNIMPLEMENTED when a pointwise
 * program has no room for its post-ops, or when weights leave that have to stay. */
gb_status gb_attention_describe(
        gb_program *program, const gb_group *group, gb_step *step, gb_attention_problem *problem);
gb_status gb_attention_gradient_describe(gb_program *program, const gb_group *group, gb_step *step,
        gb_attention_gradient_problem *problem);

/* Write a gb_attention_problem and a gb_attention_gradient_problem. */
gb_print_fn gb_attention_problem_print, gb_attention_gradient_problem_print;

#endif
