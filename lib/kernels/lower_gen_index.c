/* Lowers GenIndex: each element's index along an axis. */
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/chunks.h"
#include "kernels/lower_step.h"

#include <string.h>

enum { CHUNK = 4096 };

typedef struct gen_index {
    gb_chunks chunks;
    uint32_t slot;
    int64_t strides[GB_MAX_NDIMS];
    int64_t index[GB_MAX_NDIMS]; /* the value as if it were an offset: 1 along the axis */
} gen_index;

static void run(const gb_step_call *call)
{
    const gen_index *params = call->params;
    const gb_chunks *chunks = &params->chunks;
    int64_t begin, end, inner = chunks->inner;
    int64_t stride = inner < 0 ? 0 : params->strides[inner];
    int32_t step = inner < 0 ? 0 : (int32_t)params->index[inner];
    gb_split(chunks->units, call->thread, call->n_threads, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t position[GB_MAX_NDIMS] = {0}, n = gb_chunks_locate(chunks, unit, position);
        int32_t *dst = call->buffers[params->slot];
        dst += gb_offset(chunks->ndims, params->strides, position);
        int32_t first = (int32_t)gb_offset(chunks->ndims, params->index, position);
        for (int64_t i = 0; i < n; i++)
            dst[i * stride] = first + (int32_t)i * step;
    }
}

static gb_status plan(gb_program *program, const gb_group *group, gb_step *step)
{
    const gb_op *op = gb_group_op(program, group);
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    gen_index *params = step->params;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 0), dst->ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    if (gb_tensor_count(dst) > 0 && dst->dims[axis] > (int64_t)INT32_MAX + 1)
        return gb_fail(GB_INVALID_SHAPE, "%s: axis %d of %s is too long for s32", gb_op_label(op),
                axis, gb_tensor_label(dst));
    memcpy(params->strides, dst->strides, (size_t)dst->ndims * sizeof *params->strides);
    params->index[axis] = 1;
    gb_space space = {.ndims = dst->ndims};
    memcpy(space.dims, dst->dims, sizeof dst->dims);
    gb_space_add(&space, params->strides);
    gb_space_add(&space, params->index);
    params->chunks = gb_chunks_of(&space, CHUNK);
    step->work = 4 * (double)gb_tensor_count(dst);
    return gb_program_use(program, step, op->outputs[0], true, &params->slot);
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    gb_step step = {.kernel = "gen_index", .run = run};
    return gb_lower_step(program, group, step, sizeof(gen_index), plan);
}

static bool supports(const gb_op *op, const char **reason)
{
    (void)op;
    (void)reason;
    return true;
}

const gb_lowering gb_lowering_gen_index = {
        .name = "gen_index", .supports = supports, .lower = lower};
