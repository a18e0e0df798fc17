/* The steps of rewriting a loaded graph by the overrides of its case. */
#ifndef GB_CLI_CASE_REWRITE_H
#define GB_CLI_CASE_REWRITE_H

#include "cli/case/case.h"

typedef struct gb_rewrite {
    const gb_case *test;
    gb_graph *graph;
    /* The tensors as the file describes them, sorted by id. Owned. */
    gb_logical_tensor *originals;
    size_t n_originals;
    /* An input got another order of axes in memory: results follow their first input instead of the
     * file. */
    bool layout_changed;
} gb_rewrite;

void gb_cli_rewrite_init(gb_rewrite *rewrite, const gb_case *test);
void gb_cli_rewrite_free(gb_rewrite *rewrite);
/* NULL when the file has no such tensor. */
const gb_logical_tensor *gb_cli_original(const gb_rewrite *rewrite, size_t id);

/* --in-shapes and --mb on graph inputs; every produced tensor becomes unknown, but for dims that
 * --in-shapes gives. */
gb_status gb_cli_rewrite_shapes(gb_rewrite *rewrite);
/* --op-attrs. */
gb_status gb_cli_rewrite_attrs(const gb_rewrite *rewrite);
/* --op-kind, removal of ops included. */
gb_status gb_cli_rewrite_kinds(const gb_rewrite *rewrite);
/* Infers all shapes. Scales, zero points and groups of quantising ops are fitted to the shapes on
 * the way. */
gb_status gb_cli_rewrite_infer(const gb_rewrite *rewrite);
/* Layouts of the produced tensors; --in-shapes on outputs of the graph. */
gb_status gb_cli_rewrite_layouts(const gb_rewrite *rewrite);
/* Both forms of --dt, then --tensor-property. */
gb_status gb_cli_rewrite_types(const gb_rewrite *rewrite);

/* Fits the parameters of the quantising ops whose shapes are known; *changed tells whether any op
 * was altered. */
gb_status gb_cli_fit_quantization(const gb_rewrite *rewrite, bool *changed);

/* The tensors that carry the minibatch in dim 0, asked for by --mb. */
typedef struct gb_minibatch {
    size_t count;
    size_t *ids; /* owned; graph inputs */
} gb_minibatch;
gb_status gb_cli_find_minibatch(const gb_graph *graph, gb_minibatch *minibatch);

/* The axes of a strided tensor from the outermost in memory to the innermost; false when it has
 * gaps, blocks or unknown strides. */
bool gb_cli_axis_order(const gb_logical_tensor *tensor, int order[GB_MAX_NDIMS]);
/* Gives the tensor dense strides in this order, or row-major ones (NULL), and the strided layout.
 */
void gb_cli_set_dense(gb_logical_tensor *tensor, const int *order);
/* Applies the layout part of an --in-shapes override (none: row-major). */
gb_status gb_cli_apply_layout(gb_logical_tensor *tensor, const gb_shape_override *shape);
bool gb_cli_has_known_dims(const gb_logical_tensor *tensor);
/* Is the tensor given, not made: an input of the graph, or what a Wildcard makes? */
gb_status gb_cli_is_given(const gb_graph *graph, size_t id, bool *given);
bool gb_cli_same_dims(const gb_logical_tensor *a, const gb_logical_tensor *b);

#endif
