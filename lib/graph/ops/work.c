/* Work of ops: operations as the rows of the op table count them, and bytes of elements. */
#include "base/dtype.h"
#include "base/memory.h"
#include "graph/ops/op_rules.h"
#include <math.h>

static double count_of(const gb_logical_tensor *tensor)
{
    double count = 1;
    for (int d = 0; d < tensor->ndims; d++)
        count *= (double)tensor->dims[d];
    return count;
}

double gb_work_output(const gb_op *op)
{
    return count_of(gb_op_output(op, 0));
}

double gb_work_input(const gb_op *op)
{
    return count_of(gb_op_input(op, 0));
}

static double matmul_products(const gb_op *op)
{
    const gb_logical_tensor *src = gb_op_input(op, 0);
    bool is_transposed = src->ndims > 1 && gb_op_attr_bool(op, GB_ATTR_TRANSPOSE_A, false);
    return gb_work_output(op) * (double)src->dims[src->ndims - 1 - is_transposed];
}

/* The tensors of a convolution: positions, one for each window, and weights. Ports are numbered as
 * inputs, then outputs. */
static void convolution_tensors(
        const gb_op *op, const gb_logical_tensor **positions, const gb_logical_tensor **weights)
{
    static const struct {
        uint8_t positions, weights;
        bool positions_come_out, weights_come_out;
    } ports[GB_OP_LAST] = {
            [GB_OP_CONVOLUTION] = {0, 1, true, false},
            [GB_OP_CONVOLUTION_BACKWARD_DATA] = {0, 1, false, false},
            [GB_OP_CONVOLUTION_BACKWARD_WEIGHTS] = {1, 0, false, true},
            [GB_OP_CONV_TRANSPOSE] = {0, 1, false, false},
            [GB_OP_CONV_TRANSPOSE_BACKWARD_DATA] = {0, 1, true, false},
            [GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS] = {0, 0, false, true},
    };
    uint8_t p = ports[op->kind].positions, w = ports[op->kind].weights;
    *positions = ports[op->kind].positions_come_out ? gb_op_output(op, p) : gb_op_input(op, p);
    *weights = ports[op->kind].weights_come_out ? gb_op_output(op, w) : gb_op_input(op, w);
}

/* Each element at a position meets the weights of its channel. Windows that lie in the padding
 * count. */
static double convolution_products(const gb_op *op)
{
    const gb_logical_tensor *positions, *weights;
    convolution_tensors(op, &positions, &weights);
    double channels = (double)positions->dims[gb_channel_axis(op, positions->ndims)];
    return channels > 0 ? count_of(positions) * count_of(weights) / channels : 0;
}

double gb_work_product(const gb_op *op)
{
    return op->kind == GB_OP_MATMUL ? matmul_products(op) : convolution_products(op);
}

double gb_work_cell(const gb_op *op)
{
    bool backward = gb_op_schema_get(op->kind)->flags & GB_OP_FLAG_BACKWARD;
    const gb_logical_tensor *image = backward ? gb_op_output(op, 0) : gb_op_input(op, 0);
    const gb_logical_tensor *windows =
            backward ? gb_op_input(op, op->kind == GB_OP_MAX_POOL_BACKWARD) : gb_op_output(op, 0);
    const int64_t *kernel;
    size_t n = gb_op_attr_s64s(op, GB_ATTR_KERNEL, &kernel);
    int axes[GB_MAX_NDIMS];
    double cells = count_of(windows);
    gb_data_axes(op, image->ndims, axes);
    for (size_t i = 0; i < n && (int)i < image->ndims - 2; i++)
        cells *= (double)gb_min_i64(kernel[i], gb_max_i64(1, image->dims[axes[2 + i]]));
    return cells;
}

/* Two taps on each spatial axis of a linear mode; nearest neighbours have no weights. */
double gb_work_tap(const gb_op *op)
{
    const gb_logical_tensor *points =
            op->kind == GB_OP_INTERPOLATE ? gb_op_output(op, 0) : gb_op_input(op, 1);
    double taps = count_of(points);
    if (gb_op_attr_is(op, GB_ATTR_MODE, "nearest", false))
        return 0;
    for (int axis = 2; axis < points->ndims; axis++)
        taps *= 2;
    return taps;
}

const char *gb_work_phrase(gb_work_fn work)
{
    static const struct {
        gb_work_fn work;
        const char *phrase;
    } phrases[] = {
            {gb_work_output, "element of output 0"},
            {gb_work_input, "element of input 0"},
            {gb_work_product, "product of two elements (cells of padding included)"},
            {gb_work_cell, "cell of each window"},
            {gb_work_tap, "tap of a linear mode"},
    };
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (phrases[i].work == work)
            return phrases[i].phrase;
    return NULL;
}

static gb_status check_dims(const gb_op *op)
{
    for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
        const gb_logical_tensor *tensor = gb_op_tensor(op, i);
        if (!gb_dims_known(tensor))
            return gb_fail(GB_INVALID_SHAPE, "%s: the work depends on tensor %zu, which is %s",
                    gb_op_label(op), tensor->id, gb_tensor_label(tensor));
    }
    return GB_SUCCESS;
}

/* Products are counted along an axis of a tensor, which must have one: that shapes fit is checked
 * by shape inference only, which the work does not need. */
static gb_status check_product(const gb_op *op)
{
    const gb_logical_tensor *tensor = gb_op_input(op, 0), *weights;
    if (op->kind != GB_OP_MATMUL)
        convolution_tensors(op, &tensor, &weights);
    if (tensor->ndims > 0)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_SHAPE, "%s: tensor %zu is a scalar, which no product has",
            gb_op_label(op), tensor->id);
}

/* Adds the op's work. Wildcard and End have none, whatever their tensors. */
static gb_status add_work(const gb_op *op, double *flops, double *bytes)
{
    const gb_op_schema *schema = gb_op_schema_get(op->kind);
    if (gb_op_is_wildcard(op) || op->kind == GB_OP_END)
        return GB_SUCCESS;
    GB_TRY(gb_op_verify_counts(op));
    GB_TRY(check_dims(op));
    if (schema->work == gb_work_product)
        GB_TRY(check_product(op));
    for (uint32_t i = 0; i < op->n_inputs + op->n_outputs; i++) {
        const gb_logical_tensor *tensor = gb_op_tensor(op, i);
        if (tensor->data_type != GB_UNDEF)
            *bytes += ceil(count_of(tensor) * gb_dtype_get(tensor->data_type)->bits / 8);
    }
    if (schema->work)
        *flops += schema->flops * schema->work(op);
    return GB_SUCCESS;
}

gb_status gb_op_get_work(const gb_op *op, double *flops, double *bytes)
{
    double sums[2] = {0, 0};
    if (!op || !flops || !bytes)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_get_work: NULL argument");
    GB_TRY(add_work(op, &sums[0], &sums[1]));
    *flops = sums[0];
    *bytes = sums[1];
    return GB_SUCCESS;
}

gb_status gb_graph_get_work(const gb_graph *graph, double *flops, double *bytes)
{
    double sums[2] = {0, 0};
    if (!graph || !flops || !bytes)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_graph_get_work: NULL argument");
    for (uint32_t i = 0; i < graph->n_ops; i++)
        GB_TRY(add_work(graph->ops[i], &sums[0], &sums[1]));
    *flops = sums[0];
    *bytes = sums[1];
    return GB_SUCCESS;
}
