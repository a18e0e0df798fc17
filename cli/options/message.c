/* Errors and warnings of the command line. */
#include "cli/options/message.h"

#include "cli/options/text.h"

#include <stdarg.h>
#include <stdio.h>

static char message[1024];
static gb_text kept; /* what was printed since gb_cli_messages_clear() */

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

static void print(const char *kind, const char *place, gb_text *later, const char *format,
        va_list args) __attribute__((format(printf, 4, 0)));

/* `later`: where what is to be printed goes; NULL: it is printed. */
static void print(
        const char *kind, const char *place, gb_text *later, const char *format, va_list args)
{
    gb_text line = {0};
    gb_cli_text_add(&line, "%s: ", kind);
    if (place && *place)
        gb_cli_text_add(&line, "%s: ", place);
    gb_cli_text_add_list(&line, format, args);
    if (later) {
        gb_cli_text_add(later, "graph-bench: %s\n", line.data);
    } else {
        fflush(stdout);
        fprintf(stderr, "graph-bench: %s\n", line.data);
    }
    gb_cli_text_add(&kept, "%s\n", line.data);
    gb_cli_text_free(&line);
}

void gb_cli_print_error(const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("error", place, NULL, format, args);
    va_end(args);
}

void gb_cli_defer_error(gb_text *later, const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("error", place, later, format, args);
    va_end(args);
}

void gb_cli_print_warning(const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("warning", place, NULL, format, args);
    va_end(args);
}

void gb_cli_messages_clear(void)
{
    gb_cli_text_clear(&kept);
}

void gb_cli_messages_add(const char *lines)
{
    gb_cli_text_add(&kept, "%s", lines);
}

const char *gb_cli_messages(void)
{
    return gb_cli_text_get(&kept);
}
