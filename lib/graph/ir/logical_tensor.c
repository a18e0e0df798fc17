/* Logical tensors: making, checking, comparing and merging descriptions. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/format.h"
#include "graph/ir/graph.h"

#include <inttypes.h>
#include <string.h>

static gb_status check_ndims(int ndims, int least)
{
    if (ndims >= least && ndims <= GB_MAX_NDIMS)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "rank %d is not in %d..%d", ndims, least, GB_MAX_NDIMS);
}

static gb_status check_sizes(int ndims, const int64_t *sizes, const char *what)
{
    for (int d = 0; d < ndims; d++) {
        if (gb_is_size(sizes[d]))
            continue;
        return gb_fail(
                GB_INVALID_ARGUMENTS, "%s %d is %" PRId64 ", which is negative", what, d, sizes[d]);
    }
    return GB_SUCCESS;
}

static gb_status check_host_scalar(const gb_logical_tensor *tensor)
{
    if (tensor->property != GB_PROPERTY_HOST_SCALAR)
        return GB_SUCCESS;
    gb_data_type type = tensor->data_type;
    if (tensor->ndims == 0 && (type == GB_F32 || type == GB_S32 || type == GB_S64)) {
        return GB_SUCCESS;
    }
    return gb_fail(GB_INVALID_ARGUMENTS, "a host scalar must be of rank 0 and f32, s32 or s64");
}

static gb_status check_enums(const gb_logical_tensor *tensor)
{
    if (tensor->data_type != GB_UNDEF && !gb_dtype_get(tensor->data_type)) {
        return gb_fail(GB_INVALID_ARGUMENTS, "data type %d does not exist", (int)tensor->data_type);
    }
    if ((unsigned)tensor->layout_type > GB_LAYOUT_OPAQUE) {
        return gb_fail(
                GB_INVALID_ARGUMENTS, "layout type %d does not exist", (int)tensor->layout_type);
    }
    if ((unsigned)tensor->property > GB_PROPERTY_HOST_SCALAR) {
        return gb_fail(GB_INVALID_ARGUMENTS, "property %d does not exist", (int)tensor->property);
    }
    return GB_SUCCESS;
}

/* Blocks are made of elements of whole bytes. */
static gb_status check_format(const gb_logical_tensor *tensor)
{
    if (tensor->layout_type != GB_LAYOUT_OPAQUE)
        return GB_SUCCESS;
    const gb_format *format = gb_format_find(tensor->layout_id);
    if (!format)
        return gb_fail(GB_INVALID_ARGUMENTS, "layout %zu does not exist", tensor->layout_id);
    if (tensor->ndims >= 0 && tensor->ndims != format->ndims)
        return gb_fail(GB_INVALID_ARGUMENTS, "layout %s is one of rank %d, not %d", format->text,
                format->ndims, tensor->ndims);
    const gb_dtype_info *type = gb_dtype_get(tensor->data_type);
    if (type && type->bits < 8)
        return gb_fail(GB_INVALID_ARGUMENTS, "elements of type %s cannot lie in layout %s",
                type->name, format->text);
    return GB_SUCCESS;
}

static gb_status logical_tensor_check_all(const gb_logical_tensor *tensor)
{
    GB_TRY(check_ndims(tensor->ndims, GB_UNKNOWN_NDIMS));
    GB_TRY(check_enums(tensor));
    GB_TRY(check_sizes(tensor->ndims, tensor->dims, "dim"));
    if (tensor->layout_type == GB_LAYOUT_STRIDED) {
        GB_TRY(check_sizes(tensor->ndims, tensor->strides, "stride"));
    }
    GB_TRY(check_format(tensor));
    return check_host_scalar(tensor);
}

static gb_status check_description(const gb_logical_tensor *tensor)
{
    gb_status status = logical_tensor_check_all(tensor);
    return status == GB_SUCCESS ? status : gb_fail_prefix(status, "tensor %zu", tensor->id);
}

gb_status gb_logical_tensor_check(const gb_logical_tensor *tensor)
{
    if (tensor->id == GB_NO_ID) {
        return gb_fail(GB_INVALID_ARGUMENTS, "tensor %zu: the id is the reserved one", tensor->id);
    }
    return check_description(tensor);
}

static void fill_unknown(int64_t sizes[GB_MAX_NDIMS])
{
    for (int d = 0; d < GB_MAX_NDIMS; d++)
        sizes[d] = GB_UNKNOWN_DIM;
}

/* Starts a description; ndims is in range. */
static gb_logical_tensor logical_tensor_describe(
        size_t id, gb_data_type type, int ndims, gb_layout_type layout, gb_property property)
{
    gb_logical_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.id = id;
    tensor.ndims = ndims;
    tensor.data_type = type;
    tensor.layout_type = layout;
    tensor.property = property;
    if (ndims != 0) {
        fill_unknown(tensor.dims);
        fill_unknown(tensor.strides);
    }
    return tensor;
}

static void normalize_sizes(int ndims, int64_t *sizes)
{
    for (int d = 0; d < ndims; d++)
        if (sizes[d] < 0)
            sizes[d] = GB_UNKNOWN_DIM;
}

void gb_logical_tensor_normalize(gb_logical_tensor *tensor)
{
    normalize_sizes(tensor->ndims, tensor->dims);
    if (tensor->layout_type == GB_LAYOUT_STRIDED)
        normalize_sizes(tensor->ndims, tensor->strides);
}

static gb_status deliver(gb_logical_tensor *tensor, const gb_logical_tensor *made)
{
    GB_TRY(check_description(made));
    *tensor = *made;
    gb_logical_tensor_normalize(tensor);
    return GB_SUCCESS;
}

gb_status gb_logical_tensor_init(gb_logical_tensor *tensor, size_t id, gb_data_type type, int ndims,
        gb_layout_type layout, gb_property property)
{
    if (!tensor)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_logical_tensor_init: NULL argument");
    GB_TRY(check_ndims(ndims, GB_UNKNOWN_NDIMS));
    gb_logical_tensor made = logical_tensor_describe(id, type, ndims, layout, property);
    return deliver(tensor, &made);
}

/* Row-major strides; a dim of 0 counts as 1. Unknown when a dim is, GB_INVALID_ARGUMENTS when they
 * do not fit. */
static gb_status fill_dense_strides(gb_logical_tensor *tensor)
{
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] < 0)
            return GB_SUCCESS;
    }
    int64_t stride = 1;
    for (int d = tensor->ndims - 1; d >= 0; d--) {
        tensor->strides[d] = stride;
        if (__builtin_mul_overflow(stride, gb_max_i64(tensor->dims[d], 1), &stride)) {
            return gb_fail(GB_INVALID_ARGUMENTS, "tensor %zu (%s): the size does not fit 64 bits",
                    tensor->id, gb_tensor_label(tensor));
        }
    }
    return GB_SUCCESS;
}

gb_status gb_logical_tensor_init_with_dims(gb_logical_tensor *tensor, size_t id, gb_data_type type,
        int ndims, const int64_t *dims, gb_layout_type layout, gb_property property)
{
    if (!tensor || (!dims && ndims > 0)) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_logical_tensor_init_with_dims: NULL argument");
    }
    GB_TRY(check_ndims(ndims, 0));
    gb_logical_tensor made = logical_tensor_describe(id, type, ndims, layout, property);
    for (int d = 0; d < ndims; d++)
        made.dims[d] = dims[d];
    if (layout == GB_LAYOUT_STRIDED)
        GB_TRY(fill_dense_strides(&made));
    return deliver(tensor, &made);
}

gb_status gb_logical_tensor_init_with_strides(gb_logical_tensor *tensor, size_t id,
        gb_data_type type, int ndims, const int64_t *dims, const int64_t *strides,
        gb_property property)
{
    if (!tensor || ((!dims || !strides) && ndims > 0)) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_logical_tensor_init_with_strides: NULL argument");
    }
    GB_TRY(check_ndims(ndims, 0));
    gb_logical_tensor made = logical_tensor_describe(id, type, ndims, GB_LAYOUT_STRIDED, property);
    for (int d = 0; d < ndims; d++) {
        made.dims[d] = dims[d];
        made.strides[d] = strides[d];
    }
    return deliver(tensor, &made);
}

/* With the padding of blocks. */
static int64_t opaque_extent(const gb_logical_tensor *tensor)
{
    int64_t count;
    return gb_format_count(gb_format_find(tensor->layout_id), tensor->dims, &count) ? count : -2;
}

/* Elements from the first to the last in memory, both counted: 1 + the sum of (dim - 1) x stride,
 * whatever the order of the axes; -1 when something is unknown, -2 when it does not fit. */
static int64_t extent_of(const gb_logical_tensor *tensor)
{
    int64_t extent = 1;
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] < 0)
            return -1;
        if (tensor->dims[d] == 0)
            extent = 0;
    }
    if (tensor->layout_type == GB_LAYOUT_OPAQUE && tensor->ndims > 0)
        return opaque_extent(tensor);
    for (int d = 0; d < tensor->ndims && extent > 0; d++) {
        int64_t reach, stride = tensor->dims[d] == 1 ? 1 : tensor->strides[d];
        if (stride < 0)
            return -1;
        if (__builtin_mul_overflow(tensor->dims[d] - 1, stride, &reach) ||
                __builtin_add_overflow(extent, reach, &extent))
            return -2;
    }
    return extent;
}

gb_status gb_logical_tensor_get_mem_size(const gb_logical_tensor *tensor, size_t *bytes)
{
    if (!tensor || !bytes) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_logical_tensor_get_mem_size: NULL argument");
    }
    GB_TRY(check_description(tensor));
    int64_t extent = extent_of(tensor);
    const gb_dtype_info *info = gb_dtype_get(tensor->data_type);
    size_t bits;
    if (extent == -2 || (extent > 0 && info && !gb_size_mul((size_t)extent, info->bits, &bits))) {
        return gb_fail(GB_INVALID_ARGUMENTS, "tensor %zu (%s): the size does not fit 64 bits",
                tensor->id, gb_tensor_label(tensor));
    }
    bool laid_out =
            tensor->layout_type == GB_LAYOUT_STRIDED || tensor->layout_type == GB_LAYOUT_OPAQUE;
    bool known = laid_out && tensor->ndims >= 0 && extent >= 0;
    *bytes = known ? gb_data_type_bytes(tensor->data_type, (size_t)extent) : SIZE_MAX;
    return GB_SUCCESS;
}

gb_status gb_logical_tensor_set_layout(gb_logical_tensor *tensor, const char *layout)
{
    const gb_format *format;
    if (!tensor || !layout)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_logical_tensor_set_layout: NULL argument");
    GB_TRY(check_description(tensor));
    GB_TRY(gb_format_parse(layout, &format));
    gb_logical_tensor made = *tensor;
    bool known = tensor->ndims == format->ndims;
    for (int d = 0; known && d < tensor->ndims; d++)
        known = tensor->dims[d] >= 0;
    if (!known)
        return gb_fail(GB_INVALID_ARGUMENTS, "tensor %zu (%s): layout %s needs %d known dims",
                tensor->id, gb_tensor_label(tensor), layout, format->ndims);
    int64_t count;
    if (!gb_format_count(format, tensor->dims, &count))
        return gb_fail(GB_INVALID_ARGUMENTS, "tensor %zu (%s): the size does not fit 64 bits",
                tensor->id, gb_tensor_label(tensor));
    gb_format_apply(format, &made);
    return deliver(tensor, &made);
}

const char *gb_logical_tensor_get_layout(const gb_logical_tensor *tensor)
{
    if (!tensor)
        return "undef";
    const gb_format *format =
            tensor->layout_type == GB_LAYOUT_OPAQUE ? gb_format_find(tensor->layout_id) : NULL;
    return format ? format->text : gb_layout_type_name(tensor->layout_type);
}

static bool equal_sizes(int ndims, const int64_t *a, const int64_t *b)
{
    for (int d = 0; d < ndims; d++)
        if (a[d] != b[d] && (a[d] >= 0 || b[d] >= 0))
            return false;
    return true;
}

/* Type, shape and place of the elements. */
static bool equal_layouts(const gb_logical_tensor *a, const gb_logical_tensor *b)
{
    return a->data_type == b->data_type && a->ndims == b->ndims &&
           equal_sizes(a->ndims, a->dims, b->dims) && a->layout_type == b->layout_type &&
           (a->layout_type != GB_LAYOUT_STRIDED || equal_sizes(a->ndims, a->strides, b->strides)) &&
           (a->layout_type != GB_LAYOUT_OPAQUE || a->layout_id == b->layout_id);
}

gb_status gb_logical_tensor_is_equal(
        const gb_logical_tensor *a, const gb_logical_tensor *b, uint8_t *equal)
{
    if (!a || !b || !equal) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_logical_tensor_is_equal: NULL argument");
    }
    GB_TRY(check_ndims(a->ndims, GB_UNKNOWN_NDIMS));
    *equal = a->id == b->id && a->property == b->property && equal_layouts(a, b);
    return GB_SUCCESS;
}

gb_status gb_logical_tensor_has_same_layout_and_dtype(
        const gb_logical_tensor *a, const gb_logical_tensor *b, uint8_t *same)
{
    if (!a || !b || !same)
        return gb_fail(
                GB_INVALID_ARGUMENTS, "gb_logical_tensor_has_same_layout_and_dtype: NULL argument");
    GB_TRY(check_description(a));
    GB_TRY(check_description(b));
    *same = equal_layouts(a, b);
    return GB_SUCCESS;
}

static bool dims_known(const gb_logical_tensor *tensor)
{
    for (int d = 0; d < tensor->ndims; d++)
        if (tensor->dims[d] < 0)
            return false;
    return tensor->ndims >= 0;
}

gb_status gb_logical_tensor_get_element_count(const gb_logical_tensor *tensor, size_t *count)
{
    if (!tensor || !count)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_logical_tensor_get_element_count: NULL argument");
    GB_TRY(check_description(tensor));
    size_t product = 1;
    bool fits = true, empty = false;
    for (int d = 0; d < tensor->ndims; d++) {
        empty |= tensor->dims[d] == 0;
        if (tensor->dims[d] > 0)
            fits = gb_size_mul(product, (size_t)tensor->dims[d], &product) && fits;
    }
    if (!dims_known(tensor))
        product = SIZE_MAX;
    else if (empty)
        product = 0;
    else if (!fits)
        return gb_fail(GB_INVALID_ARGUMENTS, "tensor %zu (%s): the size does not fit 64 bits",
                tensor->id, gb_tensor_label(tensor));
    *count = product;
    return GB_SUCCESS;
}

/* Axes of a strided tensor from the outermost in: by falling strides, of equal ones the first. */
static void order_by_strides(const gb_logical_tensor *tensor, int order[GB_MAX_NDIMS])
{
    for (int d = 0; d < tensor->ndims; d++) {
        int place = d;
        for (; place > 0 && tensor->strides[order[place - 1]] < tensor->strides[d]; place--)
            order[place] = order[place - 1];
        order[place] = d;
    }
}

gb_status gb_logical_tensor_get_physical_dims(
        const gb_logical_tensor *tensor, int *ndims, int64_t *dims)
{
    if (!tensor || !ndims || !dims)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_logical_tensor_get_physical_dims: NULL argument");
    GB_TRY(check_description(tensor));
    bool opaque = tensor->layout_type == GB_LAYOUT_OPAQUE;
    bool known = dims_known(tensor) && (opaque || tensor->layout_type == GB_LAYOUT_STRIDED);
    for (int d = 0; known && !opaque && d < tensor->ndims; d++)
        known = tensor->strides[d] >= 0;
    if (!known)
        return gb_fail(GB_INVALID_ARGUMENTS,
                "tensor %zu (%s): its dims or its layout are not known yet", tensor->id,
                gb_tensor_label(tensor));
    if (opaque) {
        *ndims = gb_format_dims(gb_format_find(tensor->layout_id), tensor->dims, dims);
        return GB_SUCCESS;
    }
    int order[GB_MAX_NDIMS];
    order_by_strides(tensor, order);
    *ndims = tensor->ndims;
    for (int d = 0; d < tensor->ndims; d++)
        dims[d] = tensor->dims[order[d]];
    return GB_SUCCESS;
}

/* Completes the unknown entries of `known`; false when two known ones differ. */
static bool merge_sizes(int ndims, int64_t *known, const int64_t *other)
{
    for (int d = 0; d < ndims; d++) {
        if (known[d] == GB_UNKNOWN_DIM)
            known[d] = other[d];
        if (other[d] != GB_UNKNOWN_DIM && other[d] != known[d])
            return false;
    }
    return true;
}

static bool merge_shape(gb_logical_tensor *known, const gb_logical_tensor *other)
{
    if (other->ndims < 0)
        return true;
    if (known->ndims < 0) {
        known->ndims = other->ndims;
        memcpy(known->dims, other->dims, sizeof known->dims);
        fill_unknown(known->strides);
        return true;
    }
    return known->ndims == other->ndims && merge_sizes(known->ndims, known->dims, other->dims);
}

static bool merge_layout(gb_logical_tensor *known, const gb_logical_tensor *other)
{
    if (other->layout_type == GB_LAYOUT_UNDEF)
        return true;
    if (known->layout_type == GB_LAYOUT_UNDEF) {
        known->layout_type = other->layout_type;
        known->layout_id = other->layout_id;
        if (other->ndims >= 0) /* without a rank they mean nothing */
            memcpy(known->strides, other->strides, sizeof known->strides);
        else
            for (int d = 0; d < GB_MAX_NDIMS; d++)
                known->strides[d] = GB_UNKNOWN_DIM;
        return true;
    }
    if (known->layout_type != other->layout_type)
        return false;
    if (known->layout_type == GB_LAYOUT_OPAQUE)
        return known->layout_id == other->layout_id;
    return known->layout_type != GB_LAYOUT_STRIDED || other->ndims < 0 ||
           merge_sizes(known->ndims, known->strides, other->strides);
}

static bool merge_property(gb_logical_tensor *known, const gb_logical_tensor *other)
{
    gb_property mine = known->property ? known->property : GB_PROPERTY_VARIABLE;
    gb_property theirs = other->property ? other->property : GB_PROPERTY_VARIABLE;
    if (!known->property)
        known->property = other->property;
    return mine == theirs;
}

bool gb_logical_tensor_merge(gb_logical_tensor *known, const gb_logical_tensor *other)
{
    gb_logical_tensor merged = *known;
    if (!merged.data_type)
        merged.data_type = other->data_type;
    if (other->data_type && other->data_type != merged.data_type)
        return false;
    if (!merge_property(&merged, other))
        return false;
    if (!merge_shape(&merged, other) || !merge_layout(&merged, other))
        return false;
    *known = merged;
    return true;
}
