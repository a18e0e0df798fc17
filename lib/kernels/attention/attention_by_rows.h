/* Attention whose product with the values sums over the queries, the rows of the weights, while
 * SoftMax makes each row sum to 1: out = P^T V, or out^T = V^T P. A row has to be complete before it
 * counts, and adds to all results: blocks of whole rows pass by the keys and the results of their
 * task, which stay in scratch.
 *
 * A task is a combination of the batch dims. A work item is a task, and a slice of its rows where
 * there are too few tasks: slices leave their sums in shared scratch. Nothing depends on the number
 * of threads. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_BY_ROWS_H
#define GB_KERNELS_ATTENTION_ATTENTION_BY_ROWS_H

#include "kernels/attention/attention_plan.h"

typedef struct gb_attention_by_rows {
    gb_attention_plan rows;     /* a group of rows in scratch, all keys in one block */
    gb_attention_space results; /* rows of the results, by task */
    int64_t result_rows, result_cols;
    int64_t slices, slice_rows, sums_row;
    gb_scratch sums; /* of a task, unless slices leave them in shared scratch */
    const int64_t *score_offsets, *value_offsets; /* of rows in scratch */
} gb_attention_by_rows;

/* A way to run attention (variants in attention_plan.c). */
bool gb_attention_by_rows_fits(const gb_attention_problem *problem);
gb_status gb_attention_by_rows_add(
        gb_program *program, gb_step *step, const gb_attention_problem *problem);
/* The step's function (attention_by_rows_run.c). */
void gb_attention_by_rows_run(const gb_step_call *call);

#endif
