/* Growing strings and checked allocation of the command line. Out of memory ends the program with a
 * message: what the command line itself keeps is small, the tensors are allocated elsewhere. */
#ifndef GB_CLI_OPTIONS_TEXT_H
#define GB_CLI_OPTIONS_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Always NUL-terminated once something was added; all zero is empty. */
typedef struct gb_text {
    char *data; /* owned */
    size_t length;
    size_t capacity;
} gb_text;

/* Like realloc() for `count` elements; never NULL. */
void *gb_cli_realloc(void *memory, size_t count, size_t element_bytes);
/* Compares two ids, for qsort() and bsearch(). */
int gb_cli_compare_ids(const void *a, const void *b);
char *gb_cli_copy(const char *string);
char *gb_cli_copy_part(const char *string, size_t length);

void gb_cli_text_add(gb_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gb_cli_text_add_list(gb_text *text, const char *format, va_list args)
        __attribute__((format(printf, 2, 0)));
void gb_cli_text_add_part(gb_text *text, const char *string, size_t length);
/* Keeps the memory. */
void gb_cli_text_clear(gb_text *text);
void gb_cli_text_free(gb_text *text);
/* Bytes of a byte order mark that the string begins with. */
size_t gb_cli_mark_length(const char *string);
/* "" while nothing was added. */
const char *gb_cli_text_get(const gb_text *text);
/* Goes on with a hash (FNV-1a), which starts from GB_TEXT_HASH; the end of the string counts. It is
 * kept in histories. */
#define GB_TEXT_HASH UINT64_C(14695981039346656037)
uint64_t gb_cli_hash_text(uint64_t hash, const char *string);
/* Letters to insert, delete or replace to turn one word into the other (Levenshtein); words are cut
 * at 63 letters. */
size_t gb_cli_edit_distance(const char *a, const char *b);

#endif
