/* Ops that only move elements, and how passes add them. */
#include "base/status.h"
#include "fusion/passes/passes.h"

#include <string.h>

bool gb_is_movement(const gb_op *op)
{
    bool moves = op->kind == GB_OP_STATIC_TRANSPOSE || op->kind == GB_OP_STATIC_RESHAPE ||
                 op->kind == GB_OP_REORDER;
    return moves && gb_op_input(op, 0)->layout_type == GB_LAYOUT_STRIDED &&
           gb_op_output(op, 0)->layout_type == GB_LAYOUT_STRIDED;
}

static gb_status fill_movement(gb_graph *graph, gb_op *op, uint32_t value,
        const gb_logical_tensor *dims, const int64_t *list)
{
    gb_op_attr attr = op->kind == GB_OP_STATIC_RESHAPE ? GB_ATTR_SHAPE : GB_ATTR_ORDER;
    gb_logical_tensor out = graph->values[value].tensor;
    out.id = op->id;
    gb_set_dense_dims(&out, dims);
    GB_TRY(gb_op_set_attr_s64(op, attr, (size_t)dims->ndims, list));
    GB_TRY(gb_op_add_input(op, &graph->values[value].tensor));
    return gb_op_add_output(op, &out);
}

static gb_status movement_add(gb_graph *graph, gb_op_kind kind, uint32_t value,
        const gb_logical_tensor *dims, const int64_t *list, uint32_t *moved)
{
    gb_op *op;
    size_t id = gb_graph_new_id(graph);
    GB_TRY(gb_op_create(&op, id, kind, ""));
    gb_status status = fill_movement(graph, op, value, dims, list);
    if (status != GB_SUCCESS) {
        gb_op_free(op);
        return status;
    }
    GB_TRY(gb_graph_take_op(graph, op)); /* frees it on failure */
    *moved = gb_graph_find_value(graph, id);
    return GB_SUCCESS;
}

gb_status gb_add_reshape(
        gb_graph *graph, uint32_t value, const gb_logical_tensor *dims, uint32_t *moved)
{
    return movement_add(graph, GB_OP_STATIC_RESHAPE, value, dims, dims->dims, moved);
}

gb_status gb_add_transpose(gb_graph *graph, uint32_t value, const int64_t *order, uint32_t *moved)
{
    gb_logical_tensor transposed = graph->values[value].tensor;
    for (int d = 0; d < transposed.ndims; d++)
        transposed.dims[d] = graph->values[value].tensor.dims[order[d]];
    return movement_add(graph, GB_OP_STATIC_TRANSPOSE, value, &transposed, order, moved);
}

void gb_set_dense_dims(gb_logical_tensor *tensor, const gb_logical_tensor *dims)
{
    tensor->ndims = dims->ndims;
    memcpy(tensor->dims, dims->dims, sizeof tensor->dims);
    gb_dense_strides(tensor->ndims, tensor->dims, tensor->strides);
}

bool gb_transpose_order(const gb_op *transpose, int64_t *order)
{
    const int64_t *list;
    int ndims = gb_op_output(transpose, 0)->ndims;
    size_t n = gb_op_attr_s64s(transpose, GB_ATTR_ORDER, &list);
    for (int d = 0; d < ndims; d++) {
        order[d] = ndims - 1 - d; /* an empty list turns all dims around */
        if (n)
            order[d] = (size_t)d < n ? gb_normalize_axis(list[d], ndims) : -1;
        if (order[d] < 0)
            return false;
    }
    return true;
}
