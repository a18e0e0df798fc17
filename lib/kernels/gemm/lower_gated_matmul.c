/* Lowers a gated product: two products of one source run as one kernel, and only what the post-ops
 * behind both make is written. */
#include "base/status.h"
#include "fusion/regions/gated_matmul.h"
#include "fusion/regions/regions.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/gemm/gemm_plan.h"
#include "kernels/plan/matmul.h"

static gb_group group_of(gb_gated_product *p, gb_region_chain *post_ops, uint32_t *output)
{
    gb_sort_ops(post_ops->ops, post_ops->n);
    return (gb_group){.anchor = p->op->index,
            .n_prologue = p->n_dequantized,
            .prologue = p->dequantized,
            .n_ops = post_ops->n,
            .ops = post_ops->ops,
            .n_outputs = 1,
            .outputs = output};
}

static gb_status gated_matmul_build(gb_program *program, gb_gated_matmul_parts *g, gb_step *step,
        gb_gemm_problem *gemm, gb_gemm_problem *gate)
{
    uint8_t roles[GB_AXES], gate_roles[GB_AXES];
    gb_group with_gate = group_of(&g->gate, &g->before, &g->made);
    gb_group with_up = group_of(&g->up, &g->after, &g->result);
    gb_scratch_operands scratch_operands = {.n = 1, .values = {g->made}};
    GB_TRY(gb_matmul_describe(program, &with_gate, &scratch_operands, step, gate, gate_roles));
    GB_TRY(gb_matmul_describe(program, &with_up, &scratch_operands, step, gemm, roles));
    for (int d = 0; d < gemm->pointwise.ndims; d++)
        if (roles[d] != gate_roles[d])
            roles[d] = GB_GEMM_BATCH;
    gemm->gate = gate;
    gb_gemm_orient(gemm, roles);
    return GB_SUCCESS;
}

static gb_status gated_matmul_lower(gb_program *program, const gb_group *group)
{
    gb_gated_matmul_parts parts = *(const gb_gated_matmul_parts *)group->parts;
    gb_gemm_problem gemm = {0}, gate = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "gated gemm", &step));
    GB_TRY(gated_matmul_build(program, &parts, step, &gemm, &gate));
    return gb_gemm_add(program, step, &gemm);
}

const gb_region_lowering gb_lowering_gated_matmul = {
        .region = &gb_region_gated_matmul, .lower = gated_matmul_lower};
