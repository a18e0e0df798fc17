/* Events: what stands for an execution that may still run. */
#ifndef GB_RUNTIME_EVENT_H
#define GB_RUNTIME_EVENT_H

#include <graphbench/graphbench.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gb_backend;

struct gb_event {
    atomic_uint references;
    const struct gb_backend *backend; /* that completes it */
    void *native;                     /* the backend's; NULL unless it set it */
    void (*release_native)(void *native);
    /* Completes the event when the device says by now that it failed; with `waits`, when the device
     * is done. NULL: the backend completes it in any case. */
    void (*look)(gb_event *event, bool waits);
    atomic_bool complete;
    gb_status status; /* of a complete event, with the message of a failure */
    char message[256];
    pthread_mutex_t lock;
    pthread_cond_t completed;
};

/* An event that is not complete, counted for the caller. NULL: out of memory. */
gb_event *gb_event_create(const struct gb_backend *backend);
gb_event *gb_event_retain(const gb_event *event);
void gb_event_release(gb_event *event);
/* Once, from any thread. `message` is that of a failure, or NULL. */
void gb_event_complete(gb_event *event, gb_status status, const char *message);
/* Waits until the event is complete; the status of what it stands for, with the message recorded.
 */
gb_status gb_event_await(const gb_event *event);

#endif
