/* Reads the ops in front of a kernel that dequantizes its operands. */
#include "kernels/plan/dequantization.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "graph/ops/op_table.h"

#include <stdlib.h>

enum { CODES, SCALES, ZPS };

static bool dequantizes(const gb_op *op)
{
    return op->kind == GB_OP_DEQUANTIZE || op->kind == GB_OP_DYNAMIC_DEQUANTIZE;
}

/* A cast of floats that were quantized values may round or not: what comes behind sees either. */
bool gb_dequantization_takes(const gb_op *op)
{
    int64_t groups;
    if (dequantizes(op))
        return gb_quantize_groups(op, &groups) < 0;
    if (op->kind != GB_OP_TYPE_CAST || !op->graph)
        return false;
    uint32_t producer = op->graph->values[op->inputs[0]].producer;
    return producer != GB_NONE && dequantizes(op->graph->ops[producer]);
}

static bool is_taken(const gb_group *group, uint32_t op)
{
    for (uint32_t i = 0; i < group->n_prologue; i++)
        if (group->prologue[i] == op)
            return true;
    return false;
}

/* Parameters ----------------------------------------------------------------------------------- */

static void read_attribute(const gb_op *op, gb_op_attr name, gb_dequantization_parameter *parameter)
{
    const gb_logical_tensor *codes = gb_op_input(op, CODES);
    const float *scales;
    const int64_t *zps;
    size_t count = name == GB_ATTR_ZPS ? gb_op_attr_s64s(op, name, &zps)
                                       : gb_op_attr_f32s(op, name, &scales);
    if (count == 0)
        return;
    parameter->type = GB_F32;
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 1), codes->ndims);
    if (count > 1 && axis >= 0)
        parameter->strides[axis] = 1;
}

static void read_tensor(const gb_op *op, uint32_t input, gb_dequantization_parameter *parameter)
{
    if (input >= op->n_inputs)
        return;
    const gb_logical_tensor *codes = gb_op_input(op, CODES), *tensor = gb_op_input(op, input);
    parameter->type = tensor->data_type;
    parameter->value = op->inputs[input];
    if (gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false)) {
        for (int d = 0; d < tensor->ndims; d++)
            parameter->strides[d] = tensor->dims[d] == 1 ? 0 : tensor->strides[d];
        return;
    }
    int axis = gb_normalize_axis(gb_op_attr_s64(op, GB_ATTR_AXIS, 1), codes->ndims);
    if (gb_tensor_count(tensor) > 1 && axis >= 0)
        parameter->strides[axis] = tensor->strides[tensor->ndims - 1];
}

static void read_groups(const gb_op *op, int64_t *groups)
{
    const int64_t *shape = NULL;
    if (!gb_op_attr_is(op, GB_ATTR_QTYPE, "per_group", false))
        return;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_GROUP_SHAPE, &shape);
    for (size_t d = 0; d < count && d < GB_AXES; d++)
        groups[d] = shape[d];
}

bool gb_per_tensor_quantization_read(const gb_op *op, gb_per_tensor_quantization *codes)
{
    enum { EXACT = 1 << 23 };
    const float *scales = NULL;
    const int64_t *zps = NULL;
    if (op->kind != GB_OP_DEQUANTIZE || gb_dtype_get(gb_op_input(op, CODES)->data_type)->bits != 8)
        return false;
    size_t n_zps = gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    if (gb_op_attr_f32s(op, GB_ATTR_SCALES, &scales) != 1 || n_zps > 1 ||
            (n_zps == 1 && (zps[0] < -EXACT || zps[0] > EXACT)))
        return false;
    *codes = (gb_per_tensor_quantization){
            .scale = scales[0], .zero_point = n_zps ? (float)zps[0] : 0};
    return true;
}

/* Reach ---------------------------------------------------------------------------------------- */

static int64_t farthest(const gb_dtype_info *codes, int64_t zp)
{
    enum { FAR = 1 << 24 };
    if (zp < -FAR || zp > FAR)
        return INT64_MAX;
    int64_t up = (int64_t)codes->max - zp, down = zp - (int64_t)codes->lowest;
    return up > down ? up : down;
}

static int64_t reach_of(const gb_dequantization *e, gb_data_type type)
{
    const gb_dtype_info *codes = gb_dtype_get(type);
    const int64_t *zps = NULL;
    if (!codes || codes->is_float || codes->bits > 8)
        return INT64_MAX;
    int64_t reach = e->zps.type == GB_UNDEF ? farthest(codes, 0) : 0;
    if (e->zps.type != GB_UNDEF && e->zps.value != GB_NONE) {
        const gb_dtype_info *info = gb_dtype_get(e->zps.type);
        if (info->is_float || info->bits > 8)
            return INT64_MAX;
        int64_t low = farthest(codes, (int64_t)info->lowest);
        int64_t high = farthest(codes, (int64_t)info->max);
        return low > high ? low : high;
    }
    size_t count = gb_op_attr_s64s(e->op, GB_ATTR_ZPS, &zps);
    for (size_t i = 0; e->zps.type != GB_UNDEF && i < count; i++) {
        int64_t one = farthest(codes, zps[i]);
        reach = one > reach ? one : reach;
    }
    return reach;
}

/* The operand ---------------------------------------------------------------------------------- */

static bool all_zero(const gb_op *op)
{
    const int64_t *zps = NULL;
    size_t count = gb_op_attr_s64s(op, GB_ATTR_ZPS, &zps);
    for (size_t i = 0; i < count; i++)
        if (zps[i] != 0)
            return false;
    return true;
}

void gb_dequantization_read(const gb_graph *graph, const gb_group *group, uint32_t value,
        gb_dequantization *dequantization)
{
    *dequantization = (gb_dequantization){.codes = value, .reach = INT64_MAX};
    dequantization->scales.value = dequantization->zps.value = GB_NONE;
    for (int d = 0; d < GB_AXES; d++)
        dequantization->groups[d] = 1;
    for (;;) {
        uint32_t producer = graph->values[dequantization->codes].producer;
        if (producer == GB_NONE || !is_taken(group, producer))
            return;
        const gb_op *op = graph->ops[producer];
        dequantization->codes = op->inputs[CODES];
        if (!dequantizes(op))
            continue;
        dequantization->op = op;
        if (op->kind == GB_OP_DEQUANTIZE) {
            read_attribute(op, GB_ATTR_SCALES, &dequantization->scales);
            if (!all_zero(op))
                read_attribute(op, GB_ATTR_ZPS, &dequantization->zps);
        } else {
            read_tensor(op, SCALES, &dequantization->scales);
            read_tensor(op, ZPS, &dequantization->zps);
        }
        read_groups(op, dequantization->groups);
        dequantization->reach = reach_of(dequantization, gb_op_input(op, CODES)->data_type);
        return;
    }
}

static gb_status add_attribute(
        gb_program *program, const gb_op *op, gb_op_attr name, uint32_t *buffer)
{
    const float *scales = NULL;
    const int64_t *zps = NULL;
    if (name == GB_ATTR_SCALES) {
        size_t count = gb_op_attr_f32s(op, name, &scales);
        return gb_program_literals(program, scales, count, buffer);
    }
    size_t count = gb_op_attr_s64s(op, name, &zps);
    float *values = gb_calloc(count, sizeof *values);
    if (!values)
        return GB_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++)
        values[i] = (float)zps[i];
    gb_status status = gb_program_literals(program, values, count, buffer);
    free(values);
    return status;
}

static gb_status use_parameter(gb_program *program, gb_step *step, const gb_op *op, gb_op_attr name,
        gb_dequantization_parameter *parameter)
{
    uint32_t buffer;
    if (parameter->type == GB_UNDEF)
        return GB_SUCCESS;
    if (parameter->value != GB_NONE)
        return gb_program_use(program, step, parameter->value, false, &parameter->slot);
    GB_TRY(add_attribute(program, op, name, &buffer));
    return gb_step_use_buffer(step, buffer, false, &parameter->slot);
}

gb_status gb_dequantization_use_parameters(
        gb_program *program, gb_step *step, gb_dequantization *dequantization)
{
    GB_TRY(use_parameter(
            program, step, dequantization->op, GB_ATTR_SCALES, &dequantization->scales));
    return use_parameter(program, step, dequantization->op, GB_ATTR_ZPS, &dequantization->zps);
}
