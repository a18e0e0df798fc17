/* The functions of graphbench_ocl.h. */
#include "base/memory.h"
#include "base/status.h"
#include "kernels/opencl/program.h"

#include <stdlib.h>
#include <string.h>

extern const gb_backend gb_opencl_backend;

static gb_status need(const void *argument, const char *function)
{
    return argument ? GB_SUCCESS : gb_fail(GB_INVALID_ARGUMENTS, "%s: NULL argument", function);
}

static gb_status check_engine(const gb_engine *engine, const void *result, const char *function)
{
    GB_TRY(need(engine, function));
    GB_TRY(need(result, function));
    return engine->backend == &gb_opencl_backend
                   ? GB_SUCCESS
                   : gb_fail(GB_INVALID_ARGUMENTS, "%s: the engine is none of OpenCL", function);
}

static gb_status check_kind(unsigned kind, unsigned most, const char *function)
{
    return kind <= most ? GB_SUCCESS
                        : gb_fail(GB_INVALID_ARGUMENTS, "%s: there is no kind %u", function, kind);
}

/* Engines -------------------------------------------------------------------------------------- */

gb_status gb_ocl_engine_create(gb_engine **engine, size_t index, gb_ocl_memory_kind kind)
{
    const gb_cl_wishes wishes = {.kind = kind};
    GB_TRY(need(engine, __func__));
    GB_TRY(check_kind(kind, GB_OCL_MEMORY_USM, __func__));
    if (!gb_cl_device_at(index))
        return gb_fail(GB_INVALID_ARGUMENTS, "no OpenCL device %zu: there are %zu", index,
                gb_cl_device_count());
    return gb_engine_create_with_interop(
            engine, &gb_opencl_backend, index, &(gb_interop){.extra = &wishes});
}

static size_t index_of(cl_device_id device)
{
    size_t n = gb_cl_device_count(), i = 0;
    while (i < n && gb_cl_device_at(i)->id != device)
        i++;
    return i;
}

static gb_status create(gb_engine **engine, cl_device_id device, cl_context context,
        const gb_cl_wishes *wishes, const char *function)
{
    const gb_ocl_allocator *allocator = wishes->allocator;
    GB_TRY(need(engine, function));
    GB_TRY(need(device, function));
    GB_TRY(need(context, function));
    GB_TRY(check_kind(wishes->kind, GB_OCL_MEMORY_USM, function));
    if (allocator && (!allocator->malloc_fn || !allocator->free_fn))
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: an allocator has both functions", function);
    return gb_engine_create_with_interop(engine, &gb_opencl_backend, index_of(device),
            &(gb_interop){.device = device, .context = context, .extra = wishes});
}

gb_status gb_ocl_engine_create_with_context(gb_engine **engine, cl_device_id device,
        cl_context context, gb_ocl_memory_kind kind, const gb_ocl_allocator *allocator)
{
    const gb_cl_wishes wishes = {.kind = kind, .allocator = allocator};
    return create(engine, device, context, &wishes, __func__);
}

gb_status gb_ocl_engine_create_from_cache_blob(gb_engine **engine, cl_device_id device,
        cl_context context, gb_ocl_memory_kind kind, const gb_ocl_allocator *allocator,
        size_t bytes, const uint8_t *blob)
{
    const gb_cl_wishes wishes = {kind, allocator, blob, bytes};
    GB_TRY(need(blob, __func__));
    return create(engine, device, context, &wishes, __func__);
}

/* As all lists: the count, and as many elements as there is room for. */
static void hand_over(const void *from, size_t bytes, size_t capacity, uint8_t *list, size_t *count)
{
    *count = bytes;
    if (list)
        memcpy(list, from, bytes < capacity ? bytes : capacity);
}

gb_status gb_ocl_get_cache_blob_id(
        cl_device_id device, size_t capacity, uint8_t *id, size_t *n_bytes)
{
    gb_cl_device described;
    GB_TRY(need(device, __func__));
    GB_TRY(need(n_bytes, __func__));
    GB_TRY(gb_cl_device_read(device, &described));
    gb_digest digest = gb_cl_device_digest(&described);
    hand_over(&digest, sizeof digest, capacity, id, n_bytes);
    return GB_SUCCESS;
}

gb_status gb_ocl_engine_get_cache_blob(
        const gb_engine *engine, size_t capacity, uint8_t *blob, size_t *n_bytes)
{
    gb_cl_blob_writer writer = {0};
    GB_TRY(check_engine(engine, n_bytes, __func__));
    gb_cl_engine *e = gb_cl_engine_of(engine);
    gb_status status = gb_cl_built_collect(e, &writer);
    if (status == GB_SUCCESS)
        status = gb_cl_blob_finish(&writer, gb_cl_device_digest(&e->device));
    if (status == GB_SUCCESS)
        hand_over(writer.data, writer.bytes, capacity, blob, n_bytes);
    free(writer.data);
    return status;
}

gb_status gb_ocl_engine_get_device(const gb_engine *engine, cl_device_id *device)
{
    GB_TRY(check_engine(engine, device, __func__));
    *device = gb_cl_engine_of(engine)->device.id;
    return GB_SUCCESS;
}

gb_status gb_ocl_engine_get_context(const gb_engine *engine, cl_context *context)
{
    GB_TRY(check_engine(engine, context, __func__));
    *context = gb_cl_engine_of(engine)->context;
    return GB_SUCCESS;
}

gb_status gb_ocl_engine_get_memory_kind(const gb_engine *engine, gb_ocl_memory_kind *kind)
{
    GB_TRY(check_engine(engine, kind, __func__));
    *kind = gb_cl_engine_of(engine)->kind;
    return GB_SUCCESS;
}

gb_status gb_ocl_engine_get_build_time(const gb_engine *engine, uint64_t *nanoseconds)
{
    GB_TRY(check_engine(engine, nanoseconds, __func__));
    gb_cl_engine *e = gb_cl_engine_of(engine);
    pthread_mutex_lock(&e->lock);
    *nanoseconds = e->build_ns;
    pthread_mutex_unlock(&e->lock);
    return GB_SUCCESS;
}

/* Streams -------------------------------------------------------------------------------------- */

gb_status gb_ocl_stream_create(gb_stream **stream, const gb_engine *engine, gb_ocl_stream_kind kind)
{
    const gb_cl_stream_wishes wishes = {.kind = kind};
    GB_TRY(check_engine(engine, stream, __func__));
    GB_TRY(check_kind(kind, GB_OCL_STREAM_OUT_OF_ORDER, __func__));
    return gb_stream_create_with_interop(stream, engine, &(gb_stream_interop){.extra = &wishes});
}

gb_status gb_ocl_stream_create_with_queue(
        gb_stream **stream, const gb_engine *engine, cl_command_queue queue)
{
    GB_TRY(check_engine(engine, stream, __func__));
    GB_TRY(need(queue, __func__));
    return gb_stream_create_with_interop(stream, engine, &(gb_stream_interop){.queue = queue});
}

gb_status gb_ocl_stream_get_queue(const gb_stream *stream, cl_command_queue *queue)
{
    GB_TRY(need(stream, __func__));
    GB_TRY(check_engine(stream->engine, queue, __func__));
    *queue = ((const gb_cl_queue *)stream->state)->queue;
    return GB_SUCCESS;
}

/* Tensors -------------------------------------------------------------------------------------- */

gb_status gb_ocl_tensor_create(gb_tensor **tensor, const gb_logical_tensor *description,
        const gb_engine *engine, gb_ocl_memory_kind kind, void *handle)
{
    size_t bytes;
    GB_TRY(check_engine(engine, tensor, __func__));
    GB_TRY(need(description, __func__));
    GB_TRY(need(handle, __func__));
    GB_TRY(check_kind(kind, GB_OCL_MEMORY_USM, __func__));
    if (handle == GB_MEMORY_ALLOCATE)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "%s: memory is allocated by gb_tensor_create(), of the engine's kind", __func__);
    if (kind == GB_OCL_MEMORY_AUTO)
        kind = gb_cl_engine_of(engine)->kind;
    GB_TRY(gb_logical_tensor_get_mem_size(description, &bytes));
    /* Known as one of its kind while the tensor takes its own hold. */
    GB_TRY(gb_cl_memory_declare(engine, handle, kind, bytes == SIZE_MAX ? 0 : bytes));
    gb_status status = gb_tensor_create(tensor, description, engine, handle);
    gb_cl_memory_release(engine, handle);
    return status;
}

/* Execution ------------------------------------------------------------------------------------ */

static void release_event(void *run)
{
    gb_cl_run_free(run);
}

/* gb_event.look: nobody completes such an event but who waits for it. */
static void look_at(gb_event *event, bool waits)
{
    const gb_cl_run *run = event->native;
    if (!waits)
        return;
    cl_int state = clWaitForEvents(1, &run->last);
    if (state == CL_SUCCESS)
        gb_event_complete(event, GB_SUCCESS, NULL);
    else
        gb_event_complete(event, gb_cl_fail(state, "a dependency"), gb_last_error());
}

/* An event of the library's that stands for one of the application's. */
static gb_event *wrap(cl_event event)
{
    gb_event *made = gb_event_create(&gb_opencl_backend);
    gb_cl_run *run = gb_calloc(1, sizeof *run);
    if (!made || !run || clRetainEvent(event) != CL_SUCCESS) {
        gb_event_release(made);
        free(run);
        return NULL;
    }
    run->last = event;
    made->native = run;
    made->release_native = release_event;
    made->look = look_at;
    return made;
}

static gb_status check_dependencies(const gb_stream *stream, size_t n, const cl_event *dependencies)
{
    for (size_t i = 0; i < n; i++) {
        cl_context context = NULL;
        if (!dependencies[i] || clGetEventInfo(dependencies[i], CL_EVENT_CONTEXT, sizeof context,
                                        &context, NULL) != CL_SUCCESS)
            return gb_fail(GB_INVALID_ARGUMENTS, "execute: dependency %zu is no event", i);
        if (context != gb_cl_engine_of(stream->engine)->context)
            return gb_fail(GB_INVALID_ARGUMENTS,
                    "execute: dependency %zu is of another context than the stream", i);
    }
    return GB_SUCCESS;
}

gb_status gb_ocl_compiled_partition_execute(const gb_compiled_partition *compiled,
        gb_stream *stream, size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        gb_tensor *const *outputs, gb_tensor *scratchpad, size_t n_dependencies,
        const cl_event *dependencies, cl_event *event)
{
    GB_TRY(need(stream, __func__));
    GB_TRY(check_engine(stream->engine, stream, __func__));
    if (n_dependencies)
        GB_TRY(need(dependencies, __func__));
    GB_TRY(check_dependencies(stream, n_dependencies, dependencies));
    gb_event **waits = gb_calloc(n_dependencies, sizeof *waits), *done = NULL;
    if (!waits)
        return GB_OUT_OF_MEMORY;
    gb_status status = GB_SUCCESS;
    size_t n = 0;
    for (; n < n_dependencies && status == GB_SUCCESS; n++) {
        waits[n] = wrap(dependencies[n]);
        if (!waits[n])
            status = gb_fail(GB_OUT_OF_MEMORY, "execute: no memory for events");
    }
    if (status == GB_SUCCESS)
        status = gb_compiled_partition_execute_with_events(compiled, stream, n_inputs, inputs,
                n_outputs, outputs, scratchpad, n, (const gb_event *const *)waits,
                event ? &done : NULL);
    if (status == GB_SUCCESS && event) {
        cl_event last = ((const gb_cl_run *)done->native)->last;
        cl_int error = clRetainEvent(last);
        if (error == CL_SUCCESS) {
            *event = last;
        } else { /* the caller believes that nothing runs */
            gb_event_await(done);
            status = gb_cl_fail(error, "retaining an event");
        }
    }
    gb_event_release(done);
    for (size_t i = 0; i < n; i++)
        gb_event_release(waits[i]);
    free(waits);
    return status;
}

gb_status gb_ocl_event_get_device_time(const gb_event *event, uint64_t *nanoseconds)
{
    cl_ulong begin = 0, end = 0;
    GB_TRY(need(event, __func__));
    GB_TRY(need(nanoseconds, __func__));
    if (event->backend != &gb_opencl_backend || !event->native ||
            !atomic_load(&((gb_event *)(uintptr_t)event)->complete))
        return gb_fail(GB_INVALID_ARGUMENTS,
                "%s: the event stands for no complete execution of OpenCL", __func__);
    const gb_cl_run *run = event->native;
    if (clGetEventProfilingInfo(
                run->first, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL) != CL_SUCCESS ||
            clGetEventProfilingInfo(run->last, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) !=
                    CL_SUCCESS)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: the queue takes no times", __func__);
    *nanoseconds = end - begin;
    return GB_SUCCESS;
}
