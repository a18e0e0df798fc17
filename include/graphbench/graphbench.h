/* The C API of libgraphbench: describe a deep-learning graph, partition it, compile the partitions
 * and execute them.
 *
 * The programming model and every numeric value of the enumerations are those of the oneDNN Graph
 * API (release 3.14), so that an existing integration maps one to one. A program goes through these
 * steps:
 *
 *     logical tensors -> ops -> graph -> finalize -> partitions -> compile ->
 *     compiled partition -> execute with tensors
 *
 * Conventions of the whole file
 *   - Functions return a gb_status and deliver results through pointers. On failure the results
 *     are untouched and gb_last_error() names the fault.
 *   - `create` gives an object that the caller must `destroy`; `get` lends something that lives as
 *     long as its parent. Destroying NULL is a success that does nothing.
 *   - NULL where an object or a result is required is GB_INVALID_ARGUMENTS.
 *   - A truth is a uint8_t: 0, or 1 (given: anything else).
 *   - In lists the count comes first: given as (count, list), lent as (&count, &list). A list to be
 *     filled is (capacity, list, &count): `count` becomes the number of entries, which is all with
 *     list NULL and capacity 0; a list with less room is GB_INVALID_ARGUMENTS. `count` may be NULL
 *     where the capacity is just that number. Text and bytes are (address, length).
 *   - What a function may change it takes without const, and what it lends of a const object is
 *     const.
 *   - Structs are frozen: they get no further members. Those that may grow start with their `size`.
 *   - Building (op, graph) belongs to one thread at a time. A finalized graph, a partition, an
 *     engine and a compiled partition are immutable and may be used by any number of threads at
 *     once. A tensor may be read by many threads.
 */
#ifndef GRAPHBENCH_GRAPHBENCH_H
#define GRAPHBENCH_GRAPHBENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GB_API __attribute__((visibility("default")))
#else
#define GB_API
#endif

#define GB_VERSION_MAJOR 0
#define GB_VERSION_MINOR 1
#define GB_VERSION_PATCH 0

/* Largest rank of a tensor. */
#define GB_MAX_NDIMS 12
/* Rank not known (yet). */
#define GB_UNKNOWN_NDIMS (-1)
/* Dimension or stride not known (yet). -1 says the same wherever a dim or stride is given; what the
 * library gives back is GB_UNKNOWN_DIM. */
#define GB_UNKNOWN_DIM INT64_MIN
/* A logical tensor that names no tensor. */
#define GB_NO_ID SIZE_MAX

/* ---- enumerations ---- */

typedef enum gb_status {
    GB_SUCCESS = 0,
    GB_OUT_OF_MEMORY = 1,
    GB_INVALID_ARGUMENTS = 2,
    GB_UNIMPLEMENTED = 3,
    GB_LAST_IMPL_REACHED = 4, /* never returned: kept for its number */
    GB_RUNTIME_ERROR = 5,
    GB_NOT_REQUIRED = 6, /* never returned */
    GB_INVALID_GRAPH = 7,
    GB_INVALID_GRAPH_OP = 8,
    GB_INVALID_SHAPE = 9,
    GB_INVALID_DATA_TYPE = 10 /* never returned: GB_INVALID_GRAPH_OP or GB_INVALID_ARGUMENTS */
} gb_status;

typedef enum gb_data_type {
    GB_UNDEF = 0,
    GB_F16 = 1,
    GB_BF16 = 2,
    GB_F32 = 3,
    GB_S32 = 4,
    GB_S8 = 5,
    GB_U8 = 6,
    GB_BOOLEAN = 8,
    GB_F8_E5M2 = 9,
    GB_F8_E4M3 = 10,
    GB_S4 = 11,
    GB_U4 = 12,
    GB_S64 = 16
} gb_data_type;

typedef enum gb_layout_type {
    GB_LAYOUT_UNDEF = 0,
    GB_LAYOUT_ANY = 1,
    GB_LAYOUT_STRIDED = 2,
    GB_LAYOUT_OPAQUE = 3
} gb_layout_type;

typedef enum gb_property {
    GB_PROPERTY_UNDEF = 0,
    GB_PROPERTY_VARIABLE = 1,
    GB_PROPERTY_CONSTANT = 2,
    GB_PROPERTY_HOST_SCALAR = 3
} gb_property;

typedef enum gb_policy { GB_POLICY_FUSION = 1, GB_POLICY_DEBUG = 2, GB_POLICY_MAX = 3 } gb_policy;

/* Why two ops, one of which reads what the other makes, are in different partitions. */
typedef enum gb_unfused_reason {
    GB_UNFUSED_NO_PATTERN = 0,     /* no pattern puts two ops of these kinds together */
    GB_UNFUSED_DATA_TYPE = 1,      /* the engine does not run one of the ops on its data types */
    GB_UNFUSED_OTHER_CONSUMER = 2, /* other ops read the tensor, or another one that would lie
                                      inside of the partition */
    GB_UNFUSED_ATTRIBUTE = 3,      /* attributes, shapes or connections of an op are not those that
                                      the pattern asks for */
    GB_UNFUSED_WILDCARD = 4,       /* one of the ops is a Wildcard or an End */
    GB_UNFUSED_POLICY = 5,         /* the policy fuses nothing, or no more ops */
    GB_UNFUSED_CYCLE = 6,          /* the partition would depend on its own result */
    GB_UNFUSED_OTHER_PARTITION = 7 /* a pattern fits, but one of the ops went to a partition of a
                                      pattern that comes first, or that is as long as can be */
} gb_unfused_reason;

typedef enum gb_engine_kind {
    GB_ENGINE_ANY = 0,
    GB_ENGINE_CPU = 1,
    GB_ENGINE_GPU = 2,
    GB_ENGINE_TEST = 3 /* has no device and serves the library's own tests; installed builds have
                          none */
} gb_engine_kind;

typedef enum gb_fpmath_mode {
    GB_FPMATH_STRICT = 0,
    GB_FPMATH_BF16 = 1,
    GB_FPMATH_F16 = 2,
    GB_FPMATH_ANY = 3,
    GB_FPMATH_TF32 = 4
} gb_fpmath_mode;

typedef enum gb_op_kind {
    GB_OP_ABS = 0,
    GB_OP_ABS_BACKWARD = 1,
    GB_OP_ADD = 2,
    GB_OP_AVG_POOL = 3,
    GB_OP_AVG_POOL_BACKWARD = 4,
    GB_OP_BATCH_NORM_BACKWARD = 5,
    GB_OP_BATCH_NORM_FORWARD_TRAINING = 6,
    GB_OP_BATCH_NORM_INFERENCE = 7,
    GB_OP_BIAS_ADD = 8,
    GB_OP_BIAS_ADD_BACKWARD = 9,
    GB_OP_CLAMP = 10,
    GB_OP_CLAMP_BACKWARD = 11,
    GB_OP_CONCAT = 12,
    GB_OP_CONVOLUTION = 13,
    GB_OP_CONVOLUTION_BACKWARD_DATA = 14,
    GB_OP_CONVOLUTION_BACKWARD_WEIGHTS = 15,
    GB_OP_CONV_TRANSPOSE = 16,
    GB_OP_CONV_TRANSPOSE_BACKWARD_DATA = 17,
    GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS = 18,
    GB_OP_DEQUANTIZE = 19,
    GB_OP_DIVIDE = 20,
    GB_OP_DYNAMIC_DEQUANTIZE = 21,
    GB_OP_DYNAMIC_QUANTIZE = 22,
    GB_OP_ELU = 23,
    GB_OP_ELU_BACKWARD = 24,
    GB_OP_END = 25,
    GB_OP_EXP = 26,
    GB_OP_GELU = 27,
    GB_OP_GELU_BACKWARD = 28,
    GB_OP_HARD_SWISH = 29,
    GB_OP_HARD_SWISH_BACKWARD = 30,
    GB_OP_INTERPOLATE = 31,
    GB_OP_INTERPOLATE_BACKWARD = 32,
    GB_OP_LAYER_NORM = 33,
    GB_OP_LAYER_NORM_BACKWARD = 34,
    GB_OP_LEAKY_RELU = 35,
    GB_OP_LOG = 36,
    GB_OP_LOG_SOFTMAX = 37,
    GB_OP_LOG_SOFTMAX_BACKWARD = 38,
    GB_OP_MATMUL = 39,
    GB_OP_MAXIMUM = 40,
    GB_OP_MAX_POOL = 41,
    GB_OP_MAX_POOL_BACKWARD = 42,
    GB_OP_MINIMUM = 43,
    GB_OP_MISH = 44,
    GB_OP_MISH_BACKWARD = 45,
    GB_OP_MULTIPLY = 46,
    GB_OP_PRELU = 47,
    GB_OP_PRELU_BACKWARD = 48,
    GB_OP_QUANTIZE = 49,
    GB_OP_RECIPROCAL = 50,
    GB_OP_REDUCE_L1 = 51,
    GB_OP_REDUCE_L2 = 52,
    GB_OP_REDUCE_MAX = 53,
    GB_OP_REDUCE_MEAN = 54,
    GB_OP_REDUCE_MIN = 55,
    GB_OP_REDUCE_PROD = 56,
    GB_OP_REDUCE_SUM = 57,
    GB_OP_RELU = 58,
    GB_OP_RELU_BACKWARD = 59,
    GB_OP_REORDER = 60,
    GB_OP_ROUND = 61,
    GB_OP_SIGMOID = 62,
    GB_OP_SIGMOID_BACKWARD = 63,
    GB_OP_SOFTMAX = 64,
    GB_OP_SOFTMAX_BACKWARD = 65,
    GB_OP_SOFTPLUS = 66,
    GB_OP_SOFTPLUS_BACKWARD = 67,
    GB_OP_SQRT = 68,
    GB_OP_SQRT_BACKWARD = 69,
    GB_OP_SQUARE = 70,
    GB_OP_SQUARED_DIFFERENCE = 71,
    GB_OP_STATIC_RESHAPE = 72,
    GB_OP_STATIC_TRANSPOSE = 73,
    GB_OP_SUBTRACT = 74,
    GB_OP_TANH = 75,
    GB_OP_TANH_BACKWARD = 76,
    GB_OP_TYPE_CAST = 77,
    GB_OP_WILDCARD = 78,
    GB_OP_HARD_SIGMOID = 79,
    GB_OP_HARD_SIGMOID_BACKWARD = 80,
    GB_OP_SELECT = 81,
    GB_OP_POW = 82,
    GB_OP_GROUP_NORM = 83,
    GB_OP_GEN_INDEX = 84,
    GB_OP_GREATER_EQUAL = 85,
    GB_OP_RMS_NORM = 86,
    GB_OP_DROPOUT = 87,
    GB_OP_LAST = 88,        /* the number of op kinds */
    GB_OP_DEFINED = 0x1000, /* the first that gb_op_kind_define() gives */
    GB_OP_DEFINED_END = 0x10FF
} gb_op_kind;

/* The range of the number fixes the storage type: 0x01 one f32, 0x20 f32 list, 0x30 one s64, 0x40
 * s64 list, 0x60 bool, 0x80 string. */
typedef enum gb_op_attr {
    GB_ATTR_UNDEF = 0,
    GB_ATTR_ALPHA = 0x01,
    GB_ATTR_BETA,
    GB_ATTR_EPSILON,
    GB_ATTR_MAX,
    GB_ATTR_MIN,
    GB_ATTR_MOMENTUM,
    GB_ATTR_SCALES = 0x20,
    GB_ATTR_AXIS = 0x30,
    GB_ATTR_BEGIN_NORM_AXIS,
    GB_ATTR_GROUPS,
    GB_ATTR_AXES = 0x40,
    GB_ATTR_DILATIONS,
    GB_ATTR_DST_SHAPE,
    GB_ATTR_KERNEL,
    GB_ATTR_ORDER,
    GB_ATTR_OUTPUT_PADDING,
    GB_ATTR_PADS_BEGIN,
    GB_ATTR_PADS_END,
    GB_ATTR_SHAPE,
    GB_ATTR_SIZES,
    GB_ATTR_SRC_SHAPE,
    GB_ATTR_STRIDES,
    GB_ATTR_WEIGHTS_SHAPE,
    GB_ATTR_ZPS,
    GB_ATTR_GROUP_SHAPE,
    GB_ATTR_EXCLUDE_PAD = 0x60,
    GB_ATTR_KEEP_DIMS,
    GB_ATTR_KEEP_STATS,
    GB_ATTR_PER_CHANNEL_BROADCAST,
    GB_ATTR_SPECIAL_ZERO,
    GB_ATTR_TRANSPOSE_A,
    GB_ATTR_TRANSPOSE_B,
    GB_ATTR_USE_AFFINE,
    GB_ATTR_USE_DST,
    GB_ATTR_AUTO_BROADCAST = 0x80,
    GB_ATTR_AUTO_PAD,
    GB_ATTR_COORDINATE_TRANSFORMATION_MODE,
    GB_ATTR_DATA_FORMAT,
    GB_ATTR_MODE,
    GB_ATTR_QTYPE,
    GB_ATTR_ROUNDING_TYPE,
    GB_ATTR_WEIGHTS_FORMAT,
    GB_ATTR_ACCUMULATION_MODE,
    GB_ATTR_END = 0xFF,
    GB_ATTR_DEFINED = 0x1000, /* the first that gb_op_attr_define() gives */
    GB_ATTR_DEFINED_END = 0x10FF
} gb_op_attr;

typedef enum gb_attr_type {
    GB_ATTR_TYPE_NONE = 0,
    GB_ATTR_TYPE_F32,
    GB_ATTR_TYPE_F32S,
    GB_ATTR_TYPE_S64,
    GB_ATTR_TYPE_S64S,
    GB_ATTR_TYPE_BOOL,
    GB_ATTR_TYPE_STRING,
    GB_ATTR_TYPE_POINTER /* of attributes that a program defines only */
} gb_attr_type;

/* ---- types ---- */

/* A tensor's description: a plain value, freely copied. Equal ids in one graph mean the same
 * tensor. */
typedef struct gb_logical_tensor {
    size_t id;
    int ndims; /* 0 = scalar, GB_UNKNOWN_NDIMS = rank unknown */
    int64_t dims[GB_MAX_NDIMS];
    gb_data_type data_type;
    gb_property property;
    gb_layout_type layout_type;
    int64_t strides[GB_MAX_NDIMS]; /* in elements; meaningful for GB_LAYOUT_STRIDED */
    size_t layout_id;              /* of GB_LAYOUT_OPAQUE: as a compiled partition or
                                      gb_logical_tensor_set_layout() gave it */
} gb_logical_tensor;

/* Input and output of a compiled partition that may share one buffer. */
typedef struct gb_inplace_pair {
    size_t input_id;
    size_t output_id;
} gb_inplace_pair;

/* Memory of a compiled partition beside its ports, in bytes. */
typedef struct gb_memory_use {
    size_t arena;         /* temporaries of one execution, overlapping where their lives do not */
    size_t intermediates; /* written for tensors inside of the partition, without overlap: what
                             fusion has not removed */
    size_t scratch;       /* work space of kernels, for all threads */
    size_t constants;     /* kept between executions: what depends on constants only */
} gb_memory_use;

/* A tensor that goes from one partition to another. */
typedef struct gb_unfused_edge {
    size_t tensor_id;
    size_t producer_id, consumer_id; /* ops */
    gb_unfused_reason reason;
} gb_unfused_edge;

typedef struct gb_version {
    int major;
    int minor;
    int patch;
} gb_version;

typedef struct gb_allocator gb_allocator;
typedef struct gb_context gb_context;
typedef struct gb_engine gb_engine;
typedef struct gb_stream gb_stream;
typedef struct gb_event gb_event;
typedef struct gb_tensor gb_tensor;
typedef struct gb_op gb_op;
typedef struct gb_graph gb_graph;
typedef struct gb_partition gb_partition;
typedef struct gb_compiled_partition gb_compiled_partition;

/* Returns memory of at least `size` bytes aligned to `alignment` (0 = 64), or NULL. Both may be
 * called from any thread, and do not call the library. */
typedef void *(*gb_malloc_fn)(size_t size, size_t alignment);
typedef void (*gb_free_fn)(void *memory);
/* The same with what gb_allocator_create_with_context() was given: a heap, a device's pool. */
typedef void *(*gb_malloc_context_fn)(size_t size, size_t alignment, void *context);
typedef void (*gb_free_context_fn)(void *memory, void *context);

/* ---- errors, names, version ---- */

/* Why the last failing call of this thread failed: one line naming the op, tensor or file position.
 * Never NULL. Valid until the thread's next call into the library. */
GB_API const char *gb_last_error(void);

GB_API const char *gb_status_name(gb_status status);
GB_API const gb_version *gb_get_version(void);

/* Names as written in graph files ("f32", "MatMul", "transpose_b", "fusion", ...). The parsers are
 * case-sensitive and return GB_INVALID_ARGUMENTS for an unknown name. The name of an unknown number
 * is "undef". */
GB_API const char *gb_data_type_name(gb_data_type type);
GB_API gb_status gb_data_type_parse(const char *name, gb_data_type *type);
GB_API const char *gb_op_kind_name(gb_op_kind kind);
GB_API gb_status gb_op_kind_parse(const char *name, gb_op_kind *kind);
GB_API const char *gb_op_attr_name(gb_op_attr attr);
GB_API gb_status gb_op_attr_parse(const char *name, gb_op_attr *attr);
GB_API gb_attr_type gb_op_attr_type(gb_op_attr attr);
/* An attribute of the program's own, which ops of any kind and graphs take and kernels do not look
 * at. It is copied with the op, counts in hashes and comparisons of ops, and is written to files; a
 * program that has defined it reads them back. Not so where the name starts with "temp." or the
 * type is a pointer: then it is a note that neither counts nor is written. The same name gives the
 * same number to all threads, until the program ends. GB_INVALID_ARGUMENTS: a name that has
 * characters other than letters, digits, '_' and '.', starts with a digit, has more than 63 of
 * them, or is that of an attribute of the op set; another type than before. GB_OUT_OF_MEMORY: more
 * than 256 names. */
GB_API gb_status gb_op_attr_define(const char *name, gb_attr_type type, gb_op_attr *attr);
GB_API const char *gb_property_name(gb_property property);
GB_API gb_status gb_property_parse(const char *name, gb_property *property);
GB_API const char *gb_fpmath_mode_name(gb_fpmath_mode mode);
GB_API gb_status gb_fpmath_mode_parse(const char *name, gb_fpmath_mode *mode);
GB_API const char *gb_engine_kind_name(gb_engine_kind kind);

/* Size of `count` elements in bytes; 4-bit types pack two elements in a byte. */
GB_API size_t gb_data_type_bytes(gb_data_type type, size_t count);

/* ---- context ---- */

/* A context holds the caches of the engines that are made with it (gb_engine_attrs): compiled
 * partitions and prepared constants. Engines made without are in the context of the process, whose
 * capacities the functions further below set; parts of one program that embed the library each on
 * their own, as plugins do, need not share one. Any number of threads may use a context. */

/* Set `size`, and the rest to 0 or what is wanted: a later version may have further members, and
 * takes what it was not given as 0. */
typedef struct gb_context_attrs {
    size_t size; /* sizeof(gb_context_attrs) */
    /* Kept at most: entries, and megabytes for each kind of engine. 0: as many as in the context of
     * the process at this time; -1: none. */
    int64_t compiled_partitions, constant_megabytes;
} gb_context_attrs;
/* `attrs` NULL: all 0. GB_INVALID_ARGUMENTS: another size, less than -1. */
GB_API gb_status gb_context_create(gb_context **context, const gb_context_attrs *attrs);
/* Engines keep what they need of it. */
GB_API gb_status gb_context_destroy(gb_context *context);

/* ---- allocator, engine ---- */

/* Either callback NULL: the built-in allocator, whose large blocks ask for huge pages. The
 * callbacks must outlive every engine made with the allocator. */
GB_API gb_status gb_allocator_create(
        gb_allocator **allocator, gb_malloc_fn malloc_fn, gb_free_fn free_fn);
/* Callbacks that get `context` with each call; it must outlive every engine made with the
 * allocator, too. Neither callback may be NULL. */
GB_API gb_status gb_allocator_create_with_context(gb_allocator **allocator,
        gb_malloc_context_fn malloc_fn, gb_free_context_fn free_fn, void *context);
GB_API gb_status gb_allocator_destroy(gb_allocator *allocator);

/* Kind GB_ENGINE_ANY is the CPU; there is one CPU device. GB_INVALID_ARGUMENTS when there is no
 * such device. */
GB_API gb_status gb_engine_create(gb_engine **engine, gb_engine_kind kind, size_t index);
/* The callbacks are copied; the allocator may be destroyed afterwards. */
GB_API gb_status gb_engine_create_with_allocator(
        gb_engine **engine, gb_engine_kind kind, size_t index, const gb_allocator *allocator);
/* What an engine is made with beside its device. Set `size`, and the rest to 0 or what is wanted, as
 * for gb_context_attrs. */
typedef struct gb_engine_attrs {
    size_t size;                   /* sizeof(gb_engine_attrs) */
    const gb_allocator *allocator; /* copied; NULL: the built-in one */
    gb_context *context;           /* whose caches the engine uses; NULL: those of the process */
} gb_engine_attrs;
/* `attrs` NULL: all 0. GB_INVALID_ARGUMENTS: another size; as gb_engine_create(). */
GB_API gb_status gb_engine_create_with_attrs(
        gb_engine **engine, gb_engine_kind kind, size_t index, const gb_engine_attrs *attrs);
/* Objects made with the engine keep what they need of it; destroy it whenever it is no longer
 * wanted. */
GB_API gb_status gb_engine_destroy(gb_engine *engine);

GB_API gb_status gb_engine_get_kind(const gb_engine *engine, gb_engine_kind *kind);
GB_API gb_status gb_engine_get_count(gb_engine_kind kind, size_t *count);
/* The number of the device among those of its kind, as given to gb_engine_create(). */
GB_API gb_status gb_engine_get_index(const gb_engine *engine, size_t *index);
/* The handle that the system knows the device by; NULL for a CPU, which has none. Lent. */
GB_API gb_status gb_engine_get_handle(const gb_engine *engine, void **handle);
/* What the engine runs on, for reports: instruction set and thread count for a CPU. Lent by the
 * engine. */
GB_API const char *gb_engine_get_description(const gb_engine *engine);
/* 1 when memory handles of the engine's tensors are addresses that the program may read and write,
 * and memory of the program's own may be given to tensors: so it is on the CPU. Otherwise handles are
 * the device's, and contents are reached by gb_tensor_read(), gb_tensor_write() and gb_tensor_map().
 */
GB_API gb_status gb_engine_has_host_memory(const gb_engine *engine, uint8_t *host_memory);

/* A stream orders executions: each sees the results of those called before. On the CPU an execution
 * is complete when gb_compiled_partition_execute() returns. Elsewhere it may go on: what it uses
 * (compiled partition, memory, scratchpad) is kept alive by the library, tensors and compiled
 * partitions may be destroyed at once, and results are there after gb_stream_wait(). */
GB_API gb_status gb_stream_create(gb_stream **stream, const gb_engine *engine);
/* Runs body(context, i) once for each i of 0 .. n-1, on any threads and in any order, and returns
 * when all are done. */
typedef void (*gb_parallel_for_fn)(
        void *pool, int n, void (*body)(void *context, int i), void *context);
/* A CPU stream whose executions run on the caller's threads in place of OpenMP's: `concurrency` of
 * them at most, and no more than OpenMP would have used when the partition was compiled.
 * `parallel_for` and `pool` must outlive the stream; streams that execute at the same time call it
 * at the same time. Results are those of any other stream, bit by bit. GB_INVALID_ARGUMENTS: no
 * parallel_for, concurrency below 1, engine of another kind. */
GB_API gb_status gb_stream_create_with_thread_pool(gb_stream **stream, const gb_engine *engine,
        int concurrency, gb_parallel_for_fn parallel_for, void *pool);
/* What a stream is made with. Set `size`, and the rest to 0 or what is wanted, as for
 * gb_context_attrs. */
typedef struct gb_stream_attrs {
    size_t size; /* sizeof(gb_stream_attrs) */
    /* The three arguments of gb_stream_create_with_thread_pool(); parallel_for NULL: OpenMP's
     * threads. */
    gb_parallel_for_fn parallel_for;
    void *pool;
    int concurrency;
} gb_stream_attrs;
/* `attrs` NULL: all 0. GB_INVALID_ARGUMENTS: another size, a pool or concurrency without
 * parallel_for; as the functions above. */
GB_API gb_status gb_stream_create_with_attrs(
        gb_stream **stream, const gb_engine *engine, const gb_stream_attrs *attrs);
/* Lent by the stream. */
GB_API gb_status gb_stream_get_engine(const gb_stream *stream, const gb_engine **engine);

/* Returns when all that was executed on the stream is complete; fails as the first of these
 * executions that failed after its call had returned, and forgets all failures then. */
GB_API gb_status gb_stream_wait(gb_stream *stream);
/* Waits for the stream, and fails as gb_stream_wait() does; the stream is gone in any case. */
GB_API gb_status gb_stream_destroy(gb_stream *stream);

/* An event stands for one execution (gb_compiled_partition_execute_with_events()). Any number of
 * threads may ask one event; it may outlive stream and engine. */

/* Returns when the execution is complete; fails as it did. */
GB_API gb_status gb_event_wait(const gb_event *event);
/* Without waiting: 1 when the execution is complete, whether or not it failed. */
GB_API gb_status gb_event_is_complete(const gb_event *event, uint8_t *complete);
/* Not before executions that were given the event as dependency have been called. */
GB_API gb_status gb_event_destroy(gb_event *event);

/* ---- logical tensors ---- */

/* Dims and strides unknown (ndims 0: a scalar). GB_INVALID_ARGUMENTS: ndims above GB_MAX_NDIMS;
 * host scalar that is not of rank 0 and type s32, s64 or f32. */
GB_API gb_status gb_logical_tensor_init(gb_logical_tensor *tensor, size_t id, gb_data_type type,
        int ndims, gb_layout_type layout, gb_property property);
/* Strided layout with known dims: dense row-major strides. */
GB_API gb_status gb_logical_tensor_init_with_dims(gb_logical_tensor *tensor, size_t id,
        gb_data_type type, int ndims, const int64_t *dims, gb_layout_type layout,
        gb_property property);

GB_API gb_status gb_logical_tensor_init_with_strides(gb_logical_tensor *tensor, size_t id,
        gb_data_type type, int ndims, const int64_t *dims, const int64_t *strides,
        gb_property property);
/* Lays a tensor with known dims out in the layout that a text names: the letters of its axes from
 * the outermost in, then blocks that lie innermost. "acdb" is strided, with channels last;
 * "aBcd16b" is opaque: channels in blocks of 16, as an image also "NCHW16c". The same text gives
 * the same layout_id as long as the process runs. GB_INVALID_ARGUMENTS: another rank, dims not
 * known, elements of less than a byte. GB_OUT_OF_MEMORY: more than 1024 different layouts. */
GB_API gb_status gb_logical_tensor_set_layout(gb_logical_tensor *tensor, const char *layout);
/* The text of an opaque layout; otherwise "undef", "any" or "strided". Static. */
GB_API const char *gb_logical_tensor_get_layout(const gb_logical_tensor *tensor);
/* Bytes the tensor's memory must hold: strided, from the first element to the end of the last, 1 +
 * the sum of (dim - 1) x stride elements, none when a dim is 0; opaque, all blocks, also those that
 * are not full; SIZE_MAX when the layout is any or undef or a dim is unknown.
 * GB_INVALID_ARGUMENTS when the bits do not fit size_t. */
GB_API gb_status gb_logical_tensor_get_mem_size(const gb_logical_tensor *tensor, size_t *bytes);
/* 1 when both describe the same tensor in the same layout. */
GB_API gb_status gb_logical_tensor_is_equal(
        const gb_logical_tensor *a, const gb_logical_tensor *b, uint8_t *equal);

/* 1 when elements of one type lie in the same places: equal data types, dims and layouts, whatever
 * ids and properties. Memory of one is then memory of the other, if no dim or stride is unknown. */
GB_API gb_status gb_logical_tensor_has_same_layout_and_dtype(
        const gb_logical_tensor *a, const gb_logical_tensor *b, uint8_t *same);
/* Elements of the tensor, without padding: 1 of a scalar, SIZE_MAX when rank or a dim is unknown.
 * GB_INVALID_ARGUMENTS when they do not fit size_t. */
GB_API gb_status gb_logical_tensor_get_element_count(
        const gb_logical_tensor *tensor, size_t *count);
/* The dims as they lie in memory, from the outermost in; `dims` has room for GB_MAX_NDIMS. Opaque:
 * axes in blocks, then the blocks: 16, 4, 224, 224, 16 for 16 x 64 x 224 x 224 in aBcd16b. Strided:
 * in the order of falling strides: 16, 224, 224, 64 in acdb. GB_INVALID_ARGUMENTS: a dim or stride
 * is unknown, or the layout is. */
GB_API gb_status gb_logical_tensor_get_physical_dims(
        const gb_logical_tensor *tensor, int *ndims, int64_t *dims);

/* ---- tensors ---- */

/* Memory handles with a meaning of their own: no memory yet, and memory owned by the tensor. */
#define GB_MEMORY_NONE     ((void *)0)
#define GB_MEMORY_ALLOCATE ((void *)(uintptr_t)-1)

/* GB_MEMORY_ALLOCATE with unknown rank, dims or strides (strided layout): the execution that has
 * the tensor as output sets them and allocates; another one sets them anew and keeps the memory if
 * it suffices. Until then the handle is NULL. GB_INVALID_ARGUMENTS: a host scalar; memory to be
 * allocated for layout any, or opaque with an unknown rank or dim; a handle of too few bytes where the
 * engine has no host memory (gb_engine_has_host_memory()). There the handle must be valid memory of
 * the engine's kind: others, as an address in place of a device's handle, are not found out. */
GB_API gb_status gb_tensor_create(gb_tensor **tensor, const gb_logical_tensor *description,
        const gb_engine *engine, void *handle);
/* The value is copied. GB_INVALID_ARGUMENTS unless the property is host_scalar. */
GB_API gb_status gb_tensor_create_scalar(
        gb_tensor **tensor, const gb_logical_tensor *description, const void *value);

GB_API gb_status gb_tensor_destroy(gb_tensor *tensor);
GB_API gb_status gb_tensor_get_data_handle(const gb_tensor *tensor, void **handle);
/* Frees memory that the tensor owned. Also says that the contents are new, when the tensor is a
 * constant. GB_INVALID_ARGUMENTS for a host scalar. */
GB_API gb_status gb_tensor_set_data_handle(gb_tensor *tensor, void *handle);
/* Lent by the tensor; NULL for a host scalar. */
GB_API gb_status gb_tensor_get_engine(const gb_tensor *tensor, const gb_engine **engine);
GB_API gb_status gb_tensor_get_logical_tensor(
        const gb_tensor *tensor, gb_logical_tensor *description);
/* Copies `bytes` between the program's memory and the tensor's, from byte `offset` of the tensor's
 * memory on, in the order in which it lies there (layout, gaps between elements and padding
 * included). Both wait for what was executed on the stream and has to do with this memory, and are
 * complete when they return. gb_tensor_write() also says that the contents are new, as
 * gb_tensor_set_data_handle() does. GB_INVALID_ARGUMENTS: a host scalar, a tensor without memory,
 * bytes beyond gb_logical_tensor_get_mem_size(), a stream of another engine. */
GB_API gb_status gb_tensor_read(
        const gb_tensor *tensor, gb_stream *stream, size_t offset, size_t bytes, void *data);
GB_API gb_status gb_tensor_write(
        gb_tensor *tensor, gb_stream *stream, size_t offset, size_t bytes, const void *data);
/* Lends the whole memory of the tensor as an address to read and write, until gb_tensor_unmap() with
 * that address; nothing that uses the memory may be executed in between. Waits, and fails, as
 * gb_tensor_write(); unmapping says that the contents are new. With host memory the address is the
 * tensor's handle. */
GB_API gb_status gb_tensor_map(gb_tensor *tensor, gb_stream *stream, void **pointer);
GB_API gb_status gb_tensor_unmap(gb_tensor *tensor, gb_stream *stream, void *pointer);
/* Copies the elements of `src` to `dst`, which has the same dims and data type and any strided or
 * opaque layout; padding of blocks becomes 0. The tensors do not overlap. GB_INVALID_ARGUMENTS:
 * they differ, have no memory, unknown dims, or elements of less than a byte. */
GB_API gb_status gb_tensor_reorder(const gb_tensor *src, gb_tensor *dst, gb_stream *stream);

/* ---- ops ---- */

GB_API gb_status gb_op_create(gb_op **op, size_t id, gb_op_kind kind, const char *name);
/* Not for an op lent by a graph. */
GB_API gb_status gb_op_destroy(gb_op *op);
/* Inputs and outputs are appended in call order; optional ones are left out. Not for an op lent by
 * a graph. */
GB_API gb_status gb_op_add_input(gb_op *op, const gb_logical_tensor *tensor);
GB_API gb_status gb_op_add_output(gb_op *op, const gb_logical_tensor *tensor);
/* Setting again replaces. The attribute's number fixes what the setter stores: a single value
 * (count 1) or a list. GB_INVALID_ARGUMENTS: wrong type for the attribute; an op lent by a
 * finalized graph is GB_INVALID_GRAPH. */
GB_API gb_status gb_op_set_attr_f32(gb_op *op, gb_op_attr attr, size_t count, const float *values);
GB_API gb_status gb_op_set_attr_s64(
        gb_op *op, gb_op_attr attr, size_t count, const int64_t *values);
GB_API gb_status gb_op_set_attr_bool(
        gb_op *op, gb_op_attr attr, size_t count, const uint8_t *values);
GB_API gb_status gb_op_set_attr_str(gb_op *op, gb_op_attr attr, const char *value, size_t length);
/* The pointer is kept as it is; what it points to stays the program's. */
GB_API gb_status gb_op_set_attr_pointer(gb_op *op, gb_op_attr attr, void *pointer);
/* Lends the value (count elements; a bool as one uint8_t; a string without its final NUL; a pointer
 * as one void *). `values`
 * NULL and count 0 when the attribute is not set. */
GB_API gb_status gb_op_get_attr(
        const gb_op *op, gb_op_attr attr, size_t *count, const void **values);
/* Lists the attributes that are set, in order. */
GB_API gb_status gb_op_get_attrs(
        const gb_op *op, size_t capacity, gb_op_attr *attrs, size_t *count);

GB_API gb_status gb_op_get_id(const gb_op *op, size_t *id);
GB_API gb_status gb_op_get_kind(const gb_op *op, gb_op_kind *kind);
/* Lent by the op. */
GB_API const char *gb_op_get_name(const gb_op *op);

GB_API size_t gb_op_get_input_num(const gb_op *op);
GB_API size_t gb_op_get_output_num(const gb_op *op);
GB_API gb_status gb_op_get_input(const gb_op *op, size_t index, gb_logical_tensor *tensor);
GB_API gb_status gb_op_get_output(const gb_op *op, size_t index, gb_logical_tensor *tensor);
/* The op as a line of the text form (docs/graph-text.md), every tensor with its description, as
 * snprintf() would write it: at most `capacity` bytes with the final NUL, nothing when it is 0;
 * `length` is that of the whole line without NUL. */
GB_API gb_status gb_op_get_text(const gb_op *op, size_t capacity, char *text, size_t *length);

/* ---- ops of the program's own ---- */

/* All callbacks get the definition's context and an op, which may be asked for tensors and
 * attributes, notes and pointers included, but not changed. Ids and names are those of the op or of
 * one that is equal in all else. Callbacks may be called from any thread, by several at once. */

/* Computes the dims of the outputs: `outputs` are copies of the op's output descriptions, of which
 * ndims and dims are to be set. Dims of all inputs are known. Another status than GB_SUCCESS fails
 * the inference with it. */
typedef gb_status (*gb_op_infer_fn)(
        void *context, const gb_op *op, size_t n_outputs, gb_logical_tensor *outputs);
/* Computes the outputs from the inputs, on one thread of the stream: once for each execution, or
 * once for what depends on constants only. What lies where, the op's tensors tell: all dims are
 * known, layouts are strided, or what gb_op_layout_fn names for the port. Memory of inputs and
 * outputs does not overlap. Another status than GB_SUCCESS fails the execution with it, as a fault
 * of the engine would: the call or, where it returns before, event and gb_stream_wait(). What
 * outputs hold then is not said; constants are made anew by the next execution. */
typedef gb_status (*gb_op_run_fn)(
        void *context, const gb_op *op, const void *const *inputs, void *const *outputs);
/* The layout, as for gb_logical_tensor_set_layout(), that suits the kernel best on a port: the
 * inputs, then the outputs. NULL: any strided one. What the kernel gets is strided or that. */
typedef const char *(*gb_op_layout_fn)(void *context, const gb_op *op, size_t port);

/* A kind of ops that the library does not have. Set all to 0, then `size`, and what is wanted: a
 * later version may have further members, which are then 0. */
typedef struct gb_op_definition {
    size_t size;      /* sizeof(gb_op_definition) */
    const char *name; /* of the kind, as files have it: letters, digits, '_'; at most 63 */
    size_t min_inputs, max_inputs, min_outputs, max_outputs;
    gb_op_infer_fn infer;   /* NULL: dims of outputs are given when the graph is built */
    gb_op_run_fn run;       /* NULL: no engine runs it, as Wildcard */
    gb_op_layout_fn layout; /* NULL: any strided layout */
    void *context;          /* given to the callbacks; stays until the program ends */
} gb_op_definition;
/* Makes a kind for gb_op_create(), files and graphs until the program ends. Such an op takes any
 * data types and attributes, is a partition of its own, and runs on the host; on GPU engines within
 * the call that executes it, behind all else on the stream. Known by name, so the same definition
 * gives the same kind again. From any thread. GB_INVALID_ARGUMENTS: another size, a name that is no
 * name or taken, counts of which the least is above the most; GB_OUT_OF_MEMORY: more than 256 of
 * them. */
GB_API gb_status gb_op_kind_define(const gb_op_definition *definition, gb_op_kind *kind);

/* ---- graph ---- */

/* With the default fpmath mode. */
GB_API gb_status gb_graph_create(gb_graph **graph, gb_engine_kind kind);

GB_API gb_status gb_graph_create_with_fpmath_mode(
        gb_graph **graph, gb_engine_kind kind, gb_fpmath_mode mode);
/* Partitions already handed out stay valid. */
GB_API gb_status gb_graph_destroy(gb_graph *graph);
/* GB_INVALID_GRAPH after finalize. apply_to_int: integer operands may be computed in the chosen
 * float type. */
GB_API gb_status gb_graph_set_fpmath_mode(
        gb_graph *graph, gb_fpmath_mode mode, uint8_t apply_to_int);
GB_API gb_status gb_graph_get_fpmath_mode(
        const gb_graph *graph, gb_fpmath_mode *mode, uint8_t *apply_to_int);
/* The mode of graphs that are created without one, in the whole program: what the environment
 * variable GB_DEFAULT_FPMATH_MODE names, else strict. */
GB_API gb_status gb_set_default_fpmath_mode(gb_fpmath_mode mode);
GB_API gb_status gb_get_default_fpmath_mode(gb_fpmath_mode *mode);
/* The kind of engine the graph is partitioned for; a file's own may not be there. GB_INVALID_GRAPH
 * after finalize. */
GB_API gb_status gb_graph_set_engine_kind(gb_graph *graph, gb_engine_kind kind);
/* Copies the op into the graph, fills default attributes and checks it against the op's schema. The
 * op stays the caller's. GB_INVALID_GRAPH_OP: the op breaks its schema, or its id is in the graph
 * already. */
GB_API gb_status gb_graph_add_op(gb_graph *graph, const gb_op *op);
/* Connects the ops and checks the whole. GB_INVALID_GRAPH: a tensor described in two ways or
 * produced twice, or a cycle; GB_INVALID_GRAPH_OP: an op that breaks its schema, as it may by what
 * was set since it was added; GB_INVALID_ARGUMENTS: strides by which elements of a tensor that an
 * op makes share memory. */
GB_API gb_status gb_graph_finalize(gb_graph *graph);

GB_API gb_status gb_graph_is_finalized(const gb_graph *graph, uint8_t *finalized);
/* Partitions a finalized graph. May be repeated with another policy. */
GB_API gb_status gb_graph_filter(gb_graph *graph, gb_policy policy);
/* The same with at most `most_ops` ops in a partition, whatever the policy would join; without, it
 * is 512 for GB_POLICY_MAX. GB_INVALID_ARGUMENTS: 0. */
GB_API gb_status gb_graph_filter_within(gb_graph *graph, gb_policy policy, size_t most_ops);

/* They come in an order in which they can be executed; the caller destroys each. GB_INVALID_GRAPH:
 * not partitioned. */
GB_API gb_status gb_graph_get_partitions(
        const gb_graph *graph, size_t capacity, gb_partition **partitions, size_t *count);

/* Why the partitions are not larger: one entry for each tensor and op of another partition that
 * reads it, in the order of tensors. Takes longer than partitioning. GB_INVALID_GRAPH: not
 * partitioned. */
GB_API gb_status gb_graph_get_unfused_edges(
        const gb_graph *graph, size_t capacity, gb_unfused_edge *edges, size_t *count);
/* "no_pattern", "data_type", ... and a phrase that explains it. */
GB_API const char *gb_unfused_reason_name(gb_unfused_reason reason);
GB_API const char *gb_unfused_reason_describe(gb_unfused_reason reason);

/* ---- graphs as data: files, looking inside, rewriting ---- */

/* Receives a note on something unusual but harmless in a graph file. */
typedef void (*gb_note_fn)(void *context, const char *message);

/* Reads a JSON graph file (all versions of the oneDNN Graph dump). The graph is not finalized.
 * Errors name file:line:column, or the op and tensor. Unknown keys are skipped with a note (`note`
 * may be NULL); a tensor with two shapes is left without any, with a note. */
GB_API gb_status gb_graph_load_json(
        gb_graph **graph, const char *path, gb_note_fn note, void *context);
GB_API gb_status gb_graph_parse_json(gb_graph **graph, const char *text, size_t length,
        const char *name, gb_note_fn note, void *context);
/* Writes the graph; reading it back gives the same graph, but for bytes of names and strings that
 * are no UTF-8, which stand as \xNN. `path` "-" is the standard output. */
GB_API gb_status gb_graph_save_json(const gb_graph *graph, const char *path);
/* The same for the text form (docs/graph-text.md), with one op to a line. */
GB_API gb_status gb_graph_parse_text(
        gb_graph **graph, const char *text, size_t length, const char *name);
GB_API gb_status gb_graph_save_text(const gb_graph *graph, const char *path);
/* Reads a file of either form: one whose first word is `graph` is text. */
GB_API gb_status gb_graph_load(gb_graph **graph, const char *path, gb_note_fn note, void *context);

/* Ops in topological order once finalized, inferred or edited, else in the order of adding. The
 * op is lent by the graph. */
GB_API size_t gb_graph_get_op_num(const gb_graph *graph);
GB_API gb_status gb_graph_get_op(const gb_graph *graph, size_t index, const gb_op **op);
/* GB_INVALID_ARGUMENTS when the graph has no op of this id. */
GB_API gb_status gb_graph_find_op(const gb_graph *graph, size_t op_id, const gb_op **op);
/* The same for an op whose attributes are to be set, until the graph is finalized (then
 * GB_INVALID_GRAPH). */
GB_API gb_status gb_graph_edit_op(gb_graph *graph, size_t op_id, gb_op **op);
/* Tensors in the order of their first mention. */
GB_API size_t gb_graph_get_tensor_num(const gb_graph *graph);
GB_API gb_status gb_graph_get_tensor(
        const gb_graph *graph, size_t index, gb_logical_tensor *tensor);
/* GB_INVALID_ARGUMENTS when the graph has no tensor of this id. */
GB_API gb_status gb_graph_find_tensor(
        const gb_graph *graph, size_t tensor_id, gb_logical_tensor *tensor);
/* The op that makes the tensor; NULL for an input of the graph. Lent by the graph. */
GB_API gb_status gb_graph_get_producer(const gb_graph *graph, size_t tensor_id, const gb_op **op);
/* The ops that read the tensor, in the order of adding; one entry for each use. */
GB_API gb_status gb_graph_get_consumers(
        const gb_graph *graph, size_t tensor_id, size_t capacity, const gb_op **ops, size_t *count);

/* An op that reads a tensor, and with which of its inputs. */
typedef struct gb_tensor_use {
    size_t op_id;
    size_t input;
} gb_tensor_use;
/* The same as ids, with the inputs. */
GB_API gb_status gb_graph_get_uses(const gb_graph *graph, size_t tensor_id, size_t capacity,
        gb_tensor_use *uses, size_t *count);

/* Tensors that no op makes, and those that leave: nobody reads them, or an End does. In the order
 * of their first mention. Inputs that never change have the property constant. */
GB_API gb_status gb_graph_get_inputs(
        const gb_graph *graph, size_t capacity, gb_logical_tensor *tensors, size_t *count);
GB_API gb_status gb_graph_get_outputs(
        const gb_graph *graph, size_t capacity, gb_logical_tensor *tensors, size_t *count);

/* Ends of the graph, made before it is finalized (then GB_INVALID_GRAPH). They are no ops, are not
 * written to files, and count in no hash or comparison: of a constant, a file has the description,
 * and whoever reads it has the contents. */
/* Makes the tensor an input of the graph, which may be there before any op reads it, or without.
 * GB_INVALID_GRAPH: an op makes it, or describes it in another way; GB_INVALID_GRAPH_OP is then the
 * answer to adding an op that makes it. */
GB_API gb_status gb_graph_make_input(gb_graph *graph, const gb_logical_tensor *tensor);
/* The same for an input that never changes (property constant): the graph keeps a copy of its
 * contents, as many bytes as gb_logical_tensor_get_mem_size() tells, for whoever executes it.
 * Again: other contents. GB_INVALID_ARGUMENTS: the size is not known. */
GB_API gb_status gb_graph_make_constant(
        gb_graph *graph, const gb_logical_tensor *tensor, const void *data);
/* Lends the contents of a constant; NULL and 0 when the tensor has none. */
GB_API gb_status gb_graph_get_constant(
        const gb_graph *graph, size_t tensor_id, const void **data, size_t *bytes);
/* Makes a tensor leave the graph although ops read it: adds an End with an id that is free, unless
 * there is one. GB_INVALID_ARGUMENTS: no such tensor. */
GB_API gb_status gb_graph_make_output(gb_graph *graph, size_t tensor_id);

/* Attributes of the graph as a whole, which gb_op_attr_define() gave (else GB_INVALID_ARGUMENTS),
 * as the functions for ops have them. They are written to files and read back as those of ops are,
 * and count in no hash or comparison. Until it is finalized, then GB_INVALID_GRAPH. */
GB_API gb_status gb_graph_set_attr_f32(
        gb_graph *graph, gb_op_attr attr, size_t count, const float *values);
GB_API gb_status gb_graph_set_attr_s64(
        gb_graph *graph, gb_op_attr attr, size_t count, const int64_t *values);
GB_API gb_status gb_graph_set_attr_bool(
        gb_graph *graph, gb_op_attr attr, size_t count, const uint8_t *values);
GB_API gb_status gb_graph_set_attr_str(
        gb_graph *graph, gb_op_attr attr, const char *value, size_t length);
GB_API gb_status gb_graph_set_attr_pointer(gb_graph *graph, gb_op_attr attr, void *pointer);
GB_API gb_status gb_graph_get_attr(
        const gb_graph *graph, gb_op_attr attr, size_t *count, const void **values);
GB_API gb_status gb_graph_get_attrs(
        const gb_graph *graph, size_t capacity, gb_op_attr *attrs, size_t *count);

typedef enum gb_visit_order {
    GB_VISIT_TOPOLOGICAL = 0, /* an op after those whose tensors it reads */
    GB_VISIT_REVERSE = 1,     /* an op after those that read its tensors */
    GB_VISIT_DEPTH_FIRST = 2  /* topological, and one branch after the other: from the ops whose
                                 tensors nobody reads up through the inputs, in their order */
} gb_visit_order;
/* Another status than GB_SUCCESS ends the visit. */
typedef gb_status (*gb_visit_fn)(void *context, const gb_op *op);
/* Calls `visit` once for each op, which is lent; it may set attributes (gb_graph_edit_op()) but not
 * rewrite the graph. Returns its last status. GB_INVALID_GRAPH, without a call: a cycle, a tensor made twice. */
GB_API gb_status gb_graph_visit(
        const gb_graph *graph, gb_visit_order order, gb_visit_fn visit, void *context);

/* Work of an op, or of all ops of a graph, whose dims must be known (else GB_INVALID_SHAPE, as for
 * a product of a scalar):
 * operations of the mathematics as docs/ops.md has them for each kind (a multiply and an add are
 * two, a function such as exp is one), and bytes of all elements that ops read and write, as if
 * nothing was fused. */
GB_API gb_status gb_op_get_work(const gb_op *op, double *flops, double *bytes);
GB_API gb_status gb_graph_get_work(const gb_graph *graph, double *flops, double *bytes);

/* Content: what is computed, whatever ids, names and the order of adding. Equal contents have equal
 * hashes, in every run of one version (but for layout ids of opaque tensors, which hold within a
 * process). Of an op: kind, attributes and descriptions of tensors; a graph adds edges, kind of
 * engine and fpmath mode. Graphs with thousands of ops that cannot be told apart may be called
 * different although they are equal. GB_INVALID_GRAPH: what gb_graph_finalize() would find. */
GB_API gb_status gb_op_get_hash(const gb_op *op, uint64_t *hash);
GB_API gb_status gb_op_is_equal(const gb_op *a, const gb_op *b, uint8_t *equal);
GB_API gb_status gb_graph_get_hash(const gb_graph *graph, uint64_t *hash);
GB_API gb_status gb_graph_is_equal(const gb_graph *a, const gb_graph *b, uint8_t *equal);

/* Checks every op against its schema again, as gb_graph_add_op() did. */
GB_API gb_status gb_graph_verify(const gb_graph *graph);
/* Infers every tensor that an op produces from the graph's inputs. Known dims must agree with the
 * inferred ones; unknown strides become dense. Of what a Wildcard makes, known is what is given;
 * ops that need more of it leave their outputs open. GB_INVALID_SHAPE names the op. */
GB_API gb_status gb_graph_infer_shapes(gb_graph *graph);

/* ---- partitions ---- */

/* A partition of a single op. An op that breaks its schema is GB_INVALID_GRAPH_OP. */
GB_API gb_status gb_partition_create_with_op(
        gb_partition **partition, const gb_op *op, gb_engine_kind kind);

GB_API gb_status gb_partition_destroy(gb_partition *partition);
GB_API gb_status gb_partition_get_id(const gb_partition *partition, size_t *id);
GB_API gb_status gb_partition_get_engine_kind(const gb_partition *partition, gb_engine_kind *kind);
/* 0 when the engine cannot run it; gb_partition_get_unsupported_reason() says why. */
GB_API gb_status gb_partition_is_supported(const gb_partition *partition, uint8_t *supported);
/* Lent by the partition; "" when supported. */
GB_API const char *gb_partition_get_unsupported_reason(const gb_partition *partition);
/* The name of the fusion pattern that formed the partition. Lent by the partition. */
GB_API const char *gb_partition_get_pattern(const gb_partition *partition);

/* Op ids in topological order. */
GB_API gb_status gb_partition_get_ops(
        const gb_partition *partition, size_t capacity, size_t *ids, size_t *count);
/* Lends the op of a place in the list of ids, as it is in the partition: a copy of the graph's. */
GB_API gb_status gb_partition_get_op(const gb_partition *partition, size_t index, const gb_op **op);
/* Ports: tensors that enter and leave. A tensor that two inputs of ops read is listed twice;
 * compile and execute take it once or twice, and use the first. */
GB_API gb_status gb_partition_get_input_ports(
        const gb_partition *partition, size_t capacity, gb_logical_tensor *ports, size_t *count);
GB_API gb_status gb_partition_get_output_ports(
        const gb_partition *partition, size_t capacity, gb_logical_tensor *ports, size_t *count);
/* The op that a port belongs to, and which of its inputs (outputs) the port is. `port` is a place
 * in the list of ports. */
GB_API gb_status gb_partition_get_input_port_op(
        const gb_partition *partition, size_t port, size_t *op_id, size_t *input);
GB_API gb_status gb_partition_get_output_port_op(
        const gb_partition *partition, size_t port, size_t *op_id, size_t *output);

/* Completes the descriptions of outputs (and of tensors inside) for inputs with known dims: rank,
 * dims, and strides where the layout is strided and they are unknown. Tensors are found by id, in
 * any order. Nothing is compiled. GB_INVALID_ARGUMENTS: an input is missing, or the partition has
 * no tensor of an id; GB_INVALID_SHAPE: a shape rule failed, or what an output says already is not
 * what the inputs make it. */
GB_API gb_status gb_partition_infer_shape(const gb_partition *partition, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t n_outputs,
        gb_logical_tensor *const *outputs);

/* The layout in which the kernels that would read an input take it at the least cost, for inputs
 * with known dims: `preferred` is the given description of tensor `tensor_id` in that layout,
 * strided or opaque; dense when there is none that is better. A constant is treated as if it
 * could change: one that lies so needs no packing. gb_tensor_reorder() and Reorder bring a tensor
 * there. GB_INVALID_ARGUMENTS: an input is
 * missing or of unknown dims, or the id is none of an input. */
GB_API gb_status gb_partition_query_preferred_layout(const gb_partition *partition, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t tensor_id, gb_logical_tensor *preferred);

/* The combinations of layouts that the kernels take as they are, for inputs with known dims: each
 * input dense, or in a layout that the kernels which would read it take, too; and each output in the
 * layout that is then written at the least cost. A row has the descriptions of the inputs, as given,
 * then of the output ports in their order; rows lie one after the other, and `capacity` and `count`
 * are in rows. The first is that of dense inputs; there are at most 64.
 * gb_partition_query_preferred_layout() tells which layout of an input is the best. Constants are
 * treated as there. GB_INVALID_ARGUMENTS: as there. */
GB_API gb_status gb_partition_query_layouts(const gb_partition *partition, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t capacity, gb_logical_tensor *rows,
        size_t *count);

/* Compiles for the given descriptions, matched to the ports by id (any order, further ones are
 * ignored). Inputs are strided or opaque. Outputs may have unknown dims, which are inferred, and
 * layout any: then they get the layout that suits all ops of the graph which read them, strided or
 * opaque, and are dense when these do not agree. Of a partition of a single op without a graph they
 * get the layout that its kernel writes at the least cost.
 *
 * Inputs of which rank, dims or strides are unknown make a compiled partition for any shapes that
 * fit what is known: each execution takes the shapes of its tensors, and kernels are chosen for
 * each set of shapes when it is first seen (the latest 64 sets are kept). Its layouts are plain:
 * any means dense rows. Faults that depend on dims come from executing it.
 *
 * GB_INVALID_ARGUMENTS: unsupported partition, missing port, undefined type or layout, an output
 * whose elements share memory or that is a host scalar, engine of another kind; GB_INVALID_SHAPE: a
 * shape rule failed; GB_UNIMPLEMENTED: no kernel for the combination, which is named. */
GB_API gb_status gb_partition_compile(const gb_partition *partition,
        gb_compiled_partition **compiled, size_t n_inputs, const gb_logical_tensor *const *inputs,
        size_t n_outputs, const gb_logical_tensor *const *outputs, const gb_engine *engine);

/* ---- compiled partitions ---- */

GB_API gb_status gb_compiled_partition_destroy(gb_compiled_partition *compiled);
/* The partition that it was compiled from, for its id, ops and ports. Lent; it stays when the
 * application's handle of the partition is destroyed. */
GB_API gb_status gb_compiled_partition_get_partition(
        const gb_compiled_partition *compiled, const gb_partition **partition);
/* The description that a port was compiled with: dims and layout filled in; unknown ones stay
 * unknown when inputs have such. */
GB_API gb_status gb_compiled_partition_query_logical_tensor(
        const gb_compiled_partition *compiled, size_t tensor_id, gb_logical_tensor *tensor);
/* gb_partition_query_preferred_layout() for the inputs that were compiled for. With another layout
 * of the input the partition is to be compiled anew. */
GB_API gb_status gb_compiled_partition_query_preferred_layout(
        const gb_compiled_partition *compiled, size_t tensor_id, gb_logical_tensor *preferred);
/* Lends the pairs of ports that may share a buffer. None with unknown dims: they depend on them. */
GB_API gb_status gb_compiled_partition_get_inplace_ports(
        const gb_compiled_partition *compiled, size_t *count, const gb_inplace_pair **pairs);
/* A u8 vector of the bytes that gb_compiled_partition_execute() wants as scratchpad; dim 0 is 0
 * when it wants none, and unknown when inputs have unknown dims. A tensor made of it with
 * GB_MEMORY_ALLOCATE grows with what executions need. */
GB_API gb_status gb_compiled_partition_get_scratchpad(
        const gb_compiled_partition *compiled, gb_logical_tensor *scratchpad);
/* What will run: the kernels in order, separated by '+', then ':' and their instruction set
 * ("pack+gemm:avx512"); "none" when there is nothing to compute, "dynamic" with unknown dims. Lent.
 */
GB_API const char *gb_compiled_partition_get_kernels(const gb_compiled_partition *compiled);
/* Operations, as gb_graph_get_work() counts those of the ops, and bytes of ports moved by one
 * execution, for roofs. GB_INVALID_ARGUMENTS with unknown dims, as for the memory. */
GB_API gb_status gb_compiled_partition_get_work(
        const gb_compiled_partition *compiled, double *flops, double *bytes);
/* Operations that the kernels make, for shares of a machine's peak: fewer than those of the ops
 * where a convolution is computed by minimal filtering. GB_INVALID_ARGUMENTS with unknown dims, as
 * for the memory. */
GB_API gb_status gb_compiled_partition_get_executed_flops(
        const gb_compiled_partition *compiled, double *flops);

GB_API gb_status gb_compiled_partition_get_memory(
        const gb_compiled_partition *compiled, gb_memory_use *use);
/* The compiled partition for shapes that fit one with unknown dims: what an execution on them runs.
 * It tells scratchpad, in-place pairs, kernels and work, and can be executed itself; the caller
 * destroys it. Descriptions are matched by id; outputs may be left out. One without unknown dims
 * gives itself. GB_INVALID_ARGUMENTS names the port and the dim that does not fit; else as
 * gb_partition_compile(). */
GB_API gb_status gb_compiled_partition_specialize(const gb_compiled_partition *compiled,
        gb_compiled_partition **specialized, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t n_outputs,
        const gb_logical_tensor *const *outputs);
/* gb_partition_infer_shape() for inputs that fit what was compiled. */
GB_API gb_status gb_compiled_partition_infer_shape(const gb_compiled_partition *compiled,
        size_t n_inputs, const gb_logical_tensor *const *inputs, size_t n_outputs,
        gb_logical_tensor *const *outputs);
/* Runs once. Tensors stand in the order of the lists given to compile (inputs and outputs each) and
 * must be what these describe: type, rank, dims and strides, as far as they were known; a promise
 * (constant, host scalar) that compiling relied on must be made by the tensor, too. Tensors at the
 * places of descriptions that are no port are ignored and may be NULL. An output that was created
 * with GB_MEMORY_ALLOCATE and unknown dims gets shape and memory now; it must not be in use
 * elsewhere.
 * `scratchpad` NULL: the engine's allocator provides it. Any number of threads may execute one
 * compiled partition at once, each with a scratchpad of its own. What the constants were turned
 * into is kept (see the cache of prepared constants): the contents of a tensor that was compiled as
 * constant must not change between executions, unless gb_tensor_set_data_handle() says so.
 * GB_INVALID_ARGUMENTS: wrong count, tensor that does not fit (the message names port and dim),
 * tensor without memory, stream or tensor of another engine (those of CPU engines may be mixed); with
 * unknown dims also what gb_partition_compile() may return. What fails after the call has returned is
 * told by gb_stream_wait(). */
GB_API gb_status gb_compiled_partition_execute(const gb_compiled_partition *compiled,
        gb_stream *stream, size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        gb_tensor *const *outputs, gb_tensor *scratchpad);
/* The same, started when all `dependencies` are complete (lent; of any streams and engines), and
 * failing when one of them failed. The call itself waits for them on engines with host memory, where
 * they are of another kind of engine, and where it has to read a constant: when the tensor is new or
 * its contents are, or when the compiled partition meets these contents for the first time. So
 * nothing that they wait for may itself wait for the call. `event`
 * (NULL: not asked for) stands for this execution; the caller destroys it. It is left as it was when
 * the call fails. */
GB_API gb_status gb_compiled_partition_execute_with_events(const gb_compiled_partition *compiled,
        gb_stream *stream, size_t n_inputs, const gb_tensor *const *inputs, size_t n_outputs,
        gb_tensor *const *outputs, gb_tensor *scratchpad, size_t n_dependencies,
        const gb_event *const *dependencies, gb_event **event);

/* ---- the cache of compiled partitions ---- */

/* Compiling asks the cache first. It goes by content: kinds and attributes of ops, edges,
 * descriptions of ports, fpmath mode, engine and number of threads; ids and the order of adding do
 * not count. What threads ask for at the same time is compiled once. Destroying an engine drops
 * what was compiled for it. All functions may be called from any thread. */

/* Counts of a cache. */
typedef struct gb_cache_counters {
    size_t entries;                 /* now */
    size_t hits, misses, evictions; /* since the start of the program */
} gb_cache_counters;

/* Entries that are kept: what the environment variable GB_COMPILED_PARTITION_CACHE_CAPACITY says,
 * else 1024. The least recently used go. 0 turns the cache off.
 * GB_INVALID_ARGUMENTS: below 0. */
GB_API gb_status gb_set_compiled_partition_cache_capacity(int capacity);
GB_API gb_status gb_get_compiled_partition_cache_capacity(int *capacity);
GB_API gb_status gb_get_compiled_partition_cache_counters(gb_cache_counters *counters);
/* The same of the caches of a context; NULL: those of the process. */
GB_API gb_status gb_context_get_cache_counters(
        const gb_context *context, gb_cache_counters *counters);

/* ---- the cache of prepared constants ---- */

/* What compiled partitions make of their constant inputs once (packed weights, for the most part).
 * It goes by what is made and by the contents of the tensors: these are read once for each tensor
 * object, and again after gb_tensor_set_data_handle(); addresses do not count. Each compiled
 * partition holds what it used last; beyond that the cache keeps what was used most recently, as
 * long as all of it fits the capacity. Compiled partitions share what is equal, those for other
 * shapes of the other inputs among them. What threads ask for at the same time is prepared once.
 * Destroying an engine drops what was prepared for it. All functions may be called from any thread.
 */

typedef struct gb_constant_cache_counters {
    size_t entries, bytes;          /* now */
    size_t hits, misses, evictions; /* since the start of the program; an execution on the same
                                       contents as the one before is neither hit nor miss */
} gb_constant_cache_counters;

/* In megabytes (2^20 bytes) for each kind of engine, GB_ENGINE_CPU or GB_ENGINE_GPU: what the
 * environment variable GB_CONSTANT_CACHE_CAPACITY says ("cpu:MB;gpu:MB"), else 1024. Setting it
 * drops everything of that kind, and the contents of constants are read again. 0: nothing is kept
 * but what compiled partitions hold. GB_INVALID_ARGUMENTS: another kind. */
GB_API gb_status gb_set_constant_cache_capacity(gb_engine_kind kind, size_t megabytes);
GB_API gb_status gb_get_constant_cache_capacity(gb_engine_kind kind, size_t *megabytes);
GB_API gb_status gb_get_constant_cache_counters(
        gb_engine_kind kind, gb_constant_cache_counters *counters);
/* The same of the caches of a context; NULL: those of the process. */
GB_API gb_status gb_context_get_constant_cache_counters(
        const gb_context *context, gb_engine_kind kind, gb_constant_cache_counters *counters);

/* ---- diagnostics ---- */

/* What is told while the program runs, one line of comma-separated fields each, on the standard
 * error (docs/embedding.md lists the fields). */
typedef enum gb_verbose {
    GB_VERBOSE_NONE = 0,
    GB_VERBOSE_ERROR = 1,     /* graphs, ops, compilations and executions that fail, and why */
    GB_VERBOSE_DISPATCH = 2,  /* partitions: pattern, ops, supported or why not */
    GB_VERBOSE_CREATE = 4,    /* compilations, found in the cache or not, with times */
    GB_VERBOSE_EXEC = 8,      /* executions and preparations of constants, with times */
    GB_VERBOSE_ALL = 15,      /* all above */
    GB_VERBOSE_TIMESTAMP = 16 /* lines begin with the time */
} gb_verbose;

/* A sum of gb_verbose, in place of what the environment variable GB_VERBOSE says (a list of
 * "error", "dispatch", "create", "exec", "all", "timestamp"; or a level: 0 none, 1 errors and
 * executions, 2 all). GB_INVALID_ARGUMENTS: another bit. */
GB_API gb_status gb_set_verbose(unsigned flags);

/* Graphs written to JSON files in the working directory, named by their content. */
typedef enum gb_dump_mode {
    GB_DUMP_NONE = 0,
    GB_DUMP_GRAPH = 1,   /* graph-HASH.json when a graph is partitioned */
    GB_DUMP_SUBGRAPH = 2 /* subgraph-HASH.json when a partition is compiled, with all shapes */
} gb_dump_mode;

/* A sum of gb_dump_mode, in place of what the environment variable GB_GRAPH_DUMP says (a list of
 * "graph", "subgraph"). GB_INVALID_ARGUMENTS: another bit. */
GB_API gb_status gb_set_dump_mode(unsigned mode);

#ifdef __cplusplus
}
#endif

#endif
