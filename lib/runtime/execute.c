/* Executing a compiled partition: find the places of all buffers, prepare constants once, and hand
 * the rest to the engine's backend. */
#include "base/memory.h"
#include "base/verbose.h"
#include "runtime/compiled.h"
#include "runtime/dynamic.h"
#include "runtime/report.h"

#include <stdlib.h>
#include <string.h>

typedef struct run_context {
    const gb_compiled_partition *compiled;
    const gb_executable *executable;
    const gb_execute_arguments *arguments;
    gb_binding *bindings; /* of every buffer of the program */
    gb_binding scratch;
    gb_constants *constants; /* held; NULL: the program has none */
} run_context;

static gb_status run_steps(const run_context *run, bool constant_steps, uint32_t n_waits,
        gb_event *const *waits, gb_event *event)
{
    const gb_execution execution = {.program = &run->executable->program,
            .stream = run->arguments->stream,
            .bindings = run->bindings,
            .scratch = run->scratch,
            .constant_steps = constant_steps,
            .n_waits = n_waits,
            .waits = waits,
            .event = event};
    return run->executable->engine->backend->execute(&execution);
}

/* Constants ------------------------------------------------------------------------------------ */

static void bind_block(const gb_program *program, gb_buffer_placement placement, void *memory,
        gb_binding *bindings)
{
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        const gb_buffer *buffer = &program->buffers[b];
        if (buffer->placement == placement)
            bindings[b] = (gb_binding){memory, buffer->offset, buffer->bytes, false};
    }
}

/* Whoever asked for constants waits until they are complete: it happens once for each contents. */
static gb_status execute_prepare(void *context, void *memory)
{
    run_context *run = context;
    int64_t start = gb_verbose_on(GB_VERBOSE_EXEC) ? gb_nanoseconds() : 0;
    bind_block(&run->executable->program, GB_PLACEMENT_CONSTANTS, memory, run->bindings);
    if (run->executable->engine->backend->host_memory) {
        GB_TRY(run_steps(run, true, 0, NULL, NULL));
    } else {
        gb_event *event = gb_event_create(run->executable->engine->backend);
        if (!event)
            return GB_OUT_OF_MEMORY;
        gb_status status = run_steps(run, true, 0, NULL, event);
        if (status == GB_SUCCESS)
            status = gb_event_await(event);
        gb_event_release(event);
        GB_TRY(status);
    }
    if (start)
        gb_report_constants(run->compiled, gb_nanoseconds() - start);
    return GB_SUCCESS;
}

/* What writes a constant may be among what the execution depends on. */
static gb_status await_dependencies(const run_context *run)
{
    return gb_events_await(run->arguments->n_dependencies, run->arguments->dependencies);
}

/* Of what the constant steps do, and of what they read. */
static gb_status digest_constants(const run_context *run, gb_digest *digest)
{
    const gb_program *program = &run->executable->program;
    gb_digest contents;
    *digest = run->executable->constants;
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        const gb_buffer *buffer = &program->buffers[b];
        if (!buffer->prepares || buffer->placement != GB_PLACEMENT_INPUT || !buffer->bytes)
            continue;
        const gb_tensor *tensor = run->arguments->inputs[run->compiled->input_ports[buffer->index]];
        if (!gb_tensor_has_digest(tensor))
            GB_TRY(await_dependencies(run));
        GB_TRY(gb_tensor_digest(tensor, buffer->bytes, run->arguments->stream, &contents));
        *digest = gb_digest_join(*digest, contents);
    }
    return GB_SUCCESS;
}

/* Those that the compiled partition used last, held for the caller; NULL when they are others. */
static gb_constants *latest_constants(gb_compiled_partition *compiled, gb_digest digest)
{
    gb_constants *found = NULL;
    pthread_mutex_lock(&compiled->lock);
    gb_constants *latest = compiled->constants;
    if (latest && gb_digest_equal(latest->digest, digest))
        found = gb_constants_hold(latest);
    pthread_mutex_unlock(&compiled->lock);
    return found;
}

static void keep_constants(gb_compiled_partition *compiled, gb_constants *constants)
{
    pthread_mutex_lock(&compiled->lock);
    gb_constants *before = compiled->constants;
    compiled->constants = gb_constants_hold(constants);
    pthread_mutex_unlock(&compiled->lock);
    if (before)
        gb_constants_release(before, true);
}

/* The constants for the contents of these inputs, made now when nobody has them. */
static gb_status get_constants(run_context *run)
{
    gb_compiled_partition *shared =
            (gb_compiled_partition *)(uintptr_t)run->compiled; /* its constants, under the lock */
    gb_digest digest;
    GB_TRY(digest_constants(run, &digest));
    run->constants = latest_constants(shared, digest);
    if (run->constants)
        return GB_SUCCESS;
    GB_TRY(await_dependencies(run));
    const gb_executable *executable = run->executable;
    const gb_constants_request request = {.engine = executable->engine,
            .owner = executable->owner,
            .bytes = executable->program.constant_bytes,
            .digest = digest,
            .prepare = execute_prepare,
            .context = run};
    GB_TRY(gb_constants_get(&request, &run->constants));
    keep_constants(shared, run->constants);
    return GB_SUCCESS;
}

/* Binding -------------------------------------------------------------------------------------- */

static gb_status bind_tensors(const run_context *run, gb_buffer_placement placement)
{
    const gb_compiled_partition *compiled = run->compiled;
    const gb_program *program = &run->executable->program;
    bool is_input = placement == GB_PLACEMENT_INPUT;
    const uint32_t *positions = is_input ? compiled->input_ports : compiled->output_ports;
    const gb_tensor *const *tensors =
            is_input ? run->arguments->inputs : (const gb_tensor *const *)run->arguments->outputs;
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        const gb_buffer *buffer = &program->buffers[b];
        if (buffer->placement != placement)
            continue;
        const gb_tensor *tensor = tensors[positions[buffer->index]];
        void *memory = gb_tensor_memory(tensor);
        run->bindings[b] = (gb_binding){memory, 0, buffer->bytes, !tensor->engine};
        if (!memory && buffer->bytes)
            return gb_fail(GB_INVALID_ARGUMENTS, "execute: %s %u (tensor %zu) has no memory",
                    is_input ? "input" : "output", positions[buffer->index],
                    (is_input ? compiled->inputs : compiled->outputs)[positions[buffer->index]].id);
    }
    return GB_SUCCESS;
}

/* Outputs have other contents from now on, and those that wait for shape and memory get them, as
 * does a scratchpad. */
static gb_status settle(
        const gb_compiled_partition *compiled, gb_tensor *const *outputs, gb_tensor *scratchpad)
{
    for (uint32_t i = 0; i < compiled->n_outputs; i++) {
        if (compiled->outputs[i].id == GB_NO_ID)
            continue;
        gb_tensor *output = outputs[i];
        gb_kept_digest_forget(&output->digest);
        if (output->deferred)
            GB_TRY(gb_tensor_settle(output, &compiled->outputs[i]));
    }
    if (!scratchpad || !scratchpad->deferred)
        return GB_SUCCESS;
    if (scratchpad->description.data_type != GB_U8) /* its size is one in bytes */
        return gb_fail(GB_INVALID_ARGUMENTS,
                "execute: a scratchpad whose memory is allocated here must be of type u8");
    gb_logical_tensor wanted;
    GB_TRY(gb_compiled_partition_get_scratchpad(compiled, &wanted));
    return gb_tensor_settle(scratchpad, &wanted);
}

static gb_status check_scratchpad(const gb_executable *executable, const gb_tensor *scratchpad)
{
    size_t bytes, needed = gb_code_scratch(executable, NULL);
    GB_TRY(gb_logical_tensor_get_mem_size(&scratchpad->description, &bytes));
    if (bytes == SIZE_MAX || bytes < needed)
        return gb_fail(GB_INVALID_ARGUMENTS, "execute: the scratchpad has %zu bytes of %zu",
                bytes == SIZE_MAX ? 0 : bytes, needed);
    if (needed && !scratchpad->handle)
        return gb_fail(GB_INVALID_ARGUMENTS, "execute: the scratchpad has no memory");
    return GB_SUCCESS;
}

static gb_status check_engine(
        const gb_engine *engine, const gb_tensor *tensor, const char *side, size_t position)
{
    if (!tensor || !tensor->engine || gb_engines_share(tensor->engine, engine))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS,
            "execute: %s %zu (tensor %zu) is of another engine (%s) than what was compiled (%s)",
            side, position, tensor->description.id, tensor->engine->description,
            engine->description);
}

static gb_status check_engines(const gb_engine *engine, const gb_execute_arguments *arguments)
{
    if (!gb_engines_share(arguments->stream->engine, engine))
        return gb_fail(GB_INVALID_ARGUMENTS,
                "execute: the stream is of another engine (%s) than what was compiled (%s)",
                arguments->stream->engine->description, engine->description);
    for (size_t i = 0; i < arguments->n_inputs; i++)
        GB_TRY(check_engine(engine, arguments->inputs[i], "input", i));
    for (size_t i = 0; i < arguments->n_outputs; i++)
        GB_TRY(check_engine(engine, arguments->outputs[i], "output", i));
    return check_engine(engine, arguments->scratchpad, "scratchpad", 0);
}

static gb_status check_arguments(
        const gb_compiled_partition *compiled, const gb_execute_arguments *a)
{
    if (!compiled || !a->stream || (a->n_inputs && !a->inputs) || (a->n_outputs && !a->outputs) ||
            (a->n_dependencies && !a->dependencies))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_compiled_partition_execute: NULL argument");
    for (size_t i = 0; i < a->n_dependencies; i++)
        if (!a->dependencies[i])
            return gb_fail(GB_INVALID_ARGUMENTS, "execute: dependency %zu is NULL", i);
    if (a->n_inputs != compiled->n_inputs || a->n_outputs != compiled->n_outputs)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "execute: %zu inputs and %zu outputs given, compiled with %u and %u", a->n_inputs,
                a->n_outputs, compiled->n_inputs, compiled->n_outputs);
    GB_TRY(check_engines(
            compiled->dynamic ? gb_dynamic_engine(compiled->dynamic) : compiled->executable->engine,
            a));
    return gb_check_tensors(compiled, a->inputs, a->outputs);
}

/* Running -------------------------------------------------------------------------------------- */

/* Runs on the host, and is complete then. */
static gb_status run_here(const run_context *run)
{
    const gb_execute_arguments *a = run->arguments;
    gb_event *event = NULL;
    GB_TRY(await_dependencies(run));
    if (a->event && !(event = gb_event_create(run->executable->engine->backend)))
        return GB_OUT_OF_MEMORY;
    gb_status status = run_steps(run, false, 0, NULL, NULL);
    if (event && status == GB_SUCCESS) {
        gb_event_complete(event, GB_SUCCESS, NULL);
        *a->event = event;
    } else {
        gb_event_release(event);
    }
    return status;
}

/* What an execution must keep alive until it is complete. */
static gb_flight *make_flight(const run_context *run)
{
    const gb_engine *engine = run->executable->engine;
    const gb_program *program = &run->executable->program;
    gb_flight *flight = gb_calloc(1, sizeof *flight);
    void **memories = gb_calloc((size_t)program->n_buffers + 1, sizeof(void *));
    gb_event *event = gb_event_create(engine->backend);
    if (!flight || !memories || !event) {
        free(flight);
        free(memories);
        gb_event_release(event);
        return NULL;
    }
    flight->event = event;
    flight->memories = memories;
    flight->executable = (gb_executable *)(uintptr_t)run->executable; /* only the count changes */
    atomic_fetch_add(&flight->executable->references, 1);
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        gb_buffer_placement placement = program->buffers[b].placement;
        bool is_port = placement == GB_PLACEMENT_INPUT || placement == GB_PLACEMENT_OUTPUT;
        if (is_port && run->bindings[b].memory && !run->bindings[b].is_value)
            memories[flight->n_memories++] = run->bindings[b].memory;
    }
    if (run->scratch.memory)
        memories[flight->n_memories++] = run->scratch.memory;
    for (uint32_t i = 0; i < flight->n_memories; i++)
        engine->backend->memory_retain(engine, memories[i]);
    if (run->constants)
        flight->constants = gb_constants_hold(run->constants);
    return flight;
}

/* Starts a run that completes later. */
static gb_status run_there(const run_context *run)
{
    const gb_execute_arguments *a = run->arguments;
    const gb_backend *backend = run->executable->engine->backend;
    gb_event **waits = gb_calloc(a->n_dependencies, sizeof(gb_event *));
    gb_flight *flight = waits ? make_flight(run) : NULL;
    if (!flight) {
        free(waits);
        return GB_OUT_OF_MEMORY;
    }
    gb_status status = GB_SUCCESS;
    uint32_t n = 0;
    for (size_t i = 0; i < a->n_dependencies && status == GB_SUCCESS; i++) {
        if (a->dependencies[i]->backend == backend)
            waits[n++] = (gb_event *)(uintptr_t)a->dependencies[i];
        else
            status = gb_event_await(a->dependencies[i]);
    }
    if (status == GB_SUCCESS)
        status = run_steps(run, false, n, waits, flight->event);
    free(waits);
    if (status != GB_SUCCESS) {
        gb_flight_free(flight);
        return status;
    }
    gb_event *event = gb_event_retain(flight->event);
    gb_stream_add_flight(a->stream, flight);
    if (gb_verbose_on(GB_VERBOSE_EXEC)) /* which tells how long it took */
        status = gb_event_await(event);
    if (a->event && status == GB_SUCCESS)
        *a->event = event;
    else
        gb_event_release(event);
    return status;
}

static gb_status run_with_scratch(run_context *run, void *memory, size_t bytes)
{
    const gb_program *program = &run->executable->program;
    bool is_host = run->executable->engine->backend->host_memory;
    /* Host memory of the caller's may be unaligned. */
    size_t start = is_host ? gb_align_up((uintptr_t)memory, GB_CACHE_LINE) - (uintptr_t)memory : 0;
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        const gb_buffer *buffer = &program->buffers[b];
        if (buffer->placement == GB_PLACEMENT_ARENA)
            run->bindings[b] = (gb_binding){memory, start + buffer->offset, buffer->bytes, false};
        else if (buffer->placement == GB_PLACEMENT_LITERALS)
            run->bindings[b] = (gb_binding){program->numbers, buffer->offset, buffer->bytes, false};
        else if (buffer->placement == GB_PLACEMENT_CONSTANTS)
            run->bindings[b] = (gb_binding){0}; /* those of no bytes stay so */
    }
    size_t used = start + program->arena_bytes;
    run->scratch = (gb_binding){memory, used, bytes > used ? bytes - used : 0, false};
    if (program->constant_bytes) {
        GB_TRY(get_constants(run));
        bind_block(program, GB_PLACEMENT_CONSTANTS, run->constants->memory, run->bindings);
    }
    gb_status status = is_host ? run_here(run) : run_there(run);
    if (run->constants)
        gb_constants_release(run->constants, false);
    return status;
}

/* Small programs find their scratch on the stack: allocating it would take longer than running. */
static gb_status run_with_own_scratch(run_context *run)
{
    enum { SMALL_SCRATCH = 16 << 10 };
    const gb_engine *engine = run->executable->engine;
    size_t bytes = gb_code_scratch(run->executable, run->arguments->stream);
    if (bytes <= SMALL_SCRATCH && engine->backend->host_memory) {
        char small[SMALL_SCRATCH];
        return run_with_scratch(run, small, bytes);
    }
    if (bytes == 0)
        return run_with_scratch(run, NULL, 0);
    void *memory;
    GB_TRY(engine->backend->memory_create(engine, bytes, &memory));
    gb_status status = run_with_scratch(run, memory, bytes);
    engine->backend->memory_release(engine, memory);
    return status;
}

/* What is wrong with inputs is found before outputs change. */
static gb_status bind_and_run(run_context *run)
{
    gb_tensor *scratchpad = run->arguments->scratchpad;
    size_t bytes;
    GB_TRY(bind_tensors(run, GB_PLACEMENT_INPUT));
    GB_TRY(settle(run->compiled, run->arguments->outputs, scratchpad));
    if (scratchpad)
        GB_TRY(check_scratchpad(run->executable, scratchpad));
    GB_TRY(bind_tensors(run, GB_PLACEMENT_OUTPUT));
    if (!scratchpad)
        return run_with_own_scratch(run);
    GB_TRY(gb_logical_tensor_get_mem_size(&scratchpad->description, &bytes));
    return run_with_scratch(run, scratchpad->handle, bytes);
}

static gb_status execute(
        const gb_compiled_partition *compiled, const gb_execute_arguments *arguments)
{
    GB_TRY(check_arguments(compiled, arguments));
    if (compiled->dynamic)
        return gb_execute_specialized(compiled, arguments);
    enum { FEW_BUFFERS = 32 };
    gb_binding few[FEW_BUFFERS];
    uint32_t n = compiled->executable->program.n_buffers;
    run_context run = {.compiled = compiled,
            .executable = compiled->executable,
            .arguments = arguments,
            .bindings = n <= FEW_BUFFERS ? few : gb_calloc(n, sizeof *run.bindings)};
    if (!run.bindings)
        return GB_OUT_OF_MEMORY;
    gb_status status = bind_and_run(&run);
    if (run.bindings != few)
        free(run.bindings);
    return status;
}

gb_status gb_execute(const gb_compiled_partition *compiled, const gb_execute_arguments *arguments)
{
    int64_t start = gb_verbose_on(GB_VERBOSE_EXEC) ? gb_nanoseconds() : 0;
    gb_status status = execute(compiled, arguments);
    if (start && status == GB_SUCCESS && !compiled->dynamic) /* else the specialized one told */
        gb_report_execution(compiled, arguments->scratchpad, gb_nanoseconds() - start);
    return status;
}

gb_status gb_compiled_partition_execute(const gb_compiled_partition *compiled, gb_stream *stream,
        size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        gb_tensor *const *outputs, gb_tensor *scratchpad)
{
    return gb_compiled_partition_execute_with_events(
            compiled, stream, n_inputs, inputs, n_outputs, outputs, scratchpad, 0, NULL, NULL);
}

gb_status gb_compiled_partition_execute_with_events(const gb_compiled_partition *compiled,
        gb_stream *stream, size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        gb_tensor *const *outputs, gb_tensor *scratchpad, size_t n_dependencies,
        const gb_event *const *dependencies, gb_event **event)
{
    const gb_execute_arguments arguments = {.stream = stream,
            .n_inputs = n_inputs,
            .n_outputs = n_outputs,
            .inputs = inputs,
            .outputs = outputs,
            .scratchpad = scratchpad,
            .n_dependencies = n_dependencies,
            .dependencies = dependencies,
            .event = event};
    return gb_verbose_result("execute", gb_execute(compiled, &arguments));
}
