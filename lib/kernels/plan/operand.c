/* Using and printing operands. */
#include "kernels/plan/operand.h"

#include "base/status.h"

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

void gb_operand_print(
        const gb_printer *printer, const char *name, const gb_operand *operand, int ndims)
{
    if (operand->type == GB_UNDEF)
        return;
    fprintf(printer->file, "  %s: %s ", name, gb_data_type_name(operand->type));
    gb_print_slot(printer, operand->slot);
    fputs(" ", printer->file);
    gb_print_strides(printer, ndims, operand->strides);
    fputs("\n", printer->file);
}
