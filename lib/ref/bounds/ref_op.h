/* What the reference functions of the ops share: element access, the rules of bounds, and the table
 * of functions.
 *
 * Every tensor is dense row-major f64. A reference function reads inputs and fills value (and
 * bound) of its outputs, both allocated; afterwards gb_ref_execute() applies the store to the
 * declared data type (bound += u (|v| + bound) + eta for floating types; an integer result is
 * already the integer). Rules: docs/numerics.md.
 */
#ifndef GB_REF_BOUNDS_REF_OP_H
#define GB_REF_BOUNDS_REF_OP_H

#include "graph/ops/op_table.h"
#include "ref/ref.h"

/* Unit roundoff of f32, in which internal steps are made. */
#define GB_REF_U 0x1p-24
/* Half the smallest normal f32: results may be flushed. */
#define GB_REF_ETA 0x1p-126

typedef struct gb_ref_call {
    const gb_op *op;
    uint32_t n_inputs, n_outputs;
    const gb_ref_tensor *const *inputs;
    gb_ref_tensor *outputs; /* value and bound allocated, count set */
} gb_ref_call;

typedef gb_status (*gb_ref_fn)(const gb_ref_call *call);

/* Of an op kind (table.c); NULL = no reference. */
gb_ref_fn gb_ref_function(gb_op_kind kind);

static inline double gb_ref_bound(const gb_ref_tensor *tensor, int64_t i)
{
    return tensor->bound ? tensor->bound[i] : 0;
}

/* Removes a tensor from the store and hands over its arrays; false when there is none. */
bool gb_ref_store_take(gb_ref_store *store, size_t id, gb_ref_tensor *tensor);

/* g_k of the summation bound: k u up to 64 terms, min(k u, 8 sqrt(k) u) above (then *statistical =
 * 1; may be NULL). */
double gb_ref_sum_factor(int64_t k, double u, int *statistical);

#endif
