/* The boundary between the runtime and what runs programs on a kind of device. A backend is one
 * struct of functions; docs/how-to-backend.md leads through them.
 *
 * A memory object is whatever the backend makes of a `void *`: a host address on the CPU, a handle
 * elsewhere. The runtime never computes with it: a place in memory is an object and an offset. */
#ifndef GB_RUNTIME_BACKEND_H
#define GB_RUNTIME_BACKEND_H

#include "runtime/digest.h"
#include "runtime/event.h"
#include "runtime/program.h"

/* What the application brings along for an engine. */
typedef struct gb_interop {
    const gb_allocator *allocator; /* of host memory; never NULL */
    void *device, *context;        /* the device's own handles; NULL: the backend makes its own */
    const void *extra;             /* what else the backend's own functions ask of it, or NULL */
} gb_interop;

/* The same for a stream: threads to run on, or a queue of the device. Both may be empty. */
typedef struct gb_stream_interop {
    gb_thread_pool threads;
    void *queue;
    const void *extra; /* as gb_interop.extra */
} gb_stream_interop;

/* Where a buffer of a program lies in one execution. */
typedef struct gb_binding {
    void *memory; /* memory object; of a value, its host address until execute() returns */
    size_t offset, bytes;
    bool is_value; /* a host scalar */
} gb_binding;

/* One run of the constant steps of a program, or of all others. */
typedef struct gb_execution {
    const gb_program *program;
    gb_stream *stream;
    const gb_binding
            *bindings;  /* one for each buffer of the program; lent until execute() returns */
    gb_binding scratch; /* scratch_bytes() of memory */
    bool constant_steps;
    uint32_t n_waits;
    gb_event *const *waits; /* of this backend; the run starts when all are complete, and fails when
                               one of them failed; lent until execute() returns */
    gb_event *event; /* to be completed when the run is; NULL for backends with host memory */
} gb_execution;

typedef struct gb_backend {
    const char *name;
    gb_engine_kind kind;
    /* Memory objects are host addresses that anything on the host may read and write, and a run is
     * complete when execute() returns. */
    bool host_memory;

    /* Devices, by index 0 .. device_count() - 1. */
    size_t (*device_count)(void);
    /* Writes what the device is, for reports. */
    void (*describe)(size_t device, char *text, size_t bytes);
    /* What its kernels are built for ("avx512"); static. */
    const char *(*variant)(size_t device);
    /* What it can run, and what that costs; static. */
    const gb_capability *(*capability)(size_t device);

    /* Sets and frees engine->state. */
    gb_status (*engine_init)(gb_engine *engine, const gb_interop *interop);
    void (*engine_fini)(gb_engine *engine);
    /* What compiled programs depend on beside device and graph, as the number of threads. */
    uint64_t (*compile_key)(const gb_engine *engine);

    /* A new memory object of at least one byte, held once. */
    gb_status (*memory_create)(const gb_engine *engine, size_t bytes, void **memory);
    /* Takes a hold of an object that the application gives, which has at least `bytes`, or refuses
     * it. NULL, as memory_retain, for host memory: the application's is used as it is. */
    gb_status (*memory_adopt)(const gb_engine *engine, void *handle, size_t bytes);
    void (*memory_retain)(const gb_engine *engine, void *memory);
    void (*memory_release)(const gb_engine *engine, void *memory);
    /* Makes a part of an object reachable at a host address until unmap(), after all that was
     * executed and uses it. `stream` NULL: nothing executed uses it. */
    gb_status (*map)(const gb_engine *engine, gb_stream *stream, void *memory, size_t offset,
            size_t bytes, void **pointer);
    gb_status (*unmap)(const gb_engine *engine, gb_stream *stream, void *memory, void *pointer);
    /* Of the first bytes of an object, as gb_digest_memory() of the same contents. */
    gb_status (*digest)(
            gb_stream *stream, void *memory, size_t offset, size_t bytes, gb_digest *digest);

    /* Sets and frees stream->state. */
    gb_status (*stream_init)(gb_stream *stream, const gb_stream_interop *interop);
    void (*stream_fini)(gb_stream *stream);
    /* Returns when all that was executed on the stream is complete. */
    void (*stream_wait)(gb_stream *stream);

    /* Adds the steps of one group to the program. GB_UNIMPLEMENTED with the op named when there is
     * no kernel. */
    gb_status (*lower)(gb_program *program, const gb_group *group);
    /* Called once, when all steps and the places of all buffers are known: may set program->state,
     * which program_fini() frees. */
    gb_status (*finish)(gb_program *program, const gb_engine *engine);
    void (*program_fini)(gb_program *program);
    /* Memory that a run needs beside its buffers. `stream` NULL: on any stream. */
    size_t (*scratch_bytes)(const gb_program *program, const gb_stream *stream);
    /* Runs steps in order, as far as they depend on each other. Runs of one stream take effect in
     * the order of the calls. On failure nothing was started. */
    gb_status (*execute)(const gb_execution *execution);
    /* A digest of what a constant step does, whatever buffers it does it to. False: only itself
     * could tell. */
    bool (*identify)(const gb_step *step, gb_digest *digest);
} gb_backend;

/* All backends, ended by NULL (lib/backends.c). */
extern const gb_backend *const gb_backends[];

#endif
