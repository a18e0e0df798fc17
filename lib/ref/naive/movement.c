/* Movement, conversion, quantisation, dropout: op set 3.11, 3.12, 3.13, 3.14. */
#include "ref/naive/naive_op.h"

#include <math.h>
#include <string.h>

gb_status gb_naive_concat(const gb_naive_call *call)
{
    const gb_naive_tensor *first = &call->in[0];
    int axis = gb_naive_axis(gb_naive_int(call->op, GB_ATTR_AXIS, 0), first->ndims);
    int64_t dims[GB_MAX_NDIMS], begin = 0;
    if (axis < 0)
        return GB_NAIVE_REFUSE(call, "axis is no axis of the inputs");
    memcpy(dims, first->dims, sizeof dims);
    for (uint32_t i = 1; i < call->op->n_inputs; i++) {
        bool fits = call->in[i].ndims == first->ndims;
        for (int d = 0; fits && d < first->ndims; d++)
            fits = d == axis || call->in[i].dims[d] == first->dims[d];
        if (!fits)
            return GB_NAIVE_REFUSE(call, "inputs differ off the axis");
        dims[axis] += call->in[i].dims[axis];
    }
    GB_TRY(gb_naive_make(call, 0, first->ndims, dims));
    for (uint32_t i = 0; i < call->op->n_inputs; i++) {
        const gb_naive_tensor *src = &call->in[i];
        for (int64_t p = 0; p < src->count; p++) {
            int64_t index[GB_MAX_NDIMS];
            gb_naive_index(src, p, index);
            index[axis] += begin;
            call->out->value[gb_naive_at(call->out, index)] = src->value[p];
        }
        begin += src->dims[axis];
    }
    return GB_SUCCESS;
}

/* An entry of 0 copies src's dim where special_zero says so; -1 is what remains. */
gb_status gb_naive_reshape(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    const int64_t *shape;
    size_t count = gb_naive_ints(call->op, GB_ATTR_SHAPE, &shape);
    bool special_zero = gb_naive_flag(call->op, GB_ATTR_SPECIAL_ZERO, false);
    int64_t dims[GB_MAX_NDIMS], others = 1;
    int open = -1;
    for (size_t i = 0; i < count; i++) {
        if (i >= GB_MAX_NDIMS || shape[i] < -1 || (shape[i] == -1 && open >= 0) ||
                (shape[i] == 0 && special_zero && (int)i >= src->ndims))
            return GB_NAIVE_REFUSE(call, "shape is not legal");
        if (shape[i] == -1)
            open = (int)i;
        dims[i] = shape[i] == 0 && special_zero ? src->dims[i] : shape[i];
        if (dims[i] >= 0 && __builtin_mul_overflow(others, dims[i], &others))
            return GB_NAIVE_REFUSE(call, "shape is too large");
    }
    if (open >= 0)
        dims[open] = others > 0 ? src->count / others : 0;
    if (open >= 0 ? others == 0 || src->count % others != 0 : others != src->count)
        return GB_NAIVE_REFUSE(call, "shape does not hold src's elements");
    GB_TRY(gb_naive_make(call, 0, (int)count, dims));
    memcpy(call->out->value, src->value, (size_t)src->count * sizeof(double));
    return GB_SUCCESS;
}

gb_status gb_naive_transpose(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    const int64_t *order;
    size_t count = gb_naive_ints(call->op, GB_ATTR_ORDER, &order);
    int axes[GB_MAX_NDIMS];
    int64_t dims[GB_MAX_NDIMS];
    bool taken[GB_MAX_NDIMS] = {false};
    if (count != 0 && count != (size_t)src->ndims)
        return GB_NAIVE_REFUSE(call, "order does not list all axes");
    for (int d = 0; d < src->ndims; d++) {
        axes[d] = count ? gb_naive_axis(order[d], src->ndims) : src->ndims - 1 - d;
        if (axes[d] < 0 || taken[axes[d]])
            return GB_NAIVE_REFUSE(call, "order is no permutation");
        taken[axes[d]] = true;
        dims[d] = src->dims[axes[d]];
    }
    GB_TRY(gb_naive_make(call, 0, src->ndims, dims));
    for (int64_t p = 0; p < call->out->count; p++) {
        int64_t index[GB_MAX_NDIMS], from[GB_MAX_NDIMS];
        gb_naive_index(call->out, p, index);
        for (int d = 0; d < src->ndims; d++)
            from[axes[d]] = index[d];
        call->out->value[p] = src->value[gb_naive_at(src, from)];
    }
    return GB_SUCCESS;
}

/* Reorder, TypeCast: the store converts. */
gb_status gb_naive_copy(const gb_naive_call *call)
{
    GB_TRY(gb_naive_make_like(call, 0, &call->in[0]));
    for (int64_t p = 0; p < call->out->count; p++)
        call->out->value[p] = call->in[0].value[p];
    return GB_SUCCESS;
}

gb_status gb_naive_gen_index(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    int axis = gb_naive_axis(gb_naive_int(call->op, GB_ATTR_AXIS, 0), src->ndims);
    if (axis < 0)
        return GB_NAIVE_REFUSE(call, "axis is no axis of src");
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (int64_t p = 0; p < src->count; p++)
        call->out->value[p] = (double)gb_naive_along(src, axis, p);
    return GB_SUCCESS;
}

/* 3.12 Scale or zero point of an element: from the attribute (static ops) or a tensor. */
typedef struct parameters {
    int64_t count;
    const float *scales;                             /* of the attribute ... */
    const int64_t *zps;                              /* ... NULL: all 0 */
    const gb_naive_tensor *scale_tensor, *zp_tensor; /* of a dynamic op; zp may be NULL */
    bool per_channel, per_group;
    int axis;
    const int64_t *group; /* sizes, per axis */
    int64_t n_groups;     /* of the convolution that the weights belong to, see below */
    int group_axis;
} parameters;

/* Weights of a grouped ConvTranspose hold the output channels of one group only, but are quantised
 * by all of them: channel = group of the input channel * channels of a group + own. */
static void find_groups(const gb_op *op, const gb_naive_tensor *src, parameters *q)
{
    const gb_value *value = op->graph ? &op->graph->values[op->outputs[0]] : NULL;
    q->n_groups = 1;
    for (uint32_t i = 0; q->per_channel && value && i < value->n_uses; i++) {
        const gb_op *user = op->graph->ops[value->uses[i].op];
        int64_t groups = gb_naive_int(user, GB_ATTR_GROUPS, 1);
        bool first = gb_naive_says(user, GB_ATTR_WEIGHTS_FORMAT, "XOI", "IOX");
        int input_axis = first ? 0 : src->ndims - 1, output_axis = first ? 1 : src->ndims - 2;
        if (user->kind == GB_OP_CONV_TRANSPOSE && value->uses[i].input == 1 && groups > 1 &&
                q->axis == output_axis && q->count == groups * src->dims[q->axis]) {
            q->n_groups = groups;
            q->group_axis = input_axis;
        }
    }
}

static gb_status read_parameters(const gb_naive_call *call, parameters *q)
{
    const gb_op *op = call->op;
    const gb_naive_tensor *src = &call->in[0];
    const gb_attr *scales = gb_naive_attr(op, GB_ATTR_SCALES);
    *q = (parameters){.per_channel = gb_naive_says(op, GB_ATTR_QTYPE, "per_tensor", "per_channel"),
            .per_group = gb_naive_says(op, GB_ATTR_QTYPE, "per_tensor", "per_group")};
    q->axis = gb_naive_axis(gb_naive_int(op, GB_ATTR_AXIS, 1), src->ndims);
    if (op->n_inputs > 1) {
        q->scale_tensor = &call->in[1];
        q->zp_tensor = op->n_inputs > 2 ? &call->in[2] : NULL;
        q->count = call->in[1].count;
    } else {
        q->scales = scales ? scales->value.f32s : NULL;
        q->count = scales ? (int64_t)scales->count : 0;
        if (gb_naive_ints(op, GB_ATTR_ZPS, &q->zps) == 0)
            q->zps = NULL;
    }
    if (q->per_channel && q->axis < 0)
        return GB_NAIVE_REFUSE(call, "axis is no axis of src");
    find_groups(op, src, q);
    if (q->per_group && gb_naive_ints(op, GB_ATTR_GROUP_SHAPE, &q->group) != (size_t)src->ndims)
        return GB_NAIVE_REFUSE(call, "group_shape does not fit src");
    for (int d = 0; q->per_group && d < src->ndims; d++)
        if (q->scale_tensor->ndims != src->ndims || q->group[d] < 1 ||
                q->scale_tensor->dims[d] * q->group[d] != src->dims[d])
            return GB_NAIVE_REFUSE(call, "groups do not tile src");
    if (!q->per_group && q->count != (q->per_channel ? src->dims[q->axis] * q->n_groups : 1))
        return GB_NAIVE_REFUSE(call, "scales do not fit src");
    return GB_SUCCESS;
}

static int64_t parameter_at(const parameters *q, const gb_naive_tensor *src, int64_t p)
{
    int64_t index[GB_MAX_NDIMS];
    if (q->per_group) {
        gb_naive_index(src, p, index);
        for (int d = 0; d < src->ndims; d++)
            index[d] /= q->group[d];
        return gb_naive_at(q->scale_tensor, index);
    }
    if (!q->per_channel)
        return 0;
    int64_t channel = gb_naive_along(src, q->axis, p);
    if (q->n_groups > 1)
        channel += gb_naive_along(src, q->group_axis, p) /
                   (src->dims[q->group_axis] / q->n_groups) * src->dims[q->axis];
    return channel;
}

static double scale_at(const parameters *q, int64_t i)
{
    return q->scale_tensor ? q->scale_tensor->value[i] : (double)q->scales[i];
}

static double zp_at(const parameters *q, int64_t i)
{
    if (q->scale_tensor)
        return q->zp_tensor ? q->zp_tensor->value[q->zp_tensor->count == 1 ? 0 : i] : 0;
    return q->zps ? (double)q->zps[i] : 0;
}

/* src / scale + zp; the store rounds to even, the zero point being in already, and saturates. */
gb_status gb_naive_quantize(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    parameters q;
    GB_TRY(read_parameters(call, &q));
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (int64_t p = 0; p < src->count; p++) {
        int64_t i = parameter_at(&q, src, p);
        double quotient = src->value[p] / scale_at(&q, i), zp = zp_at(&q, i);
        call->out->value[p] = zp == 0 ? quotient : quotient + zp; /* -0 stays what it is */
    }
    return GB_SUCCESS;
}

gb_status gb_naive_dequantize(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    parameters q;
    GB_TRY(read_parameters(call, &q));
    GB_TRY(gb_naive_make_like(call, 0, src));
    for (int64_t p = 0; p < src->count; p++) {
        int64_t i = parameter_at(&q, src, p);
        call->out->value[p] = (src->value[p] - zp_at(&q, i)) * scale_at(&q, i);
    }
    return GB_SUCCESS;
}

/* 3.13 Philox4x32-10 of a counter and a key. */
static uint32_t philox(uint64_t index, uint64_t seed, uint64_t offset)
{
    uint64_t four = index / 4 * 4;
    uint32_t c[4] = {
            (uint32_t)offset, (uint32_t)(offset >> 32), (uint32_t)four, (uint32_t)(four >> 32)};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t m0 = (uint64_t)0xD2511F53 * c[0], m1 = (uint64_t)0xCD9E8D57 * c[2];
        c[0] = (uint32_t)(m1 >> 32) ^ c[1] ^ k0;
        c[1] = (uint32_t)m1;
        c[2] = (uint32_t)(m0 >> 32) ^ c[3] ^ k1;
        c[3] = (uint32_t)m0;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    return c[index % 4];
}

static uint32_t draw(uint64_t index, uint64_t seed, uint64_t offset)
{
    if (offset != 0)
        return philox(index, seed, offset);
    uint32_t x = (uint32_t)index / 4 * 4, s = (uint32_t)seed;
    return philox(((uint64_t)(x + 3) << 32) + (x + 2), ((uint64_t)s << 32) + s,
            ((uint64_t)(x + 1) << 32) + x);
}

/* The draw belongs to the element's place in dst's memory. */
gb_status gb_naive_dropout(const gb_naive_call *call)
{
    const gb_naive_tensor *src = &call->in[0];
    const gb_logical_tensor *dst = gb_op_output(call->op, 0);
    bool strided = dst->layout_type == GB_LAYOUT_STRIDED && dst->ndims == src->ndims;
    for (uint32_t i = 1; i < 4; i++)
        if (call->in[i].count != 1)
            return GB_NAIVE_REFUSE(call, "seed, offset and probability are single values");
    for (int d = 0; strided && d < dst->ndims; d++)
        strided = dst->strides[d] >= 0;
    double p = fmin(fmax(call->in[3].value[0], 0), 1), q = p == 1 ? 0 : 1 / (1 - p);
    GB_TRY(gb_naive_make_like(call, 0, src));
    if (call->op->n_outputs > 1)
        GB_TRY(gb_naive_make_like(call, 1, src));
    for (int64_t i = 0; i < src->count; i++) {
        int64_t index[GB_MAX_NDIMS], place = strided ? 0 : i;
        gb_naive_index(src, i, index);
        for (int d = 0; strided && d < dst->ndims; d++)
            place += index[d] * dst->strides[d];
        uint32_t r =
                draw((uint64_t)place, (uint64_t)call->in[1].whole, (uint64_t)call->in[2].whole);
        bool keep = (double)r > 4294967295.0 * p;
        call->out[0].value[i] = keep ? src->value[i] * q : 0;
        if (call->op->n_outputs > 1)
            call->out[1].value[i] = keep;
    }
    return GB_SUCCESS;
}

gb_status gb_naive_end(const gb_naive_call *call)
{
    (void)call;
    return GB_SUCCESS;
}
