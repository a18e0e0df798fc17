/* Places, tokens and faults of the text form. */
#include "graph/io/text_reader.h"

#include "base/memory.h"
#include "base/status.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gb_status gb_text_prefix(const gb_text_reader *r, const char *at, gb_status status)
{
    return gb_fail_prefix(status, "%s:%zu:%zu", r->name, r->line, (size_t)(at - r->line_start) + 1);
}

gb_status gb_text_fail(const gb_text_reader *r, const char *at, const char *format, ...)
{
    const gb_status status = GB_INVALID_GRAPH;
    va_list args;
    va_start(args, format);
    gb_set_error_list(format, args);
    va_end(args);
    if (r->op && r->op != r->graph->attrs)
        gb_fail_prefix(status, "%s", gb_op_label(r->op));
    return gb_text_prefix(r, at, status);
}

/* What stands at the place, for messages. */
static const char *found(const gb_text_reader *r, char text[GB_TEXT_WORD])
{
    size_t n = 0;
    if (r->at == r->end || *r->at == '\n' || *r->at == '#')
        return "the end of the line";
    while (n < 16 && r->at + n < r->end && isgraph((unsigned char)r->at[n]))
        n++;
    if (n == 0)
        return "a character that does not belong here";
    snprintf(text, GB_TEXT_WORD, "\"%.*s\"", (int)n, r->at);
    return text;
}

gb_status gb_text_fail_expected(const gb_text_reader *r, const char *expected)
{
    char text[GB_TEXT_WORD];
    return gb_text_fail(r, r->at, "%s where %s is expected", found(r, text), expected);
}

void gb_text_skip_blanks(gb_text_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

bool gb_text_at_end_of_line(gb_text_reader *r)
{
    gb_text_skip_blanks(r);
    return r->at == r->end || *r->at == '\n' || *r->at == '#';
}

bool gb_text_next_line(gb_text_reader *r)
{
    while (gb_text_at_end_of_line(r)) {
        const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
        if (!end)
            return false;
        r->at = r->line_start = end + 1;
        r->line++;
    }
    return true;
}

bool gb_text_take(gb_text_reader *r, char c)
{
    gb_text_skip_blanks(r);
    bool is_there = r->at < r->end && *r->at == c;
    r->at += is_there;
    return is_there;
}

gb_status gb_text_expect(gb_text_reader *r, char c)
{
    const char text[] = {'"', c, '"', '\0'};
    return gb_text_take(r, c) ? GB_SUCCESS : gb_text_fail_expected(r, text);
}

size_t gb_text_word_length(const gb_text_reader *r, const char *others)
{
    size_t n = 0;
    while (r->at + n < r->end && n < GB_TEXT_WORD &&
            (isalnum((unsigned char)r->at[n]) || (r->at[n] && strchr(others, r->at[n]))))
        n++;
    return n < GB_TEXT_WORD ? n : 0;
}

gb_status gb_text_read_word(
        gb_text_reader *r, const char *others, const char *expected, char word[GB_TEXT_WORD])
{
    gb_text_skip_blanks(r);
    size_t n = gb_text_word_length(r, others);
    if (n == 0)
        return gb_text_fail_expected(r, expected);
    memcpy(word, r->at, n);
    word[n] = '\0';
    r->at += n;
    return GB_SUCCESS;
}

bool gb_text_take_text(gb_text_reader *r, const char *text)
{
    size_t n = strlen(text);
    gb_text_skip_blanks(r);
    bool is_there = (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
    r->at += is_there ? n : 0;
    return is_there;
}

gb_status gb_text_read_unsigned(gb_text_reader *r, const char *expected, size_t *number)
{
    size_t value = 0;
    gb_text_skip_blanks(r);
    const char *start = r->at;
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++) {
        size_t digit = (size_t)(*r->at - '0');
        if (value > (SIZE_MAX - digit) / 10)
            return gb_text_fail(r, start, "a number that does not fit 64 bits");
        value = 10 * value + digit;
    }
    if (r->at == start)
        return gb_text_fail_expected(r, expected);
    *number = value;
    return GB_SUCCESS;
}

gb_status gb_text_read_s64(gb_text_reader *r, int64_t *number)
{
    size_t value;
    bool negative = gb_text_take(r, '-');
    GB_TRY(gb_text_read_unsigned(r, "an integer", &value));
    if (value > (size_t)INT64_MAX + negative)
        return gb_text_fail(r, r->at, "a number that does not fit s64");
    *number = negative ? (int64_t)(0 - (uint64_t)value) : (int64_t)value;
    return GB_SUCCESS;
}

static bool is_special(const char *word)
{
    word += *word == '-';
    return strcmp(word, "inf") == 0 || strcmp(word, "nan") == 0;
}

gb_status gb_text_read_f32(gb_text_reader *r, float *number)
{
    char word[GB_TEXT_WORD], *end;
    gb_text_skip_blanks(r);
    const char *start = r->at;
    GB_TRY(gb_text_read_word(r, "+-.", "a number", word));
    bool decimal = strspn(word, "0123456789+-.eE") == strlen(word);
    *number = (float)strtod(word, &end);
    if ((!decimal && !is_special(word)) || *end)
        return gb_text_fail(r, start, "\"%s\" is no number", word);
    if (decimal && !isfinite(*number))
        return gb_text_fail(r, start, "%s does not fit f32", word);
    return GB_SUCCESS;
}

static gb_status read_escape(gb_text_reader *r, char *c)
{
    unsigned code = 0;
    const char *start = r->at++;
    if (r->at < r->end && (*r->at == '"' || *r->at == '\\')) {
        *c = *r->at++;
        return GB_SUCCESS;
    }
    if (r->end - r->at < 5 || *r->at != 'u')
        return gb_text_fail(r, start, "an escape other than \\\", \\\\ and \\u00xx");
    for (int i = 1; i <= 4; i++) {
        if (!isxdigit((unsigned char)r->at[i]))
            return gb_text_fail(r, start, "\\u is followed by four hexadecimal digits");
        int digit = tolower((unsigned char)r->at[i]);
        code = 16 * code + (unsigned)(isdigit(digit) ? digit - '0' : digit - 'a' + 10);
    }
    if (code == 0 || code > 127)
        return gb_text_fail(r, start, "\\u%04x is not in \\u0001..\\u007f", code);
    r->at += 5;
    *c = (char)code;
    return GB_SUCCESS;
}

gb_status gb_text_read_string(gb_text_reader *r)
{
    size_t length = 0;
    gb_text_skip_blanks(r);
    const char *start = r->at;
    if (!gb_text_take(r, '"'))
        return gb_text_fail_expected(r, "a string in double quotes");
    for (;;) {
        if (!gb_reserve(&r->string, &r->string_capacity, length + 1, 1))
            return GB_OUT_OF_MEMORY;
        if (r->at == r->end || *r->at == '\n')
            return gb_text_fail(r, start, "the string has no end on this line");
        if (*r->at == '"' || *r->at == '\0')
            break;
        if (*r->at == '\\')
            GB_TRY(read_escape(r, &r->string[length++]));
        else
            r->string[length++] = *r->at++;
    }
    r->string[length] = '\0';
    return *r->at++ ? GB_SUCCESS : gb_text_fail(r, start, "the string holds a NUL character");
}

gb_status gb_text_read_bool(gb_text_reader *r, bool *value)
{
    *value = gb_text_take_text(r, "true");
    return *value || gb_text_take_text(r, "false") ? GB_SUCCESS
                                                   : gb_text_fail_expected(r, "true or false");
}
