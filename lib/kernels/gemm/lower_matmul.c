/* MatMul as GEMM: any ranks, transposes and strides become strides over one iteration space. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/gemm/matmul.h"
#include "kernels/isa/costs.h"
#include "kernels/plan/anchor.h"
#include "kernels/plan/dequantization.h"

#include <stdio.h>
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

static gb_status matmul_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    gb_gemm_problem gemm = {0};
    gb_step *step;
    uint8_t roles[GB_AXES];
    GB_TRY(gb_program_begin(program, "gemm", &step));
    GB_TRY(gb_matmul_describe(program, group, NULL, step, &gemm, roles));
    gb_gemm_orient(&gemm, roles);
    return gb_gemm_add(program, step, &gemm);
}

static bool matmul_takes_prologue(const gb_op *anchor, uint32_t input, const gb_op *op)
{
    (void)anchor;
    return input <= WEIGHTS && gb_dequantization_takes(op);
}

/* Formats -------------------------------------------------------------------------------------- */

/* The last dim in panels, as tiles write results and read both operands: Ba32b, aCb32c, ... */
static const gb_format *panels(int ndims)
{
    const gb_format *format;
    char text[GB_FORMAT_TEXT], *end = text;
    if (ndims < 2 || ndims >= GB_MAX_NDIMS)
        return NULL;
    for (int d = 0; d < ndims - 2; d++)
        *end++ = (char)('a' + d);
    snprintf(end, (size_t)(text + sizeof text - end), "%c%c%d%c", 'a' + ndims - 1, 'a' + ndims - 2,
            GB_GEMM_PANEL, 'a' + ndims - 1);
    return gb_format_parse(text, &format) == GB_SUCCESS ? format : NULL;
}

/* An unknown dim may be anything. */
static bool fills_panels(const gb_logical_tensor *tensor)
{
    int64_t last = tensor->ndims >= 2 ? tensor->dims[tensor->ndims - 1] : 0;
    return last == GB_UNKNOWN_DIM || (last > 0 && last % GB_GEMM_PANEL == 0);
}

/* Are the columns of the product those of B as it lies, one matrix after another? */
static bool has_plain_columns(const gb_op *op)
{
    const gb_logical_tensor *a = gb_op_input(op, SRC), *b = gb_op_input(op, WEIGHTS);
    bool plain = a->ndims >= 2 && b->ndims >= 2;
    for (int i = 3; plain && i <= b->ndims; i++)
        plain = b->dims[b->ndims - i] == 1 ||
                (i <= a->ndims && a->dims[a->ndims - i] == b->dims[b->ndims - i]);
    return plain;
}

/* Bytes that copying A or B costs, which panels save; see plan_product() in gemm_plan.c. Panels of
 * A lie far apart: products of few columns, which read each row only once or twice, lose by them.
 */
static double copied_bytes(const gb_op *op, uint32_t input)
{
    enum { PAGE = GB_PAGE_FLOATS, COLUMNS = GB_PANELS_A_COLUMNS };
    /* Rows that B is copied for, as plan_product() in gemm_plan.c has it. */
    const int64_t tile = gb_kernels_get()->gemm_limits().rows;
    const int64_t few_rows = GB_COPY_B_TILES_FAR * tile, many_rows = GB_COPY_B_TILES_NEAR * tile;
    const gb_logical_tensor *tensor = gb_op_input(op, input), *a = gb_op_input(op, SRC);
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    int64_t cols = dst->ndims ? dst->dims[dst->ndims - 1] : 1;
    int64_t last = tensor->dims[tensor->ndims - 1], rows = 1;
    int first = gb_op_input(op, WEIGHTS)->ndims > 2 ? a->ndims - 2 : 0;
    for (int d = first; d + 1 < a->ndims; d++)
        rows = rows < 0 || a->dims[d] < 0 ? -1 : rows * a->dims[d];
    bool constant = tensor->property == GB_PROPERTY_CONSTANT;
    bool copied = input == SRC ? last % PAGE == 0 && rows != 1 && (cols < 0 || cols >= COLUMNS)
                               : rows < 0 || rows > (last < PAGE ? many_rows : few_rows);
    double bytes = copied && !constant ? 2 * sizeof(float) : 0;
    for (int d = 0; d < tensor->ndims; d++)
        bytes *= tensor->dims[d] < 0 ? 1 : (double)tensor->dims[d];
    return bytes;
}

static uint32_t matmul_reads_formats(
        const gb_op *op, uint32_t input, gb_format_candidate *candidates)
{
    if (input > WEIGHTS)
        return 0;
    const gb_logical_tensor *tensor = gb_op_input(op, input);
    gb_op_attr transposed = input == SRC ? GB_ATTR_TRANSPOSE_A : GB_ATTR_TRANSPOSE_B;
    if (tensor->data_type != GB_F32 || gb_op_attr_bool(op, transposed, false) ||
            !has_plain_columns(op) || !fills_panels(tensor))
        return 0;
    candidates[0] = (gb_format_candidate){panels(tensor->ndims), copied_bytes(op, input)};
    return candidates[0].format != NULL;
}

/* Tiles are as wide as panels: they write them as they would write rows. */
static uint32_t matmul_writes_formats(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_format_candidate *candidates)
{
    const gb_op *op = graph->ops[group->anchor];
    const gb_logical_tensor *tensor = &graph->values[value].tensor;
    if (!has_plain_columns(op) || !fills_panels(tensor) ||
            !gb_dims_equal(tensor, gb_op_output(op, 0)))
        return 0;
    candidates[0] = (gb_format_candidate){panels(tensor->ndims), 0};
    return candidates[0].format != NULL;
}

const gb_lowering gb_lowering_matmul = {.name = "matmul",
        .supports = gb_all_types_float,
        .takes_epilogue = true,
        .fuses_producer = matmul_takes_prologue,
        .reads_formats = matmul_reads_formats,
        .writes_formats = matmul_writes_formats,
        .lower = matmul_lower};
