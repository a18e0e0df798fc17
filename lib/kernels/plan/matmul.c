/* MatMul as a product: any ranks, transposes and strides become strides over one iteration space. */
#include "kernels/plan/matmul.h"

#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/plan/anchor.h"
#include "kernels/plan/dequantization.h"

#include <string.h>

enum { SRC = GB_MATMUL_SRC, WEIGHTS = GB_MATMUL_WEIGHTS, BIAS = GB_MATMUL_BIAS };

/* The dims of an operand: leading batch dims, its own one and that of K. */
typedef struct matrix {
    const gb_logical_tensor *tensor;
    int n_batch, own, k; /* own: -1 for a vector */
} matrix;

static matrix matrix_of(const gb_logical_tensor *tensor, bool own_last)
{
    int n = tensor->ndims;
    if (n == 1)
        return (matrix){tensor, 0, -1, 0};
    return (matrix){tensor, n - 2, own_last ? n - 1 : n - 2, own_last ? n - 2 : n - 1};
}

/* Strides over the space of strides over the dims of the operand; broadcast dims get 0. */
static void spread(const matrix *shape, const int64_t *from, int n_batch, int own_dim,
        int64_t *strides, int64_t *k_stride)
{
    int missing = n_batch - shape->n_batch;
    for (int d = 0; d < n_batch; d++)
        strides[d] = d < missing || shape->tensor->dims[d - missing] == 1 ? 0 : from[d - missing];
    if (shape->own >= 0)
        strides[own_dim] = from[shape->own];
    *k_stride = from[shape->k];
}

static gb_status bias_strides(const gb_op *op, int64_t *strides)
{
    memset(strides, 0, sizeof(int64_t) * GB_AXES);
    if (op->n_inputs <= BIAS)
        return GB_SUCCESS;
    const gb_logical_tensor *bias = gb_op_input(op, BIAS), *dst = gb_op_output(op, 0);
    if (gb_tensor_count(bias) == 1)
        return GB_SUCCESS;
    if (!gb_broadcasts_onto(bias->ndims, bias->dims, dst->ndims, dst->dims))
        return gb_fail(GB_INVALID_SHAPE, "%s: bias %s does not broadcast onto %s", gb_op_label(op),
                gb_tensor_label(bias), gb_tensor_label(dst));
    for (int b = bias->ndims, d = dst->ndims; b > 0 && d > 0;) {
        b--, d--;
        strides[d] = bias->dims[b] == 1 ? 0 : bias->strides[b];
    }
    return GB_SUCCESS;
}

static void describe_parameter(const gb_dequantization_parameter *from, const matrix *shape,
        int n_batch, int own_dim, gb_gemm_parameter *parameter)
{
    parameter->type = from->type;
    parameter->slot = from->slot;
    if (from->type != GB_UNDEF)
        spread(shape, from->strides, n_batch, own_dim, parameter->strides, &parameter->k_stride);
}

/* The operand over the dims of the result. */
static void describe_operand(const gb_dequantization *dequantization, const matrix *shape,
        int n_batch, int own_dim, gb_gemm_operand *operand)
{
    operand->type = shape->tensor->data_type;
    operand->reach = dequantization->reach;
    operand->group = shape->own < 0 ? 1 : dequantization->groups[shape->own];
    operand->k_group = dequantization->groups[shape->k];
    operand->in_panels = shape->tensor->layout_type == GB_LAYOUT_OPAQUE;
    int64_t steps[GB_AXES];
    gb_tensor_steps(shape->tensor, steps);
    spread(shape, steps, n_batch, own_dim, operand->strides, &operand->k_stride);
    describe_parameter(&dequantization->scales, shape, n_batch, own_dim, &operand->scales);
    describe_parameter(&dequantization->zps, shape, n_batch, own_dim, &operand->zps);
}

static bool moves_along(const gb_gemm_operand *operand, int d)
{
    return operand->strides[d] || operand->scales.strides[d] || operand->zps.strides[d];
}

/* Groups divide the positions of one dim: it stays apart from others of its role. */
static uint8_t role_of(const gb_gemm_problem *gemm, int d)
{
    bool in_a = moves_along(&gemm->a, d), in_b = moves_along(&gemm->b, d);
    if (in_a == in_b || (in_a ? gemm->a.group : gemm->b.group) > 1)
        return GB_GEMM_BATCH;
    return in_a ? GB_GEMM_ROWS : GB_GEMM_COLUMNS;
}

/* Operands over the dims of the result, and which of them each dim belongs to. */
static void matmul_describe(const gb_graph *graph, const gb_op *op, const gb_dequantization *in,
        gb_gemm_problem *gemm, uint8_t *roles)
{
    matrix a = matrix_of(
            &graph->values[in[SRC].codes].tensor, gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_A, false));
    matrix b = matrix_of(&graph->values[in[WEIGHTS].codes].tensor,
            !gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_B, false));
    int n_batch = gb_op_output(op, 0)->ndims - (a.own >= 0) - (b.own >= 0), d = n_batch;
    if (a.own >= 0)
        roles[d++] = GB_GEMM_ROWS;
    if (b.own >= 0)
        roles[d] = GB_GEMM_COLUMNS;
    describe_operand(&in[SRC], &a, n_batch, n_batch, &gemm->a);
    describe_operand(&in[WEIGHTS], &b, n_batch, d, &gemm->b);
    gemm->k = a.tensor->dims[a.k];
    for (d = 0; d < n_batch; d++)
        roles[d] = role_of(gemm, d);
}

gb_status gb_matmul_describe(gb_program *program, const gb_group *group,
        const gb_scratch_operands *scratch_operands, gb_step *step, gb_gemm_problem *gemm,
        uint8_t *roles)
{
    const gb_graph *graph = gb_program_graph(program);
    const gb_op *op = graph->ops[group->anchor];
    gb_gemm_operand *operands[] = {&gemm->a, &gemm->b};
    gb_dequantization dequantizations[2];
    int64_t strides[GB_AXES];
    GB_TRY(bias_strides(op, strides));
    GB_TRY(gb_anchor_epilogue(
            program, group, BIAS, strides, scratch_operands, step, &gemm->pointwise));
    for (uint32_t i = SRC; i <= WEIGHTS; i++) {
        gb_dequantization_read(graph, group, op->inputs[i], &dequantizations[i]);
        GB_TRY(gb_dequantization_use_parameters(program, step, &dequantizations[i]));
        operands[i]->constant = gb_program_is_constant(program, dequantizations[i].codes);
        GB_TRY(gb_program_value(program, dequantizations[i].codes, &operands[i]->buffer));
    }
    matmul_describe(graph, op, dequantizations, gemm, roles);
    return GB_SUCCESS;
}
