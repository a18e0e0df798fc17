/* Mapping: from nodes of the framework to ops of the library.
 *
 * The mapped graph is made of wires (tensors) and ops. Views compute nothing: a value that is a view
 * of another one is bound to that one's wire and the steps that lead to it, and each op that reads
 * it gets ops of its own for these steps. So a view never keeps two ops from being fused, and what
 * is read by the framework only stays its own. */
#ifndef GB_BRIDGE_MAP_H
#define GB_BRIDGE_MAP_H

#include "graph.h"

enum { BR_MOST_ATTRS = 14 };

/* A tensor of the mapped graph. */
typedef struct br_wire {
    gb_data_type type;
    int ndims;
    int64_t dims[GB_MAX_NDIMS];
    uint32_t value;    /* of the framework, whose contents it has; BR_NONE: it knows none */
    uint32_t producer; /* op; BR_NONE: an input */
    uint32_t storage;  /* memory of the framework that it lies in; BR_NONE: none */
    const void *data;  /* contents that the mapping made; NULL: none */
    size_t bytes;
} br_wire;

typedef struct br_attr {
    gb_op_attr attr;
    gb_attr_type type;
    float f32;
    size_t count;
    int64_t *s64; /* a truth: one */
    const char *text;
} br_attr;

typedef struct br_op {
    gb_op_kind kind; /* GB_OP_WILDCARD: the framework's */
    uint32_t node;
    bool is_view; /* a step of a view, made for one reader */
    uint32_t n_inputs, n_outputs, n_attrs;
    uint32_t *inputs, *outputs; /* wires */
    br_attr attrs[BR_MOST_ATTRS];
} br_op;

/* A step from a value to a view of it. */
typedef struct br_view br_view;
struct br_view {
    const br_view *before; /* NULL: the first */
    enum { BR_RESHAPE, BR_TRANSPOSE, BR_EXPAND } kind;
    uint32_t node, value; /* that makes it, and what it is then */
    int ndims;
    int64_t dims[GB_MAX_NDIMS], order[GB_MAX_NDIMS];
};

/* Where the contents of a value are. */
typedef struct br_binding {
    uint32_t wire;       /* BR_NONE: not bound */
    const br_view *view; /* NULL: the wire itself */
    uint32_t storage;    /* values that may share memory have one */
} br_binding;

typedef struct br_builder br_builder;
typedef struct br_row br_row;
/* Emits the ops of a node and binds its outputs; false, with a reason, when it cannot. */
typedef bool (*br_map_fn)(br_builder *b, const br_node *node, const br_row *row);

/* A row of the table of mappings. */
struct br_row {
    const char
            *op; /* "relu.default" of the namespace aten, without the underscore of in-place ops */
    br_map_fn map;
    gb_op_kind kind;     /* what the function makes of it */
    bool is_view;        /* outputs share memory with the first input */
    bool may_be_written; /* there is an in-place form, named with an underscore */
    double value;        /* as the function says */
};
const br_row *br_find_row(const br_node *node, bool *is_in_place);

struct br_builder {
    const gb_bridge_graph *graph;
    br_arena *arena;
    const char **forced;  /* for each node why it is to stay outside; NULL: it need not */
    const char **reasons; /* the outcome: NULL for nodes that are mapped */
    bool *is_view_node;   /* mapped without an op of its own */
    bool *is_in_place;    /* an op in place that was mapped as one that makes a new tensor */
    br_wire *wires;
    br_op *ops;
    br_binding *bindings; /* of values */
    uint32_t *view_wires; /* of values that the framework views: what its node makes */
    uint32_t *last_uses;  /* of values: the last node that reads it; graph outputs: n_nodes */
    uint32_t n_wires, wires_capacity, n_ops, ops_capacity;
    uint32_t node; /* that is being mapped */
    const char *reason;
    /* Memory of the framework: storages that may be the same are joined. */
    uint32_t *storage_parents;   /* of values: each begins with one of its own */
    bool *storage_is_input;      /* by root: somebody outside of the graph sees it */
    bool *storage_is_written;    /* by root: a node writes to it; known when all nodes are mapped */
    bool has_writes;             /* some node writes to memory that is there */
    uint32_t last_effect;        /* wire of the last node with effects beside its outputs */
    const bool *is_view_outside; /* of values: views that are read as the framework makes them */
    bool views_outside;          /* all are */
};

int64_t br_size_value(const br_builder *b, const br_size *size);
uint32_t br_find_storage(const br_builder *b, uint32_t storage);
/* Does the graph write to the memory of this input, itself or by what its signature says? */
bool br_is_written(const br_builder *b, uint32_t input);

/* ---- for functions of the table ---- */

/* Notes why a node cannot be mapped; false. */
bool br_refuse(br_builder *b, const char *reason);

/* Arguments, by the names of the op's schema. */
bool br_has_arg(const br_node *node, const char *name);
bool br_arg_int(
        br_builder *b, const br_node *node, const char *name, int64_t otherwise, int64_t *v);
bool br_arg_float(
        br_builder *b, const br_node *node, const char *name, double otherwise, double *v);
bool br_arg_bool(br_builder *b, const br_node *node, const char *name, bool otherwise, bool *v);
/* A list of at most GB_MAX_NDIMS entries, or a number in its place; *count 0 when left out. */
bool br_arg_ints(br_builder *b, const br_node *node, const char *name, int *count, int64_t *v);
/* Exactly `count`; one entry counts for all, and `otherwise` for what is left out. */
bool br_arg_window(br_builder *b, const br_node *node, const char *name, int count,
        int64_t otherwise, int64_t *v);
/* The wire of a tensor argument with the views before it as ops; BR_NONE where an optional one is
 * left out. */
bool br_arg_wire(br_builder *b, const br_node *node, const char *name, uint32_t *wire);
bool br_arg_optional_wire(br_builder *b, const br_node *node, const char *name, uint32_t *wire);
/* The same for an operand that is broadcast: an expansion before it is left out. */
bool br_arg_operand(br_builder *b, const br_node *node, const char *name, uint32_t *wire);
/* The same for a factor of a product: a transposition of its last two axes is taken off and told. */
bool br_arg_factor(
        br_builder *b, const br_node *node, const char *name, uint32_t *wire, bool *transposed);
/* The wire of a value, as br_arg_wire(). */
bool br_read_value(br_builder *b, uint32_t value, uint32_t *wire);
/* NULL when the argument is no tensor. */
const br_value *br_arg_value(const br_builder *b, const br_node *node, const char *name);

/* The value that a node makes; NULL when it makes none there. */
const br_value *br_output(const br_builder *b, const br_node *node, uint32_t index);
/* Does anybody read it? */
bool br_output_is_read(const br_builder *b, const br_node *node, uint32_t index);
/* A new wire that an output of the node is bound to, with its type and dims. */
uint32_t br_output_wire(br_builder *b, const br_node *node, uint32_t index);
/* Binds an output to a wire that is there. */
void br_bind(br_builder *b, const br_node *node, uint32_t index, uint32_t wire);

uint32_t br_wire_new(br_builder *b, gb_data_type type, int ndims, const int64_t *dims);
uint32_t br_wire_like(br_builder *b, uint32_t wire, gb_data_type type);
/* One element of type f32. */
uint32_t br_scalar(br_builder *b, double value);
br_op *br_emit(br_builder *b, gb_op_kind kind, uint32_t n_inputs, const uint32_t *inputs,
        uint32_t n_outputs, const uint32_t *outputs);
void br_set_s64(br_builder *b, br_op *op, gb_op_attr attr, size_t count, const int64_t *values);
void br_set_bool(br_builder *b, br_op *op, gb_op_attr attr, bool value);
void br_set_f32(br_op *op, gb_op_attr attr, double value);
void br_set_text(br_op *op, gb_op_attr attr, const char *text);
/* Ops with one output, whose wire they give. */
uint32_t br_unary(br_builder *b, gb_op_kind kind, uint32_t a, uint32_t out);
uint32_t br_binary(br_builder *b, gb_op_kind kind, uint32_t a, uint32_t c, uint32_t out);
uint32_t br_cast(br_builder *b, uint32_t wire, gb_data_type type);
uint32_t br_reshape(br_builder *b, uint32_t wire, int ndims, const int64_t *dims, uint32_t out);
const br_wire *br_wire_of(const br_builder *b, uint32_t wire);
/* An axis that counts from the end when it is negative; false: out of range. */
bool br_axis(br_builder *b, int64_t axis, int ndims, int64_t *from_begin);

/* Is the argument of a max pool's gradient the places that the pool of the same input and windows has
 * found? The library finds them again, so nobody need know them. */
bool br_reads_places_again(const br_builder *b, const br_node *node, uint32_t arg);

/* ---- the functions of the table ---- */

bool br_map_reshape(br_builder *b, const br_node *node, const br_row *row);
bool br_map_transpose(br_builder *b, const br_node *node, const br_row *row);
bool br_map_expand(br_builder *b, const br_node *node, const br_row *row);
bool br_map_identity(br_builder *b, const br_node *node, const br_row *row);
bool br_map_dropout(br_builder *b, const br_node *node, const br_row *row);
bool br_map_cast(br_builder *b, const br_node *node, const br_row *row);

bool br_map_unary(br_builder *b, const br_node *node, const br_row *row);
bool br_map_gelu(br_builder *b, const br_node *node, const br_row *row);
bool br_map_elu(br_builder *b, const br_node *node, const br_row *row);
bool br_map_leaky_relu(br_builder *b, const br_node *node, const br_row *row);
bool br_map_clamp(br_builder *b, const br_node *node, const br_row *row);
bool br_map_hardtanh(br_builder *b, const br_node *node, const br_row *row);
bool br_map_relu6(br_builder *b, const br_node *node, const br_row *row);
bool br_map_hardsigmoid(br_builder *b, const br_node *node, const br_row *row);
bool br_map_softplus(br_builder *b, const br_node *node, const br_row *row);
bool br_map_silu(br_builder *b, const br_node *node, const br_row *row);
bool br_map_neg(br_builder *b, const br_node *node, const br_row *row);
bool br_map_pow(br_builder *b, const br_node *node, const br_row *row);
bool br_map_rsqrt(br_builder *b, const br_node *node, const br_row *row);
bool br_map_binary(br_builder *b, const br_node *node, const br_row *row);
bool br_map_extremum(br_builder *b, const br_node *node, const br_row *row);
bool br_map_compare(br_builder *b, const br_node *node, const br_row *row);
bool br_map_other_comparison(br_builder *b, const br_node *node, const br_row *row);
bool br_map_rsub(br_builder *b, const br_node *node, const br_row *row);
bool br_map_where(br_builder *b, const br_node *node, const br_row *row);
bool br_map_masked_fill(br_builder *b, const br_node *node, const br_row *row);
bool br_map_threshold_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_gelu_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_silu_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_result_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_source_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_hardsigmoid_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_softplus_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_elu_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_hardtanh_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_dropout_backward(br_builder *b, const br_node *node, const br_row *row);

bool br_map_softmax(br_builder *b, const br_node *node, const br_row *row);
bool br_map_softmax_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_reduce(br_builder *b, const br_node *node, const br_row *row);
bool br_map_cat(br_builder *b, const br_node *node, const br_row *row);

bool br_map_product(br_builder *b, const br_node *node, const br_row *row);
bool br_map_linear(br_builder *b, const br_node *node, const br_row *row);
bool br_map_addmm(br_builder *b, const br_node *node, const br_row *row);
bool br_map_attention(br_builder *b, const br_node *node, const br_row *row);
bool br_map_attention_backward(br_builder *b, const br_node *node, const br_row *row);

bool br_map_conv(br_builder *b, const br_node *node, const br_row *row);
bool br_map_conv_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_max_pool(br_builder *b, const br_node *node, const br_row *row);
bool br_map_max_pool_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_avg_pool(br_builder *b, const br_node *node, const br_row *row);
bool br_map_avg_pool_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_adaptive_avg_pool(br_builder *b, const br_node *node, const br_row *row);
bool br_map_nearest_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_linear_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_upsample(br_builder *b, const br_node *node, const br_row *row);

bool br_map_batch_norm(br_builder *b, const br_node *node, const br_row *row);
bool br_map_batch_norm_training(br_builder *b, const br_node *node, const br_row *row);
bool br_map_batch_norm_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_layer_norm(br_builder *b, const br_node *node, const br_row *row);
bool br_map_layer_norm_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_group_norm(br_builder *b, const br_node *node, const br_row *row);
bool br_map_group_norm_backward(br_builder *b, const br_node *node, const br_row *row);
bool br_map_rms_norm(br_builder *b, const br_node *node, const br_row *row);

/* ---- for the module ---- */

/* Maps all nodes: ops, bindings and reasons. What is in `forced` stays outside. */
gb_status br_map_graph(br_builder *b);
/* The library's op; the caller destroys it. */
gb_status br_make_gb_op(const br_builder *b, uint32_t op, gb_op **made);
/* Strides as the framework has them, where no two elements share memory by them; else as before. */
void br_take_strides(const br_value *value, gb_logical_tensor *tensor);
gb_status br_describe_wire(const br_builder *b, uint32_t wire, gb_logical_tensor *tensor);

#endif
