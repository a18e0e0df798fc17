/* The names by which cases are found again. */
#include "cli/options/case_name.h"

#include "cli/options/text.h"

#include <stdlib.h>
#include <string.h>

static const char option[] = "--expected-n-partitions=1 "; /* a word, and the space behind it */
static const char place[] = "--input-dir=";                /* the beginning of a word */

/* Behind the word that begins here and the space that follows; spaces between quotes are its own. */
static const char *skip_word(const char *at)
{
    bool quoted = false;
    for (; *at && (quoted || *at != ' '); at++) {
        if (*at == '\'')
            quoted = !quoted;
        else if (*at == '\\' && !quoted && at[1])
            at++;
    }
    return at + (*at == ' ');
}

/* Does the word, with the space behind it, say nothing of what the case is? */
static bool is_no_part(const char *word, size_t length)
{
    if (length == strlen(option) && strncmp(word, option, length) == 0)
        return true;
    return strncmp(word + (*word == '\''), place, strlen(place)) == 0;
}

char *gb_cli_case_name(const char *line)
{
    gb_text name = {0};
    gb_cli_text_add_part(&name, "", 0);
    for (const char *next; *line; line = next) {
        next = skip_word(line);
        size_t length = (size_t)(next - line);
        if (!is_no_part(line, length))
            gb_cli_text_add_part(&name, line, length);
    }
    return name.data;
}

/* The case is the last word, and the option stands right in front of it. */
char *gb_cli_case_name_with_option(const char *line)
{
    char *name = gb_cli_case_name(line);
    const char *last = name;
    for (const char *next; *(next = skip_word(last));)
        last = next;
    gb_text with = {0};
    gb_cli_text_add(&with, "%.*s%s%s", (int)(last - name), name, option, last);
    free(name);
    return with.data;
}

bool gb_cli_case_names_are_equal(const char *line, const char *other)
{
    char *a = gb_cli_case_name(line), *b = gb_cli_case_name(other);
    bool equal = strcmp(a, b) == 0;
    free(a);
    free(b);
    return equal;
}
