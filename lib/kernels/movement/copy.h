/* Strided copies: the one engine behind Concat, StaticReshape, StaticTranspose and Reorder. */
#ifndef GB_KERNELS_MOVEMENT_COPY_H
#define GB_KERNELS_MOVEMENT_COPY_H

#include "kernels/plan/axes.h"

#include <stdbool.h>

typedef struct gb_copy_plan {
    int ndims;
    int64_t dims[GB_AXES];
    int64_t src_strides[GB_AXES], dst_strides[GB_AXES]; /* elements */
    size_t element;                                     /* bytes */
    int row_dim, col_dim; /* a work item is rows x cols of these; -1: one row */
    int64_t rows, cols;   /* of a whole work item */
    int64_t items;
    bool streamed; /* writes past the caches; the caller may set it */
    void (*copy)(const struct gb_copy_plan *plan, const char *src, char *dst, int64_t rows,
            int64_t cols);
} gb_copy_plan;

/* Plans copying a box of `dims`, elements of 1, 2, 4 or 8 bytes. */
void gb_copy_plan_init(gb_copy_plan *plan, int ndims, const int64_t *dims,
        const int64_t *src_strides, const int64_t *dst_strides, size_t element);
/* Copies work items begin..end-1 of plan->work items. Source and destination must not overlap. */
void gb_copy_items(
        const gb_copy_plan *plan, const void *src, void *dst, int64_t begin, int64_t end);
/* Bytes read and written. */
double gb_copy_bytes(const gb_copy_plan *plan);

#endif
