/* Which outputs of a compiled partition may share the memory of an input. */
#include "base/dtype.h"
#include "base/memory.h"
#include "runtime/compiled.h"

/* First and last step that uses a buffer; false when none does. */
static bool find_uses(const gb_program *program, uint32_t buffer, uint32_t *first, uint32_t *last)
{
    *first = *last = GB_NONE;
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

/* Does the step read and write the buffers by element only? */
static bool runs_in_place(const gb_step *step, uint32_t input, uint32_t output)
{
    for (uint32_t i = 0; i < step->n_uses; i++) {
        const gb_step_use *use = &step->uses[i];
        if ((use->buffer == input || use->buffer == output) && !use->elementwise)
            return false;
    }
    return true;
}

static bool same_strides(const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    for (int d = 0; d < a->ndims; d++)
        if (a->strides[d] != b->strides[d] || a->strides[d] == 0)
            return false;
    return true;
}

/* Do elements of the same place in row-major order lie in the same bytes? */
static bool lie_alike(const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    if (gb_dtype_get(a->data_type)->bits != gb_dtype_get(b->data_type)->bits ||
            a->layout_type != b->layout_type)
        return false;
    if (a->layout_type == GB_LAYOUT_OPAQUE)
        return a->layout_id == b->layout_id && gb_dims_equal(a, b);
    if (gb_is_dense(a) && gb_is_dense(b))
        return gb_tensor_count(a) == gb_tensor_count(b);
    return gb_dims_equal(a, b) && same_strides(a, b);
}

/* Do all views of the tensor lie in the order of its elements, or of its memory when it is opaque?
 */
static bool views_keep_order(const gb_program *program, const gb_logical_tensor *tensor)
{
    const gb_graph *graph = program->graph;
    uint32_t storage = gb_graph_find_value(graph, tensor->id);
    for (uint32_t v = 0; v < graph->n_values; v++) {
        if (graph->values[v].view_of == GB_NONE || gb_graph_storage(graph, v) != storage)
            continue;
        bool ordered = tensor->layout_type == GB_LAYOUT_OPAQUE || gb_is_dense(tensor);
        if (!ordered || !gb_is_dense(&graph->values[v].tensor))
            return false;
    }
    return true;
}

/* The input is not read (any more) when the output is written, or by the same step, which is done
 * with an element before it writes there. */
static bool may_share(const gb_executable *executable, uint32_t input, uint32_t output)
{
    const gb_program *program = &executable->program;
    const gb_buffer *from = &program->buffers[input], *to = &program->buffers[output];
    const gb_logical_tensor *source = &executable->inputs[from->index].tensor;
    const gb_logical_tensor *target = &executable->outputs[to->index].tensor;
    uint32_t unused, last_read, first_write;
    if (!find_uses(program, output, &first_write, &unused))
        return false;
    if (!find_uses(program, input, &unused, &last_read) || last_read < first_write)
        return from->bytes == to->bytes;
    return last_read == first_write && runs_in_place(&program->steps[first_write], input, output) &&
           lie_alike(source, target) && views_keep_order(program, source) &&
           views_keep_order(program, target);
}

static bool is_paired(const gb_executable *executable, uint32_t input)
{
    for (uint32_t i = 0; i < executable->n_pairs; i++)
        if (executable->pairs[i].input == input)
            return true;
    return false;
}

/* The input buffer that output buffer `output` may share, or GB_NONE. */
static uint32_t find_partner(const gb_executable *executable, uint32_t output)
{
    const gb_program *program = &executable->program;
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        const gb_buffer *buffer = &program->buffers[b];
        if (buffer->placement != GB_PLACEMENT_INPUT || buffer->constant || buffer->bytes == 0)
            continue;
        gb_property property = executable->inputs[buffer->index].tensor.property;
        if (property != GB_PROPERTY_HOST_SCALAR && !is_paired(executable, buffer->index) &&
                may_share(executable, b, output))
            return b;
    }
    return GB_NONE;
}

gb_status gb_find_inplace_pairs(gb_executable *executable)
{
    const gb_program *program = &executable->program;
    executable->pairs = gb_calloc(executable->request.n_outputs, sizeof *executable->pairs);
    if (!executable->pairs)
        return GB_OUT_OF_MEMORY;
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        if (program->buffers[b].placement != GB_PLACEMENT_OUTPUT)
            continue;
        uint32_t partner = find_partner(executable, b);
        if (partner != GB_NONE)
            executable->pairs[executable->n_pairs++] =
                    (gb_port_pair){program->buffers[partner].index, program->buffers[b].index};
    }
    return GB_SUCCESS;
}
