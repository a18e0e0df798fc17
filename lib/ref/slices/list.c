/* Lists of ops: which tensors pass, and the memory they take. */
#include "ref/slices/list.h"

#include "base/memory.h"
#include "base/status.h"
#include <math.h>
#include <stdlib.h>

gb_status gb_ref_list_ops(const gb_ref_list *list, bool *listed)
{
    for (size_t i = 0; i < list->n_ops; i++) {
        uint32_t index = gb_graph_find_op_index(list->graph, list->op_ids[i]);
        if (index == GB_NONE)
            return gb_fail(GB_INVALID_ARGUMENTS, "the graph has no op %zu", list->op_ids[i]);
        listed[index] = true;
    }
    return GB_SUCCESS;
}

static bool is_evaluated(const gb_ref_list *list, uint32_t op)
{
    return !list->marks || list->marks[op] == list->marked;
}

const gb_op *gb_ref_list_op(const gb_ref_list *list, size_t i)
{
    uint32_t index = gb_graph_find_op_index(list->graph, list->op_ids[i]);
    return is_evaluated(list, index) ? list->graph->ops[index] : NULL;
}

uint32_t gb_ref_count_uses(const gb_graph *graph, const bool *listed, uint32_t value)
{
    const gb_value *made = &graph->values[value];
    if (made->n_uses == 0 || made->producer == GB_NONE || !listed[made->producer])
        return GB_NONE;
    for (uint32_t i = 0; i < made->n_uses; i++) {
        uint32_t reader = made->uses[i].op;
        if (!listed[reader] || graph->ops[reader]->kind == GB_OP_END)
            return GB_NONE;
    }
    return made->n_uses;
}

gb_status gb_ref_list_uses(const gb_ref_list *list, bool **listed, uint32_t **uses)
{
    const gb_graph *graph = list->graph;
    *listed = gb_calloc(graph->n_ops, sizeof **listed);
    *uses = gb_calloc(graph->n_values, sizeof **uses);
    if (!*listed || !*uses)
        return GB_OUT_OF_MEMORY;
    GB_TRY(gb_ref_list_ops(list, *listed));
    for (uint32_t v = 0; v < graph->n_values; v++) {
        uint32_t producer = graph->values[v].producer;
        bool made = producer != GB_NONE && is_evaluated(list, producer);
        (*uses)[v] = made ? gb_ref_count_uses(graph, *listed, v) : GB_NONE;
    }
    return GB_SUCCESS;
}

bool gb_ref_count(const gb_logical_tensor *tensor, int64_t *count)
{
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] < 0)
            return false;
    }
    return tensor->ndims >= 0 && gb_dims_count(tensor->ndims, tensor->dims, count);
}

double gb_ref_bytes(const gb_logical_tensor *tensor)
{
    int64_t count;
    return gb_ref_count(tensor, &count) ? 2 * sizeof(double) * (double)count : 0;
}

/* Products take a third array beside value and bound of each operand. */
static double operand_bytes(const gb_op *op)
{
    gb_op_class class = gb_op_schema_get(op->kind)->op_class;
    double bytes = 0;
    for (uint32_t k = 0; k < op->n_inputs; k++)
        bytes += gb_ref_bytes(gb_op_input(op, k)) / 2;
    return class == GB_CLASS_MATMUL || class == GB_CLASS_CONVOLUTION ? bytes : 0;
}

/* `uses` are counted down. */
static gb_ref_use list_measure(const gb_ref_list *list, uint32_t *uses)
{
    const gb_value *values = list->graph->values;
    gb_ref_use use = {0, 0};
    double largest = 0; /* its arrays are kept for others */
    for (size_t i = 0; i < list->n_ops; i++) {
        const gb_op *op = gb_ref_list_op(list, i);
        if (!op)
            continue;
        for (uint32_t k = 0; k < op->n_outputs; k++) {
            uint32_t value = op->outputs[k];
            double made = uses[value] == GB_NONE ? 0 : gb_ref_bytes(&values[value].tensor);
            use.left += made;
            largest = fmax(largest, made);
        }
        use.most = fmax(use.most, use.left + largest + operand_bytes(op));
        for (uint32_t k = 0; k < op->n_inputs; k++) {
            uint32_t value = op->inputs[k];
            if (uses[value] != GB_NONE && --uses[value] == 0)
                use.left -= gb_ref_bytes(&values[value].tensor);
        }
    }
    return use;
}

gb_status gb_ref_list_measure(const gb_ref_list *list, gb_ref_use *use)
{
    bool *listed;
    uint32_t *uses;
    gb_status status = gb_ref_list_uses(list, &listed, &uses);
    if (status == GB_SUCCESS)
        *use = list_measure(list, uses);
    free(listed);
    free(uses);
    return status;
}

gb_status gb_ref_get_memory(
        const gb_graph *graph, size_t n_ops, const size_t *op_ids, double *bytes)
{
    if (!graph || !bytes || (n_ops > 0 && !op_ids))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_ref_get_memory: NULL argument");
    gb_ref_use use;
    GB_TRY(gb_ref_list_measure(&(gb_ref_list){graph, n_ops, op_ids, NULL, false}, &use));
    *bytes = use.most;
    return GB_SUCCESS;
}
