/* Tensors brought from one layout into another: a partition of one Reorder, compiled and run. */
#include "base/status.h"
#include "runtime/runtime.h"

enum { SRC, DST };

static gb_status check_side(const gb_tensor *tensor, const gb_stream *stream, const char *side)
{
    const gb_logical_tensor *description = &tensor->description;
    bool laid_out = description->layout_type == GB_LAYOUT_STRIDED ||
                    description->layout_type == GB_LAYOUT_OPAQUE;
    size_t bytes;
    GB_TRY(gb_logical_tensor_get_mem_size(description, &bytes));
    if (!laid_out || bytes == SIZE_MAX)
        return gb_fail(GB_INVALID_ARGUMENTS, "reorder: the layout of %s, %s, is not known", side,
                gb_tensor_label(description));
    if (bytes && !gb_tensor_memory(tensor))
        return gb_fail(GB_INVALID_ARGUMENTS, "reorder: %s has no memory", side);
    if (tensor->engine && !gb_engines_share(tensor->engine, stream->engine))
        return gb_fail(
                GB_INVALID_ARGUMENTS, "reorder: %s is of another engine than the stream", side);
    return GB_SUCCESS;
}

static gb_status reorder_check(const gb_tensor *src, const gb_tensor *dst, const gb_stream *stream)
{
    if (!src || !dst || !stream)
        return gb_fail(GB_INVALID_ARGUMENTS, "gb_tensor_reorder: NULL argument");
    const gb_logical_tensor *from = &src->description, *to = &dst->description;
    GB_TRY(check_side(src, stream, "src"));
    GB_TRY(check_side(dst, stream, "dst"));
    if (from->data_type != to->data_type || !gb_dims_equal(from, to))
        return gb_fail(GB_INVALID_ARGUMENTS, "reorder: src is %s, but dst is %s",
                gb_tensor_label(from), gb_tensor_label(to));
    if (gb_data_type_bytes(to->data_type, 2) < 2)
        return gb_fail(GB_INVALID_ARGUMENTS, "reorder: elements of type %s are no whole bytes",
                gb_data_type_name(to->data_type));
    return GB_SUCCESS;
}

static gb_status make_partition(
        const gb_logical_tensor *sides, gb_engine_kind kind, gb_partition **partition)
{
    gb_op *op;
    GB_TRY(gb_op_create(&op, 0, GB_OP_REORDER, ""));
    gb_status status = gb_op_add_input(op, &sides[SRC]);
    if (status == GB_SUCCESS)
        status = gb_op_add_output(op, &sides[DST]);
    if (status == GB_SUCCESS)
        status = gb_partition_create_unchecked(partition, op, kind);
    gb_op_destroy(op);
    return status;
}

gb_status gb_tensor_reorder(const gb_tensor *src, gb_tensor *dst, gb_stream *stream)
{
    GB_TRY(reorder_check(src, dst, stream));
    gb_logical_tensor sides[] = {src->description, dst->description};
    const gb_logical_tensor *in = &sides[SRC], *out = &sides[DST];
    gb_partition *partition;
    gb_compiled_partition *compiled = NULL;
    for (int side = SRC; side <= DST; side++) {
        sides[side].id = (size_t)side;
        sides[side].property = GB_PROPERTY_VARIABLE;
    }
    GB_TRY(make_partition(sides, stream->engine->backend->kind, &partition));
    gb_status status = gb_partition_compile(partition, &compiled, 1, &in, 1, &out, stream->engine);
    if (status == GB_SUCCESS)
        status = gb_compiled_partition_execute(compiled, stream, 1, &src, 1, &dst, NULL);
    gb_compiled_partition_destroy(compiled);
    gb_partition_destroy(partition);
    return status;
}
