/* Lowers MatMul, and says in which formats products take matrices. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/cpu/lower.h"
#include "kernels/gemm/gemm_plan.h"
#include "kernels/isa/costs.h"
#include "kernels/plan/dequantization.h"
#include "kernels/plan/matmul.h"

#include <stdio.h>

enum { SRC = GB_MATMUL_SRC, WEIGHTS = GB_MATMUL_WEIGHTS };

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
    candidates[0] =
            (gb_format_candidate){.format = panels(tensor->ndims), .gain = copied_bytes(op, input)};
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
    candidates[0] = (gb_format_candidate){.format = panels(tensor->ndims), .gain = 0};
    return candidates[0].format != NULL;
}

const gb_lowering gb_lowering_matmul = {.name = "matmul",
        .supports = gb_all_types_float,
        .takes_epilogue = true,
        .fuses_producer = matmul_takes_prologue,
        .reads_formats = matmul_reads_formats,
        .writes_formats = matmul_writes_formats,
        .lower = matmul_lower};
