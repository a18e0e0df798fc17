/* Concat, StaticReshape, StaticTranspose and Reorder of strided tensors: a work-item copies an
 * element. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"
#include "kernels/opencl/lower.h"
#include "kernels/plan/space.h"

#include <string.h>

/* What is copied over one space. */
typedef struct copy {
    int ndims;
    int64_t dims[GB_AXES], src_strides[GB_AXES], dst_strides[GB_AXES];
    int64_t dst_first; /* elements */
} copy;

static bool has_bytes(const gb_op *op, const char **reason)
{
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    const gb_dtype_info *info = gb_dtype_get(dst->data_type);
    bool same = info && info->bits >= 8;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        same = same && gb_op_input(op, i)->data_type == dst->data_type;
    *reason = "data type";
    return same;
}

static const char *word_of(gb_data_type type)
{
    switch (gb_data_type_bytes(type, 1)) {
    case 1:
        return "uchar";
    case 2:
        return "ushort";
    case 4:
        return "uint";
    default:
        return "ulong";
    }
}

static gb_status add_copy(gb_program *program, const gb_op *op, uint32_t input, const copy *plan)
{
    gb_cl_writer w;
    copy c = *plan;
    uint32_t src, dst;
    const char *word = word_of(gb_op_output(op, 0)->data_type);
    gb_space space = {.ndims = c.ndims};
    memcpy(space.dims, c.dims, sizeof space.dims);
    gb_space_add(&space, c.dst_strides);
    gb_space_add(&space, c.src_strides);
    gb_space_normalize(&space);
    GB_TRY(gb_cl_begin(program, "copy", &w));
    GB_TRY(gb_program_use(program, w.step, op->inputs[input], false, &src));
    GB_TRY(gb_program_use(program, w.step, op->outputs[0], true, &dst));
    w.step->work = 2 * (double)gb_tensor_count(gb_op_input(op, input)) *
                   (double)gb_data_type_bytes(gb_op_output(op, 0)->data_type, 1);
    gb_cl_print_arguments(&w);
    gb_cl_print(&w.text, "static inline void gb_element(GB_PARAMETERS");
    gb_cl_print_indices(&w, space.ndims, true);
    gb_cl_print(&w.text, ")\n{\n    ((__global %s *)m%u)[p[%u] + ", word, dst,
            gb_cl_number(&w, c.dst_first));
    gb_cl_print_offset(&w, space.ndims, c.dst_strides);
    gb_cl_print(&w.text, "] = ((__global const %s *)m%u)[", word, src);
    gb_cl_print_offset(&w, space.ndims, c.src_strides);
    gb_cl_print(&w.text, "];\n}\n");
    gb_cl_print_space(&w, space.ndims, space.dims, "gb_element", "");
    return gb_cl_writer_add(&w, GB_SUCCESS);
}

/* Row-major order of both, whatever their dims. */
static gb_status add_reshape(gb_program *program, const gb_op *op)
{
    const gb_logical_tensor *from = gb_op_input(op, 0), *to = gb_op_output(op, 0);
    gb_cl_writer w;
    uint32_t src, dst;
    int64_t count = gb_tensor_count(to);
    const char *word = word_of(to->data_type);
    GB_TRY(gb_cl_begin(program, "copy", &w));
    GB_TRY(gb_program_use(program, w.step, op->inputs[0], false, &src));
    GB_TRY(gb_program_use(program, w.step, op->outputs[0], true, &dst));
    w.step->work = 2 * (double)count * (double)gb_data_type_bytes(to->data_type, 1);
    gb_cl_print_arguments(&w);
    uint32_t from_list = gb_cl_list(&w, from->ndims, from->dims, from->strides);
    uint32_t to_list = gb_cl_list(&w, to->ndims, to->dims, to->strides);
    gb_cl_print(&w.text,
            "static inline void gb_element(GB_PARAMETERS, long i0)\n{\n"
            "    ((__global %s *)m%u)[gb_offset(p + p[%u], i0)] =\n"
            "            ((__global const %s *)m%u)[gb_offset(p + p[%u], i0)];\n}\n",
            word, dst, gb_cl_number(&w, to_list), word, src, gb_cl_number(&w, from_list));
    gb_cl_print_space(&w, 1, &count, "gb_element", "");
    return gb_cl_writer_add(&w, GB_SUCCESS);
}

/* Dims of more than one element, merged where the strides allow. */
static int merge(const gb_logical_tensor *tensor, int64_t *dims, int64_t *strides)
{
    int n = 0;
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] == 1)
            continue;
        if (n && strides[n - 1] == tensor->strides[d] * tensor->dims[d])
            dims[n - 1] *= tensor->dims[d];
        else
            dims[n++] = tensor->dims[d];
        strides[n - 1] = tensor->strides[d];
    }
    return n;
}

static gb_status lower_reshape(gb_program *program, const gb_op *op)
{
    copy c = {0};
    int64_t dims[GB_AXES];
    c.ndims = merge(gb_op_input(op, 0), c.dims, c.src_strides);
    int n = merge(gb_op_output(op, 0), dims, c.dst_strides);
    if (n != c.ndims || memcmp(dims, c.dims, sizeof *dims * (size_t)n) != 0)
        return add_reshape(program, op);
    return add_copy(program, op, 0, &c);
}

static gb_status lower_transpose(gb_program *program, const gb_op *op)
{
    const gb_logical_tensor *src = gb_op_input(op, 0), *dst = gb_op_output(op, 0);
    const int64_t *order;
    size_t n = gb_op_attr_s64s(op, GB_ATTR_ORDER, &order);
    copy c = {.ndims = dst->ndims};
    for (int d = 0; d < dst->ndims; d++) {
        int axis = src->ndims - 1 - d;
        if (n)
            axis = (size_t)d < n ? gb_normalize_axis(order[d], src->ndims) : -1;
        if (axis < 0)
            return gb_fail(
                    GB_INVALID_SHAPE, "%s: attribute \"order\" is no permutation", gb_op_label(op));
        c.dims[d] = dst->dims[d];
        c.src_strides[d] = src->strides[axis];
        c.dst_strides[d] = dst->strides[d];
    }
    return add_copy(program, op, 0, &c);
}

static gb_status lower_same(gb_program *program, const gb_op *op)
{
    const gb_logical_tensor *src = gb_op_input(op, 0), *dst = gb_op_output(op, 0);
    if (src->layout_type == GB_LAYOUT_OPAQUE || dst->layout_type == GB_LAYOUT_OPAQUE)
        return gb_fail(GB_UNIMPLEMENTED, "%s: OpenCL has no kernel for layouts in blocks",
                gb_op_label(op));
    copy c = {.ndims = dst->ndims};
    for (int d = 0; d < dst->ndims; d++) {
        c.dims[d] = dst->dims[d];
        c.src_strides[d] = src->strides[d];
        c.dst_strides[d] = dst->strides[d];
    }
    return add_copy(program, op, 0, &c);
}

static gb_status lower_movement(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    if (gb_tensor_count(gb_op_output(op, 0)) == 0)
        return GB_SUCCESS;
    if (op->kind == GB_OP_STATIC_RESHAPE)
        return lower_reshape(program, op);
    return op->kind == GB_OP_STATIC_TRANSPOSE ? lower_transpose(program, op)
                                              : lower_same(program, op);
}

static gb_status lower_concat(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 0), dst->ndims);
    int64_t position = 0;
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_logical_tensor *src = gb_op_input(op, i);
        copy c = {.ndims = src->ndims, .dst_first = position * dst->strides[axis]};
        for (int d = 0; d < src->ndims; d++) {
            c.dims[d] = src->dims[d];
            c.src_strides[d] = src->strides[d];
            c.dst_strides[d] = dst->strides[d];
        }
        position += src->dims[axis];
        if (gb_tensor_count(src) > 0)
            GB_TRY(add_copy(program, op, i, &c));
    }
    return GB_SUCCESS;
}

const gb_cl_lowering gb_cl_lowering_movement = {.supports = has_bytes, .lower = lower_movement};
const gb_cl_lowering gb_cl_lowering_concat = {.supports = has_bytes, .lower = lower_concat};
