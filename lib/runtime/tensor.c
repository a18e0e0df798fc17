/* Tensors: a description with memory. */
#include "base/memory.h"
#include "base/status.h"
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

static void drop_memory(gb_tensor *tensor)
{
    if (tensor->owned)
        gb_engine_free(tensor->engine, tensor->handle);
    tensor->handle = NULL;
    tensor->owned = false;
}

static gb_status allocate(gb_tensor *tensor, size_t bytes)
{
    void *memory = gb_engine_malloc(tensor->engine, bytes);
    if (!memory)
        return GB_OUT_OF_MEMORY;
    drop_memory(tensor);
    tensor->handle = memory;
    tensor->owned = true;
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
    if (handle != GB_MEMORY_ALLOCATE) {
        drop_memory(tensor);
        tensor->handle = handle;
        tensor->deferred = false;
        return GB_SUCCESS;
    }
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

gb_digest gb_tensor_digest(const gb_tensor *tensor, size_t bytes, const gb_thread_pool *threads)
{
    gb_kept_digest *kept = (gb_kept_digest *)(uintptr_t)&tensor->digest; /* locks itself */
    gb_digest known;
    if (gb_kept_digest_find(kept, &known))
        return known;
    size_t own;
    gb_status status = gb_logical_tensor_get_mem_size(&tensor->description, &own);
    bool whole = status == GB_SUCCESS && own != SIZE_MAX && own >= bytes;
    /* A description of less than is read says nothing about what is read. */
    return whole ? gb_kept_digest_get(kept, gb_tensor_memory(tensor), own, threads)
                 : gb_digest_memory(gb_tensor_memory(tensor), bytes, threads);
}
