#define _GNU_SOURCE /* memfd_create */
#include "fuzz.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void fuzz_check(bool condition, const char *format, ...)
{
    if (condition)
        return;
    va_list args;
    va_start(args, format);
    fputs("fuzz: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\n", stderr);
    va_end(args);
    abort();
}

bool fuzz_succeeded(gb_status status, const char *what)
{
    if (status == GB_SUCCESS)
        return true;
    fuzz_check(status > GB_SUCCESS && strcmp(gb_status_name(status), "unknown") != 0,
            "%s: status %d", what, (int)status);
    fuzz_check(gb_last_error()[0] != '\0', "%s: %s has no message", what, gb_status_name(status));
    return false;
}

/* The text that saving gives; owned by the caller. */
static char *saved(const gb_graph *graph, fuzz_save save, size_t *length)
{
    char path[64];
    int file = memfd_create("graph", 0);
    fuzz_check(file >= 0, "no file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    gb_status status = save(graph, path);
    fuzz_check(status == GB_SUCCESS, "a graph that was read cannot be saved: %s", gb_last_error());
    *length = (size_t)lseek(file, 0, SEEK_END);
    char *text = malloc(*length + 1);
    fuzz_check(text && pread(file, text, *length, 0) == (ssize_t)*length,
            "cannot read what was saved");
    text[*length] = '\0';
    close(file);
    return text;
}

void fuzz_check_round_trip(const gb_graph *graph, fuzz_save save, fuzz_parse parse)
{
    gb_graph *again = NULL;
    size_t length, length_again;
    char *text = saved(graph, save, &length);
    gb_status status = parse(&again, text, length);
    fuzz_check(status == GB_SUCCESS, "what was saved is refused: %s\n%s", gb_last_error(), text);
    char *text_again = saved(again, save, &length_again);
    fuzz_check(length == length_again && memcmp(text, text_again, length) == 0,
            "saved again, the graph reads\n%s\ninstead of\n%s", text_again, text);
    gb_graph_destroy(again);
    free(text);
    free(text_again);
}
