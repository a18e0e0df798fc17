/* Products as text. */
#include "kernels/plan/gemm_problem.h"

#include <inttypes.h>

static void print_parameter(
        const gb_printer *printer, const char *name, int ndims, const gb_gemm_parameter *parameter)
{
    if (parameter->type == GB_UNDEF)
        return;
    fprintf(printer->file, ", %s %s ", name, gb_data_type_name(parameter->type));
    gb_print_slot(printer, parameter->slot);
    fputs(" ", printer->file);
    gb_print_strides(printer, ndims, parameter->strides);
    fprintf(printer->file, " k %" PRId64, parameter->k_stride);
}

static int64_t at_least_one(int64_t count)
{
    return count > 1 ? count : 1;
}

static void print_operand(
        const gb_printer *printer, const char *name, int ndims, const gb_gemm_operand *operand)
{
    FILE *file = printer->file;
    fprintf(file, "%s: %s ", name, gb_data_type_name(operand->type));
    gb_print_buffer(printer, operand->buffer);
    fputs(" ", file);
    gb_print_strides(printer, ndims, operand->strides);
    fprintf(file, " k %" PRId64 "%s%s", operand->k_stride, operand->in_panels ? " in panels" : "",
            operand->constant ? ", constant" : "");
    print_parameter(printer, "scales", ndims, &operand->scales);
    print_parameter(printer, "zero points", ndims, &operand->zps);
    if (operand->group > 1 || operand->k_group > 1)
        fprintf(file, ", groups of %" PRId64 " by %" PRId64 " along k",
                at_least_one(operand->group), at_least_one(operand->k_group));
    fputs("\n", file);
}

static void print_dim(const gb_printer *printer, const char *name, int dim)
{
    if (dim >= 0)
        fprintf(printer->file, ", %s along dim %d", name, dim);
    else
        fprintf(printer->file, ", one of %s", name);
}

static void print_product(
        const gb_printer *printer, const char *name, const gb_gemm_problem *problem)
{
    int ndims = problem->pointwise.ndims;
    fprintf(printer->file, "%s over ", name);
    gb_print_sizes(printer, ndims, problem->pointwise.dims);
    print_dim(printer, "rows", problem->row_dim);
    print_dim(printer, "columns", problem->col_dim);
    fprintf(printer->file, ", k %" PRId64 "%s:\n", problem->k,
            problem->integer ? ", of integers" : "");
    print_operand(printer, "  A", ndims, &problem->a);
    print_operand(printer, "  B", ndims, &problem->b);
    gb_pointwise_print(printer, &problem->pointwise);
}

void gb_gemm_problem_print(const gb_printer *printer, const void *gemm_problem)
{
    const gb_gemm_problem *problem = gemm_problem;
    if (problem->gate)
        print_product(printer, "gate", problem->gate);
    print_product(printer, "product", problem);
}
