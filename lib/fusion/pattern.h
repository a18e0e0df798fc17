/* Fusion patterns as data: small expression trees that one matcher interprets.
 *
 * A tree is matched from an op downwards along data flow. The matcher keeps the current value (at first output 0 of the first
 * op); each form consumes it and leaves a new one:
 *
 *   OP           one op of `kinds` that reads the current value (and alone reads it), accepted by `accept`
 *   SEQUENCE     its children one after another
 *   OPTIONAL     its children, or nothing
 *   REPEAT       its children between min and max times, as often as possible
 *   ALTERNATIVE  the first child that matches
 *   JOIN         the value is read by two ops: the first child's chain and the op of the second child, which also reads the
 *                chain's result (x * sigmoid(x))
 */
#ifndef GB_FUSION_PATTERN_H
#define GB_FUSION_PATTERN_H

#include "fusion/fusion.h"

typedef enum gb_pattern_form {
    GB_PATTERN_OP,
    GB_PATTERN_SEQUENCE,
    GB_PATTERN_OPTIONAL,
    GB_PATTERN_REPEAT,
    GB_PATTERN_ALTERNATIVE,
    GB_PATTERN_JOIN
} gb_pattern_form;

enum { GB_PATTERN_MAX_KINDS = 12, GB_PATTERN_MAX_CHILDREN = 8 };

/* `input`: the index at which the current value enters the op. */
typedef bool (*gb_pattern_accept)(const gb_op *op, uint32_t input);

typedef struct gb_pattern_node {
    gb_pattern_form form;
    /* OP: any of the op-table flags, or any of the listed kinds (n_kinds of them). */
    unsigned flags;
    uint32_t n_kinds;
    gb_op_kind kinds[GB_PATTERN_MAX_KINDS];
    gb_pattern_accept accept; /* NULL = always */
    uint32_t min, max;        /* REPEAT */
    const struct gb_pattern_node *children[GB_PATTERN_MAX_CHILDREN];
} gb_pattern_node;

typedef struct gb_pattern {
    const char *name;
    float priority; /* higher first; the bands of the catalogue: large patterns above 20, post-op chains 8 to 20 */
    const gb_pattern_node *root;
} gb_pattern;

/* All patterns by falling priority, ended by a row with name NULL (patterns.c). */
extern const gb_pattern gb_patterns[];

/* Tries the pattern with its first op at `start`. `taken[op]`: ops of other partitions. Writes the matched ops (at most
 * graph->n_ops) and returns their number, 0 for no match. */
uint32_t gb_pattern_match(const gb_pattern *pattern, const gb_graph *graph, uint32_t start, const bool *taken,
        const gb_capability *capability, uint32_t *ops);

#endif
