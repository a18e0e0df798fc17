/* Splits batch files into words. */
#include "cli/case/batch.h"

#include "cli/options/message.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_space(char character)
{
    return isspace((unsigned char)character) || character == '\0';
}

static void add_word(gb_words *words, gb_text *glued, size_t line)
{
    words->items = gb_cli_realloc(words->items, words->count + 1, sizeof(*words->items));
    words->items[words->count++] =
            (gb_word){.text = gb_cli_copy(gb_cli_text_get(glued)), .line = line};
    gb_cli_text_clear(glued);
}

/* The last word goes on: it is taken back. */
static void reopen_word(gb_words *words, gb_text *glued, size_t *line)
{
    gb_word *last = &words->items[--words->count];
    *line = last->line;
    gb_cli_text_add(glued, "%s", last->text);
    free(last->text);
}

void gb_cli_words_split(const char *text, size_t length, gb_words *words)
{
    *words = (gb_words){0};
    gb_text glued = {0};
    bool gluing = false;
    size_t physical_line = 1, line = 1;
    for (size_t at = 0; at < length;) {
        if (is_space(text[at])) {
            if (text[at] == '\n')
                physical_line++;
            if (text[at] == '\n' && !gluing)
                line = physical_line;
            at++;
            continue;
        }
        if (text[at] == '#') {
            while (at < length && text[at] != '\n')
                at++;
            continue;
        }
        size_t begin = at;
        while (at < length && !is_space(text[at]))
            at++;
        bool alone = !gluing && at - begin == 1 && text[begin] == '\\';
        if (alone && words->count > 0)
            reopen_word(words, &glued, &line);
        gluing = text[at - 1] == '\\';
        gb_cli_text_add_part(&glued, text + begin, at - begin - gluing);
        if (!gluing)
            add_word(words, &glued, line);
    }
    if (glued.length)
        add_word(words, &glued, line);
    gb_cli_text_free(&glued);
}

/* Bounded, and no binary: a device or a pipe may never end. */
static gb_status read_stream(FILE *file, const char *path, gb_text *text)
{
    const size_t most = (size_t)BATCH_MEBIBYTES << 20;
    char block[4096];
    size_t length;
    while ((length = fread(block, 1, sizeof(block), file)) > 0) {
        if (memchr(block, '\0', length))
            return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s is no text: it has NUL characters", path);
        if (text->length + length > most)
            return gb_cli_fail(
                    GB_INVALID_ARGUMENTS, "%s is larger than %d MiB", path, (int)BATCH_MEBIBYTES);
        gb_cli_text_add_part(text, block, length);
    }
    if (ferror(file))
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "cannot read %s: %s", path, strerror(errno));
    return GB_SUCCESS;
}

gb_status gb_cli_words_read(const char *path, gb_words *words)
{
    *words = (gb_words){0};
    FILE *file = fopen(path, "rb");
    if (!file)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "cannot open %s: %s", path, strerror(errno));
    gb_text text = {0};
    gb_status status = read_stream(file, path, &text);
    fclose(file);
    size_t mark = gb_cli_mark_length(gb_cli_text_get(&text));
    const char *words_at = gb_cli_text_get(&text) + mark;
    const char *begin = words_at + strspn(words_at, " \t\r\n");
    if (status == GB_SUCCESS && *begin == '{')
        status = gb_cli_fail(GB_INVALID_ARGUMENTS,
                "%s is no batch file but looks like a graph: --case=%s", path, path);
    if (status == GB_SUCCESS)
        gb_cli_words_split(words_at, text.length - mark, words);
    gb_cli_text_free(&text);
    return status;
}

void gb_cli_words_free(gb_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i].text);
    free(words->items);
    *words = (gb_words){0};
}
