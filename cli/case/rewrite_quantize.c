/* Fits the parameters of quantising ops to rewritten shapes: per-channel lists, and groups. */
#include "cli/case/rewrite.h"

#include "cli/options/message.h"

#include <graphbench/graphbench_tools.h>
#include <stdlib.h>
#include <string.h>

/* Lists beyond this stay as they are, and shape inference refuses them. */
enum { CHANNEL_LIMIT = 1 << 24 };

static bool attr_is(const gb_op *op, gb_op_attr attr, const char *word)
{
    const void *values;
    size_t count;
    return gb_op_get_attr(op, attr, &count, &values) == GB_SUCCESS && values &&
           count == strlen(word) && memcmp(values, word, count) == 0;
}

/* Length of the axis that the op's parameters run along; 0 = unknown. */
static int64_t channel_count(const gb_op *op, const gb_logical_tensor *src)
{
    const void *values;
    size_t count;
    if (gb_op_get_attr(op, GB_ATTR_AXIS, &count, &values) != GB_SUCCESS)
        return 0;
    int64_t axis = values ? *(const int64_t *)values : 1;
    if (axis < 0)
        axis += src->ndims;
    return axis >= 0 && axis < src->ndims ? src->dims[axis] : 0;
}

/* Scales are repeated cyclically. */
static gb_status fit_scales(gb_op *op, size_t wanted, bool *changed)
{
    const void *values;
    size_t count;
    LIB_TRY(gb_op_get_attr(op, GB_ATTR_SCALES, &count, &values));
    if (count == 0 || count == wanted)
        return GB_SUCCESS;
    float *scales = gb_cli_realloc(NULL, wanted, sizeof(*scales));
    for (size_t i = 0; i < wanted; i++)
        scales[i] = ((const float *)values)[i % count];
    gb_status status = gb_op_set_attr_f32(op, GB_ATTR_SCALES, wanted, scales);
    free(scales);
    *changed = true;
    return status == GB_SUCCESS ? status : gb_cli_fail_library(status);
}

/* Zero points are continued with 0. */
static gb_status fit_zero_points(gb_op *op, size_t wanted, bool *changed)
{
    const void *values;
    size_t count;
    LIB_TRY(gb_op_get_attr(op, GB_ATTR_ZPS, &count, &values));
    if (count == 0 || count == wanted)
        return GB_SUCCESS;
    int64_t *zps = gb_cli_realloc(NULL, wanted, sizeof(*zps));
    for (size_t i = 0; i < wanted; i++)
        zps[i] = i < count ? ((const int64_t *)values)[i] : 0;
    gb_status status = gb_op_set_attr_s64(op, GB_ATTR_ZPS, wanted, zps);
    free(zps);
    *changed = true;
    return status == GB_SUCCESS ? status : gb_cli_fail_library(status);
}

/* Groups of the transposed convolution whose weights the op makes, if it reads them so. */
static int64_t groups_of_reader(const gb_op *reader, size_t weights)
{
    enum { WEIGHTS = 1 };
    gb_op_kind kind;
    gb_logical_tensor input;
    const void *values = NULL;
    size_t count;
    bool reads = gb_op_get_kind(reader, &kind) == GB_SUCCESS && kind == GB_OP_CONV_TRANSPOSE &&
                 gb_op_get_input(reader, WEIGHTS, &input) == GB_SUCCESS && input.id == weights &&
                 gb_op_get_attr(reader, GB_ATTR_GROUPS, &count, &values) == GB_SUCCESS && values;
    return reads ? *(const int64_t *)values : 1;
}

/* Are the scales those of the channels of all groups, one group after another? */
static gb_status are_numbered(
        const gb_rewrite *rewrite, const gb_op *op, int64_t channels, bool *numbered)
{
    gb_logical_tensor output;
    const void *values;
    size_t n_scales, n_readers;
    *numbered = false;
    LIB_TRY(gb_op_get_attr(op, GB_ATTR_SCALES, &n_scales, &values));
    LIB_TRY(gb_op_get_output(op, 0, &output));
    LIB_TRY(gb_graph_get_consumers(rewrite->graph, output.id, 0, NULL, &n_readers));
    const gb_op **readers = gb_cli_realloc(NULL, n_readers, sizeof(gb_op *));
    gb_status status = gb_graph_get_consumers(rewrite->graph, output.id, n_readers, readers, NULL);
    for (size_t i = 0; status == GB_SUCCESS && i < n_readers; i++) {
        int64_t groups = groups_of_reader(readers[i], output.id);
        *numbered = *numbered || (groups > 1 && n_scales % (size_t)groups == 0 &&
                                         n_scales / (size_t)groups == (size_t)channels);
    }
    free(readers);
    return status == GB_SUCCESS ? GB_SUCCESS : gb_cli_fail_library(status);
}

static gb_status fit_channels(const gb_rewrite *rewrite, gb_op *op, bool *changed)
{
    gb_logical_tensor src;
    bool numbered;
    LIB_TRY(gb_op_get_input(op, 0, &src));
    if (!attr_is(op, GB_ATTR_QTYPE, "per_channel") || !gb_cli_has_known_dims(&src))
        return GB_SUCCESS;
    int64_t wanted = channel_count(op, &src);
    if (wanted <= 0 || wanted > CHANNEL_LIMIT)
        return GB_SUCCESS;
    CLI_TRY(are_numbered(rewrite, op, wanted, &numbered));
    if (numbered)
        return GB_SUCCESS;
    CLI_TRY(fit_scales(op, (size_t)wanted, changed));
    return fit_zero_points(op, (size_t)wanted, changed);
}

/* ------------------------------------------------------------ groups */

/* Was "group_shape" of the op given by --op-attrs? */
static bool group_is_given(const gb_rewrite *rewrite, size_t op_id)
{
    const gb_alternative *choice = rewrite->test->choice[AXIS_OP_ATTRS];
    for (size_t i = 0; i < choice->n_overrides; i++)
        if (choice->overrides[i].id == op_id &&
                choice->overrides[i].value.attr.attr == GB_ATTR_GROUP_SHAPE)
            return true;
    return false;
}

static bool differs_from_file(const gb_rewrite *rewrite, const gb_logical_tensor *tensor)
{
    const gb_logical_tensor *original = gb_cli_original(rewrite, tensor->id);
    return original && gb_cli_has_known_dims(original) && !gb_cli_same_dims(tensor, original);
}

/* New shapes, old attribute: a group is what one scale covers. */
static gb_status fit_group_shape(gb_op *op, size_t op_id, const gb_logical_tensor *src,
        const gb_logical_tensor *scale, bool *changed)
{
    const void *values;
    size_t count;
    int64_t group[GB_MAX_NDIMS];
    if (src->ndims != scale->ndims)
        return GB_SUCCESS; /* refused by shape inference */
    for (int i = 0; i < src->ndims; i++) {
        if (scale->dims[i] <= 0 || src->dims[i] % scale->dims[i] != 0)
            return gb_cli_fail(GB_INVALID_SHAPE,
                    "op %zu: dim %d of src (%lld) is no multiple of that of the scales (%lld)",
                    op_id, i, (long long)src->dims[i], (long long)scale->dims[i]);
        group[i] = src->dims[i] / scale->dims[i];
    }
    LIB_TRY(gb_op_get_attr(op, GB_ATTR_GROUP_SHAPE, &count, &values));
    size_t bytes = (size_t)src->ndims * sizeof(group[0]);
    if (count == (size_t)src->ndims && memcmp(values, group, bytes) == 0)
        return GB_SUCCESS;
    *changed = true;
    LIB_TRY(gb_op_set_attr_s64(op, GB_ATTR_GROUP_SHAPE, (size_t)src->ndims, group));
    return GB_SUCCESS;
}

/* New attribute, old shapes: scales and zero points that are graph inputs get one element per
 * group. */
static gb_status fit_group_inputs(const gb_rewrite *rewrite, const gb_op *op, size_t op_id,
        const gb_logical_tensor *src, bool *changed)
{
    const void *values;
    size_t count;
    LIB_TRY(gb_op_get_attr(op, GB_ATTR_GROUP_SHAPE, &count, &values));
    if (count != (size_t)src->ndims)
        return GB_SUCCESS; /* refused by shape inference */
    for (size_t input = 1; input < gb_op_get_input_num(op); input++) {
        gb_logical_tensor tensor, wanted;
        const gb_op *producer;
        LIB_TRY(gb_op_get_input(op, input, &tensor));
        LIB_TRY(gb_graph_get_producer(rewrite->graph, tensor.id, &producer));
        if (producer)
            continue;
        wanted = tensor;
        wanted.ndims = src->ndims;
        for (int i = 0; i < src->ndims; i++) {
            int64_t group = ((const int64_t *)values)[i];
            if (group <= 0 || src->dims[i] % group != 0)
                return gb_cli_fail(GB_INVALID_SHAPE,
                        "op %zu: dim %d of src (%lld) is no multiple of its group (%lld)", op_id, i,
                        (long long)src->dims[i], (long long)group);
            wanted.dims[i] = src->dims[i] / group;
        }
        if (gb_cli_same_dims(&tensor, &wanted))
            continue;
        gb_cli_set_dense(&wanted, NULL);
        *changed = true;
        LIB_TRY(gb_graph_set_tensor(rewrite->graph, &wanted));
    }
    return GB_SUCCESS;
}

/* New attribute and new shapes have to agree. */
static gb_status rewrite_quantize_check_groups(
        const gb_op *op, size_t op_id, const gb_logical_tensor *src, const gb_logical_tensor *scale)
{
    const void *values;
    size_t count;
    LIB_TRY(gb_op_get_attr(op, GB_ATTR_GROUP_SHAPE, &count, &values));
    bool fits = count == (size_t)src->ndims && scale->ndims == src->ndims;
    for (int i = 0; fits && i < src->ndims; i++) {
        int64_t product;
        fits = !__builtin_mul_overflow(scale->dims[i], ((const int64_t *)values)[i], &product) &&
               product == src->dims[i];
    }
    if (fits)
        return GB_SUCCESS;
    return gb_cli_fail(GB_INVALID_SHAPE,
            "op %zu: group_shape times the shape of the scales is not the shape of src", op_id);
}

static gb_status fit_groups(const gb_rewrite *rewrite, gb_op *op, bool *changed)
{
    size_t id;
    gb_logical_tensor src, scale;
    if (!attr_is(op, GB_ATTR_QTYPE, "per_group") || gb_op_get_input_num(op) < 2)
        return GB_SUCCESS;
    LIB_TRY(gb_op_get_id(op, &id));
    LIB_TRY(gb_op_get_input(op, 0, &src));
    LIB_TRY(gb_op_get_input(op, 1, &scale));
    if (!gb_cli_has_known_dims(&src) || !gb_cli_has_known_dims(&scale))
        return GB_SUCCESS;
    /* Scales that were fitted to a given group before are not rewritten by the user. */
    bool rewritten = differs_from_file(rewrite, &src) ||
                     gb_cli_find_override(rewrite->test->choice[AXIS_IN_SHAPES], scale.id);
    bool given = group_is_given(rewrite, id);
    if (rewritten && !given)
        return fit_group_shape(op, id, &src, &scale, changed);
    if (given && !rewritten)
        CLI_TRY(fit_group_inputs(rewrite, op, id, &src, changed));
    LIB_TRY(gb_op_get_input(op, 1, &scale));
    return given ? rewrite_quantize_check_groups(op, id, &src, &scale) : GB_SUCCESS;
}

gb_status gb_cli_fit_quantization(const gb_rewrite *rewrite, bool *changed)
{
    *changed = false;
    size_t count = gb_graph_get_op_num(rewrite->graph);
    for (size_t i = 0; i < count; i++) {
        const gb_op *lent;
        gb_op *op;
        gb_op_kind kind;
        size_t id;
        LIB_TRY(gb_graph_get_op(rewrite->graph, i, &lent));
        LIB_TRY(gb_op_get_id(lent, &id));
        LIB_TRY(gb_graph_edit_op(rewrite->graph, id, &op));
        LIB_TRY(gb_op_get_kind(op, &kind));
        if (kind == GB_OP_QUANTIZE || kind == GB_OP_DEQUANTIZE)
            CLI_TRY(fit_channels(rewrite, op, changed));
        else if (kind == GB_OP_DYNAMIC_QUANTIZE || kind == GB_OP_DYNAMIC_DEQUANTIZE)
            CLI_TRY(fit_groups(rewrite, op, changed));
    }
    return GB_SUCCESS;
}
