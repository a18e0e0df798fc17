/* The text form of graphs, one op to a line (docs/graph-text.md). */
#ifndef GB_GRAPH_IO_TEXT_H
#define GB_GRAPH_IO_TEXT_H

#include "graph/ir/graph.h"

#include <stdio.h>

/* The parts of the form, for dumps that put comments in between. Numbers are written in the locale
 * of the program. */

/* The first line, with its end. */
void gb_text_write_header(FILE *file, const gb_graph *graph);
/* An op of a graph, without the end of the line. `described` tells of which values the description
 * was written; it is written with their first mention. */
void gb_text_write_op(FILE *file, const gb_op *op, bool *described);

/* Is this text a graph in the text form, judged by its first word? */
bool gb_is_text(const char *text, size_t length);

#endif
