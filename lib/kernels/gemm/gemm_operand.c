/* Operands of products as quantized matrices. */
#include "base/memory.h"
#include "kernels/gemm/gemm_run.h"
#include "kernels/plan/space.h"

/* Element at the position, but at 0 of the operand's own dim. */
static int64_t first_element(
        const int64_t *strides, int ndims, const int64_t *position, int own_dim)
{
    int64_t first = gb_offset(ndims, strides, position);
    return own_dim < 0 ? first : first - strides[own_dim] * position[own_dim];
}

static gb_entries entries_of(const gb_gemm_parameter *parameter, int ndims, void *const *buffers,
        const int64_t *position, int own_dim)
{
    if (parameter->type == GB_UNDEF)
        return (gb_entries){.type = GB_UNDEF};
    return (gb_entries){.type = parameter->type,
            .data = buffers[parameter->slot],
            .first = first_element(parameter->strides, ndims, position, own_dim),
            .row_stride = parameter->k_stride,
            .col_stride = own_dim < 0 ? 0 : parameter->strides[own_dim]};
}

gb_quantized_matrix gb_gemm_matrix(const gb_gemm_operand *operand, int ndims, void *const *buffers,
        const int64_t *position, int own_dim)
{
    return (gb_quantized_matrix){
            .codes = {.type = operand->type,
                    .data = buffers[operand->slot],
                    .first = first_element(operand->strides, ndims, position, own_dim),
                    .row_stride = operand->k_stride,
                    .col_stride = gb_gemm_stride(operand, own_dim)},
            .scales = entries_of(&operand->scales, ndims, buffers, position, own_dim),
            .zps = entries_of(&operand->zps, ndims, buffers, position, own_dim),
            .row_group = gb_max_i64(operand->k_group, 1),
            .col_group = gb_max_i64(operand->group, 1)};
}
