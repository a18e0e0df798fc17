/* Functions of OpenCL that stand in front of the loader's and fail when a test says so: one call,
 * one function, or all calls from one on, as those to a device that is lost. What was asked of a
 * lost device is over, so functions that wait, and those that give something up, do so and then
 * report. */
#ifndef GB_TESTS_OPENCL_FAULTS_H
#define GB_TESTS_OPENCL_FAULTS_H

#ifndef _GNU_SOURCE
#error "dlsym(RTLD_NEXT) needs _GNU_SOURCE"
#endif
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The call that fails, counted from the last reset; 0: none. With `lost` all behind it fail, too. */
static atomic_int failing, n_calls;
static atomic_bool lost;
static const char *_Atomic failed = "none"; /* the function that failed first */
static const char *_Atomic broken;          /* one that always fails, or NULL */
static atomic_int n_broken;                 /* calls of it */
static atomic_int n_held;                   /* shared memory, and what the tests' allocator made */

/* Call number n + 1 from now on fails; n < 0: none does. */
static void fail_at(int n, bool and_all_behind)
{
    atomic_store(&failing, 0);
    atomic_store(&lost, and_all_behind);
    atomic_store(&n_calls, 0);
    atomic_store(&failing, n + 1);
}

static bool fails(const char *name)
{
    const char *always = atomic_load(&broken);
    int at = atomic_load(&failing), call = atomic_fetch_add(&n_calls, 1) + 1;
    bool is_broken = always && strcmp(always, name) == 0;
    if (call == at)
        atomic_store(&failed, name);
    atomic_fetch_add(&n_broken, is_broken);
    return is_broken || call == at || (at && call > at && atomic_load(&lost));
}

static cl_int failure(void)
{
    return atomic_load(&lost) ? CL_DEVICE_NOT_AVAILABLE : CL_OUT_OF_RESOURCES;
}

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    cr_assert(found, "%s is missing", name);
    return found;
}

#define FAULTY_BEGIN(type, name, parameters)                                                       \
    CL_API_ENTRY type CL_API_CALL name parameters                                                  \
    {                                                                                              \
        type(*call) parameters;                                                                    \
        void *found = real(#name);                                                                 \
        memcpy(&call, &found, sizeof call);

/* Functions that return an error. */
#define FAULTY(name, parameters, arguments)                                                        \
    FAULTY_BEGIN(cl_int, name, parameters)                                                         \
    return fails(#name) ? failure() : call arguments;                                              \
    }
/* The same of those that wait, or give something up. */
#define FAULTY_AFTER(name, parameters, arguments)                                                  \
    FAULTY_BEGIN(cl_int, name, parameters)                                                         \
    cl_int result = call arguments;                                                                \
    return fails(#name) ? failure() : result;                                                      \
    }
/* Those that return an object, and leave the error. */
#define FAULTY_MAKER(type, name, parameters, arguments)                                            \
    FAULTY_BEGIN(type, name, parameters)                                                           \
    if (!fails(#name))                                                                             \
        return call arguments;                                                                     \
    *error = atomic_load(&lost) ? CL_DEVICE_NOT_AVAILABLE : CL_OUT_OF_HOST_MEMORY;                 \
    return NULL;                                                                                   \
    }
/* Those that tell a property of an object. */
#define FAULTY_INFO(name, object, kind)                                                            \
    FAULTY(name, (object of, kind what, size_t bytes, void *value, size_t *needed),                \
            (of, what, bytes, value, needed))
#define FAULTY_RETAIN(name, object) FAULTY(name, (object of), (of))

FAULTY_INFO(clGetDeviceInfo, cl_device_id, cl_device_info)
FAULTY_INFO(clGetContextInfo, cl_context, cl_context_info)
FAULTY_INFO(clGetCommandQueueInfo, cl_command_queue, cl_command_queue_info)
FAULTY_INFO(clGetMemObjectInfo, cl_mem, cl_mem_info)
FAULTY_INFO(clGetProgramInfo, cl_program, cl_program_info)
FAULTY_INFO(clGetEventInfo, cl_event, cl_event_info)
FAULTY_INFO(clGetEventProfilingInfo, cl_event, cl_profiling_info)
FAULTY_RETAIN(clRetainContext, cl_context)
FAULTY_RETAIN(clRetainCommandQueue, cl_command_queue)
FAULTY_RETAIN(clRetainMemObject, cl_mem)
FAULTY_RETAIN(clRetainProgram, cl_program)
FAULTY_RETAIN(clRetainEvent, cl_event)

FAULTY_MAKER(cl_context, clCreateContext,
        (const cl_context_properties *properties, cl_uint n, const cl_device_id *devices,
                void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                void *context, cl_int *error),
        (properties, n, devices, notify, context, error))
FAULTY_MAKER(cl_command_queue, clCreateCommandQueue,
        (cl_context context, cl_device_id on, cl_command_queue_properties properties,
                cl_int *error),
        (context, on, properties, error))
FAULTY_MAKER(cl_mem, clCreateBuffer,
        (cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error),
        (context, flags, bytes, host, error))
FAULTY_MAKER(cl_program, clCreateProgramWithSource,
        (cl_context context, cl_uint n, const char **text, const size_t *lengths, cl_int *error),
        (context, n, text, lengths, error))
FAULTY_MAKER(cl_program, clCreateProgramWithBinary,
        (cl_context context, cl_uint n, const cl_device_id *devices, const size_t *bytes,
                const unsigned char **binaries, cl_int *states, cl_int *error),
        (context, n, devices, bytes, binaries, states, error))
FAULTY_MAKER(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *error),
        (program, name, error))
FAULTY_MAKER(void *, clEnqueueMapBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocks, cl_map_flags flags, size_t offset,
                size_t bytes, cl_uint n, const cl_event *waits, cl_event *event, cl_int *error),
        (queue, buffer, blocks, flags, offset, bytes, n, waits, event, error))
FAULTY(clBuildProgram,
        (cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
                void(CL_CALLBACK *notify)(cl_program, void *), void *context),
        (program, n, devices, options, notify, context))
FAULTY(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t bytes, const void *value),
        (kernel, index, bytes, value))
FAULTY(clSetKernelArgSVMPointer, (cl_kernel kernel, cl_uint index, const void *value),
        (kernel, index, value))
FAULTY(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint ndims, const size_t *offset,
                const size_t *global, const size_t *local, cl_uint n, const cl_event *waits,
                cl_event *event),
        (queue, kernel, ndims, offset, global, local, n, waits, event))
FAULTY(clEnqueueMarkerWithWaitList,
        (cl_command_queue queue, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, n, waits, event))
FAULTY(clEnqueueSVMMap,
        (cl_command_queue queue, cl_bool blocks, cl_map_flags flags, void *memory, size_t bytes,
                cl_uint n, const cl_event *waits, cl_event *event),
        (queue, blocks, flags, memory, bytes, n, waits, event))
FAULTY_AFTER(clEnqueueSVMUnmap,
        (cl_command_queue queue, void *memory, cl_uint n, const cl_event *waits, cl_event *event),
        (queue, memory, n, waits, event))
FAULTY_AFTER(clEnqueueUnmapMemObject,
        (cl_command_queue queue, cl_mem memory, void *mapped, cl_uint n, const cl_event *waits,
                cl_event *event),
        (queue, memory, mapped, n, waits, event))
FAULTY_AFTER(clFlush, (cl_command_queue queue), (queue))
FAULTY_AFTER(clFinish, (cl_command_queue queue), (queue))
FAULTY_AFTER(clWaitForEvents, (cl_uint n, const cl_event *events), (n, events))

/* Events that a device completes with an error. */
typedef struct faulty_callback {
    void(CL_CALLBACK *notify)(cl_event event, cl_int state, void *context);
    void *context;
} faulty_callback;

static void CL_CALLBACK notify_failure(cl_event event, cl_int state, void *context)
{
    faulty_callback callback = *(faulty_callback *)context;
    (void)state;
    free(context);
    callback.notify(event, failure(), callback.context);
}

FAULTY_BEGIN(cl_int, clSetEventCallback,
        (cl_event event, cl_int state, void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
                void *context))
if (fails("clSetEventCallback"))
    return failure();
if (!fails("a command"))
    return call(event, state, notify, context);
faulty_callback *callback = malloc(sizeof *callback);
*callback = (faulty_callback){notify, context};
return call(event, state, notify_failure, callback);
}

/* Shared memory, which is counted. */
FAULTY_BEGIN(void *, clSVMAlloc,
        (cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment))
void *made = fails("clSVMAlloc") ? NULL : call(context, flags, bytes, alignment);
atomic_fetch_add(&n_held, made != NULL);
return made;
}

CL_API_ENTRY void CL_API_CALL clSVMFree(cl_context context, void *memory)
{
    void (*call)(cl_context, void *);
    void *found = real("clSVMFree");
    memcpy(&call, &found, sizeof call);
    atomic_fetch_sub(&n_held, memory != NULL);
    call(context, memory);
}

static clHostMemAllocINTEL_fn real_host_alloc;
static clSharedMemAllocINTEL_fn real_shared_alloc;
static clMemBlockingFreeINTEL_fn real_free;
static clSetKernelArgMemPointerINTEL_fn real_set_pointer;

static void *CL_API_CALL faulty_shared_alloc(cl_context context, cl_device_id on,
        const cl_mem_properties_intel *properties, size_t bytes, cl_uint alignment, cl_int *error)
{
    *error = failure();
    void *made = fails("clSharedMemAllocINTEL")
                         ? NULL
                         : real_shared_alloc(context, on, properties, bytes, alignment, error);
    atomic_fetch_add(&n_held, made != NULL);
    return made;
}

static void *CL_API_CALL faulty_host_alloc(cl_context context,
        const cl_mem_properties_intel *properties, size_t bytes, cl_uint alignment, cl_int *error)
{
    *error = failure();
    void *made = fails("clHostMemAllocINTEL")
                         ? NULL
                         : real_host_alloc(context, properties, bytes, alignment, error);
    atomic_fetch_add(&n_held, made != NULL);
    return made;
}

static cl_int CL_API_CALL counted_free(cl_context context, void *memory)
{
    atomic_fetch_sub(&n_held, memory != NULL);
    return real_free(context, memory);
}

static cl_int CL_API_CALL faulty_set_pointer(cl_kernel kernel, cl_uint index, const void *memory)
{
    return fails("clSetKernelArgMemPointerINTEL") ? failure()
                                                  : real_set_pointer(kernel, index, memory);
}

static const clHostMemAllocINTEL_fn host_alloc_front = faulty_host_alloc;
static const clSharedMemAllocINTEL_fn shared_alloc_front = faulty_shared_alloc;
static const clMemBlockingFreeINTEL_fn free_front = counted_free;
static const clSetKernelArgMemPointerINTEL_fn set_pointer_front = faulty_set_pointer;

FAULTY_BEGIN(void *, clGetExtensionFunctionAddressForPlatform,
        (cl_platform_id platform, const char *name))
static const struct {
    const char *name;
    void *kept;        /* where the function goes */
    const void *front; /* where the one in front of it is */
} fronts[] = {
        {"clHostMemAllocINTEL", &real_host_alloc, &host_alloc_front},
        {"clSharedMemAllocINTEL", &real_shared_alloc, &shared_alloc_front},
        {"clMemBlockingFreeINTEL", &real_free, &free_front},
        {"clSetKernelArgMemPointerINTEL", &real_set_pointer, &set_pointer_front},
};
if (fails("clGetExtensionFunctionAddressForPlatform"))
    return NULL;
void *address = call(platform, name);
for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++)
    if (address && strcmp(fronts[i].name, name) == 0) {
        memcpy(fronts[i].kept, &address, sizeof address);
        memcpy(&address, fronts[i].front, sizeof address);
    }
return address;
}

#endif
