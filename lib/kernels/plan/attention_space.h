/* Rows and tasks of attention: batch dims and one more, the queries or the keys, divided in two. */
#ifndef GB_KERNELS_PLAN_ATTENTION_SPACE_H
#define GB_KERNELS_PLAN_ATTENTION_SPACE_H

#include "kernels/plan/axes.h"

#include <stdbool.h>

/* Batch dims and one more, dim n_batch: each belongs to the tasks or to the rows of a task. The
 * last row dim runs fastest. */
typedef struct gb_attention_space {
    int n_batch, n_task_dims, n_row_dims;
    int64_t dims[GB_AXES];
    uint8_t task_dims[GB_AXES], row_dims[GB_AXES];
    int64_t tasks, rows, run; /* run: rows that differ in the last row dim only */
} gb_attention_space;

/* `size` is that of dim n_batch, which is a row dim; is_row NULL: no batch dim is one. */
void gb_attention_space_init(gb_attention_space *space, int n_batch, const int64_t *batch_dims,
        const bool *is_row, int64_t size);

static inline int gb_attention_run_dim(const gb_attention_space *space)
{
    return space->row_dims[space->n_row_dims - 1];
}

/* Sets the task dims of the position to task `task`; the others to 0. */
void gb_attention_set_task(const gb_attention_space *space, int64_t task, int64_t *position);
/* Sets the row dims of the position to row `row` of a task; returns the rows from there on, at most
 * `rows`, that differ in the last row dim only. */
int64_t gb_attention_locate(
        const gb_attention_space *space, int64_t row, int64_t rows, int64_t *position);
/* The least and the largest index along dim n_batch of some rows of a task. */
void gb_attention_range(
        const gb_attention_space *space, int64_t row, int64_t rows, int64_t *least, int64_t *most);

#endif
