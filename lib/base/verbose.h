/* Lines on what the library does (GB_VERBOSE): fields separated by commas, one write each. */
#ifndef GB_BASE_VERBOSE_H
#define GB_BASE_VERBOSE_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

/* A sum of gb_verbose; negative until the environment was asked. */
extern atomic_int gb_verbose_flags;
/* Asks the environment first. */
bool gb_verbose_asked(unsigned flags);

/* Does somebody want lines of this kind? */
static inline bool gb_verbose_on(unsigned flags)
{
    return atomic_load_explicit(&gb_verbose_flags, memory_order_relaxed) != 0 &&
           gb_verbose_asked(flags);
}

/* A line in the making. */
typedef struct gb_line {
    FILE *file; /* takes the text */
    char *text;
    size_t length;
} gb_line;

/* Starts with the fields that all lines have. False: no memory, and no line. */
bool gb_line_begin(gb_line *line, const char *event);
/* Text, in which commas and control characters become '_'. */
void gb_line_add(gb_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A field: a comma and the text. */
void gb_line_field(gb_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A field of nanoseconds, as milliseconds. */
void gb_line_milliseconds(gb_line *line, int64_t nanoseconds);
/* Writes the line and frees it. Lines of several threads do not mix. */
void gb_line_end(gb_line *line);

/* Writes a line for an error whose message is recorded, asked for or not. */
void gb_verbose_write_error(const char *where, gb_status status);
/* Passes a status on; a failure gets its line when errors are asked for. */
gb_status gb_verbose_result(const char *where, gb_status status);

/* A clock that never goes back. */
int64_t gb_nanoseconds(void);

#endif
