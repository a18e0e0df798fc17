/* Memory objects of OpenCL engines: buffers, shared virtual memory, unified shared memory. A handle
 * is a cl_mem or an address; the engine's table says which. */
#include "base/memory.h"
#include "base/status.h"
#include "kernels/opencl/engine.h"

#include <stdlib.h>

enum { ALIGNMENT = 128 };

struct gb_cl_object {
    gb_cl_object *next;
    void *handle;
    gb_ocl_memory_kind kind;
    size_t bytes;
    uint32_t holds;
    bool is_foreign; /* the application's */
};

static char nothing; /* where parts of no bytes are mapped to */

static gb_cl_object **slot_of(gb_cl_engine *e, const void *handle)
{
    uintptr_t mixed = (uintptr_t)handle / 16 * 0x9E3779B97F4A7C15u;
    gb_cl_object **at = &e->objects[mixed >> (8 * sizeof mixed - 8)];
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

static void free_handle(gb_cl_engine *e, const gb_cl_object *o)
{
    if (o->kind == GB_OCL_MEMORY_BUFFER && (o->is_foreign || !e->allocator.malloc_fn))
        clReleaseMemObject(o->handle);
    else if (o->is_foreign)
        return;
    else if (e->allocator.malloc_fn)
        e->allocator.free_fn(o->handle, e->device.id, e->context, NULL);
    else if (o->kind == GB_OCL_MEMORY_SVM)
        clSVMFree(e->context, o->handle);
    else
        e->usm.free_blocking(e->context, o->handle);
}

/* One more object with one hold, or one more hold of a known one. */
static gb_status add(
        gb_cl_engine *e, void *handle, gb_ocl_memory_kind kind, size_t bytes, bool is_foreign)
{
    cl_int error = CL_SUCCESS;
    gb_cl_object *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    pthread_mutex_lock(&e->lock);
    gb_cl_object **at = slot_of(e, handle), *known = *at;
    if (known) {
        known->holds++;
        known->bytes = bytes > known->bytes ? bytes : known->bytes;
    } else if (is_foreign && kind == GB_OCL_MEMORY_BUFFER) {
        error = clRetainMemObject(handle);
    }
    if (!known && error == CL_SUCCESS) {
        *made = (gb_cl_object){NULL, handle, kind, bytes, 1, is_foreign};
        *at = made;
        made = NULL;
    }
    pthread_mutex_unlock(&e->lock);
    free(made);
    return error == CL_SUCCESS ? GB_SUCCESS : gb_cl_fail(error, "retaining memory");
}

static void *allocate(gb_cl_engine *e, size_t bytes, cl_int *error)
{
    bool fine = e->device.svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
    *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (e->allocator.malloc_fn)
        return e->allocator.malloc_fn(bytes, ALIGNMENT, e->device.id, e->context);
    switch (e->kind) {
    case GB_OCL_MEMORY_USM:
        return e->shared_memory ? e->usm.shared_alloc(
                                          e->context, e->device.id, NULL, bytes, ALIGNMENT, error)
                                : e->usm.host_alloc(e->context, NULL, bytes, ALIGNMENT, error);
    case GB_OCL_MEMORY_SVM:
        return clSVMAlloc(e->context, CL_MEM_READ_WRITE | (fine ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0),
                bytes, ALIGNMENT);
    default:
        return clCreateBuffer(e->context, CL_MEM_READ_WRITE, bytes, NULL, error);
    }
}

gb_status gb_cl_memory_create(const gb_engine *engine, size_t bytes, void **memory)
{
    gb_cl_engine *e = gb_cl_engine_of(engine);
    cl_int error;
    /* Kernels may read whole words of the last elements. */
    size_t padded = gb_align_up(bytes, 4);
    void *handle = padded >= bytes ? allocate(e, padded, &error) : NULL;
    if (!handle)
        return gb_fail(GB_OUT_OF_MEMORY, "%s has no memory for %zu bytes", e->device.name, bytes);
    gb_status status = add(e, handle, e->kind, bytes, false);
    if (status == GB_SUCCESS)
        *memory = handle;
    else
        free_handle(e, &(gb_cl_object){.handle = handle, .kind = e->kind});
    return status;
}

static gb_status check_buffer(const gb_cl_engine *e, cl_mem buffer, size_t bytes)
{
    size_t own = 0;
    cl_context context = NULL;
    if (clGetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof context, &context, NULL) != CL_SUCCESS ||
            clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof own, &own, NULL) != CL_SUCCESS)
        return gb_fail(GB_INVALID_ARGUMENTS, "the handle given for a tensor is no cl_mem");
    if (context != e->context)
        return gb_fail(GB_INVALID_ARGUMENTS, "the cl_mem given for a tensor is of another context");
    return own >= bytes ? GB_SUCCESS
                        : gb_fail(GB_INVALID_ARGUMENTS,
                                  "the cl_mem given for a tensor has %zu bytes of %zu", own, bytes);
}

gb_status gb_cl_memory_declare(
        const gb_engine *engine, void *handle, gb_ocl_memory_kind kind, size_t bytes)
{
    gb_cl_engine *e = gb_cl_engine_of(engine);
    pthread_mutex_lock(&e->lock);
    gb_cl_object *known = *slot_of(e, handle);
    if (known)
        kind = known->kind;
    bool fits = !known || known->bytes >= bytes || known->is_foreign;
    pthread_mutex_unlock(&e->lock);
    if (!fits)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "the memory given for a tensor is smaller than %zu bytes", bytes);
    if (kind == GB_OCL_MEMORY_USM && !e->usm.set_argument)
        return gb_fail(GB_UNIMPLEMENTED, "%s has no unified shared memory", e->device.name);
    if (kind == GB_OCL_MEMORY_SVM && !e->device.svm)
        return gb_fail(GB_UNIMPLEMENTED, "%s has no shared virtual memory", e->device.name);
    if (kind == GB_OCL_MEMORY_BUFFER)
        GB_TRY(check_buffer(e, handle, bytes));
    return add(e, handle, kind, bytes, true);
}

gb_status gb_cl_memory_adopt(const gb_engine *engine, void *handle, size_t bytes)
{
    return gb_cl_memory_declare(engine, handle, gb_cl_engine_of(engine)->kind, bytes);
}

void gb_cl_memory_retain(const gb_engine *engine, void *memory)
{
    gb_cl_engine *e = gb_cl_engine_of(engine);
    pthread_mutex_lock(&e->lock);
    (*slot_of(e, memory))->holds++;
    pthread_mutex_unlock(&e->lock);
}

void gb_cl_memory_release(const gb_engine *engine, void *memory)
{
    gb_cl_engine *e = gb_cl_engine_of(engine);
    pthread_mutex_lock(&e->lock);
    gb_cl_object **at = slot_of(e, memory), *o = *at;
    bool last = --o->holds == 0;
    if (last)
        *at = o->next;
    pthread_mutex_unlock(&e->lock);
    if (!last)
        return;
    free_handle(e, o);
    free(o);
}

void gb_cl_memory_free_all(gb_cl_engine *e)
{
    for (int i = 0; i < GB_CL_OBJECT_SLOTS; i++)
        while (e->objects[i]) {
            gb_cl_object *o = e->objects[i];
            e->objects[i] = o->next;
            free_handle(e, o);
            free(o);
        }
}

gb_ocl_memory_kind gb_cl_memory_kind_of(gb_cl_engine *e, const void *handle)
{
    pthread_mutex_lock(&e->lock);
    const gb_cl_object *known = *slot_of(e, handle);
    gb_ocl_memory_kind kind = known ? known->kind : e->kind;
    pthread_mutex_unlock(&e->lock);
    return kind;
}

gb_status gb_cl_memory_map(const gb_engine *engine, gb_stream *stream, void *memory, size_t offset,
        size_t bytes, void **pointer)
{
    gb_cl_engine *e = gb_cl_engine_of(engine);
    cl_int error = CL_SUCCESS;
    if (stream)
        GB_TRY(gb_cl_finish_queues(e));
    *pointer = &nothing;
    if (bytes == 0)
        return GB_SUCCESS;
    switch (gb_cl_memory_kind_of(e, memory)) {
    case GB_OCL_MEMORY_BUFFER:
        *pointer = clEnqueueMapBuffer(e->queue, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, offset,
                bytes, 0, NULL, NULL, &error);
        break;
    case GB_OCL_MEMORY_SVM:
        *pointer = (char *)memory + offset;
        error = clEnqueueSVMMap(
                e->queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, *pointer, bytes, 0, NULL, NULL);
        break;
    default:
        *pointer = (char *)memory + offset;
    }
    return error == CL_SUCCESS ? GB_SUCCESS : gb_cl_fail(error, "mapping memory");
}

gb_status gb_cl_memory_unmap(
        const gb_engine *engine, gb_stream *stream, void *memory, void *pointer)
{
    (void)stream;
    gb_cl_engine *e = gb_cl_engine_of(engine);
    if (pointer == &nothing)
        return GB_SUCCESS;
    switch (gb_cl_memory_kind_of(e, memory)) {
    case GB_OCL_MEMORY_BUFFER:
        GB_CL_TRY(clEnqueueUnmapMemObject(e->queue, memory, pointer, 0, NULL, NULL), "unmapping");
        break;
    case GB_OCL_MEMORY_SVM:
        GB_CL_TRY(clEnqueueSVMUnmap(e->queue, pointer, 0, NULL, NULL), "unmapping");
        break;
    default:
        return GB_SUCCESS;
    }
    GB_CL_TRY(clFinish(e->queue), "unmapping");
    return GB_SUCCESS;
}

gb_status gb_cl_memory_digest(
        gb_stream *stream, void *memory, size_t offset, size_t bytes, gb_digest *digest)
{
    void *pointer;
    GB_TRY(gb_cl_memory_map(stream->engine, stream, memory, offset, bytes, &pointer));
    *digest = gb_digest_memory(pointer, bytes);
    return gb_cl_memory_unmap(stream->engine, stream, memory, pointer);
}
