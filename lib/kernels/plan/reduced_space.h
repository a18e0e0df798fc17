/* Iteration spaces some of whose dims are reduced: each of the others, the kept ones, has its own
 * sum, maximum or statistics. */
#ifndef GB_KERNELS_PLAN_REDUCED_SPACE_H
#define GB_KERNELS_PLAN_REDUCED_SPACE_H

#include "kernels/plan/space.h"

enum { GB_KEPT, GB_REDUCED }; /* roles of dims */

typedef struct gb_reduced_space {
    int ndims;
    int64_t dims[GB_AXES];
    int n_kept, n_reduced;
    uint8_t kept[GB_AXES], reduced[GB_AXES]; /* dims, outermost first */
    int64_t n;                               /* elements that are reduced to one */
} gb_reduced_space;

/* Brings the space into normal form and lists its dims by their roles. */
void gb_reduced_space_init(gb_space *space, gb_reduced_space *reduced);

/* The innermost kept or reduced dim; -1: none. */
static inline int gb_last_kept(const gb_reduced_space *space)
{
    return space->n_kept ? space->kept[space->n_kept - 1] : -1;
}
static inline int gb_last_reduced(const gb_reduced_space *space)
{
    return space->n_reduced ? space->reduced[space->n_reduced - 1] : -1;
}

/* Size of a dim, 1 for -1. */
static inline int64_t gb_reduced_space_size(const gb_reduced_space *space, int dim)
{
    return dim < 0 ? 1 : space->dims[dim];
}

/* Is the innermost dim of all a kept one? Then what is reduced together are columns. */
static inline bool gb_reduces_columns(const gb_reduced_space *space)
{
    return space->ndims && gb_last_kept(space) == space->ndims - 1;
}

/* "8x[16]x4": the dims in brackets are reduced. */
void gb_reduced_space_print(const gb_printer *printer, const gb_reduced_space *space);

#endif
