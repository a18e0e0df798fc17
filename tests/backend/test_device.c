/* Memory objects, queue and worker of the test backend. */
#include "backend/test_device.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/compiled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

extern const gb_backend gb_cpu_backend;

enum { N_DEVICES = 2, PAGE = 4096, CANARY = 0xA5 };

/* A handle is a number in the part of the address space that no process has: reading through it
 * faults. */
static const uintptr_t first_handle = (uintptr_t)0xDEAD << 48;

/* The bytes end where their pages end, but for the rest of a cache line; the page behind them is
 * never mapped. Pages can be touched while somebody maps them. */
typedef struct object {
    struct object *next;
    void *handle;
    char *pages, *data;
    size_t bytes, page_bytes; /* page_bytes: without the page behind */
    unsigned holds, maps;
} object;

typedef struct job {
    struct job *next; /* executed later */
    gb_stream *stream;
    const gb_program *program;
    bool constant_steps;
    gb_binding *bindings; /* owned: of all buffers, then of scratch; values point into `values` */
    int64_t *values;      /* owned */
    uint32_t n_waits;
    gb_event **waits; /* owned, each counted */
    gb_event *event;  /* counted */
} job;

typedef struct device {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    pthread_t worker;
    object *objects;
    job *jobs;
    bool stopping, held, refuses;
    int n_let, n_failing; /* runs that may start although the device is held; that are to fail */
} device;

static atomic_size_t n_finished;

static device *device_of(const gb_engine *engine)
{
    return engine->state;
}

/* Memory --------------------------------------------------------------------------------------- */

/* With the lock held; NULL when the device has no such object. */
static object *find(device *d, const void *handle)
{
    object *o = d->objects;
    while (o && o->handle != handle)
        o = o->next;
    return o;
}

static gb_status memory_create(const gb_engine *engine, size_t bytes, void **memory)
{
    static atomic_uintptr_t last;
    device *d = device_of(engine);
    object *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    size_t used = gb_align_up(bytes, GB_CACHE_LINE);
    made->page_bytes = gb_align_up(used, PAGE);
    made->pages = MAP_FAILED;
    if (bytes <= PTRDIFF_MAX - 4 * PAGE)
        made->pages = mmap(NULL, made->page_bytes + PAGE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made->pages == MAP_FAILED) {
        free(made);
        return gb_fail(GB_OUT_OF_MEMORY, "the test device has no %zu bytes", bytes);
    }
    made->bytes = bytes;
    made->data = made->pages + made->page_bytes - used;
    memset(made->data + bytes, CANARY, used - bytes);
    mprotect(made->pages, made->page_bytes + PAGE, PROT_NONE);
    made->holds = 1;
    made->handle = (void *)(first_handle + GB_CACHE_LINE * (atomic_fetch_add(&last, 1) + 1));
    pthread_mutex_lock(&d->lock);
    made->next = d->objects;
    d->objects = made;
    pthread_mutex_unlock(&d->lock);
    *memory = made->handle;
    return GB_SUCCESS;
}

static gb_status memory_adopt(const gb_engine *engine, void *handle, size_t bytes)
{
    device *d = device_of(engine);
    pthread_mutex_lock(&d->lock);
    object *o = find(d, handle);
    bool fits = o && o->bytes >= bytes;
    if (fits)
        o->holds++;
    pthread_mutex_unlock(&d->lock);
    return fits ? GB_SUCCESS
                : gb_fail(GB_INVALID_ARGUMENTS, "%p is no memory of %zu bytes of this test device",
                          handle, bytes);
}

static void memory_retain(const gb_engine *engine, void *memory)
{
    device *d = device_of(engine);
    pthread_mutex_lock(&d->lock);
    find(d, memory)->holds++;
    pthread_mutex_unlock(&d->lock);
}

static void protect(object *o, int protection)
{
    if (mprotect(o->pages, o->page_bytes, protection) != 0) {
        perror("test device: mprotect");
        abort();
    }
}

static void check_canary(const object *o)
{
    for (const char *at = o->data + o->bytes; at < o->pages + o->page_bytes; at++)
        if ((unsigned char)*at != CANARY) {
            fprintf(stderr, "test device: bytes behind an object of %zu were written\n", o->bytes);
            abort();
        }
}

static void memory_release(const gb_engine *engine, void *memory)
{
    device *d = device_of(engine);
    pthread_mutex_lock(&d->lock);
    object **at = &d->objects;
    while ((*at)->handle != memory)
        at = &(*at)->next;
    object *o = *at;
    bool last = --o->holds == 0;
    if (last)
        *at = o->next;
    pthread_mutex_unlock(&d->lock);
    if (!last)
        return;
    protect(o, PROT_READ);
    check_canary(o);
    munmap(o->pages, o->page_bytes + PAGE);
    free(o);
}

/* The host address of an object's bytes, until close_object(). With the lock held. */
static char *open_object(device *d, const void *handle)
{
    object *o = find(d, handle);
    if (o->maps++ == 0)
        protect(o, PROT_READ | PROT_WRITE);
    return o->data;
}

static void close_object(device *d, const void *handle)
{
    object *o = find(d, handle);
    if (--o->maps == 0)
        protect(o, PROT_NONE);
}

/* Jobs ----------------------------------------------------------------------------------------- */

/* A job has a binding more than its program has buffers: its scratch. */
static bool is_object(const job *j, uint32_t b)
{
    return j->bindings[b].memory && !j->bindings[b].is_value;
}

static bool writes(const job *j, uint32_t b)
{
    if (b == j->program->n_buffers)
        return true;
    gb_buffer_placement placement = j->program->buffers[b].placement;
    return placement == GB_PLACEMENT_OUTPUT || placement == GB_PLACEMENT_ARENA ||
           (placement == GB_PLACEMENT_CONSTANTS && j->constant_steps);
}

static bool uses(const job *j, const void *memory)
{
    for (uint32_t b = 0; b <= j->program->n_buffers; b++)
        if (is_object(j, b) && j->bindings[b].memory == memory)
            return true;
    return false;
}

static bool collide(const job *a, const job *b)
{
    for (uint32_t i = 0; i <= a->program->n_buffers; i++)
        for (uint32_t k = 0; is_object(a, i) && k <= b->program->n_buffers; k++)
            if (is_object(b, k) && a->bindings[i].memory == b->bindings[k].memory &&
                    (writes(a, i) || writes(b, k)))
                return true;
    return false;
}

/* Nothing in front of it on its stream collides with it, and what it waits for is complete. */
static bool is_ready(const device *d, const job *j)
{
    for (uint32_t i = 0; i < j->n_waits; i++)
        if (!atomic_load(&j->waits[i]->complete))
            return false;
    for (const job *before = d->jobs; before != j; before = before->next)
        if (before->stream == j->stream && collide(before, j))
            return false;
    return true;
}

/* The one that was executed last: nobody may rely on the order of the calls. */
static job *choose(const device *d)
{
    job *chosen = NULL;
    for (job *j = d->jobs; j && (!d->held || d->n_let > 0); j = j->next)
        if (is_ready(d, j))
            chosen = j;
    return chosen;
}

static void free_job(job *j)
{
    for (uint32_t i = 0; i < j->n_waits; i++)
        gb_event_release(j->waits[i]);
    gb_event_release(j->event);
    free(j->waits);
    free(j->values);
    free(j->bindings);
    free(j);
}

/* Runs the CPU's steps where the objects are mapped to. */
static gb_status run_steps(device *d, job *j)
{
    uint32_t n = j->program->n_buffers + 1;
    gb_stream host = {.engine = j->stream->engine};
    gb_binding *mapped = gb_memdup(j->bindings, n * sizeof *mapped);
    if (!mapped)
        return GB_OUT_OF_MEMORY;
    pthread_mutex_lock(&d->lock);
    for (uint32_t b = 0; b < n; b++)
        if (is_object(j, b))
            mapped[b].memory = open_object(d, j->bindings[b].memory);
        else if (!mapped[b].memory)
            mapped[b].memory = d; /* of no bytes: kernels get an address all the same */
    pthread_mutex_unlock(&d->lock);
    gb_status status = gb_cpu_backend.execute(&(gb_execution){.program = j->program,
            .stream = &host,
            .bindings = mapped,
            .scratch = mapped[n - 1],
            .constant_steps = j->constant_steps});
    pthread_mutex_lock(&d->lock);
    for (uint32_t b = 0; b < n; b++)
        if (is_object(j, b))
            close_object(d, j->bindings[b].memory);
    pthread_mutex_unlock(&d->lock);
    free(mapped);
    return status;
}

static void run_job(device *d, job *j, bool fails)
{
    const struct timespec later = {0, 20000};
    gb_status status = GB_SUCCESS;
    nanosleep(&later, NULL);
    for (uint32_t i = 0; i < j->n_waits && status == GB_SUCCESS; i++)
        status = gb_event_await(j->waits[i]);
    if (status == GB_SUCCESS)
        status = fails ? gb_fail(GB_RUNTIME_ERROR, "the test device was told to fail")
                       : run_steps(d, j);
    gb_event *event = gb_event_retain(j->event);
    pthread_mutex_lock(&d->lock);
    job **at = &d->jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    /* Under the lock: who finds the stream idle finds its events complete. */
    gb_event_complete(event, status, status == GB_SUCCESS ? NULL : gb_last_error());
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    gb_event_release(event);
    free_job(j);
}

static void *work(void *context)
{
    device *d = context;
    pthread_mutex_lock(&d->lock);
    while (!d->stopping || d->jobs) {
        job *j = choose(d);
        if (!j) {
            pthread_cond_wait(&d->changed, &d->lock);
            continue;
        }
        bool fails = d->n_failing > 0;
        d->n_failing -= fails;
        d->n_let -= d->held;
        pthread_mutex_unlock(&d->lock);
        run_job(d, j, fails);
        pthread_mutex_lock(&d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static job *make_job(const gb_execution *e)
{
    uint32_t n = e->program->n_buffers + 1;
    job *j = gb_calloc(1, sizeof *j);
    if (!j)
        return NULL;
    j->stream = e->stream;
    j->program = e->program;
    j->constant_steps = e->constant_steps;
    j->bindings = gb_calloc(n, sizeof *j->bindings);
    j->values = gb_calloc(n, sizeof *j->values);
    j->waits = gb_calloc(e->n_waits, sizeof *j->waits);
    if (!j->bindings || !j->values || !j->waits) {
        free_job(j);
        return NULL;
    }
    memcpy(j->bindings, e->bindings, (n - 1) * sizeof *j->bindings);
    j->bindings[n - 1] = e->scratch;
    for (uint32_t b = 0; b < n; b++)
        if (j->bindings[b].is_value) {
            memcpy(&j->values[b], j->bindings[b].memory, j->bindings[b].bytes);
            j->bindings[b].memory = &j->values[b];
        }
    for (; j->n_waits < e->n_waits; j->n_waits++)
        j->waits[j->n_waits] = gb_event_retain(e->waits[j->n_waits]);
    j->event = gb_event_retain(e->event);
    return j;
}

static gb_status execute(const gb_execution *execution)
{
    device *d = device_of(execution->stream->engine);
    job *j = make_job(execution);
    if (!j)
        return GB_OUT_OF_MEMORY;
    pthread_mutex_lock(&d->lock);
    bool refused = d->refuses;
    d->refuses = false;
    job **end = &d->jobs;
    while (*end)
        end = &(*end)->next;
    if (!refused)
        *end = j;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    if (!refused)
        return GB_SUCCESS;
    free_job(j);
    return gb_fail(GB_RUNTIME_ERROR, "the test device was told to refuse");
}

static bool has_job(const device *d, const gb_stream *stream, const void *memory)
{
    for (const job *j = d->jobs; j; j = j->next)
        if (memory ? uses(j, memory) : j->stream == stream)
            return true;
    return false;
}

static void stream_wait(gb_stream *stream)
{
    device *d = device_of(stream->engine);
    pthread_mutex_lock(&d->lock);
    while (has_job(d, stream, NULL))
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

static gb_status map(const gb_engine *engine, gb_stream *stream, void *memory, size_t offset,
        size_t bytes, void **pointer)
{
    (void)bytes;
    device *d = device_of(engine);
    pthread_mutex_lock(&d->lock);
    while (stream && has_job(d, stream, memory))
        pthread_cond_wait(&d->changed, &d->lock);
    *pointer = open_object(d, memory) + offset;
    pthread_mutex_unlock(&d->lock);
    return GB_SUCCESS;
}

static gb_status unmap(const gb_engine *engine, gb_stream *stream, void *memory, void *pointer)
{
    (void)stream;
    (void)pointer;
    device *d = device_of(engine);
    pthread_mutex_lock(&d->lock);
    close_object(d, memory);
    pthread_mutex_unlock(&d->lock);
    return GB_SUCCESS;
}

static gb_status digest(
        gb_stream *stream, void *memory, size_t offset, size_t bytes, gb_digest *result)
{
    void *pointer;
    GB_TRY(map(stream->engine, stream, memory, offset, bytes, &pointer));
    *result = gb_digest_memory(pointer, bytes);
    return unmap(stream->engine, stream, memory, pointer);
}

/* Engines, streams, programs ------------------------------------------------------------------- */

static size_t device_count(void)
{
    return N_DEVICES;
}

static void describe(size_t index, char *text, size_t bytes)
{
    snprintf(text, bytes, "test device %zu, kernels of isa %s", index,
            gb_cpu_backend.variant(index));
}

static gb_status engine_init(gb_engine *engine, const gb_interop *interop)
{
    if (interop->device || interop->context)
        return gb_fail(GB_INVALID_ARGUMENTS, "the test device has no handles of its own");
    device *d = gb_calloc(1, sizeof *d);
    if (!d)
        return GB_OUT_OF_MEMORY;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    if (pthread_create(&d->worker, NULL, work, d) == 0) {
        engine->state = d;
        return GB_SUCCESS;
    }
    free(d);
    return gb_fail(GB_RUNTIME_ERROR, "the test device has no thread");
}

static void engine_fini(gb_engine *engine)
{
    device *d = device_of(engine);
    pthread_mutex_lock(&d->lock);
    d->stopping = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->worker, NULL);
    if (d->objects) {
        fprintf(stderr, "test device: memory of %zu bytes was never released\n", d->objects->bytes);
        abort();
    }
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static gb_status stream_init(gb_stream *stream, const gb_stream_interop *interop)
{
    (void)stream;
    return interop->threads.parallel_for || interop->queue
                   ? gb_fail(GB_INVALID_ARGUMENTS, "streams of the test device have one form only")
                   : GB_SUCCESS;
}

static void stream_fini(gb_stream *stream)
{
    (void)stream;
}

static gb_status finish(gb_program *program, const gb_engine *engine)
{
    atomic_fetch_add(&n_finished, 1);
    return gb_cpu_backend.finish(program, engine);
}

/* On as many threads as there may be. */
static size_t scratch_bytes(const gb_program *program, const gb_stream *stream)
{
    (void)stream;
    return gb_cpu_backend.scratch_bytes(program, NULL);
}

/* The functions of the CPU's backend that serve as they are. */
static uint64_t compile_key(const gb_engine *engine)
{
    return gb_cpu_backend.compile_key(engine);
}
static const char *variant(size_t index)
{
    return gb_cpu_backend.variant(index);
}
static const gb_capability *capability(size_t index)
{
    return gb_cpu_backend.capability(index);
}
static gb_status lower(gb_program *program, const gb_group *group)
{
    return gb_cpu_backend.lower(program, group);
}
static void program_fini(gb_program *program)
{
    gb_cpu_backend.program_fini(program);
}
static bool identify(const gb_step *step, gb_digest *result)
{
    return gb_cpu_backend.identify(step, result);
}

const gb_backend gb_test_backend = {
        .name = "test",
        .kind = GB_ENGINE_TEST,
        .device_count = device_count,
        .describe = describe,
        .variant = variant,
        .capability = capability,
        .engine_init = engine_init,
        .engine_fini = engine_fini,
        .compile_key = compile_key,
        .memory_create = memory_create,
        .memory_adopt = memory_adopt,
        .memory_retain = memory_retain,
        .memory_release = memory_release,
        .map = map,
        .unmap = unmap,
        .digest = digest,
        .stream_init = stream_init,
        .stream_fini = stream_fini,
        .stream_wait = stream_wait,
        .lower = lower,
        .finish = finish,
        .program_fini = program_fini,
        .scratch_bytes = scratch_bytes,
        .execute = execute,
        .identify = identify,
};

/* For tests ------------------------------------------------------------------------------------ */

void gb_test_device_hold(gb_engine *engine, bool hold)
{
    device *d = device_of(engine);
    pthread_mutex_lock(&d->lock);
    d->held = hold;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

void gb_test_device_let(gb_engine *engine, int count)
{
    device *d = device_of(engine);
    pthread_mutex_lock(&d->lock);
    d->n_let = count;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

void gb_test_device_fail(gb_engine *engine, int count)
{
    device *d = device_of(engine);
    pthread_mutex_lock(&d->lock);
    d->n_failing = count;
    pthread_mutex_unlock(&d->lock);
}

void gb_test_device_refuse(gb_engine *engine)
{
    device *d = device_of(engine);
    pthread_mutex_lock(&d->lock);
    d->refuses = true;
    pthread_mutex_unlock(&d->lock);
}

size_t gb_test_device_objects(gb_engine *engine)
{
    device *d = device_of(engine);
    size_t n = 0;
    pthread_mutex_lock(&d->lock);
    for (const object *o = d->objects; o; o = o->next)
        n++;
    pthread_mutex_unlock(&d->lock);
    return n;
}

size_t gb_test_device_finished(void)
{
    return atomic_load(&n_finished);
}
