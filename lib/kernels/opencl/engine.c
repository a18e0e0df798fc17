/* OpenCL engines: context, memory kind, allocator. */
#include "kernels/opencl/engine.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/opencl/program.h"

#include <stdlib.h>
#include <string.h>

static void find_usm(gb_cl_engine *e)
{
    cl_platform_id platform = e->device.platform;
    if (!e->device.unified_shared_memory)
        return;
    /* Functions come as addresses of data. */
    void *addresses[4] = {clGetExtensionFunctionAddressForPlatform(platform, "clHostMemAllocINTEL"),
            clGetExtensionFunctionAddressForPlatform(platform, "clSharedMemAllocINTEL"),
            clGetExtensionFunctionAddressForPlatform(platform, "clMemBlockingFreeINTEL"),
            clGetExtensionFunctionAddressForPlatform(platform, "clSetKernelArgMemPointerINTEL")};
    for (int i = 0; i < 4; i++)
        if (!addresses[i])
            return;
    memcpy(&e->usm.host_alloc, &addresses[0], sizeof addresses[0]);
    memcpy(&e->usm.shared_alloc, &addresses[1], sizeof addresses[0]);
    memcpy(&e->usm.free_blocking, &addresses[2], sizeof addresses[0]);
    memcpy(&e->usm.set_argument, &addresses[3], sizeof addresses[0]);
    cl_int error;
    void *probe = e->usm.shared_alloc(e->context, e->device.id, NULL, 64, 64, &error);
    e->shared_memory = probe && error == CL_SUCCESS;
    if (probe)
        e->usm.free_blocking(e->context, probe);
}

static gb_status choose_kind(gb_cl_engine *e, gb_ocl_memory_kind wanted)
{
    bool has_usm = e->usm.set_argument != NULL;
    bool has_svm =
            e->device.svm & (CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER);
    if (wanted == GB_OCL_MEMORY_AUTO)
        wanted = has_usm ? GB_OCL_MEMORY_USM : has_svm ? GB_OCL_MEMORY_SVM : GB_OCL_MEMORY_BUFFER;
    e->kind = wanted;
    if (wanted == GB_OCL_MEMORY_USM && !has_usm)
        return gb_fail(GB_UNIMPLEMENTED, "%s has no unified shared memory", e->device.name);
    if (wanted == GB_OCL_MEMORY_SVM && !has_svm)
        return gb_fail(GB_UNIMPLEMENTED, "%s has no shared virtual memory", e->device.name);
    return GB_SUCCESS;
}

static gb_status take_context(gb_cl_engine *e, cl_context context)
{
    cl_device_id ids[64];
    size_t bytes = 0;
    cl_int error;
    if (!context) {
        const cl_context_properties properties[] = {
                CL_CONTEXT_PLATFORM, (cl_context_properties)(void *)e->device.platform, 0};
        e->context = clCreateContext(properties, 1, &e->device.id, NULL, NULL, &error);
        return e->context ? GB_SUCCESS : gb_cl_fail(error, "creating a context");
    }
    error = clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof ids, ids, &bytes);
    if (error != CL_SUCCESS)
        return gb_fail(GB_INVALID_ARGUMENTS, "the context given for an engine is none");
    for (size_t i = 0; i < bytes / sizeof *ids; i++)
        if (ids[i] == e->device.id) {
            GB_CL_TRY(clRetainContext(context), "retaining a context");
            e->context = context;
            return GB_SUCCESS;
        }
    return gb_fail(
            GB_INVALID_ARGUMENTS, "the context given for an engine does not have its device");
}

static gb_status set_up(gb_cl_engine *e, const gb_engine *engine, const gb_interop *interop)
{
    const gb_cl_wishes *wishes = interop->extra;
    cl_int error;
    if (interop->device)
        GB_TRY(gb_cl_device_read(interop->device, &e->device));
    else
        e->device = *gb_cl_device_at(engine->index);
    GB_TRY(take_context(e, interop->context));
    find_usm(e);
    GB_TRY(choose_kind(e, wishes ? wishes->kind : GB_OCL_MEMORY_AUTO));
    if (wishes && wishes->allocator)
        e->allocator = *wishes->allocator;
    if (wishes && wishes->blob)
        GB_TRY(gb_cl_blob_read(
                &e->blob, gb_cl_device_digest(&e->device), wishes->blob_bytes, wishes->blob));
    e->shape = gb_cl_shape_choose(&e->device);
    e->queue = clCreateCommandQueue(e->context, e->device.id, 0, &error);
    return e->queue ? GB_SUCCESS : gb_cl_fail(error, "creating a queue");
}

gb_status gb_cl_engine_init(gb_engine *engine, const gb_interop *interop)
{
    gb_cl_engine *e = gb_calloc(1, sizeof *e);
    if (!e)
        return GB_OUT_OF_MEMORY;
    pthread_mutex_init(&e->lock, NULL);
    engine->state = e;
    gb_status status = set_up(e, engine, interop);
    if (status != GB_SUCCESS)
        gb_cl_engine_fini(engine);
    else
        gb_cl_device_describe(&e->device, engine->description, sizeof engine->description);
    return status;
}

void gb_cl_engine_fini(gb_engine *engine)
{
    gb_cl_engine *e = gb_cl_engine_of(engine);
    gb_cl_built_free_all(e);
    gb_cl_blob_free(e->blob);
    gb_cl_memory_free_all(e);
    if (e->queue)
        clReleaseCommandQueue(e->queue);
    if (e->context)
        clReleaseContext(e->context);
    pthread_mutex_destroy(&e->lock);
    free(e);
    engine->state = NULL;
}
