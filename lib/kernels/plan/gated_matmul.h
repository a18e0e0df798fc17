/* A gated product as two products over one iteration space. */
#ifndef GB_KERNELS_PLAN_GATED_MATMUL_H
#define GB_KERNELS_PLAN_GATED_MATMUL_H

#include "fusion/regions/gated_matmul.h"
#include "kernels/plan/matmul.h"

/* Fills in two zeroed plans, up to and with gb_gemm_orient(); `gate` becomes that of `gemm`. Adds the
 * uses of pointwise programs and parameters to the step. */
gb_status gb_gated_matmul_describe(gb_program *program, const gb_gated_matmul_parts *parts,
        gb_step *step, gb_gemm_problem *gemm, gb_gemm_problem *gate);

/* Are both products alike but for the content of their weights: types, strides and parameters? */
bool gb_gated_matmul_is_even(const gb_graph *graph, const gb_gated_matmul_parts *parts);

#endif
