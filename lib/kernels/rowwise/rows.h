/* What softmax and the norms share: splitting the space into blocks of rows or columns, loading a
 * block as f32, and running the pointwise program on the result. */
#ifndef GB_KERNELS_ROWWISE_ROWS_H
#define GB_KERNELS_ROWWISE_ROWS_H

#include "kernels/plan/row_problem.h"
#include "kernels/rowwise/epilogue.h"

typedef struct gb_row_plan gb_row_plan;
typedef struct gb_row_block gb_row_block;
typedef void gb_row_compute_fn(
        const gb_row_plan *plan, const gb_step_call *call, const gb_row_block *block);

struct gb_row_plan {
    const gb_row_problem *problem;
    bool columns;    /* the innermost dim is kept: vectors lie across it; otherwise along a row */
    int64_t block;   /* rows or columns of a block, along the last kept dim */
    int64_t items;   /* blocks */
    bool direct_src; /* kernels read the source itself */
    bool direct_dst; /* kernels write the destination itself */
    bool whole; /* rows along one dim that are only stored: a block is loaded and stored at once */
    gb_row_compute_fn *apply; /* NULL: `compute` makes the results; else this does, tile by tile */
    gb_epilogue epilogue;
    gb_scratch buffer; /* the dense block; register 0 of the epilogue if it fits there */
};

struct gb_row_block {
    const float *x; /* as in row_types.h */
    float *y;       /* NULL: only what `apply` needs is wanted */
    int64_t x_stride, y_stride, count;
    int64_t rows; /* of a tile: elements of each of `count` columns, which are all of its block */
    const int64_t *position; /* of the first element, in the space */
};

/* Plans rows for so many threads; the problem stays where it is as long as the step. Blocks of columns are multiples of
 * `granule`. Rows without elements are passed by only where they have statistics. `apply`, or NULL:
 * makes the results of a tile of a block that was computed. */
gb_row_plan gb_row_plan_make(gb_step *step, const gb_row_problem *problem, int threads,
        int64_t granule, bool has_stats, gb_row_compute_fn *apply);
/* Calls compute for the blocks of this thread. */
void gb_row_run(const gb_row_plan *plan, const gb_step_call *call, gb_row_compute_fn *compute);
/* Elements of the source, for step.work. */
double gb_row_elements(const gb_row_problem *problem);

#endif
