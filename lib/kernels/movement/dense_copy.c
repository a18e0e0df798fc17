/* A step that copies a tensor into a temporary buffer. */
#include "kernels/movement/dense_copy.h"

#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/movement/copy_step.h"

gb_status gb_dense_copy_add(gb_program *program, uint32_t value, uint32_t *buffer)
{
    const gb_logical_tensor *src = &gb_program_graph(program)->values[value].tensor;
    size_t bytes = gb_data_type_bytes(src->data_type, (size_t)gb_tensor_count(src));
    gb_copy_problem problem = {.n_phases = 1};
    int64_t dense[GB_AXES];
    gb_step *step;
    GB_TRY(gb_program_begin(program, "pack", &step));
    GB_TRY(gb_program_temporary(program, bytes, buffer));
    gb_copy_move *move = gb_copy_add_moves(step, &problem, 1);
    if (!move)
        return GB_OUT_OF_MEMORY;
    GB_TRY(gb_program_use(program, step, value, false, &move->src_slot));
    GB_TRY(gb_step_use_buffer(step, *buffer, true, &move->dst_slot));
    gb_dense_strides(src->ndims, src->dims, dense);
    gb_copy_box_init(&move->box, src->ndims, src->dims, src->strides, dense,
            gb_data_type_bytes(src->data_type, 1));
    GB_TRY(gb_step_describe(program, step, gb_copy_problem_print, &problem));
    GB_TRY(gb_copy_step_plan(step, &problem));
    return gb_program_add(program, step);
}
