/* The cache of compiled partitions: executables by content, the least recently used goes first. One
 * thread compiles what several ask for at once; the others wait. */
#include "base/environment.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/compiled.h"
#include "runtime/context.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_CAPACITY = 1024 };

typedef struct entry {
    gb_executable *executable; /* counted; NULL while it is being compiled */
    const gb_request *pending; /* the request of the thread that compiles */
    uint64_t last_used;
} entry;

struct gb_cache {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an entry was finished or given up */
    uint32_t n_entries, entry_capacity;
    entry *entries;
    size_t capacity;
    uint64_t clock;
    gb_cache_counters counters;
};

/* What the environment says. */
static size_t default_capacity(void)
{
    const char *variable = "GB_COMPILED_PARTITION_CACHE_CAPACITY", *text = getenv(variable);
    size_t capacity;
    if (text && *text && gb_environment_number(variable, text, strlen(text), &capacity))
        return capacity < INT_MAX ? capacity : INT_MAX;
    return DEFAULT_CAPACITY;
}

static gb_cache of_process = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void open_of_process(void)
{
    of_process.capacity = default_capacity();
}

gb_cache *gb_cache_of_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_of_process);
    return &of_process;
}

gb_cache *gb_cache_create(gb_cache *like)
{
    gb_cache *cache = gb_calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->changed, NULL);
    cache->capacity = gb_cache_capacity(like);
    return cache;
}

void gb_cache_free(gb_cache *cache)
{
    if (!cache)
        return;
    pthread_cond_destroy(&cache->changed);
    pthread_mutex_destroy(&cache->lock);
    free(cache->entries);
    free(cache);
}

static void lock(gb_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
}

size_t gb_cache_capacity(gb_cache *cache)
{
    lock(cache);
    size_t capacity = cache->capacity;
    pthread_mutex_unlock(&cache->lock);
    return capacity;
}

/* Do the same values leave both graphs? The contents are equal. */
static bool same_outputs(const gb_request *a, const gb_request *b)
{
    if (a->n_outputs != b->n_outputs)
        return false;
    for (uint32_t i = 0; i < a->n_outputs; i++) {
        uint32_t number = gb_content_number(&a->content, a->outputs[i]), k = 0;
        while (k < b->n_outputs && gb_content_number(&b->content, b->outputs[k]) != number)
            k++;
        if (k == b->n_outputs)
            return false;
    }
    return true;
}

/* Do functions of ops that the program defined find the same attributes? The contents are equal;
 * notes are none, but such a function reads them, too. */
static bool same_notes(const gb_request *a, const gb_request *b)
{
    for (uint32_t i = 0; i < a->content.n_ops; i++) {
        const gb_op *x = a->graph->ops[a->content.ops[i]], *y = b->graph->ops[b->content.ops[i]];
        if (x->definition && !gb_op_same_notes(x, y))
            return false;
    }
    return true;
}

static bool same_request(const gb_request *a, const gb_request *b)
{
    return a->engine == b->engine && a->compile_key == b->compile_key &&
           gb_content_equal(a->graph, &a->content, b->graph, &b->content) && same_outputs(a, b) &&
           same_notes(a, b);
}

/* Which of the requests that the executable answers is this one? NULL: none. */
static const gb_request *answered(const gb_executable *executable, const gb_request *request)
{
    if (same_request(&executable->request, request))
        return &executable->request;
    return executable->settled.graph && same_request(&executable->settled, request)
                   ? &executable->settled
                   : NULL;
}

/* The entry for a request, or NULL. Call with the lock held, as all below. */
static entry *cache_find(gb_cache *cache, const gb_request *request)
{
    for (uint32_t i = 0; i < cache->n_entries; i++) {
        const entry *e = &cache->entries[i];
        if (e->executable ? answered(e->executable, request) != NULL
                          : same_request(e->pending, request))
            return &cache->entries[i];
    }
    return NULL;
}

static entry *find_pending(gb_cache *cache, const gb_request *pending)
{
    for (uint32_t i = 0; i < cache->n_entries; i++)
        if (cache->entries[i].pending == pending)
            return &cache->entries[i];
    return NULL;
}

static void drop(gb_cache *cache, entry *dropped)
{
    gb_executable_release(dropped->executable);
    *dropped = cache->entries[--cache->n_entries];
    if (cache->n_entries == 0) {
        free(cache->entries);
        cache->entries = NULL;
        cache->entry_capacity = 0;
    }
}

/* Drops what was not used for longest until `room` entries fit; those in the making stay. */
static void shrink(gb_cache *cache, size_t room)
{
    while (cache->n_entries > room) {
        entry *oldest = NULL;
        for (uint32_t i = 0; i < cache->n_entries; i++) {
            entry *e = &cache->entries[i];
            if (e->executable && (!oldest || e->last_used < oldest->last_used))
                oldest = e;
        }
        if (!oldest)
            return;
        drop(cache, oldest);
        cache->counters.evictions++;
    }
}

/* The finished executable for a request, waited for while another thread compiles it; NULL when
 * this thread is to compile, with *entered telling whether others may wait for it. */
static gb_executable *look_up(gb_cache *cache, const gb_request *request, bool *entered)
{
    entry *found = cache_find(cache, request);
    while (found && !found->executable) {
        pthread_cond_wait(&cache->changed, &cache->lock);
        found = cache_find(cache, request);
    }
    if (found) {
        found->last_used = ++cache->clock;
        cache->counters.hits++;
        atomic_fetch_add(&found->executable->references, 1);
        return found->executable;
    }
    cache->counters.misses++;
    shrink(cache, cache->capacity - 1);
    *entered = gb_reserve(&cache->entries, &cache->entry_capacity, (size_t)cache->n_entries + 1,
            sizeof *cache->entries);
    if (*entered)
        cache->entries[cache->n_entries++] =
                (entry){.pending = request, .last_used = ++cache->clock};
    return NULL;
}

/* Ends the making of an entry: with the executable, or without. Others read the request until
 * then. */
static void cache_finish(gb_cache *cache, gb_request *request, gb_executable *executable)
{
    lock(cache);
    entry *mine = find_pending(cache, request);
    if (executable) {
        atomic_fetch_add(&executable->references, 1);
        *mine = (entry){.executable = executable, .last_used = mine->last_used};
        *request = (gb_request){0};
    }
    /* For an engine that was destroyed meanwhile nobody would ask again. */
    if (!executable || executable->engine->destroyed)
        drop(cache, mine);
    shrink(cache, cache->capacity);
    pthread_cond_broadcast(&cache->changed);
    pthread_mutex_unlock(&cache->lock);
}

gb_status gb_executable_get(gb_request *request, const gb_backend *backend,
        gb_executable **executable, const gb_request **same)
{
    bool entered = false;
    gb_cache *cache = request->engine->context->compiled;
    lock(cache);
    *executable = cache->capacity > 0 && !request->engine->destroyed
                          ? look_up(cache, request, &entered)
                          : NULL;
    pthread_mutex_unlock(&cache->lock);
    if (*executable) {
        *same = answered(*executable, request);
        return GB_SUCCESS;
    }
    gb_status status = gb_executable_create(request, backend, executable);
    if (status == GB_SUCCESS)
        *same = &(*executable)->request;
    if (entered)
        cache_finish(cache, request, status == GB_SUCCESS ? *executable : NULL);
    else if (status == GB_SUCCESS)
        *request = (gb_request){0};
    return status;
}

void gb_cache_forget_engine(const gb_engine *engine)
{
    gb_cache *cache = engine->context->compiled;
    lock(cache);
    for (uint32_t i = cache->n_entries; i-- > 0;)
        if (cache->entries[i].executable && cache->entries[i].executable->engine == engine)
            drop(cache, &cache->entries[i]);
    pthread_mutex_unlock(&cache->lock);
}

void gb_cache_set_capacity(gb_cache *cache, size_t capacity)
{
    lock(cache);
    cache->capacity = capacity;
    shrink(cache, capacity);
    pthread_mutex_unlock(&cache->lock);
}

gb_cache_counters gb_cache_count(gb_cache *cache)
{
    lock(cache);
    gb_cache_counters counters = cache->counters;
    counters.entries = cache->n_entries;
    pthread_mutex_unlock(&cache->lock);
    return counters;
}
