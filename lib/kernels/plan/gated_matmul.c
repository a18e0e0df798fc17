/* Gated products: what the post-ops of the gate make is a scratch operand of the other product. */
#include "kernels/plan/gated_matmul.h"

#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/dequantization.h"

#include <string.h>

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

gb_status gb_gated_matmul_describe(gb_program *program, const gb_gated_matmul_parts *parts,
        gb_step *step, gb_gemm_problem *gemm, gb_gemm_problem *gate)
{
    gb_gated_matmul_parts g = *parts;
    uint8_t roles[GB_AXES], gate_roles[GB_AXES];
    gb_group with_gate = group_of(&g.gate, &g.before, &g.made);
    gb_group with_up = group_of(&g.up, &g.after, &g.result);
    gb_scratch_operands scratch_operands = {.n = 1, .values = {g.made}};
    GB_TRY(gb_matmul_describe(program, &with_gate, &scratch_operands, step, gate, gate_roles));
    GB_TRY(gb_matmul_describe(program, &with_up, &scratch_operands, step, gemm, roles));
    for (int d = 0; d < gemm->pointwise.ndims; d++)
        if (roles[d] != gate_roles[d])
            roles[d] = GB_GEMM_BATCH;
    gemm->gate = gate;
    gb_gemm_orient(gemm, roles);
    return GB_SUCCESS;
}

static bool same_strides(const int64_t *a, const int64_t *b)
{
    return memcmp(a, b, GB_AXES * sizeof *a) == 0;
}

static bool same_parameter(
        const gb_dequantization_parameter *a, const gb_dequantization_parameter *b)
{
    return a->type == b->type && (a->type == GB_UNDEF || same_strides(a->strides, b->strides));
}

static gb_dequantization weights_of(const gb_graph *graph, const gb_gated_product *product)
{
    gb_gated_product p = *product;
    gb_group group = {
            .anchor = p.op->index, .n_prologue = p.n_dequantized, .prologue = p.dequantized};
    gb_dequantization weights;
    gb_dequantization_read(graph, &group, p.op->inputs[GB_MATMUL_WEIGHTS], &weights);
    return weights;
}

bool gb_gated_matmul_is_even(const gb_graph *graph, const gb_gated_matmul_parts *parts)
{
    gb_dequantization gate = weights_of(graph, &parts->gate), up = weights_of(graph, &parts->up);
    const gb_logical_tensor *of_gate = &graph->values[gate.codes].tensor;
    const gb_logical_tensor *of_up = &graph->values[up.codes].tensor;
    int64_t gate_steps[GB_AXES] = {0}, up_steps[GB_AXES] = {0};
    if (of_gate->data_type != of_up->data_type || of_gate->layout_type != of_up->layout_type ||
            of_gate->layout_type == GB_LAYOUT_OPAQUE || !gb_dims_equal(of_gate, of_up) ||
            gb_op_attr_bool(parts->gate.op, GB_ATTR_TRANSPOSE_B, false) !=
                    gb_op_attr_bool(parts->up.op, GB_ATTR_TRANSPOSE_B, false))
        return false;
    gb_tensor_steps(of_gate, gate_steps);
    gb_tensor_steps(of_up, up_steps);
    return memcmp(gate_steps, up_steps, sizeof gate_steps) == 0 &&
           memcmp(gate.groups, up.groups, (size_t)of_up->ndims * sizeof *up.groups) == 0 &&
           same_parameter(&gate.scales, &up.scales) && same_parameter(&gate.zps, &up.zps);
}
