/* The content of a graph: what it computes, whatever its ops and tensors are called and in whatever
 * order they were added. */
#ifndef GB_GRAPH_IR_CONTENT_H
#define GB_GRAPH_IR_CONTENT_H

#include "graph/ir/graph.h"

/* Ops and values in an order that depends on the content alone (up to ops that cannot be told
 * apart). */
typedef struct gb_content {
    uint64_t hash;
    uint32_t n_ops, n_values; /* n_values: those that ops mention */
    uint32_t *ops;            /* op indices, in a topological order; owned */
    uint32_t *values;         /* value indices by first mention in that order; owned */
    uint32_t *numbers;        /* of each value of the graph, its place in `values`; owned */
} gb_content;

/* The graph is connected. Content is the kind of engine, the fpmath mode, kinds and attributes of
 * ops, edges, and all of a tensor's description but its id. */
gb_status gb_content_create(const gb_graph *graph, gb_content *content);
void gb_content_clear(gb_content *content);
/* The place in content->values of a value that an op mentions; GB_NONE: no op does. */
static inline uint32_t gb_content_number(const gb_content *content, uint32_t value)
{
    return content->numbers[value];
}
/* Equal contents have equal hashes. Two graphs may be called different although they are equal only
 * where they have very many ops that cannot be told apart; never the other way round. */
bool gb_content_equal(
        const gb_graph *a, const gb_content *of_a, const gb_graph *b, const gb_content *of_b);

/* Mixes a value into a hash. */
uint64_t gb_hash_mix(uint64_t hash, uint64_t value);
/* All of a description but the id. */
uint64_t gb_tensor_hash(const gb_logical_tensor *tensor);
bool gb_tensor_same(const gb_logical_tensor *a, const gb_logical_tensor *b);
/* Kind, attributes in any order, and the numbers of tensors. */
uint64_t gb_op_hash(const gb_op *op);
bool gb_op_same(const gb_op *a, const gb_op *b);
/* Attributes that are no content, pointers among them, by value. */
bool gb_op_same_notes(const gb_op *a, const gb_op *b);

/* Colours of ops and values that are equal where these cannot be told apart by what surrounds them
 * (Weisfeiler and Leman's refinement, along the edges in both directions). */
typedef struct gb_colours {
    size_t n;      /* ops and values */
    uint64_t *ops; /* owned; of the ops, then of the values */
    uint64_t *values;
    uint64_t *sorted; /* owned; to count them */
    uint64_t visited; /* ops and values, in all rounds so far */
} gb_colours;

gb_status gb_colours_create(const gb_graph *graph, gb_colours *colours);
void gb_colours_free(gb_colours *colours);
/* Until no round tells more apart. */
void gb_colours_refine(const gb_graph *graph, gb_colours *colours);

#endif
