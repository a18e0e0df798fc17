/* What the steps of rewriting share: the tensors as the file has them, orders of axes, look-ups. */
#include "cli/case/rewrite.h"

#include "cli/options/message.h"

#include <stdlib.h>
#include <string.h>

static int compare_ids(const void *a, const void *b)
{
    const gb_logical_tensor *left = a, *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

void gb_cli_rewrite_init(gb_rewrite *rewrite, const gb_case *test)
{
    *rewrite = (gb_rewrite){.test = test, .graph = test->graph};
    size_t count = gb_graph_get_tensor_num(test->graph);
    rewrite->originals = gb_cli_realloc(NULL, count, sizeof(*rewrite->originals));
    for (size_t i = 0; i < count; i++)
        if (gb_graph_get_tensor(test->graph, i, &rewrite->originals[i]) == GB_SUCCESS)
            rewrite->n_originals++;
    qsort(rewrite->originals, rewrite->n_originals, sizeof(*rewrite->originals), compare_ids);
}

void gb_cli_rewrite_free(gb_rewrite *rewrite)
{
    free(rewrite->originals);
    rewrite->originals = NULL;
}

const gb_logical_tensor *gb_cli_original(const gb_rewrite *rewrite, size_t id)
{
    gb_logical_tensor key = {.id = id};
    return bsearch(&key, rewrite->originals, rewrite->n_originals, sizeof(key), compare_ids);
}

bool gb_cli_has_known_dims(const gb_logical_tensor *tensor)
{
    for (int i = 0; i < tensor->ndims; i++)
        if (tensor->dims[i] < 0)
            return false;
    return tensor->ndims >= 0;
}

gb_status gb_cli_is_given(const gb_graph *graph, size_t id, bool *given)
{
    const gb_op *producer;
    gb_op_kind kind = GB_OP_WILDCARD;
    LIB_TRY(gb_graph_get_producer(graph, id, &producer));
    if (producer)
        LIB_TRY(gb_op_get_kind(producer, &kind));
    *given = kind == GB_OP_WILDCARD;
    return GB_SUCCESS;
}

bool gb_cli_same_dims(const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    if (a->ndims != b->ndims)
        return false;
    for (int i = 0; i < a->ndims; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* Does axis a lie outside of axis b? Larger strides do; equal strides: the longer axis, then the
 * first. */
static bool lies_outside(const gb_logical_tensor *tensor, int a, int b)
{
    if (tensor->strides[a] != tensor->strides[b])
        return tensor->strides[a] > tensor->strides[b];
    if (tensor->dims[a] != tensor->dims[b])
        return tensor->dims[a] > tensor->dims[b];
    return a < b;
}

bool gb_cli_axis_order(const gb_logical_tensor *tensor, int order[GB_MAX_NDIMS])
{
    if (!gb_cli_has_known_dims(tensor) || tensor->layout_type == GB_LAYOUT_OPAQUE)
        return false;
    for (int i = 0; i < tensor->ndims; i++) {
        if (tensor->strides[i] <= 0)
            return false;
        int at = i;
        for (; at > 0 && lies_outside(tensor, i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    int64_t dense = 1;
    for (int i = tensor->ndims - 1; i >= 0; i--) {
        int64_t dim = tensor->dims[order[i]];
        if (dim > 1 && tensor->strides[order[i]] != dense)
            return false;
        if (dim > 1 && __builtin_mul_overflow(dense, dim, &dense))
            return false;
    }
    return true;
}

void gb_cli_set_dense(gb_logical_tensor *tensor, const int *order)
{
    int64_t stride = 1;
    tensor->layout_type = GB_LAYOUT_STRIDED;
    for (int i = tensor->ndims - 1; i >= 0; i--) {
        int axis = order ? order[i] : i;
        int64_t dim = tensor->dims[axis];
        tensor->strides[axis] = stride;
        /* Sizes beyond the limit are refused by shape inference. */
        if (dim > 1 && __builtin_mul_overflow(stride, dim, &stride))
            stride = INT64_MAX;
    }
}

static gb_status apply_tag(gb_logical_tensor *tensor, const char *tag)
{
    int order[GB_MAX_NDIMS];
    unsigned seen = 0;
    int length = (int)strlen(tag);
    if (tag[strspn(tag, "abcdefghijkl")]) { /* blocks */
        gb_cli_set_dense(tensor, NULL);
        LIB_TRY(gb_logical_tensor_set_layout(tensor, tag));
        return GB_SUCCESS;
    }
    if (length > GB_MAX_NDIMS)
        length = 0;
    for (int i = 0; i < length; i++) {
        order[i] = tag[i] - 'a';
        seen |= 1u << order[i];
    }
    if (length != tensor->ndims || seen != (1u << length) - 1)
        return gb_cli_fail(GB_INVALID_ARGUMENTS,
                "--in-shapes: tag %s of tensor %zu is no permutation of its %d axes", tag,
                tensor->id, tensor->ndims);
    gb_cli_set_dense(tensor, order);
    return GB_SUCCESS;
}

gb_status gb_cli_apply_layout(gb_logical_tensor *tensor, const gb_shape_override *shape)
{
    if (shape->has_strides) {
        if (shape->n_strides != tensor->ndims)
            return gb_cli_fail(GB_INVALID_ARGUMENTS,
                    "--in-shapes: tensor %zu has %d axes, but %d strides are given", tensor->id,
                    tensor->ndims, shape->n_strides);
        tensor->layout_type = GB_LAYOUT_STRIDED;
        memcpy(tensor->strides, shape->strides, sizeof(tensor->strides));
        return GB_SUCCESS;
    }
    if (*shape->tag)
        return apply_tag(tensor, shape->tag);
    gb_cli_set_dense(tensor, NULL);
    return GB_SUCCESS;
}
