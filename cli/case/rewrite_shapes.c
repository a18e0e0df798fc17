/* --in-shapes and --mb, inference of the produced shapes, and the layouts of the results. */
#include "cli/case/rewrite.h"

#include "cli/options/message.h"

#include <graphbench/graphbench_tools.h>
#include <stdlib.h>
#include <string.h>

static bool is_row_major(const gb_logical_tensor *tensor)
{
    int order[GB_MAX_NDIMS];
    if (!gb_cli_axis_order(tensor, order))
        return false;
    gb_logical_tensor dense = *tensor;
    gb_cli_set_dense(&dense, NULL);
    for (int i = 0; i < tensor->ndims; i++)
        if (tensor->dims[i] > 1 && tensor->strides[i] != dense.strides[i])
            return false;
    return true;
}

static gb_status override_input(gb_rewrite *rewrite, gb_logical_tensor *tensor,
        const gb_shape_override *shape, bool in_minibatch)
{
    bool explicit_layout = shape->has_strides || *shape->tag;
    if (explicit_layout || !is_row_major(tensor))
        rewrite->layout_changed = true;
    if (shape->has_dims) {
        tensor->ndims = shape->ndims;
        memcpy(tensor->dims, shape->dims, sizeof(tensor->dims));
    }
    if (!gb_cli_has_known_dims(tensor))
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "--in-shapes: the file does not give the shape of tensor %zu", tensor->id);
    if (in_minibatch && tensor->ndims > 0)
        tensor->dims[0] = rewrite->test->choice[AXIS_MB]->number;
    return gb_cli_apply_layout(tensor, shape);
}

/* A new dim 0 in the order of axes that the tensor has. */
static void override_minibatch(const gb_rewrite *rewrite, gb_logical_tensor *tensor)
{
    int order[GB_MAX_NDIMS];
    bool dense = gb_cli_axis_order(tensor, order);
    tensor->dims[0] = rewrite->test->choice[AXIS_MB]->number;
    if (tensor->layout_type == GB_LAYOUT_OPAQUE)
        return; /* blocks are the same for any dims */
    if (dense)
        gb_cli_set_dense(tensor, order);
    else
        gb_cli_set_dense(tensor, NULL);
}

static bool contains(const gb_minibatch *minibatch, size_t id)
{
    for (size_t i = 0; i < minibatch->count; i++)
        if (minibatch->ids[i] == id)
            return true;
    return false;
}

static gb_status rewrite_input(
        gb_rewrite *rewrite, gb_logical_tensor *tensor, const gb_minibatch *minibatch)
{
    const gb_override *override =
            gb_cli_find_override(rewrite->test->choice[AXIS_IN_SHAPES], tensor->id);
    bool in_minibatch = contains(minibatch, tensor->id);
    if (override)
        CLI_TRY(override_input(rewrite, tensor, &override->value.shape, in_minibatch));
    else if (in_minibatch && tensor->ndims > 0 && gb_cli_has_known_dims(tensor))
        override_minibatch(rewrite, tensor);
    else if (tensor->layout_type == GB_LAYOUT_OPAQUE || !gb_cli_has_known_dims(tensor))
        return GB_SUCCESS;
    else if (tensor->layout_type != GB_LAYOUT_STRIDED ||
             (tensor->ndims > 0 && tensor->strides[0] == GB_UNKNOWN_DIM))
        gb_cli_set_dense(tensor, NULL);
    LIB_TRY(gb_graph_set_tensor(rewrite->graph, tensor));
    return GB_SUCCESS;
}

/* Is the tensor a result of the graph: read by nobody, or marked by an End? */
static gb_status is_result(const gb_graph *graph, size_t id, bool *result)
{
    size_t count;
    LIB_TRY(gb_graph_get_consumers(graph, id, 0, NULL, &count));
    const gb_op **consumers = gb_cli_realloc(NULL, count, sizeof(gb_op *));
    gb_status status = gb_graph_get_consumers(graph, id, count, consumers, NULL);
    *result = count == 0;
    for (size_t i = 0; status == GB_SUCCESS && i < count; i++) {
        gb_op_kind kind;
        status = gb_op_get_kind(consumers[i], &kind);
        if (status == GB_SUCCESS && kind == GB_OP_END)
            *result = true;
    }
    free(consumers);
    return status == GB_SUCCESS ? GB_SUCCESS : gb_cli_fail_library(status);
}

/* Is the list attribute as good as missing: empty, or the default, a 0 for each of the most axes?
 */
static bool tells_nothing(const gb_op *op, gb_op_attr attr)
{
    const void *values = NULL;
    size_t count = 0;
    if (gb_op_get_attr(op, attr, &count, &values) != GB_SUCCESS)
        return false;
    const int64_t *dims = values;
    bool zeros = count == 0 || count == GB_MAX_NDIMS;
    for (size_t i = 0; zeros && i < count; i++)
        zeros = dims[i] == 0;
    return zeros;
}

/* Statistics, which an op takes with any dims that hold as many elements? Those of the file stay as
 * long as the options give no others. */
static bool is_free_statistic(const gb_case *test, gb_op_kind kind, bool is_first)
{
    bool other_shapes = test->choice[AXIS_IN_SHAPES]->n_overrides > 0 ||
                        test->choice[AXIS_OP_ATTRS]->n_overrides > 0 ||
                        test->choice[AXIS_MB]->number > 0;
    return kind == GB_OP_LAYER_NORM && !is_first && !other_shapes;
}

/* Ops whose output shape comes from an attribute, or from a tensor in its place: without the
 * attribute it stays as the file has it. */
static bool keeps_shape(const gb_case *test, const gb_op *producer, size_t id)
{
    static const struct {
        gb_op_kind kind;
        gb_op_attr attr;
    } targets[] = {
            {GB_OP_CONVOLUTION_BACKWARD_DATA, GB_ATTR_DST_SHAPE},
            {GB_OP_CONVOLUTION_BACKWARD_WEIGHTS, GB_ATTR_WEIGHTS_SHAPE},
            {GB_OP_CONV_TRANSPOSE_BACKWARD_WEIGHTS, GB_ATTR_WEIGHTS_SHAPE},
            {GB_OP_AVG_POOL_BACKWARD, GB_ATTR_SRC_SHAPE},
    };
    gb_op_kind kind;
    gb_logical_tensor first;
    if (gb_op_get_kind(producer, &kind) != GB_SUCCESS ||
            gb_op_get_output(producer, 0, &first) != GB_SUCCESS)
        return false;
    if (is_free_statistic(test, kind, first.id == id))
        return true;
    if (kind >= GB_OP_REDUCE_L1 && kind <= GB_OP_REDUCE_SUM)
        return gb_op_get_input_num(producer) > 1 && tells_nothing(producer, GB_ATTR_AXES);
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        if (targets[i].kind == kind)
            return tells_nothing(producer, targets[i].attr);
    return false;
}

/* Forgets what inference will find out. Dims given by --in-shapes stay, so that a contradiction is
 * found. */
static gb_status rewrite_output(
        const gb_rewrite *rewrite, gb_logical_tensor *tensor, const gb_op *producer)
{
    const gb_override *override =
            gb_cli_find_override(rewrite->test->choice[AXIS_IN_SHAPES], tensor->id);
    bool result = false;
    if (override)
        CLI_TRY(is_result(rewrite->graph, tensor->id, &result));
    if (override && !result)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "--in-shapes: tensor %zu is neither an input nor an output of the graph",
                tensor->id);
    if (override && override->value.shape.has_dims) {
        tensor->ndims = override->value.shape.ndims;
        memcpy(tensor->dims, override->value.shape.dims, sizeof(tensor->dims));
    } else if (!keeps_shape(rewrite->test, producer, tensor->id)) {
        tensor->ndims = GB_UNKNOWN_NDIMS;
        for (int i = 0; i < GB_MAX_NDIMS; i++)
            tensor->dims[i] = GB_UNKNOWN_DIM;
    }
    if (tensor->layout_type != GB_LAYOUT_ANY)
        tensor->layout_type = GB_LAYOUT_STRIDED;
    for (int i = 0; i < GB_MAX_NDIMS; i++)
        tensor->strides[i] = GB_UNKNOWN_DIM;
    LIB_TRY(gb_graph_set_tensor(rewrite->graph, tensor));
    return GB_SUCCESS;
}

static void warn_of_overrides(const gb_rewrite *rewrite)
{
    const gb_alternative *choice = rewrite->test->choice[AXIS_IN_SHAPES];
    for (size_t i = 0; i < choice->n_overrides; i++) {
        const gb_override *override = &choice->overrides[i];
        bool is_outside = override->id < rewrite->test->n_model_inputs;
        if (!is_outside && !gb_cli_original(rewrite, override->id))
            gb_cli_print_warning(
                    rewrite->test->file, "--in-shapes: the graph has no tensor %zu", override->id);
        if (override->value.shape.stray_tag)
            gb_cli_print_warning(rewrite->test->file,
                    "--in-shapes: the tag behind the id %zu has no effect; layouts stand behind "
                    "shapes",
                    override->id);
    }
}

static gb_status rewrite_tensors(gb_rewrite *rewrite, const gb_minibatch *minibatch)
{
    for (size_t i = 0; i < rewrite->n_originals; i++) {
        gb_logical_tensor tensor = rewrite->originals[i];
        bool given;
        const gb_op *producer;
        CLI_TRY(gb_cli_is_given(rewrite->graph, tensor.id, &given));
        LIB_TRY(gb_graph_get_producer(rewrite->graph, tensor.id, &producer));
        if (given)
            CLI_TRY(rewrite_input(rewrite, &tensor, minibatch));
        else
            CLI_TRY(rewrite_output(rewrite, &tensor, producer));
    }
    return GB_SUCCESS;
}

gb_status gb_cli_rewrite_shapes(gb_rewrite *rewrite)
{
    gb_minibatch minibatch = {0};
    /* A model has its minibatch from its own sizes. */
    if (rewrite->test->choice[AXIS_MB]->number > 0 && rewrite->test->n_model_inputs == 0) {
        /* Ranks of intermediates may be missing in the file. All tensors are set anew below, and
         * what does not fit in the file may fit after rewriting. */
        gb_graph_infer_shapes(rewrite->graph);
        CLI_TRY(gb_cli_find_minibatch(rewrite->graph, &minibatch));
        if (minibatch.count == 0)
            return gb_cli_fail(GB_INVALID_ARGUMENTS, "--mb: no graph input carries the minibatch");
    }
    warn_of_overrides(rewrite);
    gb_status status = rewrite_tensors(rewrite, &minibatch);
    free(minibatch.ids);
    return status;
}

/* Parameters can be fitted once the shapes are known, and inference may need fitted ones: as long
 * as something changes, both are repeated. */
gb_status gb_cli_rewrite_infer(const gb_rewrite *rewrite)
{
    bool changed = true;
    gb_status status = GB_SUCCESS;
    while (changed) {
        status = gb_graph_infer_shapes(rewrite->graph);
        if (status != GB_SUCCESS)
            gb_cli_fail_library(status);
        gb_status fitted = gb_cli_fit_quantization(rewrite, &changed);
        if (fitted != GB_SUCCESS)
            return fitted;
    }
    return status;
}
