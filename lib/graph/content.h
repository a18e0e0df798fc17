/* The content of a graph: what it computes, whatever its ops and tensors are called and in whatever
 * order they were added. */
#ifndef GB_GRAPH_CONTENT_H
#define GB_GRAPH_CONTENT_H

#include "graph/graph.h"

/* Ops and values in an order that depends on the content alone (up to ops that cannot be told
 * apart). */
typedef struct gb_content {
    uint64_t hash;
    uint32_t n_ops, n_values; /* n_values: those that ops mention */
    uint32_t *ops;            /* op indices, in a topological order; owned */
    uint32_t *values;         /* value indices by first mention in that order; owned */
} gb_content;

/* The graph is connected. Content is the kind of engine, the fpmath mode, kinds and attributes of
 * ops, edges, and all of a tensor's description but its id. */
gb_status gb_content_create(const gb_graph *graph, gb_content *content);
void gb_content_clear(gb_content *content);
/* The place of a value, which an op mentions, in content->values. */
uint32_t gb_content_number(const gb_content *content, uint32_t value);
/* Equal contents have equal hashes. Two graphs with ops that cannot be told apart may be called
 * different although they are equal, never the other way round. */
bool gb_content_equal(
        const gb_graph *a, const gb_content *of_a, const gb_graph *b, const gb_content *of_b);

#endif
