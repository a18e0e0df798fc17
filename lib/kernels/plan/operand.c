/* Using and printing operands. */
#include "kernels/plan/operand.h"

#include "base/status.h"

#include <inttypes.h>
#include <string.h>

static void set_operand(const gb_program *program, uint32_t value, gb_operand *operand)
{
    const gb_logical_tensor *tensor = &gb_program_graph(program)->values[value].tensor;
    operand->type = tensor->data_type;
    memset(operand->strides, 0, sizeof operand->strides);
    memcpy(operand->strides, tensor->strides, (size_t)tensor->ndims * sizeof *operand->strides);
}

gb_status gb_operand_use(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_operand *operand)
{
    set_operand(program, value, operand);
    return gb_program_use(program, step, value, written, &operand->slot);
}

gb_status gb_operand_use_elementwise(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_operand *operand)
{
    set_operand(program, value, operand);
    return gb_program_use_elementwise(program, step, value, written, &operand->slot);
}

void gb_numbers_print(int n, const int64_t *numbers, FILE *out)
{
    if (n == 0)
        fputs("1", out);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%" PRId64, i ? "x" : "", numbers[i]);
}

static bool is_dense(int ndims, const int64_t *dims, const int64_t *strides)
{
    int64_t next = 1;
    for (int d = ndims; d-- > 0; next *= dims[d])
        if (strides[d] != next)
            return false;
    return true;
}

void gb_operand_print(
        const gb_operand *operand, const char *name, int ndims, const int64_t *dims, FILE *out)
{
    if (operand->type == GB_UNDEF)
        return;
    fprintf(out, ", %s %s", name, gb_data_type_name(operand->type));
    if (is_dense(ndims, dims, operand->strides))
        return;
    fputs(" strides ", out);
    gb_numbers_print(ndims, operand->strides, out);
}
