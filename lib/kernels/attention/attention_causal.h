/* Implicit causal masks when they are run: numbers that tensors hold, and how far a query sees. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_CAUSAL_H
#define GB_KERNELS_ATTENTION_ATTENTION_CAUSAL_H

#include "kernels/plan/attention_problem.h"

/* exp(x) is 0 below: weights this far under the maximum vanish. */
#define GB_ATTENTION_VANISHES 112.0F

float gb_attention_read(const gb_step_call *call, const gb_attention_scalar *scalar);

/* The mask of one call: query i sees keys below i + shift + 1, unless all are left to the
 * post-ops. */
typedef struct gb_causal_bounds {
    bool is_set;
    int64_t shift, keys;
    float fill;
} gb_causal_bounds;

gb_causal_bounds gb_causal_bounds_of(
        const gb_step_call *call, const gb_attention_causal *causal, int64_t queries, int64_t keys);
/* Keys below this one are visible to the query. */
int64_t gb_attention_visible_keys(const gb_causal_bounds *causal_bounds, int64_t query);

#endif
