/* Ops that the application defined: a step without a kernel, for which the host calls the
 * application's function between two kernels (queue.c). */
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/lower.h"

static gb_status lower_defined(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    uint32_t n = op->n_inputs + op->n_outputs;
    gb_step *step;
    GB_TRY(gb_program_begin(program, "defined", &step));
    gb_cl_step *made = gb_step_alloc(step, 1, sizeof *made);
    uint32_t *slots = gb_step_alloc(step, n, sizeof *slots);
    if (!made || !slots)
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        bool written = i >= op->n_inputs;
        uint32_t value = written ? op->outputs[i - op->n_inputs] : op->inputs[i];
        size_t bytes;
        GB_TRY(gb_program_use(program, step, value, written, &slots[i]));
        GB_TRY(gb_logical_tensor_get_mem_size(gb_op_tensor(op, i), &bytes));
        step->work += (double)bytes;
    }
    *made = (gb_cl_step){.op = op, .slots = slots};
    step->params = made;
    return gb_program_add(program, step);
}

static bool defined_supports(const gb_op *op, const char **reason)
{
    *reason = "no kernel";
    return op->definition && op->definition->run;
}

const gb_cl_lowering gb_cl_lowering_defined = {
        .supports = defined_supports, .lower = lower_defined};
