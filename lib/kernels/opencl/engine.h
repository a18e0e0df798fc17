/* What an OpenCL engine owns: context, queues, the memory objects that it knows. */
#ifndef GB_KERNELS_OPENCL_ENGINE_H
#define GB_KERNELS_OPENCL_ENGINE_H

#include "kernels/opencl/blob.h"
#include "kernels/opencl/shape.h"
#include "runtime/runtime.h"

#include <graphbench/graphbench_ocl.h>

typedef struct gb_cl_object gb_cl_object;
typedef struct gb_cl_queue gb_cl_queue;
typedef struct gb_cl_pending gb_cl_pending;
typedef struct gb_cl_built gb_cl_built;

enum { GB_CL_OBJECT_SLOTS = 256 };

/* Functions of cl_intel_unified_shared_memory; all set or all NULL. */
typedef struct gb_cl_usm {
    void *(CL_API_CALL *host_alloc)(cl_context context, const cl_ulong *properties, size_t bytes,
            cl_uint alignment, cl_int *error);
    void *(CL_API_CALL *shared_alloc)(cl_context context, cl_device_id device,
            const cl_ulong *properties, size_t bytes, cl_uint alignment, cl_int *error);
    cl_int(CL_API_CALL *free_blocking)(cl_context context, void *pointer);
    cl_int(CL_API_CALL *set_argument)(cl_kernel kernel, cl_uint index, const void *pointer);
} gb_cl_usm;

typedef struct gb_cl_engine {
    gb_cl_device device;
    gb_cl_shape shape;          /* of what is compiled from now on */
    cl_context context;         /* held */
    cl_command_queue queue;     /* of the engine's own: mapping without a stream */
    gb_ocl_memory_kind kind;    /* of memory that it makes, and of handles that come as they are */
    gb_ocl_allocator allocator; /* malloc_fn NULL: none */
    gb_cl_usm usm;
    bool shared_memory;                        /* USM may be shared memory; else it is the host's */
    gb_cl_blob *blob;                          /* owned; or NULL */
    pthread_mutex_t lock;                      /* of all below */
    gb_cl_object *objects[GB_CL_OBJECT_SLOTS]; /* owned */
    gb_cl_queue *queues;                       /* of streams */
    gb_cl_built *programs;                     /* owned */
    uint64_t build_ns;                         /* that building and loading them took */
} gb_cl_engine;

/* A queue of a stream. */
struct gb_cl_queue {
    gb_cl_queue *next;
    cl_command_queue queue; /* held */
    bool in_order;
    pthread_mutex_t lock; /* of `last`, and while a run is put into the queue */
    cl_event last;        /* of what was executed last; held, or NULL */
};

/* gb_event.native: what a run was on the device. */
typedef struct gb_cl_run {
    cl_event first, last; /* held */
    uintptr_t number;     /* among those that are pending; 0: none */
} gb_cl_run;
void gb_cl_run_free(void *run);

/* What gb_interop.extra points to. */
typedef struct gb_cl_wishes {
    gb_ocl_memory_kind kind;
    const gb_ocl_allocator *allocator; /* or NULL */
    const void *blob;                  /* NULL: none */
    size_t blob_bytes;
} gb_cl_wishes;
/* What gb_stream_interop.extra points to. */
typedef struct gb_cl_stream_wishes {
    gb_ocl_stream_kind kind;
} gb_cl_stream_wishes;

static inline gb_cl_engine *gb_cl_engine_of(const gb_engine *engine)
{
    return engine->state;
}

gb_status gb_cl_engine_init(gb_engine *engine, const gb_interop *interop);
void gb_cl_engine_fini(gb_engine *engine);

/* memory.c: functions of the backend. */
gb_status gb_cl_memory_create(const gb_engine *engine, size_t bytes, void **memory);
gb_status gb_cl_memory_adopt(const gb_engine *engine, void *handle, size_t bytes);
void gb_cl_memory_retain(const gb_engine *engine, void *memory);
void gb_cl_memory_release(const gb_engine *engine, void *memory);
gb_status gb_cl_memory_map(const gb_engine *engine, gb_stream *stream, void *memory, size_t offset,
        size_t bytes, void **pointer);
gb_status gb_cl_memory_unmap(
        const gb_engine *engine, gb_stream *stream, void *memory, void *pointer);
gb_status gb_cl_memory_digest(
        gb_stream *stream, void *memory, size_t offset, size_t bytes, gb_digest *digest);
/* The kind of a handle that is known or of the engine's own kind. */
gb_ocl_memory_kind gb_cl_memory_kind_of(gb_cl_engine *e, const void *handle);
/* Makes the handle known as one of this kind, of the application's. */
gb_status gb_cl_memory_declare(
        const gb_engine *engine, void *handle, gb_ocl_memory_kind kind, size_t bytes);
/* Frees what nobody released. */
void gb_cl_memory_free_all(gb_cl_engine *e);

/* pending.c: a run of the queue whose event is not complete; NULL: out of memory. Once it is added, with
 * the native part of its event set, others may complete it; until then it may be freed. Its number. */
gb_cl_pending *gb_cl_pending_create(const gb_cl_queue *q, const gb_event *event);
void gb_cl_pending_free(gb_cl_pending *run);
uintptr_t gb_cl_pending_add(gb_cl_pending *run);
/* Completes the event of a run as its last command ended, and forgets the run. Whoever calls this
 * first does it, later ones do nothing. */
void gb_cl_complete(uintptr_t number, cl_int state);
/* CL_EVENT_COMMAND_EXECUTION_STATUS: below 0 the commands have failed. */
cl_int gb_cl_read_state(cl_event event, cl_int *state);
/* gb_event.look */
void gb_cl_look(gb_event *event, bool waits);
/* Waits for all that was put into the queue before, and until the events of these runs are complete. */
void gb_cl_settle(const gb_cl_queue *q);

/* queue.c */
gb_status gb_cl_stream_init(gb_stream *stream, const gb_stream_interop *interop);
void gb_cl_stream_fini(gb_stream *stream);
void gb_cl_stream_wait(gb_stream *stream);
gb_status gb_cl_execute(const gb_execution *execution);
/* Waits for all streams of the engine. */
gb_status gb_cl_finish_queues(gb_cl_engine *e);

#endif
