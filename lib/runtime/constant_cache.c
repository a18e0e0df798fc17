/* The cache of prepared constants: by what was done to which contents, never by addresses. What a
 * compiled partition holds is never taken from it; the rest goes when the capacity of its kind of
 * engine asks for it, the least recently used first. */
#include "runtime/constant_cache.h"

#include "base/environment.h"
#include "base/memory.h"
#include "runtime/context.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256, N_KINDS = GB_ENGINE_TEST + 1, DEFAULT_MEGABYTES = 1024 };

struct gb_constant_cache {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* constants were prepared or given up */
    gb_constants *buckets[BUCKETS];
    uint64_t clock;
    size_t megabytes[N_KINDS]; /* capacity */
    gb_constant_cache_counters counters[N_KINDS];
};

/* "cpu:MB;gpu:MB", either part or both. */
static void ask_environment(gb_constant_cache *cache)
{
    const char *variable = "GB_CONSTANT_CACHE_CAPACITY", *text = getenv(variable);
    for (const char *at = text; at && *at; at += *at == ';') {
        size_t length = strcspn(at, ";");
        gb_engine_kind kind = strncmp(at, "gpu:", 4) == 0 ? GB_ENGINE_GPU : GB_ENGINE_CPU;
        if (length > 4 && (kind == GB_ENGINE_GPU || strncmp(at, "cpu:", 4) == 0))
            gb_environment_number(variable, at + 4, length - 4, &cache->megabytes[kind]);
        else if (length > 0)
            gb_environment_complain(variable, at, length, "cpu:MB;gpu:MB");
        at += length;
    }
}

static void lock(gb_constant_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
}

static gb_constant_cache of_process = {.lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
        .megabytes = {[GB_ENGINE_CPU] = DEFAULT_MEGABYTES,
                [GB_ENGINE_GPU] = DEFAULT_MEGABYTES,
                [GB_ENGINE_TEST] = DEFAULT_MEGABYTES}};

static void open_of_process(void)
{
    ask_environment(&of_process);
}

gb_constant_cache *gb_constant_cache_of_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_of_process);
    return &of_process;
}

gb_constant_cache *gb_constant_cache_create(gb_constant_cache *like)
{
    gb_constant_cache *cache = gb_calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->changed, NULL);
    for (int kind = GB_ENGINE_CPU; kind < N_KINDS; kind++)
        cache->megabytes[kind] = gb_constant_cache_capacity(like, (gb_engine_kind)kind);
    return cache;
}

void gb_constant_cache_free(gb_constant_cache *cache)
{
    if (!cache)
        return;
    pthread_cond_destroy(&cache->changed);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static gb_constant_cache *cache_of(const gb_engine *engine)
{
    return engine->context->constants;
}

static gb_constant_cache_counters *counters_of(const gb_constants *constants)
{
    return &cache_of(constants->engine)->counters[constants->engine->backend->kind];
}

static gb_constants **bucket_of(gb_constant_cache *cache, gb_digest digest)
{
    return &cache->buckets[digest.words[0] % BUCKETS];
}

/* All functions up to the next rule are called with the lock held. */

static gb_constants *constant_cache_find(const gb_constants_request *request)
{
    gb_constants *c = *bucket_of(cache_of(request->engine), request->digest);
    while (c && (c->engine != request->engine || !gb_digest_equal(c->digest, request->digest)))
        c = c->next;
    return c;
}

static void enter(gb_constants *constants)
{
    gb_constant_cache *cache = cache_of(constants->engine);
    gb_constants **bucket = bucket_of(cache, constants->digest);
    constants->next = *bucket;
    constants->cached = true;
    constants->last_used = ++cache->clock;
    *bucket = constants;
    atomic_fetch_add(&constants->references, 1);
    counters_of(constants)->entries++;
    counters_of(constants)->bytes += constants->bytes;
}

/* Moves an entry, and the cache's hold on it, to a list that is freed without the lock. */
static void drop(gb_constants **entry, gb_constants **dropped)
{
    gb_constants *constants = *entry;
    counters_of(constants)->entries--;
    counters_of(constants)->bytes -= constants->bytes;
    constants->cached = false;
    *entry = constants->next;
    constants->next = *dropped;
    *dropped = constants;
}

static gb_constants **oldest_without_holder(gb_constant_cache *cache, gb_engine_kind kind)
{
    gb_constants **oldest = NULL;
    for (int b = 0; b < BUCKETS; b++)
        for (gb_constants **e = &cache->buckets[b]; *e; e = &(*e)->next)
            if ((*e)->engine->backend->kind == kind && atomic_load(&(*e)->references) == 1 &&
                    (!oldest || (*e)->last_used < (*oldest)->last_used))
                oldest = e;
    return oldest;
}

static void trim(gb_constant_cache *cache, gb_engine_kind kind, gb_constants **dropped)
{
    const size_t megabyte = (size_t)1 << 20;
    /* in megabytes, rounded up: the capacity in bytes need not fit size_t */
    while ((cache->counters[kind].bytes + megabyte - 1) / megabyte > cache->megabytes[kind]) {
        gb_constants **oldest = oldest_without_holder(cache, kind);
        if (!oldest)
            return;
        drop(oldest, dropped);
        cache->counters[kind].evictions++;
    }
}

typedef bool (*matches_fn)(const gb_constants *constants, const void *what);

static void drop_matching(
        gb_constant_cache *cache, matches_fn matches, const void *what, gb_constants **dropped)
{
    for (int b = 0; b < BUCKETS; b++)
        for (gb_constants **e = &cache->buckets[b]; *e;)
            if ((*e)->ready && matches(*e, what))
                drop(e, dropped);
            else
                e = &(*e)->next;
}

/* Holding -------------------------------------------------------------------------------------- */

static void give_up(gb_constants *constants)
{
    if (atomic_fetch_sub(&constants->references, 1) != 1)
        return;
    if (constants->memory)
        constants->engine->backend->memory_release(constants->engine, constants->memory);
    gb_engine_release(constants->engine);
    free(constants);
}

/* Unlocks, and lets go of what was dropped. */
static void unlock(gb_constant_cache *cache, gb_constants *dropped)
{
    pthread_mutex_unlock(&cache->lock);
    while (dropped) {
        gb_constants *next = dropped->next;
        give_up(dropped);
        dropped = next;
    }
}

gb_constants *gb_constants_hold(gb_constants *constants)
{
    atomic_fetch_add(&constants->references, 1);
    return constants;
}

void gb_constants_release(gb_constants *constants, bool trims)
{
    gb_engine *engine = trims ? gb_engine_retain(constants->engine) : NULL;
    give_up(constants);
    if (!trims)
        return;
    gb_constant_cache *cache = cache_of(engine);
    gb_constants *dropped = NULL;
    lock(cache);
    trim(cache, engine->backend->kind, &dropped);
    unlock(cache, dropped);
    gb_engine_release(engine);
}

/* Getting -------------------------------------------------------------------------------------- */

/* The constants that are there, waited for while another thread prepares them; or new ones for this
 * thread to prepare, entered; or NULL. */
static gb_constants *find_or_enter(const gb_constants_request *request)
{
    gb_constant_cache *cache = cache_of(request->engine);
    gb_constant_cache_counters *counters = &cache->counters[request->engine->backend->kind];
    gb_constants *found = constant_cache_find(request);
    while (found && !found->ready) {
        pthread_cond_wait(&cache->changed, &cache->lock);
        found = constant_cache_find(request);
    }
    if (found) {
        counters->hits++;
        found->last_used = ++cache->clock;
        return gb_constants_hold(found);
    }
    counters->misses++;
    gb_constants *made = gb_calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->references = 1;
    made->engine = gb_engine_retain(request->engine);
    made->owner = request->owner;
    made->bytes = request->bytes;
    made->digest = request->digest;
    enter(made);
    return made;
}

/* Ends the preparation, which may have failed. What is made for a destroyed engine nobody would
 * drop any more. */
static void constant_cache_finish(gb_constants *made, bool failed)
{
    gb_constant_cache *cache = cache_of(made->engine);
    gb_constants *dropped = NULL;
    lock(cache);
    made->ready = true;
    if (failed || made->engine->destroyed) {
        gb_constants **entry = bucket_of(cache, made->digest);
        while (*entry != made)
            entry = &(*entry)->next;
        drop(entry, &dropped);
    }
    trim(cache, made->engine->backend->kind, &dropped);
    pthread_cond_broadcast(&cache->changed);
    unlock(cache, dropped);
}

gb_status gb_constants_get(const gb_constants_request *request, gb_constants **constants)
{
    gb_constant_cache *cache = cache_of(request->engine);
    lock(cache);
    gb_constants *found = find_or_enter(request);
    bool prepared = found && found->ready;
    pthread_mutex_unlock(&cache->lock);
    *constants = found;
    if (!found || prepared)
        return found ? GB_SUCCESS : GB_OUT_OF_MEMORY;
    const gb_backend *backend = found->engine->backend;
    gb_status status = backend->memory_create(found->engine, found->bytes, &found->memory);
    if (status == GB_SUCCESS)
        status = request->prepare(request->context, found->memory);
    constant_cache_finish(found, status != GB_SUCCESS);
    if (status == GB_SUCCESS)
        return GB_SUCCESS;
    give_up(found);
    *constants = NULL;
    return status;
}

/* Dropping ------------------------------------------------------------------------------------- */

static bool has_owner(const gb_constants *constants, const void *owner)
{
    return constants->owner == *(const size_t *)owner;
}

static bool has_engine(const gb_constants *constants, const void *engine)
{
    return constants->engine == engine;
}

static bool has_kind(const gb_constants *constants, const void *kind)
{
    return constants->engine->backend->kind == *(const gb_engine_kind *)kind;
}

static void forget(gb_constant_cache *cache, matches_fn matches, const void *what)
{
    gb_constants *dropped = NULL;
    lock(cache);
    drop_matching(cache, matches, what, &dropped);
    unlock(cache, dropped);
}

void gb_constants_forget_owner(const gb_engine *engine, size_t owner)
{
    forget(cache_of(engine), has_owner, &owner);
}

void gb_constants_forget_engine(const gb_engine *engine)
{
    forget(cache_of(engine), has_engine, engine);
}

/* Capacity ------------------------------------------------------------------------------------- */

bool gb_constant_cache_has_kind(gb_engine_kind kind)
{
    return (int)kind > GB_ENGINE_ANY && (int)kind < N_KINDS;
}

void gb_constant_cache_set_capacity(gb_constant_cache *cache, gb_engine_kind kind, size_t megabytes)
{
    gb_constants *dropped = NULL;
    lock(cache);
    cache->megabytes[kind] = megabytes;
    drop_matching(cache, has_kind, &kind, &dropped);
    unlock(cache, dropped);
}

size_t gb_constant_cache_capacity(gb_constant_cache *cache, gb_engine_kind kind)
{
    lock(cache);
    size_t megabytes = cache->megabytes[kind];
    pthread_mutex_unlock(&cache->lock);
    return megabytes;
}

gb_constant_cache_counters gb_constant_cache_count(gb_constant_cache *cache, gb_engine_kind kind)
{
    lock(cache);
    gb_constant_cache_counters counters = cache->counters[kind];
    pthread_mutex_unlock(&cache->lock);
    return counters;
}
