/* Graphs written to files, for who asks (GB_GRAPH_DUMP). */
#ifndef GB_RUNTIME_DUMP_H
#define GB_RUNTIME_DUMP_H

#include "runtime/compiled.h"

/* The graph as the caller built it: graph-HASH.json. */
void gb_dump_graph_file(const gb_graph *graph);
/* What is to be compiled, with all shapes: subgraph-HASH.json. */
void gb_dump_subgraph(const gb_request *request);
/* The same once more, when the caller left the layout of an output to the library: with the one
 * that it was given. */
void gb_dump_layouts(const gb_request *request, const gb_compiled_partition *compiled);

#endif
