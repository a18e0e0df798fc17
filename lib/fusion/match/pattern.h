/* clang-format off */
/* Fusion patterns as data: small expression trees that one matcher interprets.
 *
 * A tree is matched from an op downwards along data flow. The matcher keeps the current value (at
 * first output 0 of the first op); each form consumes it and leaves a new one:
 *
 *   OP           one op of `kinds` that reads the current value, accepted by `accept`, with its
 *                `sides` matched upwards; unless `shared`, nobody else reads the value
 *   SEQUENCE     its children one after another
 *   OPTIONAL     its children, or nothing
 *   REPEAT       its children between min and max times, as often as possible
 *   ALTERNATIVE  the first child that matches
 *   FORK         each child starts at the current value again; the result of the last one goes on
 *
 * A side is an op that makes another input of the op: its node is matched against the producer,
 * whose own sides lead further up. A match is valid when no value made inside is read both inside
 * and outside (further outputs of an op excepted).
 */
/* clang-format on */
#ifndef GB_FUSION_MATCH_PATTERN_H
#define GB_FUSION_MATCH_PATTERN_H

#include "fusion/fusion.h"

typedef enum gb_pattern_form {
    GB_PATTERN_OP,
    GB_PATTERN_SEQUENCE,
    GB_PATTERN_OPTIONAL,
    GB_PATTERN_REPEAT,
    GB_PATTERN_ALTERNATIVE,
    GB_PATTERN_FORK
} gb_pattern_form;

enum {
    GB_PATTERN_MAX_KINDS = 8,
    GB_PATTERN_MAX_CHILDREN = 12,
    GB_PATTERN_MAX_SIDES = 3,
    GB_PATTERN_MAX_OPS = 1024
};

/* `input`: the index at which the current value enters the op (0 for an op matched upwards). */
typedef bool (*gb_pattern_accept)(const gb_op *op, uint32_t input);

/* The input that the flow does not use. */
#define GB_OTHER_INPUT UINT32_MAX
/* Every input, all made by such ops. */
#define GB_EVERY_INPUT (UINT32_MAX - 1)

struct gb_pattern_node;

typedef struct gb_pattern_side {
    uint32_t input; /* GB_OTHER_INPUT: input 1 when the flow enters at 0, else 0;
                       GB_EVERY_INPUT */
    bool optional;
    const struct gb_pattern_node *node; /* OP or ALTERNATIVE of OPs; NULL ends the list */
} gb_pattern_side;

typedef struct gb_pattern_node {
    gb_pattern_form form;
    unsigned flags;   /* OP: any of these op-table flags, */
    uint32_t n_kinds; /* or any of these kinds */
    gb_op_kind kinds[GB_PATTERN_MAX_KINDS];
    gb_pattern_accept accept; /* NULL = always */
    bool shared;
    gb_pattern_side sides[GB_PATTERN_MAX_SIDES];
    uint32_t min, max; /* REPEAT */
    const struct gb_pattern_node *children[GB_PATTERN_MAX_CHILDREN];
} gb_pattern_node;

typedef struct gb_pattern {
    const char *name;
    const gb_pattern_node *root; /* SEQUENCE whose first child is an OP */
} gb_pattern;

/* All patterns in the order in which they are tried, ended by a row with name NULL (patterns.c). */
extern const gb_pattern gb_patterns[];

/* Tries the pattern with its first op at `start`. `part_of[op]` is GB_NONE for ops that are
 * free. Writes the matched ops (at most `most`, which is at most GB_PATTERN_MAX_OPS) and returns
 * their number, 0 for no match. */
uint32_t gb_pattern_match(const gb_pattern *pattern, const gb_graph *graph, uint32_t start,
        const uint32_t *part_of, const gb_capability *capability, uint32_t most, uint32_t *ops);

/* What a match may disregard, to find out why there is none. */
enum {
    GB_RELAX_READERS = 1, /* others may read the values between its ops */
    GB_RELAX_SUPPORT = 2, /* the engine need not run its ops */
    GB_RELAX_ACCEPT = 4   /* the conditions of nodes need not hold */
};

typedef struct gb_relaxation {
    unsigned relaxed;
    uint32_t value, reader; /* the flow of this value goes to this op only; GB_NONE: to any */
} gb_relaxation;

/* The same on a graph all of whose ops are free (`part_of` all GB_NONE), under a relaxation. */
uint32_t gb_pattern_match_relaxed(const gb_pattern *pattern, const gb_graph *graph, uint32_t start,
        const uint32_t *part_of, const gb_capability *capability, gb_relaxation relaxation,
        uint32_t *ops);

#endif
