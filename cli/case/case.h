/* One case: a graph file with one alternative of each list option, loaded and rewritten. */
#ifndef GB_CLI_CASE_CASE_H
#define GB_CLI_CASE_CASE_H

#include "cli/options/settings.h"

typedef struct gb_case {
    size_t index;                             /* counts from 0 over the whole process */
    const char *file;                         /* as the user wrote it */
    const char *path;                         /* where it was found */
    const gb_alternative *choice[AXIS_COUNT]; /* lent by the settings */
    const char *repro;     /* "[globals ]--graph ... --case=file": runs exactly this case again */
    const char *arguments; /* the part behind "--graph " */
    char *outside; /* of a model: its inputs and what is not in the graph, one line each; owned */
    size_t n_model_inputs; /* of a model: ids below are those of its inputs; else 0 */
    gb_graph *graph;       /* owned by the case; not finalized; NULL before gb_cli_case_load() */
} gb_case;

/* Reads the file. The message of a failure is gb_cli_failure(), here and below. */
gb_status gb_cli_case_load(gb_case *test);
/* Applies the chosen overrides and infers every produced shape anew. */
gb_status gb_cli_case_rewrite(gb_case *test);
/* Is the rewritten graph one that can run? GB_INVALID_ARGUMENTS: elements of a result share memory.
 */
gb_status gb_cli_case_verify(const gb_case *test);
/* Frees the graph. */
void gb_cli_case_unload(gb_case *test);

/* The graph in short, one line per op, for -v7. */
void gb_cli_print_graph(const gb_graph *graph);

#endif
