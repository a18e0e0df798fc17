/* Evaluating a list of ops, or a part of it: what gb_ref_execute() and its evaluation in slices
 * have in common. */
#ifndef GB_REF_SLICES_LIST_H
#define GB_REF_SLICES_LIST_H

#include "ref/bounds/ref_op.h"

typedef struct gb_ref_list {
    const gb_graph *graph;
    size_t n_ops;
    const size_t *op_ids; /* in topological order; lent */
    /* By op index: of the listed ops, those with marks[] == marked are evaluated; the others are
     * readers and producers of tensors all the same. NULL: all. Lent. */
    const bool *marks;
    bool marked;
} gb_ref_list;

/* Sets listed[] (by op index, zeroed) of the ops of the list. */
gb_status gb_ref_list_ops(const gb_ref_list *list, bool *listed);
/* Op i of the list; NULL when it is not one to evaluate. */
const gb_op *gb_ref_list_op(const gb_ref_list *list, size_t i);
/* See gb_ref_execute(). */
gb_status gb_ref_list_execute(const gb_ref_list *list, gb_ref_store *store);

typedef struct gb_ref_use {
    double most; /* bytes at any time... */
    double left; /* and at the end, of tensors that come and go in the list as a whole */
} gb_ref_use;
gb_status gb_ref_list_measure(const gb_ref_list *list, gb_ref_use *use);

/* Uses of a value that only listed ops make and read: it goes with the last of them. GB_NONE: it
 * stays, or comes from elsewhere. */
uint32_t gb_ref_count_uses(const gb_graph *graph, const bool *listed, uint32_t value);
/* listed[] by op and, by value, uses of those that evaluated ops make. The caller frees both, also
 * after a failure. */
gb_status gb_ref_list_uses(const gb_ref_list *list, bool **listed, uint32_t **uses);

/* Counts the elements of a tensor whose dims are all known; false when they are not, or too many.
 */
bool gb_ref_count(const gb_logical_tensor *tensor, int64_t *count);
/* Bytes of the value and bound of a tensor; 0 when its dims are not known. */
double gb_ref_bytes(const gb_logical_tensor *tensor);

/* A store that also gives what the one behind it has. */
gb_status gb_ref_store_create_before(gb_ref_store **store, const gb_ref_store *behind);

#endif
