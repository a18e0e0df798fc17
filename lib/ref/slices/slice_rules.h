/* How an op passes a cut on: which parts of its inputs make which part of its outputs. */
#ifndef GB_REF_SLICES_SLICE_RULES_H
#define GB_REF_SLICES_SLICE_RULES_H

#include "graph/ops/op_table.h"

enum { GB_REF_WHOLE = -1 };

/* When output 0 is cut along `axis`, part by part: the axes of inputs, then outputs that are cut
 * with it, each in as many parts; GB_REF_WHOLE for inputs that every part needs as a whole. Every
 * element of a part then is the same function of the same elements as in the whole output. False:
 * the op cannot be cut there. All dims are known. */
bool gb_ref_slice_axes(const gb_op *op, int axis, int *axes);

#endif
