/* Checked memory: behind each part of the library's own memory lie bytes that nothing may write, and what a part holds
 * before it is written is NaN.
 */
#ifndef GB_BASE_GUARD_H
#define GB_BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes behind each part that is planned from now on; 0: memory is not checked. GB_CHECK_MEMORY=on, or what was set. */
size_t gb_guard_bytes(void);
void gb_guard_set(bool on);

/* Every byte 0xFF: a NaN of any float type, -1 as an integer. */
void gb_poison(void *memory, size_t bytes);
bool gb_is_poison(const void *memory, size_t bytes);

#endif
