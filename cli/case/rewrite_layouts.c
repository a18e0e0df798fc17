/* Layouts of the produced tensors after their shapes were inferred anew. */
#include "cli/case/rewrite.h"

#include "cli/options/message.h"

#include <graphbench/graphbench_tools.h>
#include <stdlib.h>
#include <string.h>

static bool has_strides(const gb_logical_tensor *tensor)
{
    for (int i = 0; i < tensor->ndims; i++)
        if (tensor->strides[i] == GB_UNKNOWN_DIM)
            return false;
    return gb_cli_has_known_dims(tensor);
}

/* The file's order of axes with the new dims. */
static gb_status keep_layout(gb_logical_tensor *tensor, const gb_logical_tensor *original)
{
    int order[GB_MAX_NDIMS];
    gb_cli_set_dense(tensor, NULL);
    if (original->layout_type == GB_LAYOUT_OPAQUE && original->ndims == tensor->ndims)
        LIB_TRY(gb_logical_tensor_set_layout(tensor, gb_logical_tensor_get_layout(original)));
    if (original->layout_type == GB_LAYOUT_OPAQUE)
        return GB_SUCCESS;
    if (!has_strides(original))
        return GB_SUCCESS;
    if (gb_cli_same_dims(tensor, original)) {
        memcpy(tensor->strides, original->strides, sizeof(tensor->strides));
        return GB_SUCCESS;
    }
    if (!gb_cli_axis_order(original, order))
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "tensor %zu has gaps in the file; its strides for a new shape are not defined",
                tensor->id);
    if (original->ndims == tensor->ndims)
        gb_cli_set_dense(tensor, order);
    return GB_SUCCESS;
}

/* Results that do not follow the order of axes of the first input. */
static bool is_independent(gb_op_kind kind, size_t output, const gb_logical_tensor *tensor)
{
    return kind == GB_OP_REORDER || kind == GB_OP_STATIC_RESHAPE ||
           kind == GB_OP_STATIC_TRANSPOSE || (output > 0 && tensor->ndims == 1);
}

static gb_status inherit_layout(const gb_rewrite *rewrite, const gb_op *op, gb_op_kind kind,
        size_t output, gb_logical_tensor *tensor)
{
    int order[GB_MAX_NDIMS];
    gb_logical_tensor source;
    if (kind == GB_OP_SOFTMAX && output > 0)
        return keep_layout(tensor, gb_cli_original(rewrite, tensor->id));
    gb_cli_set_dense(tensor, NULL);
    if (is_independent(kind, output, tensor) || gb_op_get_input_num(op) == 0)
        return GB_SUCCESS;
    LIB_TRY(gb_op_get_input(op, 0, &source));
    if (source.ndims == tensor->ndims && gb_cli_axis_order(&source, order))
        gb_cli_set_dense(tensor, order);
    return GB_SUCCESS;
}

static gb_status set_layout(
        const gb_rewrite *rewrite, const gb_op *op, gb_op_kind kind, size_t output)
{
    gb_logical_tensor tensor;
    LIB_TRY(gb_op_get_output(op, output, &tensor));
    bool settled = tensor.layout_type == GB_LAYOUT_ANY || kind == GB_OP_WILDCARD;
    if (settled || !gb_cli_has_known_dims(&tensor)) /* open: behind a Wildcard */
        return GB_SUCCESS;
    const gb_logical_tensor *original = gb_cli_original(rewrite, tensor.id);
    const gb_override *override =
            gb_cli_find_override(rewrite->test->choice[AXIS_IN_SHAPES], tensor.id);
    if (override)
        CLI_TRY(gb_cli_apply_layout(&tensor, &override->value.shape));
    else if (rewrite->layout_changed)
        CLI_TRY(inherit_layout(rewrite, op, kind, output, &tensor));
    else
        CLI_TRY(keep_layout(&tensor, original));
    LIB_TRY(gb_graph_set_tensor(rewrite->graph, &tensor));
    return GB_SUCCESS;
}

/* Inference has put the ops in topological order, so inputs are settled before outputs. */
gb_status gb_cli_rewrite_layouts(const gb_rewrite *rewrite)
{
    size_t count = gb_graph_get_op_num(rewrite->graph);
    for (size_t i = 0; i < count; i++) {
        const gb_op *op;
        gb_op_kind kind;
        LIB_TRY(gb_graph_get_op(rewrite->graph, i, &op));
        LIB_TRY(gb_op_get_kind(op, &kind));
        for (size_t output = 0; output < gb_op_get_output_num(op); output++)
            CLI_TRY(set_layout(rewrite, op, kind, output));
    }
    return GB_SUCCESS;
}
