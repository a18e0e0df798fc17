/* Streams, and the executions that may still run on them. */
#include "base/memory.h"
#include "base/status.h"
#include "runtime/compiled.h"

#include <stdio.h>
#include <stdlib.h>

/* More executions than this are waited for: each holds memory. */
enum { MOST_FLIGHTS = 256 };

gb_status gb_stream_create_with_interop(
        gb_stream **stream, const gb_engine *engine, const gb_stream_interop *interop)
{
    gb_stream *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    made->engine = gb_engine_retain(engine);
    pthread_mutex_init(&made->lock, NULL);
    gb_status status = engine->backend->stream_init(made, interop);
    if (status == GB_SUCCESS) {
        *stream = made;
        return GB_SUCCESS;
    }
    gb_engine_release(made->engine);
    pthread_mutex_destroy(&made->lock);
    free(made);
    return status;
}

gb_status gb_stream_create(gb_stream **stream, const gb_engine *engine)
{
    if (!stream || !engine)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_stream_create: NULL argument");
    return gb_stream_create_with_interop(stream, engine, &(gb_stream_interop){.queue = NULL});
}

gb_status gb_stream_create_with_thread_pool(gb_stream **stream, const gb_engine *engine,
        int concurrency, gb_parallel_for_fn parallel_for, void *pool)
{
    if (!parallel_for || concurrency < 1)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "gb_stream_create_with_thread_pool: no parallel_for, or concurrency below 1");
    if (!stream || !engine)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_stream_create_with_thread_pool: NULL argument");
    return gb_stream_create_with_interop(
            stream, engine, &(gb_stream_interop){.threads = {parallel_for, pool, concurrency}});
}

gb_status gb_stream_get_engine(const gb_stream *stream, const gb_engine **engine)
{
    if (!stream || !engine)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_stream_get_engine: NULL argument");
    *engine = stream->engine;
    return GB_SUCCESS;
}

/* Flights -------------------------------------------------------------------------------------- */

void gb_flight_free(gb_flight *flight)
{
    const gb_engine *engine = flight->executable->engine;
    for (uint32_t i = 0; i < flight->n_memories; i++)
        engine->backend->memory_release(engine, flight->memories[i]);
    if (flight->constants)
        gb_constants_release(flight->constants, false);
    gb_event_release(flight->event);
    gb_executable_release(flight->executable);
    free(flight->memories);
    free(flight);
}

/* Takes the flights that are complete out of the stream's list; the first failure is kept. With the
 * lock held. */
static gb_flight *take_complete(gb_stream *stream)
{
    gb_flight *taken = NULL, **at = &stream->first;
    stream->last = NULL;
    while (*at) {
        gb_flight *flight = *at;
        if (!atomic_load(&flight->event->complete)) {
            stream->last = flight;
            at = &flight->next;
            continue;
        }
        if (flight->event->status != GB_SUCCESS && stream->failure == GB_SUCCESS) {
            stream->failure = flight->event->status;
            snprintf(stream->message, sizeof stream->message, "%s", flight->event->message);
        }
        *at = flight->next;
        flight->next = taken;
        taken = flight;
        stream->n_flights--;
    }
    return taken;
}

static void free_all(gb_flight *flights)
{
    while (flights) {
        gb_flight *next = flights->next;
        gb_flight_free(flights);
        flights = next;
    }
}

void gb_stream_add_flight(gb_stream *stream, gb_flight *flight)
{
    pthread_mutex_lock(&stream->lock);
    gb_flight *done = take_complete(stream);
    flight->next = NULL;
    *(stream->last ? &stream->last->next : &stream->first) = flight;
    stream->last = flight;
    bool full = ++stream->n_flights > MOST_FLIGHTS;
    gb_event *oldest = full ? gb_event_retain(stream->first->event) : NULL;
    pthread_mutex_unlock(&stream->lock);
    free_all(done);
    if (full)
        gb_event_await(oldest); /* a failure is kept for who waits for the stream */
    gb_event_release(oldest);
}

gb_status gb_stream_wait(gb_stream *stream)
{
    if (!stream)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_stream_wait: NULL argument");
    const gb_backend *backend = stream->engine->backend;
    if (backend->host_memory)
        return GB_SUCCESS;
    backend->stream_wait(stream);
    pthread_mutex_lock(&stream->lock);
    gb_flight *done = take_complete(stream);
    gb_status failure = stream->failure;
    if (failure != GB_SUCCESS)
        failure = gb_fail(failure, "%s", stream->message);
    stream->failure = GB_SUCCESS;
    pthread_mutex_unlock(&stream->lock);
    free_all(done);
    return failure;
}

gb_status gb_stream_destroy(gb_stream *stream)
{
    if (!stream)
        return GB_SUCCESS;
    gb_status status = gb_stream_wait(stream);
    stream->engine->backend->stream_fini(stream);
    pthread_mutex_destroy(&stream->lock);
    gb_engine_release(stream->engine);
    free(stream);
    return status;
}

gb_status gb_events_await(size_t n, const gb_event *const *events)
{
    for (size_t i = 0; i < n; i++)
        GB_TRY(gb_event_await(events[i]));
    return GB_SUCCESS;
}
