/* What all parts of the bridge use: the last error, the log, memory that goes all at once. */
#ifndef GB_BRIDGE_COMMON_H
#define GB_BRIDGE_COMMON_H

#include "graphbench_bridge.h"

#include <stdbool.h>
#include <stdint.h>

#define BR_COUNT(array) (sizeof(array) / sizeof(array)[0])
#define BR_TRY(call)                                                                               \
    do {                                                                                           \
        gb_status br_status = (call);                                                              \
        if (br_status != GB_SUCCESS)                                                               \
            return br_status;                                                                      \
    } while (0)

enum { BR_NONE = UINT32_MAX }; /* an index of nothing */

/* Notes the message for gb_bridge_last_error() and gives `status`. */
#define br_fail(status, ...) (br_note_failure(__VA_ARGS__), (status))
__attribute__((format(printf, 1, 2))) void br_note_failure(const char *format, ...);
gb_status br_out_of_memory(void);
/* Passes a failure of the library on, with its message behind `what`. */
gb_status br_fail_library(gb_status status, const char *what);

/* What GB_BRIDGE_LOG says. Read once. */
int br_log_level(void);
__attribute__((format(printf, 2, 3))) void br_log(int level, const char *format, ...);

/* Memory of one owner, which goes all at once. Once an allocation has failed, `failed` stays set,
 * and all that follow fail, too: callers may look at the end. */
typedef struct br_block br_block;
typedef struct br_arena {
    br_block *blocks;
    bool failed;
} br_arena;

/* Zeroed; NULL when out of memory. */
void *br_alloc(br_arena *arena, size_t count, size_t size);
/* A copy of `length` bytes with a NUL behind. */
char *br_copy_text(br_arena *arena, const char *text, size_t length);
__attribute__((format(printf, 2, 3))) char *br_format(br_arena *arena, const char *format, ...);
void br_release(br_arena *arena);
/* Room for one more in an array of the arena that doubles; false when out of memory. `array` points
 * to the pointer. */
bool br_grow(br_arena *arena, void *array, uint32_t *capacity, uint32_t count, size_t size);

/* Text that grows. */
typedef struct br_text {
    char *text; /* malloc'ed, ends in NUL; NULL while empty */
    size_t length, capacity;
    bool failed;
} br_text;
__attribute__((format(printf, 2, 3))) void br_print(br_text *text, const char *format, ...);
/* As a JSON string, with quotes. */
void br_print_quoted(br_text *text, const char *string);

/* From names to indices. */
typedef struct br_names {
    uint32_t *slots; /* index + 1; 0: free */
    const char **names;
    uint32_t capacity, count, names_capacity;
} br_names;
/* Adds a name, whose text must stay, with the next number. The number of a name that is there.
 * BR_NONE: out of memory. */
uint32_t br_names_add(br_arena *arena, br_names *names, const char *name);
/* BR_NONE when there is none. */
uint32_t br_names_find(const br_names *names, const char *name);

#endif
