/* Descriptions given to a compiled partition against those that it was compiled with. */
#include "base/status.h"
#include "runtime/compiled.h"

#include <inttypes.h>
#include <stdio.h>

/* "3", or "unknown". */
static const char *size_text(int64_t size, char text[24])
{
    if (size < 0)
        return "unknown";
    snprintf(text, 24, "%" PRId64, size);
    return text;
}

static gb_status wrong_size(const char *what, int axis, int64_t given, int64_t compiled)
{
    char have[24], want[24];
    return gb_fail(GB_INVALID_ARGUMENTS, "%s %d is %s, compiled for %s", what, axis,
            size_text(given, have), compiled < 0 ? "any known one" : size_text(compiled, want));
}

static bool check_fits(int64_t given, int64_t compiled, bool may_be_open)
{
    return given < 0 ? may_be_open : compiled < 0 || given == compiled;
}

/* Strides along axes of one element say nothing, and none do where there are no elements. */
static gb_status check_strides(
        const gb_logical_tensor *given, const gb_logical_tensor *compiled, bool may_be_open)
{
    for (int d = 0; d < given->ndims; d++)
        if (given->dims[d] == 0)
            return GB_SUCCESS;
    for (int d = 0; d < given->ndims; d++)
        if (given->dims[d] != 1 &&
                !check_fits(given->strides[d], compiled->strides[d], may_be_open))
            return wrong_size("stride", d, given->strides[d], compiled->strides[d]);
    return GB_SUCCESS;
}

static gb_status check_shape(
        const gb_logical_tensor *given, const gb_logical_tensor *compiled, bool may_be_open)
{
    if (given->ndims < 0)
        return may_be_open ? GB_SUCCESS : gb_fail(GB_INVALID_ARGUMENTS, "the rank is unknown");
    if (compiled->ndims >= 0 && given->ndims != compiled->ndims)
        return gb_fail(GB_INVALID_ARGUMENTS, "the rank is %d, compiled for %d", given->ndims,
                compiled->ndims);
    for (int d = 0; d < given->ndims; d++)
        if (!check_fits(given->dims[d], compiled->dims[d], may_be_open))
            return wrong_size("dim", d, given->dims[d], compiled->dims[d]);
    if (given->layout_type == GB_LAYOUT_STRIDED)
        return check_strides(given, compiled, may_be_open);
    if (given->layout_id == compiled->layout_id)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "the layout is %s, compiled for %s",
            gb_logical_tensor_get_layout(given), gb_logical_tensor_get_layout(compiled));
}

/* A promise that compiling relied on must hold; one it did not ask for does no harm. */
static gb_status check_property(const gb_logical_tensor *given, const gb_logical_tensor *compiled)
{
    bool is_scalar = given->property == GB_PROPERTY_HOST_SCALAR;
    bool want_scalar = compiled->property == GB_PROPERTY_HOST_SCALAR;
    bool broken =
            compiled->property == GB_PROPERTY_CONSTANT && given->property != GB_PROPERTY_CONSTANT;
    if (is_scalar == want_scalar && !broken)
        return GB_SUCCESS;
    return gb_fail(GB_INVALID_ARGUMENTS, "the property is %s, compiled for %s",
            gb_property_name(given->property), gb_property_name(compiled->property));
}

static gb_status check_all(
        const gb_logical_tensor *given, const gb_logical_tensor *compiled, bool may_be_open)
{
    if (given->data_type != compiled->data_type)
        return gb_fail(GB_INVALID_ARGUMENTS, "the type is %s, compiled for %s",
                gb_data_type_name(given->data_type), gb_data_type_name(compiled->data_type));
    GB_TRY(check_property(given, compiled));
    if (given->layout_type != compiled->layout_type)
        return gb_fail(GB_INVALID_ARGUMENTS, "the layout is %s, compiled for %s",
                gb_layout_type_name(given->layout_type),
                gb_layout_type_name(compiled->layout_type));
    return check_shape(given, compiled, may_be_open);
}

gb_status gb_check_given(const gb_logical_tensor *given, const gb_logical_tensor *compiled,
        bool may_be_open, const char *side, uint32_t position)
{
    gb_status status = check_all(given, compiled, may_be_open);
    return status == GB_SUCCESS
                   ? status
                   : gb_fail_prefix(status, "%s %u (tensor %zu)", side, position, compiled->id);
}

static gb_status check_side(const gb_logical_tensor *compiled, uint32_t n,
        const gb_tensor *const *tensors, bool is_input)
{
    const char *side = is_input ? "execute: input" : "execute: output";
    for (uint32_t i = 0; i < n; i++) {
        if (compiled[i].id == GB_NO_ID)
            continue; /* no port */
        if (!tensors[i])
            return gb_fail(
                    GB_INVALID_ARGUMENTS, "%s %u (tensor %zu) is NULL", side, i, compiled[i].id);
        bool deferred = tensors[i]->deferred && !is_input;
        const gb_logical_tensor *given = deferred ? &tensors[i]->open : &tensors[i]->description;
        GB_TRY(gb_check_given(given, &compiled[i], deferred, side, i));
    }
    return GB_SUCCESS;
}

gb_status gb_check_tensors(const gb_compiled_partition *compiled, const gb_tensor *const *inputs,
        gb_tensor *const *outputs)
{
    GB_TRY(check_side(compiled->inputs, compiled->n_inputs, inputs, true));
    return check_side(
            compiled->outputs, compiled->n_outputs, (const gb_tensor *const *)outputs, false);
}
