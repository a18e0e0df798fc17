/* Executing a compiled partition: bind the memory, prepare constants once, run the steps in one
 * parallel region, or phase by phase on the caller's threads. */
#include "base/cpu.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/verbose.h"
#include "runtime/compiled.h"
#include "runtime/dynamic.h"
#include "runtime/report.h"

#include <stdlib.h>
#include <string.h>

typedef struct run_context {
    const gb_compiled_partition *compiled;
    const gb_program *program;
    const gb_tensor *const *inputs; /* the caller's */
    void **buffers;                 /* memory of every buffer of the program */
    void **slots;                   /* buffers of every step, one after another */
    bool constant_steps;            /* run these only, or the others only */
    char *shared, *scratch;
    const gb_thread_pool *pool;
} run_context;

static gb_step_call call_of(
        const run_context *run, const gb_step *step, void *const *slots, int thread, int n_threads)
{
    return (gb_step_call){.params = step->params,
            .buffers = slots,
            .scratch = run->scratch + run->program->thread_bytes * (size_t)thread,
            .shared = run->shared,
            .thread = thread,
            .n_threads = n_threads};
}

static void run_steps(void *context, int thread, int n_threads)
{
    const run_context *run = context;
    void *const *slots = run->slots;
    bool first = true;
    unsigned state = gb_cpu_flush_subnormals();
    for (uint32_t s = 0; s < run->program->n_steps; s++) {
        const gb_step *step = &run->program->steps[s];
        if (run->program->step_is_constant[s] == run->constant_steps) {
            gb_step_call call = call_of(run, step, slots, thread, n_threads);
            for (call.phase = 0; call.phase < step->n_phases; call.phase++) {
                if (!first)
                    gb_barrier(n_threads);
                first = false;
                step->run(&call);
            }
        }
        slots += step->n_uses;
    }
    gb_cpu_restore_subnormals(state);
}

/* One phase of one step, for the caller's threads. */
typedef struct phase_context {
    const run_context *run;
    const gb_step *step;
    void *const *slots;
    int phase, n_threads;
} phase_context;

static void run_phase(void *context, int thread)
{
    const phase_context *c = context;
    gb_step_call call = call_of(c->run, c->step, c->slots, thread, c->n_threads);
    call.phase = c->phase;
    unsigned state = gb_cpu_flush_subnormals();
    c->step->run(&call);
    gb_cpu_restore_subnormals(state);
}

static void run_on_pool(const run_context *run, int n_threads)
{
    phase_context c = {.run = run, .slots = run->slots, .n_threads = n_threads};
    for (uint32_t s = 0; s < run->program->n_steps; s++) {
        c.step = &run->program->steps[s];
        bool wanted = run->program->step_is_constant[s] == run->constant_steps;
        for (c.phase = 0; wanted && c.phase < c.step->n_phases; c.phase++)
            if (n_threads > 1)
                run->pool->parallel_for(run->pool->pool, n_threads, run_phase, &c);
            else
                run_phase(&c, 0);
        c.slots += c.step->n_uses;
    }
}

static int threads_of(const gb_program *program, const gb_thread_pool *pool, bool constant_steps)
{
    int max = pool->parallel_for ? pool->concurrency : gb_max_threads();
    int threads = gb_threads_within(max, constant_steps ? program->constant_work : program->work);
    return threads < program->n_threads ? threads : program->n_threads;
}

static void run_program(run_context *run, bool constant_steps)
{
    const gb_program *program = run->program;
    size_t n = 0;
    for (uint32_t s = 0; s < program->n_steps; s++)
        for (uint32_t i = 0; i < program->steps[s].n_uses; i++)
            run->slots[n++] = run->buffers[program->steps[s].uses[i].buffer];
    run->constant_steps = constant_steps;
    int threads = threads_of(program, run->pool, constant_steps);
    if (run->pool->parallel_for)
        run_on_pool(run, threads);
    else
        gb_parallel(threads, run_steps, run);
}

static void *align_pointer(void *memory)
{
    return (void *)gb_align_up((uintptr_t)memory, GB_CACHE_LINE);
}

/* Constants ------------------------------------------------------------------------------------ */

static void bind_constants(const gb_program *program, void *memory, void **buffers)
{
    for (uint32_t i = 0; i < program->n_buffers; i++)
        if (program->buffers[i].home == GB_HOME_CONSTANTS)
            buffers[i] = (char *)memory + program->buffers[i].offset;
}

static void prepare(void *context, void *memory)
{
    run_context *run = context;
    int64_t start = gb_verbose_on(GB_VERBOSE_EXEC) ? gb_nanoseconds() : 0;
    bind_constants(run->program, memory, run->buffers);
    run_program(run, true);
    if (start)
        gb_report_constants(run->compiled, gb_nanoseconds() - start);
}

/* Of what the constant steps do, and of what they read. */
static gb_digest digest_constants(const gb_compiled_partition *compiled, const run_context *run)
{
    const gb_program *program = run->program;
    gb_digest digest = compiled->code->constants;
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        const gb_buffer *buffer = &program->buffers[b];
        if (!buffer->prepares || buffer->home != GB_HOME_INPUT || !buffer->bytes)
            continue;
        const gb_tensor *tensor = run->inputs[compiled->input_ports[buffer->index]];
        digest = gb_digest_join(digest, gb_tensor_digest(tensor, buffer->bytes, run->pool));
    }
    return digest;
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

/* The constants for the contents of these inputs, made now when nobody has them. Held for the
 * caller. */
static gb_constants *get_constants(gb_compiled_partition *compiled, run_context *run)
{
    gb_digest digest = digest_constants(compiled, run);
    gb_constants *constants = latest_constants(compiled, digest);
    if (constants)
        return constants;
    const gb_code *code = compiled->code;
    constants = gb_constants_get(&(gb_constants_request){.engine = code->engine,
            .owner = code->owner,
            .bytes = code->program.constant_bytes,
            .digest = digest,
            .prepare = prepare,
            .context = run});
    if (constants)
        keep_constants(compiled, constants);
    return constants;
}

/* Binding -------------------------------------------------------------------------------------- */

static gb_status bind_tensors(const gb_compiled_partition *compiled, gb_buffer_home home,
        const gb_tensor *const *tensors, void **buffers)
{
    const gb_code *code = compiled->code;
    bool is_input = home == GB_HOME_INPUT;
    const uint32_t *positions = is_input ? compiled->input_ports : compiled->output_ports;
    for (uint32_t b = 0; b < code->program.n_buffers; b++) {
        const gb_buffer *buffer = &code->program.buffers[b];
        if (buffer->home != home)
            continue;
        buffers[b] = gb_tensor_memory(tensors[positions[buffer->index]]);
        if (!buffers[b] && buffer->bytes)
            return gb_fail(GB_INVALID_ARGUMENTS, "execute: %s %u (tensor %zu) has no memory",
                    is_input ? "input" : "output", positions[buffer->index],
                    (is_input ? compiled->inputs : compiled->outputs)[positions[buffer->index]].id);
    }
    return GB_SUCCESS;
}

/* Outputs have other contents from now on, and those that wait for shape and memory get them, as
 * does a scratchpad: the execution writes these tensors, so their being lent as constant says
 * nothing about them. */
static gb_status settle(const gb_compiled_partition *compiled, const gb_tensor *const *outputs,
        const gb_tensor *scratchpad)
{
    for (uint32_t i = 0; i < compiled->n_outputs; i++) {
        if (compiled->outputs[i].id == GB_NO_ID)
            continue;
        gb_tensor *output = (gb_tensor *)(uintptr_t)outputs[i];
        gb_kept_digest_forget(&output->digest);
        if (output->deferred)
            GB_TRY(gb_tensor_settle(output, &compiled->outputs[i]));
    }
    if (!scratchpad || !scratchpad->deferred)
        return GB_SUCCESS;
    gb_logical_tensor wanted;
    GB_TRY(gb_compiled_partition_get_scratchpad(compiled, &wanted));
    return gb_tensor_settle((gb_tensor *)(uintptr_t)scratchpad, &wanted);
}

static gb_status check_scratchpad(const gb_program *program, const gb_tensor *scratchpad)
{
    size_t bytes, needed = gb_program_scratch(program, program->n_threads);
    GB_TRY(gb_logical_tensor_get_mem_size(&scratchpad->description, &bytes));
    if (bytes == SIZE_MAX || bytes < needed)
        return gb_fail(GB_INVALID_ARGUMENTS, "execute: the scratchpad has %zu bytes of %zu",
                bytes == SIZE_MAX ? 0 : bytes, needed);
    if (needed && !scratchpad->handle)
        return gb_fail(GB_INVALID_ARGUMENTS, "execute: the scratchpad has no memory");
    return GB_SUCCESS;
}

static gb_status check_arguments(const gb_compiled_partition *compiled, const gb_stream *stream,
        size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        const gb_tensor *const *outputs)
{
    if (!compiled || !stream || (n_inputs && !inputs) || (n_outputs && !outputs))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_compiled_partition_execute: NULL argument");
    if (n_inputs != compiled->n_inputs || n_outputs != compiled->n_outputs)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "execute: %zu inputs and %zu outputs given, compiled with %u and %u", n_inputs,
                n_outputs, compiled->n_inputs, compiled->n_outputs);
    const gb_engine *engine =
            compiled->dynamic ? gb_dynamic_engine(compiled->dynamic) : compiled->code->engine;
    if (stream->engine->backend != engine->backend)
        return gb_fail(
                GB_INVALID_ARGUMENTS, "execute: the stream belongs to another kind of engine");
    return gb_check_tensors(compiled, inputs, outputs);
}

static gb_status run_with_scratch(
        gb_compiled_partition *compiled, run_context *run, void *scratchpad)
{
    const gb_program *program = &compiled->code->program;
    char *arena = align_pointer(scratchpad);
    run->shared = arena + program->arena_bytes;
    run->scratch = run->shared + program->shared_bytes;
    for (uint32_t b = 0; b < program->n_buffers; b++) {
        const gb_buffer *buffer = &program->buffers[b];
        if (buffer->home == GB_HOME_ARENA)
            run->buffers[b] = arena + buffer->offset;
        else if (buffer->home == GB_HOME_NUMBERS)
            run->buffers[b] = buffer->numbers;
    }
    gb_constants *constants = NULL;
    if (program->constant_bytes) {
        constants = get_constants(compiled, run);
        if (!constants)
            return GB_OUT_OF_MEMORY;
        bind_constants(program, constants->memory, run->buffers);
    }
    run_program(run, false);
    if (constants)
        gb_constants_release(constants, false);
    return GB_SUCCESS;
}

/* Small programs find their scratch on the stack: allocating it would take longer than running. */
static gb_status run_with_own_scratch(gb_compiled_partition *compiled, run_context *run)
{
    enum { SMALL_SCRATCH = 16 << 10 };
    const gb_program *program = &compiled->code->program;
    int threads = threads_of(program, run->pool, false);
    int constant_threads = threads_of(program, run->pool, true);
    size_t bytes =
            gb_program_scratch(program, threads > constant_threads ? threads : constant_threads);
    if (bytes <= SMALL_SCRATCH) {
        char small[SMALL_SCRATCH];
        return run_with_scratch(compiled, run, small);
    }
    void *memory = gb_engine_malloc(compiled->code->engine, bytes);
    if (!memory)
        return GB_OUT_OF_MEMORY;
    gb_status status = run_with_scratch(compiled, run, memory);
    gb_engine_free(compiled->code->engine, memory);
    return status;
}

static gb_status execute(const gb_compiled_partition *compiled, gb_stream *stream, size_t n_inputs,
        const gb_tensor *const *inputs, size_t n_outputs, const gb_tensor *const *outputs,
        const gb_tensor *scratchpad)
{
    GB_TRY(check_arguments(compiled, stream, n_inputs, inputs, n_outputs, outputs));
    if (compiled->dynamic)
        return gb_execute_specialized(compiled, stream, inputs, outputs, scratchpad);
    const gb_program *program = &compiled->code->program;
    GB_TRY(settle(compiled, outputs, scratchpad));
    if (scratchpad)
        GB_TRY(check_scratchpad(program, scratchpad));
    gb_compiled_partition *shared =
            (gb_compiled_partition *)(uintptr_t)compiled; /* its constants, under the lock */
    enum { FEW_POINTERS = 64 };
    void *few[FEW_POINTERS] = {NULL};
    /* One block for all pointer lists. */
    size_t n = program->n_buffers + program->n_slots;
    void **pointers = n <= FEW_POINTERS ? few : gb_calloc(n, sizeof(void *));
    if (!pointers)
        return GB_OUT_OF_MEMORY;
    run_context run = {.compiled = compiled,
            .program = program,
            .inputs = inputs,
            .buffers = pointers,
            .slots = pointers + program->n_buffers,
            .pool = &stream->threads};
    gb_status status = bind_tensors(compiled, GB_HOME_INPUT, inputs, run.buffers);
    if (status == GB_SUCCESS)
        status = bind_tensors(compiled, GB_HOME_OUTPUT, outputs, run.buffers);
    if (status == GB_SUCCESS && scratchpad)
        status = run_with_scratch(shared, &run, scratchpad->handle);
    else if (status == GB_SUCCESS)
        status = run_with_own_scratch(shared, &run);
    if (pointers != few)
        free(pointers);
    return status;
}

gb_status gb_execute(const gb_compiled_partition *compiled, gb_stream *stream, size_t n_inputs,
        const gb_tensor *const *inputs, size_t n_outputs, const gb_tensor *const *outputs,
        const gb_tensor *scratchpad)
{
    int64_t start = gb_verbose_on(GB_VERBOSE_EXEC) ? gb_nanoseconds() : 0;
    gb_status status = execute(compiled, stream, n_inputs, inputs, n_outputs, outputs, scratchpad);
    if (start && status == GB_SUCCESS && !compiled->dynamic) /* else the specialized one told */
        gb_report_execution(compiled, scratchpad, gb_nanoseconds() - start);
    return status;
}

gb_status gb_compiled_partition_execute(const gb_compiled_partition *compiled, gb_stream *stream,
        size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        const gb_tensor *const *outputs, const gb_tensor *scratchpad)
{
    return gb_verbose_result("execute",
            gb_execute(compiled, stream, n_inputs, inputs, n_outputs, outputs, scratchpad));
}
