/* Checked memory. */
#include "base/guard.h"

#include "base/environment.h"

#include <string.h>

enum { GUARD = 256, POISON = 0xFF };

static atomic_int checked = -1; /* not asked yet */

size_t gb_guard_bytes(void)
{
    static const gb_named_flags words[] = {{"on", 1}, {"off", 0}, {NULL, 0}};
    return gb_environment_flags_once(&checked, "GB_CHECK_MEMORY", words) ? GUARD : 0;
}

void gb_guard_set(bool on)
{
    atomic_store(&checked, on);
}

void gb_poison(void *memory, size_t bytes)
{
    memset(memory, POISON, bytes);
}

bool gb_is_poison(const void *memory, size_t bytes)
{
    const unsigned char *at = memory;
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != POISON)
            return false;
    return true;
}
