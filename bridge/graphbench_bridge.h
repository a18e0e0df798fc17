/* The bridge: graphs of PyTorch in, groups of ops that this library runs as one call out.
 *
 *     model.json or .pt2 -> graph -> module -> description (JSON) -> kernels -> execute
 *
 * A graph is what torch.export writes (docs/bridge.md has the part that is read). A module is that
 * graph after the passes of the bridge: mutation removed, ops mapped, partitions made. Its
 * description tells a framework which nodes of the graph each group replaces, so that it can
 * rewrite its own graph: a group becomes one call of gb_bridge_kernel_execute(), all other nodes
 * stay the framework's.
 *
 * Built on the public API of libgraphbench; its conventions hold here, too: functions return a
 * gb_status and leave results untouched when they fail, `create` gives what the caller must
 * `destroy`, lists are (count, list). The reason of a failure is told by gb_bridge_last_error().
 *
 * A finished module may be used by any number of threads at once: preparing and executing are
 * thread-safe, and what several threads prepare at the same time is compiled once. Graphs and
 * modules are created and destroyed by one thread. */
#ifndef GRAPHBENCH_BRIDGE_H
#define GRAPHBENCH_BRIDGE_H

#include <graphbench/graphbench.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gb_bridge_graph gb_bridge_graph;
typedef struct gb_bridge_module gb_bridge_module;
typedef struct gb_bridge_kernel gb_bridge_kernel;

/* Why the last failing call of this thread failed, in one line. Never NULL; "" when none did. Valid
 * until the thread's next call into the bridge. */
GB_API const char *gb_bridge_last_error(void);

/* ---- graphs ---- */

/* Reads a graph from the JSON text of a torch.export program (`graph_module` at the top, or its
 * `graph` and `signature`), of `length` bytes, which need not end in NUL. What is read is copied.
 * Nodes may be of any op and values of any type: what the bridge cannot map stays outside of groups
 * later. GB_INVALID_GRAPH: not JSON, a key is missing or of a wrong type, a value is read before a
 * node makes it or made twice, dims that no memory can hold; the message names the node or value. */
GB_API gb_status gb_bridge_graph_create_from_json(
        gb_bridge_graph **graph, const char *text, size_t length);
/* Reads the graph of a .pt2 archive (torch.export.save), with the contents of parameters, buffers
 * and constants. GB_INVALID_ARGUMENTS: no such file, not such an archive, contents that do not fit
 * their description; GB_UNIMPLEMENTED: the bridge was built without libzip; else as above. */
GB_API gb_status gb_bridge_graph_create_from_pt2(gb_bridge_graph **graph, const char *path);
/* Modules keep what they need of it. */
GB_API gb_status gb_bridge_graph_destroy(gb_bridge_graph *graph);

/* A tensor, or the description of one. */
typedef struct gb_bridge_tensor {
    void *data;
    int32_t dtype; /* a gb_data_type */
    int32_t ndims;
    int64_t dims[GB_MAX_NDIMS];
    int64_t strides[GB_MAX_NDIMS]; /* in elements; of strided tensors */
    uint64_t
            layout_id; /* 0: strided; else an opaque layout, as gb_bridge_group_prepare() gave it */
    uint64_t size;     /* bytes of memory; given by the bridge, not read by it */
} gb_bridge_tensor;

/* What an archive holds for a parameter, buffer or constant of the graph: `tensor->data` is lent as
 * long as the graph lives. GB_INVALID_ARGUMENTS: no such value, or it comes without contents. */
GB_API gb_status gb_bridge_graph_get_constant(
        const gb_bridge_graph *graph, const char *name, gb_bridge_tensor *tensor);

/* A size that may be another: a symbol of torch.export, such as the batch, of which the sizes of
 * values are expressions. */
typedef struct gb_bridge_size {
    const char *name; /* lent by the graph */
    int64_t value;    /* that it was exported with, or was set to; below 0: none is known */
    int64_t min, max; /* what the graph allows; not read by gb_bridge_graph_set_sizes() */
} gb_bridge_size;

/* The sizes of a graph, numbered from 0. */
GB_API size_t gb_bridge_graph_get_size_num(const gb_bridge_graph *graph);
GB_API gb_status gb_bridge_graph_get_size(
        const gb_bridge_graph *graph, size_t index, gb_bridge_size *size);
/* Gives sizes, by their names, other values; all that depends on them follows: modules are then
 * made for these. What follows from them by an expression that the bridge does not know is not known
 * any more, and what needs it stays outside. The graph stays as it was when this fails.
 * GB_INVALID_ARGUMENTS: no such size, or modules were made of the graph before; GB_INVALID_SHAPE: a
 * value that the graph does not allow, or dims that no memory can hold. */
GB_API gb_status gb_bridge_graph_set_sizes(
        gb_bridge_graph *graph, size_t count, const gb_bridge_size *sizes);

/* An input of a graph, with its dims by the sizes as they are. */
typedef struct gb_bridge_input {
    const char *name;
    int32_t is_user; /* 0: a parameter, buffer or constant of the model */
    int32_t dtype;   /* a gb_data_type; GB_UNDEF: one that the library has not, or no tensor */
    int32_t ndims;
    int64_t dims[GB_MAX_NDIMS]; /* below 0: not known */
    /* Of dims that may be others: the name of a size, or an expression of some; NULL: fixed. */
    const char *expressions[GB_MAX_NDIMS];
} gb_bridge_input;

/* The inputs of a graph, numbered from 0 in its order. The tensor of input N has the id N in
 * gb_bridge_module_get_graph(). Texts are lent by the graph. */
GB_API size_t gb_bridge_graph_get_input_num(const gb_bridge_graph *graph);
GB_API gb_status gb_bridge_graph_get_input(
        const gb_bridge_graph *graph, size_t index, gb_bridge_input *input);

/* ---- modules ---- */

/* Set all to 0, then `size`, and what is wanted. */
typedef struct gb_bridge_options {
    size_t size; /* sizeof(gb_bridge_options) */
    /* How partitions are made. 0: GB_POLICY_FUSION, one partition for each pattern;
     * GB_POLICY_MAX: as few and large partitions as there can be, which call the bridge least. */
    gb_policy policy;
    /* Parameters and buffers of the signature do not change between executions and are prepared
     * once, but for those that the graph itself writes to. So are, without this, those whose contents
     * came with an archive. */
    uint8_t constant_parameters;
    /* Keeps groups of a single op, whatever the op; else only those of ops that are worth a call
     * (docs/bridge.md lists them). */
    uint8_t keep_single_ops;
    /* Outputs that only other groups read may have an opaque layout. */
    uint8_t opaque_outputs;
    /* Kernels that a group keeps, each for one set of shapes, strides and types; 0: 64. */
    uint32_t kernels_per_group;
    /* Ops that stay outside although they could be mapped: names such as "aten.relu.default",
     * separated by commas. NULL: none. Copied. */
    const char *disabled_ops;
    gb_fpmath_mode fpmath; /* of products of f32, as gb_graph_set_fpmath_mode() */
} gb_bridge_options;

/* Passes, mapping, partitions, groups. `options` NULL: all 0. Nothing is compiled yet. The
 * environment variable GB_BRIDGE_LOG tells on the standard error what passes do: 0 nothing, 1
 * groups and what stays outside, 2 each pass, 3 each node and op. */
GB_API gb_status gb_bridge_module_create(
        gb_bridge_module **module, const gb_bridge_graph *graph, const gb_bridge_options *options);
GB_API gb_status gb_bridge_module_destroy(gb_bridge_module *module);

/* The description, a JSON text that the module lends:
 *
 *     {"groups": [{"id": 0,
 *                  "nodes": ["conv2d", "relu"],
 *                  "inputs": [{"name": "x", "id": 3, "dtype": "f32", "dims": [..],
 *                              "strides": [..], "constant": false}, ..],
 *                  "outputs": [{"name": "relu", "id": 5, "dtype": "f32", "dims": [..],
 *                               "strides": [..], "opaque": false}, ..],
 *                  "ops": ["Convolution", "ReLU"], "flops": 1.2e6}, ..],
 *      "outside": [{"node": "view", "target": "torch.ops.aten.view.default", "reason": ".."}, ..],
 *      "absorbed": ["t", ..],
 *      "order": [{"node": "view"}, {"group": 0}, ..],
 *      "outputs": ["relu", ..],
 *      "flops": 1.3e6, "group_flops": 1.2e6}
 *
 * Values have the names that the graph gives them, nodes the name of the node or else of its first
 * output. `nodes` are those that a group replaces, in the graph's order; one with several outputs may
 * stand in several groups, each of which makes some of them. `inputs` and `outputs` are in the order
 * in which tensors are given to the functions below; `id` is that of the tensor in
 * gb_bridge_module_get_graph(). `constant`: prepared once, and nothing in the graph writes to it; such
 * an input may be given without memory, with the strides that are told here, when the contents came
 * with an archive. `dims` of the group's outputs are those of the graph, with the hints of sizes that
 * are open; `strides` are those that the framework would have made. `absorbed` are nodes that compute
 * nothing (views, copies) and that only groups would have read: nobody needs them once groups are in
 * place. A view that others read, too, stands in `outside`, with a reason. `order` is one in which all
 * groups and nodes outside can be executed, with writes to memory in the right places. `flops` counts
 * nodes that are mapped or known, `group_flops` those in groups. */
GB_API const char *gb_bridge_module_describe(const gb_bridge_module *module);
GB_API size_t gb_bridge_module_get_group_num(const gb_bridge_module *module);

/* Threads that kernels which are prepared from now on may use, and executions of this module take
 * (OpenMP's of the process); 0: what OpenMP offers, which is the default. */
GB_API gb_status gb_bridge_module_set_threads(gb_bridge_module *module, int threads);

/* The contents of constant inputs have changed: they are prepared anew before the next execution.
 * Must not run while the module executes. */
GB_API gb_status gb_bridge_module_renew_constants(gb_bridge_module *module);

/* ---- kernels ---- */

/* The kernel of a group for inputs of these types, dims and strides (memory is not looked at), and
 * descriptions of its outputs: dtype, dims, strides or layout_id, size. Compiled when these inputs
 * are new, else found. The kernel lives as long as the module. `inputs` and `outputs` are as many
 * as the description lists, in its order; `outputs` may be NULL when n_outputs is 0, `kernel` NULL
 * when it is not wanted. Outputs are strided as the framework would have made them, or opaque
 * where the description says so.
 * GB_INVALID_ARGUMENTS: no such group, other counts, other types than the graph's; GB_INVALID_SHAPE:
 * dims that the graph does not allow; GB_UNIMPLEMENTED: no kernel for these, strides below 0, or the
 * group keeps as many kernels as it may: the framework is to run the group's nodes itself. */
GB_API gb_status gb_bridge_group_prepare(gb_bridge_module *module, size_t group, size_t n_inputs,
        const gb_bridge_tensor *inputs, size_t n_outputs, gb_bridge_tensor *outputs,
        const gb_bridge_kernel **kernel);

/* The input in whose memory an output may be written, where nobody reads the input afterwards;
 * SIZE_MAX: none. An input may be that of several outputs, and is then given to one of them only. */
GB_API size_t gb_bridge_kernel_get_inplace_input(const gb_bridge_kernel *kernel, size_t output);

/* Runs a kernel on memory that lies as it was prepared for; inputs are read and outputs written
 * where they are. Returns when all is done. Outputs overlap neither each other nor inputs, but for
 * the one that gb_bridge_kernel_get_inplace_input() tells.
 * Constants are prepared at the first execution, and again when they lie elsewhere than before.
 * Several threads may run one kernel at once.
 * GB_INVALID_ARGUMENTS: other counts, memory missing. */
GB_API gb_status gb_bridge_kernel_execute(const gb_bridge_kernel *kernel, size_t n_inputs,
        const void *const *inputs, size_t n_outputs, void *const *outputs);
/* What runs, as gb_compiled_partition_get_kernels() tells. Lent. */
GB_API const char *gb_bridge_kernel_get_name(const gb_bridge_kernel *kernel);

/* Both in one: prepares where this is new, and executes. Outputs must have the layouts that
 * gb_bridge_group_prepare() gives. */
GB_API gb_status gb_bridge_group_execute(gb_bridge_module *module, size_t group, size_t n_inputs,
        const gb_bridge_tensor *inputs, size_t n_outputs, const gb_bridge_tensor *outputs);

/* The ops of a group as a graph of the library, for gb_graph_save_json() and graph-bench; of all
 * groups, with the views between them: group SIZE_MAX. Names of ops are those of the nodes they come from. Contents
 * of constants that are known are in the graph. The caller destroys it. */
GB_API gb_status gb_bridge_module_get_graph(
        const gb_bridge_module *module, size_t group, gb_graph **graph);
/* The value of the framework that a tensor of these graphs has the contents of; several may have
 * those of one. NULL: none. Lent. */
GB_API const char *gb_bridge_module_get_value_name(const gb_bridge_module *module, size_t id);

#ifdef __cplusplus
}
#endif

#endif
