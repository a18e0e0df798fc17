/* The op set as a table: one row per op kind drives name look-up, validation, default attributes,
 * shape inference and docs/ops.md. A new op is one row in ops.def (and a shape rule, when none of
 * the existing ones fits). */
#ifndef GB_GRAPH_OPS_OP_TABLE_H
#define GB_GRAPH_OPS_OP_TABLE_H

#include "graph/ir/graph.h"

/* Classes that patterns, passes, kernels and reference ask for instead of listing kinds. */
typedef enum gb_op_class {
    GB_CLASS_OTHER,
    GB_CLASS_UNARY,          /* f(x), element-wise */
    GB_CLASS_UNARY_BACKWARD, /* element-wise gradient of one */
    GB_CLASS_BINARY,         /* element-wise with broadcast, src_0 and src_1 */
    GB_CLASS_COMPARE,        /* GreaterEqual */
    GB_CLASS_SELECT,
    GB_CLASS_BIAS, /* BiasAdd */
    GB_CLASS_MATMUL,
    GB_CLASS_CONVOLUTION, /* Convolution, ConvTranspose and their gradients */
    GB_CLASS_POOL,        /* and gradients */
    GB_CLASS_NORM,
    GB_CLASS_SOFTMAX,
    GB_CLASS_REDUCTION,
    GB_CLASS_RESAMPLING,
    GB_CLASS_MOVEMENT,   /* Concat, StaticReshape, StaticTranspose, Reorder */
    GB_CLASS_CONVERSION, /* TypeCast and the four (de)quantise ops */
    GB_CLASS_PRELU
} gb_op_class;

enum {
    /* Fits unary fusion chains (fusion.md: the set U), or binary ones (the set B). */
    GB_OP_FLAG_CHAIN_UNARY = 1,
    GB_OP_FLAG_CHAIN_BINARY = 2,
    GB_OP_FLAG_BACKWARD = 4,
    /* Of element-wise ops: a few instructions per element, without divisions and functions. */
    GB_OP_FLAG_CHEAP = 8,
    /* Of element-wise ops: exponentials, logarithms or random numbers, tens of instructions. */
    GB_OP_FLAG_COSTLY = 16,
    /* Works element by element or only moves elements: an error stays what it is, but for its
     * size. */
    GB_OP_FLAG_PASSES_ERRORS = 32,
    /* Output 0 has the values of input 0, up to rounding: moved or converted. */
    GB_OP_FLAG_PASSES_VALUES = 64
};

enum { GB_MAX_PORTS = 8, GB_MAX_OP_ATTRS = 10 };

/* A set of data types, as bits 1 << gb_data_type. */
typedef uint32_t gb_type_set;

typedef struct gb_port_schema {
    const char *name; /* "src", "weights", ... */
    bool required;
    bool variadic;      /* stands for any further number of tensors (Concat, Wildcard) */
    char type_variable; /* ports with the same letter have the same type; 0 = independent */
    gb_type_set types;
    gb_value_range range; /* of an input */
} gb_port_schema;

typedef struct gb_attr_schema {
    gb_op_attr name;
    bool required;
    bool has_default;
    gb_attr default_value;     /* when has_default */
    const char *const *values; /* allowed strings, NULL-terminated; NULL = any */
} gb_attr_schema;

/* Computes the output dims of `op` into outputs[i] (copies of the op's output tensors: ndims and
 * dims are to be set; data type and layout stay). May write resolved attributes (pads) back into
 * the op. All inputs have known dims. */
typedef gb_status (*gb_shape_fn)(gb_op *op, gb_logical_tensor *outputs);
/* Checks of one op beyond the schema; GB_INVALID_GRAPH_OP with a message. */
typedef gb_status (*gb_check_fn)(const gb_op *op);

/* Operations of an op with known dims, before the factor of its row (work.c). */
typedef double (*gb_work_fn)(const gb_op *op);

typedef struct gb_op_schema {
    gb_op_kind kind;
    const char *name;    /* as in files */
    const char *summary; /* what it computes, for docs/ops.md */
    gb_op_class op_class;
    unsigned flags;
    uint32_t min_inputs, max_inputs; /* max UINT32_MAX: variadic */
    uint32_t min_outputs, max_outputs;
    uint32_t input_counts; /* set of legal counts as bits, when not every one between min and max
                              is; else 0 */
    uint32_t output_counts;
    uint32_t n_inputs, n_outputs, n_attrs; /* rows below */
    gb_port_schema inputs[GB_MAX_PORTS];
    gb_port_schema outputs[GB_MAX_PORTS];
    gb_attr_schema attrs[GB_MAX_OP_ATTRS];
    gb_shape_fn infer;
    gb_check_fn check;  /* NULL = none */
    gb_check_fn limits; /* needs the dims of inputs; GB_INVALID_ARGUMENTS; NULL = none */
    double flops;       /* operations, as a factor of... */
    gb_work_fn work;    /* ... this; NULL = none */
} gb_op_schema;

/* NULL only for a number that is not an op kind. */
const gb_op_schema *gb_op_schema_get(gb_op_kind kind);
/* Has the kind, which is one, this flag? */
static inline bool gb_op_has_flag(gb_op_kind kind, unsigned flag)
{
    return gb_op_schema_get(kind)->flags & flag;
}

/* Sets an attribute to a copy of `attr`. */
gb_status gb_op_put_attr(gb_op *op, const gb_attr *attr);
/* Sets the defaults of attributes that are not set. */
gb_status gb_op_fill_defaults(gb_op *op);
/* Checks op against its schema; see op-set rules: counts, types, attributes, op-specific checks. */
gb_status gb_op_verify(const gb_op *op);
/* gb_graph_finalize() of a graph whose ops need not obey their schemas: kernels may take more. */
gb_status gb_graph_finalize_unchecked(gb_graph *graph);
/* Shape rule of one op of a graph, comparison with known dims, write-back of dims and dense strides
 * (unknown strides only). */
gb_status gb_op_infer_shapes(gb_graph *graph, gb_op *op);
/* Whether the values of op are meaningful for its dims (known by now): numbers of scales, groups,
 * ranges. Apart from shapes, which can be inferred while such values are still being made to fit.
 * GB_INVALID_ARGUMENTS. */
gb_status gb_op_check_limits(const gb_op *op);
/* The shapes of all ops in topological order; the graph must be connected. */
gb_status gb_graph_infer_dims(gb_graph *graph);
/* Shapes, then limits: what must hold before anything is executed. */
gb_status gb_graph_infer(gb_graph *graph);

/* Shared by shape rules, reference and kernels ------------------------------------------------- */

/* Dense row-major strides (a dim of 0 counts as 1). */
void gb_dense_strides(int ndims, const int64_t *dims, int64_t *strides);
bool gb_is_dense(const gb_logical_tensor *tensor);
/* Numpy broadcast of two shapes; false when they do not fit. */
bool gb_broadcast_dims(
        int a_ndims, const int64_t *a, int b_ndims, const int64_t *b, int *ndims, int64_t *dims);
/* a broadcasts one way onto b. */
bool gb_broadcasts_onto(int a_ndims, const int64_t *a, int b_ndims, const int64_t *b);
/* Elements of a tensor with known dims. */
int64_t gb_tensor_count(const gb_logical_tensor *tensor);
/* Negative axes count from the end; -1 when out of range. */
int gb_normalize_axis(int64_t axis, int ndims);
/* Axis of the channels: data_format NCX -> 1, NXC (default) -> last. */
int gb_channel_axis(const gb_op *op, int ndims);

/* Spatial geometry of convolutions and pools, attributes resolved. Sizes are per spatial axis. */
typedef struct gb_window {
    int n_spatial;
    int64_t strides[GB_MAX_NDIMS], dilations[GB_MAX_NDIMS];
    int64_t pads_begin[GB_MAX_NDIMS], pads_end[GB_MAX_NDIMS];
    int64_t kernel[GB_MAX_NDIMS];
    int64_t output_padding[GB_MAX_NDIMS];
    int64_t groups;
} gb_window;
/* Cells of the padded image that one window spans along a spatial axis. */
static inline int64_t gb_window_extent(const gb_window *window, int axis)
{
    return (window->kernel[axis] - 1) * window->dilations[axis] + 1;
}
/* `in` are the sizes that auto_pad refers to (those of the op's image: src, or diff_src of a
 * gradient by src; of a transposed convolution's gradients, diff_dst), `kernel` the window's (NULL:
 * the kernel attribute), `transposed` selects the auto_pad rule of ConvTranspose itself.
 * GB_INVALID_SHAPE messages name the op. */
gb_status gb_window_get(const gb_op *op, int n_spatial, const int64_t *in, const int64_t *kernel,
        bool transposed, gb_window *window);

/* Index order of a tensor seen as N, C, spatial...: axes[0] = N, axes[1] = C, axes[2..] = spatial
 * axes in the tensor. Convolution weights as O, I, spatial... (transposed convolution: I, O,
 * spatial...). */
void gb_data_axes(const gb_op *op, int ndims, int axes[GB_MAX_NDIMS]);
void gb_weights_axes(const gb_op *op, int ndims, int axes[GB_MAX_NDIMS]);
/* A static Dequantize of the weights of a grouped ConvTranspose may have parameters for the
 * channels of all groups, though its axis has those of one group: the axis of src along which the
 * groups lie, and their number. -1: parameters fit the axis. */
int gb_quantize_groups(const gb_op *op, int64_t *groups);
/* The ConvTranspose that reads such weights, or NULL; `along` is set to that axis. */
const gb_op *gb_quantize_groups_reader(const gb_op *op, int64_t *groups, int *along);

/* Are all tensors of the op of floating types of 16 or 32 bits? `reason` (static) says why not. */
bool gb_all_types_float(const gb_op *op, const char **reason);
/* The same for inputs 0 and 1 and the outputs: a convolution's without bias and shape. */
bool gb_convolution_types_float(const gb_op *op, const char **reason);

#endif
