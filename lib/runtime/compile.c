/* Compiling a partition: its graph with the caller's descriptions, the passes, lowering, and the
 * plan of memory. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "runtime/compiled.h"

#include <stdlib.h>
#include <string.h>

static const gb_logical_tensor *find_tensor(
        size_t n, const gb_logical_tensor *const *tensors, size_t id)
{
    for (size_t i = 0; i < n; i++)
        if (tensors[i] && tensors[i]->id == id)
            return tensors[i];
    return NULL;
}

/* `tensor` is what the caller gives for the port that the partition describes as `port`. */
static gb_status check_port(
        const gb_logical_tensor *tensor, const gb_logical_tensor *port, bool is_input)
{
    const char *side = is_input ? "input" : "output";
    if (!tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "compile: %s tensor %zu is missing", side, port->id);
    GB_TRY(gb_logical_tensor_check(tensor));
    if (!tensor->data_type || (port->data_type && tensor->data_type != port->data_type))
        return gb_fail(GB_INVALID_ARGUMENTS, "compile: %s tensor %zu has type %s, not %s", side,
                port->id, gb_data_type_name(tensor->data_type), gb_data_type_name(port->data_type));
    bool layout = tensor->layout_type == GB_LAYOUT_STRIDED ||
                  (tensor->layout_type == GB_LAYOUT_ANY && !is_input);
    if (!layout)
        return gb_fail(GB_INVALID_ARGUMENTS, "compile: %s tensor %zu must have a strided layout%s",
                side, port->id, is_input ? "" : ", or any");
    if (is_input && tensor->ndims < 0)
        return gb_fail(
                GB_INVALID_ARGUMENTS, "compile: input tensor %zu has unknown rank", port->id);
    for (int d = 0; is_input && d < tensor->ndims; d++)
        if (tensor->dims[d] < 0 || tensor->strides[d] < 0)
            return gb_fail(GB_INVALID_ARGUMENTS,
                    "compile: input tensor %zu must have known dims and strides", port->id);
    return GB_SUCCESS;
}

static void forget_shape(gb_logical_tensor *tensor)
{
    tensor->ndims = GB_UNKNOWN_NDIMS;
    tensor->layout_type = GB_LAYOUT_STRIDED;
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        tensor->dims[d] = tensor->strides[d] = GB_UNKNOWN_DIM;
}

static gb_status set_port(gb_graph *graph, size_t id, size_t n,
        const gb_logical_tensor *const *tensors, bool is_input)
{
    gb_logical_tensor *tensor = &graph->values[gb_graph_find_value(graph, id)].tensor;
    const gb_logical_tensor *given = find_tensor(n, tensors, id);
    GB_TRY(check_port(given, tensor, is_input));
    *tensor = *given;
    if (given->layout_type != GB_LAYOUT_ANY)
        return GB_SUCCESS;
    tensor->layout_type = GB_LAYOUT_STRIDED;
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        tensor->strides[d] = GB_UNKNOWN_DIM;
    return GB_SUCCESS;
}

/* Gives the ports the caller's descriptions; what lies inside is inferred anew. */
static gb_status set_ports(const gb_partition *partition, gb_graph *graph, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t n_outputs,
        const gb_logical_tensor *const *outputs)
{
    for (uint32_t v = 0; v < graph->n_values; v++)
        forget_shape(&graph->values[v].tensor);
    for (uint32_t i = 0; i < partition->n_inputs; i++)
        GB_TRY(set_port(graph, partition->inputs[i], n_inputs, inputs, true));
    for (uint32_t i = 0; i < partition->n_outputs; i++)
        GB_TRY(set_port(graph, partition->outputs[i], n_outputs, outputs, false));
    return GB_SUCCESS;
}

/* The ports' buffers, and the descriptions in the caller's order. Tensors that are no port get an
 * empty description. */
static gb_status bind(gb_compiled_partition *compiled, const gb_partition *partition, size_t n,
        const gb_logical_tensor *const *tensors, bool is_input)
{
    gb_program *program = &compiled->program;
    gb_logical_tensor *list = is_input ? compiled->inputs : compiled->outputs;
    const size_t *ports = is_input ? partition->inputs : partition->outputs;
    uint32_t n_ports = is_input ? partition->n_inputs : partition->n_outputs;
    for (size_t i = 0; i < n; i++)
        list[i] = (gb_logical_tensor){.id = GB_NO_ID};
    for (uint32_t p = 0; p < n_ports; p++) {
        uint32_t value = gb_graph_find_value(program->graph, ports[p]);
        const gb_logical_tensor *tensor = &program->graph->values[value].tensor;
        uint32_t position = 0;
        while (tensors[position]->id != ports[p])
            position++;
        list[position] = *tensor;
        gb_buffer buffer = {.home = is_input ? GB_HOME_INPUT : GB_HOME_OUTPUT, .index = position};
        GB_TRY(gb_logical_tensor_get_mem_size(tensor, &buffer.bytes));
        buffer.constant = is_input && tensor->property == GB_PROPERTY_CONSTANT;
        compiled->bytes += (double)buffer.bytes;
        if (!gb_reserve(&program->buffers, &program->buffer_capacity,
                    (size_t)program->n_buffers + 1, sizeof *program->buffers))
            return GB_OUT_OF_MEMORY;
        program->value_buffers[value] = program->n_buffers;
        program->buffers[program->n_buffers++] = buffer;
    }
    return GB_SUCCESS;
}

static gb_status start_program(gb_compiled_partition *compiled)
{
    gb_program *program = &compiled->program;
    program->n_threads = gb_max_threads();
    program->value_buffers = gb_calloc(program->graph->n_values, sizeof *program->value_buffers);
    compiled->inputs = gb_calloc(compiled->n_inputs, sizeof *compiled->inputs);
    compiled->outputs = gb_calloc(compiled->n_outputs, sizeof *compiled->outputs);
    if (!program->value_buffers || !compiled->inputs || !compiled->outputs)
        return GB_OUT_OF_MEMORY;
    for (uint32_t v = 0; v < program->graph->n_values; v++)
        program->value_buffers[v] = GB_NONE;
    return GB_SUCCESS;
}

static gb_status lower(
        gb_compiled_partition *compiled, const gb_partition *partition, const gb_groups *groups)
{
    for (uint32_t i = 0; i < groups->n_groups; i++)
        GB_TRY(partition->backend->lower(&compiled->program, &groups->groups[i]));
    return gb_program_plan(&compiled->program);
}

static gb_status describe(gb_compiled_partition *compiled, const gb_backend *backend)
{
    const gb_program *program = &compiled->program;
    size_t length = strlen(backend->variant()) + sizeof "none:";
    for (uint32_t s = 0; s < program->n_steps; s++)
        length += strlen(program->steps[s].kernel) + 1;
    compiled->kernels = gb_calloc(length, 1);
    if (!compiled->kernels)
        return GB_OUT_OF_MEMORY;
    if (program->n_steps == 0)
        strcat(compiled->kernels, "none");
    for (uint32_t s = 0; s < program->n_steps; s++) {
        if (s)
            strcat(compiled->kernels, "+");
        strcat(compiled->kernels, program->steps[s].kernel);
        compiled->flops += program->steps[s].flops;
    }
    strcat(strcat(compiled->kernels, ":"), backend->variant());
    return GB_SUCCESS;
}

static gb_status compile_into(gb_compiled_partition *compiled, const gb_partition *partition,
        const gb_logical_tensor *const *inputs, const gb_logical_tensor *const *outputs)
{
    gb_program *program = &compiled->program;
    GB_TRY(gb_graph_clone(partition->graph, NULL, 0, &program->graph));
    GB_TRY(set_ports(
            partition, program->graph, compiled->n_inputs, inputs, compiled->n_outputs, outputs));
    gb_pass_context context = {.capability = &partition->backend->capability,
            .output_ids = partition->outputs,
            .n_outputs = partition->n_outputs};
    gb_status status = gb_run_passes(program->graph, &context);
    if (status == GB_SUCCESS)
        status = start_program(compiled);
    if (status == GB_SUCCESS)
        status = bind(compiled, partition, compiled->n_inputs, inputs, true);
    if (status == GB_SUCCESS)
        status = bind(compiled, partition, compiled->n_outputs, outputs, false);
    if (status == GB_SUCCESS)
        status = lower(compiled, partition, context.groups);
    if (status == GB_SUCCESS)
        status = gb_find_inplace_pairs(compiled);
    if (status == GB_SUCCESS)
        status = describe(compiled, partition->backend);
    gb_groups_free(context.groups);
    return status;
}

gb_status gb_partition_compile(const gb_partition *partition, gb_compiled_partition **compiled,
        size_t n_inputs, const gb_logical_tensor *const *inputs, size_t n_outputs,
        const gb_logical_tensor *const *outputs, const gb_engine *engine)
{
    if (!partition || !compiled || !engine || (n_inputs && !inputs) || (n_outputs && !outputs))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_partition_compile: NULL argument");
    for (size_t i = 0; i < n_inputs + n_outputs; i++)
        if (!(i < n_inputs ? inputs[i] : outputs[i - n_inputs]))
            return gb_fail(GB_INVALID_ARGUMENTS, "gb_partition_compile: NULL tensor");
    if (partition->unsupported)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s is not supported: %s",
                gb_op_label(partition->graph->ops[0]), partition->unsupported);
    if (engine->backend != partition->backend)
        return gb_fail(GB_INVALID_ARGUMENTS, "the partition was made for another kind of engine");
    gb_compiled_partition *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    pthread_mutex_init(&made->lock, NULL);
    made->engine = gb_engine_retain(engine);
    made->n_inputs = (uint32_t)n_inputs;
    made->n_outputs = (uint32_t)n_outputs;
    gb_status status = compile_into(made, partition, inputs, outputs);
    if (status == GB_SUCCESS)
        *compiled = made;
    else
        gb_compiled_partition_destroy(made);
    return status;
}

gb_status gb_compiled_partition_destroy(gb_compiled_partition *compiled)
{
    if (!compiled)
        return GB_SUCCESS;
    if (compiled->constants)
        gb_constants_release(compiled, compiled->constants);
    pthread_mutex_destroy(&compiled->lock);
    gb_program_clear(&compiled->program);
    free(compiled->inputs);
    free(compiled->outputs);
    free(compiled->kernels);
    free(compiled->inplace);
    gb_engine_destroy(compiled->engine);
    free(compiled);
    return GB_SUCCESS;
}

gb_status gb_compiled_partition_query_logical_tensor(
        const gb_compiled_partition *compiled, size_t tensor_id, gb_logical_tensor *tensor)
{
    if (!compiled || !tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "query_logical_tensor: NULL argument");
    for (uint32_t i = 0; i < compiled->n_inputs + compiled->n_outputs; i++) {
        const gb_logical_tensor *port = i < compiled->n_inputs
                                                ? &compiled->inputs[i]
                                                : &compiled->outputs[i - compiled->n_inputs];
        if (port->id != tensor_id)
            continue;
        *tensor = *port;
        return GB_SUCCESS;
    }
    return gb_fail(
            GB_INVALID_ARGUMENTS, "the compiled partition has no port with tensor %zu", tensor_id);
}

gb_status gb_compiled_partition_get_inplace_ports(
        const gb_compiled_partition *compiled, size_t *count, const gb_inplace_pair **pairs)
{
    if (!compiled || !count || !pairs)
        return gb_fail(GB_INVALID_ARGUMENTS, "get_inplace_ports: NULL argument");
    *count = compiled->n_inplace;
    *pairs = compiled->inplace;
    return GB_SUCCESS;
}

gb_status gb_compiled_partition_get_scratchpad(
        const gb_compiled_partition *compiled, gb_logical_tensor *scratchpad)
{
    if (!compiled || !scratchpad)
        return gb_fail(GB_INVALID_ARGUMENTS, "get_scratchpad: NULL argument");
    int64_t bytes = (int64_t)gb_program_scratch(&compiled->program, compiled->program.n_threads);
    return gb_logical_tensor_init_with_dims(
            scratchpad, GB_NO_ID, GB_U8, 1, &bytes, GB_LAYOUT_STRIDED, GB_PROPERTY_VARIABLE);
}

const char *gb_compiled_partition_get_kernels(const gb_compiled_partition *compiled)
{
    return compiled ? compiled->kernels : "";
}

gb_status gb_compiled_partition_get_work(
        const gb_compiled_partition *compiled, double *flops, double *bytes)
{
    if (!compiled || !flops || !bytes)
        return gb_fail(GB_INVALID_ARGUMENTS, "get_work: NULL argument");
    *flops = compiled->flops;
    *bytes = compiled->bytes;
    return GB_SUCCESS;
}
