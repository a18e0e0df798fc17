/* The reference's twin: every op of the op set once more, one literal function each, loops over
 * indices in f64. It shares nothing with lib/ref, with shape inference or with the conversions of
 * data types; of the library it reads the structure of ops and graphs only. No bounds, no threads,
 * no care for speed: lib/ref is held to it (tests/test_naive.c, graph-bench --ref=naive).
 *
 * Defaults of attributes are written down here again. They count where nobody set the attribute,
 * also where a graph has put the library's own into its copy of the op. */
#ifndef GB_REF_NAIVE_H
#define GB_REF_NAIVE_H

#include <graphbench/graphbench.h>

/* A tensor's logical elements in row-major order. Results of integer types are rounded and
 * saturated; those of floating types are not rounded (a fused implementation may not round them
 * either), but become infinite or NaN beyond the range of the type. */
typedef struct gb_naive_tensor {
    gb_data_type type;
    int ndims;
    int64_t dims[GB_MAX_NDIMS];
    int64_t count;
    double *value; /* owned */
    int64_t whole; /* element 0 of an s64 tensor, which f64 cannot always hold */
} gb_naive_tensor;

/* From memory laid out by the strides and type of a tensor; GB_INVALID_ARGUMENTS when dims or
 * strides are not known. And to memory, rounded to the type; elements between the strides stay. */
gb_status gb_naive_read(
        gb_naive_tensor *tensor, const gb_logical_tensor *layout, const void *memory);
void gb_naive_write(const gb_naive_tensor *tensor, const gb_logical_tensor *layout, void *memory);
/* What is left of a number after it was written to a floating type and read. */
double gb_naive_stored(gb_data_type type, double value);
void gb_naive_free(gb_naive_tensor *tensor);

int gb_naive_supports(gb_op_kind kind);
/* Evaluates one op: computes dims and values of its n_outputs outputs (freed by the caller, also
 * after a failure). GB_INVALID_SHAPE: the inputs do not fit each other or the attributes. */
gb_status gb_naive_run(
        const gb_op *op, const gb_naive_tensor *inputs, gb_naive_tensor *outputs /* zeroed */);

/* Tensors by id, and evaluation of ops (ids in topological order) of a graph: reads what the store
 * has, adds every result. GB_INVALID_SHAPE also when a result's dims are not those of the graph. */
typedef struct gb_naive_store {
    size_t count, capacity;
    size_t *ids;
    gb_naive_tensor *tensors;
} gb_naive_store;

/* Takes over the tensor's value; replaces a tensor of the same id. */
gb_status gb_naive_store_put(gb_naive_store *store, size_t id, gb_naive_tensor *tensor);
const gb_naive_tensor *gb_naive_store_get(const gb_naive_store *store, size_t id);
void gb_naive_store_clear(gb_naive_store *store);
gb_status gb_naive_execute(
        const gb_graph *graph, size_t n_ops, const size_t *op_ids, gb_naive_store *store);
/* Bytes that gb_naive_execute() adds to the store. */
double gb_naive_bytes(const gb_graph *graph, size_t n_ops, const size_t *op_ids);

#endif
