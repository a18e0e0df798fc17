/* The structs behind the handles of the runtime, and what its files share. */
#ifndef GB_RUNTIME_RUNTIME_H
#define GB_RUNTIME_RUNTIME_H

#include "runtime/backend.h"
#include "runtime/digest.h"

#include <pthread.h>
#include <stdatomic.h>

struct gb_allocator {
    gb_malloc_fn malloc_fn; /* these two, or those with a context */
    gb_free_fn free_fn;
    gb_malloc_context_fn malloc_with;
    gb_free_context_fn free_with;
    void *context;
};

struct gb_engine {
    atomic_uint references;
    atomic_bool destroyed; /* by the application: what is compiled for it now is not cached */
    const gb_backend *backend;
    size_t index;
    gb_context *context;    /* counted */
    gb_allocator allocator; /* of host memory */
    void *state;            /* the backend's */
    char description[128];
};

/* An execution that may still run, and what it needs until it is complete. */
typedef struct gb_flight {
    struct gb_flight *next;           /* started later */
    gb_event *event;                  /* counted */
    struct gb_executable *executable; /* counted */
    struct gb_constants *constants;   /* held; or NULL */
    uint32_t n_memories;
    void **memories; /* memory objects, each held: of tensors and of scratch */
} gb_flight;

struct gb_stream {
    gb_engine *engine;    /* counted */
    void *state;          /* the backend's */
    pthread_mutex_t lock; /* of all below */
    gb_flight *first, *last;
    uint32_t n_flights;
    gb_status failure; /* of an execution that nobody was told of yet */
    char message[256];
};

struct gb_tensor {
    gb_logical_tensor description;
    gb_engine *engine;      /* counted; NULL for a host scalar */
    void *handle;           /* memory object */
    bool owned;             /* made by the tensor */
    bool held;              /* its memory object is to be released; true when owned */
    bool deferred;          /* shape and memory come from the execution that writes the tensor */
    gb_logical_tensor open; /* of a deferred tensor, as it was created */
    size_t capacity;        /* of a deferred tensor, bytes at `handle` */
    int64_t scalar;         /* storage of a host scalar */
    gb_kept_digest digest;
};

/* A tensor from outside that an op of a partition reads. */
typedef struct gb_partition_read {
    size_t tensor_id, op_id;
    uint32_t input; /* of the op */
} gb_partition_read;

struct gb_partition {
    atomic_uint references;
    size_t id;
    const gb_backend *backend;
    gb_engine_kind engine_kind; /* as the graph was made for */
    const char *pattern;        /* static */
    const char *unsupported;    /* static reason, NULL when supported */
    gb_graph *graph;            /* owned: only the ops of the partition */
    uint32_t n_inputs, n_outputs;
    size_t *inputs, *outputs;  /* tensor ids of the ports, each once; owned */
    size_t *preferred_layouts; /* per output: the layout_id that suits all its readers in the graph,
                       0: dense, GB_LAYOUT_OF_WRITER without a graph;
                       owned */
    uint32_t n_reads;
    gb_partition_read *reads; /* inputs of all ops that come from outside, as applications see them:
                                 a tensor as often as it is read; owned */
};

/* Adds an owner of the partition; gb_partition_destroy() takes one away. */
gb_partition *gb_partition_retain(const gb_partition *partition);
/* Adds an owner of the engine, and takes one away. */
gb_engine *gb_engine_retain(const gb_engine *engine);
void gb_engine_release(gb_engine *engine);
/* Drops what the cache of compiled partitions holds for the engine. */
void gb_cache_forget_engine(const gb_engine *engine);
/* Do memory and streams of one serve the other? */
bool gb_engines_share(const gb_engine *a, const gb_engine *b);
/* An engine with what the application brings along; its allocator may be NULL. With a device of the
 * application's, `index` says nothing, and the backend describes the engine. */
gb_status gb_engine_create_with_interop(
        gb_engine **engine, const gb_backend *backend, size_t index, const gb_interop *interop);
gb_status gb_stream_create_with_interop(
        gb_stream **stream, const gb_engine *engine, const gb_stream_interop *interop);
/* The backend for a kind; GB_ENGINE_ANY is the CPU. NULL when this build has none. */
const gb_backend *gb_backend_find(gb_engine_kind kind);
/* As gb_partition_create_with_op(), but the op need not obey its schema: kernels may take more. */
gb_status gb_partition_create_unchecked(
        gb_partition **partition, const gb_op *op, gb_engine_kind kind);
/* Memory object of a tensor; of a host scalar, the address of its value. */
void *gb_tensor_memory(const gb_tensor *tensor);
/* Gives a deferred tensor the dims and strides of `shape`, and memory for them. */
gb_status gb_tensor_settle(gb_tensor *tensor, const gb_logical_tensor *shape);
/* Is the digest of its contents known? Then their memory is not read for it. */
bool gb_tensor_has_digest(const gb_tensor *tensor);
/* Of its contents, of which at least `bytes` count; taken on the stream when it is not known. */
gb_status gb_tensor_digest(
        const gb_tensor *tensor, size_t bytes, gb_stream *stream, gb_digest *digest);

/* Waits for what the application gave as dependencies of an execution. */
gb_status gb_events_await(size_t n, const gb_event *const *events);
/* Hands an execution that was started over to the stream, which lets go of what it holds once it is
 * complete. */
void gb_stream_add_flight(gb_stream *stream, gb_flight *flight);
/* Lets go of what a flight holds. */
void gb_flight_free(gb_flight *flight);
/* From one process-wide counter. */
size_t gb_next_id(void);

#endif
