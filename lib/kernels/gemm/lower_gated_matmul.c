/* Lowers a gated product: two products of one source run as one kernel, and only what the post-ops
 * behind both make is written. */
#include "base/status.h"
#include "fusion/regions/regions.h"
#include "kernels/cpu/lower.h"
#include "kernels/gemm/gemm_plan.h"
#include "kernels/plan/gated_matmul.h"

static gb_status gated_matmul_lower(gb_program *program, const gb_group *group)
{
    gb_gemm_problem gemm = {0}, gate = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "gated gemm", &step));
    GB_TRY(gb_gated_matmul_describe(program, group->parts, step, &gemm, &gate));
    return gb_gemm_add(program, step, &gemm);
}

const gb_region_lowering gb_lowering_gated_matmul = {
        .region = &gb_region_gated_matmul, .lower = gated_matmul_lower};
