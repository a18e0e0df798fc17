/* Cutting a list of ops along an axis that runs through it, so that it can be evaluated part by
 * part. */
#ifndef GB_REF_SLICES_CUT_H
#define GB_REF_SLICES_CUT_H

#include "ref/slices/list.h"
#include "ref/slices/slice_rules.h"

typedef struct gb_ref_cut {
    gb_graph *graph; /* owned: a copy of the list's, with the dims of a slice */
    size_t n_ops;
    const size_t *op_ids; /* lent */
    bool *listed;         /* by op; owned, like all arrays */
    bool *sliced;         /* by op: is it evaluated for each slice, or once before them? */
    int *axes;            /* by value: where it is cut; GB_REF_WHOLE */
    int64_t *extents;     /* by value: the whole size of that axis */
    int *ports;           /* room for the axes of an op's tensors */
    int64_t parts;        /* a slice has some of so many parts of each axis that is cut */
    int64_t length;       /* parts of a slice that fits */
} gb_ref_cut;

/* `cut` is to be destroyed, also after a failure. */
gb_status gb_ref_cut_create(const gb_ref_list *list, gb_ref_cut *cut);
void gb_ref_cut_destroy(gb_ref_cut *cut);

/* Looks for a cut with slices that need no more than `bytes`. *least becomes `bytes` or less when
 * there is one: then `length` is the most parts that fit. Otherwise it is what the best cut needs
 * (infinite: the ops cannot be cut). */
gb_status gb_ref_cut_find(gb_ref_cut *cut, double bytes, double *least);

/* Gives the values that are cut the dims of a slice of so many parts. */
void gb_ref_cut_resize(gb_ref_cut *cut, int64_t parts);

/* The ops that are evaluated for each slice, or before. */
gb_ref_list gb_ref_cut_list(const gb_ref_cut *cut, bool sliced);

/* Is the value cut, and made elsewhere; made here, and kept? */
bool gb_ref_cut_reads(const gb_ref_cut *cut, uint32_t value);
bool gb_ref_cut_keeps(const gb_ref_cut *cut, uint32_t value);

#endif
