/* The naive reference: every op of the op set in f64, op by op, carrying for each element a bound
 * on the error that a correct implementation may make. It shares no arithmetic with the optimised
 * library; it sees only the graph. */
#ifndef GB_REF_REF_H
#define GB_REF_REF_H

#include <graphbench/graphbench.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sums over elements that have a bound: the squares of their errors' standard deviations, of their bounds
 * and of the quotients of both, and how many they are. All 0: the bounds are all that is known. */
typedef struct gb_ref_spread {
    double deviations, bounds, quotients, elements;
} gb_ref_spread;

/* A tensor's logical elements in row-major order. */
typedef struct gb_ref_tensor {
    gb_logical_tensor tensor; /* id, type, dims (strides are ignored) */
    int64_t count;
    double *value; /* owned */
    /* bound[i] >= 0: a correct stored value lies within value[i] +- bound[i]; INFINITY: unbounded,
     * not compared. NULL: all exact. Owned. */
    double *bound;
    int64_t whole; /* of an s64 tensor that was read: its first element, which f64 may not hold */
    gb_ref_spread spread;
    /* Some rule used the statistical form of the summation bound (say so in reports). */
    int statistical;
} gb_ref_tensor;

/* Tensors by id. */
typedef struct gb_ref_store gb_ref_store;

gb_status gb_ref_store_create(gb_ref_store **store);
void gb_ref_store_destroy(gb_ref_store *store);
/* Takes over value and bound (malloc'ed); replaces a tensor of the same id. */
gb_status gb_ref_store_put(gb_ref_store *store, gb_ref_tensor *tensor);
/* NULL when absent. Lent until the next put or drop. */
const gb_ref_tensor *gb_ref_store_get(const gb_ref_store *store, size_t id);
void gb_ref_store_drop(gb_ref_store *store, size_t id);

/* Makes an exact tensor from memory laid out by the tensor's strides and type, and the other way round (rounding to the
 * type). */
gb_status gb_ref_tensor_read(
        gb_ref_tensor *tensor, const gb_logical_tensor *layout, const void *memory);
void gb_ref_tensor_write(
        const gb_ref_tensor *tensor, const gb_logical_tensor *layout, void *memory);
void gb_ref_tensor_free(gb_ref_tensor *tensor);

/* Is there a reference for the kind? */
int gb_ref_supports(gb_op_kind kind);
/* Evaluates ops (ids in topological order) of a finalized graph: reads the inputs from the store,
 * adds the outputs, but not those that only the given ops read. The dims of all tensors must be
 * known. Runs on all threads. GB_UNIMPLEMENTED names an op without reference. */
gb_status gb_ref_execute(
        const gb_graph *graph, size_t n_ops, const size_t *op_ids, gb_ref_store *store);
/* The same in slices, when the ops would need more than `bytes` beside the tensors that are in the
 * store before or after: an axis is found along which they can be cut, and so many of its indices
 * are evaluated at a time as fit. Values are the same; a bound that is statistical may differ by
 * what the errors of a slice and of the whole tensor have for a ratio, see docs/numerics.md.
 * GB_OUT_OF_MEMORY when no cut brings the need below `bytes`. */
gb_status gb_ref_execute_within(const gb_graph *graph, size_t n_ops, const size_t *op_ids,
        double bytes, gb_ref_store *store);
/* Bytes that gb_ref_execute() needs beside the tensors that are in the store before or after it. */
gb_status gb_ref_get_memory(
        const gb_graph *graph, size_t n_ops, const size_t *op_ids, double *bytes);
/* The fewest `bytes` with which gb_ref_execute_within() succeeds. */
gb_status gb_ref_get_least_memory(
        const gb_graph *graph, size_t n_ops, const size_t *op_ids, double *bytes);

#ifdef __cplusplus
}
#endif

#endif
