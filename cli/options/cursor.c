/* Reads words and numbers out of the value of an option. */
#include "cli/options/cursor.h"

#include "cli/options/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

gb_status gb_cli_expected(const gb_cursor *input, const char *what)
{
    size_t position = (size_t)(input->at - input->start) + 1;
    if (!*input->at)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "expected %s at the end of the value", what);
    return gb_cli_fail(GB_INVALID_ARGUMENTS, "expected %s at character %zu, \"%.24s\"", what,
            position, input->at);
}

gb_status gb_cli_parse_word(gb_cursor *input, const char *stops, const char *what, char *word)
{
    size_t length = strcspn(input->at, stops);
    if (length == 0 || length >= WORD_LIMIT)
        return gb_cli_expected(input, what);
    memcpy(word, input->at, length);
    word[length] = '\0';
    input->at += length;
    return GB_SUCCESS;
}

gb_status gb_cli_parse_integer(gb_cursor *input, const char *what, int64_t *value)
{
    gb_cursor begin = *input;
    char word[WORD_LIMIT], *end;
    CLI_TRY(gb_cli_parse_word(input, "x*+,:.", what, word));
    bool starts_well = (word[0] >= '0' && word[0] <= '9') || word[0] == '-';
    errno = 0;
    *value = strtoll(word, &end, 10);
    if (!starts_well || *end || errno || *value == GB_UNKNOWN_DIM)
        return gb_cli_expected(&begin, what);
    return GB_SUCCESS;
}

gb_status gb_cli_parse_float(gb_cursor *input, const char *what, float *value)
{
    gb_cursor begin = *input;
    char word[WORD_LIMIT], *end;
    CLI_TRY(gb_cli_parse_word(input, "x*+,:", what, word));
    *value = strtof(word, &end);
    return *end ? gb_cli_expected(&begin, what) : GB_SUCCESS;
}

gb_status gb_cli_parse_count(gb_cursor *input, const char *what, int64_t *value)
{
    gb_cursor begin = *input;
    CLI_TRY(gb_cli_parse_integer(input, what, value));
    bool plain = *value >= 0 && (begin.at[0] != '0' || *value == 0) &&
                 !(begin.at[0] == '0' && input->at - begin.at > 1);
    return plain ? GB_SUCCESS : gb_cli_expected(&begin, what);
}

gb_status gb_cli_parse_id(gb_cursor *input, size_t *id, bool *tagged)
{
    gb_cursor begin = *input;
    char word[WORD_LIMIT], *end;
    CLI_TRY(gb_cli_parse_word(input, ":+,", "an id", word));
    errno = 0;
    unsigned long long number = strtoull(word, &end, 10);
    if (tagged && *end == '*' && end[1]) {
        size_t tag = strspn(end + 1, "abcdefghijkl");
        *tagged = end[1 + tag] == '\0';
        end += *tagged ? 1 + tag : 0;
    }
    if (word[0] < '0' || word[0] > '9' || *end || errno || number > SIZE_MAX)
        return gb_cli_expected(&begin, "an id (a number)");
    if (*input->at != ':')
        return gb_cli_expected(input, "':' behind the id");
    input->at++;
    *id = (size_t)number;
    return GB_SUCCESS;
}

gb_status gb_cli_parse_truth(gb_cursor *input, bool *value)
{
    gb_cursor begin = *input;
    char word[WORD_LIMIT];
    CLI_TRY(gb_cli_parse_word(input, "*+,:", "true or false", word));
    *value = strcmp(word, "1") == 0 || strcasecmp(word, "true") == 0;
    if (*value || strcmp(word, "0") == 0 || strcasecmp(word, "false") == 0)
        return GB_SUCCESS;
    return gb_cli_expected(&begin, "0, 1, true or false");
}
