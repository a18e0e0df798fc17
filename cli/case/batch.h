/* Batch files: the words of a file, and where files are found. */
#ifndef GB_CLI_CASE_BATCH_H
#define GB_CLI_CASE_BATCH_H

#include "cli/options/settings.h"

typedef struct gb_word {
    char *text;  /* owned */
    size_t line; /* line on which its logical line begins: lines glued by '\' count as one */
} gb_word;

typedef struct gb_words {
    size_t count;
    gb_word *items; /* owned */
} gb_words;

enum { BATCH_MEBIBYTES = 16 }; /* of the largest batch file */

/* Words are separated by white space. A word that starts with '#' hides the rest of its line; a
 * word that ends in '\' is glued to the next one, and a '\' alone glues the words around it. */
void gb_cli_words_split(const char *text, size_t length, gb_words *words);
gb_status gb_cli_words_read(const char *path, gb_words *words);
void gb_cli_words_free(gb_words *words);

/* Directories of the files named so far, oldest first. */
enum { SEARCH_LIMIT = 30 };
typedef struct gb_search {
    char *dirs[SEARCH_LIMIT]; /* owned */
    size_t count;
    bool full; /* the warning was given */
} gb_search;

/* The path under which `name` can be opened (owned by the caller): as given, below a remembered
 * directory, below an
 * --input-dir, $GRAPHBENCH_INPUT_DIR, or the inputs/graph beside the program or one folder up; else
 * a copy of the name. */
char *gb_cli_search(gb_search *search, const gb_settings *settings, const char *name);
void gb_cli_search_free(gb_search *search);

#endif
