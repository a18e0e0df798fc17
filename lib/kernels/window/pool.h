/* How the CPU runs averages and maxima over windows: work items of up to GB_TILE_ELEMENTS outputs, or
 * GB_STORED_ELEMENTS across channels where they are only stored.
 */
#ifndef GB_KERNELS_WINDOW_POOL_H
#define GB_KERNELS_WINDOW_POOL_H

#include "kernels/plan/pool_problem.h"
#include "kernels/rowwise/epilogue.h"

typedef struct gb_pool {
    gb_pool_problem problem;
    bool channels;        /* vectors lie across the channels; otherwise along the width */
    bool codes;           /* maxima of codes across the channels, stored as they are */
    int row_dim, col_dim; /* a work item is rows x cols of these */
    int64_t rows, cols, items;
    int64_t pitch;          /* along the width: elements from row to row of the lines */
    int64_t capacity;       /* elements of one buffer of lines */
    int64_t steps[GB_AXES]; /* source offset of a position's window: steps . position + base */
    int64_t base;
    gb_epilogue epilogue;
    gb_scratch results;             /* of a work item; register 0 where more is done with them */
    gb_scratch lines, sums, buffer; /* of `capacity` elements; the buffer several times that */
    gb_scratch by_row, by_col, inside_col; /* cells that rows and columns of a work item count */
} gb_pool;

/* Plans the step, which has the problem's uses. */
gb_status gb_pool_plan(gb_step *step, const gb_pool_problem *problem);

#endif
