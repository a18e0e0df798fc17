/* Reads words and numbers out of the value of an option; failures name the character at fault. */
#ifndef GB_CLI_OPTIONS_CURSOR_H
#define GB_CLI_OPTIONS_CURSOR_H

#include <graphbench/graphbench.h>
#include <stdbool.h>

typedef struct gb_cursor {
    const char *start;
    const char *at;
} gb_cursor;

enum { WORD_LIMIT = 64 };

/* Fails: "expected WHAT at character N, ...". */
gb_status gb_cli_expected(const gb_cursor *input, const char *what);
/* Takes the characters up to one of `stops` or the end, at least one; `what` names them in the
 * message. `word` has room for WORD_LIMIT. */
gb_status gb_cli_parse_word(gb_cursor *input, const char *stops, const char *what, char *word);
/* Stops before one of "x*+,:." */
gb_status gb_cli_parse_integer(gb_cursor *input, const char *what, int64_t *value);
/* Stops before one of "x*+,:" */
gb_status gb_cli_parse_float(gb_cursor *input, const char *what, float *value);
/* A number without sign or leading zeros. */
gb_status gb_cli_parse_count(gb_cursor *input, const char *what, int64_t *value);
/* An id and the ':' behind it. With `tagged` a '*' and letters of axes may stand between them,
 * which is told there. */
gb_status gb_cli_parse_id(gb_cursor *input, size_t *id, bool *tagged);
/* 0, 1, true or false, in letters of either case. */
gb_status gb_cli_parse_truth(gb_cursor *input, bool *value);

#endif
