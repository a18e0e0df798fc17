/* Rows and tasks of attention. */
#include "kernels/plan/attention_space.h"

#include "base/memory.h"
#include "kernels/plan/space.h"

#include <string.h>

void gb_attention_space_init(gb_attention_space *space, int n_batch, const int64_t *batch_dims,
        const bool *is_row, int64_t size)
{
    *space = (gb_attention_space){.n_batch = n_batch};
    for (int d = 0; d < n_batch; d++) {
        space->dims[d] = batch_dims[d];
        if (batch_dims[d] == 1)
            continue;
        if (is_row && is_row[d])
            space->row_dims[space->n_row_dims++] = (uint8_t)d;
        else
            space->task_dims[space->n_task_dims++] = (uint8_t)d;
    }
    space->dims[n_batch] = size;
    if (size > 1 || space->n_row_dims == 0)
        space->row_dims[space->n_row_dims++] = (uint8_t)n_batch;
    space->tasks = gb_product(space->n_task_dims, space->task_dims, space->dims);
    space->rows = gb_product(space->n_row_dims, space->row_dims, space->dims);
    space->run = space->dims[gb_attention_run_dim(space)];
}

void gb_attention_set_task(const gb_attention_space *space, int64_t task, int64_t *position)
{
    memset(position, 0, GB_AXES * sizeof *position);
    gb_position_set(space->n_task_dims, space->task_dims, space->dims, task, position);
}

int64_t gb_attention_locate(
        const gb_attention_space *space, int64_t row, int64_t rows, int64_t *position)
{
    gb_position_set(space->n_row_dims, space->row_dims, space->dims, row, position);
    return gb_min_i64(rows, space->run - row % space->run);
}

void gb_attention_range(
        const gb_attention_space *space, int64_t row, int64_t rows, int64_t *least, int64_t *most)
{
    int64_t position[GB_AXES] = {0};
    int64_t run = gb_attention_locate(space, row, rows, position), n = space->n_batch;
    bool whole = gb_attention_run_dim(space) != n || run < rows;
    *least = whole ? 0 : position[n];
    *most = whole ? space->dims[n] - 1 : position[n] + rows - 1;
}
