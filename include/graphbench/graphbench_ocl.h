/* OpenCL beside graphbench.h: engines on a program's own device and context, streams on its queues,
 * tensors on its memory, its events. For builds of libgraphbench with OpenCL; the conventions are
 * those of graphbench.h. */
#ifndef GRAPHBENCH_GRAPHBENCH_OCL_H
#define GRAPHBENCH_GRAPHBENCH_OCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#include <graphbench/graphbench.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What memory objects are. Handles of tensors are a cl_mem, or an address of shared virtual memory
 * or of unified shared memory (cl_intel_unified_shared_memory). */
typedef enum gb_ocl_memory_kind {
    GB_OCL_MEMORY_AUTO = 0, /* unified shared memory, else shared virtual memory, else buffers */
    GB_OCL_MEMORY_BUFFER = 1,
    GB_OCL_MEMORY_SVM = 2,
    GB_OCL_MEMORY_USM = 3
} gb_ocl_memory_kind;

typedef enum gb_ocl_stream_kind {
    GB_OCL_STREAM_IN_ORDER = 0,
    GB_OCL_STREAM_OUT_OF_ORDER = 1
} gb_ocl_stream_kind;

/* Memory of the application's, of the engine's memory kind, for what the library allocates: results,
 * scratch memory, constants. Called from any thread. */
typedef struct gb_ocl_allocator {
    /* NULL when there is no memory. `alignment` in bytes, a power of two. */
    void *(*malloc_fn)(size_t bytes, size_t alignment, cl_device_id device, cl_context context);
    /* No command uses the memory any more; `event` is NULL, or an event that is complete. */
    void (*free_fn)(void *memory, cl_device_id device, cl_context context, cl_event event);
} gb_ocl_allocator;

/* ---- engines ---- */

/* As gb_engine_create() with GB_ENGINE_GPU, with memory of one kind. GB_UNIMPLEMENTED: the device
 * lacks the kind. GB_INVALID_ARGUMENTS, of all functions that are given one: there is no such kind. */
GB_API gb_status gb_ocl_engine_create(gb_engine **engine, size_t index, gb_ocl_memory_kind kind);
/* On a device and a context of the application's, which the engine retains. `allocator` NULL: the
 * library's own; it is copied. GB_INVALID_ARGUMENTS: the context does not have the device. */
GB_API gb_status gb_ocl_engine_create_with_context(gb_engine **engine, cl_device_id device,
        cl_context context, gb_ocl_memory_kind kind, const gb_ocl_allocator *allocator);
/* The same, with kernels that an engine built before: those that the blob has are not built again, nor
 * looked for on disk. The blob is copied. GB_INVALID_ARGUMENTS, beside the above: it is damaged, or
 * its id is not that of the device. */
GB_API gb_status gb_ocl_engine_create_from_cache_blob(gb_engine **engine, cl_device_id device,
        cl_context context, gb_ocl_memory_kind kind, const gb_ocl_allocator *allocator,
        size_t bytes, const uint8_t *blob);
/* Kernels that the engine built or loaded so far, to be kept by the application. Fills `blob` (NULL:
 * none) up to `capacity` bytes and tells their number. GB_RUNTIME_ERROR: the driver gives no
 * binaries. */
GB_API gb_status gb_ocl_engine_get_cache_blob(
        const gb_engine *engine, size_t capacity, uint8_t *blob, size_t *n_bytes);
/* Names what blobs of a device are good for: another device, driver or set of build options has
 * another id. Some bytes, as a list in the same way. */
GB_API gb_status gb_ocl_get_cache_blob_id(
        cl_device_id device, size_t capacity, uint8_t *id, size_t *n_bytes);
/* Lent by the engine. */
GB_API gb_status gb_ocl_engine_get_device(const gb_engine *engine, cl_device_id *device);
GB_API gb_status gb_ocl_engine_get_context(const gb_engine *engine, cl_context *context);
/* Of the memory that the engine makes: never GB_OCL_MEMORY_AUTO. */
GB_API gb_status gb_ocl_engine_get_memory_kind(const gb_engine *engine, gb_ocl_memory_kind *kind);
/* Nanoseconds that the engine has spent so far on kernels: building them from source, or loading what
 * was built, all threads together. Part of the time of gb_partition_compile(). Drivers may leave some
 * of the work to the first execution. */
GB_API gb_status gb_ocl_engine_get_build_time(const gb_engine *engine, uint64_t *nanoseconds);

/* ---- streams ---- */

/* On a queue of its own, which takes device times. */
GB_API gb_status gb_ocl_stream_create(
        gb_stream **stream, const gb_engine *engine, gb_ocl_stream_kind kind);
/* On a queue of the application's, which the stream retains; in order or not. GB_INVALID_ARGUMENTS:
 * the queue is of another context or device than the engine. */
GB_API gb_status gb_ocl_stream_create_with_queue(
        gb_stream **stream, const gb_engine *engine, cl_command_queue queue);
/* Lent by the stream. */
GB_API gb_status gb_ocl_stream_get_queue(const gb_stream *stream, cl_command_queue *queue);

/* ---- tensors ---- */

/* As gb_tensor_create() on memory of the application's of any kind, which the device must reach. A
 * cl_mem is retained; addresses must stay valid until nothing executed uses them. The handle must be
 * memory of that kind. GB_INVALID_ARGUMENTS: GB_MEMORY_ALLOCATE, a cl_mem of another context, or too
 * small. */
GB_API gb_status gb_ocl_tensor_create(gb_tensor **tensor, const gb_logical_tensor *description,
        const gb_engine *engine, gb_ocl_memory_kind kind, void *handle);

/* ---- execution ---- */

/* As gb_compiled_partition_execute_with_events() with events of OpenCL: the execution begins when
 * `dependencies` of the engine's context are complete, and `event` (NULL: not asked for), which the
 * caller releases, stands for it. The call waits for dependencies where that one does; the queues that
 * they come from must have been flushed. */
GB_API gb_status gb_ocl_compiled_partition_execute(const gb_compiled_partition *compiled,
        gb_stream *stream, size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        gb_tensor *const *outputs, gb_tensor *scratchpad, size_t n_dependencies,
        const cl_event *dependencies, cl_event *event);
/* Nanoseconds of the device's clock from the start of the first kernel of a complete execution to
 * the end of the last. GB_INVALID_ARGUMENTS: not complete, or its queue takes no times. */
GB_API gb_status gb_ocl_event_get_device_time(const gb_event *event, uint64_t *nanoseconds);

#ifdef __cplusplus
}
#endif

#endif
