/* Engines and streams with attributes. */
#include "runtime/attrs.h"

#include "base/status.h"
#include "runtime/context.h"

#include <string.h>

gb_status gb_attrs_take(const char *function, void *attrs, size_t bytes, const void *given)
{
    size_t size;
    if (!given)
        return GB_SUCCESS;
    memcpy(&size, given, sizeof size);
    if (size != bytes) /* there was no other version yet */
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: attributes of %zu bytes, not %zu", function, size,
                bytes);
    memcpy(attrs, given, bytes);
    return GB_SUCCESS;
}

gb_status gb_engine_create_with_attrs(
        gb_engine **engine, gb_engine_kind kind, size_t index, const gb_engine_attrs *attrs)
{
    gb_engine_attrs a = {0};
    gb_engine *made;
    GB_TRY(gb_attrs_take("gb_engine_create_with_attrs", &a, sizeof a, attrs));
    if (!engine)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_engine_create_with_attrs: NULL argument");
    GB_TRY(a.allocator ? gb_engine_create_with_allocator(&made, kind, index, a.allocator)
                       : gb_engine_create(&made, kind, index));
    if (a.context) {
        gb_context_destroy(made->context);
        made->context = gb_context_retain(a.context);
    }
    *engine = made;
    return GB_SUCCESS;
}

gb_status gb_stream_create_with_attrs(
        gb_stream **stream, const gb_engine *engine, const gb_stream_attrs *attrs)
{
    gb_stream_attrs a = {0};
    GB_TRY(gb_attrs_take("gb_stream_create_with_attrs", &a, sizeof a, attrs));
    if (a.parallel_for)
        return gb_stream_create_with_thread_pool(
                stream, engine, a.concurrency, a.parallel_for, a.pool);
    if (a.pool || a.concurrency)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "gb_stream_create_with_attrs: a pool or concurrency without parallel_for");
    return gb_stream_create(stream, engine);
}
