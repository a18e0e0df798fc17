/* The thread's last error message. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 1024 };

static _Thread_local char message[MESSAGE_BYTES];

const char *gb_last_error(void)
{
    return message;
}

void gb_set_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gb_set_error_list(format, args);
    va_end(args);
}

void gb_set_error_list(const char *format, va_list args)
{
    vsnprintf(message, sizeof message, format, args);
}

gb_status gb_fail_prefix(gb_status status, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0 || (size_t)length + 3 >= sizeof text)
        return status;
    memcpy(text + length, ": ", 2);
    size_t room = sizeof text - (size_t)length - 3;
    size_t kept = strnlen(message, room);
    memcpy(text + length + 2, message, kept);
    text[(size_t)length + 2 + kept] = '\0';
    memcpy(message, text, sizeof message);
    return status;
}

gb_status gb_check_list(
        const char *function, size_t entries, size_t capacity, const void *list, size_t *count)
{
    if (!list && capacity)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: NULL argument", function);
    if (list && capacity < entries)
        return gb_fail(
                GB_INVALID_ARGUMENTS, "%s: room for %zu of %zu", function, capacity, entries);
    if (!count && capacity != entries)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "%s: there are %zu, not %zu, and no count is asked for", function, entries,
                capacity);
    if (count)
        *count = entries;
    return GB_SUCCESS;
}

const char *gb_status_name(gb_status status)
{
    static const char *const names[] = {
            [GB_SUCCESS] = "success",
            [GB_OUT_OF_MEMORY] = "out_of_memory",
            [GB_INVALID_ARGUMENTS] = "invalid_arguments",
            [GB_UNIMPLEMENTED] = "unimplemented",
            [GB_LAST_IMPL_REACHED] = "last_impl_reached",
            [GB_RUNTIME_ERROR] = "runtime_error",
            [GB_NOT_REQUIRED] = "not_required",
            [GB_INVALID_GRAPH] = "invalid_graph",
            [GB_INVALID_GRAPH_OP] = "invalid_graph_op",
            [GB_INVALID_SHAPE] = "invalid_shape",
            [GB_INVALID_DATA_TYPE] = "invalid_data_type",
    };
    size_t index = (size_t)status;
    return index < sizeof names / sizeof names[0] ? names[index] : "unknown_status";
}

const gb_version *gb_get_version(void)
{
    static const gb_version version = {GB_VERSION_MAJOR, GB_VERSION_MINOR, GB_VERSION_PATCH};
    return &version;
}
