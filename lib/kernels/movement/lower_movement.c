/* Lowers Concat, StaticReshape and StaticTranspose to strided copies. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/movement/copy_step.h"

#include <stdlib.h>
#include <string.h>

bool gb_has_bytes(const gb_op *op, const char **reason)
{
    gb_data_type type = gb_op_output(op, 0)->data_type;
    const gb_dtype_info *info = gb_dtype_get(type);
    bool same = info && info->bits >= 8;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        same = same && gb_op_input(op, i)->data_type == type;
    if (!same)
        *reason = "data type";
    return same;
}

static size_t element_bytes(const gb_logical_tensor *tensor)
{
    return gb_data_type_bytes(tensor->data_type, 1);
}

/* Concat --------------------------------------------------------------------------------------- */

static gb_status plan_slices(
        gb_program *program, const gb_op *op, int axis, gb_step *step, gb_copy_step *params)
{
    const gb_logical_tensor *dst = gb_op_output(op, 0);
    int64_t position = 0;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const gb_logical_tensor *src = gb_op_input(op, i);
        gb_copy_task *task = &params->tasks[i];
        size_t element = element_bytes(dst);
        gb_copy_plan_init(&task->plan, src->ndims, src->dims, src->strides, dst->strides, element);
        GB_TRY(gb_program_use(program, step, op->inputs[i], false, &task->src_slot));
        GB_TRY(gb_program_use(program, step, op->outputs[0], true, &task->dst_slot));
        task->dst_offset = position * dst->strides[axis] * (int64_t)element;
        position += src->dims[axis];
        params->in_step =
                (i == 0 || params->in_step) && task->plan.items == params->tasks[0].plan.items;
    }
    return GB_SUCCESS;
}

static gb_status lower_concat(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 0), gb_op_output(op, 0)->ndims);
    if (axis < 0)
        return gb_fail(GB_INVALID_SHAPE, "%s: attribute \"axis\" out of range", gb_op_label(op));
    gb_step *step;
    GB_TRY(gb_program_begin(program, "concat", &step));
    gb_copy_step *params = gb_copy_step_make(step, op->n_inputs);
    if (!params)
        return GB_OUT_OF_MEMORY;
    GB_TRY(plan_slices(program, op, axis, step, params));
    return gb_copy_step_add(program, step, params);
}

const gb_lowering gb_lowering_concat = {
        .name = "concat", .supports = gb_has_bytes, .lower = lower_concat};

/* StaticReshape, StaticTranspose --------------------------------------------------------------- */

/* One side of a reshape: dims that can be merged are. */
static int merge_dims(const gb_logical_tensor *tensor, int64_t *dims, int64_t *strides)
{
    int n = 0;
    for (int d = 0; d < tensor->ndims; d++) {
        if (tensor->dims[d] == 1)
            continue;
        if (n && strides[n - 1] == tensor->strides[d] * tensor->dims[d]) {
            dims[n - 1] *= tensor->dims[d];
        } else {
            dims[n++] = tensor->dims[d];
        }
        strides[n - 1] = tensor->strides[d];
    }
    return n;
}

typedef struct reshape_box {
    int ndims;
    int64_t dims[GB_AXES], src_strides[GB_AXES], dst_strides[GB_AXES];
} reshape_box;

/* Splits both shapes into the same dims; false when a dim of one straddles dims of the other. Dims
 * come innermost first, which the copy does not mind. */
static bool common_dims(
        const gb_logical_tensor *src, const gb_logical_tensor *dst, reshape_box *box)
{
    int64_t a_dims[GB_AXES], a_strides[GB_AXES];
    int64_t b_dims[GB_AXES], b_strides[GB_AXES];
    int a = merge_dims(src, a_dims, a_strides) - 1, b = merge_dims(dst, b_dims, b_strides) - 1;
    box->ndims = 0;
    while (a >= 0 && b >= 0) {
        int64_t size = gb_min_i64(a_dims[a], b_dims[b]);
        if (size == 0 || a_dims[a] % size || b_dims[b] % size)
            return false;
        if (box->ndims == GB_AXES)
            return false;
        box->dims[box->ndims] = size;
        box->src_strides[box->ndims] = a_strides[a];
        box->dst_strides[box->ndims++] = b_strides[b];
        a_dims[a] /= size, a_strides[a] *= size;
        b_dims[b] /= size, b_strides[b] *= size;
        if (a_dims[a] == 1)
            a--;
        if (b_dims[b] == 1)
            b--;
    }
    return true;
}

static gb_status plan_reshape(const gb_logical_tensor *src, const gb_logical_tensor *dst,
        gb_step *step, gb_copy_step *params)
{
    size_t element = element_bytes(dst);
    gb_copy_task *first = &params->tasks[0], *second = &params->tasks[1];
    reshape_box box;
    params->n_tasks = 1;
    if (gb_tensor_count(dst) == 0) {
        gb_copy_plan_init(&first->plan, 1, &(int64_t){0}, &(int64_t){1}, &(int64_t){1}, element);
        return GB_SUCCESS;
    }
    if (common_dims(src, dst, &box)) {
        gb_copy_plan_init(
                &first->plan, box.ndims, box.dims, box.src_strides, box.dst_strides, element);
        return GB_SUCCESS;
    }
    int64_t strides[GB_AXES];
    if (!gb_size_mul((size_t)gb_tensor_count(src), element, &step->shared_scratch))
        return gb_fail(GB_INVALID_SHAPE, "%s: too large", gb_tensor_label(src));
    params->n_tasks = 2;
    step->n_phases = 2;
    second->phase = 1;
    second->dst_slot = first->dst_slot;
    second->src_slot = first->dst_slot = GB_COPY_SCRATCH;
    gb_dense_strides(src->ndims, src->dims, strides);
    gb_copy_plan_init(&first->plan, src->ndims, src->dims, src->strides, strides, element);
    gb_dense_strides(dst->ndims, dst->dims, strides);
    gb_copy_plan_init(&second->plan, dst->ndims, dst->dims, strides, dst->strides, element);
    return GB_SUCCESS;
}

static gb_status plan_transpose(const gb_op *op, gb_copy_task *task)
{
    const gb_logical_tensor *src = gb_op_input(op, 0), *dst = gb_op_output(op, 0);
    const int64_t *order;
    size_t n = gb_op_attr_s64s(op, GB_ATTR_ORDER, &order);
    int64_t strides[GB_AXES] = {0};
    for (int d = 0; d < dst->ndims; d++) {
        int axis = src->ndims - 1 - d;
        if (n)
            axis = (size_t)d < n ? gb_normalize_axis(order[d], src->ndims) : -1;
        if (axis < 0)
            return gb_fail(
                    GB_INVALID_SHAPE, "%s: attribute \"order\" is no permutation", gb_op_label(op));
        strides[d] = src->strides[axis];
    }
    gb_copy_plan_init(
            &task->plan, dst->ndims, dst->dims, strides, dst->strides, element_bytes(dst));
    return GB_SUCCESS;
}

static gb_status plan_movement(
        gb_program *program, const gb_op *op, gb_step *step, gb_copy_step *params)
{
    gb_copy_task *task = &params->tasks[0];
    const gb_logical_tensor *src = gb_op_input(op, 0), *dst = gb_op_output(op, 0);
    GB_TRY(gb_program_use(program, step, op->inputs[0], false, &task->src_slot));
    GB_TRY(gb_program_use(program, step, op->outputs[0], true, &task->dst_slot));
    if (op->kind == GB_OP_STATIC_RESHAPE)
        return plan_reshape(src, dst, step, params);
    params->n_tasks = 1;
    return plan_transpose(op, task);
}

static gb_status lower_movement(gb_program *program, const gb_group *group)
{
    const gb_op *op = gb_program_graph(program)->ops[group->anchor];
    gb_step *step;
    GB_TRY(gb_program_begin(
            program, op->kind == GB_OP_STATIC_TRANSPOSE ? "transpose" : "copy", &step));
    gb_copy_step *params = gb_copy_step_make(step, 2);
    if (!params)
        return GB_OUT_OF_MEMORY;
    GB_TRY(plan_movement(program, op, step, params));
    return gb_copy_step_add(program, step, params);
}

const gb_lowering gb_lowering_movement = {
        .name = "copy", .supports = gb_has_bytes, .lower = lower_movement};
