/* The OpenCL engine with what an application brings along, and calls of OpenCL that fail: each in
 * turn. Skipped where there is no device.
 *
 * The functions of OpenCL that are defined here stand in front of the loader's. */
#define _GNU_SOURCE
#include "runtime_case.h"

#include <dlfcn.h>
#include <graphbench/graphbench_ocl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { ROWS = 7, COLUMNS = 9, COUNT = ROWS * COLUMNS };

/* Failing calls -------------------------------------------------------------------------------- */

/* The call that fails, counted from the last reset; 0: none. */
static atomic_int failing, n_calls;

static const char *failed = "none"; /* the function that failed last */
static const char *_Atomic broken;  /* one that always fails, or NULL */

static bool fails(const char *name)
{
    const char *always = atomic_load(&broken);
    bool now = atomic_fetch_add(&n_calls, 1) + 1 == atomic_load(&failing) ||
               (always && strcmp(always, name) == 0);
    if (now)
        failed = name;
    return now;
}

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    cr_assert(found, "%s is missing", name);
    return found;
}

/* Functions that return an error, and those that return an object and leave the error. Memory that
 * the device does not unmap stays held by it: that call is left out. */
#define FAULTY(name, parameters, arguments)                                                        \
    CL_API_ENTRY cl_int CL_API_CALL name parameters                                                \
    {                                                                                              \
        cl_int(*call) parameters;                                                                  \
        void *found = real(#name);                                                                 \
        memcpy(&call, &found, sizeof call);                                                        \
        return fails(#name) ? CL_OUT_OF_RESOURCES : call arguments;                                \
    }
#define FAULTY_MAKER(type, name, parameters, arguments)                                            \
    CL_API_ENTRY type CL_API_CALL name parameters                                                  \
    {                                                                                              \
        type(*call) parameters;                                                                    \
        void *found = real(#name);                                                                 \
        memcpy(&call, &found, sizeof call);                                                        \
        if (!fails(#name))                                                                         \
            return call arguments;                                                                 \
        *error = CL_OUT_OF_HOST_MEMORY;                                                            \
        return NULL;                                                                               \
    }

FAULTY_MAKER(cl_mem, clCreateBuffer,
        (cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error),
        (context, flags, bytes, host, error))
FAULTY_MAKER(cl_program, clCreateProgramWithSource,
        (cl_context context, cl_uint n, const char **text, const size_t *lengths, cl_int *error),
        (context, n, text, lengths, error))
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
FAULTY(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint ndims, const size_t *offset,
                const size_t *global, const size_t *local, cl_uint n, const cl_event *waits,
                cl_event *event),
        (queue, kernel, ndims, offset, global, local, n, waits, event))
FAULTY(clSetEventCallback,
        (cl_event event, cl_int state, void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
                void *context),
        (event, state, notify, context))

/* Cases ---------------------------------------------------------------------------------------- */

static cl_device_id device;
static cl_context context;

static void open_device(void)
{
    size_t count = 0;
    cl_int error;
    gb_engine *engine;
    runtime_ok(gb_engine_get_count(GB_ENGINE_GPU, &count));
    if (count == 0)
        cr_skip_test("no OpenCL device");
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_GPU, 0));
    runtime_ok(gb_ocl_engine_get_device(engine, &device));
    runtime_ok(gb_engine_destroy(engine));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    cr_assert(context);
}

static void close_device(void)
{
    if (context)
        clReleaseContext(context);
}

TestSuite(opencl, .init = open_device, .fini = close_device);

static cl_uint references(cl_context of)
{
    cl_uint n = 0;
    clGetContextInfo(of, CL_CONTEXT_REFERENCE_COUNT, sizeof n, &n, NULL);
    return n;
}

/* A device lets go of what finished commands held a little later, on a thread of its own. */
static bool falls_to(cl_context of, cl_uint count)
{
    const struct timespec moment = {0, 10000000};
    for (int i = 0; i < 500 && references(of) != count; i++)
        nanosleep(&moment, NULL);
    return references(of) == count;
}

static gb_engine *make_engine(gb_ocl_memory_kind kind)
{
    gb_engine *engine;
    runtime_ok(gb_ocl_engine_create_with_context(&engine, device, context, kind, NULL));
    return engine;
}

/* y = a + b */
static gb_status compile(gb_engine *engine, gb_compiled_partition **compiled)
{
    gb_logical_tensor t[3];
    const gb_logical_tensor *in[] = {&t[0], &t[1]}, *out[] = {&t[2]};
    gb_graph *graph;
    for (size_t i = 0; i < 3; i++)
        t[i] = runtime_matrix(i, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, GB_ENGINE_GPU));
    runtime_op(graph, 0, GB_OP_ADD, 2, in, &t[2]);
    gb_partition *partition = runtime_partition(graph);
    gb_status status = gb_partition_compile(partition, compiled, 2, in, 1, out, engine);
    gb_partition_destroy(partition);
    return status;
}

static cl_mem buffer(cl_context of, float value)
{
    float values[COUNT];
    cl_int error;
    for (int i = 0; i < COUNT; i++)
        values[i] = value;
    return clCreateBuffer(
            of, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof values, values, &error);
}

static gb_tensor *tensor_on(
        const gb_engine *engine, size_t id, gb_ocl_memory_kind kind, void *handle)
{
    gb_logical_tensor description = runtime_matrix(id, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    gb_tensor *tensor;
    runtime_ok(gb_ocl_tensor_create(&tensor, &description, engine, kind, handle));
    return tensor;
}

static void expect_all(const gb_tensor *tensor, gb_stream *stream, float value)
{
    float values[COUNT];
    runtime_ok(gb_tensor_read(tensor, stream, 0, sizeof values, values));
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(values[i], value, "element %d is %g", i, (double)values[i]);
}

Test(opencl, runs_behind_events_of_the_application)
{
    cl_int error;
    cl_uint before = references(context);
    gb_engine *engine = make_engine(GB_OCL_MEMORY_BUFFER);
    cl_command_queue queue =
            clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
    gb_stream *stream;
    gb_compiled_partition *compiled;
    runtime_ok(gb_ocl_stream_create_with_queue(&stream, engine, queue));
    runtime_ok(compile(engine, &compiled));
    cl_mem memory[] = {buffer(context, 1), buffer(context, 2), buffer(context, 0)};
    gb_tensor *t[3];
    for (size_t i = 0; i < 3; i++)
        t[i] = tensor_on(engine, i, GB_OCL_MEMORY_BUFFER, memory[i]);
    cl_event gate = clCreateUserEvent(context, &error), done, again;
    const gb_tensor *in[] = {t[0], t[1]}, *sum[] = {t[2], t[1]};
    gb_tensor *out[] = {t[2]}, *first[] = {t[0]};
    runtime_ok(gb_ocl_compiled_partition_execute(
            compiled, stream, 2, in, 1, out, NULL, 1, &gate, &done));
    /* Behind it by the order of the calls alone: 3 + 2, over an input of the first. */
    runtime_ok(gb_ocl_compiled_partition_execute(
            compiled, stream, 2, sum, 1, first, NULL, 0, NULL, &again));
    cl_int state;
    clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    cr_assert_gt(state, CL_COMPLETE, "it did not wait for the event");
    clSetUserEventStatus(gate, CL_COMPLETE);
    cr_assert_eq(clWaitForEvents(1, &again), CL_SUCCESS);
    expect_all(t[2], stream, 3);
    expect_all(t[0], stream, 5);
    clReleaseEvent(gate);
    clReleaseEvent(done);
    clReleaseEvent(again);
    for (int i = 0; i < 3; i++) {
        gb_tensor_destroy(t[i]);
        clReleaseMemObject(memory[i]);
    }
    gb_compiled_partition_destroy(compiled);
    runtime_ok(gb_stream_destroy(stream));
    clReleaseCommandQueue(queue);
    gb_engine_destroy(engine);
    cr_assert(falls_to(context, before));
}

Test(opencl, refuses_what_is_of_another_context)
{
    cl_int error;
    gb_engine *engine = make_engine(GB_OCL_MEMORY_BUFFER);
    cl_context other = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    cl_command_queue queue = clCreateCommandQueue(other, device, 0, &error);
    cl_mem foreign = buffer(other, 1), own = buffer(context, 1);
    gb_logical_tensor description = runtime_matrix(0, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    gb_logical_tensor larger = runtime_matrix(0, ROWS, COLUMNS + 1, GB_PROPERTY_VARIABLE);
    gb_tensor *tensor;
    gb_stream *stream;
    cr_assert_eq(gb_ocl_tensor_create(&tensor, &description, engine, GB_OCL_MEMORY_BUFFER, foreign),
            GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_ocl_tensor_create(&tensor, &larger, engine, GB_OCL_MEMORY_BUFFER, own),
            GB_INVALID_ARGUMENTS);
    cr_assert_eq(gb_ocl_stream_create_with_queue(&stream, engine, queue), GB_INVALID_ARGUMENTS);
    clReleaseMemObject(foreign);
    clReleaseMemObject(own);
    clReleaseCommandQueue(queue);
    clReleaseContext(other);
    gb_engine_destroy(engine);
}

Test(opencl, shared_virtual_memory_beside_buffers)
{
    cl_device_svm_capabilities svm = 0;
    clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL);
    if (!svm)
        cr_skip_test("no shared virtual memory");
    gb_engine *engine = make_engine(GB_OCL_MEMORY_BUFFER);
    gb_stream *stream;
    gb_compiled_partition *compiled;
    runtime_ok(gb_stream_create(&stream, engine));
    runtime_ok(compile(engine, &compiled));
    void *shared = clSVMAlloc(context, CL_MEM_READ_WRITE, COUNT * sizeof(float), 64);
    cl_mem memory = buffer(context, 4);
    gb_tensor *a = tensor_on(engine, 0, GB_OCL_MEMORY_BUFFER, memory);
    gb_tensor *y = tensor_on(engine, 2, GB_OCL_MEMORY_SVM, shared);
    runtime_ok(gb_compiled_partition_execute(
            compiled, stream, 2, (const gb_tensor *[]){a, a}, 1, (gb_tensor *[]){y}, NULL));
    expect_all(y, stream, 8);
    gb_tensor_destroy(a);
    gb_tensor_destroy(y);
    clReleaseMemObject(memory);
    clSVMFree(context, shared);
    gb_compiled_partition_destroy(compiled);
    runtime_ok(gb_stream_destroy(stream));
    gb_engine_destroy(engine);
}

static atomic_int n_held;

static void *hold(size_t bytes, size_t alignment, cl_device_id on, cl_context of)
{
    cl_int error;
    (void)alignment, (void)on;
    void *made = clCreateBuffer(of, CL_MEM_READ_WRITE, bytes, NULL, &error);
    atomic_fetch_add(&n_held, made != NULL);
    return made;
}

static void let_go(void *memory, cl_device_id on, cl_context of, cl_event event)
{
    (void)on, (void)of, (void)event;
    clReleaseMemObject(memory);
    atomic_fetch_sub(&n_held, 1);
}

/* Makes tensors, compiles, executes and reads; frees all. */
static gb_status run_all(gb_engine *engine)
{
    gb_stream *stream = NULL;
    gb_compiled_partition *compiled = NULL;
    gb_tensor *t[3] = {NULL};
    float values[COUNT] = {0};
    gb_status status = gb_stream_create(&stream, engine);
    if (status == GB_SUCCESS)
        status = compile(engine, &compiled);
    for (size_t i = 0; i < 3 && status == GB_SUCCESS; i++) {
        gb_logical_tensor description = runtime_matrix(i, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
        status = gb_tensor_create(&t[i], &description, engine, GB_MEMORY_ALLOCATE);
        for (int k = 0; k < COUNT; k++)
            values[k] = (float)i + 1;
        if (status == GB_SUCCESS)
            status = gb_tensor_write(t[i], stream, 0, sizeof values, values);
    }
    if (status == GB_SUCCESS)
        status = gb_compiled_partition_execute(compiled, stream, 2,
                (const gb_tensor *[]){t[0], t[1]}, 1, (gb_tensor *[]){t[2]}, NULL);
    if (status == GB_SUCCESS)
        status = gb_stream_wait(stream);
    if (status == GB_SUCCESS)
        status = gb_tensor_read(t[2], stream, 0, sizeof values, values);
    for (int k = 0; k < COUNT && status == GB_SUCCESS; k++)
        cr_assert_eq(values[k], 3);
    for (int i = 0; i < 3; i++)
        gb_tensor_destroy(t[i]);
    gb_compiled_partition_destroy(compiled);
    if (stream)
        gb_stream_destroy(stream);
    return status;
}

Test(opencl, every_failing_call_is_a_status_and_leaks_nothing)
{
    const gb_ocl_allocator allocator = {hold, let_go};
    cl_uint before = references(context);
    runtime_ok(gb_set_compiled_partition_cache_capacity(0));
    int n = 0;
    for (gb_status status = GB_RUNTIME_ERROR; status != GB_SUCCESS; n++) {
        gb_engine *engine;
        atomic_store(&failing, 0);
        runtime_ok(gb_ocl_engine_create_with_context(
                &engine, device, context, GB_OCL_MEMORY_BUFFER, &allocator));
        atomic_store(&n_calls, 0);
        atomic_store(&failing, n + 1);
        status = run_all(engine);
        bool was_reached = atomic_load(&n_calls) > n;
        atomic_store(&failing, 0);
        cr_assert(status == GB_SUCCESS || *gb_last_error(), "%s, call %d: no message", failed, n);
        gb_engine_destroy(engine);
        cr_assert_eq(atomic_load(&n_held), 0, "%s, call %d: memory is left", failed, n);
        cr_assert(falls_to(context, before), "%s, call %d: the context is held", failed, n);
        if (status == GB_SUCCESS && was_reached)
            status = GB_RUNTIME_ERROR; /* a callback that cannot be set is waited for */
        cr_assert_lt(n, 1000);
    }
    cr_assert_gt(n, 15);
}

/* Everything that is not on disk, in the engine or in a blob is built from source. */
Test(opencl, kernels_of_a_blob_are_not_built_again)
{
    uint8_t id[64], blob[1 << 20];
    size_t id_bytes = 0, bytes = 0, needed = 0;
    gb_engine *engine = make_engine(GB_OCL_MEMORY_BUFFER), *other = NULL;
    setenv("GB_OPENCL_CACHE", "off", 1);
    runtime_ok(gb_set_compiled_partition_cache_capacity(0));
    runtime_ok(run_all(engine));
    runtime_ok(gb_ocl_get_cache_blob_id(device, sizeof id, id, &id_bytes));
    cr_assert(id_bytes > 0 && id_bytes <= sizeof id);
    runtime_ok(gb_ocl_engine_get_cache_blob(engine, 0, NULL, &needed));
    cr_assert(needed > 0 && needed <= sizeof blob);
    runtime_ok(gb_ocl_engine_get_cache_blob(engine, sizeof blob, blob, &bytes));
    cr_assert_eq(bytes, needed);
    gb_engine_destroy(engine);

    atomic_store(&broken, "clCreateProgramWithSource");
    engine = make_engine(GB_OCL_MEMORY_BUFFER);
    cr_assert_neq(run_all(engine), GB_SUCCESS);
    gb_engine_destroy(engine);
    runtime_ok(gb_ocl_engine_create_from_cache_blob(
            &engine, device, context, GB_OCL_MEMORY_BUFFER, NULL, bytes, blob));
    runtime_ok(run_all(engine));
    gb_engine_destroy(engine);
    atomic_store(&broken, NULL);

    for (size_t cut = 0; cut < bytes; cut += 1 + cut) /* 0, 1, 3, 7, ... bytes are left */
        cr_assert_eq(gb_ocl_engine_create_from_cache_blob(
                             &other, device, context, GB_OCL_MEMORY_BUFFER, NULL, cut, blob),
                GB_INVALID_ARGUMENTS, "%zu bytes", cut);
    for (size_t at = 0; at < bytes; at += 1 + at / 2) {
        blob[at] ^= 1;
        cr_assert_eq(gb_ocl_engine_create_from_cache_blob(
                             &other, device, context, GB_OCL_MEMORY_BUFFER, NULL, bytes, blob),
                GB_INVALID_ARGUMENTS, "byte %zu", at);
        blob[at] ^= 1;
    }
}

enum { THREADS = 4, ROUNDS = 8 };

static void *run_often(void *engine)
{
    for (int i = 0; i < ROUNDS; i++)
        if (run_all(engine) != GB_SUCCESS)
            return engine;
    return NULL;
}

/* Two engines, each on a context of its own, and on the second device where there is one. */
Test(opencl, threads_share_engines_of_two_contexts)
{
    size_t count = 0;
    gb_engine *engines[2] = {make_engine(GB_OCL_MEMORY_AUTO), NULL};
    pthread_t threads[THREADS];
    runtime_ok(gb_engine_get_count(GB_ENGINE_GPU, &count));
    runtime_ok(gb_engine_create(&engines[1], GB_ENGINE_GPU, count > 1));
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_often, engines[i % 2]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failure;
        pthread_join(threads[i], &failure);
        cr_expect_null(failure);
    }
    for (int i = 0; i < 2; i++)
        gb_engine_destroy(engines[i]);
}
