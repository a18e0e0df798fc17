/* Fusion: from a graph to partitions, and from a partition to groups that run as one kernel each.
 */
#ifndef GB_FUSION_FUSION_H
#define GB_FUSION_FUSION_H

#include "graph/ir/format.h"
#include "graph/ops/op_table.h"

#include <stdio.h>

typedef struct gb_region gb_region;
typedef struct gb_group gb_group;

/* A layout other than a dense one in which a kernel takes a tensor. */
typedef struct gb_format_candidate {
    const gb_format *format;
    double gain; /* bytes that the kernel moves less than with a dense tensor; 0: it runs as well */
    bool kept;   /* only where it may write its result in the format, too */
} gb_format_candidate;

enum { GB_FORMAT_CANDIDATES = 2 };

/* Sizes at which one way to run ops starts to cost more than another on a device. */
typedef struct gb_cost_model {
    /* Most ops of one group beside its anchor, at most GB_GROUP_OPS. */
    uint32_t group_post_ops;
    /* Longest row of an operand whose elements are made again wherever they are repeated, rather
     * than kept. */
    int64_t repeated_row;
    /* A product whose columns are split into heads and moved becomes one that writes each head
     * where it goes: at most so many terms in a sum, since with more the whole product gains more
     * than a pass over the result costs, and at least so many columns in a head. */
    int64_t head_terms, head_columns;
} gb_cost_model;

/* What fusion asks of the engine. `reason` (static text) says why not. */
typedef struct gb_capability {
    /* Can the engine run the op alone? Types and attributes are known, dims perhaps not. */
    bool (*supports)(const gb_op *op, const char **reason);
    /* Can the op's kernel go on with a chain of element-wise ops on its output 0 before writing it?
     */
    bool (*takes_epilogue)(const gb_op *op);
    /* Can the op run in a pointwise program, behind an anchor or without one? */
    bool (*is_pointwise)(const gb_op *op);
    /* Takes the anchor's kernel `op` over, which makes its input `input`, or makes input 0 of an op
     * that it takes over there? The kernel then reads what the op reads. Dims are known. NULL: no.
     */
    bool (*fuses_producer)(const gb_op *anchor, uint32_t input, const gb_op *op);
    /* Formats in which the op's kernel, as the anchor of a group, reads an input; dims perhaps not
     * known. Returns their number, at most GB_FORMAT_CANDIDATES. NULL: there are none. */
    uint32_t (*reads_formats)(const gb_op *op, uint32_t input, gb_format_candidate *candidates);
    /* Does the op's kernel write its result in the format that its input has, as quickly in each
     * that it reads? NULL: none does. */
    bool (*keeps_formats)(const gb_op *op);
    /* Formats in which the kernel of the group writes one of its outputs. */
    uint32_t (*writes_formats)(const gb_graph *graph, const gb_group *group, uint32_t value,
            gb_format_candidate *candidates);
    /* Regions that kernels run as one, in the order in which they are tried; NULL behind the
     * last. */
    const gb_region *(*region)(uint32_t index);
    /* Can the kernel run the region that was matched? Dims are known. NULL: always. */
    bool (*accepts_region)(const gb_graph *graph, const gb_region *region, const void *parts);
    gb_cost_model cost;
} gb_capability;

/* One partition: ops as indices into graph->ops, in topological order. */
typedef struct gb_part {
    const char *pattern;     /* static */
    const char *unsupported; /* static reason, NULL when supported */
    uint32_t n_ops;
    uint32_t *ops; /* owned */
} gb_part;

typedef struct gb_partitioning {
    gb_policy policy;
    uint32_t n_parts;
    gb_part *parts;    /* in an order in which they can be executed */
    uint32_t *part_of; /* per op of the graph: its part */
    uint32_t n_dropped;
    gb_part *dropped; /* matches that would have made a cycle; ops ascending */
} gb_partitioning;

/* Most ops of a partition under the policy "max", unless the caller says otherwise: passes compare
 * the ops of a partition with each other. */
enum { GB_MAX_POLICY_OPS = 512 };

/* A pure function of graph (connected), policy and capability. */
gb_status gb_partition_graph(const gb_graph *graph, gb_policy policy,
        const gb_capability *capability, gb_partitioning **partitioning);
/* The same with partitions of at most `most_ops` ops, 1 or more. Patterns end where that is
 * reached, and have GB_PATTERN_MAX_OPS at most. */
gb_status gb_partition_graph_within(const gb_graph *graph, gb_policy policy, uint32_t most_ops,
        const gb_capability *capability, gb_partitioning **partitioning);
void gb_partitioning_free(gb_partitioning *partitioning);

/* Why the op that makes each value and the ops that read it are in different partitions; an entry
 * for each such pair of ops and value, in the order of values. `edges` NULL: only the count. */
gb_status gb_explain_edges(const gb_graph *graph, const gb_partitioning *partitioning,
        const gb_capability *capability, size_t *count, gb_unfused_edge *edges);

/* The layout_id that suits all readers of a value of a partitioned graph, in partitions of their
 * own, better than a dense layout; 0 when there is none. */
size_t gb_preferred_layout(const gb_graph *graph, const gb_partitioning *partitioning,
        const gb_capability *capability, uint32_t value);

/* The same for a value that enters `graph`, which is one partition, all dims known. */
gb_status gb_preferred_input_layout(
        const gb_graph *graph, const gb_capability *capability, uint32_t value, size_t *layout);
/* All layouts beside dense ones that all readers of such a value take; n <= GB_FORMAT_CANDIDATES. */
gb_status gb_input_formats(const gb_graph *graph, const gb_capability *capability, uint32_t value,
        uint32_t *n, gb_format_candidate *formats);
/* As a preferred layout: the layout that the kernel which writes the result gains most by. */
#define GB_LAYOUT_OF_WRITER SIZE_MAX

/* Op indices in ascending order, which is topological. */
void gb_sort_ops(uint32_t *ops, uint32_t n);
/* Ports of a set of ops, ascending: values read but not made inside; values made inside and read
 * outside, by nobody, or by an End. Both in the order of first mention, without repetition; the
 * arrays are to be freed. */
gb_status gb_part_ports(const gb_graph *graph, const uint32_t *ops, uint32_t n_ops,
        uint32_t **inputs, uint32_t *n_inputs, uint32_t **outputs, uint32_t *n_outputs);

/* Ops that one kernel runs: an anchor whose output 0 flows through element-wise post-ops, or
 * element-wise ops only. They have the dims of the group's space, up to broadcast of their other
 * operands; those that make such an operand have its dims. A group of a region has no anchor: `ops`
 * are all ops of the region. */
struct gb_group {
    const gb_region *region; /* or NULL */
    void *parts;             /* of a region: what its matcher found; owned */
    uint32_t anchor;         /* op index, or GB_NONE */
    uint32_t space;          /* value whose dims are the space; GB_NONE in a region */
    uint32_t n_prologue;
    uint32_t *prologue; /* ops in front of the anchor that its kernel takes over; other groups may
                           have them too. In no order; owned */
    uint32_t n_ops;
    uint32_t *ops; /* all but anchor and prologue, as op indices in topological order; owned */
    uint32_t n_outputs;
    uint32_t *outputs; /* values the group must write: read by other groups, or outputs of the
                          partition; owned */
};

/* Most ops of one group beside its anchor on any device: a chain of 19 with all that the catalogue
 * has around it.
 */
enum { GB_GROUP_OPS = 32 };

typedef struct gb_groups {
    uint32_t n_groups;
    gb_group *groups; /* in an order in which they can be executed */
} gb_groups;

void gb_groups_free(gb_groups *groups);
/* Frees what the group owns. */
void gb_group_clear(gb_group *group);

/* Can the post-op `op` run in the group of the post-op that alone reads it: has it the reader's
 * size, or does the reader repeat its result? */
bool gb_runs_with_reader(const gb_capability *capability, const gb_op *op, const gb_op *reader);
/* Does the op treat elements alike wherever they lie, so that it can run on operands that its reader
 * repeats? */
bool gb_runs_anywhere(const gb_op *op);
/* Is the index, of an op or a value, in a list of such? */
bool gb_list_has(uint32_t n, const uint32_t *list, uint32_t index);

/* Passes rewrite a partition's sub-graph before lowering. */
typedef struct gb_pass_context {
    const gb_capability *capability;
    const size_t *output_ids; /* tensors that leave the partition */
    size_t n_outputs;
    gb_groups *groups;         /* result of the pass "group" */
    const uint32_t *region_of; /* while regions are matched: per op, GB_NONE unless a region has it
                                  already */
    double flops;              /* of the ops as they came */
} gb_pass_context;

/* Does the value leave the partition? */
bool gb_leaves_partition(const gb_pass_context *context, const gb_value *value);

/* Ops that a matcher has found; grows as they are added. */
typedef struct gb_op_list {
    uint32_t n, capacity;
    uint32_t *ops; /* op indices; owned */
} gb_op_list;

gb_status gb_op_list_add(gb_op_list *list, uint32_t op);
gb_status gb_op_list_add_all(gb_op_list *list, uint32_t n, const uint32_t *ops);
void gb_op_list_free(gb_op_list *list);

/* Ops with several anchors that one kernel runs: attention, gated MLP. What is matched depends on
 * what the ops compute (lib/fusion/regions); the engine says which regions it has kernels for. */
struct gb_region {
    const char *name;
    gb_op_kind root;    /* each op of this kind is tried */
    size_t parts_bytes; /* of the struct in which match() leaves what it found */
    /* Adds the ops of the region around `root` to the empty list, in any order, and fills in the
     * parts, which come as zeros; no ops when there is no region. Dims are known. The kernel
     * answers for values of the region that others read or that leave the partition: it must be
     * able to write them. Parts hold ops and values, not strides or formats, which later passes
     * choose; they own no memory. */
    gb_status (*match)(const gb_graph *graph, const gb_pass_context *context, const gb_op *root,
            gb_op_list *ops, void *parts);
};

typedef struct gb_pass {
    const char *name;
    gb_status (*run)(gb_graph *graph, gb_pass_context *context);
} gb_pass;

/* The passes in order, ended by a row with name NULL. */
extern const gb_pass gb_passes[];
/* Runs them all; the graph's input tensors are complete. */
gb_status gb_run_passes(gb_graph *graph, gb_pass_context *context);
/* Is what the graph is lowered to to be printed (GB_PASS_PROGRAM)? */
bool gb_prints_programs(void);
/* The group as a comment line: prologue in parentheses, ops, what it writes. */
void gb_print_group(const gb_graph *graph, const gb_group *group, uint32_t number, FILE *file);

#endif
