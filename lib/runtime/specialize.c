/* What an application asks of a compiled partition for shapes of its own: the compiled partition
 * for them, executing it, and the shapes of outputs. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/format.h"
#include "graph/ops/op_rules.h"
#include "runtime/compiled.h"
#include "runtime/dynamic.h"

#include <stdlib.h>

gb_status gb_execute_specialized(
        const gb_compiled_partition *compiled, const gb_execute_arguments *arguments)
{
    enum { FEW = 64 };
    const gb_logical_tensor *few[FEW] = {NULL};
    uint32_t n_inputs = compiled->n_inputs, n = n_inputs + compiled->n_outputs;
    const gb_logical_tensor **given = n <= FEW ? few : gb_calloc(n, sizeof *given);
    if (!given)
        return GB_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        const gb_tensor *tensor =
                i < n_inputs ? arguments->inputs[i] : arguments->outputs[i - n_inputs];
        bool open = tensor && tensor->deferred && i >= n_inputs;
        given[i] = !tensor ? NULL : open ? &tensor->open : &tensor->description;
    }
    gb_compiled_partition *specialized;
    gb_status status = gb_dynamic_get(compiled->dynamic, given, given + n_inputs, &specialized);
    if (given != few)
        free(given);
    GB_TRY(status);
    status = gb_execute(specialized, arguments);
    gb_compiled_partition_destroy(specialized);
    return status;
}

gb_status gb_check_specialized(const gb_compiled_partition *compiled, const char *what)
{
    if (!compiled->dynamic)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS,
            "the %s of a compiled partition with unknown dims depends on them: ask "
            "gb_compiled_partition_specialize()",
            what);
}

/* Puts the given descriptions into the order of the compiled ones, NULL where there is no port. */
static gb_status order(const gb_logical_tensor *compiled, uint32_t n_compiled,
        const gb_logical_tensor *const *given, size_t n_given, bool is_input,
        const gb_logical_tensor **ordered)
{
    const char *side = is_input ? "input" : "output";
    for (uint32_t i = 0; i < n_compiled; i++) {
        ordered[i] = NULL;
        if (compiled[i].id == GB_NO_ID)
            continue;
        ordered[i] = gb_find_tensor(n_given, given, compiled[i].id);
        if (!ordered[i] && is_input)
            return gb_fail(GB_INVALID_ARGUMENTS, "%s tensor %zu is missing", side, compiled[i].id);
        if (!ordered[i])
            ordered[i] = &compiled[i];
        GB_TRY(gb_logical_tensor_check(ordered[i]));
        GB_TRY(gb_check_given(ordered[i], &compiled[i], !is_input, side, i));
    }
    return GB_SUCCESS;
}

/* The caller frees *ordered: inputs, then outputs. */
static gb_status order_all(const gb_compiled_partition *compiled, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t n_outputs,
        const gb_logical_tensor *const *outputs, const gb_logical_tensor ***ordered)
{
    size_t n = (size_t)compiled->n_inputs + compiled->n_outputs;
    const gb_logical_tensor **list = gb_calloc(n, sizeof *list);
    if (!list)
        return GB_OUT_OF_MEMORY;
    *ordered = list;
    GB_TRY(order(compiled->inputs, compiled->n_inputs, inputs, n_inputs, true, list));
    return order(compiled->outputs, compiled->n_outputs, outputs, n_outputs, false,
            list + compiled->n_inputs);
}

gb_status gb_compiled_partition_specialize(const gb_compiled_partition *compiled,
        gb_compiled_partition **specialized, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t n_outputs,
        const gb_logical_tensor *const *outputs)
{
    if (!compiled || !specialized || (n_inputs && !inputs) || (n_outputs && !outputs))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_compiled_partition_specialize: NULL argument");
    const gb_logical_tensor **ordered = NULL;
    gb_status status = order_all(compiled, n_inputs, inputs, n_outputs, outputs, &ordered);
    if (status == GB_SUCCESS && compiled->dynamic)
        status = gb_dynamic_get(
                compiled->dynamic, ordered, ordered + compiled->n_inputs, specialized);
    else if (status == GB_SUCCESS)
        *specialized = gb_compiled_partition_retain(compiled);
    free(ordered);
    return status;
}

/* Shapes --------------------------------------------------------------------------------------- */

static void copy_shape(gb_logical_tensor *to, const gb_logical_tensor *from)
{
    to->ndims = from->ndims;
    for (int d = 0; d < GB_MAX_NDIMS; d++) {
        to->dims[d] = from->dims[d];
        if (to->layout_type == GB_LAYOUT_STRIDED && from->layout_type == GB_LAYOUT_STRIDED)
            to->strides[d] = from->strides[d];
    }
    gb_logical_tensor_normalize(to);
}

/* The tensors that the list has get its shapes. */
static gb_status take_shapes(
        gb_graph *graph, size_t n, const gb_logical_tensor *const *tensors, const char *side)
{
    for (size_t i = 0; i < n; i++) {
        if (!tensors[i])
            return gb_fail(GB_INVALID_ARGUMENTS, "infer_shape: %s %zu is NULL", side, i);
        GB_TRY(gb_logical_tensor_check(tensors[i]));
        uint32_t value = gb_graph_find_value(graph, tensors[i]->id);
        if (value != GB_NONE)
            copy_shape(&graph->values[value].tensor, tensors[i]);
    }
    return GB_SUCCESS;
}

static gb_status infer(const gb_partition *partition, gb_graph *graph, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t n_outputs, gb_logical_tensor *const *outputs)
{
    gb_forget_shapes(partition, graph, n_inputs, inputs);
    GB_TRY(take_shapes(graph, n_inputs, inputs, "input"));
    GB_TRY(take_shapes(graph, n_outputs, (const gb_logical_tensor *const *)outputs, "output"));
    for (uint32_t i = 0; i < partition->n_inputs; i++)
        if (!gb_find_tensor(n_inputs, inputs, partition->inputs[i]))
            return gb_fail(GB_INVALID_ARGUMENTS, "infer_shape: input tensor %zu is missing",
                    partition->inputs[i]);
    GB_TRY(gb_graph_infer(graph));
    for (size_t i = 0; i < n_outputs; i++)
        if (gb_graph_find_value(graph, outputs[i]->id) == GB_NONE)
            return gb_fail(GB_INVALID_ARGUMENTS, "infer_shape: the partition has no tensor %zu",
                    outputs[i]->id);
    for (size_t i = 0; i < n_outputs; i++)
        copy_shape(outputs[i], &graph->values[gb_graph_find_value(graph, outputs[i]->id)].tensor);
    return GB_SUCCESS;
}

gb_status gb_fill_in_dense(const gb_partition *partition, gb_graph *graph, size_t n_inputs,
        const gb_logical_tensor *const *inputs)
{
    gb_forget_shapes(partition, graph, n_inputs, inputs);
    GB_TRY(take_shapes(graph, n_inputs, inputs, "input"));
    for (uint32_t i = 0; i < partition->n_inputs; i++) {
        gb_logical_tensor *tensor =
                &graph->values[gb_graph_find_value(graph, partition->inputs[i])].tensor;
        if (!gb_dims_known(tensor))
            return gb_fail(GB_INVALID_ARGUMENTS,
                    "preferred layout: dims of input tensor %zu are "
                    "missing",
                    partition->inputs[i]);
        gb_dense_strides(tensor->ndims, tensor->dims, tensor->strides);
    }
    return gb_graph_infer(graph);
}

static gb_status prefer(const gb_partition *partition, gb_graph *graph, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t tensor_id, gb_logical_tensor *preferred)
{
    const gb_logical_tensor *given = gb_find_tensor(n_inputs, inputs, tensor_id);
    uint32_t value = gb_graph_find_value(graph, tensor_id);
    if (!given || value == GB_NONE || graph->values[value].producer != GB_NONE)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "preferred layout: the partition has no input tensor %zu, or it is not given",
                tensor_id);
    GB_TRY(gb_fill_in_dense(partition, graph, n_inputs, inputs));
    /* What is constant is packed once anyway, which whoever asks wants to do himself. */
    graph->values[value].tensor.property = GB_PROPERTY_VARIABLE;
    size_t layout;
    GB_TRY(gb_preferred_input_layout(graph, partition->backend->capability(0), value, &layout));
    gb_logical_tensor made = *given;
    if (layout) {
        gb_format_apply(gb_format_find(layout), &made);
    } else {
        made.layout_type = GB_LAYOUT_STRIDED;
        made.layout_id = 0;
        gb_dense_strides(made.ndims, made.dims, made.strides);
    }
    *preferred = made;
    return GB_SUCCESS;
}

gb_status gb_partition_query_preferred_layout(const gb_partition *partition, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t tensor_id, gb_logical_tensor *preferred)
{
    if (!partition || !preferred || (n_inputs && !inputs))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_partition_query_preferred_layout: NULL argument");
    if (partition->unsupported)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s is not supported: %s",
                gb_op_label(partition->graph->ops[0]), partition->unsupported);
    gb_graph *graph;
    GB_TRY(gb_graph_clone(partition->graph, NULL, 0, &graph));
    gb_status status = prefer(partition, graph, n_inputs, inputs, tensor_id, preferred);
    gb_graph_destroy(graph);
    return status;
}

gb_status gb_compiled_partition_query_preferred_layout(
        const gb_compiled_partition *compiled, size_t tensor_id, gb_logical_tensor *preferred)
{
    if (!compiled || !preferred)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "gb_compiled_partition_query_preferred_layout: NULL argument");
    GB_TRY(gb_check_specialized(compiled, "preferred layout"));
    const gb_logical_tensor **inputs = gb_calloc(compiled->n_inputs, sizeof *inputs);
    if (!inputs)
        return GB_OUT_OF_MEMORY;
    size_t n = 0;
    for (uint32_t i = 0; i < compiled->n_inputs; i++)
        if (compiled->inputs[i].id != GB_NO_ID)
            inputs[n++] = &compiled->inputs[i];
    gb_status status = gb_partition_query_preferred_layout(
            compiled->partition, n, inputs, tensor_id, preferred);
    free(inputs);
    return status;
}

gb_status gb_partition_infer_shape(const gb_partition *partition, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t n_outputs, gb_logical_tensor *const *outputs)
{
    if (!partition || (n_inputs && !inputs) || (n_outputs && !outputs))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_partition_infer_shape: NULL argument");
    gb_graph *graph;
    GB_TRY(gb_graph_clone(partition->graph, NULL, 0, &graph));
    gb_status status = infer(partition, graph, n_inputs, inputs, n_outputs, outputs);
    gb_graph_destroy(graph);
    return status;
}

/* What the outputs were compiled as. */
static gb_status read_shapes(
        const gb_compiled_partition *compiled, size_t n, gb_logical_tensor *const *outputs)
{
    gb_logical_tensor found;
    for (size_t i = 0; i < n; i++)
        GB_TRY(gb_compiled_partition_query_logical_tensor(compiled, outputs[i]->id, &found));
    for (size_t i = 0; i < n; i++) {
        GB_TRY(gb_compiled_partition_query_logical_tensor(compiled, outputs[i]->id, &found));
        copy_shape(outputs[i], &found);
    }
    return GB_SUCCESS;
}

gb_status gb_compiled_partition_infer_shape(const gb_compiled_partition *compiled, size_t n_inputs,
        const gb_logical_tensor *const *inputs, size_t n_outputs, gb_logical_tensor *const *outputs)
{
    if (!compiled || (n_inputs && !inputs) || (n_outputs && !outputs))
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_compiled_partition_infer_shape: NULL argument");
    for (size_t i = 0; i < n_outputs; i++)
        if (!outputs[i])
            return gb_fail(GB_INVALID_ARGUMENTS, "infer_shape: output %zu is NULL", i);
    const gb_logical_tensor **ordered = NULL;
    gb_status status = order_all(compiled, n_inputs, inputs, n_outputs,
            (const gb_logical_tensor *const *)outputs, &ordered);
    free(ordered);
    GB_TRY(status);
    return compiled->dynamic ? gb_partition_infer_shape(gb_dynamic_partition(compiled->dynamic),
                                       n_inputs, inputs, n_outputs, outputs)
                             : read_shapes(compiled, n_outputs, outputs);
}
