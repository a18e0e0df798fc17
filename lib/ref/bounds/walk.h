/* Walking the index space of a result with several operands at once: broadcast, per-channel or
 * permuted operands are strides, and the work comes in rows so that no index is computed per
 * element. */
#ifndef GB_REF_BOUNDS_WALK_H
#define GB_REF_BOUNDS_WALK_H

#include <graphbench/graphbench.h>
#include <stdint.h>

/* Room for axes that are split in two (groups). */
enum { GB_REF_MAX_OPERANDS = 4, GB_REF_WALK_DIMS = 2 * GB_MAX_NDIMS };

typedef struct gb_ref_walk {
    int ndims, n_operands;
    int64_t dims[GB_REF_WALK_DIMS];
    int64_t strides[GB_REF_MAX_OPERANDS][GB_REF_WALK_DIMS];
} gb_ref_walk;

/* Elements first .. first + count - 1 of the walk in row-major order; operand k of the i-th of them
 * is its element offset[k] + i step[k]. */
typedef struct gb_ref_row {
    int64_t first, count;
    int64_t offset[GB_REF_MAX_OPERANDS], step[GB_REF_MAX_OPERANDS];
} gb_ref_row;

typedef void (*gb_ref_row_fn)(void *context, const gb_ref_row *row);

void gb_ref_walk_init(gb_ref_walk *walk, int ndims, const int64_t *dims);
/* Adds an operand; its strides are given (n = ndims of the walk). */
void gb_ref_walk_strided(gb_ref_walk *walk, const int64_t *strides);
/* Adds a dense operand whose dims broadcast onto those of the walk, aligned at the last axis. */
void gb_ref_walk_broadcast(gb_ref_walk *walk, int ndims, const int64_t *dims);
/* Adds a vector that runs along one axis. */
void gb_ref_walk_along(gb_ref_walk *walk, int axis);

/* All elements, on all threads; `row` must not write to what another row reads or writes. */
void gb_ref_walk_run(gb_ref_walk *walk, gb_ref_row_fn row, void *context);
/* All elements in order on this thread. */
void gb_ref_walk_serial(gb_ref_walk *walk, gb_ref_row_fn row, void *context);
/* 0 .. count - 1 on all threads, without operands. */
void gb_ref_walk_flat(int64_t count, gb_ref_row_fn row, void *context);

#endif
