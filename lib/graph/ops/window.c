/* Windows of convolutions and pools: their attributes resolved and checked, and the sizes they lead
 * to. */
#include "base/memory.h"
#include "graph/ops/op_rules.h"
#include <stdlib.h>
#include <string.h>

/* Larger attribute values are refused, so that sums of a few of them cannot overflow. */
#define LIMIT INT32_MAX

/* Copies a list attribute of n_spatial values between least and LIMIT. */
static gb_status read_list(
        const gb_op *op, gb_op_attr name, int n_spatial, int64_t least, int64_t *list)
{
    const int64_t *values;
    size_t count = gb_op_attr_s64s(op, name, &values);
    if (count != (size_t)n_spatial)
        return gb_fail(GB_INVALID_SHAPE,
                "%s: attribute \"%s\" has %zu values, the tensor has %d spatial axes",
                gb_op_label(op), gb_op_attr_name(name), count, n_spatial);
    for (int i = 0; i < n_spatial; i++) {
        if (values[i] < least || values[i] > LIMIT)
            return gb_fail(GB_INVALID_SHAPE,
                    "%s: attribute \"%s\" holds %lld, allowed: %lld to %lld", gb_op_label(op),
                    gb_op_attr_name(name), (long long)values[i], (long long)least,
                    (long long)LIMIT);
        list[i] = values[i];
    }
    return GB_SUCCESS;
}

static void window_fill(int64_t *list, int count, int64_t value)
{
    for (int i = 0; i < count; i++)
        list[i] = value;
}

/* Not set, or the default of as many ones as a tensor may have axes: all ones. */
static gb_status read_dilations(const gb_op *op, gb_window *window)
{
    const int64_t *values;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_DILATIONS, &values);
    bool is_default = !values || count == GB_MAX_NDIMS;
    for (size_t i = 0; i < count; i++)
        is_default = is_default && values[i] == 1;
    if (!is_default)
        return read_list(op, GB_ATTR_DILATIONS, window->n_spatial, 1, window->dilations);
    window_fill(window->dilations, window->n_spatial, 1);
    return GB_SUCCESS;
}

/* Entries beyond the spatial axes (the default has twelve) have no meaning; missing ones stay 0. */
static gb_status read_output_padding(const gb_op *op, gb_window *window)
{
    const int64_t *values;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_OUTPUT_PADDING, &values);
    for (size_t i = 0; i < count && i < (size_t)window->n_spatial; i++) {
        if (values[i] < 0 || values[i] > LIMIT)
            return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"output_padding\" holds %lld",
                    gb_op_label(op), (long long)values[i]);
        window->output_padding[i] = values[i];
    }
    return GB_SUCCESS;
}

static gb_status read_kernel(const gb_op *op, const int64_t *kernel, gb_window *window)
{
    if (!kernel)
        return read_list(op, GB_ATTR_KERNEL, window->n_spatial, 1, window->kernel);
    for (int i = 0; i < window->n_spatial; i++) {
        if (kernel[i] < 1 || kernel[i] > LIMIT)
            return gb_fail(GB_INVALID_SHAPE, "%s: the kernel has size %lld on spatial axis %d",
                    gb_op_label(op), (long long)kernel[i], i);
        window->kernel[i] = kernel[i];
    }
    return GB_SUCCESS;
}

static gb_status read_explicit_pads(const gb_op *op, gb_op_attr name, int n_spatial, int64_t *pads)
{
    const int64_t *values;
    if (gb_op_attr_s64s(op, name, &values) > 0)
        return read_list(op, name, n_spatial, -LIMIT, pads);
    window_fill(pads, n_spatial, 0);
    return GB_SUCCESS;
}

/* SAME_UPPER and SAME_LOWER: as many positions as strides fit into `in`. */
static void same_pads(gb_window *window, int axis, int64_t in, bool transposed, bool upper)
{
    int64_t stride = window->strides[axis];
    int64_t rest = transposed ? 0 : in % stride;
    int64_t total = gb_max_i64(0, gb_window_extent(window, axis) - (rest ? rest : stride));
    window->pads_begin[axis] = upper ? total / 2 : (total + 1) / 2;
    window->pads_end[axis] = total - window->pads_begin[axis];
}

static gb_status resolve_pads(
        const gb_op *op, const int64_t *in, bool transposed, gb_window *window)
{
    int n = window->n_spatial;
    if (gb_op_attr_is(op, GB_ATTR_AUTO_PAD, "None", true)) {
        GB_TRY(read_explicit_pads(op, GB_ATTR_PADS_BEGIN, n, window->pads_begin));
        return read_explicit_pads(op, GB_ATTR_PADS_END, n, window->pads_end);
    }
    window_fill(window->pads_begin, n, 0);
    window_fill(window->pads_end, n, 0);
    if (gb_op_attr_is(op, GB_ATTR_AUTO_PAD, "VALID", false))
        return GB_SUCCESS;
    bool upper = gb_op_attr_is(op, GB_ATTR_AUTO_PAD, "SAME_UPPER", false);
    for (int i = 0; i < n; i++)
        same_pads(window, i, in[i], transposed, upper);
    return GB_SUCCESS;
}

gb_status gb_window_get(const gb_op *op, int n_spatial, const int64_t *in, const int64_t *kernel,
        bool transposed, gb_window *window)
{
    memset(window, 0, sizeof(*window));
    window->n_spatial = n_spatial;
    window->groups = gb_op_attr_s64(op, GB_ATTR_GROUPS, 1);
    if (window->groups < 1)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"groups\" is %lld", gb_op_label(op),
                (long long)window->groups);
    GB_TRY(read_list(op, GB_ATTR_STRIDES, n_spatial, 1, window->strides));
    GB_TRY(read_dilations(op, window));
    GB_TRY(read_output_padding(op, window));
    GB_TRY(read_kernel(op, kernel, window));
    return resolve_pads(op, in, transposed, window);
}

gb_status gb_window_positions(
        const gb_op *op, const gb_window *window, int axis, int64_t in, bool round_up, int64_t *out)
{
    int64_t extent = gb_window_extent(window, axis), stride = window->strides[axis];
    int64_t pads = window->pads_begin[axis] + window->pads_end[axis], room;
    if (__builtin_add_overflow(in, pads - extent, &room))
        return gb_fail(GB_INVALID_SHAPE, "%s: size %lld on spatial axis %d is too large",
                gb_op_label(op), (long long)in, axis);
    if (room < 0 && in > 0)
        return gb_fail(GB_INVALID_SHAPE,
                "%s: a window of %lld does not fit on spatial axis %d of %lld padded by %lld",
                gb_op_label(op), (long long)extent, axis, (long long)in, (long long)pads);
    if (room < 0) /* nothing in, nothing out */
        *out = 0;
    else
        *out = room / stride + (round_up && room % stride != 0) + 1;
    return GB_SUCCESS;
}

gb_status gb_window_transposed_size(
        const gb_op *op, const gb_window *window, int axis, int64_t in, int64_t *out)
{
    int64_t pads = window->pads_begin[axis] + window->pads_end[axis], size;
    int64_t rest = gb_window_extent(window, axis) - pads + window->output_padding[axis];
    if (__builtin_mul_overflow(in - 1, window->strides[axis], &size) ||
            __builtin_add_overflow(size, rest, &size))
        return gb_fail(GB_INVALID_SHAPE, "%s: size %lld on spatial axis %d is too large",
                gb_op_label(op), (long long)in, axis);
    if (size < 0 && in > 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: pads %lld leave %lld elements of spatial axis %d",
                gb_op_label(op), (long long)pads, (long long)size, axis);
    *out = gb_max_i64(size, 0);
    return GB_SUCCESS;
}

static gb_status store_list(gb_op *op, gb_op_attr name, const int64_t *values, int count)
{
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        gb_attr *attr = &op->attrs[i];
        if (attr->name != name)
            continue;
        int64_t *copy = gb_memdup(values, (size_t)count * sizeof(*copy));
        if (!copy)
            return GB_OUT_OF_MEMORY;
        free(attr->value.s64s);
        attr->value.s64s = copy;
        attr->count = (size_t)count;
    }
    return GB_SUCCESS;
}

/* Not through the public setters: those refuse ops of a finalized graph. */
gb_status gb_window_store_pads(gb_op *op, const gb_window *window)
{
    if (gb_op_attr_is(op, GB_ATTR_AUTO_PAD, "None", true))
        return GB_SUCCESS;
    GB_TRY(store_list(op, GB_ATTR_PADS_BEGIN, window->pads_begin, window->n_spatial));
    return store_list(op, GB_ATTR_PADS_END, window->pads_end, window->n_spatial);
}
