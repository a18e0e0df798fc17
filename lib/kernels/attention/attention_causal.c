/* What implicit causal masks hide, at run time. */
#include "kernels/attention/attention_causal.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "kernels/cpu/step_call.h"

#include <stdlib.h>

float gb_attention_read(const gb_step_call *call, const gb_attention_scalar *scalar)
{
    return (float)gb_element_get(scalar->type, call->buffers[scalar->slot], 0);
}

static int64_t read_shift(const gb_step_call *call, const gb_attention_scalar *scalar)
{
    return scalar->is_set ? *(const int32_t *)call->buffers[scalar->slot] : 0;
}

/* Indices are s32 and saturate: shifts that could take them that far are left to the post-ops. */
gb_causal_bounds gb_causal_bounds_of(
        const gb_step_call *call, const gb_attention_causal *causal, int64_t queries, int64_t keys)
{
    const int64_t most = INT32_MAX / 4;
    gb_causal_bounds causal_bounds = {.keys = keys};
    if (!causal->is_set)
        return causal_bounds;
    int64_t up = read_shift(call, &causal->shift_up);
    int64_t down = read_shift(call, &causal->shift_down);
    causal_bounds.fill = gb_attention_read(call, &causal->fill);
    causal_bounds.shift = up - down;
    causal_bounds.is_set = llabs(up) < most && llabs(down) < most && queries < most;
    return causal_bounds;
}

int64_t gb_attention_visible_keys(const gb_causal_bounds *causal_bounds, int64_t query)
{
    return gb_max_i64(0, gb_min_i64(query + causal_bounds->shift + 1, causal_bounds->keys));
}
