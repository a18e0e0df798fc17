/* MatMul as GEMM: any ranks, transposes and strides become strides over one iteration space. */
#include "base/status.h"
#include "graph/op_table.h"
#include "kernels/anchor.h"
#include "kernels/gemm_plan.h"
#include "kernels/lower.h"

#include <string.h>

enum { SRC, WEIGHTS, BIAS };

/* Strides of the matrix [rows x cols] of an operand, the flag applied; a vector has one of them. */
typedef struct matrix {
    int n_batch;
    bool vector;
    int64_t row_stride, col_stride, cols;
} matrix;

static matrix matrix_of(const gb_logical_tensor *tensor, bool transposed)
{
    int n = tensor->ndims;
    if (n == 1)
        return (matrix){.vector = true, .col_stride = tensor->strides[0], .cols = tensor->dims[0]};
    int row = transposed ? n - 1 : n - 2, col = transposed ? n - 2 : n - 1;
    return (matrix){.n_batch = n - 2,
            .row_stride = tensor->strides[row],
            .col_stride = tensor->strides[col],
            .cols = tensor->dims[col]};
}

/* Strides over the leading `n_batch` dims of the result; broadcast dims get 0. */
static void batch_strides(
        const gb_logical_tensor *tensor, const matrix *shape, int n_batch, int64_t *strides)
{
    int missing = n_batch - shape->n_batch;
    for (int d = 0; d < n_batch; d++)
        strides[d] =
                d < missing || tensor->dims[d - missing] == 1 ? 0 : tensor->strides[d - missing];
}

static gb_status bias_strides(const gb_op *op, int64_t *strides)
{
    memset(strides, 0, sizeof(int64_t) * GB_MAX_NDIMS);
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

static gb_status operand_init(
        gb_program *program, const gb_op *op, uint32_t input, gb_gemm_operand *operand)
{
    operand->type = gb_op_input(op, input)->data_type;
    operand->constant = gb_program_is_constant(program, op->inputs[input]);
    return gb_program_value(program, op->inputs[input], &operand->buffer);
}

/* Operands over the dims of the result, and which of them each dim belongs to. */
static void describe(const gb_op *op, gb_gemm *gemm, uint8_t *roles)
{
    const gb_logical_tensor *src = gb_op_input(op, SRC), *weights = gb_op_input(op, WEIGHTS);
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    matrix a = matrix_of(src, gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_A, false));
    matrix b = matrix_of(weights, !gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_B, false));
    int n_batch = dst->ndims - !a.vector - !b.vector;
    batch_strides(src, &a, n_batch, gemm->a.strides);
    batch_strides(weights, &b, n_batch, gemm->b.strides);
    gemm->k = a.cols;
    gemm->a.k_stride = a.col_stride;
    gemm->b.k_stride = b.col_stride;
    for (int d = 0; d < n_batch; d++) {
        bool in_a = gemm->a.strides[d] != 0, in_b = gemm->b.strides[d] != 0;
        roles[d] = in_a == in_b ? GB_GEMM_BATCH : in_a ? GB_GEMM_ROWS : GB_GEMM_COLUMNS;
    }
    int d = n_batch;
    if (!a.vector) {
        gemm->a.strides[d] = a.row_stride;
        roles[d++] = GB_GEMM_ROWS;
    }
    if (!b.vector) {
        gemm->b.strides[d] = b.row_stride;
        roles[d] = GB_GEMM_COLUMNS;
    }
}

static gb_status build(gb_program *program, const gb_group *group, gb_step *step, gb_gemm *gemm)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    int64_t strides[GB_MAX_NDIMS];
    uint8_t roles[GB_MAX_NDIMS];
    GB_TRY(bias_strides(op, strides));
    GB_TRY(gb_anchor_tile(program, group, BIAS, strides, step, &gemm->tile));
    GB_TRY(operand_init(program, op, SRC, &gemm->a));
    GB_TRY(operand_init(program, op, WEIGHTS, &gemm->b));
    describe(op, gemm, roles);
    gb_gemm_orient(gemm, roles);
    return GB_SUCCESS;
}

static gb_status lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    gb_gemm gemm = {0};
    gb_step step = {0};
    gb_status status = build(program, group, &step, &gemm);
    if (status == GB_SUCCESS)
        return gb_gemm_add(program, &step, &gemm);
    gb_step_clear(&step);
    return status;
}

const gb_lowering gb_lowering_matmul = {
        .name = "matmul", .supports = gb_all_types_float, .takes_epilogue = true, .lower = lower};
