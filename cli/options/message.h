/* Errors and warnings of the command line: a failing function composes one line and returns a
 * status, whoever decides what happens next prints it. The command line parses and rewrites in one
 * thread. */
#ifndef GB_CLI_OPTIONS_MESSAGE_H
#define GB_CLI_OPTIONS_MESSAGE_H

#include "cli/options/text.h"

#include <graphbench/graphbench.h>

/* Records the message and returns `status`. */
gb_status gb_cli_fail(gb_status status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
/* Records the library's message for a status the library just returned. */
gb_status gb_cli_fail_library(gb_status status);
/* The message recorded last. */
const char *gb_cli_failure(void);

/* "graph-bench: error: [place: ]..." on stderr; place NULL or "" is left out. */
void gb_cli_print_error(const char *place, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void gb_cli_print_warning(const char *place, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
/* An error of which the line is added to `later`, to be printed by the caller. */
void gb_cli_defer_error(gb_text *later, const char *place, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* The errors and warnings printed since gb_cli_messages_clear(), a line each; lent until the next
 * one. */
const char *gb_cli_messages(void);
/* Counts lines as printed that another process has printed. */
void gb_cli_messages_add(const char *lines);
void gb_cli_messages_clear(void);

/* Pass a failure of our own or of a library call on. */
#define CLI_TRY(call)                                                                              \
    do {                                                                                           \
        gb_status cli_try_status_ = (call);                                                        \
        if (cli_try_status_ != GB_SUCCESS)                                                         \
            return cli_try_status_;                                                                \
    } while (0)
#define LIB_TRY(call)                                                                              \
    do {                                                                                           \
        gb_status lib_try_status_ = (call);                                                        \
        if (lib_try_status_ != GB_SUCCESS)                                                         \
            return gb_cli_fail_library(lib_try_status_);                                           \
    } while (0)

#endif
