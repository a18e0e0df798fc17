/* Attention as one kernel: scores of a block of queries and a block of keys at a time, softmax
 * on-line, so that no tensor of scores is ever in memory.
 *
 * Spaces: scores are [batch..., queries, keys], results [batch..., queries, columns of V]. Batch
 * dims along which neither keys nor values move (heads that share them) count as queries: `rows`
 * runs over those dims and the queries, the queries fastest. A *task* is a combination of the other
 * batch dims. A work item is a block of rows of a task, times a slice of the keys where there
 * are too few rows for all threads.
 *
 * The number of threads decides how many rows a work item has, and nothing else: groups of rows
 * start at multiples of group_rows in their task, blocks of keys at multiples of key_block, and
 * results do not depend on work items. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_H
#define GB_KERNELS_ATTENTION_ATTENTION_H

#include "kernels/attention/attention_causal.h"
#include "kernels/attention/attention_source.h"
#include "kernels/attention/attention_space.h"

/* A pointwise program between two blocks in scratch, or from scratch to a tensor. */
typedef struct gb_attention_program {
    bool is_empty; /* nothing to do: the result is the input */
    gb_pointwise_program pointwise;
} gb_attention_program;

typedef struct gb_attention {
    int n_batch;
    int64_t batch_dims[GB_AXES];
    int64_t queries, keys, features, columns;
    gb_attention_operand q, k, v;
    /* Where set, q, k and v are what they make. */
    gb_attention_source query_source, key_source, value_source;

    gb_attention_scalar scale; /* of Q */
    bool divide_by_scale;
    /* Scores from Q K^T; the same where no score is hidden; weights; results. */
    gb_attention_program before, before_unmasked, between, after;
    gb_attention_causal causal;
    bool exact; /* `between` needs weights that sum to 1 */
    bool inf_as_zero;
    bool has_stats;
    uint32_t stats_slot;
    int64_t stats_strides[GB_AXES]; /* per batch dim, then queries */

    /* From here on the work of gb_attention_add(). */
    const gb_kernels *kernels;
    gb_attention_space space;
    bool by_vectors; /* few rows: K and V are read as they lie */
    int64_t group_rows, key_block, key_blocks, item_rows, row_items, key_splits;
    int64_t q_row, acc_row, score_row; /* steps between rows in scratch, floats */
    int64_t state_rows;                /* rows that state, maxima, sums and factors, has room for */
    struct {
        gb_scratch q, values, state, k, v, dense_k, dense_v, scores, registers;
    } scratch;
    size_t split_bytes; /* of shared scratch: sums, maxima and sums of weights of one slice */
    int64_t *unit_offsets, *panels; /* offsets of element i: i, and i * PANEL */
} gb_attention;

/* Chooses blocks and adds the step; `plan` is copied. */
gb_status gb_attention_add(gb_program *program, gb_step *step, const gb_attention *plan);
/* The step's function (attention_run.c). */
void gb_attention_run(const gb_step_call *call);

#endif
