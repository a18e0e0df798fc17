/* How the CPU computes the gradients of attention: a block of rows and a block of keys at a time,
 * and no tensor of scores is in memory unless it leaves.
 *
 * Keys that an implicit causal mask hides from all rows of a block are left out where their weights
 * are zeros.
 *
 * Rows are queries, and the heads over which dK and dV are summed. A work item is a task (the
 * other batch dims) and a slice of its keys; where keys are sliced, parts of dQ meet in shared
 * scratch. Nothing depends on the number of threads. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_BACKWARD_PLAN_H
#define GB_KERNELS_ATTENTION_ATTENTION_BACKWARD_PLAN_H

#include "kernels/cpu/scratch.h"
#include "kernels/isa/kernels.h"
#include "kernels/plan/attention_problem.h"
#include "kernels/plan/attention_space.h"

typedef struct gb_attention_backward {
    const gb_attention_gradient_problem *problem;
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
} gb_attention_backward;

/* Plans and adds the step; the problem is memory of the step. */
gb_status gb_attention_backward_add(
        gb_program *program, gb_step *step, const gb_attention_gradient_problem *problem);
/* The step's function (attention_backward_run.c). */
void gb_attention_backward_run(const gb_step_call *call);

#endif
