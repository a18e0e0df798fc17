/* Ops that the program defined: a step that calls its function on one thread. Wildcards without a
 * definition have no kernel. */
#include "base/dtype.h"
#include "base/status.h"
#include "graph/ops/op_rules.h"
#include "kernels/cpu/lower_step.h"
#include "kernels/cpu/step_call.h"

typedef struct defined_call {
    const gb_op *op; /* of the program's graph, which lives as long */
    uint32_t *slots; /* of inputs, then outputs; memory of the step */
} defined_call;

static void defined_run(const gb_step_call *call)
{
    enum { FEW = 32 };
    const defined_call *params = call->params;
    const gb_op *op = params->op;
    const gb_op_definition *definition = op->definition;
    uint32_t n = op->n_inputs + op->n_outputs;
    void *few[FEW], **memory = few;
    if (call->thread != 0)
        return;
    if (n > FEW)
        memory = (void **)call->shared;
    for (uint32_t i = 0; i < n; i++)
        memory[i] = call->buffers[params->slots[i]];
    gb_status status = definition->run(
            definition->context, op, (const void *const *)memory, memory + op->n_inputs);
    int none = GB_SUCCESS;
    if (status != GB_SUCCESS &&
            atomic_compare_exchange_strong(&call->failure->status, &none, (int)status))
        call->failure->op = op;
}

static gb_status defined_plan(gb_program *program, const gb_group *group, gb_step *step)
{
    defined_call *params = step->params;
    const gb_op *op = params->op = gb_group_op(program, group);
    uint32_t n = op->n_inputs + op->n_outputs;
    params->slots = gb_step_alloc(step, n, sizeof *params->slots);
    if (!params->slots)
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        bool written = i >= op->n_inputs;
        uint32_t value = written ? op->outputs[i - op->n_inputs] : op->inputs[i];
        size_t bytes;
        GB_TRY(gb_program_use(program, step, value, written, &params->slots[i]));
        GB_TRY(gb_logical_tensor_get_mem_size(gb_op_tensor(op, i), &bytes));
        step->work += (double)bytes;
    }
    step->shared_scratch = n * sizeof(void *);
    return GB_SUCCESS;
}

static gb_status defined_lower(gb_program *program, const gb_group *group)
{
    return gb_lower_step(
            program, group, "defined", defined_run, sizeof(defined_call), defined_plan);
}

static bool defined_supports(const gb_op *op, const char **reason)
{
    bool runs = op->definition && op->definition->run;
    if (!runs)
        *reason = "no kernel";
    return runs;
}

static uint32_t candidate(const gb_op *op, uint32_t port, gb_format_candidate *candidates)
{
    const gb_op_definition *definition = op->definition;
    const char *text = definition && definition->layout
                               ? definition->layout(definition->context, op, port)
                               : NULL;
    const gb_logical_tensor *tensor = gb_op_tensor(op, port);
    const gb_format *format;
    const gb_dtype_info *type = gb_dtype_get(tensor->data_type);
    if (!text || gb_format_parse(text, &format) != GB_SUCCESS || format->ndims != tensor->ndims ||
            !type || type->bits < 8)
        return 0;
    double bytes = gb_dims_known(tensor) ? (double)gb_tensor_count(tensor) : 1;
    candidates[0] = (gb_format_candidate){.format = format, .gain = bytes};
    return 1;
}

static uint32_t defined_reads_formats(
        const gb_op *op, uint32_t input, gb_format_candidate *candidates)
{
    return candidate(op, input, candidates);
}

static uint32_t defined_writes_formats(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_format_candidate *candidates)
{
    const gb_op *op = graph->ops[group->anchor];
    uint32_t output = 0;
    while (output < op->n_outputs && op->outputs[output] != value)
        output++;
    return output < op->n_outputs ? candidate(op, op->n_inputs + output, candidates) : 0;
}

const gb_lowering gb_lowering_defined = {.name = "defined",
        .supports = defined_supports,
        .reads_formats = defined_reads_formats,
        .writes_formats = defined_writes_formats,
        .lower = defined_lower};
