/* A step of strided copies. */
#ifndef GB_KERNELS_MOVEMENT_COPY_STEP_H
#define GB_KERNELS_MOVEMENT_COPY_STEP_H

#include "kernels/plan/copy_problem.h"

/* Plans the step, which has the problem's uses, and its work. */
gb_status gb_copy_step_plan(gb_step *step, const gb_copy_problem *problem);

#endif
