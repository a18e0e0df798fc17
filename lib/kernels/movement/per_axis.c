/* Tensors that belong to some axes of another one. */
#include "kernels/movement/per_axis.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/step_call.h"
#include "kernels/movement/copy.h"

#include <string.h>

/* Distance of neighbours when the tensor's elements are evenly spaced in row-major order, else 0.
 */
static int64_t even_spacing(const gb_logical_tensor *tensor)
{
    int64_t spacing = 0, next = 0;
    for (int d = tensor->ndims - 1; d >= 0; d--) {
        if (tensor->dims[d] == 1)
            continue;
        if (!spacing)
            spacing = next = tensor->strides[d];
        if (tensor->strides[d] != next)
            return 0;
        next *= tensor->dims[d];
    }
    return spacing;
}

/* Matches axes of src with those of the tensor, but for dims of 1; false when they differ. */
static bool match_dims(const gb_logical_tensor *src, int first, int end,
        const gb_logical_tensor *tensor, int64_t *strides)
{
    int own = tensor->ndims - 1;
    for (int d = end - 1; d >= first; d--) {
        strides[d] = 0;
        if (src->dims[d] == 1)
            continue;
        while (own >= 0 && tensor->dims[own] == 1)
            own--;
        if (own < 0 || tensor->dims[own] != src->dims[d])
            return false;
        strides[d] = tensor->strides[own--];
    }
    return true;
}

bool gb_per_axis_strides(const gb_logical_tensor *src, int first, int end,
        const gb_logical_tensor *tensor, int64_t *strides)
{
    if (match_dims(src, first, end, tensor, strides))
        return true;
    int64_t spacing = even_spacing(tensor);
    gb_dense_strides(end - first, src->dims + first, strides + first);
    for (int d = first; d < end; d++)
        strides[d] *= spacing;
    return spacing != 0;
}

int64_t gb_per_axis_offset(const gb_logical_tensor *tensor, int64_t index)
{
    int64_t offset = 0;
    for (int d = tensor->ndims - 1; d >= 0; d--) {
        offset += index % tensor->dims[d] * tensor->strides[d];
        index /= tensor->dims[d];
    }
    return offset;
}

typedef struct pack {
    gb_copy_plan plan;
    uint32_t src_slot, dst_slot;
} pack;

static void per_axis_run(const gb_step_call *call)
{
    const pack *params = call->params;
    int64_t begin, end;
    gb_split(params->plan.items, call->thread, call->n_threads, &begin, &end);
    gb_copy_items(&params->plan, call->buffers[params->src_slot], call->buffers[params->dst_slot],
            begin, end);
}

static gb_status plan_pack(gb_program *program, uint32_t value, uint32_t buffer, gb_step *step)
{
    const gb_logical_tensor *src = &gb_program_graph(program)->values[value].tensor;
    int64_t dense[GB_AXES];
    pack *params = step->params = gb_step_alloc(step, 1, sizeof *params);
    if (!params)
        return GB_OUT_OF_MEMORY;
    gb_dense_strides(src->ndims, src->dims, dense);
    gb_copy_plan_init(&params->plan, src->ndims, src->dims, src->strides, dense,
            gb_data_type_bytes(src->data_type, 1));
    step->work = gb_copy_bytes(&params->plan);
    GB_TRY(gb_program_use(program, step, value, false, &params->src_slot));
    return gb_step_use_buffer(step, buffer, true, &params->dst_slot);
}

gb_status gb_per_axis_pack(gb_program *program, uint32_t value, uint32_t *buffer)
{
    const gb_logical_tensor *src = &gb_program_graph(program)->values[value].tensor;
    size_t bytes = gb_data_type_bytes(src->data_type, (size_t)gb_tensor_count(src));
    gb_step *step;
    GB_TRY(gb_program_begin(program, "pack", &step));
    GB_TRY(gb_program_temporary(program, bytes, buffer));
    GB_TRY(plan_pack(program, value, *buffer, step));
    step->run = per_axis_run;
    return gb_program_add(program, step);
}
