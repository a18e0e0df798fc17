/* Compiling: the graph of a request goes through the passes, lowering and the plan of memory. */
#include "base/memory.h"
#include "base/status.h"
#include "runtime/compiled.h"

#include <stdlib.h>
#include <string.h>

/* Buffers and descriptions of the ports. */
static gb_status add_ports(gb_executable *executable, gb_buffer_placement placement)
{
    gb_program *program = &executable->program;
    bool is_input = placement == GB_PLACEMENT_INPUT;
    uint32_t n = is_input ? executable->request.n_inputs : executable->request.n_outputs;
    const uint32_t *values = is_input ? executable->request.inputs : executable->request.outputs;
    gb_port *ports = gb_calloc(n, sizeof *ports);
    *(is_input ? &executable->inputs : &executable->outputs) = ports;
    if (!ports || !gb_reserve(&program->buffers, &program->buffer_capacity,
                          (size_t)program->n_buffers + n, sizeof *program->buffers))
        return GB_OUT_OF_MEMORY;
    for (uint32_t p = 0; p < n; p++) {
        size_t id = executable->request.graph->values[values[p]].tensor.id;
        uint32_t value = gb_graph_find_value(program->graph, id);
        const gb_logical_tensor *tensor = &program->graph->values[value].tensor;
        gb_buffer buffer = {.placement = placement, .index = p};
        GB_TRY(gb_logical_tensor_get_mem_size(tensor, &buffer.bytes));
        buffer.constant = is_input && tensor->property == GB_PROPERTY_CONSTANT;
        ports[p] = (gb_port){value, *tensor};
        executable->bytes += (double)buffer.bytes;
        program->value_buffers[value] = program->n_buffers;
        program->buffers[program->n_buffers++] = buffer;
    }
    return GB_SUCCESS;
}

static gb_status start_program(gb_executable *executable)
{
    gb_program *program = &executable->program;
    program->compile_key = executable->request.compile_key;
    program->is_printed = gb_prints_programs();
    program->value_buffers = gb_calloc(program->graph->n_values, sizeof *program->value_buffers);
    if (!program->value_buffers)
        return GB_OUT_OF_MEMORY;
    for (uint32_t v = 0; v < program->graph->n_values; v++)
        program->value_buffers[v] = GB_NONE;
    return GB_SUCCESS;
}

static gb_status compile_lower(
        gb_executable *executable, const gb_backend *backend, const gb_groups *groups)
{
    gb_program *program = &executable->program;
    for (uint32_t i = 0; i < groups->n_groups; i++) {
        program->group = i;
        GB_TRY(backend->lower(program, &groups->groups[i]));
    }
    GB_TRY(gb_program_plan(program));
    if (program->is_printed)
        gb_program_print(program, groups, stderr);
    return GB_SUCCESS;
}

static gb_status compile_describe(gb_executable *executable, const gb_backend *backend)
{
    const char *variant = backend->variant(executable->engine->index);
    const gb_program *program = &executable->program;
    size_t length = strlen(variant) + sizeof "none:";
    for (uint32_t s = 0; s < program->n_steps; s++)
        length += strlen(program->steps[s].kernel) + 1;
    executable->kernels = gb_calloc(length, 1);
    if (!executable->kernels)
        return GB_OUT_OF_MEMORY;
    if (program->n_steps == 0)
        strcat(executable->kernels, "none");
    for (uint32_t s = 0; s < program->n_steps; s++) {
        if (s)
            strcat(executable->kernels, "+");
        strcat(executable->kernels, program->steps[s].kernel);
    }
    strcat(strcat(executable->kernels, ":"), variant);
    return GB_SUCCESS;
}

/* The numbers known now move to memory of the engine. */
static gb_status place_numbers(gb_executable *executable, const gb_backend *backend)
{
    gb_program *program = &executable->program;
    if (program->number_bytes == 0)
        return GB_SUCCESS;
    GB_TRY(backend->memory_create(executable->engine, program->number_bytes, &program->numbers));
    void *mapped;
    GB_TRY(backend->map(
            executable->engine, NULL, program->numbers, 0, program->number_bytes, &mapped));
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        gb_buffer *buffer = &program->buffers[b];
        if (buffer->placement != GB_PLACEMENT_LITERALS)
            continue;
        memcpy((char *)mapped + buffer->offset, buffer->numbers, buffer->bytes);
        free(buffer->numbers);
        buffer->numbers = NULL;
    }
    return backend->unmap(executable->engine, NULL, program->numbers, mapped);
}

static void identify_constants(gb_executable *executable)
{
    if (gb_program_digest_constants(
                &executable->program, executable->engine->backend, &executable->constants))
        return;
    executable->owner = gb_next_id();
    executable->constants = (gb_digest){{executable->owner, 0}};
}

static gb_status compile_build(
        gb_executable *executable, const gb_backend *backend, const gb_groups *groups)
{
    GB_TRY(start_program(executable));
    GB_TRY(add_ports(executable, GB_PLACEMENT_INPUT));
    GB_TRY(add_ports(executable, GB_PLACEMENT_OUTPUT));
    GB_TRY(compile_lower(executable, backend, groups));
    identify_constants(executable);
    GB_TRY(place_numbers(executable, backend));
    GB_TRY(backend->finish(&executable->program, executable->engine));
    GB_TRY(gb_find_inplace_pairs(executable));
    return compile_describe(executable, backend);
}

static gb_status compile(gb_executable *executable, const gb_backend *backend)
{
    const gb_request *request = &executable->request;
    gb_program *program = &executable->program;
    size_t *output_ids = gb_calloc(request->n_outputs, sizeof *output_ids);
    if (!output_ids)
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < request->n_outputs; i++)
        output_ids[i] = request->graph->values[request->outputs[i]].tensor.id;
    gb_pass_context context = {.capability = backend->capability(request->engine->index),
            .output_ids = output_ids,
            .n_outputs = request->n_outputs};
    gb_status status = gb_graph_clone(request->graph, NULL, 0, &program->graph);
    if (status == GB_SUCCESS)
        status = gb_run_passes(program->graph, &context);
    executable->flops = context.flops;
    if (status == GB_SUCCESS)
        status = compile_build(executable, backend, context.groups);
    gb_groups_free(context.groups);
    free(output_ids);
    return status;
}

static bool leaves_open(const gb_request *request)
{
    for (uint32_t i = 0; i < request->n_outputs; i++) {
        const gb_logical_tensor *tensor = &request->graph->values[request->outputs[i]].tensor;
        if (tensor->layout_type == GB_LAYOUT_ANY || gb_is_open(tensor))
            return true;
    }
    return false;
}

/* The values of `from`, as they are called in another graph. */
static gb_status same_values(const gb_graph *graph, const gb_graph *from, const uint32_t *values,
        uint32_t n, uint32_t **copy)
{
    *copy = gb_calloc(n, sizeof **copy);
    for (uint32_t i = 0; *copy && i < n; i++)
        (*copy)[i] = gb_graph_find_value(graph, from->values[values[i]].tensor.id);
    return *copy ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

/* The request that an application makes which compiles again, for the results it was told of. */
static gb_status settle(gb_executable *executable)
{
    const gb_request *request = &executable->request;
    gb_request *settled = &executable->settled;
    if (!leaves_open(request))
        return GB_SUCCESS;
    *settled = (gb_request){.engine = request->engine,
            .compile_key = request->compile_key,
            .n_inputs = request->n_inputs,
            .n_outputs = request->n_outputs};
    GB_TRY(gb_graph_clone(request->graph, NULL, 0, &settled->graph));
    GB_TRY(same_values(
            settled->graph, request->graph, request->inputs, request->n_inputs, &settled->inputs));
    GB_TRY(same_values(settled->graph, request->graph, request->outputs, request->n_outputs,
            &settled->outputs));
    for (uint32_t i = 0; i < settled->n_outputs; i++)
        settled->graph->values[settled->outputs[i]].tensor = executable->outputs[i].tensor;
    return gb_content_create(settled->graph, &settled->content);
}

gb_status gb_executable_create(
        gb_request *request, const gb_backend *backend, gb_executable **executable)
{
    gb_executable *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    made->references = 1;
    made->engine = gb_engine_retain(request->engine);
    made->request = *request;
    gb_status status = compile(made, backend);
    if (status == GB_SUCCESS)
        status = settle(made);
    if (status == GB_SUCCESS) {
        *executable = made;
        return GB_SUCCESS;
    }
    made->request = (gb_request){0}; /* stays the caller's */
    gb_executable_release(made);
    return status;
}

void gb_executable_release(gb_executable *executable)
{
    if (!executable || atomic_fetch_sub(&executable->references, 1) != 1)
        return;
    if (executable->owner)
        gb_constants_forget_owner(executable->engine, executable->owner);
    const gb_backend *backend = executable->engine->backend;
    if (executable->program.state)
        backend->program_fini(&executable->program);
    if (executable->program.numbers)
        backend->memory_release(executable->engine, executable->program.numbers);
    gb_request_clear(&executable->request);
    gb_request_clear(&executable->settled);
    gb_program_clear(&executable->program);
    free(executable->inputs);
    free(executable->outputs);
    free(executable->kernels);
    free(executable->pairs);
    gb_engine_release(executable->engine);
    free(executable);
}

void gb_request_clear(gb_request *request)
{
    gb_graph_destroy(request->graph);
    gb_content_clear(&request->content);
    free(request->inputs);
    free(request->outputs);
    *request = (gb_request){0};
}
