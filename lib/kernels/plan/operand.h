/* Operands: tensors as kernels see them, through strides over the dims of an iteration space. */
#ifndef GB_KERNELS_PLAN_OPERAND_H
#define GB_KERNELS_PLAN_OPERAND_H

#include "kernels/plan/axes.h"
#include "runtime/program_text.h"

typedef struct gb_operand {
    gb_data_type type;        /* GB_UNDEF: there is none */
    uint32_t slot;            /* of the step */
    int64_t strides[GB_AXES]; /* elements, per dim of the space; 0 broadcasts */
} gb_operand;

/* A tensor of the graph that the step reads or writes; strides are those of its own dims, and 0
 * behind them. */
gb_status gb_operand_use(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_operand *operand);
/* The same for an access by element (gb_step_use). */
gb_status gb_operand_use_elementwise(
        gb_program *program, gb_step *step, uint32_t value, bool written, gb_operand *operand);

/* -1 stands for a dim that is missing. */
static inline int64_t gb_operand_stride(const gb_operand *operand, int dim)
{
    return dim < 0 ? 0 : operand->strides[dim];
}

/* A line: "  NAME: f32 %0 [4,1]"; nothing for no operand. */
void gb_operand_print(
        const gb_printer *printer, const char *name, const gb_operand *operand, int ndims);

#endif
