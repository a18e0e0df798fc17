/* Attention whose product with the values sums over the rows of the weights, while SoftMax makes
 * each row sum to 1: out^T = V^T P, out = P^T V. A row has to be complete before it counts, and
 * adds to all results: blocks of whole rows pass by the keys and the results of their task, which
 * stay in scratch.
 *
 * Queries are the rows of the scores and of V, keys their columns and those of the results. A task
 * is a combination of the batch dims. A work item is a task, and a slice of its rows where there
 * are too few tasks: slices leave their sums in shared scratch. Nothing depends on the number of
 * threads. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_BY_ROWS_H
#define GB_KERNELS_ATTENTION_ATTENTION_BY_ROWS_H

#include "kernels/attention/attention.h"

/* As gb_attention_add(); operands and programs of `plan` are set. `keys_last`: results are
 * [columns of V, keys], not [keys, columns]. */
gb_status gb_attention_by_rows_add(
        gb_program *program, gb_step *step, const gb_attention *plan, bool keys_last);

#endif
