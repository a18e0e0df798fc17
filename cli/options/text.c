/* Growing strings and checked allocation of the command line. */
#include "cli/options/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *gb_cli_realloc(void *memory, size_t count, size_t element_bytes)
{
    if (count == 0)
        count = 1;
    void *result = count > SIZE_MAX / element_bytes ? NULL : realloc(memory, count * element_bytes);
    if (!result) {
        fputs("graph-bench: out of memory\n", stderr);
        exit(1);
    }
    return result;
}

int gb_cli_compare_ids(const void *a, const void *b)
{
    const size_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

char *gb_cli_copy_part(const char *string, size_t length)
{
    char *copy = gb_cli_realloc(NULL, length + 1, 1);
    memcpy(copy, string, length);
    copy[length] = '\0';
    return copy;
}

char *gb_cli_copy(const char *string)
{
    return gb_cli_copy_part(string, strlen(string));
}

static void reserve(gb_text *text, size_t extra)
{
    size_t needed = text->length + extra + 1;
    if (needed <= text->capacity)
        return;
    text->capacity = needed < 64 ? 64 : needed * 2;
    text->data = gb_cli_realloc(text->data, text->capacity, 1);
}

void gb_cli_text_add_part(gb_text *text, const char *string, size_t length)
{
    reserve(text, length);
    if (length > 0)
        memcpy(text->data + text->length, string, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void gb_cli_text_add_list(gb_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length > 0) {
        reserve(text, (size_t)length);
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void gb_cli_text_add(gb_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gb_cli_text_add_list(text, format, args);
    va_end(args);
}

void gb_cli_text_clear(gb_text *text)
{
    text->length = 0;
    if (text->data)
        text->data[0] = '\0';
}

void gb_cli_text_free(gb_text *text)
{
    free(text->data);
    *text = (struct gb_text){0};
}

const char *gb_cli_text_get(const gb_text *text)
{
    return text->data ? text->data : "";
}

size_t gb_cli_mark_length(const char *string)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    size_t length = strlen(byte_order_mark);
    return strncmp(string, byte_order_mark, length) == 0 ? length : 0;
}

uint64_t gb_cli_hash_text(uint64_t hash, const char *string)
{
    do
        hash = (hash ^ (unsigned char)*string) * UINT64_C(1099511628211);
    while (*string++);
    return hash;
}

size_t gb_cli_edit_distance(const char *a, const char *b)
{
    size_t row[64], length = strnlen(b, 63);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            size_t shifted = (row[j] < diagonal ? row[j] : diagonal) + 1;
            row[j + 1] = replaced < shifted ? replaced : shifted;
        }
    }
    return row[length];
}
