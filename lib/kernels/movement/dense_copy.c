/* A step that copies a tensor into a temporary buffer. */
#include "kernels/movement/dense_copy.h"

#include "base/parallel.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/step_call.h"
#include "kernels/movement/copy.h"

typedef struct dense_copy {
    gb_copy_box box;
    gb_copy_plan plan;
    uint32_t src_slot, dst_slot;
} dense_copy;

static void dense_copy_run(const gb_step_call *call)
{
    const dense_copy *params = call->params;
    int64_t begin, end;
    gb_split(params->plan.items, call->thread, call->n_threads, &begin, &end);
    gb_copy_items(&params->plan, call->buffers[params->src_slot], call->buffers[params->dst_slot],
            begin, end);
}

static gb_status dense_copy_plan(
        gb_program *program, uint32_t value, uint32_t buffer, gb_step *step)
{
    const gb_logical_tensor *src = &gb_program_graph(program)->values[value].tensor;
    int64_t dense[GB_AXES];
    dense_copy *params = step->params = gb_step_alloc(step, 1, sizeof *params);
    if (!params)
        return GB_OUT_OF_MEMORY;
    gb_dense_strides(src->ndims, src->dims, dense);
    gb_copy_box_init(&params->box, src->ndims, src->dims, src->strides, dense,
            gb_data_type_bytes(src->data_type, 1));
    gb_copy_plan_init(&params->plan, &params->box);
    step->work = gb_copy_box_bytes(&params->box);
    GB_TRY(gb_program_use(program, step, value, false, &params->src_slot));
    return gb_step_use_buffer(step, buffer, true, &params->dst_slot);
}

gb_status gb_dense_copy_add(gb_program *program, uint32_t value, uint32_t *buffer)
{
    const gb_logical_tensor *src = &gb_program_graph(program)->values[value].tensor;
    size_t bytes = gb_data_type_bytes(src->data_type, (size_t)gb_tensor_count(src));
    gb_step *step;
    GB_TRY(gb_program_begin(program, "pack", &step));
    GB_TRY(gb_program_temporary(program, bytes, buffer));
    GB_TRY(dense_copy_plan(program, value, *buffer, step));
    step->run = dense_copy_run;
    return gb_program_add(program, step);
}
