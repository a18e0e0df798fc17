/* Tensors: a description with memory. */
#include "base/memory.h"
#include "base/status.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

static void drop_memory(gb_tensor *tensor)
{
    if (tensor->held)
        tensor->engine->backend->memory_release(tensor->engine, tensor->handle);
    tensor->handle = NULL;
    tensor->owned = tensor->held = false;
}

static gb_status allocate(gb_tensor *tensor, size_t bytes)
{
    void *memory;
    GB_TRY(tensor->engine->backend->memory_create(tensor->engine, bytes ? bytes : 1, &memory));
    drop_memory(tensor);
    tensor->handle = memory;
    tensor->owned = tensor->held = true;
    return GB_SUCCESS;
}

/* Uses memory of the application's. */
static gb_status adopt(gb_tensor *tensor, void *handle)
{
    const gb_backend *backend = tensor->engine->backend;
    size_t bytes;
    GB_TRY(gb_logical_tensor_get_mem_size(&tensor->description, &bytes));
    bool held = handle && backend->memory_adopt;
    if (held)
        GB_TRY(backend->memory_adopt(tensor->engine, handle, bytes == SIZE_MAX ? 0 : bytes));
    drop_memory(tensor);
    tensor->handle = handle;
    tensor->held = held;
    tensor->deferred = false;
    return GB_SUCCESS;
}

/* What an execution is to size is as open again as it was created. */
static void defer(gb_tensor *tensor)
{
    drop_memory(tensor);
    if (tensor->deferred)
        tensor->description = tensor->open;
    tensor->deferred = true;
    tensor->open = tensor->description;
    tensor->capacity = 0;
}

static gb_status attach(gb_tensor *tensor, void *handle)
{
    gb_kept_digest_forget(&tensor->digest);
    if (tensor->owned && handle == tensor->handle)
        return GB_SUCCESS;
    if (handle != GB_MEMORY_ALLOCATE)
        return adopt(tensor, handle);
    size_t bytes;
    GB_TRY(gb_logical_tensor_get_mem_size(&tensor->description, &bytes));
    if (!tensor->deferred && bytes != SIZE_MAX)
        return allocate(tensor, bytes);
    if (tensor->description.layout_type != GB_LAYOUT_STRIDED)
        return gb_fail(GB_INVALID_ARGUMENTS, "tensor %zu: its layout gives no size to allocate",
                tensor->description.id);
    defer(tensor);
    return GB_SUCCESS;
}

gb_status gb_tensor_settle(gb_tensor *tensor, const gb_logical_tensor *shape)
{
    size_t bytes;
    GB_TRY(gb_logical_tensor_get_mem_size(shape, &bytes));
    if (!tensor->handle || bytes > tensor->capacity) {
        GB_TRY(allocate(tensor, bytes));
        tensor->capacity = bytes;
    }
    tensor->description.ndims = shape->ndims;
    memcpy(tensor->description.dims, shape->dims, sizeof shape->dims);
    memcpy(tensor->description.strides, shape->strides, sizeof shape->strides);
    return GB_SUCCESS;
}

gb_status gb_tensor_create(gb_tensor **tensor, const gb_logical_tensor *description,
        const gb_engine *engine, void *handle)
{
    if (!tensor || !description || !engine)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_create: NULL argument");
    if (description->property == GB_PROPERTY_HOST_SCALAR)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "tensor %zu is a host scalar: use gb_tensor_create_scalar()", description->id);
    size_t bytes;
    GB_TRY(gb_logical_tensor_get_mem_size(description, &bytes)); /* the description is sound */
    gb_tensor *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    made->description = *description;
    gb_logical_tensor_normalize(&made->description);
    gb_kept_digest_init(&made->digest);
    made->engine = gb_engine_retain(engine);
    gb_status status = attach(made, handle);
    if (status == GB_SUCCESS)
        *tensor = made;
    else
        gb_tensor_destroy(made);
    return status;
}

gb_status gb_tensor_create_scalar(
        gb_tensor **tensor, const gb_logical_tensor *description, const void *value)
{
    if (!tensor || !description || !value || value == GB_MEMORY_ALLOCATE)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_create_scalar: NULL argument");
    if (description->property != GB_PROPERTY_HOST_SCALAR)
        return gb_fail(GB_INVALID_ARGUMENTS, "tensor %zu is not a host scalar", description->id);
    GB_TRY(gb_logical_tensor_check(description));
    gb_tensor *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    made->description = *description;
    gb_kept_digest_init(&made->digest);
    memcpy(&made->scalar, value, gb_data_type_bytes(description->data_type, 1));
    *tensor = made;
    return GB_SUCCESS;
}

gb_status gb_tensor_destroy(gb_tensor *tensor)
{
    if (!tensor)
        return GB_SUCCESS;
    if (tensor->engine) {
        drop_memory(tensor);
        gb_engine_release(tensor->engine);
    }
    gb_kept_digest_clear(&tensor->digest);
    free(tensor);
    return GB_SUCCESS;
}

gb_status gb_tensor_get_data_handle(const gb_tensor *tensor, void **handle)
{
    if (!tensor || !handle)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_get_data_handle: NULL argument");
    *handle = tensor->handle;
    return GB_SUCCESS;
}

gb_status gb_tensor_set_data_handle(gb_tensor *tensor, void *handle)
{
    if (!tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_set_data_handle: NULL argument");
    if (!tensor->engine)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "tensor %zu is a host scalar: its value cannot be re-pointed",
                tensor->description.id);
    return attach(tensor, handle);
}

gb_status gb_tensor_get_engine(const gb_tensor *tensor, const gb_engine **engine)
{
    if (!tensor || !engine)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_get_engine: NULL argument");
    *engine = tensor->engine;
    return GB_SUCCESS;
}

gb_status gb_tensor_get_logical_tensor(const gb_tensor *tensor, gb_logical_tensor *description)
{
    if (!tensor || !description)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_get_logical_tensor: NULL argument");
    *description = tensor->description;
    return GB_SUCCESS;
}

void *gb_tensor_memory(const gb_tensor *tensor)
{
    return tensor->engine ? tensor->handle : (void *)(uintptr_t)&tensor->scalar;
}

/* Digests -------------------------------------------------------------------------------------- */

typedef struct digest_request {
    const gb_tensor *tensor;
    size_t bytes;
    gb_stream *stream;
} digest_request;

static gb_status take_digest(const void *context, gb_digest *digest)
{
    const digest_request *r = context;
    if (r->tensor->engine)
        return r->stream->engine->backend->digest(
                r->stream, r->tensor->handle, 0, r->bytes, digest);
    *digest = gb_digest_memory(&r->tensor->scalar, r->bytes);
    return GB_SUCCESS;
}

bool gb_tensor_has_digest(const gb_tensor *tensor)
{
    gb_digest digest;
    gb_kept_digest *kept = (gb_kept_digest *)(uintptr_t)&tensor->digest; /* only looked at */
    return !tensor->engine || gb_kept_digest_find(kept, &digest);
}

gb_status gb_tensor_digest(
        const gb_tensor *tensor, size_t bytes, gb_stream *stream, gb_digest *digest)
{
    gb_kept_digest *kept = (gb_kept_digest *)(uintptr_t)&tensor->digest; /* locks itself */
    if (gb_kept_digest_find(kept, digest))
        return GB_SUCCESS;
    size_t own;
    gb_status status = gb_logical_tensor_get_mem_size(&tensor->description, &own);
    bool whole = status == GB_SUCCESS && own != SIZE_MAX && own >= bytes;
    const digest_request request = {tensor, whole ? own : bytes, stream};
    /* A description of less than is read says nothing about what is read. */
    return whole ? gb_kept_digest_get(kept, take_digest, &request, digest)
                 : take_digest(&request, digest);
}

/* Reaching the memory from the host ------------------------------------------------------------ */

/* `bytes` of the tensor's memory from `offset` on, or all of it. */
static gb_status map(const gb_tensor *tensor, gb_stream *stream, bool all, size_t offset,
        size_t bytes, const char *what, void **pointer)
{
    size_t own;
    if (!tensor->engine)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: tensor %zu is a host scalar", what,
                tensor->description.id);
    if (!gb_engines_share(tensor->engine, stream->engine))
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: tensor %zu is of another engine than the stream",
                what, tensor->description.id);
    GB_TRY(gb_logical_tensor_get_mem_size(&tensor->description, &own));
    if (own == SIZE_MAX || !tensor->handle)
        return gb_fail(
                GB_INVALID_ARGUMENTS, "%s: tensor %zu has no memory", what, tensor->description.id);
    if (all)
        bytes = own;
    if (offset > own || bytes > own - offset)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "%s: %zu bytes from %zu are not in the %zu of tensor %zu", what, bytes, offset, own,
                tensor->description.id);
    return tensor->engine->backend->map(
            tensor->engine, stream, tensor->handle, offset, bytes, pointer);
}

static gb_status unmap(const gb_tensor *tensor, gb_stream *stream, void *pointer)
{
    return tensor->engine->backend->unmap(tensor->engine, stream, tensor->handle, pointer);
}

gb_status gb_tensor_write(
        gb_tensor *tensor, gb_stream *stream, size_t offset, size_t bytes, const void *data)
{
    void *pointer;
    if (!tensor || !stream || (bytes && !data))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_write: NULL argument");
    gb_kept_digest_forget(&tensor->digest);
    GB_TRY(map(tensor, stream, false, offset, bytes, __func__, &pointer));
    if (bytes)
        memcpy(pointer, data, bytes);
    return unmap(tensor, stream, pointer);
}

gb_status gb_tensor_read(
        const gb_tensor *tensor, gb_stream *stream, size_t offset, size_t bytes, void *data)
{
    void *pointer;
    if (!tensor || !stream || (bytes && !data))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_read: NULL argument");
    GB_TRY(map(tensor, stream, false, offset, bytes, __func__, &pointer));
    if (bytes)
        memcpy(data, pointer, bytes);
    return unmap(tensor, stream, pointer);
}

gb_status gb_tensor_map(gb_tensor *tensor, gb_stream *stream, void **pointer)
{
    if (!tensor || !stream || !pointer)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_map: NULL argument");
    return map(tensor, stream, true, 0, 0, __func__, pointer);
}

gb_status gb_tensor_unmap(gb_tensor *tensor, gb_stream *stream, void *pointer)
{
    if (!tensor || !stream || !pointer || !tensor->engine)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_unmap: NULL argument or host scalar");
    gb_kept_digest_forget(&tensor->digest);
    return unmap(tensor, stream, pointer);
}
