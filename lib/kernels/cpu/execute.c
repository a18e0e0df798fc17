/* Running the steps of a program in one parallel region, or phase by phase on the caller's threads.
 */
#include "kernels/cpu/execute.h"

#include "base/cpu.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/cpu/checked.h"
#include "kernels/cpu/step_call.h"
#include "runtime/compiled.h"

#include <stdlib.h>

/* What all steps share: the largest scratch that any of them asks for. */
typedef struct cpu_program {
    size_t shared_bytes, thread_bytes;
} cpu_program;

typedef struct run_context {
    const gb_program *program;
    void *const *slots;  /* buffers of every step, one after another */
    bool constant_steps; /* run these only, or the others only */
    gb_checked_scratch scratch;
    const gb_thread_pool *pool; /* NULL: OpenMP's threads */
    gb_step_failure *failure;
    gb_item_share *shares;
} run_context;

/* Programs --------------------------------------------------------------------------------------
 */

int gb_program_threads(const gb_program *program)
{
    return (int)(uint32_t)gb_program_compile_key(program);
}

gb_status gb_cpu_finish(gb_program *program, const gb_engine *engine)
{
    (void)engine;
    const size_t most = PTRDIFF_MAX / 4, threads = (size_t)gb_program_threads(program);
    const size_t guard = program->guard_bytes;
    cpu_program own = {0, 0};
    for (uint32_t s = 0; s < program->n_steps; s++) {
        gb_step *step = &program->steps[s];
        if (step->shared_scratch >= most || step->thread_scratch >= most / threads - GB_CACHE_LINE)
            return gb_fail(
                    GB_OUT_OF_MEMORY, "the partition needs more memory than can be addressed");
        size_t shared = gb_align_up(step->shared_scratch + guard, GB_CACHE_LINE);
        size_t thread = gb_align_up(step->thread_scratch, GB_CACHE_LINE);
        own.shared_bytes = shared > own.shared_bytes ? shared : own.shared_bytes;
        own.thread_bytes = thread > own.thread_bytes ? thread : own.thread_bytes;
        if (step->n_phases == 0)
            step->n_phases = 1;
    }
    program->state = gb_memdup(&own, sizeof own);
    return program->state ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

void gb_cpu_program_fini(gb_program *program)
{
    free(program->state);
}

/* Small programs need not ask how many threads there are. */
static int threads_of(const gb_program *program, const gb_thread_pool *pool, bool constant_steps)
{
    double work = constant_steps ? program->constant_work : program->work;
    int useful = gb_threads_within((int)(uint32_t)program->compile_key, work);
    if (useful <= 1)
        return 1;
    int most = pool ? pool->concurrency : gb_max_threads();
    return useful < most ? useful : most;
}

size_t gb_cpu_scratch_bytes(const gb_program *program, const gb_stream *stream)
{
    const cpu_program *own = program->state;
    int threads = (int)(uint32_t)program->compile_key;
    if (stream) {
        int constant = threads_of(program, stream->state, true);
        threads = threads_of(program, stream->state, false);
        threads = threads > constant ? threads : constant;
    }
    return own->shared_bytes + (own->thread_bytes + sizeof(gb_item_share)) * (size_t)threads;
}

/* Steps ---------------------------------------------------------------------------------------- */

static gb_step_call call_of(
        const run_context *run, const gb_step *step, void *const *slots, int thread, int n_threads)
{
    return (gb_step_call){.params = step->params,
            .buffers = slots,
            .scratch = run->scratch.threads + run->scratch.thread_bytes * (size_t)thread,
            .shared = run->scratch.shared,
            .thread = thread,
            .n_threads = n_threads,
            .failure = run->failure,
            .shares = run->shares};
}

/* What follows a failed step is left out. Threads may see a failure of the step that runs at
 * different times; so they still meet at all barriers. */
static void call_step(const gb_step *step, const gb_step_call *call)
{
    if (atomic_load_explicit(&call->failure->status, memory_order_relaxed) == GB_SUCCESS)
        step->run(call);
}

static bool is_checked(const run_context *run)
{
    return run->program->guard_bytes > 0;
}

/* What the step wrote behind its memory is the failure of the run. */
static void end_check(const run_context *run, uint32_t number, void *const *slots)
{
    gb_step_failure *failure = run->failure;
    const char *memory;
    if (atomic_load(&failure->status) != GB_SUCCESS ||
            gb_checked_end(run->program, number, slots, &run->scratch, &memory))
        return;
    failure->step = &run->program->steps[number];
    failure->memory = memory;
    atomic_store(&failure->status, GB_RUNTIME_ERROR);
}

/* Before or after a step, while no thread runs one. */
static void check_between(const run_context *run, uint32_t number, void *const *slots, bool before,
        int thread, int n_threads)
{
    gb_barrier(n_threads);
    if (thread == 0 && before)
        gb_checked_begin(run->program, number, slots, &run->scratch);
    else if (thread == 0)
        end_check(run, number, slots);
    gb_barrier(n_threads);
}

static void run_steps(void *context, int thread, int n_threads)
{
    const run_context *run = context;
    void *const *slots = run->slots;
    uint32_t turn = 0;
    unsigned state = gb_cpu_flush_subnormals();
    for (uint32_t s = 0; s < run->program->n_steps; s++) {
        const gb_step *step = &run->program->steps[s];
        if (run->program->step_is_constant[s] == run->constant_steps) {
            gb_step_call call = call_of(run, step, slots, thread, n_threads);
            if (is_checked(run))
                check_between(run, s, slots, true, thread, n_threads);
            for (call.phase = 0; call.phase < step->n_phases; call.phase++) {
                if (turn > 0)
                    gb_barrier(n_threads);
                call.turn = ++turn;
                call_step(step, &call);
            }
            if (is_checked(run))
                check_between(run, s, slots, false, thread, n_threads);
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
    uint32_t turn;
} phase_context;

static void run_phase(void *context, int thread)
{
    const phase_context *c = context;
    gb_step_call call = call_of(c->run, c->step, c->slots, thread, c->n_threads);
    call.phase = c->phase;
    call.turn = c->turn;
    unsigned state = gb_cpu_flush_subnormals();
    call_step(c->step, &call);
    gb_cpu_restore_subnormals(state);
}

static void run_on_pool(const run_context *run, int n_threads)
{
    phase_context c = {.run = run, .slots = run->slots, .n_threads = n_threads};
    for (uint32_t s = 0; s < run->program->n_steps; s++) {
        c.step = &run->program->steps[s];
        bool wanted = run->program->step_is_constant[s] == run->constant_steps;
        if (wanted && is_checked(run))
            gb_checked_begin(run->program, s, c.slots, &run->scratch);
        for (c.phase = 0; wanted && c.phase < c.step->n_phases; c.phase++) {
            c.turn++;
            if (n_threads > 1)
                run->pool->parallel_for(run->pool->pool, n_threads, run_phase, &c);
            else
                run_phase(&c, 0);
        }
        if (wanted && is_checked(run))
            end_check(run, s, c.slots);
        c.slots += c.step->n_uses;
    }
}

static char *execute_address(const gb_binding *binding)
{
    return binding->memory ? (char *)binding->memory + binding->offset : NULL;
}

gb_status gb_cpu_execute(const gb_execution *execution)
{
    enum { FEW_SLOTS = 64 };
    void *few[FEW_SLOTS];
    const gb_program *program = execution->program;
    const cpu_program *own = program->state;
    void **slots =
            program->n_slots <= FEW_SLOTS ? few : gb_calloc(program->n_slots, sizeof(void *));
    if (!slots)
        return GB_OUT_OF_MEMORY;
    size_t n = 0;
    for (uint32_t s = 0; s < program->n_steps; s++)
        for (uint32_t i = 0; i < program->steps[s].n_uses; i++)
            slots[n++] = execute_address(&execution->bindings[program->steps[s].uses[i].buffer]);
    gb_step_failure failure = {.op = NULL};
    run_context run = {.program = program,
            .failure = &failure,
            .slots = slots,
            .constant_steps = execution->constant_steps,
            .scratch = {.shared = execute_address(&execution->scratch),
                    .shared_bytes = own->shared_bytes,
                    .thread_bytes = own->thread_bytes},
            .pool = execution->stream->state};
    int threads = threads_of(program, run.pool, run.constant_steps);
    run.shares = (gb_item_share *)(void *)(run.scratch.shared + own->shared_bytes);
    for (int t = 0; t < threads; t++)
        atomic_init(&run.shares[t].rest, 0);
    run.scratch.threads = (char *)(run.shares + threads);
    run.scratch.n_threads = threads;
    if (run.pool)
        run_on_pool(&run, threads);
    else
        gb_parallel(threads, run_steps, &run);
    if (slots != few)
        free(slots);
    gb_status status = (gb_status)atomic_load(&failure.status);
    if (status == GB_SUCCESS)
        return status;
    if (failure.step)
        return gb_fail(status, "step %s wrote behind %s", failure.step->kernel, failure.memory);
    return gb_fail(status, "%s: its function failed (%s)", gb_op_label(failure.op),
            gb_status_name(status));
}

/* Digests -------------------------------------------------------------------------------------- */

typedef struct digest_context {
    const char *data;
    size_t bytes;
    int n_threads;
    atomic_uint_least64_t sum[2];
} digest_context;

static void digest_part(void *context, int thread, int n_threads)
{
    digest_context *c = context;
    int64_t begin, end;
    gb_split((int64_t)gb_digest_chunks(c->bytes), thread, n_threads, &begin, &end);
    gb_digest sum = gb_digest_sum(c->data, c->bytes, (size_t)begin, (size_t)end);
    atomic_fetch_add(&c->sum[0], sum.words[0]);
    atomic_fetch_add(&c->sum[1], sum.words[1]);
}

static void digest_part_on_pool(void *context, int thread)
{
    digest_part(context, thread, ((digest_context *)context)->n_threads);
}

gb_status gb_cpu_digest(
        gb_stream *stream, void *memory, size_t offset, size_t bytes, gb_digest *digest)
{
    const gb_thread_pool *pool = stream->state;
    int most = pool ? pool->concurrency : gb_max_threads();
    digest_context c = {.data = (const char *)memory + offset,
            .bytes = bytes,
            .n_threads = gb_threads_within(most, (double)bytes)};
    if (pool && c.n_threads > 1)
        pool->parallel_for(pool->pool, c.n_threads, digest_part_on_pool, &c);
    else
        gb_parallel(c.n_threads, digest_part, &c);
    *digest = gb_digest_finish((gb_digest){{c.sum[0], c.sum[1]}}, bytes);
    return GB_SUCCESS;
}

/* Streams: the caller's threads, or none ------------------------------------------------------- */

gb_status gb_cpu_stream_init(gb_stream *stream, const gb_stream_interop *interop)
{
    if (interop->queue)
        return gb_fail(GB_INVALID_ARGUMENTS, "a CPU stream has no queue");
    if (!interop->threads.parallel_for)
        return GB_SUCCESS;
    stream->state = gb_memdup(&interop->threads, sizeof interop->threads);
    return stream->state ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

void gb_cpu_stream_fini(gb_stream *stream)
{
    free(stream->state);
}
