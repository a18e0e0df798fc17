/* The frame of a lowering that makes one step of one op. */
#include "kernels/cpu/lower_step.h"

#include "base/status.h"

gb_status gb_lower_step(gb_program *program, const gb_group *group, const char *kernel,
        gb_run_step_fn *run, size_t params_bytes, gb_plan_step_fn *plan)
{
    gb_step *step;
    GB_TRY(gb_program_begin(program, kernel, &step));
    step->run = run;
    step->params = gb_step_alloc(step, 1, params_bytes);
    if (!step->params)
        return GB_OUT_OF_MEMORY;
    GB_TRY(plan(program, group, step));
    return gb_program_add(program, step);
}

const gb_op *gb_group_op(const gb_program *program, const gb_group *group)
{
    return gb_program_graph(program)->ops[group->anchor];
}
