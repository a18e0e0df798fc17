/* Lowers ConvolutionBackwardWeights and ConvTransposeBackwardWeights. */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/conv/weight_gradient.h"
#include "kernels/cpu/lower.h"

static gb_status weight_gradient_lower(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    gb_gradient_problem problem = {0};
    gb_step *step;
    GB_TRY(gb_program_begin(program, "weight_gradient", &step));
    GB_TRY(gb_gradient_read_group(program, group, step, &problem));
    return gb_weight_gradient_add(program, step, &problem);
}

const gb_lowering gb_lowering_weight_gradient = {.name = "weight_gradient",
        .supports = gb_convolution_types_float,
        .lower = weight_gradient_lower};
