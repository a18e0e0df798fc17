/* Engines and their allocators. */
#include "base/memory.h"
#include "base/status.h"
#include "runtime/constant_cache.h"
#include "runtime/context.h"

#include <stdlib.h>

size_t gb_next_id(void)
{
    static atomic_size_t last = 100000;
    return atomic_fetch_add(&last, 1) + 1;
}

const gb_backend *gb_backend_find(gb_engine_kind kind)
{
    if (kind == GB_ENGINE_ANY)
        kind = GB_ENGINE_CPU;
    for (const gb_backend *const *backend = gb_backends; *backend; backend++)
        if ((*backend)->kind == kind)
            return *backend;
    return NULL;
}

static const gb_allocator built_in = {.malloc_fn = gb_aligned_alloc, .free_fn = free};

gb_status gb_allocator_create(gb_allocator **allocator, gb_malloc_fn malloc_fn, gb_free_fn free_fn)
{
    if (!allocator)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_allocator_create: NULL argument");
    gb_allocator *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    *made = malloc_fn && free_fn ? (gb_allocator){.malloc_fn = malloc_fn, .free_fn = free_fn}
                                 : built_in;
    *allocator = made;
    return GB_SUCCESS;
}

gb_status gb_allocator_create_with_context(gb_allocator **allocator, gb_malloc_context_fn malloc_fn,
        gb_free_context_fn free_fn, void *context)
{
    if (!allocator || !malloc_fn || !free_fn)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_allocator_create_with_context: NULL argument");
    gb_allocator *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    *made = (gb_allocator){.malloc_with = malloc_fn, .free_with = free_fn, .context = context};
    *allocator = made;
    return GB_SUCCESS;
}

gb_status gb_allocator_destroy(gb_allocator *allocator)
{
    free(allocator);
    return GB_SUCCESS;
}

gb_status gb_engine_get_count(gb_engine_kind kind, size_t *count)
{
    if (!count)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_engine_get_count: NULL argument");
    const gb_backend *backend = gb_backend_find(kind);
    *count = backend ? backend->device_count() : 0;
    return GB_SUCCESS;
}

gb_status gb_engine_create(gb_engine **engine, gb_engine_kind kind, size_t index)
{
    return gb_engine_create_with_allocator(engine, kind, index, &built_in);
}

gb_status gb_engine_create_with_allocator(
        gb_engine **engine, gb_engine_kind kind, size_t index, const gb_allocator *allocator)
{
    if (!engine || !allocator)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_engine_create: NULL argument");
    const gb_backend *backend = gb_backend_find(kind);
    size_t count = backend ? backend->device_count() : 0;
    if (index >= count)
        return gb_fail(GB_INVALID_ARGUMENTS, "no %s device %zu: there are %zu",
                gb_engine_kind_name(kind), index, count);
    return gb_engine_create_with_interop(
            engine, backend, index, &(gb_interop){.allocator = allocator});
}

gb_status gb_engine_create_with_interop(
        gb_engine **engine, const gb_backend *backend, size_t index, const gb_interop *interop)
{
    gb_interop completed = *interop;
    gb_engine *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    if (!completed.allocator)
        completed.allocator = &built_in;
    made->context = gb_context_retain(gb_context_of_process());
    made->references = 1;
    made->backend = backend;
    made->index = index;
    made->allocator = *completed.allocator;
    if (!interop->device)
        backend->describe(index, made->description, sizeof made->description);
    gb_status status = backend->engine_init(made, &completed);
    if (status == GB_SUCCESS) {
        *engine = made;
        return GB_SUCCESS;
    }
    gb_context_destroy(made->context);
    free(made);
    return status;
}

gb_engine *gb_engine_retain(const gb_engine *engine)
{
    gb_engine *shared = (gb_engine *)(uintptr_t)engine; /* only the count changes */
    atomic_fetch_add(&shared->references, 1);
    return shared;
}

void gb_engine_release(gb_engine *engine)
{
    if (!engine || atomic_fetch_sub(&engine->references, 1) != 1)
        return;
    engine->backend->engine_fini(engine);
    gb_context_destroy(engine->context);
    free(engine);
}

bool gb_engines_share(const gb_engine *a, const gb_engine *b)
{
    return a == b || (a->backend == b->backend && a->backend->host_memory);
}

gb_status gb_engine_destroy(gb_engine *engine)
{
    if (engine) {
        engine->destroyed = true;
        gb_cache_forget_engine(engine);
        gb_constants_forget_engine(engine);
    }
    gb_engine_release(engine);
    return GB_SUCCESS;
}

gb_status gb_engine_get_kind(const gb_engine *engine, gb_engine_kind *kind)
{
    if (!engine || !kind)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_engine_get_kind: NULL argument");
    *kind = engine->backend->kind;
    return GB_SUCCESS;
}

gb_status gb_engine_has_host_memory(const gb_engine *engine, uint8_t *host_memory)
{
    if (!engine || !host_memory)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_engine_has_host_memory: NULL argument");
    *host_memory = engine->backend->host_memory;
    return GB_SUCCESS;
}

gb_status gb_engine_get_index(const gb_engine *engine, size_t *index)
{
    if (!engine || !index)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_engine_get_index: NULL argument");
    *index = engine->index;
    return GB_SUCCESS;
}

gb_status gb_engine_get_handle(const gb_engine *engine, void **handle)
{
    if (!engine || !handle)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_engine_get_handle: NULL argument");
    *handle = NULL;
    return GB_SUCCESS;
}

const char *gb_engine_get_description(const gb_engine *engine)
{
    return engine ? engine->description : "";
}
