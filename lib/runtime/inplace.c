/* Which outputs of a compiled partition may share the memory of an input. */
#include "base/memory.h"
#include "runtime/compiled.h"

/* First and last step that uses a buffer; false when none does. */
static bool find_uses(const gb_program *program, uint32_t buffer, uint32_t *first, uint32_t *last)
{
    *first = GB_NONE;
    for (uint32_t s = 0; s < program->n_steps; s++)
        for (uint32_t i = 0; i < program->steps[s].n_uses; i++) {
            if (program->steps[s].uses[i].buffer != buffer)
                continue;
            *last = s;
            if (*first == GB_NONE)
                *first = s;
        }
    return *first != GB_NONE;
}

/* Does the step read the buffer by element only, and write one other? */
static bool runs_in_place(const gb_step *step, uint32_t buffer)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < step->n_uses; i++) {
        written += step->uses[i].written;
        if (step->uses[i].buffer == buffer && !step->uses[i].by_element)
            return false;
    }
    return step->in_place && written == 1;
}

static bool same_elements(const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    if (a->data_type != b->data_type || a->ndims != b->ndims || a->layout_type != b->layout_type)
        return false;
    if (a->layout_type == GB_LAYOUT_OPAQUE)
        return a->layout_id == b->layout_id && gb_dims_equal(a, b);
    for (int d = 0; d < a->ndims; d++)
        if (a->dims[d] != b->dims[d] || a->strides[d] != b->strides[d] || a->strides[d] == 0)
            return false;
    return true;
}

/* Do all views of the tensor lie in the order of its elements? */
static bool views_keep_order(const gb_program *program, const gb_logical_tensor *tensor)
{
    const gb_graph *graph = program->graph;
    uint32_t storage = gb_graph_find_value(graph, tensor->id);
    for (uint32_t v = 0; v < graph->n_values; v++) {
        if (graph->values[v].view_of == GB_NONE || gb_graph_storage(graph, v) != storage)
            continue;
        if (!gb_is_dense(tensor) || !gb_is_dense(&graph->values[v].tensor))
            return false;
    }
    return true;
}

/* The input is not read any more when the output is written, or by the same step, which is done
 * with an element before it writes there. */
static bool may_share(const gb_code *code, uint32_t input, uint32_t output)
{
    const gb_program *program = &code->program;
    uint32_t unused, last_read, first_write;
    if (!find_uses(program, input, &unused, &last_read) ||
            !find_uses(program, output, &first_write, &unused))
        return false;
    const gb_step *step = &program->steps[first_write];
    return last_read < first_write ||
           (last_read == first_write && runs_in_place(step, input) &&
                   views_keep_order(program, &code->inputs[program->buffers[input].index].tensor) &&
                   views_keep_order(
                           program, &code->outputs[program->buffers[output].index].tensor));
}

static bool is_paired(const gb_code *code, uint32_t input)
{
    for (uint32_t i = 0; i < code->n_pairs; i++)
        if (code->pairs[i].input == input)
            return true;
    return false;
}

/* The input buffer that output buffer `output` may share, or GB_NONE. */
static uint32_t find_partner(const gb_code *code, uint32_t output)
{
    const gb_program *program = &code->program;
    const gb_logical_tensor *target = &code->outputs[program->buffers[output].index].tensor;
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        const gb_buffer *buffer = &program->buffers[b];
        if (buffer->home != GB_HOME_INPUT || buffer->constant || buffer->bytes == 0)
            continue;
        const gb_logical_tensor *source = &code->inputs[buffer->index].tensor;
        if (source->property != GB_PROPERTY_HOST_SCALAR && !is_paired(code, buffer->index) &&
                same_elements(source, target) && may_share(code, b, output))
            return b;
    }
    return GB_NONE;
}

gb_status gb_find_inplace_pairs(gb_code *code)
{
    const gb_program *program = &code->program;
    code->pairs = gb_calloc(code->request.n_outputs, sizeof *code->pairs);
    if (!code->pairs)
        return GB_OUT_OF_MEMORY;
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        if (program->buffers[b].home != GB_HOME_OUTPUT)
            continue;
        uint32_t partner = find_partner(code, b);
        if (partner != GB_NONE)
            code->pairs[code->n_pairs++] =
                    (gb_port_pair){program->buffers[partner].index, program->buffers[b].index};
    }
    return GB_SUCCESS;
}
