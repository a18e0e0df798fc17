/* Which dims of a product's space are rows and columns, and which products are those of
 * integers. */
#include "kernels/plan/gemm_problem.h"

#include "base/dtype.h"
#include "kernels/plan/anchor.h"
#include "kernels/plan/space.h"

#include <string.h>

bool gb_gemm_is_quantized(const gb_gemm_operand *operand)
{
    return !gb_dtype_is_f(operand->type) || operand->scales.type != GB_UNDEF ||
           operand->zps.type != GB_UNDEF;
}

static bool same_everywhere(const gb_gemm_parameter *parameter)
{
    for (int d = 0; d < GB_AXES; d++)
        if (parameter->strides[d] != 0)
            return false;
    return true;
}

static bool is_byte(const gb_gemm_operand *operand)
{
    return operand->type == GB_S8 || operand->type == GB_U8;
}

/* Are both operands quantized values of 8 bits with the same parameters all along K, A with one
 * zero point, and do the sums fit 32 bits? */
static bool is_integer(const gb_gemm_problem *gemm)
{
    const gb_gemm_operand *a = &gemm->a, *b = &gemm->b;
    if (!is_byte(a) || !is_byte(b) || !same_everywhere(&a->zps) || a->zps.k_stride != 0 ||
            a->scales.k_stride != 0 || b->scales.k_stride != 0 || b->zps.k_stride != 0)
        return false;
    int64_t most = INT32_MAX;
    return a->reach <= most && b->reach <= most && gemm->k > 0 &&
           a->reach * b->reach <= most / gemm->k;
}

/* All strides but those of the result. */
static void add_views(gb_gemm_problem *gemm, const gb_pointwise_operand *result, gb_space *space)
{
    for (uint32_t i = 0; i < gemm->pointwise.n_operands; i++)
        if (&gemm->pointwise.operands[i] != result)
            gb_space_add(space, gemm->pointwise.operands[i].strides);
    gb_gemm_operand *operands[] = {&gemm->a, &gemm->b};
    for (int i = 0; i < 2; i++) {
        gb_space_add(space, operands[i]->strides);
        gb_space_add(space, operands[i]->scales.strides);
        gb_space_add(space, operands[i]->zps.strides);
    }
}

static void normalize(gb_gemm_problem *gemm, const uint8_t *roles, gb_space *space)
{
    space->ndims = gemm->pointwise.ndims;
    memcpy(space->dims, gemm->pointwise.dims, sizeof space->dims);
    memcpy(space->roles, roles, sizeof *roles * (size_t)space->ndims);
    gb_pointwise_operand *result = gb_pointwise_result(&gemm->pointwise);
    gb_space_add(space, result->strides);
    add_views(gemm, result, space);
    if (gemm->gate)
        add_views(gemm->gate, NULL, space);
    gb_space_normalize(space);
    if (space->ndims == 0) {
        space->ndims = 1;
        space->dims[0] = 1;
        space->roles[0] = GB_GEMM_COLUMNS;
        for (int v = 0; v < space->n_views; v++)
            space->strides[v][0] = 0;
    }
    gb_space_set_pointwise(space, &gemm->pointwise);
    if (gemm->gate)
        gb_space_set_pointwise(space, &gemm->gate->pointwise);
}

/* The largest dim of a role, -1 when there is none. */
static int largest(const gb_space *space, int role)
{
    int best = -1;
    for (int d = 0; d < space->ndims; d++)
        if (space->roles[d] == role && (best < 0 || space->dims[d] >= space->dims[best]))
            best = d;
    return best;
}

static void swap_operands(gb_gemm_problem *gemm)
{
    gb_gemm_operand a = gemm->a;
    gemm->a = gemm->b;
    gemm->b = a;
    int rows = gemm->row_dim;
    gemm->row_dim = gemm->col_dim;
    gemm->col_dim = rows;
}

/* Panels are those of columns. */
static bool has_panels(const gb_gemm_problem *gemm)
{
    bool panels = gemm->a.in_panels || gemm->b.in_panels;
    for (uint32_t i = 0; i < gemm->pointwise.n_operands; i++)
        panels = panels || gemm->pointwise.operands[i].in_panels;
    return panels;
}

/* Columns are the dim along which the result is contiguous, or the only one there is; the other one
 * where only that allows for integer products. */
void gb_gemm_orient(gb_gemm_problem *gemm, const uint8_t *roles)
{
    gb_space space = {0};
    normalize(gemm, roles, &space);
    const int64_t *result = space.strides[0];
    int rows = largest(&space, GB_GEMM_ROWS), cols = largest(&space, GB_GEMM_COLUMNS);
    gemm->row_dim = rows;
    gemm->col_dim = cols;
    if (gemm->gate) {
        gemm->gate->row_dim = rows;
        gemm->gate->col_dim = cols;
        return;
    }
    if (has_panels(gemm))
        return;
    if (rows >= 0 && (cols < 0 || (result[rows] == 1 && result[cols] != 1)))
        swap_operands(gemm);
    gemm->integer = is_integer(gemm);
    if (gemm->integer || rows < 0 || cols < 0)
        return;
    swap_operands(gemm);
    gemm->integer = is_integer(gemm);
    if (!gemm->integer)
        swap_operands(gemm);
}
