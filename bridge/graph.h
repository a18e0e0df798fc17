/* A graph of the framework as it was read: nodes in their order of execution, values of any type. */
#ifndef GB_BRIDGE_GRAPH_H
#define GB_BRIDGE_GRAPH_H

#include "common.h"

/* Data types by the codes of torch.export. */
typedef struct br_dtype {
    int code;
    const char *name;
    gb_data_type type; /* GB_UNDEF: the library has none */
    uint32_t bytes;
    bool is_float;
} br_dtype;
/* Of a code that is not in the schema: one that the library has not. Never NULL. */
const br_dtype *br_dtype_of_code(int64_t code);

/* A size, or another integer that may depend on sizes. */
typedef struct br_size {
    int64_t value;    /* what is known, or the hint of an expression */
    const char *expr; /* NULL: known */
    bool unknown;     /* an expression without a hint */
} br_size;

typedef enum br_value_kind {
    BR_TENSOR,
    BR_SYMBOL /* an integer, truth or float that the graph computes */
} br_value_kind;

typedef enum br_role {
    BR_INNER,     /* made by a node */
    BR_USER,      /* an input */
    BR_PARAMETER, /* inputs that belong to the model */
    BR_BUFFER,
    BR_CONSTANT
} br_role;

typedef struct br_value {
    const char *name;
    br_value_kind kind;
    br_role role;
    const br_dtype *dtype;
    int ndims; /* -1: more than GB_MAX_NDIMS */
    br_size dims[GB_MAX_NDIMS], strides[GB_MAX_NDIMS];
    bool is_cpu, is_strided;    /* the device; no sparse layout */
    br_size symbol;             /* of BR_SYMBOL */
    uint32_t producer;          /* node; BR_NONE: an input */
    bool is_defined;            /* an input or made by a node */
    bool is_output;             /* of the graph, or the new contents of one of its inputs */
    bool is_written;            /* a buffer or input that the signature says is written */
    const char *qualified_name; /* of a parameter, buffer or constant; else NULL */
    const void *data;           /* contents from an archive; NULL: none */
    size_t bytes;
} br_value;

typedef enum br_arg_kind {
    BR_ARG_NONE,
    BR_ARG_TENSOR,  /* 1 value */
    BR_ARG_TENSORS, /* BR_NONE where there is none */
    BR_ARG_INT,     /* 1 size */
    BR_ARG_INTS,
    BR_ARG_FLOAT,
    BR_ARG_FLOATS,
    BR_ARG_BOOL,
    BR_ARG_BOOLS,
    BR_ARG_STRING,
    BR_ARG_DTYPE,         /* 1 size: the code */
    BR_ARG_MEMORY_FORMAT, /* 1 size */
    BR_ARG_DEVICE,        /* text: the type */
    BR_ARG_OTHER          /* with the values that it names */
} br_arg_kind;

typedef struct br_arg {
    const char *name; /* "" when it has none */
    br_arg_kind kind;
    uint32_t count;
    uint32_t *values;
    br_size *sizes; /* truths are 0 and 1 */
    double *floats;
    const char *text;
} br_arg;

typedef struct br_node {
    const char *name, *target;
    const char *op; /* the target without "torch.ops.", as "aten.relu.default" */
    uint32_t n_args, n_outputs;
    br_arg *args;
    uint32_t *outputs; /* BR_NONE where there is none */
} br_node;

/* What expressions of sizes are made of. */
typedef struct br_symbol {
    const char *name;
    int64_t value, min, max;
    bool is_open; /* no value is known */
} br_symbol;

struct gb_bridge_graph {
    br_arena arena;
    uint32_t references; /* the handle and the modules made of it */
    br_node *nodes;
    br_value *values;
    uint32_t n_nodes, n_values, values_capacity;
    br_names names; /* of values */
    uint32_t *inputs, *outputs;
    uint32_t n_inputs, n_outputs;
    br_names symbol_names;
    br_symbol *symbols; /* in the order of their names */
    uint32_t n_symbols, symbols_capacity;
};

/* A new graph with one reference. */
gb_bridge_graph *br_graph_new(void);
void br_graph_release(const gb_bridge_graph *graph);
void br_graph_retain(const gb_bridge_graph *graph);
/* Does a module know it, too? */
bool br_graph_is_shared(const gb_bridge_graph *graph);
gb_status br_graph_read(gb_bridge_graph *graph, const char *text, size_t length);

/* Lists the symbols of all sizes, and fills in the sizes that follow from the values of symbols. */
gb_status br_find_symbols(gb_bridge_graph *graph);

/* NULL when the argument was left out or is None. */
const br_arg *br_find_arg(const br_node *node, const char *name);
/* Bytes from the first element to the end of the last, by value; false: they do not fit, or a dim is
 * open. */
bool br_value_bytes(const br_value *value, size_t *bytes);

#endif
