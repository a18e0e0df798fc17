/* Gradients of attention as one kernel: the weights are computed again from the statistics, a block
 * of rows and a block of keys at a time, and no tensor of scores is in memory unless it leaves.
 *
 *   S = Q K^T, G = dO V^T, D = row sums of O dO; post-ops give P and dS from S, G and D;
 *   dV = P^T dO, dK = dS^T Q, dQ = dS K
 *
 * Keys that an implicit causal mask hides from all rows of a block are left out where their weights
 * are zeros.
 *
 * Rows are queries, and the heads over which dK and dV are summed. A work item is a task (the
 * other batch dims) and a slice of its keys; where keys are sliced, parts of dQ meet in shared
 * scratch. Nothing depends on the number of threads. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_BACKWARD_H
#define GB_KERNELS_ATTENTION_ATTENTION_BACKWARD_H

#include "kernels/attention/attention_causal.h"
#include "kernels/attention/attention_space.h"

/* Places among the scratch operands of the post-ops. */
enum { GB_ATTENTION_S, GB_ATTENTION_G, GB_ATTENTION_P, GB_ATTENTION_DS, GB_ATTENTION_D };

typedef struct gb_attention_gradients {
    int n_batch;
    int64_t batch_dims[GB_AXES];
    bool is_row[GB_AXES];
    int64_t queries, keys, features, columns;
    gb_attention_operand q, k, g, v; /* Q, K, dO, V: [queries or keys, features or columns] */
    bool has_outputs;
    gb_attention_operand o; /* O as dO, for D */
    gb_attention_causal causal;
    uint32_t stats_slot;            /* f32; where the mask is known */
    int64_t stats_strides[GB_AXES]; /* per batch dim, then queries */
    bool exposes;                   /* post-ops write scores to memory */
    gb_pointwise_program score_ops, dq, dk, dv;

    /* From here on the work of gb_attention_gradients_add(). */
    const gb_kernels *kernels;
    gb_attention_space space, key_space;
    int64_t row_block, key_block, key_splits, split_keys;
    int64_t feature_row, column_row, score_row; /* steps between rows in scratch, floats */
    size_t q_size, dk_size, dv_size;            /* floats of blocks of dQ, dK and dV */
    int n_scores; /* blocks of scores: results of the post-ops may overwrite what they read, or
                     not */
    struct {
        gb_scratch q, dq, g, o, row_sums, packed_q, packed_g, k_columns, v_columns, packed_k, dk,
                dv, scores[4], registers;
    } scratch;
    const int64_t *unit_offsets, *panels,
            *rows; /* offsets of element i: i, i * PANEL, i * score_row */
} gb_attention_gradients;

/* Chooses blocks and adds the step; `plan` is copied. */
gb_status gb_attention_gradients_add(
        gb_program *program, gb_step *step, const gb_attention_gradients *plan);
void gb_attention_gradients_run(const gb_step_call *call);

#endif
