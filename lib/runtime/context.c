/* Contexts, and the capacities and counters of caches for the application. */
#include "runtime/context.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/attrs.h"

#include <limits.h>
#include <stdlib.h>

static gb_context of_process = {.references = 1};

static void open_of_process(void)
{
    of_process.compiled = gb_cache_of_process();
    of_process.constants = gb_constant_cache_of_process();
}

gb_context *gb_context_of_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_of_process);
    return &of_process;
}

gb_context *gb_context_retain(gb_context *context)
{
    atomic_fetch_add(&context->references, 1);
    return context;
}

gb_status gb_context_create(gb_context **context, const gb_context_attrs *attrs)
{
    gb_context_attrs a = {0};
    if (!context)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_context_create: NULL argument");
    GB_TRY(gb_attrs_take("gb_context_create", &a, sizeof a, attrs));
    if (a.compiled_partitions < -1 || a.constant_megabytes < -1)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_context_create: a capacity is below -1");
    const gb_context *like = gb_context_of_process();
    gb_context *made = gb_calloc(1, sizeof *made);
    if (!made)
        return GB_OUT_OF_MEMORY;
    made->references = 1;
    made->compiled = gb_cache_create(like->compiled);
    made->constants = gb_constant_cache_create(like->constants);
    if (!made->compiled || !made->constants) {
        gb_context_destroy(made);
        return GB_OUT_OF_MEMORY;
    }
    size_t entries = a.compiled_partitions < INT_MAX ? (size_t)a.compiled_partitions : INT_MAX;
    if (a.compiled_partitions)
        gb_cache_set_capacity(made->compiled, a.compiled_partitions > 0 ? entries : 0);
    size_t megabytes = a.constant_megabytes > 0 ? (size_t)a.constant_megabytes : 0;
    for (int kind = GB_ENGINE_CPU; a.constant_megabytes && gb_constant_cache_has_kind(kind); kind++)
        gb_constant_cache_set_capacity(made->constants, (gb_engine_kind)kind, megabytes);
    *context = made;
    return GB_SUCCESS;
}

gb_status gb_context_destroy(gb_context *context)
{
    if (!context || atomic_fetch_sub(&context->references, 1) != 1)
        return GB_SUCCESS;
    gb_cache_free(context->compiled);
    gb_constant_cache_free(context->constants);
    free(context);
    return GB_SUCCESS;
}

/* Capacities and counters ---------------------------------------------------------------------- */

/* NULL: the one of the process. */
static const gb_context *find_context(const gb_context *context)
{
    return context ? context : gb_context_of_process();
}

gb_status gb_set_compiled_partition_cache_capacity(int capacity)
{
    if (capacity < 0)
        return gb_fail(GB_INVALID_ARGUMENTS, "the cache cannot hold %d entries", capacity);
    gb_cache_set_capacity(gb_cache_of_process(), (size_t)capacity);
    return GB_SUCCESS;
}

gb_status gb_get_compiled_partition_cache_capacity(int *capacity)
{
    if (!capacity)
        return gb_fail(
                GB_INVALID_ARGUMENTS, "gb_get_compiled_partition_cache_capacity: NULL argument");
    *capacity = (int)gb_cache_capacity(gb_cache_of_process());
    return GB_SUCCESS;
}

gb_status gb_context_get_cache_counters(const gb_context *context, gb_cache_counters *counters)
{
    if (!counters)
        return gb_fail(GB_INVALID_ARGUMENTS, "counters of compiled partitions: NULL argument");
    *counters = gb_cache_count(find_context(context)->compiled);
    return GB_SUCCESS;
}

gb_status gb_get_compiled_partition_cache_counters(gb_cache_counters *counters)
{
    return gb_context_get_cache_counters(NULL, counters);
}

static gb_status check_kind(gb_engine_kind kind, const void *result, const char *function)
{
    if (!result)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: NULL argument", function);
    if (!gb_constant_cache_has_kind(kind))
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: no engine kind %d", function, (int)kind);
    return GB_SUCCESS;
}

gb_status gb_set_constant_cache_capacity(gb_engine_kind kind, size_t megabytes)
{
    GB_TRY(check_kind(kind, &kind, __func__));
    gb_constant_cache_set_capacity(gb_constant_cache_of_process(), kind, megabytes);
    gb_kept_digests_expire();
    return GB_SUCCESS;
}

gb_status gb_get_constant_cache_capacity(gb_engine_kind kind, size_t *megabytes)
{
    GB_TRY(check_kind(kind, megabytes, __func__));
    *megabytes = gb_constant_cache_capacity(gb_constant_cache_of_process(), kind);
    return GB_SUCCESS;
}

gb_status gb_context_get_constant_cache_counters(
        const gb_context *context, gb_engine_kind kind, gb_constant_cache_counters *counters)
{
    GB_TRY(check_kind(kind, counters, __func__));
    *counters = gb_constant_cache_count(find_context(context)->constants, kind);
    return GB_SUCCESS;
}

gb_status gb_get_constant_cache_counters(gb_engine_kind kind, gb_constant_cache_counters *counters)
{
    return gb_context_get_constant_cache_counters(NULL, kind, counters);
}
