/* Near-misses: graphs of the project's own with one change, which most often breaks a condition of
 * the pattern that the graph was made for. */
#ifndef GB_CLI_PERFORM_NEAR_MISS_H
#define GB_CLI_PERFORM_NEAR_MISS_H

#include "cli/options/settings.h"
#include "cli/perform/random_graph.h"

/* Graph files to begin with. All zero: none. */
typedef struct gb_near_misses {
    char **files; /* owned */
    size_t n;
} gb_near_misses;

/* Looks for the project's graphs of patterns, in the order of their names. None is no failure: a
 * program may stand alone. */
void gb_cli_near_misses_find(const gb_settings *settings, gb_near_misses *misses);
void gb_cli_near_misses_free(gb_near_misses *misses);

/* A legal graph with all shapes known, the caller's; NULL when no change that was tried is legal.
 * Failures are the library's. */
gb_status gb_cli_near_miss(const gb_near_misses *misses, gb_chance *chance, gb_graph **graph);

#endif
