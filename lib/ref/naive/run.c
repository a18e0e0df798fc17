/* The twin's table of op functions, and evaluation of ops of a graph one after the other. */
#include "base/memory.h"
#include "ref/naive/naive_op.h"

#include <stdlib.h>
#include <string.h>

static gb_status (*const functions[GB_OP_LAST])(const gb_naive_call *call) = {
        [GB_OP_ABS] = gb_naive_unary,
        [GB_OP_ABS_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_ADD] = gb_naive_binary,
        [GB_OP_AVG_POOL] = gb_naive_avg_pool,
        [GB_OP_AVG_POOL_BACKWARD] = gb_naive_avg_pool_backward,
        [GB_OP_BATCH_NORM_BACKWARD] = gb_naive_batch_norm_backward,
        [GB_OP_BATCH_NORM_FORWARD_TRAINING] = gb_naive_batch_norm_training,
        [GB_OP_BATCH_NORM_INFERENCE] = gb_naive_batch_norm_inference,
        [GB_OP_BIAS_ADD] = gb_naive_bias_add,
        [GB_OP_BIAS_ADD_BACKWARD] = gb_naive_bias_add_backward,
        [GB_OP_CLAMP] = gb_naive_unary,
        [GB_OP_CLAMP_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_CONCAT] = gb_naive_concat,
        [GB_OP_CONVOLUTION] = gb_naive_convolution,
        [GB_OP_CONVOLUTION_BACKWARD_DATA] = gb_naive_convolution_backward_data,
        [GB_OP_CONVOLUTION_BACKWARD_WEIGHTS] = gb_naive_convolution_backward_weights,
        [GB_OP_CONV_TRANSPOSE] = gb_naive_conv_transpose,
        [GB_OP_CONV_TRANSPOSE_BACKWARD_DATA] = gb_naive_conv_transpose_backward_data,
        [GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS] = gb_naive_conv_transpose_backward_weights,
        [GB_OP_DEQUANTIZE] = gb_naive_dequantize,
        [GB_OP_DIVIDE] = gb_naive_binary,
        [GB_OP_DROPOUT] = gb_naive_dropout,
        [GB_OP_DYNAMIC_DEQUANTIZE] = gb_naive_dequantize,
        [GB_OP_DYNAMIC_QUANTIZE] = gb_naive_quantize,
        [GB_OP_ELU] = gb_naive_unary,
        [GB_OP_ELU_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_END] = gb_naive_end,
        [GB_OP_EXP] = gb_naive_unary,
        [GB_OP_GELU] = gb_naive_unary,
        [GB_OP_GELU_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_GEN_INDEX] = gb_naive_gen_index,
        [GB_OP_GREATER_EQUAL] = gb_naive_binary,
        [GB_OP_GROUP_NORM] = gb_naive_group_norm,
        [GB_OP_HARD_SIGMOID] = gb_naive_unary,
        [GB_OP_HARD_SIGMOID_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_HARD_SWISH] = gb_naive_unary,
        [GB_OP_HARD_SWISH_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_INTERPOLATE] = gb_naive_interpolate,
        [GB_OP_INTERPOLATE_BACKWARD] = gb_naive_interpolate_backward,
        [GB_OP_LAYER_NORM] = gb_naive_layer_norm,
        [GB_OP_LAYER_NORM_BACKWARD] = gb_naive_layer_norm_backward,
        [GB_OP_LEAKY_RELU] = gb_naive_unary,
        [GB_OP_LOG] = gb_naive_unary,
        [GB_OP_LOG_SOFTMAX] = gb_naive_log_softmax,
        [GB_OP_LOG_SOFTMAX_BACKWARD] = gb_naive_log_softmax_backward,
        [GB_OP_MATMUL] = gb_naive_matmul,
        [GB_OP_MAXIMUM] = gb_naive_binary,
        [GB_OP_MAX_POOL] = gb_naive_max_pool,
        [GB_OP_MAX_POOL_BACKWARD] = gb_naive_max_pool_backward,
        [GB_OP_MINIMUM] = gb_naive_binary,
        [GB_OP_MISH] = gb_naive_unary,
        [GB_OP_MISH_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_MULTIPLY] = gb_naive_binary,
        [GB_OP_POW] = gb_naive_unary,
        [GB_OP_PRELU] = gb_naive_prelu,
        [GB_OP_PRELU_BACKWARD] = gb_naive_prelu_backward,
        [GB_OP_QUANTIZE] = gb_naive_quantize,
        [GB_OP_RECIPROCAL] = gb_naive_unary,
        [GB_OP_REDUCE_L1] = gb_naive_reduce,
        [GB_OP_REDUCE_L2] = gb_naive_reduce,
        [GB_OP_REDUCE_MAX] = gb_naive_reduce,
        [GB_OP_REDUCE_MEAN] = gb_naive_reduce,
        [GB_OP_REDUCE_MIN] = gb_naive_reduce,
        [GB_OP_REDUCE_PROD] = gb_naive_reduce,
        [GB_OP_REDUCE_SUM] = gb_naive_reduce,
        [GB_OP_RELU] = gb_naive_unary,
        [GB_OP_RELU_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_REORDER] = gb_naive_copy,
        [GB_OP_RMS_NORM] = gb_naive_rms_norm,
        [GB_OP_ROUND] = gb_naive_unary,
        [GB_OP_SELECT] = gb_naive_select,
        [GB_OP_SIGMOID] = gb_naive_unary,
        [GB_OP_SIGMOID_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_SOFTMAX] = gb_naive_softmax,
        [GB_OP_SOFTMAX_BACKWARD] = gb_naive_softmax_backward,
        [GB_OP_SOFTPLUS] = gb_naive_unary,
        [GB_OP_SOFTPLUS_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_SQRT] = gb_naive_unary,
        [GB_OP_SQRT_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_SQUARE] = gb_naive_unary,
        [GB_OP_SQUARED_DIFFERENCE] = gb_naive_binary,
        [GB_OP_STATIC_RESHAPE] = gb_naive_reshape,
        [GB_OP_STATIC_TRANSPOSE] = gb_naive_transpose,
        [GB_OP_SUBTRACT] = gb_naive_binary,
        [GB_OP_TANH] = gb_naive_unary,
        [GB_OP_TANH_BACKWARD] = gb_naive_unary_backward,
        [GB_OP_TYPE_CAST] = gb_naive_copy,
};

int gb_naive_supports(gb_op_kind kind)
{
    return (unsigned)kind < GB_OP_LAST && functions[kind] != NULL;
}

gb_status gb_naive_run(const gb_op *op, const gb_naive_tensor *inputs, gb_naive_tensor *outputs)
{
    gb_naive_call call = {op, inputs, outputs};
    if (!gb_naive_supports(op->kind))
        return gb_fail(GB_UNIMPLEMENTED, "naive reference: %s has no function", gb_op_label(op));
    for (uint32_t i = 0; i < op->n_outputs; i++)
        outputs[i].type = gb_op_output(op, i)->data_type;
    GB_TRY(functions[op->kind](&call));
    for (uint32_t i = 0; i < op->n_outputs; i++)
        for (int64_t p = 0; p < outputs[i].count; p++)
            outputs[i].value[p] = gb_naive_settle(outputs[i].type, outputs[i].value[p]);
    return GB_SUCCESS;
}

gb_status gb_naive_store_put(gb_naive_store *store, size_t id, gb_naive_tensor *tensor)
{
    size_t i = 0;
    while (i < store->count && store->ids[i] != id)
        i++;
    if (i == store->capacity) {
        size_t capacity = 2 * store->capacity + 16;
        size_t *ids = realloc(store->ids, capacity * sizeof *ids);
        store->ids = ids ? ids : store->ids;
        gb_naive_tensor *tensors = realloc(store->tensors, capacity * sizeof *tensors);
        store->tensors = tensors ? tensors : store->tensors;
        if (!ids || !tensors)
            return gb_fail(GB_OUT_OF_MEMORY, "naive reference: out of memory");
        store->capacity = capacity;
    }
    if (i == store->count)
        store->count++;
    else
        gb_naive_free(&store->tensors[i]);
    store->ids[i] = id;
    store->tensors[i] = *tensor;
    *tensor = (gb_naive_tensor){0};
    return GB_SUCCESS;
}

const gb_naive_tensor *gb_naive_store_get(const gb_naive_store *store, size_t id)
{
    for (size_t i = 0; i < store->count; i++)
        if (store->ids[i] == id)
            return &store->tensors[i];
    return NULL;
}

void gb_naive_store_clear(gb_naive_store *store)
{
    for (size_t i = 0; i < store->count; i++)
        gb_naive_free(&store->tensors[i]);
    free(store->ids);
    free(store->tensors);
    *store = (gb_naive_store){0};
}

/* Are the dims that the twin found those of the graph? */
static gb_status compare_dims(const gb_op *op, uint32_t i, const gb_naive_tensor *got)
{
    const gb_logical_tensor *expected = gb_op_output(op, i);
    bool same = got->ndims == expected->ndims;
    for (int d = 0; same && d < got->ndims; d++)
        same = got->dims[d] == expected->dims[d];
    if (same)
        return GB_SUCCESS;
    gb_logical_tensor own = *expected;
    own.ndims = got->ndims;
    memcpy(own.dims, got->dims, sizeof own.dims);
    return gb_fail(GB_INVALID_SHAPE, "%s: output %u is %s, by the naive reference %s",
            gb_op_label(op), i, gb_tensor_label(expected), gb_tensor_label(&own));
}

static gb_status execute_op(
        const gb_op *op, gb_naive_tensor *inputs, gb_naive_tensor *outputs, gb_naive_store *store)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        size_t id = gb_op_input(op, i)->id;
        const gb_naive_tensor *input = gb_naive_store_get(store, id);
        if (!input)
            return gb_fail(
                    GB_INVALID_ARGUMENTS, "%s: no naive value for tensor %zu", gb_op_label(op), id);
        inputs[i] = *input; /* lent */
    }
    GB_TRY(gb_naive_run(op, inputs, outputs));
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        GB_TRY(compare_dims(op, i, &outputs[i]));
        GB_TRY(gb_naive_store_put(store, gb_op_output(op, i)->id, &outputs[i]));
    }
    return GB_SUCCESS;
}

static const gb_op *find_op(const gb_graph *graph, size_t id)
{
    for (uint32_t i = 0; i < graph->n_ops; i++)
        if (graph->ops[i]->id == id)
            return graph->ops[i];
    return NULL;
}

gb_status gb_naive_execute(
        const gb_graph *graph, size_t n_ops, const size_t *op_ids, gb_naive_store *store)
{
    for (size_t i = 0; i < n_ops; i++) {
        const gb_op *op = find_op(graph, op_ids[i]);
        if (!op)
            return gb_fail(GB_INVALID_ARGUMENTS, "naive reference: no op %zu", op_ids[i]);
        gb_naive_tensor *inputs = gb_calloc(op->n_inputs, sizeof *inputs);
        gb_naive_tensor *outputs = gb_calloc(op->n_outputs, sizeof *outputs);
        gb_status status =
                inputs && outputs ? execute_op(op, inputs, outputs, store) : GB_OUT_OF_MEMORY;
        for (uint32_t o = 0; outputs && o < op->n_outputs; o++)
            gb_naive_free(&outputs[o]);
        free(inputs);
        free(outputs);
        GB_TRY(status);
    }
    return GB_SUCCESS;
}

double gb_naive_bytes(const gb_graph *graph, size_t n_ops, const size_t *op_ids)
{
    double bytes = 0;
    for (size_t i = 0; i < n_ops; i++) {
        const gb_op *op = find_op(graph, op_ids[i]);
        for (uint32_t o = 0; op && o < op->n_outputs; o++) {
            double elements = 1;
            for (int d = 0; d < gb_op_output(op, o)->ndims; d++)
                elements *= (double)gb_op_output(op, o)->dims[d];
            bytes += elements * (double)sizeof(double);
        }
    }
    return bytes;
}
