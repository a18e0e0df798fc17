/* The intermediate representation: the user's graph and the compiler's graph are the same structs.
 *
 * A gb_op stands alone (made by gb_op_create(), its tensors in `own`) or in a graph (its tensors are values of the graph).
 * In both cases `inputs` and `outputs` hold indices into the tensors, and gb_op_input() / gb_op_output() read them.
 * Ops and values refer to each other by 32-bit indices, so the arrays may grow.
 */
#ifndef GB_GRAPH_GRAPH_H
#define GB_GRAPH_GRAPH_H

#include <graphbench/graphbench.h>
#include <stdbool.h>

#define GB_NONE UINT32_MAX

/* One attribute. Lists and strings are owned by it. */
typedef struct gb_attr {
    gb_op_attr name;
    size_t count; /* elements; a string's length */
    union {
        float f32;
        int64_t s64;
        uint8_t boolean;
        float *f32s;
        int64_t *s64s;
        char *string;
    } value;
} gb_attr;

struct gb_op {
    size_t id;
    gb_op_kind kind;
    char *name;        /* owned */
    gb_graph *graph;   /* NULL while the op stands alone */
    uint32_t index;    /* in graph->ops */
    uint32_t n_attrs, attr_capacity;
    gb_attr *attrs;    /* in the order they were first set */
    uint32_t n_inputs, input_capacity;
    uint32_t n_outputs, output_capacity;
    uint32_t *inputs;  /* value indices (in a graph) or indices into own (standing alone) */
    uint32_t *outputs;
    uint32_t n_own, own_capacity;
    gb_logical_tensor *own;
};

typedef struct gb_use {
    uint32_t op;
    uint32_t input;
} gb_use;

typedef struct gb_value {
    gb_logical_tensor tensor;
    uint32_t producer; /* op index, or GB_NONE for an input of the graph */
    uint32_t producer_output;
    uint32_t n_uses, use_capacity;
    gb_use *uses;      /* sorted by op index, then input; valid after gb_graph_connect() */
} gb_value;

typedef struct gb_id_slot {
    size_t id;
    uint32_t index;    /* + 1; 0 = free slot */
} gb_id_slot;

/* From ids to indices: open addressing, linear probing. */
typedef struct gb_id_map {
    gb_id_slot *slots;
    uint32_t capacity, count;
} gb_id_map;

struct gb_graph {
    gb_engine_kind engine_kind;
    gb_fpmath_mode fpmath_mode;
    bool fpmath_apply_to_int;
    bool finalized;
    uint32_t n_ops, op_capacity;
    gb_op **ops;       /* owned; topological order after gb_graph_connect() */
    uint32_t n_values, value_capacity;
    gb_value *values;
    gb_id_map op_ids, value_ids;
    /* Partitioning, filled and freed by the runtime (gb_graph_filter). */
    void *partitioning;
    void (*free_partitioning)(void *partitioning);
    /* Version text of the file the graph was read from ("" otherwise), kept for writing. */
    char version[32];
};

/* Tensors of an op; `i` must be in range. */
const gb_logical_tensor *gb_op_input(const gb_op *op, uint32_t i);
const gb_logical_tensor *gb_op_output(const gb_op *op, uint32_t i);

/* Attributes; the value of an attribute that is not set is the default given. */
const gb_attr *gb_op_find_attr(const gb_op *op, gb_op_attr name); /* NULL when not set */
float gb_op_attr_f32(const gb_op *op, gb_op_attr name, float otherwise);
int64_t gb_op_attr_s64(const gb_op *op, gb_op_attr name, int64_t otherwise);
bool gb_op_attr_bool(const gb_op *op, gb_op_attr name, bool otherwise);
/* Is the string attribute equal to `text`? `otherwise` when it is not set. */
bool gb_op_attr_is(const gb_op *op, gb_op_attr name, const char *text, bool otherwise);
/* Lists: returns the count and lends the values. */
size_t gb_op_attr_s64s(const gb_op *op, gb_op_attr name, const int64_t **values);
size_t gb_op_attr_f32s(const gb_op *op, gb_op_attr name, const float **values);
void gb_op_remove_attr(gb_op *op, gb_op_attr name);

/* "op 7 (Convolution)", the way messages name an op. Static per thread, four at a time. */
const char *gb_op_label(const gb_op *op);
/* "f32:2x64x56x56", the way messages name a tensor. Static per thread, four at a time. */
const char *gb_tensor_label(const gb_logical_tensor *tensor);

/* Value of a tensor id, or GB_NONE. */
uint32_t gb_graph_find_value(const gb_graph *graph, size_t tensor_id);
uint32_t gb_graph_find_op_index(const gb_graph *graph, size_t op_id);

/* Builds without checks (passes and clones): the value is created when its id is new. */
gb_status gb_graph_add_value(gb_graph *graph, const gb_logical_tensor *tensor, uint32_t *value);
/* Takes ownership of `op` (standing alone) and moves its tensors into the graph. Frees it on failure. */
gb_status gb_graph_take_op(gb_graph *graph, gb_op *op);
/* Recomputes producers, uses and the topological order of ops (stable: ties by position). GB_INVALID_GRAPH: cycle, value
 * produced twice. */
gb_status gb_graph_connect(gb_graph *graph);
/* A copy that holds only the listed ops (indices into graph->ops, in order); all of them when `ops` is NULL. Connected. */
gb_status gb_graph_clone(const gb_graph *graph, const uint32_t *ops, uint32_t n_ops, gb_graph **clone);

/* A fresh tensor id for passes, never equal to one of the graph. */
size_t gb_graph_new_id(const gb_graph *graph);

#endif
