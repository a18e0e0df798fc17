/* Shape inference: running the rule of an op, comparing with what is known and writing back; and
 * what rules share. */
#include "base/memory.h"
#include "graph/ops/op_rules.h"
#include <stdlib.h>
#include <string.h>

/* Element counts beyond this are refused, so that byte counts of any type fit. */
#define MAX_COUNT (INT64_C(1) << 62)

const char *gb_input_name(const gb_op *op, uint32_t i)
{
    const gb_op_schema *schema = gb_op_schema_get(op->kind);
    if (!schema || schema->n_inputs == 0)
        return "input";
    return schema->inputs[i < schema->n_inputs ? i : schema->n_inputs - 1].name;
}

gb_status gb_same_dims(const gb_op *op, uint32_t a, uint32_t b)
{
    const gb_logical_tensor *first = gb_op_input(op, a), *second = gb_op_input(op, b);
    if (gb_dims_equal(first, second))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: %s is %s, %s is %s; they must have the same dims",
            gb_op_label(op), gb_input_name(op, a), gb_tensor_label(first), gb_input_name(op, b),
            gb_tensor_label(second));
}

gb_status gb_vector_input(const gb_op *op, uint32_t i, int64_t length)
{
    if (i >= op->n_inputs)
        return GB_SUCCESS;
    const gb_logical_tensor *tensor = gb_op_input(op, i);
    if (tensor->ndims == 1 && tensor->dims[0] == length)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: %s is %s, expected a vector of %lld elements",
            gb_op_label(op), gb_input_name(op, i), gb_tensor_label(tensor), (long long)length);
}

gb_status gb_rank_between(const gb_op *op, uint32_t i, int min, int max)
{
    const gb_logical_tensor *tensor = gb_op_input(op, i);
    if (tensor->ndims >= min && tensor->ndims <= max)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: %s is %s, expected a rank from %d to %d", gb_op_label(op),
            gb_input_name(op, i), gb_tensor_label(tensor), min, max);
}

gb_status gb_axis_attr(const gb_op *op, gb_op_attr name, int ndims, int *axis)
{
    int64_t value = gb_op_attr_s64(op, name, -1);
    *axis = gb_normalize_axis(value, ndims);
    if (*axis >= 0)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"%s\" is %lld, the tensor has %d axes",
            gb_op_label(op), gb_op_attr_name(name), (long long)value, ndims);
}

gb_status gb_target_dims(const gb_op *op, gb_op_attr name, int ndims, gb_logical_tensor *output)
{
    if (gb_dims_known(output)) {
        if (output->ndims == ndims)
            return GB_SUCCESS;
        return gb_fail(GB_INVALID_SHAPE, "%s: the output is %s, expected rank %d", gb_op_label(op),
                gb_tensor_label(output), ndims);
    }
    const int64_t *values;
    size_t count = gb_op_attr_s64s(op, name, &values);
    bool fits = count == (size_t)ndims;
    for (int i = 0; fits && i < ndims; i++)
        fits = values[i] >= 0;
    if (!fits)
        return gb_fail(GB_INVALID_SHAPE,
                "%s: the output's dims are unknown and attribute \"%s\" does not give %d of them",
                gb_op_label(op), gb_op_attr_name(name), ndims);
    gb_dims_set(output, ndims, values);
    return GB_SUCCESS;
}

/* Inference of one op -------------------------------------------------------------------------- */

/* Dims of 0 count as 1, as in dense strides, so that strides do not overflow either. */
static bool size_fits(const gb_logical_tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->ndims; i++)
        if (__builtin_mul_overflow(count, gb_max_i64(tensor->dims[i], 1), &count) ||
                count > MAX_COUNT)
            return false;
    return true;
}

static gb_status shape_check_inputs(const gb_op *op)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_logical_tensor *input = gb_op_input(op, i);
        if (!gb_dims_known(input))
            return gb_fail(GB_INVALID_SHAPE, "%s: dims of %s (tensor %zu, %s) are not known",
                    gb_op_label(op), gb_input_name(op, i), input->id, gb_tensor_label(input));
        if (!size_fits(input))
            return gb_fail(GB_INVALID_SHAPE, "%s: %s (tensor %zu, %s) is too large",
                    gb_op_label(op), gb_input_name(op, i), input->id, gb_tensor_label(input));
    }
    return GB_SUCCESS;
}

static bool dims_agree(const gb_logical_tensor *known, const gb_logical_tensor *inferred)
{
    if (known->ndims < 0)
        return true;
    if (known->ndims != inferred->ndims)
        return false;
    for (int i = 0; i < known->ndims; i++)
        if (known->dims[i] >= 0 && known->dims[i] != inferred->dims[i])
            return false;
    return true;
}

static bool strides_known(const gb_logical_tensor *tensor)
{
    for (int i = 0; i < tensor->ndims; i++)
        if (tensor->strides[i] == GB_UNKNOWN_DIM)
            return false;
    return tensor->ndims >= 0;
}

/* Strides that are given stay. Layouts any and opaque have none. */
static void write_dims(gb_logical_tensor *tensor, const gb_logical_tensor *inferred)
{
    bool keep_strides = strides_known(tensor);
    gb_dims_set(tensor, inferred->ndims, inferred->dims);
    bool has_strides =
            tensor->layout_type == GB_LAYOUT_STRIDED || tensor->layout_type == GB_LAYOUT_UNDEF;
    if (has_strides && !keep_strides)
        gb_dense_strides(tensor->ndims, tensor->dims, tensor->strides);
}

/* Of an op that the program defined; without a rule, what the outputs say holds. */
static gb_status infer_defined(const gb_op *op, gb_logical_tensor *outputs)
{
    const gb_op_definition *d = op->definition;
    if (d->infer) {
        gb_status status = d->infer(d->context, op, op->n_outputs, outputs);
        if (status != GB_SUCCESS)
            return gb_fail(status, "%s: its shape rule fails", gb_op_label(op));
    }
    for (uint32_t i = 0; i < op->n_outputs; i++)
        if (outputs[i].ndims > GB_MAX_NDIMS || !gb_dims_known(&outputs[i]))
            return gb_fail(GB_INVALID_SHAPE, "%s: the dims of output %u are not known",
                    gb_op_label(op), i);
    return GB_SUCCESS;
}

/* Runs the rule and compares the result with what is known. */
static gb_status infer_outputs(gb_op *op, gb_logical_tensor *outputs)
{
    const gb_op_schema *schema = gb_op_schema_get(op->kind);
    for (uint32_t i = 0; i < op->n_outputs; i++)
        outputs[i] = *gb_op_output(op, i);
    GB_TRY(op->definition ? infer_defined(op, outputs) : schema->infer(op, outputs));
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        const gb_logical_tensor *given = gb_op_output(op, i);
        if (!size_fits(&outputs[i]))
            return gb_fail(GB_INVALID_SHAPE, "%s: output %u (tensor %zu) of %s is too large",
                    gb_op_label(op), i, given->id, gb_tensor_label(&outputs[i]));
        if (!dims_agree(given, &outputs[i]))
            return gb_fail(GB_INVALID_SHAPE,
                    "%s: output %u (tensor %zu) is given as %s, but the inputs make it %s",
                    gb_op_label(op), i, given->id, gb_tensor_label(given),
                    gb_tensor_label(&outputs[i]));
    }
    return GB_SUCCESS;
}

gb_status gb_op_infer_shapes(gb_graph *graph, gb_op *op)
{
    GB_TRY(gb_op_verify_counts(op));
    GB_TRY(shape_check_inputs(op));
    gb_logical_tensor *outputs = gb_calloc(op->n_outputs, sizeof(*outputs));
    if (!outputs)
        return GB_OUT_OF_MEMORY;
    gb_status status = infer_outputs(op, outputs);
    for (uint32_t i = 0; status == GB_SUCCESS && i < op->n_outputs; i++)
        write_dims(graph ? &graph->values[op->outputs[i]].tensor : &op->own[op->outputs[i]],
                &outputs[i]);
    free(outputs);
    return status;
}

gb_status gb_op_check_limits(const gb_op *op)
{
    const gb_op_schema *schema = gb_op_schema_get(op->kind);
    return schema && schema->limits ? schema->limits(op) : GB_SUCCESS;
}

static bool knows_inputs(const gb_op *op)
{
    for (uint32_t i = 0; i < op->n_inputs; i++)
        if (!gb_dims_known(gb_op_input(op, i)))
            return false;
    return true;
}

/* Does the op wait for dims that nobody but a Wildcard knows? `open`: ops that do, by index, of
 * those before it. */
static bool waits_for_wildcard(const gb_graph *graph, const gb_op *op, const bool *open)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_value *value = &graph->values[op->inputs[i]];
        if (!gb_dims_known(&value->tensor) && value->producer != GB_NONE && open[value->producer])
            return true;
    }
    return false;
}

/* Wildcards make what is known of their outputs; what needs more than that stays open. */
static gb_status infer_around_wildcards(gb_graph *graph)
{
    bool *open = gb_calloc(graph->n_ops, sizeof *open);
    if (!open)
        return GB_OUT_OF_MEMORY;
    gb_status status = GB_SUCCESS;
    for (uint32_t i = 0; i < graph->n_ops && status == GB_SUCCESS; i++) {
        gb_op *op = graph->ops[i];
        open[i] = gb_op_is_wildcard(op) || waits_for_wildcard(graph, op, open);
        if (!open[i])
            status = gb_op_infer_shapes(graph, op);
    }
    free(open);
    return status;
}

gb_status gb_graph_infer_dims(gb_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_ops; i++)
        if (gb_op_is_wildcard(graph->ops[i]))
            return infer_around_wildcards(graph);
    for (uint32_t i = 0; i < graph->n_ops; i++)
        GB_TRY(gb_op_infer_shapes(graph, graph->ops[i]));
    return GB_SUCCESS;
}

gb_status gb_graph_infer(gb_graph *graph)
{
    GB_TRY(gb_graph_infer_dims(graph));
    for (uint32_t i = 0; i < graph->n_ops; i++)
        if (knows_inputs(graph->ops[i]))
            GB_TRY(gb_op_check_limits(graph->ops[i]));
    return GB_SUCCESS;
}
