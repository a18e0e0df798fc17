/* Names of enumerations as files write them, and the way messages name ops and tensors. */
#include "base/status.h"
#include "graph/ir/graph.h"
#include "graph/ops/op_table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_COUNT = 4, LABEL_BYTES = 192 };

static const char *const property_names[] = {
        [GB_PROPERTY_UNDEF] = "undef",
        [GB_PROPERTY_VARIABLE] = "variable",
        [GB_PROPERTY_CONSTANT] = "constant",
        [GB_PROPERTY_HOST_SCALAR] = "host_scalar",
};
static const char *const fpmath_mode_names[] = {
        [GB_FPMATH_STRICT] = "strict",
        [GB_FPMATH_BF16] = "bf16",
        [GB_FPMATH_F16] = "f16",
        [GB_FPMATH_ANY] = "any",
        [GB_FPMATH_TF32] = "tf32",
};
static const char *const engine_kind_names[] = {
        [GB_ENGINE_ANY] = "any",
        [GB_ENGINE_CPU] = "cpu",
        [GB_ENGINE_GPU] = "gpu",
        [GB_ENGINE_TEST] = "test",
};
static const char *const layout_type_names[] = {
        [GB_LAYOUT_UNDEF] = "undef",
        [GB_LAYOUT_ANY] = "any",
        [GB_LAYOUT_STRIDED] = "strided",
        [GB_LAYOUT_OPAQUE] = "opaque",
};

#define COUNT(names) (sizeof(names) / sizeof(names)[0])

static const char *name_of(const char *const *names, size_t count, size_t value)
{
    return value < count ? names[value] : "undef";
}

/* The number of `name` in *value. */
static gb_status describe_parse(
        const char *const *names, size_t count, const char *what, const char *name, int *value)
{
    if (!name)
        return gb_fail(GB_INVALID_ARGUMENTS, "%s: NULL argument", what);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            *value = (int)i;
            return GB_SUCCESS;
        }
    }
    return gb_fail(GB_INVALID_ARGUMENTS, "unknown %s \"%.64s\"", what, name);
}

const char *gb_property_name(gb_property property)
{
    return name_of(property_names, COUNT(property_names), (size_t)property);
}

gb_status gb_property_parse(const char *name, gb_property *property)
{
    int value;
    if (!property)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_property_parse: NULL argument");
    GB_TRY(describe_parse(property_names, COUNT(property_names), "property", name, &value));
    *property = (gb_property)value;
    return GB_SUCCESS;
}

const char *gb_fpmath_mode_name(gb_fpmath_mode mode)
{
    return name_of(fpmath_mode_names, COUNT(fpmath_mode_names), (size_t)mode);
}

gb_status gb_fpmath_mode_parse(const char *name, gb_fpmath_mode *mode)
{
    int value;
    if (!mode)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_fpmath_mode_parse: NULL argument");
    GB_TRY(describe_parse(
            fpmath_mode_names, COUNT(fpmath_mode_names), "fpmath mode", name, &value));
    *mode = (gb_fpmath_mode)value;
    return GB_SUCCESS;
}

const char *gb_engine_kind_name(gb_engine_kind kind)
{
    return name_of(engine_kind_names, COUNT(engine_kind_names), (size_t)kind);
}

gb_status gb_engine_kind_parse(const char *name, gb_engine_kind *kind)
{
    int value;
    GB_TRY(describe_parse(
            engine_kind_names, COUNT(engine_kind_names), "engine kind", name, &value));
    *kind = (gb_engine_kind)value;
    return GB_SUCCESS;
}

const char *gb_layout_type_name(gb_layout_type layout)
{
    return name_of(layout_type_names, COUNT(layout_type_names), (size_t)layout);
}

gb_status gb_layout_type_parse(const char *name, gb_layout_type *layout)
{
    int value;
    GB_TRY(describe_parse(
            layout_type_names, COUNT(layout_type_names), "layout type", name, &value));
    *layout = (gb_layout_type)value;
    return GB_SUCCESS;
}

const char *gb_op_kind_name(gb_op_kind kind)
{
    const gb_op_definition *definition = gb_definition_find(kind);
    if (definition)
        return definition->name;
    return (unsigned)kind < GB_OP_LAST ? gb_op_schema_get(kind)->name : "undef";
}

gb_status gb_op_kind_parse(const char *name, gb_op_kind *kind)
{
    if (!name || !kind)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_op_kind_parse: NULL argument");
    for (int i = 0; i < GB_OP_LAST; i++) {
        if (strcmp(gb_op_schema_get((gb_op_kind)i)->name, name) == 0) {
            *kind = (gb_op_kind)i;
            return GB_SUCCESS;
        }
    }
    if (gb_definition_parse(name, kind))
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "unknown op kind \"%.64s\"", name);
}

static char *next_label(void)
{
    static _Thread_local char labels[LABEL_COUNT][LABEL_BYTES];
    static _Thread_local unsigned turn;
    return labels[turn++ % LABEL_COUNT];
}

const char *gb_op_label(const gb_op *op)
{
    char *label = next_label();
    snprintf(label, LABEL_BYTES, "op %zu (%s)", op->id, gb_op_kind_name(gb_op_public_kind(op)));
    return label;
}

static size_t append(char *label, size_t length, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
static size_t append(char *label, size_t length, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int added = vsnprintf(label + length, LABEL_BYTES - length, format, args);
    va_end(args);
    size_t end = length + (added > 0 ? (size_t)added : 0);
    return end < LABEL_BYTES ? end : LABEL_BYTES - 1;
}

const char *gb_tensor_label(const gb_logical_tensor *tensor)
{
    char *label = next_label();
    size_t length = append(label, 0, "%s:", gb_data_type_name(tensor->data_type));
    if (tensor->ndims < 0)
        append(label, length, "?");
    if (tensor->ndims == 0)
        append(label, length, "scalar");
    for (int d = 0; d < tensor->ndims && d < GB_MAX_NDIMS; d++) {
        if (d > 0)
            length = append(label, length, "x");
        if (tensor->dims[d] < 0) {
            length = append(label, length, "?");
        } else {
            length = append(label, length, "%" PRId64, tensor->dims[d]);
        }
    }
    return label;
}
