/* Errors and warnings of the command line. */
#include "cli/options/message.h"

#include <stdarg.h>
#include <stdio.h>

static char message[1024];

gb_status gb_cli_fail(gb_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return status;
}

gb_status gb_cli_fail_library(gb_status status)
{
    const char *text = gb_last_error();
    return gb_cli_fail(status, "%s", *text ? text : gb_status_name(status));
}

const char *gb_cli_failure(void)
{
    return message;
}

static void print(const char *kind, const char *place, const char *format, va_list args)
        __attribute__((format(printf, 3, 0)));

static void print(const char *kind, const char *place, const char *format, va_list args)
{
    fflush(stdout);
    fprintf(stderr, "graph-bench: %s: ", kind);
    if (place && *place)
        fprintf(stderr, "%s: ", place);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void gb_cli_print_error(const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("error", place, format, args);
    va_end(args);
}

void gb_cli_print_warning(const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("warning", place, format, args);
    va_end(args);
}
