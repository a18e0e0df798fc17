/* How many axes the index spaces of kernels have at most: those of a tensor, and two more where the
 * last two are split into groups and the elements of a group. */
#ifndef GB_KERNELS_PLAN_AXES_H
#define GB_KERNELS_PLAN_AXES_H

#include <graphbench/graphbench.h>

enum { GB_AXES = GB_MAX_NDIMS + 2 };

#endif
