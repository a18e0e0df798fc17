/* How the CPU copies a box: work items of rows or of tiles. */
#ifndef GB_KERNELS_MOVEMENT_COPY_H
#define GB_KERNELS_MOVEMENT_COPY_H

#include "kernels/plan/copy_problem.h"

typedef struct gb_copy_plan {
    const gb_copy_box *box;
    int row_dim, col_dim; /* a work item is rows x cols of these; -1: one row */
    int64_t rows, cols;   /* of a whole work item */
    int64_t items;
    bool streamed; /* writes past the caches */
    bool near;     /* tiles are whole lines of the destination, and transposed near it */
    void (*copy)(const struct gb_copy_plan *plan, const char *src, char *dst, int64_t rows,
            int64_t cols);
} gb_copy_plan;

/* Plans copying a box, which stays where it is as long as the plan; past the caches if `streamed`. */
void gb_copy_plan_init(gb_copy_plan *plan, const gb_copy_box *box, bool streamed);
/* Copies work items begin..end-1 of plan->items. Source and destination must not overlap. */
void gb_copy_items(
        const gb_copy_plan *plan, const void *src, void *dst, int64_t begin, int64_t end);

#endif
