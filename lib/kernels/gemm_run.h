/* Running a GEMM plan. */
#ifndef GB_KERNELS_GEMM_RUN_H
#define GB_KERNELS_GEMM_RUN_H

#include "kernels/gemm_plan.h"

void gb_gemm_run(const gb_step_call *call);

#endif
