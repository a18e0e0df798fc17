/* The frame of a lowering that makes one step of one op. */
#include "kernels/cpu/lower_step.h"

#include "base/memory.h"

gb_status gb_lower_step(gb_program *program, const gb_group *group, gb_step step,
        size_t params_bytes, gb_plan_step_fn *plan)
{
    step.params = gb_calloc(1, params_bytes);
    if (!step.params)
        return GB_OUT_OF_MEMORY;
    gb_status status = plan(program, group, &step);
    if (status == GB_SUCCESS)
        return gb_program_add(program, &step);
    gb_step_clear(&step);
    return status;
}

const gb_op *gb_group_op(const gb_program *program, const gb_group *group)
{
    return gb_program_graph(program)->ops[group->anchor];
}
