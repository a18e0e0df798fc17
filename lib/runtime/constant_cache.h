/* Prepared constants: what the constant steps of a program made of one content of its constant
 * inputs, shared by all compiled partitions whose steps do the same. */
#ifndef GB_RUNTIME_CONSTANT_CACHE_H
#define GB_RUNTIME_CONSTANT_CACHE_H

#include "runtime/digest.h"
#include "runtime/runtime.h"

typedef struct gb_constants {
    atomic_uint references; /* those who hold it, the cache among them while `cached` */
    gb_engine *engine;      /* counted */
    void *memory;           /* memory object */
    size_t bytes;
    size_t owner;     /* gb_executable.owner */
    gb_digest digest; /* of the constant steps and inputs */
    /* The cache's, under its lock. */
    struct gb_constants *next; /* in the same bucket */
    uint64_t last_used;
    bool cached, ready; /* not ready: a thread is preparing it */
} gb_constants;

/* What is asked for, and how to make it: prepare() fills the memory object, and returns when that
 * is complete. */
typedef struct gb_constants_request {
    const gb_engine *engine;
    size_t owner, bytes;
    gb_digest digest;
    gb_status (*prepare)(void *context, void *memory);
    void *context;
} gb_constants_request;

/* The constants, held for the caller. Threads that ask for the same at once wait for the first,
 * which prepares them. */
gb_status gb_constants_get(const gb_constants_request *request, gb_constants **constants);
/* Another holder. */
gb_constants *gb_constants_hold(gb_constants *constants);
/* Takes a holder away. Constants that nobody holds any more stay in the cache as capacity allows;
 * `trim` applies this at once, and is for holders that were not short-lived. */
void gb_constants_release(gb_constants *constants, bool trim);
/* Drops what the executable owns, or what was prepared for the engine; holders keep theirs. */
void gb_constants_forget_owner(const gb_engine *engine, size_t owner);
void gb_constants_forget_engine(const gb_engine *engine);

#endif
