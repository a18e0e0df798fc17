/* Streams of OpenCL engines, and runs of programs on them. */
#include "base/memory.h"
#include "base/status.h"
#include "kernels/opencl/program.h"

#include <stdlib.h>

/* Streams -------------------------------------------------------------------------------------- */

static gb_status take_queue(gb_cl_engine *e, const gb_stream_interop *interop, gb_cl_queue *q)
{
    const gb_cl_stream_wishes *wishes = interop->extra;
    cl_command_queue_properties properties = CL_QUEUE_PROFILING_ENABLE;
    cl_context context = NULL;
    cl_device_id device = NULL;
    cl_int error;
    if (interop->queue) {
        clGetCommandQueueInfo(interop->queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
        clGetCommandQueueInfo(interop->queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
        if (context != e->context || device != e->device.id)
            return gb_fail(GB_INVALID_ARGUMENTS,
                    "the queue given for a stream is of another context or device than the engine");
        GB_CL_TRY(clGetCommandQueueInfo(interop->queue, CL_QUEUE_PROPERTIES, sizeof properties,
                          &properties, NULL),
                "a queue's properties");
        GB_CL_TRY(clRetainCommandQueue(interop->queue), "retaining a queue");
        q->queue = interop->queue;
    } else {
        if (wishes && wishes->kind == GB_OCL_STREAM_OUT_OF_ORDER)
            properties |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        q->queue = clCreateCommandQueue(e->context, e->device.id, properties, &error);
        if (!q->queue)
            return gb_cl_fail(error, "creating a queue");
    }
    q->in_order = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    return GB_SUCCESS;
}

gb_status gb_cl_stream_init(gb_stream *stream, const gb_stream_interop *interop)
{
    gb_cl_engine *e = gb_cl_engine_of(stream->engine);
    if (interop->threads.parallel_for)
        return gb_fail(GB_INVALID_ARGUMENTS, "streams of OpenCL devices run on no thread pool");
    gb_cl_queue *q = gb_calloc(1, sizeof *q);
    if (!q)
        return GB_OUT_OF_MEMORY;
    gb_status status = take_queue(e, interop, q);
    if (status != GB_SUCCESS) {
        free(q);
        return status;
    }
    pthread_mutex_init(&q->lock, NULL);
    pthread_mutex_lock(&e->lock);
    q->next = e->queues;
    e->queues = q;
    pthread_mutex_unlock(&e->lock);
    stream->state = q;
    return GB_SUCCESS;
}

void gb_cl_stream_wait(gb_stream *stream)
{
    gb_cl_settle(stream->state);
}

void gb_cl_stream_fini(gb_stream *stream)
{
    gb_cl_engine *e = gb_cl_engine_of(stream->engine);
    gb_cl_queue *q = stream->state;
    gb_cl_settle(q);
    pthread_mutex_lock(&e->lock);
    gb_cl_queue **at = &e->queues;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    pthread_mutex_unlock(&e->lock);
    if (q->last)
        clReleaseEvent(q->last);
    clReleaseCommandQueue(q->queue);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

/* One queue after the other, without the lock while waiting: others may come and go. */
gb_status gb_cl_finish_queues(gb_cl_engine *e)
{
    enum { MOST = 64 };
    cl_command_queue queues[MOST];
    uint32_t n = 0;
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&e->lock);
    for (gb_cl_queue *q = e->queues; q; q = q->next) {
        if (n == MOST || clRetainCommandQueue(q->queue) != CL_SUCCESS) { /* slow, not wrong */
            cl_int own = clFinish(q->queue);
            error = error == CL_SUCCESS ? own : error;
            continue;
        }
        queues[n++] = q->queue;
    }
    pthread_mutex_unlock(&e->lock);
    for (uint32_t i = 0; i < n; i++) {
        cl_int own = clFinish(queues[i]);
        error = error == CL_SUCCESS ? own : error;
        clReleaseCommandQueue(queues[i]);
    }
    return error == CL_SUCCESS ? GB_SUCCESS : gb_cl_fail(error, "waiting for a queue");
}

/* Runs ----------------------------------------------------------------------------------------- */

void gb_cl_run_free(void *run)
{
    gb_cl_run *r = run;
    if (r->first)
        clReleaseEvent(r->first);
    if (r->last)
        clReleaseEvent(r->last);
    free(r);
}

/* What a run is put into a queue with. */
typedef struct launch {
    const gb_execution *execution;
    gb_cl_engine *engine;
    gb_cl_queue *queue;
    cl_uint n_waits;
    cl_event *waits;      /* lent; of the first command */
    cl_event first, last; /* held */
    cl_mem *values;       /* of each buffer: a copy of its host scalar, held, or NULL */
} launch;

/* Host scalars become buffers, which the device keeps as long as its commands need them. */
static gb_status copy_values(launch *l)
{
    const gb_execution *x = l->execution;
    cl_int error;
    for (uint32_t b = 0; b < x->program->n_buffers; b++) {
        const gb_binding *binding = &x->bindings[b];
        if (!binding->is_value)
            continue;
        l->values[b] = clCreateBuffer(l->engine->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                binding->bytes, binding->memory, &error);
        if (!l->values[b])
            return gb_cl_fail(error, "placing a scalar");
    }
    return GB_SUCCESS;
}

static void free_values(launch *l)
{
    for (uint32_t b = 0; l->values && b < l->execution->program->n_buffers; b++)
        if (l->values[b])
            clReleaseMemObject(l->values[b]);
    free(l->values);
}

static gb_status set_memory(const launch *l, cl_kernel kernel, cl_uint index, uint32_t buffer)
{
    const gb_binding *binding = &l->execution->bindings[buffer];
    void *memory = binding->is_value ? l->values[buffer] : binding->memory;
    cl_long offset = (cl_long)binding->offset;
    cl_int error = CL_SUCCESS;
    gb_ocl_memory_kind kind = GB_OCL_MEMORY_BUFFER;
    if (memory && !binding->is_value)
        kind = gb_cl_memory_kind_of(l->engine, memory);
    if (kind == GB_OCL_MEMORY_BUFFER)
        error = clSetKernelArg(kernel, index, sizeof memory, memory ? &memory : NULL);
    else if (kind == GB_OCL_MEMORY_SVM)
        error = clSetKernelArgSVMPointer(kernel, index, memory);
    else
        error = l->engine->usm.set_argument(kernel, index, memory);
    GB_CL_TRY(error, "setting an argument");
    GB_CL_TRY(clSetKernelArg(kernel, index + 1, sizeof offset, &offset), "setting an argument");
    return GB_SUCCESS;
}

static gb_status set_arguments(const launch *l, uint32_t index, const gb_step *step)
{
    const gb_cl_program *program = l->execution->program->state;
    cl_kernel kernel = program->kernels[index];
    cl_long begin = (cl_long)program->number_offsets[index];
    GB_CL_TRY(clSetKernelArg(kernel, 0, sizeof program->numbers, &program->numbers),
            "setting an argument");
    GB_CL_TRY(clSetKernelArg(kernel, 1, sizeof begin, &begin), "setting an argument");
    for (uint32_t i = 0; i < step->n_uses; i++)
        GB_TRY(set_memory(l, kernel, 2 * (i + 1), step->uses[i].buffer));
    return GB_SUCCESS;
}

/* Takes the event of a command over as the run's last. */
static gb_status advance(launch *l, cl_event event)
{
    cl_int error = l->first ? CL_SUCCESS : clRetainEvent(event);
    if (error != CL_SUCCESS) {
        clFinish(l->queue->queue); /* nobody else knows of the command */
        clReleaseEvent(event);
        return gb_cl_fail(error, "retaining an event");
    }
    if (!l->first)
        l->first = event;
    if (l->last)
        clReleaseEvent(l->last);
    l->last = event;
    return GB_SUCCESS;
}

/* Calls the function of an op of the application's own with what the uses of its step are mapped
 * to. */
static gb_status call_function(const gb_cl_step *plan, void *const *mapped, uint32_t n_inputs)
{
    const gb_op *op = plan->op;
    uint32_t n = n_inputs + op->n_outputs;
    void **memory = gb_calloc(n, sizeof *memory);
    if (!memory)
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < n; i++)
        memory[i] = mapped[plan->slots[i]];
    gb_status status = op->definition->run(
            op->definition->context, op, (const void *const *)memory, memory + n_inputs);
    free(memory);
    return status == GB_SUCCESS ? status
                                : gb_fail(status, "%s: its function failed (%s)", gb_op_label(op),
                                          gb_status_name(status));
}

/* The same with all memory of the step mapped, as far as that works. */
static gb_status call_mapped(const launch *l, const gb_step *step, void **mapped)
{
    const gb_engine *engine = l->execution->stream->engine;
    const gb_cl_step *plan = step->params;
    uint32_t n = 0;
    gb_status status = GB_SUCCESS;
    for (; n < step->n_uses && status == GB_SUCCESS; n++) {
        const gb_binding *b = &l->execution->bindings[step->uses[n].buffer];
        mapped[n] = b->memory;
        if (!b->is_value)
            status = gb_cl_memory_map(engine, NULL, b->memory, b->offset, b->bytes, &mapped[n]);
    }
    n -= status != GB_SUCCESS;
    if (status == GB_SUCCESS)
        status = call_function(plan, mapped, plan->op->n_inputs);
    while (n-- > 0) {
        const gb_binding *b = &l->execution->bindings[step->uses[n].buffer];
        gb_status unmapped = GB_SUCCESS;
        if (!b->is_value)
            unmapped = gb_cl_memory_unmap(engine, NULL, b->memory, mapped[n]);
        status = status == GB_SUCCESS ? unmapped : status;
    }
    return status;
}

/* A step for the host: what comes before is complete, and what follows has not begun. */
static gb_status run_on_host(launch *l, const gb_step *step)
{
    cl_event event;
    if (l->n_waits && !l->first)
        GB_CL_TRY(clWaitForEvents(l->n_waits, l->waits), "waiting for events");
    GB_CL_TRY(clFinish(l->queue->queue), "waiting for a queue");
    void **mapped = gb_calloc(step->n_uses, sizeof *mapped);
    if (!mapped)
        return GB_OUT_OF_MEMORY;
    gb_status status = call_mapped(l, step, mapped);
    free(mapped);
    GB_TRY(status);
    GB_CL_TRY(clEnqueueMarkerWithWaitList(l->queue->queue, 0, NULL, &event), "a marker");
    return advance(l, event);
}

static gb_status enqueue_step(launch *l, uint32_t index)
{
    const gb_execution *execution = l->execution;
    const gb_step *step = &execution->program->steps[index];
    const gb_cl_program *program = execution->program->state;
    const gb_cl_step *plan = step->params;
    if (plan->op)
        return run_on_host(l, step);
    cl_event event, before = l->last;
    cl_uint n_waits = l->n_waits;
    const cl_event *waits = l->waits;
    GB_TRY(set_arguments(l, index, step));
    if (l->first) {
        n_waits = l->queue->in_order ? 0 : 1;
        waits = &before;
    }
    GB_CL_TRY(clEnqueueNDRangeKernel(l->queue->queue, program->kernels[index], 3, NULL,
                      plan->global, plan->local, n_waits, n_waits ? waits : NULL, &event),
            step->kernel);
    return advance(l, event);
}

static gb_status enqueue_steps(launch *l)
{
    const gb_program *program = l->execution->program;
    for (uint32_t i = 0; i < program->n_steps; i++)
        if (program->step_is_constant[i] == l->execution->constant_steps)
            GB_TRY(enqueue_step(l, i));
    if (l->first)
        return GB_SUCCESS;
    cl_event event;
    GB_CL_TRY(clEnqueueMarkerWithWaitList(
                      l->queue->queue, l->n_waits, l->n_waits ? l->waits : NULL, &event),
            "a marker");
    return advance(l, event);
}

/* One that has failed is told now: not each device ends what waits for it. */
static gb_status add_wait(launch *l, cl_event event)
{
    cl_int state;
    GB_CL_TRY(gb_cl_read_state(event, &state), "an event's state");
    GB_CL_TRY(state < 0 ? state : CL_SUCCESS, "a dependency");
    l->waits[l->n_waits++] = event;
    return GB_SUCCESS;
}

/* On a queue out of order the run waits for the one before. One that has failed holds nobody up: what it
 * was to write is not there, as on a queue in order. */
static gb_status wait_for_last(launch *l)
{
    gb_cl_queue *q = l->queue;
    cl_int state;
    if (q->in_order || !q->last)
        return GB_SUCCESS;
    GB_CL_TRY(gb_cl_read_state(q->last, &state), "an event's state");
    if (state >= 0) {
        l->waits[l->n_waits++] = q->last;
        return GB_SUCCESS;
    }
    clReleaseEvent(q->last);
    q->last = NULL;
    return GB_SUCCESS;
}

/* Events of the same context are left to the device; of others, and of none, the host waits. */
static gb_status collect_waits(launch *l)
{
    const gb_execution *x = l->execution;
    for (uint32_t i = 0; i < x->n_waits; i++) {
        const gb_cl_run *run = x->waits[i]->native;
        cl_context context = NULL;
        if (run && !atomic_load(&x->waits[i]->complete))
            GB_CL_TRY(clGetEventInfo(run->last, CL_EVENT_CONTEXT, sizeof context, &context, NULL),
                    "an event's context");
        if (context == l->engine->context)
            GB_TRY(add_wait(l, run->last));
        else
            GB_TRY(gb_event_await(x->waits[i]));
    }
    return wait_for_last(l);
}

static void CL_CALLBACK on_complete(cl_event event, cl_int state, void *number)
{
    (void)event;
    gb_cl_complete((uintptr_t)number, state);
}

/* From here on the run cannot fail any more but by its event. Takes over both events, and one more
 * hold on the last. */
static void hand_over(launch *l, gb_cl_pending *pending, gb_cl_run *run)
{
    gb_cl_queue *q = l->queue;
    gb_event *event = l->execution->event;
    cl_event last = l->last; /* held by the run, and that by the caller's event */
    *run = (gb_cl_run){l->first, last, 0};
    event->native = run;
    event->release_native = gb_cl_run_free;
    event->look = gb_cl_look;
    if (q->last)
        clReleaseEvent(q->last);
    q->last = last;
    uintptr_t number = gb_cl_pending_add(pending);
    if (clFlush(q->queue) != CL_SUCCESS ||
            clSetEventCallback(last, CL_COMPLETE, on_complete, (void *)number) != CL_SUCCESS)
        gb_cl_complete(number, clWaitForEvents(1, &last));
}

static gb_status start(launch *l)
{
    gb_cl_program *program = l->execution->program->state;
    gb_cl_pending *pending = gb_cl_pending_create(l->queue, l->execution->event);
    gb_cl_run *run = gb_calloc(1, sizeof *run);
    gb_status status = pending && run ? collect_waits(l) : GB_OUT_OF_MEMORY;
    if (status == GB_SUCCESS)
        status = copy_values(l);
    if (status == GB_SUCCESS) {
        pthread_mutex_lock(&program->lock);
        status = enqueue_steps(l);
        pthread_mutex_unlock(&program->lock);
    }
    if (status == GB_SUCCESS) {
        cl_int error = clRetainEvent(l->last);
        status = error == CL_SUCCESS ? GB_SUCCESS : gb_cl_fail(error, "retaining an event");
    }
    if (status == GB_SUCCESS) {
        hand_over(l, pending, run);
        return GB_SUCCESS;
    }
    gb_cl_pending_free(pending);
    free(run);
    if (l->first) { /* nothing of it may run any more when the call has failed */
        clFinish(l->queue->queue);
        clReleaseEvent(l->first);
        clReleaseEvent(l->last);
    }
    return status;
}

gb_status gb_cl_execute(const gb_execution *execution)
{
    gb_cl_queue *q = execution->stream->state;
    launch l = {.execution = execution,
            .engine = gb_cl_engine_of(execution->stream->engine),
            .queue = q,
            .waits = gb_calloc((size_t)execution->n_waits + 1, sizeof(cl_event)),
            .values = gb_calloc(execution->program->n_buffers, sizeof(cl_mem))};
    gb_status status = l.waits && l.values ? GB_SUCCESS : GB_OUT_OF_MEMORY;
    if (status == GB_SUCCESS) {
        pthread_mutex_lock(&q->lock);
        status = start(&l);
        pthread_mutex_unlock(&q->lock);
    }
    free_values(&l);
    free(l.waits);
    return status;
}
