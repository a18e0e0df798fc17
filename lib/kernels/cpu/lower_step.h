/* The frame of a lowering that makes one step of one op. */
#ifndef GB_KERNELS_CPU_LOWER_STEP_H
#define GB_KERNELS_CPU_LOWER_STEP_H

#include "kernels/cpu/lower.h"

/* Fills in the step: its parameters (zeroed, step->params), uses, scratch and work. */
typedef gb_status gb_plan_step_fn(gb_program *program, const gb_group *group, gb_step *step);

/* What a step does. */
typedef void gb_run_step_fn(const gb_step_call *call);

/* Adds the step once `plan` has filled it in. */
gb_status gb_lower_step(gb_program *program, const gb_group *group, const char *kernel,
        gb_run_step_fn *run, size_t params_bytes, gb_plan_step_fn *plan);

/* The op that a group without post-ops consists of. */
const gb_op *gb_group_op(const gb_program *program, const gb_group *group);

#endif
