/* The intermediate representation: the user's graph and the compiler's graph are the same structs.
 *
 * A gb_op stands alone (made by gb_op_create(), its tensors in `own`) or in a graph (its tensors
 * are values of the graph). In both cases `inputs` and `outputs` hold indices into the tensors, and
 * gb_op_input() / gb_op_output() read them. Ops and values refer to each other by 32-bit indices,
 * so the arrays may grow.
 */
#ifndef GB_GRAPH_IR_GRAPH_H
#define GB_GRAPH_IR_GRAPH_H

#include <graphbench/graphbench_tools.h>
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
        void *pointer; /* not owned */
    } value;
    bool left_out; /* nobody set it: gb_op_fill_defaults() put in what the op table says */
} gb_attr;

struct gb_op {
    size_t id;
    gb_op_kind kind;                    /* of one that the program defined: Wildcard */
    const gb_op_definition *definition; /* static, or NULL */
    char *name;                         /* owned */
    gb_graph *graph;                    /* NULL while the op stands alone */
    uint32_t index;                     /* in graph->ops */
    uint32_t n_attrs, attr_capacity;
    gb_attr *attrs; /* in the order they were first set */
    uint32_t n_inputs, input_capacity;
    uint32_t n_outputs, output_capacity;
    uint32_t *inputs; /* value indices (in a graph) or indices into own (standing alone) */
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
    gb_use *uses;     /* sorted by op index, then input; kept by gb_graph_take_op() and
                       gb_graph_connect() */
    char *conflict;   /* owned; NULL, or the message on two ops that describe the tensor in
                       contradicting ways */
    uint32_t view_of; /* the value in whose memory this one lies, with strides of its own; GB_NONE:
                         in memory of its own (set by the pass "views") */
    size_t preferred_layout; /* layout_id that would suit the readers of a result whose layout is
                         left to the library, 0: none (set by the pass "infer") */
    bool is_end;             /* declared an input of the graph, whether ops read it or not */
    void *data;              /* of a constant whose contents the graph has; owned */
    size_t data_bytes;
} gb_value;

typedef struct gb_id_slot {
    size_t id;
    uint32_t index; /* + 1; 0 = free slot */
} gb_id_slot;

/* From ids to indices: open addressing, linear probing. */
typedef struct gb_id_map {
    gb_id_slot *slots;
    uint32_t capacity, count;
} gb_id_map;

/* The index of an id, or GB_NONE. */
uint32_t gb_id_map_find(const gb_id_map *map, size_t id);
/* Keeps the index that an id has already. Needs no memory for up to the count that
 * gb_id_map_reserve() was given. */
void gb_id_map_insert(gb_id_map *map, size_t id, uint32_t index);
gb_status gb_id_map_reserve(gb_id_map *map, uint32_t count);
void gb_id_map_clear(gb_id_map *map); /* keeps the memory */
void gb_id_map_free(gb_id_map *map);

struct gb_graph {
    gb_engine_kind engine_kind;
    gb_fpmath_mode fpmath_mode;
    bool fpmath_apply_to_int;
    bool finalized;
    uint32_t n_ops, op_capacity;
    gb_op **ops; /* owned; topological order after gb_graph_connect() */
    uint32_t n_values, value_capacity;
    gb_value *values;
    gb_id_map op_ids, value_ids;
    gb_op *attrs; /* an op that stands for the graph, with the attributes; NULL: none. Owned */
    /* Partitioning, filled and freed by the runtime (gb_graph_filter). */
    void *partitioning;
    void (*free_partitioning)(void *partitioning);
    /* Version text of the file the graph was read from ("" otherwise), kept for writing. */
    char version[32];
};

/* Tensors of an op; `i` must be in range. */
const gb_logical_tensor *gb_op_input(const gb_op *op, uint32_t i);
const gb_logical_tensor *gb_op_output(const gb_op *op, uint32_t i);
/* Inputs, then outputs. */
static inline const gb_logical_tensor *gb_op_tensor(const gb_op *op, uint32_t i)
{
    return i < op->n_inputs ? gb_op_input(op, i) : gb_op_output(op, i - op->n_inputs);
}

/* Attributes; the value of an attribute that is not set is the default given. */
const gb_attr *gb_op_find_attr(const gb_op *op, gb_op_attr name); /* NULL when not set */
/* Subnormal numbers count as 0, as they do in tensors. */
float gb_op_attr_f32(const gb_op *op, gb_op_attr name, float otherwise);
int64_t gb_op_attr_s64(const gb_op *op, gb_op_attr name, int64_t otherwise);
bool gb_op_attr_bool(const gb_op *op, gb_op_attr name, bool otherwise);
/* Is the string attribute equal to `text`? `otherwise` when it is not set. */
bool gb_op_attr_is(const gb_op *op, gb_op_attr name, const char *text, bool otherwise);
/* Lists: returns the count and lends the values. */
size_t gb_op_attr_s64s(const gb_op *op, gb_op_attr name, const int64_t **values);
size_t gb_op_attr_f32s(const gb_op *op, gb_op_attr name, const float **values);
void gb_op_remove_attr(gb_op *op, gb_op_attr name);
/* The op that has the attributes of the graph, made when there is none yet. */
gb_status gb_graph_attr_carrier(gb_graph *graph, gb_op **op);
/* Did the program define it? */
static inline bool gb_attr_is_defined(gb_op_attr name)
{
    return name >= GB_ATTR_DEFINED;
}
/* Is it a note of the program, which does not count and is not written? */
bool gb_attr_is_note(gb_op_attr name);
/* "f32", "f32[]", "s64", ...: the type tag in files. */
const char *gb_attr_type_name(gb_attr_type type);
/* Kinds that the program defined (definition.c): NULL for others. */
const gb_op_definition *gb_definition_find(gb_op_kind kind);
/* The definition of this name, or NULL. */
const gb_op_definition *gb_definition_parse(const char *name, gb_op_kind *kind);
/* Does nobody know what the op does? */
static inline bool gb_op_is_wildcard(const gb_op *op)
{
    return op->kind == GB_OP_WILDCARD && !op->definition;
}
/* The kind that the application knows. */
gb_op_kind gb_op_public_kind(const gb_op *op);
/* Frees any op, also one of a graph. */
void gb_op_free(gb_op *op);
/* A copy that stands alone. */
gb_status gb_op_clone(const gb_op *op, gb_op **clone);

/* Rank, dims, strides and enumerations in range; GB_INVALID_ARGUMENTS names what is not. */
gb_status gb_logical_tensor_check(const gb_logical_tensor *tensor);
/* Is it a dim or stride, or one of the two spellings of an unknown one? */
static inline bool gb_is_size(int64_t size)
{
    return size >= -1 || size == GB_UNKNOWN_DIM;
}
/* Of a sound description: unknown dims and strides become GB_UNKNOWN_DIM. What an application gives
 * goes through it where it is copied, so that the rest of the library sees one spelling. */
void gb_logical_tensor_normalize(gb_logical_tensor *tensor);
/* Two descriptions of one tensor id: what `known` leaves open is taken from `other`; false, and
 * `known` untouched, when they contradict each other. Open are an unknown rank, dim or stride, an
 * undef layout or data type; property undef = variable. */
bool gb_logical_tensor_merge(gb_logical_tensor *known, const gb_logical_tensor *other);

/* Equal ranks and dims, known or not. */
bool gb_dims_equal(const gb_logical_tensor *a, const gb_logical_tensor *b);

/* "op 7 (Convolution)", the way messages name an op. Static per thread, four at a time. */
const char *gb_op_label(const gb_op *op);
/* "f32:2x64x56x56", the way messages name a tensor. Static per thread, four at a time. */
const char *gb_tensor_label(const gb_logical_tensor *tensor);

/* Names in files that the public interface does not need. */
gb_status gb_engine_kind_parse(const char *name, gb_engine_kind *kind);
const char *gb_layout_type_name(gb_layout_type layout);
gb_status gb_layout_type_parse(const char *name, gb_layout_type *layout);

/* Value of a tensor id, or GB_NONE. */
uint32_t gb_graph_find_value(const gb_graph *graph, size_t tensor_id);
uint32_t gb_graph_find_op_index(const gb_graph *graph, size_t op_id);

/* The value in whose memory `value` lies: itself, unless it is a view. */
uint32_t gb_graph_storage(const gb_graph *graph, uint32_t value);
/* Does the op only describe its input's elements anew, with nothing to run? */
bool gb_op_is_view(const gb_op *op);
/* Do the strides that the value was given count, even if it stays in registers? Draws of Dropout
 * belong to places in memory. */
bool gb_graph_strides_count(const gb_graph *graph, uint32_t value);
/* The op that makes the elements of `value`, behind any views; GB_NONE: an input of the graph. */
uint32_t gb_graph_producer_through_views(const gb_graph *graph, uint32_t value);

/* Markers: a value that no op makes and one reads; one that leaves the graph, since nobody reads it
 * or an End does. */
bool gb_graph_is_input(const gb_graph *graph, uint32_t value);
bool gb_graph_is_output(const gb_graph *graph, uint32_t value);

/* What holds of the structure of any graph that is not being rewired: places, producers, uses and
 * ids agree; of one whose ops are `ordered`, also that what an op reads is made before it.
 * GB_RUNTIME_ERROR names what does not. */
gb_status gb_graph_check_structure(const gb_graph *graph, bool ordered);

/* Builds without checks (passes and clones): the value is created when its id is new. */
gb_status gb_graph_add_value(gb_graph *graph, const gb_logical_tensor *tensor, uint32_t *value);
/* Takes ownership of `op` (standing alone) and moves its tensors into the graph. Frees it on
 * failure. */
gb_status gb_graph_take_op(gb_graph *graph, gb_op *op);
/* Gives the values of an op that was taken what `op` says of its tensors. */
gb_status gb_graph_merge_tensors(gb_graph *graph, const gb_op *op);
/* Inputs and constants of `from` that were declared, for a graph with the same tensors. An op that
 * makes one is GB_INVALID_GRAPH. */
gb_status gb_graph_copy_ends(const gb_graph *from, gb_graph *to);
/* Frees an op and closes the gap: the ops behind it move up. The values it touched stay. */
gb_status gb_graph_drop_op(gb_graph *graph, uint32_t op);
/* A binary min-heap of numbers, in memory of the caller. */
typedef struct gb_heap {
    uint32_t n, *numbers;
} gb_heap;

void gb_heap_push(gb_heap *heap, uint32_t number);
uint32_t gb_heap_pop(gb_heap *heap); /* the smallest */

/* Recomputes producers (of a value produced twice: the first) and uses from the ops. */
gb_status gb_graph_wire(gb_graph *graph);
/* Producers, uses and order as gb_graph_connect() would find them, the ops left in place. */
gb_status gb_graph_check(gb_graph *graph);
/* Recomputes producers, uses and the topological order of ops (stable: ties by position).
 * GB_INVALID_GRAPH: cycle, value produced twice. */
gb_status gb_graph_connect(gb_graph *graph);
/* A copy that holds only the listed ops (indices into graph->ops, in order); all of them when `ops`
 * is NULL. Connected. */
gb_status gb_graph_clone(
        const gb_graph *graph, const uint32_t *ops, uint32_t n_ops, gb_graph **clone);

/* A fresh id for a tensor or op of a pass, never equal to one of the graph; add it before asking
 * for the next. */
size_t gb_graph_new_id(const gb_graph *graph);

#endif
