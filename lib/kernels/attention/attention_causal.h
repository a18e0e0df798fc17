/* Implicit causal masks when they are run: numbers that tensors hold, and how far a query sees. */
#ifndef GB_KERNELS_ATTENTION_ATTENTION_CAUSAL_H
#define GB_KERNELS_ATTENTION_ATTENTION_CAUSAL_H

#include "fusion/regions/attention.h"
#include "kernels/isa/kernels.h"

/* exp(x) is 0 below: weights this far under the maximum vanish. */
#define GB_ATTENTION_VANISHES 112.0F

/* A number that a tensor of one element holds at run time. */
typedef struct gb_attention_scalar {
    bool is_set;
    gb_data_type type; /* a floating type or s32 */
    uint32_t slot;
} gb_attention_scalar;

/* Scores where key > query + shift_up - shift_down are `fill`. */
typedef struct gb_attention_causal {
    bool is_set;
    gb_attention_scalar shift_up, shift_down, fill;
} gb_attention_causal;

gb_status gb_attention_scalar_init(
        gb_program *program, gb_step *step, uint32_t value, gb_attention_scalar *scalar);
gb_status gb_attention_causal_init(gb_program *program, gb_step *step,
        const gb_attention_mask *mask, gb_attention_causal *causal);
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
