/* Attributes: their names and types, and the values an op holds. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/attr_scratch.h"
#include "graph/ir/graph.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
        [GB_ATTR_ALPHA] = "alpha",
        [GB_ATTR_BETA] = "beta",
        [GB_ATTR_EPSILON] = "epsilon",
        [GB_ATTR_MAX] = "max",
        [GB_ATTR_MIN] = "min",
        [GB_ATTR_MOMENTUM] = "momentum",
        [GB_ATTR_SCALES] = "scales",
        [GB_ATTR_AXIS] = "axis",
        [GB_ATTR_BEGIN_NORM_AXIS] = "begin_norm_axis",
        [GB_ATTR_GROUPS] = "groups",
        [GB_ATTR_AXES] = "axes",
        [GB_ATTR_DILATIONS] = "dilations",
        [GB_ATTR_DST_SHAPE] = "dst_shape",
        [GB_ATTR_KERNEL] = "kernel",
        [GB_ATTR_ORDER] = "order",
        [GB_ATTR_OUTPUT_PADDING] = "output_padding",
        [GB_ATTR_PADS_BEGIN] = "pads_begin",
        [GB_ATTR_PADS_END] = "pads_end",
        [GB_ATTR_SHAPE] = "shape",
        [GB_ATTR_SIZES] = "sizes",
        [GB_ATTR_SRC_SHAPE] = "src_shape",
        [GB_ATTR_STRIDES] = "strides",
        [GB_ATTR_WEIGHTS_SHAPE] = "weights_shape",
        [GB_ATTR_ZPS] = "zps",
        [GB_ATTR_GROUP_SHAPE] = "group_shape",
        [GB_ATTR_EXCLUDE_PAD] = "exclude_pad",
        [GB_ATTR_KEEP_DIMS] = "keep_dims",
        [GB_ATTR_KEEP_STATS] = "keep_stats",
        [GB_ATTR_PER_CHANNEL_BROADCAST] = "per_channel_broadcast",
        [GB_ATTR_SPECIAL_ZERO] = "special_zero",
        [GB_ATTR_TRANSPOSE_A] = "transpose_a",
        [GB_ATTR_TRANSPOSE_B] = "transpose_b",
        [GB_ATTR_USE_AFFINE] = "use_affine",
        [GB_ATTR_USE_DST] = "use_dst",
        [GB_ATTR_AUTO_BROADCAST] = "auto_broadcast",
        [GB_ATTR_AUTO_PAD] = "auto_pad",
        [GB_ATTR_COORDINATE_TRANSFORMATION_MODE] = "coordinate_transformation_mode",
        [GB_ATTR_DATA_FORMAT] = "data_format",
        [GB_ATTR_MODE] = "mode",
        [GB_ATTR_QTYPE] = "qtype",
        [GB_ATTR_ROUNDING_TYPE] = "rounding_type",
        [GB_ATTR_WEIGHTS_FORMAT] = "weights_format",
        [GB_ATTR_ACCUMULATION_MODE] = "accumulation_mode",
};
enum { NAME_COUNT = sizeof names / sizeof names[0] };

static const char *name_of(gb_op_attr attr)
{
    return (size_t)attr < NAME_COUNT ? names[attr] : gb_scratch_name(attr);
}

const char *gb_op_attr_name(gb_op_attr attr)
{
    const char *name = name_of(attr);
    return name ? name : "undef";
}

gb_status gb_op_attr_parse(const char *name, gb_op_attr *attr)
{
    if (!name || !attr)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_attr_parse: NULL argument");
    for (int i = 0; i < NAME_COUNT; i++) {
        if (names[i] && strcmp(names[i], name) == 0) {
            *attr = (gb_op_attr)i;
            return GB_SUCCESS;
        }
    }
    if (gb_scratch_find(name, attr))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "unknown attribute \"%.64s\"", name);
}

gb_attr_type gb_op_attr_type(gb_op_attr attr)
{
    if (!name_of(attr))
        return GB_ATTR_TYPE_NONE;
    if (gb_attr_is_defined(attr))
        return gb_scratch_type(attr);
    if (attr >= GB_ATTR_AUTO_BROADCAST)
        return GB_ATTR_TYPE_STRING;
    if (attr >= GB_ATTR_EXCLUDE_PAD)
        return GB_ATTR_TYPE_BOOL;
    if (attr >= GB_ATTR_AXES)
        return GB_ATTR_TYPE_S64S;
    if (attr >= GB_ATTR_AXIS)
        return GB_ATTR_TYPE_S64;
    if (attr >= GB_ATTR_SCALES)
        return GB_ATTR_TYPE_F32S;
    return GB_ATTR_TYPE_F32;
}

const char *gb_attr_type_name(gb_attr_type type)
{
    static const char *const type_names[] = {
            [GB_ATTR_TYPE_NONE] = "undef",
            [GB_ATTR_TYPE_F32] = "f32",
            [GB_ATTR_TYPE_F32S] = "f32[]",
            [GB_ATTR_TYPE_S64] = "s64",
            [GB_ATTR_TYPE_S64S] = "s64[]",
            [GB_ATTR_TYPE_BOOL] = "bool",
            [GB_ATTR_TYPE_STRING] = "string",
            [GB_ATTR_TYPE_POINTER] = "pointer",
    };
    return type_names[type];
}

static void release(gb_attr *attr)
{
    switch (gb_op_attr_type(attr->name)) {
    case GB_ATTR_TYPE_F32S:
        free(attr->value.f32s);
        break;
    case GB_ATTR_TYPE_S64S:
        free(attr->value.s64s);
        break;
    case GB_ATTR_TYPE_STRING:
        free(attr->value.string);
        break;
    default:
        break;
    }
}

static gb_attr *attr_find(const gb_op *op, gb_op_attr name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        if (op->attrs[i].name == name)
            return &op->attrs[i];
    }
    return NULL;
}

const gb_attr *gb_op_find_attr(const gb_op *op, gb_op_attr name)
{
    return attr_find(op, name);
}

void gb_op_remove_attr(gb_op *op, gb_op_attr name)
{
    gb_attr *attr = attr_find(op, name);
    if (!attr)
        return;
    release(attr);
    op->n_attrs--;
    size_t behind = (size_t)(op->attrs + op->n_attrs - attr);
    memmove(attr, attr + 1, behind * sizeof *attr);
}

/* Takes what `attr` owns, also on failure. */
static gb_status attr_store(gb_op *op, gb_attr attr)
{
    gb_attr *old = attr_find(op, attr.name);
    if (old) {
        release(old);
        *old = attr;
        return GB_SUCCESS;
    }
    if (!gb_reserve(&op->attrs, &op->attr_capacity, op->n_attrs + (size_t)1, sizeof attr)) {
        release(&attr);
        return GB_OUT_OF_MEMORY;
    }
    op->attrs[op->n_attrs++] = attr;
    return GB_SUCCESS;
}

/* Common to all setters, which set attributes of one type or lists of it. An empty list needs no
 * memory. */
static gb_status check_set(const gb_op *op, gb_op_attr attr, size_t count, const void *values,
        gb_attr_type single, gb_attr_type list)
{
    if (!op || (count && !values))
        return gb_fail(GB_INVALID_ARGUMENTS, "setting an attribute: NULL argument");
    if (op->graph && op->graph->finalized) {
        return gb_fail(GB_INVALID_GRAPH, "%s: attribute \"%s\" set after the graph was finalized",
                gb_op_label(op), gb_op_attr_name(attr));
    }
    gb_attr_type type = gb_op_attr_type(attr);
    if (type != GB_ATTR_TYPE_NONE && (type == single || type == list))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "%s: attribute \"%s\" (%d) is of type %s, not %s",
            gb_op_label(op), gb_op_attr_name(attr), (int)attr, gb_attr_type_name(type),
            gb_attr_type_name(single));
}

static gb_status check_single(const gb_op *op, gb_op_attr attr, size_t count)
{
    if (count == 1)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "%s: attribute \"%s\" takes one value, not %zu",
            gb_op_label(op), gb_op_attr_name(attr), count);
}

static gb_status copy_list(const void *values, size_t count, size_t size, void **copy)
{
    size_t bytes;
    if (!gb_size_mul(count, size, &bytes)) {
        return gb_fail(GB_OUT_OF_MEMORY, "out of memory: a list of %zu values", count);
    }
    *copy = gb_memdup(values, bytes);
    return *copy ? GB_SUCCESS : GB_OUT_OF_MEMORY;
}

gb_status gb_op_set_attr_f32(gb_op *op, gb_op_attr attr, size_t count, const float *values)
{
    GB_TRY(check_set(op, attr, count, values, GB_ATTR_TYPE_F32, GB_ATTR_TYPE_F32S));
    if (gb_op_attr_type(attr) == GB_ATTR_TYPE_F32) {
        GB_TRY(check_single(op, attr, count));
        return attr_store(op, (gb_attr){attr, 1, {.f32 = values[0]}, false});
    }
    void *copy;
    GB_TRY(copy_list(values, count, sizeof *values, &copy));
    return attr_store(op, (gb_attr){attr, count, {.f32s = copy}, false});
}

gb_status gb_op_set_attr_s64(gb_op *op, gb_op_attr attr, size_t count, const int64_t *values)
{
    GB_TRY(check_set(op, attr, count, values, GB_ATTR_TYPE_S64, GB_ATTR_TYPE_S64S));
    if (gb_op_attr_type(attr) == GB_ATTR_TYPE_S64) {
        GB_TRY(check_single(op, attr, count));
        return attr_store(op, (gb_attr){attr, 1, {.s64 = values[0]}, false});
    }
    void *copy;
    GB_TRY(copy_list(values, count, sizeof *values, &copy));
    return attr_store(op, (gb_attr){attr, count, {.s64s = copy}, false});
}

gb_status gb_op_set_attr_bool(gb_op *op, gb_op_attr attr, size_t count, const uint8_t *values)
{
    GB_TRY(check_set(op, attr, count, values, GB_ATTR_TYPE_BOOL, GB_ATTR_TYPE_BOOL));
    GB_TRY(check_single(op, attr, count));
    return attr_store(op, (gb_attr){attr, 1, {.boolean = values[0] != 0}, false});
}

gb_status gb_op_set_attr_str(gb_op *op, gb_op_attr attr, const char *value, size_t length)
{
    GB_TRY(check_set(op, attr, 1, value, GB_ATTR_TYPE_STRING, GB_ATTR_TYPE_STRING));
    size_t used = strnlen(value, length);
    if (used == 0) {
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: attribute \"%s\" is an empty string",
                gb_op_label(op), gb_op_attr_name(attr));
    }
    char *copy = gb_calloc(used + 1, 1);
    if (!copy)
        return GB_OUT_OF_MEMORY;
    memcpy(copy, value, used);
    return attr_store(op, (gb_attr){attr, used, {.string = copy}, false});
}

gb_status gb_op_set_attr_pointer(gb_op *op, gb_op_attr attr, void *pointer)
{
    GB_TRY(check_set(op, attr, 1, &pointer, GB_ATTR_TYPE_POINTER, GB_ATTR_TYPE_POINTER));
    return attr_store(op, (gb_attr){attr, 1, {.pointer = pointer}, false});
}

static const void *values_of(const gb_attr *attr)
{
    switch (gb_op_attr_type(attr->name)) {
    case GB_ATTR_TYPE_F32S:
        return attr->value.f32s;
    case GB_ATTR_TYPE_S64S:
        return attr->value.s64s;
    case GB_ATTR_TYPE_STRING:
        return attr->value.string;
    default:
        return &attr->value;
    }
}

gb_status gb_op_get_attr(const gb_op *op, gb_op_attr attr, size_t *count, const void **values)
{
    if (!op || !values || !count) {
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_get_attr: NULL argument");
    }
    const gb_attr *found = attr_find(op, attr);
    *values = found ? values_of(found) : NULL;
    *count = found ? found->count : 0;
    return GB_SUCCESS;
}

gb_status gb_op_get_attrs(const gb_op *op, size_t capacity, gb_op_attr *attrs, size_t *count)
{
    if (!op)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_get_attrs: NULL argument");
    GB_TRY(gb_check_list("gb_op_get_attrs", op->n_attrs, capacity, attrs, count));
    for (uint32_t i = 0; attrs && i < op->n_attrs; i++)
        attrs[i] = op->attrs[i].name;
    return GB_SUCCESS;
}

float gb_op_attr_f32(const gb_op *op, gb_op_attr name, float otherwise)
{
    const gb_attr *attr = attr_find(op, name);
    if (attr && fabsf(attr->value.f32) < FLT_MIN)
        return copysignf(0, attr->value.f32);
    return attr ? attr->value.f32 : otherwise;
}

int64_t gb_op_attr_s64(const gb_op *op, gb_op_attr name, int64_t otherwise)
{
    const gb_attr *attr = attr_find(op, name);
    return attr ? attr->value.s64 : otherwise;
}

bool gb_op_attr_bool(const gb_op *op, gb_op_attr name, bool otherwise)
{
    const gb_attr *attr = attr_find(op, name);
    return attr ? attr->value.boolean != 0 : otherwise;
}

bool gb_op_attr_is(const gb_op *op, gb_op_attr name, const char *text, bool otherwise)
{
    const gb_attr *attr = attr_find(op, name);
    return attr ? strcmp(attr->value.string, text) == 0 : otherwise;
}

size_t gb_op_attr_s64s(const gb_op *op, gb_op_attr name, const int64_t **values)
{
    const gb_attr *attr = attr_find(op, name);
    *values = attr ? attr->value.s64s : NULL;
    return attr ? attr->count : 0;
}

size_t gb_op_attr_f32s(const gb_op *op, gb_op_attr name, const float **values)
{
    const gb_attr *attr = attr_find(op, name);
    *values = attr ? attr->value.f32s : NULL;
    return attr ? attr->count : 0;
}
