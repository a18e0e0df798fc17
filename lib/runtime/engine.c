/* Engines, their allocators, and streams. */
#include "base/memory.h"
#include "base/status.h"
#include "runtime/constant_cache.h"

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

gb_status gb_allocator_create(gb_allocator **allocator, gb_malloc_fn malloc_fn, gb_free_fn free_fn)
{
    if (!allocator)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_allocator_create: NULL argument");
    gb_allocator *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    bool custom = malloc_fn && free_fn;
    *made = (gb_allocator){custom ? malloc_fn : gb_aligned_alloc, custom ? free_fn : free};
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
    const gb_allocator built_in = {gb_aligned_alloc, free};
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
    gb_engine *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    made->references = 1;
    made->backend = backend;
    made->index = index;
    made->allocator = *allocator;
    backend->describe(index, made->description, sizeof made->description);
    *engine = made;
    return GB_SUCCESS;
}

gb_engine *gb_engine_retain(const gb_engine *engine)
{
    gb_engine *shared = (gb_engine *)(uintptr_t)engine; /* only the count changes */
    atomic_fetch_add(&shared->references, 1);
    return shared;
}

void gb_engine_release(gb_engine *engine)
{
    if (engine && atomic_fetch_sub(&engine->references, 1) == 1)
        free(engine);
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

const char *gb_engine_get_description(const gb_engine *engine)
{
    return engine ? engine->description : "";
}

void *gb_engine_malloc(const gb_engine *engine, size_t bytes)
{
    void *memory = engine->allocator.malloc_fn(bytes ? bytes : 1, GB_CACHE_LINE);
    if (!memory)
        gb_fail(GB_OUT_OF_MEMORY, "the engine's allocator returned no memory for %zu bytes", bytes);
    return memory;
}

void gb_engine_free(const gb_engine *engine, void *memory)
{
    if (memory)
        engine->allocator.free_fn(memory);
}

gb_status gb_stream_create(gb_stream **stream, const gb_engine *engine)
{
    if (!stream || !engine)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_stream_create: NULL argument");
    gb_stream *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    made->engine = gb_engine_retain(engine);
    *stream = made;
    return GB_SUCCESS;
}

gb_status gb_stream_create_with_thread_pool(gb_stream **stream, const gb_engine *engine,
        int concurrency, gb_parallel_for_fn parallel_for, void *pool)
{
    if (!parallel_for || concurrency < 1)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "gb_stream_create_with_thread_pool: no parallel_for, or concurrency below 1");
    if (engine && engine->backend->kind != GB_ENGINE_CPU)
        return gb_fail(GB_INVALID_ARGUMENTS, "only CPU streams run on the caller's threads");
    GB_TRY(gb_stream_create(stream, engine));
    (*stream)->threads = (gb_thread_pool){parallel_for, pool, concurrency};
    return GB_SUCCESS;
}

gb_status gb_stream_get_engine(const gb_stream *stream, const gb_engine **engine)
{
    if (!stream || !engine)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_stream_get_engine: NULL argument");
    *engine = stream->engine;
    return GB_SUCCESS;
}

gb_status gb_stream_wait(gb_stream *stream)
{
    return stream ? GB_SUCCESS : gb_fail(GB_INVALID_ARGUMENTS, "gb_stream_wait: NULL argument");
}

gb_status gb_stream_destroy(gb_stream *stream)
{
    if (stream)
        gb_engine_release(stream->engine);
    free(stream);
    return GB_SUCCESS;
}
