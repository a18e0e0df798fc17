/* Error reporting: a status travels up, the message stays in the thread, composed where the fault
 * is found. */
#ifndef GB_BASE_STATUS_H
#define GB_BASE_STATUS_H

#include <graphbench/graphbench.h>
#include <stdarg.h>

/* Records the message for gb_last_error(). */
void gb_set_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void gb_set_error_list(const char *format, va_list args);
/* Records the message and is the status: gb_fail(GB_INVALID_SHAPE, "...", ...). A macro, so that
 * the compiler sees that it is no success. */
#define gb_fail(status, ...) (gb_set_error(__VA_ARGS__), gb_same_status(status))

static inline gb_status gb_same_status(gb_status status)
{
    return status;
}
/* Puts "text: " in front of the recorded message, for callers who know which file or case it was.
 */
gb_status gb_fail_prefix(gb_status status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Of a function that lists `entries`, as graphbench.h says: is there room for them? Tells the count,
 * if it is asked for; with `list` NULL that is all. */
gb_status gb_check_list(
        const char *function, size_t entries, size_t capacity, const void *list, size_t *count);

/* Passes a failure on. The only macro of the project that returns. */
#define GB_TRY(call)                                                                               \
    do {                                                                                           \
        gb_status gb_try_status_ = (call);                                                         \
        if (gb_try_status_ != GB_SUCCESS)                                                          \
            return gb_try_status_;                                                                 \
    } while (0)

#endif
