/* What implicit causal masks hide, at run time. */
#include "kernels/attention/attention_causal.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/cpu/step_call.h"

#include <stdlib.h>

gb_status gb_attention_scalar_init(
        gb_program *program, gb_step *step, uint32_t value, gb_attention_scalar *scalar)
{
    scalar->is_set = value != GB_NONE;
    if (!scalar->is_set)
        return GB_SUCCESS;
    scalar->type = gb_program_graph(program)->values[value].tensor.data_type;
    return gb_program_use(program, step, value, false, &scalar->slot);
}

gb_status gb_attention_causal_init(gb_program *program, gb_step *step,
        const gb_attention_mask *mask, gb_attention_causal *causal)
{
    causal->is_set = true;
    GB_TRY(gb_attention_scalar_init(program, step, mask->shift_up, &causal->shift_up));
    GB_TRY(gb_attention_scalar_init(program, step, mask->shift_down, &causal->shift_down));
    return gb_attention_scalar_init(program, step, mask->fill, &causal->fill);
}

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
