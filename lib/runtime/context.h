/* Contexts: the caches that engines share. */
#ifndef GB_RUNTIME_CONTEXT_H
#define GB_RUNTIME_CONTEXT_H

#include "runtime/runtime.h"

typedef struct gb_cache gb_cache;
typedef struct gb_constant_cache gb_constant_cache;

/* Engines hold their context, so that the caches are empty when it goes: what was made for an
 * engine goes with it. */
struct gb_context {
    atomic_uint references;
    gb_cache *compiled;
    gb_constant_cache *constants;
};

/* The one of the process, which is always there. */
gb_context *gb_context_of_process(void);
/* Adds an owner; gb_context_destroy() takes one away. */
gb_context *gb_context_retain(gb_context *context);

/* With the capacity that the environment says. */
gb_cache *gb_cache_of_process(void);
gb_constant_cache *gb_constant_cache_of_process(void);
/* Empty, with the capacity of another one. NULL when out of memory. */
gb_cache *gb_cache_create(gb_cache *like);
void gb_cache_free(gb_cache *cache);
size_t gb_cache_capacity(gb_cache *cache);
void gb_cache_set_capacity(gb_cache *cache, size_t entries);
gb_cache_counters gb_cache_count(gb_cache *cache);

gb_constant_cache *gb_constant_cache_create(gb_constant_cache *like);
void gb_constant_cache_free(gb_constant_cache *cache);
/* Is it a kind of engines that constants are kept for? */
bool gb_constant_cache_has_kind(gb_engine_kind kind);
size_t gb_constant_cache_capacity(gb_constant_cache *cache, gb_engine_kind kind);
/* Drops everything of that kind. */
void gb_constant_cache_set_capacity(
        gb_constant_cache *cache, gb_engine_kind kind, size_t megabytes);
gb_constant_cache_counters gb_constant_cache_count(gb_constant_cache *cache, gb_engine_kind kind);

#endif
