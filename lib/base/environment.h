/* Settings from environment variables. What cannot be understood is said on the standard error and
 * disregarded. */
#ifndef GB_BASE_ENVIRONMENT_H
#define GB_BASE_ENVIRONMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct gb_named_flags {
    const char *name;
    unsigned flags;
} gb_named_flags;

/* The flags of a comma-separated list of words, in any case; the table ends with a NULL name. */
unsigned gb_environment_flags(const char *variable, const gb_named_flags *table);
/* The same, read and complained of once: `flags` is negative until then, and may be set by any thread. */
unsigned gb_environment_flags_once(
        atomic_int *flags, const char *variable, const gb_named_flags *table);
/* The number in `text`, of digits alone; false, and a message on the variable, when it is none. */
bool gb_environment_number(const char *variable, const char *text, size_t length, size_t *number);
/* Says on the standard error that the variable holds `text`, and what it should. */
void gb_environment_complain(
        const char *variable, const char *text, size_t length, const char *wanted);

#endif
