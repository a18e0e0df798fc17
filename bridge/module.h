/* A module: what became of each node of a graph, and the groups. */
#ifndef GB_BRIDGE_MODULE_H
#define GB_BRIDGE_MODULE_H

#include "map.h"

#include <pthread.h>

/* What became of a node. */
typedef struct br_fate {
    const char *reason; /* why it is outside; NULL: it is in a group, or absorbed */
    uint32_t group;     /* BR_NONE: in none; of a node in several, one of them */
    bool is_absorbed;   /* computes nothing, and nobody outside reads it */
} br_fate;

/* A step of the order: a group, or a node outside. */
typedef struct br_step {
    uint32_t group, node; /* one of them is BR_NONE */
} br_step;

/* A tensor that enters or leaves a group. */
typedef struct br_port {
    uint32_t wire;
    uint32_t value; /* BR_NONE: a literal, or a result that nobody reads */
    bool is_constant;
    bool is_inner;  /* an output that only groups read */
    bool is_opaque; /* the same, in a layout of the library's choice */
} br_port;

typedef struct br_group {
    gb_partition *partition;
    uint32_t *nodes, *ops;
    br_port *inputs, *outputs; /* those with values first */
    uint32_t n_nodes, n_ops;
    uint32_t n_inputs, n_all_inputs, n_outputs, n_all_outputs;
    double flops;
    /* Kernels, each for other inputs. */
    pthread_mutex_t lock;
    gb_bridge_kernel **kernels;
    uint32_t n_kernels, kernels_capacity;
} br_group;

struct gb_bridge_module {
    br_arena arena;
    const gb_bridge_graph *graph;
    gb_bridge_options options;
    br_builder builder; /* the mapped graph */
    const char **forced;
    bool *is_view_outside; /* of values: views that are read as the framework makes them */
    bool views_outside;    /* all are */
    bool *is_split;        /* nodes whose outputs may come from several groups */
    br_fate *fates;        /* of the graph's nodes */
    br_group *groups;
    uint32_t n_groups;
    br_step *steps;
    uint32_t n_steps;
    double flops, group_flops;
    gb_engine *engine;
    char *description;
    int threads;
    uint32_t constants_version;
};

/* Maps, partitions and groups; sets all but engine and description. */
gb_status br_make_groups(gb_bridge_module *module);
void br_release_groups(gb_bridge_module *module);
/* Why a group of this op alone is not worth a call, by the table of single_ops.c; NULL: it is. */
const char *br_judge_single_op(br_builder *b, const br_op *op);
/* Sets `steps`. *culprit: a group that would have to wait for itself, or BR_NONE. */
gb_status br_order_steps(gb_bridge_module *module, uint32_t *culprit);
gb_status br_describe(gb_bridge_module *module);
/* The ops of a group, or of all (SIZE_MAX), as a graph of the library. */
gb_status br_export_graph(const gb_bridge_module *module, size_t group, gb_graph **graph);
void br_kernel_destroy(gb_bridge_kernel *kernel);

/* Of map_graph.c: what nodes do beside their outputs. */
bool br_node_writes(const br_node *node);
bool br_node_writes_arg(const br_node *node, uint32_t arg);
bool br_node_has_effects(const br_node *node);

#endif
