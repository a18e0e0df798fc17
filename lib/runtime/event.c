/* Events: completed once by a backend, waited for by anybody. */
#include "runtime/event.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

gb_event *gb_event_create(const struct gb_backend *backend)
{
    gb_event *made = gb_calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->references = 1;
    made->backend = backend;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->completed, NULL);
    return made;
}

gb_event *gb_event_retain(const gb_event *event)
{
    gb_event *shared = (gb_event *)(uintptr_t)event; /* only the count changes */
    atomic_fetch_add(&shared->references, 1);
    return shared;
}

void gb_event_release(gb_event *event)
{
    if (!event || atomic_fetch_sub(&event->references, 1) != 1)
        return;
    if (event->release_native)
        event->release_native(event->native);
    pthread_cond_destroy(&event->completed);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

void gb_event_complete(gb_event *event, gb_status status, const char *message)
{
    pthread_mutex_lock(&event->lock);
    event->status = status;
    snprintf(event->message, sizeof event->message, "%s", message ? message : "");
    atomic_store(&event->complete, true);
    pthread_cond_broadcast(&event->completed);
    pthread_mutex_unlock(&event->lock);
}

/* Is it complete? With `waits` what its device knows is found out only when that is done. */
static bool look(gb_event *event, bool waits)
{
    if (event->look && !atomic_load(&event->complete))
        event->look(event, waits);
    return atomic_load(&event->complete);
}

gb_status gb_event_await(const gb_event *event)
{
    gb_event *shared = (gb_event *)(uintptr_t)event; /* only the lock changes */
    look(shared, true);
    pthread_mutex_lock(&shared->lock);
    while (!atomic_load(&shared->complete))
        pthread_cond_wait(&shared->completed, &shared->lock);
    pthread_mutex_unlock(&shared->lock);
    return event->status == GB_SUCCESS ? GB_SUCCESS : gb_fail(event->status, "%s", event->message);
}

gb_status gb_event_wait(const gb_event *event)
{
    return event ? gb_event_await(event)
                 : gb_fail(GB_INVALID_ARGUMENTS, "gb_event_wait: NULL argument");
}

gb_status gb_event_is_complete(const gb_event *event, uint8_t *complete)
{
    if (!event || !complete)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_event_is_complete: NULL argument");
    *complete = look((gb_event *)(uintptr_t)event, false);
    return GB_SUCCESS;
}

gb_status gb_event_destroy(gb_event *event)
{
    gb_event_release(event);
    return GB_SUCCESS;
}
