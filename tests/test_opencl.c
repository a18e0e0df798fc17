/* The OpenCL engine with what an application brings along, and calls of OpenCL that fail, each in
 * turn: for once, or with all behind it, as on a device that is lost. Skipped where there is no
 * device. */
#define _GNU_SOURCE
#include "opencl_faults.h"
#include "runtime_case.h"

#include <graphbench/graphbench_ocl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 7, COLUMNS = 9, COUNT = ROWS * COLUMNS };

static cl_device_id device;
static cl_context context;
static cl_uint unused_references; /* of the context while nobody uses it */

static cl_uint references(cl_context of)
{
    cl_uint n = 0;
    clGetContextInfo(of, CL_CONTEXT_REFERENCE_COUNT, sizeof n, &n, NULL);
    return n;
}

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
    unused_references = references(context);
}

static void close_device(void)
{
    if (context)
        clReleaseContext(context);
}

TestSuite(opencl, .init = open_device, .fini = close_device);

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

Test(opencl, refuses_kinds_that_there_are_not)
{
    gb_engine *engine = make_engine(GB_OCL_MEMORY_BUFFER), *other;
    gb_logical_tensor description = runtime_matrix(0, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    gb_ocl_memory_kind kind = (gb_ocl_memory_kind)(GB_OCL_MEMORY_USM + 1);
    cl_mem memory = buffer(context, 1);
    gb_tensor *tensor;
    gb_stream *stream;
    cr_expect_eq(gb_ocl_engine_create(&other, 0, kind), GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_ocl_engine_create_with_context(&other, device, context, kind, NULL),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_ocl_stream_create(
                         &stream, engine, (gb_ocl_stream_kind)(GB_OCL_STREAM_OUT_OF_ORDER + 1)),
            GB_INVALID_ARGUMENTS);
    cr_expect_eq(gb_ocl_tensor_create(&tensor, &description, engine, kind, memory),
            GB_INVALID_ARGUMENTS);
    for (int k = GB_OCL_MEMORY_AUTO; k <= GB_OCL_MEMORY_USM; k++)
        cr_expect_eq(gb_ocl_tensor_create(&tensor, &description, engine, (gb_ocl_memory_kind)k,
                             GB_MEMORY_ALLOCATE),
                GB_INVALID_ARGUMENTS);
    clReleaseMemObject(memory);
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

/* What is executed on one stream: c = a + b, with a = 1 and b = 2. */
typedef struct sum_case {
    gb_engine *engine;
    gb_stream *stream;
    gb_compiled_partition *compiled;
    gb_tensor *t[3];
} sum_case;

static void make_sum(sum_case *s, gb_ocl_stream_kind kind)
{
    s->engine = make_engine(GB_OCL_MEMORY_BUFFER);
    runtime_ok(gb_ocl_stream_create(&s->stream, s->engine, kind));
    runtime_ok(compile(s->engine, &s->compiled));
    for (int i = 0; i < 3; i++) {
        cl_mem memory = buffer(context, (float)((i + 1) % 3));
        s->t[i] = tensor_on(s->engine, (size_t)i, GB_OCL_MEMORY_BUFFER, memory);
        clReleaseMemObject(memory);
    }
}

/* The stream is gone, or goes. */
static void free_sum(sum_case *s)
{
    for (int i = 0; i < 3; i++)
        gb_tensor_destroy(s->t[i]);
    gb_compiled_partition_destroy(s->compiled);
    gb_stream_destroy(s->stream);
    gb_engine_destroy(s->engine);
}

/* Adds, behind an event of the application's. */
static gb_status add_behind(const sum_case *s, cl_event gate)
{
    return gb_ocl_compiled_partition_execute(s->compiled, s->stream, 2,
            (const gb_tensor *[]){s->t[0], s->t[1]}, 1, (gb_tensor *[]){s->t[2]}, NULL, 1, &gate,
            NULL);
}

/* Adds behind what was executed before. */
static gb_event *add_with_event(const sum_case *s)
{
    gb_event *event;
    runtime_ok(gb_compiled_partition_execute_with_events(s->compiled, s->stream, 2,
            (const gb_tensor *[]){s->t[0], s->t[1]}, 1, (gb_tensor *[]){s->t[2]}, NULL, 0, NULL,
            &event));
    return event;
}

/* An event of the application's that somebody waits for fails. */
static void fail_gate(cl_event gate)
{
    clSetUserEventStatus(gate, CL_OUT_OF_RESOURCES);
    clReleaseEvent(gate);
}

static void poll_event(const gb_event *event)
{
    const struct timespec moment = {0, 1000000};
    uint8_t complete = 0;
    while (!complete) {
        runtime_ok(gb_event_is_complete(event, &complete));
        nanosleep(&moment, NULL);
    }
}

Test(opencl, a_failed_dependency_is_told_to_who_waits_for_the_stream, .timeout = 60)
{
    cl_int error;
    for (int kind = GB_OCL_STREAM_IN_ORDER; kind <= GB_OCL_STREAM_OUT_OF_ORDER; kind++)
        for (int destroys = 0; destroys < 2; destroys++) {
            sum_case s;
            make_sum(&s, (gb_ocl_stream_kind)kind);
            cl_event gate = clCreateUserEvent(context, &error);
            runtime_ok(add_behind(&s, gate));
            fail_gate(gate);
            if (destroys) {
                cr_expect_eq(gb_stream_destroy(s.stream), GB_RUNTIME_ERROR);
                s.stream = NULL;
            } else {
                cr_expect_eq(gb_stream_wait(s.stream), GB_RUNTIME_ERROR);
                runtime_ok(gb_stream_wait(s.stream)); /* it was told */
            }
            free_sum(&s);
        }
    cr_expect(falls_to(context, unused_references));
}

/* On a queue out of order what comes behind waits for it, and fails, too. */
Test(opencl, a_failed_dependency_completes_events, .timeout = 60)
{
    cl_int error;
    for (int polls = 0; polls < 2; polls++) {
        sum_case s;
        make_sum(&s, GB_OCL_STREAM_OUT_OF_ORDER);
        cl_event gate = clCreateUserEvent(context, &error);
        runtime_ok(add_behind(&s, gate));
        gb_event *event = add_with_event(&s);
        fail_gate(gate);
        if (polls)
            poll_event(event);
        cr_expect_eq(gb_event_wait(event), GB_RUNTIME_ERROR);
        cr_expect_eq(gb_stream_wait(s.stream), GB_RUNTIME_ERROR);
        gb_event_destroy(event);
        free_sum(&s);
    }
    cr_expect(falls_to(context, unused_references));
}

Test(opencl, streams_go_on_after_a_failure, .timeout = 60)
{
    cl_int error;
    for (int kind = GB_OCL_STREAM_IN_ORDER; kind <= GB_OCL_STREAM_OUT_OF_ORDER; kind++)
        for (int waits = 0; waits < 2; waits++) {
            sum_case s;
            cl_command_queue queue;
            make_sum(&s, (gb_ocl_stream_kind)kind);
            runtime_ok(gb_ocl_stream_get_queue(s.stream, &queue));
            cl_event gate = clCreateUserEvent(context, &error);
            runtime_ok(add_behind(&s, gate));
            fail_gate(gate);
            clFinish(queue);
            if (waits)
                cr_expect_eq(gb_stream_wait(s.stream), GB_RUNTIME_ERROR);
            gb_event *event = add_with_event(&s);
            runtime_ok(gb_event_wait(event));
            expect_all(s.t[2], s.stream, 3);
            cr_expect_eq(gb_stream_wait(s.stream), waits ? GB_SUCCESS : GB_RUNTIME_ERROR);
            gb_event_destroy(event);
            free_sum(&s);
        }
}

Test(opencl, a_dependency_that_has_failed_is_told_at_once, .timeout = 60)
{
    cl_int error;
    sum_case s;
    make_sum(&s, GB_OCL_STREAM_IN_ORDER);
    cl_event gate = clCreateUserEvent(context, &error);
    clSetUserEventStatus(gate, CL_OUT_OF_RESOURCES);
    cr_expect_eq(add_behind(&s, gate), GB_RUNTIME_ERROR);
    clReleaseEvent(gate);
    runtime_ok(gb_stream_wait(s.stream));
    free_sum(&s);
}

/* Products of ones with constant weights, which are 0 until an event of the application's is complete, and 3 then. */
enum { PRODUCT_ROWS = 64, PRODUCT_COLUMNS = 16, WEIGHTS = PRODUCT_COLUMNS * PRODUCT_COLUMNS };
typedef struct late_weights {
    cl_event gate;
    float *host; /* NULL: a command of the application's writes them behind the gate */
} late_weights;

static void fill(float *values, int n, float value)
{
    for (int i = 0; i < n; i++)
        values[i] = value;
}

static void *open_gate(void *weights)
{
    const late_weights *w = weights;
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    if (w->host)
        fill(w->host, WEIGHTS, 3);
    clSetUserEventStatus(w->gate, CL_COMPLETE);
    return NULL;
}

static gb_compiled_partition *compile_product(
        gb_engine *engine, gb_engine_kind kind, gb_logical_tensor *t)
{
    const gb_logical_tensor *in[] = {&t[0], &t[1]}, *out[] = {&t[2]};
    gb_compiled_partition *compiled;
    gb_graph *graph;
    for (size_t i = 0; i < 3; i++)
        t[i] = runtime_matrix(i, i == 1 ? PRODUCT_COLUMNS : PRODUCT_ROWS, PRODUCT_COLUMNS,
                i == 1 ? GB_PROPERTY_CONSTANT : GB_PROPERTY_VARIABLE);
    runtime_ok(gb_graph_create(&graph, kind));
    runtime_op(graph, 0, GB_OP_MATMUL, 2, in, &t[2]);
    gb_partition *partition = runtime_partition(graph);
    runtime_ok(gb_partition_compile(partition, &compiled, 2, in, 1, out, engine));
    gb_partition_destroy(partition);
    return compiled;
}

static void expect_products(const gb_tensor *y, gb_stream *stream)
{
    float values[PRODUCT_ROWS * PRODUCT_COLUMNS];
    runtime_ok(gb_tensor_read(y, stream, 0, sizeof values, values));
    for (int i = 0; i < PRODUCT_ROWS * PRODUCT_COLUMNS; i++)
        cr_assert_eq(values[i], 3 * PRODUCT_COLUMNS, "product %d: %g", i, (double)values[i]);
}

/* Weights in a buffer of the application's, which a queue of the application's writes. */
Test(opencl, constants_are_read_behind_events_of_the_application, .timeout = 60)
{
    cl_int error;
    gb_engine *engine = make_engine(GB_OCL_MEMORY_BUFFER);
    gb_stream *stream;
    gb_logical_tensor described[3];
    gb_tensor *t[3];
    pthread_t thread;
    float ones[PRODUCT_ROWS * PRODUCT_COLUMNS], weights[WEIGHTS] = {0};
    runtime_ok(gb_stream_create(&stream, engine));
    gb_compiled_partition *compiled = compile_product(engine, GB_ENGINE_GPU, described);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    cl_mem memory = clCreateBuffer(
            context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof weights, weights, &error);
    for (int i = 0; i < 3; i += 2)
        runtime_ok(gb_tensor_create(&t[i], &described[i], engine, GB_MEMORY_ALLOCATE));
    runtime_ok(gb_ocl_tensor_create(&t[1], &described[1], engine, GB_OCL_MEMORY_BUFFER, memory));
    fill(ones, PRODUCT_ROWS * PRODUCT_COLUMNS, 1);
    fill(weights, WEIGHTS, 3);
    runtime_ok(gb_tensor_write(t[0], stream, 0, sizeof ones, ones));
    late_weights late = {clCreateUserEvent(context, &error), NULL};
    cl_event written;
    clEnqueueWriteBuffer(
            queue, memory, CL_FALSE, 0, sizeof weights, weights, 1, &late.gate, &written);
    clFlush(queue);
    cr_assert_eq(pthread_create(&thread, NULL, open_gate, &late), 0);
    runtime_ok(gb_ocl_compiled_partition_execute(compiled, stream, 2,
            (const gb_tensor *[]){t[0], t[1]}, 1, &t[2], NULL, 1, &written, NULL));
    pthread_join(thread, NULL);
    expect_products(t[2], stream);
    runtime_ok(gb_compiled_partition_execute(
            compiled, stream, 2, (const gb_tensor *[]){t[0], t[1]}, 1, &t[2], NULL));
    expect_products(t[2], stream);
    clReleaseEvent(late.gate);
    clReleaseEvent(written);
    clReleaseCommandQueue(queue);
    clReleaseMemObject(memory);
    for (int i = 0; i < 3; i++)
        gb_tensor_destroy(t[i]);
    gb_compiled_partition_destroy(compiled);
    runtime_ok(gb_stream_destroy(stream));
    gb_engine_destroy(engine);
}

/* Of the CPU engine, behind an execution on the device. */
Test(opencl, constants_are_read_behind_executions_elsewhere, .timeout = 60)
{
    cl_int error;
    sum_case s;
    gb_engine *engine;
    gb_stream *stream;
    gb_logical_tensor described[3];
    gb_tensor *t[3];
    pthread_t thread;
    float ones[PRODUCT_ROWS * PRODUCT_COLUMNS], weights[WEIGHTS] = {0};
    make_sum(&s, GB_OCL_STREAM_OUT_OF_ORDER);
    runtime_ok(gb_engine_create(&engine, GB_ENGINE_CPU, 0));
    runtime_ok(gb_stream_create(&stream, engine));
    gb_compiled_partition *compiled = compile_product(engine, GB_ENGINE_CPU, described);
    fill(ones, PRODUCT_ROWS * PRODUCT_COLUMNS, 1);
    runtime_ok(gb_tensor_create(&t[0], &described[0], engine, ones));
    runtime_ok(gb_tensor_create(&t[1], &described[1], engine, weights));
    runtime_ok(gb_tensor_create(&t[2], &described[2], engine, GB_MEMORY_ALLOCATE));
    late_weights late = {clCreateUserEvent(context, &error), weights};
    runtime_ok(add_behind(&s, late.gate));
    gb_event *event = add_with_event(&s);
    cr_assert_eq(pthread_create(&thread, NULL, open_gate, &late), 0);
    runtime_ok(gb_compiled_partition_execute_with_events(compiled, stream, 2,
            (const gb_tensor *[]){t[0], t[1]}, 1, &t[2], NULL, 1, (const gb_event *[]){event},
            NULL));
    pthread_join(thread, NULL);
    expect_products(t[2], stream);
    clReleaseEvent(late.gate);
    gb_event_destroy(event);
    for (int i = 0; i < 3; i++)
        gb_tensor_destroy(t[i]);
    gb_compiled_partition_destroy(compiled);
    runtime_ok(gb_stream_destroy(stream));
    gb_engine_destroy(engine);
    free_sum(&s);
}

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

#define TRY(call)                                                                                  \
    do {                                                                                           \
        gb_status status_ = (call);                                                                \
        if (status_ != GB_SUCCESS)                                                                 \
            return status_;                                                                        \
    } while (0)

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

/* y = x on the host, as an op of the application's own. */
static gb_status copy_row(
        void *unused, const gb_op *op, const void *const *inputs, void *const *outputs)
{
    (void)unused, (void)op;
    memcpy(outputs[0], inputs[0], COUNT * sizeof(float));
    return GB_SUCCESS;
}

/* The tensors of the chain: 0 and 1 come in, 2 is a host scalar, 4 goes out. */
static void describe_chain(gb_logical_tensor *t)
{
    for (size_t i = 0; i < 5; i++)
        t[i] = runtime_matrix(i, ROWS, COLUMNS, GB_PROPERTY_VARIABLE);
    runtime_ok(gb_logical_tensor_init(
            &t[2], 2, GB_F32, 0, GB_LAYOUT_STRIDED, GB_PROPERTY_HOST_SCALAR));
}

/* 3 = (0) * (2), or 4 = a copy of 3. */
static gb_status compile_link(gb_engine *engine, bool copies, gb_compiled_partition **compiled)
{
    static const gb_op_definition definition = {.size = sizeof definition,
            .name = "OpenclCopy",
            .min_inputs = 1,
            .max_inputs = 1,
            .min_outputs = 1,
            .max_outputs = 1,
            .run = copy_row};
    gb_logical_tensor t[5];
    gb_op_kind kind = GB_OP_MULTIPLY;
    gb_op *op;
    gb_partition *partition;
    describe_chain(t);
    if (copies)
        runtime_ok(gb_op_kind_define(&definition, &kind));
    const gb_logical_tensor *in[] = {copies ? &t[3] : &t[0], &t[2]},
                            *out[] = {copies ? &t[4] : &t[3]};
    runtime_ok(gb_op_create(&op, 7, kind, ""));
    for (int i = 0; i < 2 - copies; i++)
        runtime_ok(gb_op_add_input(op, in[i]));
    runtime_ok(gb_op_add_output(op, out[0]));
    runtime_ok(gb_partition_create_with_op(&partition, op, GB_ENGINE_GPU));
    gb_status status = gb_partition_compile(partition, compiled, 2 - copies, in, 1, out, engine);
    gb_partition_destroy(partition);
    gb_op_destroy(op);
    return status;
}

static int n_until_read; /* calls of OpenCL until the last result was read */

/* The product of a tensor and a host scalar, and a copy by the host of it, behind the event of an
 * earlier run, on a queue out of order: values[] = {3, 4} make 12. */
static gb_status run_chain(gb_engine *engine, gb_stream *stream, gb_compiled_partition **links,
        gb_tensor **t, cl_event *done)
{
    float values[COUNT], factor = 4;
    gb_logical_tensor described[5];
    describe_chain(described);
    for (int k = 0; k < COUNT; k++)
        values[k] = 3;
    TRY(compile_link(engine, false, &links[0]));
    TRY(compile_link(engine, true, &links[1]));
    for (int i = 0; i < 5; i++)
        if (i == 2)
            TRY(gb_tensor_create_scalar(&t[i], &described[i], &factor));
        else
            TRY(gb_tensor_create(&t[i], &described[i], engine, GB_MEMORY_ALLOCATE));
    TRY(gb_tensor_write(t[0], stream, 0, sizeof values, values));
    TRY(gb_ocl_compiled_partition_execute(links[0], stream, 2, (const gb_tensor *[]){t[0], t[2]}, 1,
            (gb_tensor *[]){t[3]}, NULL, 0, NULL, done));
    TRY(gb_ocl_compiled_partition_execute(links[1], stream, 1, (const gb_tensor *[]){t[3]}, 1,
            (gb_tensor *[]){t[4]}, NULL, 1, done, NULL));
    TRY(gb_stream_wait(stream));
    TRY(gb_tensor_read(t[4], stream, 0, sizeof values, values));
    n_until_read = atomic_load(&n_calls);
    for (int k = 0; k < COUNT; k++)
        cr_assert_eq(values[k], 12);
    return GB_SUCCESS;
}

static gb_status run_chain_and_free(gb_engine *engine)
{
    gb_stream *stream = NULL;
    gb_compiled_partition *links[2] = {NULL};
    gb_tensor *t[5] = {NULL};
    cl_event done = NULL;
    gb_status status = gb_ocl_stream_create(&stream, engine, GB_OCL_STREAM_OUT_OF_ORDER);
    if (status == GB_SUCCESS)
        status = run_chain(engine, stream, links, t, &done);
    for (int i = 0; i < 5; i++)
        gb_tensor_destroy(t[i]);
    for (int i = 0; i < 2; i++)
        gb_compiled_partition_destroy(links[i]);
    if (done)
        clReleaseEvent(done);
    if (stream)
        gb_stream_destroy(stream);
    return status;
}

static gb_status run_both(gb_engine *engine)
{
    gb_status status = run_all(engine);
    return status == GB_SUCCESS ? run_chain_and_free(engine) : status;
}

static gb_status only_compile(gb_engine *engine)
{
    gb_compiled_partition *compiled = NULL;
    gb_status status = compile(engine, &compiled);
    gb_compiled_partition_destroy(compiled);
    n_until_read = atomic_load(&n_calls);
    return status;
}

/* Makes an engine and uses it, over and over: call n of OpenCL fails for n = 0, 1, ... until there
 * are no more calls. Returns how many there are. */
static int fail_each(gb_ocl_memory_kind kind, const gb_ocl_allocator *allocator,
        gb_status (*use)(gb_engine *engine), bool and_all_behind)
{
    for (int n = 0;; n++) {
        gb_engine *engine = NULL;
        fail_at(n, and_all_behind);
        n_until_read = 0;
        gb_status status =
                gb_ocl_engine_create_with_context(&engine, device, context, kind, allocator);
        if (status == GB_SUCCESS)
            status = use(engine);
        bool was_reached = atomic_load(&n_calls) > n;
        const char *name = atomic_load(&failed);
        fail_at(-1, false);
        cr_assert(status == GB_SUCCESS || *gb_last_error(), "%s, call %d: no message", name, n);
        /* A call alone may be made up for: a kernel that is not found on disk is built. */
        cr_assert(n >= n_until_read || !and_all_behind || status != GB_SUCCESS,
                "%s, call %d: nobody noticed", name, n);
        gb_engine_destroy(engine);
        cr_assert_eq(atomic_load(&n_held), 0, "%s, call %d: memory is left", name, n);
        cr_assert(
                falls_to(context, unused_references), "%s, call %d: the context is held", name, n);
        if (!was_reached) {
            cr_assert_eq(status, GB_SUCCESS);
            return n;
        }
        cr_assert_lt(n, 1000);
    }
}

static void fail_each_with(gb_ocl_memory_kind kind, const gb_ocl_allocator *allocator)
{
    gb_engine *engine;
    runtime_ok(gb_set_compiled_partition_cache_capacity(0));
    if (gb_ocl_engine_create_with_context(&engine, device, context, kind, NULL) != GB_SUCCESS)
        cr_skip_test("%s", gb_last_error());
    runtime_ok(run_both(engine)); /* what it builds is on disk now */
    gb_engine_destroy(engine);
    for (int lose = 0; lose < 2; lose++)
        cr_expect_gt(fail_each(kind, allocator, run_both, lose), 60);
}

Test(opencl, every_failing_call_on_buffers_is_a_status)
{
    fail_each_with(GB_OCL_MEMORY_BUFFER, &(gb_ocl_allocator){hold, let_go});
}

Test(opencl, every_failing_call_on_shared_virtual_memory_is_a_status)
{
    fail_each_with(GB_OCL_MEMORY_SVM, NULL);
}

Test(opencl, every_failing_call_on_unified_memory_is_a_status)
{
    fail_each_with(GB_OCL_MEMORY_USM, NULL);
}

Test(opencl, every_failing_call_of_a_build_is_a_status)
{
    setenv("GB_OPENCL_CACHE", "off", 1);
    runtime_ok(gb_set_compiled_partition_cache_capacity(0));
    for (int lose = 0; lose < 2; lose++)
        cr_expect_gt(fail_each(GB_OCL_MEMORY_BUFFER, NULL, only_compile, lose), 15);
}

/* PoCL would compile each kernel once more. */
Test(opencl, binaries_are_asked_for_only_to_be_kept)
{
    char folder[] = "/tmp/test_opencl_XXXXXX";
    cr_assert(mkdtemp(folder));
    runtime_ok(gb_set_compiled_partition_cache_capacity(0));
    for (int kept = 0; kept < 2; kept++) {
        gb_engine *engine = make_engine(GB_OCL_MEMORY_BUFFER);
        setenv("GB_OPENCL_CACHE", kept ? folder : "off", 1);
        atomic_store(&broken, "clGetProgramInfo");
        atomic_store(&n_broken, 0);
        runtime_ok(run_all(engine));
        cr_expect_eq(atomic_load(&n_broken) > 0, kept);
        atomic_store(&broken, NULL);
        gb_engine_destroy(engine);
    }
    cr_expect_eq(rmdir(folder), 0); /* nothing could be kept */
}

Test(opencl, an_engine_tells_how_long_it_built)
{
    uint64_t before = 1, built = 0, again = 0;
    gb_engine *engine = make_engine(GB_OCL_MEMORY_BUFFER);
    runtime_ok(gb_set_compiled_partition_cache_capacity(0));
    runtime_ok(gb_ocl_engine_get_build_time(engine, &before));
    cr_expect_eq(before, 0);
    runtime_ok(run_all(engine));
    runtime_ok(gb_ocl_engine_get_build_time(engine, &built));
    cr_expect_gt(built, 0);
    runtime_ok(run_all(engine)); /* all kernels are there */
    runtime_ok(gb_ocl_engine_get_build_time(engine, &again));
    cr_expect_eq(again, built);
    cr_expect_eq(gb_ocl_engine_get_build_time(engine, NULL), GB_INVALID_ARGUMENTS);
    gb_engine_destroy(engine);
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
