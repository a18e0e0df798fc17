/* Tools around the library: what programs that test, tune or rewrite graphs want, and programs that
 * run them do not. Part of libgraphbench, with the conventions of graphbench.h, but free to change
 * between versions. */
#ifndef GRAPHBENCH_GRAPHBENCH_TOOLS_H
#define GRAPHBENCH_GRAPHBENCH_TOOLS_H

#include <graphbench/graphbench.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rewriting graphs ---- */

/* Until the graph is finalized (then GB_INVALID_GRAPH). */
/* Replaces the description of tensor->id wherever it occurs. */
GB_API gb_status gb_graph_set_tensor(gb_graph *graph, const gb_logical_tensor *tensor);
/* Gives an op another kind; attributes are kept, those the new kind does not know are dropped. */
GB_API gb_status gb_graph_set_op_kind(gb_graph *graph, size_t op_id, gb_op_kind kind);
/* Removes a one-output op; consumers of its output read its input number `input` instead. Tensors
 * that no op mentions any more go, too, but for inputs and constants that were declared. */
GB_API gb_status gb_graph_bypass_op(gb_graph *graph, size_t op_id, size_t input);
/* An op by the name of its kind, which stands alone, for gb_graph_add_op() and the functions below:
 * it reads tensors of the graph and makes new ones of unknown rank. Op and tensors get ids that are
 * free as yet. `types` of the outputs may be NULL, or GB_UNDEF in places: they then follow from the
 * inputs and the op's schema. Attributes are the caller's to set, and the op is the caller's.
 * GB_INVALID_ARGUMENTS: no such kind or tensor, or a type that does not follow. */
GB_API gb_status gb_graph_make_op(gb_op **op, const gb_graph *graph, const char *kind,
        size_t n_inputs, const size_t *input_ids, size_t n_outputs, const gb_data_type *types);
/* Edits. Each makes the graph one whose ops can be connected, in topological order, or leaves it as
 * it is; ops that are lent stay valid, but for one that goes. Besides their own failures:
 * GB_INVALID_GRAPH, what gb_graph_finalize() would find; GB_INVALID_GRAPH_OP, a new op that
 * gb_graph_add_op() would refuse. */
/* Takes an op out. Tensors that it made and others read become inputs of the graph. */
GB_API gb_status gb_graph_remove_op(gb_graph *graph, size_t op_id);
/* Puts a copy of `op` in the place of another one. GB_INVALID_GRAPH: it does not make a tensor that
 * the other made and somebody reads. */
GB_API gb_status gb_graph_replace_op(gb_graph *graph, size_t op_id, const gb_op *op);
/* Puts a copy of `op` between a tensor and the op that reads it (GB_NO_ID: all that read it), which
 * then read the new op's first output in its place. GB_INVALID_ARGUMENTS: `op` does not read the
 * tensor or has no output, nobody is there to read it. */
GB_API gb_status gb_graph_insert_op(
        gb_graph *graph, size_t tensor_id, size_t consumer_id, const gb_op *op);

/* ---- passes ---- */

/* What is done around the passes that a partition's graph goes through when it is compiled. */
typedef enum gb_pass_mode {
    GB_PASS_NONE = 0,
    GB_PASS_PRINT = 1,  /* the graph in the text form on the standard error, after each pass */
    GB_PASS_CHECK = 2,  /* a pass that breaks the graph fails the compilation (GB_RUNTIME_ERROR) */
    GB_PASS_PROGRAM = 4 /* what the graph was lowered to, as text on the standard error */
} gb_pass_mode;
/* A sum of gb_pass_mode, in place of what the environment variable GB_PASSES says (a list of
 * "print", "check", "program"); builds for debugging always check. From any thread.
 * GB_INVALID_ARGUMENTS: another bit. */
GB_API gb_status gb_set_pass_mode(unsigned mode);
/* Partitions that are compiled from now on go through all passes but the one of this name; NULL:
 * through all. Compiled partitions that are in a cache stay as they are. From any thread.
 * GB_INVALID_ARGUMENTS: no such pass, or one that nothing compiles without. */
GB_API gb_status gb_set_left_out_pass(const char *name);
/* Plans are made for a machine with these caches, "L1:L2:L3" in bytes as in the environment
 * variable GB_CACHES; NULL: for the machine at hand. With small caches small tensors need several
 * blocks. Not while another thread compiles or executes. GB_INVALID_ARGUMENTS: another text. */
GB_API gb_status gb_set_caches(const char *caches);
/* How the products of two bf16 are computed, sums being f32 in any case. */
typedef enum gb_bf16_products {
    GB_BF16_PRODUCTS_AUTO = 0, /* the faster way on this processor */
    GB_BF16_PRODUCTS_DOT, /* by instructions for products of bf16, such as vdpbf16ps and tiles of AMX */
    GB_BF16_PRODUCTS_F32 /* by multiply-adds of f32 */
} gb_bf16_products;
/* Plans for CPUs are made so from now on, even where the other way is faster, so that both can be tested. Not while
 * another thread compiles or executes. GB_UNIMPLEMENTED: the processor has no such instructions, or the
 * instruction sets in use leave them out. GB_INVALID_ARGUMENTS: another value. */
GB_API gb_status gb_set_bf16_products(gb_bf16_products products);
/* Partitions that are compiled from now on check the library's own memory when they run on CPUs: scratch
 * and temporaries hold NaN until they are written, and a kernel that wrote behind a part of them fails the
 * execution (GB_RUNTIME_ERROR, and the kernel's name in the message). Takes time, and results stay the
 * same. In place of what the environment variable GB_CHECK_MEMORY says ("on", "off"). From any thread. */
GB_API void gb_set_memory_checks(int on);
/* Bytes of L1 (data), L2 and L3 that the first core reaches, as the system tells, whatever
 * gb_set_caches() or GB_CACHES put in their place; 0: none, or not told. From any thread. */
GB_API void gb_get_caches(size_t bytes[3]);

/* ---- the op set ---- */

/* The op table as a Markdown document (docs/ops.md), written to `path` ("-": standard output). */
GB_API gb_status gb_op_table_write(const char *path);

/* What an op does to its values: a sum of these. */
typedef enum gb_op_trait {
    GB_TRAIT_UNARY = 1,      /* works on each element of one tensor, or is the gradient of such */
    GB_TRAIT_BINARY = 2,     /* works on each element of several tensors, and is no gradient */
    GB_TRAIT_BROADCASTS = 4, /* repeats inputs to the dims of the others, as numpy does */
    GB_TRAIT_CHAINS = 8,     /* unary or binary, and fused with most ops in front of it */
    GB_TRAIT_PASSES_VALUES = 16, /* gives its input on, up to rounding: moves or converts it */
    GB_TRAIT_BACKWARD = 32       /* is a gradient */
} gb_op_trait;
/* 0 for no kind of the op set. */
GB_API unsigned gb_op_kind_get_traits(gb_op_kind kind);

/* Values that an input is meant for, for who makes up data. */
typedef enum gb_value_range {
    GB_RANGE_ANY = 0,
    GB_RANGE_WEIGHTS,     /* likewise, so small that sums of products stay of size 1 */
    GB_RANGE_POSITIVE,    /* away from 0 */
    GB_RANGE_DIVISOR,     /* either sign, away from 0 */
    GB_RANGE_FACTOR,      /* near 1: long products are made of it */
    GB_RANGE_PROBABILITY, /* 0 to 1 */
    GB_RANGE_SCALE,       /* of a quantisation */
    GB_RANGE_ZERO_POINT,
    GB_RANGE_SEED,
    GB_RANGE_OFFSET,
    GB_RANGE_AXES /* of a reduction */
} gb_value_range;
/* GB_RANGE_ANY for no kind of the op set, and no input of it. */
GB_API gb_value_range gb_op_kind_get_input_range(gb_op_kind kind, size_t input);
/* The words that an attribute of the kind may be, with NULL behind the last; NULL: it is no string,
 * may be any, or is none of the kind. They live as long as the program. */
GB_API const char *const *gb_op_kind_get_attr_words(gb_op_kind kind, gb_op_attr attr);

/* Sample ops, for tests and tables: every kind but Wildcard and End in each of its forms (with and
 * without optional tensors, main modes), and each form in every combination of data types that the
 * schema allows. Small, complete but for dims that follow; the op's name tells the form. The axes
 * tensor of a reduction is to hold -1, -2, ...; other shapes in tensors are not read. The op is the
 * caller's. GB_INVALID_ARGUMENTS: index out of range. */
GB_API size_t gb_op_sample_num(gb_op_kind kind);
GB_API gb_status gb_op_sample_create(gb_op **op, gb_op_kind kind, size_t index);

#ifdef __cplusplus
}
#endif

#endif
