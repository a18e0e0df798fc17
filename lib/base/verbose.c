/* Lines on what the library does. */
#include "base/verbose.h"

#include "base/environment.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KNOWN_FLAGS = GB_VERBOSE_ALL | GB_VERBOSE_TIMESTAMP };

atomic_int gb_verbose_flags = -1;

static const gb_named_flags words[] = {
        {"none", GB_VERBOSE_NONE},
        {"error", GB_VERBOSE_ERROR},
        {"dispatch", GB_VERBOSE_DISPATCH},
        {"create", GB_VERBOSE_CREATE},
        {"exec", GB_VERBOSE_EXEC},
        {"all", GB_VERBOSE_ALL},
        {"timestamp", GB_VERBOSE_TIMESTAMP},
        {"0", GB_VERBOSE_NONE},
        {"1", GB_VERBOSE_ERROR | GB_VERBOSE_EXEC},
        {"2", GB_VERBOSE_ALL},
        {NULL, 0},
};

bool gb_verbose_asked(unsigned flags)
{
    return (gb_environment_flags_once(&gb_verbose_flags, "GB_VERBOSE", words) & flags) != 0;
}

gb_status gb_set_verbose(unsigned flags)
{
    if (flags & ~(unsigned)KNOWN_FLAGS)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_set_verbose: no flags %#x", flags);
    atomic_store(&gb_verbose_flags, (int)flags);
    return GB_SUCCESS;
}

int64_t gb_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool gb_line_begin(gb_line *line, const char *event)
{
    *line = (gb_line){.text = NULL};
    line->file = open_memstream(&line->text, &line->length);
    if (!line->file)
        return false;
    fputs("graphbench", line->file);
    int flags = atomic_load(&gb_verbose_flags); /* negative when the environment is being read */
    if (flags > 0 && flags & GB_VERBOSE_TIMESTAMP)
        gb_line_milliseconds(line, gb_nanoseconds());
    gb_line_field(line, "%s", event);
    return true;
}

static bool breaks_fields(char c)
{
    return c == ',' || (unsigned char)c < ' ' || c == 0x7F;
}

static void verbose_add(gb_line *line, const char *format, va_list args)
        __attribute__((format(printf, 2, 0)));

static void verbose_add(gb_line *line, const char *format, va_list args)
{
    fflush(line->file);
    size_t begin = line->length;
    vfprintf(line->file, format, args);
    if (fflush(line->file) != 0)
        return;
    for (size_t i = begin; i < line->length; i++)
        if (breaks_fields(line->text[i]))
            line->text[i] = '_';
}

void gb_line_add(gb_line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    verbose_add(line, format, args);
    va_end(args);
}

void gb_line_field(gb_line *line, const char *format, ...)
{
    va_list args;
    fputc(',', line->file);
    va_start(args, format);
    verbose_add(line, format, args);
    va_end(args);
}

void gb_line_milliseconds(gb_line *line, int64_t nanoseconds)
{
    const int64_t million = 1000000; /* no floating point: its form depends on the locale */
    fprintf(line->file, ",%" PRId64 ".%06" PRId64, nanoseconds / million, nanoseconds % million);
}

void gb_line_end(gb_line *line)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    fputc('\n', line->file);
    if (fclose(line->file) == 0) {
        pthread_mutex_lock(&lock);
        fwrite(line->text, 1, line->length, stderr);
        fflush(stderr);
        pthread_mutex_unlock(&lock);
    }
    free(line->text);
}

void gb_verbose_write_error(const char *where, gb_status status)
{
    gb_line line;
    if (!gb_line_begin(&line, "error"))
        return;
    gb_line_field(&line, "%s", where);
    gb_line_field(&line, "%s", gb_status_name(status));
    gb_line_field(&line, "%s", gb_last_error());
    gb_line_end(&line);
}

gb_status gb_verbose_result(const char *where, gb_status status)
{
    if (status != GB_SUCCESS && gb_verbose_on(GB_VERBOSE_ERROR))
        gb_verbose_write_error(where, status);
    return status;
}
