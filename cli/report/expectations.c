/* --expect=FILE: cases that are known not to pass. */
#include "cli/report/expectations.h"

#include "cli/case/filter.h"
#include "cli/options/message.h"
#include "cli/report/report.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gb_expectation {
    gb_case_status status;
    char *glob, *reason; /* owned */
    char *place;         /* owned; "file:line" */
    bool used;
};

/* Cuts white space off both ends, in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

static gb_status read_line(const char *path, size_t number, char *line, gb_expectations *all)
{
    char *hash = strchr(line, '#'), *reason = "";
    if (hash) {
        *hash = '\0';
        reason = trim(hash + 1);
    }
    char *word = trim(line);
    if (!*word)
        return GB_SUCCESS;
    size_t length = strcspn(word, " \t");
    char *glob = trim(word + length + (word[length] != '\0'));
    word[length] = '\0';
    gb_case_status status;
    if (!gb_cli_case_status_find(word, &status))
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "%s:%zu: \"%.40s\" is no verdict of a case", path,
                number, word);
    if (!*glob)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "%s:%zu: which case? A pattern of its file or reproducer line is missing", path,
                number);
    gb_text place = {0};
    gb_cli_text_add(&place, "%s:%zu", path, number);
    all->rows = gb_cli_realloc(all->rows, all->n + 1, sizeof *all->rows);
    all->rows[all->n++] = (struct gb_expectation){
            status, gb_cli_copy(glob), gb_cli_copy(reason), place.data, false};
    return GB_SUCCESS;
}

gb_status gb_cli_expectations_read(const char *path, gb_expectations *expectations)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return gb_cli_fail(GB_INVALID_ARGUMENTS, "cannot open %s: %s", path, strerror(errno));
    char *line = NULL;
    size_t capacity = 0, number = 0;
    gb_status status = GB_SUCCESS;
    while (status == GB_SUCCESS && getline(&line, &capacity, file) > 0) {
        char *text = number == 0 ? line + gb_cli_mark_length(line) : line;
        status = read_line(path, ++number, text, expectations);
    }
    if (status == GB_SUCCESS && ferror(file))
        status = gb_cli_fail(GB_INVALID_ARGUMENTS, "cannot read %s: %s", path, strerror(errno));
    free(line);
    fclose(file);
    if (status != GB_SUCCESS)
        gb_cli_expectations_free(expectations);
    return status;
}

void gb_cli_expectations_free(gb_expectations *expectations)
{
    for (size_t i = 0; i < expectations->n; i++) {
        free(expectations->rows[i].glob);
        free(expectations->rows[i].reason);
        free(expectations->rows[i].place);
    }
    free(expectations->rows);
    *expectations = (gb_expectations){0};
}

const char *gb_cli_expected_reason(
        gb_expectations *expectations, const gb_case *test, gb_case_status status)
{
    for (size_t i = 0; i < expectations->n; i++) {
        struct gb_expectation *row = &expectations->rows[i];
        if (row->status != status || !gb_cli_case_fits(test, row->glob))
            continue;
        row->used = true;
        return row->reason;
    }
    return NULL;
}

size_t gb_cli_expectations_unused(const gb_expectations *expectations)
{
    size_t unused = 0;
    for (size_t i = 0; i < expectations->n; i++) {
        const struct gb_expectation *row = &expectations->rows[i];
        if (row->used)
            continue;
        unused++;
        gb_cli_print_warning(row->place, "no case ended %s as expected here",
                gb_cli_case_status_name(row->status));
    }
    return unused;
}
