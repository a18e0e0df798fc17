/* Reading the text form: a place in the text, what comes next, and faults with their place. */
#ifndef GB_GRAPH_IO_TEXT_READER_H
#define GB_GRAPH_IO_TEXT_READER_H

#include "graph/ir/graph.h"

enum { GB_TEXT_WORD = 64 }; /* longest word, with its end */

typedef struct gb_text_reader {
    const char *name; /* of the file, for messages */
    const char *at, *end, *line_start;
    size_t line;
    gb_graph *graph;
    gb_op *op; /* being read, once its kind is known; owned */
    uint32_t n_outputs, output_capacity;
    gb_logical_tensor *outputs; /* of the op being read; owned */
    uint32_t string_capacity;
    char *string; /* the latest; owned */
} gb_text_reader;

/* Puts "file:line:column" in front of the recorded message; `at` is in the line that is read. */
gb_status gb_text_prefix(const gb_text_reader *r, const char *at, gb_status status);
/* GB_INVALID_GRAPH: "file:line:column: op 7 (MatMul): text". */
gb_status gb_text_fail(const gb_text_reader *r, const char *at, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* "... where EXPECTED is expected", at the place of the reader. */
gb_status gb_text_fail_expected(const gb_text_reader *r, const char *expected);

void gb_text_skip_blanks(gb_text_reader *r);
bool gb_text_at_end_of_line(gb_text_reader *r);
/* Goes on to the next line that has more than a comment; false at the end of the text. */
bool gb_text_next_line(gb_text_reader *r);
/* Consumes the character, or the text, when it is what comes next. */
bool gb_text_take(gb_text_reader *r, char c);
bool gb_text_take_text(gb_text_reader *r, const char *text);
gb_status gb_text_expect(gb_text_reader *r, char c);

/* The length of the word at the reader's place: letters, digits and `others`; 0 when it is too
 * long. */
size_t gb_text_word_length(const gb_text_reader *r, const char *others);
gb_status gb_text_read_word(
        gb_text_reader *r, const char *others, const char *expected, char word[GB_TEXT_WORD]);
gb_status gb_text_read_unsigned(gb_text_reader *r, const char *expected, size_t *number);
gb_status gb_text_read_s64(gb_text_reader *r, int64_t *number);
/* With a decimal point, in the locale of the program; inf, -inf and nan. */
gb_status gb_text_read_f32(gb_text_reader *r, float *number);
/* true or false */
gb_status gb_text_read_bool(gb_text_reader *r, bool *value);
/* In r->string, until the next one is read. */
gb_status gb_text_read_string(gb_text_reader *r);

/* %id, with a description where it is first mentioned. */
gb_status gb_text_read_tensor(gb_text_reader *r, gb_logical_tensor *tensor);
/* name=value of r->op */
gb_status gb_text_read_attr(gb_text_reader *r);

#endif
