/* A module: what became of each node of a graph, and the groups. */
#ifndef GB_BRIDGE_MODULE_H
#define GB_BRIDGE_MODULE_H

#include "graph.h"

#include <pthread.h>

typedef struct br_group br_group;

/* What became of a node. */
typedef struct br_fate {
    const char *reason; /* why it is outside; NULL: it is in a group, or absorbed */
    uint32_t group;     /* BR_NONE: in none */
    bool is_absorbed;   /* computes nothing, and nobody outside reads it */
} br_fate;

/* A step of the order: a group, or a node outside. */
typedef struct br_step {
    uint32_t group, node; /* one of them is BR_NONE */
} br_step;

struct gb_bridge_module {
    br_arena arena;
    const gb_bridge_graph *graph;
    gb_bridge_options options;
    br_fate *fates; /* of the graph's nodes */
    br_group *groups;
    uint32_t n_groups;
    br_step *steps;
    uint32_t n_steps;
    char *description;
    int threads;
};

gb_status br_describe(gb_bridge_module *module);

#endif
