/* Runs of OpenCL queues whose events are not complete yet. */
#include "base/memory.h"
#include "base/status.h"
#include "kernels/opencl/engine.h"

#include <stdlib.h>

/* A run whose event is not complete. The device calls back when it is done, but not each device
 * does so when a run has failed: then whoever waits finds that out. */
struct gb_cl_pending {
    gb_cl_pending *next;
    uintptr_t number; /* never 0; a callback knows the run by it, and may come late or never */
    gb_event *event;  /* counted; of one that is not taken */
    const gb_cl_queue *queue;
    bool is_taken; /* somebody completes it */
};

/* Of all queues, the newest first. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t removed;
    gb_cl_pending *first;
    uintptr_t newest; /* number */
} pending = {.lock = PTHREAD_MUTEX_INITIALIZER, .removed = PTHREAD_COND_INITIALIZER};

gb_cl_pending *gb_cl_pending_create(const gb_cl_queue *q, const gb_event *event)
{
    gb_cl_pending *run = gb_calloc(1, sizeof *run);
    if (run)
        *run = (gb_cl_pending){.event = gb_event_retain(event), .queue = q};
    return run;
}

void gb_cl_pending_free(gb_cl_pending *run)
{
    if (run)
        gb_event_release(run->event);
    free(run);
}

uintptr_t gb_cl_pending_add(gb_cl_pending *run)
{
    gb_cl_run *native = run->event->native;
    pthread_mutex_lock(&pending.lock);
    uintptr_t number = ++pending.newest;
    run->number = native->number = number;
    run->next = pending.first;
    pending.first = run;
    pthread_mutex_unlock(&pending.lock);
    return number;
}

/* The run of this number, for one caller only; else NULL. */
static gb_cl_pending *take_pending(uintptr_t number)
{
    pthread_mutex_lock(&pending.lock);
    gb_cl_pending *run = pending.first;
    while (run && run->number != number)
        run = run->next;
    if (run && run->is_taken)
        run = NULL;
    if (run)
        run->is_taken = true;
    pthread_mutex_unlock(&pending.lock);
    return run;
}

static void remove_pending(gb_cl_pending *run)
{
    pthread_mutex_lock(&pending.lock);
    gb_cl_pending **at = &pending.first;
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    pthread_cond_broadcast(&pending.removed);
    pthread_mutex_unlock(&pending.lock);
    free(run);
}

/* The newest run of the queue below a number, with the lock held; or NULL. */
static gb_cl_pending *find_pending(const gb_cl_queue *q, uintptr_t below)
{
    gb_cl_pending *run = pending.first;
    while (run && (run->queue != q || run->number >= below))
        run = run->next;
    return run;
}

/* The event of the newest one that nobody completes yet, counted for the caller, and its number. */
static gb_event *pending_event(const gb_cl_queue *q, uintptr_t *number)
{
    pthread_mutex_lock(&pending.lock);
    gb_cl_pending *run = find_pending(q, *number);
    while (run && run->is_taken)
        run = find_pending(q, run->number);
    gb_event *event = run ? gb_event_retain(run->event) : NULL;
    *number = run ? run->number : 0;
    pthread_mutex_unlock(&pending.lock);
    return event;
}

void gb_cl_complete(uintptr_t number, cl_int state)
{
    gb_cl_pending *run = take_pending(number);
    if (!run)
        return;
    if (state >= 0) {
        gb_event_complete(run->event, GB_SUCCESS, NULL);
    } else {
        gb_status status = gb_cl_fail(state, "an execution, or what it depends on");
        gb_event_complete(run->event, status, gb_last_error());
    }
    gb_event_release(run->event);
    remove_pending(run);
}

cl_int gb_cl_read_state(cl_event event, cl_int *state)
{
    return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof *state, state, NULL);
}

/* Completes a run that has failed. `is_over`: the device was waited for, with this result, and what it
 * does not tell now is a failure, too. */
static void find_failure(const gb_cl_run *run, bool is_over, cl_int waited)
{
    cl_int state = CL_QUEUED;
    cl_int error = gb_cl_read_state(run->last, &state);
    if (error != CL_SUCCESS)
        state = is_over ? error : CL_QUEUED;
    if (state > CL_COMPLETE && waited != CL_SUCCESS)
        state = waited; /* nothing more will come */
    if (state < 0)
        gb_cl_complete(run->number, state);
}

void gb_cl_look(gb_event *event, bool waits)
{
    const gb_cl_run *run = event->native;
    cl_int waited = waits ? clWaitForEvents(1, &run->last) : CL_SUCCESS; /* fails with the run */
    find_failure(run, waits, waited);
}

void gb_cl_settle(const gb_cl_queue *q)
{
    gb_event *event;
    pthread_mutex_lock(&pending.lock);
    uintptr_t end = pending.newest + 1, number = end;
    pthread_mutex_unlock(&pending.lock);
    cl_int waited = clFinish(q->queue);
    while ((event = pending_event(q, &number))) {
        find_failure(event->native, true, waited);
        gb_event_release(event);
    }
    pthread_mutex_lock(&pending.lock);
    while (find_pending(q, end))
        pthread_cond_wait(&pending.removed, &pending.lock);
    pthread_mutex_unlock(&pending.lock);
}
